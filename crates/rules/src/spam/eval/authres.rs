//! Results of authentication that the site's own servers have written into the header (RFC 8601): the plugin AuthRes.
//!
//! A field counts whole or not at all: one that does not follow the grammar, or has a method, a result or a property that is not
//! registered, says nothing. Which fields are believed is `authres_networks`: by default those above the site's own `Received`.

use super::{Arguments, Context, Function, look, truth};
use crate::spam::map::HashMap;

/// The functions.
pub(super) const FUNCTIONS: &[Function] = &[look("check_authres_result", check)];

/// Methods with their results and their properties (IANA, Email Authentication Parameters, and what Microsoft writes).
const METHODS: [(&str, &str, &str); 14] = [
    ("arc", "fail none pass", "smtp.remote-ip header.oldest-pass arc.chain"),
    ("auth", "fail none pass permerror temperror", "smtp.auth smtp.mailfrom"),
    ("dkim", "fail neutral none pass permerror policy temperror", "header.d header.i header.b header.a header.s"),
    ("dkim-adsp", "discard fail none nxdomain pass permerror temperror unknown", "header.from"),
    ("dkim-atps", "fail none pass permerror temperror neutral", "header.from"),
    ("dmarc", "bestguesspass fail none pass permerror temperror", "header.from policy.dmarc"),
    ("dnswl", "none pass permerror temperror", "dns.zone dns.sec policy.ip policy.txt"),
    ("domainkeys", "fail neutral none permerror policy pass temperror", "header.d header.from header.sender"),
    ("iprev", "fail pass permerror temperror", "policy.iprev"),
    ("rrvs", "fail none pass permerror temperror unknown", "smtp.rcptto"),
    ("sender-id", "fail hardfail neutral none pass permerror policy softfail temperror", "header.*"),
    (
        "smime",
        "fail neutral none pass permerror policy temperror",
        "body.smime-part body.smime-identifer body.smime-serial body.smime-issuer",
    ),
    (
        "spf",
        "fail hardfail neutral none pass permerror policy softfail temperror",
        "smtp.mailfrom smtp.mfrom smtp.helo smtp.rcpttodomain",
    ),
    ("vbr", "fail none pass permerror temperror", "header.md header.mv"),
];

/// Results by method.
pub type Results = HashMap<&'static str, Box<str>>;

fn check(context: &Context<'_>, arguments: &Arguments<'_>) -> f64 {
    let results = context.written.get_or_init(|| results(context));
    let (found, wanted) = (results.get(arguments.text(0)), arguments.text(1).to_ascii_lowercase());
    truth(match found {
        None => wanted == "missing",
        Some(found) => **found == *wanted,
    })
}

/// The result of each method: the first, or `pass` if one is.
fn results(context: &Context<'_>) -> Results {
    let fields = match context.settings.text("authres_networks").map(<[u8]>::to_ascii_lowercase).as_deref() {
        Some(b"all") => "ALL",
        Some(b"trusted") => "ALL-TRUSTED",
        _ => "ALL-INTERNAL",
    };
    let ids = |name: &str| -> Vec<Vec<u8>> {
        let words = context.settings.all_words(name).iter().flat_map(|words| words.split(u8::is_ascii_whitespace));
        words.filter(|word| !word.is_empty()).map(<[u8]>::to_ascii_lowercase).collect()
    };
    let (trusted, ignored) = (ids("authres_trusted_authserv"), ids("authres_ignored_authserv"));
    let is_believed = |id: &[u8]| {
        let is_named = |ids: &[Vec<u8>]| ids.iter().any(|known| *known == *id);
        (trusted.is_empty() || is_named(&trusted)) && !is_named(&ignored)
    };
    let mut found = Results::default();
    for line in context.fields.get(fields).split(|&byte| byte == b'\n') {
        for (method, result) in read(line, is_believed).into_iter().flatten() {
            if result == "pass" || !found.contains_key(method) {
                found.insert(method, result.into());
            }
        }
    }
    found
}

/// The methods and results of an unfolded field; `None` if it does not count.
fn read(line: &[u8], is_believed: impl Fn(&[u8]) -> bool) -> Option<Vec<(&'static str, &'static str)>> {
    let colon = line.iter().position(|&byte| byte == b':')?;
    let name = line[..colon].to_ascii_lowercase();
    let is_of_chain = &*name == b"arc-authentication-results";
    if !is_of_chain && &*name != b"authentication-results" {
        return None;
    }
    let mut rest = Cursor(line[colon + 1..].trim_ascii());
    if is_of_chain {
        let key = rest.word()?;
        let index: u32 = key.eq_ignore_ascii_case(b"i").then(|| rest.sign(b'=')?.word()).flatten().and_then(decimal)?;
        rest = Some(rest.sign(b';')?).filter(|_| (1..=50).contains(&index)).map(|rest| Cursor(rest.0))?;
    }
    let id = rest.token()?.to_ascii_lowercase();
    if rest.0.first() == Some(&b'=') || !is_believed(&id) {
        return None;
    }
    rest.blank()?;
    if rest.0.first().is_some_and(u8::is_ascii_digit) {
        rest.word()?;
        rest.blank()?;
    }
    rest.sign(b';')?;
    let mut found = Vec::new();
    while !rest.0.is_empty() {
        rest.skip_id(&id)?;
        found.push(rest.method()?);
    }
    Some(found)
}

fn decimal(text: &[u8]) -> Option<u32> {
    core::str::from_utf8(text).ok()?.parse().ok()
}

/// The part of a field that has not been read.
#[derive(Clone, Copy)]
struct Cursor<'t>(&'t [u8]);

impl<'t> Cursor<'t> {
    fn take(&mut self, length: usize) -> Option<&'t [u8]> {
        let (taken, rest) = self.0.split_at_checked(length).filter(|_| length > 0)?;
        self.0 = rest;
        Some(taken)
    }

    fn run(&mut self, fits: impl Fn(u8) -> bool) -> Option<&'t [u8]> {
        self.take(self.0.iter().take_while(|byte| fits(**byte)).count())
    }

    /// Skips blanks and a comment; `None` if that does not end.
    fn blank(&mut self) -> Option<&mut Self> {
        self.0 = self.0.trim_ascii_start();
        if self.0.first() == Some(&b'(') {
            let mut depth = 0_usize;
            let close = self.0.iter().position(|byte| {
                depth = match byte {
                    b'(' => depth + 1,
                    b')' => depth.saturating_sub(1),
                    _ => depth,
                };
                depth == 0
            });
            self.0 = self.0[close? + 1..].trim_ascii_start();
        }
        Some(self)
    }

    /// Takes a sign, and blanks on both sides.
    fn sign(&mut self, sign: u8) -> Option<&mut Self> {
        self.blank()?;
        self.0 = self.0.strip_prefix(&[sign])?;
        self.blank()
    }

    fn word(&mut self) -> Option<&'t [u8]> {
        self.run(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    }

    fn name(&mut self) -> Option<Vec<u8>> {
        let name = self.run(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))?;
        Some(name.to_ascii_lowercase())
    }

    fn token(&mut self) -> Option<&'t [u8]> {
        self.run(|byte| byte.is_ascii_graphic() && !b"()<>@,;:/[]?=\"".contains(&byte))
    }

    /// A text in quotes, or what `fits`.
    fn value(&mut self, fits: impl Fn(u8) -> bool) -> Option<()> {
        let Some(inner) = self.0.strip_prefix(b"\"") else { return self.run(fits).map(drop) };
        let mut is_escaped = false;
        let close = inner.iter().position(|&byte| {
            let ends = byte == b'"' && !is_escaped;
            is_escaped = byte == b'\\' && !is_escaped;
            ends
        });
        self.0 = close.map_or(&b""[..], |close| &inner[close + 1..]);
        Some(())
    }

    /// Skips the name of the server where it stands once more.
    fn skip_id(&mut self, id: &[u8]) -> Option<()> {
        let behind = self.0.strip_prefix(id).map(<[u8]>::trim_ascii_start).and_then(|rest| rest.strip_prefix(b";"));
        if let Some(behind) = behind {
            self.0 = behind;
            self.blank()?;
        }
        Some(())
    }

    /// `method/version = result reason=... ptype.property=value ...;`
    fn method(&mut self) -> Option<(&'static str, &'static str)> {
        let name = self.name()?;
        let (method, results, properties) = METHODS.into_iter().find(|(known, ..)| known.as_bytes() == name)?;
        self.blank()?;
        if self.0.first() == Some(&b'/') {
            self.sign(b'/')?.run(|byte| byte.is_ascii_digit())?;
        }
        let result = self.sign(b'=')?.word()?;
        let result = results.split(' ').find(|known| known.as_bytes() == result)?;
        self.blank()?;
        for key in [&b"reason"[..], b"action"] {
            let is_there = self.0.get(..key.len()).is_some_and(|start| start.eq_ignore_ascii_case(key));
            if is_there && !self.0.get(key.len()).is_some_and(|&byte| byte.is_ascii_alphanumeric() || byte == b'_') {
                self.take(key.len())?;
                let is_of_token = |byte: u8| byte.is_ascii_graphic() && !b"()<>@,;:/[]?=\"".contains(&byte);
                self.sign(b'=')?.value(is_of_token)?;
                self.blank()?;
            }
        }
        while !self.0.is_empty() {
            if self.0.first() != Some(&b';') {
                self.property(properties)?;
            }
            if self.0.first() == Some(&b';') {
                self.sign(b';')?;
                break;
            }
        }
        Some((method, result))
    }

    fn property(&mut self, known: &str) -> Option<()> {
        let kind = self.name()?;
        let name = self.sign(b'.')?.name()?;
        let is_known = |property: &str| {
            property
                .split_once('.')
                .is_some_and(|(of, own)| of.as_bytes() == kind && (own == "*" || own.as_bytes() == name))
        };
        if !known.split(' ').any(is_known) {
            return None;
        }
        self.sign(b'=')?.value(|byte| !byte.is_ascii_whitespace() && byte != b';')?;
        self.blank().map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_counts_whole_or_not_at_all() {
        let read = |text: &str| {
            let found = read(text.as_bytes(), |id| id == b"mx.example")?;
            Some(found.into_iter().map(|(method, result)| format!("{method}={result}")).collect::<Vec<_>>().join(" "))
        };
        for (field, expected) in [
            ("Authentication-Results: mx.example; spf=pass smtp.mailfrom=a@b.example", Some("spf=pass")),
            (
                "authentication-results: MX.example 1; dkim=fail (bad (x) y) header.d=a; dmarc=none",
                Some("dkim=fail dmarc=none"),
            ),
            ("Authentication-Results: mx.example; mx.example; arc = pass", Some("arc=pass")),
            (
                "Authentication-Results: mx.example; dkim=pass reason=\"a; \\\" b\" header.i=@x.example",
                Some("dkim=pass"),
            ),
            ("ARC-Authentication-Results: i=2; mx.example; spf/1=softfail", Some("spf=softfail")),
            ("ARC-Authentication-Results: i=51; mx.example; spf=pass", None),
            ("Authentication-Results: other.example; spf=pass", None),
            ("Authentication-Results: spf=pass; mx.example", None),
            ("Authentication-Results: mx.example; spf=Pass", None),
            ("Authentication-Results: mx.example; spf=pass; none", None),
            ("Authentication-Results: mx.example; spf=pass header.from=x", None),
            ("Authentication-Results: mx.example; x-own=pass; spf=pass", None),
            ("Authentication-Results: mx.example; spf=pass (open", None),
            ("Authentication-Results: mx.example", None),
            ("Received: mx.example; spf=pass", None),
        ] {
            assert_eq!(read(field).as_deref(), expected, "{field}");
        }
    }
}
