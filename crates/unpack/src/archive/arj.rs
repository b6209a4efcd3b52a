//! ARJ: headers and members one behind the other.
//!
//! Methods read: stored, 1 to 3 (those of LHA with a distance code of 17 symbols), 4. Told raw: garbled members
//! (`Heuristics.Encrypted.Arj`), members that began in another volume, other methods. Extended headers are passed; the
//! search for archives reads them. What follows the end is emitted as a member without name.
//!
//! Bounds: a header of 2600 bytes, an extended one of 64 KiB, a dictionary of 64 KiB.
//!
//! Source: the technical information that comes with ARJ.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod fastest;

use stream::{Class, Entry, Limits, Object};
use zlib_rs::crc32::crc32;

use crate::archive::lha::Decoder;
use crate::frame::archive::{Archive, Check, Content, Faults, Member, Record, Records};
use crate::frame::codec::{Fault, Progress, Told, le16, le32};
use crate::frame::cuts;
use crate::frame::format::{Format, Reads};
use crate::frame::name;
use fastest::Fastest;

const HEADER: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.Arj.Header");
const DATA: Fault = Fault::fatal(Class::Malformed, "Heuristics.Malformed.Arj.Data");
const ENCRYPTED: Fault = Fault::passing(Class::Encrypted, "Heuristics.Encrypted.Arj");
const METHOD: Fault = Fault::passing(Class::Limit, "Heuristics.Limits.Exceeded.ArjMethod");
const SPLIT: Fault = Fault::passing(Class::Truncated, "Heuristics.Truncated.ArjVolume");

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "arj",
    methods: "stored, 1 to 4",
    not_read: "garbled members, members that began in another volume",
    reads: Reads::Stream,
    memory: "a header of 64 KiB, a dictionary of 64 KiB",
    decoder: "own",
    fuzz: "unpack_arj",
    compared_with: "arj, which made the seeds",
};

const MARK: &[u8] = b"\x60\xea";
/// Mark and length.
const FRONT_BYTES: usize = 4;
const FIXED_BYTES: usize = 30;
const HEADER_BYTES_MAX: usize = 2600;
const CRC_BYTES: usize = 4;

/// A reader of ARJ archives.
pub(crate) struct Arj {
    name_bytes_max: usize,
    decoder: Option<Decoder>,
    /// Where the extended headers go on that are not all here.
    walked: usize,
    ended: bool,
}

impl Arj {
    pub fn new(limits: &Limits) -> Arj {
        Arj { name_bytes_max: limits.name_bytes_max as usize, decoder: None, walked: 0, ended: false }
    }

    /// A header that is here with its extended headers, `length` bytes in all.
    fn header(&mut self, header: &[u8], length: usize, faults: &mut Vec<Fault>) -> Record {
        const MAIN: u8 = 2;
        const DIRECTORY: u8 = 3;
        let packed = u64::from(le32(header, 12));
        match header[6] {
            MAIN => Record::pass(length, 0),
            DIRECTORY if packed == 0 => Record::pass(length, 0),
            _ => Record::Member(length, self.member(header, packed, faults)),
        }
    }

    fn member(&mut self, header: &[u8], packed: u64, faults: &mut Vec<Fault>) -> Member {
        const GARBLED: u8 = 1;
        const GOES_ON: u8 = 4;
        const CONTINUED: u8 = 8;
        let (flags, method) = (header[4], header[5]);
        self.decoder = match method {
            1..=3 => Decoder::of(*b"-lh7-"),
            4 => Some(Decoder::with(Box::new(Fastest), &vec![0; fastest::DICTIONARY_BYTES])),
            _ => None,
        };
        let unreadable = match method {
            _ if flags & GARBLED != 0 => Some(ENCRYPTED),
            _ if flags & CONTINUED != 0 => Some(SPLIT),
            0..=4 => None,
            _ => Some(METHOD),
        };
        faults.extend(unreadable);
        if flags & (GOES_ON | CONTINUED) == GOES_ON {
            faults.push(SPLIT);
        }
        let size = unreadable.is_none().then_some(u64::from(le32(header, 16)));
        let content = match self.decoder.is_some() && unreadable.is_none() {
            true => Content::Packed { packed: Some(packed), size },
            false => Content::Raw(packed),
        };
        let check = if unreadable.is_none() { Check::crc32(le32(header, 20)) } else { Check::None };
        let name = header.get(usize::from(header[0])..).unwrap_or_default();
        let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
        let name = name::utf8_or_cp437(&name[..name.len().min(self.name_bytes_max)]);
        let (size_told, crc32) = (Some(u64::from(le32(header, 16))), Some(le32(header, 20)));
        let entry = Some(Entry {
            packed: Some(packed),
            size: size_told,
            encrypted: flags & GARBLED != 0,
            crc32,
            ..Entry::default()
        });
        Member {
            object: Object { name: Some(name), size, entry: entry.map(Box::new), ..Object::default() },
            content,
            check,
        }
    }
}

/// Where the extended headers end, which go on at `end`, as far as is known; whether that is all.
fn extent(head: &[u8], mut end: usize) -> (usize, bool) {
    loop {
        let behind = end.saturating_add(2);
        if head.len() < behind {
            return (end, false);
        }
        match usize::from(le16(head, end)) {
            0 => return (behind, true),
            extended => end = behind.saturating_add(extended).saturating_add(CRC_BYTES),
        }
    }
}

impl Records for Arj {
    const FAULTS: Faults = Faults {
        truncated: Fault::passing(Class::Truncated, "Heuristics.Truncated.Arj"),
        check: Fault::passing(Class::Malformed, "Heuristics.Malformed.Arj.Crc"),
        size: Fault::passing(Class::Malformed, "Heuristics.Malformed.Arj.Size"),
    };

    fn record(&mut self, head: &[u8], _: u64, faults: &mut Vec<Fault>) -> Record {
        if self.ended {
            return Record::Rest;
        }
        if head.len() < FRONT_BYTES {
            return Record::Need(FRONT_BYTES);
        }
        let basic = usize::from(le16(head, 2));
        if head.starts_with(MARK) && basic == 0 {
            self.ended = true;
            return Record::pass(FRONT_BYTES, 0);
        }
        if !head.starts_with(MARK) || !(FIXED_BYTES..=HEADER_BYTES_MAX).contains(&basic) {
            faults.push(HEADER);
            return Record::Rest;
        }
        let plain = basic.saturating_add(FRONT_BYTES + CRC_BYTES);
        if head.len() < plain.saturating_add(2) {
            return Record::Need(plain.saturating_add(2));
        }
        let header = head.get(FRONT_BYTES..).and_then(|behind| behind.get(..basic)).unwrap_or_default();
        let is_true = crc32(0, header) == le32(head, plain.saturating_sub(CRC_BYTES));
        if !is_true {
            faults.push(HEADER);
        }
        // What follows a header that is not as it says is not followed.
        if !is_true && le16(head, plain) != 0 {
            return Record::Rest;
        }
        let (length, whole) = extent(head, self.walked.max(plain));
        if !whole {
            self.walked = length;
            return Record::Need(length.saturating_add(2));
        }
        self.walked = 0;
        self.header(header, length, faults)
    }

    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        let Some(decoder) = &mut self.decoder else {
            return Progress::fault(0, DATA);
        };
        let mut progress = decoder.decode(input, output);
        if let Told::Fault(_) = progress.told {
            progress.told = Told::Fault(DATA);
        }
        progress
    }

    fn surplus(&self) -> &[u8] {
        self.decoder.as_ref().map_or(&[], Decoder::surplus)
    }

    fn may_end(&self) -> bool {
        self.ended
    }
}

/// Fuzz body: reads an ARJ archive.
pub fn fuzz_arj(data: &[u8]) {
    cuts::compare(data, |limits| Box::new(Archive::new(Arj::new(limits), limits)));
}
