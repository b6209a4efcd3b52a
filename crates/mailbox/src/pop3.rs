//! Mail out by POP3 (RFC 1939, 2449, 5034): the INBOX, as it was when the client logged in.
//!
//! Deletions are one transaction at QUIT, answered when it is durable. Nobody is locked out meanwhile: messages are known by
//! UID, and UIDL is UIDVALIDITY and UID, which are never given twice.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use proto::pop3::{Command, Config, Server, ServerEvent, Verb};
use store::{State, Uids};
use tokio::task::yield_now;
use tokio::time::timeout_at;

use crate::accounts::Account;
use crate::content::Body;
use crate::guest::{Guest, Seat};
use crate::labour::turn;
use crate::login::{Caller, Denied};
use crate::sasl::{Exchange, MECHANISMS, Step};
use crate::site::{Site, open_account};
use crate::wire::{Stream, Wire};

/// Bytes of a message read at a time.
const CHUNK_BYTES: usize = 32 << 10;

const BUSY: &[u8] = b"[SYS/TEMP] Too many try to log in, try again later";
const FULL: &[u8] = b"[SYS/TEMP] Too many sessions of this account";

/// Speaks with a client until it goes.
///
/// # Errors
/// When the connection breaks.
pub async fn serve(stream: impl Stream, guest: impl Into<Guest>, site: &Site) -> io::Result<()> {
    let mut server = Server::new(Config::default(), site.now());
    server.say(true, format!("{} POP3 Sluice", site.hostname).as_bytes());
    let (wire, mail) = (Wire::new(stream), Maildrop::default());
    let mut session =
        Session { site, guest: guest.into(), seat: None, wire, server, user: None, account: 0, mail, exchange: None };
    session.run().await?;
    session.wire.close().await;
    Ok(())
}

struct Session<'a, S> {
    site: &'a Site,
    guest: Guest,
    /// The place among the account's sessions, after login.
    seat: Option<Seat>,
    wire: Wire<S>,
    server: Server,
    user: Option<String>,
    /// The account, after login.
    account: u32,
    /// Empty before the login.
    mail: Maildrop,
    exchange: Option<Exchange>,
}

/// The messages that the client sees, numbered from 1.
#[derive(Default)]
struct Maildrop {
    number: u32,
    uid_validity: u32,
    messages: Vec<Message>,
    deleted: BTreeSet<u32>,
}

#[derive(Clone, Copy)]
struct Message {
    uid: u32,
    number: u64,
    size: u64,
}

impl<S: Stream> Session<'_, S> {
    async fn run(&mut self) -> io::Result<()> {
        loop {
            let (taken, event) = self.server.step(self.site.now(), self.wire.input());
            self.wire.take(taken);
            match event {
                ServerEvent::Idle if taken > 0 => {}
                ServerEvent::Idle => {
                    self.flush().await?;
                    if !self.read().await? {
                        return Ok(());
                    }
                }
                ServerEvent::Command(command) => {
                    self.command(&command).await?;
                    self.flush_much().await?;
                }
                ServerEvent::Wrong(reason) => self.server.say(false, reason.as_bytes()),
                ServerEvent::Response(response) => self.respond(&response).await?,
                ServerEvent::Closed => return self.flush().await,
            }
        }
    }

    async fn read(&mut self) -> io::Result<bool> {
        let deadline = self.site.at(self.server.deadline());
        tokio::select! {
            read = timeout_at(deadline, self.wire.read()) => read.unwrap_or(Ok(false)),
            () = self.guest.lost() => {
                self.server.say(false, b"[SYS/TEMP] Too many clients that have not logged in");
                self.server.close();
                Ok(true)
            }
            () = self.site.ended() => {
                self.server.say(false, b"[SYS/TEMP] Shutting down");
                self.server.close();
                Ok(true)
            }
        }
    }

    /// Flushes once a chunk of replies to pipelined commands is waiting.
    async fn flush_much(&mut self) -> io::Result<()> {
        if self.server.outbox().len() >= CHUNK_BYTES {
            self.flush().await?;
        }
        Ok(())
    }

    async fn flush(&mut self) -> io::Result<()> {
        self.wire.write(self.server.outbox()).await?;
        self.server.sent();
        Ok(())
    }

    async fn command(&mut self, command: &Command) -> io::Result<()> {
        match command.verb {
            Verb::Quit => self.quit().await,
            Verb::Capa => self.capabilities(),
            Verb::Noop => self.server.say(true, b""),
            Verb::Utf8 => self.server.say(true, b"UTF8 enabled"),
            Verb::User => {
                self.user = command.user();
                self.server.say(true, b"");
            }
            Verb::Pass => {
                let name = self.user.take().unwrap_or_default();
                let attempt = self.site.logins.attempt(Caller { door: "pop3", client: self.guest.client }, &name);
                let account = match self.guest.wait(&mut self.wire, attempt).await? {
                    Ok(attempt) => self.site.logins.check(attempt, command.argument()).await,
                    Err(refused) => Err(refused),
                };
                self.enter(account).await;
            }
            Verb::Auth => return self.authenticate(command).await,
            Verb::Stls | Verb::Apop | Verb::Lang => self.refuse(b"Not offered"),
            _ => return self.on_messages(command).await,
        }
        Ok(())
    }

    /// Refuses a command that is not offered, or a login.
    fn refuse(&mut self, text: &[u8]) {
        self.server.say(false, text);
        self.server.answered(self.site.now(), false);
    }

    async fn authenticate(&mut self, command: &Command) -> io::Result<()> {
        let Some(mechanism) = command.mechanism() else {
            self.list("Mechanisms", MECHANISMS.map(String::from).into_iter());
            return Ok(());
        };
        self.exchange = Exchange::begin(mechanism);
        match command.initial() {
            _ if self.exchange.is_none() => self.refuse(b"Unknown mechanism"),
            Some(initial) => return self.respond(initial).await,
            None => self.server.challenge(b""),
        }
        Ok(())
    }

    async fn on_messages(&mut self, command: &Command) -> io::Result<()> {
        let mail = &mut self.mail;
        let message = command.message_number().map(|number| (number, mail.message(number)));
        match (command.verb, message) {
            (_, Some((_, None))) => self.server.say(false, b"No such message"),
            (Verb::Retr, Some((_, Some(message)))) => return self.retrieve(message, None).await,
            (Verb::Top, Some((_, Some(message)))) => {
                return self.retrieve(message, Some(command.lines().unwrap_or(0))).await;
            }
            (Verb::Dele, Some((number, _))) => {
                mail.deleted.insert(number);
                self.server.say(true, b"");
            }
            (Verb::Rset, _) => {
                mail.deleted.clear();
                self.server.say(true, b"");
            }
            (Verb::Stat, _) => {
                let (count, bytes) = mail.count();
                self.server.say(true, format!("{count} {bytes}").as_bytes());
            }
            (verb @ (Verb::List | Verb::Uidl), Some((number, Some(message)))) => {
                let line = mail.line(verb, number, message);
                self.server.say(true, line.as_bytes());
            }
            (verb @ (Verb::List | Verb::Uidl), _) => return self.list_all(verb).await,
            _ => self.server.say(false, b"Not now"),
        }
        Ok(())
    }

    /// Lists all messages, a chunk at a time, in turns with other accounts.
    async fn list_all(&mut self, verb: Verb) -> io::Result<()> {
        let (account, mut numbers) = (self.account, 1..=u32::try_from(self.mail.messages.len()).unwrap_or(u32::MAX));
        self.server.say(true, b"");
        loop {
            let turn = turn(self.site, &mut self.wire, &self.site.workers, account, *numbers.start() == 1).await?;
            while self.server.outbox().len() < CHUNK_BYTES
                && let Some(number) = numbers.next()
            {
                let Some(message) = self.mail.message(number) else { continue };
                let line = self.mail.line(verb, number, message);
                self.server.content(format!("{line}\r\n").as_bytes());
            }
            drop(turn);
            if numbers.is_empty() {
                break;
            }
            self.flush().await?;
            // A client that reads everything at once lets others have their turn all the same.
            yield_now().await;
        }
        self.server.end();
        Ok(())
    }

    fn capabilities(&mut self) {
        let offered = [
            "TOP",
            "USER",
            &format!("SASL {}", MECHANISMS.join(" ")),
            "RESP-CODES",
            "AUTH-RESP-CODE",
            "PIPELINING",
            "UIDL",
            "UTF8",
        ];
        self.list("", offered.map(String::from).into_iter());
    }

    fn list(&mut self, text: &str, lines: impl Iterator<Item = String>) {
        self.server.say(true, text.as_bytes());
        lines.for_each(|line| self.server.content(format!("{line}\r\n").as_bytes()));
        self.server.end();
    }

    async fn respond(&mut self, response: &[u8]) -> io::Result<()> {
        let step = match self.exchange.take() {
            Some(exchange) => {
                let responding =
                    exchange.respond(self.site, Caller { door: "pop3", client: self.guest.client }, response);
                self.guest.wait(&mut self.wire, responding).await?
            }
            None => Step::Over(Err(Denied::Wrong)),
        };
        match step {
            Step::Challenge(challenge, exchange) => {
                self.exchange = Some(exchange);
                self.server.challenge(&challenge);
            }
            Step::Over(account) => self.enter(account).await,
        }
        Ok(())
    }

    async fn enter(&mut self, account: Result<Arc<Account>, Denied>) {
        let account = match account {
            Ok(account) => account,
            Err(Denied::Wrong) => return self.refuse(b"[AUTH] Wrong name or password"),
            Err(Denied::Away) => return self.refuse(b"[SYS/TEMP] Accounts cannot be looked up now"),
            Err(Denied::Busy) => return self.refuse(BUSY),
            Err(Denied::Full) => return self.refuse(FULL),
        };
        let known = open_account(&self.site.store, &account).await;
        let state = self.site.store.state();
        if let Ok(account) = known {
            self.account = account;
            self.seat = self.site.seats.take(account);
            match self.seat {
                None => return self.refuse(FULL),
                Some(_) if !self.guest.log_in() => return self.refuse(BUSY),
                Some(_) => {}
            }
        }
        let Some(mail) = known.ok().and_then(|account| Maildrop::of(&state, account)) else {
            return self.refuse(b"[SYS/TEMP] The mailbox cannot be opened");
        };
        let (count, bytes) = mail.count();
        self.mail = mail;
        self.server.say(true, format!("{count} messages ({bytes} octets)").as_bytes());
        self.server.answered(self.site.now(), true);
    }

    /// Sends a message, or its header and so many lines.
    async fn retrieve(&mut self, message: Message, lines: Option<u64>) -> io::Result<()> {
        let site = self.site;
        let Some(mut body) = Body::open(&site.store, message.number) else {
            self.server.say(false, b"[SYS/PERM] Deleted meanwhile");
            return Ok(());
        };
        let chunk_bytes = body.size().min(CHUNK_BYTES as u64) as usize;
        let mut chunk = vec![0; chunk_bytes];
        let (mut offset, mut top) = (0, Top::new(lines));
        loop {
            let length = match body.read_in_session(offset, &mut chunk) {
                Ok(length) => length,
                Err(error) if offset == 0 => {
                    tracing::error!(message = message.number, %error, "a message cannot be read");
                    self.server.say(false, b"[SYS/PERM] The message cannot be read");
                    return Ok(());
                }
                Err(error) => {
                    tracing::error!(message = message.number, %error, "a message cannot be read");
                    return Err(io::Error::other("a message cannot be read"));
                }
            };
            if offset == 0 {
                self.server.say(true, format!("{} octets", message.size).as_bytes());
            }
            offset += length as u64;
            let wanted = top.wanted(&chunk[..length]);
            self.server.content(&chunk[..wanted]);
            // The end goes out with what stands before it.
            if length == 0 || wanted < length || offset >= body.size() {
                break;
            }
            self.flush().await?;
        }
        self.server.end();
        Ok(())
    }

    async fn quit(&mut self) {
        let mail = &self.mail;
        let uids: Uids = mail.deleted.iter().filter_map(|&number| mail.at(number)).map(|message| message.uid).collect();
        let number = mail.number;
        let outcome = match mail.deleted.is_empty() {
            true => Ok(Vec::new()),
            false => self.site.store.transact(move |transaction| transaction.expunge(number, &uids)).await,
        };
        match outcome {
            Ok(_) => self.server.say(true, b"Bye"),
            Err(error) => {
                tracing::error!(%error, "messages were not deleted");
                self.server.say(false, b"[SYS/TEMP] Some messages were not deleted");
            }
        }
        self.server.close();
    }
}

impl Maildrop {
    fn of(state: &State, account: u32) -> Option<Maildrop> {
        let (number, mailbox) = state.mailbox_named(account, b"INBOX")?;
        let message = |(uid, entry): (u32, &store::Entry)| {
            let number = entry.message.get();
            Some(Message { uid, number, size: state.message(number)?.size })
        };
        let messages = mailbox.from(0).filter_map(message).collect();
        Some(Maildrop { number, uid_validity: mailbox.uid_validity, messages, deleted: BTreeSet::new() })
    }

    fn at(&self, number: u32) -> Option<Message> {
        self.messages.get(usize::try_from(number).ok()?.checked_sub(1)?).copied()
    }

    /// A message that was not deleted.
    fn message(&self, number: u32) -> Option<Message> {
        self.at(number).filter(|_| !self.deleted.contains(&number))
    }

    fn all(&self) -> impl Iterator<Item = (u32, Message)> {
        let numbered = (1..).zip(self.messages.iter().copied());
        numbered.filter(|(number, _)| !self.deleted.contains(number))
    }

    fn count(&self) -> (usize, u64) {
        self.all().fold((0, 0), |(count, bytes), (_, message)| (count + 1, bytes + message.size))
    }

    fn line(&self, verb: Verb, number: u32, message: Message) -> String {
        match verb {
            Verb::Uidl => format!("{number} {:08x}{:08x}", self.uid_validity, message.uid),
            _ => format!("{number} {}", message.size),
        }
    }
}

/// Where a message ends for TOP: behind the blank line and so many lines more.
struct Top {
    left: Option<u64>,
    in_header: bool,
    line_bytes: u64,
}

impl Top {
    fn new(left: Option<u64>) -> Top {
        Top { left, in_header: true, line_bytes: 0 }
    }

    /// How much of these bytes is wanted.
    fn wanted(&mut self, bytes: &[u8]) -> usize {
        let Some(left) = &mut self.left else { return bytes.len() };
        for (at, &byte) in bytes.iter().enumerate() {
            if !self.in_header && *left == 0 {
                return at;
            }
            match byte {
                b'\n' if self.in_header => self.in_header = self.line_bytes > 0,
                b'\n' => *left -= 1,
                b'\r' => continue,
                _ => self.line_bytes += 1,
            }
            if byte == b'\n' {
                self.line_bytes = 0;
            }
        }
        bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_top_of_a_message_is_the_same_however_it_is_cut() {
        let mail = b"a: 1\r\nb: 2\r\n\r\none\r\n\r\ntwo\r\nthree";
        for (lines, wanted) in [(0, 14), (1, 19), (2, 21), (3, 26), (4, mail.len()), (9, mail.len())] {
            for cut in 0..mail.len() {
                let mut top = Top::new(Some(lines));
                let first = top.wanted(&mail[..cut]);
                let second = if first == cut { top.wanted(&mail[cut..]) } else { 0 };
                assert_eq!(first + second, wanted, "{lines} {cut}");
            }
        }
        assert_eq!(Top::new(None).wanted(mail), mail.len());
    }
}
