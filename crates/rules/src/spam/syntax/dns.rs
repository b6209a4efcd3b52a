//! Rules that ask the DNS: lists of hosts and addresses of URIs (`urirhssub` and its family), and `askdns`.

use super::{word, words};
use crate::spam::problem::Fault;

/// A list of the DNS that the hosts of URIs are looked up in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UriList {
    /// Subject of the look-up.
    pub subject: Subject,
    /// The zone, without a last dot.
    pub zone: Box<str>,
    /// `A` or `TXT`.
    pub record: Box<str>,
    /// Condition on the answer: an address, a range or mask, or a bit mask.
    pub subtest: Option<Box<[u8]>>,
}

/// Part of a URI that is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// The addresses of its host (`uridnsbl`).
    Address,
    /// Its registered domain (`urirhsbl`).
    Domain,
    /// The registered domains of the domain's name servers (`urinsrhsbl`).
    NameServerDomain,
    /// The full names of the domain's name servers (`urifullnsrhsbl`).
    NameServer,
}

impl UriList {
    /// Subject of `keyword`, and whether it has a subtest; `None` where it is another keyword.
    pub fn keyword(keyword: &str) -> Option<(Subject, bool)> {
        Some(match keyword {
            "uridnsbl" => (Subject::Address, false),
            "uridnssub" => (Subject::Address, true),
            "urirhsbl" => (Subject::Domain, false),
            "urirhssub" => (Subject::Domain, true),
            "urinsrhsbl" => (Subject::NameServerDomain, false),
            "urinsrhssub" => (Subject::NameServerDomain, true),
            "urifullnsrhsbl" => (Subject::NameServer, false),
            "urifullnsrhssub" => (Subject::NameServer, true),
            _ => return None,
        })
    }

    /// Reads what stands behind the rule's name.
    pub fn read(subject: Subject, has_subtest: bool, text: &[u8]) -> Result<UriList, Fault> {
        const FORM: &str = "write NAME zone A, or with a subtest NAME zone A 127.0.0.2";
        let mut parts = words(text);
        let (zone, record, subtest) = (parts.next(), parts.next(), parts.next());
        let zone = zone.and_then(zone_name).ok_or_else(|| Fault::new("the list has no zone", FORM))?;
        let record = match record {
            Some(record) if record.eq_ignore_ascii_case(b"A") => "A",
            Some(record) if record.eq_ignore_ascii_case(b"TXT") => "TXT",
            _ => return Err(Fault::new("a list is asked for records A or TXT", FORM)),
        };
        if has_subtest != subtest.is_some() || parts.next().is_some() {
            let reason = if has_subtest {
                "the list has no subtest, or more than one"
            } else {
                "something stands behind the record"
            };
            return Err(Fault::new(reason, FORM));
        }
        Ok(UriList { subject, zone: zone.into(), record: record.into(), subtest: subtest.map(Into::into) })
    }
}

fn zone_name(zone: &[u8]) -> Option<&str> {
    const NAME_BYTES_MAX: usize = 253;
    let zone = zone.strip_suffix(b".").unwrap_or(zone);
    let fits = (1..=NAME_BYTES_MAX).contains(&zone.len())
        && zone.iter().all(|byte| byte.is_ascii_alphanumeric() || b".-_/".contains(byte));
    core::str::from_utf8(zone).ok().filter(|_| fits)
}

/// `askdns`: asks for a name made from what is known of the message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskDns {
    /// The name, with tags such as `_SENDERDOMAIN_`.
    pub template: Box<[u8]>,
    /// The types of records, in capitals; `A` where none is given.
    pub records: Vec<Box<str>>,
    /// Condition on the answer: an expression, an address, a range, a mask; any answer where there is none.
    pub filter: Option<Box<[u8]>>,
}

impl AskDns {
    /// Reads what stands behind the rule's name.
    pub fn read(text: &[u8]) -> Result<AskDns, Fault> {
        const FORM: &str = "write NAME template [type [filter]]";
        const TYPES: [&str; 14] =
            ["A", "AAAA", "ANY", "CNAME", "HINFO", "MX", "NAPTR", "NS", "PTR", "SOA", "SPF", "SRV", "TLSA", "TXT"];
        let (template, rest) = word(text);
        if template.is_empty() {
            return Err(Fault::new("there is nothing to ask for", FORM));
        }
        let (records, filter) = word(rest);
        let mut types = Vec::new();
        for record in records.split(|&byte| byte == b',').filter(|record| !record.is_empty()) {
            let record = String::from_utf8_lossy(record).to_ascii_uppercase();
            if !TYPES.contains(&&*record) {
                return Err(Fault::new(format!("there is no type of record {record:?}"), FORM));
            }
            types.push(record.into());
        }
        if types.is_empty() {
            types.push("A".into());
        }
        Ok(AskDns { template: template.into(), records: types, filter: (!filter.is_empty()).then(|| filter.into()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_have_a_zone_a_record_and_perhaps_a_subtest() {
        let read = |keyword: &str, text: &str| {
            let (subject, has_subtest) = UriList::keyword(keyword).unwrap();
            UriList::read(subject, has_subtest, text.as_bytes())
        };
        let list = read("urirhssub", "multi.example. A 127.0.0.2").unwrap();
        assert_eq!(
            (&*list.zone, &*list.record, list.subtest.as_deref()),
            ("multi.example", "A", Some(&b"127.0.0.2"[..]))
        );
        assert!(read("uridnsbl", "x.example TXT").is_ok());
        for (keyword, text) in [
            ("uridnsbl", ""),
            ("urirhsbl", "x.y"),
            ("urirhsbl", "x.y MX"),
            ("urirhssub", "x.y A"),
            ("urirhsbl", "x.y A 2"),
        ] {
            assert!(read(keyword, text).is_err(), "{keyword} {text}");
        }
    }

    #[test]
    fn a_question_has_a_template_types_and_a_filter() {
        let asked = AskDns::read(b"_SENDERDOMAIN_.x.example a,txt /^127 x/i").unwrap();
        assert_eq!(asked.records, ["A".into(), "TXT".into()]);
        assert_eq!(asked.filter.as_deref(), Some(&b"/^127 x/i"[..]));
        assert_eq!(AskDns::read(b"x.y").unwrap().records, ["A".into()]);
        assert!(AskDns::read(b"").is_err());
        assert!(AskDns::read(b"x.y FOO").is_err());
    }
}
