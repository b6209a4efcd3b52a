//! The public archives, compared with what bsdtar makes of them, and compressed streams with what the formats' own tools
//! make of them.
//!
//! `differences.tsv` names every archive about which we differ, with what we find and the reason; all others must agree
//! in sizes and digests of all members, and give no finding. `streams.tsv` lists the streams that hold no archive.

use std::collections::BTreeMap;
use std::path::Path;

use crate::driver::Node;
use sha2::{Digest, Sha256};
use stream::FileType::{Arj, Bzip2, Cab, Gzip, Lha, Lz4, Rar, SevenZip, Szdd, Tar, Xz, Zip};
use stream::Kind;

/// A member: size, the first half of its SHA-256. Names depend on bsdtar's locale.
type Member = (String, String);

#[derive(Default)]
struct Listing {
    members: Vec<Member>,
    refused: bool,
}

fn bsdtar(folder: &Path) -> BTreeMap<String, Listing> {
    let text = std::fs::read(folder.join("EXPECTED-bsdtar.tsv")).expect("the listing is there");
    let mut all = BTreeMap::<String, Listing>::new();
    for line in String::from_utf8_lossy(&text).lines().skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [archive, status, size, digest, _] = fields[..] else {
            continue;
        };
        let listing = all.entry(archive.to_string()).or_default();
        listing.refused |= status != "ok";
        if !size.is_empty() {
            listing.members.push((size.to_string(), digest.to_string()));
        }
    }
    all
}

/// A table of ours, by its first column.
fn table(text: &str) -> BTreeMap<&str, Vec<&str>> {
    let rows = text.lines().skip(1).map(|line| line.split('\t').collect::<Vec<_>>());
    rows.map(|row| (row[0], row[1..].to_vec())).collect()
}

/// The archive within the compressed streams around it.
fn archive_of(node: &Node) -> &Node {
    match node.children.as_slice() {
        [only, ..] if only.object.kind == Kind::Stream => archive_of(only),
        _ => node,
    }
}

fn digest(node: &Node) -> Member {
    let digest = crate::driver::hex(&Sha256::digest(&node.content));
    (node.content.len().to_string(), digest[..32].to_string())
}

/// The names of the findings, without what all have in common, each once.
fn findings<'a>(nodes: impl IntoIterator<Item = &'a Node>) -> String {
    let all = nodes.into_iter().flat_map(|node| &node.findings);
    let mut names: Vec<&str> = all.map(|finding| finding.name.trim_start_matches("Heuristics.")).collect();
    names.dedup();
    names.join(" ")
}

/// Counts the members that only one side has.
fn compare(expected: Vec<Member>, mut ours: Vec<Member>) -> (usize, usize) {
    let missing = expected.into_iter().filter(|member| {
        let same = ours.iter().position(|our| our == member);
        same.map(|at| ours.remove(at)).is_none()
    });
    (missing.count(), ours.len())
}

fn open(folder: &Path, path: &str) -> Option<Node> {
    let bytes = std::fs::read(folder.join(path)).ok()?;
    Some(Node::open(Default::default(), bytes, 4))
}

#[test]
fn members_are_those_that_bsdtar_sees_or_the_table_says_why_not() {
    let Some(folder) = crate::driver::data("archives") else {
        return;
    };
    let differences = table(include_str!("differences.tsv"));
    let (mut agreed, mut differing, mut wrong) = (0, 0, 0);
    for (path, listing) in bsdtar(&folder) {
        let Some(root) = open(&folder, &path) else {
            continue;
        };
        let archive = archive_of(&root);
        if !matches!(archive.file_type, Zip | Tar | Rar | Lha | SevenZip | Cab | Arj) {
            continue;
        }
        let ours = archive.children.iter().filter(|child| matches!(child.object.kind, Kind::Member | Kind::Rest));
        let (missing, more) = compare(listing.members, ours.map(digest).collect());
        let seen = [missing.to_string(), more.to_string(), findings([archive])];
        let expected = differences.get(path.as_str()).map_or(&["0", "0", ""][..], |row| &row[..3]);
        if seen != expected {
            println!("{path}: {seen:?}, expected {expected:?}, refused by bsdtar: {}", listing.refused);
            wrong += 1;
        }
        match differences.contains_key(path.as_str()) {
            true => differing += 1,
            false => agreed += 1,
        }
    }
    println!("{agreed} archives agree, {differing} differ for a known reason");
    assert_eq!(wrong, 0, "archives that differ for no known reason");
    assert_eq!(differing, differences.len(), "the table names archives that are not there");
}

#[test]
fn streams_hold_what_the_tools_of_their_formats_see() {
    let Some(folder) = crate::driver::data("archives") else {
        return;
    };
    for (path, row) in table(include_str!("streams.tsv")) {
        let root = open(&folder, path).expect("the table names files that are there");
        assert!(matches!(root.file_type, Gzip | Bzip2 | Xz | Lz4 | Szdd), "{path}");
        let (size, digest) = digest(archive_of(&root));
        assert_eq!([&size, &digest, &findings(root.all())], [row[0], row[1], row[2]], "{path}");
    }
}
