//! Reading signature files from the disk.

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use scan::{Builder, Database};

use crate::Failure;

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

impl Loaded {
    /// Says in the log what was not loaded.
    pub fn warn(&self) {
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
    let files = files(paths)?;
    for file in &files {
        let bytes = std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
        builder.add(&file.display().to_string(), &bytes)?;
    }
    let database = builder.build();
    let census = database.census();
    Ok(Loaded {
        signatures: census.signatures(),
        refused: census.refused.iter().map(|refused| format!("{}: {}", refused.name, refused.reason)).collect(),
        files: files.len(),
        database: Arc::new(database),
    })
}

/// The files at `paths` in the order in which they are loaded.
///
/// # Errors
/// When a path cannot be read.
pub fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in paths {
        collect(path, &mut files)?;
    }
    // Lists of names to ignore speak of the files after them.
    files.sort_by_key(|file| !file.extension().is_some_and(|ending| ending == "ign" || ending == "ign2"));
    Ok(files)
}

/// A file as it is named, or what a folder holds, in the order of the names. Files that are no databases are passed
/// over; of a container that is there as published and as updated, the newer is taken.
fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let facts = std::fs::metadata(path).map_err(|error| format!("{}: {error}", path.display()))?;
    if !facts.is_dir() {
        files.push(path.into());
        return Ok(());
    }
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path).map_err(|error| format!("{}: {error}", path.display()))? {
        let path = entry?.path();
        if path.is_file() && path.file_name().is_some_and(|name| scan::is_database(&name.to_string_lossy())) {
            found.push(path);
        }
    }
    found.sort();
    let older = |path: &PathBuf| {
        let other = match path.extension().and_then(|ending| ending.to_str()) {
            Some("cvd") => path.with_extension("cld"),
            Some("cld") => path.with_extension("cvd"),
            _ => return false,
        };
        found.contains(&other) && (version(path), path) < (version(&other), &other)
    };
    let older: Vec<PathBuf> = found.iter().filter(|path| older(path)).cloned().collect();
    found.retain(|path| !older.contains(path));
    files.append(&mut found);
    Ok(())
}

/// The version of a container, as it says itself.
fn version(path: &Path) -> Option<u32> {
    let mut head = Vec::new();
    std::fs::File::open(path).ok()?.take(512).read_to_end(&mut head).ok()?;
    scan::container_version(&head)
}
