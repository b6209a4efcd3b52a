//! Replays the fuzz seeds.

use std::fs;
use std::path::Path;

#[test]
fn seeds_of_the_sanitiser() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/webmail_sanitise");
    let mut count = 0;
    for entry in fs::read_dir(&folder).expect("the seeds are in the repository") {
        webmail::fuzz_sanitise(&fs::read(entry.expect("an entry").path()).expect("a seed"));
        count += 1;
    }
    assert!(count >= 4, "{count} seeds");
}
