//! Volumes of ext2 to ext4 that are changed by hand: what cannot be read has a finding, and what goes in circles ends.

use std::path::Path;

use crate::driver::Node;

const SUPERBLOCK: usize = 1024;
const SYSTEM: &str = "Heuristics.Limits.Exceeded.DiskSystem";

fn seed(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/unpack_disk");
    let short = std::fs::read(folder.join(name)).expect("the seed is there");
    unpack::fuzz::blocks(&short)[1..].to_vec()
}

fn open(image: Vec<u8>) -> (Vec<String>, Vec<String>) {
    let root = Node::open(Default::default(), image, 1);
    let names = root.children.iter().filter_map(|child| child.object.name.as_deref().map(str::to_owned));
    (names.collect(), root.finding_names())
}

const NAMES: [&str; 4] = ["a.txt", "hole.bin", "rather more than sixty bytes.txt", "sub/long.txt"];

#[test]
fn files_are_found_in_a_raw_volume_and_in_a_partition() {
    for name in ["ext2.img", "ext4.img", "ext4-inline.img"] {
        let volume = seed(name);
        assert_eq!(open(volume.clone()), (NAMES.map(str::to_owned).to_vec(), Vec::new()), "{name}");
        let mut disk = vec![0; 2048 * 512];
        disk[450] = 0x83;
        disk[454..458].copy_from_slice(&2048_u32.to_le_bytes());
        disk[458..462].copy_from_slice(&200_u32.to_le_bytes());
        disk[510..512].copy_from_slice(b"\x55\xaa");
        assert_eq!(open([disk, volume].concat()).0, NAMES, "{name}");
    }
}

#[test]
fn a_volume_that_is_read_in_part_or_not_at_all_has_a_finding() {
    for (feature, is_read) in [(0x4, true), (0x8, false), (0x10, false), (0x1, false)] {
        let mut volume = seed("ext4.img");
        volume[SUPERBLOCK + 96] |= feature;
        let (names, findings) = open(volume);
        assert_eq!((names.len(), findings), (if is_read { 4 } else { 0 }, vec![SYSTEM.to_owned()]), "{feature}");
    }
}

#[test]
fn folders_and_trees_in_circles_end() {
    // The folder `sub` is the root, by the number in its entry.
    let mut volume = seed("ext2.img");
    let entry = volume.windows(11).position(|bytes| &bytes[6..] == b"\x03\x02sub").expect("its entry");
    volume[entry..entry + 4].copy_from_slice(&2_u32.to_le_bytes());
    assert_eq!(open(volume).0, &NAMES[..3]);
    // Each list of blocks is itself.
    let mut volume = seed("ext2.img");
    for at in (0..volume.len() - 1024).step_by(1024).skip(20) {
        let number = (at / 1024) as u32;
        volume[at..at + 1024].copy_from_slice(&number.to_le_bytes().repeat(256));
    }
    assert!(!open(volume).0.is_empty());
}
