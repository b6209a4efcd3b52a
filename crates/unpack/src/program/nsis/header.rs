//! The header of an installer: its script, of which the instructions that extract files tell their names.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use std::collections::BTreeMap;

use stream::Limits;

use crate::frame::codec::{le16, le32};
use crate::frame::name;

/// The names of files by where these stand among the files.
#[derive(Default)]
pub(super) struct Names(BTreeMap<u64, Box<str>>);

/// Places of the blocks in the header: instructions and strings, each with its offset and its count.
const INSTRUCTIONS_AT: usize = 4 + 8 * 2;
const STRINGS_AT: usize = 4 + 8 * 3;
/// An instruction is a code and six operands.
const INSTRUCTION_BYTES: usize = 28;
const EXTRACT: u32 = 20;

impl Names {
    pub fn read(header: &[u8], limits: &Limits) -> Names {
        let instructions = header.get(le32(header, INSTRUCTIONS_AT) as usize..).unwrap_or_default();
        let count = le32(header, INSTRUCTIONS_AT + 4) as usize;
        let strings = Strings::new(header.get(le32(header, STRINGS_AT) as usize..).unwrap_or_default());
        let mut names = BTreeMap::new();
        for instruction in instructions.chunks_exact(INSTRUCTION_BYTES).take(count) {
            let (code, name, place) = (le32(instruction, 0), le32(instruction, 8), le32(instruction, 12));
            if code == EXTRACT && names.len() < limits.directory_entries_max as usize {
                let name = strings.name(name as usize, limits.name_bytes_max as usize);
                names.entry(place.into()).or_insert(name);
            }
        }
        Names(names)
    }

    /// The name of the file at `place`.
    pub fn take(&mut self, place: u64) -> Option<Box<str>> {
        self.0.remove(&place).filter(|name| !name.is_empty())
    }
}

/// The strings of the script, with codes for variables among their characters.
struct Strings<'a> {
    bytes: &'a [u8],
    is_wide: bool,
    /// Codes are the lowest characters, as version 3 has them, and not the highest.
    codes_are_low: bool,
}

impl<'a> Strings<'a> {
    fn new(bytes: &'a [u8]) -> Strings<'a> {
        // The first string is empty.
        let is_wide = bytes.starts_with(b"\0\0");
        let codes_are_low = is_wide || bytes.iter().any(|byte| (1..=3).contains(byte));
        Strings { bytes, is_wide, codes_are_low }
    }

    /// The last part of the path that begins at the character `at`, without variables.
    fn name(&self, at: usize, bytes_max: usize) -> Box<str> {
        match self.is_wide {
            true => {
                let from = self.bytes.get(at.saturating_mul(2)..).unwrap_or_default();
                let units = from.chunks_exact(2).map(|unit| le16(unit, 0)).take_while(|&unit| unit != 0);
                let name = self.literal(units.take(bytes_max));
                name::cut(&String::from_utf16_lossy(&name), bytes_max)
            }
            false => {
                let from = self.bytes.get(at..).unwrap_or_default();
                let units = from.iter().map(|&byte| u16::from(byte)).take_while(|&unit| unit != 0);
                let name: Vec<u8> = self.literal(units.take(bytes_max)).into_iter().map(|unit| unit as u8).collect();
                name::cut(&name::utf8_or_latin1(&name), bytes_max)
            }
        }
    }

    fn literal(&self, units: impl Iterator<Item = u16>) -> Vec<u16> {
        let codes = if self.codes_are_low { 1..=3 } else { 0xfd..=0xff };
        let operands = if self.is_wide { 1 } else { 2 };
        let (mut name, mut skip) = (Vec::new(), 0u32);
        for unit in units {
            if skip > 0 {
                skip = skip.saturating_sub(1);
            } else if codes.contains(&unit) {
                skip = operands;
            } else if unit == u16::from(b'\\') {
                name.clear();
            } else {
                name.push(unit);
            }
        }
        name
    }
}
