//! Author of a mail, and the author's policy.

use std::fs;

use auth::author::Author;
use auth::dmarc::{self, Identifiers, Outcome, Policy, Report};
use auth::{Inquiry, Pending, dkim, inquiry, spf};

use crate::yaml::files;
use crate::zone::{Entry, Zone};

fn spf(outcome: spf::Outcome, domain: &str) -> spf::Report {
    spf::Report { outcome, domain: domain.into(), ..spf::Report::default() }
}

fn signed(outcome: dkim::Outcome, domain: &str) -> dkim::Report {
    dkim::Report {
        outcome,
        reason: "",
        domain: domain.into(),
        selector: "s".into(),
        identity: "".into(),
        algorithm: None,
        covered: Box::default(),
        mark: "".into(),
        key_bits: None,
        testing: false,
        bytes_unsigned: 0,
        expired: false,
        security: flow::Security::Unknown,
    }
}

fn check(zone: &Zone, author: &str, spf: &spf::Report, dkim: &[dkim::Report]) -> Report {
    let author = Author::Domain(author.into());
    let run = |backwards| {
        let mut inquiry = Inquiry::new(inquiry::Limits::CONTENT, 0);
        loop {
            match dmarc::check(&author, Identifiers { spf, dkim }, &mut inquiry) {
                Ok(report) => return report,
                Err(Pending) => zone.answer_all(&mut inquiry, backwards),
            }
        }
    };
    let report = run(false);
    assert_eq!(report, run(true), "the order of answers");
    report
}

#[test]
fn the_policy_is_the_authors_or_that_of_what_is_above() {
    let zone = Zone::default()
        .text("_dmarc.example.com", "v=DMARC1; p=reject; sp=quarantine; np=none")
        .text("_dmarc.own.example.com", "v=DMARC1; p=none")
        .text("sub.example.com", "exists")
        .text("_dmarc.bank", "v=DMARC1; p=none; sp=reject; psd=y")
        .text("_dmarc.test.example", "v=DMARC1; p=reject; t=y")
        .text("_dmarc.twice.example", "v=DMARC1; p=reject")
        .text("_dmarc.twice.example", "v=DMARC1; p=none");
    let nothing = spf(spf::Outcome::None, "");
    for (author, at, policy, disposition) in [
        ("example.com", "example.com", Policy::Reject, Policy::Reject),
        ("sub.example.com", "example.com", Policy::Quarantine, Policy::Quarantine),
        ("missing.example.com", "example.com", Policy::None, Policy::None),
        ("own.example.com", "own.example.com", Policy::None, Policy::None),
        ("a.own.example.com", "example.com", Policy::None, Policy::None),
        ("some.bank", "bank", Policy::Reject, Policy::Reject),
        ("a.some.bank", "bank", Policy::Reject, Policy::Reject),
        ("test.example", "test.example", Policy::Reject, Policy::Quarantine),
    ] {
        let report = check(&zone, author, &nothing, &[]);
        assert_eq!((report.outcome, &*report.policy_domain), (Outcome::Fail, at), "{author}");
        assert_eq!((report.policy, report.disposition), (Some(policy), Some(disposition)), "{author}");
    }
    for author in ["example.org", "twice.example"] {
        assert_eq!(check(&zone, author, &nothing, &[]).outcome, Outcome::None, "{author}");
    }
}

#[test]
fn what_passes_has_to_be_the_authors() {
    let zone = Zone::default()
        .text("_dmarc.example.com", "v=DMARC1; p=reject")
        .text("_dmarc.strict.example", "v=DMARC1; p=reject; adkim=s; aspf=s")
        .text("_dmarc.unit.big.example", "v=DMARC1; p=reject; psd=n")
        .text("_dmarc.big.example", "v=DMARC1; p=reject")
        .text("_dmarc.host.example", "v=DMARC1; p=none; psd=y");
    let none = spf(spf::Outcome::None, "");
    for (author, authenticated, passes) in [
        ("example.com", "example.com", true),
        ("example.com", "mail.example.com", true),
        ("a.example.com", "b.example.com", true),
        ("example.com", "example.org", false),
        ("example.com", "notexample.com", false),
        ("strict.example", "strict.example", true),
        ("strict.example", "mail.strict.example", false),
        ("unit.big.example", "big.example", false),
        ("unit.big.example", "a.unit.big.example", true),
        ("one.host.example", "two.host.example", false),
        ("one.host.example", "a.one.host.example", true),
    ] {
        let by_spf = check(&zone, author, &spf(spf::Outcome::Pass, authenticated), &[]);
        let by_dkim = check(&zone, author, &none, &[signed(dkim::Outcome::Pass, authenticated)]);
        let wanted = if passes { Outcome::Pass } else { Outcome::Fail };
        assert_eq!((by_spf.outcome, by_spf.spf_aligned), (wanted, passes), "{author} {authenticated} by SPF");
        assert_eq!((by_dkim.outcome, by_dkim.dkim_aligned), (wanted, passes), "{author} {authenticated} by DKIM");
        assert!(passes || by_dkim.disposition.is_some());
        let failed = [dkim::Outcome::Fail, dkim::Outcome::Policy, dkim::Outcome::PermError];
        for outcome in failed {
            assert_eq!(check(&zone, author, &none, &[signed(outcome, authenticated)]).outcome, Outcome::Fail);
        }
    }
}

#[test]
fn what_cannot_be_asked_is_a_temporary_error_unless_something_passes() {
    let mut zone = Zone::default().text("_dmarc.example.com", "v=DMARC1; p=reject");
    zone.add("_dmarc.dark.example", Entry::Silence);
    zone.add("_dmarc.other.com", Entry::Silence);
    zone.add("_dmarc.sub.example.com", Entry::Silence);
    let none = spf(spf::Outcome::None, "");
    assert_eq!(check(&zone, "dark.example", &none, &[]).outcome, Outcome::TempError);
    let unsure = [signed(dkim::Outcome::TempError, "example.com")];
    assert_eq!(check(&zone, "example.com", &none, &unsure).outcome, Outcome::TempError);
    let passed = spf(spf::Outcome::Pass, "example.com");
    assert_eq!(check(&zone, "example.com", &passed, &unsure).outcome, Outcome::Pass);
    let below = [signed(dkim::Outcome::Pass, "sub.example.com")];
    assert_eq!(check(&zone, "example.com", &none, &below).outcome, Outcome::TempError);
    // A forger's own name cannot make a failure uncertain.
    for outcome in [dkim::Outcome::Pass, dkim::Outcome::TempError] {
        let elsewhere = [signed(outcome, "other.com")];
        assert_eq!(
            check(&zone, "example.com", &spf(spf::Outcome::TempError, "other.com"), &elsewhere).outcome,
            Outcome::Fail
        );
    }
}

#[test]
fn a_policy_that_nobody_understands_is_none_unless_reports_are_wanted() {
    let zone = Zone::default()
        .text("_dmarc.odd.example.com", "v=DMARC1; p=all")
        .text("_dmarc.told.example.com", "v=DMARC1; p=all; rua=mailto:a@b.example")
        .text("_dmarc.example.com", "v=DMARC1; p=reject");
    let none = spf(spf::Outcome::None, "");
    assert_eq!(check(&zone, "odd.example.com", &none, &[]).outcome, Outcome::None);
    let report = check(&zone, "told.example.com", &none, &[]);
    assert_eq!((report.outcome, report.policy), (Outcome::Fail, Some(Policy::None)));
}

/// Aggregate reports of receivers have their results of SPF and DKIM, the policy, and the disposition.
#[test]
fn what_others_have_reported_is_what_comes_out_here() {
    let (mut count, mut wrong) = (0, Vec::new());
    let all = files("mail-auth/parsedmarc", ".xml")
        .into_iter()
        .chain(files("mail-auth/mail-auth-res/dmarc-feedback", ".xml"));
    for path in all {
        let text = fs::read_to_string(&path).unwrap();
        let policy = element(&text, "policy_published").unwrap_or("");
        let value = |name| element(policy, name).unwrap_or("").trim();
        let (domain, p) = (value("domain"), value("p"));
        let record = format!("v=DMARC1; p={p}; adkim={}; aspf={}", value("adkim"), value("aspf"));
        let zone = Zone::default().text(&format!("_dmarc.{domain}"), &record);
        for row in text.split("<record>").skip(1) {
            let evaluated = element(row, "policy_evaluated").unwrap_or("");
            let author = element(row, "header_from").unwrap_or("").trim();
            let results = element(row, "auth_results").unwrap_or("");
            // Reports of a policy that is not the author's tell less than is needed.
            if p.is_empty() || !auth::domain::is_within(author, domain) {
                continue;
            }
            let outcomes = |name: &str| -> Vec<(String, bool)> {
                let open = format!("<{name}>");
                let pieces = results.split(&open).skip(1).map(|piece| {
                    let domain = element(piece, "domain").unwrap_or("").trim().to_ascii_lowercase();
                    (domain, element(piece, "result").unwrap_or("").trim() == "pass")
                });
                pieces.collect()
            };
            let (senders, signers) = (outcomes("spf"), outcomes("dkim"));
            let spf_outcome = |passes| if passes { spf::Outcome::Pass } else { spf::Outcome::Fail };
            let dkim_outcome = |passes| if passes { dkim::Outcome::Pass } else { dkim::Outcome::Fail };
            let sender = senders
                .first()
                .map_or(spf(spf::Outcome::None, ""), |(domain, passes)| spf(spf_outcome(*passes), domain));
            let signers: Vec<_> =
                signers.iter().map(|(domain, passes)| signed(dkim_outcome(*passes), domain)).collect();
            let report = check(&zone, author, &sender, &signers);
            let wanted = |name| element(evaluated, name).map(str::trim) == Some("pass");
            count += 1;
            if (report.dkim_aligned, report.spf_aligned) != (wanted("dkim"), wanted("spf")) {
                wrong.push(format!(
                    "{} {author} {record} {sender:?} {signers:?}: {evaluated} {report:?}",
                    path.display()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong[..wrong.len().min(5)].join("\n"));
    println!("{count} rows");
}

fn element<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    rest.split_once(&format!("</{name}>")).map(|(inside, _)| inside)
}
