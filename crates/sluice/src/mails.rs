//! Mails that a command is given: files, folders, Maildirs, mailboxes (mbox) and the standard input, one after the other.
//!
//! Folders are listed before anything is read. Of a mail, not more is held than is asked for; what is longer is told and left out.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use crate::output::Failure;
use crate::store::{maildir, mbox};

/// Where mails are.
#[derive(Default)]
pub struct Mails {
    files: Vec<PathBuf>,
    is_mbox: bool,
    bytes_max: u64,
    /// The bytes of all files that are no pipes.
    pub total_bytes: u64,
}

/// A mail; nothing where it is too long; and why a place cannot be read, which is passed over.
pub type Found = Result<Option<Vec<u8>>, String>;

impl Mails {
    /// Mails at these paths, none of more than so many bytes. `is_mbox`: files hold many mails; `is_folder`: no path
    /// is a file.
    ///
    /// # Errors
    /// A folder that cannot be read, and a file where a folder is wanted.
    pub fn list(paths: &[PathBuf], is_mbox: bool, is_folder: bool, bytes_max: u64) -> Result<Mails, Failure> {
        let mut files = Vec::new();
        for path in paths {
            let of = |error: io::Error| format!("{}: {error}", path.display());
            match path.is_dir() && !is_mbox {
                false if is_folder => return Err(of(io::ErrorKind::NotADirectory.into()).into()),
                false => files.push(path.clone()),
                true if maildir::is_one(path) => {
                    for (_, folder) in maildir::mailboxes(path).map_err(of)? {
                        files.extend(maildir::mails(&folder).map_err(of)?.into_iter().map(|mail| mail.path));
                    }
                }
                true => files.extend(within(path).map_err(of)?),
            }
        }
        if paths.is_empty() {
            files.push("-".into());
        }
        let bytes = files.iter().filter_map(|file| fs::metadata(file).ok()).map(|facts| facts.len());
        Ok(Mails { total_bytes: bytes.sum(), files, is_mbox, bytes_max })
    }

    /// Reads them in order.
    ///
    /// # Errors
    /// Those of `each`.
    pub fn read(&self, mut each: impl FnMut(Found) -> Result<(), Failure>) -> Result<(), Failure> {
        for file in &self.files {
            let opened: io::Result<Box<dyn BufRead>> = match file == Path::new("-") {
                true => Ok(Box::new(io::stdin().lock())),
                false => File::open(file).map(|opened| Box::new(BufReader::new(opened)) as Box<dyn BufRead>),
            };
            let read = opened.map_err(Failure::from).and_then(|input| match self.is_mbox {
                true => self.mailbox(input, &mut each),
                false => each(Ok(whole(input, self.bytes_max)?)),
            });
            match read {
                Ok(()) => {}
                // What cannot be read is one thing, what `each` says another.
                Err(error) if error.is::<io::Error>() => each(Err(format!("{}: {error}", file.display())))?,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn mailbox(&self, input: impl BufRead, each: &mut impl FnMut(Found) -> Result<(), Failure>) -> Result<(), Failure> {
        let mut mail: Option<Option<Vec<u8>>> = None;
        mbox::read(input, |item| {
            match item {
                mbox::Item::Mail(_) => {
                    if let Some(bytes) = mail.replace(Some(Vec::new())) {
                        each(Ok(bytes))?;
                    }
                }
                mbox::Item::Content(piece) => {
                    let bytes = mail.as_mut().and_then(Option::as_mut);
                    match bytes.filter(|bytes| (bytes.len() + piece.len()) as u64 <= self.bytes_max) {
                        Some(bytes) => bytes.extend_from_slice(piece),
                        None => mail = Some(None),
                    }
                }
            }
            Ok::<(), Failure>(())
        })?;
        mail.map_or(Ok(()), |bytes| each(Ok(bytes)))
    }
}

/// The files of a folder, by name.
fn within(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// A file, unless it is too long.
fn whole(input: impl Read, bytes_max: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    input.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= bytes_max).then_some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(mails: &Mails) -> Vec<Result<Option<usize>, String>> {
        let mut found = Vec::new();
        let each = |mail: Found| {
            found.push(mail.map(|bytes| bytes.map(|bytes| bytes.len())));
            Ok(())
        };
        mails.read(each).unwrap();
        found
    }

    #[test]
    fn mails_are_found_in_files_folders_and_mailboxes() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["plain", "maildir/cur", "maildir/new", "maildir/.Sub/cur"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        for (name, text) in [
            ("plain/b", "A: b\n\n12"),
            ("plain/a", "A: b\n\n"),
            ("maildir/cur/1:2,S", "A: b\n\n1"),
            ("maildir/.Sub/cur/2", "A: b\n\n"),
            ("box", "From a\nA: b\n\nx\n\nFrom b DATE\nA: b\n\n>From y\n\nFrom c DATE\nlong long long\n"),
        ] {
            fs::write(at(name), text.replace("DATE", "Mon Feb  3 10:00:00 2020")).unwrap();
        }
        let list = |paths: &[&str], is_mbox| {
            let paths: Vec<PathBuf> = paths.iter().map(|path| at(path)).collect();
            Mails::list(&paths, is_mbox, false, 13).unwrap()
        };
        assert_eq!(read(&list(&["plain", "plain/b"], false)), [Ok(Some(6)), Ok(Some(8)), Ok(Some(8))]);
        assert_eq!(read(&list(&["maildir"], false)), [Ok(Some(7)), Ok(Some(6))]);
        assert_eq!(read(&list(&["box"], true)), [Ok(Some(8)), Ok(Some(13)), Ok(None)]);
        let missing = read(&list(&["none", "plain/a"], false));
        assert!(missing[0].as_ref().is_err_and(|reason| reason.contains("none: No such file")), "{missing:?}");
        assert_eq!(missing[1], Ok(Some(6)));
        let none = read(&list(&["plain/a"], true));
        assert!(none[0].as_ref().is_err_and(|reason| reason.contains("no mbox")), "{none:?}");
        assert!(Mails::list(&[at("box")], false, true, 1).is_err());
    }
}
