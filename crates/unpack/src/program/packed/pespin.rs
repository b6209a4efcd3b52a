//! Executables packed by PESpin 1.1: sections encrypted twice, and compressed by aPLib.
//!
//! The stub stands at fixed places behind its first instruction, under layers that it takes off one by one; two of them, and
//! one of the sections, are programs on one byte that are made anew for each file. The other key of the sections is made of
//! a sum over the file. Here the layers are taken off without a run of it, as the numbers in them say.
//!
//! ```text
//! stub   := by a key that counts down → rotated → by shifted key, twice → program, twice → by shifted key
//! sections := by shifted key (made of the sum) → program → aPLib
//! ```
//!
//! Left out: the original entry, imports and code that stand in the stub, resources that were compressed one by one, files
//! whose stub asks for a password first. Source: the stub of the one file at hand.

use std::ops::Range;

use stream::Nothing;

use super::aplib::Aplib;
use super::image::image_as_executable;
use super::nrv::Run;
use super::program::Program;
use super::source::Whole;
use super::{TURN_BYTES, Turn, Unpacked, Unpacker};
use crate::frame::codec::le32;
use crate::program::executable::head::Head;

/// The stub's beginning; behind it the number that places in it are counted by, which differs from version to version.
const BEGIN: &[u8] =
    b"\xeb\x01\x68\x60\xe8\0\0\0\0\x8b\x1c\x24\x83\xc3\x12\x81\x2b\xe8\xb1\x06\0\xfe\x4b\xfd\x82\x2c\x24";
const BASE_AT: usize = BEGIN.len();
/// Number that the stub subtracts, and its distance from the stub's first byte.
const BASE_LESS: u32 = 0x6_b1e8 + 9;
const STUB_BYTES_MAX: usize = 16 << 10;

/// Instructions that numbers stand behind.
const LOAD_EBX: &[u8] = b"\xbb";
const COUNT: &[u8] = b"\xb9";
const PUSH: &[u8] = b"\x68";
const PLACE: &[u8] = b"\x8d\xbd";
const FEEDBACK: &[u8] = b"\x81\xf2";

pub(super) struct Pespin {
    sum: Sum,
    /// The first key of the sections, without the sum over the file.
    key: u32,
    feedback: u32,
    program: Program,
    /// Bit masks of sections: encrypted first, encrypted then, compressed.
    masks: [u32; 3],
    sections: std::vec::IntoIter<(usize, (u32, Range<u64>))>,
    first: u32,
    packed: Option<Packed>,
}

/// A compressed section.
struct Packed {
    bytes: Vec<u8>,
    aplib: Aplib,
    /// Where it begins in the image.
    start: usize,
}

impl Pespin {
    pub fn find(head: &Head, file: &Whole) -> Option<Pespin> {
        let stub = file.run(head.file_at(head.entry)?, STUB_BYTES_MAX);
        if !stub.starts_with(BEGIN) {
            return None;
        }
        let base = le32(&stub, BASE_AT).wrapping_sub(BASE_LESS);
        let mut stub = Stub { bytes: stub, base };
        stub.take_off()?;
        let feedback = stub.number(0x592, FEEDBACK)?;
        let [count, first_mask, key, password] = [0x1f3b, 0x3207, 0x3217, 0x3111].map(|at| le32(&stub.bytes, at));
        if password != 0 {
            return None;
        }
        let masks = [first_mask, stub.number(0x6f0, PUSH)?, stub.number(0x3060, LOAD_EBX)?];
        let program = Program::read(stub.bytes.get(0x753..)?)?;
        let sum = Sum::new(&stub, head.image_end()?)?;
        let first = head.sections.first()?.address;
        let count = usize::from(count as u16);
        let places = head.sections.iter().take(count).map(|section| (section.address, section.file.clone()));
        let sections = places.enumerate().collect::<Vec<_>>().into_iter();
        Some(Pespin { sum, key, feedback, program, masks, sections, first, packed: None })
    }

    /// The next section, in the clear.
    fn section(&mut self, file: &Whole, unpacked: &mut Unpacked) -> Turn {
        let Some((index, (address, place))) = self.sections.next() else {
            if let Some(made) = image_as_executable(file, self.first, self.first, unpacked) {
                unpacked.bytes = made;
            }
            return Turn::Done;
        };
        let Some(start) = address.checked_sub(self.first).map(|start| start as usize) else {
            return Turn::Broken;
        };
        let count = (place.end - place.start) as usize;
        if start.max(unpacked.bytes.len()).saturating_add(count) > unpacked.bytes_max {
            return Turn::TooLarge;
        }
        if start < unpacked.bytes.len() {
            return Turn::Broken;
        }
        unpacked.bytes.resize(start, 0);
        let mut bytes = file.run(place.start, count);
        let has = |mask: u32| mask & 1 << (index % 32) != 0;
        let [is_keyed, is_programmed, is_packed] = self.masks.map(has);
        if is_keyed {
            let key = self.key.wrapping_sub(self.sum.value);
            shifted(&mut bytes, key, self.feedback, 0);
        }
        if is_programmed {
            self.program.run(&mut bytes, count);
        }
        unpacked.work += 3 * bytes.len();
        if is_packed {
            self.packed = Some(Packed { bytes, aplib: Aplib::new(0), start });
        } else {
            unpacked.bytes.extend_from_slice(&bytes);
        }
        Turn::More
    }
}

impl Unpacker for Pespin {
    fn turn(&mut self, file: &Whole, unpacked: &mut Unpacked) -> Turn {
        if !self.sum.run(file, unpacked) {
            return Turn::More;
        }
        let Some(packed) = &mut self.packed else { return self.section(file, unpacked) };
        let whole = Whole { head: &packed.bytes, kept: &Nothing };
        let until = unpacked.bytes.len() + TURN_BYTES;
        match packed.aplib.run(&whole, unpacked, packed.start, until) {
            Run::More => return Turn::More,
            Run::End => self.packed = None,
            Run::Broken => return Turn::Broken,
            Run::TooLarge => return Turn::TooLarge,
        }
        Turn::More
    }
}

/// The stub, from its first instruction on.
struct Stub {
    bytes: Vec<u8>,
    /// Number subtracted from places that the stub tells.
    base: u32,
}

impl Stub {
    /// The number behind this instruction at this place.
    fn number(&self, at: usize, instruction: &[u8]) -> Option<u32> {
        let number = self.bytes.get(at..)?.strip_prefix(instruction)?;
        Some(u32::from_le_bytes(*number.first_chunk()?))
    }

    /// The place in it that this instruction loads.
    fn place(&self, at: usize, instruction: &[u8]) -> Option<usize> {
        Some(self.number(at, instruction)?.wrapping_sub(self.base) as usize)
    }

    fn run(&mut self, start: usize, count: u32) -> Option<&mut [u8]> {
        self.bytes.get_mut(start..)?.get_mut(..count as usize)
    }

    /// Takes the layers off.
    fn take_off(&mut self) -> Option<()> {
        let (key, count) = (self.number(0xdb, LOAD_EBX)?, self.number(0xe0, COUNT)?);
        for (index, byte) in self.run(self.place(0xe5, PLACE)?, count)?.iter_mut().rev().enumerate() {
            *byte ^= key.wrapping_sub(index as u32) as u8;
        }
        // This one counts from the byte behind.
        let count = self.number(0x15c, PUSH)?;
        let rotated = self.run(self.place(0x162, PLACE)?, count.checked_add(1)?)?;
        rotated.iter_mut().skip(1).for_each(|byte| *byte = byte.rotate_right(2));

        let (key, count, feedback) =
            (self.number(0x26ea, LOAD_EBX)?, self.number(0x26ef, PUSH)?, self.number(0x2705, b"\x81\xf3")?);
        let start = self.place(0x26f5, PLACE)?.checked_sub(self.number(0x26fb, b"\x81\xef")? as usize)?;
        shifted(self.run(start, count)?, key, feedback, 1);
        let (count, key, feedback) =
            (self.number(0x643, PUSH)?, self.number(0x64f, b"\xba")?, self.number(0x686, FEEDBACK)?);
        shifted(self.run(self.place(0x649, PLACE)?, count)?, key, feedback, 1);
        for (place, count, program) in [(0x28d6, 0x28dc, 0x28ea), (0x29de, 0x29e4, 0x29f2)] {
            let program = Program::read(self.bytes.get(program..)?)?;
            let count = self.number(count, COUNT)?;
            program.run(self.run(self.place(place, PLACE)?, count)?, count as usize);
        }
        let (count, key) = (self.number(0x27b3, PUSH)?, self.number(0x27b9, PUSH)?);
        let feedback = self.number(0x27c3, FEEDBACK)?;
        let place = self.place(0x27ad, b"\x8d\x85")?;
        shifted(self.run(place, count)?, key, feedback, 1);
        Some(())
    }
}

/// Takes off a key that is shifted for each byte, and mixed where the bit that falls out is this one.
fn shifted(bytes: &mut [u8], mut key: u32, feedback: u32, bit: u32) {
    for byte in bytes {
        let out = key & 1;
        key >>= 1;
        if out == bit {
            key ^= feedback;
        }
        *byte ^= key as u8;
    }
}

/// The sum over the file, all but its end.
struct Sum {
    at: u64,
    end: u64,
    added: u32,
    other: u32,
    value: u32,
}

impl Sum {
    fn new(stub: &Stub, file_bytes: u64) -> Option<Sum> {
        let left_out = stub.number(0x427, b"\x81\xe9")?;
        let added = stub.number(0x28ac, b"\x05")?;
        let end = file_bytes.saturating_sub(left_out.into());
        Some(Sum { at: 0, end, added, other: u32::MAX, value: u32::MAX })
    }

    /// Goes on; whether it is complete.
    fn run(&mut self, file: &Whole, unpacked: &mut Unpacked) -> bool {
        const ROUNDS: usize = 4;
        let count = (self.end - self.at).min(TURN_BYTES as u64 / ROUNDS as u64) as usize;
        for byte in file.run(self.at, count) {
            self.other = (self.other ^ u32::from(byte) << 8) >> 3;
            for _ in 0..ROUNDS {
                let mixed = self.other ^ self.value >> 8 & 0xff;
                let mixed = mixed.wrapping_add(self.added) ^ self.value;
                let turned = mixed.rotate_right(self.value);
                (self.other, self.value) = (self.value, turned);
            }
        }
        unpacked.work += ROUNDS * count;
        self.at += count as u64;
        self.at == self.end
    }
}
