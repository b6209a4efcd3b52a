//! Replays the fuzz seeds, so that what was found once stays found.

use std::fs;
use std::path::Path;

#[test]
fn every_seed_passes_its_fuzz_body() {
    type Body = fn(&[u8]);
    let bodies: [(&str, Body); 3] = [
        ("dnsbl_delta", dnsbl::delta::fuzz_delta),
        ("dnsbl_prefix", dnsbl::prefix::fuzz_read),
        ("dnsbl_zone", dnsbl::fuzz_files),
    ];
    for (name, body) in bodies {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
        let mut count = 0;
        for entry in fs::read_dir(&folder).unwrap() {
            let seed = fs::read(entry.unwrap().path()).unwrap();
            body(&seed);
            // And each seed cut off, and with each of its bytes changed.
            for at in 0..seed.len() {
                body(&seed[..at]);
                let mut mutant = seed.clone();
                mutant[at] ^= 0x1f;
                body(&mutant);
            }
            count += 1;
        }
        assert!(count > 0, "no seeds in {}", folder.display());
    }
}
