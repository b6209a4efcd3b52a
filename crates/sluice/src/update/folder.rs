//! The folder of signatures: what is in force, what is coming, and what was before.
//!
//! ```text
//!  FOLDER/daily.cvd             in force
//!  FOLDER/daily-27500.cvd.sign  its signature, if certificates are configured
//!  FOLDER/.coming/daily.cvd     fetched, not read yet or not in force yet
//!  FOLDER/.previous/daily.cvd   in force before
//!  FOLDER/.state.json           what is remembered of the servers
//!  FOLDER/.lock                 held while somebody updates
//! ```
//!
//! A file changes by a rename, so that who reads it reads the old one or the new one. After a stop in between, some files
//! are new and some old, each whole; the next run goes on from there.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use scan::Builder;
use sha2::{Digest, Sha256};

use super::state::State;
use crate::database::signed::{self, Checker};
use crate::database::{Choice, version};
use crate::{Failure, database};

/// The most incremental updates that are fetched in place of the whole.
const STEPS_MAX: u32 = 32;

/// Versions of a container, from the one in force on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Steps {
    /// The file in force.
    pub file: String,
    /// Its version.
    pub from: u32,
    /// The version that is to be had; the same if there is none newer.
    pub to: u32,
}

/// The folder, while nobody else updates it.
pub struct Folder {
    path: PathBuf,
    /// Verifies the signatures beside containers.
    pub checker: Checker,
    _lock: File,
}

/// The other name of a container.
fn sibling(name: &str) -> Option<String> {
    let (stem, ending) = name.rsplit_once('.')?;
    match ending {
        "cvd" => Some(format!("{stem}.cld")),
        "cld" => Some(format!("{stem}.cvd")),
        _ => None,
    }
}

impl Folder {
    /// Makes it if it is missing.
    ///
    /// # Errors
    /// When it cannot be written to, or somebody else updates it.
    pub fn open(path: &Path, checker: Checker) -> io::Result<Folder> {
        for folder in [path.to_path_buf(), path.join(".coming"), path.join(".previous")] {
            fs::create_dir_all(folder)?;
        }
        let lock = File::create(path.join(".lock"))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| io::Error::other("another update is under way"))?;
        Ok(Folder { path: path.into(), checker, _lock: lock })
    }

    /// What is remembered; nothing if that cannot be read.
    pub fn state(&self) -> State {
        let text = fs::read(self.path.join(".state.json")).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// Remembers.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep_state(&self, state: &State) -> io::Result<()> {
        let text = serde_json::to_vec_pretty(state)?;
        fs::write(self.path.join(".state.new"), text)?;
        fs::rename(self.path.join(".state.new"), self.path.join(".state.json"))
    }

    /// Whether there is a file of this name in force.
    pub fn holds(&self, name: &str) -> bool {
        self.path.join(name).is_file() || sibling(name).is_some_and(|name| self.path.join(name).is_file())
    }

    /// How far a container that begins with `head` is ahead of the one in force; nothing if there is none, it is older, or
    /// too far ahead.
    pub fn steps(&self, name: &str, head: &[u8]) -> Option<Steps> {
        let to = scan::container_version(head)?;
        let (file, bytes) = self.in_force(name)?;
        let from = scan::container_version(&bytes)?;
        let is_near = from <= to && to - from <= STEPS_MAX && (from < to || file != name);
        is_near.then_some(Steps { file, from, to })
    }

    /// A container in force, under either of its names: as it was published, or with incremental updates.
    fn in_force(&self, name: &str) -> Option<(String, Vec<u8>)> {
        let mut names = sibling(name).into_iter().chain([name.to_owned()]);
        names.find_map(|name| Some((fs::read(self.path.join(&name)).ok()?, name))).map(|(bytes, name)| (name, bytes))
    }

    /// The version of a container that came.
    pub fn coming_version(&self, name: &str) -> Option<u32> {
        version(&self.coming(name))
    }

    /// The version of a container that is in force as it was published, if there is no signature beside it.
    pub fn unsigned_version(&self, name: &str) -> Option<u32> {
        let path = self.path.join(name);
        version(&path).filter(|_| name.ends_with(".cvd") && signed::beside(&path).is_none())
    }

    /// Puts a signature that came beside the container that is in force, if it is its own.
    ///
    /// # Errors
    /// When it is not, or cannot be put there.
    pub fn put_signature_in_force(&self, name: &str) -> Result<(), String> {
        let path = self.path.join(name);
        let Some(sign) = version(&path).map(|version| name.replace(".cvd", &format!("-{version}.cvd.sign"))) else {
            return Ok(());
        };
        let bytes = fs::read(&path).map_err(|error| error.to_string())?;
        let text = fs::read(self.coming(&sign)).map_err(|error| error.to_string())?;
        let verified = self.checker.verify(&text, &Sha256::digest(&bytes).into());
        if let Err(reason) = verified {
            let _ = fs::remove_file(self.coming(&sign));
            return Err(format!("{sign}: {reason}"));
        }
        fs::rename(self.coming(&sign), self.path.join(&sign)).map_err(|error| error.to_string())
    }

    /// What is in force.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        fs::read(self.path.join(name))
    }

    /// Takes a file that comes, and returns how long it is.
    ///
    /// # Errors
    /// When it does not come whole, or cannot be written.
    pub fn receive(&self, name: &str, mut body: impl Read) -> io::Result<u64> {
        let mut file = File::create(self.coming(name))?;
        let count = io::copy(&mut body, &mut file)?;
        file.flush()?;
        file.sync_all()?;
        Ok(count)
    }

    /// Reads what came. Whether it is newer than what is in force.
    ///
    /// # Errors
    /// When it is no database, is not as it was signed, or is older than what is in force; the message says so.
    pub fn look_at(&self, name: &str) -> Result<bool, String> {
        let looked = self.judge(name);
        if looked != Ok(true) {
            let files = signed::beside(&self.coming(name)).into_iter().chain([self.coming(name)]);
            files.for_each(|file| _ = fs::remove_file(file));
        }
        looked
    }

    fn judge(&self, name: &str) -> Result<bool, String> {
        let bytes = fs::read(self.coming(name)).map_err(|error| error.to_string())?;
        let current = self.in_force(name).map(|(_, bytes)| bytes);
        if current.as_ref() == Some(&bytes) {
            return Ok(false);
        }
        if bytes.is_empty() {
            return Err("there is nothing in it".into());
        }
        let version = |bytes: &[u8]| scan::container_version(bytes);
        if let (Some(old), Some(new)) = (current.as_deref().and_then(version), version(&bytes))
            && new < old
        {
            return Err(format!("version {new} is older than {old}, which is in force"));
        }
        self.checker.check_bytes(&self.coming(name), &bytes)?;
        Builder::new().add(name, &bytes).map(|_| true).map_err(|error| error.to_string())
    }

    /// Puts these files, which came and were looked at, in force, if the whole folder can be read with them.
    ///
    /// # Errors
    /// When it cannot: nothing has changed then.
    pub fn put_in_force(&self, names: &[String]) -> Result<(), Failure> {
        if names.is_empty() {
            return Ok(());
        }
        let mut paths: Vec<PathBuf> = names.iter().map(|name| self.coming(name)).collect();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_replaced = names.contains(&name) || sibling(&name).is_some_and(|name| names.contains(&name));
            if scan::is_database(&name) && !is_replaced {
                paths.push(entry.path());
            }
        }
        database::load(&paths, &Choice::default(), &self.checker)?;
        for name in names {
            self.keep_previous(name)?;
            self.keep_signature(name)?;
            fs::rename(self.coming(name), self.path.join(name))?;
            self.retire_sibling(name)?;
        }
        File::open(&self.path)?.sync_all()?;
        Ok(())
    }

    /// What is in force is what was in force before, and the other way round. Returns the names.
    ///
    /// # Errors
    /// When a file cannot be renamed.
    pub fn roll_back(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.path.join(".previous"))?.collect::<io::Result<Vec<_>>>()? {
            let name = entry.file_name().to_string_lossy().into_owned();
            fs::rename(self.previous(&name), self.coming(&name))?;
            self.keep_previous(&name)?;
            fs::rename(self.coming(&name), self.path.join(&name))?;
            self.retire_sibling(&name)?;
            names.push(name);
        }
        names.sort();
        Ok(names)
    }

    /// The file in force has a second name from here on.
    fn keep_previous(&self, name: &str) -> io::Result<()> {
        let _ = fs::remove_file(self.previous(name));
        match fs::hard_link(self.path.join(name), self.previous(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Puts the signature beside a container, before it is there itself; those of older versions than the one that is in
    /// force now go.
    fn keep_signature(&self, name: &str) -> io::Result<()> {
        let Some(stem) = name.strip_suffix(".cvd") else { return Ok(()) };
        let current = version(&self.path.join(name));
        for entry in fs::read_dir(&self.path)? {
            let file = entry?.file_name().to_string_lossy().into_owned();
            let number = file.strip_prefix(stem).and_then(|rest| rest.strip_prefix('-')?.strip_suffix(".cvd.sign"));
            let number = number.and_then(|number| number.parse::<u32>().ok());
            if number.is_some_and(|number| Some(number) < current) {
                fs::remove_file(self.path.join(file))?;
            }
        }
        match signed::beside(&self.coming(name)) {
            Some(sign) => fs::rename(&sign, self.path.join(sign.file_name().unwrap_or_default())),
            None => Ok(()),
        }
    }

    /// A container is in force under one of its names.
    fn retire_sibling(&self, name: &str) -> io::Result<()> {
        let Some(other) = sibling(name).filter(|other| self.path.join(other).is_file()) else {
            return Ok(());
        };
        // What was before under this name is older still.
        let _ = fs::remove_file(self.previous(name));
        fs::rename(self.path.join(&other), self.previous(&other))
    }

    fn coming(&self, name: &str) -> PathBuf {
        self.path.join(".coming").join(name)
    }

    fn previous(&self, name: &str) -> PathBuf {
        self.path.join(".previous").join(name)
    }
}
