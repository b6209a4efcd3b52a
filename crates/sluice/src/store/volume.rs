//! A store that is opened by a command.

use std::path::Path;

use mailbox::File;
use store::{Error, Options, Volume};

use crate::Failure;

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
