//! RPM packages: a lead, a header of signatures, a header of the package, and the payload to the end, emitted raw: a
//! compressed cpio archive that the readers of its own formats open.
//!
//! Left out: cpio archives that leave sizes and names to the header of the package (files of 4 GiB and more). Source: the
//! description of the format in RPM's documentation. Bounds: 16 bytes of a header; its entries are passed over, as all is
//! scanned raw.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use stream::Class;

use crate::frame::archive::{Archive, Faults, Record, Records};
use crate::frame::codec::{Fault, Progress, be32};
use crate::frame::cuts;
use crate::frame::format::{Format, Reads};

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "rpm",
    methods: "lead and headers; the payload by its own format",
    not_read: "",
    reads: Reads::Stream,
    memory: "16 bytes",
    decoder: "own",
    fuzz: "unpack_rpm",
    compared_with: "rpm2cpio, over packages made by rpmbuild and the public archives",
};

const HEADER: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.Rpm.Header");

/// A reader of packages.
pub(crate) struct Rpm {
    part: Part,
}

/// Next part of the input.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Lead,
    Signatures,
    Header,
    Payload,
}

impl Rpm {
    pub const fn new() -> Rpm {
        Rpm { part: Part::Lead }
    }

    fn pass(&mut self, length: u64, next: Part) -> Record {
        self.part = next;
        Record::pass_bytes(length)
    }
}

/// The length of the header that begins here: index entries and the store that they point into.
fn header_bytes(head: &[u8]) -> Option<u64> {
    const FIXED: u64 = 16;
    const ENTRY: u64 = 16;
    head.starts_with(b"\x8e\xad\xe8")
        .then(|| ENTRY.saturating_mul(be32(head, 8).into()).saturating_add(be32(head, 12).into()).saturating_add(FIXED))
}

impl Records for Rpm {
    const FAULTS: Faults =
        Faults { truncated: Fault::passing(Class::Truncated, "Heuristics.Truncated.Rpm"), check: HEADER, size: HEADER };

    fn record(&mut self, head: &[u8], _: u64, faults: &mut Vec<Fault>) -> Record {
        const LEAD_BYTES: u64 = 96;
        const WANTED: usize = 16;
        if self.part == Part::Payload {
            return Record::Rest;
        }
        if head.len() < WANTED {
            return Record::Need(WANTED);
        }
        match (self.part, header_bytes(head)) {
            (Part::Lead, _) => self.pass(LEAD_BYTES, Part::Signatures),
            (Part::Signatures, Some(length)) => self.pass(length.next_multiple_of(8), Part::Header),
            (_, Some(length)) => self.pass(length, Part::Payload),
            (_, None) => {
                faults.push(HEADER);
                Record::Rest
            }
        }
    }

    fn decode(&mut self, _: &[u8], _: &mut [u8]) -> Progress {
        Progress::fault(0, HEADER)
    }

    fn may_end(&self) -> bool {
        self.part == Part::Payload
    }
}

/// Fuzz body: reads a package.
pub fn fuzz_rpm(data: &[u8]) {
    cuts::compare(data, |limits| Box::new(Archive::new(Rpm::new(), limits)));
}
