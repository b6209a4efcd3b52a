//! Where mail goes: one message at a time, to a server, into a Maildir, or nowhere.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use proto::proxy;
use proto::smtp::{Extensions, MailFrom, Protocol, RcptTo, Reply};

use tokio::io::AsyncWriteExt;

use super::maildir::Delivery;
use super::smtp_hop::{Peer, SmtpHop};
use super::stream::Stream;
use super::tls::Connector;
use crate::config::{Forward, Listener, ProxyVersion, Scheme, Tls};

/// A next hop, leased for one message.
pub enum Hop {
    /// A server.
    Smtp(Box<SmtpHop>),
    /// A Maildir.
    Maildir(Maildir),
    /// Nowhere.
    Discard {
        /// Recipients that were taken.
        recipients: u32,
    },
}

/// A Maildir, and the mail on its way into it.
pub struct Maildir {
    folder: PathBuf,
    hostname: String,
    delivery: Option<Delivery>,
    recipients: u32,
    /// A carriage return was held back: it is written unless a line feed follows.
    carriage_return: bool,
}

impl Hop {
    /// Leases a hop, and hands it the sender and the first recipient. The reply is the hop's to that recipient, or to
    /// what it refused before.
    pub async fn lease(
        route: &Route,
        hostname: &str,
        leases: &Leases,
        mail: &MailFrom,
        rcpt: &RcptTo,
        peer: &Peer<'_>,
    ) -> (Option<Hop>, Reply) {
        let taken = Reply::new(250, (2, 1, 5), "Ok");
        let Some((address, protocol)) = route.server() else {
            let Forward::Maildir(folder) = &route.forward else { return (Some(Hop::Discard { recipients: 1 }), taken) };
            let (folder, hostname) = (folder.clone(), hostname.into());
            let maildir = Maildir { folder, hostname, delivery: None, recipients: 1, carriage_return: false };
            return (Some(Hop::Maildir(maildir)), taken);
        };
        let leased = SmtpHop::lease(&address, protocol, route, hostname, leases, mail, rcpt, peer).await;
        match leased {
            Ok((hop, reply)) => (Some(Hop::Smtp(Box::new(hop))), reply),
            Err(reply) => (None, reply),
        }
    }

    /// Learns what a hop offers, if it is a server.
    ///
    /// # Errors
    /// Why it cannot be spoken to, as a client is told.
    pub async fn probe(route: &Route, hostname: &str, leases: &Leases) -> Result<(), Reply> {
        match route.server() {
            Some((address, protocol)) => SmtpHop::probe(&address, protocol, route, hostname, leases).await,
            None => Ok(()),
        }
    }

    /// A connection of one client's own, over which it may log in; one that waits, where they are all this client's.
    ///
    /// # Errors
    /// As [`Hop::probe`], and where the hop is no server.
    pub async fn open(route: &Route, hostname: &str, leases: &Leases, peer: &Peer<'_>) -> Result<SmtpHop, Reply> {
        if let Some(hop) = leases.take(&route.key).filter(|_| route.is_private) {
            return Ok(hop);
        }
        match route.server() {
            Some((address, protocol)) => SmtpHop::open(&address, protocol, route, hostname, peer).await,
            None => Err(Reply::new(454, (4, 7, 0), "Nobody can log in there")),
        }
    }

    /// Hands on another recipient.
    pub async fn recipient(&mut self, rcpt: &RcptTo) -> Reply {
        match self {
            Hop::Smtp(hop) => hop.recipient(rcpt).await,
            Hop::Maildir(Maildir { recipients, .. }) | Hop::Discard { recipients } => {
                *recipients += 1;
                Reply::new(250, (2, 1, 5), "Ok")
            }
        }
    }

    /// Makes ready for content.
    ///
    /// # Errors
    /// The hop's refusal.
    pub async fn begin(&mut self) -> Result<(), Reply> {
        match self {
            Hop::Smtp(hop) => hop.begin().await,
            Hop::Maildir(maildir) => {
                let delivery = Delivery::begin(&maildir.folder, &maildir.hostname).await;
                maildir.delivery = Some(delivery.map_err(|error| disk(&error))?);
                Ok(())
            }
            Hop::Discard { .. } => Ok(()),
        }
    }

    /// Hands on content, whose line ends are CRLF.
    ///
    /// # Errors
    /// When the hop has gone; nothing of the message is delivered then.
    pub async fn write(&mut self, content: &[u8]) -> Result<(), Reply> {
        match self {
            Hop::Smtp(hop) => hop.write(content).await,
            Hop::Maildir(maildir) => maildir.write(content).await.map_err(|error| disk(&error)),
            Hop::Discard { .. } => Ok(()),
        }
    }

    /// Sends what `write` has collected.
    ///
    /// # Errors
    /// As [`Hop::write`].
    pub async fn flush(&mut self) -> Result<(), Reply> {
        match self {
            Hop::Smtp(hop) => hop.push().await,
            Hop::Maildir(_) | Hop::Discard { .. } => Ok(()),
        }
    }

    /// Ends the content; from here on the message may be delivered. Returns the hop's reply: for all recipients, or for the
    /// first where there is [`another`](Hop::another).
    pub async fn commit(&mut self) -> Reply {
        match self {
            Hop::Smtp(hop) => hop.commit().await,
            Hop::Maildir(maildir) => {
                let delivery = maildir.delivery.take().expect("the content has begun");
                match delivery.commit().await {
                    Ok(()) => Reply::new(250, (2, 0, 0), "Delivered"),
                    Err(error) => disk(&error),
                }
            }
            Hop::Discard { .. } => Reply::new(250, (2, 0, 0), "Discarded"),
        }
    }

    /// The hop's reply for the next recipient, where it gives one for each.
    pub async fn another(&mut self) -> Option<Reply> {
        match self {
            Hop::Smtp(hop) => hop.another().await,
            Hop::Maildir(_) | Hop::Discard { .. } => None,
        }
    }

    /// Whether it will have to be waited for.
    pub fn is_late(&self) -> bool {
        matches!(self, Hop::Smtp(hop) if hop.is_late())
    }

    /// Drops the message before its end, so that nothing of it is delivered, and gives back the lease if it can be
    /// used again.
    pub async fn abandon(self, leases: &Leases) {
        if let Hop::Smtp(hop) = self {
            hop.abandon(leases).await;
        }
    }

    /// Gives back the lease after the message.
    pub fn release(self, leases: &Leases) {
        if let Hop::Smtp(hop) = self {
            hop.release(leases);
        }
    }
}

impl Maildir {
    async fn write(&mut self, content: &[u8]) -> std::io::Result<()> {
        let mut lines = Vec::with_capacity(content.len() + 1);
        for &byte in content {
            if std::mem::take(&mut self.carriage_return) && byte != b'\n' {
                lines.push(b'\r');
            }
            match byte {
                b'\r' => self.carriage_return = true,
                byte => lines.push(byte),
            }
        }
        self.delivery.as_mut().expect("the content has begun").write(&lines).await
    }
}

/// The way to a next hop: where it is, how it is spoken to, and what is known of it.
pub struct Route {
    /// Where it is.
    pub forward: Forward,
    /// How it is spoken to in TLS.
    pub connector: Connector,
    /// What is known of it.
    pub facts: Arc<HopFacts>,
    /// Connections that may be exchanged have the same: where they go and what was asked of them.
    pub key: String,
    /// Whether it is one client's alone, so that no connection over it serves another.
    pub is_private: bool,
    /// Whether it is told of each client by XCLIENT, where it offers that.
    pub xclient: bool,
    /// The address that the server is to see in place of ours.
    source: Option<IpAddr>,
    /// What connections begin with.
    proxy: Option<ProxyVersion>,
    /// The client, and the address that it has connected to, where connections begin with that.
    client: Option<(SocketAddr, SocketAddr)>,
}

impl Route {
    /// The way that a listener is told.
    ///
    /// # Errors
    /// As [`Connector::new`].
    pub fn new(listener: &Listener, tls: &Tls) -> Result<Route, String> {
        let Listener { forward, forward_tls, .. } = listener;
        Ok(Route {
            forward: forward.clone(),
            connector: Connector::new(listener, tls)?,
            facts: Arc::default(),
            key: format!("{forward} {forward_tls:?} {:?}", listener.verify()),
            is_private: false,
            xclient: listener.forward_xclient,
            source: None,
            proxy: listener.forward_proxy,
            client: None,
        })
    }

    /// The way of one client to the server that it wanted.
    pub fn towards(&self, forward: &Forward, source: Option<IpAddr>) -> Route {
        Route {
            connector: self.connector.for_host(forward.host().unwrap_or_default()),
            forward: forward.clone(),
            facts: Arc::default(),
            key: format!("{forward} {}", self.key),
            is_private: true,
            source,
            ..*self
        }
    }

    /// The way of one client that has connected to `to`, where the server is told that in front of everything else.
    pub fn for_client(&self, client: SocketAddr, to: SocketAddr) -> Route {
        let (forward, facts, key) = (self.forward.clone(), self.facts.clone(), self.key.clone());
        let (connector, client) = (self.connector.clone(), Some((client, to)));
        Route { connector, forward, facts, key, client, is_private: true, ..*self }
    }

    /// The same way, where the server is asked for by this name.
    pub fn for_name(&self, name: &str) -> Route {
        let (forward, facts, key) = (self.forward.clone(), self.facts.clone(), self.key.clone());
        Route { connector: self.connector.for_name(name), forward, facts, key, ..*self }
    }

    /// Connects to the server at its end.
    ///
    /// # Errors
    /// When it cannot be reached, or not from where it is to be.
    pub async fn dial(&self, address: &str) -> io::Result<Stream> {
        let mut stream = match (self.source, address.parse::<SocketAddr>()) {
            (Some(source), Ok(server)) => Stream::connect_from(source, server).await?,
            _ => Stream::connect(address).await?,
        };
        if let Some(version) = self.proxy {
            let version = match version {
                ProxyVersion::V1 => proxy::Version::V1,
                ProxyVersion::V2 => proxy::Version::V2,
            };
            stream.write_all(&proxy::write(version, self.client)).await?;
        }
        Ok(stream)
    }

    /// The same, with what is known already where it leads to the same hop.
    pub fn or_known(self, known: &Route) -> Route {
        let facts = if self.forward == known.forward { known.facts.clone() } else { self.facts };
        Route { facts, ..self }
    }

    /// The server at its end that takes mail, if there is one.
    fn server(&self) -> Option<(String, Protocol)> {
        match &self.forward {
            Forward::Server { scheme: Scheme::Smtp | Scheme::Smtps, address } => {
                Some((address.clone(), Protocol::Smtp))
            }
            Forward::Server { scheme: Scheme::Lmtp, address } => Some((address.clone(), Protocol::Lmtp)),
            Forward::LmtpSocket(path) => Some((path.display().to_string(), Protocol::Lmtp)),
            Forward::SmtpSocket(path) => Some((path.display().to_string(), Protocol::Smtp)),
            _ => None,
        }
    }

    /// The server at its end that has mailboxes, if there is one.
    pub fn mailboxes(&self) -> Option<&str> {
        match &self.forward {
            Forward::Server { scheme: Scheme::Pop3 | Scheme::Pop3s | Scheme::Imap | Scheme::Imaps, address } => {
                Some(address)
            }
            _ => None,
        }
    }
}

fn disk(error: &std::io::Error) -> Reply {
    tracing::error!(%error, "cannot write to the Maildir");
    Reply::new(451, (4, 3, 0), "Cannot store the message now")
}

/// What is known of a hop without asking it again.
#[derive(Debug, Default)]
pub struct HopFacts(Mutex<Option<Extensions>>);

impl HopFacts {
    /// What it offered when it was last spoken to.
    pub fn extensions(&self) -> Option<Extensions> {
        *self.0.lock().expect("no holder panics")
    }

    /// It has been spoken to.
    pub fn learn(&self, extensions: Extensions) {
        *self.0.lock().expect("no holder panics") = Some(extensions);
    }
}

/// Connections that have finished a message and wait for the next: for each hop of this event loop, or the one over
/// which a client has logged in.
#[derive(Clone, Default)]
pub struct Leases {
    idle: Rc<RefCell<HashMap<String, Vec<SmtpHop>>>>,
    /// There is no other connection than what waits here: over another the client would be nobody.
    pub logged_in: bool,
}

/// Idle connections kept to one hop by one event loop.
const IDLE_MAX: usize = 32;

impl Leases {
    /// For a client that has logged in over this connection.
    pub fn of(hop: SmtpHop) -> Leases {
        let leases = Leases { logged_in: true, ..Leases::default() };
        hop.release(&leases);
        leases
    }

    /// For what is not the client's own: over its connection it would be sent in its name.
    pub fn of_nobody(&self) -> Leases {
        if self.logged_in { Leases::default() } else { self.clone() }
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.idle.borrow().values().all(Vec::is_empty)
    }

    /// A connection that waits.
    pub fn take(&self, key: &str) -> Option<SmtpHop> {
        let mut idle = self.idle.borrow_mut();
        let waiting = idle.get_mut(key)?;
        // The longest unused ones are closed one by one, as load goes down.
        while let Some(hop) = waiting.pop() {
            if hop.is_fresh() {
                return Some(hop);
            }
        }
        None
    }

    /// A connection that may be used again.
    pub fn give(&self, key: &str, hop: SmtpHop) {
        let mut idle = self.idle.borrow_mut();
        let waiting = idle.entry(key.to_string()).or_default();
        waiting.retain(SmtpHop::is_fresh);
        if waiting.len() < IDLE_MAX {
            waiting.push(hop);
        }
    }

    /// Closes all of them.
    pub fn clear(&self) {
        self.idle.borrow_mut().clear();
    }
}
