//! The compiled database.

use crate::hashes::HashTable;
use crate::table::Table;
use crate::target::{TARGETS, target_of};
use stream::FileType;

/// How a database was understood: nothing is dropped silently.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Census {
    /// Signatures that are exact on a stream and told as soon as they match.
    pub exact: u64,
    /// Signatures that can only be decided at the end: hashes, places before the end, negations, file sizes.
    pub at_end: u64,
    /// Signatures that are exact within a bound: those placed by an executable's header (which must be in the first
    /// 4 kB), and those of several parts placed before the end.
    pub bounded: u64,
    /// Entries of allow lists.
    pub allowed: u64,
    /// Signatures left out because an ignore list names them.
    pub ignored: u64,
    /// Signatures for other versions of the engine, left out.
    pub other_engine: u64,
    /// Signatures of potentially unwanted applications, left out because nobody asked for them.
    pub unwanted: u64,
    /// Signatures of forms that are not supported, each with the reason.
    pub refused: Vec<Refused>,
}

/// A signature that is not looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Its name.
    pub name: Box<str>,
    /// Why.
    pub reason: Box<str>,
}

/// Names, one after the other.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    text: String,
    ends: Vec<u32>,
}

impl Names {
    /// Adds a name and returns its number.
    pub(crate) fn add(&mut self, name: &str, suffix: &str) -> u32 {
        self.text.push_str(name);
        self.text.push_str(suffix);
        self.ends.push(self.text.len() as u32);
        (self.ends.len() - 1) as u32
    }

    /// Takes back the last name.
    pub(crate) fn remove_last(&mut self) {
        self.ends.pop();
        self.text.truncate(self.ends.last().map_or(0, |&end| end as usize));
    }

    /// The name with that number.
    pub(crate) fn get(&self, number: u32) -> &str {
        let number = number as usize;
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start as usize..self.ends[number] as usize]
    }
}

/// Signatures, compiled. Immutable and shared by all scans.
#[derive(Debug, Clone)]
pub struct Database {
    pub(crate) tables: [Option<Table>; TARGETS],
    pub(crate) hashes: HashTable,
    pub(crate) allowed: HashTable,
    pub(crate) names: Names,
    pub(crate) census: Census,
}

impl Database {
    /// What it holds.
    pub fn census(&self) -> &Census {
        &self.census
    }

    /// The bytes that the pattern tables take.
    pub fn pattern_bytes(&self) -> usize {
        self.tables.iter().flatten().map(|table| table.patterns.bytes()).sum()
    }

    /// The tables that apply to a kind of file: that of every kind, and its own.
    pub(crate) fn tables_for(&self, file_type: FileType) -> [Option<&Table>; 2] {
        let own = usize::from(target_of(file_type));
        let own = if own == 0 { None } else { self.tables[own].as_ref() };
        [self.tables[0].as_ref(), own]
    }
}
