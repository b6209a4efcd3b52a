//! The census: how each signature was understood. Nothing is dropped silently.

use std::collections::BTreeMap;

use crate::source::container::Container;
use crate::syntax::location::Location;
use crate::syntax::signature::{Body, Logic, Signature};

/// How a database was understood.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Census {
    /// Signatures that are exact on a stream and told as soon as they match.
    pub exact: u64,
    /// Signatures that can only be decided at the end: hashes, places before the end, negations, file sizes.
    pub at_end: u64,
    /// Signatures that are exact within a bound, and how many have each bound.
    pub bounded: BTreeMap<Bound, u64>,
    /// Entries of allow lists.
    pub allowed: u64,
    /// Entries that are no signatures, but say how content is read, by what they say.
    pub entries: BTreeMap<Entry, u64>,
    /// Signatures left out because an ignore list names them.
    pub ignored: u64,
    /// Signatures for other versions of the engine, left out.
    pub other_engine: u64,
    /// Signatures of potentially unwanted applications, left out because nobody asked for them.
    pub unwanted: u64,
    /// Signatures of forms that are not supported, each with the reason.
    pub refused: Vec<Refused>,
    /// The containers that were read.
    pub containers: Vec<Container>,
}

impl Census {
    /// How many signatures are looked for.
    pub fn signatures(&self) -> u64 {
        self.exact + self.at_end + self.bounded.values().sum::<u64>()
    }

    /// Adds what another database holds.
    pub(crate) fn add(&mut self, other: &Census) {
        self.exact += other.exact;
        self.at_end += other.at_end;
        other.bounded.iter().for_each(|(bound, count)| *self.bounded.entry(*bound).or_default() += count);
        self.allowed += other.allowed;
        other.entries.iter().for_each(|(entry, count)| *self.entries.entry(*entry).or_default() += count);
        self.ignored += other.ignored;
        self.other_engine += other.other_engine;
        self.unwanted += other.unwanted;
        self.refused.extend(other.refused.iter().cloned());
        self.containers.extend(other.containers.iter().cloned());
    }

    /// How many signatures were refused, by reason.
    pub fn refusals(&self) -> BTreeMap<&str, u64> {
        let mut counts = BTreeMap::new();
        for refused in &self.refused {
            *counts.entry(&*refused.reason).or_default() += 1;
        }
        counts
    }
}

/// A signature that is not looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Its name, or the file that it is in, and the line.
    pub name: Box<str>,
    /// Why.
    pub reason: Box<str>,
}

/// Up to where a signature is exact. Beyond each of these a `Heuristics.Limits.Exceeded.Signatures` finding is told
/// wherever it might have made a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bound {
    /// It is placed by the head of an executable, which must lie within the first 64 kB.
    Head,
    /// It is of several parts and placed before the end: 64 starts of it are remembered.
    PartsBeforeEnd,
    /// It is placed by version information, which the first 64 kB of the resources say where to find.
    Version,
    /// It is a digest of a section; of sections that lie over each other eight are followed.
    Sections,
    /// It runs a regular expression over the first megabyte, in a million steps back. Beyond it the finding is
    /// `Heuristics.Limits.Exceeded.Pcre`.
    Content,
    /// It reads bytes that stand up to 8 kB before the place where a match is known, or anywhere behind it.
    Beside,
    /// It has a macro subsignature: 64 starts of the members of a group are remembered.
    Macros,
    /// It reads numbers from the object: from the first 64 kB, the first megabyte at fixed places, or the last 8 kB.
    Reads,
    /// It asks for the places of matches, of which 1,024 are remembered for a string, or has strings of several parts, of
    /// which 64 starts are.
    Strings,
    /// It is a rule on the certificates of a program, whose head lies within the first 64 kB and whose signature has up to
    /// 256 kB.
    Signature,
    /// It knows a picture by what it shows: files up to 4 MB, four million pixels. Larger ones it does not know, and no
    /// finding says so: every photograph would have one.
    Picture,
    /// It asks for the packed size or the checksum of a member, and the archive tells them before the member.
    Members,
}

impl Bound {
    /// All bounds, in an order that compiled files rely on: new ones come last.
    pub(crate) const ALL: [Bound; 12] = [
        Bound::Head,
        Bound::PartsBeforeEnd,
        Bound::Sections,
        Bound::Content,
        Bound::Beside,
        Bound::Macros,
        Bound::Members,
        Bound::Reads,
        Bound::Strings,
        Bound::Version,
        Bound::Signature,
        Bound::Picture,
    ];

    /// In words.
    pub const fn name(self) -> &'static str {
        match self {
            Bound::Head => "the head of an executable within its first 64 kB",
            Bound::PartsBeforeEnd => "64 starts of a body of several parts before the end",
            Bound::Content => "regular expressions over the first megabyte",
            Bound::Beside => "bytes up to 8 kB before a match",
            Bound::Macros => "64 starts of the members of a macro group",
            Bound::Reads => "numbers in the first and the last bytes of an object",
            Bound::Strings => "1,024 places of a string, 64 starts of one of several parts",
            Bound::Members => "packed sizes and checksums that stand before the member",
            Bound::Version => "version information within 64 kB, told of in the first 64 kB of the resources",
            Bound::Sections => "eight sections over each other",
            Bound::Signature => "signatures of programs up to 256 kB",
            Bound::Picture => "pictures of up to 4 MB and four million pixels",
        }
    }
}

/// Kind of an entry that is no signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Entry {
    /// A password that is tried.
    Password,
    /// Beginning of files of a type, or bytes within their first kilobyte.
    FileType,
    /// A host that links may show falsely, or a pair of hosts that is no fraud.
    Link,
    /// A digest of addresses.
    Address,
    /// A certificate that vouches for programs.
    Certificate,
}

impl Entry {
    /// All of them, in an order that compiled files rely on: new ones come last.
    pub(crate) const ALL: [Entry; 5] =
        [Entry::Password, Entry::FileType, Entry::Link, Entry::Address, Entry::Certificate];

    /// In words.
    pub const fn name(self) -> &'static str {
        match self {
            Entry::Password => "passwords that are tried where something is encrypted",
            Entry::FileType => "magic of file types, within their first kilobyte",
            Entry::Link => "hosts that links of mails may show falsely, and pairs that are allowed",
            Entry::Address => "digests of addresses that links of mails lead to",
            Entry::Certificate => "certificates that vouch for programs",
        }
    }
}

/// Class of a signature in the census.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Exact,
    AtEnd,
    Bounded(Bound),
    Allowed,
    Entry(Entry),
    Ignored,
    /// The signature was refused before.
    Refused,
}

impl Class {
    pub(crate) const SECTION: Class = Class::Bounded(Bound::Sections);
    pub(crate) const CERTIFICATE: Class = Class::Bounded(Bound::Signature);

    pub(crate) fn of(signature: &Signature) -> Class {
        let from_end = |body: &Body| matches!(body.location, Location::FromEnd { .. });
        let bodies = &signature.bodies;
        let logic = signature.logic.as_ref();
        if bodies.iter().any(|body| body.location == Location::Version) {
            return Class::Bounded(Bound::Version);
        }
        if bodies.iter().any(|body| body.location.needs_layout()) || logic.is_some_and(Logic::needs_layout) {
            return Class::Bounded(Bound::Head);
        }
        if logic.is_some_and(|logic| !logic.expressions.is_empty()) {
            return Class::Bounded(Bound::Content);
        }
        if logic.is_some_and(|logic| !logic.pictures.is_empty()) {
            return Class::Bounded(Bound::Picture);
        }
        if logic.is_some_and(|logic| !logic.compares.is_empty()) {
            return Class::Bounded(Bound::Beside);
        }
        if logic.is_some_and(|logic| !logic.macros.is_empty()) {
            return Class::Bounded(Bound::Macros);
        }
        if bodies.iter().any(|body| from_end(body) && body.parts.len() > 1) {
            return Class::Bounded(Bound::PartsBeforeEnd);
        }
        let late = logic.is_some_and(Logic::is_late);
        if late || bodies.iter().any(from_end) { Class::AtEnd } else { Class::Exact }
    }

    pub(crate) fn count(self, census: &mut Census) {
        let count = match self {
            Class::Exact => &mut census.exact,
            Class::AtEnd => &mut census.at_end,
            Class::Bounded(bound) => census.bounded.entry(bound).or_default(),
            Class::Allowed => &mut census.allowed,
            Class::Entry(entry) => census.entries.entry(entry).or_default(),
            Class::Ignored => &mut census.ignored,
            Class::Refused => return,
        };
        *count += 1;
    }
}
