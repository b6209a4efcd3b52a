//! Seeds whose content lies several layers deep: what was put in comes out, without a finding.

use std::path::Path;

use crate::driver::Node;
use stream::Object;

const DEPTH: u32 = 6;

/// Content of most of them.
const TEXT: &[u8] = b"a short text, and once more a short text.\n";

/// Content of those that have to be long.
fn lines() -> Vec<u8> {
    (0..900).flat_map(|line| format!("line {line} of a longer text\n").into_bytes()).collect()
}

/// The seeds with the text in them, and the name that it has there.
const SHORT: &[(&str, &str)] = &[
    ("openpgp/stored.pgp", "a.txt"),
    ("openpgp/signed.pgp", "a.txt"),
    ("openpgp/signed-zip.pgp", "a.txt"),
    ("openpgp/signed-zlib.pgp", "a.txt"),
    ("openpgp/signed-bzip2.pgp", "a.txt"),
    ("openpgp/pgpy-zip.pgp", ""),
    ("openpgp/pgpy-zlib.pgp", ""),
    ("openpgp/pgpy-bz2.pgp", ""),
    ("runs/signed.asc", "a.txt"),
    ("dar/gzip.dar", "b.txt"),
    ("dar/gzip.dar", "a.txt"),
    ("dar/atz.dar", ""),
    ("shar/plain.shar", "a.txt"),
    ("shar/makeself-lz4.run", "./a.txt"),
    ("shar/makeself-lzo.run", "./a.txt"),
    ("shar/makeself-compress.run", "./a.txt"),
    ("pyinstaller/bundle.elf", ""),
    ("pyinstaller/bundle.exe", ""),
];

const LONG: &[(&str, &str)] = &[
    ("openpgp/partial.pgp", ""),
    ("openpgp/partial-zip.pgp", ""),
    ("dar/gzip.dar", "long.txt"),
    ("dar/atz.dar", ""),
    ("shar/plain.shar", "long.txt"),
    ("shar/binary.shar", ""),
    ("shar/makeself-lz4.run", "./long.txt"),
    ("pyinstaller/bundle.elf", ""),
];

fn open(seed: &str) -> Node {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let bytes = std::fs::read(corpus.join(format!("unpack_{seed}"))).unwrap_or_else(|error| panic!("{seed}: {error}"));
    Node::open(Object { name: Some(seed.into()), ..Object::default() }, bytes[1..].to_vec(), DEPTH)
}

#[test]
fn what_was_put_in_comes_out_of_all_layers() {
    let lines = lines();
    let short = SHORT.iter().map(|&(seed, name)| (seed, name, TEXT));
    let all = short.chain(LONG.iter().map(|&(seed, name)| (seed, name, &lines[..])));
    let mut wrong = 0;
    for (seed, name, content) in all {
        let root = open(seed);
        let is_it = |node: &Node| node.content == content && node.object.name.as_deref().unwrap_or_default() == name;
        if !root.all().into_iter().skip(1).any(is_it) || !root.finding_names().is_empty() {
            let shown = |node: &Node| format!("{:?} {:?} {}", node.object.name, node.file_type, node.content.len());
            let nodes: Vec<_> = root.all().into_iter().map(shown).collect();
            eprintln!("{seed}: {nodes:#?} {:?}", root.finding_names());
            wrong += 1;
        }
    }
    assert_eq!(wrong, 0, "seeds that differ");
}

#[test]
fn what_is_encrypted_is_said() {
    for seed in ["openpgp/encrypted.pgp", "openpgp/password.pgp"] {
        assert_eq!(open(seed).finding_names(), ["Heuristics.Encrypted.OpenPgp"], "{seed}");
    }
    assert_eq!(open("dar/lzo.dar").finding_names(), ["Heuristics.Limits.Exceeded.Unopened"]);
    for seed in ["dar/encrypted.dar", "dar/encrypted-at.dar"] {
        assert_eq!(open(seed).finding_names(), ["Heuristics.Encrypted.Dar"], "{seed}");
    }
    for seed in ["dar/split.1.dar", "dar/split.2.dar", "dar/split.3.dar", "dar/split-at.1.dar", "dar/split-gzip.3.dar"]
    {
        assert!(open(seed).finding_names().iter().any(|name| name == "Heuristics.Truncated.DarVolume"), "{seed}");
    }
    assert!(open("dar/one-slice.dar").finding_names().is_empty());
    assert_eq!(open("shar/cut.shar").finding_names(), ["Heuristics.Truncated.Shar"]);
    assert_eq!(open("openpgp/cut.pgp").finding_names(), ["Heuristics.Truncated.OpenPgp"]);
}

/// Made by hwplib: a document of Hangul with an embedded file.
#[test]
fn streams_of_hangul_are_inflated() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hangul/attached.hwp");
    let bytes = std::fs::read(file).expect("it is there");
    let root = Node::open(Object::default(), bytes.clone(), 1);
    let attached = |node: &&Node| node.object.name.as_deref() == Some("BinData/BIN0001.OLE");
    let lengths: Vec<_> = root.children.iter().filter(attached).map(|node| node.content.len()).collect();
    assert_eq!(lengths, [2_247, 36_160]);
    assert!(root.finding_names().is_empty(), "{:?}", root.finding_names());
    // With a password.
    let mut locked = bytes;
    let header = memchr::memmem::find(&locked, b"HWP Document File").expect("it has a header");
    locked[header + 36] |= 2;
    assert!(Node::open(Object::default(), locked, 1).finding_names().contains(&"Heuristics.Encrypted.Office".into()));
}

/// The modules of a bundle are emitted, and of an executable that is none nothing.
#[test]
fn modules_stand_behind_each_other() {
    let has = |seed: &str| {
        let root = open(seed);
        root.all().into_iter().skip(1).any(|node| node.content.windows(18).any(|text| text == b"a text in a module"))
    };
    assert!(has("pyinstaller/bundle.elf") && has("pyinstaller/modules.elf"));
    assert!(!has("pyinstaller/none.elf"));
}
