//! The client half: commands to a next hop, and its replies in their order.
//!
//! Commands may be pipelined; each reply is told with what it answers. Bounds: a reply of [`REPLY_LINES_MAX`] lines of
//! [`LINE_BYTES_MAX`] bytes; the outbox holds what the host has put in and not sent.

use alloc::collections::VecDeque;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::auth;
use super::dot::DotWriter;
use super::{Extensions, MailFrom, Protocol, RcptTo, Reply, Unsupported};
use crate::line::{Line, LineBuffer};

/// Lines of one reply.
const REPLY_LINES_MAX: usize = 128;

/// Bytes of one line of a reply (RFC 5321 asks for 512).
const LINE_BYTES_MAX: usize = 2_048;

/// Command that a reply answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// The connection.
    Greeting,
    /// EHLO, LHLO or HELO.
    Hello,
    /// XFORWARD.
    Xforward,
    /// XCLIENT.
    Xclient,
    /// MAIL.
    Mail,
    /// RCPT.
    Recipient,
    /// DATA.
    Data,
    /// A chunk that was not the last.
    Chunk,
    /// The end of the content; in LMTP once for each recipient.
    Done,
    /// RSET.
    Reset,
    /// QUIT.
    Quit,
    /// STARTTLS.
    StartTls,
    /// AUTH, and each response of its exchange.
    Auth,
}

/// Events of the next hop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientEvent {
    /// Nothing more in the input.
    Idle,
    /// A reply.
    Reply(Asked, Reply),
    /// It speaks no SMTP, or out of turn: the connection is of no more use.
    Broken(&'static str),
}

/// The client's half of a session.
#[derive(Debug, Clone)]
pub struct Client {
    hostname: String,
    protocol: Protocol,
    outbox: Vec<u8>,
    expected: VecDeque<Asked>,
    line: LineBuffer,
    lines: Vec<String>,
    code: u16,
    extensions: Extensions,
    helo: bool,
    dots: DotWriter,
    content: Content,
}

/// Whether content has begun and not ended: nothing but that may be sent then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Content {
    #[default]
    Closed,
    /// By DATA: whatever is sent is content.
    Data,
    /// By BDAT: the next is a chunk, or RSET.
    Chunks,
}

/// Calling order: [`hello`](Client::hello) after the greeting, then messages: `mail`, `recipient`..., then `data`,
/// `content`..., `end`, or `chunk`s. `step` with what came; send the `outbox`.
impl Client {
    /// A session that begins; it expects the greeting.
    pub fn new(hostname: &str, protocol: Protocol) -> Client {
        Client {
            hostname: hostname.into(),
            protocol,
            outbox: Vec::new(),
            expected: VecDeque::from([Asked::Greeting]),
            line: LineBuffer::default(),
            lines: Vec::new(),
            code: 0,
            extensions: Extensions::default(),
            helo: false,
            dots: DotWriter::default(),
            content: Content::Closed,
        }
    }

    /// Bytes to send.
    pub fn outbox(&self) -> &[u8] {
        &self.outbox
    }

    /// The first `count` bytes of the outbox have been sent. It keeps as much room, since as much may follow, and no more.
    pub fn sent(&mut self, count: usize) {
        self.outbox.drain(..count);
        if self.outbox.is_empty() {
            self.outbox.shrink_to(count);
        }
    }

    /// Extensions of the hop, after the reply to [`Asked::Hello`].
    pub fn extensions(&self) -> &Extensions {
        &self.extensions
    }

    /// Whether content has begun and not ended: no command may go out but RSET between chunks.
    pub fn is_in_content(&self) -> bool {
        self.content != Content::Closed
    }

    /// Whether a reply is due.
    pub fn is_waiting(&self) -> bool {
        !self.expected.is_empty()
    }

    /// EHLO or LHLO; where EHLO is refused, HELO follows by itself.
    pub fn hello(&mut self) {
        let verb = if self.protocol == Protocol::Lmtp { "LHLO" } else { "EHLO" };
        let line = alloc::format!("{verb} {}", self.hostname);
        self.command(&line, Asked::Hello);
    }

    /// XFORWARD with these attributes; values are made safe.
    pub fn xforward(&mut self, attributes: &[(&str, String)]) {
        self.command(&super::attributes::command("XFORWARD", attributes), Asked::Xforward);
    }

    /// XCLIENT with these attributes; values are made safe. Where the hop agrees it greets anew, and EHLO is due again.
    pub fn xclient(&mut self, attributes: &[(&str, String)]) {
        self.command(&super::attributes::command("XCLIENT", attributes), Asked::Xclient);
    }

    /// MAIL.
    ///
    /// # Errors
    /// If the message needs what the hop does not offer; nothing is sent then.
    pub fn mail(&mut self, mail: &MailFrom) -> Result<(), Unsupported> {
        let line = mail.command(&self.extensions)?;
        self.command(&line, Asked::Mail);
        Ok(())
    }

    /// RCPT.
    ///
    /// # Errors
    /// As [`Client::mail`].
    pub fn recipient(&mut self, rcpt: &RcptTo) -> Result<(), Unsupported> {
        let line = rcpt.command(&self.extensions)?;
        self.command(&line, Asked::Recipient);
        Ok(())
    }

    /// DATA.
    pub fn data(&mut self) {
        self.dots = DotWriter::default();
        self.command("DATA", Asked::Data);
    }

    /// Content after DATA; its line ends are CRLF.
    pub fn content(&mut self, content: &[u8]) {
        self.dots.write(content, &mut self.outbox);
    }

    /// The end of the content after DATA; `replies` are expected.
    pub fn end(&mut self, replies: u32) {
        self.dots.end(&mut self.outbox);
        self.content = Content::Closed;
        self.expect_done(replies);
    }

    /// One chunk of content, and whether it is the last, after which `replies` are expected.
    pub fn chunk(&mut self, content: &[u8], last: Option<u32>) {
        let mark = if last.is_some() { " LAST" } else { "" };
        self.outbox.extend_from_slice(alloc::format!("BDAT {}{mark}\r\n", content.len()).as_bytes());
        self.outbox.extend_from_slice(content);
        self.content = if last.is_some() { Content::Closed } else { Content::Chunks };
        match last {
            None => self.expected.push_back(Asked::Chunk),
            Some(replies) => self.expect_done(replies),
        }
    }

    /// STARTTLS. When the hop has agreed, the host shakes hands and says [`Client::secured`]. Whatever came behind the
    /// reply in the clear was said by nobody knows whom: the connection is of no more use then.
    pub fn start_tls(&mut self) {
        self.command("STARTTLS", Asked::StartTls);
    }

    /// The stream is encrypted from here on: what the hop has said before is forgotten, and EHLO is due again.
    pub fn secured(&mut self) {
        self.extensions = Extensions::default();
        self.helo = false;
    }

    /// AUTH. As long as the hop says 334, what it says is for the client, and its response is next.
    pub fn auth(&mut self, mechanism: &str, initial: Option<&[u8]>) {
        self.outbox.extend_from_slice(b"AUTH ");
        self.outbox.extend_from_slice(mechanism.as_bytes());
        if initial.is_some() {
            self.outbox.push(b' ');
        }
        self.respond(initial.unwrap_or_default());
    }

    /// A response in Base64, or `*`.
    pub fn respond(&mut self, response: &[u8]) {
        debug_assert!(response == b"*" || auth::is_base64(response), "a response is one word");
        self.outbox.extend_from_slice(response);
        self.outbox.extend_from_slice(b"\r\n");
        self.expected.push_back(Asked::Auth);
    }

    /// RSET.
    pub fn reset(&mut self) {
        if self.content == Content::Chunks {
            self.content = Content::Closed;
        }
        self.command("RSET", Asked::Reset);
    }

    /// QUIT.
    pub fn quit(&mut self) {
        self.command("QUIT", Asked::Quit);
    }

    /// Takes a prefix of `input` and tells one thing.
    pub fn step(&mut self, input: &[u8]) -> (usize, ClientEvent) {
        let mut taken = 0;
        while taken < input.len() {
            let challenged = self.expected.front() == Some(&Asked::Auth);
            let bytes_max = if challenged { auth::AUTH_LINE_BYTES_MAX } else { LINE_BYTES_MAX };
            let (count, line) = self.line.take(&input[taken..], bytes_max);
            taken += count;
            match line {
                Line::Unfinished if self.line.is_overflowing() => {
                    return (taken, ClientEvent::Broken("a line of a reply is too long"));
                }
                Line::Unfinished => break,
                Line::TooLong => {
                    return (taken, ClientEvent::Broken("a line of a reply is too long"));
                }
                Line::Whole(line) => match self.heard(&line) {
                    ClientEvent::Idle => {}
                    event => return (taken, event),
                },
            }
        }
        (taken, ClientEvent::Idle)
    }

    fn command(&mut self, line: &str, asked: Asked) {
        debug_assert!(!line.bytes().any(|byte| byte.is_ascii_control()), "a command is one line");
        debug_assert!(!self.is_in_content(), "a command would become content");
        self.outbox.extend_from_slice(line.as_bytes());
        self.outbox.extend_from_slice(b"\r\n");
        self.expected.push_back(asked);
    }

    fn expect_done(&mut self, replies: u32) {
        let replies = if self.protocol == Protocol::Lmtp { replies } else { 1 };
        self.expected.extend((0..replies).map(|_| Asked::Done));
    }

    fn heard(&mut self, line: &[u8]) -> ClientEvent {
        let Some((code, more, text)) = Reply::split_line(line) else {
            return ClientEvent::Broken("not a reply");
        };
        if !self.lines.is_empty() && code != self.code {
            return ClientEvent::Broken("the lines of a reply differ in their code");
        }
        if self.lines.len() == REPLY_LINES_MAX {
            return ClientEvent::Broken("a reply of too many lines");
        }
        self.code = code;
        self.lines.push(String::from_utf8_lossy(text).to_string());
        if more {
            return ClientEvent::Idle;
        }
        let lines = core::mem::take(&mut self.lines);
        // Out of turn only this is said: the hop is going away.
        let asked = match self.expected.pop_front() {
            Some(asked) => asked,
            None if code == 421 => return ClientEvent::Broken("the hop closes the session"),
            None => return ClientEvent::Broken("an unsolicited reply"),
        };
        // Only two of them ask for more.
        let fits = match (asked, code / 100) {
            (_, 4 | 5) => true,
            (Asked::Data, _) => code == 354,
            (Asked::Auth, 3) => code == 334,
            (_, class) => class == 2,
        };
        if !fits {
            return ClientEvent::Broken("a reply that does not fit its question");
        }
        if asked == Asked::Data && code == 354 {
            self.content = Content::Data;
        }
        if asked == Asked::Hello {
            if code >= 500 && !self.helo && self.protocol == Protocol::Smtp {
                self.helo = true;
                let line = alloc::format!("HELO {}", self.hostname);
                self.command(&line, Asked::Hello);
                return ClientEvent::Idle;
            }
            self.extensions = Extensions::default();
            if code < 300 && !self.helo {
                lines.iter().skip(1).for_each(|line| self.extensions.learn(line));
            }
        }
        ClientEvent::Reply(asked, Reply::heard(code, &lines.join("\n")))
    }
}
