//! The folder of compiled databases.
//!
//! Each set of paths has a file of its own there, `NAME.sluicedb`, and a lock, `NAME.lock`, which whoever compiles the
//! set holds. A file is written as `NAME.part` and gets its name when it is whole, checked and on the disk; so what has
//! the name was whole once, and what becomes of a compiler that dies is a `.part` that the next one overwrites.
//!
//! What lies there is trusted, once it is open: the folder and the file must belong to the user who runs the program, or
//! to root, nobody else may write to either, and the file may be no link. That is looked at each time, of what was opened
//! and not of what has its name later: who could change a file while it is mapped could do with us what he likes.

use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use jail::map;
use rustix::fs::{FlockOperation, Mode, OFlags, openat};
use rustix::io::Errno;
use scan::Database;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::source::Source;
use super::{Choice, Pua};
use crate::output::Failure;

/// Write permission of group and others.
const OTHERS: u32 = 0o022;

/// Header of a compiled database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// The version of the program that compiled it.
    pub program: String,
    /// Selection of signatures that it was compiled with.
    pub choice: Choice,
    /// Files that it was compiled from, in this order.
    pub sources: Vec<Source>,
}

impl Note {
    /// Note of a database that this program compiles.
    pub fn new(choice: Choice, sources: Vec<Source>) -> Note {
        Note { program: env!("CARGO_PKG_VERSION").to_owned(), choice, sources }
    }
}

/// A compiled database that is mapped.
pub struct Base {
    /// Its signatures.
    pub database: Database,
    /// Header of the file.
    pub note: Note,
    /// The file, which may be read only.
    pub file: File,
}

impl Base {
    /// Maps a file.
    ///
    /// # Errors
    /// If it is not a whole compiled database of this version.
    pub fn open(file: File) -> Result<Base, Failure> {
        let database = Database::load(map(&file)?)?;
        let note: Note = serde_json::from_str(database.note()).map_err(|_| scan::Unfit::Version)?;
        if note.program != env!("CARGO_PKG_VERSION") {
            return Err(scan::Unfit::Version.into());
        }
        Ok(Base { database, note, file })
    }
}

/// The place of one compiled database.
pub struct Place {
    folder: PathBuf,
    name: String,
}

impl Place {
    /// Where the database of these paths lies in a folder.
    pub fn new(
        folder: &Path,
        paths: &[PathBuf],
        choice: &Choice,
        certificates: Option<&Path>,
        required: bool,
    ) -> Place {
        let mut digest = Sha256::new();
        digest.update([u8::from(choice.builtin)]);
        for path in paths {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            digest.update(path.as_os_str().as_encoded_bytes());
            digest.update([0]);
        }
        if choice.pua != Pua::default() {
            digest.update(format!("{:?}", choice.pua));
        }
        // What was compiled without them was not verified by them.
        if let Some(path) = certificates {
            digest.update([if required { 2 } else { 1 }]);
            digest.update(path.as_os_str().as_encoded_bytes());
        }
        let digest: [u8; 32] = digest.finalize().into();
        Place { folder: folder.into(), name: digest[..8].iter().map(|byte| format!("{byte:02x}")).collect() }
    }

    /// The file.
    pub fn file(&self) -> PathBuf {
        self.with_ending("sluicedb")
    }

    fn with_ending(&self, ending: &str) -> PathBuf {
        self.folder.join(format!("{}.{ending}", self.name))
    }

    /// The compiled database, if it can be used; the reason why not is logged or printed.
    pub fn find(&self) -> Option<Base> {
        match self.open() {
            Ok(base) => base,
            Err(error) => {
                let file = self.file();
                match tracing::enabled!(tracing::Level::WARN) {
                    true => tracing::warn!(file = %file.display(), %error, "compiled database not usable"),
                    false => eprintln!("sluice: {}: {error}; compiling again", file.display()),
                }
                None
            }
        }
    }

    /// Opens what lies there, if nobody else could have put it there or can change it; nothing if there is nothing.
    fn open(&self) -> Result<Option<Base>, Failure> {
        let folder = match OpenOptions::new().read(true).custom_flags(flags(OFlags::DIRECTORY)).open(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let path = self.file();
        let name = path.file_name().unwrap_or_default();
        let opened = openat(&folder, name, OFlags::RDONLY | OFlags::NOFOLLOW | SAFE, Mode::empty());
        let file = match opened {
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => return Err("it is a link".into()),
            opened => File::from(opened?),
        };
        let facts = file.metadata()?;
        if !facts.is_file() {
            return Err("it is not a file".into());
        }
        if is_others(&facts) || is_others(&folder.metadata()?) {
            return Err("it belongs to another user, or others can write to it".into());
        }
        Base::open(file).map(Some)
    }

    /// Whether it is this that lies there.
    pub fn has(&self, base: &Base) -> bool {
        let which = |facts: Metadata| (facts.dev(), facts.ino());
        let (there, ours) = (std::fs::metadata(self.file()), base.file.metadata());
        there.and_then(|there| Ok(which(there) == which(ours?))).unwrap_or(false)
    }

    /// Waits until nobody else compiles this; the lock lasts as long as what is returned.
    ///
    /// # Errors
    /// If the folder cannot be had, or others may write to it.
    pub fn lock(&self) -> Result<File, Failure> {
        prepare(&self.folder)?;
        let path = self.with_ending("lock");
        let failed = |error: std::io::Error| format!("{}: {error}", path.display());
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600).custom_flags(flags(OFlags::NOFOLLOW));
        let lock = options.open(&path).map_err(failed)?;
        rustix::fs::flock(&lock, FlockOperation::LockExclusive).map_err(|error| failed(error.into()))?;
        Ok(lock)
    }

    /// Has a file written, checks it and puts it in place of what was there.
    ///
    /// # Errors
    /// Those of `write`; and if what was written cannot be read back. Nothing has changed then.
    pub fn replace(&self, write: impl FnOnce(File) -> Result<(), Failure>) -> Result<Base, Failure> {
        let part = self.with_ending("part");
        let outcome = self.write_and_check(&part, write);
        if outcome.is_err() {
            let _ = std::fs::remove_file(&part);
        }
        outcome
    }

    fn write_and_check(&self, part: &Path, write: impl FnOnce(File) -> Result<(), Failure>) -> Result<Base, Failure> {
        let failed = |error: std::io::Error| format!("{}: {error}", part.display());
        // What a compiler that died has left.
        let _ = std::fs::remove_file(part);
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).mode(0o600).open(part).map_err(failed)?;
        write(file.try_clone().map_err(failed)?)?;
        file.sync_all().map_err(failed)?;
        // What is handed to others may be read only.
        drop(file);
        let file = File::open(part).map_err(failed)?;
        let base = Base::open(file).map_err(|error| format!("{}: {error}", part.display()))?;
        std::fs::rename(part, self.file()).map_err(failed)?;
        File::open(&self.folder).and_then(|folder| folder.sync_all()).map_err(failed)?;
        Ok(base)
    }
}

/// Makes the folder, if need be, and makes sure that nobody else may write to it.
fn prepare(folder: &Path) -> Result<(), Failure> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    if is_others(&std::fs::metadata(folder).map_err(failed)?) {
        return Err(format!("{}: others can write to the folder of compiled databases", folder.display()).into());
    }
    Ok(())
}

/// Whether somebody else than us and root has this, or may write to it.
fn is_others(facts: &Metadata) -> bool {
    let own = [0, rustix::process::geteuid().as_raw()].contains(&facts.uid());
    !own || facts.mode() & OTHERS != 0
}

/// Whether a folder is as [`prepare`] wants it, or will be made so.
pub fn is_ours(folder: &Path) -> bool {
    std::fs::metadata(folder).map_or_else(|error| error.kind() == io::ErrorKind::NotFound, |facts| !is_others(&facts))
}

/// Flags for opening any file here.
const SAFE: OFlags = OFlags::CLOEXEC.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

fn flags(flags: OFlags) -> i32 {
    flags.bits().cast_signed()
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn write(mut file: File, note: &Note) -> Result<(), Failure> {
        Ok(Database::with_builtin().store(&serde_json::to_string(note)?, &mut file)?)
    }

    #[test]
    fn a_good_file_is_only_replaced_by_another() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = Place::new(folder.path(), &["/a".into()], &Choice::default(), None, false);
        let note = Note::new(Choice::default(), Vec::new());
        assert!(place.find().is_none());
        place.replace(|file| write(file, &note)).expect("a compiled database");
        let good = std::fs::read(place.file()).expect("the file");
        assert!(place.replace(|mut file| Ok(file.write_all(&good[..good.len() / 2])?)).is_err());
        assert!(place.replace(|_| Err("the compiler died".into())).is_err());
        let old = Note { program: "0.0.0".into(), ..note.clone() };
        assert!(place.replace(|file| write(file, &old)).is_err());
        assert_eq!(std::fs::read(place.file()).expect("the file"), good);
        assert_eq!(place.find().map(|base| base.note), Some(note));
        assert_eq!(std::fs::read_dir(folder.path()).expect("the folder").count(), 1);
        for at in [40, good.len() / 2, good.len() - 1] {
            let mut bad = good.clone();
            bad[at] ^= 1;
            std::fs::write(place.file(), &bad).expect("written");
            assert!(place.find().is_none(), "{at}");
        }
    }

    #[test]
    fn a_folder_that_others_may_write_to_is_not_trusted() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = Place::new(folder.path(), &[], &Choice::default(), None, false);
        assert!(place.lock().is_ok());
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).expect("permissions");
        assert!(place.lock().is_err());
    }

    #[test]
    fn what_others_could_have_put_there_is_not_mapped() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = Place::new(folder.path(), &[], &Choice::default(), None, false);
        place.replace(|file| write(file, &Note::new(Choice::default(), Vec::new()))).expect("a compiled database");
        let file = place.file();
        let allow = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("permissions");
        };
        for (path, good) in [(folder.path(), 0o700), (&*file, 0o600)] {
            for bad in [good | 0o020, good | 0o002] {
                allow(path, bad);
                assert!(place.find().is_none(), "{}: {bad:o}", path.display());
            }
            allow(path, good);
            assert!(place.find().is_some());
            if crate::process::privileges::is_root() {
                std::os::unix::fs::chown(path, Some(1_234), None).expect("given away");
                assert!(place.find().is_none(), "{}: another's", path.display());
                std::os::unix::fs::chown(path, Some(0), None).expect("taken back");
            }
        }
        let elsewhere = folder.path().join("elsewhere");
        std::fs::rename(&file, &elsewhere).expect("renamed");
        std::os::unix::fs::symlink(&elsewhere, &file).expect("a link");
        assert!(place.find().is_none(), "a link");
    }
}
