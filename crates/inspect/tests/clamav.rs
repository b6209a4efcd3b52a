//! ClamAV's own scan inputs, where they are present: what clamscan finds in them by its test signature is found here too,
//! or the format is named that this version does not open.

mod pipeline;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use inspect::{Engine, Policy};
use scan::Builder;
use stream::Limits;

/// Files that are not seen through, by what they need.
const NOT_OPENED: &[(&str, &str)] = &[("clam-pespin.exe", "PESpin, an executable packer")];

#[test]
fn what_clamscan_finds_is_found_or_named() {
    let Some(folder) = std::env::var_os("SLUICE_DATA").map(|data| PathBuf::from(data).join("av-clamav")) else {
        eprintln!("skipped: SLUICE_DATA is not set");
        return;
    };
    let Ok(expected) = std::fs::read_to_string(folder.join("EXPECTED-hdb.tsv")) else {
        eprintln!("skipped: no av-clamav below SLUICE_DATA");
        return;
    };
    let mut builder = Builder::new();
    let database = folder.join("clamav-scanfiles/clamav.hdb");
    builder.add("clamav.hdb", &std::fs::read(database).unwrap()).unwrap();
    let engine = Arc::new(Engine { database: Arc::new(builder.build()), limits: Limits::default() });
    let (mut found, mut wrong) = (0, Vec::new());
    for line in expected.lines().skip(1).filter(|line| line.ends_with("FOUND")) {
        let path = Path::new(line.split('\t').next().unwrap());
        let seen = pipeline::inspect(&engine, Policy::default(), &std::fs::read(folder.join(path)).unwrap());
        let is_found = seen.names().contains(&"ClamAV-Test-File.UNOFFICIAL");
        let name = path.file_name().unwrap().to_str().unwrap();
        let reason = NOT_OPENED.iter().find(|(file, _)| *file == name).map(|(_, reason)| reason);
        println!("{name}: {}", if is_found { "found" } else { reason.copied().unwrap_or("missed") });
        found += u32::from(is_found);
        if is_found == reason.is_some() {
            wrong.push(name.to_string());
        }
    }
    assert!(wrong.is_empty(), "{found} found; not as the table says: {wrong:?}");
}
