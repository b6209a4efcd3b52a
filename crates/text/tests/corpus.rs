//! Replays the fuzz seeds.

use std::fs;
use std::path::Path;

#[test]
fn html_seeds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/text_html");
    let mut count = 0;
    for entry in fs::read_dir(&folder).expect("the seeds are in the repository") {
        text::html::fuzz_html(&fs::read(entry.expect("an entry").path()).expect("a seed"));
        count += 1;
    }
    assert!(count >= 5, "{count} seeds");
}
