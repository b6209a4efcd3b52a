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
//! The folder is held open, and nothing in it is read or written through a link: it may belong to somebody else than who
//! runs this. Root becomes its owner first (`privileges::enter`).
//!
//! A file changes by a rename, so that who reads it reads the old one or the new one. After a stop in between, some files
//! are new and some old, each whole; the next run goes on from there.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use sha2::{Digest, Sha256};

use super::state::State;
use crate::database;
use crate::database::Choice;
use crate::database::signed::{self, Checker};
use crate::output::Failure;
use crate::process::held::Held;

/// The file that remembers what servers have answered.
pub const STATE: &str = ".state.json";

/// The most incremental updates that are fetched in place of the whole.
const STEPS_MAX: u32 = 32;

/// The head of a container.
const HEAD_BYTES: u64 = 512;

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
    /// The folder itself.
    pub held: Held,
    coming: Held,
    previous: Held,
    /// The path by which whoever opens paths finds it.
    way: PathBuf,
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
    /// Takes a folder for an update, and makes what is missing in it.
    ///
    /// # Errors
    /// When it cannot be written to, somebody has put links there, or somebody else updates it.
    pub fn open(held: Held, checker: Checker) -> io::Result<Folder> {
        let (coming, previous) = (held.make(Path::new(".coming"))?, held.make(Path::new(".previous"))?);
        let lock = held.lock_file(".lock")?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| io::Error::other("another update is under way"))?;
        let way = held.way();
        Ok(Folder { held, coming, previous, way, checker, _lock: lock })
    }

    /// State of the last run; empty if it cannot be read.
    pub fn state(&self) -> State {
        let text = self.held.read(STATE).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// Remembers.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep_state(&self, state: &State) -> io::Result<()> {
        self.held.create(".state.new")?.write_all(&serde_json::to_vec_pretty(state)?)?;
        self.held.rename(".state.new", &self.held, STATE)
    }

    /// Whether there is a file of this name in force.
    pub fn holds(&self, name: &str) -> bool {
        self.held.has(name) || sibling(name).is_some_and(|name| self.held.has(&name))
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
        names.find_map(|name| self.held.read(&name).ok().map(|bytes| (name, bytes)))
    }

    /// The version of a container that came.
    pub fn coming_version(&self, name: &str) -> Option<u32> {
        self.coming.file(name).ok().and_then(version_of)
    }

    /// The version of a container that is in force as it was published, if there is no signature beside it.
    pub fn unsigned_version(&self, name: &str) -> Option<u32> {
        let version = self.held.file(name).ok().and_then(version_of);
        version.filter(|_| name.ends_with(".cvd") && signed::beside(&self.way.join(name)).is_none())
    }

    /// Puts a signature that came beside the container that is in force, if it is its own.
    ///
    /// # Errors
    /// When it is not, or cannot be put there.
    pub fn put_signature_in_force(&self, name: &str) -> Result<(), String> {
        let version = self.held.file(name).ok().and_then(version_of);
        let Some(sign) = version.map(|version| name.replace(".cvd", &format!("-{version}.cvd.sign"))) else {
            return Ok(());
        };
        let bytes = self.held.read(name).map_err(|error| error.to_string())?;
        let text = self.coming.read(&sign).map_err(|error| error.to_string())?;
        let verified = self.checker.verify(&text, &Sha256::digest(&bytes).into());
        if let Err(reason) = verified {
            let _ = self.coming.remove(&sign);
            return Err(format!("{sign}: {reason}"));
        }
        self.coming.move_to(&sign, &self.held).map_err(|error| error.to_string())
    }

    /// Reads a file in force.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        self.held.read(name)
    }

    /// Takes a file that comes, and returns how long it is.
    ///
    /// # Errors
    /// When it does not come whole, or cannot be written.
    pub fn receive(&self, name: &str, mut body: impl Read) -> io::Result<u64> {
        let mut file = self.coming.create(name)?;
        let count = io::copy(&mut body, &mut file)?;
        file.flush()?;
        file.sync_all()?;
        Ok(count)
    }

    /// Reads what came, which has this SHA-256 if one is named. Whether it is newer than what is in force.
    ///
    /// # Errors
    /// When it is no database, is not as it was signed, or is older than what is in force; the message says so.
    pub fn look_at(&self, name: &str, sha256: Option<&str>) -> Result<bool, String> {
        let looked = self.judge(name, sha256);
        if looked != Ok(true) {
            let sign = signed::beside(&self.coming_path(name));
            sign.into_iter().for_each(|sign| _ = fs::remove_file(sign));
            let _ = self.coming.remove(name);
        }
        looked
    }

    fn judge(&self, name: &str, sha256: Option<&str>) -> Result<bool, String> {
        let bytes = self.coming.read(name).map_err(|error| error.to_string())?;
        let is = || Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        if sha256.is_some_and(|wanted| wanted != is()) {
            return Err(format!("its SHA-256 is {}, not the expected one", is()));
        }
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
        let path = self.coming_path(name);
        self.checker.check_bytes(&path, &bytes)?;
        let looked = database::load(&[path], &Choice::default(), &self.checker);
        looked.map(|_| true).map_err(|error| self.shown(&error))
    }

    /// Puts these files, which came and were looked at, in force, if the whole folder can be read with them.
    ///
    /// # Errors
    /// When it cannot: nothing has changed then.
    pub fn put_in_force(&self, names: &[String]) -> Result<(), Failure> {
        if names.is_empty() {
            return Ok(());
        }
        let mut paths: Vec<PathBuf> = names.iter().map(|name| self.coming_path(name)).collect();
        for name in self.held.names()? {
            let is_replaced = names.contains(&name) || sibling(&name).is_some_and(|name| names.contains(&name));
            if scan::is_database(&name) && !is_replaced {
                paths.push(self.way.join(&name));
            }
        }
        database::load(&paths, &Choice::default(), &self.checker).map_err(|error| self.shown(&error))?;
        for name in names {
            self.keep_previous(name)?;
            self.keep_signature(name)?;
            self.coming.move_to(name, &self.held)?;
            self.retire_sibling(name)?;
        }
        Ok(self.held.sync()?)
    }

    /// Swaps the files in force with those before. Returns the names.
    ///
    /// # Errors
    /// When a file cannot be renamed.
    pub fn roll_back(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for name in self.previous.names()? {
            self.previous.move_to(&name, &self.coming)?;
            self.keep_previous(&name)?;
            self.coming.move_to(&name, &self.held)?;
            self.retire_sibling(&name)?;
            names.push(name);
        }
        Ok(names)
    }

    /// The file in force has a second name from here on.
    fn keep_previous(&self, name: &str) -> io::Result<()> {
        self.previous.remove(name)?;
        self.held.link(name, &self.previous).map(drop)
    }

    /// Puts the signature beside a container, before it is there itself; those of older versions than the one that is in
    /// force now go.
    fn keep_signature(&self, name: &str) -> io::Result<()> {
        let Some(stem) = name.strip_suffix(".cvd") else { return Ok(()) };
        let current = self.held.file(name).ok().and_then(version_of);
        for file in self.held.names()? {
            let number = file.strip_prefix(stem).and_then(|rest| rest.strip_prefix('-')?.strip_suffix(".cvd.sign"));
            let number = number.and_then(|number| number.parse::<u32>().ok());
            if number.is_some_and(|number| Some(number) < current) {
                self.held.remove(&file)?;
            }
        }
        let sign = signed::beside(&self.coming_path(name));
        match sign.as_deref().and_then(Path::file_name).and_then(|name| name.to_str()) {
            Some(sign) => self.coming.move_to(sign, &self.held),
            None => Ok(()),
        }
    }

    /// A container is in force under one of its names.
    fn retire_sibling(&self, name: &str) -> io::Result<()> {
        let Some(other) = sibling(name).filter(|other| self.held.has(other)) else {
            return Ok(());
        };
        // What was before under this name is older still.
        self.previous.remove(name)?;
        self.held.move_to(&other, &self.previous)
    }

    fn coming_path(&self, name: &str) -> PathBuf {
        self.way.join(".coming").join(name)
    }

    /// Error text with the folder's own path.
    fn shown(&self, error: &Failure) -> String {
        error.to_string().replace(&*self.way.to_string_lossy(), &self.held.path().to_string_lossy())
    }
}

/// The version of a container, as it says itself.
fn version_of(file: File) -> Option<u32> {
    let mut head = Vec::new();
    file.take(HEAD_BYTES).read_to_end(&mut head).ok()?;
    scan::container_version(&head)
}
