//! Extensions in a server's answer to EHLO.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;

use text::date;

use super::auth::Mechanisms;

/// The extensions that Sluice knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Extensions {
    /// RFC 2920.
    pub pipelining: bool,
    /// RFC 1870: the largest message, 0 for any.
    pub size: Option<u64>,
    /// RFC 6152.
    pub eight_bit_mime: bool,
    /// RFC 6531.
    pub smtputf8: bool,
    /// RFC 3030.
    pub chunking: bool,
    /// RFC 2034.
    pub enhanced_status_codes: bool,
    /// RFC 3461.
    pub dsn: bool,
    /// RFC 3207.
    pub starttls: bool,
    /// RFC 8689: offered within TLS alone.
    pub require_tls: bool,
    /// RFC 4865: mail that is sent later.
    pub future_release: Option<FutureRelease>,
    /// RFC 4954.
    pub auth: Mechanisms,
    /// Postfix's XFORWARD: NAME, ADDR, PORT, PROTO, HELO, SOURCE.
    pub xforward: bool,
    /// Postfix's XCLIENT: NAME, ADDR, PORT, PROTO, HELO, LOGIN, DESTADDR, DESTPORT.
    pub xclient: bool,
}

/// How late mail may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FutureRelease {
    /// The longest wait, in seconds.
    pub seconds_max: u32,
    /// The latest time, in seconds since 1970.
    pub until_max: i64,
}

impl FutureRelease {
    /// The bounds of a session that begins now.
    pub fn within(seconds_max: u32, now: i64) -> FutureRelease {
        FutureRelease { seconds_max, until_max: now.saturating_add(seconds_max.into()) }
    }
}

impl Extensions {
    /// Reads one line of an answer to EHLO, behind the code.
    pub(super) fn learn(&mut self, line: &str) {
        let mut words = line.split_ascii_whitespace();
        let keyword = words.next().unwrap_or_default().to_ascii_uppercase();
        match keyword.as_str() {
            "PIPELINING" => self.pipelining = true,
            "SIZE" => self.size = Some(words.next().and_then(|size| size.parse().ok()).unwrap_or(0)),
            "8BITMIME" => self.eight_bit_mime = true,
            "SMTPUTF8" => self.smtputf8 = true,
            "CHUNKING" => self.chunking = true,
            "ENHANCEDSTATUSCODES" => self.enhanced_status_codes = true,
            "DSN" => self.dsn = true,
            "STARTTLS" => self.starttls = true,
            "FUTURERELEASE" => {
                let (seconds, until) = (words.next().and_then(|word| word.parse().ok()), words.next());
                let until = until.and_then(|until| date::parse_timestamp(until.as_bytes()));
                let bounds = seconds.zip(until);
                self.future_release = bounds.map(|(seconds_max, until_max)| FutureRelease { seconds_max, until_max });
            }
            "REQUIRETLS" => self.require_tls = true,
            "AUTH" => self.auth.learn(words),
            "XFORWARD" => self.xforward = true,
            "XCLIENT" => self.xclient = true,
            _ => {}
        }
    }

    /// The answer to EHLO.
    pub(super) fn offer(&self, hostname: &str, out: &mut Vec<u8>) {
        let mut lines: Vec<String> = Vec::new();
        lines.push(hostname.into());
        let offered = [
            (self.pipelining, "PIPELINING"),
            (self.eight_bit_mime, "8BITMIME"),
            (self.smtputf8, "SMTPUTF8"),
            (self.chunking, "CHUNKING"),
            (self.enhanced_status_codes, "ENHANCEDSTATUSCODES"),
            (self.dsn, "DSN"),
            (self.starttls, "STARTTLS"),
            (self.require_tls, "REQUIRETLS"),
            (self.xforward, "XFORWARD NAME ADDR PORT PROTO HELO SOURCE"),
            (self.xclient, "XCLIENT NAME ADDR PORT PROTO HELO LOGIN DESTADDR DESTPORT"),
        ];
        lines.extend(offered.iter().filter(|(offered, _)| *offered).map(|(_, name)| String::from(*name)));
        if !self.auth.is_empty() {
            lines.push(self.auth.names().fold("AUTH".into(), |line, name| line + " " + name));
        }
        if let Some(FutureRelease { seconds_max, until_max }) = self.future_release {
            lines.push(alloc::format!("FUTURERELEASE {seconds_max} {}", date::timestamp(until_max)));
        }
        if let Some(size) = self.size {
            let mut line = String::from("SIZE");
            if size > 0 {
                let _ = write!(line, " {size}");
            }
            lines.push(line);
        }
        let last = lines.len() - 1;
        for (index, line) in lines.iter().enumerate() {
            out.extend_from_slice(if index == last { b"250 " } else { b"250-" });
            out.extend_from_slice(line.as_bytes());
            out.extend_from_slice(b"\r\n");
        }
    }
}
