//! Record of files that earlier scans found clean.

use std::fs::File;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use avfs::{Before, Generation, Verdicts};

use crate::output::Failure;
use crate::process::held::Held;

/// Rows of the table: 80 MiB, for some three million files.
const ROWS: usize = 1 << 20;

/// How often it is written down.
const SAVED_EVERY: Duration = Duration::from_secs(30);

/// The files of earlier scans, where `--state` names a folder.
pub struct Known {
    kept: Option<(Verdicts, Held)>,
    generation: Generation,
    saved: Mutex<Instant>,
}

impl Known {
    /// As it is kept in this folder, for this generation of signatures and options.
    ///
    /// # Errors
    /// When the folder cannot be had.
    pub fn open(path: Option<&Path>, generation: &[u8]) -> Result<Known, Failure> {
        let held = Held::private(path)?;
        let open = |held: Held| Ok((Verdicts::open(Some(held.as_fd().try_clone_to_owned()?), ROWS)?, held));
        let kept = held.map(open).transpose().map_err(|error: std::io::Error| error)?;
        Ok(Known { kept, generation: Generation::of(generation), saved: Mutex::new(Instant::now()) })
    }

    /// The folder that is written to.
    pub fn folder(&self) -> Option<&Held> {
        self.kept.as_ref().map(|kept| &kept.1)
    }

    /// Whether a file is known to be clean; otherwise what [`Known::learn`] wants.
    pub fn ask(&self, file: &File) -> Asked {
        let Some((verdicts, _)) = &self.kept else { return Asked::Unknown(None) };
        match verdicts.ask(file, self.generation) {
            Ok(None) => Asked::Clean,
            Ok(before) => Asked::Unknown(before),
            Err(_) => Asked::Unknown(None),
        }
    }

    /// Nothing was found in a file.
    pub fn learn(&self, before: &Before, file: &File) {
        let Some((verdicts, _)) = &self.kept else { return };
        // A file of which the system says nothing is not remembered.
        let _ = verdicts.learn(before, file);
        // Whoever comes meanwhile goes on.
        let Ok(mut saved) = self.saved.try_lock() else { return };
        if saved.elapsed() >= SAVED_EVERY {
            warn(verdicts);
            *saved = Instant::now();
        }
    }

    /// Writes down what is known.
    pub fn end(&self) {
        let _turn = self.saved.lock().unwrap_or_else(PoisonError::into_inner);
        self.kept.iter().for_each(|kept| warn(&kept.0));
    }
}

fn warn(verdicts: &Verdicts) {
    if let Err(error) = verdicts.save() {
        eprintln!("sluice: the list of clean files cannot be written: {error}");
    }
}

/// Answer of the record about a file.
pub enum Asked {
    /// It was clean, and is as it was.
    Clean,
    /// It is to be looked at, and remembered if something is there to remember it by.
    Unknown(Option<Before>),
}
