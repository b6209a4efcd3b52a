//! Files that paths stand for.

use std::io::Read;
use std::path::{Path, PathBuf};

use crate::output::Failure;

/// The files at `paths` in the order in which they are loaded.
///
/// # Errors
/// When a path cannot be read.
pub fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in paths {
        collect(path, &mut files)?;
    }
    // Lists of names to ignore speak of the files after them.
    files.sort_by_key(|file| !is_ignore_list(file));
    Ok(files)
}

/// A file as it is named, or what a folder holds, in the order of the names. Files that are no databases are passed
/// over; of a container that is there as published and as updated, the newer is taken.
fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let facts = std::fs::metadata(path).map_err(|error| format!("{}: {error}", path.display()))?;
    if !facts.is_dir() {
        files.push(path.into());
        return Ok(());
    }
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path).map_err(|error| format!("{}: {error}", path.display()))? {
        let path = entry?.path();
        if path.is_file() && path.file_name().is_some_and(|name| scan::is_database(&name.to_string_lossy())) {
            found.push(path);
        }
    }
    found.sort();
    let older = |path: &PathBuf| {
        let other = match path.extension().and_then(|ending| ending.to_str()) {
            Some("cvd") => path.with_extension("cld"),
            Some("cld") => path.with_extension("cvd"),
            _ => return false,
        };
        found.contains(&other) && (version(path), path) < (version(&other), &other)
    };
    let older: Vec<PathBuf> = found.iter().filter(|path| older(path)).cloned().collect();
    found.retain(|path| !older.contains(path));
    files.append(&mut found);
    Ok(())
}

/// The version of a container, as it says itself.
pub fn version(path: &Path) -> Option<u32> {
    scan::container_version(&head(path)?)
}

/// A container, as its head describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Release {
    /// Its version.
    pub version: u32,
    /// When it was built, in seconds since 1970.
    pub built: u64,
}

/// The release of the container at `paths` that says how old the signatures are: the newest; and that of `daily`, which
/// clamd calls the version of its database. None where there is no container.
///
/// # Errors
/// When a path cannot be read.
pub fn releases(paths: &[PathBuf]) -> Result<(Option<Release>, Option<Release>), Failure> {
    let files = files(paths)?;
    let newest = files.iter().filter_map(|path| release(path)).max_by_key(|release| release.built);
    let daily = files.iter().find(|path| path.file_stem().is_some_and(|stem| stem == "daily"));
    Ok((newest, daily.and_then(|path| release(path)).or(newest)))
}

/// A container as its head describes it; `None` of other files.
pub fn release(path: &Path) -> Option<Release> {
    let head = head(path)?;
    Some(Release { version: scan::container_version(&head)?, built: scan::container_built(&head)? })
}

fn head(path: &Path) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    std::fs::File::open(path).ok()?.take(512).read_to_end(&mut head).ok()?;
    Some(head)
}

/// Whether a file is a list that rules of other files vouch for.
pub fn is_catalogue(file: &Path) -> bool {
    file.extension().is_some_and(|ending| ending == "cat")
}

/// Whether a file is a list of names to ignore.
pub fn is_ignore_list(file: &Path) -> bool {
    file.extension().is_some_and(|ending| ending == "ign" || ending == "ign2")
}
