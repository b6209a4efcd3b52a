//! Nullsoft installers (NSIS): a header with a script, followed by the files in order.
//!
//! The installer follows its executable. The script is not run: all files are emitted, under the names that it extracts
//! them by, if any. Files and header are packed one by one, or all together ("solid"); solid data is emitted as one
//! stream with the type [`SOLID`], and its content is read.
//!
//! Left out: methods of altered versions of NSIS. Source: the files that makensis makes. Bounds: a header of
//! [`HEADER_BYTES_MAX`], a name for each of `directory_entries_max` files, one decoder.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod header;

use stream::{Class, Kind, Limits, Object};

use crate::codec::deflate::Deflate;
use crate::codec::lzma::{LzmaStream, PROPERTIES_BYTES};
use crate::frame::archive::{Archive, Check, Content, Faults, Member, Record, Records};
use crate::frame::codec::{Collected, Decoder, Fault, Progress, Told, le32};
use crate::frame::cuts;
use crate::frame::format::{Format, Reads};
use crate::stream::bzip2::Bzip2;
use header::Names;

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "NSIS",
    methods: "stored, deflate, LZMA, NSIS's own bzip2; solid or not; names in ANSI and Unicode",
    not_read: "methods of altered versions; the script is not run",
    reads: Reads::Stream,
    memory: "a header of 8 MiB, packed and unpacked, a name for each of `directory_entries_max` files; bzip2: 3.7 MB, LZMA: \
             dictionary up to `codec_bytes_max`, growing with the data",
    decoder: "own; zlib-rs for deflate",
    fuzz: "unpack_nsis",
    compared_with: "what makensis was given",
};

/// The marks of an installer, behind its flags.
pub(crate) const MAGIC: &[u8; 16] = b"\xef\xbe\xad\xdeNullsoftInst";
/// The type of solid data.
pub(crate) const SOLID: &str = "application/x-nsis-solid";

const HEADER: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.Nsis.Header");
const DATA: Fault = Fault::fatal(Class::Malformed, "Heuristics.Malformed.Nsis.Data");
const TRUNCATED: Fault = Fault::fatal(Class::Truncated, "Heuristics.Truncated.Nsis");
const HEADER_LIMIT: Fault = Fault::passing(Class::Limit, "Heuristics.Limits.Exceeded.NsisHeader");

const HEADER_BYTES_MAX: usize = 8 << 20;
/// Flags, marks, the length of the header and of all.
const FIRST_BYTES: usize = 28;
const SIZE_BYTES: usize = 4;
/// The usual properties of LZMA: three bits of context.
const LZMA_USUAL: u8 = 0x5d;
/// Flag of packed data in a size.
const IS_PACKED: u32 = 1 << 31;

/// A reader of installers.
pub(crate) struct Nsis {
    limits: Limits,
    state: State,
    decoder: Option<Method>,
    work: usize,
}

enum State {
    First,
    /// The header is packed for itself, in so many bytes behind its size.
    Header(usize),
    Files(Files),
    Rest,
}

/// Files, one behind the other.
struct Files {
    /// Where the first one begins, and where all end, if that is known.
    start: u64,
    end: Option<u64>,
    names: Names,
}

impl Nsis {
    pub fn new(limits: &Limits) -> Nsis {
        Nsis { limits: limits.clone(), state: State::First, decoder: None, work: 0 }
    }

    fn first(&mut self, head: &[u8], faults: &mut Vec<Fault>) -> Record {
        const WANTED: usize = FIRST_BYTES + SIZE_BYTES + PROPERTIES_BYTES;
        if head.len() < WANTED {
            return Record::Need(WANTED);
        }
        let (header_bytes, all_bytes) = (le32(head, 20), le32(head, 24));
        let size = le32(head, FIRST_BYTES);
        if !head[4..].starts_with(MAGIC) || all_bytes < WANTED as u32 {
            faults.push(HEADER);
            self.state = State::Rest;
            return Record::Rest;
        }
        // The properties of LZMA look like a size, but no packed data follows them.
        let is_solid_lzma = matches!(head[FIRST_BYTES..], [LZMA_USUAL, 0, 0, _, 0, 0, ..]);
        let is_alone = if is_solid_lzma {
            false
        } else if size & IS_PACKED == 0 {
            size == header_bytes
        } else {
            size & !IS_PACKED < all_bytes
        };
        if is_alone {
            let length = (size & !IS_PACKED) as usize;
            self.state = State::Header(length);
            return Record::Need(length.saturating_add(FIRST_BYTES + SIZE_BYTES));
        }
        self.state = State::Rest;
        self.decoder = Some(Method::of(&head[FIRST_BYTES..], &self.limits));
        let object = Object { kind: Kind::Stream, media_type: Some(SOLID.into()), ..Object::default() };
        let packed = u64::from(all_bytes).saturating_sub(FIRST_BYTES as u64);
        let content = Content::Packed { packed: Some(packed), size: None };
        Record::Member(FIRST_BYTES, Member { object, content, check: Check::None })
    }

    fn header(&mut self, length: usize, head: &[u8], at: u64, faults: &mut Vec<Fault>) -> Record {
        let start = FIRST_BYTES + SIZE_BYTES;
        let end = start.saturating_add(length);
        let Some(packed) = head.get(start..end) else {
            return Record::Need(end);
        };
        let (header_bytes, all_bytes) = (le32(head, 20) as usize, le32(head, 24));
        let header = match le32(head, FIRST_BYTES) & IS_PACKED {
            0 => packed.to_vec(),
            _ => unpack(packed, header_bytes.min(HEADER_BYTES_MAX), &self.limits),
        };
        self.work = self.work.saturating_add(header.len()).saturating_add(length);
        if header.len() < header_bytes {
            faults.push(if header_bytes > HEADER_BYTES_MAX { HEADER_LIMIT } else { HEADER });
        }
        let names = Names::read(&header, &self.limits);
        let start = at.saturating_add(end as u64);
        self.state = State::Files(Files { start, end: Some(at.saturating_add(all_bytes.into())), names });
        Record::pass(end, 0)
    }

    fn file(&mut self, head: &[u8], at: u64) -> Record {
        const WANTED: usize = SIZE_BYTES + PROPERTIES_BYTES;
        let State::Files(files) = &mut self.state else { return Record::Rest };
        let left = files.left(at);
        // The last four bytes are a checksum.
        if left <= SIZE_BYTES as u64 {
            self.state = State::Rest;
            return Record::pass_bytes(left);
        }
        let wanted = WANTED.min(usize::try_from(left).unwrap_or(WANTED));
        if head.len() < SIZE_BYTES {
            return Record::Need(SIZE_BYTES);
        }
        let size = le32(head, 0);
        if size & IS_PACKED == 0 {
            return files.member(at, Content::Raw(size.into()));
        }
        if head.len() < wanted {
            return Record::Need(wanted);
        }
        self.decoder = Some(Method::of(&head[SIZE_BYTES..], &self.limits));
        files.member(at, Content::Packed { packed: Some((size & !IS_PACKED).into()), size: None })
    }
}

impl Files {
    fn left(&self, at: u64) -> u64 {
        self.end.map_or(u64::MAX, |end| end.saturating_sub(at))
    }

    /// The file whose size stands at `at`.
    fn member(&mut self, at: u64, content: Content) -> Record {
        let size = match content {
            Content::Raw(size) => Some(size),
            Content::Packed { size, .. } => size,
        };
        let object = Object { name: self.names.take(at.saturating_sub(self.start)), size, ..Object::default() };
        Record::Member(SIZE_BYTES, Member { object, content, check: Check::None })
    }
}

impl Records for Nsis {
    const FAULTS: Faults = Faults {
        truncated: TRUNCATED,
        check: DATA,
        size: Fault::passing(Class::Malformed, "Heuristics.Malformed.Nsis.Size"),
    };

    fn record(&mut self, head: &[u8], at: u64, faults: &mut Vec<Fault>) -> Record {
        match self.state {
            State::First => self.first(head, faults),
            State::Header(length) => self.header(length, head, at, faults),
            State::Files(_) => self.file(head, at),
            State::Rest if head.is_empty() => Record::Need(1),
            State::Rest => Record::Rest,
        }
    }

    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        match &mut self.decoder {
            Some(decoder) => decoder.decode(input, output),
            None => Progress::fault(0, DATA),
        }
    }

    fn surplus(&self) -> &[u8] {
        self.decoder.as_ref().map_or(&[], Method::surplus)
    }

    fn take_work(&mut self) -> usize {
        std::mem::take(&mut self.work).saturating_add(self.decoder.as_mut().map_or(0, Method::take_work))
    }

    fn may_end(&self) -> bool {
        matches!(self.state, State::Rest)
    }
}

/// A reader of solid data: the header and the files, each after its size.
pub(crate) struct Solid {
    limits: Limits,
    files: Option<Files>,
    work: usize,
}

impl Solid {
    pub fn new(limits: &Limits) -> Solid {
        Solid { limits: limits.clone(), files: None, work: 0 }
    }
}

impl Records for Solid {
    const FAULTS: Faults = Nsis::FAULTS;

    fn record(&mut self, head: &[u8], at: u64, faults: &mut Vec<Fault>) -> Record {
        if head.len() < SIZE_BYTES {
            return Record::Need(SIZE_BYTES);
        }
        let size = le32(head, 0);
        if let Some(files) = &mut self.files {
            return files.member(at, Content::Raw(size.into()));
        }
        let wanted = SIZE_BYTES.saturating_add((size as usize).min(HEADER_BYTES_MAX));
        if head.len() < wanted {
            return Record::Need(wanted);
        }
        if size as usize > HEADER_BYTES_MAX {
            faults.push(HEADER_LIMIT);
        }
        let names = Names::read(&head[SIZE_BYTES..], &self.limits);
        self.work = self.work.saturating_add(wanted);
        let length = u64::from(size).saturating_add(SIZE_BYTES as u64);
        self.files = Some(Files { start: at.saturating_add(length), end: None, names });
        Record::pass_bytes(length)
    }

    fn decode(&mut self, _: &[u8], _: &mut [u8]) -> Progress {
        Progress::fault(0, DATA)
    }

    fn take_work(&mut self) -> usize {
        std::mem::take(&mut self.work)
    }
}

/// How files are packed; nothing but their first bytes says it.
enum Method {
    Deflate(Box<Deflate>),
    Bzip2(Box<Bzip2>),
    Lzma { properties: Collected<PROPERTIES_BYTES>, codec_bytes_max: usize, stream: Option<Box<LzmaStream>> },
}

impl Method {
    fn of(first: &[u8], limits: &Limits) -> Method {
        const BZIP2_BLOCK: u8 = b'1';
        let codec_bytes_max = limits.codec_bytes_max as usize;
        match first {
            // Dictionaries are whole multiples of 64 KiB.
            [LZMA_USUAL, 0, 0, ..] => Method::Lzma { properties: Collected::new(), codec_bytes_max, stream: None },
            // Where the block begins in its own order: below 900,000.
            [BZIP2_BLOCK, 0..0x0e, ..] => Method::Bzip2(Box::new(Bzip2::of_nsis(DATA, TRUNCATED, limits))),
            _ => Method::Deflate(Box::new(Deflate::new(DATA.name, TRUNCATED.name))),
        }
    }

    fn surplus(&self) -> &[u8] {
        match self {
            Method::Deflate(deflate) => deflate.surplus(),
            Method::Bzip2(bzip2) => bzip2.surplus(),
            Method::Lzma { stream: Some(stream), .. } => stream.surplus(),
            Method::Lzma { properties, .. } => properties.bytes(),
        }
    }

    fn take_work(&mut self) -> usize {
        match self {
            Method::Bzip2(bzip2) => bzip2.take_work(),
            _ => 0,
        }
    }

    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        match self {
            Method::Deflate(deflate) => deflate.decode(input, output),
            Method::Bzip2(bzip2) => bzip2.decode(input, output),
            Method::Lzma { stream: Some(stream), .. } => stream.decode(input, output),
            Method::Lzma { properties, codec_bytes_max, stream } => {
                let taken = properties.fill(input, PROPERTIES_BYTES);
                if let Some(properties) = properties.whole() {
                    let made = LzmaStream::new(*properties, None, *codec_bytes_max, DATA.name, TRUNCATED.name);
                    let Some(made) = made else { return Progress::fault(taken, DATA) };
                    *stream = Some(Box::new(made));
                }
                Progress::took(taken)
            }
        }
    }
}

/// Unpacks as much as makes sense and is wanted.
fn unpack(packed: &[u8], bytes_max: usize, limits: &Limits) -> Vec<u8> {
    let mut method = Method::of(packed, limits);
    let (mut content, mut taken, mut piece) = (Vec::new(), 0, [0; 4096]);
    while content.len() < bytes_max {
        let progress = method.decode(&packed[taken..], &mut piece);
        taken = taken.saturating_add(progress.taken);
        content.extend_from_slice(&piece[..progress.wrote]);
        let is_stuck = progress.taken == 0 && progress.wrote == 0;
        if is_stuck || matches!(progress.told, Told::Over | Told::Fault(_)) {
            break;
        }
    }
    content.truncate(bytes_max);
    content
}

/// Fuzz body: reads an installer, and solid data.
pub fn fuzz_nsis(data: &[u8]) {
    cuts::compare(data, |limits| Box::new(Archive::new(Nsis::new(limits), limits)));
    cuts::compare(data, |limits| Box::new(Archive::new(Solid::new(limits), limits)));
}
