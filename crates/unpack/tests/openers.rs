//! Table of readers, walked.
//!
//! `openers.txt` has a line for each type with the readers of an object of which nothing else is known, in their order, and one
//! for each name, and for some types each declaration, beginning and magic, that makes a difference; `=` stands behind those that
//! make no more than they are given. Write it anew with
//! `SLUICE_WRITE_PAGES=1 cargo test -p sluice-unpack --test all openers::`.

use std::fmt::Write as _;

use stream::{FileType, Limits};
use unpack::{Claim, Due, Passwords, ROWS, When};

const NAMES: [&str; 7] = ["a.br", "a.DMG", "a.rels", "a.Br", "br", "a.txt", "a.HTM"];
const HEADS: [&[u8]; 3] = [b"From a", b"%PDF-1.7\n", b"From: a"];
/// Types of which every declaration, beginning and magic is tried.
const VARIED: [FileType; 5] = [FileType::Empty, FileType::Binary, FileType::Text, FileType::Mail, FileType::Pdf];
const MAGIC: [FileType; 3] = [FileType::Pdf, FileType::Empty, FileType::Elf];

fn path() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/openers.txt")
}

/// The readers of an object, each with its mark.
fn readers(claim: &Claim<'_>) -> String {
    let openers = unpack::open(claim, &Limits::default(), &Passwords::default());
    let names = openers.iter().map(|opener| format!("{}{}", opener.name, if opener.expands { "" } else { "=" }));
    names.collect::<Vec<_>>().join(" ")
}

/// The media types that rows speak of.
fn declared() -> impl Iterator<Item = &'static str> {
    ROWS.iter().filter_map(|row| if let When::Declared(media_type) = row.when { Some(media_type) } else { None })
}

fn lines() -> String {
    let mut lines = String::new();
    for &content in FileType::ALL {
        let plain = Claim::of(content);
        let alone = readers(&plain);
        let _ = writeln!(lines, "{}: {alone}", content.name());
        let mut tell = |what: String, claim: Claim<'_>| {
            let readers = readers(&claim);
            if readers != alone {
                let _ = writeln!(lines, "{} {what}: {readers}", content.name());
            }
        };
        NAMES.iter().for_each(|name| tell(format!("named {name}"), Claim { name: Some(name), ..plain }));
        if !VARIED.contains(&content) {
            continue;
        }
        declared().for_each(|media| tell(format!("as {media}"), Claim { media_type: Some(media), ..plain }));
        HEADS.iter().for_each(|head| tell(format!("{:?}", head.escape_ascii().to_string()), Claim { head, ..plain }));
        MAGIC.iter().for_each(|&magic| tell(format!("by magic {}", magic.name()), Claim { magic, ..plain }));
    }
    lines
}

#[test]
fn each_object_has_the_readers_that_are_written_down_for_it() {
    if std::env::var_os("SLUICE_WRITE_PAGES").is_some() {
        std::fs::write(path(), lines()).expect("the list can be written");
        return;
    }
    let written = std::fs::read_to_string(path()).expect("the list is there");
    assert!(written == lines(), "tests/openers.txt is out of date: see the head of this file");
}

#[test]
fn each_row_is_due_for_something_and_each_type_has_at_most_one_reader_of_its_own() {
    for (index, row) in ROWS.iter().enumerate() {
        let claims = FileType::ALL.iter().flat_map(|&content| {
            let plain = Claim::of(content);
            let named = NAMES.map(|name| Claim { name: Some(name), ..plain });
            let begun = HEADS.map(|head| Claim { head, ..plain });
            let declared = declared().map(move |media| Claim { media_type: Some(media), ..plain });
            [plain].into_iter().chain(named).chain(begun).chain(declared)
        });
        let is_due = |claim: Claim<'_>| {
            let name = if row.name.is_empty() { claim.content.name() } else { row.name };
            unpack::open(&claim, &Limits::default(), &Passwords::default()).iter().any(|opener| opener.name == name)
        };
        assert!(claims.into_iter().any(is_due), "row {index}, {:?}, is never due", row.name);
        if let When::Type(file_type) = row.when {
            let again = ROWS.iter().filter(|other| matches!(other.when, When::Type(other) if other == file_type));
            assert_eq!(again.count(), 1, "{}", file_type.name());
        }
    }
}

#[test]
fn only_the_magic_of_a_database_is_said_to_be_the_reason_of_a_reader() {
    let claim = Claim { magic: FileType::Pdf, ..Claim::of(FileType::Text) };
    let openers = unpack::open(&claim, &Limits::default(), &Passwords::default());
    let due: Vec<bool> = openers.iter().map(|opener| opener.due == Due::Magic).collect();
    assert!(due[0] && !due[1..].contains(&true), "{due:?}");
}

/// Random bytes that look like a header of ARC are read as one, and accuse nobody: Base64 in texts has many of them.
#[test]
fn a_header_of_arc_by_chance_accuses_nobody() {
    let doubt = |file_name: &[u8], date: u16, name: Option<&str>| {
        let mut head = [&[0x1a, 3][..], file_name].concat();
        head.resize(60, 0);
        head[19..21].copy_from_slice(&date.to_le_bytes());
        head[25] = 1;
        let claim = Claim { name, head: &head, ..Claim::of(unpack::recognise(&head)) };
        let openers = unpack::open(&claim, &Limits::default(), &Passwords::default());
        openers.iter().find(|opener| opener.name == "arc").map(|opener| opener.doubt)
    };
    const DATE: u16 = 10 << 9 | 7 << 5 | 21;
    assert_eq!(doubt(b"A.TXT", DATE, None), Some(unpack::Doubt::None));
    assert_eq!(doubt(b"A.TXT", 0, None), Some(unpack::Doubt::Always));
    assert_eq!(doubt(b"\xb7\x9dq", DATE, None), Some(unpack::Doubt::Always));
    assert_eq!(doubt(b"\xb7\x9dq", DATE, Some("old.ARC")), Some(unpack::Doubt::None));
}
