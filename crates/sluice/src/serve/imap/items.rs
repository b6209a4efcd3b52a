//! The items of a FETCH response on their way to the client.
//!
//! The response is written anew, item by item: what the client must not see is left out, and what is inspected first is
//! announced when its first byte may go.

use std::io;

use proto::imap::{Fact, Message, Section, Server};

use super::fetch::Way;
use super::overwrite::Overwriter;
use super::session::{OUTBOX_BYTES, Session, Work};
use crate::serve::known::{Identity, Named};
use crate::serve::retrieval::{Outcome, Reader, Retrieval, Sees};
use crate::serve::wire::Wire;

/// A FETCH response that is being read.
pub struct Told {
    pub number: u32,
    pub uid: Option<u32>,
    /// What it is told by beside that.
    size: Option<Vec<u8>>,
    date: Option<Vec<u8>>,
    /// The UID that content was taken for before it was told.
    presumed: Option<u32>,
    /// Whether the client has heard of it.
    begun: bool,
    uid_said: bool,
    /// Something was left out.
    reduced: bool,
    /// The content that is under way, and how much of it is left.
    under: Under,
    left: u64,
}

/// What is done with the content that is under way.
enum Under {
    /// It goes to the client.
    Passing,
    /// Nobody sees it.
    Dropped,
    /// It goes to the client as far as the inspection allows; its name and announcement, until the client has heard that.
    Shown(Box<Retrieval>, Vec<u8>, Option<Message>),
    /// It is inspected, and goes nowhere.
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

    /// Which message it is, where the server has told all of that.
    fn identity(&self) -> Option<Identity> {
        Some(Identity::new(&[self.size.as_ref()?, self.date.as_ref()?]))
    }

    /// Says an item's name, and what stands in front of it.
    fn item(&mut self, hears: &mut Server, name: &[u8]) {
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
    async fn take(&mut self, run: &[u8], hears: &mut Server, client: &mut Wire) -> io::Result<()> {
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
    async fn show(&mut self, at_end: bool, hears: &mut Server, client: &mut Wire) -> io::Result<()> {
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

fn announcement(Message { len, binary }: Message) -> Vec<u8> {
    format!("{}{{{len}}}\r\n", if binary { "~" } else { "" }).into_bytes()
}

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
        let runtime = self.edge.runtime.borrow().clone();
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
