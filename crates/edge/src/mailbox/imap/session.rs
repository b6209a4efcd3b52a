//! A session between a client and its mailboxes.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use flow::Parts;
use proto::imap::{Client, Config, Kind, Server, Status, Terms, Texts, offers_to_client};

use super::appending::Appending;
use super::fetching::Fetching;
use super::told::Told;
use super::upstream::{Upstream, capabilities_in};
use crate::message::known::{Fate, Identity, Key, Named};
use crate::message::trace::{new_id, printable};
use crate::net::wire::Wire;
use crate::porch::door::Door;
use crate::porch::gate::Ticket;
use crate::porch::shared::Shared;
use crate::settings::ListenerTls;

/// How long the server may take to answer.
pub const SERVER_WAIT: Duration = Duration::from_secs(300);

/// The last word to a client that has not logged in, and whose place is another's.
pub const LOST: &str = "[UNAVAILABLE] Too many clients that have not logged in";

/// A session.
pub struct Session {
    pub shared: Rc<Shared>,
    pub door: Arc<Door>,
    pub address: SocketAddr,
    /// Its place at the door.
    pub ticket: Ticket,
    pub client: Wire,
    pub server: Wire,
    /// Hears the client.
    pub hears: Server,
    /// Texts of the server on their way to the client.
    pub texts: Texts,
    /// Asks the server.
    pub asks: Client,
    /// Command in flight.
    pub work: Work,
    /// User who has logged in, as far as that can be seen.
    pub user: Option<String>,
    /// In place of it where it cannot be seen.
    pub stranger: Option<String>,
    pub folder: Folder,
    /// The FETCH response that is being read.
    pub told: Option<Box<Told>>,
    /// Where the parts are of the message that was asked for last and is not clean.
    pub found: Option<(Key, Arc<Parts>)>,
    started: Instant,
}

/// The mailbox that is selected, or is about to be.
#[derive(Default)]
pub struct Folder {
    pub name: Option<Vec<u8>>,
    pub validity: Option<u32>,
    /// Identities of messages by UID, the most recent ones. While the mailbox is selected no UID becomes
    /// another message's.
    pub told: VecDeque<(u32, Identity)>,
}

impl Folder {
    /// Messages that are remembered.
    const TOLD_MAX: usize = 64;

    /// Identity of the message with this UID, if known.
    pub fn identity(&self, uid: u32) -> Option<Identity> {
        self.told.iter().find(|(told, _)| *told == uid).map(|(_, identity)| *identity)
    }

    /// A message was told of.
    pub fn identify(&mut self, uid: u32, identity: Identity) {
        if let Some((_, known)) = self.told.iter_mut().find(|(told, _)| *told == uid) {
            *known = identity;
            return;
        }
        if self.told.len() == Folder::TOLD_MAX {
            self.told.pop_front();
        }
        self.told.push_back((uid, identity));
    }
}

/// Command in flight.
pub enum Work {
    /// Nothing: the client may say its next.
    Nothing,
    /// A command whose answer is the client's.
    Command {
        tag: Vec<u8>,
        verb: proto::imap::Verb,
        /// The mechanism of a SASL exchange.
        mechanism: Option<String>,
        /// Login name.
        user: Option<String>,
    },
    /// Messages are fetched.
    Fetch(Box<Fetching>),
    /// Messages are appended.
    Append(Box<Appending>),
}

/// Continuation after an event.
#[derive(PartialEq, Eq)]
pub enum Next {
    Go,
    /// Nothing more can be done with what is here.
    Wait,
    Over,
}

impl Session {
    /// A session that begins; the server has greeted.
    pub fn new(
        shared: Rc<Shared>,
        door: Arc<Door>,
        (address, ticket): (SocketAddr, Ticket),
        client: Wire,
        upstream: Upstream,
    ) -> Session {
        let Upstream { wire, client: asks, greeting, capabilities } = upstream;
        let mut session = Session {
            shared,
            door,
            address,
            ticket,
            client,
            server: wire,
            hears: Server::new(Config::default(), 0),
            texts: Texts::default(),
            asks,
            work: Work::Nothing,
            user: None,
            stranger: None,
            folder: Folder::default(),
            told: None,
            found: None,
            started: Instant::now(),
        };
        if greeting.kind == Kind::Preauth {
            session.hears.logged_in(0);
            session.ticket.log_in();
        }
        let offered = [b"CAPABILITY ".as_slice(), &capabilities.join(&b' ')].concat();
        session.say_status(b"*", &Status { code: offered, ..greeting });
        session
    }

    /// Runs it to its end.
    pub async fn run(mut self) -> io::Result<()> {
        if self.needs_tls() && self.hears.is_logged_in() {
            // The server trusts whoever comes, and we do not.
            return self.client.write(b"* BYE TLS is required here\r\n").await;
        }
        loop {
            while self.hear_server().await? == Next::Go {}
            while self.hear_client().await? == Next::Go {}
            self.flush().await?;
            if self.hears.is_closed() || self.wait().await? == Next::Over {
                break;
            }
        }
        self.flush().await?;
        self.client.close().await;
        Ok(())
    }

    pub async fn flush(&mut self) -> io::Result<()> {
        self.client.write(self.hears.outbox()).await?;
        self.hears.sent();
        self.server.write(self.asks.outbox()).await?;
        self.asks.sent();
        Ok(())
    }

    /// Waits until either side has said something, or patience ends.
    async fn wait(&mut self) -> io::Result<Next> {
        let listening = self.hears.is_listening();
        let patience = match listening {
            true => self.started + Duration::from_millis(self.hears.deadline()),
            false => Instant::now() + SERVER_WAIT,
        };
        let session = self.started + Duration::from_secs(self.door.listener.session_seconds_max());
        let between = self.hears.is_between();
        let mut control = self.shared.control.clone();
        tokio::select! {
            biased;
            read = self.server.read() => {
                if !read? {
                    self.bye("[UNAVAILABLE] The server is gone");
                    return Ok(Next::Over);
                }
            }
            read = self.client.read(), if listening => return Ok(if read? { Next::Go } else { Next::Over }),
            () = tokio::time::sleep_until(patience.min(session).into()) => {
                self.bye(if listening { "Timeout" } else { "[UNAVAILABLE] The server took too long" });
                return Ok(Next::Over);
            }
            () = self.ticket.lost() => {
                self.bye(LOST);
                return Ok(Next::Over);
            }
            _ = control.wait_for(|control| control.stopping), if between => {
                self.bye("[UNAVAILABLE] Shutting down, try again later");
                return Ok(Next::Over);
            }
        }
        Ok(Next::Go)
    }

    /// Milliseconds since the session began.
    pub fn now(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }

    /// Says a last word, unless that would stand in the middle of something, and ends the session.
    pub fn bye(&mut self, text: &str) {
        if self.told.is_none() && self.asks.is_between() {
            self.hears.line(format!("* BYE {text}").as_bytes());
        }
        self.hears.close();
    }

    /// The server is not to be believed: nothing more of it goes to the client.
    pub fn distrust(&mut self, reason: &str) {
        tracing::warn!(server = %self.door.route.forward, reason, "upstream protocol error");
        if self.told.is_none() {
            self.hears.line(b"* BYE [UNAVAILABLE] Upstream protocol error");
        }
        self.hears.close();
    }

    /// Whether nothing that matters may be done before TLS.
    pub fn needs_tls(&self) -> bool {
        self.door.listener.place.tls == ListenerTls::Require && !self.client.is_encrypted()
    }

    /// Whether STARTTLS is offered now.
    pub fn offers_tls(&self) -> bool {
        let offered = matches!(self.door.listener.place.tls, ListenerTls::Offer | ListenerTls::Require);
        offered && !self.client.is_encrypted() && !self.hears.is_logged_in()
    }

    /// The capabilities that the client may see of these.
    pub fn offered(&self, words: &[Vec<u8>]) -> Vec<u8> {
        offers_to_client(words, Terms { starttls: self.offers_tls(), login: !self.needs_tls() })
    }

    /// Tells the client a status of the server's.
    pub fn say_status(&mut self, tag: &[u8], status: &Status) {
        let mut line = [tag, b" ", status.kind.name().as_bytes(), b" "].concat();
        let referral = status.code.get(..8).is_some_and(|word| word.eq_ignore_ascii_case(b"REFERRAL"));
        match capabilities_in(&status.code) {
            Some(words) => line.extend([b"[CAPABILITY ", self.offered(&words).as_slice(), b"] "].concat()),
            // It would lead past us.
            None if status.code.is_empty() || referral => {}
            None => line.extend([b"[", Texts::cleaned(&status.code).as_slice(), b"] "].concat()),
        }
        let text = Texts::cleaned(&status.text);
        line.extend_from_slice(if text.is_empty() { b"." } else { &text });
        self.hears.line(&line);
    }

    /// Login name, for people.
    pub fn shown_user(&self) -> String {
        printable(self.user.as_deref().unwrap_or_default())
    }

    /// A message of the mailbox, for people: as in a URL of RFC 5092.
    pub fn shown_message(&self, uid: Option<u32>) -> String {
        let name = self.folder.name.as_deref().unwrap_or_default();
        let (validity, uid) = (self.folder.validity.unwrap_or(0), uid.unwrap_or(0));
        printable(&format!("{};UIDVALIDITY={validity}/;UID={uid}", String::from_utf8_lossy(name)))
    }

    /// The lasting name of a message in the mailbox that is selected. What is clean behind one door need not be so behind
    /// another, whose policy is its own.
    pub fn key(&mut self, uid: u32) -> Option<Key> {
        let (name, validity) = (self.folder.name.as_ref()?, self.folder.validity?);
        let stranger = self.stranger.get_or_insert_with(|| format!("stranger {}", new_id()));
        let user = self.user.as_ref().unwrap_or(stranger);
        let generation = self.shared.runtime.borrow().signatures.generation;
        let (validity, uid) = (validity.to_le_bytes(), uid.to_le_bytes());
        let (door, route) = (self.door.address.to_string(), self.door.route.key.as_bytes());
        Some(Key::new(generation, &[b"imap", door.as_bytes(), route, user.as_bytes(), name, &validity, &uid]))
    }

    /// Whether the message was clean that had this UID when it was inspected.
    pub fn seems_clean(&mut self, uid: u32) -> bool {
        let Some(key) = self.key(uid) else { return false };
        let named = Named { key, identity: self.folder.identity(uid) };
        let fate = self.shared.runtime.borrow().known.fate(&named);
        fate.is_some_and(|fate| fate.is_clean() && fate.identity.is_some())
    }

    /// Remembered result for this message, by its UID and identity: a UID alone may have become another's
    /// since.
    pub fn fate(&mut self, uid: u32, identity: Identity) -> Option<Arc<Fate>> {
        let identity = Some(identity);
        let named = Named { key: self.key(uid)?, identity };
        let fate = self.shared.runtime.borrow().known.fate(&named);
        fate.filter(|fate| fate.identity == identity)
    }
}
