//! Bombs: each is stopped with a finding, within the memory that its kind may take; and what only looks like one is clean.
//!
//! The files in `bombs/` are 100 MB of zeros, by the tools of their formats.

#[allow(dead_code, reason = "each test program uses its own part")]
#[path = "pipeline/build.rs"]
mod build;
#[path = "pipeline/counting.rs"]
mod counting;
mod pipeline;

use std::io::Write;
use std::sync::Arc;

use build::{gzip, tar, zip};
use counting::{Counting, most_held};
use flow::Policy;
use inspect::Engine;
use scan::Database;
use stream::{Class, Limits};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const MIB: usize = 1 << 20;

/// The names of limits that were reached, of all findings, and the most that was held.
fn inspect(bytes: &[u8], limits: Limits) -> (Vec<String>, Vec<String>, usize) {
    let engine = Arc::new(Engine { database: Arc::new(Database::with_builtin()), limits });
    let (seen, most) = most_held(|| pipeline::inspect(&engine, Policy::default(), bytes));
    let findings = seen.verdict.findings.iter().map(|spotted| &spotted.finding);
    let limits = findings.clone().filter(|finding| finding.class == Class::Limit);
    (limits.map(|finding| finding.name.to_string()).collect(), findings.map(|one| one.name.to_string()).collect(), most)
}

fn zeros(count: usize) -> Vec<u8> {
    vec![0; count]
}

fn nested(levels: usize, start: Vec<u8>, pack: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    (0..levels).fold(start, |inner, _| pack(&inner))
}

/// Members that lie within each other: the data of each begin with a stored block that holds the next one's header.
fn quoted_overlap(members: usize) -> Vec<u8> {
    let content = zeros(MIB);
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(&content).unwrap();
    let (mut data, mut plain) = (encoder.finish().unwrap(), content);
    let mut entries = Vec::new();
    for number in (0..members).rev() {
        let mut crc = flate2::Crc::new();
        crc.update(&plain);
        let name = format!("{number:04}");
        let mut common = vec![20, 0, 0, 0, 8, 0, 0, 0, 0, 0];
        for field in [crc.sum(), data.len() as u32, plain.len() as u32] {
            common.extend(field.to_le_bytes());
        }
        common.extend([name.len() as u8, 0, 0, 0]);
        let header = [b"PK\x03\x04", &common[..], name.as_bytes()].concat();
        let after = data.len() + header.len();
        entries.push((common, name, after));
        let length = header.len() as u16;
        let quote = [&[0][..], &length.to_le_bytes(), &(!length).to_le_bytes()].concat();
        plain.splice(..0, header.iter().copied());
        data.splice(..0, if number == 0 { header } else { [quote, header].concat() });
    }
    let end = data.len();
    let mut directory = Vec::new();
    for (common, name, after) in entries.iter().rev() {
        directory.extend([b"PK\x01\x02\x14\x00", &common[..], &[0; 10]].concat());
        directory.extend(((end - after) as u32).to_le_bytes());
        directory.extend(name.as_bytes());
    }
    data.extend(&directory);
    data.extend(b"PK\x05\x06\0\0\0\0");
    for field in [members as u16; 2] {
        data.extend(field.to_le_bytes());
    }
    data.extend((directory.len() as u32).to_le_bytes());
    data.extend((end as u32).to_le_bytes());
    data.extend([0, 0]);
    data
}

/// A frame of zstd that wants a window of 2 GiB, and 64 MiB of zeros in it.
fn wide_zstd() -> Vec<u8> {
    const RUN: u32 = 128 << 10;
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 21 << 3];
    for number in (0..512).rev() {
        let header = RUN << 3 | 1 << 1 | u32::from(number == 0);
        frame.extend(&header.to_le_bytes()[..3]);
        frame.push(0);
    }
    frame
}

/// A tar archive with a sparse member that is all hole.
fn hole() -> Vec<u8> {
    let size = (i64::MAX as u64).to_string();
    let records = format!("39 GNU.sparse.size={size}\n40 GNU.sparse.map={size},0\n");
    let mut archive = tar(&[("records", records.as_bytes()), ("hole", b"")]);
    const KIND_AT: usize = 156;
    const SUM_AT: usize = 148;
    archive[KIND_AT] = b'x';
    let sum: u32 = archive[..512].iter().map(|&byte| u32::from(byte)).sum::<u32>();
    let field: u32 = archive[SUM_AT..KIND_AT].iter().map(|&byte| u32::from(byte)).sum();
    let sum = sum - field + 8 * u32::from(b' ');
    archive[SUM_AT..KIND_AT].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    archive
}

fn pdf(filters: usize) -> Vec<u8> {
    let deflate = |bytes: &[u8]| {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let data = nested(filters, zeros(MIB), deflate);
    let names = "/FlateDecode ".repeat(filters);
    let head = format!("%PDF-1.4\n1 0 obj\n<< /Length {} /Filter [ {names}] >>\nstream\n", data.len());
    [head.as_bytes(), &data, b"\nendstream\nendobj\n%%EOF\n"].concat()
}

// One test each for bombs and controls; they take turns, since the counter is the process's.
static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());

#[test]
fn each_bomb_is_stopped_within_its_memory() {
    let _turn = TURN.lock();
    let low = Limits { ratio_free_bytes: 1 << 20, ..Limits::default() };
    let many: Vec<(&str, &[u8])> = vec![("a", b""); 20_000];
    let file = |bytes: &[u8]| bytes.to_vec();
    for (what, bytes, limits, most_mib) in [
        ("a gzip of zeros in nine others", nested(10, zeros(32 * MIB), gzip), low.clone(), 2),
        ("40 zips in each other", nested(40, b"a".to_vec(), |inner| zip("a.zip", inner, true)), low.clone(), 5),
        ("members that quote each other", quoted_overlap(100), low.clone(), 2),
        ("20,000 empty members", gzip(&tar(&many)), Limits::default(), 6),
        ("PDF, 50 filters", pdf(50), Limits::default(), 5),
        ("zstd, a window of 2 GiB", wide_zstd(), low.clone(), 16),
        ("xz", file(include_bytes!("bombs/zeros.xz")), Limits::default(), 100),
        ("bzip2", file(include_bytes!("bombs/zeros.bz2")), Limits::default(), 6),
        ("zstd", file(include_bytes!("bombs/zeros.zst")), Limits::default(), 20),
        ("brotli", zip("zeros.br", include_bytes!("bombs/zeros.br"), false), Limits::default(), 20),
        ("tar, a hole of 8 EiB", hole(), Limits::default(), 2),
        ("7z", file(include_bytes!("bombs/zeros.7z")), Limits::default(), 100),
        ("RAR 5", file(include_bytes!("bombs/zeros.rar")), Limits::default(), 100),
    ] {
        let (reached, all, most) = inspect(&bytes, limits);
        println!("{what}: {} bytes, {reached:?} of {all:?}, {most} held", bytes.len());
        assert!(!reached.is_empty(), "{what}: {all:?}");
        assert!(most <= most_mib * MIB, "{what}: {most} bytes held");
    }
}

#[test]
fn what_only_looks_like_a_bomb_is_clean() {
    let _turn = TURN.lock();
    let many: Vec<(&str, &[u8])> = vec![("a", b""); 9_000];
    let some: Vec<(&str, &[u8])> = vec![("a", b"text"); 500];
    for (what, bytes) in [
        ("gzip in gzip, ten deep", nested(10, b"a text".to_vec(), gzip)),
        ("20 zips in each other", nested(20, b"a".to_vec(), |inner| zip("a.zip", inner, true))),
        ("60 MiB of zeros", gzip(&zeros(60 * MIB))),
        ("9,000 empty members", gzip(&tar(&many))),
        ("500 members in a zip", zip("a.tar", &tar(&some), true)),
        ("PDF, 10 filters", pdf(10)),
    ] {
        let (_, all, most) = inspect(&bytes, Limits::default());
        println!("{what}: {} bytes, {all:?}, {most} held", bytes.len());
        assert!(all.is_empty(), "{what}: {all:?}");
    }
}
