//! MacBinary II and III: a header of 128 bytes, the data fork and the resource fork, each filled up to 128.
//!
//! Left out: MacBinary I, which nothing tells from other files; the comment behind the forks. Source: the MacBinary II and
//! III standards. Bounds: the header.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use stream::{Class, Limits, Object};

use crate::frame::archive::{Archive, Check, Content, Faults, Member, Record, Records};
use crate::frame::codec::{Fault, Progress, be16, be32};
use crate::frame::cuts;
use crate::frame::format::{Format, Reads};
use crate::frame::name;

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "MacBinary",
    methods: "versions II and III: data fork, resource fork",
    not_read: "version I, which is not recognised",
    reads: Reads::Stream,
    memory: "128 bytes",
    decoder: "own",
    fuzz: "unpack_macbinary",
    compared_with: "what was put into the seeds",
};

const HEADER: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.MacBinary.Header");

const HEADER_BYTES: usize = 128;
const BLOCK: u64 = 128;

/// A reader of MacBinary files.
pub(crate) struct MacBinary {
    name_bytes_max: usize,
    part: Part,
}

/// Next part of the input, with the lengths of those after it.
enum Part {
    Header,
    Data { name: Box<str>, data: u64, resources: u64 },
    Resources { name: Box<str>, resources: u64 },
    Rest,
}

/// Whether this is the header of a file: fields that are zero, a name of sane length, and the signature or checksum.
pub(crate) fn is_header(head: &[u8]) -> bool {
    const SIGNATURE: std::ops::Range<usize> = 102..106;
    let Some(header) = head.get(..HEADER_BYTES) else {
        return false;
    };
    let zeros = [0, 74, 82].iter().all(|&at| header[at] == 0);
    let named = (1..=63).contains(&header[1]);
    zeros && named && (&header[SIGNATURE] == b"mBIN" || crc16(&header[..124]) == be16(header, 124) && header[2] != 0)
}

/// The CRC of XMODEM.
fn crc16(bytes: &[u8]) -> u16 {
    const POLYNOMIAL: u16 = 0x1021;
    bytes.iter().fold(0, |crc, &byte| {
        (0..8)
            .fold(crc ^ u16::from(byte) << 8, |crc, _| if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ POLYNOMIAL })
    })
}

impl MacBinary {
    pub fn new(limits: &Limits) -> MacBinary {
        MacBinary { name_bytes_max: limits.name_bytes_max as usize, part: Part::Header }
    }

    fn header(&mut self, head: &[u8], faults: &mut Vec<Fault>) -> Record {
        if head.len() < HEADER_BYTES {
            return Record::Need(HEADER_BYTES);
        }
        if !is_header(head) {
            faults.push(HEADER);
            self.part = Part::Rest;
            return Record::Rest;
        }
        let name_bytes = usize::from(head[1]).min(self.name_bytes_max);
        let name = name::utf8_or_latin1(&head[2..][..name_bytes]);
        let (data, resources) = (be32(head, 83).into(), be32(head, 87).into());
        self.part = Part::Data { name, data, resources };
        let second_header = u64::from(be16(head, 120)).next_multiple_of(BLOCK);
        Record::pass(BLOCK as usize, second_header)
    }

    fn fork(&self, name: Box<str>, length: u64) -> Record {
        let object = Object { name: Some(name), size: Some(length), ..Object::default() };
        Record::Member(0, Member { object, content: Content::Raw(length), check: Check::None })
    }
}

impl Records for MacBinary {
    const FAULTS: Faults = Faults {
        truncated: Fault::passing(Class::Truncated, "Heuristics.Truncated.MacBinary"),
        check: HEADER,
        size: HEADER,
    };

    fn record(&mut self, head: &[u8], at: u64, faults: &mut Vec<Fault>) -> Record {
        let padding = at.wrapping_neg() % BLOCK;
        match std::mem::replace(&mut self.part, Part::Rest) {
            Part::Header => {
                self.part = Part::Header;
                self.header(head, faults)
            }
            Part::Data { name, data, resources } => {
                self.part = Part::Resources { name: format!("{name}/rsrc").into(), resources };
                self.fork(name, data)
            }
            Part::Resources { resources: 0, .. } => self.record(head, at, faults),
            Part::Resources { name, resources } if padding > 0 => {
                self.part = Part::Resources { name, resources };
                Record::pass_bytes(padding)
            }
            Part::Resources { name, resources } => self.fork(name, resources),
            // Padding behind the last fork may be missing.
            Part::Rest if (head.len() as u64) < padding => Record::Need(padding as usize),
            Part::Rest if padding > 0 && head.iter().take(padding as usize).all(|&byte| byte == 0) => {
                Record::pass_bytes(padding)
            }
            Part::Rest if head.is_empty() => Record::Need(1),
            Part::Rest => Record::Rest,
        }
    }

    fn decode(&mut self, _: &[u8], _: &mut [u8]) -> Progress {
        Progress::fault(0, HEADER)
    }

    fn may_end(&self) -> bool {
        matches!(self.part, Part::Rest)
    }
}

/// Fuzz body: reads a MacBinary file.
pub fn fuzz_macbinary(data: &[u8]) {
    cuts::compare(data, |limits| Box::new(Archive::new(MacBinary::new(limits), limits)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc16_of_the_usual_nine_digits() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
    }
}
