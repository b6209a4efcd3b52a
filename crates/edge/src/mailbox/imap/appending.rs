//! An APPEND under way: what there is of it, whoever hears and says it.

use proto::imap::{Command, Message, Status};

use crate::message::passage::Passage;

/// An APPEND under way.
pub struct Appending {
    pub(super) command: Command,
    pub(super) flow: Flowing,
    /// The message under way; none while it is passed over.
    pub(super) passage: Option<Box<Passage>>,
    /// Command text in front of it, unless that is the beginning of the command.
    pub(super) before: Option<Vec<u8>>,
    pub(super) message: Message,
    pub(super) left: u64,
    /// Why nothing is appended.
    pub(super) refusal: Option<String>,
    pub(super) id: String,
}

/// How far the server is with the message under way.
pub(super) enum Flowing {
    /// It has not heard of the command.
    Unheard,
    /// It has heard of it, and not of this message.
    Between,
    /// It is to say whether the message may come.
    Asked,
    /// It may.
    Open,
    /// The server wants nothing of it.
    Answered(Status),
}

impl Appending {
    /// The message may come.
    pub fn go(&mut self) {
        if let Flowing::Asked = self.flow {
            self.flow = Flowing::Open;
        }
    }
}
