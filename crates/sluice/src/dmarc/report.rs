//! An aggregate report of DMARC (RFC 9990, and RFC 7489 before it), read from its XML.
//!
//! Elements count by their names and the names of those that they are in, whatever their namespace; attributes, comments and document types
//! count for nothing, and no entity is expanded but the references of characters. CDATA, which HTML does not have, is escaped before the
//! tokeniser sees it. Bounds: [`RECORDS_MAX`], [`LIST_MAX`], and the lengths of values and names. A report without records is one.

use serde::Serialize;
use text::entities;
use text::html::{Token, Tokeniser};

/// Records of a report; [`Report::is_cut`] says that it has more.
const RECORDS_MAX: usize = 100_000;

/// Results, reasons and errors of one record or report.
const LIST_MAX: usize = 20;

/// Bytes of a value that are read.
const VALUE_BYTES_MAX: usize = 512;

/// Elements within each other.
const DEPTH_MAX: usize = 12;

/// A report.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    pub org_name: String,
    pub email: String,
    pub report_id: String,
    /// Seconds since 1970.
    pub begin: Option<i64>,
    /// Seconds since 1970.
    pub end: Option<i64>,
    pub errors: Vec<String>,
    pub policy: Policy,
    pub records: Vec<Record>,
    /// It has more records than are read, or it ends before its last element.
    pub is_cut: bool,
}

/// The policy that the reporter has seen.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Policy {
    pub domain: String,
    pub p: String,
    pub sp: String,
    pub np: String,
    pub adkim: String,
    pub aspf: String,
    pub testing: String,
}

/// Mails of one source with the same results.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Record {
    pub source_ip: String,
    pub count: u64,
    pub disposition: String,
    /// Whether a signature was aligned, `pass` or `fail`.
    pub dkim: String,
    /// The same of SPF.
    pub spf: String,
    pub reasons: Vec<String>,
    pub header_from: String,
    pub envelope_from: String,
    pub envelope_to: String,
    pub dkim_results: Vec<Checked>,
    pub spf_results: Vec<Checked>,
}

/// A result of DKIM or SPF by itself.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Checked {
    pub domain: String,
    pub selector: String,
    pub result: String,
}

/// A report that is being read.
#[derive(Default)]
struct Reader {
    report: Report,
    record: Record,
    checked: Checked,
    /// Names of the elements that are open, those that count.
    path: Vec<String>,
    /// Elements that are open beyond [`DEPTH_MAX`].
    deeper: usize,
    value: Vec<u8>,
    is_report: bool,
}

impl Report {
    /// Reads a document; none if it is no report.
    pub fn read(document: &[u8]) -> Option<Report> {
        let (mut reader, mut tokeniser) = (Reader::default(), Tokeniser::new());
        let mut rest = document;
        while let Some((front, data, behind)) = next_data(rest) {
            tokeniser.read(front, &mut |_, token| reader.token(token));
            tokeniser.read(&escaped(data), &mut |_, token| reader.token(token));
            rest = behind;
        }
        tokeniser.read(rest, &mut |_, token| reader.token(token));
        tokeniser.end(&mut |_, token| reader.token(token));
        reader.report.is_cut |= !reader.path.is_empty();
        reader.is_report.then_some(reader.report)
    }
}

impl Reader {
    fn token(&mut self, token: Token<'_>) {
        match token {
            Token::Open(name) => self.open(name),
            Token::Close(name) => self.close_named(name),
            Token::End { is_closed: true } => self.close(),
            Token::Text { bytes, .. } => self.text(bytes),
            Token::End { .. } | Token::Attribute(_) | Token::Value(_) | Token::Comment(_) | Token::Declaration(_) => {}
        }
    }

    fn open(&mut self, name: &[u8]) {
        self.value.clear();
        let name = local(name);
        if self.path.is_empty() && name == b"feedback" {
            self.is_report = true;
        }
        match self.path.len() < DEPTH_MAX {
            true => self.path.push(String::from_utf8_lossy(name).into_owned()),
            false => self.deeper = self.deeper.saturating_add(1),
        }
    }

    fn text(&mut self, bytes: &[u8]) {
        let room = VALUE_BYTES_MAX.saturating_sub(self.value.len());
        self.value.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
    }

    /// Closes an element with those in it that are not closed, as an address in angle brackets that is not escaped.
    fn close_named(&mut self, name: &[u8]) {
        let open = self.path.iter().rposition(|open| open.as_bytes() == local(name)).filter(|_| self.deeper == 0);
        if let Some(at) = open {
            self.report.is_cut |= self.path.get(at + 1..).unwrap_or_default().iter().any(|inner| inner == "record");
            self.path.truncate(at + 1);
        }
        if open.is_some() || self.deeper > 0 {
            self.close();
        }
    }

    fn close(&mut self) {
        if self.deeper > 0 {
            self.deeper -= 1;
            return;
        }
        let path = self.path.iter().map(String::as_str).collect::<Vec<_>>();
        let value = entities::decode(self.value.trim_ascii());
        let value = String::from_utf8_lossy(&value).trim().to_owned();
        self.value.clear();
        let (report, record) = (&mut self.report, &mut self.record);
        match path.get(1..).unwrap_or_default() {
            ["report_metadata", "org_name"] => report.org_name = value,
            ["report_metadata", "email"] => report.email = value,
            ["report_metadata", "report_id"] => report.report_id = value,
            ["report_metadata", "date_range", "begin"] => report.begin = value.parse().ok(),
            ["report_metadata", "date_range", "end"] => report.end = value.parse().ok(),
            ["report_metadata", "error"] => push(&mut report.errors, value),
            ["policy_published", name] => report.policy.set(name, value),
            ["record"] if report.records.len() < RECORDS_MAX => report.records.push(std::mem::take(record)),
            ["record"] => report.is_cut = true,
            ["record", "row", "source_ip"] => record.source_ip = value,
            ["record", "row", "count"] => match value.parse() {
                Ok(count) => record.count = count,
                Err(_) => {
                    push(&mut report.errors, format!("the count {value:?} of a record is no number: 0 stands for it"))
                }
            },
            ["record", "row", "policy_evaluated", "disposition"] => record.disposition = value,
            ["record", "row", "policy_evaluated", "dkim"] => record.dkim = value,
            ["record", "row", "policy_evaluated", "spf"] => record.spf = value,
            ["record", "row", "policy_evaluated", "reason", "type"] => push(&mut record.reasons, value),
            ["record", "identifiers" | "identities", "header_from"] => record.header_from = value,
            ["record", "identifiers" | "identities", "envelope_from"] => record.envelope_from = value,
            ["record", "identifiers" | "identities", "envelope_to"] => record.envelope_to = value,
            ["record", "auth_results", "dkim" | "spf", "domain"] => self.checked.domain = value,
            ["record", "auth_results", "dkim", "selector"] => self.checked.selector = value,
            ["record", "auth_results", "dkim" | "spf", "result"] => self.checked.result = value,
            ["record", "auth_results", "dkim"] => push(&mut record.dkim_results, std::mem::take(&mut self.checked)),
            ["record", "auth_results", "spf"] => push(&mut record.spf_results, std::mem::take(&mut self.checked)),
            _ => {}
        }
        self.path.pop();
    }
}

impl Policy {
    fn set(&mut self, name: &str, value: String) {
        match name {
            "domain" => self.domain = value,
            "p" => self.p = value,
            "sp" => self.sp = value,
            "np" => self.np = value,
            "adkim" => self.adkim = value,
            "aspf" => self.aspf = value,
            "testing" => self.testing = value,
            _ => {}
        }
    }
}

/// Finds the first section of CDATA outside of comments: the document before it, its content, and the document behind it.
fn next_data(document: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    const OPENS: &[u8] = b"<![CDATA[";
    let mut at = 0;
    loop {
        at += find(document.get(at..)?, b"<!")?;
        let rest = &document[at..];
        if let Some(data) = rest.strip_prefix(OPENS) {
            let end = find(data, b"]]>").unwrap_or(data.len());
            let behind = data.get(end + 3..).unwrap_or_default();
            return Some((&document[..at], &data[..end], behind));
        }
        at += match rest.starts_with(b"<!--") {
            true => 4 + find(&rest[4..], b"-->")?,
            false => 2,
        };
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

/// The text of a section of CDATA as it stands outside of one, as far as values go.
fn escaped(data: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    for &byte in data.iter().take(VALUE_BYTES_MAX) {
        match byte {
            b'<' => text.extend(b"&lt;"),
            b'&' => text.extend(b"&amp;"),
            byte => text.push(byte),
        }
    }
    text
}

/// A name without its prefix.
fn local(name: &[u8]) -> &[u8] {
    name.rsplit(|&byte| byte == b':').next().unwrap_or_default()
}

fn push<T>(list: &mut Vec<T>, one: T) {
    if list.len() < LIST_MAX {
        list.push(one);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read_whatever_its_namespace() {
        let plain = "<?xml version=\"1.0\"?><feedback xmlns=\"urn:ietf:params:xml:ns:dmarc-2.0\"><version>1.0</version>\
            <report_metadata><org_name>A &amp; B</org_name><report_id><![CDATA[<7 & > ]] &lt;]]>8</report_id><!-- <![CDATA[ -->\
            <date_range><begin>1</begin><end>86401</end></date_range></report_metadata>\
            <policy_published><domain>example.org</domain><p>reject</p><sp/><np>none</np></policy_published>\
            <record><row><source_ip>192.0.2.1</source_ip><count>7</count><policy_evaluated><disposition>none</disposition>\
            <dkim>pass</dkim><spf>fail</spf><reason><type>forwarded</type></reason></policy_evaluated></row>\
            <identifiers><header_from>example.org</header_from></identifiers><auth_results>\
            <dkim><domain>example.org</domain><selector>s</selector><result>pass</result></dkim>\
            <spf><domain>other.example</domain><result>softfail</result></spf></auth_results></record>\
            <record><row><source_ip>2001:db8::1</source_ip><count>x</count></row></record></feedback>";
        let named = plain.replace("</", "\u{1}").replace('<', "<d:").replace('\u{1}', "</d:");
        let named = named.replace("<d:?", "<?").replace("<d:!", "<!").replace("<d:7", "<7");
        let report = Report::read(plain.as_bytes()).unwrap();
        assert_eq!(Report::read(named.as_bytes()).as_ref(), Some(&report), "{named}");
        assert_eq!((&*report.org_name, &*report.report_id, report.end), ("A & B", "<7 & > ]] &lt;8", Some(86_401)));
        assert_eq!((&*report.policy.p, &*report.policy.sp, &*report.policy.np), ("reject", "", "none"));
        let [first, second] = &report.records[..] else { panic!("{report:?}") };
        assert_eq!(
            (first.count, &*first.dkim, &*first.spf, &first.reasons[..]),
            (7, "pass", "fail", &["forwarded".to_owned()][..])
        );
        assert_eq!((&*first.dkim_results[0].selector, &*first.spf_results[0].domain), ("s", "other.example"));
        assert_eq!(report.errors, ["the count \"x\" of a record is no number: 0 stands for it"]);
        assert_eq!((&*second.source_ip, second.count, second.dkim_results.len()), ("2001:db8::1", 0, 0));
    }

    #[test]
    fn a_report_that_is_torn_says_so_and_one_with_an_open_element_is_read() {
        let head = "<feedback><report_metadata><org_name>a</org_name><email>x <bad@b.test></email></report_metadata>";
        let record = "<record><row><count>3</count></row></record>";
        let whole = Report::read(format!("{head}{record}</feedback>").as_bytes()).unwrap();
        assert!(whole.records.len() == 1 && whole.org_name == "a" && !whole.is_cut, "{whole:?}");
        for torn in [format!("{head}{record}"), format!("{head}{record}<record><row></feedback>"), head.to_owned()] {
            assert!(Report::read(torn.as_bytes()).unwrap().is_cut, "{torn}");
        }
    }

    #[test]
    fn what_is_no_report_or_is_endless_is_bounded() {
        for text in ["", "<html><feedback></html>", "feedback", "<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>"] {
            assert_eq!(Report::read(text.as_bytes()), None, "{text}");
        }
        let deep = format!("<feedback>{}<record>{}", "<a>".repeat(100_000), "</a>".repeat(200_000));
        assert!(Report::read(deep.as_bytes()).is_some_and(|report| report.records.is_empty()));
        let many = format!("<feedback>{}</feedback>", "<record></record>".repeat(RECORDS_MAX + 5));
        let report = Report::read(many.as_bytes()).unwrap();
        assert!(report.records.len() == RECORDS_MAX && report.is_cut);
        let long = format!("<feedback><report_metadata><org_name>{}</org_name>", "x".repeat(10_000));
        assert_eq!(Report::read(long.as_bytes()).unwrap().org_name.len(), VALUE_BYTES_MAX);
    }
}
