//! A store that is opened by a command, and how one is divided that is made.

use std::ffi::OsString;
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use mailbox::File;
use store::{Error, Options, Volume};

use crate::audit::trail::Trail;
use crate::cli::StorePlace;
use crate::config::StoreSettings;
use crate::output::Failure;
use crate::process::privileges::Place;

/// Segments of a small store: enough to move mail between them.
const SEGMENTS_MIN: u64 = 16;

/// Where a store is if nobody says otherwise.
const STANDARD: &str = "/var/lib/sluice/store/mail";

/// The store that a command means; root becomes the owner of its folder.
pub(super) fn enter(meant: &StorePlace) -> Result<Place, Failure> {
    Ok(Place::enter(&named(meant, None)?)?)
}

/// The path of the store that a command means: the one on the command line, or that of the configuration.
pub(super) fn named(meant: &StorePlace, word: Option<&Path>) -> Result<PathBuf, Failure> {
    match word.or(meant.store.as_deref()) {
        Some(volume) => Ok(volume.into()),
        None => Ok(StoreSettings::read(&meant.config)?.map_or_else(|| STANDARD.into(), |store| store.volume())),
    }
}

/// The audit log of a command; none where a store is named in place of the configuration.
pub(super) fn trail(meant: &StorePlace) -> Result<Trail, Failure> {
    if meant.store.is_some() { Ok(Trail::none()) } else { Trail::find(&meant.config) }
}

/// Parts the words of a command: the store if it stands in front, and the others, of which there are at most `most`.
pub(super) fn parted<'w>(meant: &StorePlace, words: &'w [OsString], most: usize) -> (Option<&'w Path>, &'w [OsString]) {
    match words.split_first() {
        // A link is followed by nobody who opens a store as root: to be refused, it has to be taken for one.
        Some((first, others))
            if meant.store.is_none()
                && (words.len() > most
                    || is_store(first.as_ref())
                    || words.len() > 1 && Path::new(first).is_symlink()) =>
        {
            (Some(first.as_ref()), others)
        }
        _ => (None, words),
    }
}

/// Whether a word is the path of a store, and neither an account nor a mail: by what a store begins with.
fn is_store(word: &Path) -> bool {
    let Ok(facts) = word.metadata() else { return false };
    let mut head = [0; store::MAGIC.len()];
    facts.file_type().is_block_device()
        || facts.is_file()
            && std::fs::File::open(word).and_then(|mut file| file.read_exact(&mut head)).is_ok()
            && head == store::MAGIC
}

/// Opens a store; what is wrong is told with its name.
pub(super) fn open(place: &Place, read_only: bool, salvage: bool) -> Result<Volume<File>, Failure> {
    read(place, File::open(&place.way(), !read_only), Options { read_only, salvage, ..Options::default() })
}

/// The same for a command that goes on as root, since it reads or writes elsewhere.
pub(super) fn open_as_root(place: &Place, read_only: bool) -> Result<Volume<File>, Failure> {
    let file = place.open(!read_only).and_then(|file| File::of(file, !read_only));
    read(place, file, Options { read_only, ..Options::default() })
}

fn read(place: &Place, file: io::Result<File>, options: Options) -> Result<Volume<File>, Failure> {
    let named = |error: &dyn std::fmt::Display| format!("{}: {error}", place.path().display());
    let file = file.map_err(|error| match error.kind() {
        ErrorKind::ResourceBusy if options.read_only => {
            named(&format_args!("{error}, and no server answers at {}", super::control::path(place.path()).display()))
        }
        _ => named(&error),
    })?;
    let volume = Volume::open(file, options);
    Ok(volume.map_err(|error| match error {
        Error::Damaged(_) => format!("{}; sluice store check --salvage passes over it", named(&error)),
        error => named(&error),
    })?)
}

/// Gives a store all of its room on the disk.
pub(super) fn fill(file: &File, path: &Path) {
    let store = path.display();
    match file.fill() {
        Ok(0) => {}
        Ok(bytes) => tracing::warn!(%store, bytes, "the disk has no room for what the store does not hold yet"),
        Err(error) => tracing::warn!(%store, %error, "the store cannot be given all of its room"),
    }
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
