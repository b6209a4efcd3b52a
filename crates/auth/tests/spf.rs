//! The published suites of SPF.

use std::fs;

use auth::spf::{self, Outcome, Query, Report};
use auth::{Inquiry, inquiry};
use flow::Record;
use yaml_rust2::Yaml;

use crate::yaml::{documents, files, items, text};
use crate::zone::{Entry, Zone};

#[test]
fn every_case_of_the_published_suites_comes_out_as_it_says() {
    let (mut count, mut wrong) = (0, Vec::new());
    for path in files("mail-auth/spf-suite", "-tests.yml") {
        for document in documents(&path) {
            let zone = zone(&document["zonedata"]);
            for (name, test) in document["tests"].as_hash().unwrap() {
                let name = name.as_str().unwrap();
                let wanted: Vec<String> = items(&test["result"]).into_iter().filter_map(text).collect();
                let report = run(&zone, test);
                count += 1;
                let explanation = match text(&test["explanation"]) {
                    Some(explanation) if explanation != "DEFAULT" => Some(explanation),
                    _ => None,
                };
                let is_right = wanted.contains(&report.outcome.name().into());
                let is_explained = report.outcome != Outcome::Fail
                    || matches!(test["explanation"], Yaml::BadValue)
                    || report.explanation.as_deref() == explanation.as_deref();
                if !is_right || !is_explained {
                    wrong.push(format!("{} {name}: wanted {wanted:?} {explanation:?}, {report:?}", path.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
    println!("{count} cases");
}

/// Its ten hosts do not exist, and section 4.6.4 has a limit of two such: a permanent error, where it counts lookups alone.
const IN_VAIN: &str = "ok.test.org";

/// The suite of a Rust crate: records in one line each, tests beside them. A domain is the client's own name, and decides
/// first where it says no.
#[test]
fn every_case_of_the_other_suite_comes_out_as_it_says() {
    let (mut count, mut wrong) = (0, Vec::new());
    for path in files("mail-auth/mail-auth-res/spf", ".yml") {
        for document in fs::read_to_string(&path).unwrap().split("\n---") {
            let zone = lines_zone(document);
            for test in document.split("  - domain: ").skip(1) {
                let value = |name: &str| {
                    let line = test.lines().map(str::trim).find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
                    line.unwrap_or_default().trim().to_string()
                };
                let (sender, helo, wanted) = (value("sender"), value("helo"), value("expect"));
                let domain = test.lines().next().unwrap_or_default().trim();
                let helo = if helo.is_empty() { domain } else { &helo };
                let query = Query { client: value("ip").parse().unwrap(), helo, sender: &sender, receiver: "", now: 0 };
                let own = check(&zone, &Query { sender: "", ..query }, false);
                let report = if own.outcome == Outcome::Fail { own } else { check(&zone, &query, false) };
                count += 1;
                let wanted = if domain == IN_VAIN { "permerror".into() } else { wanted };
                let (outcome, explanation) = wanted.split_once(' ').unwrap_or((&wanted, ""));
                let is_explained = explanation.is_empty() || report.explanation.as_deref() == Some(explanation);
                if report.outcome.name() != outcome || !is_explained {
                    wrong.push(format!("{} {domain} {sender}: wanted {wanted}, {report:?}", path.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
    println!("{count} cases");
}

/// Lines `  kind: name value...`, where `mx` has hosts whose addresses are names of their own.
fn lines_zone(document: &str) -> Zone {
    let mut zone = Zone::default();
    let records = document.lines().skip_while(|line| *line != "records:").skip(1);
    for line in records.take_while(|line| line.starts_with(' ')) {
        let Some((kind, rest)) = line.trim().split_once(": ") else { continue };
        let (name, value) = rest.trim().split_once(' ').unwrap_or((rest.trim(), ""));
        match kind {
            "spf" | "txt" | "exp" => zone.add(name, Entry::Record(Record::Txt(value.as_bytes().into()))),
            "a" => value
                .split([',', ' '])
                .filter(|value| !value.is_empty())
                .for_each(|value| zone.add_address(name, value)),
            "mx" => {
                for (index, address) in value.split([',', ' ']).filter(|value| !value.is_empty()).enumerate() {
                    let host = format!("mx{index}.{name}");
                    zone.add(name, Entry::Record(Record::Mx(10, host.as_str().into())));
                    zone.add_address(&host, address);
                }
            }
            "ptr" => value.split([',', ' ']).for_each(|value| {
                zone.add(&reverse(name), Entry::Record(Record::Ptr(value.into())));
            }),
            other => panic!("{other}"),
        }
    }
    // What this suite's own resolver knows.
    zone.add("_dns_error.org", Entry::Silence);
    zone
}

fn reverse(address: &str) -> String {
    let labels: Vec<&str> = address.rsplit('.').collect();
    format!("{}.in-addr.arpa", labels.join("."))
}

fn zone(data: &Yaml) -> Zone {
    let mut zone = Zone::default();
    for (name, entries) in data.as_hash().unwrap() {
        let name = name.as_str().unwrap();
        let entries = items(entries);
        let has_texts = entries.iter().any(|entry| !matches!(entry["TXT"], Yaml::BadValue));
        for entry in entries {
            match entry.as_hash() {
                None => zone.add(name, Entry::Silence),
                Some(entry) => {
                    for (kind, value) in entry {
                        let kind = match kind.as_str().unwrap() {
                            // Records of type SPF are also published as TXT, unless a TXT exists.
                            "SPF" if has_texts => continue,
                            "SPF" => "TXT",
                            kind => kind,
                        };
                        add(&mut zone, name, kind, value);
                    }
                }
            }
        }
    }
    zone
}

fn add(zone: &mut Zone, name: &str, kind: &str, value: &Yaml) {
    let one = || text(value).unwrap();
    let entry = match kind {
        _ if text(value).as_deref() == Some("TIMEOUT") => Entry::Silence,
        "TXT" if text(value).as_deref() == Some("NONE") => return,
        "A" => Entry::Record(Record::A(one().parse().unwrap())),
        "AAAA" => Entry::Record(Record::Aaaa(one().parse().unwrap())),
        "MX" => {
            let items = items(value);
            Entry::Record(Record::Mx(items[0].as_i64().unwrap() as u16, text(items[1]).unwrap().into()))
        }
        "PTR" => Entry::Record(Record::Ptr(one().into())),
        "TXT" => {
            let strings: Vec<String> = items(value).into_iter().filter_map(text).collect();
            Entry::Record(Record::Txt(strings.concat().as_bytes().into()))
        }
        "CNAME" => Entry::Alias(one()),
        other => panic!("{name} {other}"),
    };
    zone.add(name, entry);
}

/// Answers in both orders come to the same.
fn run(zone: &Zone, test: &Yaml) -> Report {
    let value = |name: &str| text(&test[name]).unwrap_or_default();
    let (helo, sender) = (value("helo"), value("mailfrom"));
    let query = Query {
        client: value("host").parse().unwrap(),
        helo: &helo,
        sender: &sender,
        receiver: &value("receiver"),
        now: 1_300_000_000,
    };
    let report = check(zone, &query, false);
    assert_eq!(report, check(zone, &query, true));
    report
}

pub fn check(zone: &Zone, query: &Query<'_>, backwards: bool) -> Report {
    let mut inquiry = Inquiry::new(inquiry::Limits::SENDERS, 0);
    loop {
        match spf::check(query, &mut inquiry) {
            Ok(report) => return report,
            Err(auth::Pending) => zone.answer_all(&mut inquiry, backwards),
        }
    }
}
