//! Signatures by what a container says of its members (`.cdb`): compiled, and matched while the members are told.
//!
//! `name:container:size:file name:packed size:real size:encrypted:position:crc:reserved[:min[:max]]`, as in the ClamAV
//! manual, "Signatures based on container metadata". A field that is `*` is not looked at; sizes and positions may be
//! ranges. What the manual leaves open was learnt by trying it out with clamscan 1.4: file names are whole paths and
//! case counts; members are counted from 1 and folders count in ZIP and cpio, parts of mails have position 0 and their
//! decoded size in both fields. Members of a ZIP archive behind something else, a picture say, are of a ZIP that
//! begins with their own record, and have position 0. File names are POSIX expressions: `\d` is a
//! letter.
//!
//! Bounds: a field of which the container's record says nothing where it stands does not match, but for the real size,
//! which is the size of the content then. Members that wait for a size, theirs or the container's, are at most
//! [`WAITING_MAX`] of a container with the signatures that they wait for; beyond that `Roll` tells a limit.

use std::borrow::Cow;
use std::io;
use std::sync::{Arc, OnceLock};

use fancy_regex::Regex;
use pattern::flat::{Flat, Reader, Unfit, Writer};
use stream::{Class, FileType, Finding, Kind, Object};

use crate::syntax::body::number;
use crate::syntax::pcre;
use crate::syntax::signature::{Reject, check_levels};
use crate::table::census::{self, Bound};
use crate::table::database::{Database, Name};
use crate::target::Container;

/// The most signatures that wait for a size in one container, for all its members together.
const WAITING_MAX: usize = 4096;

/// One signature.
#[derive(Debug, Clone)]
pub(crate) struct Metadata {
    /// The number of its name.
    pub(crate) name: u32,
    /// The line that it was read from.
    line: Box<str>,
    container: Option<FileType>,
    container_size: Span,
    file_name: Option<FileName>,
    packed: Span,
    size: Span,
    encrypted: Option<bool>,
    position: Span,
    crc32: Option<u32>,
}

impl Metadata {
    /// The same under another number of its name.
    pub(crate) fn named(self, name: u32) -> Metadata {
        Metadata { name, ..self }
    }
}

/// The least and the greatest of a number; `None` is not looked at.
type Span = Option<(u64, u64)>;

/// An expression that a file name matches.
#[derive(Debug, Clone)]
struct FileName {
    text: Box<str>,
    /// Compiled when it is first asked for.
    compiled: OnceLock<Option<Box<Regex>>>,
}

/// What is known of a member.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    /// Whether it is a part of a mail, whose decoded size is both sizes.
    is_part: bool,
    packed: Option<u64>,
    size: Option<u64>,
    encrypted: bool,
    position: u64,
    crc32: Option<u32>,
}

impl Metadata {
    /// Reads a line.
    pub(crate) fn parse(line: &str) -> Result<Metadata, Reject> {
        let fields: Vec<&str> = line.split(':').collect();
        let [_, container, container_size, file_name, packed, size, encrypted, position, crc, _, levels @ ..] =
            fields.as_slice()
        else {
            return Err(Reject::Malformed("fewer than ten fields".to_owned()));
        };
        check_levels(levels)?;
        Ok(Metadata {
            name: 0,
            line: line.into(),
            container: container_type(container)?,
            container_size: span(container_size)?,
            file_name: FileName::parse(file_name)?,
            packed: span(packed)?,
            size: span(size)?,
            encrypted: match *encrypted {
                "*" => None,
                "0" => Some(false),
                "1" => Some(true),
                other => return Err(Reject::Malformed(format!("encrypted is 0, 1 or *, not {other:?}"))),
            },
            position: span(position)?,
            crc32: match *crc {
                "*" => None,
                hex => {
                    let crc32 = u32::from_str_radix(hex, 16);
                    Some(crc32.map_err(|_| Reject::Unsupported(format!("{hex:?} is no CRC-32")))?)
                }
            },
        })
    }

    /// What the census says of it.
    pub(crate) const fn class(&self) -> census::Class {
        match (self.packed, self.crc32) {
            (None, None) if self.is_late() => census::Class::AtEnd,
            (None, None) => census::Class::Exact,
            _ => census::Class::Bounded(Bound::Members),
        }
    }

    /// Whether it can only be decided when the container has passed.
    const fn is_late(&self) -> bool {
        self.container_size.is_some()
    }

    /// Whether a member can still be one that it means, with what is known of it when it begins.
    fn may_mean(&self, file_name: Option<&str>, known: &Known) -> bool {
        self.encrypted.is_none_or(|wanted| wanted == known.encrypted)
            && within(self.position, Some(known.position))
            && (known.size.is_none() || within(self.size, known.size))
            && (known.is_part || within(self.packed, known.packed))
            && self.crc32.is_none_or(|wanted| known.crc32 == Some(wanted))
            && self.file_name.as_ref().is_none_or(|wanted| file_name.is_some_and(|name| wanted.matches(name)))
    }

    /// Whether it asks for a size that is only known when the member has passed.
    const fn awaits_size(&self, known: &Known) -> bool {
        known.size.is_none() && (self.size.is_some() || (known.is_part && self.packed.is_some()))
    }

    /// Whether the member, of which this has been waiting for the size, is one that it means.
    fn means(&self, size: u64, packed_too: bool) -> bool {
        within(self.size, Some(size)) && (!packed_too || within(self.packed, Some(size)))
    }
}

impl Database {
    /// The signatures of all layers, each with its name.
    fn metadata(&self) -> impl Iterator<Item = (Name, &Metadata)> {
        self.layers().enumerate().flat_map(|(layer, database)| {
            database.metadata.iter().map(move |metadata| (Name { layer, number: metadata.name }, metadata))
        })
    }
}

impl FileName {
    fn parse(text: &str) -> Result<Option<FileName>, Reject> {
        if text == "*" {
            return Ok(None);
        }
        if text.is_empty() {
            return Err(Reject::Malformed("an empty file name".to_owned()));
        }
        let text = without_classes(text);
        pcre::compile_plain(&text).map_err(|error| Reject::Unsupported(format!("file name: {error}")))?;
        Ok(Some(FileName { text: text.into(), compiled: OnceLock::new() }))
    }

    fn matches(&self, name: &str) -> bool {
        let compiled = self.compiled.get_or_init(|| pcre::compile_plain(&self.text).ok().map(Box::new));
        compiled.as_ref().is_some_and(|regex| regex.is_match(name).unwrap_or(false))
    }
}

/// Escaped letters and digits stand for themselves, as in POSIX expressions.
fn without_classes(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(next) = rest.next() {
        if next != '\\' || rest.peek().is_none_or(|escaped| !escaped.is_ascii_alphanumeric()) {
            plain.push(next);
            if next == '\\' {
                plain.extend(rest.next());
            }
        }
    }
    plain
}

fn within(wanted: Span, found: Option<u64>) -> bool {
    wanted.is_none_or(|(min, max)| found.is_some_and(|found| (min..=max).contains(&found)))
}

/// Reads `*`, a number, or a range.
fn span(text: &str) -> Result<Span, Reject> {
    if text == "*" {
        return Ok(None);
    }
    let (min, max) = text.split_once('-').unwrap_or((text, text));
    let bound = |text| number(text).map_err(Reject::Unsupported);
    Ok(Some((bound(min)?, bound(max)?)))
}

fn container_type(text: &str) -> Result<Option<FileType>, Reject> {
    if text == "*" {
        return Ok(None);
    }
    match Container::parse(text).map_err(Reject::Unsupported)? {
        Container::Root => Ok(None),
        Container::Is(file_type) => Ok(Some(file_type)),
    }
}

/// Writes signatures: they are kept as the lines that they were read from.
pub(crate) fn store(all: &[Metadata], writer: &mut Writer<'_>) -> io::Result<()> {
    writer.texts(all.iter().map(|one| &*one.line))?;
    writer.array(&all.iter().map(|one| one.name).collect::<Vec<_>>())
}

/// Stored signatures, whose names are numbered below `names_end`.
pub(crate) fn load(reader: &mut Reader, names_end: u32) -> Result<Arc<[Metadata]>, Unfit> {
    let (lines, names): (_, Flat<u32>) = (reader.texts()?, reader.array()?);
    let read = |(line, &name): (String, &u32)| {
        let one = Metadata::parse(&line).ok().filter(|_| name < names_end)?;
        Some(Metadata { name, ..one })
    };
    if lines.len() != names.len() {
        return Err(Unfit::Malformed);
    }
    lines.into_iter().zip(names.iter()).map(read).collect::<Option<_>>().ok_or(Unfit::Malformed)
}

/// The members of one container, compared with the signatures while they are told.
///
/// [`open`](Roll::open) for each member when it begins, [`close`](Roll::close) for those that were given a ticket when
/// their content has passed, and [`finish`](Roll::finish) when the container has. What they tell are findings of the
/// container, each name once.
#[derive(Debug)]
pub struct Roll {
    database: Arc<Database>,
    container: FileType,
    /// How many members and parts there were; the last is the ticket of the newest.
    opened: u64,
    /// How many members and folders there were.
    members: u64,
    waiting: Vec<Waiting>,
    told: Vec<u32>,
    lost: bool,
}

/// A signature that means a member if a size fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Waiting {
    /// The ticket of the member whose size is waited for; 0 waits for the container's alone.
    ticket: u64,
    signature: u32,
    packed_too: bool,
    /// Where the container begins in the object.
    from: u64,
}

impl Roll {
    /// For an object of that type, if there are signatures by what containers say. It may be one, or have one in it.
    pub fn new(database: Arc<Database>, container: FileType) -> Option<Roll> {
        let is_meant = database.metadata().next().is_some();
        is_meant.then(|| Roll {
            database,
            container,
            opened: 0,
            members: 0,
            waiting: Vec::new(),
            told: Vec::new(),
            lost: false,
        })
    }

    /// A member begins, and its reader stands `at` that byte of the container. A ticket is told if its size is waited for.
    pub fn open(&mut self, object: &Object, at: u64, tell: &mut dyn FnMut(Finding)) -> Option<u64> {
        let (mut container, mut from) = (self.container, 0);
        let known = match (object.kind, object.entry) {
            (Kind::Part, _) if self.container == FileType::Mail => Known { is_part: true, ..Known::default() },
            (Kind::Member, Some(entry)) => {
                let stream::Entry { packed, size, encrypted, crc32, record_bytes, empty_before } = entry;
                self.members = self.members.saturating_add(u64::from(empty_before) + 1);
                let mut position = self.members;
                // Only members of ZIP archives are found one by one.
                if record_bytes > 0 && self.container != FileType::Zip {
                    (container, position, from) = (FileType::Zip, 0, at.saturating_sub(record_bytes.into()));
                }
                Known { is_part: false, packed, size, encrypted, position, crc32 }
            }
            _ => return None,
        };
        self.opened += 1;
        let ticket = self.opened;
        let mut waits = false;
        let database = self.database.clone();
        for ((_, metadata), signature) in database.metadata().zip(0u32..) {
            let speaks = metadata.container.is_none_or(|wanted| wanted == container);
            if !speaks || self.told.contains(&signature) || !metadata.may_mean(object.name.as_deref(), &known) {
                continue;
            }
            let awaits_size = metadata.awaits_size(&known);
            waits |= awaits_size;
            match (awaits_size, metadata.is_late()) {
                (true, _) => self.wait(Waiting { ticket, signature, packed_too: known.is_part, from }),
                (false, true) => self.wait(Waiting { ticket: 0, signature, packed_too: false, from }),
                (false, false) => self.tell(signature, tell),
            }
        }
        waits.then_some(ticket)
    }

    /// The content of the member with that ticket has passed, and was of so many bytes.
    pub fn close(&mut self, ticket: u64, size: u64, tell: &mut dyn FnMut(Finding)) {
        let (done, waiting) = std::mem::take(&mut self.waiting).into_iter().partition(|one| one.ticket == ticket);
        self.waiting = waiting;
        let database = self.database.clone();
        let done: Vec<Waiting> = done;
        for Waiting { signature, packed_too, from, .. } in done {
            let Some((_, metadata)) = database.metadata().nth(signature as usize) else { continue };
            if !metadata.means(size, packed_too) {
                continue;
            }
            match metadata.is_late() {
                true => self.wait(Waiting { ticket: 0, signature, packed_too: false, from }),
                false => self.tell(signature, tell),
            }
        }
    }

    /// The container has passed, and was of so many bytes.
    pub fn finish(mut self, size: u64, tell: &mut dyn FnMut(Finding)) {
        let database = self.database.clone();
        for Waiting { signature, from, .. } in std::mem::take(&mut self.waiting).iter().filter(|one| one.ticket == 0) {
            let metadata = database.metadata().nth(*signature as usize);
            let size = size.saturating_sub(*from);
            if metadata.is_some_and(|(_, metadata)| within(metadata.container_size, Some(size))) {
                self.tell(*signature, tell);
            }
        }
        if self.lost {
            tell(Finding::new(Class::Limit, "Heuristics.Limits.Exceeded.Members", 0));
        }
    }

    fn wait(&mut self, one: Waiting) {
        let known = self.waiting.contains(&one);
        if self.waiting.len() < WAITING_MAX && !known {
            self.waiting.push(one);
        } else {
            self.lost |= !known;
        }
    }

    fn tell(&mut self, signature: u32, tell: &mut dyn FnMut(Finding)) {
        if self.told.contains(&signature) {
            return;
        }
        self.told.push(signature);
        let name = self.database.metadata().nth(signature as usize).and_then(|(name, _)| self.database.name(name));
        if let Some(name) = name {
            tell(Finding { class: Class::Match, name: Cow::Owned(name), offset: 0 });
        }
    }
}
