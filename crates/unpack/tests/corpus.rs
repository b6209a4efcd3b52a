//! The fuzz bodies over their seeds, and over seeds that were damaged a little.

use std::path::Path;

use proptest::prelude::*;
use proptest::sample::{Index, select};

type Body = fn(&[u8]);

const BODIES: &[(&str, Body)] = &[
    ("unpack_recognise", unpack::fuzz::fuzz_recognise),
    ("unpack_gzip", unpack::fuzz::fuzz_gzip),
    ("unpack_zip", unpack::fuzz::fuzz_zip),
    ("unpack_executable", unpack::fuzz::fuzz_executable),
    ("unpack_stowaway", unpack::fuzz::fuzz_stowaway),
    ("unpack_tar", unpack::fuzz::fuzz_tar),
    ("unpack_bzip2", unpack::fuzz::fuzz_bzip2),
    ("unpack_xz", unpack::fuzz::fuzz_xz),
    ("unpack_lzma", unpack::fuzz::fuzz_lzma),
    ("unpack_zstd", unpack::fuzz::fuzz_zstd),
    ("unpack_compress", unpack::fuzz::fuzz_compress),
    ("unpack_lz4", unpack::fuzz::fuzz_lz4),
    ("unpack_szdd", unpack::fuzz::fuzz_szdd),
    ("unpack_swf", unpack::fuzz::fuzz_swf),
    ("unpack_ppmd", unpack::fuzz::fuzz_ppmd),
    ("unpack_lha", unpack::fuzz::fuzz_lha),
    ("unpack_rar", unpack::fuzz::fuzz_rar),
    ("unpack_ar", unpack::fuzz::fuzz_ar),
    ("unpack_cpio", unpack::fuzz::fuzz_cpio),
    ("unpack_cab", unpack::fuzz::fuzz_cab),
    ("unpack_arc", unpack::fuzz::fuzz_arc),
    ("unpack_arj", unpack::fuzz::fuzz_arj),
    ("unpack_7z", unpack::fuzz::fuzz_7z),
    ("unpack_iso", unpack::fuzz::fuzz_iso),
    ("unpack_brotli", unpack::fuzz::fuzz_brotli),
    ("unpack_coded", unpack::fuzz::fuzz_coded),
    ("unpack_snappy", unpack::fuzz::fuzz_snappy),
    ("unpack_lzop", unpack::fuzz::fuzz_lzop),
    ("unpack_zisofs", unpack::fuzz::fuzz_zisofs),
    ("unpack_rpm", unpack::fuzz::fuzz_rpm),
    ("unpack_xar", unpack::fuzz::fuzz_xar),
    ("unpack_alz", unpack::fuzz::fuzz_alz),
    ("unpack_nsis", unpack::fuzz::fuzz_nsis),
    ("unpack_installshield", unpack::fuzz::fuzz_installshield),
    ("unpack_sis", unpack::fuzz::fuzz_sis),
    ("unpack_packed", unpack::fuzz::fuzz_packed),
    ("unpack_autoit", unpack::fuzz::fuzz_autoit),
    ("unpack_appledouble", unpack::fuzz::fuzz_appledouble),
    ("unpack_macbinary", unpack::fuzz::fuzz_macbinary),
    ("unpack_mbox", unpack::fuzz::fuzz_mbox),
    ("unpack_lnk", unpack::fuzz::fuzz_lnk),
    ("unpack_chm", unpack::fuzz::fuzz_chm),
    ("unpack_activemime", unpack::fuzz::fuzz_activemime),
    ("unpack_dmg", unpack::fuzz::fuzz_dmg),
    ("unpack_hfs", unpack::fuzz::fuzz_hfs),
    ("unpack_disk", unpack::fuzz::fuzz_disk),
    ("unpack_jffs2", unpack::fuzz::fuzz_jffs2),
    ("unpack_cramfs", unpack::fuzz::fuzz_cramfs),
    ("unpack_wim", unpack::fuzz::fuzz_wim),
    ("unpack_squashfs", unpack::fuzz::fuzz_squashfs),
    ("unpack_runs", unpack::fuzz::fuzz_runs),
    ("unpack_shar", unpack::fuzz::fuzz_shar),
    ("unpack_dar", unpack::fuzz::fuzz_dar),
    ("unpack_pyinstaller", unpack::fuzz::fuzz_pyinstaller),
    ("unpack_openpgp", unpack::fuzz::fuzz_openpgp),
    ("unpack_relationships", unpack::fuzz::fuzz_relationships),
];

fn seeds(folder: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(folder);
    let files = std::fs::read_dir(&folder).expect("the corpus is there");
    let mut paths: Vec<_> = files.map(|file| file.expect("it can be listed").path()).collect();
    paths.sort();
    paths.into_iter().map(|path| std::fs::read(path).expect("it can be read")).collect()
}

#[test]
fn every_seed_replays() {
    for &(folder, body) in BODIES {
        let seeds = seeds(folder);
        assert!(seeds.len() >= 5, "{folder} has few seeds");
        for seed in seeds {
            body(&seed);
        }
    }
}

#[test]
fn every_seed_replays_in_pieces_of_any_size() {
    for &(folder, body) in BODIES {
        for mut seed in seeds(folder) {
            for cut in [0, 1, 3, 17, 60] {
                seed[0] = cut;
                body(&seed);
            }
        }
    }
}

/// Every length of a short seed, and some of a long one.
#[test]
fn every_seed_replays_cut_short() {
    const CUTS_MAX: usize = 64;
    for &(folder, body) in BODIES {
        for seed in seeds(folder) {
            for end in (1..seed.len()).step_by(1 + seed.len() / CUTS_MAX) {
                body(&seed[..end]);
            }
        }
    }
}

/// A flipped bit in every byte of a short seed, and in some of a long one.
#[test]
fn every_seed_replays_with_a_flipped_bit() {
    const FLIPS_MAX: usize = 64;
    for &(folder, body) in BODIES {
        for mut seed in seeds(folder) {
            for at in (1..seed.len()).step_by(1 + seed.len() / FLIPS_MAX) {
                seed[at] ^= 1 << (at % 8);
                body(&seed);
                seed[at] ^= 1 << (at % 8);
            }
        }
    }
}

fn damaged() -> impl Strategy<Value = (Body, Vec<u8>)> {
    let all: Vec<(Body, Vec<u8>)> =
        BODIES.iter().flat_map(|&(folder, body)| seeds(folder).into_iter().map(move |seed| (body, seed))).collect();
    let damage = prop::collection::vec((any::<Index>(), any::<u8>()), 0..4);
    let parameters = (select(all), any::<u8>(), damage, any::<Index>(), any::<bool>());
    parameters.prop_map(|((body, mut seed), cut, damage, end, truncate)| {
        for (at, value) in damage {
            let at = at.index(seed.len());
            seed[at] = value;
        }
        if truncate {
            seed.truncate(1 + end.index(seed.len()));
        }
        seed[0] = cut;
        (body, seed)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damage_is_told_the_same_however_it_is_cut((body, seed) in damaged()) {
        body(&seed);
    }
}
