//! Records of SPF (RFC 7208 sections 4.5, 4.6, 5, 6, 12): read whole, since one error anywhere spoils a record.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::Outcome;
use super::macros::MacroString;

/// The longest record that is read. Section 3.4 asks owners for 512 bytes.
pub const BYTES_MAX: usize = 8 << 10;

/// A policy.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Record {
    /// Mechanisms, in order: the first that matches decides.
    pub directives: Vec<Directive>,
    /// Domain whose policy applies if no mechanism matches.
    pub redirect: Option<MacroString>,
    /// Where the explanation is.
    pub explanation: Option<MacroString>,
}

/// A mechanism and its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directive {
    /// The result where it matches: pass, fail, soft fail or neutral.
    pub outcome: Outcome,
    /// Mechanism of the term.
    pub mechanism: Mechanism,
    /// As it is written.
    pub text: Box<str>,
}

/// Test for a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mechanism {
    /// Any client.
    All,
    /// Clients that pass the policy of another domain.
    Include(MacroString),
    /// The addresses of a name; none for that of the domain itself.
    A(Option<MacroString>, Prefixes),
    /// Addresses of its mail exchangers.
    Mx(Option<MacroString>, Prefixes),
    /// The names of the client.
    Ptr(Option<MacroString>),
    /// A network.
    Ip(IpAddr, u8),
    /// Clients for whom this name exists.
    Exists(MacroString),
}

/// How many bits of addresses are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefixes {
    /// 0 to 32.
    pub ip4: u8,
    /// 0 to 128.
    pub ip6: u8,
}

/// Whether a text is one of SPF: version 1, then a space or nothing.
pub fn is_spf(text: &[u8]) -> bool {
    let version = text.get(..6).is_some_and(|version| version.eq_ignore_ascii_case(b"v=spf1"));
    version && text.get(6).is_none_or(|&byte| byte == b' ')
}

impl Record {
    /// Reads a text that [`is_spf`].
    ///
    /// # Errors
    /// The invalid term, or the reason for which the whole is invalid.
    pub fn parse(text: &[u8]) -> Result<Record, Box<str>> {
        if text.len() > BYTES_MAX {
            return Err("record too long".into());
        }
        let text = core::str::from_utf8(text).ok().filter(|text| text.is_ascii()).ok_or("record is not ASCII")?;
        let mut record = Record::default();
        for term in text.get(6..).unwrap_or("").split(' ').filter(|term| !term.is_empty()) {
            record.add(term).ok_or_else(|| format!("term {}", term.escape_debug()))?;
        }
        Ok(record)
    }

    fn add(&mut self, term: &str) -> Option<()> {
        match term.find([':', '/', '=']) {
            Some(at) if term.as_bytes().get(at) == Some(&b'=') => self.modify(&term[..at], &term[at + 1..]),
            _ => {
                self.directives.push(Directive::parse(term)?);
                Some(())
            }
        }
    }

    /// A modifier. `redirect` and `exp` may be there once (section 6); others mean nothing.
    fn modify(&mut self, name: &str, value: &str) -> Option<()> {
        let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if !name.starts_with(|first: char| first.is_ascii_alphabetic()) || !name.bytes().all(is_fit) {
            return None;
        }
        let place = match () {
            () if name.eq_ignore_ascii_case("redirect") => &mut self.redirect,
            () if name.eq_ignore_ascii_case("exp") => &mut self.explanation,
            () => return MacroString::parse(value).map(drop),
        };
        match place {
            Some(_) => None,
            None => {
                *place = Some(MacroString::parse_domain(value)?);
                Some(())
            }
        }
    }
}

impl Directive {
    fn parse(term: &str) -> Option<Directive> {
        let (outcome, mechanism) = match term.as_bytes().first()? {
            b'+' => (Outcome::Pass, &term[1..]),
            b'-' => (Outcome::Fail, &term[1..]),
            b'~' => (Outcome::SoftFail, &term[1..]),
            b'?' => (Outcome::Neutral, &term[1..]),
            _ => (Outcome::Pass, term),
        };
        Some(Directive { outcome, mechanism: Mechanism::parse(mechanism)?, text: term.into() })
    }
}

impl Mechanism {
    fn parse(text: &str) -> Option<Mechanism> {
        let (name, rest) = text.split_at(text.find([':', '/']).unwrap_or(text.len()));
        let value = rest.strip_prefix(':');
        match name.to_ascii_lowercase().as_str() {
            "all" => rest.is_empty().then_some(Mechanism::All),
            "include" => Some(Mechanism::Include(MacroString::parse_domain(value?)?)),
            "exists" => Some(Mechanism::Exists(MacroString::parse_domain(value?)?)),
            "ptr" if rest.is_empty() => Some(Mechanism::Ptr(None)),
            "ptr" => Some(Mechanism::Ptr(Some(MacroString::parse_domain(value?)?))),
            "a" => hosts(rest).map(|(domain, prefixes)| Mechanism::A(domain, prefixes)),
            "mx" => hosts(rest).map(|(domain, prefixes)| Mechanism::Mx(domain, prefixes)),
            "ip4" => network(value?, 32, |text| text.parse::<Ipv4Addr>().ok().map(IpAddr::V4)),
            "ip6" => network(value?, 128, |text| text.parse::<Ipv6Addr>().ok().map(IpAddr::V6)),
            _ => None,
        }
    }
}

/// `[":" domain-spec] [dual-cidr-length]`.
fn hosts(text: &str) -> Option<(Option<MacroString>, Prefixes)> {
    let (domain, prefixes) = prefixes(text)?;
    match domain.strip_prefix(':') {
        Some(domain) => Some((Some(MacroString::parse_domain(domain)?), prefixes)),
        None if domain.is_empty() => Some((None, prefixes)),
        None => None,
    }
}

/// Takes `/24`, `//64` or `/24//64` off the end.
fn prefixes(text: &str) -> Option<(&str, Prefixes)> {
    let (text, ip6) = match text.rsplit_once("//") {
        Some((front, digits)) if is_number(digits) => (front, bits(digits, 128)?),
        _ => (text, 128),
    };
    let (text, ip4) = match text.rsplit_once('/') {
        Some((front, digits)) if is_number(digits) => (front, bits(digits, 32)?),
        _ => (text, 32),
    };
    Some((text, Prefixes { ip4, ip6 }))
}

fn network(text: &str, bits_max: u8, address: impl Fn(&str) -> Option<IpAddr>) -> Option<Mechanism> {
    let (front, bits) = match text.split_once('/') {
        Some((front, digits)) => (front, bits(digits, bits_max)?),
        None => (text, bits_max),
    };
    Some(Mechanism::Ip(address(front)?, bits))
}

fn is_number(digits: &str) -> bool {
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// A number without leading zeros.
fn bits(digits: &str, bits_max: u8) -> Option<u8> {
    let is_plain = is_number(digits) && (digits == "0" || !digits.starts_with('0'));
    digits.parse().ok().filter(|&bits| is_plain && bits <= bits_max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parses(text: &str) -> bool {
        Record::parse(format!("v=spf1 {text}").as_bytes()).is_ok()
    }

    #[test]
    fn a_record_of_version_one_is_told_from_others() {
        assert!(is_spf(b"v=spf1") && is_spf(b"V=SPF1 -all"));
        assert!(!is_spf(b"v=spf10") && !is_spf(b"v=spf1\t-all") && !is_spf(b"v=spf"));
    }

    #[test]
    fn one_error_spoils_a_record() {
        for text in [
            "-all",
            "a mx:x.example/24//64 ptr",
            "a/0",
            "a//0",
            "ip4:1.2.3.4/8",
            "ip6:::1/128",
            "x=%{d}",
            "exp=a.b",
            "include:%{d2}",
            "redirect=a.b -all",
            "  -all  ",
        ] {
            assert!(parses(text), "{text}");
        }
        for text in [
            "all.",
            "all:x.example",
            "a:",
            "a/",
            "a/33",
            "a/08",
            "a//129",
            "a/24/64",
            "ip4:1.2.3",
            "ip4",
            "ip4:1.2.3.4/33",
            "ip6:1.2.3.4",
            "include",
            "include:",
            "exists",
            "mx:/8",
            "exp=a.b exp=a.b",
            "redirect=",
            "=x",
            "1=x",
            "foo",
            "-",
            "ptr/24",
            "\u{e4}=x",
            "a\tb",
        ] {
            assert!(!parses(text), "{text}");
        }
        assert!(!parses(&"x".repeat(BYTES_MAX)));
    }
}
