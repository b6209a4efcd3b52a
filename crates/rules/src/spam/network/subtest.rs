//! Subtests: conditions on an answer for a rule to hit.
//!
//! Addresses of 127.255.255.0/24 say that a list was asked by somebody who may not ask: they are no listing. Only a rule that
//! names them hits by them.

use core::net::Ipv4Addr;

use flow::{Outcome, Record, RecordKind};
use pattern::expression::{Expression, Flags, Progress, Want};
use stream::Fuel;

use crate::spam::syntax::expression::Expression as Written;

/// Steps of one search in an answer.
const STEPS_MAX: u64 = 1_000_000;

/// Records of one answer that are looked at.
const RECORDS_MAX: usize = 64;

/// A number, a range or a mask, as rules write them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Numbers {
    /// Any of these bits is set, in an address of 127.0.0.0/8.
    Bits(u32),
    /// From this to that.
    Range(u32, u32),
    /// The first value, in the bits of the second.
    Masked(u32, u32),
}

/// A test of one record.
#[derive(Debug)]
enum Test {
    /// Any will do.
    Any,
    /// Its text is this.
    Text(Box<[u8]>),
    /// The expression matches its text.
    Matches(Expression),
    /// Its address fits, or its text is what the rule has written.
    Numbers(Numbers, Box<[u8]>),
    /// Response codes, whatever the records: the name exists, or does not.
    Codes { exists: bool, missing: bool },
}

/// Condition on an answer.
#[derive(Debug)]
pub struct Subtest {
    test: Test,
    /// The rule names addresses that say that it may not ask.
    names_refusals: bool,
    /// Addresses outside of 127.0.0.0/8 are no answers of a list.
    is_list: bool,
}

/// The text of a record, and its number where it is an address of version 4.
type Seen = (Vec<u8>, Option<u32>);

impl Subtest {
    /// That of a list of hosts in the header: an address, a mask, or an expression.
    pub fn of_list(text: Option<&[u8]>) -> Option<Subtest> {
        let Some(text) = text else { return Some(Subtest::new(Test::Any, b"", true)) };
        let is_digits = text.iter().all(u8::is_ascii_digit);
        let test = match () {
            () if is_digits && !text.is_empty() => Test::Numbers(Numbers::Bits(decimal(text)?), text.into()),
            () if address(text).is_some() => Test::Text(text.into()),
            () => Test::Matches(Expression::new(text, Flags::NONE).ok()?),
        };
        Some(Subtest::new(test, text, true))
    }

    /// That of a list of hosts in addresses: a number, a range or a mask.
    pub fn of_uri(text: Option<&[u8]>) -> Option<Subtest> {
        let Some(text) = text else { return Some(Subtest::new(Test::Any, b"", true)) };
        Some(Subtest::new(Test::Numbers(numbers(text)?, text.into()), text, false))
    }

    /// That of a list of digests: an expression, or any address of a list.
    pub fn of_digest(text: Option<&[u8]>) -> Option<Subtest> {
        match text.filter(|text| !text.is_empty()) {
            None => Some(Subtest::new(Test::Any, b"", true)),
            Some(text) => Some(Subtest::new(Test::Matches(Expression::new(text, Flags::NONE).ok()?), text, false)),
        }
    }

    /// That of `askdns`: an expression, a text in quotes, a number, a range, a mask, or names of results in brackets.
    pub fn of_template(text: Option<&[u8]>) -> Option<Subtest> {
        let Some(text) = text else { return Some(Subtest::new(Test::Any, b"", false)) };
        let is_quoted = |quote: u8| text.len() > 1 && text[0] == quote && text.ends_with(&[quote]);
        let test = match text[..] {
            [b'/', ..] | [b'm', ..] => Test::Matches(Written::read(text).ok()?.ready().ok()?.expression.clone()),
            _ if is_quoted(b'"') || is_quoted(b'\'') => Test::Text(text[1..text.len() - 1].into()),
            [b'[', .., b']'] => codes(&text[1..text.len() - 1]),
            _ => Test::Numbers(numbers(text)?, text.into()),
        };
        Some(Subtest::new(test, text, false))
    }

    fn new(test: Test, text: &[u8], is_list: bool) -> Subtest {
        let plain: Vec<u8> = text.iter().copied().filter(|&byte| byte != b'\\').collect();
        let names_refusals = memchr::memmem::find(&plain, b"127.255.255").is_some();
        Subtest { test, names_refusals, is_list }
    }

    /// The texts of the records that make the rule hit.
    pub fn hits(&self, kind: RecordKind, outcome: &Outcome) -> Vec<Vec<u8>> {
        let records = match (&self.test, outcome) {
            (_, Outcome::Unavailable) => return Vec::new(),
            (&Test::Codes { exists, missing }, outcome) => {
                let hits = if *outcome == Outcome::NoName { missing } else { exists };
                return if hits { vec![Vec::new()] } else { Vec::new() };
            }
            (_, Outcome::NoData | Outcome::NoName) => return Vec::new(),
            (_, Outcome::Records(records)) => records,
        };
        let seen = records.iter().take(RECORDS_MAX).filter_map(|record| read(record, kind));
        seen.filter(|seen| self.fits(seen)).map(|(text, _)| text).collect()
    }

    fn fits(&self, (text, number): &Seen) -> bool {
        let is_refusal = number.is_some_and(|number| number & 0xffff_ff00 == REFUSED);
        let is_foreign = self.is_list && number.is_some_and(|number| number >> 24 != LISTED);
        if is_refusal && !self.names_refusals || is_foreign {
            return false;
        }
        match &self.test {
            Test::Any => true,
            Test::Text(wanted) => *text == **wanted,
            Test::Matches(expression) => {
                let found = expression.search(Want::Hit).run(text, &mut Fuel::new(STEPS_MAX));
                matches!(found, Progress::Match(_))
            }
            Test::Numbers(_, written) if *text == **written => true,
            Test::Numbers(numbers, _) => number.is_some_and(|number| numbers.fit(number)),
            Test::Codes { .. } => false,
        }
    }
}

/// First octet of every address of a list.
const LISTED: u32 = 127;

/// Addresses that begin like this say that one may not ask.
const REFUSED: u32 = 0x7fff_ff00;

impl Numbers {
    fn fit(self, number: u32) -> bool {
        match self {
            Numbers::Bits(bits) => number & bits != 0 && number >> 24 == LISTED,
            Numbers::Range(first, last) => (first..=last).contains(&number),
            Numbers::Masked(value, mask) => number & mask == value & mask,
        }
    }
}

/// `N`, `N-M`, `N/M`: decimal, hexadecimal or an address; an address alone is that address.
fn numbers(text: &[u8]) -> Option<Numbers> {
    let at = text.iter().position(|byte| b"-/".contains(byte));
    let Some(at) = at else {
        return Some(match address(text) {
            Some(address) => Numbers::Range(address, address),
            None => Numbers::Bits(number(text)?),
        });
    };
    let (first, second) = (number(&text[..at])?, number(&text[at + 1..])?);
    Some(if text[at] == b'-' { Numbers::Range(first, second) } else { Numbers::Masked(first, second) })
}

fn number(text: &[u8]) -> Option<u32> {
    let text = text.trim_ascii();
    let hexadecimal = text.strip_prefix(b"0x").and_then(|digits| core::str::from_utf8(digits).ok());
    match hexadecimal {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => address(text).or_else(|| decimal(text)),
    }
}

fn decimal(text: &[u8]) -> Option<u32> {
    core::str::from_utf8(text).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok()
}

fn address(text: &[u8]) -> Option<u32> {
    core::str::from_utf8(text).ok()?.parse::<Ipv4Addr>().ok().map(u32::from)
}

/// Names or numbers of results; those that say that a server has failed are told as no answer, and never hit.
fn codes(text: &[u8]) -> Test {
    let has = |name: &str, number: &str| {
        let mut words = text.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
        words.any(|word| word.eq_ignore_ascii_case(name.as_bytes()) || word == number.as_bytes())
    };
    Test::Codes { exists: has("NOERROR", "0"), missing: has("NXDOMAIN", "3") }
}

/// A record of the kind that was asked for, as it is written in a zone.
fn read(record: &Record, kind: RecordKind) -> Option<Seen> {
    Some(match (record, kind) {
        (Record::A(address), RecordKind::A) => (address.to_string().into_bytes(), Some(u32::from(*address))),
        (Record::Aaaa(address), RecordKind::Aaaa) => (address.to_string().into_bytes(), None),
        (Record::Mx(preference, name), RecordKind::Mx) => (format!("{preference} {name}.").into_bytes(), None),
        (Record::Ns(name), RecordKind::Ns) | (Record::Ptr(name), RecordKind::Ptr) => {
            (format!("{name}.").into_bytes(), None)
        }
        (Record::Txt(text), RecordKind::Txt) => (text.to_vec(), None),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(addresses: &[[u8; 4]]) -> Outcome {
        Outcome::Records(addresses.iter().map(|&address| Record::A(address.into())).collect())
    }

    fn hits(subtest: Option<Subtest>, address: [u8; 4]) -> bool {
        !subtest.expect("it can be read").hits(RecordKind::A, &told(&[address])).is_empty()
    }

    #[test]
    fn answers_of_lists_are_addresses_masks_and_expressions() {
        for (test, address, wanted) in [
            ("127.0.0.2", [127, 0, 0, 2], true),
            ("127.0.0.2", [127, 0, 0, 3], false),
            ("4", [127, 0, 0, 6], true),
            ("4", [127, 0, 0, 3], false),
            ("4", [10, 0, 0, 4], false),
            (r"^127\.0\.0\.[4567]$", [127, 0, 0, 7], true),
            (r"^127\.0\.0\.[4567]$", [127, 0, 0, 8], false),
        ] {
            assert_eq!(hits(Subtest::of_list(Some(test.as_bytes())), address), wanted, "{test} {address:?}");
        }
        assert!(hits(Subtest::of_list(None), [127, 0, 0, 9]) && !hits(Subtest::of_list(None), [192, 0, 2, 1]));
    }

    #[test]
    fn answers_of_lists_of_names_are_ranges_and_masks_too() {
        for (test, address, wanted) in [
            ("127.0.1.20-127.0.1.39", [127, 0, 1, 30], true),
            ("127.0.1.20-127.0.1.39", [127, 0, 1, 40], false),
            ("0.0.0.16/0.0.0.16", [127, 0, 0, 17], true),
            ("0x7f000102", [127, 0, 0, 2], true),
            ("8", [127, 0, 0, 12], true),
            ("127.0.1.2", [127, 0, 1, 2], true),
        ] {
            assert_eq!(hits(Subtest::of_uri(Some(test.as_bytes())), address), wanted, "{test} {address:?}");
        }
        for test in ["", "x", "1-", "300.1.1.1", "0x", "99999999999"] {
            assert!(Subtest::of_uri(Some(test.as_bytes())).is_none(), "{test}");
        }
    }

    #[test]
    fn a_refusal_is_no_listing_but_for_a_rule_that_names_it() {
        let refused = [127, 255, 255, 254];
        for test in [None, Some("2"), Some(r"^127\."), Some("254")] {
            assert!(!hits(Subtest::of_list(test.map(str::as_bytes)), refused), "{test:?}");
        }
        assert!(!hits(Subtest::of_uri(Some(b"0x7f000000-0x7fffffff")), refused));
        assert!(hits(Subtest::of_list(Some(br"^127\.255\.255\.254$")), refused));
        assert!(hits(Subtest::of_uri(Some(b"127.255.255.254")), refused));
        assert!(!hits(Subtest::of_digest(None), refused) && !hits(Subtest::of_template(Some(b"/./")), refused));
    }

    #[test]
    fn templates_test_texts_and_results() {
        let fits = |test: &str, kind, outcome: &Outcome| {
            !Subtest::of_template(Some(test.as_bytes())).unwrap().hits(kind, outcome).is_empty()
        };
        let text = |text: &str| Outcome::Records(vec![Record::Txt(text.as_bytes().into())]);
        assert!(fits(r"/^v=spf1 \+all$/", RecordKind::Txt, &text("v=spf1 +all")));
        assert!(fits("\"a b\"", RecordKind::Txt, &text("a b")) && !fits("'a'", RecordKind::Txt, &text("a b")));
        assert!(fits("[NXDOMAIN]", RecordKind::A, &Outcome::NoName));
        assert!(fits("[noerror, 3]", RecordKind::A, &Outcome::NoData));
        assert!(!fits("[SERVFAIL]", RecordKind::A, &Outcome::Unavailable));
        let exchanger = Outcome::Records(vec![Record::Mx(10, "mx.example".into())]);
        assert!(fits(r"/^10 mx\.example\.$/", RecordKind::Mx, &exchanger));
    }
}
