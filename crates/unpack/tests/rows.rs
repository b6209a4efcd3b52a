//! Archives that stand behind each other: each is read once, and none lies deeper than another.

use std::path::Path;

use crate::driver::{Node, reader};
use sha2::{Digest, Sha256};
use stream::{FileType, Fuel, Kind, Object, ReadAt, Stage, Step, Window, law};
use unpack::Claim;

/// Seeds of archives that stand in other files.
const SEEDS: [&str; 12] = [
    "7z/lzma2.7z",
    "gzip/plain.gz",
    "cab/stored.cab",
    "bzip2/plain.bz2",
    "lha/level-1.lzh",
    "xz/crc64.xz",
    "tar/ustar.tar",
    "zstd/plain.zst",
    "cpio/newc.cpio",
    "rar/stored.rar",
    "arj/stored.arj",
    "rar/4-stored.rar",
];

fn seed(path: &str) -> Vec<u8> {
    let (format, _) = path.split_once('/').expect("a folder and a name");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(format!("unpack_{path}"));
    let bytes = std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    crate::driver::stream_of(format, &bytes)
}

/// So many archives, with `between` between them.
fn row(count: usize, between: &[u8]) -> Vec<u8> {
    let archives = SEEDS.iter().cycle().take(count).map(|path| seed(path));
    archives.flat_map(|archive| [between, &archive[..]].concat()).collect()
}

/// The contents of all members, rests left out, by their digests.
fn members(node: &Node) -> Vec<[u8; 32]> {
    let members =
        node.all().into_iter().skip(1).filter(|node| node.object.kind != Kind::Rest && !node.content.is_empty());
    members.map(|node| Sha256::digest(&node.content).into()).collect()
}

#[test]
fn each_of_them_is_read_once() {
    const ROUNDS: usize = 5;
    const DEPTH: u32 = 4;
    let alone: Vec<_> =
        SEEDS.iter().flat_map(|path| members(&Node::open(Object::default(), seed(path), DEPTH))).collect();
    for between in [&b"PACK"[..], b"\xff\xfe\xfd a few bytes between them", &[1; 5000], b""] {
        let bytes = row(ROUNDS * SEEDS.len(), between);
        let size = bytes.len();
        let root = Node::open(Object::default(), bytes, DEPTH);
        let found = members(&root);
        for digest in &alone {
            let count = |all: &[_]| all.iter().filter(|one| *one == digest).count();
            assert!(count(&found) >= ROUNDS * count(&alone), "{} between", between.len());
        }
        assert!(root.all().iter().all(|node| !node.too_deep), "{} between", between.len());
        let told: usize = root.all().iter().skip(1).map(|node| node.content.len()).sum();
        assert!(told < 3 * size, "{told} bytes told of {size}");
    }
}

/// The reader of a row, as the law wants it.
struct Row(Box<dyn Stage>);

impl Stage for Row {
    fn step(&mut self, input: &[u8], output: &mut Window, fuel: &mut Fuel) -> Step {
        self.0.step(input, output, fuel)
    }

    fn finish(&mut self, kept: &dyn ReadAt, output: &mut Window, fuel: &mut Fuel) -> stream::Event {
        self.0.finish(kept, output, fuel)
    }
}

#[test]
fn the_law_holds_for_them() {
    let bytes = row(2 * SEEDS.len(), b"PACK");
    for (name, file_type) in [
        ("stowaway", FileType::Binary),
        ("archive", FileType::Binary),
        ("stowaway", FileType::Image),
        ("archive", FileType::Image),
    ] {
        law::holds(|| Row(reader(name, &Claim::of(file_type)).expect("there is a reader")), &bytes);
    }
    let rest = Claim { is_rest: true, ..Claim::of(FileType::SevenZip) };
    law::holds(|| Row(reader("7z", &rest).expect("there is a reader")), &bytes[4..]);
}

#[test]
fn what_gives_itself_out_for_many_comes_to_an_end() {
    let bytes = seed("arj/stored.arj").repeat(1100);
    let root = Node::open(Object::default(), [b"\0\x01", &bytes[..]].concat(), 2);
    assert!(root.finding_names().iter().any(|name| name == "Heuristics.Limits.Exceeded.Stowaways"));
    let gzip = b"\x1f\x8b\x08\0\0\0\0\0\0\x03\xff".repeat(3000);
    let root = Node::open(Object::default(), [b"\0\x01", &gzip[..]].concat(), 2);
    assert!(root.children.len() < 200, "{}", root.children.len());
}
