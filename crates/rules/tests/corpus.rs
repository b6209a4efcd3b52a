//! Replays the fuzz seeds, so that what was found once stays found.

use std::fs;
use std::path::Path;

/// Each seed, each cut off, and each with bytes changed.
fn replay(target: &str, body: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut count = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let seed = fs::read(entry.unwrap().path()).unwrap();
        body(&seed);
        for at in (0..seed.len()).step_by(1 + seed.len() / 200) {
            body(&seed[..at]);
            let mut mutant = seed.clone();
            mutant[at] ^= 0x1f;
            body(&mutant);
        }
        count += 1;
    }
    assert!(count > 0, "no seeds in {}", folder.display());
}

#[test]
fn every_configuration_passes_its_fuzz_body() {
    replay("rules_spam", rules::spam::fuzz_load);
}

#[test]
fn every_mail_passes_its_fuzz_body() {
    replay("rules_message", rules::spam::message::fuzz_message);
}
