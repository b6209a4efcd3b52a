//! Reading the lines of a file into a [`Builder`].

use std::borrow::Cow;

use md5::{Digest, Md5};

use crate::census::{Class, Entry, Refused};
use crate::compile::builder::Builder;
use crate::compile::builtin::BUILTIN;
use crate::hashes::{AnyDigest, HashEntry};
use crate::links;
use crate::links::digests::{self, Line};
use crate::signed::rule::Rule;
use crate::source::container::{self, ContainerKind, Members};
use crate::source::error::Error;
use crate::source::kind::{self, Kind, kind_of, name_of};
use crate::syntax::line::{Reject, check_levels};
use crate::syntax::logical;
use crate::syntax::signature::Signature;
use crate::table::database::Database;
use crate::table::metadata::Metadata;
use crate::table::names::UNOFFICIAL;
use crate::table::passwords::Password;
use crate::table::{magic, passwords};
use crate::yara::{Rules, Source};

/// The longest line.
const LINE_BYTES_MAX: usize = 4 << 20;
/// The longest file of rules, or catalogue.
const WHOLE_BYTES_MAX: usize = 256 << 20;

/// How many signatures a file had.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Hash signatures.
    pub hashes: u64,
    /// Body signatures.
    pub bodies: u64,
    /// Logical signatures.
    pub logical: u64,
    /// Signatures by what archives say of their members.
    pub metadata: u64,
    /// Rules of YARA.
    pub rules: u64,
    /// Entries of an allow list.
    pub allowed: u64,
    /// Entries that are no signatures: passwords, magic of file types, hosts that links show.
    pub entries: u64,
    /// Names to be ignored.
    pub ignored: u64,
    /// Signatures that are not looked for; [`Census`](crate::Census) says why.
    pub left_out: u64,
}

impl Loaded {
    /// Adds what another file had.
    pub(crate) fn add(&mut self, other: Loaded) {
        self.hashes += other.hashes;
        self.bodies += other.bodies;
        self.logical += other.logical;
        self.metadata += other.metadata;
        self.rules += other.rules;
        self.allowed += other.allowed;
        self.entries += other.entries;
        self.ignored += other.ignored;
        self.left_out += other.left_out;
    }
}

/// A file being read, in pieces.
pub(crate) struct File {
    name: String,
    suffix: &'static str,
    kind: Kind,
    unwanted: bool,
    /// The beginning of a line.
    pending: Vec<u8>,
    lines: usize,
    loaded: Loaded,
}

impl File {
    pub(crate) fn open(name: &str, suffix: &'static str) -> Result<File, Error> {
        let (kind, unwanted) = kind_of(name).ok_or_else(|| Error::Kind { file: name.to_owned() })?;
        let (pending, loaded) = (Vec::new(), Loaded::default());
        Ok(File { name: name.to_owned(), suffix, kind, unwanted, pending, lines: 0, loaded })
    }

    fn error(&self, reason: String) -> Error {
        Error::Line { file: self.name.clone(), line: self.lines, reason }
    }

    /// The file's name without the folders before it.
    fn base(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or_default()
    }

    /// It, and the line.
    fn place(&self) -> String {
        format!("{}:{}", self.base(), self.lines)
    }
}

impl Builder {
    /// Loads a file that is not an official one, `.UNOFFICIAL` being appended to the names, or a container, whose
    /// signatures are official if they are signed.
    ///
    /// # Errors
    /// If the extension of `file_name` or a line is none that can be read, or a container is not as it was signed. What
    /// was read before stays loaded, so after an error the builder is not to be used.
    pub fn add(&mut self, file_name: &str, bytes: &[u8]) -> Result<Loaded, Error> {
        let first = self.names.len();
        let loaded = match ContainerKind::of(file_name) {
            Some(kind) => self.add_container(kind, file_name, bytes)?,
            None => self.load(file_name, bytes, UNOFFICIAL)?,
        };
        self.files.push((file_name.into(), first..self.names.len()));
        Ok(loaded)
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

    fn load(&mut self, file_name: &str, text: &[u8], suffix: &'static str) -> Result<Loaded, Error> {
        let mut file = File::open(file_name, suffix)?;
        self.read(&mut file, text)?;
        self.close(file)
    }

    fn add_container(&mut self, kind: ContainerKind, file_name: &str, bytes: &[u8]) -> Result<Loaded, Error> {
        let suffix = if kind == ContainerKind::Cud { UNOFFICIAL } else { "" };
        let mut loading = Loading { builder: self, suffix, file: None, loaded: Loaded::default() };
        let read = container::read(kind, file_name, bytes, &mut loading);
        let loaded = loading.loaded;
        let container = read.map_err(|reason| Error::Container { file: file_name.to_owned(), reason })?;
        self.census.containers.push(container);
        Ok(loaded)
    }

    /// Reads the next bytes of a file.
    pub(crate) fn read(&mut self, file: &mut File, bytes: &[u8]) -> Result<(), Error> {
        if matches!(file.kind, Kind::Opaque(_) | Kind::Nothing) {
            return Ok(());
        }
        if matches!(file.kind, Kind::Yara | Kind::Catalogue) {
            file.pending.extend_from_slice(bytes);
            let too_long = file.pending.len() > WHOLE_BYTES_MAX;
            return if too_long { Err(file.error("the file is too long".to_owned())) } else { Ok(()) };
        }
        let mut rest = bytes;
        loop {
            let end = memchr::memchr(b'\n', rest);
            let (piece, after) = rest.split_at(end.unwrap_or(rest.len()));
            if file.pending.len() + piece.len() > LINE_BYTES_MAX {
                return Err(file.error("the line is too long".to_owned()));
            }
            if end.is_none() {
                file.pending.extend_from_slice(piece);
                return Ok(());
            }
            if file.pending.is_empty() {
                self.whole_line(file, piece)?;
            } else {
                let mut line = std::mem::take(&mut file.pending);
                line.extend_from_slice(piece);
                self.whole_line(file, &line)?;
            }
            rest = &after[1..];
        }
    }

    /// The file is at its end.
    pub(crate) fn close(&mut self, mut file: File) -> Result<Loaded, Error> {
        let line = std::mem::take(&mut file.pending);
        match file.kind {
            Kind::Yara => self.rules(&mut file, &line),
            Kind::Catalogue => {
                // Whether somebody vouches for it is known when all has been read.
                let name = self.named(file.base(), file.suffix, Class::Allowed);
                self.catalogues.push((name, line));
                file.loaded.allowed += 1;
            }
            _ => self.whole_line(&mut file, &line)?,
        }
        if let Kind::Opaque(reason) = file.kind {
            self.refuse(&mut file, None, reason);
        }
        Ok(file.loaded)
    }

    fn whole_line(&mut self, file: &mut File, line: &[u8]) -> Result<(), Error> {
        file.lines += 1;
        let line = line.trim_ascii_end();
        let line = std::str::from_utf8(line).map_or_else(|_| String::from_utf8_lossy(line), Cow::Borrowed);
        if line.is_empty() || line.starts_with('#') {
            return Ok(());
        }
        self.line(file, &line).map_err(|reason| file.error(reason))
    }

    /// Reads one line; what is not supported is noted in the census.
    fn line(&mut self, file: &mut File, line: &str) -> Result<(), String> {
        match file.kind {
            Kind::Ignore => {
                file.loaded.ignored += 1;
                return self.ignore(line);
            }
            Kind::NotRun(reason) => {
                self.refuse(file, Some(line), reason);
                return Ok(());
            }
            _ => {}
        }
        let place;
        let name = match file.kind {
            Kind::Links { .. } => {
                place = file.place();
                &place
            }
            kind @ (Kind::Password | Kind::Certificate | Kind::Magic) => match name_of(kind, line) {
                Ok(name) => name,
                // As with clamscan these need none.
                Err(_) => {
                    place = file.place();
                    &place
                }
            },
            kind => name_of(kind, line)?,
        };
        if !self.unwanted.wants(name, file.unwanted) {
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
                self.refuse_named(file, format!("{name}{}", file.suffix), &reason);
                Ok(())
            }
        }
    }

    /// Reads the rules of a file.
    fn rules(&mut self, file: &mut File, text: &[u8]) {
        let text = String::from_utf8_lossy(text);
        let mut rules = Rules::new(text.as_bytes());
        let mut names = Vec::new();
        while let Some((name, read)) = rules.next(&mut self.yara) {
            let name = format!("YARA.{name}");
            match read {
                Ok((number, class)) => {
                    let name = self.named(&name, file.suffix, class);
                    self.yara.call(number, name);
                    names.push(name);
                    file.loaded.rules += 1;
                }
                Err(Reject::Malformed(reason) | Reject::Unsupported(reason)) => {
                    self.refuse_named(file, format!("{name}{}", file.suffix), &reason);
                }
                Err(Reject::OtherEngine) => {}
            }
        }
        if !names.is_empty() {
            self.yara.add_source(Source { text: text.into(), names });
        }
    }

    /// Refuses what has no name of its own: it gets that of its file, and of its line.
    fn refuse(&mut self, file: &mut File, line: Option<&str>, reason: &str) {
        let name = match line {
            Some(_) => file.place(),
            None => file.base().to_owned(),
        };
        self.refuse_named(file, name, reason);
    }

    fn refuse_named(&mut self, file: &mut File, name: String, reason: &str) {
        file.loaded.left_out += 1;
        self.census.refused.push(Refused { name: name.into(), reason: reason.into() });
    }

    fn signature(&mut self, file: &mut File, name: &str, line: &str) -> Result<(), Reject> {
        match file.kind {
            Kind::Hash | Kind::Imports => {
                let entry = self.hashed(file, name, kind::hash(line)?, Class::AtEnd);
                let table = if file.kind == Kind::Hash { &mut self.hashes } else { &mut self.imports };
                table.push(entry);
                file.loaded.hashes += 1;
            }
            Kind::Section => {
                let entry = self.hashed(file, name, kind::section(line)?, Class::SECTION);
                self.sections.push(entry);
                file.loaded.hashes += 1;
            }
            Kind::Allow => {
                let entry = self.hashed(file, name, kind::hash(line)?, Class::Allowed);
                self.allowed.push(entry);
                file.loaded.allowed += 1;
            }
            Kind::Extended => {
                let Some(([_, target, offset, hex], levels)) = kind::fields(line) else {
                    return Err(Reject::Malformed("fewer than four fields".to_owned()));
                };
                check_levels(&levels)?;
                let signature = Signature::extended(target, offset, hex)?;
                self.place(file, name, &signature)?;
                file.loaded.bodies += 1;
            }
            Kind::Plain => {
                let (_, hex) = line.split_once('=').ok_or_else(|| "no = after the name".to_owned())?;
                self.place(file, name, &Signature::extended("0", "*", hex)?)?;
                file.loaded.bodies += 1;
            }
            Kind::Logical => {
                let fields = logical::fields(line, 3);
                self.place(file, name, &logical::parse(fields.get(1..).unwrap_or(&[]))?)?;
                file.loaded.logical += 1;
            }
            Kind::Metadata => {
                let mut metadata = Metadata::parse(line)?;
                metadata.name = self.named(name, file.suffix, metadata.class());
                self.metadata.push(metadata);
                file.loaded.metadata += 1;
            }
            Kind::Password => {
                let fields: Vec<&str> = line.split(';').collect();
                let bytes = passwords::parse(fields.get(1..).unwrap_or(&[]))?;
                let name = self.named(name, file.suffix, Class::Entry(Entry::Password));
                self.passwords.push(Password { name, bytes });
                file.loaded.entries += 1;
            }
            Kind::Links { allow } => {
                let mut entry = links::entry::Entry::parse(line, allow)?;
                entry.name = self.named(name, file.suffix, Class::Entry(Entry::Link));
                self.links.push(entry);
                file.loaded.entries += 1;
            }
            Kind::Addresses => {
                let class = Class::Entry(Entry::Address);
                match Line::parse(line)? {
                    Line::Told(digest, told) => {
                        let number = self.named(told, "", class);
                        self.addresses.push(digests::entry(digest, number));
                    }
                    Line::Allowed(digest) => {
                        let number = self.named(name, file.suffix, class);
                        self.addresses_allowed.push(digests::entry(digest, number));
                    }
                    Line::Prefix => _ = self.named(name, file.suffix, class),
                }
                file.loaded.entries += 1;
            }
            Kind::Magic => {
                let entry = magic::parse(line)?;
                let number = self.named(name, file.suffix, Class::Entry(Entry::FileType));
                let added = self.magic.add(number, &entry);
                added.map_err(|refusal| self.take_back(&refusal))?;
                file.loaded.entries += 1;
            }
            Kind::Certificate => {
                let rule = Rule::parse(line)?;
                // As with clamscan these keep their names.
                let class = if rule.trusts { Class::Entry(Entry::Certificate) } else { Class::CERTIFICATE };
                let name = self.named(name, "", class);
                self.certificates.push(rule.named(name));
                file.loaded.entries += 1;
            }
            Kind::Ignore | Kind::NotRun(_) | Kind::Opaque(_) | Kind::Yara | Kind::Catalogue | Kind::Nothing => {}
        }
        Ok(())
    }

    fn hashed(&mut self, file: &File, name: &str, (digest, size): (AnyDigest, u64), class: Class) -> HashEntry {
        HashEntry { digest, size, name: self.named(name, file.suffix, class) }
    }

    /// Puts a signature into the table of its target.
    fn place(&mut self, file: &File, name: &str, signature: &Signature) -> Result<(), Reject> {
        let number = self.named(name, file.suffix, Class::of(signature));
        let table = &mut self.tables[usize::from(signature.target)];
        let placed = table.add(number, signature);
        placed.map_err(|refusal| self.take_back(&refusal))
    }

    /// Withdraws the last part, which cannot be searched for.
    fn take_back(&mut self, refusal: &pattern::Refusal) -> Reject {
        self.classes.pop();
        self.names.remove_last();
        Reject::Unsupported(refusal.to_string())
    }

    fn named(&mut self, name: &str, suffix: &str, class: Class) -> u32 {
        self.classes.push(class);
        self.names.add(name, suffix)
    }

    /// Reads a line of a list of names to ignore: the name; the name and the MD5 of the entry; or, of the old kind, the
    /// file and the line that it is in, and the name.
    fn ignore(&mut self, line: &str) -> Result<(), String> {
        let (name, pin) = match line.split(':').collect::<Vec<_>>()[..] {
            [name] | [_, _, name] => (name, None),
            [name, pin] => (name, Some(AnyDigest::parse(pin)?)),
            _ => return Err("more fields than the format has".to_owned()),
        };
        if name.is_empty() {
            return Err("no name".to_owned());
        }
        let name = name.strip_suffix(UNOFFICIAL).unwrap_or(name);
        match pin {
            None => self.ignored.insert(name.into()),
            Some(AnyDigest::Md5(md5)) => self.ignored_lines.insert((name.into(), md5)),
            Some(_) => return Err("an entry is pinned by its MD5".to_owned()),
        };
        Ok(())
    }

    fn is_pinned(&self, name: &str, line: &str) -> bool {
        !self.ignored_lines.is_empty() && self.ignored_lines.contains(&(name.into(), Md5::digest(line).into()))
    }
}

/// The members of a container, as files of a builder.
pub(crate) struct Loading<'b> {
    pub(crate) builder: &'b mut Builder,
    pub(crate) suffix: &'static str,
    pub(crate) file: Option<File>,
    pub(crate) loaded: Loaded,
}

impl Members for Loading<'_> {
    fn open(&mut self, name: &str) -> Result<(), String> {
        // The licence is the one member that is no database.
        self.file = match name {
            "COPYING" => None,
            name => Some(File::open(name, self.suffix).map_err(|error| error.to_string())?),
        };
        Ok(())
    }

    fn bytes(&mut self, bytes: &[u8]) -> Result<(), String> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        self.builder.read(file, bytes).map_err(|error| error.to_string())
    }

    fn close(&mut self) -> Result<(), String> {
        if let Some(file) = self.file.take() {
            self.loaded.add(self.builder.close(file).map_err(|error| error.to_string())?);
        }
        Ok(())
    }
}

impl Database {
    /// The database of nothing but the signatures that come with the program.
    pub fn with_builtin() -> Database {
        let mut builder = Builder::new();
        builder.add_builtin();
        builder.build()
    }
}
