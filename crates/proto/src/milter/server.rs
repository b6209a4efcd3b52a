//! The filter's half: what a mail server tells, one event at a time, and the decision.
//!
//! ```text
//!  OPTNEG ─► Session ─ CONNECT HELO ─ MAIL RCPT+ DATA ─ HEADER+ EOH ─ BODY+ ─ BODYEOB ─► Deciding ─ decision ─► Session
//!                       (ABORT ends a message, QUIT the connection; QUIT_NC begins anew on the same connection)
//! ```
//!
//! Bounds: those of [`PacketReader`]; names and paths of 1,024 bytes.

use alloc::string::String;
use alloc::vec::Vec;
use core::net::IpAddr;

use super::packet::{Changes, Packet, PacketReader, write};
use crate::smtp::Reply;

/// The newest version spoken.
const VERSION: u32 = 6;

/// Modifications asked for: all that [`Server`] can do to a message.
const WANTED: u32 = Changes::ADD_FIELDS | Changes::BODY | Changes::FIELDS | Changes::QUARANTINE;

/// Protocol flags: what need not be told (DATA and unknown commands), and what is not answered.
mod flags {
    pub const NO_UNKNOWN: u32 = 0x100;
    pub const NO_DATA: u32 = 0x200;
    pub const SILENT_HEADER: u32 = 0x80;
    pub const SILENT_CONNECT: u32 = 0x1000;
    pub const SILENT_HELO: u32 = 0x2000;
    pub const SILENT_MAIL: u32 = 0x4000;
    pub const SILENT_RCPT: u32 = 0x8000;
    pub const SILENT_DATA: u32 = 0x1_0000;
    pub const SILENT_UNKNOWN: u32 = 0x2_0000;
    pub const SILENT_EOH: u32 = 0x4_0000;
    pub const SILENT_BODY: u32 = 0x8_0000;
    /// The blank behind a field's colon is told too.
    pub const LEADING_SPACE: u32 = 0x10_0000;
    pub const WANTED: u32 = NO_UNKNOWN
        | NO_DATA
        | SILENT_HEADER
        | SILENT_CONNECT
        | SILENT_HELO
        | SILENT_MAIL
        | SILENT_RCPT
        | SILENT_DATA
        | SILENT_UNKNOWN
        | SILENT_EOH
        | SILENT_BODY
        | LEADING_SPACE;
}

/// The longest name or path that is kept.
const TEXT_BYTES_MAX: usize = 1_024;

/// Data of one packet of a new body.
const BODY_CHUNK_BYTES: usize = 65_535;

/// Events of the mail server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerEvent {
    /// Nothing to tell.
    Idle,
    /// A client has connected, from this address if it has one.
    Connect(Option<IpAddr>),
    /// Name in the client's HELO or EHLO.
    Hello(String),
    /// A message begins, from this path, without its brackets.
    Mail(String),
    /// It is for this path, without its brackets. The server may still refuse it.
    Recipient(String),
    /// A field of the header as it stands in the message, or the empty line behind the last.
    Header(Vec<u8>),
    /// The last `.0` of the bytes taken are of the body.
    Body(usize),
    /// The last of the body, which came with its end.
    LastBody(Vec<u8>),
    /// The message is complete: to be decided, by [`Server::decide`] at last.
    End,
    /// The message will not come.
    Abort,
    /// The session is over.
    Closed,
    /// A violation of the protocol: the connection is of no more use.
    Broken(&'static str),
}

/// Decision about a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// The server goes on with it, changed as was said before.
    Accept,
    /// The client is told this; a reply that says yes is none.
    Reply(Reply),
}

/// The filter's half of a connection.
#[derive(Debug, Clone, Default)]
pub struct Server {
    packets: PacketReader,
    state: State,
    protocol: u32,
    changes: Changes,
    queue_id: Option<String>,
    outbox: Vec<u8>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    /// Nothing has been agreed.
    #[default]
    Begun,
    /// Between and within messages.
    Session,
    /// The message is complete, which has not been told.
    Ending,
    /// The host has not decided.
    Deciding,
    /// No more.
    Closed,
}

/// Calling order: [`step`](Server::step) with what came; at [`ServerEvent::End`] say what changes and
/// [`decide`](Server::decide); send the [`outbox`](Server::outbox).
impl Server {
    /// A connection that begins.
    pub fn new() -> Server {
        Server::default()
    }

    /// Bytes to send.
    pub fn outbox(&self) -> &[u8] {
        &self.outbox
    }

    /// All of the outbox has been sent.
    pub fn sent(&mut self) {
        self.outbox.clear();
        self.outbox.shrink_to(512);
    }

    /// Negotiated modifications of a message.
    pub fn changes(&self) -> Changes {
        self.changes
    }

    /// The name that the mail server has given the message, if it told.
    pub fn queue_id(&self) -> Option<&str> {
        self.queue_id.as_deref()
    }

    /// Takes a prefix of `input` and tells one thing; while the host has to decide, nothing is taken.
    pub fn step(&mut self, input: &[u8]) -> (usize, ServerEvent) {
        match self.state {
            State::Closed => return (0, ServerEvent::Closed),
            State::Deciding => return (0, ServerEvent::Idle),
            State::Ending => return (0, self.ends()),
            State::Begun | State::Session => {}
        }
        let (taken, packet) = self.packets.take(input);
        let event = match packet {
            Packet::Unfinished => ServerEvent::Idle,
            Packet::Broken(reason) => self.broken(reason),
            Packet::Body { .. } if self.state == State::Begun => self.broken("a body before the beginning"),
            Packet::Body { bytes, last } => {
                if last {
                    self.go_on(flags::SILENT_BODY);
                }
                ServerEvent::Body(bytes)
            }
            Packet::Whole(b'O', data) => self.negotiate(&data),
            Packet::Whole(..) if self.state == State::Begun => self.broken("a packet before the beginning"),
            Packet::Whole(letter, data) => self.told(letter, &data),
        };
        (taken, event)
    }

    fn broken(&mut self, reason: &'static str) -> ServerEvent {
        self.state = State::Closed;
        ServerEvent::Broken(reason)
    }

    fn negotiate(&mut self, data: &[u8]) -> ServerEvent {
        let number = |at: usize| Some(u32::from_be_bytes(data.get(at..at + 4)?.try_into().ok()?));
        let (Some(version), Some(actions), Some(protocol)) = (number(0), number(4), number(8)) else {
            return self.broken("no agreement");
        };
        if version < 2 {
            return self.broken("a version of another time");
        }
        self.changes = Changes(actions & WANTED);
        self.protocol = protocol & flags::WANTED;
        let agreed = [version.min(VERSION), self.changes.0, self.protocol].map(u32::to_be_bytes);
        write(&mut self.outbox, b'O', &[&agreed[0], &agreed[1], &agreed[2]]);
        self.state = State::Session;
        ServerEvent::Idle
    }

    /// Answers what needs an answer.
    fn go_on(&mut self, silent: u32) {
        if self.protocol & silent == 0 {
            write(&mut self.outbox, b'c', &[]);
        }
    }

    fn told(&mut self, letter: u8, data: &[u8]) -> ServerEvent {
        let mut words = data.split(|&byte| byte == 0);
        match letter {
            b'D' => {
                self.macros(data);
                ServerEvent::Idle
            }
            b'C' => {
                self.go_on(flags::SILENT_CONNECT);
                ServerEvent::Connect(peer(data))
            }
            b'H' => {
                self.go_on(flags::SILENT_HELO);
                ServerEvent::Hello(text(words.next().unwrap_or_default()))
            }
            b'M' => {
                self.go_on(flags::SILENT_MAIL);
                ServerEvent::Mail(path(words.next().unwrap_or_default()))
            }
            b'R' => {
                self.go_on(flags::SILENT_RCPT);
                ServerEvent::Recipient(path(words.next().unwrap_or_default()))
            }
            b'T' => self.passed_over(flags::SILENT_DATA),
            b'U' => self.passed_over(flags::SILENT_UNKNOWN),
            b'L' => {
                self.go_on(flags::SILENT_HEADER);
                let name = words.next().unwrap_or_default();
                // A NUL within a value is one of the message.
                let value = data.get(name.len() + 1..).unwrap_or_default();
                ServerEvent::Header(self.field(name, value.strip_suffix(b"\0").unwrap_or(value)))
            }
            b'N' => {
                self.go_on(flags::SILENT_EOH);
                ServerEvent::Header(b"\r\n".to_vec())
            }
            b'E' if data.is_empty() => self.ends(),
            b'E' => {
                self.state = State::Ending;
                ServerEvent::LastBody(data.into())
            }
            b'A' => ServerEvent::Abort,
            b'K' => ServerEvent::Abort,
            b'Q' => {
                self.state = State::Closed;
                ServerEvent::Closed
            }
            _ => self.broken("an unknown packet"),
        }
    }

    fn ends(&mut self) -> ServerEvent {
        self.state = State::Deciding;
        ServerEvent::End
    }

    fn passed_over(&mut self, silent: u32) -> ServerEvent {
        self.go_on(silent);
        ServerEvent::Idle
    }

    /// Macros come before what they belong to; the message's name is one of them.
    fn macros(&mut self, data: &[u8]) {
        let Some((_, pairs)) = data.split_first() else { return };
        let mut words = pairs.split(|&byte| byte == 0);
        while let (Some(name), Some(value)) = (words.next(), words.next()) {
            if matches!(name, b"i" | b"{i}") {
                self.queue_id = Some(text(value));
            }
        }
    }

    /// A field as it stands in the message; within a value lines end by LF alone.
    fn field(&self, name: &[u8], value: &[u8]) -> Vec<u8> {
        let mut field = Vec::with_capacity(name.len() + value.len() + 8);
        field.extend_from_slice(name);
        field.push(b':');
        if self.protocol & flags::LEADING_SPACE == 0 {
            field.push(b' ');
        }
        for (index, line) in value.split(|&byte| byte == b'\n').enumerate() {
            if index > 0 {
                field.extend_from_slice(b"\r\n");
            }
            field.extend_from_slice(line.strip_suffix(b"\r").unwrap_or(line));
        }
        field.extend_from_slice(b"\r\n");
        field
    }
}

/// Decisions.
impl Server {
    /// Adds a field to the header. The value's lines end by LF.
    pub fn add_field(&mut self, name: &str, value: &str) {
        debug_assert!(self.changes.may_add_fields(), "not agreed on");
        let space = self.space();
        write(&mut self.outbox, b'h', &[name.as_bytes(), b"\0", space, value.as_bytes(), b"\0"]);
    }

    /// Adds a field at a place of the header, counted from 0, as the mail server counts. The value's lines end by LF.
    pub fn insert_field(&mut self, place: u32, name: &str, value: &str) {
        debug_assert!(self.changes.may_add_fields(), "not agreed on");
        let (place, space) = (place.to_be_bytes(), self.space());
        write(&mut self.outbox, b'i', &[&place, name.as_bytes(), b"\0", space, value.as_bytes(), b"\0"]);
    }

    /// Bytes between a colon and a value: a blank where the peer sends leading space and expects it back.
    fn space(&self) -> &'static [u8] {
        if self.protocol & flags::LEADING_SPACE == 0 { b"" } else { b" " }
    }

    /// Changes the `index`th field of this name, counted from 1, or deletes it: by an empty value.
    pub fn change_field(&mut self, index: u32, name: &str, value: &[u8]) {
        debug_assert!(self.changes.may_change_fields(), "not agreed on");
        let index = index.to_be_bytes();
        let space = if value.is_empty() { b"" } else { self.space() };
        write(&mut self.outbox, b'm', &[&index, name.as_bytes(), b"\0", space, value, b"\0"]);
    }

    /// Appends to the new body, which replaces the old one. The first time begins it.
    pub fn replace_body(&mut self, body: &[u8]) {
        debug_assert!(self.changes.may_replace_body(), "not agreed on");
        body.chunks(BODY_CHUNK_BYTES).for_each(|chunk| write(&mut self.outbox, b'b', &[chunk]));
    }

    /// The server takes the message and holds it.
    pub fn quarantine(&mut self, reason: &str) {
        debug_assert!(self.changes.may_quarantine(), "not agreed on");
        write(&mut self.outbox, b'q', &[reason.as_bytes(), b"\0"]);
    }

    /// It takes longer: the server is to wait.
    pub fn progress(&mut self) {
        write(&mut self.outbox, b'p', &[]);
    }

    /// Sends the decision about the message.
    pub fn decide(&mut self, decision: &Decision) {
        match decision {
            Decision::Accept => write(&mut self.outbox, b'a', &[]),
            Decision::Reply(reply) => {
                let mut line = Vec::new();
                reply.write(&mut line);
                // Several lines have CR LF between them; a `%` would be read as a format.
                let line = line.trim_ascii_end().split(|&byte| byte == b'%').collect::<Vec<_>>().join(&b"%%"[..]);
                write(&mut self.outbox, b'y', &[&line, b"\0"]);
            }
        }
        self.queue_id = None;
        self.state = State::Session;
    }
}

/// The address of a client: name, NUL, family, port, address, NUL.
fn peer(data: &[u8]) -> Option<IpAddr> {
    let behind_name = data.iter().position(|&byte| byte == 0)? + 1;
    let (&family, rest) = data.get(behind_name..)?.split_first()?;
    if !matches!(family, b'4' | b'6') {
        return None;
    }
    let address = rest.get(2..)?.split(|&byte| byte == 0).next()?;
    let address = core::str::from_utf8(address).ok()?;
    address.strip_prefix("IPv6:").unwrap_or(address).parse().ok()
}

fn path(bytes: &[u8]) -> String {
    let path = text(bytes);
    match path.strip_prefix('<').and_then(|path| path.strip_suffix('>')) {
        Some(bare) => bare.into(),
        None => path,
    }
}

fn text(bytes: &[u8]) -> String {
    let bytes = &bytes[..bytes.len().min(TEXT_BYTES_MAX)];
    String::from_utf8_lossy(bytes).chars().filter(|c| !c.is_control()).collect()
}
