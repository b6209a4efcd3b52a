//! Maildir folders, with the subfolders of Maildir++ (`.Sent`, `.Lists.rust`): read to be imported, written to be exported.
//!
//! Flags are those of file names (`:2,FRS`); the time of a mail is that of its file. Keywords have no common form there and
//! are left out.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use store::Flags;

/// The letters of flags, in the order in which they stand in names.
const LETTERS: [(u8, u64); 5] = [
    (b'D', Flags::DRAFT),
    (b'F', Flags::FLAGGED),
    (b'R', Flags::ANSWERED),
    (b'S', Flags::SEEN),
    (b'T', Flags::DELETED),
];

/// A mail in a folder.
pub struct Mail {
    pub path: PathBuf,
    pub flags: u64,
    /// Seconds since 1970.
    pub date: i64,
}

/// Whether this is a Maildir.
pub fn is_one(folder: &Path) -> bool {
    folder.join("cur").is_dir()
}

/// The mailboxes of a Maildir: names with their folders, the inbox first.
pub fn mailboxes(folder: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if let Some(name) = name.to_str().and_then(|name| name.strip_prefix('.'))
            && is_one(&entry.path())
        {
            found.push((name.replace('.', "/"), entry.path()));
        }
    }
    found.sort();
    found.insert(0, ("INBOX".to_owned(), folder.to_owned()));
    Ok(found)
}

/// The mails of one folder, the oldest first.
pub fn mails(folder: &Path) -> io::Result<Vec<Mail>> {
    let mut mails = Vec::new();
    for part in ["cur", "new"] {
        let entries = match fs::read_dir(folder.join(part)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let metadata = entry.metadata()?;
            if !metadata.is_file() || entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            let since = metadata.modified()?.duration_since(SystemTime::UNIX_EPOCH);
            let date = since.map_or(0, |since| since.as_secs() as i64);
            mails.push(Mail { flags: flags(entry.file_name().as_encoded_bytes()), path: entry.path(), date });
        }
    }
    mails.sort_by(|a, b| (a.date, a.path.file_name()).cmp(&(b.date, b.path.file_name())));
    Ok(mails)
}

fn flags(name: &[u8]) -> u64 {
    let Some(at) = name.windows(3).rposition(|window| window == b":2,") else { return 0 };
    LETTERS.iter().filter(|(letter, _)| name[at + 3..].contains(letter)).map(|(_, flag)| flag).sum()
}

/// A Maildir being written.
pub struct Writer {
    folder: PathBuf,
}

impl Writer {
    /// The folder of a mailbox below `folder`, made if need be.
    pub fn new(folder: &Path, mailbox: &str) -> io::Result<Self> {
        let folder = match mailbox {
            "INBOX" => folder.to_owned(),
            _ => folder.join(format!(".{}", escaped(mailbox))),
        };
        for part in ["cur", "new", "tmp"] {
            fs::create_dir_all(folder.join(part))?;
        }
        Ok(Writer { folder })
    }

    /// Writes a mail, with what `fill` writes as its content.
    pub fn add(
        &self,
        name: &str,
        flags: Flags,
        date: i64,
        fill: impl FnOnce(&mut fs::File) -> Result<(), crate::Failure>,
    ) -> Result<(), crate::Failure> {
        let temporary = self.folder.join("tmp").join(name);
        let mut file = fs::File::create_new(&temporary)?;
        fill(&mut file)?;
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(date.max(0) as u64))?;
        let letters = LETTERS.iter().filter(|(_, flag)| flags.has(*flag)).map(|&(letter, _)| char::from(letter));
        let letters: String = letters.collect();
        fs::rename(temporary, self.folder.join("cur").join(format!("{name}:2,{letters}")))?;
        Ok(())
    }
}

/// The name of a folder for a mailbox: levels are parted by dots, and no name leads elsewhere.
fn escaped(mailbox: &str) -> String {
    mailbox.replace(['.', '\0'], "_").replace('/', ".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_flags_and_lead_nowhere_else() {
        assert_eq!(flags(b"123.host:2,FS"), Flags::FLAGGED | Flags::SEEN);
        assert_eq!(flags(b"123.host"), 0);
        assert_eq!(escaped("../../etc/passwd"), "__.__.etc.passwd");
    }
}
