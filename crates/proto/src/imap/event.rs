//! Events of a server, as the client half reports them.

use alloc::vec::Vec;

use super::section::Section;

/// Response of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientEvent {
    /// Nothing to tell.
    Idle,
    /// It asks to go on: a challenge, or leave to send what was announced.
    Continue(Vec<u8>),
    /// A status.
    Status(Status),
    /// All that it offers.
    Capability(Vec<Vec<u8>>),
    /// The beginning of a response that is passed on.
    Data(Vec<u8>),
    /// A FETCH response about the message with this number begins.
    Fetch(u32),
    /// The name of an item that is passed on. Its value follows.
    Item(Vec<u8>),
    /// The message's UID.
    Uid(u32),
    /// An item that passes, with its value: one of the names of the message besides its UID.
    Fact(Fact, Vec<u8>),
    /// A short item that passes: its name, and its value.
    Short(&'static str, Vec<u8>),
    /// An item with content: its name, and its size unless it is NIL.
    Section(Section, Option<Message>),
    /// The bytes taken pass as they stand.
    Pass,
    /// The bytes taken pass with blanks for line ends: they are in a literal that is no content.
    PassText,
    /// The bytes taken are content.
    Content,
    /// Content that came in quotes, all of it.
    Quoted(Vec<u8>),
    /// The response is complete.
    End,
    /// It speaks no IMAP, or out of turn: the connection is of no more use.
    Broken(&'static str),
}

/// A message that is announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// Its size in bytes.
    pub len: u64,
    /// Whether it may hold NULs.
    pub binary: bool,
}

/// Facts of a message besides its UID that do not change while it exists (RFC 9051, section 2.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fact {
    /// Its size in bytes.
    Size,
    /// When it came.
    Date,
}

impl Fact {
    /// The name of the item.
    pub const fn name(self) -> &'static str {
        match self {
            Fact::Size => "RFC822.SIZE",
            Fact::Date => "INTERNALDATE",
        }
    }

    pub(super) fn parse(name: &[u8]) -> Option<Fact> {
        [Fact::Size, Fact::Date].into_iter().find(|fact| name.eq_ignore_ascii_case(fact.name().as_bytes()))
    }
}

/// A status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// Whether it answers the command in flight.
    pub tagged: bool,
    /// How it stands.
    pub kind: Kind,
    /// Response code: the text in brackets.
    pub code: Vec<u8>,
    /// Text after the code.
    pub text: Vec<u8>,
}

/// How it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Well.
    Ok,
    /// Not done.
    No,
    /// Not understood.
    Bad,
    /// It ends.
    Bye,
    /// The session is authenticated from the start.
    Preauth,
}

impl Kind {
    /// The word.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Ok => "OK",
            Kind::No => "NO",
            Kind::Bad => "BAD",
            Kind::Bye => "BYE",
            Kind::Preauth => "PREAUTH",
        }
    }

    pub(super) fn parse(word: &[u8]) -> Option<Kind> {
        let all = [Kind::Ok, Kind::No, Kind::Bad, Kind::Bye, Kind::Preauth];
        all.into_iter().find(|kind| word.eq_ignore_ascii_case(kind.name().as_bytes()))
    }
}
