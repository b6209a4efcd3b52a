//! Rules that ask the network: at the doors, jailed and not, with lists that answer, keep silent, or are asked by the door too;
//! and the same rules by SpamAssassin itself, against one server of the DNS.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use proto::dns::kind;
use serde_json::Value;

use crate::harness::dns::{Dns, Told};
use crate::harness::{Behaviour, Gateway, PATIENCE, Sink, files, stuffed};

const RULES: &str = "util_rb_tld com\nheader HOST_LISTED eval:check_rbl('bl', 'bl.test.')\nscore HOST_LISTED 3\ntflags HOST_LISTED net\n\
    urirhssub LINK_LISTED uri.test. A 2\nbody LINK_LISTED eval:check_uridnsbl('LINK_LISTED')\n\
    score LINK_LISTED 2\ntflags LINK_LISTED net\nbody MONEY /money/\nscore MONEY 1\n\
    header SENDER_FORGED eval:check_for_spf_fail()\nscore SENDER_FORGED 0.5\ntflags SENDER_FORGED net\n\
    clear_headers\nadd_header all Status \"_YESNO_, score=_SCORE_ tests=_TESTS_\"\n";

const MAIL: &str = "From: a@client.test\r\nSubject: hello\r\n\r\nmoney at http://www.bad-shop.com/x\r\n";

fn rules() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.cf"), RULES).unwrap();
    folder
}

fn listed(name: &str, _: u16) -> Told {
    match name {
        "7.2.0.192.bl.test" | "bad-shop.com.uri.test" | "2.0.0.127.bl.test" => Told::Addresses(vec![[127, 0, 0, 2]]),
        "client.test" => Told::Text("v=spf1 ip4:192.0.2.9 -all".into()),
        _ => Told::NoName,
    }
}

fn head(isolation: &str, dns: &Dns, rules: &Path, spam: &str) -> String {
    format!(
        "isolation = \"{isolation}\"\n{}[spam]\nnetwork = true\nrules = [\"{}\"]\n{spam}\n",
        dns.settings(),
        rules.display()
    )
}

const BEHIND_PROXY: &str = "proxy_from = [\"127.0.0.1\"]\ntrust = \"off\"";

/// Score of a mail from a client of this address: the text after `score=`.
fn scored(gateway: &Gateway, sink: &Sink, count: usize, client: &str) -> String {
    scored_mail(gateway, sink, count, client, MAIL)
}

fn scored_mail(gateway: &Gateway, sink: &Sink, count: usize, client: &str, mail: &str) -> String {
    let mut wire = gateway.connect();
    wire.send(format!("PROXY TCP4 {client} 127.0.0.1 1 25\r\n").as_bytes());
    wire.talk(
        "S: 220 *\nC: EHLO mail.client.test\nS: 250-*\nC: MAIL FROM:<a@client.test>\nS: 250 *\nC: RCPT TO:<c@d.example>\nS: 250 *",
    );
    wire.talk("C: DATA\nS: 354 *");
    wire.send(&stuffed(mail.as_bytes()));
    wire.send(b".\r\n");
    assert_eq!(wire.reply(), "250 2.0.0 Taken");
    let text = sink.wait(count)[count - 1].text();
    let (_, status) = text.split_once("score=").unwrap_or_else(|| panic!("{text}"));
    status.lines().next().unwrap().to_string()
}

#[test]
fn lists_and_senders_are_asked_for_a_mail_and_once() {
    for isolation in ["process", "none"] {
        let (dns, rules, sink) = (Dns::start(listed), rules(), Sink::start(Behaviour::default()));
        let head = head(isolation, &dns, rules.path(), "");
        let gateway = Gateway::start_with(&head, "smtp", &sink.forward(), BEHIND_PROXY);
        let all = "6.5 tests=HOST_LISTED,LINK_LISTED,MONEY,SENDER_FORGED";
        assert_eq!(scored(&gateway, &sink, 1, "192.0.2.7"), all, "{isolation}");
        let asked = dns.asked();
        for name in ["7.2.0.192.bl.test 1", "bad-shop.com.uri.test 1", "client.test 16"] {
            assert!(asked.iter().any(|own| own == name), "{isolation}: {name} in {asked:?}");
        }
        assert_eq!(scored(&gateway, &sink, 2, "192.0.2.7"), all);
        assert_eq!(dns.asked().len(), asked.len(), "what is known is not asked again");
        assert_eq!(scored(&gateway, &sink, 3, "192.0.2.9"), "3.0 tests=LINK_LISTED,MONEY", "{isolation}");
    }
}

#[test]
fn a_mail_that_is_authenticated_is_not_authenticated_twice() {
    let (dns, rules, sink) = (Dns::start(listed), rules(), Sink::start(Behaviour::default()));
    let head = head("process", &dns, rules.path(), "[authentication]");
    let gateway = Gateway::start_with(&head, "smtp", &sink.forward(), BEHIND_PROXY);
    assert!(scored(&gateway, &sink, 1, "192.0.2.7").ends_with("MONEY,SENDER_FORGED"));
    let asked = dns.asked().iter().filter(|name| *name == "client.test 16").count();
    assert_eq!(asked, 1, "{:?}", dns.asked());
}

#[test]
fn a_list_that_keeps_silent_costs_a_few_mails_their_wait_and_then_none() {
    let dns = Dns::start(|name, kind| if name.ends_with("bl.test") { Told::Silence } else { listed(name, kind) });
    let (rules, sink) = (rules(), Sink::start(Behaviour::default()));
    let dns_settings = format!("{}query_ms = 300\n", dns.settings());
    let text = head("process", &dns, rules.path(), "wait_seconds = 1").replace(&dns.settings(), &dns_settings);
    let gateway = Gateway::start_with(&text, "smtp", &sink.forward(), BEHIND_PROXY);
    let of_list = || dns.asked().iter().filter(|name| name.ends_with("bl.test 1")).count();
    // Each from another client, so that each asks the list something new.
    for count in 1..=5 {
        let told = scored(&gateway, &sink, count, &format!("192.0.2.{}", 20 + count));
        assert_eq!(told, "3.5 tests=LINK_LISTED,MONEY,SENDER_FORGED");
    }
    let asked = of_list();
    for count in 6..=8 {
        let told = scored(&gateway, &sink, count, &format!("192.0.2.{}", 20 + count));
        assert_eq!(told, "3.5 tests=LINK_LISTED,MONEY,SENDER_FORGED");
    }
    assert_eq!(of_list(), asked, "it is left alone");
}

#[test]
fn a_list_that_refuses_is_not_asked_again() {
    let refusing = |name: &str, kind: u16| match name.strip_suffix(".uri.test") {
        Some(_) => Told::Addresses(vec![[127, 255, 255, 254]]),
        None => listed(name, kind),
    };
    for isolation in ["process", "none"] {
        let (dns, rules, sink) = (Dns::start(refusing), rules(), Sink::start(Behaviour::default()));
        let lines = "urirhssub REFUSED uri.test. A 127.255.255.254\nbody REFUSED eval:check_uridnsbl('REFUSED')\n\
            score REFUSED 0.01\ntflags REFUSED net\ndns_block_rule REFUSED .uri.test. other.test\n";
        fs::write(rules.path().join("b.cf"), lines).unwrap();
        let gateway =
            Gateway::start_with(&head(isolation, &dns, rules.path(), ""), "smtp", &sink.forward(), BEHIND_PROXY);
        let of_list = || dns.asked().iter().filter(|name| name.ends_with(".uri.test 1")).count();
        assert_eq!(scored(&gateway, &sink, 1, "192.0.2.9"), "1.0 tests=MONEY,REFUSED", "{isolation}");
        gateway.wait_for_log("a DNS list refuses queries and is skipped");
        assert_eq!(of_list(), 1);
        let other = MAIL.replace("bad-shop", "good-shop");
        assert_eq!(scored_mail(&gateway, &sink, 2, "192.0.2.9", &other), "1.0 tests=MONEY", "{isolation}");
        assert_eq!(of_list(), 1, "{:?}", dns.asked());
        // Others are asked as ever.
        assert_eq!(scored_mail(&gateway, &sink, 3, "192.0.2.7", &other), "4.5 tests=HOST_LISTED,MONEY,SENDER_FORGED");
    }
}

#[test]
fn a_dns_that_is_away_costs_a_mail_its_budget_and_lists_nobody() {
    let dns = Dns::start(|_, _| Told::Silence);
    let (rules, sink) = (rules(), Sink::start(Behaviour::default()));
    let gateway = Gateway::start_with(
        &head("process", &dns, rules.path(), "wait_seconds = 1"),
        "smtp",
        &sink.forward(),
        BEHIND_PROXY,
    );
    let began = Instant::now();
    assert_eq!(scored(&gateway, &sink, 1, "192.0.2.7"), "1.0 tests=MONEY");
    assert!(began.elapsed() >= Duration::from_secs(1) && began.elapsed() < PATIENCE);
    gateway.wait_for_log("MONEY=1.00");
}

#[test]
fn what_the_door_asks_about_a_client_the_rules_do_not_ask_again() {
    let (dns, rules, sink) = (Dns::start(listed), rules(), Sink::start(Behaviour::default()));
    let trust = format!(
        "[trust]\ngreet_wait_ms = 0\n[trust.dnsbl]\nlists = [\"bl.test=127.0.0.2*1\"]\nresolvers = [\"{}\"]\nwait_ms = 30000",
        dns.address
    );
    let head = head("process", &dns, rules.path(), &trust);
    let gateway = Gateway::start_with(&head, "smtp", &sink.forward(), "proxy_from = [\"127.0.0.1\"]");
    assert_eq!(
        scored(&gateway, &sink, 1, "192.0.2.7"),
        "6.5 tests=HOST_LISTED,LINK_LISTED,MONEY,SENDER_FORGED",
        "what the door has asked is an answer for rules"
    );
    let asked = dns.asked().iter().filter(|name| *name == "7.2.0.192.bl.test 1").count();
    assert_eq!(asked, 1, "{:?}", dns.asked());
}

/// A number that a name always has.
fn hash(name: &str) -> u32 {
    name.bytes().fold(2_166_136_261, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(16_777_619))
}

/// A world in which a good part of all hosts, domains and addresses is listed, has a policy, or does not exist.
fn recorded(name: &str, wanted: u16) -> Told {
    const LISTED: [[u8; 4]; 10] = [
        [127, 0, 0, 2],
        [127, 0, 0, 3],
        [127, 0, 0, 4],
        [127, 0, 0, 10],
        [127, 0, 0, 128],
        [127, 0, 1, 2],
        [127, 0, 5, 3],
        [127, 0, 0, 126],
        [127, 0, 10, 1],
        [127, 0, 0, 8],
    ];
    let number = hash(name) >> 7;
    let is_none = |name: &str| (hash(name) >> 7).is_multiple_of(4);
    match wanted {
        _ if is_none(name) => Told::NoName,
        kind::A => Told::Addresses(vec![LISTED[(number / 4) as usize % LISTED.len()]]),
        // Policies stand where the public suffix list and a walk up the tree find the same, below domains that there are.
        kind::TXT if name.starts_with("_dmarc.") => match name.split('.').collect::<Vec<_>>()[..] {
            [_, domain, _] if domain.len() > 3 && !is_none(&name["_dmarc.".len()..]) => Told::Text(
                ["v=DMARC1; p=none", "v=DMARC1; p=reject", "v=DMARC1; p=quarantine"][number as usize % 3].into(),
            ),
            _ => Told::NoName,
        },
        kind::TXT if name.starts_with("_adsp.") => {
            Told::Text(["dkim=all", "dkim=discardable", "dkim=unknown"][number as usize % 3].into())
        }
        kind::TXT if name.contains("._domainkey.") => Told::NoName,
        kind::TXT => {
            Told::Text(["v=spf1 -all", "v=spf1 ~all", "v=spf1 ?all", "v=spf1 +all"][number as usize % 4].into())
        }
        kind::NS => Told::Hosts(vec![format!("ns{}.hosts.test", number % 50)]),
        kind::MX => Told::Hosts(vec![format!("mx.{name}")]),
        _ => Told::NoName,
    }
}

/// Mails of `corpus/`, and one of so many of the public corpus; or those that a file names, one a line.
fn mails(every: usize) -> Vec<PathBuf> {
    if let Some(list) = std::env::var_os("SLUICE_SPAM_MAILS") {
        return fs::read_to_string(list).unwrap().lines().map(PathBuf::from).collect();
    }
    let mut found = files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/mails"));
    let data = std::env::var_os("SLUICE_DATA").map(PathBuf::from).unwrap_or_default();
    let public = data.join("mail-spamassassin/spamassassin-corpus");
    if public.is_dir() {
        found.extend(files(&public).into_iter().step_by(every));
    } else {
        eprintln!("no pack: mail-spamassassin");
    }
    found
}

type Told2 = (BTreeSet<String>, f64);

const STOCK: &str = "/usr/share/spamassassin";

/// The site's folder, with room for all hosts of a mail: where there are more than `uridnsbl_max_domains`, SpamAssassin asks
/// about some that it draws by lot.
fn site() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for entry in fs::read_dir("/etc/spamassassin").unwrap().flatten().filter(|entry| entry.path().is_file()) {
        fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
    }
    fs::write(folder.path().join("zz.cf"), "uridnsbl_max_domains 60\n").unwrap();
    folder
}

/// SpamAssassin's results for mails, with this DNS server.
fn theirs(mails: &[PathBuf], site: &Path, dns: &Dns) -> BTreeMap<PathBuf, Told2> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../rules/tests/hits.pl");
    let mut perl = Command::new("perl")
        .args([script, STOCK])
        .arg(site)
        .arg(dns.address.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let names: String = mails.iter().map(|path| format!("{}\n", path.display())).collect();
    let mut input = perl.stdin.take().unwrap();
    let writer = std::thread::spawn(move || input.write_all(names.as_bytes()));
    let output = perl.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success());
    let text: String = output.stdout.iter().map(|&byte| char::from(byte)).collect();
    let line = |line: &str| {
        let value: Value = serde_json::from_str(line).unwrap();
        let hits = value["hits"].as_array().unwrap().iter().map(|hit| hit.as_str().unwrap().to_string()).collect();
        let score = value["score"].as_f64().or_else(|| value["score"].as_str()?.parse().ok()).unwrap();
        (value["file"].as_str().unwrap().into(), (hits, score))
    };
    text.lines().map(line).collect()
}

fn ours(mails: &[PathBuf], site: &Path, dns: &Dns) -> BTreeMap<PathBuf, Told2> {
    let output = Command::new(env!("CARGO_BIN_EXE_sluice"))
        .args(["spam", "check", "--json", "--rules", STOCK, "--rules"])
        .arg(site)
        .args(["--timeout", "50", "--resolver", &dns.address.to_string()])
        .args(mails)
        .output()
        .unwrap();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", String::from_utf8_lossy(&output.stderr));
    let line = |line: &str| {
        let value: Value = serde_json::from_str(line).unwrap();
        let hits = value["hits"].as_array().unwrap().iter();
        let hits = hits.map(|hit| hit["rule"].as_str().unwrap().to_string()).collect();
        (value["file"].as_str().unwrap().into(), (hits, value["score"].as_f64().unwrap()))
    };
    String::from_utf8(output.stdout).unwrap().lines().map(line).collect()
}

/// The share of pairs of a mail and a rule that both have: SpamAssassin asks once, and a packet that is lost on a busy machine
/// is a rule that does not hit.
const AGREEMENT_MIN: f64 = 0.999;

/// With the network, the same rules hit as in SpamAssassin. By default a sample; `SLUICE_SPAM_ALL=1` takes all mails, `SLUICE_SPAM_MAILS=FILE` those that the file
/// names.
#[test]
fn the_network_says_the_same_to_spamassassin() {
    let every = if std::env::var_os("SLUICE_SPAM_ALL").is_some() { 1 } else { 60 };
    let has_perl = Path::new("/usr/share/perl5/Mail/SpamAssassin.pm").exists()
        && Path::new("/usr/share/perl5/Mail/SPF.pm").exists();
    if !has_perl {
        return eprintln!("skipped: SpamAssassin or Mail::SPF is not installed");
    }
    let mails = mails(every);
    let dns = Dns::start(recorded);
    let site = site();
    let (ours, theirs) = (ours(&mails, site.path(), &dns), theirs(&mails, site.path(), &dns));
    assert_eq!((ours.len(), theirs.len()), (mails.len(), mails.len()));
    let (mut pairs, mut same, mut scores) = (0_u32, 0_u32, Vec::new());
    let mut differing: BTreeMap<&str, [Vec<&Path>; 2]> = BTreeMap::new();
    for (path, (hits, score)) in &ours {
        let (their_hits, their_score) = &theirs[path];
        // Perl compiles its expression once, with what it captured in its first mail.
        // SpamAssassin's DMARC has no result for the mails of our own corpus, whose clients have addresses for documentation.
        let is_own = path.to_string_lossy().contains("/corpus/mails/");
        let is_compared = |rule: &&String| *rule != "GB_CUSTOM_HTM_URI" && !(is_own && rule.starts_with("DMARC_"));
        for rule in hits.union(their_hits).filter(is_compared) {
            pairs += 1;
            same += u32::from(hits.contains(rule) && their_hits.contains(rule));
            if !(hits.contains(rule) && their_hits.contains(rule)) {
                differing.entry(rule).or_default()[usize::from(!hits.contains(rule))].push(path);
            }
        }
        if hits == their_hits && (score - their_score).abs() >= 0.006 {
            scores.push(format!("{}: ours {score}, theirs {their_score}", path.display()));
        }
    }
    let row = |(rule, [ours, theirs]): (&&str, &[Vec<&Path>; 2])| {
        format!("{rule}: ours alone {ours:?}, theirs alone {theirs:?}")
    };
    let rows: Vec<String> = differing.iter().map(row).collect();
    let summary = format!("{} mails: {same} of {pairs} pairs agree\n{}", mails.len(), rows.join("\n"));
    eprintln!("{summary}");
    assert!(scores.is_empty(), "{}", scores.join("\n"));
    assert!(f64::from(same) >= AGREEMENT_MIN * f64::from(pairs), "{summary}");
}
