//! Replays the fuzz seeds.

use std::fs;
use std::path::Path;

#[test]
fn seeds_of_requests() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/jmap_request");
    let mut count = 0;
    for entry in fs::read_dir(&folder).expect("the seeds are in the repository") {
        jmap::fuzz_request(&fs::read(entry.expect("an entry").path()).expect("a seed"));
        count += 1;
    }
    assert!(count >= 5, "{count} seeds");
}
