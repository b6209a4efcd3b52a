//! A file or a block device as the store's device: positioned reads and writes, and `fdatasync`.
//!
//! One process writes: it holds an exclusive lock, readers hold shared ones. A file is allocated whole when it is made, and by a server when
//! it opens a copy with holes, so that it cannot run out of disk later; for the same reason discarded ranges are not given back.
//!
//! Where several machines share the volume, the file is a cache of it: what is written goes to their database, too, and a flush waits for
//! that one instead of the disk.

use std::fs::{self, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use cluster::{Engine, Tail};
use rustix::io::{ReadWriteFlags, preadv2};
use store::{Call, Device, DeviceError};

/// The tail of a volume that machines share.
pub type SharedTail = Tail<Box<dyn Engine + Send + Sync>>;

/// An open, locked file.
pub struct File {
    file: fs::File,
    length: u64,
    tail: Option<SharedTail>,
}

impl std::fmt::Debug for File {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("File").field("file", &self.file).field("is_shared", &self.tail.is_some()).finish()
    }
}

impl File {
    /// Makes a file of `length` bytes that only its owner may read; there must not be one. Of a block device all is taken.
    ///
    /// # Errors
    /// When it is there, or there is no room for it.
    pub fn create(path: &Path, length: u64) -> io::Result<Self> {
        use std::os::unix::fs::FileTypeExt;
        if fs::metadata(path).is_ok_and(|found| found.file_type().is_block_device()) {
            return File::open(path, true);
        }
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)?;
        if let Err(error) = allocate(&file, length).and_then(|()| file.sync_all()) {
            let _ = fs::remove_file(path);
            return Err(error);
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs::File::open(folder)?.sync_all()?;
        File::locked(file, true)
    }

    /// Opens what is there.
    ///
    /// # Errors
    /// When it cannot be opened; [`io::ErrorKind::ResourceBusy`] when another process has it.
    pub fn open(path: &Path, writes: bool) -> io::Result<Self> {
        File::locked(OpenOptions::new().read(true).write(writes).open(path)?, writes)
    }

    /// Takes a file that is open.
    ///
    /// # Errors
    /// As [`File::open`].
    pub fn of(file: fs::File, writes: bool) -> io::Result<Self> {
        File::locked(file, writes)
    }

    fn locked(mut file: fs::File, writes: bool) -> io::Result<Self> {
        let locked = if writes { file.try_lock() } else { file.try_lock_shared() };
        match locked {
            Err(TryLockError::WouldBlock) => {
                return Err(io::Error::new(io::ErrorKind::ResourceBusy, "another process has it open"));
            }
            Err(TryLockError::Error(error)) => return Err(error),
            Ok(()) => {}
        }
        // Its metadata says 0 for a block device.
        let length = io::Seek::seek(&mut file, io::SeekFrom::End(0))?;
        Ok(File { file, length, tail: None })
    }
}

/// Gives a file all of its room.
fn allocate(file: &fs::File, length: u64) -> io::Result<()> {
    match rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), 0, length) {
        Ok(()) => Ok(()),
        // A file system that cannot: the file is as long, and may run out of disk.
        Err(rustix::io::Errno::OPNOTSUPP) => file.set_len(length),
        Err(rustix::io::Errno::NOSPC) => {
            let free = rustix::fs::fstatvfs(file).map_or(0, |found| found.f_bavail.saturating_mul(found.f_frsize));
            let why = format!("the disk has no room for {} MiB: {} MiB are free", length >> 20, free >> 20);
            Err(io::Error::new(io::ErrorKind::StorageFull, why))
        }
        Err(error) => Err(error.into()),
    }
}

impl File {
    /// Makes it the cache of a shared volume, of which it has all that was flushed.
    #[must_use]
    pub fn shared(self, tail: SharedTail) -> File {
        File { tail: Some(tail), ..self }
    }

    /// Makes a file at least so long. A block device is as long as it is.
    ///
    /// # Errors
    /// When there is no room for it.
    pub fn lengthen(&mut self, bytes: u64) -> io::Result<()> {
        if bytes > self.length && self.file.metadata()?.is_file() {
            allocate(&self.file, bytes)?;
            self.file.sync_all()?;
            self.length = bytes;
        }
        Ok(())
    }

    /// Gives a file that was copied, and so has holes, all of its room again; how many bytes lack where there is none.
    ///
    /// # Errors
    /// When the disk cannot be asked.
    pub fn fill(&self) -> io::Result<u64> {
        let found = self.file.metadata()?;
        let holes = self.length.saturating_sub(found.blocks().saturating_mul(512));
        if !found.is_file() || holes == 0 {
            return Ok(0);
        }
        match allocate(&self.file, self.length) {
            Err(error) if error.kind() == io::ErrorKind::StorageFull => Ok(holes),
            outcome => outcome.map(|()| 0),
        }
    }

    /// Whether machines share it.
    pub fn is_shared(&self) -> bool {
        self.tail.is_some()
    }

    /// Waits until the disk has what was written.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Another hold on the same file, to read from beside the writer. It shares the lock.
    ///
    /// # Errors
    /// When there are no more descriptors.
    pub fn reader(&self) -> io::Result<Self> {
        Ok(File { file: self.file.try_clone()?, length: self.length, tail: None })
    }
}

impl Device for File {
    fn len(&self) -> u64 {
        self.length
    }

    fn read_at(&self, at: u64, buffer: &mut [u8]) -> Result<(), DeviceError> {
        self.file.read_exact_at(buffer, at).map_err(|error| failed(Call::Read, at, &error))
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        if let Some(tail) = &mut self.tail {
            tail.touch(at, bytes.len());
        }
        self.file.write_all_at(bytes, at).map_err(|error| failed(Call::Write, at, &error))?;
        let Some(tail) = &mut self.tail else { return Ok(()) };
        tail.write(at, bytes).map_err(|_| lost(Call::Write, at))
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        if let Some(tail) = &mut self.tail {
            return tail.flush().map(drop).map_err(|_| lost(Call::Flush, 0));
        }
        self.file.sync_data().map_err(|error| failed(Call::Flush, 0, &error))
    }

    fn discard(&mut self, _at: u64, _length: u64) -> Result<(), DeviceError> {
        Ok(())
    }
}

/// A file of which only what the kernel has in memory is read: for the rest it fails, and so it does where the kernel cannot tell.
#[derive(Debug)]
pub(crate) struct Cached<'a>(pub &'a File);

impl Device for Cached<'_> {
    fn len(&self) -> u64 {
        self.0.length
    }

    fn read_at(&self, at: u64, buffer: &mut [u8]) -> Result<(), DeviceError> {
        let wanted = buffer.len();
        let read = preadv2(&self.0.file, &mut [io::IoSliceMut::new(buffer)], at, ReadWriteFlags::NOWAIT);
        match read.map_err(io::Error::from) {
            Ok(length) if length == wanted => Ok(()),
            Ok(_) => Err(failed(Call::Read, at, &io::ErrorKind::WouldBlock.into())),
            Err(error) => Err(failed(Call::Read, at, &error)),
        }
    }

    fn write_at(&mut self, at: u64, _bytes: &[u8]) -> Result<(), DeviceError> {
        Err(failed(Call::Write, at, &io::ErrorKind::Unsupported.into()))
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        Err(failed(Call::Flush, 0, &io::ErrorKind::Unsupported.into()))
    }

    fn discard(&mut self, at: u64, _length: u64) -> Result<(), DeviceError> {
        Err(failed(Call::Discard, at, &io::ErrorKind::Unsupported.into()))
    }
}

/// The volume is another node's: what the log says of it is said where that was found out.
fn lost(call: Call, at: u64) -> DeviceError {
    DeviceError { call, at, code: 0 }
}

fn failed(call: Call, at: u64, error: &io::Error) -> DeviceError {
    DeviceError { call, at, code: error.raw_os_error().unwrap_or(0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_from_memory_is_what_is_in_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = File::create(&folder.path().join("volume"), 64 << 10).unwrap();
        let bytes: Vec<u8> = (0..10_000u32).map(|at| at as u8).collect();
        file.write_at(5_000, &bytes).unwrap();
        let cached = Cached(&file);
        assert_eq!(cached.len(), 64 << 10);
        let mut read = vec![0; bytes.len()];
        // There are file systems that cannot tell.
        if cached.read_at(5_000, &mut read).is_ok() {
            assert_eq!(read, bytes);
        }
        assert!(cached.read_at((64 << 10) - 100, &mut read).is_err(), "less is there than was asked for");
    }
}
