//! Handling of infected files: moved, copied or removed.
//!
//! A file is acted on only where it still is the one that was looked at. The folder that it is in is held open, with no
//! link on the way to it, and the file is named by its name in there: whoever may write to the path cannot make the
//! program move or remove something else.

use std::fs::File;
use std::io::{self, Seek};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags, ResolveFlags};
use rustix::fs::{openat, openat2, renameat_with, statat, unlinkat};
use rustix::io::Errno;

use super::report::shown;
use crate::cli::ScanKeep;

/// Handling of an infected file.
pub enum Keep {
    /// Nothing.
    Leave,
    /// It goes into the folder.
    Move(Folder),
    /// A copy goes there.
    Copy(Folder),
    /// Remove the file.
    Remove,
}

/// A folder that stays the same whatever its path comes to mean.
pub struct Folder {
    path: PathBuf,
    descriptor: OwnedFd,
}

/// Names tried for a file whose own is taken: `name.001` and so on.
const NAMES_MAX: u32 = 1_000;

impl Keep {
    /// # Errors
    /// When the folder is not there.
    pub fn new(args: &ScanKeep) -> io::Result<Keep> {
        Ok(match (&args.move_to, &args.copy_to) {
            (Some(folder), _) => Keep::Move(Folder::open(folder)?),
            (_, Some(folder)) => Keep::Copy(Folder::open(folder)?),
            _ if args.remove == Some(true) => Keep::Remove,
            _ => Keep::Leave,
        })
    }

    /// Acts on the file that was looked at, `file`, at `path`; returns what is to be said.
    ///
    /// # Errors
    /// When it is not there any more, or is a link, or something cannot be written.
    pub fn act(&self, path: &Path, file: &File) -> io::Result<Option<Vec<u8>>> {
        match self {
            Keep::Leave => Ok(None),
            Keep::Copy(folder) => {
                let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
                let kept = folder.free_name(Path::new(name), |name| folder.copy(file, name))?;
                Ok(Some([b"copied to '", &*shown(&kept), b"'"].concat()))
            }
            Keep::Move(folder) => {
                let (parent, name) = place(path, file)?;
                let moved = folder.free_name(&name, |free| {
                    match renameat_with(&parent, &name, &folder.descriptor, free, RenameFlags::NOREPLACE) {
                        Err(Errno::XDEV) => {
                            folder.copy(file, free)?;
                            Ok(unlinkat(&parent, &name, AtFlags::empty())?)
                        }
                        outcome => Ok(outcome?),
                    }
                })?;
                Ok(Some([b"moved to '", &*shown(&moved), b"'"].concat()))
            }
            Keep::Remove => {
                let (parent, name) = place(path, file)?;
                unlinkat(&parent, &name, AtFlags::empty())?;
                Ok(Some("Removed.".into()))
            }
        }
    }
}

impl Folder {
    fn open(path: &Path) -> io::Result<Folder> {
        let real = path.canonicalize()?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let descriptor = openat2(CWD, &real, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
        Ok(Folder { path: path.into(), descriptor })
    }

    /// Calls `act` with the first free name.
    fn free_name(&self, name: &Path, act: impl Fn(&Path) -> io::Result<()>) -> io::Result<PathBuf> {
        for number in 0..NAMES_MAX {
            let mut free = name.as_os_str().to_os_string();
            if number > 0 {
                free.push(format!(".{number:03}"));
            }
            match act(Path::new(&free)) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                outcome => return outcome.map(|()| self.path.join(free)),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// A copy for nobody else to read.
    fn copy(&self, mut file: &File, name: &Path) -> io::Result<()> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut copy = File::from(openat(&self.descriptor, name, flags, Mode::RUSR | Mode::WUSR)?);
        file.rewind()?;
        io::copy(&mut file, &mut copy)?;
        copy.sync_all()
    }
}

/// The folder that a file is in and its name there, if it is still the one that was looked at.
fn place(path: &Path, file: &File) -> io::Result<(OwnedFd, PathBuf)> {
    let name = PathBuf::from(path.file_name().ok_or(io::ErrorKind::InvalidInput)?);
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let parent = Folder::open(parent)?.descriptor;
    let there = statat(&parent, &name, AtFlags::SYMLINK_NOFOLLOW)?;
    let facts = file.metadata()?;
    if (there.st_dev, there.st_ino) != (facts.dev(), facts.ino()) {
        return Err(io::Error::other("the file was replaced since its inspection, or is a link: left as it is"));
    }
    Ok((parent, name))
}
