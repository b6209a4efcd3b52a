//! A connection to a next hop that speaks SMTP or LMTP.
//!
//! The timeouts are those of RFC 5321, section 4.5.3.2. A connection that has finished a message is kept for the next;
//! if it turns out to be dead when the next begins, a new one is made, once, before anything was promised.
//!
//! Where the hop offers CHUNKING the content goes by BDAT: dropping it is an RSET then, and the connection lives on.
//! By DATA, the connection is closed before the final dot.
//!
//! Opportunistic TLS never stands in the way of mail: where it fails, a new connection is made without (RFC 7435).

mod asking;
mod sending;

use std::net::IpAddr;
use std::time::{Duration, Instant};

use proto::smtp::{Asked, Client, ClientEvent, MailFrom, Protocol, RcptTo, Reply};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::leases::{Connection, Idle};
use super::route::{Fault, Insecurity, Route};
use crate::net::stream::Stream;
use crate::settings::{Forward, ForwardTls};

pub use asking::Unasked;
pub use sending::Unsent;

const CONNECT_WAIT: Duration = Duration::from_secs(30);
const GREETING_WAIT: Duration = Duration::from_secs(300);
const COMMAND_WAIT: Duration = Duration::from_secs(300);
const DATA_WAIT: Duration = Duration::from_secs(120);
const CONTENT_WAIT: Duration = Duration::from_secs(180);
const DONE_WAIT: Duration = Duration::from_secs(600);
const QUIET_WAIT: Duration = Duration::from_secs(5);

/// How long a connection is kept for the next message.
const IDLE_WAIT: Duration = Duration::from_secs(10);

/// Content is collected into chunks of this size for BDAT.
const CHUNK_BYTES: usize = 64 << 10;

/// Bytes gathered for DATA at most: one read from a client leads to one write.
const OUTBOX_BYTES: usize = 128 << 10;

/// The client, as the next hop may be told by XFORWARD or XCLIENT.
pub struct Peer<'a> {
    /// Where it comes from.
    pub address: IpAddr,
    /// And from which port; 0 if that is not known.
    pub port: u16,
    /// Name in the client's HELO or EHLO.
    pub hello: &'a str,
    /// Attributes that a trusted client gave about its own client; they replace the two above.
    pub xforward: &'a [(String, String)],
    /// Whether it speaks LMTP, and so can be told how each recipient fared.
    pub lmtp: bool,
}

/// An open connection.
pub struct SmtpHop {
    address: String,
    key: String,
    stream: Stream,
    client: Client,
    protocol: Protocol,
    recipients: u32,
    /// Replies to the content that are to come.
    due: u32,
    /// Whether a message may have several recipients.
    many_recipients: bool,
    /// Whether the hop gets the client by XCLIENT, and the client that it was sent last.
    xclient: bool,
    told: String,
    /// Somebody has logged in over it: it serves nobody else, and is kept as long as it lives.
    logged_in: bool,
    /// Content that waits to become a chunk.
    chunk: Option<Vec<u8>>,
    in_data: bool,
    /// Count of recipients asked over it, where it takes no mail.
    tally: asking::Tally,
    broken: bool,
    /// Why it is broken, as far as the hop has a part in it.
    fault: Option<Box<str>>,
    used: Instant,
    input: Vec<u8>,
}

/// Connections that have finished a message and wait for the next: for each hop of an event loop, or the one over which a
/// client has logged in.
pub type Leases = Idle<SmtpHop>;

impl Connection for SmtpHop {
    fn is_fresh(&self) -> bool {
        (self.logged_in || self.used.elapsed() < IDLE_WAIT) && self.input.is_empty() && self.stream.is_quiet()
    }
}

impl SmtpHop {
    /// Leases a connection and hands on the sender and the first recipient.
    ///
    /// # Errors
    /// The reply for the client: what the hop refused, or why it could not be asked.
    #[allow(clippy::too_many_arguments, reason = "one place makes the call; a struct would be built for it alone")]
    pub async fn lease(
        address: &str,
        protocol: Protocol,
        route: &Route,
        hostname: &str,
        leases: &Leases,
        mail: &MailFrom,
        rcpt: &RcptTo,
        peer: &Peer<'_>,
    ) -> Result<(SmtpHop, Reply), Reply> {
        if let Some(mut hop) = leases.take(&route.key) {
            let outcome = hop.envelope(mail, rcpt, peer).await;
            // It may have closed the connection, or said 421, while it waited.
            if !hop.broken {
                return hop.entered(outcome, leases).await;
            }
        }
        if leases.logged_in {
            return Err(gone());
        }
        let mut begun = SmtpHop::begun(address, protocol, route, hostname, mail, rcpt, peer).await;
        // The store of this process may change hands: it answers again where it has gone to.
        let is_lost = match &begun {
            Ok((hop, _)) => hop.broken,
            Err(lost) => matches!(lost, Lost::Gone),
        };
        if is_lost && route.forward == Forward::Store {
            begun = SmtpHop::begun(address, protocol, route, hostname, mail, rcpt, peer).await;
        }
        let (hop, outcome) = begun.map_err(Lost::reply)?;
        hop.entered(outcome, leases).await
    }

    /// A new connection, and the outcome of the envelope over it.
    async fn begun(
        address: &str,
        protocol: Protocol,
        route: &Route,
        hostname: &str,
        mail: &MailFrom,
        rcpt: &RcptTo,
        peer: &Peer<'_>,
    ) -> Result<(SmtpHop, Result<Reply, Lost>), Lost> {
        let mut hop = SmtpHop::connect(address, protocol, route, hostname).await?;
        route.facts.learn(*hop.client.extensions());
        let outcome = hop.envelope(mail, rcpt, peer).await;
        Ok((hop, outcome))
    }

    /// Hands the connection on or back, by the outcome of the envelope.
    async fn entered(mut self, outcome: Result<Reply, Lost>, leases: &Leases) -> Result<(SmtpHop, Reply), Reply> {
        match outcome {
            Ok(reply) => {
                self.recipients = u32::from(reply.is_positive());
                Ok((self, reply))
            }
            Err(Lost::Refused(reply)) => {
                self.abandon(leases).await;
                Err(reply)
            }
            Err(lost) => Err(lost.reply()),
        }
    }

    /// A connection of its own for one client.
    ///
    /// # Errors
    /// As [`SmtpHop::lease`].
    pub async fn open(
        address: &str,
        protocol: Protocol,
        route: &Route,
        hostname: &str,
        peer: &Peer<'_>,
    ) -> Result<SmtpHop, Reply> {
        let mut hop = SmtpHop::connect(address, protocol, route, hostname).await.map_err(Lost::reply)?;
        route.facts.learn(*hop.client.extensions());
        if hop.xclient && hop.client.extensions().xclient {
            hop.introduce(peer).await.map_err(Lost::reply)?;
        } else if hop.client.extensions().xforward {
            // Who guesses passwords is counted by address, and logged.
            hop.client.xforward(&attributes(peer));
            hop.reply(Asked::Xforward, COMMAND_WAIT).await.map_err(Lost::reply)?;
        }
        Ok(hop)
    }

    /// The leases of a client that has logged in over it: there is no other.
    pub fn alone(self) -> Leases {
        let leases = Leases::of_one_client();
        self.release(&leases);
        leases
    }

    /// Begins to log in, or goes on: what the hop says to that. After 235 the connection is the client's alone.
    ///
    /// # Errors
    /// When the hop has gone.
    pub async fn log_in(&mut self, step: LogIn<'_>) -> Result<Reply, Reply> {
        let reply = self.authenticate(step).await?;
        self.logged_in |= reply.code == 235;
        if self.broken { Err(gone()) } else { Ok(reply) }
    }

    /// The same as ourselves: after 235 the connection serves all mails of its route.
    ///
    /// # Errors
    /// When the hop has gone before it has said anything.
    pub async fn authenticate(&mut self, step: LogIn<'_>) -> Result<Reply, Reply> {
        match step {
            LogIn::Auth(mechanism, initial) => self.client.auth(mechanism, initial),
            LogIn::Response(response) => self.client.respond(response),
        }
        self.reply(Asked::Auth, COMMAND_WAIT).await.map_err(Lost::reply)
    }

    /// Speaks to the hop to learn what it offers, and keeps the connection for the first message.
    ///
    /// # Errors
    /// As [`SmtpHop::lease`].
    pub async fn probe(
        address: &str,
        protocol: Protocol,
        route: &Route,
        hostname: &str,
        leases: &Leases,
    ) -> Result<(), Reply> {
        let hop = SmtpHop::connect(address, protocol, route, hostname).await.map_err(Lost::reply)?;
        route.facts.learn(*hop.client.extensions());
        hop.release(leases);
        Ok(())
    }

    /// A connection that has been greeted, and is encrypted as the route asks for.
    async fn connect(address: &str, protocol: Protocol, route: &Route, hostname: &str) -> Result<SmtpHop, Lost> {
        let hop = SmtpHop::greet(address, protocol, route, hostname).await?;
        let offered = hop.client.extensions().starttls && !hop.stream.is_encrypted();
        match route.connector.starttls {
            ForwardTls::Require if !offered && !hop.stream.is_encrypted() => {
                tracing::error!(hop = address, "the next hop offers no STARTTLS, and TLS is required");
                let why = "STARTTLS is not offered, and TLS is required".into();
                route.facts.distrust(Insecurity { fault: Fault::NoStartTls, why });
                Err(Lost::Refused(INSECURE))
            }
            ForwardTls::Opportunistic if offered => match hop.start_tls(route).await {
                Ok(hop) => Ok(hop),
                Err(_) => SmtpHop::greet(address, protocol, route, hostname).await,
            },
            ForwardTls::Require if offered => hop.start_tls(route).await,
            _ => Ok(hop),
        }
    }

    /// A connection, the greeting heard and answered.
    async fn greet(address: &str, protocol: Protocol, route: &Route, hostname: &str) -> Result<SmtpHop, Lost> {
        route.facts.forget_refusal();
        let mut hop = SmtpHop {
            address: address.into(),
            key: route.key.clone(),
            stream: open(address, route).await.map_err(Lost::Refused)?,
            client: Client::new(hostname, protocol),
            protocol,
            recipients: 0,
            due: 0,
            many_recipients: true,
            xclient: route.xclient,
            told: String::new(),
            logged_in: false,
            chunk: None,
            in_data: false,
            tally: asking::Tally::default(),
            broken: false,
            fault: None,
            used: Instant::now(),
            input: Vec::new(),
        };
        let greeting = hop.reply(Asked::Greeting, GREETING_WAIT).await?;
        if !greeting.is_positive() {
            route.facts.refuse(&greeting);
            return Err(Lost::Refused(Reply::new(451, (4, 4, 1), "The next hop is not accepting mail")));
        }
        hop.hello(Some(route)).await?;
        Ok(hop)
    }

    async fn hello(&mut self, route: Option<&Route>) -> Result<(), Lost> {
        self.client.hello();
        match self.reply(Asked::Hello, COMMAND_WAIT).await? {
            hello if hello.is_positive() => Ok(()),
            hello => {
                route.into_iter().for_each(|route| route.facts.refuse(&hello));
                Err(Lost::Refused(Reply::new(451, (4, 4, 1), "The next hop refused EHLO/LHLO")))
            }
        }
    }

    /// The same connection, encrypted, and greeted anew.
    async fn start_tls(mut self, route: &Route) -> Result<SmtpHop, Lost> {
        self.client.start_tls();
        let reply = self.reply(Asked::StartTls, COMMAND_WAIT).await?;
        if !reply.is_positive() {
            let why = format!("STARTTLS was refused: {reply}");
            return Err(Lost::Refused(insecure(&self.address, route, Insecurity { fault: Fault::NoStartTls, why })));
        }
        // What stands behind the reply in the clear was put there by somebody else.
        if !self.input.is_empty() {
            let why = "it spoke before the handshake".into();
            return Err(Lost::Refused(insecure(&self.address, route, Insecurity { fault: Fault::Other, why })));
        }
        let secured = route.connector.secure(self.stream).await;
        let insecure = |error| Lost::Refused(insecure(&self.address, route, Insecurity::of_handshake(&error)));
        self.stream = secured.map_err(insecure)?;
        self.client.secured();
        self.hello(Some(route)).await?;
        Ok(self)
    }

    /// Sender and first recipient, in one go where the hop lets us.
    async fn envelope(&mut self, mail: &MailFrom, rcpt: &RcptTo, peer: &Peer<'_>) -> Result<Reply, Lost> {
        self.many_recipients = self.protocol == Protocol::Smtp || peer.lmtp;
        let pipelining = self.client.extensions().pipelining;
        let is_introduced = self.xclient && self.client.extensions().xclient;
        let forwards = !is_introduced && self.client.extensions().xforward;
        if is_introduced {
            self.introduce(peer).await?;
        }
        if forwards {
            self.client.xforward(&attributes(peer));
        }
        if forwards && !pipelining {
            self.reply(Asked::Xforward, COMMAND_WAIT).await?;
        }
        self.client.mail(mail).map_err(|unsupported| Lost::Refused(unsupported.reply()))?;
        if pipelining {
            self.client.recipient(rcpt).map_err(|unsupported| Lost::Refused(unsupported.reply()))?;
        }
        if forwards && pipelining {
            self.reply(Asked::Xforward, COMMAND_WAIT).await?;
        }
        let sender = self.reply(Asked::Mail, COMMAND_WAIT).await?;
        if !sender.is_positive() {
            if pipelining {
                self.reply(Asked::Recipient, COMMAND_WAIT).await?;
            }
            return Err(Lost::Refused(sender));
        }
        if !pipelining {
            self.client.recipient(rcpt).map_err(|unsupported| Lost::Refused(unsupported.reply()))?;
        }
        self.reply(Asked::Recipient, COMMAND_WAIT).await
    }

    /// Lets the client take our place, unless it has already.
    async fn introduce(&mut self, peer: &Peer<'_>) -> Result<(), Lost> {
        let mut attributes = attributes(peer);
        attributes.retain(|(name, _)| *name != "SOURCE");
        let told = format!("{attributes:?}");
        if self.told == told {
            return Ok(());
        }
        self.client.xclient(&attributes);
        let reply = self.reply(Asked::Xclient, COMMAND_WAIT).await?;
        if !reply.is_positive() {
            return Err(Lost::Refused(reply));
        }
        self.hello(None).await?;
        self.told = told;
        Ok(())
    }

    /// Hands on another recipient.
    pub async fn recipient(&mut self, rcpt: &RcptTo) -> Reply {
        // Within the content it would be content, or change who gets what was sent already.
        if self.in_data || self.client.is_in_content() || self.chunk.is_some() {
            return Reply::new(503, (5, 5, 1), "Content transfer has started");
        }
        if self.recipients > 0 && !self.many_recipients {
            return Reply::new(452, (4, 5, 3), "One recipient at a time");
        }
        if let Err(unsupported) = self.client.recipient(rcpt) {
            return unsupported.reply();
        }
        let reply = self.reply(Asked::Recipient, COMMAND_WAIT).await.unwrap_or_else(|lost| lost.reply());
        self.recipients += u32::from(reply.is_positive());
        reply
    }

    /// Makes ready for content.
    pub async fn begin(&mut self) -> Result<(), Reply> {
        if self.client.extensions().chunking {
            self.chunk = Some(Vec::new());
            return Ok(());
        }
        self.client.data();
        let reply = self.reply(Asked::Data, DATA_WAIT).await.map_err(|lost| lost.reply())?;
        if reply.code != 354 {
            return Err(if reply.is_positive() { gone() } else { reply });
        }
        self.in_data = true;
        Ok(())
    }

    /// Hands on content; it is collected into chunks of `CHUNK_BYTES`, or writes of `OUTBOX_BYTES` at the most.
    pub async fn write(&mut self, content: &[u8]) -> Result<(), Reply> {
        let Some(chunk) = &mut self.chunk else {
            self.client.content(content);
            return if self.client.outbox().len() < OUTBOX_BYTES { Ok(()) } else { self.push().await };
        };
        chunk.extend_from_slice(content);
        if chunk.len() < CHUNK_BYTES {
            return Ok(());
        }
        let mut full = std::mem::take(chunk);
        self.client.chunk(&full, None);
        full.clear();
        self.chunk = Some(full);
        let reply = self.reply(Asked::Chunk, CONTENT_WAIT).await.map_err(|lost| lost.reply())?;
        if reply.is_positive() { Ok(()) } else { Err(reply) }
    }

    /// Sends what is collected, as far as it goes out by DATA.
    pub async fn push(&mut self) -> Result<(), Reply> {
        if self.client.outbox().is_empty() {
            return Ok(());
        }
        self.flush(CONTENT_WAIT).await.map_err(|lost| lost.reply())
    }

    /// Ends the content. Returns the first reply; by LMTP there is [`another`](SmtpHop::another) for each further recipient.
    pub async fn commit(&mut self) -> Reply {
        match self.chunk.take() {
            Some(rest) => self.client.chunk(&rest, Some(self.recipients)),
            None => self.client.end(self.recipients),
        }
        self.due = if self.protocol == Protocol::Lmtp { self.recipients } else { 1 };
        self.done().await
    }

    /// The next reply to the content, unless that was all.
    pub async fn another(&mut self) -> Option<Reply> {
        if self.due == 0 { None } else { Some(self.done().await) }
    }

    /// Whether there is another reply to come that is not here yet.
    pub fn is_late(&self) -> bool {
        self.due > 0 && self.input.is_empty() && !self.broken
    }

    async fn done(&mut self) -> Reply {
        // Where it is lost, whether it was delivered is not known: the client has to try again, and may deliver twice.
        let reply = self.reply(Asked::Done, DONE_WAIT).await.unwrap_or_else(|lost| lost.reply());
        self.due = self.due.saturating_sub(1);
        if self.due == 0 {
            self.in_data = false;
            self.recipients = 0;
        }
        reply
    }

    /// Drops the message.
    pub async fn abandon(mut self, leases: &Leases) {
        if self.broken || self.in_data {
            return;
        }
        self.client.reset();
        let reset = timeout(QUIET_WAIT, self.reply(Asked::Reset, QUIET_WAIT)).await;
        if matches!(reset, Ok(Ok(reply)) if reply.is_positive()) {
            self.recipients = 0;
            self.chunk = None;
            self.release(leases);
        }
    }

    /// Keeps the connection for the next message.
    pub fn release(mut self, leases: &Leases) {
        if self.broken || self.in_data || self.client.is_waiting() {
            return;
        }
        self.used = Instant::now();
        self.input = Vec::new();
        let key = self.key.clone();
        leases.give(&key, self);
    }

    /// Sends what is in the outbox, and waits for the reply to `asked`.
    async fn reply(&mut self, asked: Asked, wait: Duration) -> Result<Reply, Lost> {
        self.flush(wait).await?;
        loop {
            let (taken, event) = self.client.step(&self.input);
            self.input.drain(..taken);
            match event {
                ClientEvent::Reply(answered, reply) if answered == asked => {
                    // What it says behind that was said before it was asked, and would be taken for an answer.
                    let says_more = !self.client.is_waiting() && !self.input.is_empty();
                    if reply.code == 421 || says_more {
                        self.broken = true;
                    }
                    return Ok(reply);
                }
                ClientEvent::Reply(answered, _) => return Err(self.lost(&format!("it answered {answered:?}"))),
                ClientEvent::Broken(reason) => return Err(self.lost(reason)),
                // What it heard may ask for a further command, HELO where EHLO was refused: that goes out first.
                ClientEvent::Idle if !self.client.outbox().is_empty() => self.flush(wait).await?,
                ClientEvent::Idle => self.read(wait).await?,
            }
        }
    }

    async fn read(&mut self, wait: Duration) -> Result<(), Lost> {
        let mut piece = [0; 1024];
        match timeout(wait, self.stream.read(&mut piece)).await {
            Ok(Ok(count @ 1..)) => {
                self.input.extend_from_slice(&piece[..count]);
                Ok(())
            }
            Ok(Ok(_)) => Err(self.lost("it closed the connection")),
            Ok(Err(error)) => Err(self.lost(&error.to_string())),
            Err(_) => Err(self.lost("it took too long")),
        }
    }

    async fn flush(&mut self, wait: Duration) -> Result<(), Lost> {
        if self.broken {
            return Err(Lost::Gone);
        }
        let sent = timeout(wait, send(&mut self.stream, self.client.outbox())).await;
        let count = self.client.outbox().len();
        self.client.sent(count);
        match sent {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(self.lost(&error.to_string())),
            Err(_) => Err(self.lost("it took too long")),
        }
    }

    fn lost(&mut self, reason: &str) -> Lost {
        self.broken = true;
        self.fault = Some(reason.into());
        tracing::debug!(hop = self.address, reason, "connection to the next hop lost");
        Lost::Gone
    }
}

/// Writes and flushes, since TLS buffers what is written.
async fn send(stream: &mut Stream, bytes: &[u8]) -> std::io::Result<()> {
    stream.write_all(bytes).await?;
    stream.flush().await
}

/// A step of logging in.
pub enum LogIn<'a> {
    /// The mechanism, and the first response if there is one.
    Auth(&'a str, Option<&'a [u8]>),
    /// A response to a challenge.
    Response(&'a [u8]),
}

/// Why a reply did not come, or came before it was asked for.
enum Lost {
    /// The connection is of no more use.
    Gone,
    /// The hop, or what it offers, stands against it.
    Refused(Reply),
}

impl Lost {
    fn reply(self) -> Reply {
        match self {
            Lost::Gone => gone(),
            Lost::Refused(reply) => reply,
        }
    }
}

fn gone() -> Reply {
    Reply::new(451, (4, 4, 2), "The connection to the next hop was lost")
}

/// Connects; where TLS begins with the connection, shakes hands.
async fn open(address: &str, route: &Route) -> Result<Stream, Reply> {
    let unreachable = |error: &dyn std::fmt::Display| {
        tracing::warn!(hop = address, %error, "next hop unreachable");
        Reply::new(451, (4, 4, 1), "The next hop cannot be reached now")
    };
    let stream = match timeout(CONNECT_WAIT, route.dial(address)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return Err(unreachable(&error)),
        Err(_) => return Err(unreachable(&"timed out")),
    };
    if !route.connector.implicit {
        return Ok(stream);
    }
    let secured = route.connector.secure(stream).await;
    secured.map_err(|error| insecure(address, route, Insecurity::of_handshake(&error)))
}

const INSECURE: Reply = Reply::new(451, (4, 7, 4), "No secure connection to the next hop");

fn insecure(address: &str, route: &Route, insecurity: Insecurity) -> Reply {
    tracing::warn!(hop = address, error = insecurity.why, "no TLS with the next hop");
    route.facts.distrust(insecurity);
    INSECURE
}

fn attributes(peer: &Peer<'_>) -> Vec<(&'static str, String)> {
    const NAMES: [&str; 6] = ["NAME", "ADDR", "PORT", "PROTO", "HELO", "SOURCE"];
    if !peer.xforward.is_empty() {
        let known = |name: &'static str| {
            let value = peer.xforward.iter().find(|(other, _)| other == name)?;
            Some((name, value.1.clone()))
        };
        return NAMES.into_iter().filter_map(known).collect();
    }
    let address = match peer.address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("IPv6:{address}"),
    };
    let port = if peer.port == 0 { String::new() } else { peer.port.to_string() };
    vec![("ADDR", address), ("PORT", port), ("HELO", peer.hello.into()), ("PROTO", "ESMTP".into())]
}
