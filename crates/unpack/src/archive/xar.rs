//! XAR archives (`.xar`, `.pkg` of macOS): a header, a table of contents in compressed XML, and a heap of members.
//!
//! Members are told in the order of the heap; ranges of it that no member names are passed over. The content of members that
//! share a range or overlap is emitted once, the others of them are empty. Left out: extended attributes and signatures in the heap. Source: the description of the
//! format in the xar project's wiki. Bounds: a packed table of `spool_bytes_max`, a table of [`TABLE_BYTES_MAX`],
//! `directory_entries_max` members, one decoder.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod table;

use std::collections::VecDeque;

use stream::{Class, Limits, Object};

use crate::frame::archive::{Archive, Check, Content, Faults, Member, Record, Records};
use crate::frame::codec::{Decoder, Fault, Progress, Told, be16, be64};
use crate::frame::cuts;
use crate::frame::format::{Format, Reads};
use crate::stream::bzip2::Bzip2;
use crate::stream::lzma_alone::LzmaAlone;
use crate::stream::xz::Xz;
use crate::stream::zlib::Zlib;
use table::Entry;

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "XAR, PKG",
    methods: "stored, zlib, bzip2, xz, lzma",
    not_read: "other encodings, extended attributes",
    reads: Reads::Stream,
    memory: "the packed table of contents up to `spool_bytes_max`, the table up to 8 MiB, a name and 60 bytes for each of \
             `directory_entries_max` members; one decoder",
    decoder: "own; members as their streams",
    fuzz: "unpack_xar",
    compared_with: "7z and bsdtar, over archives made by bsdtar",
};

const HEADER: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.Xar.Header");
const TABLE: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.Xar.Table");
const DATA: Fault = Fault::fatal(Class::Malformed, "Heuristics.Malformed.Xar.Data");
const OVERLAP: Fault = Fault::passing(Class::Ambiguous, "Heuristics.Ambiguous.Xar.Overlap");
const ENTRIES: Fault = Fault::passing(Class::Limit, "Heuristics.Limits.Exceeded.XarTable");
const METHOD: Fault = Fault::passing(Class::Limit, "Heuristics.Limits.Exceeded.XarMethod");

const TABLE_BYTES_MAX: usize = 8 << 20;
const FIXED_BYTES: usize = 28;

/// A reader of archives.
pub(crate) struct Xar {
    limits: Limits,
    state: State,
    decoder: Option<Box<dyn Decoder>>,
}

enum State {
    Header,
    /// The table has so many packed bytes.
    Table(u64),
    /// The members by their place in the heap, which begins here.
    Heap {
        start: u64,
        entries: VecDeque<Entry>,
        last: Option<(u64, u64)>,
    },
    Rest,
}

impl Xar {
    pub fn new(limits: &Limits) -> Xar {
        Xar { limits: limits.clone(), state: State::Header, decoder: None }
    }

    fn header(&mut self, head: &[u8], faults: &mut Vec<Fault>) -> Record {
        if head.len() < FIXED_BYTES {
            return Record::Need(FIXED_BYTES);
        }
        let length = be16(head, 4);
        if !head.starts_with(b"xar!") || usize::from(length) < FIXED_BYTES {
            faults.push(HEADER);
            self.state = State::Rest;
            return Record::Rest;
        }
        self.state = State::Table(be64(head, 8));
        Record::pass_bytes(length.into())
    }

    fn table(&mut self, length: u64, head: &[u8], at: u64, faults: &mut Vec<Fault>) -> Record {
        let wanted = usize::try_from(length).unwrap_or(usize::MAX);
        if head.len() < wanted {
            return Record::Need(wanted);
        }
        let (xml, told) = inflate(&head[..wanted]);
        faults.extend(told);
        let max = self.limits.directory_entries_max as usize;
        let mut entries = table::read(&xml, max, self.limits.name_bytes_max as usize);
        if entries.len() > max {
            faults.push(ENTRIES);
            entries.truncate(max);
        }
        entries.sort_by_key(|entry| (entry.offset, entry.length));
        self.state = State::Heap { start: at.saturating_add(length), entries: entries.into(), last: None };
        Record::pass_bytes(length)
    }

    fn member(&mut self, at: u64, head: &[u8], faults: &mut Vec<Fault>) -> Record {
        let State::Heap { start, entries, last } = &mut self.state else {
            return Record::Rest;
        };
        let Some(next) = entries.front() else {
            return if head.is_empty() { Record::Need(1) } else { Record::Rest };
        };
        let place = start.saturating_add(next.offset);
        if place > at && next.length > 0 {
            return Record::pass_bytes(place.saturating_sub(at));
        }
        let Some(entry) = entries.pop_front() else { return Record::Rest };
        let range = (entry.offset, entry.length);
        if entry.length > 0 && place < at {
            // Files with the same content share it.
            if *last != Some(range) {
                faults.push(OVERLAP);
            }
            let object = Object { name: Some(entry.name), size: Some(0), ..Object::default() };
            return Record::Member(0, Member { object, content: Content::Raw(0), check: Check::None });
        }
        *last = Some(range);
        let (decoder, is_known) = decoder(&entry.encoding, &self.limits);
        if !is_known {
            faults.push(METHOD);
        }
        let content = match decoder {
            Some(_) => Content::Packed { packed: Some(entry.length), size: None },
            None => Content::Raw(entry.length),
        };
        self.decoder = decoder;
        let object = Object { name: Some(entry.name), size: entry.size, ..Object::default() };
        Record::Member(0, Member { object, content, check: Check::None })
    }
}

/// The decoder of an encoding, and whether it is one that is known.
fn decoder(encoding: &str, limits: &Limits) -> (Option<Box<dyn Decoder>>, bool) {
    let decoder: Box<dyn Decoder> = match encoding {
        "" | "application/octet-stream" => return (None, true),
        "application/x-gzip" => Box::new(Zlib::new()),
        "application/x-bzip2" => Box::new(Bzip2::new(limits)),
        "application/x-xz" => Box::new(Xz::new(limits)),
        "application/x-lzma" => Box::new(LzmaAlone::new(limits)),
        _ => return (None, false),
    };
    (Some(decoder), true)
}

/// The table, as much of it as makes sense.
fn inflate(packed: &[u8]) -> (Vec<u8>, Option<Fault>) {
    let mut decoder = Zlib::new();
    let (mut table, mut taken) = (Vec::new(), 0);
    let mut piece = [0; 4096];
    loop {
        let progress = decoder.decode(&packed[taken..], &mut piece);
        taken = taken.saturating_add(progress.taken);
        table.extend_from_slice(&piece[..progress.wrote]);
        match progress.told {
            Told::Over => return (table, None),
            Told::Fault(fault) if fault.fatal => return (table, Some(TABLE)),
            Told::Nothing if progress.taken == 0 && progress.wrote == 0 => return (table, Some(TABLE)),
            _ if table.len() > TABLE_BYTES_MAX => return (table, Some(ENTRIES)),
            _ => {}
        }
    }
}

impl Records for Xar {
    const FAULTS: Faults = Faults {
        truncated: Fault::passing(Class::Truncated, "Heuristics.Truncated.Xar"),
        check: DATA,
        size: Fault::passing(Class::Malformed, "Heuristics.Malformed.Xar.Size"),
    };

    fn record(&mut self, head: &[u8], at: u64, faults: &mut Vec<Fault>) -> Record {
        match self.state {
            State::Header => self.header(head, faults),
            State::Table(length) => self.table(length, head, at, faults),
            State::Heap { .. } => self.member(at, head, faults),
            State::Rest => Record::Rest,
        }
    }

    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        let Some(decoder) = &mut self.decoder else {
            return Progress::fault(0, DATA);
        };
        let mut progress = decoder.decode(input, output);
        if matches!(progress.told, Told::Begin(_)) {
            progress.told = Told::Nothing;
        }
        // Where further streams could follow, the last one ends with the packed data.
        if input.is_empty() && progress == Progress::took(0) && decoder.missing().is_none() {
            progress.told = Told::Over;
        }
        progress
    }

    fn surplus(&self) -> &[u8] {
        self.decoder.as_ref().map_or(&[], |decoder| decoder.surplus())
    }

    fn may_end(&self) -> bool {
        matches!(&self.state, State::Heap { entries, .. } if entries.is_empty())
    }
}

/// Fuzz body: reads an archive.
pub fn fuzz_xar(data: &[u8]) {
    cuts::compare(data, |limits| Box::new(Archive::new(Xar::new(limits), limits)));
}
