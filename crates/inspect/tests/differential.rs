//! Mails that another reader opens and Sluice does not: made by a grammar of oddities, read by widespread parsers.
//!
//! Whenever one of them finds the mark at the beginning of a decoded part, the inspection has to find it too, or its
//! verdict under the default policy must not be to pass. A failure is printed with its seed, cut down to the lines that
//! matter.
//!
//! `SLUICE_DIFFERENTIAL_MAILS` and `SLUICE_DIFFERENTIAL_SEED` say how many mails, from which number on; `NODE_MODULES`
//! names a folder with the parsers of npm, which are left out otherwise. `ci/differential.sh` sets them.

mod grammar;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use crate::pipeline::{Drive, Seen, drive};
use flow::{Action, Policy};
use grammar::MARKS;
use inspect::Engine;
use scan::Builder;
use stream::Limits;

/// Mails that are read at a time.
const BATCH: u64 = 5_000;
/// Failures that are cut down and printed.
const SHOWN_MAX: usize = 5;

/// Mails that pass and that MIME-tools alone opens: it drops a surplus `=` within a quantum of Base64, where we begin a new
/// quantum as the other readers do.
const KNOWN: [u64; 2] = [1668, 1712];

#[test]
fn what_another_reader_opens_is_found_or_refused() {
    let number = |name: &str, usual: u64| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual);
    let (mails, first) = (number("SLUICE_DIFFERENTIAL_MAILS", 2_000), number("SLUICE_DIFFERENTIAL_SEED", 1));
    let readers = readers();
    if readers.len() < 2 {
        assert!(std::env::var_os("CI").is_none(), "readers of mails are missing: see ci/setup.sh");
        eprintln!("skipped: Python or the Perl modules MIME-tools and Email::MIME are missing");
        return;
    }
    let engine = engine();
    let mut counts = std::collections::BTreeMap::<String, u32>::new();
    let (mut opened, mut missed) = (0, Vec::new());
    for start in (first..first + mails).step_by(BATCH as usize) {
        let seeds: Vec<u64> = (start..(start + BATCH).min(first + mails)).collect();
        let batch: Vec<Vec<u8>> = seeds.iter().map(|&seed| grammar::mail(seed)).collect();
        for ((mail, seed), openers) in batch.iter().zip(seeds).zip(read_by(&readers, &batch)) {
            if openers.is_empty() {
                continue;
            }
            opened += 1;
            openers.iter().for_each(|name| *counts.entry(name.clone()).or_default() += 1);
            if passes(&engine, mail) && !(KNOWN.contains(&seed) && openers == ["mime-tools"]) {
                missed.push((seed, openers, mail.clone()));
            }
        }
    }
    println!("{mails} mails from {first}: {opened} opened by others {counts:?}, {} of them passed", missed.len());
    for (seed, openers, mail) in missed.iter().take(SHOWN_MAX) {
        let small = minimise(&engine, &readers, mail.clone());
        println!("seed {seed}, opened by {openers:?}:\n{}\n", small.escape_ascii().to_string().replace("\\n", "\\n\n"));
    }
    let seeds: Vec<_> = missed.iter().map(|(seed, openers, _)| (seed, openers)).collect();
    assert!(missed.is_empty(), "passed though opened: {seeds:?}");
    assert!(opened > mails / 3, "the mails are too odd to show anything: {opened} of {mails}");
}

fn engine() -> Arc<Engine> {
    let mut builder = Builder::new();
    builder.add_builtin();
    let mark = hex(MARKS[1]);
    builder.add("mark.ndb", format!("Mark:0:0:{mark}\n").as_bytes()).expect("a signature");
    Arc::new(Engine { database: Arc::new(builder.build()), limits: Limits::default() })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn passes(engine: &Arc<Engine>, mail: &[u8]) -> bool {
    let Seen { verdict, .. } =
        drive(engine, Policy::default(), mail, Drive { piece: 64 << 10, fuel: u64::MAX, mail: true });
    verdict.action == Action::Pass
}

/// The commands of the readers that are installed.
fn readers() -> Vec<[PathBuf; 2]> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/differential");
    let works = |program: &str, arguments: &[&str]| {
        Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
    };
    let mut readers = Vec::new();
    let mut add = |program: &str, file: &str| readers.push([program.into(), folder.join(file)]);
    if works("python3", &["-c", "import email"]) {
        add("python3", "readers.py");
    }
    if works("perl", &["-MMIME::Parser", "-MEmail::MIME", "-e", "1"]) {
        add("perl", "readers.pl");
    }
    if std::env::var_os("NODE_MODULES").is_some() {
        add("node", "readers.mjs");
    }
    readers
}

/// For each mail, who finds the mark in it.
fn read_by(readers: &[[PathBuf; 2]], mails: &[Vec<u8>]) -> Vec<Vec<String>> {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("differential-{}", std::process::id()));
    let whole: Vec<u8> =
        mails.iter().flat_map(|mail| [&(mail.len() as u32).to_be_bytes()[..], mail].concat()).collect();
    std::fs::write(&file, whole).expect("the mails are written");
    let marks = MARKS.map(hex);
    let running: Vec<_> = readers
        .iter()
        .map(|[program, script]| {
            let mut command = Command::new(program);
            command.arg(script).arg(&file).args(&marks).stdout(std::process::Stdio::piped());
            command.spawn().expect("a reader starts")
        })
        .collect();
    let mut all = vec![Vec::new(); mails.len()];
    for child in running {
        let output = child.wait_with_output().expect("a reader ends");
        let text = String::from_utf8(output.stdout).expect("names");
        assert_eq!(text.lines().count(), mails.len(), "a reader stopped");
        for (openers, line) in all.iter_mut().zip(text.lines()) {
            openers.extend(line.split_whitespace().map(String::from));
        }
    }
    std::fs::remove_file(&file).expect("the mails are removed");
    all
}

/// Leaves out lines as long as some reader opens the mail and it passes.
fn minimise(engine: &Arc<Engine>, readers: &[[PathBuf; 2]], mut mail: Vec<u8>) -> Vec<u8> {
    for _ in 0..40 {
        let lines: Vec<&[u8]> = mail.split_inclusive(|&byte| byte == b'\n').collect();
        let without = |at: usize| [&lines[..at], &lines[at + 1..]].concat().concat();
        let smaller: Vec<Vec<u8>> = (0..lines.len()).map(without).filter(|mail| passes(engine, mail)).collect();
        let read = read_by(readers, &smaller);
        let Some(at) = read.iter().position(|openers| !openers.is_empty()) else { return mail };
        mail = smaller[at].clone();
    }
    mail
}
