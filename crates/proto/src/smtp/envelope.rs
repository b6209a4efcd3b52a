//! The parameters of MAIL and RCPT, typed, so that what is handed on is what was understood.

use alloc::string::String;
use core::fmt::Write as _;

use text::date;

use super::{Extensions, FutureRelease, Path, Reply};

/// `MAIL FROM` with its parameters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MailFrom {
    /// The reverse-path.
    pub path: Path,
    /// `SIZE=`: the size that the client announces.
    pub size: Option<u64>,
    /// `BODY=`.
    pub body: Option<Body>,
    /// `SMTPUTF8`.
    pub smtputf8: bool,
    /// `RET=`.
    pub ret: Option<Return>,
    /// `ENVID=`, in xtext.
    pub envid: Option<String>,
    /// When it is sent, if not at once (RFC 4865).
    pub hold: Option<Hold>,
    /// `REQUIRETLS`: the mail goes over TLS to servers that are known alone, or comes back (RFC 8689).
    pub require_tls: bool,
}

/// `RCPT TO` with its parameters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RcptTo {
    /// The forward-path.
    pub path: Path,
    /// `NOTIFY=`: `NEVER`, or some of `SUCCESS`, `FAILURE`, `DELAY`.
    pub notify: Option<String>,
    /// `ORCPT=`: address type and xtext.
    pub orcpt: Option<String>,
}

/// `BODY=` (RFC 6152).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body {
    /// `7BIT`.
    SevenBit,
    /// `8BITMIME`.
    EightBitMime,
    /// The same where the next hop offers it; elsewhere the content goes as it is.
    EightBit,
}

/// When a mail is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// `HOLDFOR=`: after so many seconds.
    For(u32),
    /// `HOLDUNTIL=`: at this time, in seconds since 1970.
    Until(i64),
}

/// `RET=` (RFC 3461): how much of the mail comes back with a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Return {
    /// `FULL`.
    Full,
    /// `HDRS`.
    Headers,
}

/// The longest value of ENVID and ORCPT, in bytes (RFC 3461, sections 4.2 and 4.4).
const XTEXT_BYTES_MAX: usize = 500;

impl MailFrom {
    /// Reads what stands behind `MAIL FROM:`; none if it cannot be understood.
    pub(super) fn parse(text: &str, offered: &Extensions) -> Result<MailFrom, Wrong> {
        let (path, rest) = Path::take(text).ok_or(Wrong::Syntax)?;
        let mut mail = MailFrom { path, ..MailFrom::default() };
        let mut auth = false;
        for parameter in rest.split_ascii_whitespace() {
            let (key, value) = split(parameter);
            let repeated = match (key.as_str(), value) {
                ("SIZE", Some(value)) if offered.size.is_some() => mail.size.replace(number(value)?).is_some(),
                ("BODY", Some(value)) if offered.eight_bit_mime => mail.body.replace(Body::parse(value)?).is_some(),
                ("SMTPUTF8", None) if offered.smtputf8 => core::mem::replace(&mut mail.smtputf8, true),
                ("HOLDFOR" | "HOLDUNTIL", Some(value)) if offered.future_release.is_some() => {
                    mail.hold.replace(Hold::parse(&key, value, offered.future_release)?).is_some()
                }
                ("REQUIRETLS", None) if offered.require_tls => core::mem::replace(&mut mail.require_tls, true),
                ("RET", Some(value)) if offered.dsn => mail.ret.replace(Return::parse(value)?).is_some(),
                ("ENVID", Some(value)) if offered.dsn => mail.envid.replace(xtext(value)?).is_some(),
                // RFC 4954: to be ignored by who does not authenticate, rather than refused.
                ("AUTH", Some(_)) => core::mem::replace(&mut auth, true),
                _ => return Err(Wrong::Parameter),
            };
            if repeated {
                return Err(Wrong::Value);
            }
        }
        Ok(mail)
    }

    /// The command for a next hop that offers `hop`. What only helps is left out where it is not offered.
    pub(super) fn command(&self, hop: &Extensions) -> Result<String, Unsupported> {
        if (self.smtputf8 || self.path.needs_utf8()) && !hop.smtputf8 {
            return Err(Unsupported::SmtpUtf8);
        }
        if self.body == Some(Body::EightBitMime) && !hop.eight_bit_mime {
            return Err(Unsupported::EightBitMime);
        }
        if self.hold.is_some() && hop.future_release.is_none() {
            return Err(Unsupported::FutureRelease);
        }
        if self.require_tls && !hop.require_tls {
            return Err(Unsupported::RequireTls);
        }
        let mut line = alloc::format!("MAIL FROM:{}", self.path);
        if let (Some(size), Some(_)) = (self.size, hop.size) {
            let _ = write!(line, " SIZE={size}");
        }
        match self.body {
            Some(Body::EightBitMime) => line.push_str(" BODY=8BITMIME"),
            Some(Body::EightBit) if hop.eight_bit_mime => line.push_str(" BODY=8BITMIME"),
            Some(Body::SevenBit) if hop.eight_bit_mime => line.push_str(" BODY=7BIT"),
            _ => {}
        }
        if self.smtputf8 {
            line.push_str(" SMTPUTF8");
        }
        match self.hold {
            Some(Hold::For(seconds)) => _ = write!(line, " HOLDFOR={seconds}"),
            Some(Hold::Until(time)) => _ = write!(line, " HOLDUNTIL={}", date::timestamp(time)),
            None => {}
        }
        if self.require_tls {
            line.push_str(" REQUIRETLS");
        }
        if hop.dsn {
            match self.ret {
                Some(Return::Full) => line.push_str(" RET=FULL"),
                Some(Return::Headers) => line.push_str(" RET=HDRS"),
                None => {}
            }
            if let Some(envid) = &self.envid {
                let _ = write!(line, " ENVID={envid}");
            }
        }
        Ok(line)
    }
}

impl RcptTo {
    pub(super) fn parse(text: &str, offered: &Extensions) -> Result<RcptTo, Wrong> {
        let (path, rest) = Path::take(text).ok_or(Wrong::Syntax)?;
        if path.is_null() {
            return Err(Wrong::Syntax);
        }
        let mut rcpt = RcptTo { path, ..RcptTo::default() };
        for parameter in rest.split_ascii_whitespace() {
            let (key, value) = split(parameter);
            let repeated = match (key.as_str(), value) {
                ("NOTIFY", Some(value)) if offered.dsn => rcpt.notify.replace(notify(value)?).is_some(),
                ("ORCPT", Some(value)) if offered.dsn => rcpt.orcpt.replace(orcpt(value, offered.smtputf8)?).is_some(),
                _ => return Err(Wrong::Parameter),
            };
            if repeated {
                return Err(Wrong::Value);
            }
        }
        Ok(rcpt)
    }

    pub(super) fn command(&self, hop: &Extensions) -> Result<String, Unsupported> {
        if self.path.needs_utf8() && !hop.smtputf8 {
            return Err(Unsupported::SmtpUtf8);
        }
        let mut line = alloc::format!("RCPT TO:{}", self.path);
        if hop.dsn {
            if let Some(notify) = &self.notify {
                let _ = write!(line, " NOTIFY={notify}");
            }
            if let Some(orcpt) = &self.orcpt {
                let _ = write!(line, " ORCPT={orcpt}");
            }
        }
        Ok(line)
    }
}

/// Why MAIL or RCPT is not understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wrong {
    /// The path.
    Syntax,
    /// A parameter that is not known or not offered.
    Parameter,
    /// A parameter that stands there twice, or has a wrong value.
    Value,
}

impl Body {
    fn parse(value: &str) -> Result<Body, Wrong> {
        match value.to_ascii_uppercase().as_str() {
            "7BIT" => Ok(Body::SevenBit),
            "8BITMIME" => Ok(Body::EightBitMime),
            _ => Err(Wrong::Value),
        }
    }
}

impl Hold {
    /// Reads a value within bounds; beyond them nothing is promised.
    fn parse(key: &str, value: &str, bounds: Option<FutureRelease>) -> Result<Hold, Wrong> {
        let FutureRelease { seconds_max, until_max } = bounds.ok_or(Wrong::Parameter)?;
        let hold = match key {
            "HOLDFOR" => u32::try_from(number(value)?).ok().filter(|&seconds| seconds <= seconds_max).map(Hold::For),
            _ => date::parse_timestamp(value.as_bytes()).filter(|&time| time <= until_max).map(Hold::Until),
        };
        hold.ok_or(Wrong::Value)
    }
}

impl Return {
    fn parse(value: &str) -> Result<Return, Wrong> {
        match value.to_ascii_uppercase().as_str() {
            "FULL" => Ok(Return::Full),
            "HDRS" => Ok(Return::Headers),
            _ => Err(Wrong::Value),
        }
    }
}

fn split(parameter: &str) -> (String, Option<&str>) {
    match parameter.split_once('=') {
        Some((key, value)) => (key.to_ascii_uppercase(), Some(value)),
        None => (parameter.to_ascii_uppercase(), None),
    }
}

fn number(value: &str) -> Result<u64, Wrong> {
    let digits = !value.is_empty() && value.len() <= 19 && value.bytes().all(|byte| byte.is_ascii_digit());
    if digits { value.parse().map_err(|_| Wrong::Value) } else { Err(Wrong::Value) }
}

/// Text as RFC 3461, section 4, writes it: what is written in hexadecimal digits is text, too.
fn xtext(value: &str) -> Result<String, Wrong> {
    let fits = !value.is_empty() && value.len() <= XTEXT_BYTES_MAX;
    let graphic = value.bytes().all(|byte| byte.is_ascii_graphic());
    // What follows each plus sign are two digits.
    let mut escaped = value.split('+').skip(1);
    let text = |digits: &str| {
        let digits = digits.get(..2).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()).is_some_and(|byte| !byte.is_ascii_control())
    };
    if fits && graphic && escaped.all(text) { Ok(value.into()) } else { Err(Wrong::Value) }
}

/// An address type and xtext. Addresses of RFC 6533, section 3, have an escape of their own, which is written for all characters beyond
/// ASCII: the next hop may not take them as they are.
fn orcpt(value: &str, utf8: bool) -> Result<String, Wrong> {
    let (kind, address) = value.split_once(';').ok_or(Wrong::Value)?;
    let is_utf8 = kind.eq_ignore_ascii_case("utf-8");
    let plain = !kind.is_empty() && kind.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let fits =
        |letter: char| letter.is_ascii_graphic() || is_utf8 && utf8 && !letter.is_ascii() && !letter.is_control();
    if !plain || address.is_empty() || !address.chars().all(fits) {
        return Err(Wrong::Value);
    }
    let text = value.chars().fold(String::new(), |mut text, letter| {
        let _ =
            if letter.is_ascii() { text.write_char(letter) } else { write!(text, "\\x{{{:X}}}", u32::from(letter)) };
        text
    });
    if text.len() > XTEXT_BYTES_MAX {
        return Err(Wrong::Value);
    }
    if is_utf8 { Ok(text) } else { xtext(address).map(|_| text) }
}

fn notify(value: &str) -> Result<String, Wrong> {
    let value = value.to_ascii_uppercase();
    let known = |word: &str| matches!(word, "SUCCESS" | "FAILURE" | "DELAY");
    if value == "NEVER" || (value.len() <= 32 && value.split(',').all(known)) { Ok(value) } else { Err(Wrong::Value) }
}

/// Why a message cannot go to this next hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsupported {
    /// It needs SMTPUTF8.
    SmtpUtf8,
    /// It needs 8BITMIME.
    EightBitMime,
    /// It is to be sent later.
    FutureRelease,
    /// It needs REQUIRETLS.
    RequireTls,
}

impl Unsupported {
    /// Reply to the client.
    pub const fn reply(self) -> Reply {
        match self {
            Unsupported::SmtpUtf8 => Reply::new(550, (5, 6, 7), "The next hop does not offer SMTPUTF8"),
            Unsupported::EightBitMime => Reply::new(550, (5, 6, 3), "The next hop does not offer 8BITMIME"),
            Unsupported::FutureRelease => Reply::new(550, (5, 5, 4), "The next hop does not offer FUTURERELEASE"),
            Unsupported::RequireTls => Reply::new(550, (5, 7, 30), "The next hop does not offer REQUIRETLS"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_bit_content_is_named_where_the_next_hop_knows_it() {
        let of = |body| MailFrom { body: Some(body), ..MailFrom::default() };
        let knows = Extensions { eight_bit_mime: true, ..Extensions::default() };
        let not = Extensions::default();
        assert_eq!(of(Body::EightBit).command(&knows).as_deref(), Ok("MAIL FROM:<> BODY=8BITMIME"));
        assert_eq!(of(Body::EightBit).command(&not).as_deref(), Ok("MAIL FROM:<>"));
        assert!(of(Body::EightBitMime).command(&not).is_err());
        let late = Extensions { future_release: Some(FutureRelease::within(60, 1_000)), ..Extensions::default() };
        for (text, hold) in [
            ("<> HOLDFOR=60", Some(Hold::For(60))),
            ("<> holduntil=1970-01-01T00:17:40Z", Some(Hold::Until(1_060))),
            ("<> HOLDFOR=61", None),
            ("<> HOLDUNTIL=1970-01-01T00:17:41Z", None),
            ("<> HOLDFOR=1 HOLDFOR=1", None),
            ("<> HOLDFOR=1 HOLDUNTIL=1970-01-01T00:17:00Z", None),
            ("<> HOLDFOR=-1", None),
        ] {
            let read = MailFrom::parse(text, &late);
            assert_eq!(read.as_ref().ok().and_then(|mail| mail.hold), hold, "{text}");
            if let Ok(mail) = read {
                assert!(
                    mail.command(&late)
                        .is_ok_and(|line| line.eq_ignore_ascii_case(&alloc::format!("MAIL FROM:{text}")))
                );
                assert_eq!(mail.command(&not), Err(Unsupported::FutureRelease));
            }
        }
        let international = Extensions { dsn: true, smtputf8: true, ..Extensions::default() };
        let orcpt =
            |text, offered: &Extensions| RcptTo::parse(text, offered).map(|rcpt| rcpt.orcpt.unwrap_or_default());
        let raw = "<a@b> ORCPT=utf-8;ok\u{fc}@c";
        assert_eq!(orcpt(raw, &international).as_deref(), Ok("utf-8;ok\\x{FC}@c"));
        assert_eq!(orcpt(raw, &Extensions { smtputf8: false, ..international }), Err(Wrong::Value));
        assert_eq!(orcpt("<a@b> ORCPT=rfc822;ok\u{fc}@c", &international), Err(Wrong::Value));
        let secret = MailFrom { require_tls: true, ..MailFrom::default() };
        let hop = Extensions { require_tls: true, ..Extensions::default() };
        assert_eq!(secret.command(&hop).as_deref(), Ok("MAIL FROM:<> REQUIRETLS"));
        assert_eq!(secret.command(&not), Err(Unsupported::RequireTls));
        assert_eq!(MailFrom::parse("<> requiretls", &hop), Ok(secret));
        assert!(MailFrom::parse("<> REQUIRETLS", &not).is_err() && MailFrom::parse("<> REQUIRETLS=1", &hop).is_err());
    }
}
