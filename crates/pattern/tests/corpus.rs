//! Replays the fuzz seeds.

use std::fs;
use std::path::Path;

fn replay(name: &str, body: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let mut count = 0;
    for entry in fs::read_dir(&folder).expect("the seeds are in the repository") {
        body(&fs::read(entry.expect("an entry").path()).expect("a seed"));
        count += 1;
    }
    assert!(count >= 5, "{name} has {count} seeds");
}

#[test]
fn pattern_seeds() {
    replay("pattern_pattern", pattern::fuzz_pattern);
}

#[test]
fn sweep_seeds() {
    replay("pattern_sweep", pattern::fuzz_sweep);
}

#[test]
fn expression_seeds() {
    replay("pattern_expression", pattern::expression::fuzz_expression);
}

#[test]
fn joint_seeds() {
    replay("pattern_joint", pattern::expression::fuzz_joint);
}
