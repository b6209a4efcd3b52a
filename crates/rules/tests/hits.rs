//! The same mails by SpamAssassin itself, offline: which rules hit, and what they come to.
//!
//! The mails are those of `corpus/`, and of the packs below `SLUICE_DATA` a sample; `SLUICE_SPAM_ALL=1` takes all, and prints each rule that differs.
//! `SLUICE_SPAM_ANSWERS` names a file of answers that `tests/hits.pl` gave before.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use rules::spam::header::{Fields, Path as RelayPath};
use rules::spam::message::{Message, MessageLimits};
use rules::spam::run::{Engine, EngineOptions, Expressions, Outcome, RunLimits, Scratch};
use rules::spam::{Disabled, Expression, Limits, Rule, Rules, Schedule, Test};
use serde_json::Value;

use super::peer::{STOCK, load_with};

/// What one of the two says of a mail.
#[derive(Debug, Default)]
struct Answer {
    score: String,
    hits: BTreeSet<String>,
    /// The relays that are trusted, those that are not, those that are internal, and all others.
    relays: Vec<String>,
    /// The sender of the envelope.
    sender: String,
}

pub fn has_peer() -> bool {
    let files = ["/usr/share/spamassassin/72_active.cf", "/usr/share/perl5/Mail/SpamAssassin.pm"];
    let is_there = files.iter().all(|file| Path::new(file).exists());
    if !is_there {
        eprintln!("skipped: SpamAssassin is not installed");
    }
    is_there
}

/// Each mail of `corpus/`, and one of so many of the packs, in order.
fn mails(every: usize) -> Vec<PathBuf> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../data");
    let root = std::env::var_os("SLUICE_DATA").map_or_else(|| PathBuf::from(beside), PathBuf::from);
    if !root.join("mail-spamassassin").is_dir() {
        eprintln!("no pack: mail-spamassassin");
    }
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/mails");
    let own = below(vec![own.clone()], &own);
    own.into_iter().chain(public(&root).into_iter().step_by(every)).collect()
}

/// All mails of the packs; of those beside SpamAssassin's own only what is called like a mail.
fn public(root: &Path) -> Vec<PathBuf> {
    let folders: Vec<PathBuf> = ["spamassassin-corpus", "spamassassin-t"]
        .map(|name| root.join("mail-spamassassin").join(name))
        .into_iter()
        .chain(["mail-mime", "mail-auth"].map(|name| root.join(name)))
        .collect();
    below(folders, root)
}

fn below(mut folders: Vec<PathBuf>, root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_mail = path.extension().is_some_and(|end| end == "eml" || end == "msg" || end == "txt");
            if path.is_dir() {
                folders.push(path);
            } else if is_mail || path.starts_with(root.join("mail-spamassassin")) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn theirs(mails: &[PathBuf]) -> HashMap<PathBuf, Answer> {
    let text = match std::env::var_os("SLUICE_SPAM_ANSWERS") {
        Some(file) => fs::read(file).unwrap(),
        None => {
            // Two processes, since one takes a core.
            let halves: Vec<Vec<PathBuf>> =
                (0..2).map(|half| mails.iter().skip(half).step_by(2).cloned().collect()).collect();
            let ask = |mails: &Vec<PathBuf>| ask(mails, &STOCK.map(Path::new));
            std::thread::scope(|scope| {
                let threads: Vec<_> = halves.iter().map(|half| scope.spawn(move || ask(half))).collect();
                threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
            })
        }
    };
    let latin1: String = text.iter().map(|&byte| char::from(byte)).collect();
    latin1.lines().map(answer).collect()
}

#[test]
fn charsets_of_other_locales_are_those_of_spamassassin() {
    if !has_peer() {
        return;
    }
    let site = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(STOCK[1]).unwrap().flatten().filter(|entry| entry.path().is_file()) {
        fs::copy(entry.path(), site.path().join(entry.file_name())).unwrap();
    }
    fs::write(site.path().join("zz.cf"), "ok_locales en ja\n").unwrap();
    let is_odd = |path: &PathBuf| {
        let text = fs::read(path).unwrap().to_ascii_lowercase();
        ["koi8", "gb2312", "big5", "euc-kr", "ks_c", "iso-2022-jp", "charset=dek", "charset=default"]
            .iter()
            .any(|name| memchr::memmem::find(&text, name.as_bytes()).is_some())
    };
    let mails: Vec<PathBuf> = mails(1).into_iter().filter(is_odd).collect();
    let folders = [Path::new(STOCK[0]), site.path()];
    let engine = Engine::new(load_with(&folders, true, &Expressions), EngineOptions::default());
    let ours = ours(&engine, &mails);
    let answers = latin1(&ask(&mails, &folders));
    let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
    for (path, theirs) in answers.lines().map(answer) {
        let is_far = |rule: &&String| rule.contains("CHARSET_FARAWAY");
        let hits: [Vec<&String>; 2] = [&ours[&path], &theirs].map(|answer| answer.hits.iter().filter(is_far).collect());
        assert_eq!(hits[0], hits[1], "{}", path.display());
        for rule in ["CHARSET_FARAWAY", "CHARSET_FARAWAY_HEADER", "__MIME_CHARSET_FARAWAY"] {
            *seen.entry(rule).or_default() += u32::from(theirs.hits.contains(rule));
        }
    }
    eprintln!("{} mails: {seen:?}", mails.len());
    assert!(seen.values().all(|count| *count > 0), "{seen:?}");
}

/// Answers of SpamAssassin about mails, with the rules and the site of two folders: an object a line.
pub fn ask(mails: &[PathBuf], folders: &[&Path]) -> Vec<u8> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/hits.pl");
    let mut perl = Command::new("perl")
        .arg(script)
        .args(folders)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let names: String = mails.iter().fold(String::new(), |mut names, path| {
        let _ = writeln!(names, "{}", path.display());
        names
    });
    let mut input = perl.stdin.take().unwrap();
    let writer = std::thread::spawn(move || input.write_all(names.as_bytes()));
    let output = perl.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success());
    output.stdout
}

fn answer(line: &str) -> (PathBuf, Answer) {
    let value: Value = serde_json::from_str(line).unwrap();
    let names = |key: &str| -> BTreeSet<String> {
        value[key].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_string()).collect()
    };
    let mut hits = names("hits");
    hits.extend(names("subrules"));
    let score = value["score"].as_f64().or_else(|| value["score"].as_str()?.parse().ok()).unwrap();
    let shown = format!("{:.2}", if score.abs() < 0.005 { 0.0 } else { score });
    let relays = value["relays"].as_array().unwrap().iter().map(|text| text.as_str().unwrap_or_default().to_string());
    let sender = value["envelope"].as_str().unwrap_or_default().to_string();
    (PathBuf::from(value["file"].as_str().unwrap()), Answer { score: shown, hits, relays: relays.collect(), sender })
}

fn ours(engine: &Engine, mails: &[PathBuf]) -> HashMap<PathBuf, Answer> {
    let mut scratch = Scratch::default();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() as i64;
    mails
        .iter()
        .map(|path| {
            let message = Message::read(&fs::read(path).unwrap(), engine.reading(), &MessageLimits::default());
            // With all sub-rules; without, what is seen of it is the same.
            let outcome = engine.check(&message, now, true, &mut scratch);
            let plain = engine.check(&message, now, false, &mut scratch);
            assert_eq!(seen(engine, &plain), seen(engine, &outcome), "{}", path.display());
            assert!(plain.hits.len() < outcome.hits.len(), "some sub-rules are not run");
            let names = outcome.hits.iter().map(|hit| engine.rules().names()[hit.rule as usize].name.to_string());
            let (relays, sender) = path_of(engine, &message);
            let answer = Answer { score: outcome.total.to_string(), hits: names.collect(), relays, sender };
            let exhausted: Vec<_> =
                outcome.exhausted.iter().map(|&rule| &engine.rules().names()[rule as usize].name).collect();
            assert!(exhausted.is_empty(), "{}: {exhausted:?}", path.display());
            (path.clone(), answer)
        })
        .collect()
}

/// The rules that hit and are no sub-rules, in order, with what each counts, and the score.
fn seen<'e>(engine: &'e Engine, outcome: &Outcome) -> (Vec<(&'e str, u32)>, String) {
    let all = outcome.hits.iter().map(|hit| (&engine.rules().names()[hit.rule as usize], hit.count));
    let visible = all.filter(|(rule, _)| !rule.is_subrule());
    (visible.map(|(rule, count)| (&*rule.name, count)).collect(), outcome.total.to_string())
}

fn latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|&byte| char::from(byte)).collect()
}

fn path_of(engine: &Engine, message: &Message) -> (Vec<String>, String) {
    let limits = RunLimits::default();
    let path = RelayPath::read(message, &engine.settings().networks, limits.received_max);
    let lists = [&path.trusted, &path.untrusted, &path.internal, &path.external];
    let fields = Fields::new(message, &path, engine.reading(), None, &limits);
    (lists.map(|relays| latin1(&RelayPath::text(relays))).to_vec(), latin1(&fields.get("EnvelopeFrom")))
}

/// Rules that are not compared: what calls a function that is not there, what Perl compiles once with what it captured in its
/// first mail, and what is made of these.
fn left_out(rules: &Rules) -> BTreeSet<String> {
    let mut out: BTreeSet<String> = rules
        .disabled()
        .filter(|(_, why)| matches!(why, Disabled::Function(_)))
        .map(|(rule, _)| rule.name.to_string())
        .collect();
    let expression =
        |rule: &Rule| rule.test.as_ref().and_then(Test::expression).is_some_and(Expression::has_captured_tag);
    out.extend(rules.live().filter(|rule| expression(rule)).map(|rule| rule.name.to_string()));
    for (id, mut parts) in Schedule::new(rules, &Limits::default()).parts() {
        if parts.any(|part| out.contains(&*rules.names()[part as usize].name)) {
            out.insert(rules.names()[id as usize].name.to_string());
        }
    }
    out
}

#[test]
fn the_same_rules_hit_as_in_spamassassin() {
    if !has_peer() {
        return;
    }
    let all = std::env::var_os("SLUICE_SPAM_ALL").is_some();
    let every = if all { 1 } else { 12 };
    let mails: Vec<PathBuf> = mails(every);
    let rules = load_with(&STOCK.map(Path::new), true, &Expressions);
    assert_eq!(rules.errors(), 0, "{:?}", rules.problems().first());
    let start = Instant::now();
    let engine = Engine::new(rules, EngineOptions::default());
    let compiled = start.elapsed();
    engine.prepare();
    eprintln!("compiled in {compiled:?}, literals in {:?}: {}", start.elapsed() - compiled, engine.describe());
    let start = Instant::now();
    let ours = ours(&engine, &mails);
    eprintln!("{} mails in {:?}", mails.len(), start.elapsed());
    let theirs = theirs(&mails);
    paths(&mails, &ours, &theirs);
    compare(&mails, &ours, &theirs, &left_out(engine.rules()), all);
}

/// Whether relays and senders are the same.
fn paths(mails: &[PathBuf], ours: &HashMap<PathBuf, Answer>, theirs: &HashMap<PathBuf, Answer>) {
    let mut wrong = Vec::new();
    for path in mails {
        let Some(theirs) = theirs.get(path) else { continue };
        let ours = &ours[path];
        if (&ours.relays, &ours.sender) != (&theirs.relays, &theirs.sender) {
            wrong.push(format!(
                "{}\n  ours   {} {:?}\n  theirs {} {:?}",
                path.display(),
                ours.sender,
                ours.relays,
                theirs.sender,
                theirs.relays
            ));
        }
    }
    eprintln!("{} of {} paths differ\n{}", wrong.len(), mails.len(), wrong.join("\n"));
    assert!(wrong.len() * 200 <= mails.len(), "{} of {} paths differ", wrong.len(), mails.len());
}

/// The share of pairs of a mail and a rule, of those that one of the two has, that both have.
const AGREEMENT_MIN: f64 = 0.999;

fn compare(
    mails: &[PathBuf],
    ours: &HashMap<PathBuf, Answer>,
    theirs: &HashMap<PathBuf, Answer>,
    out: &BTreeSet<String>,
    all: bool,
) {
    let mut differing: BTreeMap<String, (Vec<&Path>, Vec<&Path>)> = BTreeMap::new();
    let (mut pairs, mut same, mut visible, mut visible_same) = (0_u32, 0_u32, 0_u32, 0_u32);
    let (mut scores, mut scores_same, mut wrong_scores) = (0_u32, 0_u32, Vec::new());
    for path in mails {
        let Some(theirs) = theirs.get(path) else { continue };
        let ours = &ours[path];
        for rule in ours.hits.union(&theirs.hits).filter(|rule| !out.contains(*rule)) {
            let both = ours.hits.contains(rule) && theirs.hits.contains(rule);
            let is_visible = !rule.starts_with("__");
            pairs += 1;
            same += u32::from(both);
            visible += u32::from(is_visible);
            visible_same += u32::from(is_visible && both);
            if !both {
                let lists = differing.entry(rule.clone()).or_default();
                let list = if ours.hits.contains(rule) { &mut lists.0 } else { &mut lists.1 };
                list.push(path);
            }
        }
        let is_plain = |rule: &&String| !rule.starts_with("__");
        if ours.hits.iter().filter(is_plain).eq(theirs.hits.iter().filter(is_plain)) {
            scores += 1;
            scores_same += u32::from(ours.score == theirs.score);
            if ours.score != theirs.score {
                wrong_scores.push(format!("{}: ours {}, theirs {}", path.display(), ours.score, theirs.score));
            }
        }
    }
    let mut rows: Vec<_> = differing.into_iter().collect();
    rows.sort_by_key(|(_, (ours, theirs))| std::cmp::Reverse(ours.len() + theirs.len()));
    let mut report = String::new();
    for (rule, (ours, theirs)) in &rows {
        let example = ours.first().or(theirs.first()).unwrap();
        let _ =
            writeln!(report, "{rule}: ours alone {}, theirs alone {}: {}", ours.len(), theirs.len(), example.display());
    }
    if let Some(file) = std::env::var_os("SLUICE_SPAM_REPORT") {
        let lines = rows.iter().flat_map(|(rule, (ours, theirs))| {
            let line = move |who: &'static str| move |path: &&Path| format!("{who} {rule} {}\n", path.display());
            ours.iter().map(line("ours")).chain(theirs.iter().map(line("theirs"))).collect::<Vec<_>>()
        });
        fs::write(file, lines.collect::<String>()).unwrap();
    }
    let share = |same: u32, all: u32| f64::from(same) / f64::from(all.max(1));
    let summary = format!(
        "{} mails, {} rules left out: {same} of {pairs} pairs agree ({:.3} %), {visible_same} of {visible} of those with a score ({:.3} %); \
         {scores_same} of {scores} scores are the same where the hits are",
        mails.len(),
        out.len(),
        100.0 * share(same, pairs),
        100.0 * share(visible_same, visible),
    );
    eprintln!("{summary}");
    if all {
        eprintln!("{report}");
    }
    let shown: String = report.lines().take(60).map(|line| format!("{line}\n")).collect();
    assert!(wrong_scores.is_empty(), "{}", wrong_scores.join("\n"));
    assert!(share(same, pairs) >= AGREEMENT_MIN && share(visible_same, visible) >= AGREEMENT_MIN, "{summary}\n{shown}");
}
