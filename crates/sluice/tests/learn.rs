//! `sluice learn` and what it has learned in `sluice spam check`, beside Debian's sa-learn and spamassassin.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// What both read: Bayes as it is, but for the bounds.
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

fn text(output: &Output) -> String {
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// A folder with rules in `rules`, and so many mails of each kind in `spam` and `ham`.
fn site(rules: &str, count: usize) -> tempfile::TempDir {
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

fn learn(folder: &Path, args: &[&str]) -> Value {
    let args = [&["learn", "--ledger", "ledger", "--rules", "rules", "--json"], args].concat();
    let output = sluice(folder, &args, b"");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(&text(&output)).unwrap()
}

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
    let output = sluice(folder, &[&args[..], &["--mbox"]].concat(), format!("From x\n{one}\nFrom y\n{two}").as_bytes());
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
const STOCK: [&str; 2] = ["/usr/share/spamassassin", "/etc/spamassassin"];

/// The folder of the public corpus, where it is, and SpamAssassin is installed.
fn corpus() -> Option<PathBuf> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../data");
    let data = std::env::var_os("SLUICE_DATA").map_or_else(|| PathBuf::from(beside), PathBuf::from);
    let corpus = data.join("mail-spamassassin/spamassassin-corpus");
    let is_there = corpus.is_dir() && Path::new("/usr/bin/sa-learn").exists();
    if !is_there {
        eprintln!("skipped: no mails below SLUICE_DATA, or sa-learn is not installed");
    }
    is_there.then_some(corpus)
}

/// Mails of the corpus: those of ham, and of spam, in turn learned and kept aside. `step`: of so many one is taken.
fn mails(corpus: &Path, folders: &[&str], step: usize) -> [Vec<String>; 2] {
    let mut all: Vec<String> = Vec::new();
    for folder in folders {
        let entries = fs::read_dir(corpus.join(folder)).unwrap();
        all.extend(entries.map(|entry| entry.unwrap().path().to_string_lossy().into_owned()));
    }
    all.sort();
    let of = |from: usize| all.iter().skip(from).step_by(2 * step).cloned().collect();
    [of(0), of(step)]
}

fn run(program: &str, args: &[&str], input: &str) -> String {
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
    let Some(corpus) = corpus() else { return };
    let is_all = std::env::var_os("SLUICE_SPAM_ALL").is_some();
    let step = if is_all { 1 } else { 10 };
    let [ham, other_ham] = mails(&corpus, &["easy-ham-1", "easy-ham-2", "hard-ham-1"], step);
    let [spam, other_spam] = mails(&corpus, &["spam-1", "spam-2"], step);
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
    let settings = format!("{SETTINGS}bayes_path {}\nbayes_min_ham_num 30\nbayes_min_spam_num 30\n", bayes.display());
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
    assert!(count > 90 && probabilities * 10 < count && rules * 100 < count, "{count} {probabilities} {rules}");
}
