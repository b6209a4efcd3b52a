//! The cases of `posix.py`, on the mount and on a bare folder.
//!
//! `SLUICE_POSIX=1` runs all 25,000 of them; without it, one in twenty of the large matrix.

use std::path::Path;
use std::process::Command;

use crate::harness::{How, Mount};

/// Known differences of the file system (`docs/operate/file-system.md`, "Limitations").
fn is_known(case: &str) -> bool {
    // A chown that changes nothing is not asked about, and takes no rights away. Whoever reads back what waits has not read the
    // file below.
    case.contains("chown") || case.contains("open file beyond")
}

fn lines(folder: &Path) -> Vec<String> {
    let share = if std::env::var_os("SLUICE_POSIX").is_some() { "1" } else { "20" };
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/posix.py");
    let output = Command::new("python3").args(["-B", program]).arg(folder).arg(share).output().expect("python3 runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn names_and_rights_are_those_of_the_folder_below() {
    for passes_all in [false, true] {
        let Some(mount) = Mount::new(How { passes_all, ..How::default() }) else { return };
        let bare = mount.folder.path().join("bare");
        std::fs::create_dir(&bare).expect("a folder");
        for folder in [mount.folder.path(), &bare, &mount.point] {
            std::fs::set_permissions(folder, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("a mode");
        }
        let (expected, found) = (lines(&bare), lines(&mount.point));
        assert!(expected.len() > 1000 && expected.len() == found.len(), "{} {}", expected.len(), found.len());
        let others = expected.iter().zip(&found).filter(|(bare, mounted)| bare != mounted && !is_known(bare));
        let others: Vec<String> = others.map(|(bare, mounted)| format!("bare  {bare}\nmount {mounted}\n")).collect();
        assert!(others.is_empty(), "{} of {}:\n{}", others.len(), found.len(), others[..others.len().min(40)].concat());
    }
}
