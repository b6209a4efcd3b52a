//! `sluice learn` and what it has learned in `sluice spam check`, beside Debian's sa-learn and spamassassin.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::harness::{Arrived, Behaviour, Gateway, Sink, stuffed, wait_for};

/// Settings for both programs: Bayes with default values except for its bounds.
const SETTINGS: &str = "bayes_expiry_max_db_size 10000000\nbayes_auto_expire 0\nbayes_auto_learn 0\nuse_pyzor 0\n\
                        clear_trusted_networks\ntrusted_networks 192.0.2.0/24\n";
const BAYES: &str = "ifplugin Mail::SpamAssassin::Plugin::Bayes\n\
                     body BAYES_00 eval:check_bayes('0.00', '0.01')\ntflags BAYES_00 nice learn\nscore BAYES_00 0 0 -1.5 -1.9\n\
                     body BAYES_50 eval:check_bayes('0.40', '0.60')\ntflags BAYES_50 learn\nscore BAYES_50 0 0 2 0.8\n\
                     body BAYES_99 eval:check_bayes('0.99', '1.00')\ntflags BAYES_99 learn\nscore BAYES_99 0 0 3.8 3.5\n\
                     body MONEY /money/i\nscore MONEY 1 1 0.5 0.5\nbody PLAIN /money/i\nscore PLAIN 1 1 0 0\n\
                     meta BOTH MONEY && BAYES_99\nscore BOTH 2\nendif\n";

fn sluice(folder: &Path, args: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_sluice"))
        .current_dir(folder)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Who has seen enough closes it.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

pub fn text(output: &Output) -> String {
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// A folder with rules in `rules`, and so many mails of each kind in `spam` and `ham`.
pub fn site(rules: &str, count: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["rules", "spam", "ham"] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    fs::write(folder.path().join("rules/a.cf"), rules).unwrap();
    for number in 0..count {
        let of = |kind: &str, words: &str| {
            let mail = format!(
                "From: {kind}{number}@example.org\nTo: b@example.net\nMessage-Id: <{kind}{number}@example.org>\n\
                 Date: Thu, 22 Aug 2002 12:34:53 +0100\nSubject: {words}\n\n{words} number{number}\n"
            );
            fs::write(folder.path().join(kind).join(format!("{number:04}")), mail).unwrap();
        };
        of("spam", "cheap money offer winner");
        of("ham", "meeting minutes agenda attached");
    }
    folder
}

pub fn learn(folder: &Path, args: &[&str]) -> Value {
    let args = [&["learn", "--ledger", "ledger", "--rules", "rules", "--json"], args].concat();
    let output = sluice(folder, &args, b"");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(&text(&output)).unwrap()
}

/// The line that begins a mail of an mbox.
const FROM: &str = "From x Mon Feb  3 10:00:00 2020\n";

#[test]
fn mails_are_learned_once_corrected_forgotten_and_told_of() {
    let folder = site("", 3);
    let folder = folder.path();
    let all = |learned: u64, corrected: u64, known: u64| {
        serde_json::json!({
            "learned": learned, "corrected": corrected, "known": known, "ignored": 0, "too_large": 0, "failed": 0,
        })
    };
    assert_eq!(learn(folder, &["spam", "spam"]), all(3, 0, 0));
    assert_eq!(learn(folder, &["spam", "spam/0000", "--size-max", "0"]), all(0, 0, 1));
    assert_eq!(learn(folder, &["ham", "spam/0000", "ham"]), all(3, 1, 0));
    let stat = learn(folder, &["stat"]);
    assert_eq!((&stat["spam"], &stat["ham"], &stat["mails"]), (&2.into(), &4.into(), &6.into()));
    assert_eq!(stat["oldest"], 1_030_016_093);
    let forgotten = learn(folder, &["forget", "spam"]);
    assert_eq!((&forgotten["forgotten"], &forgotten["unknown"]), (&3.into(), &0.into()));
    assert_eq!(learn(folder, &["forget", "spam"])["unknown"], 3);
    assert_eq!(learn(folder, &["--user", "u", "stat"])["words"], 0, "a user has learned nothing of it");
    assert_eq!(learn(folder, &["ham", "ham/0000", "--size-max", "20"])["too_large"], 1);
    // Anybody else on the machine has nothing to look for there.
    use std::os::unix::fs::MetadataExt as _;
    assert_eq!(fs::metadata(folder.join("ledger/learned.db")).unwrap().mode() & 0o777, 0o600);
}

#[test]
fn mails_come_from_mailboxes_and_the_standard_input_and_what_is_missing_is_told() {
    let folder = site("", 2);
    let folder = folder.path();
    let one = fs::read_to_string(folder.join("spam/0000")).unwrap();
    let two = fs::read_to_string(folder.join("spam/0001")).unwrap();
    let args = ["learn", "--ledger", "ledger", "--rules", "rules", "spam"];
    let output = sluice(folder, &[&args[..], &["--mbox"]].concat(), format!("{FROM}{one}\n{FROM}{two}").as_bytes());
    assert_eq!(text(&output), "2 learned\n");
    assert_eq!(text(&sluice(folder, &args, one.as_bytes())), "0 learned, 1 known\n");
    let output = sluice(folder, &[&args[..], &["none", "ham/0000"]].concat(), b"");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(output.stdout, b"1 learned, 1 failed\n");
    assert!(String::from_utf8_lossy(&output.stderr).contains("none: No such file"));
    let output = sluice(folder, &["learn", "--config", "none.toml", "stat"], b"");
    assert_eq!(output.status.code(), Some(2));
    fs::write(folder.join("none.toml"), "[spam]\n").unwrap();
    let output = sluice(folder, &["learn", "--config", "none.toml", "stat"], b"");
    assert!(String::from_utf8_lossy(&output.stderr).contains("no [spam.bayes]"), "{output:?}");
    fs::write(folder.join("none.toml"), "[spam.bayes]\nledger = 'ledger'\n").unwrap();
    let output = sluice(folder, &["learn", "--config", "none.toml", "stat"], b"");
    assert!(text(&output).starts_with("spam     3\nham      0\n"));
}

#[test]
fn a_snapshot_goes_out_and_comes_in_and_a_broken_one_changes_nothing() {
    let folder = site("", 3);
    let folder = folder.path();
    learn(folder, &["spam", "spam"]);
    let args = ["learn", "--ledger", "ledger", "--rules", "rules"];
    let run = |more: &[&str], input: &[u8]| sluice(folder, &[&args[..], more].concat(), input);
    let exported = run(&["export"], b"").stdout;
    assert!(
        exported.starts_with(b"v\t3\tdb_version # this must be the first line!!!\nv\t3\tnum_spam\nv\t0\tnum_nonspam\n")
    );
    assert!(run(&["--user", "u", "import", "-"], &exported).status.success());
    assert_eq!(run(&["--user", "u", "export"], b"").stdout, exported);
    for (broken, reason) in [
        (&b""[..], "line 1: it is empty"),
        (b"v\t1\tnum_spam\n", "line 1: it does not begin"),
        (b"v\t3\tdb_version\nt\tx\n", "line 2: a number"),
    ] {
        let output = run(&["import", "-"], broken);
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains(reason), "{output:?}");
    }
    assert_eq!(run(&["export"], b"").stdout, exported);
    fs::write(folder.join("ledger/learned.db"), "no database, whatever else it is").unwrap();
    let output = run(&["stat"], b"");
    assert!(String::from_utf8_lossy(&output.stderr).contains("damaged or no database"), "{output:?}");
}

#[test]
fn rules_ask_what_was_learned_once_enough_was() {
    let folder = site(
        &format!("{BAYES}{SETTINGS}bayes_min_spam_num 5\nbayes_min_ham_num 5\nreport _BAYES_ _TOKENSUMMARY_\n"),
        5,
    );
    let folder = folder.path();
    let mail = "From: spam9@example.org\nSubject: cheap money\n\nwinner of money offer\n";
    let check = |more: &[&str]| {
        let args = ["spam", "check", "--local", "--rules", "rules", "--ledger", "ledger"];
        text(&sluice(folder, &[&args[..], more, &["-"]].concat(), mail.as_bytes()))
    };
    let hits = |more: &[&str]| {
        let value: Value = serde_json::from_str(&check(&[&["--json"], more].concat())).unwrap();
        let hits = value["hits"].as_array().unwrap().iter();
        let hits: BTreeMap<String, f64> =
            hits.map(|hit| (hit["rule"].as_str().unwrap().into(), hit["score"].as_f64().unwrap())).collect();
        (hits, value["bayes"].clone(), value["score"].as_f64().unwrap())
    };
    let of =
        |all: &[(&str, f64)]| all.iter().map(|(name, score)| (name.to_string(), *score)).collect::<BTreeMap<_, _>>();
    learn(folder, &["spam", "spam"]);
    let plain = (of(&[("MONEY", 1.0), ("PLAIN", 1.0)]), Value::Null, 2.0);
    assert_eq!(hits(&[]), plain, "too little was learned");
    assert_eq!(check(&[]), "0.5 Bayes not run.\n\n");
    learn(folder, &["ham", "ham"]);
    let (found, probability, score) = hits(&[]);
    assert_eq!((found, score), (of(&[("MONEY", 0.5), ("BAYES_99", 3.8), ("BOTH", 2.0)]), 6.3));
    assert!(probability.as_f64().unwrap() > 0.99);
    let report = check(&[]);
    assert!(report.contains("; spammy, ") && report.starts_with("0.99") || report.starts_with("1.0000"), "{report}");
    assert_eq!(hits(&["--user", "somebody"]), plain, "who has learned nothing");
}

/// Debian's rules, and where the site has its own.
pub const STOCK: [&str; 2] = ["/usr/share/spamassassin", "/etc/spamassassin"];

pub fn has_sa_learn() -> bool {
    let is_there = Path::new("/usr/bin/sa-learn").exists();
    if !is_there {
        eprintln!("skipped: sa-learn is not installed");
    }
    is_there
}

/// The folder of the public corpus, where it is.
fn public() -> Option<PathBuf> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../data");
    let data = std::env::var_os("SLUICE_DATA").map_or_else(|| PathBuf::from(beside), PathBuf::from);
    let corpus = data.join("mail-spamassassin/spamassassin-corpus");
    if !corpus.is_dir() {
        eprintln!("no pack: mail-spamassassin");
        return None;
    }
    Some(corpus)
}

fn below(folder: PathBuf) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut paths: Vec<String> = entries.map(|entry| entry.unwrap().path().to_string_lossy().into_owned()).collect();
    paths.sort();
    paths
}

/// Mails of ham or of spam, in turn learned and kept aside: all of `corpus/`, and one of `step` of these folders of the public
/// corpus.
pub fn mails(kind: &str, folders: &[&str], step: usize) -> [Vec<String>; 2] {
    let own = below(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/mails").join(kind));
    let public = public();
    let public: Vec<String> =
        public.iter().flat_map(|corpus| folders.iter().flat_map(move |folder| below(corpus.join(folder)))).collect();
    let of = |half: usize| {
        let own = own.iter().skip(half).step_by(2);
        own.chain(public.iter().skip(half * step).step_by(2 * step)).cloned().collect()
    };
    [of(0), of(1)]
}

pub fn run(program: &str, args: &[&str], input: &str) -> String {
    let mut child = Command::new(program).args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let input = input.to_owned();
    let writer = std::thread::spawn(move || drop(pipe.write_all(input.as_bytes())));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success(), "{program}");
    output.stdout.iter().map(|&byte| char::from(byte)).collect()
}

/// By default a tenth of the mails; `SLUICE_SPAM_ALL=1` takes all, and prints what differs.
#[test]
fn the_same_mails_are_learned_as_sa_learn_does_and_rated_as_spamassassin_does() {
    if !has_sa_learn() {
        return;
    }
    let is_all = std::env::var_os("SLUICE_SPAM_ALL").is_some();
    let step = if is_all { 1 } else { 10 };
    let [ham, other_ham] = mails("ham", &["easy-ham-1", "easy-ham-2", "hard-ham-1"], step);
    let [spam, other_spam] = mails("spam", &["spam-1", "spam-2"], step);
    let folder = tempfile::tempdir().unwrap();
    let site = folder.path().join("site");
    fs::create_dir(&site).unwrap();
    for entry in fs::read_dir(STOCK[1]).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "pre") {
            fs::copy(&path, site.join(path.file_name().unwrap())).unwrap();
        }
    }
    let bayes = folder.path().join("bayes");
    let settings = format!("{SETTINGS}bayes_path {}\nbayes_min_ham_num 10\nbayes_min_spam_num 10\n", bayes.display());
    fs::write(site.join("local.cf"), settings).unwrap();
    let site = site.to_str().unwrap();
    let theirs = |args: &[&str], input: &str| {
        let place = ["-C", STOCK[0], "--siteconfigpath", site, "-p", "/dev/null"];
        run("/usr/bin/sa-learn", &[&place[..], args].concat(), input)
    };
    let ours = |args: &[&str]| {
        let place = ["learn", "--ledger", "ledger", "--rules", STOCK[0], "--rules", site];
        text(&sluice(folder.path(), &[&place[..], args].concat(), b""))
    };
    for (kind, mails) in [("ham", &ham), ("spam", &spam)] {
        theirs(&[&format!("--{kind}"), "-f", "-"], &(mails.join("\n") + "\n"));
        let args: Vec<&str> = [kind].into_iter().chain(mails.iter().map(String::as_str)).collect();
        ours(&args);
    }
    let lines = |text: &str| text.lines().filter(|line| !line.contains("db_version")).map(str::to_owned).collect();
    let (backup, export): (BTreeSet<String>, BTreeSet<String>) =
        (lines(&theirs(&["--backup"], "")), lines(&ours(&["export"])));
    let values =
        |lines: &BTreeSet<String>| lines.iter().filter(|line| line.starts_with('v')).cloned().collect::<Vec<_>>();
    assert_eq!(values(&backup), values(&export));
    let differing: Vec<&String> = backup.symmetric_difference(&export).collect();
    println!("{} lines of {} differ", differing.len(), backup.len());
    if is_all {
        differing.iter().for_each(|line| println!("{} {line}", if backup.contains(*line) { "-" } else { "+" }));
    }
    // Mails that the two take apart in another way, a few of all 2,040.
    assert!(differing.len() * 1_000 < backup.len(), "{differing:?}");

    let others: Vec<String> = other_ham.into_iter().chain(other_spam).collect();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/learn.pl");
    let said = run("perl", &[script, STOCK[0], site], &(others.join("\n") + "\n"));
    let said: BTreeMap<String, Value> = said
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|value| (value["file"].as_str().unwrap().to_owned(), value))
        .collect();
    let args = ["spam", "check", "--local", "--json", "--ledger", "ledger", "--rules", STOCK[0], "--rules", site];
    let args: Vec<&str> = args.into_iter().chain(others.iter().map(String::as_str)).collect();
    let output = sluice(folder.path(), &args, b"");
    let (mut probabilities, mut rules, mut count) = (0, 0, 0);
    for line in text(&output).lines() {
        let our: Value = serde_json::from_str(line).unwrap();
        let their = &said[our["file"].as_str().unwrap()];
        let of = |value: &Value| value["bayes"].as_f64();
        let bayes =
            |hits: Vec<&str>| hits.into_iter().filter(|hit| hit.starts_with("BAYES")).collect::<Vec<_>>().join(",");
        let our_hits = bayes(our["hits"].as_array().unwrap().iter().map(|hit| hit["rule"].as_str().unwrap()).collect());
        let their_hits = bayes(their["hits"].as_array().unwrap().iter().map(|hit| hit.as_str().unwrap()).collect());
        let is_near = match (of(&our), of(their)) {
            (Some(our), Some(their)) => (our - their).abs() < 1e-6,
            (our, their) => our == their,
        };
        count += 1;
        probabilities += usize::from(!is_near);
        rules += usize::from(our_hits != their_hits);
        if !is_near && is_all {
            println!(
                "{}: {:?} here, {:?} there; {our_hits}, {their_hits}; {}",
                our["file"],
                of(&our),
                of(their),
                their["tokens"]
            );
        }
    }
    println!("of {count} mails {probabilities} have another probability, {rules} another rule");
    assert!(count >= 24 && probabilities * 10 < count && rules * 100 < count, "{count} {probabilities} {rules}");
}

/// Rules of a gateway whose hits show the result of the classifier.
pub const DOOR_RULES: &str = "body BAYES_00 eval:check_bayes('0.00', '0.01')\ntflags BAYES_00 nice learn\nscore BAYES_00 0 0 -1.5 -1.9\n\
                          body BAYES_99 eval:check_bayes('0.99', '1.00')\ntflags BAYES_99 learn\nscore BAYES_99 0 0 3.8 3.5\n\
                          body MONEY /money/i\nscore MONEY 1\nheader MUCH Subject =~ /much/\nscore MUCH 20\nbody MORE /more/\nscore MORE 20\n\
                          bayes_min_spam_num 5\nbayes_min_ham_num 5\nclear_headers\n\
                          add_header all Status _YESNO_ _SCORE_ tests=_TESTS_ autolearn=_AUTOLEARN_\n";
pub const MAIL: &str = "From: spam9@example.org\r\nSubject: cheap money\r\n\r\nwinner of money offer\r\n";

/// The head of a configuration with a ledger in the folder of a site.
pub fn head(site: &Path, isolation: &str, bayes: &str) -> String {
    format!(
        "isolation = \"{isolation}\"\n[spam]\nrules = [\"{0}/rules\"]\nsize_max = \"2M\"\n\
         [spam.bayes]\nledger = \"{0}/ledger\"\n{bayes}\n",
        site.display()
    )
}

pub fn send(gateway: &Gateway, mail: &str) -> String {
    let mut wire = gateway.connect();
    wire.talk(
        "S: 220 *\nC: EHLO x\nS: 250-*\nC: MAIL FROM:<a@b.example>\nS: 250 *\nC: RCPT TO:<c@d.example>\nS: 250 *",
    );
    wire.talk("C: DATA\nS: 354 *");
    wire.send(&stuffed(mail.as_bytes()));
    wire.send(b".\r\n");
    wire.reply()
}

pub fn status(mail: &Arrived) -> String {
    let text = mail.text();
    let line = text.lines().find(|line| line.starts_with("X-Spam-Status: "));
    line.unwrap_or_else(|| panic!("{text}")).to_owned()
}

#[test]
fn doors_ask_what_was_learned_and_do_without_it_where_it_is_not_to_be_had() {
    for isolation in ["process", "none"] {
        let site = site(DOOR_RULES, 5);
        let site = site.path();
        learn(site, &["spam", "spam"]);
        learn(site, &["ham", "ham"]);
        let sink = Sink::start(Behaviour::default());
        let gateway = Gateway::start_with(&head(site, isolation, ""), "smtp", &sink.forward(), "");
        assert_eq!(send(&gateway, MAIL), "250 2.0.0 Taken");
        assert_eq!(
            status(&sink.wait(1)[0]),
            "X-Spam-Status: No 4.8 tests=BAYES_99,MONEY autolearn=no autolearn_force=no",
            "{isolation}"
        );
        // More words than are asked about: those of the header count, and some of the body.
        let words: String =
            (0..100_000).map(|word| format!("w{word}x{}", if word % 10 == 9 { "\r\n" } else { " " })).collect();
        assert_eq!(send(&gateway, &format!("{MAIL}{words}")), "250 2.0.0 Taken");
        assert!(status(&sink.wait(2)[1]).contains("tests=BAYES"), "{isolation}");
        drop(gateway);
        // What is no database is let alone, and costs no mail.
        fs::write(site.join("ledger/learned.db"), "no database, whatever else it is").unwrap();
        let gateway = Gateway::start_with(&head(site, isolation, ""), "smtp", &sink.forward(), "");
        assert_eq!(send(&gateway, MAIL), "250 2.0.0 Taken");
        assert_eq!(
            status(&sink.wait(3)[2]),
            "X-Spam-Status: No 1.0 tests=MONEY autolearn=no autolearn_force=no",
            "{isolation}"
        );
        gateway.wait_for_log("learned data unavailable");
    }
}

#[test]
fn mails_of_which_the_rules_are_sure_are_learned_once() {
    let site = site(DOOR_RULES, 1);
    let site = site.path();
    let sink = Sink::start(Behaviour::default());
    let gateway = Gateway::start_with(&head(site, "process", "autolearn = true"), "smtp", &sink.forward(), "");
    let spam = MAIL.replace("cheap", "much").replace("winner", "more");
    let ham = MAIL.replace("money", "news");
    for mail in [&spam, &ham, &spam] {
        assert_eq!(send(&gateway, mail), "250 2.0.0 Taken");
    }
    let statuses: Vec<String> = sink.wait(3).iter().map(status).collect();
    assert!(statuses[0].ends_with("autolearn=spam autolearn_force=no"), "{statuses:?}");
    assert!(statuses[1].ends_with("autolearn=ham autolearn_force=no"), "{statuses:?}");
    let is_learned = || {
        let stat = learn(site, &["stat"]);
        (stat["spam"] == 1 && stat["ham"] == 1).then_some(())
    };
    wait_for(is_learned, "mails that are learned");
}

#[test]
fn spamc_and_rspamc_have_mails_learned_where_they_may() {
    let site = site(DOOR_RULES, 1);
    let site = site.path();
    let listeners = "[[listener]]\nprotocol = \"spamd\"\naddress = \"127.0.0.1:0\"\n";
    let spamd =
        Gateway::with(&format!("threads = 1\n{}{listeners}", head(site, "process", "tell = true\nusers = true")));
    let spamc = |gateway: &Gateway, args: &[&str], mail: &str| {
        let port = gateway.address.port().to_string();
        let args = [&["-d", "127.0.0.1", "-p", &port, "-x"], args].concat();
        let mut child = Command::new("spamc").args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
        let _ = child.stdin.take().unwrap().write_all(mail.as_bytes());
        let output = child.wait_with_output().unwrap();
        Some((String::from_utf8_lossy(&output.stdout).trim().to_owned(), output.status.code()))
    };
    let Some(first) = spamc(&spamd, &["-u", "joe", "-L", "spam"], MAIL) else {
        assert!(std::env::var_os("CI").is_none(), "spamc is missing");
        return eprintln!("skipped: no spamc");
    };
    let ask = |args: &[&str]| spamc(&spamd, &[&["-u", "joe"], args].concat(), MAIL).unwrap().0;
    assert_eq!(first.0, "Message successfully un/learned");
    assert_eq!(ask(&["-L", "spam"]), "Message was already un/learned");
    assert_eq!(learn(site, &["--user", "joe", "stat"])["spam"], 1);
    assert_eq!(ask(&["-L", "ham"]), "Message successfully un/learned");
    assert_eq!(learn(site, &["--user", "joe", "stat"])["ham"], 1);
    assert_eq!(ask(&["-L", "forget"]), "Message successfully un/learned");
    assert_eq!(ask(&["-L", "forget"]), "Message was already un/learned");
    let stat = learn(site, &["--user", "joe", "stat"]);
    assert_eq!((&stat["ham"], &stat["words"], &learn(site, &["stat"])["spam"]), (&0.into(), &0.into(), &0.into()));
    drop(spamd);
    let spamd = Gateway::with(&format!("threads = 1\n{}{listeners}", head(site, "none", "")));
    assert_ne!(spamc(&spamd, &["-L", "spam"], MAIL).unwrap().1, Some(0), "nobody may");
    drop(spamd);

    let listener = listeners.replace("spamd", "rspamd");
    let rspamd =
        Gateway::with(&format!("threads = 1\n{}{listener}", head(site, "process", "tell = true\npassword = \"q1\"")));
    let post = |path: &str, fields: &str| {
        let mut wire = rspamd.connect();
        wire.send(format!("POST {path} HTTP/1.1\r\nContent-Length: {}\r\n{fields}\r\n{MAIL}", MAIL.len()).as_bytes());
        String::from_utf8(wire.rest()).unwrap()
    };
    assert!(post("/learnspam", "").starts_with("HTTP/1.1 403 "));
    assert!(post("/learnspam", "Password: q2\r\n").starts_with("HTTP/1.1 403 "));
    assert!(post("/learnspam", "Password: q1\r\n").ends_with("{\"success\":true}"));
    assert!(post("/learnspam", "Password: q1\r\n").starts_with("HTTP/1.1 208 "));
    let mail = site.join("mail");
    fs::write(&mail, MAIL).unwrap();
    let place = format!("127.0.0.1:{}", rspamd.address.port());
    match Command::new("rspamc").args(["-h", &place, "-P", "q1", "learn_ham"]).arg(&mail).output() {
        Ok(output) => assert!(String::from_utf8_lossy(&output.stdout).contains("success = true"), "{output:?}"),
        Err(_) => assert!(std::env::var_os("CI").is_none(), "rspamc is missing"),
    }
}

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % count.max(1)
    }
}

/// Bodies of mails of one kind, by their words: those of the corpus, or a few where it is missing.
fn bodies(kind: &str, folders: &[&str], few: &str) -> Vec<Vec<String>> {
    if public().is_none() {
        return vec![few.split(' ').map(str::to_owned).collect()];
    }
    let [one, other] = mails(kind, folders, 1);
    let words = |path: &String| {
        let text = String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
        let body = text.split_once("\n\n").map_or("", |(_, body)| body).to_owned();
        let is_word = |word: &&str| word.len() < 15 && word.bytes().all(|byte| byte.is_ascii_alphabetic());
        body.split_whitespace().filter(is_word).map(str::to_owned).collect::<Vec<String>>()
    };
    one.iter().chain(&other).map(words).filter(|words| words.len() > 20).collect()
}

/// A mail made of words of one that there is, and some that nobody has seen.
fn mutant(number: usize, new: usize, seeds: &[Vec<String>], dice: &mut Dice) -> String {
    let seed = &seeds[dice.below(seeds.len())];
    // No line is one of a mailbox.
    let mut body = String::from("hello ");
    for place in 0..60 {
        body.push_str(&seed[dice.below(seed.len())]);
        body.push(if place % 10 == 9 { '\n' } else { ' ' });
    }
    (0..new).for_each(|word| body.push_str(&format!("n{number}x{word}{}", if word % 8 == 7 { '\n' } else { ' ' })));
    let day = number % 28;
    let (month, year) = (["Jan", "Feb", "Mar", "Apr"][number / 28 % 4], 2024);
    format!(
        "From: a@b.example\nMessage-Id: <m{number}@b.example>\nDate: {} {month} {year} 10:00:00 +0000\nSubject: mail\n\n{body}\n",
        day + 1
    )
}

/// A thousand mails; `SLUICE_LEARN_MAILS=20000` takes as many as that.
#[test]
fn many_mails_are_learned_both_ways_and_old_words_forgotten() {
    let count = std::env::var("SLUICE_LEARN_MAILS").ok().and_then(|count| count.parse().ok()).unwrap_or(1_000);
    let site = site("", 0);
    let folder = site.path();
    let ham = bodies("ham", &["easy-ham-1", "easy-ham-2"], "meeting minutes agenda attached regards team");
    let spam = bodies("spam", &["spam-1", "spam-2"], "cheap money offer winner click free");
    let mut dice = Dice(7);
    // More than may stay, and of those less than half are old.
    let new = (210_000 / count).max(3);
    let mut boxes = [String::new(), String::new()];
    for number in 0..count {
        let is_spam = number % 2 == 0;
        let mail = mutant(number, new, if is_spam { &spam } else { &ham }, &mut dice);
        boxes[usize::from(is_spam)].push_str(&format!("{FROM}{mail}\n"));
    }
    let args = ["learn", "--ledger", "ledger", "--rules", "rules", "--json"];
    let run = |more: &[&str], input: &[u8]| -> Value {
        let output = sluice(folder, &[&args[..], more].concat(), input);
        serde_json::from_str(&text(&output)).unwrap()
    };
    fs::write(folder.join("rules/a.cf"), "bayes_auto_expire 0\n").unwrap();
    for (kind, mails) in [("ham", &boxes[0]), ("spam", &boxes[1])] {
        assert_eq!(run(&[kind, "--mbox"], mails.as_bytes())["learned"], count / 2);
    }
    let before = run(&["stat"], b"");
    assert_eq!((&before["spam"], &before["ham"]), (&(count / 2).into(), &(count / 2).into()));
    // Fresh mails are told apart.
    let mut right = 0;
    for number in count..count + 40 {
        let is_spam = number % 2 == 0;
        let mail = mutant(number, 3, if is_spam { &spam } else { &ham }, &mut dice);
        let args = ["spam", "check", "--local", "--json", "--rules", "rules", "--ledger", "ledger", "-"];
        let value: Value = serde_json::from_str(&text(&sluice(folder, &args, mail.as_bytes()))).unwrap();
        right += usize::from(value["bayes"].as_f64().is_some_and(|probability| (probability > 0.5) == is_spam));
    }
    assert!(right >= 36, "{right} of 40 mails are told apart");
    // What goes out comes in.
    let exported = sluice(folder, &[&args[..], &["export"]].concat(), b"").stdout;
    assert_eq!(run(&["--user", "other", "import", "-"], &exported)["words"], before["words"]);
    // What was wrong is corrected, and back.
    let part: String = boxes[0].split_inclusive(FROM).take(50).collect();
    let corrected = run(&["spam", "--mbox"], part.trim_end_matches(FROM).as_bytes())["corrected"].as_u64().unwrap();
    assert!(corrected >= 48, "{corrected}");
    assert_eq!(run(&["ham", "--mbox"], boxes[0].as_bytes())["corrected"], corrected);
    let after = run(&["stat"], b"");
    assert_eq!((&after["spam"], &after["words"]), (&before["spam"], &before["words"]));
    // A word that is too old goes, and what is left is within the bound.
    let words = before["words"].as_u64().unwrap();
    let forgotten = run(&["expire"], b"")["forgotten"].as_u64().unwrap();
    let left = run(&["stat"], b"")["words"].as_u64().unwrap();
    println!("{count} mails, {words} words, {forgotten} forgotten");
    assert_eq!(words - forgotten, left);
    assert!(words > 150_000 && (112_500..=150_000).contains(&left), "{words} {left}");
    // All of it is taken back.
    let forgotten = boxes
        .iter()
        .map(|mails| run(&["--user", "other", "forget", "--mbox"], mails.as_bytes())["forgotten"].as_u64().unwrap());
    assert_eq!(forgotten.sum::<u64>(), count as u64);
    let nothing = run(&["--user", "other", "stat"], b"");
    assert_eq!((&nothing["words"], &nothing["spam"], &nothing["mails"]), (&0.into(), &0.into(), &0.into()));
}
