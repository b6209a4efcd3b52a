//! The whole check: any cut, answers in any order, one at a time or all at once, and hostile mails.

use std::time::{Duration, Instant};

use auth::{Check, Context, Limits, Results, arc, dkim, dmarc, report, spf};
use flow::Ask;

use crate::zone::{Entry, Zone};

/// The example of RFC 8463 appendix A, and its author's policy.
const MAIL: &str = concat!(
    "DKIM-Signature: v=1; a=ed25519-sha256; c=relaxed/relaxed;\r\n",
    " d=football.example.com; i=@football.example.com;\r\n",
    " q=dns/txt; s=brisbane; t=1528637909; h=from : to :\r\n",
    " subject : date : message-id : from : subject : date;\r\n",
    " bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;\r\n",
    " b=/gCrinpcQOoIfuHNQIbq4pgh9kyIK3AQUdt9OdqQehSwhEIug4D11Bus\r\n",
    " Fa3bT3FY5OsU7ZbnKELq+eXdp1Q1Dw==\r\n",
    "DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed;\r\n",
    " d=football.example.com; i=@football.example.com;\r\n",
    " q=dns/txt; s=test; t=1528637909; h=from : to : subject :\r\n",
    " date : message-id : from : subject : date;\r\n",
    " bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;\r\n",
    " b=F45dVWDfMbQDGHJFlXUNB2HKfbCeLRyhDXgFpEL8GwpsRe0IeIixNTe3\r\n",
    " DhCVlUrSjV4BwcVcOF6+FF3Zo9Rpo1tFOeS9mPYQTnGdaSGsgeefOsk2Jz\r\n",
    " dA+L10TeYt9BgDfQNZtKdN1WO//KgIqXP7OdEFE4LjFYNcUxZQ4FADY+8=\r\n",
    "From: Joe SixPack <joe@football.example.com>\r\n",
    "To: Suzie Q <suzie@shopping.example.net>\r\n",
    "Subject: Is dinner ready?\r\n",
    "Date: Fri, 11 Jul 2003 21:00:37 -0700 (PDT)\r\n",
    "Message-ID: <20030712040037.46341.5F8J@football.example.com>\r\n",
    "\r\n",
    "Hi.\r\n\r\nWe lost the game.  Are you hungry yet?\r\n\r\nJoe.\r\n",
);

const NOW: u64 = 1_528_640_000;

/// Longer than any work that grows with its input alone takes on a busy machine.
const ENDLESS: Duration = Duration::from_secs(60);

fn zone() -> Zone {
    let mut zone = Zone::default()
        .text(
            "brisbane._domainkey.football.example.com",
            "v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=",
        )
        .text(
            "test._domainkey.football.example.com",
            "v=DKIM1; k=rsa; p=MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDkHlOQoBTzWRiGs5V6NpP3idY6Wk08a5qhdR6wy5bdOKb2jLQiY/J16JYi0Qvx/byYzCNb3W91y3FutACDfzwQ/BC/e/8uBsCR+yz1Lxj+PL6lHvqMKrM3rG4hstT5QjvHO9PzoxZyVYLzBfO2EeC3Ip3G+2kryOTIKT+l/K4w3QIDAQAB",
        )
        .text("_dmarc.example.com", "v=DMARC1; p=reject; adkim=s")
        .text("bounce.example.com", "v=spf1 mx include:spf.example.com -all")
        .text("spf.example.com", "v=spf1 ip4:192.0.2.0/24 -all");
    zone.add("bounce.example.com", Entry::Record(flow::Record::Mx(10, "mx.example.com".into())));
    zone.add_address("mx.example.com", "198.51.100.1");
    zone
}

fn context(sender: &str) -> Context {
    Context {
        client: Some([192, 0, 2, 1].into()),
        helo: "client.example.net".into(),
        sender: sender.into(),
        receiver: "mx.test".into(),
        now: NOW,
        ..Context::default()
    }
}

/// How a check is driven.
#[derive(Debug, Clone, Copy)]
struct Way {
    piece: usize,
    /// Answers before the mail, where there are some.
    early: bool,
    backwards: bool,
    one_at_a_time: bool,
}

const WAYS: [Way; 5] = [
    Way { piece: usize::MAX, early: false, backwards: false, one_at_a_time: false },
    Way { piece: usize::MAX, early: true, backwards: true, one_at_a_time: false },
    Way { piece: 1, early: true, backwards: false, one_at_a_time: true },
    Way { piece: 7, early: false, backwards: true, one_at_a_time: true },
    Way { piece: 100, early: true, backwards: true, one_at_a_time: true },
];

fn run(context: Context, mail: &[u8], zone: &Zone, way: Way) -> (Results, usize) {
    let mut check = Check::new(context, Limits::default());
    let mut waiting: Vec<Ask> = Vec::new();
    let answer = |check: &mut Check, waiting: &mut Vec<Ask>| {
        waiting.extend(std::iter::from_fn(|| check.ask()));
        if way.backwards {
            waiting.reverse();
        }
        let count = if way.one_at_a_time { waiting.len().min(1) } else { waiting.len() };
        waiting.drain(..count).for_each(|ask| check.answer(zone.answer(&ask)));
    };
    for piece in mail.chunks(way.piece.min(mail.len().max(1))) {
        if way.early {
            answer(&mut check, &mut waiting);
        }
        check.feed(piece);
    }
    check.finish();
    for _ in 0..1_000 {
        if let Some(results) = check.results() {
            let results = results.clone();
            return (results, check.questions());
        }
        answer(&mut check, &mut waiting);
    }
    panic!("no results");
}

#[test]
fn a_mail_is_judged_alike_whatever_the_cut_and_the_order_of_answers() {
    let (reference, _) = run(context("joe@bounce.example.com"), MAIL.as_bytes(), &zone(), WAYS[0]);
    assert_eq!(reference.mailfrom.outcome, spf::Outcome::Pass);
    assert_eq!(reference.helo.outcome, spf::Outcome::None);
    let signatures: Vec<_> = reference.dkim.iter().map(|report| (report.outcome, report.key_bits)).collect();
    assert_eq!(signatures, [(dkim::Outcome::Pass, Some(256)), (dkim::Outcome::Pass, Some(1_024))]);
    assert_eq!(reference.arc.outcome, arc::Outcome::None);
    assert_eq!(reference.dmarc.outcome, dmarc::Outcome::Pass);
    assert!(reference.dmarc.spf_aligned && reference.dmarc.dkim_aligned);
    for way in WAYS {
        let (results, _) = run(context("joe@bounce.example.com"), MAIL.as_bytes(), &zone(), way);
        assert_eq!(results, reference, "{way:?}");
    }
}

/// With one byte of the mail changed nothing panics, and signed content no longer verifies.
#[test]
fn a_mail_that_was_changed_does_not_pass() {
    let (body, header) = (MAIL.find("Hi.").unwrap(), MAIL.find("Is dinner").unwrap());
    for at in [body, header, MAIL.find("joe@").unwrap(), MAIL.find("Fri, 11").unwrap()] {
        let mut mail = MAIL.as_bytes().to_vec();
        mail[at] ^= 1;
        let (results, _) = run(context(""), &mail, &zone(), WAYS[0]);
        assert!(results.dkim.iter().all(|report| report.outcome == dkim::Outcome::Fail), "{at}: {:?}", results.dkim);
        assert_eq!(results.dmarc.outcome, dmarc::Outcome::Fail);
    }
}

#[test]
fn every_mutant_of_a_mail_is_judged() {
    let mail = MAIL.as_bytes();
    for at in 0..mail.len() {
        let mut cut = mail[..at].to_vec();
        run(context(""), &cut, &zone(), WAYS[0]);
        cut.extend_from_slice(&mail[(at + 7).min(mail.len())..]);
        run(context(""), &cut, &zone(), WAYS[0]);
        for byte in [b';', b'\r', b'=', b':', 0xff] {
            let mut mutant = mail.to_vec();
            mutant[at] = byte;
            run(context(""), &mutant, &zone(), WAYS[0]);
        }
    }
}

/// RFC 8616: names with letters beyond ASCII in client and header are A-labels in the DNS.
#[test]
fn domains_beyond_ascii_are_asked_for_as_the_dns_has_them() {
    let zone = Zone::default()
        .text("xn--bcher-kva.example", "v=spf1 ip4:192.0.2.0/24 -all")
        .text("_dmarc.xn--bcher-kva.example", "v=DMARC1; p=reject");
    let mail = "From: Joe <joe@B\u{fc}cher.example>\r\nSubject: x\r\n\r\nHi.\r\n";
    let (results, _) = run(context("joe@b\u{fc}cher.example"), mail.as_bytes(), &zone, WAYS[0]);
    assert_eq!(results.dmarc.outcome, dmarc::Outcome::Pass, "{results:?}");
    let field = report::field("mx.test", "client.example.net", &results);
    assert!(field.contains("header.from=xn--bcher-kva.example"), "{field}");
    let (results, _) = run(context("joe@elsewhere.example"), mail.as_bytes(), &zone, WAYS[0]);
    assert_eq!(results.dmarc.outcome, dmarc::Outcome::Fail, "{results:?}");
}

#[test]
fn when_time_is_up_there_are_results() {
    let mut check = Check::new(context("joe@bounce.example.com"), Limits::default());
    check.feed(MAIL.as_bytes());
    check.finish();
    assert!(check.ask().is_some() && check.results().is_none());
    check.give_up();
    let results = check.results().unwrap();
    assert_eq!(results.mailfrom.outcome, spf::Outcome::TempError);
    assert!(results.dkim.iter().all(|report| report.outcome == dkim::Outcome::TempError));
    assert_eq!(results.dmarc.outcome, dmarc::Outcome::TempError);
}

#[test]
fn a_file_without_a_client_is_checked_for_what_it_holds() {
    let context = Context { client: None, ..context("") };
    let (results, _) = run(context, MAIL.as_bytes(), &zone(), WAYS[0]);
    assert_eq!(results.mailfrom.outcome, spf::Outcome::None);
    assert_eq!(results.dmarc.outcome, dmarc::Outcome::Pass);
    let field = report::field("mx.test", "client.example.net", &results);
    assert!(field.contains("dkim=pass (256-bit key) header.d=football.example.com"), "{field}");
    assert!(field.contains("dmarc=pass (policy reject of example.com) header.from=football.example.com"), "{field}");
}

/// Each costs some questions and some time, and no more.
#[test]
fn hostile_mails_are_bounded() {
    let signature = |index: usize, tail: &str| {
        format!(
            "DKIM-Signature: v=1; a=rsa-sha256; d=d{index}.example; s=s; h=from; l={index}; bh=YQ==; b=YQ=={tail}\r\n"
        )
    };
    let many = |count: usize| (0..count).map(|index| signature(index, "")).collect::<String>();
    let names = "from:".repeat(20_000);
    let sets = |count: usize| -> String {
        let set = |i| {
            format!(
                "ARC-Seal: i={i}; a=rsa-sha256; cv={}; d=d{i}.example; s=s; b=YQ==\r\n\
                 ARC-Message-Signature: i={i}; a=rsa-sha256; d=d.example; s=s; h=from; bh=YQ==; b=YQ==\r\n\
                 ARC-Authentication-Results: i={i}; x; none\r\n",
                if i == 1 { "none" } else { "pass" }
            )
        };
        (1..=count).rev().map(set).collect()
    };
    let from = |list: String| format!("From: {list}\r\n");
    let body = "\r\nbody\r\n";
    let mails = [
        many(5_000),
        from("a@b.example".into()) + &many(2_000),
        format!("DKIM-Signature: v=1; a=rsa-sha256; d=d.example; s=s; h={names}from; bh=YQ==; b=YQ==\r\n"),
        format!("DKIM-Signature: {}\r\n", ";a=b".repeat(50_000)),
        from("a@b.example, ".repeat(30_000)),
        from("(".repeat(400_000)),
        from("<".repeat(400_000)),
        from("a@".repeat(200_000)),
        "A: b\r\n".repeat(80_000),
        "DKIM-Signature:\r\n".repeat(20_000),
        sets(50),
        sets(51),
        "x".repeat(1_000_000),
        from(format!("a@{}example", "a.".repeat(120))),
    ];
    for (index, head) in mails.iter().enumerate() {
        let mail = format!("{head}{body}{}", "\r\n".repeat(1_000));
        let begun = Instant::now();
        let (results, questions) = run(context("a@b.example"), mail.as_bytes(), &zone(), WAYS[0]);
        assert!(results.dkim.len() <= 16 && questions <= 288, "{index}: {questions} questions");
        assert!(begun.elapsed() < ENDLESS, "{index}: {:?}", begun.elapsed());
    }
}

/// However much a client's names make SPF ask, the author's policy is found, and the mail fails.
#[test]
fn a_client_cannot_use_up_what_the_authors_policy_needs() {
    let mut zone = zone();
    let terms: String = (0..9).map(|index| format!("mx:m{index}.evil.example ")).collect();
    for name in ["helo.evil.example", "from.evil.example"] {
        zone.add(name, Entry::Record(flow::Record::Txt(format!("v=spf1 {terms} +all").as_bytes().into())));
    }
    for index in 0..9 {
        for host in 0..10 {
            let name = format!("h{index}.{host}.{}evil.example", "x".repeat(40));
            zone.add(&format!("m{index}.evil.example"), Entry::Record(flow::Record::Mx(10, name.as_str().into())));
            (0..900).for_each(|_| zone.add_address(&name, "198.51.100.9"));
        }
    }
    let mail = MAIL.replace("d=football.example.com", "d=evil.example");
    let context = Context { helo: "helo.evil.example".into(), ..context("a@from.evil.example") };
    for way in [WAYS[1], WAYS[4]] {
        let (results, _) = run(context.clone(), mail.as_bytes(), &zone, way);
        assert_eq!(results.dmarc.outcome, dmarc::Outcome::Fail, "{results:?}");
    }
}

/// Policies that lead in circles, expand without end or are huge.
#[test]
fn hostile_policies_are_bounded() {
    let huge = format!("v=spf1 {} -all", "exists:%{s}.%{l}.%{o}.%{d}.%{h}.x ".repeat(400));
    let voids: String = (0..10).map(|index| format!("a:n{index}.void.example ")).collect();
    let mut zone = Zone::default()
        .text("loop.example", "v=spf1 include:loop.example -all")
        .text("ring.example", "v=spf1 redirect=%{d}")
        .text("bomb.example", &format!("v=spf1 exists:{}.x.example -all", "%{s}%{l}%{d}".repeat(600)))
        .text("huge.example", &huge)
        .text("voids.example", &format!("v=spf1 {voids} -all"))
        .text("long.example", &format!("v=spf1 {} -all", "x".repeat(10_000)))
        .text("many.example", "v=spf1 mx ptr -all");
    for index in 0..3_000 {
        zone.add("many.example", Entry::Record(flow::Record::Mx(10, format!("mx{index}.example").into())));
        zone.add("1.2.0.192.in-addr.arpa", Entry::Record(flow::Record::Ptr(format!("p{index}.example").into())));
        zone.add("flood.example", Entry::Record(flow::Record::Txt([b'x'; 255].into())));
    }
    for (domain, wanted) in [
        ("loop.example", spf::Outcome::PermError),
        ("ring.example", spf::Outcome::PermError),
        ("bomb.example", spf::Outcome::Fail),
        ("huge.example", spf::Outcome::PermError),
        ("voids.example", spf::Outcome::PermError),
        ("long.example", spf::Outcome::PermError),
        ("many.example", spf::Outcome::TempError),
        ("flood.example", spf::Outcome::TempError),
    ] {
        let (results, questions) = run(context(&format!("a@{domain}")), b"\r\n", &zone, WAYS[2]);
        assert_eq!(results.mailfrom.outcome, wanted, "{domain}: {:?}", results.mailfrom);
        assert!(questions <= 40, "{domain}: {questions} questions");
    }
}
