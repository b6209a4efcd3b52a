//! Mail in (RFC 2033): stored once for all recipients, answered for each when it is on stable storage.
//!
//! What is stored begins with `Return-Path`, with `Delivered-To` if there is one recipient (more would be told of each
//! other), and `Received`. A header that goes on with a line that is not a field gets an empty line before it: that line is text. A mail
//! of any size is streamed; of recipients that mean the same mailbox one copy is delivered.
//! Who has no account is refused by 550, who is over quota deferred by 452.
//!
//! Whoever reaches it may deliver to everybody: it belongs on a UNIX socket or the loopback.
//!
//! A gateway in the same process may speak SMTP instead ([`Peer::Smtp`]), where its own client does: then there is one answer,
//! and the mail is delivered to all recipients or to none. Who has no room for the announced size is deferred at RCPT, so that
//! one full mailbox keeps nothing from the others. Over such a connection an account may log in, and submit mail. Mail for others than
//! accounts is relayed where the site relays for their domain, or for the client ([`Peer::Insider`]): in the transaction that delivers it to
//! accounts, if it is for both.

mod relays;
mod submission;

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use proto::imap::date;
use proto::smtp::{
    Config, Extensions, FutureRelease, Hold, MailFrom, Mechanisms, Protocol, RcptTo, Reply, Return, Server, ServerEvent,
};
use store::{Error, Refused, State};
use tokio::time::timeout_at;

use crate::accounts::{Account, Recipient};
use crate::delivery::{self, Arrived, Outcome, Undelivered};
use crate::digest::Digest;
use crate::filter;
use crate::header;
use crate::in_flight::Owner;
use crate::outbox;
use crate::site::{Site, seconds};
use crate::wire::{Stream, Wire};
use crate::writer::Incoming;

pub(crate) use submission::is_of;

/// Room for content between the protocol and the store, in bytes.
const WINDOW_BYTES: usize = 32 << 10;

/// Lines of what a script says of a refusal.
const REASON_LINES_MAX: usize = 10;

const OVER_QUOTA: Reply = Reply::new(452, (4, 2, 2), "Mailbox full");
const FULL: Reply = Reply::new(452, (4, 3, 1), "Not enough storage");
const FAILED: Reply = Reply::new(451, (4, 3, 0), "Temporary failure");
const NOT_KNOWN_NOW: Reply = Reply::new(451, (4, 4, 3), "The recipient cannot be looked up now");
const NO_ACCOUNT: Reply = Reply::new(554, (5, 7, 1), "The account that sent it cannot send any more");
const APART: Reply = Reply::new(452, (4, 5, 3), "One recipient at a time, please");
const TOO_LARGE: Reply = Reply::new(552, (5, 3, 4), "Message too large");

/// Peer that hands mail over, and its protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// Somebody, by LMTP.
    Stranger,
    /// A gateway in this process, by LMTP; it has added its own `Received`.
    Lmtp,
    /// The same by SMTP.
    Smtp,
    /// The same for a client whose mail is relayed to any recipient.
    Insider,
}

impl Peer {
    /// The door that the log names.
    const fn door(self) -> &'static str {
        match self {
            Peer::Stranger => "lmtp",
            Peer::Lmtp | Peer::Smtp | Peer::Insider => "store",
        }
    }

    const fn is_smtp(self) -> bool {
        matches!(self, Peer::Smtp | Peer::Insider)
    }
}

/// Speaks with a client until it goes.
///
/// # Errors
/// When the connection breaks.
pub async fn serve(stream: impl Stream, client: Option<IpAddr>, peer: Peer, site: &Site) -> io::Result<()> {
    converse(stream, client, peer, None, site).await
}

/// Speaks SMTP with a gateway that releases mail of an account, as if the account had logged in again.
///
/// # Errors
/// When the connection breaks.
pub async fn serve_account(stream: impl Stream, name: &str, site: &Site) -> io::Result<()> {
    let refusal = match site.accounts.named(name, false).await {
        Ok(Some(account)) if !account.is_disabled && site.relay.is_some() => {
            return converse(stream, None, Peer::Smtp, Some(account), site).await;
        }
        Ok(_) => NO_ACCOUNT,
        Err(why) => {
            tracing::warn!(account = name, %why, "account cannot be looked up");
            NOT_KNOWN_NOW
        }
    };
    let (mut wire, mut line) = (Wire::new(stream), Vec::new());
    refusal.write(&mut line);
    wire.write(&line).await?;
    wire.close().await;
    Ok(())
}

async fn converse(
    stream: impl Stream,
    client: Option<IpAddr>,
    peer: Peer,
    account: Option<Arc<Account>>,
    site: &Site,
) -> io::Result<()> {
    let submits = peer.is_smtp() && site.relay.is_some();
    let config = Config {
        hostname: site.hostname.clone(),
        protocol: if peer.is_smtp() { Protocol::Smtp } else { Protocol::Lmtp },
        extensions: Extensions {
            pipelining: true,
            size: Some(site.message_bytes_max),
            eight_bit_mime: true,
            smtputf8: true,
            chunking: true,
            enhanced_status_codes: true,
            // Who brings a mail to the gateway is who fills the store.
            xforward: peer != Peer::Stranger,
            dsn: submits,
            future_release: submits.then(|| FutureRelease::within(submission::HOLD_SECONDS_MAX, seconds())),
            // Its client is the gateway within this process, which offers it to clients in TLS.
            require_tls: peer != Peer::Stranger,
            auth: if submits { Mechanisms::of(&submission::MECHANISMS) } else { Mechanisms::NONE },
            ..Extensions::default()
        },
        // A next hop of somebody's own brings many mails, some of them for nobody.
        idle_commands_max: 10_000,
        refused_max: 10_000,
        errors_max: 1_000,
        ..Config::default()
    };
    let server = Server::new(config, site.now());
    let (wire, content) = (Wire::new(stream), stream::Window::with_capacity(0));
    let (hello, mail, exchange) = (String::new(), None, None);
    let mut session = Session { site, client, peer, wire, server, content, hello, mail, account, exchange };
    session.run().await?;
    session.wire.close().await;
    Ok(())
}

struct Session<'a, S> {
    site: &'a Site,
    client: Option<IpAddr>,
    peer: Peer,
    wire: Wire<S>,
    server: Server,
    content: stream::Window,
    hello: String,
    mail: Option<Mail>,
    /// The account that has logged in.
    account: Option<Arc<Account>>,
    exchange: Option<submission::LogIn>,
}

/// A mail under way.
struct Mail {
    from: String,
    /// As announced.
    bytes: u64,
    recipients: Vec<(String, Vec<Recipient>)>,
    /// Recipients of a mail that is submitted or relayed.
    outgoing: Vec<outbox::Recipient>,
    /// It comes back for a rewritten sender, who is its recipient.
    is_returned: bool,
    ret: Option<Return>,
    envid: String,
    smtputf8: bool,
    require_tls: bool,
    /// When a mail that is submitted is sent; none: at once.
    release: Option<i64>,
    content: Option<Content>,
}

struct Content {
    incoming: Incoming,
    /// The largest mail that the quota of some recipient has room for.
    room: u64,
    digest: Digest,
    header: header::Reader,
    /// This host, for a mail that is submitted: its header is cleaned.
    submitted_to: Option<String>,
    failed: Option<Reply>,
}

impl<S: Stream> Session<'_, S> {
    async fn run(&mut self) -> io::Result<()> {
        loop {
            let now = self.site.now();
            let (taken, event) = self.server.step(now, self.wire.input(), &mut self.content);
            self.wire.take(taken);
            match event {
                ServerEvent::Idle if taken > 0 => {}
                ServerEvent::Idle => {
                    self.flush().await?;
                    if !self.read().await? {
                        return Ok(());
                    }
                }
                ServerEvent::Closed => return self.flush().await,
                event => self.event(event).await,
            }
        }
    }

    async fn read(&mut self) -> io::Result<bool> {
        let deadline = self.site.at(self.server.deadline());
        let is_idle = self.server.is_idle();
        tokio::select! {
            read = timeout_at(deadline, self.wire.read()) => match read {
                Ok(read) => read,
                Err(_) => {
                    self.server.timeout();
                    Ok(true)
                }
            },
            () = self.site.ended(), if is_idle => {
                self.server.close(Reply::new(421, (4, 3, 2), "Shutting down"));
                Ok(true)
            }
        }
    }

    async fn flush(&mut self) -> io::Result<()> {
        let count = self.server.outbox().len();
        self.wire.write(self.server.outbox()).await?;
        self.server.sent(count);
        Ok(())
    }

    async fn event(&mut self, event: ServerEvent) {
        match event {
            ServerEvent::Hello { domain, .. } => (self.hello, self.mail) = (domain, None),
            ServerEvent::Auth { mechanism, initial } => {
                self.log_in(mechanism, initial.as_ref().map(proto::smtp::Secret::as_bytes)).await;
            }
            ServerEvent::Response(response) => match self.exchange.take() {
                Some(exchange) => self.respond(exchange, response.as_bytes()).await,
                None => self.server.reply(&FAILED),
            },
            ServerEvent::Mail(from) => {
                let reply = self.begin_mail(from).await;
                self.server.reply(&reply);
            }
            ServerEvent::Recipient(recipient) => {
                let reply = match self.account {
                    Some(_) => self.outgoing(&recipient),
                    None => self.recipient(&recipient).await,
                };
                self.server.reply(&reply);
            }
            ServerEvent::Data => {
                self.begin().await;
                self.content = stream::Window::with_capacity(WINDOW_BYTES);
                self.server.begin();
            }
            ServerEvent::Content => {
                if let Some(content) = self.mail.as_mut().and_then(|mail| mail.content.as_mut()) {
                    content.add(self.content.filled(), self.site.message_bytes_max).await;
                }
                self.content.clear();
            }
            ServerEvent::End { .. } => {
                self.content = stream::Window::with_capacity(0);
                for reply in self.end().await {
                    self.server.reply(&reply);
                }
            }
            ServerEvent::Xforward(attributes) => self.client = proto::smtp::address(&attributes),
            ServerEvent::Reset => self.mail = None,
            // Neither is offered.
            _ => self.server.close(FAILED),
        }
    }

    async fn begin_mail(&mut self, mail: MailFrom) -> Reply {
        let MailFrom { path, size, ret, envid, smtputf8, require_tls, hold, .. } = mail;
        let from = path.as_str().to_owned();
        let reply = match &self.account {
            Some(account) => self.sender(account, &from).await,
            None if hold.is_some() => submission::LOG_IN,
            None => Reply::new(250, (2, 1, 0), "Ok"),
        };
        let (bytes, envid) = (size.unwrap_or(0), envid.unwrap_or_default());
        let (recipients, outgoing) = (Vec::new(), Vec::new());
        let release = hold.map(|hold| match hold {
            Hold::For(wait) => seconds().saturating_add(wait.into()),
            Hold::Until(time) => time,
        });
        let (is_returned, content) = (false, None);
        let mail = Mail {
            from,
            bytes,
            recipients,
            outgoing,
            is_returned,
            ret,
            envid,
            smtputf8,
            require_tls,
            release,
            content,
        };
        self.mail = Some(mail).filter(|_| reply.is_positive());
        reply
    }

    async fn recipient(&mut self, recipient: &RcptTo) -> Reply {
        let address = recipient.path.as_str();
        let found = match self.site.accounts.at(address, &self.site.hostname).await {
            Ok(found) => found,
            Err(why) => {
                tracing::warn!(to = address, %why, "recipient cannot be looked up");
                return NOT_KNOWN_NOW;
            }
        };
        if found.is_empty() {
            return self.elsewhere(recipient);
        }
        // A client inside may be a device that cannot divide its recipients: all of them wait in the queue.
        if self.peer == Peer::Insider && self.site.relay.is_some() {
            return self.outgoing(recipient);
        }
        let Some(mail) = &mut self.mail else { return FAILED };
        if mail.is_returned {
            return APART;
        }
        let state = self.site.store.state();
        if found.iter().all(|recipient| left(&state, recipient) < mail.bytes.max(1)) {
            return OVER_QUOTA;
        }
        mail.recipients.push((address.to_owned(), found));
        Reply::new(250, (2, 1, 5), "Ok")
    }

    /// Takes a recipient that has no account here: a sender whose mail was forwarded, who gets what comes back, and one that is relayed to.
    fn elsewhere(&mut self, recipient: &RcptTo) -> Reply {
        let Some(mail) = &mut self.mail else { return FAILED };
        let address = recipient.path.as_str();
        let rewriter = self.site.rewriter.as_ref().filter(|_| mail.from.is_empty() && self.site.relay.is_some());
        if let Some(to) = rewriter.and_then(|rewriter| rewriter.reverse(address, seconds())) {
            if !mail.recipients.is_empty() || !mail.outgoing.is_empty() {
                return APART;
            }
            mail.outgoing.push(outbox::Recipient { notify: "NEVER".into(), ..outbox::Recipient::new(to, seconds()) });
            mail.is_returned = true;
            return Reply::new(250, (2, 1, 5), "Ok");
        }
        let is_relayed = match self.peer {
            Peer::Insider => relays::to_anybody(self.site, address),
            Peer::Smtp => relays::to_domain(self.site, address),
            Peer::Stranger | Peer::Lmtp => false,
        };
        match is_relayed {
            true => self.outgoing(recipient),
            false => Reply::new(550, (5, 1, 1), "No such user"),
        }
    }

    async fn begin(&mut self) {
        let Some(mail) = &mut self.mail else { return };
        let mut trace = if mail.recipients.is_empty() { String::new() } else { envelope(mail) };
        if self.peer == Peer::Stranger {
            trace.push_str(&received(&self.hello, self.client, &self.site.hostname, seconds()));
        }
        let mut owners: Vec<Owner> = self.client.and_then(Owner::client).into_iter().collect();
        if owners.is_empty() {
            let accounts = mail.recipients.iter().flat_map(|(_, accounts)| accounts);
            owners.extend(accounts.map(|to| Owner::Account(to.account.name.clone())));
            owners.extend(self.account.iter().map(|account| Owner::Account(account.name.clone())));
            owners.sort_unstable();
            owners.dedup();
        }
        let mut content = Content {
            incoming: self.site.store.incoming_of(self.site.in_flight.begin(owners)),
            room: room(&self.site.store.state(), mail, self.peer.is_smtp()),
            digest: Digest::default(),
            header: header::Reader::default(),
            submitted_to: self.account.as_ref().map(|_| self.site.hostname.clone()),
            failed: None,
        };
        content.add(trace.as_bytes(), u64::MAX).await;
        mail.content = Some(content);
    }

    /// The answers to the mail, one for each recipient.
    async fn end(&mut self) -> Vec<Reply> {
        let is_one = self.peer.is_smtp();
        if let Some(content) = self.mail.as_mut().and_then(|mail| mail.content.as_mut()) {
            content.end().await;
        }
        if let Some(account) = self.account.clone()
            && let Some(mail) = self.mail.take_if(|mail| mail.content.is_some())
        {
            return vec![submission::submit(self.site, account, mail).await];
        }
        if let Some(mail) = self.mail.take_if(|mail| mail.recipients.is_empty() && mail.content.is_some()) {
            let reply = match mail.is_returned {
                true => submission::send_back(self.site, self.client, mail).await,
                false => relays::relay(self.site, self.client, self.peer, mail).await,
            };
            return vec![reply];
        }
        let failed = vec![FAILED; if is_one { 1 } else { self.server.recipients() as usize }];
        let Some(mut mail) = self.mail.take() else { return failed };
        let relayed = relays::entry(self.peer, &mut mail);
        let Mail { from, recipients, require_tls, content: Some(content), .. } = mail else { return failed };
        let count = if is_one { 1 } else { recipients.len() };
        if let Some(reply) = content.failed {
            return vec![reply; count];
        }
        let bytes = content.incoming.size();
        // The own `Received`, or that of the gateway, comes first and has the id of its lines.
        let id = header::id(&content.header.bytes);
        let message_id = header::message_id(&content.header.bytes);
        let score = filter::score(&content.header.bytes);
        let (door, client) = (self.peer.door(), self.client.map(tracing::field::display));
        let sender = if from.is_empty() { "<>".to_owned() } else { from.clone() };
        let relayed_to = relayed.iter().flat_map(|entry| &entry.recipients).map(|one| one.to.clone());
        let addresses: Vec<String> = recipients.iter().map(|(address, _)| address.clone()).chain(relayed_to).collect();
        let arrived = Arrived {
            from: from.clone(),
            recipients,
            incoming: content.incoming,
            digest: content.digest.finish(),
            header: content.header.bytes,
            return_path_bytes: return_path(&from).len() as u64,
            is_one,
            is_inspected: self.peer != Peer::Stranger,
            require_tls,
            relayed,
            queued: None,
        };
        let (replies, filed): (Vec<Reply>, _) = match delivery::deliver(self.site, arrived).await {
            Ok(outcomes) => (outcomes.all.into_iter().map(reply_of).collect(), outcomes.filed),
            Err(error) => (vec![reply_to(Some(error)); count], Vec::new()),
        };
        let mut filed = filed.iter();
        for (address, reply) in addresses.iter().zip(replies.iter().cycle()) {
            let mailbox = filed.next().map(|mailboxes| mailboxes.join(",")).filter(|names| !names.is_empty());
            tracing::info!(
                id, message_id, door, client, from = sender, to = address, mailbox, score, bytes, %reply, "delivery"
            );
        }
        replies
    }
}

impl Content {
    async fn add(&mut self, bytes: &[u8], bytes_max: u64) {
        if self.failed.is_some() {
            return;
        }
        let held = if self.header.is_whole { 0 } else { self.header.bytes.len() };
        let size = self.incoming.size().saturating_add((held + bytes.len()) as u64);
        if size > bytes_max {
            self.failed = Some(TOO_LARGE);
            return;
        }
        if size > self.room {
            self.failed = Some(OVER_QUOTA);
            return;
        }
        match self.header.is_whole {
            true => self.keep(bytes).await,
            false => self.read_header(bytes, false).await,
        }
    }

    /// All of it has come: what waits is kept, too.
    async fn end(&mut self) {
        if self.failed.is_none() && !self.header.is_whole {
            self.read_header(b"", true).await;
        }
    }

    /// Collects the header, and keeps it and what stands behind it once it is whole.
    async fn read_header(&mut self, bytes: &[u8], is_all: bool) {
        let Some(text) = self.header.read(bytes, is_all) else { return };
        let header = std::mem::take(&mut self.header.bytes);
        match &self.submitted_to {
            Some(hostname) => self.keep(&header::cleaned(&header, hostname)).await,
            None => self.keep(&header).await,
        }
        self.header.bytes = header;
        self.keep(&text).await;
    }

    async fn keep(&mut self, bytes: &[u8]) {
        self.digest.read(bytes);
        if let Err(error) = self.incoming.write(bytes).await {
            self.failed = Some(reply_to(Some(error)));
        }
    }
}

/// Bytes that the quota of a recipient has room for.
fn left(state: &State, recipient: &Recipient) -> u64 {
    let known = state.account_named(recipient.account.name.as_bytes());
    let used = known.map_or(0, |(_, account)| account.used_bytes);
    match recipient.account.quota_bytes {
        0 => u64::MAX,
        quota => quota.saturating_sub(used),
    }
}

/// Bytes that a mail may have: in the end it comes to one account of some address, or of each if they have one answer.
fn room(state: &State, mail: &Mail, is_one: bool) -> u64 {
    let of = |accounts: &[Recipient]| accounts.iter().map(|recipient| left(state, recipient)).max().unwrap_or(0);
    let rooms = mail.recipients.iter().map(|(_, accounts)| of(accounts));
    if is_one { rooms.min() } else { rooms.max() }.unwrap_or(u64::MAX)
}

fn reply_of(outcome: Outcome) -> Reply {
    match outcome {
        Ok(()) => reply_to(None),
        Err(Undelivered::Failed(error)) => reply_to(Some(error)),
        Err(Undelivered::Rejected(reason)) => {
            let safe = |letter: char| if letter.is_ascii_graphic() || letter == ' ' { letter } else { '?' };
            let lines = reason.lines().map(str::trim_end).filter(|line| !line.is_empty());
            let lines: Vec<String> =
                lines.take(REASON_LINES_MAX).map(|line| line.chars().map(safe).take(200).collect()).collect();
            let text = if lines.is_empty() { "Message refused by the recipient".into() } else { lines.join("\n") };
            Reply::with_text(550, (5, 7, 1), text)
        }
    }
}

fn reply_to(error: Option<Error>) -> Reply {
    match error {
        None => Reply::new(250, (2, 0, 0), "Delivered"),
        Some(Error::Refused(Refused::OverQuota)) => OVER_QUOTA,
        Some(Error::Full) => FULL,
        Some(Error::Refused(Refused::TooLarge)) => TOO_LARGE,
        Some(error) => {
            tracing::error!(%error, "a mail was not stored");
            FAILED
        }
    }
}

/// Fields that record the envelope.
fn envelope(mail: &Mail) -> String {
    let delivered = match mail.recipients.as_slice() {
        [(address, _)] => format!("Delivered-To: {address}\r\n"),
        _ => String::new(),
    };
    format!("{}{delivered}", return_path(&mail.from))
}

fn return_path(from: &str) -> String {
    format!("Return-Path: <{from}>\r\n")
}

/// How a mail came here.
fn received(hello: &str, client: Option<IpAddr>, hostname: &str, now: i64) -> String {
    let is_plain = |character: &char| character.is_ascii_graphic() && !"()<>;\"\\".contains(*character);
    let hello: String = hello.chars().filter(is_plain).collect();
    let hello = if hello.is_empty() { "unknown" } else { &hello };
    let client = client.map_or(String::new(), |client| format!(" ([{client}])"));
    let date = date::message(now);
    let id = header::random();
    format!("Received: from {hello}{client}\r\n\tby {hostname} with LMTP id {id}; {date}\r\n")
}
