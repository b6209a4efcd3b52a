//! The items of a FETCH response on their way to the client.
//!
//! The response is written anew, item by item: what the client must not see is left out, and what is inspected first is
//! announced when its first byte may go.

use std::io;

use proto::imap::{Fact, Message, Section};

use super::fetching::Way;
use super::session::{Session, Work};
use super::told::{Under, announcement};
use crate::mailbox::retrieval::{Outcome, Reader, Retrieval, Sees};
use crate::message::known::{Identity, Named};

impl Session {
    pub fn item(&mut self, name: &[u8]) {
        if let Some(told) = &mut self.told {
            told.item(&mut self.hears, name);
        }
    }

    pub fn uid(&mut self, uid: u32) {
        let Some(told) = &mut self.told else { return };
        if told.presumed.is_some_and(|presumed| presumed != uid) || told.uid.is_some() {
            return self.distrust("it sends another message");
        }
        told.uid = Some(uid);
        if told.begun {
            told.uid_said = true;
            self.hears.bytes(format!(" UID {uid}").as_bytes());
        }
        if let Work::Fetch(fetching) = &mut self.work {
            fetching.named(told.number, uid);
        }
        self.identify();
    }

    /// A size or a date; the client hears of it if it has asked.
    pub fn fact(&mut self, fact: Fact, value: Vec<u8>) {
        let wanted = match &self.work {
            Work::Fetch(fetching) => fetching.asks_for(fact),
            _ => true,
        };
        if wanted {
            self.item(fact.name().as_bytes());
            self.hears.bytes(&value);
        }
        let Some(told) = &mut self.told else { return };
        match fact {
            Fact::Size => told.size = Some(value),
            Fact::Date => told.date = Some(value),
        }
        self.identify();
    }

    /// Remembers which message has the UID, once it is known.
    fn identify(&mut self) {
        let Some(told) = &self.told else { return };
        if let (Some(uid), Some(identity)) = (told.uid, told.identity()) {
            self.folder.identify(uid, identity);
        }
    }

    /// An item with content begins.
    pub async fn section(&mut self, section: &Section, message: Option<Message>) -> io::Result<()> {
        let Some(mut told) = self.told.take() else { return Ok(()) };
        if let (None, Work::Fetch(fetching)) = (told.uid, &self.work) {
            told.presumed = fetching.only();
        }
        let uid = told.uid.or(told.presumed);
        let identity = told.identity().or_else(|| uid.and_then(|uid| self.folder.identity(uid)));
        let way = self.way(section, told.number, uid, identity);
        let mut name = Vec::new();
        match &way {
            Way::Range(asked, _) => asked.name(&mut name),
            _ => section.name(&mut name),
        }
        match message {
            None if matches!(way, Way::Inspect | Way::Find) => {}
            None => {
                told.item(&mut self.hears, &name);
                self.hears.bytes(b"NIL");
            }
            Some(message) => {
                told.left = message.len;
                told.reduced |= matches!(way, Way::Drop);
                if matches!(way, Way::Pass | Way::Range(..)) {
                    told.item(&mut self.hears, &name);
                    self.hears.bytes(&announcement(message));
                }
                told.under = match way {
                    Way::Drop => Under::Dropped,
                    Way::Pass => Under::Passing,
                    Way::Show(sees) => {
                        Under::Shown(self.retrieval(uid, identity, sees, message.len), name, Some(message))
                    }
                    Way::Inspect => Under::Inspected(self.retrieval(uid, identity, Sees::Nothing, message.len)),
                    Way::Find => Under::Searched(self.retrieval(uid, identity, Sees::Parts, message.len)),
                    Way::Range(_, overwriter) => Under::Overwritten(overwriter),
                };
            }
        }
        // It need not wait until the first of the message is here, or inspected.
        if matches!(&told.under, Under::Shown(retrieval, ..) if retrieval.is_streaming()) {
            told.show(false, &mut self.hears, &mut self.client).await?;
            self.flush().await?;
        }
        self.told = Some(told);
        if message.is_some_and(|message| message.len == 0) { self.content_ends().await } else { Ok(()) }
    }

    fn retrieval(&mut self, uid: Option<u32>, identity: Option<Identity>, sees: Sees, len: u64) -> Box<Retrieval> {
        let runtime = self.shared.runtime.borrow().clone();
        let key = uid.and_then(|uid| self.key(uid)).filter(|_| sees != Sees::Header);
        let named = key.map(|key| Named { key, identity });
        let reader = Reader {
            door: self.door.clone(),
            address: self.address.ip(),
            user: self.shown_user(),
            uid: self.shown_message(uid),
            sees,
        };
        Box::new(Retrieval::new(runtime, reader, named, Some(len)))
    }

    /// The first bytes of what the server has sent are content.
    pub async fn content(&mut self, count: usize) -> io::Result<()> {
        let Some(told) = &mut self.told else { return Ok(()) };
        told.take(&self.server.input()[..count], &mut self.hears, &mut self.client).await
    }

    /// Content that came in quotes.
    pub async fn quoted_content(&mut self, content: &[u8]) -> io::Result<()> {
        let Some(told) = &mut self.told else { return Ok(()) };
        told.take(content, &mut self.hears, &mut self.client).await
    }

    /// Ends the content under way, if it is complete.
    pub async fn content_ends(&mut self) -> io::Result<()> {
        let Some(told) = self.told.as_mut().filter(|told| told.left == 0) else { return Ok(()) };
        if self.hears.is_closed() {
            return Ok(());
        }
        if let Under::Shown(retrieval, name, _) = &mut told.under {
            match retrieval.conclude().await {
                Outcome::Send => told.show(true, &mut self.hears, &mut self.client).await?,
                Outcome::Cut => self.hears.close(),
                Outcome::Refuse(reason) => {
                    let name = std::mem::take(name);
                    told.item(&mut self.hears, &name);
                    self.hears.bytes(b"NIL");
                    if let Work::Fetch(fetching) = &mut self.work {
                        fetching.refuse(reason);
                    }
                }
            }
        }
        match std::mem::replace(&mut told.under, Under::Dropped) {
            Under::Inspected(mut retrieval) => {
                retrieval.conclude().await;
            }
            Under::Searched(mut retrieval) => {
                retrieval.conclude().await;
                if let Some(parts) = retrieval.parts() {
                    self.found(parts);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// A response is complete.
    pub fn response_ends(&mut self) {
        let Some(told) = self.told.take() else { return self.hears.bytes(b"\r\n") };
        let ours = matches!(&self.work, Work::Fetch(fetching) if fetching.is_ours());
        match told.uid {
            _ if told.begun => self.hears.bytes(b")\r\n"),
            Some(uid) if !told.reduced && !ours => {
                self.hears.line(format!("* {} FETCH (UID {uid})", told.number).as_bytes());
            }
            _ => {}
        }
    }
}
