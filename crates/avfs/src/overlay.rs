//! Changes of a file without a verdict.
//!
//! It lies over the file below and not in it: in a file without a name ([`Staging`]) are the bytes that were written, in
//! [`Ranges`] where; of the file below shows what lies between them and before `base`, the shortest that the file was cut
//! to. Whatever is neither reads as zeros. [`commit`](Overlay::commit) brings it down, and dropping it takes all of it back.
//! When the process is killed, the kernel drops it.
//!
//! Bounds: [`RANGES_MAX`] ranges, gaps are filled beyond; [`SMALL_BYTES`] of a file in memory, [`MEMORY_BYTES`] of all.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd, RawFd};
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use rustix::fs::{
    AtFlags, FallocateFlags, MemfdFlags, Mode, OFlags, SeekFrom, Timespec, Timestamps, UTIME_OMIT, copy_file_range,
    fallocate, fstat, ftruncate, futimens, memfd_create, openat, seek, unlinkat,
};
use rustix::io::Errno;

use crate::judge::{Current, Generation, Hit, Judging, Unjudged, guarded};
use crate::ranges::{Place, Ranges};

/// Ranges of one file.
const RANGES_MAX: usize = 4096;

/// Memory for the changes of one file.
const SMALL_BYTES: u64 = 1 << 20;

/// Memory for the changes of all files together.
const MEMORY_BYTES: u64 = 64 << 20;

/// Bytes copied at a time.
const PIECE_BYTES: usize = 256 << 10;

/// The longest file, as the kernel has it.
const LONGEST: u64 = i64::MAX as u64;

/// Where files without a name are made.
#[derive(Debug)]
pub struct Staging {
    folder: OwnedFd,
    in_memory: AtomicU64,
    /// For names that live as long as it takes to open them.
    number: AtomicU64,
    /// Descriptors from this number on are for others.
    reserve: RawFd,
}

impl Staging {
    /// In a folder on the file system that files will be committed to; descriptors from `reserve` on are left to others.
    pub fn new(folder: OwnedFd, reserve: RawFd) -> Staging {
        Staging { folder, in_memory: AtomicU64::new(0), number: AtomicU64::new(0), reserve }
    }

    fn within(&self, file: OwnedFd) -> rustix::io::Result<File> {
        if file.as_raw_fd() < self.reserve { Ok(file.into()) } else { Err(Errno::NFILE) }
    }

    fn small(self: &Arc<Staging>) -> rustix::io::Result<Shadow> {
        if self.in_memory.load(Relaxed) >= MEMORY_BYTES {
            return self.large();
        }
        let file = self.within(memfd_create("sluice", MemfdFlags::CLOEXEC)?)?;
        Ok(Shadow { file, held: Some(0), staging: self.clone() })
    }

    fn large(self: &Arc<Staging>) -> rustix::io::Result<Shadow> {
        let (access, mode) = (OFlags::RDWR | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR);
        let file = match openat(&self.folder, ".", access | OFlags::TMPFILE, mode) {
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {
                let number = self.number.fetch_add(1, Relaxed);
                let name = format!(".sluice-{}-{number}", std::process::id());
                let file = openat(&self.folder, &name, access | OFlags::CREATE | OFlags::EXCL, mode)?;
                unlinkat(&self.folder, &name, AtFlags::empty())?;
                file
            }
            opened => opened?,
        };
        Ok(Shadow { file: self.within(file)?, held: None, staging: self.clone() })
    }
}

/// A file without a name.
#[derive(Debug)]
struct Shadow {
    file: File,
    /// Bytes counted of it, if it is in memory.
    held: Option<u64>,
    staging: Arc<Staging>,
}

impl Drop for Shadow {
    fn drop(&mut self) {
        self.staging.in_memory.fetch_sub(self.held.unwrap_or(0), Relaxed);
    }
}

impl Shadow {
    /// Makes room for more; it goes to the disk if that is too much for memory.
    fn reserve(&mut self, more: u64, ranges: &Ranges) -> rustix::io::Result<()> {
        let Some(held) = &mut self.held else { return Ok(()) };
        let all = self.staging.in_memory.fetch_add(more, Relaxed).saturating_add(more);
        *held = held.saturating_add(more);
        if *held <= SMALL_BYTES && all <= MEMORY_BYTES {
            return Ok(());
        }
        let large = self.staging.large()?;
        for (start, end) in ranges.iter() {
            copy(&self.file, &large.file, start, end)?;
        }
        *self = large;
        Ok(())
    }
}

/// A sequence of writes that is inspected as it comes.
pub struct Stream {
    judging: Mutex<Box<dyn Judging>>,
    /// By which signatures.
    pub generation: Generation,
    /// Offset up to which data was inspected: a write there continues the stream.
    at: u64,
    /// Gives its place back.
    place: Slot,
}

struct Slot(Arc<AtomicUsize>);

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Stream {
    /// From the beginning; none if there are `most` already.
    pub fn begin(current: &Current, count: &Arc<AtomicUsize>, most: usize) -> Option<Stream> {
        if count.fetch_add(1, Relaxed) >= most {
            count.fetch_sub(1, Relaxed);
            return None;
        }
        let place = Slot(count.clone());
        let judging = guarded(|| Ok(current.judge.begin())).ok()?;
        Some(Stream { judging: Mutex::new(judging), generation: current.generation, at: 0, place })
    }

    /// Goes on with what was written at `offset`; an error where it cannot.
    pub fn feed(&mut self, piece: &[u8], offset: u64) -> Result<Option<Hit>, Unjudged> {
        if offset != self.at {
            return Err(Unjudged("not written in order".into()));
        }
        self.at += piece.len() as u64;
        let judging = self.judging.get_mut().unwrap_or_else(PoisonError::into_inner);
        guarded(|| judging.feed(piece))
    }

    /// All was written, up to `size`; none if the stream has not seen that.
    pub fn finish(self, size: u64) -> Option<Result<Option<Hit>, Unjudged>> {
        let Stream { judging, at, place: _place, .. } = self;
        let judging = judging.into_inner().unwrap_or_else(PoisonError::into_inner);
        (at == size).then(|| guarded(|| judging.finish()))
    }
}

fn next_version() -> u64 {
    static VERSIONS: AtomicU64 = AtomicU64::new(0);
    VERSIONS.fetch_add(1, Relaxed)
}

/// Changes over a file.
pub struct Overlay {
    shadow: Shadow,
    dirty: Ranges,
    base: u64,
    size: u64,
    mtime: SystemTime,
    version: u64,
    /// An inspection that has seen all of it so far.
    pub stream: Option<Stream>,
}

impl Overlay {
    /// Nothing, over a file of this size.
    ///
    /// # Errors
    /// When there is no room for it.
    pub fn new(staging: &Arc<Staging>, size: u64) -> rustix::io::Result<Overlay> {
        let shadow = staging.small()?;
        let mtime = SystemTime::now();
        Ok(Overlay { shadow, dirty: Ranges::default(), base: size, size, mtime, version: next_version(), stream: None })
    }

    /// The file's size.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// How much of the file below may show.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// When it was last written, or what was said instead.
    pub fn mtime(&self) -> SystemTime {
        self.mtime
    }

    /// Sets that.
    pub fn set_mtime(&mut self, mtime: SystemTime) {
        self.mtime = mtime;
    }

    /// Changes with each change of the content, and no other overlay has had it: what was said of one that was dropped is said of
    /// none that has taken its place.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Bytes that wait.
    pub fn bytes(&self) -> u64 {
        self.dirty.bytes()
    }

    fn touch(&mut self) {
        self.version = next_version();
        self.mtime = SystemTime::now();
    }

    /// Writes; `below` is the file below.
    ///
    /// # Errors
    /// When it would be too long, or there is no room.
    pub fn write(&mut self, below: &File, data: &[u8], offset: u64) -> rustix::io::Result<()> {
        let end = offset.checked_add(data.len() as u64).filter(|&end| end <= LONGEST).ok_or(Errno::FBIG)?;
        if data.is_empty() {
            return Ok(());
        }
        self.shadow.reserve(data.len() as u64, &self.dirty)?;
        self.shadow.file.write_all_at(data, offset).map_err(errno)?;
        self.dirty.add(offset, end);
        self.size = self.size.max(end);
        self.touch();
        if self.dirty.len() > RANGES_MAX { self.fill(below) } else { Ok(()) }
    }

    /// Cuts the file, or makes it longer.
    ///
    /// # Errors
    /// When that is too long.
    pub fn truncate(&mut self, size: u64) -> rustix::io::Result<()> {
        if size > LONGEST {
            return Err(Errno::FBIG);
        }
        self.dirty.cut(size);
        self.base = self.base.min(size);
        if fstat(&self.shadow.file)?.st_size.cast_unsigned() > size {
            ftruncate(&self.shadow.file, size)?;
        }
        if self.size != size {
            // What is cut away, or added as zeros, no inspection has seen.
            self.stream = None;
        }
        self.size = size;
        self.touch();
        Ok(())
    }

    /// Makes zeros of `start..end`, as far as the file goes, or beyond if it may grow.
    ///
    /// # Errors
    /// When it would be too long, or the shadow cannot be written.
    pub fn zero(&mut self, start: u64, length: u64, grows: bool) -> rustix::io::Result<()> {
        let end = start.checked_add(length).filter(|&end| end <= LONGEST).ok_or(Errno::FBIG)?;
        let inside = end.min(if grows { u64::MAX } else { self.size });
        if start < inside {
            let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            // Nothing lies beyond the shadow's end.
            fallocate(&self.shadow.file, punch, start, inside - start)?;
            self.dirty.add(start, inside);
        }
        if grows {
            self.size = self.size.max(end);
        }
        self.stream = None;
        self.touch();
        Ok(())
    }

    /// Makes it at least this long.
    ///
    /// # Errors
    /// As [`truncate`](Overlay::truncate).
    pub fn extend(&mut self, size: u64) -> rustix::io::Result<()> {
        if size > self.size { self.truncate(size) } else { Ok(()) }
    }

    /// Reads from an offset; fewer bytes at the end only.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn read(&self, below: &File, buffer: &mut [u8], offset: u64) -> rustix::io::Result<usize> {
        let whole =
            usize::try_from(self.size.saturating_sub(offset)).map_or(buffer.len(), |left| buffer.len().min(left));
        let end = offset + whole as u64;
        let mut at = offset;
        while at < end {
            let (until, source) = match self.dirty.place(at) {
                Place::Inside(until) => (until, Some(&self.shadow.file)),
                Place::Outside(next) if at < self.base => (next.unwrap_or(u64::MAX).min(self.base), Some(below)),
                Place::Outside(next) => (next.unwrap_or(u64::MAX), None),
            };
            let until = until.min(end);
            let piece = &mut buffer[(at - offset) as usize..(until - offset) as usize];
            let count = source.map_or(Ok(0), |source| read_all(source, piece, at))?;
            piece[count..].fill(0);
            at = until;
        }
        Ok(whole)
    }

    /// Brings it down to the file below, with its time.
    ///
    /// # Errors
    /// When there is no room; part of it may be there by then.
    pub fn commit(&self, below: &File) -> rustix::io::Result<()> {
        let mut size = fstat(below)?.st_size.cast_unsigned();
        if self.base < size {
            ftruncate(below, self.base)?;
            size = self.base;
        }
        for (start, end) in self.dirty.iter() {
            copy(&self.shadow.file, below, start, end)?;
            size = fstat(below)?.st_size.cast_unsigned().max(size);
        }
        if size != self.size {
            ftruncate(below, self.size)?;
        }
        let omit = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
        futimens(below, &Timestamps { last_access: omit, last_modification: timespec(self.mtime) })
    }

    /// Too many ranges: the narrower half of the gaps is filled with what shows there.
    fn fill(&mut self, below: &File) -> rustix::io::Result<()> {
        let mut gaps = self.dirty.gaps();
        gaps.sort_by_key(|gap| gap.1 - gap.0);
        gaps.truncate(RANGES_MAX / 2);
        let mut piece = vec![0; PIECE_BYTES];
        for (start, end) in gaps {
            let mut at = start;
            while at < end {
                let most = usize::try_from(end - at).map_or(PIECE_BYTES, |left| left.min(PIECE_BYTES));
                let count = self.read(below, &mut piece[..most], at)?;
                self.shadow.reserve(count as u64, &self.dirty)?;
                self.shadow.file.write_all_at(&piece[..count], at).map_err(errno)?;
                at += count as u64;
            }
            self.dirty.add(start, end);
        }
        Ok(())
    }
}

/// Error number of an error of std.
pub fn errno(error: io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}

/// The same time, as the kernel has it.
pub fn timespec(time: SystemTime) -> Timespec {
    let (seconds, nanoseconds) = match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => (i64::try_from(since.as_secs()).unwrap_or(i64::MAX), i64::from(since.subsec_nanos())),
        Err(before) => {
            let before = before.duration();
            let whole = -i64::try_from(before.as_secs()).unwrap_or(i64::MAX);
            match before.subsec_nanos() {
                0 => (whole, 0),
                part => (whole - 1, 1_000_000_000 - i64::from(part)),
            }
        }
    };
    Timespec { tv_sec: seconds, tv_nsec: nanoseconds as _ }
}

/// Reads until the buffer is full or the file ends.
pub fn read_all(file: &File, buffer: &mut [u8], offset: u64) -> rustix::io::Result<usize> {
    let mut count = 0;
    while count < buffer.len() {
        match file.read_at(&mut buffer[count..], offset + count as u64) {
            Ok(0) => break,
            Ok(more) => count += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(errno(error)),
        }
    }
    Ok(count)
}

/// Copies `start..end`, holes as holes.
fn copy(from: &File, to: &File, start: u64, end: u64) -> rustix::io::Result<()> {
    let mut at = start;
    while at < end {
        let data = match seek(from, SeekFrom::Data(at)) {
            Err(Errno::NXIO) => end,
            found => found?.min(end),
        };
        punch(to, at, data)?;
        let hole = if data < end { seek(from, SeekFrom::Hole(data))?.min(end) } else { end };
        copy_data(from, to, data, hole)?;
        at = hole;
    }
    Ok(())
}

fn punch(file: &File, start: u64, end: u64) -> rustix::io::Result<()> {
    let end = end.min(fstat(file)?.st_size.cast_unsigned());
    if start >= end {
        return Ok(());
    }
    match fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, start, end - start) {
        Err(Errno::OPNOTSUPP) => {}
        done => return done,
    }
    let zeros = vec![0; PIECE_BYTES];
    let mut at = start;
    while at < end {
        let count = usize::try_from(end - at).map_or(PIECE_BYTES, |left| left.min(PIECE_BYTES));
        file.write_all_at(&zeros[..count], at).map_err(errno)?;
        at += count as u64;
    }
    Ok(())
}

fn copy_data(from: &File, to: &File, start: u64, end: u64) -> rustix::io::Result<()> {
    let (mut read, mut written) = (start, start);
    while read < end {
        let most = usize::try_from(end - read).unwrap_or(usize::MAX);
        match copy_file_range(from.as_fd(), Some(&mut read), to.as_fd(), Some(&mut written), most) {
            Ok(0) | Err(Errno::XDEV | Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS) => break,
            Err(Errno::INTR) | Ok(_) => {}
            Err(error) => return Err(error),
        }
    }
    let mut piece = vec![0; if read < end { PIECE_BYTES.min((end - read) as usize) } else { 0 }];
    while read < end {
        let most = usize::try_from(end - read).map_or(piece.len(), |left| left.min(piece.len()));
        let count = read_all(from, &mut piece[..most], read)?;
        if count == 0 {
            return Err(Errno::IO);
        }
        to.write_all_at(&piece[..count], read).map_err(errno)?;
        read += count as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A file with this content, and an overlay over it.
    fn over(content: &[u8]) -> (tempfile::TempDir, File, Overlay) {
        let folder = tempfile::tempdir().expect("a folder");
        let staging = Arc::new(Staging::new(File::open(folder.path()).expect("the folder").into(), RawFd::MAX));
        let path = folder.path().join("below");
        std::fs::write(&path, content).expect("a file");
        let below = File::options().read(true).write(true).open(path).expect("the file");
        let overlay = Overlay::new(&staging, content.len() as u64).expect("an overlay");
        (folder, below, overlay)
    }

    /// One that was dropped while it was inspected may have been replaced by another with as many writes.
    #[test]
    fn no_two_contents_have_one_version() {
        let (_folder, below, mut one) = over(b"");
        let (_other_folder, other_below, mut other) = over(b"");
        let mut seen = vec![one.version(), other.version()];
        for _ in 0..3 {
            one.write(&below, b"x", 0).expect("room");
            other.write(&other_below, b"x", 0).expect("room");
            seen.extend([one.version(), other.version()]);
        }
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 8);
    }

    #[derive(Debug, Clone)]
    enum Act {
        Write(u64, u8, usize),
        Truncate(u64),
        Zero(u64, u64, bool),
        Large,
    }

    fn act() -> impl Strategy<Value = Act> {
        prop_oneof![
            6 => (0_u64..20_000, any::<u8>(), 0_usize..6_000).prop_map(|(at, byte, count)| Act::Write(at, byte, count)),
            2 => (0_u64..20_000).prop_map(Act::Truncate),
            2 => (0_u64..20_000, 1_u64..9_000, any::<bool>()).prop_map(|(at, length, grows)| Act::Zero(at, length, grows)),
            1 => Just(Act::Large),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn it_reads_as_what_was_done_and_commits_to_that(before in 0_usize..12_000, acts in proptest::collection::vec(act(), 0..24)) {
            let mut model: Vec<u8> = (0..before).map(|n| (n % 251) as u8).collect();
            let (_folder, below, mut overlay) = over(&model);
            for act in acts {
                match act {
                    Act::Write(at, byte, count) => {
                        overlay.write(&below, &vec![byte; count], at).expect("it writes");
                        let end = at as usize + count;
                        if count > 0 {
                            model.resize(model.len().max(end), 0);
                            model[at as usize..end].fill(byte);
                        }
                    }
                    Act::Truncate(size) => {
                        overlay.truncate(size).expect("it cuts");
                        model.resize(size as usize, 0);
                    }
                    Act::Zero(at, length, grows) => {
                        overlay.zero(at, length, grows).expect("it zeroes");
                        let end = (at + length) as usize;
                        if grows && model.len() < end { model.resize(end, 0); }
                        let end = end.min(model.len());
                        if (at as usize) < end { model[at as usize..end].fill(0); }
                    }
                    Act::Large => overlay.shadow.reserve(2 * SMALL_BYTES, &overlay.dirty).expect("it moves"),
                }
                let mut read = vec![1; model.len() + 10];
                let count = overlay.read(&below, &mut read, 0).expect("it reads");
                prop_assert!(read[..count] == model);
            }
            overlay.commit(&below).expect("it commits");
            let mut after = Vec::new();
            io::Read::read_to_end(&mut &below, &mut after).expect("it reads");
            prop_assert!(after == model);
        }
    }

    #[test]
    fn many_ranges_are_merged_without_a_change() {
        let (_folder, below, mut overlay) = over(&vec![7; 100_000]);
        for n in 0..3 * RANGES_MAX as u64 {
            overlay.write(&below, b"x", n * 5).expect("it writes");
        }
        assert!(overlay.dirty.len() <= RANGES_MAX + 1, "{}", overlay.dirty.len());
        let mut read = vec![0; 100_000];
        overlay.read(&below, &mut read, 0).expect("it reads");
        let expected = |n: usize| if n.is_multiple_of(5) && n < 15 * RANGES_MAX { b'x' } else { 7 };
        assert!(read.iter().enumerate().all(|(n, &byte)| byte == expected(n)));
    }
}
