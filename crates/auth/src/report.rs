//! `Authentication-Results` (RFC 8601): written from our results, read from those of others, and recognised where it
//! pretends to be ours.
//!
//! Bounds: at most [`SHOWN_BYTES_MAX`] bytes of each foreign value are written, and at most [`RESULTS_MAX`] results are
//! read.

use std::fmt::Write as _;

use crate::results::Results;
use crate::{arc, dkim, dmarc, spf};

/// How much is shown of a value that others have chosen.
pub const SHOWN_BYTES_MAX: usize = 256;

/// The most results that are read of a field.
pub const RESULTS_MAX: usize = 64;

/// The name of the field.
pub const NAME: &str = "Authentication-Results";

/// Returns the whole field, folded, with its last line end. `authserv_id` is our name, `helo` the client's.
pub fn field(authserv_id: &str, helo: &str, results: &Results) -> String {
    let mut out = format!("{NAME}: {}", value_of(authserv_id));
    for result in methods(helo, results) {
        let _ = write!(out, ";\r\n\t{result}");
    }
    out.push_str("\r\n");
    out
}

/// Content of the field, a method a line.
pub fn methods(helo: &str, results: &Results) -> Vec<String> {
    let mut all = vec![
        spf_of("smtp.helo", helo, &results.helo),
        spf_of("smtp.mailfrom", &results.mailfrom.sender, &results.mailfrom),
    ];
    if results.mailfrom == results.helo {
        all.truncate(1);
    }
    match results.dkim.is_empty() {
        true => all.push("dkim=none".into()),
        false => all.extend(results.dkim.iter().map(dkim_of)),
    }
    all.push(dmarc_of(&results.dmarc));
    if results.arc.outcome != arc::Outcome::None {
        all.push(arc_of(&results.arc));
    }
    all
}

fn spf_of(property: &str, value: &str, report: &spf::Report) -> String {
    format!("spf={}{} {property}={}", report.outcome.name(), comment(&report.reason), value_of(value))
}

fn dkim_of(report: &dkim::Report) -> String {
    let mut out = format!("dkim={}", report.outcome.name());
    match (report.outcome, report.key_bits) {
        (dkim::Outcome::Pass, Some(bits)) if report.bytes_unsigned > 0 => {
            // A third party may have added them (RFC 6376, section 8.2).
            let told = format!("{bits}-bit key, {} bytes at the end not signed", report.bytes_unsigned);
            out.push_str(&comment(&told));
        }
        (dkim::Outcome::Pass, Some(bits)) => out.push_str(&comment(&format!("{bits}-bit key"))),
        _ => out.push_str(&comment(report.reason)),
    }
    for (property, value) in [
        ("header.d", &report.domain),
        ("header.i", &report.identity),
        ("header.s", &report.selector),
        ("header.b", &report.mark),
    ] {
        if !value.is_empty() {
            let _ = write!(out, " {property}={}", value_of(value));
        }
    }
    if let Some(algorithm) = report.algorithm {
        let _ = write!(out, " header.a={}", algorithm.name());
    }
    out
}

fn dmarc_of(report: &dmarc::Report) -> String {
    let mut out = format!("dmarc={}", report.outcome.name());
    match report.policy {
        Some(policy) => out.push_str(&comment(&format!("policy {} of {}", policy.name(), report.policy_domain))),
        None => out.push_str(&comment(&report.reason)),
    }
    if !report.domain.is_empty() {
        let _ = write!(out, " header.from={}", value_of(&report.domain));
    }
    out
}

fn arc_of(report: &arc::Report) -> String {
    format!("arc={}{}", report.outcome.name(), comment(&report.reason))
}

/// Writes a comment of its harmless characters.
fn comment(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let is_fit = |character: &char| matches!(character, ' '..='~') && !matches!(character, '(' | ')' | '\\');
    let shown: String = text.chars().filter(is_fit).take(SHOWN_BYTES_MAX).collect();
    format!(" ({shown})")
}

/// Writes a value as it is, or quoted, without characters that a header may not have.
fn value_of(text: &str) -> String {
    let shown: String = text.chars().filter(|character| !character.is_control()).take(SHOWN_BYTES_MAX).collect();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_+@!#$&*'^`{|}~/".contains(&byte) || !byte.is_ascii();
    if !shown.is_empty() && shown.bytes().all(is_plain) {
        return shown;
    }
    let mut quoted = String::from("\"");
    for character in shown.chars() {
        if matches!(character, '"' | '\\') {
            quoted.push('\\');
        }
        quoted.push(character);
    }
    quoted.push('"');
    quoted
}

/// Content of a field of another server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// Name of that server.
    pub authserv_id: Box<str>,
    /// Results in order; empty for `none`.
    pub results: Vec<Found>,
}

/// A result of others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The method, in lower case, without its version.
    pub method: Box<str>,
    /// The result, in lower case.
    pub result: Box<str>,
    /// Properties such as `header.d`, in lower case, and their values.
    pub properties: Vec<(Box<str>, Box<str>)>,
}

/// Reads the value of a field. What cannot be read of it, from there on, is left out.
pub fn parse(value: &[u8]) -> Option<Told> {
    let text = String::from_utf8_lossy(value);
    let mut cursor = Cursor { rest: &text };
    let authserv_id = cursor.value().filter(|id| !id.is_empty())?;
    // A version, which has never changed.
    cursor.skip();
    if !cursor.rest.starts_with(';') {
        let _ = cursor.value();
    }
    let mut results = Vec::new();
    while results.len() < RESULTS_MAX && cursor.eat(';') {
        match cursor.result() {
            Some(found) => results.push(found),
            None => break,
        }
    }
    Some(Told { authserv_id: authserv_id.into(), results })
}

/// Returns whether an incoming field claims to be ours, or may be taken for it, and has to be removed (RFC 8601 section
/// 5).
pub fn is_forged(value: &[u8], authserv_id: &str) -> bool {
    match parse(value) {
        Some(told) => {
            let id = told.authserv_id.trim_end_matches('.');
            id.eq_ignore_ascii_case(authserv_id)
                || !is_host(id) && has(id.as_bytes(), authserv_id)
                || is_read_as(value, authserv_id)
        }
        None => has(value, authserv_id) || is_read_as(value, authserv_id),
    }
}

/// Whether a reader that leaves out blanks, comments and commas, or maps letters by UTS 46 (RFC 8616), reads this name.
fn is_read_as(value: &[u8], authserv_id: &str) -> bool {
    let text = String::from_utf8_lossy(value);
    let mut cursor = Cursor { rest: &text };
    let mut words = Vec::new();
    loop {
        cursor.skip();
        cursor.rest = cursor.rest.trim_start_matches([',', ')', '=', ' ', '\t', '\r', '\n']);
        match cursor.value() {
            Some(word) => words.push(word),
            None if cursor.rest.starts_with(['(', ',', ')', '=']) => {}
            None => break,
        }
    }
    let ours = crate::domain::host(authserv_id);
    let is_ours = |name: String| {
        let name = name.trim_matches(',').to_owned();
        name.eq_ignore_ascii_case(authserv_id) || ours.is_some() && crate::domain::host(&name) == ours
    };
    // The last word may be the version.
    let is_versioned = words.last().is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_digit()));
    is_ours(words.concat()) || is_versioned && is_ours(words[..words.len() - 1].concat())
}

fn is_host(id: &str) -> bool {
    crate::domain::host(id).is_some()
}

fn has(text: &[u8], part: &str) -> bool {
    let part = part.as_bytes();
    !part.is_empty() && text.windows(part.len()).any(|window| window.eq_ignore_ascii_case(part))
}

struct Cursor<'a> {
    rest: &'a str,
}

impl Cursor<'_> {
    /// Passes over white space and comments.
    fn skip(&mut self) {
        loop {
            self.rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
            match self.rest.strip_prefix('(') {
                Some(comment) => self.rest = behind_comment(comment),
                None => return,
            }
        }
    }

    fn eat(&mut self, wanted: char) -> bool {
        self.skip();
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Words and strings in quotes, one right behind the other.
    fn value(&mut self) -> Option<String> {
        self.skip();
        let mut out = None::<String>;
        loop {
            let piece = match self.rest.strip_prefix('"') {
                Some(quoted) => self.quoted(quoted.len())?,
                None => self.word(),
            };
            if piece.is_empty() && !self.rest.starts_with('"') {
                return out;
            }
            out.get_or_insert_default().push_str(&piece);
        }
    }

    fn word(&mut self) -> String {
        let end = self.rest.find([' ', '\t', '\r', '\n', ';', '(', ')', '"', '=']).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word.into()
    }

    /// Reads a quoted string whose content begins with the last `len` bytes.
    fn quoted(&mut self, len: usize) -> Option<String> {
        let inside = &self.rest[self.rest.len() - len..];
        let mut out = String::new();
        let mut characters = inside.char_indices();
        while let Some((at, character)) = characters.next() {
            match character {
                '"' => {
                    self.rest = &inside[at + 1..];
                    return Some(out);
                }
                '\\' => out.extend(characters.next().map(|(_, escaped)| escaped)),
                _ => out.push(character),
            }
        }
        self.rest = "";
        None
    }

    /// Reads `method=result` and its properties.
    fn result(&mut self) -> Option<Found> {
        let method = self.value()?.to_ascii_lowercase();
        if !self.eat('=') {
            return None;
        }
        let result = self.value()?.to_ascii_lowercase().into();
        let method = method.split('/').next().unwrap_or_default().into();
        let mut properties = Vec::new();
        while let Some(name) = self.value() {
            if !self.eat('=') {
                return None;
            }
            let name = name.to_ascii_lowercase();
            self.skip();
            // A value may begin with a character that ends other words.
            let value = match self.rest.starts_with('=') {
                true => None,
                false => self.value(),
            };
            properties.push((name.into(), value.unwrap_or_default().into()));
        }
        Some(Found { method, result, properties })
    }
}

fn behind_comment(text: &str) -> &str {
    let (mut depth, mut escaped) = (1usize, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if core::mem::take(&mut escaped) => {}
            b'\\' => escaped = true,
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &text[at + 1..];
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_say_is_read() {
        let told = parse(
            b" (c) example.org 1; spf=pass (a \\) (b)) smtp.mailfrom=\"a b\"@x;\r\n\tdkim/1=Fail reason=\"x;y\" header.d=example.net",
        )
        .unwrap();
        assert_eq!(&*told.authserv_id, "example.org");
        assert_eq!(told.results[0].properties, [("smtp.mailfrom".into(), "a b@x".into())]);
        assert_eq!(told.results[1].properties[0], ("reason".into(), "x;y".into()));
        let told = parse(b"example.org; dkim/1=Fail reason=\"x;y\" header.d=example.net; dmarc=pass").unwrap();
        assert_eq!((&*told.results[0].method, &*told.results[0].result), ("dkim", "fail"));
        assert_eq!(told.results[0].properties[1], ("header.d".into(), "example.net".into()));
        assert_eq!(&*told.results[1].method, "dmarc");
        assert_eq!(parse(b"example.org; none").unwrap().results, []);
        assert_eq!(parse(b" (example.org"), None);
    }

    #[test]
    fn a_field_that_pretends_to_be_ours_is_forged() {
        for value in [
            &b" mx.example; spf=pass"[..],
            b"(x) MX.example",
            b"\"mx.example\"; none",
            b"mx.example.;",
            b"mx.example 1; none",
            b"\"mx.example",
            b"(mx.example",
            b"\"x mx.example\";",
            b"mx\r\n .example",
            b"mx.example\0;",
            "\u{ff2d}x.example; spf=pass".as_bytes(),
            "mx.exam\u{200b}ple; spf=pass".as_bytes(),
            b"mx .example; spf=pass",
            b"mx .example 1; spf=pass",
            b"mx(x).example; spf=pass",
            b"mx(x) . (y)\"ex\"ample.; spf=pass",
            b", mx.example; spf=pass",
            b"(a) , ,mx.example, 1; spf=pass",
        ] {
            assert!(is_forged(value, "mx.example"), "{}", value.escape_ascii());
        }
        let asked = "m\u{fc}x.example";
        assert!(is_forged(b" xn--mx-xka.example; none", asked) && is_forged("M\u{dc}x.example".as_bytes(), asked));
        assert!(!is_forged(b")))((;", "mx.example") && !is_forged(&[b'('; 100_000], "mx.example"));
        for value in [&b"other.example; spf=pass mx.example"[..], b"amx.example; none", b"mx.example.org; none", b""] {
            assert!(!is_forged(value, "mx.example"), "{}", value.escape_ascii());
        }
    }

    #[test]
    fn text_behind_a_signed_length_is_told() {
        let signed = dkim::Report { key_bits: Some(2048), ..dkim::Report::new(dkim::Outcome::Pass, "") };
        assert_eq!(dkim_of(&signed), "dkim=pass (2048-bit key)");
        let longer = dkim::Report { bytes_unsigned: 37, ..signed };
        assert_eq!(dkim_of(&longer), "dkim=pass (2048-bit key, 37 bytes at the end not signed)");
    }

    #[test]
    fn what_is_written_is_read_again_and_holds_nothing_of_others_unquoted() {
        let mut results = Results::default();
        results.mailfrom.sender = "a\r\nX: b; dkim=pass\"@example.net".into();
        results.mailfrom.reason = "x) ; spf=pass (\r\n".into();
        results.dkim = vec![dkim::Report::new(dkim::Outcome::Policy, "SHA-1 is not taken")];
        let field = field("mx.example", "he lo", &results);
        assert_eq!(field.lines().filter(|line| !line.starts_with('\t')).count(), 1, "{field}");
        let told = parse(field.split_once(':').unwrap().1.as_bytes()).unwrap();
        let methods: Vec<&str> = told.results.iter().map(|found| &*found.method).collect();
        assert_eq!(methods, ["spf", "spf", "dkim", "dmarc"], "{field}");
        assert!(is_forged(field.split_once(':').unwrap().1.as_bytes(), "mx.example"));
    }
}
