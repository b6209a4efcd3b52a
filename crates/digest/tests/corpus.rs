//! Replays the fuzz seeds.

use std::fs;
use std::path::Path;

#[test]
fn batch_seeds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/digest_batch");
    let mut count = 0;
    for entry in fs::read_dir(&folder).expect("the seeds are in the repository") {
        digest::fuzz_batch(&fs::read(entry.expect("an entry").path()).expect("a seed"));
        count += 1;
    }
    assert!(count >= 5, "{count} seeds");
}
