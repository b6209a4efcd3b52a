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
fn database_seeds() {
    replay("scan_database", scan::fuzz_database);
}

#[test]
fn scan_seeds() {
    replay("scan_scan", scan::fuzz_scan);
}

#[test]
fn container_seeds() {
    replay("scan_container", scan::fuzz_container);
}

#[test]
fn layout_seeds() {
    replay("scan_layout", scan::fuzz_layout);
}

#[test]
fn compiled_seeds() {
    replay("scan_compiled", scan::fuzz_compiled);
}

#[test]
fn cdiff_seeds() {
    replay("scan_cdiff", scan::fuzz_cdiff);
}

#[test]
fn detached_seeds() {
    replay("scan_detached", scan::fuzz_detached);
}

#[test]
fn program_seeds() {
    replay("scan_program", scan::fuzz_program);
}

#[test]
fn picture_seeds() {
    replay("scan_picture", scan::fuzz_picture);
}

#[test]
fn links_seeds() {
    replay("scan_links", scan::fuzz_links);
}

#[test]
fn normaliser_seeds() {
    replay("scan_normaliser", scan::fuzz_normaliser);
}
