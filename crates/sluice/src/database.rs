//! Reading signature files from the disk.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use scan::{Builder, Database};

use crate::Failure;

/// The endings of the files that are loaded from a folder; others in it are passed over.
const ENDINGS: [&str; 12] = ["hdb", "hsb", "hdu", "hsu", "ndb", "ndu", "ldb", "ldu", "fp", "sfp", "ign", "ign2"];

/// The endings of ClamAV's files that are not read yet: an administrator is told of them.
const OTHER_ENDINGS: [&str; 22] = [
    "cvd", "cld", "cud", "mdb", "msb", "mdu", "msu", "imp", "cdb", "ftm", "pdb", "wdb", "gdb", "crb", "cat", "cbc",
    "yar", "yara", "idb", "pwdb", "ioc", "zmd",
];

/// Signatures, ready to be matched.
pub struct Loaded {
    /// The compiled signatures.
    pub database: Arc<Database>,
    /// How many there are.
    pub signatures: u64,
    /// Files that they came from, the built-in ones not counted.
    pub files: usize,
    /// Signatures that this version cannot match, each with its reason.
    pub refused: Vec<String>,
    /// Files of ClamAV's in the folders that this version does not read.
    pub passed_over: Vec<PathBuf>,
}

impl Loaded {
    /// Says in the log what was not loaded.
    pub fn warn(&self) {
        for path in &self.passed_over {
            tracing::warn!(file = %path.display(), "signatures not loaded: this kind of database is not read yet");
        }
        if let Some(first) = self.refused.first() {
            tracing::warn!(count = self.refused.len(), first, "signatures of forms that cannot be matched yet");
        }
    }
}

impl fmt::Display for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} signatures from {} files", self.signatures, self.files)?;
        if let Some(first) = self.refused.first() {
            write!(f, ", {} refused (first: {first})", self.refused.len())?;
        }
        for path in &self.passed_over {
            write!(f, "\n{}: not loaded: this kind of database is not read yet", path.display())?;
        }
        Ok(())
    }
}

/// Loads the files and folders at `paths`, and the built-in signatures.
///
/// # Errors
/// When a file cannot be read or a line in it not be understood: the message names both.
pub fn load(paths: &[PathBuf], builtin: bool) -> Result<Loaded, Failure> {
    let mut builder = Builder::new();
    if builtin {
        builder.add_builtin();
    }
    let (mut files, mut passed_over) = (Vec::new(), Vec::new());
    for path in paths {
        collect(path, &mut files, &mut passed_over)?;
    }
    // Lists of names to ignore speak of the files after them.
    files.sort_by_key(|file| !file.extension().is_some_and(|ending| ending == "ign" || ending == "ign2"));
    for file in &files {
        let text = std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
        builder.add(&file.display().to_string(), &text)?;
    }
    let database = builder.build();
    let census = database.census();
    Ok(Loaded {
        signatures: census.exact + census.at_end + census.bounded,
        refused: census.refused.iter().map(|refused| format!("{}: {}", refused.name, refused.reason)).collect(),
        files: files.len(),
        passed_over,
        database: Arc::new(database),
    })
}

/// A file as it is named, or what a folder holds, in the order of the names.
fn collect(path: &Path, files: &mut Vec<PathBuf>, passed_over: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let facts = std::fs::metadata(path).map_err(|error| format!("{}: {error}", path.display()))?;
    if !facts.is_dir() {
        files.push(path.into());
        return Ok(());
    }
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path).map_err(|error| format!("{}: {error}", path.display()))? {
        let path = entry?.path();
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        if ENDINGS.contains(&ending) {
            found.push(path);
        } else if OTHER_ENDINGS.contains(&ending) {
            passed_over.push(path);
        }
    }
    found.sort();
    files.append(&mut found);
    Ok(())
}
