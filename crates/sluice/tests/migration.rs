//! `sluice migrate postfix`: configurations of several shapes beside the files that they become, each of which `sluice check` accepts.
//!
//! A folder of `migrations` is a case: its files, in which `FOLDER` stands for their place, and `sluice.toml`, the file that comes out.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn sluice(words: &[&str], file: &Path) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_sluice")).args(words).arg(file).output().unwrap();
    (output.status.code(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
}

/// Lays the files of a case out, with a certificate and its key.
fn laid(case: &Path) -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    let made = rcgen::generate_simple_self_signed(vec!["mx.example.org".to_owned()]).unwrap();
    let (chain, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    for (name, text) in [("mx.pem", &chain), ("mx.key", &key), ("both.pem", &format!("{key}{chain}"))] {
        fs::write(at(name), text).unwrap();
    }
    for file in fs::read_dir(case).unwrap().map(|entry| entry.unwrap().path()) {
        let name = file.file_name().unwrap().to_str().unwrap();
        if name != "sluice.toml" {
            let text = fs::read_to_string(&file).unwrap();
            fs::write(at(name), text.replace("FOLDER", place.path().to_str().unwrap())).unwrap();
        }
    }
    place
}

#[test]
fn configurations_become_what_stands_beside_them() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/migrations");
    let mut cases: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    for case in cases {
        let place = laid(&case);
        let (status, text) = sluice(&["migrate", "postfix"], place.path());
        assert_eq!(status, Some(0), "{}: {text}", case.display());
        let made = place.path().join("made.toml");
        fs::write(&made, &text).unwrap();
        let (status, said) = sluice(&["check", "--no-signatures"], &made);
        assert_eq!(status, Some(0), "{}: {said}", case.display());
        let wanted = fs::read_to_string(case.join("sluice.toml")).unwrap_or_default();
        let text = text.replace(place.path().to_str().unwrap(), "FOLDER");
        assert!(text == wanted, "{} is otherwise:\n{text}", case.display());
    }
}
