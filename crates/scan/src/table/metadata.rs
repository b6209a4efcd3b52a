//! Signatures by what a container says of its members (`.cdb`).
//!
//! `name:container:size:file name:packed size:real size:encrypted:position:crc:reserved[:min[:max]]`, as in the ClamAV
//! manual, "Signatures based on container metadata". A field that is `*` is not looked at; sizes and positions may be
//! ranges. What the manual leaves open was learnt by trying it out with clamscan 1.4: file names are whole paths and
//! case counts; members are counted from 1 and folders count in ZIP and cpio, parts of mails have position 0 and their
//! decoded size in both fields. Members of a ZIP archive behind something else, a picture say, are of a ZIP that
//! begins with their own record, and have position 0. File names are POSIX expressions: `\d` is a
//! letter.
//!
//! A field of which the container's record says nothing where it stands does not match, but for the real size, which is the
//! size of the content then.

use std::io;
use std::sync::{Arc, OnceLock};

use fancy_regex::Regex;
use pattern::flat::{Flat, Reader, Unfit, Writer};
use stream::{FileType, Object};

use crate::census::{self, Bound};
use crate::syntax::line::number;
use crate::syntax::line::{Reject, check_levels};
use crate::syntax::pcre;
use crate::target::Container;

/// One signature.
#[derive(Debug, Clone)]
pub(crate) struct Metadata {
    /// The number of its name.
    pub(crate) name: u32,
    /// The line that it was read from.
    line: Box<str>,
    pub(crate) container: Option<FileType>,
    pub(crate) container_size: Span,
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
pub(crate) type Span = Option<(u64, u64)>;

/// An expression that a file name matches.
#[derive(Debug, Clone)]
struct FileName {
    text: Box<str>,
    /// Compiled when it is first asked for.
    compiled: OnceLock<Option<Box<Regex>>>,
}

/// Facts about a member.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Known {
    /// Whether it is a part of a mail, whose decoded size is both sizes.
    pub(crate) is_part: bool,
    pub(crate) packed: Option<u64>,
    pub(crate) size: Option<u64>,
    pub(crate) encrypted: bool,
    pub(crate) position: u64,
    pub(crate) crc32: Option<u32>,
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
                    let crc32 = u32::from_str_radix(hex.strip_prefix("0x").unwrap_or(hex), 16);
                    Some(crc32.map_err(|_| Reject::Unsupported(format!("{hex:?} is no CRC-32")))?)
                }
            },
        })
    }

    /// Class in the census.
    pub(crate) const fn class(&self) -> census::Class {
        match (self.packed, self.crc32) {
            (None, None) if self.is_late() => census::Class::AtEnd,
            (None, None) => census::Class::Exact,
            _ => census::Class::Bounded(Bound::Members),
        }
    }

    /// Whether it can only be decided when the container has passed.
    pub(crate) const fn is_late(&self) -> bool {
        self.container_size.is_some()
    }

    /// Whether a member can still be one that it means, with what is known of it when it begins.
    pub(crate) fn may_mean(&self, object: &Object, known: &Known) -> bool {
        self.encrypted.is_none_or(|wanted| wanted == known.encrypted)
            && within(self.position, Some(known.position))
            && (known.size.is_none() || within(self.size, known.size))
            && (known.is_part || within(self.packed, known.packed))
            && self.crc32.is_none_or(|wanted| known.crc32 == Some(wanted))
            && self.file_name.as_ref().is_none_or(|wanted| object.names().any(|name| wanted.matches(name)))
    }

    /// Whether it asks for a size that is only known when the member has passed.
    pub(crate) const fn awaits_size(&self, known: &Known) -> bool {
        known.size.is_none() && (self.size.is_some() || (known.is_part && self.packed.is_some()))
    }

    /// Whether the member, of which this has been waiting for the size, is one that it means.
    pub(crate) fn means(&self, size: u64, packed_too: bool) -> bool {
        within(self.size, Some(size)) && (!packed_too || within(self.packed, Some(size)))
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

pub(crate) fn within(wanted: Span, found: Option<u64>) -> bool {
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
