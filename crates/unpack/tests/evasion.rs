//! The evasion pack: whatever the disguise, the payload is reached or a finding says why not.

use crate::driver::Node;
use sha2::{Digest, Sha256};

/// Expected result of each file: the payload, or a finding of this name.
enum Wanted {
    Payload,
    PayloadAnd(&'static str),
    Finding(&'static str),
}
use Wanted::*;

const FILES: &[(&str, Wanted)] = &[
    ("gz/all-header-fields.gz", Payload),
    ("gz/bad-crc.gz", PayloadAnd("Heuristics.Malformed.Gzip.Crc")),
    ("gz/nested-10.gz", Payload),
    ("gz/no-trailer.gz", PayloadAnd("Heuristics.Truncated.Gzip")),
    ("tar/after-eof.tar", PayloadAnd("Heuristics.Ambiguous.Tar.AfterEnd")),
    ("tar/pax-long.tar", Payload),
    ("tar/ustar.tar", Payload),
    ("xz/x86-bcj.xz", Payload),
    ("zip/bomb-full-overlap.zip", Finding("Heuristics.Limits.Exceeded.ZipOverlap")),
    ("zip/cd-hides-entry.zip", PayloadAnd("Heuristics.Ambiguous.Zip.LocalOnly")),
    ("zip/dd-stored.zip", Payload),
    ("zip/dd-unsigned.zip", Payload),
    ("zip/deflate.zip", Payload),
    ("zip/nested-02.zip", Payload),
    ("zip/nested-17.zip", Payload),
    ("zip/nested-18.zip", Payload),
    ("zip/nested-20.zip", Payload),
    ("zip/pdf-polyglot.zip", Payload),
    ("zip/prefix-junk.zip", Payload),
    ("zip/two-archives-rev.zip", PayloadAnd("Heuristics.Ambiguous.Zip.TwoArchives")),
];

#[test]
fn the_payload_is_reached_in_every_disguise() {
    let Some(folder) = crate::driver::data("av-evasion/evasion") else {
        return;
    };
    let signature = std::fs::read_to_string(folder.join("clamav.hdb")).expect("the pack has a signature");
    let payload = signature.split(':').next().expect("hash first").to_string();
    for (file, wanted) in FILES {
        let bytes = std::fs::read(folder.join(file)).expect("the pack is whole");
        let root = Node::open(Default::default(), bytes, 24);
        let reached = root.all().iter().any(|node| crate::driver::hex(&Sha256::digest(&node.content)) == payload);
        let findings = root.finding_names();
        eprintln!("{file}: reached {reached}, {findings:?}");
        match wanted {
            Payload => assert!(reached && findings.is_empty(), "{file}: {reached} {findings:?}"),
            PayloadAnd(name) => assert!(reached && findings == [*name], "{file}: {reached} {findings:?}"),
            Finding(name) => assert!(findings.iter().any(|found| found == name), "{file}: {findings:?}"),
        }
    }
}
