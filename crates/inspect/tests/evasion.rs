//! The evasion pack, where it is present: each file is detected, refused for a limit, or named below with the reason.

use std::path::PathBuf;
use std::sync::Arc;

use flow::Policy;
use inspect::Engine;
use scan::Builder;
use stream::{Class, Limits};

/// The folder of a pack, if it is there: unpacked below `SLUICE_DATA`.
fn pack(name: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("SLUICE_DATA").map(PathBuf::from)?.join(name);
    folder.is_dir().then_some(folder)
}

#[test]
fn every_evasion_is_seen_through_or_refused() {
    let Some(folder) = pack("av-evasion/evasion") else {
        eprintln!("skipped: no evasion pack below SLUICE_DATA");
        return;
    };
    let mut builder = Builder::new();
    for name in ["clamav.hdb", "clam-body.ndb"] {
        builder.add(name, &std::fs::read(folder.join(name)).unwrap()).unwrap();
    }
    let engine = Arc::new(Engine { database: Arc::new(builder.build()), limits: Limits::default() });
    let expected = std::fs::read_to_string(folder.join("EXPECTED.tsv")).unwrap();
    let mut missed = Vec::new();
    for line in expected.lines().skip(1) {
        let name = line.split('\t').next().unwrap();
        let seen = crate::pipeline::inspect(&engine, Policy::default(), &std::fs::read(folder.join(name)).unwrap());
        let classes: Vec<Class> = seen.verdict.findings.iter().map(|spotted| spotted.finding.class).collect();
        let caught = classes.iter().any(|class| *class >= Class::Ambiguous);
        println!("{name}: {:?}", seen.names());
        if !caught {
            missed.push(name.to_string());
        }
    }
    assert!(missed.is_empty(), "missed: {missed:?}");
}
