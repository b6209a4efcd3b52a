//! The file of a document on this node: read and written by descriptor, without following links, and replaced as a whole.
//!
//! Beside `NAME` lie `NAME.synced`, the version that it was last equal to, and files that were kept when the cluster had another one:
//! `NAME.before-cluster` of a node that had never synced, `NAME.conflict` otherwise, with a number from the second on.

use std::ffi::OsStr;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, fchown};
use std::path::{Path, PathBuf};

use cluster::Version;

use crate::process::held::Held;

/// The largest text.
pub const BYTES_MAX: usize = 4 << 20;

/// Files that are kept under one word.
const KEPT_MAX: u32 = 99;

/// The file of a document, in a folder that is held open.
pub struct Local {
    folder: Held,
    name: String,
}

/// Text of a file, and the time of its last change in nanoseconds since 1970.
pub struct Text {
    pub bytes: Vec<u8>,
    pub changed: i128,
}

/// The version that a file was last equal to, and the time of its last change then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    pub version: Version,
    pub changed: i128,
}

impl Local {
    /// The file at a path, which may be missing.
    ///
    /// # Errors
    /// When its folder cannot be opened.
    pub fn at(path: &Path) -> io::Result<Local> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let name = path.file_name().and_then(OsStr::to_str).ok_or(io::ErrorKind::InvalidInput)?;
        Ok(Local { folder: Held::open(folder)?, name: name.to_owned() })
    }

    /// Its text; none if there is no file.
    ///
    /// # Errors
    /// When it cannot be read, is a link, or is too large.
    pub fn read(&self) -> io::Result<Option<Text>> {
        let file = match self.folder.file(&self.name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let facts = file.metadata()?;
        let mut bytes = Vec::new();
        file.take(BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
        if bytes.len() > BYTES_MAX {
            return Err(io::Error::other(format!("it has more than {} MiB", BYTES_MAX >> 20)));
        }
        Ok(Some(Text { bytes, changed: i128::from(facts.mtime()) * 1_000_000_000 + i128::from(facts.mtime_nsec()) }))
    }

    /// Replaces it; only its owner may read one that was not there.
    ///
    /// # Errors
    /// When it cannot be written; the old one is there then.
    pub fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let beside = format!(".{}.{}", self.name, std::process::id());
        let written = self.written(&beside, bytes);
        if written.is_err() {
            let _ = self.folder.remove(&beside);
        }
        written
    }

    fn written(&self, beside: &str, bytes: &[u8]) -> io::Result<()> {
        let mut file = self.folder.create_private(beside)?;
        file.write_all(bytes)?;
        if let Ok(found) = self.folder.file(&self.name).and_then(|found| found.metadata()) {
            let _ = fchown(&file, Some(found.uid()), Some(found.gid()));
            file.set_permissions(found.permissions())?;
        }
        file.sync_all()?;
        self.folder.rename(beside, &self.folder, &self.name)?;
        self.folder.sync()
    }

    /// Keeps the file under another name, which it returns.
    ///
    /// # Errors
    /// When that cannot be.
    pub fn keep_aside(&self, word: &str) -> io::Result<PathBuf> {
        for number in 1..=KEPT_MAX {
            let name = match number {
                1 => format!("{}.{word}", self.name),
                _ => format!("{}.{word}.{number}", self.name),
            };
            match self.folder.link_as(&self.name, &name) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                linked => return linked.map(|()| self.folder.path().join(name)),
            }
        }
        Err(io::Error::other(format!("{KEPT_MAX} files {}.{word} are there: remove them", self.name)))
    }

    /// The version that it was last equal to.
    pub fn memory(&self) -> Option<Memory> {
        let text = self.folder.read(&self.synced()).ok()?;
        let text = str::from_utf8(&text).ok()?;
        let mut words = text.trim_end().split(' ');
        let number = words.next()?.parse().ok()?;
        let digest = text::hex::decode(words.next()?.as_bytes())?.try_into().ok()?;
        Some(Memory { version: Version { number, digest }, changed: words.next()?.parse().ok()? })
    }

    /// Remembers that it is equal to a version.
    ///
    /// # Errors
    /// When that cannot be written.
    pub fn remember(&self, Memory { version, changed }: Memory) -> io::Result<()> {
        let (name, beside) = (self.synced(), format!(".{}.synced", self.name));
        let mut file = self.folder.create_private(&beside)?;
        writeln!(file, "{} {} {changed}", version.number, text::hex::encode(&version.digest))?;
        file.sync_all()?;
        self.folder.rename(&beside, &self.folder, &name)
    }

    fn synced(&self) -> String {
        format!("{}.synced", self.name)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_file_is_replaced_with_its_mode_and_links_are_not_followed() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("accounts");
        let local = Local::at(&path).unwrap();
        assert!(local.read().unwrap().is_none() && local.memory().is_none());
        local.write(b"one").unwrap();
        let mode = || std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(), 0o600);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        local.write(b"two").unwrap();
        let text = local.read().unwrap().unwrap();
        assert_eq!((text.bytes.as_slice(), mode()), (&b"two"[..], 0o640));
        let memory = Memory { version: Version { number: 7, digest: [9; 32] }, changed: text.changed };
        local.remember(memory).unwrap();
        assert_eq!(local.memory(), Some(memory));
        assert_eq!(local.keep_aside("conflict").unwrap(), place.path().join("accounts.conflict"));
        assert_eq!(local.keep_aside("conflict").unwrap(), place.path().join("accounts.conflict.2"));
        local.write(b"three").unwrap();
        assert_eq!(std::fs::read(place.path().join("accounts.conflict")).unwrap(), b"two");
        // The owner of the folder leads nobody to other files.
        let other = place.path().join("other");
        std::fs::write(&other, "theirs").unwrap();
        std::fs::remove_file(&path).unwrap();
        symlink(&other, &path).unwrap();
        assert!(local.read().is_err());
        local.write(b"four").unwrap();
        assert_eq!(std::fs::read(&other).unwrap(), b"theirs");
        assert_eq!(std::fs::read(&path).unwrap(), b"four");
    }
}
