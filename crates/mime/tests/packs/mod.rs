//! Where the public test material is unpacked. Tests that want it are skipped with a message when it is not there.

use std::path::{Path, PathBuf};

/// The folder `name` of the packs, which are looked for in `SLUICE_DATA` and beside the checkout.
// Not every test that walks folders wants a pack.
#[allow(dead_code)]
pub fn folder(name: &str) -> Option<PathBuf> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../data");
    let root = std::env::var_os("SLUICE_DATA").map_or_else(|| PathBuf::from(beside), PathBuf::from);
    let folder = root.join(name);
    if folder.is_dir() {
        return Some(folder);
    }
    println!("no pack: {name}");
    None
}

/// All mails of `corpus/`, with their content.
#[allow(dead_code)]
pub fn own() -> Vec<(PathBuf, Vec<u8>)> {
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/mails"))
}

/// All files below `folder` with their content, in order.
pub fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("the folder can be read") {
            let path = entry.expect("the entry can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let content = std::fs::read(&path).expect("the file can be read");
                files.push((path, content));
            }
        }
    }
    files.sort();
    files
}
