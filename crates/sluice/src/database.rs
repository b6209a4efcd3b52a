//! Reading signature files from the disk.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use scan::{Builder, Database};

use crate::Failure;

/// The endings of the files that are loaded from a folder; others in it are passed over.
const ENDINGS: [&str; 12] = ["hdb", "hsb", "hdu", "hsu", "ndb", "ndu", "ldb", "ldu", "fp", "sfp", "ign", "ign2"];

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
}

impl fmt::Display for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} signatures from {} files", self.signatures, self.files)?;
        match self.refused.len() {
            0 => Ok(()),
            refused => write!(f, ", {refused} refused (first: {})", self.refused[0]),
        }
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
    let mut files = Vec::new();
    for path in paths {
        collect(path, &mut files)?;
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
        database: Arc::new(database),
    })
}

/// A file as it is named, or what a folder holds, in the order of the names.
fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let facts = std::fs::metadata(path).map_err(|error| format!("{}: {error}", path.display()))?;
    if !facts.is_dir() {
        files.push(path.into());
        return Ok(());
    }
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path).map_err(|error| format!("{}: {error}", path.display()))? {
        let path = entry?.path();
        let known = path.extension().and_then(|ending| ending.to_str()).is_some_and(|ending| ENDINGS.contains(&ending));
        if known && path.is_file() {
            found.push(path);
        }
    }
    found.sort();
    files.append(&mut found);
    Ok(())
}
