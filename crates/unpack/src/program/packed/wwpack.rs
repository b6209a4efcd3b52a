//! Executables packed by WWPack32 1.x: sections that are packed each for itself, by a code of its own.
//!
//! Literals and matches are told by single bits, in words among the bytes that they tell of, the highest bit first. A table
//! in the stub says where in the image each packed section lies.

use super::image::image_as_executable;
use super::source::{Source, Whole};
use super::{Turn, Unpacked, Unpacker};
use crate::frame::codec::le32;
use crate::frame::held::repeat;
use crate::program::executable::head::Head;

const BEGIN: &[u8] = b"\x53\x55\x8b\xe8\x33\xdb\xeb";
const NAME: &[u8] = b"WWPack32";
/// The instruction that tells where the table is.
const READ_TABLE: &[u8] = b"\x2e\x2b\x84\x0d";
/// An entry: how far in front of the stub the section begins, where its last word is, how many words are packed, where the
/// last of them is, whether another entry follows.
const ENTRY_BYTES: usize = 17;
const ENTRIES_MAX: usize = 96;

pub(super) struct WwPack {
    /// The address of the stub, and of the image's first byte.
    stub: u32,
    first: u32,
    entry: u32,
    /// The next last.
    sections: Vec<Section>,
    /// The image, once it is loaded.
    is_loaded: bool,
}

struct Section {
    address: u32,
    bytes: usize,
    packed: u32,
}

impl WwPack {
    pub fn find(head: &Head, stub: &[u8]) -> Option<WwPack> {
        if !stub.starts_with(BEGIN) || memchr::memmem::find(stub, NAME).is_none() {
            return None;
        }
        let table = le32(stub, memchr::memmem::find(stub, READ_TABLE)? + READ_TABLE.len()) as usize;
        // The jump to the original entry stands a little in front of it.
        let jump = table.checked_sub(13)?;
        let entry = head.entry.wrapping_add(jump as u32 + 5).wrapping_add(le32(stub, jump + 1));
        let mut sections = Vec::new();
        for entry in stub.get(table..)?.chunks_exact(ENTRY_BYTES).take(ENTRIES_MAX) {
            let [before, last, words, packed_last] = [0, 4, 8, 12].map(|at| le32(entry, at));
            let address = head.entry.checked_sub(before)?;
            let packed_end = address.checked_add(packed_last)?.checked_add(4)?;
            let packed = packed_end.checked_sub(words.checked_mul(4)?)?;
            sections.push(Section { address, bytes: last.checked_add(4)? as usize, packed });
            if entry[16] == 0 {
                break;
            }
        }
        sections.reverse();
        Some(WwPack { stub: head.entry, first: head.sections.first()?.address, entry, sections, is_loaded: false })
    }

    /// Puts the sections where they are in memory.
    fn load(&mut self, file: &Whole, unpacked: &mut Unpacked) -> Option<()> {
        let head = Head::read(file.head)?;
        let mut left = unpacked.bytes_max;
        for section in head.sections.iter().filter(|section| section.address < self.stub) {
            let count = (section.file.end - section.file.start) as usize;
            left = left.checked_sub(count)?;
            let at = section.address.checked_sub(self.first)? as usize;
            let end =
                at.checked_add(count.max(section.memory_bytes as usize)).filter(|end| *end <= unpacked.bytes_max)?;
            if unpacked.bytes.len() < end {
                unpacked.bytes.resize(end, 0);
            }
            file.read(section.file.start, &mut unpacked.bytes[at..at + count]);
        }
        self.is_loaded = true;
        Some(())
    }

    fn section(&self, section: &Section, file: &Whole, unpacked: &mut Unpacked) -> Option<()> {
        let head = Head::read(file.head)?;
        let at = head.file_at(section.packed)?;
        let place = section.address.checked_sub(self.first)? as usize;
        let mut bits = Bits { source: Source::new(file, at), word: 0, left: 0 };
        bits.next()?;
        let room = unpacked.bytes.get_mut(place..)?;
        let mut content = Vec::new();
        let bytes_max = section.bytes.min(room.len());
        while let Some(symbol) = bits.symbol()? {
            let fits = match symbol {
                Symbol::Literal(byte) => {
                    content.push(byte);
                    content.len() <= bytes_max
                }
                Symbol::Match { distance, length } => {
                    repeat(&mut content, distance as usize, length as usize, bytes_max)
                }
            };
            if !fits {
                return None;
            }
        }
        room[..content.len()].copy_from_slice(&content);
        unpacked.work += content.len();
        Some(())
    }
}

impl Unpacker for WwPack {
    fn turn(&mut self, file: &Whole, unpacked: &mut Unpacked) -> Turn {
        if !self.is_loaded {
            return if self.load(file, unpacked).is_some() { Turn::More } else { Turn::Not };
        }
        let Some(section) = self.sections.pop() else {
            if let Some(made) = image_as_executable(file, self.entry, self.first, unpacked) {
                unpacked.bytes = made;
            }
            return Turn::Done;
        };
        match self.section(&section, file, unpacked) {
            Some(()) => Turn::More,
            None => Turn::Broken,
        }
    }
}

enum Symbol {
    Literal(u8),
    Match { distance: u32, length: u32 },
}

struct Bits<'a> {
    source: Source<'a>,
    word: u32,
    left: u32,
}

impl Bits<'_> {
    fn next(&mut self) -> Option<()> {
        self.word = self.source.number(4)?;
        self.left = 32;
        Some(())
    }

    /// So many bits; a word that is used up makes place for the next one at once.
    fn take(&mut self, count: u32) -> Option<u32> {
        let mut value = 0;
        for _ in 0..count {
            self.left -= 1;
            value = value << 1 | (self.word >> self.left & 1);
            if self.left == 0 {
                self.next()?;
            }
        }
        Some(value)
    }

    /// The next symbol; nothing at the end.
    fn symbol(&mut self) -> Option<Option<Symbol>> {
        const END: u32 = 0x1ff;
        if self.take(1)? == 0 {
            return Some(Some(Symbol::Literal(self.source.byte()?)));
        }
        let kind = self.take(2)?;
        if kind == 3 {
            let (bits, least) = [(5, 1), (6, 33), (8, 97), (9, 353)][self.take(2)? as usize];
            let value = self.take(bits)?;
            return Some((value != END).then_some(Symbol::Match { distance: value + least, length: 2 }));
        }
        let distance = self.distance()?;
        let length = match kind {
            1 => 3,
            2 => 4,
            _ => self.length()?,
        };
        Some(Some(Symbol::Match { distance, length }))
    }

    fn distance(&mut self) -> Option<u32> {
        let bits = match self.take(3)? {
            bits @ 0..3 => bits + 5,
            3 => 8 + self.take(1)?,
            4 => 10 + self.take(1)?,
            5 => 12,
            6 => return Some(self.take(14)? + 0x1fe1),
            _ => return Some(self.take(15)? + 0x5fe1),
        };
        Some(self.take(bits)? + (1 << bits) - 31)
    }

    fn length(&mut self) -> Option<u32> {
        if self.take(1)? == 0 {
            return Some(5 + self.take(1)?);
        }
        match self.take(3)? {
            0 => {}
            value => return Some(value + 6),
        }
        match self.take(4)? {
            0 => {}
            value => return Some(value + 13),
        }
        let mut least = 13;
        for bits in 5..=7 {
            least = (least + 2) * 2 - 1;
            if self.take(1)? == 1 {
                return Some(self.take(bits)? + least);
            }
        }
        self.take(14)
    }
}
