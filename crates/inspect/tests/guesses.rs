//! Readers that are set on a file by a guess, beside the reader of its type, find content and accuse nobody.

use std::sync::Arc;

use crate::build::{eicar, tar, zip};
use crate::pipeline::{Drive, Seen, drive_in};
use flow::{Context, Policy};
use inspect::Engine;
use scan::Database;
use stream::{Limits, Object};

fn seen_as(name: &str, bytes: &[u8], limits: Limits) -> Seen {
    let engine = Arc::new(Engine { database: Arc::new(Database::with_builtin()), limits });
    let object = Object { name: (!name.is_empty()).then(|| name.into()), ..Object::default() };
    let context = Context { object, policy: Policy::default(), ..Context::default() };
    drive_in(&engine, context, bytes, Drive { piece: 64 << 10, fuel: u64::MAX, mail: false })
}

fn names_as(name: &str, bytes: &[u8]) -> Vec<String> {
    seen_as(name, bytes, Limits::default()).names().into_iter().map(str::to_owned).collect()
}

/// Bytes that do not compress.
fn noise(count: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    };
    std::iter::repeat_with(&mut next).take(count).collect()
}

/// A gzip file of stored blocks.
fn stored_gzip(bytes: &[u8], block: usize) -> Vec<u8> {
    let mut file = b"\x1f\x8b\x08\0\0\0\0\0\0\x03".to_vec();
    let mut blocks = bytes.chunks(block).peekable();
    while let Some(block) = blocks.next() {
        file.push(u8::from(blocks.peek().is_none()));
        let length = block.len() as u16;
        file.extend_from_slice(&length.to_le_bytes());
        file.extend_from_slice(&(!length).to_le_bytes());
        file.extend_from_slice(block);
    }
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    file.extend_from_slice(&crc.sum().to_le_bytes());
    file.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    file
}

/// A zip archive of these members.
fn zip_of(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let (mut locals, mut directory) = (Vec::new(), Vec::new());
    for (name, bytes) in members {
        let one = zip(name, bytes, true);
        let directory_at = one.len() - 22 - 46 - name.len();
        let mut record = one[directory_at..][..46 + name.len()].to_vec();
        record[42..46].copy_from_slice(&(locals.len() as u32).to_le_bytes());
        directory.extend(record);
        locals.extend_from_slice(&one[..directory_at]);
    }
    let mut end = b"PK\x05\x06\0\0\0\0".to_vec();
    let count = members.len() as u16;
    end.extend_from_slice(&[count.to_le_bytes(), count.to_le_bytes()].concat());
    end.extend_from_slice(&(directory.len() as u32).to_le_bytes());
    end.extend_from_slice(&(locals.len() as u32).to_le_bytes());
    end.extend_from_slice(&[0, 0]);
    [locals, directory, end].concat()
}

/// Documents as office programs write them, one within an archive.
fn documents() -> Vec<u8> {
    let pictures: Vec<_> = ["word/media/1.png", "word/media/2.png", "word/media/3.png"]
        .iter()
        .enumerate()
        .map(|(at, name)| (*name, noise(9000)[at * 3000..][..3000].to_vec()))
        .collect();
    let document = zip_of(&pictures);
    let nested = zip("a.docx", &zip("word/document.xml", &noise(7000), false), false);
    tar(&[("a.docx", &document), ("b.zip", &nested), ("c.docx", &document)])
}

#[test]
fn pieces_of_documents_in_packed_bytes_have_no_findings() {
    for block in [700, 1000, 4096, 9050] {
        let packed = stored_gzip(&documents(), block);
        assert_eq!(names_as("q.tar.gz", &packed), [""; 0], "{block}");
        assert_eq!(names_as("", &packed), [""; 0], "{block}");
    }
}

#[test]
fn what_is_named_as_a_zip_archive_is_judged_as_one() {
    // The gzip reader does not get to the archive, whose end counts a member that is not there.
    let mut packed = stored_gzip(&noise(50), 50);
    packed.truncate(30);
    let mut archive = zip("a.txt", &noise(400), true);
    let counts = archive.len() - 22 + 8;
    archive[counts] += 1;
    archive[counts + 2] += 1;
    packed.extend_from_slice(&archive);
    assert!(names_as("q.zip", &packed).iter().any(|name| name.starts_with("Heuristics.Ambiguous.Zip")));
}

#[test]
fn content_in_packed_bytes_is_scanned() {
    // The gzip reader does not get this far.
    let mut packed = stored_gzip(&noise(50), 50);
    packed.truncate(30);
    packed.extend_from_slice(&zip("a.com", &eicar(), true));
    assert!(names_as("a.gz", &packed).iter().any(|name| name.contains("EICAR") || name.contains("Eicar")));
}

#[test]
fn a_document_in_front_of_other_members_is_read_to_its_own_end() {
    let mut pdf = b"%PDF-1.4\n1 0 obj\n<</Type/Catalog>>\nendobj\n".to_vec();
    // A stream whose filter comes later: its bytes are kept.
    pdf.extend_from_slice(b"2 0 obj\n<</Length 3 0 R/Filter 4 0 R>>stream\n");
    let archive = tar(&[("a.pdf", &pdf), ("b.bin", &noise(200 << 10))]);
    let limits = || Limits { spool_bytes_max: 64 << 10, ..Limits::default() };
    let names: Vec<String> = seen_as("a.tar", &archive, limits())
        .names()
        .into_iter()
        .map(str::to_owned)
        .filter(|name| name.contains("Pdf"))
        .collect();
    let alone: Vec<String> = seen_as("a.pdf", &pdf, limits())
        .names()
        .into_iter()
        .map(str::to_owned)
        .filter(|name| name.contains("Pdf"))
        .collect();
    assert_eq!(names, alone);
}

/// A program: an ELF file with these bytes among others.
fn program(constants: &[&[u8]]) -> Vec<u8> {
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0\x01\0\0\0".to_vec();
    file.resize(4096, 0);
    for constant in constants {
        file.extend_from_slice(constant);
        file.extend_from_slice(&[0x48, 0x89, 0xe5, 0xc3, 0, 0, 0, 0]);
    }
    file.resize(file.len() + 70_000, 0x90);
    file
}

#[test]
fn constants_of_a_program_are_no_archives() {
    let zip: [&[u8]; 5] = [b"PK\x05\x06", b"PK\x01\x02", b"PK\x03\x04", b"PK\x06\x06", b"PK\x06\x07"];
    assert_eq!(names_as("libminizip.so", &program(&zip)), [""; 0]);
    let streams: [&[u8]; 4] = [b"\x1f\x8b\x08\0\0\0\0\0\0\x03", b"\x28\xb5\x2f\xfd\x07", b"07070100", b"BZh91AY&SY"];
    assert_eq!(names_as("libarchive.so", &program(&streams)), [""; 0]);
}

#[test]
fn short_strings_of_a_text_do_not_use_up_the_objects() {
    let token = |number: usize| {
        let mut bytes = noise(48 + number % 16);
        bytes[..8].copy_from_slice(&(number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
        crate::build::base64(&bytes).replace("\r\n", "")
    };
    let lines: Vec<String> = (0..300).map(|at| format!(" {{\"integrity\": \"sha512-{}\"}}", token(at))).collect();
    let lock = format!("[\n{}\n]\n", lines.join(",\n"));
    let limits = || Limits { objects_max: 50, ..Limits::default() };
    assert_eq!(seen_as("package-lock.json", lock.as_bytes(), limits()).names(), [""; 0]);
    let files: Vec<String> = (0..300)
        .map(|at| {
            format!("\"{}\"", crate::build::base64(&zip(&format!("{at}.x"), &noise(99), false)).replace("\r\n", ""))
        })
        .collect();
    let script = format!("a = [\n{}\n]\n", files.join(";\n"));
    assert_eq!(seen_as("a.js", script.as_bytes(), limits()).names(), ["Heuristics.Limits.Exceeded.Objects"]);
}
