//! The folder of rule sets.
//!
//! ```text
//!  FOLDER/rules/        in force; for `[ids] rules`
//!  FOLDER/.coming/      a set that is being put together
//!  FOLDER/.previous/    in force before
//!  FOLDER/.state.json   state of the sources
//!  FOLDER/.lock         held during an update
//! ```
//!
//! A set comes into force by an exchange of two names: whoever reads finds the old one or the new one, whole. The folder is held open,
//! and links in it are not followed.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::super::folder::STATE;
use super::{Files, State};
use crate::process::held::Held;

const RULES: &str = "rules";
const COMING: &str = ".coming";
const PREVIOUS: &str = ".previous";

/// The folder, during an update.
pub struct Folder {
    /// The folder itself.
    pub held: Held,
    _lock: File,
}

impl Folder {
    /// Takes a folder for an update, and makes what is missing in it.
    ///
    /// # Errors
    /// When it cannot be written to, has links in it, or another update is under way.
    pub fn open(held: Held) -> io::Result<Folder> {
        [RULES, COMING, PREVIOUS].iter().try_for_each(|name| held.make(Path::new(name)).map(drop))?;
        let lock = held.lock_file(".lock")?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| io::Error::other("another update is under way"))?;
        Ok(Folder { held, _lock: lock })
    }

    /// The files in force.
    pub(super) fn in_force(&self) -> io::Result<Files> {
        let rules = self.held.make(Path::new(RULES))?;
        rules.names()?.into_iter().map(|name| Ok((name.clone(), rules.read(&name)?))).collect()
    }

    /// Writes a set beside the one in force; the path to it.
    pub(super) fn receive(&self, files: &Files) -> io::Result<PathBuf> {
        let coming = self.held.make(Path::new(COMING))?;
        coming.names()?.iter().try_for_each(|name| coming.remove(name))?;
        for (name, bytes) in files {
            let mut file = coming.create(name)?;
            file.write_all(bytes)?;
            file.sync_all()?;
        }
        coming.sync()?;
        Ok(coming.way())
    }

    /// Puts the set that was written in force. The one before it stays, for [`Folder::roll_back`].
    pub(super) fn put_in_force(&self) -> io::Result<()> {
        self.held.exchange(COMING, RULES)?;
        self.held.exchange(COMING, PREVIOUS)?;
        self.held.sync()
    }

    /// Puts the set before in force, and keeps the other one. Whether there is one.
    ///
    /// # Errors
    /// When the names cannot be exchanged.
    pub fn roll_back(&self) -> io::Result<bool> {
        if self.held.make(Path::new(PREVIOUS))?.names()?.is_empty() {
            return Ok(false);
        }
        self.held.exchange(PREVIOUS, RULES)?;
        self.held.sync().map(|()| true)
    }

    /// State of the last run; empty if it cannot be read.
    pub(super) fn state(&self) -> State {
        serde_json::from_slice(&self.held.read(STATE).unwrap_or_default()).unwrap_or_default()
    }

    /// Keeps the state for the next run.
    pub(super) fn keep_state(&self, state: &State) -> io::Result<()> {
        self.held.create(".state.new")?.write_all(&serde_json::to_vec_pretty(state)?)?;
        self.held.rename(".state.new", &self.held, STATE)
    }
}
