//! A mail server that brings mail: SMTP to the INBOXes of accounts. Nothing is relayed. The content goes to the store in pieces, and the
//! answer to it waits until it is durable.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use keep::Keep;
use keep::digest::Digest;
use keep::volume::Machine;
use proto::imap::date;
use proto::smtp::{Config, Extensions, MailFrom, RcptTo, Reply, Server, ServerEvent};
use store::{Append, Error, Refused};
use stream::Window;

use crate::office::Office;
use crate::run::Conversation;

/// The largest mail, in bytes.
const MAIL_BYTES_MAX: u64 = 50 << 20;

/// How long a mail may take, in milliseconds; each byte prolongs it by one.
const MAIL_MS: u64 = 300_000;

/// Bytes of content that are taken at a time.
const PIECE_BYTES: usize = 16 << 10;

/// A connection of a mail server.
pub struct Sender {
    server: Server,
    client: [u8; 4],
    greeting: String,
    from: String,
    to: Vec<(String, u64)>,
    mail: Option<Incoming>,
    wants_tls: bool,
    is_secure: bool,
    window: Window,
}

/// A mail that comes in.
struct Incoming {
    append: Append,
    digest: Digest,
    bytes: u64,
    until: u64,
    failed: Option<Reply>,
}

impl Sender {
    pub fn new(office: &Office, client: [u8; 4], now: u64) -> Sender {
        let hostname = office.site().hostname.clone();
        let config = Config { hostname, extensions: extensions(), recipients_max: 100, ..Config::default() };
        Sender {
            server: Server::new(config, now),
            client,
            greeting: String::new(),
            from: String::new(),
            to: Vec::new(),
            mail: None,
            wants_tls: false,
            is_secure: false,
            window: Window::with_capacity(PIECE_BYTES),
        }
    }

    fn sender(&mut self, mail: &MailFrom) -> Reply {
        self.from = mail.path.as_str().into();
        self.to.clear();
        Reply::new(250, (2, 1, 0), "Ok")
    }

    fn recipient(&mut self, office: &mut Office, recipient: &RcptTo) -> Reply {
        let Some((name, quota)) = office.site().owner(recipient.path.as_str()) else {
            office.counts.refused += 1;
            return Reply::new(550, (5, 1, 1), "No such user here");
        };
        if !self.to.iter().any(|(known, _)| known == name) {
            self.to.push((name.into(), quota));
        }
        Reply::new(250, (2, 1, 5), "Ok")
    }

    fn begin(&mut self, office: &mut Office, now: u64) {
        let append = match office.store.begin() {
            Ok(append) => append,
            Err(error) => return self.server.reply(&unstored(&error)),
        };
        let until = now.saturating_add(MAIL_MS);
        self.mail = Some(Incoming { append, digest: Digest::default(), bytes: 0, until, failed: None });
        let [a, b, c, d] = self.client;
        let (date, id) = (date::message(office.store.now()), u128::from_le_bytes(office.store.random()));
        let (greeting, hostname) = (&self.greeting, office.site().hostname());
        let protocol = if self.is_secure { "ESMTPS" } else { "ESMTP" };
        let trace = format!(
            "Return-Path: <{}>\r\nReceived: from {greeting} ([{a}.{b}.{c}.{d}])\r\n\tby {hostname} (Sluice) with {protocol} id {id:x};\r\n\t{date}\r\n",
            self.from,
        );
        self.write(office, trace.as_bytes());
        self.server.begin();
    }

    fn write(&mut self, office: &mut Office, bytes: &[u8]) {
        let Some(mail) = self.mail.as_mut().filter(|mail| mail.failed.is_none()) else { return };
        mail.bytes = mail.bytes.saturating_add(bytes.len() as u64);
        mail.until = mail.until.saturating_add(bytes.len() as u64);
        if mail.bytes > MAIL_BYTES_MAX {
            mail.failed = Some(Reply::new(552, (5, 3, 4), "The mail is too large"));
            return;
        }
        mail.digest.read(bytes);
        if let Err(error) = office.store.write(&mut mail.append, bytes) {
            mail.failed = Some(unstored(&error));
        }
    }

    fn end(&mut self, office: &mut Office) -> Reply {
        let Some(Incoming { append, digest, failed, .. }) = self.mail.take() else {
            return Reply::new(451, (4, 3, 0), "Try again later");
        };
        if let Some(reply) = failed {
            office.counts.refused += 1;
            return reply;
        }
        match office.store.arrive(append, &digest.finish(), &self.to) {
            Ok(()) => {
                office.counts.mails += 1;
                Reply::new(250, (2, 0, 0), "Delivered")
            }
            Err(error) => unstored(&error),
        }
    }
}

fn extensions() -> Extensions {
    Extensions {
        size: Some(MAIL_BYTES_MAX),
        pipelining: true,
        eight_bit_mime: true,
        starttls: true,
        ..Extensions::default()
    }
}

fn unstored(error: &Error) -> Reply {
    match error {
        Error::Refused(Refused::OverQuota) => Reply::new(452, (4, 2, 2), "A mailbox is full"),
        Error::Full => Reply::new(452, (4, 3, 1), "The store is full"),
        _ => Reply::new(451, (4, 3, 0), "The store does not take it now"),
    }
}

impl Conversation for Sender {
    fn step(&mut self, office: &mut Office, now: u64, input: &[u8]) -> (usize, bool) {
        let (taken, event) = self.server.step(now, input, &mut self.window);
        match event {
            ServerEvent::Idle => return (taken, taken > 0),
            ServerEvent::Hello { domain, .. } => self.greeting = domain,
            ServerEvent::Mail(mail) => {
                let reply = self.sender(&mail);
                self.server.reply(&reply);
            }
            ServerEvent::Recipient(recipient) => {
                let reply = self.recipient(office, &recipient);
                self.server.reply(&reply);
            }
            ServerEvent::Data => self.begin(office, now),
            ServerEvent::Content => {
                let piece = self.window.filled().to_vec();
                self.window.clear();
                self.write(office, &piece);
            }
            ServerEvent::End { .. } => {
                let reply = self.end(office);
                self.server.reply(&reply);
            }
            ServerEvent::Reset => self.mail = None,
            // Not offered.
            ServerEvent::Xforward(_) | ServerEvent::Xclient(_) => {}
            ServerEvent::StartTls => {
                self.wants_tls = true;
                return (taken, true);
            }
            ServerEvent::Auth { .. } | ServerEvent::Response(_) => {
                self.server.reply(&Reply::new(535, (5, 7, 8), "Nobody logs in here"));
            }
            ServerEvent::Closed => return (taken, false),
        }
        (taken, true)
    }

    fn outbox(&self) -> &[u8] {
        self.server.outbox()
    }

    fn sent(&mut self, count: usize, _: u64) {
        self.server.sent(count);
    }

    fn is_over(&self) -> bool {
        self.server.is_closed()
    }

    fn is_waiting(&self) -> bool {
        self.mail.is_none()
    }

    fn deadline(&self) -> u64 {
        self.mail.as_ref().map_or(u64::MAX, |mail| mail.until).min(self.server.deadline())
    }

    fn time_out(&mut self) {
        self.server.timeout();
    }

    fn wants_tls(&self) -> bool {
        self.wants_tls
    }

    fn secured(&mut self, now: u64) {
        self.is_secure = true;
        self.server.secured(now, extensions());
    }
}
