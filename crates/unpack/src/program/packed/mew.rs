//! Executables packed by MEW 11: blocks of aPLib, each for a place in the image.
//!
//! With LZMA the blocks hold what unpacks the program, which the emulator runs.
//! The stub stands in the headers; it begins with the address of a table: a routine, the original entry, the first place.

use super::aplib::Aplib;
use super::image::image_as_executable;
use super::nrv::Run;
use super::source::Whole;
use super::{TURN_BYTES, Turn, Unpacked, Unpacker};
use crate::frame::codec::le32;
use crate::program::executable::head::Head;

const JUMP: u8 = 0xe9;
const LOAD_TABLE: u8 = 0xbe;
/// Code of the stub once it has loaded the table's address.
const BEGIN: &[u8] = b"\x8b\xde\xad\xad\x50\xad\x97\xb2\x80\xa4\xb6\x80\xff\x13\x73\xf9";
const TABLE_BYTES: u64 = 12;

pub(super) struct Mew {
    entry: u32,
    /// Address of the image's first byte, the base of addresses in memory.
    first: u32,
    base: u32,
    start: usize,
    aplib: Aplib,
}

impl Mew {
    pub fn find(head: &Head, file: &Whole, stub: &[u8]) -> Option<Mew> {
        if *stub.first()? != JUMP {
            return None;
        }
        let target = head.entry.wrapping_add(5).wrapping_add(le32(stub, 1));
        let begin = file.head.get(target as usize..)?;
        if *begin.first()? != LOAD_TABLE || !begin.get(5..)?.starts_with(BEGIN) {
            return None;
        }
        let table = head.file_at(le32(begin, 1).checked_sub(head.base)?)?;
        let [_, entry, place] = [0, 4, 8].map(|at| u32::from_le_bytes(file.bytes(table + at)));
        let first = head.sections.first()?.address;
        let start = place.checked_sub(head.base)?.checked_sub(first)? as usize;
        let entry = entry.checked_sub(head.base)?;
        Some(Mew { entry, first, base: head.base, start, aplib: Aplib::new(table + TABLE_BYTES) })
    }

    /// Returns whether the entry is empty: then the unpacked code unpacks the program from LZMA.
    fn is_unfinished(&self, unpacked: &Unpacked) -> bool {
        const ENTRY_BYTES: usize = 16;
        let entry = self.entry.wrapping_sub(self.first) as usize;
        let code = unpacked.bytes.get(entry..).unwrap_or_default();
        code.iter().take(ENTRY_BYTES).all(|byte| *byte == 0)
    }

    /// The next block, behind the address of its place.
    fn next(&mut self, file: &Whole, unpacked: &mut Unpacked) -> Turn {
        let at = self.aplib.at();
        let place = u32::from_le_bytes(file.bytes(at));
        if place == 0 {
            if self.is_unfinished(unpacked) {
                return Turn::Not;
            }
            if let Some(made) = image_as_executable(file, self.entry, self.first, unpacked) {
                unpacked.bytes = made;
            }
            return Turn::Done;
        }
        let start = place.checked_sub(self.base).and_then(|place| place.checked_sub(self.first));
        match start.map(|start| start as usize) {
            Some(start) if start >= unpacked.bytes.len() => {
                self.start = start;
                self.aplib = Aplib::new(at + 4);
                Turn::More
            }
            _ => Turn::Broken,
        }
    }
}

impl Unpacker for Mew {
    fn turn(&mut self, file: &Whole, unpacked: &mut Unpacked) -> Turn {
        if self.start > unpacked.bytes_max {
            return Turn::TooLarge;
        }
        if unpacked.bytes.len() < self.start {
            unpacked.bytes.resize(self.start, 0);
        }
        let until = unpacked.bytes.len() + TURN_BYTES;
        match self.aplib.run(file, unpacked, self.start, until) {
            Run::More => Turn::More,
            Run::End => self.next(file, unpacked),
            Run::Broken => Turn::Broken,
            Run::TooLarge => Turn::TooLarge,
        }
    }
}
