//! Archives and compressed streams behind something else, in files that have neither name nor type: the common archivers
//! search for them, and so do we.

use std::path::Path;

use crate::driver::Node;
use stream::{Kind, Object};

/// Seeds of what is opened behind something else.
const SEEDS: [&str; 17] = [
    "gzip/plain.gz",
    "bzip2/plain.bz2",
    "xz/crc64.xz",
    "zstd/plain.zst",
    "7z/lzma2.7z",
    "cab/stored.cab",
    "lha/level-1.lzh",
    "chm/help.chm",
    "xar/gzip.xar",
    "tar/ustar.tar",
    "cpio/newc.cpio",
    "rar/stored.rar",
    "rar/4-stored.rar",
    "arj/stored.arj",
    "iso/plain",
    "squashfs/zstd.sqfs",
    "wim/lzms.wim",
];

fn seed(path: &str) -> Vec<u8> {
    let (format, _) = path.split_once('/').expect("a folder and a name");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(format!("unpack_{path}"));
    let bytes = std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    crate::driver::stream_of(format, &bytes)
}

/// Whether all members of what is found in `bytes` are found behind `front` too.
fn is_found_behind(front: &[u8], bytes: &[u8]) -> bool {
    let open = |bytes: Vec<u8>| Node::open(Object::default(), bytes, 5);
    let (alone, behind) = (open(bytes.to_vec()), open([front, bytes].concat()));
    let contents = |node: &Node| {
        let members = node.all().into_iter().skip(1).filter(|node| node.object.kind != Kind::Rest);
        members.map(|node| node.content.clone()).collect::<Vec<_>>()
    };
    let found = contents(&behind);
    !alone.children.is_empty() && contents(&alone).iter().all(|content| found.contains(content))
}

#[test]
fn they_are_found_behind_text_and_behind_anything() {
    let text = |length: usize| b"a line of text\r\n".repeat(1 + length / 16)[..length].to_vec();
    let anything = |length: usize| (0..length).map(|at| ((at * 7919) >> 3) as u8 | 1).collect();
    // A signature that comes to nothing, close in front of the true one.
    let decoy = |mark: &[u8], length: usize| [text(3000), mark.to_vec(), vec![b'x'; length]].concat();
    let fronts: Vec<Vec<u8>> = [text(7), text(70_003), anything(7), anything(70_003)]
        .into_iter()
        .chain([10, 100, 500].into_iter().flat_map(|length| {
            [&b"\x1f\x8b\x08"[..], b"7z\xbc\xaf\x27\x1c", b"\x60\xea", b"07070"].map(|mark| decoy(mark, length))
        }))
        .collect();
    for path in SEEDS {
        let bytes = seed(path);
        for front in &fronts {
            assert!(is_found_behind(front, &bytes), "{path} behind {} bytes", front.len());
        }
    }
}

#[test]
fn they_are_searched_for_as_far_as_archivers_do() {
    const REACH: usize = 8 << 20;
    for path in ["gzip/plain.gz", "tar/ustar.tar"] {
        assert!(is_found_behind(&vec![b'x'; REACH - 512], &seed(path)), "{path}");
    }
}

#[test]
fn they_are_found_behind_what_begins_like_an_image() {
    let squashfs = [&b"hsqs"[..], &[0; 24], b"\x04\0", &[0; 66]].concat();
    let wim = [&b"MSWIM\0\0\0\xd0\0\0\0"[..], &[0; 196]].concat();
    let cramfs = [&b"\x45\x3d\xcd\x28"[..], &[0; 12], b"Compressed ROMFS"].concat();
    let marker = b"\x85\x19\x03\x20\x0c\0\0\0\xb1\xb0\x1e\xe4".to_vec();
    let disks = [&b"QFI\xfb\0\0\0\x03"[..], b"KDMV\x01\0\0\0"].map(|head| [head, &[0; 600]].concat());
    for front in [squashfs, wim, cramfs, marker].into_iter().chain(disks) {
        for path in ["7z/lzma2.7z", "rar/stored.rar", "cab/stored.cab", "zip/plain.zip"] {
            assert!(is_found_behind(&front, &seed(path)), "{path} behind {}", front[..8].escape_ascii());
        }
    }
}
