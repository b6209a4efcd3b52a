//! Paths that clients name: whether they may be scanned, what is below them, and opening them.
//!
//! A path is permitted when what it leads to, all links resolved, lies in one of the folders of the settings. The file
//! is then opened by that resolved path with no link allowed in it, so that nothing can be put in its way in between.
//! About a path that is not permitted nothing is said, not even whether it exists.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;
use walkdir::{DirEntry, WalkDir};

use crate::settings::ClamdSettings;

/// Reply for pipes, sockets and devices.
const NOT_A_FILE: &str = "Not supported file type";

/// Why a path is not scanned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// As configured.
    Excluded,
    /// Reply to the client.
    Failed(String),
}

/// A file or folder that a client named and may scan.
#[derive(Debug)]
pub struct Found {
    /// Path in replies: as the client wrote it.
    pub shown: PathBuf,
    /// Real path, all links resolved.
    real: PathBuf,
    /// Whether it is a folder.
    pub is_folder: bool,
}

/// Finds what a client named.
pub fn find(settings: &ClamdSettings, path: &[u8]) -> Result<Found, Refusal> {
    let shown = without_slashes(path);
    let facts = match permitted(settings, &shown) {
        Ok(real) => std::fs::symlink_metadata(&shown).map(|facts| (real, facts)),
        Err(error) => Err(error),
    };
    let (real, facts) = facts.map_err(|error| failed_check(&error))?;
    if excluded(settings, &shown) {
        return Err(Refusal::Excluded);
    }
    if facts.is_symlink() && !settings.follow_symlinks {
        return Err(Refusal::Failed("Symbolic link not followed".into()));
    }
    let facts = std::fs::metadata(&real).map_err(|error| failed_check(&error))?;
    if !facts.is_dir() && !facts.is_file() {
        return Err(Refusal::Failed(NOT_A_FILE.into()));
    }
    Ok(Found { shown, real, is_folder: facts.is_dir() })
}

/// Files below a folder, in the order of the names, or errors. Links and special files are passed
/// over, as clamd does below a folder.
pub fn below<'a>(
    settings: &'a ClamdSettings,
    folder: &'a Found,
) -> impl Iterator<Item = (PathBuf, Result<Found, Refusal>)> + 'a {
    let depth = if settings.directory_depth_max == 0 { usize::MAX } else { settings.directory_depth_max + 1 };
    let walk = WalkDir::new(&folder.real)
        .sort_by_file_name()
        .max_depth(depth)
        .follow_links(settings.follow_symlinks)
        .same_file_system(!settings.cross_filesystems);
    let shown = |real: &Path| match real.strip_prefix(&folder.real) {
        Ok(below) if !below.as_os_str().is_empty() => folder.shown.join(below),
        _ => folder.shown.clone(),
    };
    let entered = move |entry: &DirEntry| !entry.file_type().is_dir() || !excluded(settings, &shown(entry.path()));
    walk.into_iter().filter_entry(entered).filter_map(move |entry| {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                let path = shown(error.path()?);
                let error = error.into_io_error()?;
                return Some((path, Err(failed_check(&error))));
            }
        };
        let path = shown(entry.path());
        if !entry.file_type().is_file() || excluded(settings, &path) {
            return None;
        }
        let real = if settings.follow_symlinks { permitted(settings, entry.path()) } else { Ok(entry.into_path()) };
        let found = real.map(|real| Found { shown: path.clone(), real, is_folder: false });
        Some((path, found.map_err(|error| failed_check(&error))))
    })
}

/// Opens a file to be scanned.
pub fn open(found: &Found) -> Result<File, String> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let opened = match openat2(CWD, &found.real, flags, Mode::empty(), resolve) {
        Err(Errno::NOSYS) => walk_to(&found.real, flags),
        outcome => outcome,
    };
    match opened {
        Ok(file) => regular(file.into()),
        Err(Errno::ACCESS | Errno::PERM) => Err("Access denied.".into()),
        Err(error) => Err(format!("{}.", reason(&error.into()))),
    }
}

/// The same folder by folder, no link among them: where `openat2` is not to be had. A service manager that looks into the
/// arguments of system calls (`RestrictSUIDSGID=`) forbids it, since its flags lie in memory.
fn walk_to(path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let mut at = openat(CWD, "/", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let mut parts = path.components().peekable();
    while let Some(part) = parts.next() {
        let name = match part {
            Component::RootDir => continue,
            Component::Normal(name) => name,
            // A resolved path has neither.
            _ => return Err(Errno::INVAL),
        };
        if parts.peek().is_none() {
            return openat(&at, name, flags | OFlags::NOFOLLOW, Mode::empty());
        }
        let folder = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        at = openat(&at, name, folder, Mode::empty())?;
    }
    Err(Errno::ISDIR)
}

/// A file, if it is one: nothing else is read.
pub fn regular(file: File) -> Result<File, String> {
    match file.metadata() {
        Ok(facts) if facts.is_file() => Ok(file),
        Ok(_) => Err(NOT_A_FILE.into()),
        Err(error) => Err(format!("{}.", reason(&error))),
    }
}

/// Where a path leads, if that is permitted. What does not exist in a permitted folder is said not to exist.
fn permitted(settings: &ClamdSettings, path: &Path) -> io::Result<PathBuf> {
    let denied = || io::Error::from(io::ErrorKind::PermissionDenied);
    let allowed = |real: &Path| {
        let roots = settings.paths.iter().filter_map(|root| root.canonicalize().ok());
        roots.into_iter().any(|root| real.starts_with(root))
    };
    match path.canonicalize() {
        Err(error) if path.as_os_str().is_empty() => Err(error),
        Ok(real) if allowed(&real) => Ok(real),
        Ok(_) => Err(denied()),
        Err(error) => {
            let near = path.ancestors().skip(1).find_map(|above| above.canonicalize().ok());
            Err(if near.is_some_and(|near| allowed(&near)) || allowed(Path::new("/")) { error } else { denied() })
        }
    }
}

fn excluded(settings: &ClamdSettings, path: &Path) -> bool {
    settings.exclude.iter().any(|pattern| pattern.0.is_match(path.as_os_str().as_bytes()))
}

fn failed_check(error: &io::Error) -> Refusal {
    Refusal::Failed(format!("File path check failure: {}.", reason(error)))
}

/// The system's word for an error, without its number.
pub fn reason(error: &io::Error) -> String {
    let text = match error.kind() {
        io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => "Permission denied".into(),
        _ => error.to_string(),
    };
    text.split(" (os error").next().unwrap_or_default().into()
}

fn without_slashes(path: &[u8]) -> PathBuf {
    let last = path.iter().rposition(|&byte| byte != b'/').unwrap_or(0);
    let end = path.len().min(last + 1);
    Path::new(std::ffi::OsStr::from_bytes(&path[..end])).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_openat2_no_link_is_followed_either() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("a")).unwrap();
        std::fs::write(root.join("a/file"), "x").unwrap();
        std::os::unix::fs::symlink("a", root.join("link")).unwrap();
        std::os::unix::fs::symlink("file", root.join("a/other")).unwrap();
        let open = |path: &str| walk_to(&root.join(path), OFlags::RDONLY | OFlags::CLOEXEC).map(drop);
        assert_eq!(open("a/file"), Ok(()));
        assert_eq!(open("a/other"), Err(Errno::LOOP));
        assert!(matches!(open("link/file"), Err(Errno::LOOP | Errno::NOTDIR)));
        assert_eq!(open("a/none"), Err(Errno::NOENT));
        assert_eq!(open("a/../a/file"), Err(Errno::INVAL));
    }
}
