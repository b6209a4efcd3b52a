//! Replays the fuzz seeds, so that what was found once stays found.

use std::fs;
use std::path::{Path, PathBuf};

use index::{Builder, Cutter, Document, Field};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/index_segment")
}

#[test]
fn every_seed_passes_its_fuzz_body() {
    let mut count = 0;
    for entry in fs::read_dir(folder()).unwrap() {
        let seed = fs::read(entry.unwrap().path()).unwrap();
        index::fuzz_segment(&seed);
        for at in (0..seed.len()).step_by(3) {
            index::fuzz_segment(&seed[..at]);
            let mut mutant = seed.clone();
            mutant[at] ^= 0x1f;
            index::fuzz_segment(&mutant);
        }
        count += 1;
    }
    assert!(count > 0, "no seeds");
}

/// Makes a seed: `SLUICE_INDEX_SEEDS=1 cargo test -p sluice-index a_seed_is_made`.
#[test]
fn a_seed_is_made() {
    if std::env::var_os("SLUICE_INDEX_SEEDS").is_none() {
        return;
    }
    let mut builder = Builder::default();
    for (number, text) in [(3, "a b c"), (4, "some invoice, a b"), (900, "密码是 x")] {
        builder.begin(Document { number, is_partial: number == 4 });
        for field in Field::ALL {
            let mut cutter = Cutter::default();
            cutter.read(text, &mut |term| builder.add(field, term));
            cutter.end(&mut |term| builder.add(field, term));
        }
    }
    fs::create_dir_all(folder()).unwrap();
    fs::write(folder().join("three"), builder.finish().concat()).unwrap();
}
