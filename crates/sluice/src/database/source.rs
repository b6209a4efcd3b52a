//! The files that signatures come from, and whether they are still what they were.
//!
//! A file is taken to be the same while its size, its times, its inode and its device are. A time cannot tell two changes
//! within one tick of the clock apart: of a file that was read right after it was changed, and of one whose times are
//! others, the content is compared by its SHA-256.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// So long after its last change a file may have been changed again without a trace in its times.
const TICK_SECONDS: i64 = 2;
/// Bytes read at a time.
const PIECE_BYTES: usize = 128 << 10;

/// A file as it was when it was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// Its path.
    pub path: String,
    /// Identity of the file when it was read.
    pub stamp: Stamp,
    /// Whether the stamp alone tells it from what it may be later.
    pub settled: bool,
    /// The digest of its content, in hexadecimal.
    pub sha256: String,
}

/// Identity of a file, found without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// Its size.
    pub bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
    inode: (u64, u64),
}

impl Stamp {
    fn of(facts: &Metadata) -> Stamp {
        Stamp {
            bytes: facts.len(),
            modified: (facts.mtime(), facts.mtime_nsec()),
            changed: (facts.ctime(), facts.ctime_nsec()),
            inode: (facts.dev(), facts.ino()),
        }
    }
}

impl Source {
    /// Whether the file has still the same content.
    pub fn is_current(&self) -> bool {
        let Ok(facts) = std::fs::metadata(&self.path) else { return false };
        if facts.len() != self.stamp.bytes {
            return false;
        }
        if self.settled && Stamp::of(&facts) == self.stamp {
            return true;
        }
        Reading::open(Path::new(&self.path))
            .and_then(|reading| reading.copy(&mut |_| Ok(())))
            .is_ok_and(|now| now.sha256 == self.sha256)
    }
}

/// Source of a file, if it is one of these.
pub fn known<'s>(sources: &'s [Source], file: &Path) -> Option<&'s Source> {
    sources.iter().find(|source| Path::new(&source.path) == file)
}

/// A file being read.
pub struct Reading {
    file: File,
    path: String,
    /// Identity of the file.
    pub stamp: Stamp,
}

impl Reading {
    /// Begins to read.
    ///
    /// # Errors
    /// Those of opening a file.
    pub fn open(path: &Path) -> io::Result<Reading> {
        let file = File::open(path)?;
        let stamp = Stamp::of(&file.metadata()?);
        Ok(Reading { file, path: path.display().to_string(), stamp })
    }

    /// Hands the content on, piece by piece, and says what the file was.
    ///
    /// # Errors
    /// Those of reading and of `take`; and if the file was changed meanwhile.
    pub fn copy(mut self, take: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<Source> {
        let (mut digest, mut piece, mut bytes) = (Sha256::new(), vec![0; PIECE_BYTES], 0);
        loop {
            let count = self.file.read(&mut piece)?;
            bytes += count as u64;
            if count == 0 || bytes > self.stamp.bytes {
                break;
            }
            digest.update(&piece[..count]);
            take(&piece[..count])?;
        }
        if bytes != self.stamp.bytes || Stamp::of(&self.file.metadata()?) != self.stamp {
            return Err(io::Error::other("changed while being read"));
        }
        let digest: [u8; 32] = digest.finalize().into();
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64);
        Ok(Source {
            settled: self.stamp.changed.0 + TICK_SECONDS < now,
            sha256: digest.iter().map(|byte| format!("{byte:02x}")).collect(),
            path: self.path,
            stamp: self.stamp,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &Path) -> Source {
        Reading::open(path).and_then(|reading| reading.copy(&mut |_| Ok(()))).expect("a file")
    }

    #[test]
    fn a_change_is_seen_even_if_size_and_time_are_the_same() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.ndb");
        std::fs::write(&path, "A:0:*:6162").expect("written");
        let source = read(&path);
        assert!(source.is_current() && !source.settled);
        std::fs::write(&path, "B:0:*:6162").expect("written");
        assert!(!source.is_current());
        std::fs::write(&path, "A:0:*:6162").expect("written");
        assert!(source.is_current(), "another time, the same content");
        std::fs::remove_file(&path).expect("removed");
        assert!(!source.is_current());
    }
}
