//! Magic numbers, and the looks at nearby fields that keep short ones from matching by chance.

use stream::FileType::{self, *};

use crate::stream::{lzma_alone, swf};

/// Bytes at an offset that make a type certain.
const CERTAIN: &[(usize, &[u8], FileType)] = &[
    (0, b"\x7fELF", Elf),
    (0, b"%PDF-", Pdf),
    (0, b"{\\rt", Rtf),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", Ole2),
    (0, b"\x78\x9f\x3e\x22", Tnef),
    (0, b"\xe4\x52\x5c\x7b\x8c\xd8\xa7\x4d\xae\xb1\x53\x78\xd0\x29\x96\xd3", OneNote),
    (0, b"\x89PNG\r\n\x1a\n", Image),
    (0, b"\xff\xd8\xff", Image),
    (0, b"GIF87a", Image),
    (0, b"GIF89a", Image),
    (0, b"II*\0", Image),
    (0, b"MM\0*", Image),
    (0, b"PK\x03\x04", Zip),
    (0, b"PK\x05\x06", Zip),
    (0, b"PK\x06\x06", Zip),
    (0, b"PK\x07\x08PK\x03\x04", Zip),
    (0, b"PK00PK\x03\x04", Zip),
    (0, b"\x1f\x8b\x08", Gzip),
    (0, b"\xfd7zXZ\0", Xz),
    (0, b"7z\xbc\xaf\x27\x1c", SevenZip),
    (0, b"Rar!\x1a\x07", Rar),
    (0, b"RE~^", Rar),
    (0, b"MSCF\0\0\0\0", Cab),
    (0, b"\x28\xb5\x2f\xfd", Zstd),
    (0, b"\x04\x22\x4d\x18", Lz4),
    (0, b"\x02\x21\x4c\x18", Lz4),
    (0, b"SZDD\x88\xf0\x27\x33A", Szdd),
    (0, b"SZ \x88\xf0\x27\x33\xd1", Szdd),
    (0, b"KWAJ\x88\xf0\x27\xd1", Szdd),
    (0, b"070701", Cpio),
    (0, b"070702", Cpio),
    (0, b"070707", Cpio),
    (0, b"!<arch>\n", Ar),
    (0, b"\xed\xab\xee\xdb", Rpm),
    (0, crate::stream::snappy::MAGIC, Snappy),
    (0, crate::stream::lzop::MAGIC, Lzop),
    (0, crate::stream::activemime::MAGIC, ActiveMime),
    (0, crate::stream::zisofs::MAGIC[0], Zisofs),
    (0, crate::stream::zisofs::MAGIC[1], Zisofs),
    (0, b"xar!", Xar),
    (0, b"ALZ\x01", Alz),
    (4, crate::program::nsis::MAGIC, Nsis),
    (0, b"\0\x05\x16\0\0", AppleDouble),
    (0, b"\0\x05\x16\x07\0", AppleDouble),
    (0, crate::document::lnk::MAGIC, Lnk),
    (0, b"ITSF\x03\0\0\0", Chm),
    (0, b"\x01CD001\x01", Iso),
    (0, crate::disk::wim::MAGIC, Wim),
    (1024, b"H+\0\x04", Hfs),
    (1024, b"HX\0\x05", Hfs),
    (32769, b"CD001", Iso),
    (32769, b"BEA01", Iso),
];

/// A look at a head that confirms a weak magic.
type Confirms = fn(&[u8]) -> bool;

/// Types whose magic is weak, each with the look that confirms it.
const PLAUSIBLE: &[(Confirms, FileType)] = &[
    (is_pe, Pe),
    (is_java_class, JavaClass),
    (is_mach_o, MachO),
    (is_packed_flash, FlashPacked),
    (is_flash, Flash),
    (crate::document::cms::is_message, Cms),
    (is_bmp, Image),
    (is_webp, Image),
    (is_bzip2, Bzip2),
    (is_arj, Arj),
    (is_lha, Lha),
    (crate::archive::arc::is_header, Arc),
    (is_skippable_lz4, Lz4),
    (is_skippable, Zstd),
    (is_lzip, Lzip),
    (is_compress, Compress),
    (is_old_cpio, Cpio),
    (crate::archive::macbinary::is_header, MacBinary),
    (crate::program::sis::is_header, Sis),
    (crate::disk::squashfs::is_header, Squashfs),
    (crate::disk::cramfs::is_header, Cramfs),
    (crate::disk::jffs2::is_header, Jffs2),
    (crate::disk::image::is_virtual, VirtualDisk),
    (crate::disk::image::is_image, Disk),
    (is_installshield_cab, InstallShieldCab),
    (crate::program::installshield::is_plausible, InstallShield),
    (lzma_alone::is_plausible, Lzma),
];

/// The type that a magic number tells.
pub(super) fn find(head: &[u8]) -> Option<FileType> {
    let certain = CERTAIN.iter().find(|(at, magic, _)| head.get(*at..).is_some_and(|from| from.starts_with(magic)));
    if let Some(&(_, _, found)) = certain {
        return Some(found);
    }
    let plausible = PLAUSIBLE.iter().find(|(confirms, _)| confirms(head));
    plausible.map(|&(_, found)| found)
}

fn be32(head: &[u8], at: usize) -> Option<u32> {
    let field = head.get(at..)?.first_chunk()?;
    Some(u32::from_be_bytes(*field))
}

fn le16(head: &[u8], at: usize) -> Option<u16> {
    let field = head.get(at..)?.first_chunk()?;
    Some(u16::from_le_bytes(*field))
}

fn le32(head: &[u8], at: usize) -> Option<u32> {
    be32(head, at).map(u32::swap_bytes)
}

/// `MZ` or `ZM`, unless the whole head reads as text.
fn is_pe(head: &[u8]) -> bool {
    (head.starts_with(b"MZ") || head.starts_with(b"ZM")) && super::text::recognise(head).is_none()
}

/// Shared magic with fat Mach-O files, which hold few architectures where a class holds its version.
fn is_java_class(head: &[u8]) -> bool {
    be32(head, 0) == Some(0xcafe_babe) && be32(head, 4).is_some_and(|version| version & 0xffff >= 45)
}

fn is_mach_o(head: &[u8]) -> bool {
    match be32(head, 0) {
        Some(0xfeed_face | 0xfeed_facf | 0xcefa_edfe | 0xcffa_edfe) => true,
        Some(0xcafe_babe | 0xcafe_babf) => be32(head, 4).is_some_and(|count| count < 45),
        _ => false,
    }
}

/// The magic and a version, unless the whole head reads as text.
fn is_flash(head: &[u8]) -> bool {
    let magic = [b"FWS", b"CWS", b"ZWS"].iter().any(|magic| head.starts_with(*magic));
    let version = head.get(3).is_some_and(|version| (1..=60).contains(version));
    magic && version && super::text::recognise(head).is_none()
}

fn is_packed_flash(head: &[u8]) -> bool {
    is_flash(head) && swf::is_packed(head)
}

fn is_bmp(head: &[u8]) -> bool {
    let reserved = le32(head, 6) == Some(0);
    head.starts_with(b"BM") && reserved && matches!(le32(head, 14), Some(12 | 16..=124))
}

fn is_webp(head: &[u8]) -> bool {
    head.starts_with(b"RIFF") && head.get(8..12) == Some(b"WEBP")
}

fn is_bzip2(head: &[u8]) -> bool {
    let level = matches!(head.get(3), Some(b'1'..=b'9'));
    let block = matches!(head.get(4..10), Some(b"\x31\x41\x59\x26\x53\x59" | b"\x17\x72\x45\x38\x50\x90"));
    head.starts_with(b"BZh") && level && block
}

fn is_arj(head: &[u8]) -> bool {
    let header_size = le16(head, 2).is_some_and(|size| (30..=2600).contains(&size));
    let first_size = head.get(4).is_some_and(|size| (30..=128).contains(size));
    head.starts_with(b"\x60\xea") && header_size && first_size
}

/// `-lh5-` and its like at offset 2, in a header of known level.
fn is_lha(head: &[u8]) -> bool {
    let Some(&[b'-', family, kind, method, b'-']) = head.get(2..7).and_then(<[u8]>::first_chunk) else {
        return false;
    };
    let known = matches!((family, kind), (b'l', b'h' | b'z' | b'Z') | (b'p', b'm'));
    known && method.is_ascii_alphanumeric() && head.get(20).is_none_or(|&level| level <= 3)
}

/// A skippable frame, as zstd and lz4 have it.
fn is_skippable(head: &[u8]) -> bool {
    le32(head, 0).is_some_and(|magic| magic & 0xffff_fff0 == 0x184d_2a50)
}

/// Skippable frames with an lz4 frame behind them in the head.
fn is_skippable_lz4(head: &[u8]) -> bool {
    const FRAME_HEADER_BYTES: usize = 8;
    let mut from = head;
    while is_skippable(from) {
        let length = le32(from, 4).map_or(usize::MAX, |length| length as usize);
        from = from.get(FRAME_HEADER_BYTES.saturating_add(length)..).unwrap_or_default();
    }
    from.starts_with(b"\x04\x22\x4d\x18") || from.starts_with(b"\x02\x21\x4c\x18")
}

fn is_lzip(head: &[u8]) -> bool {
    head.starts_with(b"LZIP") && head.get(4).is_some_and(|&version| version <= 1)
}

fn is_compress(head: &[u8]) -> bool {
    let bits = head.get(2).map(|flags| flags & 0x1f);
    head.starts_with(b"\x1f\x9d") && bits.is_some_and(|bits| (9..=16).contains(&bits))
}

/// The magic, a version, and a place of the content behind the header.
fn is_installshield_cab(head: &[u8]) -> bool {
    let version = matches!(head.get(7), Some(1 | 2 | 4));
    head.starts_with(crate::program::installshield::MAGIC) && version && le32(head, 20).is_some_and(|place| place >= 40)
}

/// The binary cpio header in both byte orders, with a name of sane length.
fn is_old_cpio(head: &[u8]) -> bool {
    const NAME_LENGTH_AT: usize = 20;
    let (magic, length) = (le16(head, 0), le16(head, NAME_LENGTH_AT));
    let length = match magic {
        Some(0o070707) => length,
        Some(magic) if magic.swap_bytes() == 0o070707 => length.map(u16::swap_bytes),
        _ => None,
    };
    length.is_some_and(|length| (1..=1024).contains(&length))
}

/// Heads that other tests cut into prefixes.
#[cfg(test)]
pub(super) const EXAMPLES: &[&[u8]] = &[
    b"MZ\x90\0\x03\0\0\0\x04\0\0\0\xff\xff\0\0",
    b"\xca\xfe\xba\xbe\0\0\0\x34\0\x1d",
    b"\xca\xfe\xba\xbe\0\0\0\x02\x01\0\0\x07",
    b"BM\x46\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0",
    b"RIFF\x24\0\0\0WEBPVP8 ",
    b"BZh91AY&SY\x01\x02",
    b"\x60\xea\x2a\0\x22\x0b\x01",
    b"\x19\x00-lh5-\x10\0\0\0\x10\0\0\0\0\0\0\0\x20\x01\x03abc",
    b"\x1f\x9d\x90abc",
    b"\xc7\x71\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x04\0\0\0",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_weak_magic_finds_its_example() {
        let expected = [Pe, JavaClass, MachO, Image, Image, Bzip2, Arj, Lha, Compress, Cpio];
        for (head, expected) in EXAMPLES.iter().zip(expected) {
            assert_eq!(find(head), Some(expected), "{}", head.escape_ascii());
        }
    }

    #[test]
    fn a_skippable_frame_is_of_what_follows_it() {
        let skipped = b"\x5a\x2a\x4d\x18\x02\0\0\0ab";
        assert_eq!(find(&[&skipped[..], skipped, b"\x04\x22\x4d\x18"].concat()), Some(Lz4));
        assert_eq!(find(&[&skipped[..], b"\x28\xb5\x2f\xfd"].concat()), Some(Zstd));
        assert_eq!(find(b"\x5a\x2a\x4d\x18\xff\xff\xff\xff"), Some(Zstd));
    }

    #[test]
    fn a_film_is_packed_only_where_its_data_can_be() {
        assert_eq!(find(b"CWS\x0a\x20\0\0\0\x78\xda\x63"), Some(FlashPacked));
        assert_eq!(find(b"CWS\x0a\x20\0\0\0\x78\xdb\x63"), Some(Flash));
        assert_eq!(find(b"FWS\x0a\x20\0\0\0\x78\xda\x63"), Some(Flash));
        assert_eq!(find(b"ZWS\x0d\x20\0\0\0\x0a\0\0\0\x5d\0\0\x01\0\0"), Some(FlashPacked));
        assert_eq!(find(b"ZWS\x0d\x20\0\0\0\x0a\0\0\0\x5d\0\0\x01\0\x01"), Some(Flash));
        assert_eq!(find(b"CWS 2024 is a congress"), None);
        assert_eq!(find(b"ZWS 2024 is another congress"), None);
    }

    #[test]
    fn a_weak_magic_without_its_fields_is_nothing() {
        for head in [
            &b"BM is an abbreviation"[..],
            b"BZh9 is a prefix",
            b"FWS",
            b"MZ",
            b"RIFF\x24\0\0\0WAVE",
            b"SZDD is a magic",
            b"KWAJ",
        ] {
            assert_eq!(find(head), None, "{}", head.escape_ascii());
        }
    }
}
