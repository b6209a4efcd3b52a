//! What a client asks for, and what it says of the mail.

use alloc::string::String;
use alloc::vec::Vec;
use core::net::IpAddr;

use httparse::Status;

/// The most recipients that are kept.
const RECIPIENTS_MAX: usize = 1_000;

/// The most header fields of one request, recipients among them.
const FIELDS_MAX: usize = RECIPIENTS_MAX + 256;

/// How a request is written, and its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// HTTP.
    Http,
    /// The older one: `CHECK RSPAMC/1.3`.
    Rspamc,
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// The score of the mail that follows.
    Check,
    /// The same in the form of before `/checkv2`: all of it below `default`.
    CheckDefault,
    /// The mail that follows is to be learned as spam.
    LearnSpam,
    /// The mail that follows is to be learned as ham.
    LearnHam,
    /// Whether anybody is there.
    Ping,
    /// The methods that there are (RFC 9110, section 9.3.7).
    Options,
    /// Something that is not known here.
    Other,
}

/// A request whose head is complete. All that it says of the mail is a claim of the client's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// What is asked for.
    pub command: Command,
    /// How it is written.
    pub form: Form,
    /// The bytes that follow, if the client says so.
    pub length: Option<u64>,
    /// The client of the mail server (`IP`).
    pub ip: Option<IpAddr>,
    /// What that called itself (`Helo`).
    pub helo: String,
    /// The envelope's sender (`From`), without angle brackets.
    pub from: String,
    /// The envelope's recipients (`Rcpt`), without angle brackets.
    pub rcpt: Vec<String>,
    /// As whom the client has logged in (`User`).
    pub user: Option<String>,
    /// What the mail server calls the mail (`Queue-Id`).
    pub queue_id: Option<String>,
    /// What shows that the client may have a mail learned (`Password`).
    pub password: Option<String>,
    /// Whether the body comes in chunks (RFC 9112, section 7.1).
    pub(super) is_chunked: bool,
    /// Whether the client waits until it is told to go on (RFC 9110, section 10.1.1).
    pub(super) waits: bool,
    /// Whether the body is coded in a way that is not undone here.
    pub(super) is_coded: bool,
    /// Whether a file of this machine is named in place of a body (`File`).
    pub(super) names_file: bool,
}

impl Request {
    /// Reads a head, its empty line included.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn read(head: &[u8]) -> Result<Request, &'static str> {
        let end = head.iter().position(|&byte| byte == b'\n').unwrap_or(head.len());
        let (line, rest) = head.split_at(end);
        let line = line.trim_ascii_end();
        if let Some(verb) = line.strip_suffix(b" RSPAMC/1.3").or_else(|| line.strip_suffix(b" RSPAMC/1.2")) {
            let command = match verb {
                b"CHECK" | b"SYMBOLS" | b"REPORT" => Command::Check,
                b"PING" => Command::Ping,
                _ => Command::Other,
            };
            let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
            let rest = rest.get(1..).unwrap_or_default();
            let parsed = httparse::parse_headers(rest, &mut fields).map_err(|_| "malformed header")?;
            let Status::Complete((_, fields)) = parsed else { return Err("malformed header") };
            return Request::new(command, Form::Rspamc, fields);
        }
        let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
        let mut parsed = httparse::Request::new(&mut fields);
        match parsed.parse(head) {
            Ok(Status::Complete(_)) => {}
            _ => return Err("malformed request"),
        }
        let path = parsed.path.unwrap_or_default();
        let path = path.split(['?', '#']).next().unwrap_or_default();
        let command = match (parsed.method.unwrap_or_default(), path) {
            ("POST", "/checkv2") => Command::Check,
            ("POST", "/check" | "/symbols" | "/report" | "/scan") => Command::CheckDefault,
            ("OPTIONS", _) => Command::Options,
            ("POST", "/learnspam") => Command::LearnSpam,
            ("POST", "/learnham") => Command::LearnHam,
            ("GET" | "HEAD", "/ping") => Command::Ping,
            _ => Command::Other,
        };
        Request::new(command, Form::Http, parsed.headers)
    }

    fn new(command: Command, form: Form, fields: &[httparse::Header<'_>]) -> Result<Request, &'static str> {
        let mut request = Request {
            command,
            form,
            length: None,
            ip: None,
            helo: String::new(),
            from: String::new(),
            rcpt: Vec::new(),
            user: None,
            queue_id: None,
            password: None,
            is_chunked: false,
            waits: false,
            is_coded: false,
            names_file: false,
        };
        for field in fields {
            request.take(field.name, field.value.trim_ascii())?;
        }
        if request.is_chunked && request.length.is_some() {
            return Err("both a length and chunks");
        }
        Ok(request)
    }

    /// Takes a field. What is not known is passed over.
    fn take(&mut self, name: &str, value: &[u8]) -> Result<(), &'static str> {
        let text = || String::from_utf8_lossy(value).into_owned();
        match () {
            () if name.eq_ignore_ascii_case("content-length") => {
                let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
                let number = core::str::from_utf8(value).ok().filter(|_| is_number).ok_or("malformed length")?;
                let length = number.parse().unwrap_or(u64::MAX);
                if self.length.is_some_and(|before| before != length) {
                    return Err("two lengths");
                }
                self.length = Some(length);
            }
            () if name.eq_ignore_ascii_case("transfer-encoding") => {
                if !value.eq_ignore_ascii_case(b"chunked") || self.is_chunked {
                    return Err("unknown transfer coding");
                }
                self.is_chunked = true;
            }
            () if name.eq_ignore_ascii_case("expect") => self.waits = value.eq_ignore_ascii_case(b"100-continue"),
            () if ["content-encoding", "compression", "key"].iter().any(|coded| name.eq_ignore_ascii_case(coded)) => {
                self.is_coded |= !value.eq_ignore_ascii_case(b"identity");
            }
            () if name.eq_ignore_ascii_case("file") => self.names_file = true,
            () if name.eq_ignore_ascii_case("ip") => self.ip = address(value),
            () if name.eq_ignore_ascii_case("helo") => self.helo = text(),
            () if name.eq_ignore_ascii_case("from") => self.from = path(value),
            () if name.eq_ignore_ascii_case("rcpt") && self.rcpt.len() < RECIPIENTS_MAX => self.rcpt.push(path(value)),
            () if name.eq_ignore_ascii_case("user") => self.user = Some(text()),
            () if name.eq_ignore_ascii_case("password") => self.password = Some(text()),
            () if name.eq_ignore_ascii_case("queue-id") => self.queue_id = Some(text()),
            () => {}
        }
        Ok(())
    }
}

/// An address, which some write in brackets; of a name, or none, nothing is known.
fn address(value: &[u8]) -> Option<IpAddr> {
    let text = core::str::from_utf8(value).ok()?;
    let text = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    text.strip_prefix("IPv6:").unwrap_or(text).parse().ok()
}

/// A path without its angle brackets.
fn path(value: &[u8]) -> String {
    let bare = value.strip_prefix(b"<").and_then(|value| value.strip_suffix(b">")).unwrap_or(value);
    String::from_utf8_lossy(bare).into_owned()
}
