//! Table of clean files, from one mount to the next.
//!
//! A table with an entry a file: a tag of its identity, when it was last used, and a digest over identity, stamp ([`Stamp`]) and the
//! generation of signatures and settings that found nothing in it ([`Generation`]). A file that has changed in any of these has
//! another digest; its entry still says that it was known, and when it was used ([`Verdicts::standing`]). The table has a fixed
//! size, and in each of its rows the newest replaces the oldest. Tags and digests are keyed with a secret of the file that the
//! table is kept in: nobody who can write files can make one that is taken for another.
//!
//! The same table has contents ([`Verdicts::recall`]): what took long to be inspected, by a digest of size, SHA-256 and generation, and a
//! tag of size and generation, so that nothing is digested whose size is not that of one of them.
//!
//! The file: [`MAGIC`], 32 bytes of secret, the rows, SHA-256 of all that. It is replaced whole; one that is broken, of another
//! version, or belongs to somebody else, is as none. Bounds: [`WIDTH`] entries of [`ENTRY_BYTES`] a row, in memory and on the disk:
//! 5 MiB with [`ROWS`] rows.

use std::fs::File;
use std::io::{self, Read, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use rustix::fs::{Mode, OFlags, openat, renameat};

use crate::judge::Generation;
use crate::node::{Inode, Stamp, facts};

const MAGIC: &[u8; 16] = b"sluice verdicts2";

/// Rows of a table for some 200,000 files.
pub const ROWS: usize = 1 << 16;

/// Entries of a row.
const WIDTH: usize = 4;

const DIGEST_BYTES: usize = 12;
const TAG_BYTES: usize = 4;
const SECRET_BYTES: usize = 32;

/// A digest, a tag, and seconds since 1970.
const ENTRY_BYTES: usize = DIGEST_BYTES + TAG_BYTES + 4;

/// Bytes that are digested at a time.
const PIECE_BYTES: usize = 128 << 10;

/// Files that are used more often are not worth writing the table for.
const USE_SECONDS: u32 = 3600;

/// Name of the file in its folder.
const NAME: &str = "verdicts";

/// Bytes of the file around its rows.
const FRAME_BYTES: usize = MAGIC.len() + SECRET_BYTES + 32;

/// A file as it was before it was inspected, and by what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Before {
    inode: Inode,
    stamp: Stamp,
    generation: Generation,
}

/// Standing of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It was clean, and is as it was.
    Clean,
    /// It was clean by other signatures, or before it changed; and used last at this time, in seconds since 1970.
    Once(u32),
    /// Nothing, or no more.
    Unknown,
}

/// One file; nobody's if it is all zeros.
#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    digest: [u8; DIGEST_BYTES],
    tag: [u8; TAG_BYTES],
    used: u32,
}

impl Entry {
    fn read(bytes: &[u8; ENTRY_BYTES]) -> Option<Entry> {
        let (digest, rest) = bytes.split_first_chunk()?;
        let (tag, used) = rest.split_first_chunk()?;
        Some(Entry { digest: *digest, tag: *tag, used: u32::from_le_bytes(*used.first_chunk()?) })
    }
}

type Row = [Entry; WIDTH];

/// The table.
pub struct Verdicts {
    secret: [u8; SECRET_BYTES],
    set: Mutex<Set>,
    folder: Option<OwnedFd>,
    /// One writes at a time: whoever comes meanwhile waits until it is written.
    writes: Mutex<()>,
}

struct Set {
    rows: Vec<Row>,
    has_changed: bool,
}

impl Set {
    fn row(&mut self, place: &Place) -> &mut Row {
        let count = self.rows.len();
        &mut self.rows[usize::try_from(place.row % count as u64).unwrap_or(0)]
    }

    fn entry(&mut self, place: &Place) -> Option<&mut Entry> {
        self.row(place).iter_mut().find(|entry| entry.tag == place.tag)
    }
}

/// Where a file's entry is.
struct Place {
    row: u64,
    tag: [u8; TAG_BYTES],
}

impl Place {
    fn of(whole: &[u8; 32]) -> Place {
        let (row, rest) = whole.split_first_chunk().unwrap_or((&[0; 8], &[]));
        Place { row: u64::from_be_bytes(*row), tag: *rest.first_chunk().unwrap_or(&[0; TAG_BYTES]) }
    }
}

/// The SHA-256 of a content.
pub type Sum = [u8; 32];

/// The SHA-256 of a content of this size; nothing if it has another.
///
/// # Errors
/// When it cannot be read.
pub fn sum(mut content: impl Read, size: u64) -> io::Result<Option<Sum>> {
    let (mut state, mut length) = (digest::sha256::INITIAL, 0);
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let mut filled = 0;
        while filled < piece.len() {
            match content.read(&mut piece[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        length += filled as u64;
        let (blocks, rest) = piece[..filled].as_chunks();
        digest::sha256::compress(&mut [(&mut state, blocks)]);
        if filled < piece.len() {
            return Ok((length == size).then(|| digest::sha256::finish(state, rest, length)));
        }
    }
}

impl Verdicts {
    /// As they are kept in a folder; without a folder for as long as it is held. There are so many rows, at least one.
    ///
    /// # Errors
    /// When there is no randomness.
    pub fn open(folder: Option<OwnedFd>, rows: usize) -> io::Result<Verdicts> {
        let rows = rows.max(1);
        let kept = folder.as_ref().and_then(|folder| load(folder, rows).ok());
        let (secret, rows) = match kept {
            Some(kept) => kept,
            None => (random()?, vec![Row::default(); rows]),
        };
        Ok(Verdicts { secret, set: Mutex::new(Set { rows, has_changed: false }), folder, writes: Mutex::new(()) })
    }

    fn set(&self) -> MutexGuard<'_, Set> {
        self.set.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn place(&self, inode: Inode) -> Place {
        Place::of(&digest::sha256::digest(&[&self.secret[..], &of(inode)].concat()))
    }

    fn digest(&self, inode: Inode, stamp: &Stamp, generation: Generation) -> [u8; DIGEST_BYTES] {
        let mut text = Vec::with_capacity(128);
        text.extend(self.secret);
        text.extend(of(inode));
        text.extend(stamp.size.to_le_bytes());
        for time in [stamp.born, stamp.mtime, stamp.ctime] {
            text.extend(time.to_le_bytes());
        }
        text.extend(generation.bytes());
        *digest::sha256::digest(&text).first_chunk().unwrap_or(&[0; DIGEST_BYTES])
    }

    /// The standing of a file in its current state.
    pub fn standing(&self, inode: Inode, stamp: &Stamp, generation: Generation) -> Standing {
        let (place, digest) = (self.place(inode), self.digest(inode, stamp, generation));
        match self.set().entry(&place) {
            Some(entry) if entry.digest == digest => Standing::Clean,
            Some(entry) => Standing::Once(entry.used),
            None => Standing::Unknown,
        }
    }

    /// Whether this was clean.
    pub fn is_clean(&self, inode: Inode, stamp: &Stamp, generation: Generation) -> bool {
        self.standing(inode, stamp, generation) == Standing::Clean
    }

    /// Whether an open file is known to be clean as it is now; if it is not, what has to be handed to [`Verdicts::learn`] when
    /// it was inspected. May wait some milliseconds for the kernel's clock if the file was changed a moment ago.
    ///
    /// # Errors
    /// When the kernel says nothing of the file.
    pub fn ask(&self, file: &File, generation: Generation) -> io::Result<Option<Before>> {
        let facts = facts(file)?;
        let before = Before { inode: Inode::of(&facts), stamp: Stamp::of(&facts), generation };
        if self.is_clean(before.inode, &before.stamp, generation) {
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
            self.add(before.inode, &before.stamp, before.generation);
        }
        Ok(())
    }

    /// Adds a file that is clean by the signatures of this generation.
    pub fn add(&self, inode: Inode, stamp: &Stamp, generation: Generation) {
        let (place, digest) = (self.place(inode), self.digest(inode, stamp, generation));
        let mut set = self.set();
        let row = set.row(&place);
        let at = row.iter().position(|entry| entry.tag == place.tag).unwrap_or(WIDTH - 1);
        row[..=at].rotate_right(1);
        row[0] = Entry { digest, tag: place.tag, used: now() };
        set.has_changed = true;
    }

    /// Whether a content of this size is known to be clean, by this generation.
    pub fn has_size(&self, size: u64, generation: Generation) -> bool {
        let (place, _) = self.content(size, &[0; 32], generation);
        self.set().entry(&place).is_some()
    }

    /// Whether a content of this size and SHA-256 is. If not, the oldest of its size is known no longer: where contents of one size
    /// are all others, nobody digests them for long.
    pub fn recall(&self, size: u64, sum: &Sum, generation: Generation) -> bool {
        let (place, digest) = self.content(size, sum, generation);
        let mut set = self.set();
        set.has_changed = true;
        let same = |entry: &&mut Entry| entry.tag == place.tag;
        let mut known = set.row(&place).iter_mut().filter(same);
        if let Some(entry) = known.find(|entry| entry.digest == digest) {
            entry.used = now();
            return true;
        }
        set.row(&place).iter_mut().rfind(same).map(std::mem::take);
        false
    }

    /// A content is clean, by this generation.
    pub fn add_content(&self, size: u64, sum: &Sum, generation: Generation) {
        let (place, digest) = self.content(size, sum, generation);
        let mut set = self.set();
        let row = set.row(&place);
        let at = row.iter().position(|entry| entry.tag == place.tag && entry.digest == digest).unwrap_or(WIDTH - 1);
        row[..=at].rotate_right(1);
        row[0] = Entry { digest, tag: place.tag, used: now() };
        set.has_changed = true;
    }

    fn content(&self, size: u64, sum: &Sum, generation: Generation) -> (Place, [u8; DIGEST_BYTES]) {
        let text = [&self.secret[..], b"content", &size.to_le_bytes(), generation.bytes()].concat();
        let whole = digest::sha256::digest(&[&text[..], sum].concat());
        (Place::of(&digest::sha256::digest(&text)), *whole.first_chunk().unwrap_or(&[0; DIGEST_BYTES]))
    }

    /// Marks a verdict as used now.
    pub fn touch(&self, inode: Inode) {
        let (place, now) = (self.place(inode), now());
        let mut set = self.set();
        let Some(entry) = set.entry(&place) else { return };
        let is_news = now.abs_diff(entry.used) >= USE_SECONDS;
        entry.used = now;
        set.has_changed |= is_news;
    }

    /// Nothing is known of it any more; whether something was.
    pub fn forget(&self, inode: Inode) -> bool {
        let place = self.place(inode);
        let mut set = self.set();
        let was_known = set.entry(&place).map(std::mem::take).is_some();
        set.has_changed |= was_known;
        was_known
    }

    /// Writes the table to its folder, if something has changed.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn save(&self) -> io::Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let _turn = self.writes.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = MAGIC.to_vec();
        bytes.extend(self.secret);
        {
            let mut set = self.set();
            if !std::mem::take(&mut set.has_changed) {
                return Ok(());
            }
            bytes.reserve_exact(set.rows.len() * WIDTH * ENTRY_BYTES + 32);
            for entry in set.rows.iter().flatten() {
                bytes.extend(entry.digest);
                bytes.extend(entry.tag);
                bytes.extend(entry.used.to_le_bytes());
            }
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

/// A file's identity, as it is digested.
fn of(inode: Inode) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&inode.device.0.to_le_bytes());
    bytes[4..8].copy_from_slice(&inode.device.1.to_le_bytes());
    bytes[8..].copy_from_slice(&inode.number.to_le_bytes());
    bytes
}

/// Seconds since 1970.
pub fn now() -> u32 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u32::try_from(since.as_secs()).unwrap_or(u32::MAX)
}

fn random() -> io::Result<[u8; SECRET_BYTES]> {
    let mut secret = [0; SECRET_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut secret)?;
    Ok(secret)
}

type Kept = ([u8; SECRET_BYTES], Vec<Row>);

fn load(folder: &OwnedFd, rows: usize) -> io::Result<Kept> {
    let broken = || io::Error::from(io::ErrorKind::InvalidData);
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat(folder, NAME, flags, Mode::empty())?);
    let facts = file.metadata()?;
    let is_ours = facts.uid() == rustix::process::geteuid().as_raw() && facts.mode() & 0o077 == 0;
    let file_bytes = FRAME_BYTES + rows * WIDTH * ENTRY_BYTES;
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
    let entries: Vec<Entry> = rows.as_chunks().0.iter().filter_map(Entry::read).collect();
    Ok((*secret, entries.as_chunks().0.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAMP: Stamp = Stamp { born: 3, size: 5, mtime: 6, ctime: 8 };

    fn inode(number: u64) -> Inode {
        Inode { device: (1, 2), number }
    }

    fn generation(text: &str) -> Generation {
        Generation::of(text.as_bytes())
    }

    fn opened(folder: &tempfile::TempDir) -> Verdicts {
        let folder = File::open(folder.path()).expect("the folder").into();
        Verdicts::open(Some(folder), ROWS).expect("a table")
    }

    #[test]
    fn what_was_clean_is_clean_after_a_restart_and_not_for_other_signatures() {
        let folder = tempfile::tempdir().expect("a folder");
        let verdicts = opened(&folder);
        let (one, two) = (generation("one"), generation("two"));
        verdicts.add(inode(1), &STAMP, one);
        verdicts.save().expect("it is written");
        let again = opened(&folder);
        assert!(again.is_clean(inode(1), &STAMP, one));
        assert!(matches!(again.standing(inode(1), &STAMP, two), Standing::Once(used) if used > 0));
        for other in [inode(2), Inode { device: (1, 3), ..inode(1) }] {
            assert_eq!(again.standing(other, &STAMP, one), Standing::Unknown);
        }
        for changed in [
            Stamp { size: 6, ..STAMP },
            Stamp { mtime: 7, ..STAMP },
            Stamp { ctime: 9, ..STAMP },
            Stamp { born: 4, ..STAMP },
        ] {
            assert!(matches!(again.standing(inode(1), &changed, one), Standing::Once(_)), "{changed:?}");
        }
        assert!(again.forget(inode(1)) && !again.forget(inode(1)));
        assert_eq!(again.standing(inode(1), &STAMP, one), Standing::Unknown);
    }

    #[test]
    fn a_content_is_known_by_size_digest_and_generation() {
        let verdicts = Verdicts::open(None, 1).expect("a table");
        let (one, two) = (generation("one"), generation("two"));
        let of = |content: &[u8]| sum(content, content.len() as u64).expect("it is read").expect("of its size");
        for length in [0, 1, 63, 64, 65, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 64, 3 * PIECE_BYTES + 17] {
            let content: Vec<u8> = (0..length).map(|at| at as u8).collect();
            assert_eq!(of(&content), digest::sha256::digest(&content), "{length}");
            assert_eq!(sum(&content[..], length as u64 + 1).expect("it is read"), None);
        }
        assert!(!verdicts.has_size(3, one));
        verdicts.add_content(3, &of(b"abc"), one);
        verdicts.add_content(3, &of(b"xyz"), one);
        assert!(verdicts.has_size(3, one) && !verdicts.has_size(4, one) && !verdicts.has_size(3, two));
        assert!(verdicts.recall(3, &of(b"abc"), one) && verdicts.recall(3, &of(b"xyz"), one));
        assert!(!verdicts.recall(3, &of(b"abc"), two) && !verdicts.recall(4, &of(b"abc"), one));
        // Each of another content costs one its place.
        assert!(!verdicts.recall(3, &of(b"123"), one) && verdicts.recall(3, &of(b"xyz"), one));
        assert!(!verdicts.recall(3, &of(b"123"), one) && !verdicts.has_size(3, one));
    }

    #[test]
    fn a_file_has_one_entry() {
        let verdicts = Verdicts::open(None, 1).expect("a table");
        let generation = generation("one");
        for number in 0..WIDTH as u64 {
            verdicts.add(inode(number), &STAMP, generation);
        }
        for mtime in 0..100 {
            verdicts.add(inode(0), &Stamp { mtime, ..STAMP }, generation);
        }
        assert!((1..WIDTH as u64).all(|number| verdicts.is_clean(inode(number), &STAMP, generation)));
        assert!(verdicts.is_clean(inode(0), &Stamp { mtime: 99, ..STAMP }, generation));
        assert!(!verdicts.is_clean(inode(0), &Stamp { mtime: 98, ..STAMP }, generation));
    }

    #[test]
    fn a_broken_file_is_as_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let verdicts = opened(&folder);
        verdicts.add(inode(1), &STAMP, generation("one"));
        verdicts.save().expect("it is written");
        let path = folder.path().join(NAME);
        let mut bytes = std::fs::read(&path).expect("the file");
        bytes[40] ^= 1;
        std::fs::write(&path, bytes).expect("it is broken");
        assert!(!opened(&folder).is_clean(inode(1), &STAMP, generation("one")));
    }

    #[test]
    fn a_hundred_thousand_files_fit() {
        let verdicts = Verdicts::open(None, ROWS).expect("a table");
        let generation = generation("one");
        (0..100_000).for_each(|number| verdicts.add(inode(number), &STAMP, generation));
        let known = (0..100_000).filter(|&number| verdicts.is_clean(inode(number), &STAMP, generation)).count();
        assert!(known > 97_000, "{known}");
    }
}
