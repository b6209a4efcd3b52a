//! Signatures of containers in files of their own, where certificates are configured.
//!
//! Of `daily.cvd`, version 27500, that is `daily-27500.cvd.sign`, as ClamAV names it, or `daily.cvd.sign`. A container that
//! has none is judged by what is signed in it, as always, unless signatures are required: who serves the files could
//! leave them out. One with a bad one is refused. What incremental updates have made, a `.cld`, has none: with signatures
//! required each of the updates needs one.

use std::fs;
use std::path::{Path, PathBuf};

use scan::Authorities;
use sha2::{Digest, Sha256};

use super::files::version;
use super::source::Source;
use crate::output::Failure;

/// The longest file of certificates or signatures, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Authorities for signers of databases; without certificates nothing is checked.
#[derive(Debug, Default)]
pub struct Checker {
    authorities: Option<Authorities>,
    required: bool,
}

impl Checker {
    /// Reads certificates: a file, or those of a folder that end in `.crt` or `.pem`.
    ///
    /// # Errors
    /// When there is none, or one cannot be read.
    pub fn open(certificates: Option<&Path>) -> Result<Checker, Failure> {
        let Some(path) = certificates else { return Ok(Checker::default()) };
        let mut authorities = Authorities::default();
        for file in files(path).map_err(|error| format!("{}: {error}", path.display()))? {
            let failed = |error: String| format!("{}: {error}", file.display());
            let text = read(&file).map_err(|error| failed(error.to_string()))?;
            authorities.add_pem(&text).map_err(failed)?;
        }
        if authorities == Authorities::default() {
            return Err(format!("{}: no certificates", path.display()).into());
        }
        Ok(Checker { authorities: Some(authorities), required: false })
    }

    /// The same, for which a container without a signature is as one with a bad one.
    pub fn requiring(self, required: bool) -> Checker {
        Checker { required, ..self }
    }

    /// Whether what has no signature is refused.
    pub fn is_required(&self) -> bool {
        self.required
    }

    /// Whether there are certificates.
    pub fn is_wanted(&self) -> bool {
        self.authorities.is_some()
    }

    /// Verifies the signature beside a file that was read. Returns who signed it, if there is one.
    ///
    /// # Errors
    /// If it is not that of the file.
    pub fn check(&self, source: &Source) -> Result<Option<String>, String> {
        self.check_digest(Path::new(&source.path), || digest(&source.sha256))
    }

    /// Verifies the signature beside a file with this content. Returns who signed it, if there is one.
    ///
    /// # Errors
    /// If it is not that of the file.
    pub fn check_bytes(&self, path: &Path, bytes: &[u8]) -> Result<Option<String>, String> {
        self.check_digest(path, || Some(Sha256::digest(bytes).into()))
    }

    fn check_digest(&self, path: &Path, sha256: impl Fn() -> Option<[u8; 32]>) -> Result<Option<String>, String> {
        let Some(beside) = beside(path).filter(|_| self.is_wanted()) else {
            let is_container = path.extension().is_some_and(|ending| ending == "cvd");
            return match self.required && is_container {
                true => Err(format!("{}: no detached signature, and signatures are required", path.display())),
                false => Ok(None),
            };
        };
        let failed = |error: String| format!("{}: {error}", beside.display());
        let sign = read(&beside).map_err(|error| failed(error.to_string()))?;
        let sha256 = sha256().ok_or("no digest")?;
        self.verify(&sign, &sha256).map(Some).map_err(failed)
    }

    /// Whether `sign` signs what has this SHA-256, now; by whom.
    ///
    /// # Errors
    /// If it does not, or there are no certificates.
    pub fn verify(&self, sign: &[u8], sha256: &[u8; 32]) -> Result<String, String> {
        let authorities = self.authorities.as_ref().ok_or("no certificates")?;
        authorities.verify(sign, sha256, super::now())
    }
}

/// The file that holds the signature of a container, if there is one.
pub fn beside(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let stem = name.strip_suffix(".cvd")?;
    let numbered = version(path).map(|version| format!("{stem}-{version}.cvd.sign"));
    let names = numbered.into_iter().chain([format!("{name}.sign")]);
    names.map(|name| path.with_file_name(name)).find(|path| path.is_file())
}

fn files(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.into()]);
    }
    let entries: std::io::Result<Vec<PathBuf>> = fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect();
    let mut files = entries?;
    files.retain(|file| file.extension().is_some_and(|ending| ending == "crt" || ending == "pem") && file.is_file());
    files.sort();
    Ok(files)
}

fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    if fs::metadata(path)?.len() > FILE_BYTES_MAX {
        return Err(std::io::Error::other(format!("longer than {FILE_BYTES_MAX} bytes")));
    }
    fs::read(path)
}

fn digest(text: &str) -> Option<[u8; 32]> {
    let bytes: Option<Vec<u8>> =
        (0..text.len() / 2).map(|at| u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()).collect();
    bytes?.try_into().ok()
}
