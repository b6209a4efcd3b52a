//! Changes of files since they were compiled, as far as they are small.

use std::path::{Path, PathBuf};

use super::files::{is_catalogue, is_ignore_list};
use super::source::{Source, known};

/// So many bytes of changed files are compiled at once; beyond that the whole is.
const OVERLAY_BYTES_MAX: u64 = 4 << 20;

/// Changes of files since they were compiled.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Changes<'a> {
    /// Paths whose signatures in the large database are not reported any more.
    pub replaced: Vec<&'a str>,
    /// Files to compile.
    pub added: Vec<PathBuf>,
    /// Whether that is not all.
    pub is_due: bool,
}

impl<'a> Changes<'a> {
    /// Compares `files` with `sources`.
    pub fn between(sources: &'a [Source], files: &[PathBuf]) -> Changes<'a> {
        let mut changes = Changes::default();
        let mut left = OVERLAY_BYTES_MAX;
        for source in sources.iter().filter(|source| !files.iter().any(|file| file == Path::new(&source.path))) {
            changes.is_due |= is_ignore_list(Path::new(&source.path));
            changes.replaced.push(&source.path);
        }
        for file in files {
            let source = known(sources, file);
            if source.is_some_and(Source::is_current) {
                continue;
            }
            if is_catalogue(file) {
                // Who vouches for it is among the rest.
                changes.is_due = true;
                changes.replaced.extend(source.map(|source| &*source.path));
                continue;
            }
            let bytes = std::fs::metadata(file).map_or(0, |facts| facts.len());
            if bytes > left {
                changes.is_due = true;
                continue;
            }
            left -= bytes;
            // Names that are not ignored any more only come back with the whole.
            changes.is_due |= is_ignore_list(file);
            changes.replaced.extend(source.map(|source| &*source.path));
            changes.added.push(file.clone());
        }
        if !changes.added.is_empty() {
            // These speak of all files, so of those to be compiled, too; and they come first.
            let added = std::mem::take(&mut changes.added);
            let lists = files.iter().filter(|file| is_ignore_list(file) && !added.contains(file));
            changes.added = lists.chain(&added).cloned().collect();
        }
        changes
    }
}
