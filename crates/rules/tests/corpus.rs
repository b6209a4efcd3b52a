//! Replays the fuzz seeds, so that what was found once stays found.

use std::fs;
use std::path::Path;

#[test]
fn every_seed_passes_its_fuzz_body() {
    replay("rules_spam", rules::spam::fuzz_load, 200);
}

#[test]
fn every_seed_of_rules_and_a_mail_passes_its_fuzz_body() {
    replay("rules_check", rules::spam::run::fuzz_check, 20);
}

/// Each seed, cut off in so many places, and with bytes changed.
fn replay(target: &str, body: fn(&[u8]), places: usize) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut count = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let seed = fs::read(entry.unwrap().path()).unwrap();
        body(&seed);
        for at in (0..seed.len()).step_by(1 + seed.len() / places) {
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
fn every_mail_passes_its_fuzz_body() {
    replay("rules_message", rules::spam::message::fuzz_message, 200);
}

#[test]
fn every_seed_of_web_lists_passes_its_fuzz_body() {
    replay("rules_web_phrases", rules::web::fuzz_phrases, 30);
    replay("rules_web_lists", rules::web::fuzz_lists, 30);
    replay("rules_web_adblock", rules::web::fuzz_adblock, 30);
    replay("rules_web_story", rules::web::fuzz_story, 30);
    replay("rules_web_squidguard", rules::web::fuzz_squidguard, 30);
}

#[test]
fn every_seed_of_intrusion_rules_and_captures_passes_its_fuzz_body() {
    replay("rules_ids_rules", rules::ids::fuzz_rules, 60);
    replay("rules_ids_capture", rules::ids::capture::fuzz_capture, 100);
}
