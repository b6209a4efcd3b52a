//! Fuzz bodies.

use flow::{Answer, Ask, Outcome, Record as Answered, RecordKind, Security};

use crate::dmarc::Record;
use crate::key::{Algorithm, Key};
use crate::message::LineEnds;
use crate::spf::{self, Query};
use crate::{Check, Context, Inquiry, Limits, Results, inquiry, report};

/// The most answers that any check waits for.
const ANSWERS_MAX: usize = 600;

/// Fuzz body: policies of SPF, a line each. Which name has which is decided by its length. The order of answers does not
/// matter, and the limits hold.
pub fn fuzz_spf(data: &[u8]) {
    let texts: Vec<&[u8]> = data.split(|&byte| byte == b'\n').collect();
    let query = Query {
        client: [192, 0, 2, 1].into(),
        helo: "h.example",
        sender: "a.b@c.example",
        receiver: "r.example",
        now: 1_000_000_000,
    };
    let run = |backwards: bool| {
        let mut inquiry = Inquiry::new(inquiry::Limits::SENDERS, 0);
        for _ in 0..ANSWERS_MAX {
            if let Ok(report) = spf::check(&query, &mut inquiry) {
                return report;
            }
            let mut asks: Vec<Ask> = core::iter::from_fn(|| inquiry.ask()).collect();
            if backwards {
                asks.reverse();
            }
            asks.iter().for_each(|ask| inquiry.answer(answer(ask, &texts)));
        }
        panic!("no result")
    };
    let report = run(false);
    assert_eq!(report, run(true));
    assert!(report.lookups <= 11);
    let is_plain = |text: &str| text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    assert!(report.explanation.is_none_or(|text| is_plain(&text)));
}

/// Answers by the length of the name: texts, addresses, nothing at all.
fn answer(ask: &Ask, texts: &[&[u8]]) -> Answer {
    let len = ask.question.name.len();
    let text = texts.get(len % texts.len().max(1)).copied().unwrap_or_default();
    let records = match ask.question.kind {
        RecordKind::Txt if len.is_multiple_of(11) => vec![],
        RecordKind::Txt => vec![Answered::Txt(text.into())],
        RecordKind::A if len.is_multiple_of(3) => vec![Answered::A([192, 0, 2, 1].into())],
        RecordKind::A => vec![],
        RecordKind::Aaaa => vec![Answered::Aaaa(core::net::Ipv6Addr::LOCALHOST)],
        RecordKind::Mx => (0..len % 13).map(|at| Answered::Mx(10, format!("m{at}.example").into())).collect(),
        RecordKind::Ns | RecordKind::Srv | RecordKind::Tlsa => Vec::new(),
        RecordKind::Ptr => (0..len % 13).map(|at| Answered::Ptr(format!("p{at}.c.example").into())).collect(),
    };
    let outcome = match (records.is_empty(), len % 17) {
        (_, 0) => Outcome::Unavailable,
        (true, _) => Outcome::NoName,
        (false, _) => Outcome::Records(records),
    };
    Answer { id: ask.id, outcome, security: Security::Unknown }
}

/// Fuzz body: texts of the DNS, a line each, an empty line, then a mail with its signatures and chain. However the mail
/// is cut, and whenever answers arrive, the results are the same; and the written field can be read.
pub fn fuzz_mail(data: &[u8]) {
    let at = memchr::memmem::find(data, b"\n\n").unwrap_or(data.len());
    let texts: Vec<&[u8]> = data[..at].split(|&byte| byte == b'\n').collect();
    let mail = data.get(at + 2..).unwrap_or_default();
    for ends in [LineEnds::Crlf, LineEnds::Any] {
        let results = run(mail, &texts, ends, mail.len());
        assert_eq!(results, run(mail, &texts, ends, 1));
        let field = report::field("r.example", "h.example", &results);
        let value = field.split_once(':').map(|(_, value)| value).unwrap_or_default();
        let told = report::parse(value.as_bytes()).expect("what was written is read");
        assert!(told.results.iter().any(|found| &*found.method == "dmarc"), "{field}");
        assert!(report::is_forged(value.as_bytes(), "r.example"));
    }
}

fn run(mail: &[u8], texts: &[&[u8]], ends: LineEnds, piece: usize) -> Results {
    let context = Context {
        helo: "h.example".into(),
        receiver: "r.example".into(),
        now: 1_528_640_000,
        ends,
        ..Context::default()
    };
    let mut check = Check::new(context, Limits::default());
    for piece in mail.chunks(piece.max(1)) {
        check.feed(piece);
    }
    check.finish();
    for _ in 0..ANSWERS_MAX {
        if let Some(results) = check.results() {
            return results.clone();
        }
        // Every key is the first text that is one: so chains may pass.
        let Some(ask) = check.ask() else { break };
        let is_key = ask.question.name.contains("._domainkey.");
        let key = texts.iter().find(|text| Key::parse(text).is_ok()).filter(|_| is_key);
        let mut given = answer(&ask, texts);
        if let Some(key) = key {
            given.outcome = Outcome::Records(vec![Answered::Txt((*key).into())]);
        }
        check.answer(given);
    }
    panic!("no results")
}

/// Fuzz body: a text of the DNS that is a key or a policy of DMARC.
pub fn fuzz_key(data: &[u8]) {
    if let Ok(key) = Key::parse(data) {
        for algorithm in [Algorithm::RsaSha1, Algorithm::RsaSha256, Algorithm::Ed25519Sha256] {
            assert!(key.verify(algorithm, b"signed", data).is_err());
        }
        assert!(key.bits() > 0);
    }
    if let Some(record) = Record::parse(data) {
        assert!(record.policy.weakened() <= record.policy);
    }
}

/// Fuzz body: the value of an `Authentication-Results`, and the same as a sender of ours.
pub fn fuzz_report(data: &[u8]) {
    if let Some(told) = report::parse(data) {
        assert!(told.results.len() <= report::RESULTS_MAX);
        assert!(report::is_forged(data, told.authserv_id.trim_end_matches('.')) || told.authserv_id.ends_with('.'));
    }
    let text = String::from_utf8_lossy(data);
    let mut results = Results::default();
    results.mailfrom.sender = (&*text).into();
    results.mailfrom.reason = (&*text).into();
    results.dmarc.reason = (&*text).into();
    let field = report::field("r.example", &text, &results);
    assert!(field.lines().skip(1).all(|line| line.starts_with('\t')), "{field}");
    let value = field.split_once(':').map(|(_, value)| value).unwrap_or_default();
    let told = report::parse(value.as_bytes()).expect("what was written is read");
    let methods: Vec<&str> = told.results.iter().map(|found| &*found.method).collect();
    // One result of SPF stands for both where they are the same.
    let wanted = ["spf", "spf", "dkim", "dmarc"];
    let wanted = &wanted[usize::from(results.mailfrom == results.helo)..];
    assert_eq!(methods, wanted, "{field}");
}
