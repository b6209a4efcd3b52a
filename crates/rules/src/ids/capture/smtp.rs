//! SMTP as rules see it: the envelope, the fields of mails and their parts. DATA and BDAT, dots undone.

use std::mem;
use std::sync::Arc;

use super::super::buffer::{Buffer, Direction};
use super::super::transaction::Transaction;
use super::exchange::Ways;
use super::parts::{Event, Parts};
use super::record::{Content, File, Mail, Message};

/// Recipients, fields and files of a mail that are told.
const TOLD_MAX: usize = 1000;

/// The first byte of a record of TLS that has a handshake.
const HANDSHAKE: u8 = 22;

/// Bytes of one line.
const LINE_BYTES_MAX: usize = 64 << 10;

/// The client's side of a connection.
#[derive(Default)]
pub(super) struct Smtp {
    pending: Vec<u8>,
    state: State,
    transaction: Transaction,
    mail: Option<Parts>,
    /// The transaction for a record.
    told: Mail,
    /// Whether the part that is open has a name, the last of the files.
    is_named: bool,
    count: u64,
}

#[derive(Default)]
enum State {
    #[default]
    Command,
    /// Lines up to a dot.
    Data,
    /// Bytes of a chunk, and whether it is the last.
    Chunk(u64, bool),
    /// A handshake comes next, or another command if none was wanted.
    Secured,
}

impl Smtp {
    /// Takes bytes of the client.
    pub fn feed(&mut self, bytes: &[u8], ways: &mut Ways<'_, '_>) {
        self.pending.extend_from_slice(bytes);
        while self.step(ways) {}
    }

    /// The beginning of the handshake that follows STARTTLS, once.
    pub fn handshake(&mut self) -> Option<Vec<u8>> {
        (matches!(self.state, State::Secured) && !self.pending.is_empty()).then(|| mem::take(&mut self.pending))
    }

    /// Bytes that it holds.
    pub fn held_bytes(&self) -> usize {
        self.pending.len() + self.transaction.held_bytes()
    }

    /// Ends the connection.
    pub fn finish(&mut self, ways: &mut Ways<'_, '_>) {
        self.end_mail(ways);
        self.end(ways);
    }

    fn step(&mut self, ways: &mut Ways<'_, '_>) -> bool {
        if let State::Chunk(left, is_last) = &mut self.state {
            let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(self.pending.len());
            *left = left.saturating_sub(taken as u64);
            let (is_over, is_last) = (*left == 0, *is_last);
            let bytes: Vec<u8> = self.pending.drain(..taken).collect();
            self.content(&bytes, ways);
            if is_over {
                self.state = State::Command;
                if is_last {
                    self.end_mail(ways);
                    self.end(ways);
                }
            }
            return is_over || taken > 0;
        }
        if matches!(self.state, State::Secured) {
            if self.pending.first().is_none_or(|first| *first == HANDSHAKE) {
                return false;
            }
            self.state = State::Command;
        }
        let end = match memchr::memchr(b'\n', &self.pending) {
            Some(at) => at + 1,
            None if self.pending.len() > LINE_BYTES_MAX => self.pending.len(),
            None => return false,
        };
        let line: Vec<u8> = self.pending.drain(..end).collect();
        match self.state {
            State::Data if line.trim_ascii_end() == b"." => {
                self.state = State::Command;
                self.end_mail(ways);
                self.end(ways);
            }
            State::Data => self.content(line.strip_prefix(b".").unwrap_or(&line), ways),
            _ => self.command(line.trim_ascii(), ways),
        }
        true
    }

    fn command(&mut self, line: &[u8], ways: &mut Ways<'_, '_>) {
        let upper = line.to_ascii_uppercase();
        let behind = |length: usize| line.get(length..).unwrap_or_default().trim_ascii();
        let greets = upper.starts_with(b"HELO ") || upper.starts_with(b"EHLO ");
        if greets && !self.told.sender.is_empty() {
            // A greeting ends what was begun (RFC 5321, section 4.1.4).
            self.mail = None;
            self.end(ways);
        }
        let rules = ways.desk.rules;
        let mut fill = |buffer, bytes: &[u8]| self.transaction.fill(rules, Direction::ToServer, buffer, bytes);
        if greets {
            fill(Buffer::SmtpHelo, behind(5));
            self.told.hello = behind(5).into();
        } else if upper.starts_with(b"MAIL FROM:") {
            fill(Buffer::SmtpMailFrom, path(behind(10)));
            self.told.sender = path(behind(10)).into();
        } else if upper.starts_with(b"RCPT TO:") {
            fill(Buffer::SmtpRcptTo, path(behind(8)));
            push(&mut self.told.recipients, path(behind(8)).into());
        } else if upper == b"DATA" {
            (self.state, self.mail) = (State::Data, Some(Parts::of_mail()));
        } else if upper.starts_with(b"BDAT ") {
            let mut words = line[5..].split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
            let size = words.next().and_then(|word| std::str::from_utf8(word).ok()?.parse().ok());
            let is_last = words.next().is_some_and(|word| word.eq_ignore_ascii_case(b"LAST"));
            self.mail.get_or_insert_with(Parts::of_mail);
            self.state = size.map_or(State::Command, |size| State::Chunk(size, is_last));
            return;
        } else if upper == b"RSET" {
            self.mail = None;
            self.end(ways);
            return;
        } else if upper == b"STARTTLS" {
            self.state = State::Secured;
        }
        ways.flow.inspect(&mut self.transaction, Direction::ToServer, ways.desk);
    }

    fn content(&mut self, bytes: &[u8], ways: &mut Ways<'_, '_>) {
        let Some(mut mail) = self.mail.take() else { return };
        mail.feed(bytes, &mut |event| self.part(&event, ways));
        self.mail = Some(mail);
    }

    fn end_mail(&mut self, ways: &mut Ways<'_, '_>) {
        if let Some(mut mail) = self.mail.take() {
            self.told.fields.get_or_insert_default();
            mail.finish(&mut |event| self.part(&event, ways));
        }
    }

    /// Hands a piece of a mail to the rules, and keeps what records tell of it.
    fn part(&mut self, event: &Event<'_>, ways: &mut Ways<'_, '_>) {
        match *event {
            Event::Field(name, value) => push(self.told.fields.get_or_insert_default(), (name.into(), value.into())),
            Event::Begin(name) => {
                self.is_named = name.map(|name| push(&mut self.told.files, (name.into(), 0))).is_some()
            }
            Event::Data(bytes) => {
                let file = self.told.files.last_mut().filter(|_| self.is_named);
                file.into_iter().for_each(|(_, sum)| *sum = sum.saturating_add(bytes.len() as u64));
            }
            Event::End => self.is_named = false,
        }
        part(event, &mut self.transaction, ways);
    }

    /// Ends a transaction; the next has the same client.
    fn end(&mut self, ways: &mut Ways<'_, '_>) {
        ways.flow.end(&mut self.transaction, Direction::ToServer, ways.desk);
        ways.flow.end(&mut self.transaction, Direction::ToClient, ways.desk);
        self.transaction = Transaction::new();
        let told = mem::take(&mut self.told);
        self.told.hello.clone_from(&told.hello);
        if told.sender.is_empty() {
            return;
        }
        let told = Arc::new(told);
        for (name, bytes) in &told.files {
            let of = Message::Smtp(told.clone());
            let file = File { name: Some(name.clone()), bytes: *bytes, is_to_client: false, is_whole: true, of };
            ways.log.tell(self.count, Content::File(file));
        }
        ways.log.tell(self.count, Content::Smtp(told));
        self.count = self.count.wrapping_add(1);
    }
}

/// Adds an item, as long as there are not too many.
fn push<T>(items: &mut Vec<T>, item: T) {
    if items.len() < TOLD_MAX {
        items.push(item);
    }
}

/// The path of an envelope, without parameters.
fn path(value: &[u8]) -> &[u8] {
    match value.iter().position(|&byte| byte == b'>') {
        Some(end) => &value[..=end],
        None => value.split(|&byte| byte == b' ').next().unwrap_or(value),
    }
}

/// The buffer of a field of a mail.
pub(in crate::ids) fn field_buffer(name: &[u8]) -> Option<Buffer> {
    Some(match name.to_ascii_lowercase().as_slice() {
        b"from" => Buffer::EmailFrom,
        b"to" => Buffer::EmailTo,
        b"cc" => Buffer::EmailCc,
        b"subject" => Buffer::EmailSubject,
        b"date" => Buffer::EmailDate,
        b"message-id" => Buffer::EmailMessageId,
        b"x-mailer" => Buffer::EmailXMailer,
        b"received" => Buffer::EmailReceived,
        _ => return None,
    })
}

/// Hands parts of a mail to the rules.
fn part(event: &Event<'_>, transaction: &mut Transaction, ways: &mut Ways<'_, '_>) {
    let direction = Direction::ToServer;
    let rules = ways.desk.rules;
    match *event {
        Event::Field(name, value) => {
            if let Some(buffer) = field_buffer(name) {
                transaction.fill(rules, direction, buffer, value);
            }
        }
        Event::Begin(name) => {
            if let Some(name) = name {
                transaction.fill(rules, direction, Buffer::FileName, name);
            }
            ways.flow.inspect(transaction, direction, ways.desk);
        }
        Event::Data(bytes) => ways.flow.feed(transaction, direction, Buffer::FileData, bytes, ways.desk),
        Event::End => ways.flow.end_buffer(transaction, direction, Buffer::FileData, ways.desk),
    }
}
