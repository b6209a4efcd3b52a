//! Requests of a client.

use alloc::string::String;

/// The commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Whether it is spam.
    Check,
    /// The same, with the names of the rules that hit.
    Symbols,
    /// The same, with the report.
    Report,
    /// The same, with the report where it is spam.
    ReportIfSpam,
    /// The mail, marked.
    Process,
    /// The header of the mail, marked.
    Headers,
    /// Whether anybody is there.
    Ping,
    /// Nothing: the mail is too large for the client.
    Skip,
    /// A mail is to be learned.
    Tell,
}

/// A request whose header is complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Command of the request.
    pub verb: Verb,
    /// The client's version of the protocol, in tenths: 15 is 1.5.
    pub version: u32,
    /// For whom, if the client says so.
    pub user: Option<String>,
    /// The bytes that follow, compressed or not, if the client says so.
    pub length: Option<u64>,
    /// Whether they are in the format of zlib (RFC 1950).
    pub is_compressed: bool,
    /// Spam or not, for a mail to learn, if the client says so.
    pub is_spam: Option<bool>,
    /// Where it is to be learned.
    pub set: Places,
    /// Where it is to be forgotten.
    pub remove: Places,
}

/// Where a mail is learned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Places {
    /// In the local database.
    pub local: bool,
    /// At services that collect reports.
    pub remote: bool,
}

impl Places {
    fn read(value: &[u8]) -> Places {
        let has = |place: &[u8]| value.windows(place.len()).any(|here| here.eq_ignore_ascii_case(place));
        Places { local: has(b"local"), remote: has(b"remote") }
    }

    /// As a header line says it; nothing where it is nowhere.
    pub(super) fn line(self, name: &str) -> String {
        let places = match (self.local, self.remote) {
            (true, true) => "local,remote",
            (true, false) => "local",
            (false, true) => "remote",
            (false, false) => return String::new(),
        };
        alloc::format!("{name}: {places}\r\n")
    }
}

impl Verb {
    const ALL: [(&'static str, Verb); 9] = [
        ("PROCESS", Verb::Process),
        ("CHECK", Verb::Check),
        ("SYMBOLS", Verb::Symbols),
        ("REPORT", Verb::Report),
        ("HEADERS", Verb::Headers),
        ("REPORT_IFSPAM", Verb::ReportIfSpam),
        ("TELL", Verb::Tell),
        ("SKIP", Verb::Skip),
        ("PING", Verb::Ping),
    ];

    /// Whether a mail follows.
    pub const fn has_mail(self) -> bool {
        !matches!(self, Verb::Ping | Verb::Skip)
    }
}

impl Request {
    /// Reads the first line, `VERB SPAMC/VERSION`, without its end.
    pub(super) fn read(line: &[u8]) -> Option<Request> {
        let line = core::str::from_utf8(line).ok()?;
        let (name, version) = line.split_once(" SPAMC/")?;
        let (_, verb) = *Verb::ALL.iter().find(|(known, _)| *known == name)?;
        let (whole, tenths) = version.trim().split_once('.').unwrap_or((version.trim(), "0"));
        let digit = |text: &str| text.parse::<u32>().ok().filter(|&number| number < 10);
        let version = digit(whole)? * 10 + digit(tenths)?;
        Some(Request {
            verb,
            version,
            user: None,
            length: None,
            is_compressed: false,
            is_spam: None,
            set: Places::default(),
            remove: Places::default(),
        })
    }

    /// Whether header lines follow: those of version 1.0 have none, and what carries no mail has had them since 1.5.
    pub(super) const fn has_header(&self) -> bool {
        match self.verb {
            Verb::Ping | Verb::Skip => self.version >= 15,
            Verb::Tell => true,
            _ => self.version > 10,
        }
    }

    /// Takes a header line, without its end. What is not known is passed over.
    ///
    /// # Errors
    /// Why it is refused, in spamd's words.
    pub(super) fn take(&mut self, line: &[u8]) -> Result<(), &'static str> {
        let colon = line.iter().position(|&byte| byte == b':').ok_or("(header not in 'Name: value' format)")?;
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        match name {
            b"Content-length" => {
                let digits = value.iter().all(u8::is_ascii_digit);
                let number = core::str::from_utf8(value).ok().filter(|_| digits);
                let number = number.ok_or("(Content-Length contains non-numeric bytes)")?;
                self.length = if number.is_empty() { None } else { Some(number.parse().unwrap_or(u64::MAX)) };
            }
            b"User" => {
                if value.iter().any(|&byte| byte < 0x20) {
                    return Err("(User header contains control chars)");
                }
                self.user = Some(String::from_utf8_lossy(value).into_owned());
            }
            b"Compress" => {
                if !value.to_ascii_lowercase().windows(4).any(|four| four == b"zlib") {
                    return Err("(compression type not supported)");
                }
                self.is_compressed = true;
            }
            b"Message-class" => {
                self.is_spam = match value {
                    _ if value.eq_ignore_ascii_case(b"spam") => Some(true),
                    _ if value.eq_ignore_ascii_case(b"ham") => Some(false),
                    _ => return Err("(Message-class header contains invalid class)"),
                };
            }
            b"Set" => self.set = Places::read(value),
            b"Remove" => self.remove = Places::read(value),
            _ => {}
        }
        Ok(())
    }

    /// Why a mail cannot be learned in this way, in spamd's words; none where it can.
    pub(super) fn contradiction(&self) -> Option<&'static str> {
        match self {
            _ if self.verb != Verb::Tell => None,
            _ if self.set.local && self.remove.local => {
                Some("Unable to set local and remove local in the same operation.")
            }
            _ if self.set.remote && self.remove.remote => {
                Some("Unable to set remote and remove remote in the same operation.")
            }
            _ if self.set.local && self.is_spam.is_none() => Some("(Message-class header missing)"),
            _ => None,
        }
    }
}
