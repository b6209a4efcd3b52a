//! The folder of what ACME has given us: `account-SERVER.json` and, for each certificate, `NAME.pem`, its key and its
//! chain in one file, so that they always belong together.
//!
//! Files have mode 0600, the folder 0700. A file is replaced whole, and is on the disk when that is done: a crash leaves
//! the old one or the new one, and perhaps a `.part` that the next one overwrites.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// The largest file that is read.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Where the certificate of this first name is.
pub fn path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.pem"))
}

/// Where the account with this server is.
pub fn account(folder: &Path, directory: &str) -> PathBuf {
    let server = directory.trim_start_matches("https://").split('/').next().unwrap_or_default();
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' || c == '-' { c } else { '_' };
    folder.join(format!("account-{}.json", server.chars().map(plain).collect::<String>()))
}

/// Content of a file; none if it does not exist.
///
/// # Errors
/// When it cannot be read.
pub fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// Puts this into a file, durably, in place of what is there.
///
/// # Errors
/// When it cannot be written; what was there is there still.
pub fn keep(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().expect("a file in the folder");
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let name = path.file_name().expect("a file in the folder").to_string_lossy();
    let unfinished = folder.join(format!(".{name}.part"));
    let _ = fs::remove_file(&unfinished);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(unfinished, path)?;
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn nobody_else_can_read_what_is_kept_and_it_is_replaced_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = path(&folder.path().join("acme"), "mx.example.org");
        assert_eq!(read(&path).unwrap(), None);
        for text in ["first", "second"] {
            keep(&path, text.as_bytes()).unwrap();
            assert_eq!(read(&path).unwrap().unwrap(), text.as_bytes());
        }
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn each_server_has_an_account_of_its_own() {
        let account = |directory| account(Path::new("f"), directory).display().to_string();
        assert_eq!(account("https://acme.example/directory"), "f/account-acme.example.json");
        assert_eq!(account("https://../..:14000/dir"), "f/account-...json");
        assert_eq!(account("https://[::1]:14000/dir"), "f/account-___1__14000.json");
    }
}
