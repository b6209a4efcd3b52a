//! The compiled database.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use crate::census::Census;
use crate::hashes::HashTable;
use crate::signed::rule::Rule;
use crate::table::content::Table;
use crate::table::magic::Magic;
use crate::table::metadata::Metadata;
use crate::table::names::Names;
use crate::table::names::UNOFFICIAL;
use crate::table::passwords::Password;
use crate::table::sections::SectionTable;
use crate::target::{self, TARGETS, Targets};
use crate::{links, yara};

/// Signatures, compiled. Immutable and shared by all scans; a clone shares the tables.
///
/// A small database may lie over a large one ([`Database::with_overlay`]): a scan searches both in one pass.
#[derive(Debug, Clone)]
pub struct Database {
    pub(crate) tables: [Option<Arc<Table>>; TARGETS],
    pub(crate) hashes: HashTable,
    /// Digests of the sections of executables.
    pub(crate) sections: SectionTable,
    /// Digests of the imports of executables.
    pub(crate) imports: HashTable,
    pub(crate) allowed: HashTable,
    /// Rules on the certificates of programs.
    pub(crate) certificates: Arc<[Rule]>,
    /// Digests in trusted catalogues, of programs as they are signed.
    pub(crate) catalogued: HashTable,
    /// By what containers say of their members.
    pub(crate) metadata: Arc<[Metadata]>,
    /// Passwords that may open what is encrypted.
    pub(crate) passwords: Arc<[Password]>,
    /// Beginnings of files of each type, in place of our own rules.
    pub(crate) magic: Option<Arc<Magic>>,
    /// Hosts that links of mails may show falsely, and pairs that are allowed.
    pub(crate) links: Arc<[links::entry::Entry]>,
    /// Addresses that are told, and those that are not.
    pub(crate) addresses: links::digests::Digests,
    /// Rules of YARA.
    pub(crate) yara: Option<Arc<yara::Table>>,
    pub(crate) names: Names,
    pub(crate) census: Arc<Census>,
    /// Names that lists of names to ignore have.
    pub(crate) ignored: Arc<HashSet<Box<str>>>,
    /// The files that were loaded, each with the numbers of the names that it has.
    pub(crate) files: Arc<[(Box<str>, Range<u32>)]>,
    /// When it was loaded, in seconds since 1970, if the host said so.
    pub(crate) date: Option<i64>,
    /// The host's own words.
    pub(crate) note: Arc<str>,
    /// Numbers of names of which nothing is told, because the database above has newer ones.
    pub(crate) hidden: Arc<[Range<u32>]>,
    /// Overlay over this database.
    pub(crate) above: Option<Arc<Database>>,
}

/// A name, by the layer that it is of and its number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) layer: usize,
    pub(crate) number: u32,
}

impl Database {
    /// Census of its signatures; with an overlay of both, hidden ones counted too.
    pub fn census(&self) -> &Census {
        &self.census
    }

    /// The bytes that the pattern tables take.
    pub fn pattern_bytes(&self) -> usize {
        let tables = self.layers().flat_map(|layer| layer.tables.iter().flatten()).map(|table| table.patterns.bytes());
        tables.chain(self.layers().filter_map(|layer| Some(layer.yara.as_ref()?.patterns.bytes()))).sum()
    }

    /// Whether what was told of an object may still be taken back at its end: by an allow list, or by rules and catalogues that
    /// vouch for programs.
    pub fn takes_back(&self) -> bool {
        let vouches = |layer: &Database| layer.certificates.iter().any(|rule| rule.trusts);
        self.census.allowed > 0 || self.layers().any(vouches)
    }

    /// Says what time it is, in seconds since 1970: a program whose signature no countersignature dates counts as signed
    /// only while the certificate of who signed is valid then. Without a time it does not count.
    #[must_use]
    pub fn dated(self, now: i64) -> Database {
        Database { date: Some(now), ..self }
    }

    /// Note of the host when it was stored; empty if it was not.
    pub fn note(&self) -> &str {
        &self.note
    }

    /// The same signatures with those of a small database beside them. Nothing is told of the signatures that came from the
    /// files named in `replaced`; nor, whichever has it, of a name that a list of names to ignore of either has.
    #[must_use]
    pub fn with_overlay(&self, overlay: Database, replaced: &[&str]) -> Database {
        let is_replaced = |file: &&(Box<str>, _)| replaced.contains(&&*file.0);
        let mut census = Census::clone(&self.census);
        census.add(&overlay.census);
        Database {
            hidden: self.files.iter().filter(is_replaced).map(|(_, names)| names.clone()).collect(),
            census: Arc::new(census),
            above: Some(Arc::new(overlay)),
            ..self.clone()
        }
    }

    /// The passwords that it has for what is encrypted.
    pub fn passwords(&self) -> impl Iterator<Item = &[u8]> {
        self.layers().enumerate().flat_map(move |(layer, database)| {
            let told = database.passwords.iter();
            let told = told.filter(move |one| self.name(Name { layer, number: one.name }).is_some());
            told.map(|one| &*one.bytes)
        })
    }

    /// This, and what lies over it.
    pub(crate) fn layers(&self) -> impl Iterator<Item = &Database> + Clone {
        std::iter::successors(Some(self), |layer| layer.above.as_deref())
    }

    /// The text of a name, unless nothing is to be told of it.
    pub(crate) fn name(&self, name: Name) -> Option<String> {
        let layer = self.layers().nth(name.layer)?;
        if layer.hidden.iter().any(|names| names.contains(&name.number)) {
            return None;
        }
        let text = layer.names.get(name.number);
        let stem = text.strip_suffix(UNOFFICIAL).unwrap_or(&text);
        let is_ignored = self.layers().any(|layer| layer.ignored.contains(stem));
        (!is_ignored).then_some(text)
    }

    /// The names that a table of each layer has for these digests.
    pub(crate) fn matching(&self, of: impl Fn(&Database) -> &HashTable, sums: &digest::Sums) -> Vec<Name> {
        let layers = self.layers().enumerate();
        let names = layers.flat_map(|(layer, database)| {
            of(database).matching(sums).into_iter().map(move |number| Name { layer, number })
        });
        names.collect()
    }

    /// The tables of these targets, of each layer in turn, as far as there are any.
    pub(crate) fn tables_for(&self, targets: Targets) -> impl Iterator<Item = Option<&Table>> + Clone {
        self.layers().flat_map(move |layer| targets.map(|target| layer.tables.get(usize::from(target?))?.as_deref()))
    }

    /// Whether a body is placed by the version information of an executable.
    pub(crate) fn wants_version(&self) -> bool {
        let of_executables = [Some(target::EXECUTABLE), None, None];
        self.tables_for(of_executables).flatten().any(|table| table.needs_version)
    }

    /// Whether there are signatures of a target.
    pub(crate) fn has_target(&self, target: u8) -> bool {
        self.tables_for([Some(target), None, None]).any(|table| table.is_some())
    }
}
