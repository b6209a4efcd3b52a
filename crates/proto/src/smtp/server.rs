//! The server half: what a client says, one event at a time.
//!
//! Which command may come when is a table ([`states`](super::states)). Each event that needs an answer waits for
//! [`Server::reply`]; nothing is taken meanwhile.
//!
//! Bounds: a command line of [`Config::line_bytes_max`]; recipients, errors and idle commands as configured. At rest it
//! is less than a kilobyte.

use alloc::string::String;
use alloc::vec::Vec;

use stream::Window;

use super::attributes::{self, XCLIENT, XFORWARD};
use super::auth::{self, Secret};
use super::command::{self, Command, Hello};
use super::dot::LineReader;
use super::envelope::Wrong;
use super::states::{self, Phase, Verb};
use super::{Extensions, MailFrom, Protocol, RcptTo, Reply};
use crate::line::{Line, LineBuffer};

/// What a server half is told at its start.
#[derive(Debug, Clone)]
pub struct Config {
    /// Who we are: greeting and answer to EHLO.
    pub hostname: String,
    /// What is spoken.
    pub protocol: Protocol,
    /// What is offered in the answer to EHLO.
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

/// What a client wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerEvent {
    /// Nothing to tell. If no byte was taken either, there is nothing to do until more comes or the host answers.
    Idle,
    /// It has greeted and was answered; a transaction under way is void.
    Hello {
        /// What it calls itself.
        domain: String,
        /// Whether it said EHLO or LHLO.
        extended: bool,
    },
    /// What it knows of its own client; answered already.
    Xforward(Vec<(String, String)>),
    /// Who its own client is, who takes its place; answered already by a greeting. What it said before counts no more.
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
        /// One of those that are offered.
        mechanism: &'static str,
        /// Its first response, if it has sent one.
        initial: Option<Secret>,
    },
    /// What it says to the challenge. To be answered likewise.
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

/// What a client has done that no mail server does. Nothing follows from it here.
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

/// What a client has done without bringing a mail to its end.
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

    /// What is to be sent.
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

    /// What the session has come to, as far as it matters to the next command.
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

    /// What the client has done so far that no mail server does.
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

/// Commands.
impl Server {
    fn command(&mut self, input: &[u8]) -> (usize, ServerEvent) {
        let (taken, line) = self.line.take(input, self.config.line_bytes_max);
        let event = match line {
            Line::Unfinished => return (taken, ServerEvent::Idle),
            Line::TooLong => Err(Reply::new(500, (5, 5, 2), "Line too long")),
            Line::Whole(line) if command::is_foreign(&line) => {
                self.faults.foreign = true;
                self.close(Reply::new(421, (4, 7, 0), "Not SMTP, closing connection"));
                return (taken, ServerEvent::Closed);
            }
            Line::Whole(line) => match Command::parse(&line) {
                Ok(command) => self.obey(command),
                Err(reply) => Err(reply),
            },
        };
        (taken, event.unwrap_or_else(|refusal| self.refuse(&refusal)))
    }

    fn refuse(&mut self, refusal: &Reply) -> ServerEvent {
        refusal.write(&mut self.outbox);
        self.count(refusal);
        if self.end_if_too_much() { ServerEvent::Closed } else { ServerEvent::Idle }
    }

    fn obey(&mut self, command: Command<'_>) -> Result<ServerEvent, Reply> {
        if self.config.tls_required && !command.is_allowed_in_the_clear() {
            return Err(Reply::new(530, (5, 7, 0), "Must issue a STARTTLS command first"));
        }
        let idle = |command: &Command<'_>| {
            use Command::{Hello, Help, Noop, Rset, Vrfy, Xclient, Xforward};
            matches!(command, Hello { .. } | Noop | Rset | Vrfy | Help | Xforward(_) | Xclient(_))
        };
        if idle(&command) {
            self.tally.idle_commands += 1;
            if self.end_if_too_much() {
                return Ok(ServerEvent::Closed);
            }
        }
        match command {
            Command::Hello { domain, verb } => self.hello(domain, verb),
            Command::StartTls => self.start_tls(),
            Command::Auth { mechanism, initial } => self.auth(mechanism, initial),
            Command::Mail(text) => self.mail(text),
            Command::Rcpt(text) => self.rcpt(text),
            Command::Data => self.data(),
            Command::Bdat { bytes, last } => Ok(self.bdat(bytes, last)),
            Command::Xforward(text) => {
                self.told(Verb::Xforward, text, self.config.extensions.xforward, &XFORWARD).map(|told| {
                    Reply::new(250, (2, 0, 0), "Ok").write(&mut self.outbox);
                    ServerEvent::Xforward(told)
                })
            }
            Command::Xclient(text) => {
                self.told(Verb::Xclient, text, self.config.extensions.xclient, &XCLIENT).map(|told| {
                    (self.greeted, self.authenticated) = (false, false);
                    self.greet();
                    ServerEvent::Xclient(told)
                })
            }
            Command::Rset => {
                self.transaction = Transaction::default();
                Ok(self.say(Reply::new(250, (2, 0, 0), "Ok"), ServerEvent::Reset))
            }
            Command::Noop => Ok(self.say(Reply::new(250, (2, 0, 0), "Ok"), ServerEvent::Idle)),
            Command::Vrfy => Ok(self.say(
                Reply::new(252, (2, 0, 0), "Cannot VRFY user, but will accept message and attempt delivery"),
                ServerEvent::Idle,
            )),
            Command::Help => Ok(self.say(Reply::new(214, (2, 0, 0), "See RFC 5321"), ServerEvent::Idle)),
            Command::Quit => {
                Reply::new(221, (2, 0, 0), "Bye").write(&mut self.outbox);
                self.state = State::Closed;
                Ok(ServerEvent::Closed)
            }
        }
    }

    fn say(&mut self, reply: Reply, event: ServerEvent) -> ServerEvent {
        reply.write(&mut self.outbox);
        event
    }

    fn hello(&mut self, domain: &str, verb: Hello) -> Result<ServerEvent, Reply> {
        if (verb == Hello::Lhlo) != (self.config.protocol == Protocol::Lmtp) {
            return Err(match self.config.protocol {
                Protocol::Smtp => Reply::new(500, (5, 5, 1), "This is SMTP, send EHLO"),
                Protocol::Lmtp => Reply::new(500, (5, 5, 1), "This is LMTP, send LHLO"),
            });
        }
        self.greeted = true;
        self.transaction = Transaction::default();
        let extended = verb != Hello::Helo;
        self.extended = extended;
        if extended {
            self.config.extensions.offer(&self.config.hostname, &mut self.outbox);
        } else {
            let reply = alloc::format!("250 {}\r\n", self.config.hostname);
            self.outbox.extend_from_slice(reply.as_bytes());
        }
        Ok(ServerEvent::Hello { domain: domain.chars().take(255).collect(), extended })
    }

    fn mail(&mut self, text: &str) -> Result<ServerEvent, Reply> {
        states::allowed(self.phase(), Verb::Mail)?;
        let mail = MailFrom::parse(text, &self.config.extensions).map_err(wrong)?;
        if mail.path.needs_utf8() && !mail.smtputf8 {
            return Err(Reply::new(553, (5, 6, 7), "This address needs SMTPUTF8"));
        }
        let size_max = self.config.extensions.size.filter(|&most| most > 0);
        if let (Some(size), Some(most)) = (mail.size, size_max)
            && size > most
        {
            return Err(Reply::new(552, (5, 3, 4), "Message too large"));
        }
        self.transaction = Transaction::default();
        self.state = State::Asked(Question::Mail);
        Ok(ServerEvent::Mail(mail))
    }

    fn rcpt(&mut self, text: &str) -> Result<ServerEvent, Reply> {
        states::allowed(self.phase(), Verb::Rcpt)?;
        if self.transaction.recipients >= self.config.recipients_max {
            return Err(Reply::new(452, (4, 5, 3), "Too many recipients"));
        }
        let rcpt = RcptTo::parse(text, &self.config.extensions).map_err(wrong)?;
        self.state = State::Asked(Question::Recipient);
        Ok(ServerEvent::Recipient(rcpt))
    }

    fn data(&mut self) -> Result<ServerEvent, Reply> {
        states::allowed(self.phase(), Verb::Data)?;
        self.state = State::Asked(Question::Data);
        Ok(ServerEvent::Data)
    }

    /// A chunk follows, whatever is wrong: what is not wanted has to be swallowed.
    fn bdat(&mut self, bytes: u64, last: bool) -> ServerEvent {
        let refusal = match states::allowed(self.phase(), if last { Verb::BdatLast } else { Verb::Bdat }) {
            Err(refusal) => Some(refusal),
            Ok(()) if !self.config.extensions.chunking => Some(Reply::new(502, (5, 5, 1), "Command not implemented")),
            Ok(()) => None,
        };
        if let Some(refusal) = refusal {
            self.tally.errors += 1;
            self.transaction.failed = true;
            self.state = State::Swallow { left: bytes, reply: Some(refusal) };
            self.swallow_nothing();
            return ServerEvent::Idle;
        }
        if bytes == 0 && !last {
            self.tally.idle_commands += 1;
            if self.end_if_too_much() {
                return ServerEvent::Closed;
            }
        }
        if self.transaction.chunks.is_some() {
            self.state = State::Chunk { left: bytes, last };
            return ServerEvent::Idle;
        }
        self.state = State::Asked(Question::Chunk { bytes, last });
        ServerEvent::Data
    }

    fn start_tls(&mut self) -> Result<ServerEvent, Reply> {
        if !self.config.extensions.starttls {
            return Err(Reply::new(502, (5, 5, 1), "Command not implemented"));
        }
        states::allowed(self.phase(), Verb::StartTls)?;
        Reply::new(220, (2, 0, 0), "Ready to start TLS").write(&mut self.outbox);
        self.state = State::Handshake;
        Ok(ServerEvent::StartTls)
    }

    fn auth(&mut self, mechanism: &str, initial: Option<&str>) -> Result<ServerEvent, Reply> {
        if self.config.auth_needs_tls {
            return Err(Reply::new(538, (5, 7, 11), "Encryption required for this authentication mechanism"));
        }
        if self.config.extensions.auth.is_empty() {
            return Err(Reply::new(502, (5, 5, 1), "Command not implemented"));
        }
        states::allowed(self.phase(), Verb::Auth)?;
        if self.authenticated {
            return Err(Reply::new(503, (5, 5, 1), "Already authenticated"));
        }
        let offered = self.config.extensions.auth.find(mechanism);
        let mechanism = offered.ok_or(Reply::new(504, (5, 5, 4), "Unrecognized authentication mechanism"))?;
        if initial.is_some_and(|text| !auth::is_base64(text.as_bytes())) {
            return Err(Reply::new(501, (5, 5, 2), "Cannot decode Base64"));
        }
        self.state = State::Asked(Question::Auth);
        Ok(ServerEvent::Auth { mechanism, initial: initial.map(|text| Secret::new(text.into())) })
    }

    fn response(&mut self, input: &[u8]) -> (usize, ServerEvent) {
        let (taken, line) = self.line.take(input, auth::AUTH_LINE_BYTES_MAX);
        let response = match line {
            Line::Unfinished => return (taken, ServerEvent::Idle),
            Line::TooLong => b"*".to_vec(),
            Line::Whole(line) => line,
        };
        self.state = State::Asked(Question::Auth);
        (taken, ServerEvent::Response(Secret::new(response)))
    }

    /// What a client says of its own client, if it may.
    fn told(&self, verb: Verb, text: &str, allowed: bool, known: &[&str]) -> Result<Vec<(String, String)>, Reply> {
        if !allowed {
            return Err(Reply::new(550, (5, 7, 0), "Insufficient authorization"));
        }
        states::allowed(self.phase(), verb)?;
        attributes::parse(text, known).ok_or(Reply::new(501, (5, 5, 4), "Syntax: NAME=value..."))
    }
}

/// Chunks.
impl Server {
    fn chunk(&mut self, input: &[u8], content: &mut Window) -> (usize, ServerEvent) {
        let State::Chunk { left, last } = &mut self.state else { unreachable!("called in a chunk") };
        let reader = self.transaction.chunks.as_mut().expect("set when the first chunk began");
        let offered = usize::try_from(*left).map_or(input.len(), |left| left.min(input.len()));
        let read = reader.read(&input[..offered], content);
        *left -= read.taken as u64;
        if *left > 0 || !content.is_empty() {
            let event = if content.is_empty() { ServerEvent::Idle } else { ServerEvent::Content };
            return (read.taken, event);
        }
        if !*last {
            self.state = State::Command;
            Reply::new(250, (2, 0, 0), "Chunk received").write(&mut self.outbox);
            // Idle without a byte taken would say that there is nothing left to do.
            return if read.taken > 0 { (read.taken, ServerEvent::Idle) } else { self.command(input) };
        }
        reader.finish(content);
        if !content.is_empty() {
            return (read.taken, ServerEvent::Content);
        }
        let bare_line_ends = reader.has_bare_line_ends();
        (read.taken, self.end(bare_line_ends))
    }

    fn swallow(&mut self, input: &[u8]) -> (usize, ServerEvent) {
        let State::Swallow { left, .. } = &mut self.state else { unreachable!("called when swallowing") };
        let count = usize::try_from(*left).map_or(input.len(), |left| left.min(input.len()));
        *left -= count as u64;
        self.swallow_nothing();
        (count, ServerEvent::Idle)
    }

    /// Answers when the unwanted chunk is gone.
    fn swallow_nothing(&mut self) {
        let State::Swallow { left: 0, reply } = &mut self.state else {
            return;
        };
        let reply = reply.take();
        self.state = State::Command;
        if let Some(reply) = reply {
            reply.write(&mut self.outbox);
        }
        self.end_if_too_much();
    }
}

fn wrong(wrong: Wrong) -> Reply {
    match wrong {
        Wrong::Syntax => Reply::new(501, (5, 1, 3), "Bad address syntax"),
        Wrong::Value => Reply::new(501, (5, 5, 4), "Bad or repeated parameter"),
        Wrong::Parameter => Reply::new(555, (5, 5, 4), "Parameter not recognised or not offered"),
    }
}
