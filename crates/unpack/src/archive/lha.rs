//! LHA (LZH, LArc, PMarc): headers of levels 0 to 3, members as they come.
//!
//! Methods read: stored (`lh0` `lz4` `pm0`), `lh1` to `lh7`, `lhx`, `lzs`, `lz5`, `pm1`, `pm2`. Others are emitted raw. What
//! follows the end is emitted as a member without name.
//!
//! Bounds: a header of 64 KiB, a dictionary of at most 1 MiB (`lhx`).
//!
//! Source: the format as public readers describe it (LHa for UNIX, lhasa).

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod adaptive;
mod decoder;
mod header;
mod larc;
mod lh3;
mod lzh;
mod method;
mod pmarc;

use stream::{Class, Entry, Limits, Object};

use crate::frame::archive::{Archive, Check, Content, Faults, Member, Record, Records};
use crate::frame::codec::{Fault, Progress};
use crate::frame::cuts;
use crate::frame::format::{Format, Reads};
use crate::frame::name;
pub(crate) use decoder::Decoder;
use header::{Found, Header};
pub(crate) use method::{Method, Run};

const HEADER: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.Lha.Header");
const METHOD: Fault = Fault::passing(Class::Limit, "Heuristics.Limits.Exceeded.LhaMethod");
const DATA: Fault = Fault::fatal(Class::Malformed, "Heuristics.Malformed.Lha.Data");

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "lha",
    methods: "headers of levels 0 to 3; stored, lh1 to lh7, lhx, lzs, lz5, pm1, pm2",
    not_read: "lh2 with long runs as libjlha-java writes it (its checksum is reported as wrong)",
    reads: Reads::Stream,
    memory: "a header of 64 KiB, a dictionary of the method's size (4 KiB to 1 MiB)",
    decoder: "own",
    fuzz: "unpack_lha",
    compared_with: "lhasa, over its own test archives; unar for lh2, libjlha-java for lh3, over files made for it",
};

/// A reader of LHA archives.
pub(crate) struct Lha {
    name_bytes_max: usize,
    decoder: Option<Decoder>,
    ended: bool,
}

impl Lha {
    pub fn new(limits: &Limits) -> Lha {
        Lha { name_bytes_max: limits.name_bytes_max as usize, decoder: None, ended: false }
    }

    fn member(&mut self, header: &Header, faults: &mut Vec<Fault>) -> Record {
        if !header.sum_is_right {
            faults.push(HEADER);
        }
        if &header.method == b"-lhd-" {
            return Record::pass(header.length, header.packed);
        }
        let stored = matches!(&header.method, b"-lh0-" | b"-lz4-" | b"-pm0-");
        if !stored {
            self.decoder = Decoder::of(header.method);
        }
        let understood = stored || self.decoder.is_some();
        if !understood {
            faults.push(METHOD);
        }
        let size = understood.then_some(header.size);
        let content = match understood && !stored {
            true => Content::Packed { packed: Some(header.packed), size },
            false => Content::Raw(header.packed),
        };
        let name = header.name(self.name_bytes_max);
        let name = (!name.is_empty()).then(|| name::utf8_or_cp437(&name));
        let check = if understood { Check::crc16(header.crc) } else { Check::None };
        let entry = Entry { packed: Some(header.packed), size: Some(header.size), ..Entry::default() };
        let object = Object { name, size, entry: Some(Box::new(entry)), ..Object::default() };
        Record::Member(header.length, Member { object, content, check })
    }
}

impl Records for Lha {
    const FAULTS: Faults = Faults {
        truncated: Fault::passing(Class::Truncated, "Heuristics.Truncated.Lha"),
        check: Fault::passing(Class::Malformed, "Heuristics.Malformed.Lha.Crc"),
        size: Fault::passing(Class::Malformed, "Heuristics.Malformed.Lha.Size"),
    };

    fn record(&mut self, head: &[u8], _: u64, faults: &mut Vec<Fault>) -> Record {
        if self.ended {
            return Record::Rest;
        }
        match Header::read(head) {
            Found::Need(count) => Record::Need(count),
            Found::End => {
                self.ended = true;
                Record::pass_bytes(1)
            }
            Found::Nothing => {
                faults.push(HEADER);
                Record::Rest
            }
            Found::Header(header) => self.member(&header, faults),
        }
    }

    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        match &mut self.decoder {
            Some(decoder) => decoder.decode(input, output),
            None => Progress::fault(0, DATA),
        }
    }

    fn surplus(&self) -> &[u8] {
        self.decoder.as_ref().map_or(&[], Decoder::surplus)
    }
}

/// Fuzz body: reads an LHA archive.
pub fn fuzz_lha(data: &[u8]) {
    cuts::compare(data, |limits| Box::new(Archive::new(Lha::new(limits), limits)));
}
