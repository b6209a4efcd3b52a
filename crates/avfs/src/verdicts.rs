//! What is known to be clean, from one mount to the next.
//!
//! A set of digests: each is over a file's identity, its stamp ([`Stamp`]), and the generation of signatures and settings that
//! found nothing in it. A file that has changed in any of these has another digest, so nothing is ever taken out; the set has
//! a fixed size, and in each of its rows the newest replaces the oldest. The digests are keyed with a secret of the file that
//! the set is kept in: nobody who can write files can make one that is taken for another.
//!
//! The file: [`MAGIC`], 32 bytes of secret, the rows, SHA-256 of all that. It is replaced whole; one that is broken, or
//! belongs to somebody else, is as none. Bounds: [`WIDTH`] digests of 16 bytes a row, in memory and on the disk: 4 MiB with
//! [`ROWS`] rows.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{Mode, OFlags, openat, renameat};

use crate::node::{Inode, Stamp, facts};

const MAGIC: &[u8; 16] = b"sluice verdicts1";

/// Rows of a set for some 200,000 files.
pub const ROWS: usize = 1 << 16;

/// Digests of a row.
const WIDTH: usize = 4;

const DIGEST_BYTES: usize = 16;
const SECRET_BYTES: usize = 32;

/// What the file is called in its folder.
const NAME: &str = "verdicts";

/// Bytes of the file around its rows.
const FRAME_BYTES: usize = MAGIC.len() + SECRET_BYTES + 32;

type Digest = [u8; DIGEST_BYTES];

/// A file as it was before it was inspected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Before {
    inode: Inode,
    stamp: Stamp,
}

/// The set.
pub struct Verdicts {
    secret: [u8; SECRET_BYTES],
    generation: Vec<u8>,
    set: Mutex<Set>,
    folder: Option<OwnedFd>,
}

struct Set {
    rows: Vec<[Digest; WIDTH]>,
    has_changed: bool,
}

impl Set {
    fn row(&mut self, number: u64) -> &mut [Digest; WIDTH] {
        let count = self.rows.len();
        &mut self.rows[usize::try_from(number % count as u64).unwrap_or(0)]
    }
}

impl Verdicts {
    /// As they are kept in a folder, for this generation of signatures; without a folder for as long as it is held. There are
    /// so many rows, at least one.
    ///
    /// # Errors
    /// When there is no randomness.
    pub fn open(folder: Option<OwnedFd>, generation: Vec<u8>, rows: usize) -> io::Result<Verdicts> {
        let rows = rows.max(1);
        let kept = folder.as_ref().and_then(|folder| load(folder, rows).ok());
        let (secret, rows) = match kept {
            Some(kept) => kept,
            None => (random()?, vec![[[0; DIGEST_BYTES]; WIDTH]; rows]),
        };
        Ok(Verdicts { secret, generation, set: Mutex::new(Set { rows, has_changed: false }), folder })
    }

    fn set(&self) -> MutexGuard<'_, Set> {
        self.set.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The row of what is known of it, and the digest.
    fn digest(&self, inode: Inode, stamp: &Stamp) -> (u64, Digest) {
        let mut text = Vec::with_capacity(160);
        text.extend(self.secret);
        for part in [u64::from(inode.device.0), u64::from(inode.device.1), inode.number, stamp.size] {
            text.extend(part.to_le_bytes());
        }
        for time in [stamp.born, stamp.mtime, stamp.ctime] {
            text.extend(time.to_le_bytes());
        }
        text.extend(&self.generation);
        let whole = digest::sha256::digest(&text);
        let mut digest = [0; DIGEST_BYTES];
        digest.copy_from_slice(&whole[..DIGEST_BYTES]);
        let (_, row) = whole.split_last_chunk().unwrap_or((&[], &[0; 8]));
        (u64::from_be_bytes(*row), digest)
    }

    /// Whether this was clean.
    pub fn is_clean(&self, inode: Inode, stamp: &Stamp) -> bool {
        let (row, digest) = self.digest(inode, stamp);
        self.set().row(row).contains(&digest)
    }

    /// Whether an open file is known to be clean as it is now; if it is not, what has to be handed to [`Verdicts::learn`] when
    /// it was inspected. May wait some milliseconds for the kernel's clock if the file was changed a moment ago.
    ///
    /// # Errors
    /// When the kernel says nothing of the file.
    pub fn ask(&self, file: &File) -> io::Result<Option<Before>> {
        let facts = facts(file)?;
        let before = Before { inode: Inode::of(&facts), stamp: Stamp::of(&facts) };
        if self.is_clean(before.inode, &before.stamp) {
            return Ok(None);
        }
        before.stamp.outlast();
        Ok(Some(before))
    }

    /// A file that was not known was inspected, and nothing was found: that counts if it is still as it was.
    ///
    /// # Errors
    /// When the kernel says nothing of the file.
    pub fn learn(&self, before: &Before, file: &File) -> io::Result<()> {
        if Stamp::of_file(file)? == before.stamp {
            self.add(before.inode, &before.stamp);
        }
        Ok(())
    }

    /// It is clean.
    pub fn add(&self, inode: Inode, stamp: &Stamp) {
        let (row, digest) = self.digest(inode, stamp);
        let mut set = self.set();
        let row = set.row(row);
        let place = row.iter().position(|other| *other == digest).unwrap_or(WIDTH - 1);
        row[..=place].rotate_right(1);
        row[0] = digest;
        set.has_changed = true;
    }

    /// Writes the set to its folder, if something has changed.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn save(&self) -> io::Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let mut bytes = MAGIC.to_vec();
        bytes.extend(self.secret);
        {
            let mut set = self.set();
            if !std::mem::take(&mut set.has_changed) {
                return Ok(());
            }
            set.rows.iter().flatten().for_each(|digest| bytes.extend(digest));
        }
        bytes.extend(digest::sha256::digest(&bytes));
        let part = format!(".{NAME}.part");
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(openat(folder, &part, flags, Mode::RUSR | Mode::WUSR)?);
        file.write_all(&bytes)?;
        file.sync_all()?;
        renameat(folder, &part, folder, NAME)?;
        Ok(())
    }
}

fn random() -> io::Result<[u8; SECRET_BYTES]> {
    let mut secret = [0; SECRET_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut secret)?;
    Ok(secret)
}

type Kept = ([u8; SECRET_BYTES], Vec<[Digest; WIDTH]>);

fn load(folder: &OwnedFd, rows: usize) -> io::Result<Kept> {
    let broken = || io::Error::from(io::ErrorKind::InvalidData);
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat(folder, NAME, flags, Mode::empty())?);
    let facts = file.metadata()?;
    let is_ours = facts.uid() == rustix::process::geteuid().as_raw() && facts.mode() & 0o077 == 0;
    let file_bytes = FRAME_BYTES + rows * WIDTH * DIGEST_BYTES;
    if !is_ours || !facts.is_file() || facts.len() != file_bytes as u64 {
        return Err(broken());
    }
    let mut bytes = Vec::with_capacity(file_bytes);
    file.take(file_bytes as u64).read_to_end(&mut bytes)?;
    let (content, sum) = bytes.split_last_chunk::<32>().ok_or_else(broken)?;
    if digest::sha256::digest(content) != *sum {
        return Err(broken());
    }
    let content = content.strip_prefix(MAGIC).ok_or_else(broken)?;
    let (secret, rows) = content.split_first_chunk().ok_or_else(broken)?;
    let digests: Vec<Digest> = rows.as_chunks().0.to_vec();
    let rows = digests.as_chunks().0.to_vec();
    Ok((*secret, rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAMP: Stamp = Stamp { born: 3, size: 5, mtime: 6, ctime: 8 };

    fn inode(number: u64) -> Inode {
        Inode { device: (1, 2), number }
    }

    fn opened(folder: &tempfile::TempDir, generation: &[u8]) -> Verdicts {
        let folder = File::open(folder.path()).expect("the folder").into();
        Verdicts::open(Some(folder), generation.to_vec(), ROWS).expect("a set")
    }

    #[test]
    fn what_was_clean_is_clean_after_a_restart_and_not_for_other_signatures() {
        let folder = tempfile::tempdir().expect("a folder");
        let verdicts = opened(&folder, b"one");
        verdicts.add(inode(1), &STAMP);
        verdicts.save().expect("it is written");
        let (again, other) = (opened(&folder, b"one"), opened(&folder, b"two"));
        assert!(again.is_clean(inode(1), &STAMP) && !again.is_clean(inode(2), &STAMP));
        assert!(!other.is_clean(inode(1), &STAMP));
        assert!(!again.is_clean(Inode { device: (1, 3), ..inode(1) }, &STAMP));
        for changed in [
            Stamp { size: 6, ..STAMP },
            Stamp { mtime: 7, ..STAMP },
            Stamp { ctime: 9, ..STAMP },
            Stamp { born: 4, ..STAMP },
        ] {
            assert!(!again.is_clean(inode(1), &changed), "{changed:?}");
        }
    }

    #[test]
    fn a_broken_file_is_as_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let verdicts = opened(&folder, b"one");
        verdicts.add(inode(1), &STAMP);
        verdicts.save().expect("it is written");
        let path = folder.path().join(NAME);
        let mut bytes = std::fs::read(&path).expect("the file");
        bytes[40] ^= 1;
        std::fs::write(&path, bytes).expect("it is broken");
        assert!(!opened(&folder, b"one").is_clean(inode(1), &STAMP));
    }

    #[test]
    fn a_hundred_thousand_files_fit() {
        let verdicts = Verdicts::open(None, Vec::new(), ROWS).expect("a set");
        (0..100_000).for_each(|number| verdicts.add(inode(number), &STAMP));
        let known = (0..100_000).filter(|&number| verdicts.is_clean(inode(number), &STAMP)).count();
        assert!(known > 97_000, "{known}");
    }
}
