//! Clamscan, where it is installed, and what is fed to it and to us.

// Each test file uses its own part of this.
#![allow(dead_code)]

pub mod office;
pub mod pe;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use scan::{Builder, Scan};
use stream::law::{self, Told};
use stream::{FileType, Note};

/// A database: the name of its file, and its text.
pub type Text = (&'static str, String);

/// Noise that is the same each time.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub fn one<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }

    /// A word of few letters, so that files hit what signatures ask for.
    pub fn word(&mut self, min: usize, max: usize) -> Vec<u8> {
        let length = min + self.below(max - min + 1);
        (0..length).map(|_| b"abc"[self.below(3)]).collect()
    }
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The names that are told.
pub fn names(told: &[Told]) -> BTreeSet<String> {
    let findings = told.iter().filter_map(|told| match told {
        Told::Note(Note::Finding(finding)) => Some(finding.name.to_string()),
        _ => None,
    });
    findings.collect()
}

/// Our detections in a file, fed at once; the law is held at a few cuts.
pub fn ours(databases: &[Text], file_type: FileType, file: &[u8]) -> BTreeSet<String> {
    let mut builder = Builder::new();
    for (name, text) in databases {
        builder.add(name, text.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    }
    let database = builder.build();
    assert_eq!(database.census().refused, []);
    let database = Arc::new(database);
    names(&law::tell(Scan::new(database, file_type, None), file))
}

/// Whether there is no clamscan; says so.
pub fn is_missing() -> bool {
    let missing = Command::new("clamscan").arg("--version").output().is_err();
    if missing {
        eprintln!("skipped: clamscan is not installed");
    }
    missing
}

/// Detections of clamscan in a file with the databases of a folder, and more arguments.
fn clamscan(folder: &Path, file: &Path, more: &[&str]) -> Option<BTreeSet<String>> {
    let output = Command::new("timeout")
        .args(["20", "clamscan"])
        .args(more)
        .args(["--allmatch", "--normalize=no", "--no-summary", "-d"])
        .arg(folder)
        .arg(file)
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!errors.contains("rror"), "{errors}");
    let names = text.lines().filter_map(|line| line.strip_suffix(" FOUND")?.rsplit(' ').next());
    Some(names.map(str::to_owned).collect())
}

/// A folder for files, with one for databases in it.
pub fn scratch(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("sluice-scan-{name}-{}", std::process::id()));
    fs::create_dir_all(folder.join("db")).expect("a scratch folder");
    folder
}

/// Runs both over the same files and says where they differ; how many names clamscan told.
pub fn compare(
    folder: &Path,
    databases: &[Text],
    files: &[(FileType, PathBuf)],
    more: &[&str],
    wrong: &mut String,
) -> usize {
    for (name, text) in databases {
        fs::write(folder.join("db").join(name), text).expect("a database");
    }
    let mut matches = 0;
    for (file_type, path) in files {
        let bytes = fs::read(path).expect("a file");
        let theirs = clamscan(&folder.join("db"), path, more).expect("clamscan runs");
        let ours = ours(databases, *file_type, &bytes);
        matches += theirs.len();
        for name in theirs.symmetric_difference(&ours) {
            let base = name.trim_end_matches(".UNOFFICIAL");
            let mut lines = databases.iter().flat_map(|(_, text)| text.lines());
            let line = lines.find(|line| line.split([':', ';']).any(|field| field == base));
            let whose = if ours.contains(name) { "only ours" } else { "only theirs" };
            let _ = writeln!(wrong, "{} {whose}: {line:?}", path.display());
        }
    }
    matches
}
