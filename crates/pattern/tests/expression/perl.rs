//! Perl's word on matches.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

use super::Found;

/// One question to Perl.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub text: Vec<u8>,
    pub flags: String,
    pub haystack: Vec<u8>,
    pub from: usize,
}

/// Answers of Perl to each case: nothing if it refuses the expression. Groups that did not match may be missing at the
/// end. `None` without Perl.
pub(crate) fn ask(cases: &[Case]) -> Option<Vec<Option<Found>>> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/expression/perl.pl");
    let perl = Command::new("perl").arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut perl) = perl else {
        eprintln!("skipped: perl is not installed");
        return None;
    };
    let mut lines = String::new();
    for case in cases {
        let _ = writeln!(lines, "{} {} {} {}", hex(&case.text), case.flags, hex(&case.haystack), case.from);
    }
    let mut input = perl.stdin.take().expect("a pipe");
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()));
    let output = perl.wait_with_output().expect("perl ends");
    writer.join().expect("a thread").expect("perl reads");
    let text = String::from_utf8(output.stdout).expect("digits");
    let answers: Vec<_> = text.lines().map(answer).collect();
    assert_eq!(answers.len(), cases.len(), "perl answers each case");
    Some(answers)
}

fn answer(line: &str) -> Option<Found> {
    match line {
        "refused" => None,
        "none" => Some(Found::None),
        groups => {
            let mut groups = groups.split(' ').map(|group| {
                let (start, end) = group.split_once('-')?;
                Some((start.parse().ok()?, end.parse().ok()?))
            });
            let whole = groups.next().flatten().expect("the whole");
            Some(Found::Match(whole, groups.collect()))
        }
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
