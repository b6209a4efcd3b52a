//! Commands and what they change. A refusal is a reply and an error that counts.

use alloc::string::String;
use alloc::vec::Vec;

use super::{Question, Server, ServerEvent, State, Transaction};
use crate::line::Line;
use crate::smtp::attributes::{self, XCLIENT, XFORWARD};
use crate::smtp::auth::{self, Secret};
use crate::smtp::command::{self, Command, Hello};
use crate::smtp::envelope::Wrong;
use crate::smtp::states::{self, Verb};
use crate::smtp::{MailFrom, Protocol, RcptTo, Reply};

impl Server {
    pub(super) fn command(&mut self, input: &[u8]) -> (usize, ServerEvent) {
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

    pub(super) fn response(&mut self, input: &[u8]) -> (usize, ServerEvent) {
        let (taken, line) = self.line.take(input, auth::AUTH_LINE_BYTES_MAX);
        let response = match line {
            Line::Unfinished => return (taken, ServerEvent::Idle),
            Line::TooLong => b"*".to_vec(),
            Line::Whole(line) => line,
        };
        self.state = State::Asked(Question::Auth);
        (taken, ServerEvent::Response(Secret::new(response)))
    }

    /// Attributes of the client's own client, if it may name them.
    fn told(&self, verb: Verb, text: &str, allowed: bool, known: &[&str]) -> Result<Vec<(String, String)>, Reply> {
        if !allowed {
            return Err(Reply::new(550, (5, 7, 0), "Insufficient authorization"));
        }
        states::allowed(self.phase(), verb)?;
        attributes::parse(text, known).ok_or(Reply::new(501, (5, 5, 4), "Syntax: NAME=value..."))
    }
}

fn wrong(wrong: Wrong) -> Reply {
    match wrong {
        Wrong::Syntax => Reply::new(501, (5, 1, 3), "Bad address syntax"),
        Wrong::Value => Reply::new(501, (5, 5, 4), "Bad or repeated parameter"),
        Wrong::Parameter => Reply::new(555, (5, 5, 4), "Parameter not recognised or not offered"),
    }
}
