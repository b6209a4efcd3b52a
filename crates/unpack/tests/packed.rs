//! Files within packed executables and installers, at any depth: what was put in comes out.
//!
//! `packed.tsv` lists for each seed of the fuzz targets what has a name in it, or is a whole file of its own, as it was put
//! in, and all that is found wrong. The seeds were made by makensis 3.08 (the installer without its executable) and UPX 4.2.2,
//! or by hand after the files that these make.

use std::collections::BTreeMap;
use std::path::Path;

use crate::driver::Node;
use sha2::{Digest, Sha256};
use stream::Object;

const DEPTH: u32 = 4;

#[test]
fn what_was_packed_comes_out() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let mut expected = BTreeMap::<_, (Vec<String>, Vec<String>)>::new();
    for line in include_str!("packed.tsv").lines().skip(1) {
        let (seed, rest) = line.split_once('\t').expect("four fields");
        let (members, findings) = expected.entry(seed).or_default();
        match rest.strip_prefix("!\t\t") {
            Some(finding) => findings.push(finding.to_string()),
            None if rest == "\t\t" => {}
            None => members.push(rest.to_string()),
        }
    }
    let mut wrong = 0;
    for (seed, expected) in expected {
        let bytes = std::fs::read(corpus.join(format!("unpack_{seed}"))).expect("the seed is there");
        let root = Node::open(Object::default(), bytes[1..].to_vec(), DEPTH);
        let members = |node: &Node| {
            let name = node.object.name.as_deref().unwrap_or_default();
            let digest = crate::driver::hex(&Sha256::digest(&node.content));
            format!("{}\t{}\t{name}", node.content.len(), &digest[..32])
        };
        let all = root.all();
        let found: Vec<String> =
            all[1..].iter().filter(|node| node.object.media_type.is_none()).map(|node| members(node)).collect();
        let told = (found, root.finding_names());
        if told != expected {
            eprintln!("{seed}\n  {told:?}\n  {expected:?}");
            wrong += 1;
        }
    }
    assert_eq!(wrong, 0, "seeds that differ");
}
