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

#[test]
fn a_compressed_stream_behind_an_executable_is_read() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for seed in ["gzip/plain.gz", "xz/crc64.xz"] {
        let elf = [b"\x7fELF\x02\x01\x01", &[0; 57][..], &[0x90; 2000], &stream(&corpus, seed)].concat();
        let root = Node::open(Object::default(), elf, 1);
        assert!(root.children.iter().any(|child| child.content.len() == 405), "{seed}");
    }
}
