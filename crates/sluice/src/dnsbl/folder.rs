//! Files in a folder that others read meanwhile.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

/// Puts a file in the place of another, whole or not at all.
pub fn replace(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let new = folder.join(format!("{name}.new"));
    let file = File::create(&new)?;
    (&file).write_all(bytes)?;
    file.sync_all()?;
    fs::rename(new, folder.join(name))
}
