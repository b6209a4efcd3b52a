//! The server half: what a client says, one event at a time.
//!
//! Which command may come when is a table ([`states`](super::states)). Each event that needs an answer waits for
//! [`Server::reply`]; nothing is taken meanwhile.
//!
//! Bounds: a command line of [`Config::line_bytes_max`]; recipients, errors and idle commands as configured. At rest it
//! is less than a kilobyte.

mod commands;
mod content;

use alloc::string::String;
use alloc::vec::Vec;

use stream::Window;

use super::auth::{self, Secret};
use super::dot::LineReader;
use super::states::Phase;
use super::{Extensions, MailFrom, Protocol, RcptTo, Reply};
use crate::line::LineBuffer;

/// Configuration of a server half.
#[derive(Debug, Clone)]
pub struct Config {
    /// Our name, in the greeting and the answer to EHLO.
    pub hostname: String,
    /// Protocol of the session.
    pub protocol: Protocol,
    /// Extensions offered in the answer to EHLO.
    pub extensions: Extensions,
    /// Whether no mail is taken before the stream is encrypted.
    pub tls_required: bool,
    /// Whether nobody may log in before the stream is encrypted.
    pub auth_needs_tls: bool,
    /// Recipients of one message; more are deferred by 452.
    pub recipients_max: u32,
    /// Wrong commands and refused mails, senders and recipients since the last mail that was taken; then the session
    /// ends by 421. Recipients that are refused beside one that was taken count for [`Config::refused_max`].
    pub errors_max: u32,
    /// Commands that bring no message nearer since the last whole message; then the session ends by 421.
    pub idle_commands_max: u32,
    /// Recipients that were refused beside others that were taken, since the last mail that was taken; then the session
    /// ends by 421.
    pub refused_max: u32,
    /// Commands that were deferred since the last mail that was taken; then the session ends by 421.
    pub deferred_max: u32,
    /// The longest command line, in bytes; [`AUTH_LINE_BYTES_MAX`](super::AUTH_LINE_BYTES_MAX) where AUTH is offered.
    pub line_bytes_max: usize,
    /// How long the next command may take (RFC 5321, section 4.5.3.2.7: five minutes).
    pub command_ms_max: u64,
    /// How long the next bytes of content may take.
    pub content_ms_max: u64,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            hostname: "localhost".into(),
            protocol: Protocol::Smtp,
            extensions: Extensions::default(),
            tls_required: false,
            auth_needs_tls: false,
            recipients_max: 1_000,
            errors_max: 20,
            idle_commands_max: 100,
            refused_max: 100,
            deferred_max: 1_000,
            line_bytes_max: 4_096,
            command_ms_max: 300_000,
            content_ms_max: 180_000,
        }
    }
}

/// Request of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerEvent {
    /// Nothing to tell. If no byte was taken either, there is nothing to do until more comes or the host answers.
    Idle,
    /// It has greeted and was answered; a transaction under way is void.
    Hello {
        /// Name that it gives itself.
        domain: String,
        /// Whether it said EHLO or LHLO.
        extended: bool,
    },
    /// Attributes of its own client; answered already.
    Xforward(Vec<(String, String)>),
    /// Its own client, which takes its place; answered already by a greeting. Earlier commands count no more.
    Xclient(Vec<(String, String)>),
    /// A message begins. To be answered.
    Mail(MailFrom),
    /// For this recipient. To be answered.
    Recipient(RcptTo),
    /// It wants to send the content. To be answered by [`Server::begin`] or a refusal.
    Data,
    /// Content was written to the window: plain lines that end in CRLF.
    Content,
    /// The content is complete. To be answered, in LMTP once for each recipient.
    End {
        /// Whether it held a bare CR or LF, which has become CRLF.
        bare_line_ends: bool,
    },
    /// The transaction is void; answered already.
    Reset,
    /// It wants TLS, and was told to begin. The host sends the outbox, throws away what else has come, for that was said
    /// by nobody knows whom, shakes hands, and says [`Server::secured`].
    StartTls,
    /// It wants to log in. To be answered by [`Server::challenge`], or by the reply to the whole exchange.
    Auth {
        /// A mechanism that is offered.
        mechanism: &'static str,
        /// Its first response, if it has sent one.
        initial: Option<Secret>,
    },
    /// Response to the challenge. To be answered likewise.
    Response(Secret),
    /// The session is over; what is in the outbox is the last.
    Closed,
}

/// The server's half of a session.
#[derive(Debug, Clone)]
pub struct Server {
    config: Config,
    state: State,
    line: LineBuffer,
    outbox: Vec<u8>,
    greeted: bool,
    /// It has greeted by EHLO or LHLO, and knows what is offered.
    extended: bool,
    authenticated: bool,
    tally: Tally,
    faults: Faults,
    transaction: Transaction,
    deadline: u64,
}

/// Behaviour of a client that no mail server shows. Nothing follows from it here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Faults {
    /// It sent more before it had the answer to a command that has to be the last of its group (RFC 2920, section 3.1),
    /// or that it could not know to be one of a group.
    pub pipelining: bool,
    /// It ended a command by LF alone.
    pub bare_newline: bool,
    /// It spoke another protocol, and the session was ended.
    pub foreign: bool,
}

/// Commands of a client that brought no mail to its end.
#[derive(Debug, Clone, Default)]
struct Tally {
    errors: u32,
    idle_commands: u32,
    refused: u32,
    deferred: u32,
}

/// The message under way.
#[derive(Debug, Clone, Default)]
struct Transaction {
    mail: bool,
    recipients: u32,
    /// The content has begun in chunks; the reader of their lines.
    chunks: Option<LineReader>,
    /// A chunk was refused: all others are, until the transaction ends.
    failed: bool,
}

#[derive(Debug, Clone)]
enum State {
    /// The next command.
    Command,
    /// The host has not answered an event.
    Asked(Question),
    /// Content up to the final dot.
    Data(LineReader),
    /// A chunk of content.
    Chunk { left: u64, last: bool },
    /// A chunk that nobody wants, and what is answered after it.
    Swallow { left: u64, reply: Option<Reply> },
    /// The host shakes hands.
    Handshake,
    /// The answer to a challenge.
    Response,
    /// No more.
    Closed,
}

#[derive(Debug, Clone)]
enum Question {
    Auth,
    Mail,
    Recipient,
    Data,
    /// The first chunk's size is known already.
    Chunk {
        bytes: u64,
        last: bool,
    },
    /// The replies still to come.
    End {
        left: u32,
    },
}

/// Calling order: [`step`](Server::step) with what came; answer what asks for an answer; send the
/// [`outbox`](Server::outbox) and say how much was [`sent`](Server::sent). When [`deadline`](Server::deadline) passes,
/// [`timeout`](Server::timeout).
impl Server {
    /// A session that begins, its greeting in the outbox.
    pub fn new(config: Config, now: u64) -> Server {
        let mut server = Server {
            state: State::Command,
            line: LineBuffer::default(),
            outbox: Vec::new(),
            greeted: false,
            extended: false,
            authenticated: false,
            tally: Tally::default(),
            faults: Faults::default(),
            transaction: Transaction::default(),
            deadline: now + config.command_ms_max,
            config,
        };
        server.greet();
        server
    }

    fn greet(&mut self) {
        let name = match self.config.protocol {
            Protocol::Smtp => "ESMTP",
            Protocol::Lmtp => "LMTP",
        };
        let greeting = alloc::format!("220 {} {name} Sluice\r\n", self.config.hostname);
        self.outbox.extend_from_slice(greeting.as_bytes());
    }

    /// Bytes to send.
    pub fn outbox(&self) -> &[u8] {
        &self.outbox
    }

    /// The first `count` bytes of the outbox have been sent. An empty outbox holds no memory: most sessions wait.
    pub fn sent(&mut self, count: usize) {
        self.outbox.drain(..count);
        if self.outbox.is_empty() {
            self.outbox = Vec::new();
        }
    }

    /// When the client's patience with us, and ours with it, ends.
    pub fn deadline(&self) -> u64 {
        self.deadline
    }

    /// Whether the session is over.
    pub fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed)
    }

    /// Phase of the session, as far as it matters to the next command.
    pub fn phase(&self) -> Phase {
        let Transaction { mail, recipients, chunks, failed } = &self.transaction;
        match (mail, self.greeted) {
            _ if self.is_closed() => Phase::Closed,
            (false, false) => Phase::Fresh,
            (false, true) => Phase::Ready,
            _ if *failed => Phase::Refused,
            _ if chunks.is_some() => Phase::Chunks,
            _ if *recipients > 0 => Phase::Recipients,
            _ => Phase::Sender,
        }
    }

    /// Whether it is between messages: nothing is lost when the session ends here.
    pub fn is_idle(&self) -> bool {
        matches!(self.state, State::Command) && !self.transaction.mail
    }

    /// The stream is encrypted from here on: everything said before is forgotten, and this is offered.
    pub fn secured(&mut self, now: u64, extensions: Extensions) {
        self.config.extensions = Extensions { starttls: false, ..extensions };
        (self.config.tls_required, self.config.auth_needs_tls) = (false, false);
        self.transaction = Transaction::default();
        (self.greeted, self.authenticated, self.line) = (false, false, LineBuffer::default());
        self.state = State::Command;
        self.deadline = now.saturating_add(self.config.command_ms_max);
    }

    /// The deadline has passed: the session ends.
    pub fn timeout(&mut self) {
        self.close(Reply::new(421, (4, 4, 2), "Timeout"));
    }

    /// We end the session, and everything has been said.
    pub fn hang_up(&mut self) {
        self.state = State::Closed;
    }

    /// We end the session, for the time being.
    pub fn close(&mut self, reply: Reply) {
        if !self.is_closed() {
            reply.write(&mut self.outbox);
            self.state = State::Closed;
        }
    }

    /// Takes a prefix of `input` and tells one thing. While an event waits for its answer nothing is taken.
    ///
    /// `content` is empty and has room for at least [`LineReader::ROOM_MIN`] bytes.
    pub fn step(&mut self, now: u64, input: &[u8], content: &mut Window) -> (usize, ServerEvent) {
        let was_extended = self.extended;
        let (taken, event) = match &mut self.state {
            State::Closed => return (0, ServerEvent::Closed),
            State::Asked(_) | State::Handshake => return (0, ServerEvent::Idle),
            State::Command => self.command(input),
            State::Response => self.response(input),
            State::Data(reader) => {
                let read = reader.read(input, content);
                let bare_line_ends = reader.has_bare_line_ends();
                if !content.is_empty() {
                    // The end, if it is here too, is told by the next step.
                    (read.taken, ServerEvent::Content)
                } else if read.end {
                    (read.taken, self.end(bare_line_ends))
                } else {
                    (read.taken, ServerEvent::Idle)
                }
            }
            State::Chunk { .. } => self.chunk(input, content),
            State::Swallow { .. } => self.swallow(input),
        };
        if taken < input.len() && self.has_to_wait(&event, was_extended) {
            self.faults.pipelining = true;
        }
        // A command has its time from its beginning: a byte now and then does not prolong it.
        let unfinished = matches!(self.state, State::Command | State::Response) && !self.line.is_empty();
        if taken > 0 && !unfinished {
            self.deadline = now.saturating_add(match self.state {
                State::Data(_) | State::Chunk { .. } => self.config.content_ms_max,
                _ => self.config.command_ms_max,
            });
        }
        (taken, event)
    }

    /// Whether nothing may follow the command of this event before its answer.
    fn has_to_wait(&self, event: &ServerEvent, extended: bool) -> bool {
        match event {
            ServerEvent::Hello { .. } | ServerEvent::StartTls | ServerEvent::Auth { .. } => true,
            ServerEvent::Data => matches!(self.state, State::Asked(Question::Data)),
            ServerEvent::Mail(_) | ServerEvent::Recipient(_) | ServerEvent::Reset => !extended,
            _ => false,
        }
    }

    /// Behaviour of the client so far that no mail server shows.
    pub fn faults(&self) -> Faults {
        Faults { bare_newline: self.line.has_bare_newline(), ..self.faults }
    }

    /// Wrong commands, and senders, recipients and mails refused for good, since the last mail that was taken.
    pub fn errors(&self) -> u32 {
        self.tally.errors.saturating_add(self.tally.refused)
    }

    /// Answers the event that waits.
    ///
    /// # Panics
    /// In debug builds, if none does.
    pub fn reply(&mut self, reply: &Reply) {
        let State::Asked(question) = core::mem::replace(&mut self.state, State::Command) else {
            debug_assert!(false, "nothing was asked");
            return;
        };
        let mut whole = false;
        match question {
            Question::Auth => self.authenticated = reply.code == 235,
            Question::Mail => self.transaction.mail = reply.is_positive(),
            Question::Recipient => self.transaction.recipients += u32::from(reply.is_positive()),
            Question::Data => {}
            Question::Chunk { bytes, last } => {
                self.transaction.failed = true;
                if last {
                    self.transaction = Transaction::default();
                }
                self.count(reply);
                self.state = State::Swallow { left: bytes, reply: Some(reply.clone()) };
                return self.swallow_nothing();
            }
            Question::End { left: 0 | 1 } => {
                self.transaction = Transaction::default();
                whole = true;
            }
            Question::End { left } => self.state = State::Asked(Question::End { left: left - 1 }),
        }
        reply.write(&mut self.outbox);
        if whole {
            self.tally.idle_commands = 0;
        }
        if whole && reply.is_positive() {
            self.tally = Tally::default();
        }
        if !matches!(self.state, State::Asked(_)) {
            self.count(reply);
            self.end_if_too_much();
        }
    }

    /// Counts a reply that says no.
    fn count(&mut self, reply: &Reply) {
        let counted = match (reply.is_positive(), reply.is_permanent()) {
            (true, _) => return,
            (_, true) if self.transaction.recipients > 0 => &mut self.tally.refused,
            (_, true) => &mut self.tally.errors,
            (_, false) => &mut self.tally.deferred,
        };
        *counted = counted.saturating_add(1);
    }

    /// Ends the session of a client that brings nothing but trouble; whether it did.
    fn end_if_too_much(&mut self) -> bool {
        let (tally, config) = (&self.tally, &self.config);
        let errors = tally.errors >= config.errors_max || tally.refused >= config.refused_max;
        if errors || tally.deferred >= config.deferred_max {
            self.close(Reply::new(421, (4, 7, 0), "Too many errors"));
        } else if tally.idle_commands > config.idle_commands_max {
            self.close(Reply::new(421, (4, 7, 0), "Too many commands without mail"));
        }
        self.is_closed()
    }

    /// Hands on the next hop's challenge, in Base64: the client's response is next. What is no Base64 becomes empty.
    ///
    /// # Panics
    /// In debug builds, if no exchange is under way.
    pub fn challenge(&mut self, text: &[u8]) {
        debug_assert!(matches!(self.state, State::Asked(Question::Auth)), "nobody logs in");
        self.outbox.extend_from_slice(b"334 ");
        self.outbox.extend_from_slice(if auth::is_base64(text) { text } else { b"" });
        self.outbox.extend_from_slice(b"\r\n");
        self.state = State::Response;
    }

    /// Answers [`ServerEvent::Data`]: the content may come.
    pub fn begin(&mut self) {
        let State::Asked(question) = core::mem::replace(&mut self.state, State::Command) else {
            debug_assert!(false, "nothing was asked");
            return;
        };
        match question {
            Question::Chunk { bytes, last } => {
                self.transaction.chunks = Some(LineReader::chunks());
                self.state = State::Chunk { left: bytes, last };
            }
            _ => {
                self.outbox.extend_from_slice(b"354 End data with <CR><LF>.<CR><LF>\r\n");
                self.state = State::Data(LineReader::data());
            }
        }
    }

    /// Whether content is under way, wanted or not.
    pub fn is_in_content(&self) -> bool {
        matches!(self.state, State::Data(_) | State::Chunk { .. } | State::Swallow { .. })
    }

    /// How many recipients of the message under way were taken.
    pub fn recipients(&self) -> u32 {
        self.transaction.recipients
    }

    fn end(&mut self, bare_line_ends: bool) -> ServerEvent {
        let left = match self.config.protocol {
            Protocol::Smtp => 1,
            Protocol::Lmtp => self.transaction.recipients,
        };
        self.state = State::Asked(Question::End { left });
        ServerEvent::End { bare_line_ends }
    }
}
