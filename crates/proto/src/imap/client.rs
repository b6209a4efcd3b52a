//! The half that hears a server: its responses, framed and told piece by piece.
//!
//! ```text
//!  Start ─ "+" or our tag ──────────────────────► Line ─► Continue, Status
//!    └ "*" ─► Untagged ─ OK NO BAD BYE PREAUTH ─► Line ─► Status
//!                 ├ CAPABILITY ─────────────────► Line ─► Capability
//!                 ├ n FETCH ────────────────────► fetch items
//!                 ├ what is known ──────────────► Data    what is not ─► the same, and nothing is told
//! ```
//!
//! Of a FETCH each item is told by its name, so that content is never mistaken for anything else. Nothing is collected
//! but lines of a status, names, sizes and dates: the rest is told as runs of the input. One command is in flight at a time, under a tag
//! of our own, and a tagged response to anything else is a fault.
//!
//! Bounds: a line of [`LINE_BYTES_MAX`], a name of [`NAME_BYTES_MAX`], content in quotes of [`QUOTED_BYTES_MAX`], the rest
//! of a response without content [`RESPONSE_BYTES_MAX`], though nothing of it is kept.

mod items;

use alloc::vec::Vec;

use self::items::Short;
use super::command::{Command, word};
use super::event::Message;
use super::event::{ClientEvent, Fact, Kind, Status};
use super::request::Request;
use super::run::{Run, Stop};
use super::section::{Section, number};
use crate::line::{Line, LineBuffer};

/// Bytes of a status, which may list many messages (`COPYUID`).
const LINE_BYTES_MAX: usize = 256 << 10;

/// Bytes of a first word.
const WORD_BYTES_MAX: usize = 128;

/// Bytes of the name of a FETCH item, which may list the fields that were asked for.
const NAME_BYTES_MAX: usize = 16 << 10;

/// Bytes of a size or a date.
const FACT_BYTES_MAX: usize = 64;

/// Bytes of content in quotes; more comes as a literal.
const QUOTED_BYTES_MAX: usize = 64 << 10;

/// Bytes of a response, content left out.
const RESPONSE_BYTES_MAX: u64 = 64 << 20;

/// Responses that pass as they stand.
const KNOWN: [&str; 20] = [
    "ACL",
    "ENABLED",
    "ESEARCH",
    "FLAGS",
    "ID",
    "LIST",
    "LISTRIGHTS",
    "LSUB",
    "MYRIGHTS",
    "NAMESPACE",
    "QUOTA",
    "QUOTAROOT",
    "SEARCH",
    "SORT",
    "STATUS",
    "THREAD",
    "VANISHED",
    "XLIST",
    "EXISTS",
    "RECENT",
];

/// The half towards a server.
#[derive(Debug, Clone)]
pub struct Client {
    state: State,
    run: Run,
    line: LineBuffer,
    /// A word, a name or quoted content that is being collected.
    word: Vec<u8>,
    /// Bytes of the response under way, without content.
    bytes: u64,
    request: Request,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    /// The first word of a response.
    Start,
    /// The word behind `*`.
    Untagged,
    /// The word behind a number.
    Numbered(u32),
    /// The rest of a line.
    Line(LineOf),
    /// A response as it stands; whether it passes.
    Data(bool),
    /// The line feed at its end.
    LineEnd { passes: bool, after_cr: bool },
    /// The parenthesis in front of the items of a FETCH.
    Open,
    /// An item's name.
    Name { brackets: u32, quoted: bool },
    /// An item's value; whether it passes.
    Value(bool),
    /// The value of UID.
    Uid,
    /// A size or a date; whether in quotes.
    Fact { fact: Fact, quoted: bool },
    /// The value of an item that is short.
    Short(Short),
    /// The value of an item with content, up to where the content begins.
    Announce(Section),
    /// Content in quotes.
    Quoted { section: Section, escaped: bool },
    /// Announced content that waits to be told.
    Unquoted,
    /// So many bytes of content.
    Content(u64),
    /// Separator after an item.
    Between,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineOf {
    Continue,
    Status { tagged: bool, kind: Option<Kind> },
    Capability,
}

/// Calling order: [`command`](Client::command); [`step`](Client::step) with what came, up to the tagged status; send the
/// [`outbox`](Client::outbox) meanwhile.
impl Client {
    /// A session that begins; the greeting is due.
    pub fn new() -> Client {
        Client {
            state: State::Start,
            run: Run::default(),
            line: LineBuffer::default(),
            word: Vec::new(),
            bytes: 0,
            request: Request::default(),
        }
    }

    /// Bytes to send.
    pub fn outbox(&self) -> &[u8] {
        self.request.outbox()
    }

    /// All of the outbox has been sent.
    pub fn sent(&mut self) {
        self.request.sent();
    }

    /// Whether a command is in flight.
    pub fn is_waiting(&self) -> bool {
        self.request.is_in_flight()
    }

    /// Whether nothing of a response has come.
    pub fn is_between(&self) -> bool {
        self.state == State::Start && self.word.is_empty()
    }

    /// Sends a command.
    pub fn command(&mut self, command: &Command) {
        self.request.command(command);
    }

    /// Sends an APPEND up to its first message; [`ClientEvent::Continue`] asks for that.
    pub fn append(&mut self, command: &Command, message: Message) {
        self.request.append(command, message);
    }

    /// Text in front of the next message of an APPEND, and its announcement.
    pub fn append_more(&mut self, text: &[u8], message: Message) {
        self.request.append_more(text, message);
    }

    /// Sends what is in its place and in the right form: content, a line of an exchange.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.request.bytes(bytes);
    }

    /// Takes a prefix of `input` and tells one thing.
    pub fn step(&mut self, input: &[u8]) -> (usize, ClientEvent) {
        let (taken, event) = match self.take(input) {
            Ok(told) => told,
            Err(reason) => (0, ClientEvent::Broken(reason)),
        };
        if event != ClientEvent::Content {
            self.bytes += taken as u64;
        }
        if self.bytes > RESPONSE_BYTES_MAX {
            return (taken, ClientEvent::Broken("a response is too long"));
        }
        if self.state == State::Start && self.word.is_empty() {
            self.bytes = 0;
        }
        (taken, event)
    }

    fn take(&mut self, input: &[u8]) -> Result<(usize, ClientEvent), &'static str> {
        match core::mem::replace(&mut self.state, State::Start) {
            State::Line(of) => self.rest_of_line(of, input),
            State::Data(passes) => self.data(passes, input),
            State::Value(passes) => self.value(passes, input),
            State::Content(left) => {
                let taken = usize::try_from(left).unwrap_or(usize::MAX).min(input.len());
                let left = left - taken as u64;
                self.state = if left == 0 { State::Between } else { State::Content(left) };
                Ok((taken, if taken == 0 { ClientEvent::Idle } else { ClientEvent::Content }))
            }
            State::Unquoted => {
                self.state = State::Between;
                Ok((0, ClientEvent::Quoted(core::mem::take(&mut self.word))))
            }
            state => {
                self.state = state;
                self.bytewise(input)
            }
        }
    }

    /// Goes on as long as each byte is looked at and there is nothing to tell.
    fn bytewise(&mut self, input: &[u8]) -> Result<(usize, ClientEvent), &'static str> {
        let mut taken = 0;
        while let Some(&byte) = input.get(taken)
            && !matches!(self.state, State::Line(_) | State::Data(_) | State::Value(_))
        {
            let state = core::mem::replace(&mut self.state, State::Start);
            taken += 1;
            let event = self.byte(state, byte)?;
            if event != ClientEvent::Idle {
                return Ok((taken, event));
            }
        }
        Ok((taken, ClientEvent::Idle))
    }

    /// The states that look at each byte.
    fn byte(&mut self, state: State, byte: u8) -> Result<ClientEvent, &'static str> {
        match (state, byte) {
            (State::Start | State::Untagged | State::Numbered(_), 0) => Err("a NUL"),
            (state @ (State::Start | State::Untagged | State::Numbered(_)), b' ' | b'\r' | b'\n') => {
                self.first_word(&state, byte)
            }
            (state @ (State::Start | State::Untagged | State::Numbered(_)), byte) => {
                self.collect(byte, WORD_BYTES_MAX)?;
                self.go(state)
            }
            (State::LineEnd { passes, after_cr: false }, b'\r') => self.go(State::LineEnd { passes, after_cr: true }),
            (State::LineEnd { passes, .. }, b'\n') => Ok(if passes { ClientEvent::End } else { ClientEvent::Idle }),
            (State::Open, b'(') => self.go(State::Name { brackets: 0, quoted: false }),
            (State::Name { brackets: 0, .. }, b' ') => self.named(),
            (State::Name { brackets, quoted }, byte) => {
                if matches!(byte, b'\r' | b'\n' | 0 | b'{') || brackets == 0 && byte == b')' {
                    return Err("not an item of a FETCH");
                }
                self.collect(byte, NAME_BYTES_MAX)?;
                let quoted = quoted != (byte == b'"');
                let brackets = match byte {
                    b'[' if !quoted => brackets + 1,
                    b']' if !quoted => brackets.saturating_sub(1),
                    _ => brackets,
                };
                self.go(State::Name { brackets, quoted })
            }
            (State::Uid, b' ' | b')') => {
                let uid = number(&core::mem::take(&mut self.word)).and_then(|uid| u32::try_from(uid).ok());
                self.between(byte)?;
                Ok(ClientEvent::Uid(uid.ok_or("not a UID")?))
            }
            (State::Uid, byte) => {
                self.collect(byte, 10)?;
                self.go(State::Uid)
            }
            (State::Fact { fact, quoted: false }, b' ' | b')') => {
                if self.word.is_empty() {
                    return Err("not a size or a date");
                }
                self.between(byte)?;
                Ok(ClientEvent::Fact(fact, core::mem::take(&mut self.word)))
            }
            (State::Fact { fact, quoted }, byte) => {
                if !matches!(byte, b' '..=b'~') || matches!(byte, b'(' | b'{' | b'\\') {
                    return Err("not a size or a date");
                }
                self.collect(byte, FACT_BYTES_MAX)?;
                self.go(State::Fact { fact, quoted: quoted != (byte == b'"') })
            }
            (State::Short(short), byte) => self.short(short, byte),
            (State::Announce(section), byte) => self.announced(section, byte),
            (State::Quoted { section, escaped }, byte) => self.quoted(section, escaped, byte),
            (State::Between, byte) => {
                self.between(byte)?;
                Ok(ClientEvent::Idle)
            }
            _ => Err("not a response"),
        }
    }

    fn go(&mut self, state: State) -> Result<ClientEvent, &'static str> {
        self.state = state;
        Ok(ClientEvent::Idle)
    }

    fn collect(&mut self, byte: u8, bytes_max: usize) -> Result<(), &'static str> {
        self.word.push(byte);
        if self.word.len() > bytes_max { Err("a word is too long") } else { Ok(()) }
    }

    fn between(&mut self, byte: u8) -> Result<(), &'static str> {
        self.state = match byte {
            b' ' => State::Name { brackets: 0, quoted: false },
            b')' => State::LineEnd { passes: true, after_cr: false },
            _ => return Err("not a FETCH"),
        };
        Ok(())
    }

    /// A first word has ended with `end`.
    fn first_word(&mut self, state: &State, end: u8) -> Result<ClientEvent, &'static str> {
        if end == b'\n' {
            return Err("a bare line feed");
        }
        let word = core::mem::take(&mut self.word);
        let upper = word.to_ascii_uppercase();
        let known = |name: &&str| name.as_bytes() == upper;
        let next = match state {
            State::Start if end != b' ' && word != b"+" => return Err("not a response"),
            State::Start if word == b"*" => State::Untagged,
            State::Start if word == b"+" && !self.request.is_in_flight() => return Err("it goes on with nothing"),
            State::Start if word == b"+" => State::Line(LineOf::Continue),
            State::Start => {
                if !self.request.is_answered_under(&word) {
                    return Err("unsolicited answer");
                }
                State::Line(LineOf::Status { tagged: true, kind: None })
            }
            State::Untagged if word.first().is_some_and(u8::is_ascii_digit) => {
                let number = number(&word).and_then(|number| u32::try_from(number).ok());
                State::Numbered(number.filter(|_| end == b' ').ok_or("not a number")?)
            }
            State::Untagged if upper == b"CAPABILITY" => State::Line(LineOf::Capability),
            State::Untagged if Kind::parse(&word).is_some() => {
                State::Line(LineOf::Status { tagged: false, kind: Kind::parse(&word) })
            }
            State::Numbered(number) if upper == b"FETCH" && end == b' ' => {
                self.state = State::Open;
                return Ok(ClientEvent::Fetch(*number));
            }
            State::Numbered(number) if [b"EXISTS".as_slice(), b"RECENT", b"EXPUNGE"].contains(&upper.as_slice()) => {
                self.begin_data(end, true);
                return Ok(ClientEvent::Data([b"* ", alloc::format!("{number} ").as_bytes(), &upper].concat()));
            }
            State::Untagged if KNOWN.iter().any(known) => {
                self.begin_data(end, true);
                let blank: &[u8] = if end == b' ' { b" " } else { b"" };
                return Ok(ClientEvent::Data([b"* ", upper.as_slice(), blank].concat()));
            }
            _ => {
                self.begin_data(end, false);
                return Ok(ClientEvent::Idle);
            }
        };
        if end == b' ' || matches!(next, State::Line(_)) { self.go(next) } else { Err("not a response") }
    }

    /// A response that is told or dropped as it stands; its first word ended with `end`.
    fn begin_data(&mut self, end: u8, passes: bool) {
        self.run = Run::default();
        self.state = if end == b' ' { State::Data(passes) } else { State::LineEnd { passes, after_cr: true } };
    }

    fn rest_of_line(&mut self, of: LineOf, input: &[u8]) -> Result<(usize, ClientEvent), &'static str> {
        let (taken, line) = self.line.take(input, LINE_BYTES_MAX);
        match line {
            Line::Unfinished if !self.line.is_overflowing() => {
                self.state = State::Line(of);
                Ok((taken, ClientEvent::Idle))
            }
            Line::Whole(line) if !line.contains(&0) && !line.contains(&b'\r') => Ok((taken, self.told(of, line)?)),
            Line::Whole(_) => Err("control characters in a line"),
            Line::Unfinished | Line::TooLong => Err("a line is too long"),
        }
    }

    /// A line is there.
    fn told(&mut self, of: LineOf, line: Vec<u8>) -> Result<ClientEvent, &'static str> {
        match of {
            LineOf::Continue if self.request.go_on()? => Ok(ClientEvent::Idle),
            LineOf::Continue => Ok(ClientEvent::Continue(harmless(line))),
            LineOf::Capability => {
                let words = line.split(|&byte| byte == b' ').filter(|word| !word.is_empty());
                Ok(ClientEvent::Capability(words.map(Vec::from).collect()))
            }
            LineOf::Status { tagged, kind } => {
                let (first, rest) = word(&line);
                let (kind, rest) = match kind {
                    Some(kind) => (kind, line.as_slice()),
                    None => (Kind::parse(first).ok_or("not a status")?, rest),
                };
                if tagged {
                    if !matches!(kind, Kind::Ok | Kind::No | Kind::Bad) {
                        return Err("not a status");
                    }
                    self.request.answered();
                }
                let (code, text) = match rest.strip_prefix(b"[") {
                    Some(inner) => {
                        let end = inner.iter().position(|&byte| byte == b']').ok_or("a code without an end")?;
                        (inner[..end].to_vec(), inner[end + 1..].trim_ascii_start().to_vec())
                    }
                    None => (Vec::new(), rest.to_vec()),
                };
                Ok(ClientEvent::Status(Status { tagged, kind, code: harmless(code), text: harmless(text) }))
            }
        }
    }

    fn data(&mut self, passes: bool, input: &[u8]) -> Result<(usize, ClientEvent), &'static str> {
        let pass = if self.run.is_in_literal() { ClientEvent::PassText } else { ClientEvent::Pass };
        let (taken, stop) = self.run.take(input, false)?;
        self.state =
            if stop == Stop::LineEnd { State::LineEnd { passes, after_cr: false } } else { State::Data(passes) };
        // To take nothing would say that there is nothing to do until more comes.
        if taken == 0 && stop != Stop::Input {
            return self.take(input);
        }
        Ok((taken, if passes && taken > 0 { pass } else { ClientEvent::Idle }))
    }
}

impl Default for Client {
    fn default() -> Client {
        Client::new()
    }
}

/// Text that no reader can take for the announcement of a literal.
fn harmless(mut text: Vec<u8>) -> Vec<u8> {
    if let Some(last) = text.last_mut()
        && *last == b'}'
    {
        *last = b')';
    }
    text
}
