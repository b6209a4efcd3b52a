//! Streams and archives: every seed cut at every length, and with a bit of every byte turned, is read to its end, and emitted
//! the same however it is cut. `documents.rs` does so for documents.

use std::path::Path;

type Fuzz = fn(&[u8]);

const FORMATS: &[(&str, Fuzz)] = &[
    ("7z", unpack::fuzz::fuzz_7z),
    ("activemime", unpack::fuzz::fuzz_activemime),
    ("ar", unpack::fuzz::fuzz_ar),
    ("arj", unpack::fuzz::fuzz_arj),
    ("bzip2", unpack::fuzz::fuzz_bzip2),
    ("cab", unpack::fuzz::fuzz_cab),
    ("compress", unpack::fuzz::fuzz_compress),
    ("cpio", unpack::fuzz::fuzz_cpio),
    ("dmg", unpack::fuzz::fuzz_dmg),
    ("hfs", unpack::fuzz::fuzz_hfs),
    ("disk", unpack::fuzz::fuzz_disk),
    ("jffs2", unpack::fuzz::fuzz_jffs2),
    ("cramfs", unpack::fuzz::fuzz_cramfs),
    ("wim", unpack::fuzz::fuzz_wim),
    ("squashfs", unpack::fuzz::fuzz_squashfs),
    ("runs", unpack::fuzz::fuzz_runs),
    ("executable", unpack::fuzz::fuzz_executable),
    ("gzip", unpack::fuzz::fuzz_gzip),
    ("lha", unpack::fuzz::fuzz_lha),
    ("lz4", unpack::fuzz::fuzz_lz4),
    ("lzma", unpack::fuzz::fuzz_lzma),
    ("installshield", unpack::fuzz::fuzz_installshield),
    ("nsis", unpack::fuzz::fuzz_nsis),
    ("sis", unpack::fuzz::fuzz_sis),
    ("autoit", unpack::fuzz::fuzz_autoit),
    ("packed", unpack::fuzz::fuzz_packed),
    ("rar", unpack::fuzz::fuzz_rar),
    ("relationships", unpack::fuzz::fuzz_relationships),
    ("stowaway", unpack::fuzz::fuzz_stowaway),
    ("swf", unpack::fuzz::fuzz_swf),
    ("szdd", unpack::fuzz::fuzz_szdd),
    ("tar", unpack::fuzz::fuzz_tar),
    ("xz", unpack::fuzz::fuzz_xz),
    ("zip", unpack::fuzz::fuzz_zip),
    ("zstd", unpack::fuzz::fuzz_zstd),
];

/// Seeds longer than this are damaged in as many places.
const SHORT: usize = 150;

/// Keys of these cost so much that few places have to do.
const COSTLY: usize = 8;

#[test]
fn damaged_seeds_are_read_to_their_end() {
    for (format, fuzz) in FORMATS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../fuzz/corpus/unpack_{format}"));
        for file in std::fs::read_dir(folder).expect("the corpus is there") {
            let path = file.expect("it can be listed").path();
            let seed = std::fs::read(&path).expect("it can be read");
            let is_costly = path.file_name().is_some_and(|name| name.to_string_lossy().contains("aes"));
            damaged(&seed, if is_costly { COSTLY } else { SHORT }).for_each(|damaged| fuzz(&damaged));
        }
    }
}

/// The seed, cut and turned in so many places. The first byte, which is the fuzz body's, varies.
fn damaged(seed: &[u8], places: usize) -> impl Iterator<Item = Vec<u8>> {
    let stride = 1 + seed.len() / places;
    (1..seed.len()).step_by(stride).flat_map(move |at| {
        let vary = |mut bytes: Vec<u8>| {
            bytes[0] = 20 + (at % 40) as u8;
            bytes
        };
        let mut turned = seed.to_vec();
        turned[at] ^= 1 << (at / stride % 8);
        [vary(seed[..at].to_vec()), vary(turned)]
    })
}
