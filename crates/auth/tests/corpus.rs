//! Replays the fuzz seeds, so that what was found once stays found; and mutants of them.

use std::fs;
use std::path::Path;

type Body = fn(&[u8]);

const BODIES: [(&str, Body); 4] = [
    ("auth_key", auth::fuzz_key),
    ("auth_mail", auth::fuzz_mail),
    ("auth_report", auth::fuzz_report),
    ("auth_spf", auth::fuzz_spf),
];

/// Pieces of mutants, besides the mails.
const PIECES: [&[u8]; 12] =
    [b"", b";", b"=", b"\r\n", b"\n", b"%{", b"}", b"\"", b"\\", b"\xff", b"(", b"v=spf1 include:%{d}"];

fn seeds(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let seeds: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| fs::read(entry.unwrap().path()).unwrap()).collect();
    assert!(!seeds.is_empty(), "no seeds in {}", folder.display());
    seeds
}

#[test]
fn every_seed_passes_its_fuzz_body() {
    for (name, body) in BODIES {
        seeds(name).iter().for_each(|seed| body(seed));
    }
}

/// Bytes replaced by pieces, at places that a generator of numbers chooses.
#[test]
fn every_mutant_of_a_seed_passes_its_fuzz_body() {
    for (name, body) in BODIES {
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let mut next = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below.max(1)
        };
        for seed in seeds(name) {
            for _ in 0..300 {
                let mut mutant = seed.clone();
                for _ in 0..=next(3) {
                    let at = next(mutant.len());
                    let end = (at + next(4)).min(mutant.len());
                    mutant.splice(at..end, PIECES[next(PIECES.len())].iter().copied());
                }
                body(&mutant);
            }
        }
    }
}
