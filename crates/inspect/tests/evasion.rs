//! Files that hide a marked text: those of `corpus/wrapped`, and the evasion pack, where it is present. Each is detected, or refused
//! for a limit.

use std::path::{Path, PathBuf};
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
fn what_is_wrapped_is_found_and_clean_files_are_clean() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/wrapped");
    let mut builder = Builder::new();
    builder.add("marker.ndb", &std::fs::read(folder.join("marker.ndb")).unwrap()).unwrap();
    let engine = Arc::new(Engine { database: Arc::new(builder.build()), limits: Limits::default() });
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let paths: Vec<PathBuf> = paths.filter(|path| path.extension().is_none_or(|ending| ending != "ndb")).collect();
    assert!(paths.len() > 10, "{paths:?}");
    for path in paths {
        let seen = crate::pipeline::inspect(&engine, Policy::default(), &std::fs::read(&path).unwrap());
        let is_marked = !path.file_name().unwrap().to_string_lossy().starts_with("clean");
        assert_eq!(seen.names().contains(&"Corpus.Marker.UNOFFICIAL"), is_marked, "{}", path.display());
    }
}

#[test]
fn every_evasion_is_seen_through_or_refused() {
    let Some(folder) = pack("av-evasion/evasion") else {
        eprintln!("no pack: av-evasion");
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

#[test]
fn a_mail_with_the_mark_of_another_format_in_its_text_is_a_mail() {
    let mut builder = Builder::new();
    builder.add_official("marker.ndb", b"Marker:0:*:746865206d61726b6572").unwrap();
    let engine = Arc::new(Engine { database: Arc::new(builder.build()), limits: Limits::default() });
    for text in ["plain text", "see %PDF-1.7 here"] {
        let mail = format!(
            "From: a@example.org\r\nSubject: {text}\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n\
             --b\r\nContent-Type: application/octet-stream\r\nContent-Transfer-Encoding: base64\r\n\r\ndGhlIG1hcmtlcg==\r\n--b--\r\n"
        );
        let seen = crate::pipeline::inspect(&engine, Policy::default(), mail.as_bytes());
        assert_eq!(seen.names(), ["Marker"], "{text}");
        let pdf = format!(
            "From: a@example.org\r\nSubject: {text}\r\n\r\n1 0 obj\n<</Filter/ASCIIHexDecode/Length 23>>\nstream\n\
             746865206d61726b6572>\nendstream\nendobj\n"
        );
        let seen = crate::pipeline::inspect(&engine, Policy::default(), pdf.as_bytes());
        assert_eq!(seen.names().contains(&"Marker"), text.contains("PDF"), "{text}: {:?}", seen.names());
    }
}
