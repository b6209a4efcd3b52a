//! Executables encrypted by yoda's Crypter 1.3 (yC): sections, byte by byte, by a routine that is made anew for each file.
//!
//! The stub decrypts the rest of itself by one such routine, and that decrypts the sections by another. Both are read as the
//! short programs on one byte that they are. The file is emitted with its sections in the clear and its original entry.
//!
//! Left out: the imports, which are in the stub.

use memchr::memmem;

use super::program::Program;
use super::source::Whole;
use super::{Turn, Unpacked, Unpacker};
use crate::frame::codec::le32;
use crate::program::executable::head::Head;

/// The stub's beginning, and numbers in it: the address it was made for, its end and its beginning.
const BEGIN: &[u8] = b"\x55\x8b\xec\x53\x56\x57\x60\xe8\0\0\0\0\x5d\x81\xed";
const HERE: u32 = 12;
const MADE_FOR_AT: usize = 15;
const END_AT: usize = 20;
const START_AT: usize = 26;
const PROGRAM_AT: usize = 50;
/// Code before the second program, and after the place of the original entry.
const BEFORE_PROGRAM: &[u8] = b"\x8b\xfe\xeb\x04\x90\xeb\x01";
const BEHIND_ENTRY: &[u8] = b"\x03\x1a\xc1\xcb\x07";
const STUB_BYTES_MAX: usize = 16 << 10;
/// Sections that stay as they are begin with these.
const PLAIN: [&[u8; 4]; 7] = [b"rsrc", b".rsr", b"relo", b".rel", b"yC\0\0", b".eda", b".tls"];

pub(super) struct Yc {
    program: Program,
    entry: u32,
    is_loaded: bool,
    /// Where the encrypted sections stand in the file.
    sections: Vec<std::ops::Range<usize>>,
}

impl Yc {
    pub fn find(head: &Head, file: &Whole, stub: &[u8]) -> Option<Yc> {
        if !stub.starts_with(BEGIN) {
            return None;
        }
        let bytes = le32(stub, END_AT).checked_sub(le32(stub, START_AT))? as usize;
        let made_for = le32(stub, MADE_FOR_AT);
        // The offset of places in the stub from its first byte.
        let stub_at = made_for.checked_sub(HERE)?;
        let start = le32(stub, START_AT).checked_sub(stub_at)? as usize;
        let mut inner = file.run(head.file_at(head.entry)? + start as u64, bytes.min(STUB_BYTES_MAX));
        Program::read(stub.get(PROGRAM_AT..)?)?.run(&mut inner, bytes);
        let program_at = memmem::find(&inner, BEFORE_PROGRAM)? + BEFORE_PROGRAM.len() + 1;
        let program = Program::read(inner.get(program_at..)?)?;
        let entry_told = memmem::find(&inner, BEHIND_ENTRY)?.checked_sub(4)?;
        let entry_at = (le32(&inner, entry_told).checked_sub(stub_at)? as usize).checked_sub(start)?;
        let entry = le32(inner.get(entry_at..)?, 0);
        let sections = head.sections.iter().enumerate().filter(|(index, section)| {
            let header = head.end - crate::program::executable::head::SECTION_BYTES * (head.sections.len() - index);
            let name = file.head.get(header..header + 4).unwrap_or_default();
            !PLAIN.iter().any(|plain| name == *plain) && section.file.start > 0 && !section.file.is_empty()
        });
        let sections = sections.map(|(_, section)| section.file.start as usize..section.file.end as usize).collect();
        Some(Yc { program, entry, is_loaded: false, sections })
    }

    fn load(&mut self, file: &Whole, unpacked: &mut Unpacked) -> Option<()> {
        const ENTRY_AT: usize = 24 + 16;
        let head = Head::read(file.head)?;
        let end = usize::try_from(head.image_end()?).ok().filter(|end| *end <= unpacked.bytes_max)?;
        unpacked.bytes = file.run(0, end);
        let entry = unpacked.bytes.get_mut(head.at + ENTRY_AT..)?.first_chunk_mut()?;
        *entry = self.entry.to_le_bytes();
        self.is_loaded = true;
        Some(())
    }
}

impl Unpacker for Yc {
    fn turn(&mut self, file: &Whole, unpacked: &mut Unpacked) -> Turn {
        if !self.is_loaded {
            return if self.load(file, unpacked).is_some() { Turn::More } else { Turn::Not };
        }
        let Some(section) = self.sections.pop() else { return Turn::Done };
        let end = section.end.min(unpacked.bytes.len());
        if let Some(bytes) = unpacked.bytes.get_mut(section.start..end) {
            self.program.run(bytes, section.len());
            unpacked.work += bytes.len();
        }
        Turn::More
    }
}
