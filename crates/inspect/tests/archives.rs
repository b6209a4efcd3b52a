//! Archives by a grammar of oddities: what any reader opens is found, or refused.
//!
//! `archives/archives.py` makes them and lets Python, bsdtar, 7-Zip, Info-ZIP and unar extract them. Whenever one of them comes
//! to the marker, the default verdict is not to pass. The gate takes a few with a fixed seed; `fuzz/archives.sh` takes as many
//! as wanted. `SLUICE_ARCHIVES="SEED COUNT"` names others.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use flow::{Action, Policy};
use inspect::Engine;
use scan::Builder;
use stream::Limits;

/// What the archives hold, and what those of the table of formats do; written so that this source holds neither.
const MARKS: [[&str; 2]; 2] = [["marker-that-a-reader-", "comes-to-0123456789"], ["-STANDARD-", "ANTIVIRUS-TEST-FILE"]];

fn engine() -> Arc<Engine> {
    let mut builder = Builder::new();
    for (number, mark) in MARKS.iter().enumerate() {
        let hex: String = mark.concat().bytes().map(|byte| format!("{byte:02x}")).collect();
        builder.add("marks.ndb", format!("Mark.{number}:0:*:{hex}\n").as_bytes()).unwrap();
    }
    Arc::new(Engine { database: Arc::new(builder.build()), limits: Limits::default() })
}

#[test]
fn no_archive_that_a_reader_opens_passes() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = std::env::temp_dir().join(format!("sluice-archives-{}", std::process::id()));
    let wanted = std::env::var("SLUICE_ARCHIVES").unwrap_or_else(|_| "1 160".into());
    let (seed, count) = wanted.split_once(' ').expect("a seed and a count");
    let made = Command::new("python3")
        .arg(here.join("tests/archives/archives.py"))
        .args([seed, count])
        .arg(&folder)
        .arg(here.join("../sluice/tests/eicar/formats.tsv"))
        .output();
    let Some(made) = made.ok().filter(|made| made.status.success()) else {
        assert!(std::env::var_os("CI").is_none(), "no Python to make archives with");
        eprintln!("skipped: no Python to make archives with");
        return;
    };
    let (engine, mut opened, mut passed) = (engine(), 0, Vec::new());
    let text = String::from_utf8_lossy(&made.stdout).into_owned();
    for line in text.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [path, seed, odd, readers] = fields[..] else {
            println!("readers: {line}");
            continue;
        };
        if readers.is_empty() {
            continue;
        }
        opened += 1;
        let seen = crate::pipeline::inspect(&engine, Policy::default(), &std::fs::read(path).unwrap());
        if seen.verdict.action == Action::Pass {
            passed.push(format!("{seed} ({odd}), opened by {readers}: {:?}", seen.names()));
        }
    }
    if std::env::var_os("SLUICE_ARCHIVES").is_none() || passed.is_empty() {
        let _ = std::fs::remove_dir_all(&folder);
    }
    println!("{opened} of {count} archives were opened by somebody");
    assert!(passed.is_empty(), "{} that pass, in {}:\n{}", passed.len(), folder.display(), passed.join("\n"));
}
