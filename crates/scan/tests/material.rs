//! ClamAV's own scan inputs and their signature files, where they are at hand: all load, and raw scans of all inputs
//! say what clamscan says of them with everything that unpacks switched off.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use scan::{Builder, Entry, Scan};
use stream::law::{self, Told};
use stream::{FileType, Note};

/// The folder of a pack, looked for in `SLUICE_DATA` and beside the checkout.
fn pack(name: &str) -> Option<PathBuf> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../data");
    let root = std::env::var_os("SLUICE_DATA").map_or_else(|| PathBuf::from(beside), PathBuf::from);
    let folder = root.join(name);
    if !folder.is_dir() {
        eprintln!("no pack: {name}");
        return None;
    }
    Some(folder)
}

fn files(folder: &Path, all: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            files(&path, all);
        } else {
            all.push(path);
        }
    }
}

fn names(told: &[Told]) -> BTreeSet<String> {
    let findings = told.iter().filter_map(|told| match told {
        Told::Note(Note::Finding(finding)) => Some(finding.name.to_string()),
        _ => None,
    });
    findings.collect()
}

#[test]
fn the_scan_inputs_of_clamav_load_and_behave() {
    let Some(folder) = pack("av-clamav") else {
        return;
    };
    let mut all = Vec::new();
    files(&folder, &mut all);
    let mut builder = Builder::new();
    let mut loaded = Vec::new();
    for path in &all {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if [".hdb", ".hsb", ".ndb", ".ldb"].iter().any(|kind| name.ends_with(kind)) {
            let text = fs::read(path).expect("a signature file");
            builder.add(&name, &text).unwrap_or_else(|error| panic!("{error}"));
            loaded.push(path.clone());
        }
    }
    let database = Arc::new(builder.build());
    assert_eq!(database.census().refused, []);
    assert_eq!(database.census().at_end, 5, "hashes");
    for path in &all {
        let bytes = fs::read(path).expect("an input");
        let told = law::tell(Scan::new(database.clone(), FileType::Binary, None), &bytes);
        if let Some(theirs) = clamscan(&loaded, path) {
            assert_eq!(names(&told), theirs, "{}", path.display());
        }
    }
    let unit = b"CLAMAV-TEST-STRING-NOT-EICAR";
    let told = law::tell(Scan::new(database, FileType::Text, None), unit);
    assert!(names(&told).contains("NDB.Clamav-Unit-Test-Signature.UNOFFICIAL"));
}

#[test]
fn every_rule_of_the_public_rule_set_is_looked_for_or_named() {
    let Some(folder) = pack("av-signatures") else {
        return;
    };
    let mut all = Vec::new();
    files(&folder, &mut all);
    let mut builder = Builder::new();
    let (mut rules, mut refused) = (0, 0);
    for path in all.iter().filter(|path| path.extension().is_some_and(|ending| ending == "yar")) {
        let bytes = fs::read(path).expect("a rule file");
        let loaded = builder.add(&path.to_string_lossy(), &bytes).unwrap_or_else(|error| panic!("{error}"));
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let mut in_comment = false;
        let mut begins = |line: &&str| {
            in_comment = (in_comment || line.trim_start().starts_with("/*")) && !line.contains("*/");
            let line = line.trim_start().trim_start_matches("private ").trim_start_matches("global ");
            !in_comment && line.starts_with("rule ")
        };
        let count = text.lines().filter(|line| begins(line)).count() as u64;
        assert_eq!(loaded.rules + loaded.left_out, count, "{}", path.display());
        rules += loaded.rules;
        refused += loaded.left_out;
    }
    let database = builder.build();
    let census = database.census();
    for (reason, count) in census.refusals() {
        println!("{count:5} {reason}");
    }
    println!("{} exact, {} at the end, {:?}", census.exact, census.at_end, census.bounded);
    assert_eq!((census.signatures(), census.refused.len() as u64), (rules, refused));
    assert!(rules > 2250, "{rules} rules are looked for, {refused} are refused");
    assert!(census.refused.iter().all(|refused| refused.name.starts_with("YARA.")));
}

#[test]
fn a_published_list_of_addresses_is_loaded() {
    let Some(folder) = pack("av-clamav") else {
        return;
    };
    let path = folder.join("clamav-scanfiles/other_sigs/daily.gdb");
    let bytes = fs::read(&path).expect("a list");
    let mut builder = Builder::new();
    builder.add("daily.gdb", &bytes).expect("a list");
    let database = builder.build();
    let census = database.census();
    assert_eq!((census.refused.len(), census.entries.get(&Entry::Address).copied()), (0, Some(4)));
}

/// Detections of clamscan in the raw file, if it is installed.
fn clamscan(databases: &[PathBuf], path: &Path) -> Option<BTreeSet<String>> {
    let mut command = Command::new("clamscan");
    command.args(["--allmatch", "--no-summary", "--normalize=no"]);
    for kind in ["archive", "mail", "ole2", "pdf", "html", "swf", "xmldocs", "hwp3", "onenote", "pe", "elf", "image"] {
        command.arg(format!("--scan-{kind}=no"));
    }
    for database in databases {
        command.arg("-d").arg(database);
    }
    let output = command.arg(path).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let names = text.lines().filter_map(|line| line.strip_suffix(" FOUND")?.rsplit(' ').next());
    Some(names.map(str::to_owned).collect())
}
