//! Maildir folders, with the subfolders of Maildir++ (`.Sent`, `.Lists.rust`): read to be imported, written to be exported.
//!
//! Flags are those of file names (`:2,FRS`); the time of a mail is that of its file. Keywords are read as Dovecot writes them (letters, and
//! their names in `dovecot-keywords`), and written nowhere. The name of a mailbox that is too long for a folder stands in a file in it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use store::Flags;

use super::marks::Marks;
use super::names;

/// How the names of mails end that were written here, before the flags.
pub const SUFFIX: &str = ".sluice";

/// The file with the name of a mailbox.
const NAME_FILE: &str = "sluice-mailbox";

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
    pub keywords: Vec<String>,
    /// Seconds since 1970.
    pub date: i64,
}

/// The longest file of keywords that is read, in bytes.
const KEYWORDS_BYTES_MAX: u64 = 64 << 10;

/// Levels of folders without dots that are looked into.
const LEVELS_MAX: usize = 16;

/// Why the file of a mail is none: what plugins of Dovecot have made of it begins like this.
pub fn is_wrapped(head: &[u8]) -> Option<&'static str> {
    const COMPRESSED: [&[u8]; 6] = [
        b"\x1f\x8b\x08",
        b"BZh",
        b"\xfd7zXZ\0",
        b"\x28\xb5\x2f\xfd",
        b"\x04\x22\x4d\x18",
        b"Dovecot-LZ4\r\x2a\x9b\xc5",
    ];
    match () {
        () if COMPRESSED.iter().any(|magic| head.starts_with(magic)) => {
            Some("compressed (Dovecot's zlib plugin): write the mails out first, with doveadm backup or a decompressor")
        }
        () if head.starts_with(b"CRYPTED\x03\x07") => {
            Some("encrypted (Dovecot's mail_crypt plugin): write the mails out first, with doveadm backup")
        }
        () => None,
    }
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
            let name = if names::is_cut(name) { whole_name(&entry.path())? } else { names::mailbox(name) };
            found.push((name, entry.path()));
        }
    }
    below(folder, "", 0, &mut found)?;
    found.sort();
    found.insert(0, ("INBOX".to_owned(), folder.to_owned()));
    Ok(found)
}

/// Mailboxes in folders without a dot in front (`LAYOUT=fs` of Dovecot).
fn below(folder: &Path, above: &str, level: usize, found: &mut Vec<(String, PathBuf)>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| !name.starts_with('.') && !matches!(*name, "cur" | "new" | "tmp"))
        else {
            continue;
        };
        if level < LEVELS_MAX && entry.file_type()?.is_dir() {
            let name = format!("{above}{name}");
            if is_one(&entry.path()) {
                found.push((name.clone(), entry.path()));
            }
            below(&entry.path(), &format!("{name}/"), level + 1, found)?;
        }
    }
    Ok(())
}

fn whole_name(folder: &Path) -> io::Result<String> {
    let mut name = String::new();
    fs::File::open(folder.join(NAME_FILE))?.take(store::NAME_BYTES_MAX as u64).read_to_string(&mut name)?;
    Ok(name)
}

/// The mails of one folder, the oldest first.
pub fn mails(folder: &Path) -> io::Result<Vec<Mail>> {
    let mut mails = Vec::new();
    let names = keyword_names(folder)?;
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
            let name = entry.file_name();
            let letters = letters(name.as_encoded_bytes());
            let mut marks = Marks::default();
            let numbers = letters.iter().filter(|letter| letter.is_ascii_lowercase()).map(|letter| letter - b'a');
            marks.add_keywords(numbers.filter_map(|number| names.get(&number)).map(String::as_str));
            mails.push(Mail { flags: flags(letters), keywords: marks.keywords, path: entry.path(), date });
        }
    }
    mails.sort_by(|a, b| (a.date, a.path.file_name()).cmp(&(b.date, b.path.file_name())));
    Ok(mails)
}

/// The letters of a file's name; other systems write another mark before them, since they allow no colon.
fn letters(name: &[u8]) -> &[u8] {
    let at = name.windows(3).rposition(|window| matches!(window, b":2," | b";2," | b"!2,"));
    at.map_or(&[], |at| &name[at + 3..])
}

fn flags(letters: &[u8]) -> u64 {
    LETTERS.iter().filter(|(letter, _)| letters.contains(letter)).map(|(_, flag)| flag).sum()
}

/// The names of keywords, by their numbers.
fn keyword_names(folder: &Path) -> io::Result<BTreeMap<u8, String>> {
    let mut text = String::new();
    match fs::File::open(folder.join("dovecot-keywords")) {
        Ok(file) => file.take(KEYWORDS_BYTES_MAX).read_to_string(&mut text)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
        Err(error) => return Err(error),
    };
    let named =
        |line: &str| line.split_once(' ').and_then(|(number, name)| Some((number.parse().ok()?, name.to_owned())));
    Ok(text.lines().filter_map(named).collect())
}

/// A Maildir being written.
pub struct Writer {
    folder: PathBuf,
    /// Mails of an earlier run that have not been met yet: names without flags, with those of their files and their sizes.
    present: BTreeMap<String, (PathBuf, u64)>,
}

impl Writer {
    /// The folder of a mailbox below `folder`, made if need be.
    pub fn new(folder: &Path, mailbox: &str) -> io::Result<Self> {
        let name = names::maildir(mailbox);
        let folder = match mailbox {
            "INBOX" => folder.to_owned(),
            _ => folder.join(format!(".{name}")),
        };
        for part in ["cur", "new", "tmp"] {
            fs::create_dir_all(folder.join(part))?;
        }
        if names::is_cut(&name) {
            fs::write(folder.join(NAME_FILE), mailbox)?;
        }
        Ok(Writer { folder, present: BTreeMap::new() })
    }

    /// Finds the mails of an earlier run.
    pub fn find_present(&mut self) -> io::Result<()> {
        self.present = ours(&self.folder)?;
        Ok(())
    }

    /// Whether a mail is there already; it gets these flags.
    pub fn keep(&mut self, name: &str, flags: Flags, size: u64) -> io::Result<bool> {
        let Some((path, found)) = self.present.remove(name) else { return Ok(false) };
        let wanted = self.path_of(name, flags);
        // A power failure may have left less of it.
        if found != size {
            fs::remove_file(path)?;
            return Ok(false);
        }
        if path != wanted {
            fs::rename(path, wanted)?;
        }
        Ok(true)
    }

    /// Writes a mail, with what `fill` writes as its content; unless that says that there is none.
    pub fn add(
        &self,
        name: &str,
        flags: Flags,
        date: i64,
        fill: impl FnOnce(&mut fs::File) -> Result<bool, crate::output::Failure>,
    ) -> Result<(), crate::output::Failure> {
        let temporary = self.folder.join("tmp").join(name);
        // A run that was killed may have left it.
        match fs::remove_file(&temporary) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        let mut file = fs::File::create_new(&temporary)?;
        if !fill(&mut file)? {
            return Ok(fs::remove_file(temporary)?);
        }
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(date.max(0) as u64))?;
        fs::rename(temporary, self.path_of(name, flags))?;
        Ok(())
    }

    /// Removes the mails of an earlier run that have not been met; how many there were.
    pub fn remove_present(&mut self) -> io::Result<u64> {
        remove(std::mem::take(&mut self.present))
    }

    /// The folder.
    pub fn into_folder(self) -> PathBuf {
        self.folder
    }

    fn path_of(&self, name: &str, flags: Flags) -> PathBuf {
        let letters = LETTERS.iter().filter(|(_, flag)| flags.has(*flag)).map(|&(letter, _)| char::from(letter));
        let letters: String = letters.collect();
        self.folder.join("cur").join(format!("{name}:2,{letters}"))
    }
}

/// Removes the mails of mailboxes that are there no more, and their folders if nothing else is in them; how many mails there were.
pub fn remove_others(folder: &Path, mailboxes: &[PathBuf]) -> io::Result<u64> {
    let mut removed = 0;
    for entry in fs::read_dir(folder)? {
        let (name, path) = entry.map(|entry| (entry.file_name(), entry.path()))?;
        if !name.as_encoded_bytes().starts_with(b".") || !is_one(&path) || mailboxes.contains(&path) {
            continue;
        }
        removed += remove(ours(&path)?)?;
        // What is not empty stays.
        let _ = fs::remove_file(path.join(NAME_FILE));
        for part in ["cur", "new", "tmp", ""] {
            let _ = fs::remove_dir(path.join(part));
        }
    }
    Ok(removed)
}

/// The mails that were written here, by their names without flags, with their sizes.
fn ours(folder: &Path) -> io::Result<BTreeMap<String, (PathBuf, u64)>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder.join("cur"))? {
        let entry = entry?;
        let name = entry.file_name();
        let base = name.to_str().and_then(|name| name.split_once(":2,")).map(|(base, _)| base);
        if let Some(base) = base.filter(|base| base.ends_with(SUFFIX)) {
            found.insert(base.to_owned(), (entry.path(), entry.metadata()?.len()));
        }
    }
    Ok(found)
}

fn remove(mails: BTreeMap<String, (PathBuf, u64)>) -> io::Result<u64> {
    let count = mails.len() as u64;
    mails.into_values().try_for_each(|(path, _)| fs::remove_file(path))?;
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_flags() {
        let flags = |name: &[u8]| flags(letters(name));
        assert_eq!(flags(b"123.host:2,FS"), Flags::FLAGGED | Flags::SEEN);
        assert_eq!((flags(b"123.host"), flags(b"123;2,Sab"), flags(b"123!2,S")), (0, Flags::SEEN, Flags::SEEN));
    }
}
