//! ClamAV's own scan inputs, where they are present: what clamscan finds in them by its test signature is found here too.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use flow::Policy;
use inspect::Engine;
use scan::Builder;
use stream::Limits;

#[test]
fn what_clamscan_finds_is_found() {
    let Some(folder) = std::env::var_os("SLUICE_DATA").map(|data| PathBuf::from(data).join("av-clamav")) else {
        eprintln!("no pack: av-clamav");
        return;
    };
    let Ok(expected) = std::fs::read_to_string(folder.join("EXPECTED-hdb.tsv")) else {
        eprintln!("no pack: av-clamav");
        return;
    };
    let mut builder = Builder::new();
    let database = folder.join("clamav-scanfiles/clamav.hdb");
    builder.add("clamav.hdb", &std::fs::read(database).unwrap()).unwrap();
    let engine = Arc::new(Engine { database: Arc::new(builder.build()), limits: Limits::default() });
    let (mut found, mut missed) = (0, Vec::new());
    for line in expected.lines().skip(1).filter(|line| line.ends_with("FOUND")) {
        let path = Path::new(line.split('\t').next().unwrap());
        let seen = crate::pipeline::inspect(&engine, Policy::default(), &std::fs::read(folder.join(path)).unwrap());
        if seen.names().contains(&"ClamAV-Test-File.UNOFFICIAL") {
            found += 1;
        } else {
            missed.push(path);
        }
    }
    assert!(found > 0 && missed.is_empty(), "{found} found; missed: {missed:?}");
}
