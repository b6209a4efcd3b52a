//! Answers from a file, for tests and for mails of other days.
//!
//! A line is `NAME [TTL] [IN] TYPE DATA`, as in zone files, with whole names; `NAME SERVFAIL` is a name that nobody can answer
//! for. A comment begins with `;`. Text is in quotes, several pieces are joined, or else is the rest of the line. There are
//! no directives and no parentheses. A name above another one exists; one that is not there does not.

use std::collections::BTreeMap;

use edge::message::asking;
use flow::{Answer, Ask, Outcome, Record, RecordKind, Security};
use tokio::sync::mpsc::UnboundedSender;

/// Aliases that are followed.
const ALIASES_MAX: usize = 8;

/// Records of names.
#[derive(Debug, Default)]
pub struct Zone {
    names: BTreeMap<String, Vec<Entry>>,
}

#[derive(Debug)]
enum Entry {
    Record(Record),
    Alias(String),
    Failure,
}

impl Zone {
    /// Reads a file.
    ///
    /// # Errors
    /// The number of a line that cannot be understood, and why.
    pub fn parse(text: &str) -> Result<Zone, String> {
        let mut zone = Zone::default();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with(';') {
                continue;
            }
            let (name, entry) = entry(line).ok_or_else(|| format!("{}: not NAME [TTL] [IN] TYPE DATA", number + 1))?;
            zone.add(&name, entry);
        }
        Ok(zone)
    }

    /// Names above exist, too.
    fn add(&mut self, name: &str, entry: Entry) {
        for (dot, _) in name.match_indices('.') {
            self.names.entry(name[dot + 1..].into()).or_default();
        }
        self.names.entry(name.into()).or_default().push(entry);
    }

    fn outcome(&self, name: &str, kind: RecordKind) -> Outcome {
        let mut name = name;
        for _ in 0..ALIASES_MAX {
            let Some(entries) = self.names.get(name) else { return Outcome::NoName };
            let records: Vec<Record> = entries.iter().filter_map(|entry| entry.record(kind)).collect();
            if !records.is_empty() {
                return Outcome::Records(records);
            }
            let other = entries.iter().find(|entry| !matches!(entry, Entry::Record(_)));
            match other {
                None => return Outcome::NoData,
                Some(Entry::Alias(target)) => name = target,
                Some(_) => return Outcome::Unavailable,
            }
        }
        Outcome::Unavailable
    }
}

impl asking::Resolver for Zone {
    /// Sends the answer; the receiver may be gone.
    fn look_up(&self, ask: Ask, tell: &UnboundedSender<Answer>) {
        let outcome = self.outcome(&ask.question.name, ask.question.kind);
        let _ = tell.send(Answer { id: ask.id, outcome, security: Security::Unknown });
    }
}

impl Entry {
    fn record(&self, kind: RecordKind) -> Option<Record> {
        let Entry::Record(record) = self else { return None };
        let own = match record {
            Record::A(_) => RecordKind::A,
            Record::Aaaa(_) => RecordKind::Aaaa,
            Record::Mx(..) => RecordKind::Mx,
            Record::Ns(_) => RecordKind::Ns,
            Record::Ptr(_) => RecordKind::Ptr,
            Record::Txt(_) => RecordKind::Txt,
            Record::Srv(..) => RecordKind::Srv,
            Record::Tlsa(_) => RecordKind::Tlsa,
        };
        (own == kind).then(|| record.clone())
    }
}

fn entry(line: &str) -> Option<(String, Entry)> {
    let (name, mut rest) = word(line);
    let (mut kind, mut data) = word(rest);
    for _ in 0..2 {
        let is_passed_over = kind.eq_ignore_ascii_case("IN") || kind.bytes().all(|byte| byte.is_ascii_digit());
        if is_passed_over {
            rest = data;
            (kind, data) = word(rest);
        }
    }
    let record = match kind.to_ascii_uppercase().as_str() {
        "SERVFAIL" => return Some((plain(name), Entry::Failure)),
        "CNAME" => return Some((plain(name), Entry::Alias(plain(word(data).0)))),
        "A" => Record::A(word(data).0.parse().ok()?),
        "AAAA" => Record::Aaaa(word(data).0.parse().ok()?),
        "NS" => Record::Ns(plain(word(data).0).into()),
        "PTR" => Record::Ptr(plain(word(data).0).into()),
        "MX" => {
            let (preference, host) = word(data);
            Record::Mx(preference.parse().ok()?, plain(word(host).0).into())
        }
        "SRV" => {
            let mut words = data.split_ascii_whitespace().skip(2);
            Record::Srv(words.next()?.parse().ok()?, plain(words.next()?).into())
        }
        "TLSA" => Record::Tlsa(tlsa(data)?.into()),
        "TXT" => Record::Txt(strings(data).into_bytes().into()),
        _ => return None,
    };
    Some((plain(name), Entry::Record(record)))
}

/// Three numbers, then hexadecimal digits in one word or several.
fn tlsa(data: &str) -> Option<Vec<u8>> {
    let mut words = data.split_ascii_whitespace();
    let mut bytes: Vec<u8> = words.by_ref().take(3).map(|word| word.parse().ok()).collect::<Option<_>>()?;
    let digits: String = words.collect();
    bytes.extend(text::hex::decode(digits.as_bytes())?);
    (bytes.len() > 3).then_some(bytes)
}

fn word(text: &str) -> (&str, &str) {
    let (word, rest) = text.split_at(text.find([' ', '\t']).unwrap_or(text.len()));
    (word, rest.trim_start())
}

/// As questions have it.
fn plain(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

/// Joins the quoted strings; a text that does not begin with a quote is returned whole.
fn strings(text: &str) -> String {
    if !text.starts_with('"') {
        return text.into();
    }
    let (mut out, mut inside) = (String::new(), false);
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => inside = !inside,
            ';' if !inside => break,
            '\\' if inside => out.extend(characters.next()),
            _ if inside => out.push(character),
            _ => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(zone: &Zone, name: &str, kind: RecordKind) -> Outcome {
        zone.outcome(name, kind)
    }

    #[test]
    fn lines_are_read_as_in_zone_files() {
        let text = "; a zone\n\
            a.b.example. 300 IN TXT \"v=spf1 \" \"-a\\\"ll\" ; why\n\
            a.b.example MX 10 Mx.Example.\n\
            plain.example TXT v=DKIM1; p=x\n\
            mx.example IN A 192.0.2.1\n\
            alias.example CNAME mx.example.\n\
            loop.example CNAME loop.example\n\
            dark.example SERVFAIL\n";
        let zone = Zone::parse(text).unwrap();
        let txt = |text: &str| Outcome::Records(vec![Record::Txt(text.as_bytes().into())]);
        assert_eq!(ask(&zone, "a.b.example", RecordKind::Txt), txt("v=spf1 -a\"ll"));
        assert_eq!(ask(&zone, "plain.example", RecordKind::Txt), txt("v=DKIM1; p=x"));
        assert_eq!(
            ask(&zone, "a.b.example", RecordKind::Mx),
            Outcome::Records(vec![Record::Mx(10, "mx.example".into())])
        );
        assert_eq!(
            ask(&zone, "alias.example", RecordKind::A),
            Outcome::Records(vec![Record::A([192, 0, 2, 1].into())])
        );
        assert_eq!(ask(&zone, "b.example", RecordKind::A), Outcome::NoData);
        assert_eq!(ask(&zone, "x.example", RecordKind::A), Outcome::NoName);
        assert_eq!(ask(&zone, "dark.example", RecordKind::A), Outcome::Unavailable);
        assert_eq!(ask(&zone, "loop.example", RecordKind::A), Outcome::Unavailable);
        assert_eq!(Zone::parse("a.example A x\n").unwrap_err(), "1: not NAME [TTL] [IN] TYPE DATA");
        assert!(Zone::parse("a.example\n").is_err());
    }
}
