//! The seeds of the fuzz targets, made by us: what is in each, and what is found wrong with it.
//!
//! `seeds.tsv` lists their members as they were put in. The first byte of a seed is the fuzz body's.

use std::collections::BTreeMap;
use std::path::Path;

use crate::driver::Node;
use sha2::{Digest, Sha256};
use stream::Object;

#[derive(Default)]
struct Expected {
    members: Vec<(String, String, String)>,
    findings: Vec<String>,
}

fn expected() -> BTreeMap<&'static str, Expected> {
    let mut all = BTreeMap::<_, Expected>::new();
    for line in include_str!("seeds.tsv").lines().skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [seed, size, digest, member] = fields[..] else {
            panic!("four fields in {line:?}");
        };
        let seed = all.entry(seed).or_default();
        match size {
            "!" => seed.findings.push(member.to_string()),
            "" => {}
            _ => seed.members.push((member.to_string(), size.to_string(), digest.to_string())),
        }
    }
    all
}

fn stream(corpus: &Path, seed: &str) -> Vec<u8> {
    let bytes = std::fs::read(corpus.join(format!("unpack_{seed}"))).expect("the seed is there");
    crate::driver::stream_of(seed.split('/').next().unwrap_or_default(), &bytes)
}

#[test]
fn each_seed_holds_what_was_put_in() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let mut wrong = 0;
    for (seed, expected) in expected() {
        let root = Node::open(Object { name: Some(seed.into()), ..Object::default() }, stream(&corpus, seed), 1);
        let members: Vec<_> = root
            .children
            .iter()
            .map(|child| {
                let digest = crate::driver::hex(&Sha256::digest(&child.content));
                let name = child.object.name.as_deref().unwrap_or("").to_string();
                (name, child.content.len().to_string(), digest[..32].to_string())
            })
            .collect();
        let findings: Vec<_> = root.findings.iter().map(|finding| finding.name.to_string()).collect();
        if members != expected.members || findings != expected.findings {
            eprintln!("{seed}\n  {members:?} {findings:?}\n  {:?} {:?}", expected.members, expected.findings);
            wrong += 1;
        }
    }
    assert_eq!(wrong, 0, "seeds that differ");
}

#[test]
fn a_raw_offset_is_where_the_content_stands() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let mut checked = 0;
    for (seed, _) in expected() {
        let bytes = stream(&corpus, seed);
        for child in Node::open(Default::default(), bytes.clone(), 1).children {
            let Some(offset) = child.object.raw_offset else {
                continue;
            };
            let from = &bytes[offset as usize..];
            assert!(from.starts_with(&child.content), "{seed}");
            checked += 1;
        }
    }
    assert!(checked > 30, "only {checked} have one");
}

#[test]
fn a_member_of_a_zip_has_its_local_name_beside_the_unicode_one() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let root = Node::open(Object::default(), stream(&corpus, "zip/two-names.zip"), 1);
    let names: Vec<_> = root.children.iter().flat_map(|child| child.object.names()).collect();
    assert_eq!(names, ["ok.pdf", "evil.exe"]);
}

/// A reader without pax shows the name in the header. The beginning of a long name there is no other name.
#[test]
fn a_member_of_a_tar_has_the_name_in_its_header_beside_the_one_of_pax() {
    let block = |kind: u8, name: &[u8], content: &[u8]| {
        let mut block = vec![0; 512];
        block[..name.len()].copy_from_slice(name);
        block[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
        block[156] = kind;
        block[148..156].fill(b' ');
        block[257..265].copy_from_slice(b"ustar\x0000");
        let sum: u32 = block.iter().map(|&byte| u32::from(byte)).sum();
        block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        block.extend_from_slice(content);
        block.resize(block.len().next_multiple_of(512), 0);
        block
    };
    let long = "d/".repeat(60) + "a.txt";
    for (shown, header, other) in
        [("ok.pdf", "evil.exe", &["evil.exe"][..]), (&long, &long[..100], &[]), ("a", "a", &[])]
    {
        let record = format!(" path={shown}\n");
        let length =
            (1..).find(|length: &usize| length.to_string().len() + record.len() == *length).expect("there is one");
        let pax = format!("{length}{record}");
        let tar =
            [block(b'x', b"x", pax.as_bytes()), block(b'0', header.as_bytes(), b"content"), vec![0; 1024]].concat();
        let root = Node::open(Object::default(), tar, 1);
        let member = &root.children[0].object;
        assert_eq!(
            (member.name.as_deref(), member.other_names.iter().map(|name| &**name).collect::<Vec<_>>()),
            (Some(shown), other.to_vec())
        );
    }
}

#[test]
fn a_compressed_stream_behind_an_executable_is_read() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for seed in ["gzip/plain.gz", "xz/crc64.xz"] {
        let elf = [b"\x7fELF\x02\x01\x01", &[0; 57][..], &[0x90; 2000], &stream(&corpus, seed)].concat();
        let root = Node::open(Object::default(), elf, 1);
        assert!(root.children.iter().any(|child| child.content.len() == 405), "{seed}");
    }
}
