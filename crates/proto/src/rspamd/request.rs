//! Requests of a client, with their facts about the mail.

use alloc::string::String;
use alloc::vec::Vec;
use core::net::IpAddr;

use crate::http::body::Framing;
use crate::http::head::split;
use crate::http::{Fields, Limits, Refusal, Version};

/// The most recipients that are kept.
const RECIPIENTS_MAX: usize = 1_000;

/// The most header fields of one request, recipients among them.
pub(super) const FIELDS_MAX: usize = RECIPIENTS_MAX + 256;

/// How a request is written, and its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// HTTP.
    Http,
    /// The older one: `CHECK RSPAMC/1.3`.
    Rspamc,
    /// Parts of a form, as `/checkv3` has them: answered as `multipart/form-data`.
    Parts,
    /// The same, answered as `multipart/mixed`.
    Mixed,
}

/// Command of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// The score of the mail that follows.
    Check,
    /// The same in the form of before `/checkv2`: all of it below `default`.
    CheckDefault,
    /// The score of the mail in a form, with what is known of it.
    CheckParts,
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
    /// Command of the request.
    pub command: Command,
    /// How it is written.
    pub form: Form,
    /// The bytes that follow, if the client says so.
    pub length: Option<u64>,
    /// The client of the mail server (`IP`).
    pub ip: Option<IpAddr>,
    /// Name in the client's HELO (`Helo`).
    pub helo: String,
    /// The envelope's sender (`From`), without angle brackets.
    pub from: String,
    /// The envelope's recipients (`Rcpt`), without angle brackets.
    pub rcpt: Vec<String>,
    /// As whom the client has logged in (`User`).
    pub user: Option<String>,
    /// Queue identifier of the mail server (`Queue-Id`).
    pub queue_id: Option<String>,
    /// Password that permits learning (`Password`).
    pub password: Option<String>,
    /// Metadata of the mail as JSON, if it comes so: left to the host.
    pub metadata: Option<Vec<u8>>,
    /// How the body ends, where the client says so.
    pub(super) framing: Option<Framing>,
    /// Whether the client waits until it is told to go on (RFC 9110, section 10.1.1).
    pub(super) waits: bool,
    /// Whether the body is coded in a way that is not undone here.
    pub(super) is_coded: bool,
    /// Whether a file of this machine is named in place of a body (`File`).
    pub(super) names_file: bool,
    /// Type of the body (`Content-Type`).
    pub(super) kind: Vec<u8>,
    /// Whether the answer has no content (`HEAD`, RFC 9110 9.3.2).
    pub(super) is_head: bool,
    /// Whether no form of answer is to the client's liking (`Accept`).
    pub(super) takes_nothing: bool,
}

/// Metadata of a mail, as the host has read them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Description {
    /// As [`Request::ip`], in digits.
    pub ip: Option<String>,
    /// As [`Request::helo`].
    pub helo: Option<String>,
    /// As [`Request::from`].
    pub from: Option<String>,
    /// As [`Request::rcpt`].
    pub rcpt: Vec<String>,
    /// As [`Request::user`].
    pub user: Option<String>,
    /// As [`Request::queue_id`].
    pub queue_id: Option<String>,
}

impl Request {
    /// Parses a head.
    ///
    /// # Errors
    /// The reason why it is none.
    pub(super) fn parse(head: &[u8], limits: &Limits) -> Result<Request, Refusal> {
        let (line, fields) = split(head, limits)?;
        let text = core::str::from_utf8(line).map_err(|_| Refusal::StartLine)?;
        if let Some(verb) = text.strip_suffix(" RSPAMC/1.3").or_else(|| text.strip_suffix(" RSPAMC/1.2")) {
            let command = match verb {
                "CHECK" | "SYMBOLS" | "REPORT" => Command::Check,
                "PING" => Command::Ping,
                _ => Command::Other,
            };
            return Request::new(command, Form::Rspamc, &fields);
        }
        let mut words = text.split(' ');
        let (method, target) = words.next().zip(words.next()).ok_or(Refusal::StartLine)?;
        if !matches!(words.next(), Some("HTTP/1.1" | "HTTP/1.0")) || words.next().is_some() {
            return Err(Refusal::StartLine);
        }
        let path = target.split(['?', '#']).next().unwrap_or_default();
        let command = match (method, path) {
            ("POST", "/checkv2") => Command::Check,
            ("POST", "/checkv3") => Command::CheckParts,
            ("POST", "/check" | "/symbols" | "/report" | "/scan") => Command::CheckDefault,
            ("OPTIONS", _) => Command::Options,
            ("POST", "/learnspam") => Command::LearnSpam,
            ("POST", "/learnham") => Command::LearnHam,
            ("GET" | "HEAD", "/ping") => Command::Ping,
            _ => Command::Other,
        };
        let mut request = Request::new(command, Form::Http, &fields)?;
        request.is_head = method == "HEAD";
        if command == Command::CheckParts {
            let form = answered(&fields);
            request.takes_nothing = form.is_none();
            request.form = form.unwrap_or(Form::Http);
        }
        Ok(request)
    }

    fn new(command: Command, form: Form, fields: &Fields) -> Result<Request, Refusal> {
        let framing = Framing::declared(fields, Version::Http11)?;
        let length = if let Some(Framing::Length(length)) = framing { Some(length) } else { None };
        let mut request = Request {
            command,
            form,
            length,
            ip: None,
            helo: String::new(),
            from: String::new(),
            rcpt: Vec::new(),
            user: None,
            queue_id: None,
            password: None,
            metadata: None,
            framing,
            waits: false,
            is_coded: false,
            names_file: false,
            kind: Vec::new(),
            takes_nothing: false,
            is_head: false,
        };
        fields.iter().for_each(|(name, value)| request.take(name, value));
        Ok(request)
    }

    /// Takes what is said of the mail beside the head: it stands for what the head said.
    pub fn describe(&mut self, mut said: Description) {
        self.ip = said.ip.and_then(|ip| address(ip.as_bytes())).or(self.ip);
        self.helo = said.helo.unwrap_or_else(|| core::mem::take(&mut self.helo));
        self.from = said.from.map_or_else(|| core::mem::take(&mut self.from), |from| path(from.as_bytes()));
        said.rcpt.truncate(RECIPIENTS_MAX);
        if !said.rcpt.is_empty() {
            self.rcpt = said.rcpt.iter().map(|rcpt| path(rcpt.as_bytes())).collect();
        }
        self.user = said.user.or_else(|| self.user.take());
        self.queue_id = said.queue_id.or_else(|| self.queue_id.take());
    }

    /// Takes a field. What is not known is passed over.
    fn take(&mut self, name: &str, value: &[u8]) {
        let text = || String::from_utf8_lossy(value).into_owned();
        match () {
            () if name.eq_ignore_ascii_case("expect") => self.waits = value.eq_ignore_ascii_case(b"100-continue"),
            () if ["content-encoding", "compression", "key"].iter().any(|coded| name.eq_ignore_ascii_case(coded)) => {
                self.is_coded |= !value.eq_ignore_ascii_case(b"identity");
            }
            () if name.eq_ignore_ascii_case("file") => self.names_file = true,
            () if name.eq_ignore_ascii_case("content-type") => self.kind = value.to_vec(),
            () if name.eq_ignore_ascii_case("ip") => self.ip = address(value),
            () if name.eq_ignore_ascii_case("helo") => self.helo = text(),
            () if name.eq_ignore_ascii_case("from") => self.from = path(value),
            () if name.eq_ignore_ascii_case("rcpt") && self.rcpt.len() < RECIPIENTS_MAX => self.rcpt.push(path(value)),
            () if name.eq_ignore_ascii_case("user") => self.user = Some(text()),
            () if name.eq_ignore_ascii_case("password") => self.password = Some(text()),
            () if name.eq_ignore_ascii_case("queue-id") => self.queue_id = Some(text()),
            () => {}
        }
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

/// The form of the answer that a client likes best (`Accept`, RFC 9110, section 12.5.1), in the order in which Rspamd has them.
fn answered(fields: &Fields) -> Option<Form> {
    let Some(_) = fields.get("accept") else { return Some(Form::Parts) };
    let forms = [
        (&b"multipart/form-data"[..], Form::Parts),
        (b"message/rfc822", Form::Mixed),
        (b"application/json", Form::Http),
    ];
    let weight_of = |kind: &[u8]| {
        let matching = fields.elements("accept").filter_map(|element| {
            let mut words = element.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
            let range = words.next().unwrap_or_default();
            let is_prefix = |range: &[u8]| kind.get(..range.len()).is_some_and(|kind| kind.eq_ignore_ascii_case(range));
            let closeness = match range.strip_suffix(b"*") {
                Some(b"*/") => 1,
                Some(range) if is_prefix(range) => 2,
                None if range.eq_ignore_ascii_case(kind) => 3,
                _ => return None,
            };
            let weight = words.find_map(|word| word.strip_prefix(b"q="));
            let weight = weight.and_then(|weight| core::str::from_utf8(weight).ok()?.parse::<f32>().ok());
            Some((closeness, weight.unwrap_or(1.0)))
        });
        matching.max_by_key(|(closeness, _)| *closeness).map_or(0.0, |(_, weight)| weight)
    };
    let weighed = forms.map(|(kind, form)| (weight_of(kind), form));
    let liked = weighed.into_iter().rev().filter(|(weight, _)| *weight > 0.0);
    liked.max_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, form)| form)
}
