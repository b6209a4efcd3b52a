//! A FETCH response that is being read.

use std::io;

use proto::imap::{Message, Server};

use super::OUTBOX_BYTES;
use super::overwrite::Overwriter;
use crate::mailbox::retrieval::Retrieval;
use crate::message::known::Identity;
use crate::net::wire::Wire;

/// A FETCH response that is being read.
pub struct Told {
    pub number: u32,
    pub uid: Option<u32>,
    /// Size and date, which identify it.
    pub(super) size: Option<Vec<u8>>,
    pub(super) date: Option<Vec<u8>>,
    /// The UID that content was taken for before it was told.
    pub(super) presumed: Option<u32>,
    /// Whether the client has heard of it.
    pub(super) begun: bool,
    pub(super) uid_said: bool,
    /// Something was left out.
    pub(super) reduced: bool,
    /// The content that is under way, and how much of it is left.
    pub(super) under: Under,
    pub(super) left: u64,
}

/// Treatment of the content in progress.
pub(super) enum Under {
    /// It goes to the client.
    Passing,
    /// Nobody sees it.
    Dropped,
    /// It goes to the client as far as the inspection allows; its name and announcement, until the client has heard that.
    Shown(Box<Retrieval>, Vec<u8>, Option<Message>),
    /// A message to inspect that the client does not get.
    Inspected(Box<Retrieval>),
    /// Its parts are looked for.
    Searched(Box<Retrieval>),
    /// It is a range that goes to the client overwritten.
    Overwritten(Overwriter),
}

impl Told {
    /// A response that begins.
    pub fn new(number: u32) -> Told {
        Told {
            number,
            uid: None,
            size: None,
            date: None,
            presumed: None,
            begun: false,
            uid_said: false,
            reduced: false,
            under: Under::Dropped,
            left: 0,
        }
    }

    /// Identity of the message, once the server has sent all of it.
    pub(super) fn identity(&self) -> Option<Identity> {
        Some(Identity::new(&[self.size.as_ref()?, self.date.as_ref()?]))
    }

    /// Says an item's name, and what stands in front of it.
    pub(super) fn item(&mut self, hears: &mut Server, name: &[u8]) {
        let start = if self.begun { " ".to_string() } else { format!("* {} FETCH (", self.number) };
        self.begun = true;
        hears.bytes(start.as_bytes());
        if let Some(uid) = self.uid
            && !self.uid_said
        {
            self.uid_said = true;
            hears.bytes(format!("UID {uid} ").as_bytes());
        }
        hears.bytes(name);
        hears.bytes(b" ");
    }

    /// The next bytes of content.
    pub(super) async fn take(&mut self, run: &[u8], hears: &mut Server, client: &mut Wire) -> io::Result<()> {
        self.left = self.left.saturating_sub(run.len() as u64);
        match &mut self.under {
            Under::Dropped => {}
            Under::Passing => hears.bytes(run),
            Under::Overwritten(overwriter) => {
                let mut run = run.to_vec();
                overwriter.fill(&mut run);
                hears.bytes(&run);
            }
            Under::Inspected(retrieval) | Under::Searched(retrieval) => {
                retrieval.take(run).await;
                loop {
                    let count = retrieval.ready(false).len();
                    if count == 0 {
                        break;
                    }
                    retrieval.sent(count);
                }
            }
            Under::Shown(retrieval, ..) => {
                retrieval.take(run).await;
                if retrieval.is_hopeless() {
                    retrieval.conclude().await;
                    hears.close();
                } else if retrieval.is_streaming() {
                    self.show(false, hears, client).await?;
                }
            }
        }
        Ok(())
    }

    /// Sends what may be sent; in front of the first of it, its announcement.
    pub(super) async fn show(&mut self, at_end: bool, hears: &mut Server, client: &mut Wire) -> io::Result<()> {
        let Under::Shown(_, name, message) = &mut self.under else { return Ok(()) };
        if let Some(message) = message.take() {
            let name = std::mem::take(name);
            self.item(hears, &name);
            hears.bytes(&announcement(message));
        }
        let Under::Shown(retrieval, ..) = &mut self.under else { return Ok(()) };
        loop {
            let ready = retrieval.ready(at_end);
            if ready.is_empty() {
                return Ok(());
            }
            hears.bytes(ready);
            let count = ready.len();
            retrieval.sent(count);
            if hears.outbox().len() > OUTBOX_BYTES {
                client.write(hears.outbox()).await?;
                hears.sent();
            }
        }
    }
}

pub(super) fn announcement(Message { len, binary }: Message) -> Vec<u8> {
    format!("{}{{{len}}}\r\n", if binary { "~" } else { "" }).into_bytes()
}
