//! Replays the fuzz seeds, so that what was found once stays found.

use std::fs;
use std::path::Path;

#[test]
fn every_seed_passes_its_fuzz_body() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/rules_spam");
    let mut count = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let seed = fs::read(entry.unwrap().path()).unwrap();
        rules::spam::fuzz_load(&seed);
        // And each seed cut off, and with bytes changed.
        for at in (0..seed.len()).step_by(1 + seed.len() / 200) {
            rules::spam::fuzz_load(&seed[..at]);
            let mut mutant = seed.clone();
            mutant[at] ^= 0x1f;
            rules::spam::fuzz_load(&mutant);
        }
        count += 1;
    }
    assert!(count > 0, "no seeds in {}", folder.display());
}
