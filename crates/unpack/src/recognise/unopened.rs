//! Known formats without a reader: a finding reports that their content was not inspected.
//!
//! Images of Windows made to be piped, old squashfs, EROFS, UBI, UBIFS, romfs, btrfs, XFS, JFS, ReiserFS, F2FS,
//! bcachefs and APFS; volumes of LVM; disks of QEMU's
//! first version and QED, of Parallels, and of VMware in several files; archives of Electron, ACE, ZOO, StuffIt, DAA; stores of Outlook
//! and Outlook Express; backups of Android; lrzip, zpaq, bzip3, S2; packs and bundles of git. A file is recognised by its beginning, which does not depend on its content. A
//! format that gets a reader loses its line here.
//!
//! Bounds: [`HEAD_BYTES`]. Left out: such files after or within others.

use stream::Class;

use super::by_head::{ByHead, Mark, has_magic};
use crate::frame::codec::{le16, le32};

/// Bytes that are looked at.
const HEAD_BYTES: usize = 1152;

/// Magic that is certain.
const CERTAIN: &[(usize, &[u8])] = &[
    (0, b"WLPWM\0\0\0"),
    (0, b"QFI\xfb\0\0\0"),
    (0, b"# Disk DescriptorFile"),
    (0, b"LRZI\0"),
    (0, b"7kSt\xa0\x31\x83\xd3\x8c\xb2\x28\xb0\xd3"),
    (0, b"zPQ\x01"),
    (0, b"zPQ\x02"),
    (0, b"BZ3v1"),
    (0, b"PACK\0\0\0\x02"),
    (0, b"PACK\0\0\0\x03"),
    (0, b"# v2 git bundle\n"),
    (0, b"# v3 git bundle\n"),
    (0, b"UBI#\x01"),
    (0, b"UBI!"),
    (0, b"\x31\x18\x10\x06"),
    (0, b"-rom1fs-"),
    (7, b"**ACE**"),
    (20, b"\xdc\xa7\xc4\xfd"),
    (0, b"StuffIt (c)1997-"),
    (0, b"StuffIt!"),
    (0, b"DAA\0\0\0\0\0\0\0\0\0\0\0\0\0"),
    (0, b"\xcf\xad\x12\xfe"),
    (0, b"\xff\x06\x00\x00S2sTwO"),
    (0, b"ANDROID BACKUP\n"),
    (0, b"QED\0"),
    (0, b"WithoutFreeSpace"),
    (0, b"WithouFreSpacExt"),
    (1024, b"\xe2\xe1\xf5\xe0"),
    (1024, b"\x10\x20\xf5\xf2"),
    (0, b"XFSB\0\0"),
    (32, b"NXSB"),
    (512, b"LABELONE"),
];

/// Superblocks that stand further behind.
const LATE: &[(u64, &[u8])] = &[
    (4_120, b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef"),
    (32_768, b"JFS1"),
    (65_536, b"ReIsEr4"),
    (65_588, b"ReIsErFs"),
    (65_588, b"ReIsEr2Fs"),
    (65_588, b"ReIsEr3Fs"),
    (65_600, b"_BHRfS_M"),
];

/// The reader of such files.
pub(crate) fn reader() -> ByHead {
    let (class, name) = (Class::Unopened, "Heuristics.Limits.Exceeded.Unopened");
    ByHead::new(Mark { head_bytes: HEAD_BYTES, is_in: is_unopened, late: LATE, class, name })
}

/// Whether such a file system stands in these bytes of a disk: `read` gives so many of them from a place on.
pub(crate) fn is_volume(read: impl Fn(u64, usize) -> Vec<u8>) -> bool {
    is_unopened(&read(0, HEAD_BYTES)) || LATE.iter().any(|(place, mark)| read(*place, mark.len()) == *mark)
}

fn is_unopened(head: &[u8]) -> bool {
    has_magic(head, CERTAIN) || is_squashfs(head) || is_asar(head) || has_two(head)
}

/// Stores of Outlook, old archives of StuffIt: marks of two parts.
fn has_two(head: &[u8]) -> bool {
    let has = |at: usize, mark: &[u8]| head.get(at..).is_some_and(|rest| rest.starts_with(mark));
    has(0, b"!BDN") && has(8, b"SM") || has(0, b"SIT!") && has(10, b"rLau")
}

/// The index of an archive of Electron: JSON, within lengths that tell of each other.
fn is_asar(head: &[u8]) -> bool {
    let json = head.get(16..).unwrap_or_default();
    le32(head, 0) == 4 && le32(head, 4) == le32(head, 8).wrapping_add(4) && json.starts_with(b"{\"files\":")
}

/// Magic of either byte order, and versions that were in use.
fn is_squashfs(head: &[u8]) -> bool {
    let major = |swapped: bool| if swapped { le16(head, 28).swap_bytes() } else { le16(head, 28) };
    let is_magic = [(&b"hsqs"[..], false), (b"sqsh", true), (b"shsq", false), (b"qshs", true)];
    is_magic.iter().any(|(magic, swapped)| head.starts_with(magic) && (1..=3).contains(&major(*swapped)))
}

#[cfg(test)]
mod tests {
    use super::super::by_head::tests;
    use super::*;

    fn is_told(head: &[u8]) -> bool {
        tests::is_told(reader, head)
    }

    fn at(at: usize, magic: &[u8]) -> Vec<u8> {
        [&vec![0; at][..], magic, &[0; 40]].concat()
    }

    #[test]
    fn formats_without_a_reader_are_told() {
        for (offset, magic) in CERTAIN {
            assert!(is_told(&at(*offset, magic)), "{}", magic.escape_ascii());
        }
        for (offset, magic) in LATE {
            assert!(is_told(&at(*offset as usize, magic)), "{}", magic.escape_ascii());
            assert!(!is_told(&at(*offset as usize + 1, magic)), "{}", magic.escape_ascii());
        }
        assert!(is_told(b"!BDN\x11\x22\x33\x44SM\x17\0") && !is_told(b"!BDN\x11\x22\x33\x44SN\x17\0"));
        assert!(is_told(b"SIT!\0\x01\0\0\x01\0rLau") && !is_told(b"SIT!\0\x01\0\0\x01\0rlau"));
        assert!(is_told(
            b"\x04\0\0\0\x2c\0\0\0\x28\0\0\0\x22\0\0\0{\"files\":{\"a.txt\":{\"size\":5,\"offset\":\"0\"}}}hello"
        ));
        let squashfs = [&b"hsqs"[..], &[0; 24], b"\x03\0\0\0"].concat();
        assert!(is_told(&squashfs));
    }

    #[test]
    fn other_files_are_not() {
        assert!(!is_told(&at(1024 + 56, b"\x53\xef")));
        for head in [&b""[..], b"hsqs", b"\x1a\x08\0", b"\x1a\x02no end of a name at all, and on"] {
            assert!(!is_told(head), "{}", head.escape_ascii());
        }
    }
}
