//! Names, some of them wildcards, with what they are worth, and a table that finds them.
//!
//! A name is kept once, in wire form without its root, in lower case, with its length before it. What finds it is a table
//! of offsets, three quarters full, addressed by a hash; nothing is sorted and nothing points.

use super::above::Ancestors;
use super::ids::Ids;
use super::value::{ValueId, number};

/// Names while a file is read.
#[derive(Debug, Default)]
pub struct Builder {
    /// Where the name is, and its value.
    entries: Vec<(u32, u32)>,
    names: Vec<u8>,
}

impl Builder {
    /// Adds a name in wire form without its root, in lower case; `false` if there are too many.
    pub fn add(&mut self, name: &[u8], wild: bool, value: ValueId) -> bool {
        let (Ok(at), Ok(len)) = (u32::try_from(self.names.len()), u8::try_from(name.len())) else {
            return false;
        };
        self.names.push(len);
        self.names.push(u8::from(wild));
        self.names.extend_from_slice(name);
        self.entries.push((at, value.0));
        true
    }

    /// Makes the table. Of a name `all` keeps every value once, an exclusion alone; otherwise the first counts.
    pub fn finish(mut self) -> Table {
        let names = core::mem::take(&mut self.names);
        // Equal names side by side, in the order of the file.
        self.entries.sort_by(|&(a, _), &(b, _)| record(&names, a).cmp(record(&names, b)).then(a.cmp(&b)));
        let mut kept = Vec::new();
        for run in self.entries.chunk_by(|&(a, _), &(b, _)| record(&names, a) == record(&names, b)) {
            let excluded = run.iter().any(|&(_, value)| value == ValueId::EXCLUDED.0);
            let start = kept.len();
            for &(_, value) in run {
                let value = if excluded { ValueId::EXCLUDED.0 } else { value };
                if !kept[start..].iter().any(|&(_, other)| other == value) {
                    kept.push((run[0].0, value));
                }
            }
        }
        Table::new(&names, &kept)
    }
}

/// Length, kind and name at an offset.
fn record(names: &[u8], at: u32) -> &[u8] {
    let at = usize::try_from(at).unwrap_or(usize::MAX);
    let len = names.get(at).copied().map_or(0, usize::from);
    names.get(at..at + 2 + len).unwrap_or_default()
}

/// Finds names.
#[derive(Debug, Default)]
pub struct Table {
    names: Vec<u8>,
    /// Index of an entry plus one; 0 is free.
    slots: Vec<u32>,
    /// Where the name of an entry is. Entries of one name stand side by side.
    offsets: Vec<u32>,
    values: Ids,
    has_wild: bool,
    ancestors: Ancestors,
}

impl Table {
    fn new(names: &[u8], entries: &[(u32, u32)]) -> Table {
        let mut table = Table { values: Ids::new(entries.iter().map(|&(_, value)| value)), ..Table::default() };
        let mut last = None;
        for &(from, _) in entries {
            let name = record(names, from);
            let at = match last {
                Some((last_from, at)) if last_from == from => at,
                _ => {
                    let at = u32::try_from(table.names.len()).unwrap_or(u32::MAX);
                    table.names.extend_from_slice(name);
                    at
                }
            };
            last = Some((from, at));
            table.has_wild |= name.get(1) == Some(&1);
            table.offsets.push(at);
        }
        table.names.shrink_to_fit();
        table.fill_slots();
        table.ancestors = table.ancestors_of_listed();
        table
    }

    fn ancestors_of_listed(&self) -> Ancestors {
        let listed = self.offsets.iter().enumerate();
        let listed = listed.filter(|&(entry, _)| self.values.get(entry) != ValueId::EXCLUDED.0);
        Ancestors::new(listed.filter_map(|(_, &at)| {
            let (&[_, wild], name) = record(&self.names, at).split_first_chunk()?;
            Some((name, wild == 1))
        }))
    }

    /// Whether names below `name` are listed.
    pub fn is_above(&self, name: &[u8]) -> bool {
        self.ancestors.has(name)
    }

    fn fill_slots(&mut self) {
        self.slots = vec![0; self.offsets.len() + self.offsets.len() / 3 + 1];
        for entry in 0..self.offsets.len() {
            if entry > 0 && self.offsets[entry] == self.offsets[entry - 1] {
                continue;
            }
            let name = record(&self.names, self.offsets[entry]);
            let mut slot = self.slot(name[1] == 1, &name[2..]);
            while self.slots[slot] != 0 {
                slot = (slot + 1) % self.slots.len();
            }
            self.slots[slot] = u32::try_from(entry + 1).unwrap_or(u32::MAX);
        }
    }

    fn slot(&self, wild: bool, name: &[u8]) -> usize {
        let hash = name.iter().fold(0xcbf2_9ce4_8422_2325_u64 ^ u64::from(wild), |hash, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
        let range = u64::try_from(self.slots.len()).unwrap_or(1);
        // The upper bits are the better ones.
        usize::try_from((hash >> 16) % range).unwrap_or(0)
    }

    /// Returns the values of `name` (wire form without root, in lower case), or those of the longest wildcard above it,
    /// with the listed name.
    pub fn find<'n>(&self, name: &'n [u8]) -> Option<(&'n [u8], impl Iterator<Item = ValueId> + '_)> {
        let exact = self.entry(false, name).map(|entry| (name, entry));
        let (listed, entry) = exact.or_else(|| self.find_wild(name))?;
        Some((listed, self.values_from(entry)))
    }

    fn find_wild<'n>(&self, name: &'n [u8]) -> Option<(&'n [u8], usize)> {
        if !self.has_wild {
            return None;
        }
        let mut rest = name;
        loop {
            let (&len, behind) = rest.split_first()?;
            rest = behind.get(usize::from(len)..)?;
            if let Some(entry) = self.entry(true, rest) {
                return Some((rest, entry));
            }
        }
    }

    fn values_from(&self, entry: usize) -> impl Iterator<Item = ValueId> + '_ {
        let same = move |&index: &usize| self.offsets[index] == self.offsets[entry];
        (entry..self.offsets.len()).take_while(same).map(|index| ValueId(self.values.get(index)))
    }

    fn entry(&self, wild: bool, name: &[u8]) -> Option<usize> {
        if self.slots.is_empty() || name.is_empty() {
            return None;
        }
        let mut slot = self.slot(wild, name);
        loop {
            let entry = usize::try_from(self.slots[slot].checked_sub(1)?).ok()?;
            let found = record(&self.names, self.offsets[entry]);
            if found.get(1) == Some(&u8::from(wild)) && found.get(2..) == Some(name) {
                return Some(entry);
            }
            slot = (slot + 1) % self.slots.len();
        }
    }

    /// Calls `each` with every name, whether it is a wildcard, and each value.
    pub fn for_each(&self, mut each: impl FnMut(&[u8], bool, ValueId)) {
        for (index, &at) in self.offsets.iter().enumerate() {
            let name = record(&self.names, at);
            if let Some((&[_, wild], name)) = name.split_first_chunk() {
                each(name, wild == 1, ValueId(self.values.get(index)));
            }
        }
    }

    /// How many names there are, one with several values counted several times.
    pub fn count(&self) -> usize {
        self.offsets.len()
    }

    /// How many bytes it takes.
    pub fn memory_bytes(&self) -> usize {
        let numbers = 4 * (self.slots.capacity() + self.offsets.capacity());
        self.names.capacity() + numbers + self.values.memory_bytes() + self.ancestors.memory_bytes()
    }
}

/// Parses a name of a data file: labels between dots, empty ones ignored, `\` before special characters. Returns the
/// wire form without root, in lower case; `None` without labels, or with a label that is too long.
pub fn read(text: &[u8]) -> Option<Vec<u8>> {
    let name = read_keeping_case(text)?;
    (!name.is_empty()).then(|| name.to_ascii_lowercase())
}

/// The same with its case kept, and the root alone allowed.
pub fn read_keeping_case(text: &[u8]) -> Option<Vec<u8>> {
    let mut wire: Vec<u8> = Vec::new();
    let mut label: Vec<u8> = Vec::new();
    let mut at = 0;
    let mut any = false;
    while let Some(&byte) = text.get(at) {
        at += 1;
        match byte {
            b'.' => end_label(&mut wire, &mut label)?,
            b'\\' => {
                let digits = text[at..].iter().take(3).take_while(|byte| byte.is_ascii_digit()).count();
                if digits > 0 {
                    label.push(number(&text[at..at + digits])?);
                    at += digits;
                    any = true;
                } else if let Some(&escaped) = text.get(at) {
                    label.push(escaped);
                    at += 1;
                    any = true;
                }
            }
            _ => label.push(byte),
        }
        any |= byte != b'\\';
        if label.len() > 63 {
            return None;
        }
    }
    end_label(&mut wire, &mut label)?;
    (any && wire.len() < 255).then_some(wire)
}

fn end_label(wire: &mut Vec<u8>, label: &mut Vec<u8>) -> Option<()> {
    if !label.is_empty() {
        wire.push(u8::try_from(label.len()).ok()?);
        wire.append(label);
    }
    (wire.len() < 255).then_some(())
}
