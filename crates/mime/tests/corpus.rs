//! Golden pairs (`corpus/*.eml` beside `*.told`) and the replay of the fuzz seeds.
//!
//! A new case is a new `.eml`; `BLESS=1` writes what is told of it, to be read before it is committed.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use mime::{Parser, fuzz_decoder, fuzz_embedded, fuzz_parser};
use stream::law::{self, Told};
use stream::{Coding, Limits, Note, Object};

fn here(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)
}

/// Small, so that small cases reach them.
fn limits() -> Limits {
    Limits { multipart_depth_max: 4, fields_max: 6, field_bytes_max: 500, name_bytes_max: 100, ..Limits::default() }
}

#[test]
fn what_is_told_of_each_mail_is_what_is_expected() {
    let bless = std::env::var_os("BLESS").is_some();
    let mut compared = 0;
    for (path, mail) in crate::packs::files(&here("corpus")) {
        if path.extension().is_none_or(|extension| extension != "eml") {
            continue;
        }
        law::holds(|| Parser::new(&limits()), &mail);
        law::holds_at_every_cut(|| Parser::new(&limits()), &mail);
        let mut told = String::new();
        show(&law::tell(Parser::new(&limits()), &mail), 0, &mut told);
        let expected = path.with_extension("told");
        if bless {
            std::fs::write(&expected, &told).expect("the expectation can be written");
        }
        let expected = std::fs::read_to_string(&expected).unwrap_or_default();
        assert_eq!(told, expected, "{}", path.display());
        compared += 1;
    }
    assert!(compared > 20, "the corpus is there");
}

fn show(told: &[Told], depth: usize, into: &mut String) {
    let mut indent = depth;
    for item in told {
        if matches!(item, Told::Close) {
            indent -= 1;
            continue;
        }
        let line = match item {
            Told::Open(object) => describe(object),
            Told::Content(bytes) => format!("\"{}\"", bytes.escape_ascii()),
            Told::Note(Note::Finding(finding)) => format!("! {} @{}", finding.name, finding.offset),
            Told::Note(Note::Fork(finding)) => format!("? {} @{}", finding.name, finding.offset),
            Told::Alternative(_) => "second reading".to_owned(),
            Told::End(at) => format!("end @{at}"),
            Told::Keep(_) | Told::Close => continue,
        };
        writeln!(into, "{}{line}", "  ".repeat(indent)).expect("a string can be written to");
        match item {
            Told::Open(_) => indent += 1,
            Told::Alternative(other) => show(other, indent + 1, into),
            _ => {}
        }
    }
}

fn describe(object: &Object) -> String {
    let mut line = object.kind.name().to_owned();
    match object.raw_offset {
        Some(offset) => write!(line, " @{offset}").expect("a string can be written to"),
        None => line.push_str(" @-"),
    }
    if object.coding != Coding::Identity {
        write!(line, " {}", object.coding.name()).expect("a string can be written to");
    }
    for (what, text) in [("type", &object.media_type), ("charset", &object.charset), ("name", &object.name)] {
        if let Some(text) = text {
            write!(line, " {what}={text:?}").expect("a string can be written to");
        }
    }
    line
}

#[test]
fn the_fuzz_seeds_hold() {
    for (name, body) in
        [("mime_parser", fuzz_parser as fn(&[u8])), ("mime_decoder", fuzz_decoder), ("mime_embedded", fuzz_embedded)]
    {
        let folder = here("../../fuzz/corpus").join(name);
        let seeds = crate::packs::files(&folder);
        assert!(!seeds.is_empty(), "{name} has seeds");
        for (path, seed) in seeds {
            println!("{}", path.display());
            body(&seed);
        }
    }
}
