//! Replays the fuzz seeds, and reads every mail of `corpus/` and of the packs.

use std::fs;
use std::path::{Path, PathBuf};

use mailbox::digest::fuzz_digest;
use mailbox::webauthn::fuzz_webauthn;

/// Larger mails say nothing new, cut by cut.
const BYTES_MAX: usize = 200_000;

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.path().is_dir() {
            true => files(&entry.path(), found),
            false => found.push(entry.path()),
        }
    }
}

/// Runs a fuzz body over its seeds, however they are cut.
fn replay(name: &str, body: fn(&[u8])) {
    let mut seeds = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name), &mut seeds);
    assert!(!seeds.is_empty(), "no seeds of {name}");
    for seed in seeds {
        let seed = fs::read(seed).unwrap();
        for at in 0..=seed.len() {
            body(&seed[..at]);
        }
    }
}

#[test]
fn every_seed_passes_its_fuzz_body() {
    replay("mailbox_digest", fuzz_digest);
    replay("mailbox_webauthn", fuzz_webauthn);
}

#[test]
fn public_mails_are_read_however_they_are_cut() {
    let mut mails = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/mails"), &mut mails);
    assert!(mails.len() > 50, "{}", mails.len());
    if let Some(data) = std::env::var_os("SLUICE_DATA") {
        files(&Path::new(&data).join("mail-mime"), &mut mails);
    }
    for mail in mails {
        let mail = fs::read(mail).unwrap();
        fuzz_digest(&[&[7], &mail[..mail.len().min(BYTES_MAX)]].concat());
    }
}
