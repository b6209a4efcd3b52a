//! Beside others: pyspf over policies made by chance, dkimpy and Mail::DKIM over mails that dkimpy signs and seals and chance
//! changes. Where a peer is not installed, its test is skipped.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use auth::spf::Query;
use auth::{arc, dkim};
use flow::Record;

use crate::signed;
use crate::spf::check;
use crate::zone::{Entry, Zone};

const PYTHON: &str = "/usr/bin/python3";

fn is_there(program: &str, args: &[&str]) -> bool {
    let is_there = Command::new(program).args(args).output().is_ok_and(|output| output.status.success());
    if !is_there {
        eprintln!("skipped: {program} {} is not installed", args.join(" "));
    }
    is_there
}

/// A generator of numbers.
struct Chance(u64);

impl Chance {
    fn below(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below
    }

    fn pick<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }
}

const TERMS: [&str; 41] = [
    "a",
    "mx",
    "ptr",
    "all",
    "-all",
    "~all",
    "?all",
    "a:h#.example",
    "-a:h#.example/24",
    "a:h#.example//64",
    "mx:d#.example",
    "?mx:d#.example/28",
    "~ptr:d#.example",
    "ip4:192.0.2.#",
    "ip4:192.0.2.0/2#",
    "-ip4:198.51.100.0/24",
    "ip6:2001:db8::#",
    "ip6:2001:db8::/32",
    "exists:%{ir}.x.example",
    "exists:%{l1r+-}.%{o}",
    "exists:%{h}",
    "include:d#.example",
    "include:%{d2}",
    "-include:d#.example",
    "redirect=d#.example",
    "exp=h#.example",
    "x=%{d}",
    "+a:%{o}/0",
    "a:h#.example",
    "ip4:192.0.2.1",
    "include:d#.example",
    "mx:d#.example",
    "exists:%{p}",
    "A:H#.EXAMPLE",
    "x-#.z=1",
    "a:%{dr-}",
    "foo",
    "ip4:1.2.3",
    "a/33",
    "all:x",
    "exists:",
];

/// Fewer and fewer errors: with ten terms one is nearly certain otherwise.
const GOOD_TERMS: usize = 36;

fn case(chance: &mut Chance) -> (String, String, Zone) {
    let (mut lines, mut zone) = (String::new(), Zone::default());
    let mut add = |name: &str, kind: &str, data: &str| {
        lines.push_str(&format!("Z {name} {kind} {data}\n"));
        zone.add(
            name,
            match kind {
                "A" => Entry::Record(Record::A(data.parse().unwrap())),
                "AAAA" => Entry::Record(Record::Aaaa(data.parse().unwrap())),
                "MX" => Entry::Record(Record::Mx(10, data.into())),
                "PTR" => Entry::Record(Record::Ptr(data.into())),
                "TXT" => Entry::Record(Record::Txt(data.as_bytes().into())),
                _ => Entry::Silence,
            },
        );
    };
    for number in 0..6 {
        let host = format!("h{number}.example");
        match chance.below(8) {
            // A name without an answer: exchangers of it are looked up too.
            0 if number > 3 => add(&host, "SERVFAIL", ""),
            1 if number > 3 => {}
            _ => {
                add(&host, "A", &format!("192.0.2.{}", chance.below(4)));
                add(&host, "AAAA", &format!("2001:db8::{}", chance.below(4)));
            }
        }
        let domain = format!("d{number}.example");
        // Exchangers exist: pyspf counts missing ones among the void look-ups.
        if chance.below(2) == 0 {
            add(&domain, "MX", &format!("h{}.example", chance.below(4)));
        }
        if chance.below(3) == 0 {
            add(&domain, "A", &format!("192.0.2.{}", chance.below(4)));
        }
        let mut record = String::from("v=spf1");
        for _ in 0..chance.below(5) {
            let all = if chance.below(6) == 0 { &TERMS[..] } else { &TERMS[..GOOD_TERMS] };
            let digit = chance.below(6).to_string();
            record.push_str(&format!(" {}", chance.pick(all).replace('#', &digit)));
        }
        if chance.below(12) > 0 {
            add(&domain, "TXT", &record);
        }
    }
    add("1.2.0.192.in-addr.arpa", "PTR", &format!("h{}.example", chance.below(4)));
    add("1.2.0.192.x.example", "A", "127.0.0.2");
    let client = chance.pick(&["192.0.2.1", "192.0.2.2", "198.51.100.7", "2001:db8::1", "203.0.113.9"]);
    let question = format!("{client} h{}.example a-b+c@d{}.example", chance.below(6), chance.below(6));
    lines.push_str(&format!("Q {question}\n"));
    (lines, question, zone)
}

#[test]
fn spf_comes_to_the_same_as_pyspf() {
    if !is_there(PYTHON, &["-c", "import spf"]) {
        return;
    }
    let mut chance = Chance(7_208);
    let cases: Vec<_> = (0..2_000).map(|_| case(&mut chance)).collect();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peer_spf.py");
    let mut peer = Command::new(PYTHON)
        .args(["-W", "ignore"])
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = peer.stdin.take().unwrap();
    let text: String = cases.iter().map(|(lines, ..)| lines.as_str()).collect();
    let writer = std::thread::spawn(move || stdin.write_all(text.as_bytes()));
    let output = peer.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    let theirs: Vec<&str> = std::str::from_utf8(&output.stdout).unwrap().lines().collect();
    assert_eq!(theirs.len(), cases.len());
    let (mut wrong, mut its_way, mut seen) = (Vec::new(), 0, BTreeMap::<&str, usize>::new());
    for ((lines, question, zone), theirs) in cases.iter().zip(&theirs) {
        let parts: Vec<&str> = question.split(' ').collect();
        let client = parts[0].parse().unwrap();
        let query = Query { client, helo: parts[1], sender: parts[2], receiver: "r", now: 0 };
        let ours = check(zone, &query, false);
        *seen.entry(ours.outcome.name()).or_default() += 1;
        // Ways of its own: unknown modifiers may be there once, a policy that includes itself spoils a record even where nothing gets to it, and each question
        // that is asked in vain counts, where section 4.6.4 counts terms.
        let ways = ["trivial recursion", "Void lookup limit", "MUST appear at most once"];
        let is_its_way = ways.iter().any(|way| theirs.contains(way));
        its_way += usize::from(is_its_way);
        if !is_its_way && theirs.split(' ').next() != Some(ours.outcome.name()) {
            wrong.push(format!("theirs {theirs}, ours {ours:?}\n{lines}"));
        }
    }
    println!("{seen:?}, {its_way} in its own way, {} differ", wrong.len());
    assert!(its_way < cases.len() / 5);
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong[..wrong.len().min(4)].join("\n"));
}

#[test]
fn signatures_and_chains_are_judged_as_by_others() {
    if !is_there(PYTHON, &["-c", "import dkim"]) || !is_there("openssl", &["version"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key.pem");
    let made = Command::new("openssl").args(["genrsa", "-traditional", "-out"]).arg(&key).arg("1024").output().unwrap();
    assert!(made.status.success());
    let script = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name);
    let python =
        Command::new(PYTHON).arg(script("peer_dkim.py")).arg(folder.path()).args(["6376", "400"]).output().unwrap();
    assert!(python.status.success(), "{}", String::from_utf8_lossy(&python.stderr));
    let has_perl = is_there("perl", &["-MMail::DKIM::ARC::Verifier", "-MNet::DNS", "-e", "1"]);
    let perl = has_perl.then(|| Command::new("perl").arg(script("peer_dkim.pl")).arg(folder.path()).output().unwrap());
    let perl = perl.map(|output| table(&output.stdout)).unwrap_or_default();
    let text = fs::read_to_string(folder.path().join("key.txt")).unwrap();
    let zone = Zone::default().text("s._domainkey.example.com", &text);
    let (mut wrong, mut passed, mut chained) = (Vec::new(), 0, 0);
    for (number, python) in table(&python.stdout) {
        let mail = fs::read(folder.path().join(format!("{number}.eml"))).unwrap();
        let (signatures, chain) = signed::verify(&mail, &zone, 2_000_000_000, dkim::Limits::default());
        let ours = signatures.first().is_some_and(|report| report.outcome == dkim::Outcome::Pass);
        (passed, chained) = (passed + usize::from(ours), chained + usize::from(chain.outcome == arc::Outcome::Pass));
        let said = format!("{} {}", u8::from(ours), chain.outcome.name());
        let perl = perl.get(&number).and_then(|said| said.split_once(' '));
        let perl = perl.map(|(signed, chain)| format!("{} {chain}", u8::from(signed == "pass"))).unwrap_or_default();
        // dkimpy refuses headers that chance has broken, and says nothing of them.
        let is_refused = python.ends_with("error");
        if !is_refused && said != python || !perl.is_empty() && said != perl {
            wrong.push(format!("{number}: ours {said} ({signatures:?} {chain:?}), dkimpy {python}, Mail::DKIM {perl}"));
        }
    }
    println!("{passed} signatures and {chained} chains pass, {} differ", wrong.len());
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong[..wrong.len().min(12)].join("\n"));
}

#[test]
fn what_is_signed_here_verifies_elsewhere() {
    if !is_there(PYTHON, &["-c", "import dkim"]) || !is_there("openssl", &["version"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let openssl = |args: &[&str]| Command::new("openssl").args(args).current_dir(folder.path()).output().unwrap();
    openssl(&["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-outform", "DER", "-out", "key"]);
    openssl(&["pkey", "-in", "key", "-inform", "DER", "-pubout", "-outform", "DER", "-out", "public"]);
    let key = dkim::sign::SigningKey::from_der(&fs::read(path("key")).unwrap()).unwrap();
    let text = format!("v=DKIM1; p={}", text::base64::encode(&fs::read(path("public")).unwrap()));
    let mail = signed::sign(b"From: a@example.com\r\nSubject:  x\ty \r\n z\r\n\r\n a \t b\r\n\r\n", &key);
    let zone = Zone::default().text("s._domainkey.example.com", &text);
    let (signatures, _) = signed::verify(&mail, &zone, 1_700_000_001, dkim::Limits::default());
    assert_eq!((signatures[0].outcome, signatures[0].key_bits), (dkim::Outcome::Pass, Some(2_048)));
    fs::write(path("mail"), mail).unwrap();
    fs::write(path("text"), text).unwrap();
    // Its clock is today's, and the signature has expired: the computation is the same.
    let script = "import dkim\nd = dkim.DKIM(open('mail', 'rb').read())\ndkim.validate_signature_fields = lambda *a, **k: None\n\
                  print(d.verify(dnsfunc=lambda *a, **k: open('text', 'rb').read()))";
    let output = Command::new(PYTHON).args(["-c", script]).current_dir(folder.path()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "True\n", "{}", String::from_utf8_lossy(&output.stderr));
}

/// Lines of a number and the rest.
fn table(output: &[u8]) -> BTreeMap<usize, String> {
    let text = std::str::from_utf8(output).unwrap();
    text.lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(number, rest)| (number.parse().unwrap(), rest.into()))
        .collect()
}
