//! Loading text databases.

use std::collections::HashSet;
use std::fmt;

use md5::{Digest, Md5};

use crate::builtin::BUILTIN;
use crate::database::{Census, Database, Names, Refused};
use crate::hashes::{AnyDigest, HashEntry, HashTable};
use crate::kind::{Kind, hash, kind_of, name_of};
use crate::location::Location;
use crate::logical;
use crate::signature::{Reject, Signature, check_levels};
use crate::table::TableBuilder;
use crate::target::TARGETS;

/// Appended to the names of signatures that are not the engine's own makers'.
const UNOFFICIAL: &str = ".UNOFFICIAL";

/// How many signatures a file had.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Hash signatures.
    pub hashes: u64,
    /// Body signatures.
    pub bodies: u64,
    /// Logical signatures.
    pub logical: u64,
    /// Entries of an allow list.
    pub allowed: u64,
    /// Names to be ignored.
    pub ignored: u64,
    /// Signatures that are not looked for; [`Census`] says why.
    pub left_out: u64,
}

/// What is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The extension is not that of a supported kind of database.
    Kind {
        /// The file.
        file: String,
    },
    /// A line cannot be read.
    Line {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Kind { file } => write!(f, "{file}: not a supported kind of database"),
            Error::Line { file, line, reason } => write!(f, "{file}:{line}: {reason}"),
        }
    }
}

impl std::error::Error for Error {}

/// Collects signatures from text files. Lists of names to ignore that pin the MD5 of an entry must come before the
/// files that they speak of; the order does not matter otherwise.
#[derive(Debug, Default)]
pub struct Builder {
    tables: [TableBuilder; TARGETS],
    hashes: Vec<HashEntry>,
    allowed: Vec<HashEntry>,
    names: Names,
    ignored: HashSet<Box<str>>,
    ignored_lines: HashSet<(Box<str>, [u8; 16])>,
    /// For each signature what the census says of it, so that ignored ones can be taken back.
    classes: Vec<Class>,
    census: Census,
    unwanted: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Exact,
    AtEnd,
    Bounded,
    Allowed,
}

/// A file being read.
struct File<'a> {
    suffix: &'a str,
    kind: Kind,
    loaded: Loaded,
}

impl Builder {
    /// Nothing loaded.
    pub fn new() -> Builder {
        Builder::default()
    }

    /// Whether to load signatures of potentially unwanted applications: names that begin with `PUA.`, and the files
    /// whose extension ends in `u`. They are left out unless asked for.
    pub fn potentially_unwanted(mut self, wanted: bool) -> Builder {
        self.unwanted = wanted;
        self
    }

    /// Loads a file that is not an official one: `.UNOFFICIAL` is appended to the names.
    ///
    /// # Errors
    /// If the extension of `file_name` or a line is none that can be read. What was read before stays loaded.
    pub fn add(&mut self, file_name: &str, text: &[u8]) -> Result<Loaded, Error> {
        self.load(file_name, text, UNOFFICIAL)
    }

    /// Loads an official file: names stay as they are.
    ///
    /// # Errors
    /// As [`Builder::add`].
    pub fn add_official(&mut self, file_name: &str, text: &[u8]) -> Result<Loaded, Error> {
        self.load(file_name, text, "")
    }

    /// Loads the signatures that come with the program.
    pub fn add_builtin(&mut self) -> &mut Builder {
        for (name, text) in BUILTIN {
            self.add_official(name, text).expect("a test reads the built-in files");
        }
        self
    }

    fn load(&mut self, file_name: &str, text: &[u8], suffix: &str) -> Result<Loaded, Error> {
        let (kind, unwanted) = kind_of(file_name).ok_or_else(|| Error::Kind { file: file_name.to_owned() })?;
        let mut file = File { suffix, kind, loaded: Loaded::default() };
        for (line, number) in text.split(|&byte| byte == b'\n').zip(1..) {
            let line = String::from_utf8_lossy(line.trim_ascii_end());
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if unwanted && !self.unwanted {
                self.census.unwanted += 1;
                file.loaded.left_out += 1;
                continue;
            }
            self.line(&mut file, &line).map_err(|reason| Error::Line {
                file: file_name.to_owned(),
                line: number,
                reason,
            })?;
        }
        Ok(file.loaded)
    }

    /// Reads one line; what is not supported is noted in the census.
    fn line(&mut self, file: &mut File<'_>, line: &str) -> Result<(), String> {
        if let Kind::Ignore(field) = file.kind {
            file.loaded.ignored += 1;
            return self.ignore(line, field);
        }
        let name = name_of(file.kind, line)?;
        if name.starts_with("PUA.") && !self.unwanted {
            self.census.unwanted += 1;
            file.loaded.left_out += 1;
            return Ok(());
        }
        if self.is_pinned(name, line) {
            self.census.ignored += 1;
            file.loaded.left_out += 1;
            return Ok(());
        }
        match self.signature(file, name, line) {
            Ok(()) => Ok(()),
            Err(Reject::Malformed(reason)) => Err(reason),
            Err(Reject::OtherEngine) => {
                self.census.other_engine += 1;
                file.loaded.left_out += 1;
                Ok(())
            }
            Err(Reject::Unsupported(reason)) => {
                file.loaded.left_out += 1;
                self.census
                    .refused
                    .push(Refused { name: format!("{name}{}", file.suffix).into(), reason: reason.into() });
                Ok(())
            }
        }
    }

    fn signature(&mut self, file: &mut File<'_>, name: &str, line: &str) -> Result<(), Reject> {
        match file.kind {
            Kind::Hash | Kind::Allow => {
                let (digest, size) = hash(line)?;
                let allow = file.kind == Kind::Allow;
                let class = if allow { Class::Allowed } else { Class::AtEnd };
                let name = self.named(name, file.suffix, class);
                let entry = HashEntry { digest, size, name };
                if allow {
                    file.loaded.allowed += 1;
                    self.allowed.push(entry);
                } else {
                    file.loaded.hashes += 1;
                    self.hashes.push(entry);
                }
                Ok(())
            }
            Kind::Extended => {
                let fields: Vec<&str> = line.split(':').collect();
                let [_, target, offset, hex, levels @ ..] = fields.as_slice() else {
                    return Err(Reject::Malformed("fewer than four fields".to_owned()));
                };
                check_levels(levels)?;
                let signature = Signature::extended(target, offset, hex)?;
                self.place(file, name, &signature)?;
                file.loaded.bodies += 1;
                Ok(())
            }
            Kind::Plain => {
                let (_, hex) = line.split_once('=').ok_or_else(|| "no = after the name".to_owned())?;
                self.place(file, name, &Signature::extended("0", "*", hex)?)?;
                file.loaded.bodies += 1;
                Ok(())
            }
            Kind::Logical => {
                let fields: Vec<&str> = line.split(';').collect();
                self.place(file, name, &logical::parse(fields.get(1..).unwrap_or(&[]))?)?;
                file.loaded.logical += 1;
                Ok(())
            }
            Kind::Ignore(_) => Ok(()),
        }
    }

    /// Puts a signature into the table of its target.
    fn place(&mut self, file: &File<'_>, name: &str, signature: &Signature) -> Result<(), Reject> {
        let number = self.names.add(name, file.suffix);
        self.classes.push(class_of(signature));
        let table = &mut self.tables[usize::from(signature.target)];
        let placed = table.add(number, signature);
        placed.map_err(|refusal| {
            self.classes.pop();
            self.names.remove_last();
            Reject::Unsupported(refusal.to_string())
        })
    }

    fn named(&mut self, name: &str, suffix: &str, class: Class) -> u32 {
        self.classes.push(class);
        self.names.add(name, suffix)
    }

    fn ignore(&mut self, line: &str, field: usize) -> Result<(), String> {
        let mut fields = line.split(':').skip(field);
        let name = fields.next().filter(|name| !name.is_empty()).ok_or("no name")?;
        let name = name.strip_suffix(UNOFFICIAL).unwrap_or(name);
        match fields.next() {
            Some(pin) if field == 0 => match AnyDigest::parse(pin)? {
                AnyDigest::Md5(md5) => self.ignored_lines.insert((name.into(), md5)),
                _ => return Err("an entry is pinned by its MD5".to_owned()),
            },
            _ => self.ignored.insert(name.into()),
        };
        Ok(())
    }

    fn is_pinned(&self, name: &str, line: &str) -> bool {
        !self.ignored_lines.is_empty() && self.ignored_lines.contains(&(name.into(), Md5::digest(line).into()))
    }

    /// Compiles what was loaded.
    pub fn build(self) -> Database {
        let Builder { tables, hashes, allowed, names, ignored, classes, mut census, .. } = self;
        let is_ignored = |number: u32| {
            let name = names.get(number);
            !ignored.is_empty() && ignored.contains(name.strip_suffix(UNOFFICIAL).unwrap_or(name))
        };
        for (class, number) in classes.iter().zip(0u32..) {
            let count = match class {
                _ if is_ignored(number) => &mut census.ignored,
                Class::Exact => &mut census.exact,
                Class::AtEnd => &mut census.at_end,
                Class::Bounded => &mut census.bounded,
                Class::Allowed => &mut census.allowed,
            };
            *count += 1;
        }
        let keep = |entries: Vec<HashEntry>| {
            let entries = entries.into_iter().filter(|entry| !is_ignored(entry.name));
            HashTable::new(entries.collect())
        };
        Database {
            tables: tables.map(|table| (!table.is_empty()).then(|| table.build(is_ignored))),
            hashes: keep(hashes),
            allowed: keep(allowed),
            census,
            names,
        }
    }
}

fn class_of(signature: &Signature) -> Class {
    let from_end = |body: &crate::signature::Body| matches!(body.location, Location::FromEnd { .. });
    let bounded =
        |body: &crate::signature::Body| body.location.needs_layout() || (from_end(body) && body.parts.len() > 1);
    if signature.bodies.iter().any(bounded) {
        return Class::Bounded;
    }
    let late =
        signature.logic.as_ref().is_some_and(|logic| logic.file_size.is_some() || !logic.expression.is_monotone());
    if late || signature.bodies.iter().any(from_end) { Class::AtEnd } else { Class::Exact }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_files_are_read_whole() {
        let census = Database::with_builtin().census;
        assert_eq!((census.exact, census.at_end, census.refused.len()), (3, 4, 0));
    }

    #[test]
    fn a_bad_line_is_told_with_its_place_and_reason() {
        let mut builder = Builder::new();
        let error = builder.add("x.ndb", b"# note\n\nA:0:*:6162\r\nB:0:*:61g2\n");
        assert_eq!(error.map_err(|error| error.to_string()), Err("x.ndb:4: 'g' is not a hexadecimal digit".to_owned()));
        let error = builder.add("x.mdb", b"");
        assert_eq!(error, Err(Error::Kind { file: "x.mdb".to_owned() }));
    }

    #[test]
    fn what_is_left_out_is_in_the_census() {
        let mut builder = Builder::new();
        builder.add("i.ign2", b"Gone\nPinned:11839b02d0ba0a1a3a3c33f0cd3ae77f\n").expect("a list");
        let ndb = b"Gone:0:*:6162\nPUA.Thing:0:*:6162\nNew:0:*:6162:999\nVersion:1:VI:6162\nShort:0:*:61??62\nKept:0:*:6162\n";
        let loaded = builder.add("x.ndb", ndb).expect("a database");
        assert_eq!((loaded.bodies, loaded.left_out), (2, 4));
        builder.add("x.ndu", b"Unwanted:0:*:6162").expect("a database");
        let database = builder.build();
        let census = database.census();
        assert_eq!((census.exact, census.ignored, census.other_engine, census.unwanted), (1, 1, 1, 2));
        let refused: Vec<&str> = census.refused.iter().map(|refused| &*refused.name).collect();
        assert_eq!(refused, ["Version.UNOFFICIAL", "Short.UNOFFICIAL"]);
    }

    #[test]
    fn a_pinned_name_is_ignored_only_while_its_line_is_the_same() {
        let line = "Pinned:0:*:6162";
        let pin: String = Md5::digest(line).iter().map(|byte| format!("{byte:02x}")).collect();
        for (text, ignored) in [(line, 1), ("Pinned:0:*:6163", 0)] {
            let mut builder = Builder::new();
            builder.add("i.ign2", format!("Pinned:{pin}").as_bytes()).expect("a list");
            builder.add("x.ndb", text.as_bytes()).expect("a database");
            assert_eq!(builder.build().census().ignored, ignored);
        }
    }
}
