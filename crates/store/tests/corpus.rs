//! Replays the fuzz seeds, so that what was found once stays found.

use std::fs;
use std::path::Path;

use store::fuzz_open;
use store::memory::Memory;

use crate::model::{History, format, open};

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/store_open")
}

#[test]
fn every_seed_passes_its_fuzz_body() {
    let mut count = 0;
    for entry in fs::read_dir(folder()).unwrap() {
        let seed = fs::read(entry.unwrap().path()).unwrap();
        fuzz_open(&seed);
        // And each seed cut off, and with bytes changed that are not zero, in steps that change from seed to seed.
        for at in (count..seed.len()).step_by(197) {
            fuzz_open(&seed[..at]);
        }
        for at in (0..seed.len()).filter(|&at| seed[at] != 0).skip(count).step_by(23) {
            let mut mutant = seed.clone();
            mutant[at] ^= 0x1f;
            fuzz_open(&mutant);
        }
        count += 1;
    }
    assert!(count > 0, "no seeds");
}

/// Makes seeds: `SLUICE_STORE_SEEDS=1 cargo test -p sluice-store seeds_are_made`.
#[test]
fn seeds_are_made() {
    if std::env::var_os("SLUICE_STORE_SEEDS").is_none() {
        return;
    }
    fs::create_dir_all(folder()).unwrap();
    for (name, steps, closes) in
        [("empty", 0, true), ("closed", 30, true), ("killed", 30, false), ("compacted", 400, false)]
    {
        let device = store::Volume::format(Memory::new(8192 + (12 << 14)), &format()).unwrap();
        let mut volume = open(device, 16 << 10).unwrap();
        let mut history = History::new(steps, 20_000);
        history.mail_bytes_max = 2000;
        for _ in 0..steps {
            history.step(&mut volume).unwrap();
            volume.commit().unwrap();
        }
        let bytes = if closes { volume.close().unwrap() } else { volume.abandon() }.bytes();
        let end = bytes.iter().rposition(|&byte| byte != 0).unwrap_or(0);
        fs::write(folder().join(name), &bytes[..=end]).unwrap();
    }
}
