//! A folder that is held open: what is in it is named by its name there, and links in it are never followed.
//!
//! Whoever may write to the folder can put links, pipes and strange files there; a name that leads to one of them is an
//! error, and nothing is done to what it leads to. Files are made anew, never written over.

use std::ffi::OsStr;
use std::fs::{DirBuilder, File};
use std::io::{self, Read as _};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, RenameFlags};
use rustix::fs::{linkat, mkdirat, openat, renameat, renameat_with, unlinkat};
use rustix::io::Errno;

/// The folder.
#[derive(Debug)]
pub struct Held {
    descriptor: OwnedFd,
    path: PathBuf,
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl Held {
    /// Opens the folder at a path; links on the way to it are followed, as its caller has looked who made them.
    ///
    /// # Errors
    /// When there is none, or it is none.
    pub fn open(path: &Path) -> io::Result<Held> {
        Ok(Held { descriptor: openat(CWD, path, FOLDER | OFlags::PATH, Mode::empty())?, path: path.into() })
    }

    /// One that is open, and goes by this path.
    pub fn at(descriptor: OwnedFd, path: &Path) -> Held {
        Held { descriptor, path: path.into() }
    }

    /// Opens a folder for us alone, if one is named, and makes it if it is missing.
    ///
    /// # Errors
    /// When that cannot be, with the path.
    pub fn private(path: Option<&Path>) -> Result<Option<Held>, String> {
        let Some(path) = path else { return Ok(None) };
        let made = DirBuilder::new().mode(0o700).recursive(true).create(path).and_then(|()| Held::open(path));
        made.map(Some).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Opens a folder in it, and makes it if it is missing.
    ///
    /// # Errors
    /// When that cannot be; and if it is a link.
    pub fn make(&self, name: &Path) -> io::Result<Held> {
        match mkdirat(&self.descriptor, name, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let descriptor = openat(&self.descriptor, name, FOLDER | OFlags::NOFOLLOW, Mode::empty())
            .map_err(|error| named(Path::new(name), error))?;
        Ok(Held { descriptor, path: self.path.join(name) })
    }

    /// Where it is for people.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where it is for those who open paths: the same, unless the way there is closed to us.
    pub fn way(&self) -> PathBuf {
        let held = rustix::fs::fstat(&self.descriptor).map(|facts| (facts.st_dev, facts.st_ino));
        let there = std::fs::metadata(&self.path).map(|facts| (facts.dev(), facts.ino()));
        match (held, there) {
            (Ok(held), Ok(there)) if held == there => self.path.clone(),
            _ => PathBuf::from(format!("/proc/self/fd/{}", self.descriptor.as_raw_fd())),
        }
    }

    /// Opens a file to read it.
    ///
    /// # Errors
    /// When there is none, or it is a link or no file.
    pub fn file(&self, name: &str) -> io::Result<File> {
        self.open_file(name, OFlags::RDONLY | OFlags::NONBLOCK)
    }

    /// Opens a file to lock it, and makes it if it is missing.
    ///
    /// # Errors
    /// As [`Held::file`]; and if it has another name somewhere.
    pub fn lock_file(&self, name: &str) -> io::Result<File> {
        let file = self.open_file(name, OFlags::RDWR | OFlags::CREATE | OFlags::NONBLOCK)?;
        if file.metadata()?.nlink() != 1 {
            return Err(io::Error::other(format!("{name}: it has another name somewhere")));
        }
        Ok(file)
    }

    /// Opens what has this name, file or device, to read it or to write it, too.
    ///
    /// # Errors
    /// When it is not there, is a link, or has another name somewhere.
    pub fn volume(&self, name: &OsStr, writes: bool) -> io::Result<File> {
        let access = if writes { OFlags::RDWR } else { OFlags::RDONLY };
        let flags = access | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
        let opened = openat(&self.descriptor, name, flags, Mode::empty());
        let file = File::from(opened.map_err(|error| named(Path::new(name), error))?);
        let facts = file.metadata()?;
        match facts.is_file() && facts.nlink() == 1 || facts.file_type().is_block_device() {
            true => Ok(file),
            false => Err(io::Error::other("neither a file with one name nor a block device")),
        }
    }

    fn open_file(&self, name: &str, flags: OFlags) -> io::Result<File> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY;
        let opened = openat(&self.descriptor, name, flags, Mode::from_raw_mode(0o644));
        let file = File::from(opened.map_err(|error| named(Path::new(name), error))?);
        if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other(format!("{name}: not a file"))) }
    }

    /// All of a file.
    ///
    /// # Errors
    /// As [`Held::file`], and those of reading.
    pub fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.file(name)?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// A new file in place of what has this name.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn create(&self, name: &str) -> io::Result<File> {
        self.remove(name)?;
        self.open_file(name, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)
    }

    /// The same for its owner alone.
    ///
    /// # Errors
    /// As [`Held::create`].
    pub fn create_private(&self, name: &str) -> io::Result<File> {
        self.remove(name)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = openat(&self.descriptor, name, flags, Mode::from_raw_mode(0o600));
        opened.map(File::from).map_err(|error| named(Path::new(name), error))
    }

    /// Gives a file a second name in the folder.
    ///
    /// # Errors
    /// When that cannot be, or the name is taken.
    pub fn link_as(&self, name: &str, other: &str) -> io::Result<()> {
        let linked = linkat(&self.descriptor, name, &self.descriptor, other, AtFlags::empty());
        linked.map_err(|error| named(Path::new(other), error))
    }

    /// Whether there is a file of this name.
    pub fn has(&self, name: &str) -> bool {
        self.file(name).is_ok()
    }

    /// Removes a name, if it is there.
    ///
    /// # Errors
    /// When it cannot be.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        match unlinkat(&self.descriptor, name, AtFlags::empty()) {
            Err(Errno::NOENT) | Ok(()) => Ok(()),
            Err(error) => Err(named(Path::new(name), error)),
        }
    }

    /// Moves a file to a folder, under the same name, in place of what is there.
    ///
    /// # Errors
    /// When it cannot be.
    pub fn move_to(&self, name: &str, folder: &Held) -> io::Result<()> {
        self.rename(name, folder, name)
    }

    /// Moves a file to a folder under another name, in place of what is there.
    ///
    /// # Errors
    /// When it cannot be.
    pub fn rename(&self, name: &str, folder: &Held, other: &str) -> io::Result<()> {
        renameat(&self.descriptor, name, &folder.descriptor, other).map_err(|error| named(Path::new(name), error))
    }

    /// Swaps two entries, so that each name is there at any time.
    ///
    /// # Errors
    /// When the file system cannot, or one is missing.
    pub fn exchange(&self, name: &str, other: &str) -> io::Result<()> {
        let swapped = renameat_with(&self.descriptor, name, &self.descriptor, other, RenameFlags::EXCHANGE);
        swapped.map_err(|error| named(Path::new(name), error))
    }

    /// Gives a file a second name in a folder; whether there is such a file.
    ///
    /// # Errors
    /// When it cannot be.
    pub fn link(&self, name: &str, folder: &Held) -> io::Result<bool> {
        match linkat(&self.descriptor, name, &folder.descriptor, name, AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(named(Path::new(name), error)),
        }
    }

    /// Names of its entries, in order; names that are not UTF-8 are left out.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let folder = openat(&self.descriptor, ".", FOLDER, Mode::empty())?;
        let entries = Dir::new(folder)?.collect::<Result<Vec<_>, _>>()?;
        let names = entries.iter().filter_map(|entry| entry.file_name().to_str().ok());
        let mut names: Vec<String> = names.filter(|name| !matches!(*name, "." | "..")).map(String::from).collect();
        names.sort();
        Ok(names)
    }

    /// Has the disk keep what was done to the names in it.
    ///
    /// # Errors
    /// When it cannot be.
    pub fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(openat(&self.descriptor, ".", FOLDER, Mode::empty())?)?)
    }
}

impl AsFd for Held {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// An error that says what it is about; of a link, that it is one.
fn named(name: &Path, error: Errno) -> io::Error {
    let kind = io::Error::from(error).kind();
    match error {
        Errno::LOOP => io::Error::other(format!("{}: a symbolic link, not followed", name.display())),
        _ => io::Error::new(kind, format!("{}: {error}", name.display())),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_a_link_leads_to_is_neither_read_nor_written() {
        let place = tempfile::tempdir().expect("a folder");
        let (inside, outside) = (place.path().join("inside"), place.path().join("outside"));
        std::fs::create_dir_all(&inside).expect("a folder");
        std::fs::create_dir_all(&outside).expect("a folder");
        std::fs::write(outside.join("secret"), "secret").expect("written");
        symlink(outside.join("secret"), inside.join("file")).expect("a link");
        symlink(&outside, inside.join("folder")).expect("a link");
        let held = Held::open(&inside).expect("a folder");
        assert!(held.read("file").is_err_and(|error| error.to_string().contains("a symbolic link")));
        assert!(held.lock_file("file").is_err() && !held.has("file"));
        assert!(held.make(Path::new("folder")).is_err());
        held.create("file").and_then(|mut file| file.write_all(b"ours")).expect("a new file");
        assert_eq!(std::fs::read(outside.join("secret")).expect("the file"), b"secret");
        assert_eq!(held.read("file").expect("the file"), b"ours");
        std::fs::hard_link(outside.join("secret"), inside.join("lock")).expect("a second name");
        assert!(held.lock_file("lock").is_err());
    }
}
