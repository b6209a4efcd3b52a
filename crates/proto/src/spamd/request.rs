//! What a client asks for.

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
    /// What is asked for.
    pub verb: Verb,
    /// The client's version of the protocol, in tenths: 15 is 1.5.
    pub version: u32,
    /// For whom, if the client says so.
    pub user: Option<String>,
    /// The bytes that follow, compressed or not, if the client says so.
    pub length: Option<u64>,
    /// Whether they are in the format of zlib (RFC 1950).
    pub is_compressed: bool,
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
        !matches!(self, Verb::Ping | Verb::Skip | Verb::Tell)
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
        Some(Request { verb, version, user: None, length: None, is_compressed: false })
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
            _ => {}
        }
        Ok(())
    }
}
