//! The public archives, compared with what bsdtar makes of them: names, sizes and digests of members.

mod driver;

use std::collections::BTreeMap;
use std::path::Path;

use driver::Node;
use sha2::{Digest, Sha256};
use stream::FileType::{self, Bzip2, Gzip, Tar, Xz, Zip};
use stream::Kind;

/// A member: size, the first half of its SHA-256, name.
type Member = (String, String, String);

struct Expected {
    status: String,
    members: Vec<Member>,
}

fn expected(folder: &Path) -> BTreeMap<String, Expected> {
    let text = std::fs::read(folder.join("EXPECTED-bsdtar.tsv")).expect("the listing is there");
    let mut all = BTreeMap::<String, Expected>::new();
    for line in String::from_utf8_lossy(&text).lines().skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [archive, status, size, digest, name] = fields[..] else {
            continue;
        };
        let entry = all
            .entry(archive.to_string())
            .or_insert_with(|| Expected { status: status.to_string(), members: Vec::new() });
        if !size.is_empty() {
            entry.members.push((size.to_string(), digest.to_string(), name.to_string()));
        }
    }
    all
}

/// The archive within the compressed streams around it.
fn archive_of(node: &Node) -> &Node {
    match node.children.as_slice() {
        [only, ..] if only.object.kind == Kind::Stream => archive_of(only),
        _ => node,
    }
}

fn members(node: &Node) -> Vec<Member> {
    let named = node.children.iter().filter(|child| child.object.kind == Kind::Member);
    let members = named.map(|child| {
        let digest = driver::hex(&Sha256::digest(&child.content));
        let name = child.object.name.as_deref().unwrap_or("").to_string();
        (child.content.len().to_string(), digest[..32].to_string(), name)
    });
    members.collect()
}

#[test]
fn members_are_those_that_bsdtar_sees() {
    let Some(folder) = driver::data("archives") else {
        return;
    };
    let (mut archives, mut agreed) = (0, 0);
    for (path, expected) in expected(&folder) {
        let Ok(bytes) = std::fs::read(folder.join(&path)) else {
            continue;
        };
        let root = Node::open(Default::default(), bytes, 4);
        if !matches!(root.file_type, Gzip | Bzip2 | Xz | Zip | Tar) {
            continue;
        }
        archives += 1;
        let archive = archive_of(&root);
        let mut ours = members(archive);
        let mut missing = Vec::new();
        for member in &expected.members {
            let same = ours.iter().position(|our| our.0 == member.0 && our.1 == member.1);
            match same {
                Some(at) => drop(ours.remove(at)),
                None => missing.push(member),
            }
        }
        let findings: Vec<_> = archive.findings.iter().map(|f| f.name.to_string()).collect();
        if missing.is_empty() && ours.is_empty() && findings.is_empty() && expected.status == "ok" {
            agreed += 1;
            continue;
        }
        println!(
            "{path} [{}] {} missing {} more {} findings {findings:?}",
            expected.status,
            root.file_type.name(),
            missing.len(),
            ours.len()
        );
        for m in missing.iter().take(3) {
            println!("   - {m:?}");
        }
        for m in ours.iter().take(3) {
            println!("   + {m:?}");
        }
    }
    println!("{archives} archives, {agreed} agreed");
    let _ = FileType::Zip;
}
