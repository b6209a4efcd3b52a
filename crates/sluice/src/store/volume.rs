//! A store that is opened by a command, and how one is divided that is made.

use std::path::Path;

use mailbox::File;
use store::{Error, Options, Volume};

use crate::Failure;

/// Of a small store: enough segments to move mail between them.
const SEGMENTS_MIN: u64 = 16;

/// Opens a store; what is wrong is told with its name.
pub(super) fn open(path: &Path, read_only: bool, salvage: bool) -> Result<Volume<File>, Failure> {
    let named = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let file = File::open(path, !read_only).map_err(|error| named(&error))?;
    let volume = Volume::open(file, Options { read_only, salvage, ..Options::default() });
    Ok(volume.map_err(|error| match error {
        Error::Damaged(_) => format!("{}; sluice store check --salvage passes over it", named(&error)),
        error => named(&error),
    })?)
}

/// How large segments are so that there are enough of them, `most` bytes otherwise.
pub(super) fn segment_bytes(size: u64, most: u32) -> u32 {
    u32::try_from((size / SEGMENTS_MIN).next_multiple_of(4096)).unwrap_or(u32::MAX).min(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_of_any_size_has_segments() {
        let sizes = [64 << 20, 100 << 20, 64 << 30, 100 << 30, u64::MAX].map(|size| segment_bytes(size, 16 << 20));
        assert_eq!(sizes, [4 << 20, 6_553_600, 16 << 20, 16 << 20, 16 << 20]);
    }
}
