//! A file of recipients, as it is held in memory: see [`Keys`] for what of it.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::BufReader;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use proto::smtp::Reply;

use super::address::normal;
use super::answer::refusal;
use super::entry::{Entry, Lines, user};
use super::keys::{Keys, Seed};

/// How much of a file is read at a time.
const READ_BYTES: usize = 1 << 18;

/// An address with its line end, on average: what a list is expected to hold.
const LINE_BYTES_USUAL: u64 = 24;

/// Format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Addresses, or a map.
    List,
    /// Aliases.
    Aliases,
    /// Users.
    Passwd,
}

impl Kind {
    /// Name in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::List => "files",
            Kind::Aliases => "aliases",
            Kind::Passwd => "passwd",
        }
    }
}

/// Identity of one state of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

/// A file of recipients.
#[derive(Debug)]
pub struct List {
    /// Where it is.
    pub path: PathBuf,
    /// Format of the file.
    pub kind: Kind,
    stamp: Stamp,
    keys: Keys,
    /// Replies for keys that it refuses.
    refusals: HashMap<u64, Reply>,
}

/// Why a file cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    path: PathBuf,
    /// The line, if it is for one; the first is 1.
    line: Option<usize>,
    reason: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", self.reason)
    }
}

impl std::error::Error for Error {}

impl List {
    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read, a line of it cannot be understood, it changes meanwhile, or it is a list without an address: a
    /// file that was emptied by mistake makes nobody unknown.
    pub fn read(path: &Path, kind: Kind, seed: &Seed) -> Result<List, Error> {
        let fault = |line, reason: String| Error { path: path.into(), line, reason };
        let io = |error: std::io::Error| fault(None, error.to_string());
        let file = File::open(path).map_err(io)?;
        let stamp = Stamp::of(&file).map_err(io)?;
        let usual = usize::try_from(stamp.bytes / LINE_BYTES_USUAL).unwrap_or(0);
        let mut lines = Lines::new(BufReader::with_capacity(READ_BYTES, file));
        let (mut numbers, mut refusals) = (Vec::with_capacity(usual), HashMap::new());
        loop {
            let line = match lines.next(kind.joins()) {
                Ok(Some(line)) => line,
                Ok(None) => break,
                Err(reason) => return Err(fault(Some(lines.number()), reason)),
            };
            match kind.key(line) {
                Ok(None) => {}
                Ok(Some((key, said))) => {
                    let number = seed.number(&key);
                    numbers.push(number);
                    refusals.extend(said.map(|reply| (number, reply)));
                }
                Err(reason) => return Err(fault(Some(lines.number()), reason)),
            }
        }
        if File::open(path).and_then(|file| Stamp::of(&file)).map_err(io)? != stamp {
            return Err(fault(None, "it changed while it was read".into()));
        }
        if numbers.is_empty() && kind == Kind::List {
            return Err(fault(None, "it has no address".into()));
        }
        numbers.shrink_to_fit();
        let keys = Keys::new(numbers).map_err(|_| fault(None, "it lists too many".into()))?;
        Ok(List { path: path.into(), kind, stamp, keys, refusals })
    }

    /// Whether the file is another one now, or is not there.
    pub fn has_changed(&self) -> bool {
        !File::open(&self.path).and_then(|file| Stamp::of(&file)).is_ok_and(|stamp| stamp == self.stamp)
    }

    /// Looks up a key: it exists, or has a reply that refuses it.
    pub fn find(&self, number: u64) -> Option<Result<(), &Reply>> {
        if !self.keys.holds(number) {
            return None;
        }
        Some(self.refusals.get(&number).map_or(Ok(()), Err))
    }

    /// How many there are in it.
    pub const fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether the list is empty.
    pub const fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The bytes that they take.
    pub fn bytes(&self) -> usize {
        self.keys.bytes() + self.refusals.capacity() * size_of::<(u64, Reply)>()
    }

    /// The line of a key, looked for in the file itself.
    pub fn line_of(&self, key: &str) -> Option<usize> {
        let mut lines = Lines::new(BufReader::new(File::open(&self.path).ok()?));
        while let Some(line) = lines.next(self.kind.joins()).ok()? {
            if self.kind.key(line).is_ok_and(|read| read.is_some_and(|(read, _)| read == key)) {
                return Some(lines.number());
            }
        }
        None
    }
}

impl Kind {
    /// Whether a line that begins with a blank goes on with the one before.
    const fn joins(self) -> bool {
        !matches!(self, Kind::Passwd)
    }

    /// Key of a line, in the form in which it is looked up, and the reply that refuses it.
    fn key(self, line: &str) -> Result<Option<(String, Option<Reply>)>, String> {
        if self == Kind::Passwd {
            return Ok(user(line)?.map(|user| (normal(user), None)));
        }
        let entry = Entry::read(line)?;
        if self == Kind::Aliases && entry.value.is_empty() {
            return Err(format!("the alias {:?} leads nowhere", entry.key));
        }
        let said = entry.refusal().filter(|_| self == Kind::List).map(|(code, text)| refusal(code, text));
        Ok(Some((normal(entry.key), said)))
    }
}

impl Stamp {
    fn of(file: &File) -> std::io::Result<Stamp> {
        let facts = file.metadata()?;
        if !facts.is_file() {
            return Err(std::io::Error::other("not a file"));
        }
        Ok(Stamp {
            device: facts.dev(),
            inode: facts.ino(),
            bytes: facts.len(),
            changed: (facts.ctime(), facts.ctime_nsec()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(kind: Kind, text: &str) -> Result<List, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list");
        std::fs::write(&path, text).unwrap();
        let strip = |error: Error| error.to_string().replace(&format!("{}", path.display()), "list");
        List::read(&path, kind, &Seed::default()).map_err(strip)
    }

    #[test]
    fn a_wrong_line_is_named_and_an_empty_list_is_none() {
        assert_eq!(read(Kind::List, "a@b\n\n/^x/ OK\n").unwrap_err().split("; ").next(), Some("list:3: a pattern"));
        assert_eq!(read(Kind::List, "# all gone\n").unwrap_err(), "list: it has no address");
        assert_eq!(read(Kind::Passwd, "tim:x:1::\n+::::\n").unwrap().len(), 1);
        assert_eq!(read(Kind::Passwd, "tim\n").unwrap_err(), "list:1: no line of passwd(5): NAME:...");
        assert!(read(Kind::Aliases, "# none yet\n").unwrap().is_empty());
        assert_eq!(read(Kind::Aliases, "a: b\nc:\n").unwrap_err(), "list:2: the alias \"c\" leads nowhere");
        assert_eq!(read(Kind::List, "a@b x\nA@B y\n").unwrap().len(), 1);
    }

    #[test]
    fn another_state_of_a_file_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list");
        std::fs::write(&path, "a@b\n").unwrap();
        let list = List::read(&path, Kind::List, &Seed::default()).unwrap();
        assert!(!list.has_changed());
        std::fs::write(folder.path().join("new"), "a@c\n").unwrap();
        std::fs::rename(folder.path().join("new"), &path).unwrap();
        assert!(list.has_changed());
    }
}
