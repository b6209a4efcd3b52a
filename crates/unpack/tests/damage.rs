//! Streams and archives: every seed cut at every length, and with a bit of every byte turned, is read to its end, and told
//! the same however it is cut. `documents.rs` does so for documents.

use std::path::Path;

type Fuzz = fn(&[u8]);

const FORMATS: &[(&str, Fuzz)] = &[
    ("7z", unpack::fuzz_7z),
    ("activemime", unpack::fuzz_activemime),
    ("ar", unpack::fuzz_ar),
    ("arj", unpack::fuzz_arj),
    ("bzip2", unpack::fuzz_bzip2),
    ("cab", unpack::fuzz_cab),
    ("compress", unpack::fuzz_compress),
    ("cpio", unpack::fuzz_cpio),
    ("dmg", unpack::fuzz_dmg),
    ("hfs", unpack::fuzz_hfs),
    ("disk", unpack::fuzz_disk),
    ("runs", unpack::fuzz_runs),
    ("executable", unpack::fuzz_executable),
    ("gzip", unpack::fuzz_gzip),
    ("lha", unpack::fuzz_lha),
    ("lz4", unpack::fuzz_lz4),
    ("lzma", unpack::fuzz_lzma),
    ("installshield", unpack::fuzz_installshield),
    ("nsis", unpack::fuzz_nsis),
    ("sis", unpack::fuzz_sis),
    ("autoit", unpack::fuzz_autoit),
    ("packed", unpack::fuzz_packed),
    ("rar", unpack::fuzz_rar),
    ("relationships", unpack::fuzz_relationships),
    ("stowaway", unpack::fuzz_stowaway),
    ("swf", unpack::fuzz_swf),
    ("szdd", unpack::fuzz_szdd),
    ("tar", unpack::fuzz_tar),
    ("xz", unpack::fuzz_xz),
    ("zip", unpack::fuzz_zip),
    ("zstd", unpack::fuzz_zstd),
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
