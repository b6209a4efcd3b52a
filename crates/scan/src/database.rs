//! The compiled database.

use crate::census::Census;
use crate::hashes::HashTable;
use crate::sections::SectionTable;
use crate::table::Table;
use crate::target::{TARGETS, target_of};
use stream::FileType;

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
    /// Of the sections of executables.
    pub(crate) sections: SectionTable,
    /// Of what executables import.
    pub(crate) imports: HashTable,
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
