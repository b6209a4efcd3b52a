//! Disk images of macOS (UDIF): compressed chunks, tables of them in Base64 in XML, and at the very end the place of
//! the XML.
//!
//! The content of the chunks is emitted in the order of the disk as one member, without the runs of zeros between them;
//! then the files of its HFS+ volumes. In other file systems (APFS) the search for archives finds content with a
//! recognised beginning. The type of an image follows from its name (`.dmg`) and its first bytes, since chunks have no
//! head.
//!
//! Source: the structures as in libdmg and dmg2img's documentation of the format. Bounds: the image, up to
//! `spool_bytes_max`; tables of [`TABLES_BYTES_MAX`] and [`CHUNKS_MAX`] chunks; one decoder.

mod disk;
mod tables;
mod whole;

use stream::{Class, FileType, Kind, Limits, Object, ReadAt};

use crate::codec::adc;
use crate::codec::lzfse;
use crate::disk::hfs::Volume;
use crate::frame::codec::{Decoder, Fault, Told, be32, be64};
use crate::frame::cuts;
use crate::frame::format::{Format, Reads};
use crate::frame::reader::{Ended, Outbox, Reader, Reading};
use crate::stream::bzip2::Bzip2;
use crate::stream::xz::Xz;
use crate::stream::zlib::Zlib;
use disk::Chunks;
use tables::{Chunk, Packing};
use whole::Whole;

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "DMG (UDIF)",
    methods: "zlib, bzip2, LZMA, LZFSE, ADC and stored chunks, as one disk without its zeros, and the files of HFS+ in it; by the name of a file (`.dmg`)",
    not_read: "APFS",
    reads: Reads::Spool("the image, up to `spool_bytes_max`"),
    memory: "tables of 8 MiB, 40 bytes for each of 65,536 chunks, one decoder, a chunk of 4 MiB, packed too; what HFS+ takes",
    decoder: "own; chunks as their streams",
    fuzz: "unpack_dmg",
    compared_with: "7z and dmg2img, over images made for it",
};

const TABLES: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.Dmg.Tables");
const DATA: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.Dmg.Data");
const METHOD: Fault = Fault::passing(Class::Limit, "Heuristics.Limits.Exceeded.DmgMethod");
const CHUNKS: Fault = Fault::passing(Class::Limit, "Heuristics.Limits.Exceeded.DmgChunks");
const TRUNCATED: Fault = Fault::passing(Class::Truncated, "Heuristics.Truncated.Dmg");

const TABLES_BYTES_MAX: u64 = 8 << 20;
const CHUNKS_MAX: usize = 1 << 16;
const TRAILER_BYTES: u64 = 512;
/// Bytes read and emitted at once.
const PIECE_BYTES: usize = 4096;

/// Whether a file of this type and with this name may be an image that has to be opened.
pub(crate) fn may_be(name: &str, file_type: FileType) -> bool {
    const EXTENSION: &str = ".dmg";
    let end = name.len().checked_sub(EXTENSION.len()).and_then(|at| name.get(at..));
    let is_chunk = matches!(file_type, FileType::Zlib | FileType::Bzip2 | FileType::Xz | FileType::Binary);
    is_chunk && end.is_some_and(|end| end.eq_ignore_ascii_case(EXTENSION))
}

/// A reader of images.
pub(crate) struct Dmg {
    limits: Limits,
    asked: bool,
    bytes: u64,
    state: State,
}

enum State {
    Trailer,
    Chunks { chunks: Chunks, next: usize, open: Option<Open>, told: Vec<&'static str> },
    Volumes(Chunks, Option<Box<Volume>>),
    Over,
}

/// The chunk that is emitted.
struct Open {
    at: u64,
    left: u64,
    decoder: Option<Box<dyn Decoder>>,
    piece: Vec<u8>,
    used: usize,
}

impl Dmg {
    pub fn new(limits: &Limits) -> Dmg {
        Dmg { limits: limits.clone(), asked: false, bytes: 0, state: State::Trailer }
    }

    /// Finds the tables. Without a trailer it is no image.
    fn trailer(&mut self, kept: &dyn ReadAt, outbox: &mut Outbox) -> Option<State> {
        let at = self.bytes.checked_sub(TRAILER_BYTES)?;
        let trailer = read(kept, at, TRAILER_BYTES);
        if !trailer.starts_with(b"koly") || trailer.len() < TRAILER_BYTES as usize {
            return None;
        }
        let (data_at, xml_at, xml_bytes) = (be64(&trailer, 24), be64(&trailer, 216), be64(&trailer, 224));
        let xml = read(kept, xml_at, xml_bytes.min(TABLES_BYTES_MAX));
        outbox.worked(2 * xml.len());
        let mut tables = tables::read(&xml, data_at, CHUNKS_MAX + 1);
        let fault = match tables.chunks.len() {
            0 => Some(TABLES),
            count if count > CHUNKS_MAX || xml_bytes > TABLES_BYTES_MAX => Some(CHUNKS),
            _ => None,
        };
        if let Some(fault) = fault {
            outbox.finding(fault.class, fault.name, xml_at);
        }
        tables.chunks.truncate(CHUNKS_MAX);
        outbox.open(Object { kind: Kind::Member, ..Object::default() });
        let chunks = Chunks::new(tables, &self.limits);
        Some(State::Chunks { chunks, next: 0, open: None, told: Vec::new() })
    }

    fn begin(&self, chunk: &Chunk) -> Result<Open, Fault> {
        if chunk.packing == Packing::Unknown {
            return Err(METHOD);
        }
        let decoder = decoder(chunk.packing, &self.limits);
        Ok(Open { at: chunk.at, left: chunk.length, decoder, piece: Vec::new(), used: 0 })
    }

    /// Goes on with the volumes of the disk; the state behind that.
    fn volumes(
        &self,
        mut chunks: Chunks,
        volume: Option<Box<Volume>>,
        kept: &dyn ReadAt,
        outbox: &mut Outbox,
    ) -> State {
        let volume = match volume {
            Some(mut volume) => {
                let is_over = volume.turn(&mut chunks.on(kept), outbox);
                Some(volume).filter(|_| !is_over)
            }
            None => {
                let Some(start) = chunks.next_start() else { return State::Over };
                Volume::find(&mut chunks.on(kept), start, &self.limits).map(Box::new)
            }
        };
        outbox.worked(chunks.take_work());
        State::Volumes(chunks, volume)
    }
}

/// The decoder of a packed chunk.
fn decoder(packing: Packing, limits: &Limits) -> Option<Box<dyn Decoder>> {
    match packing {
        Packing::Stored | Packing::Unknown => None,
        Packing::Zlib => Some(Box::new(Zlib::new())),
        Packing::Bzip2 => Some(Box::new(Bzip2::new(limits))),
        Packing::Lzma => Some(Box::new(Xz::new(limits))),
        Packing::Adc => Some(Box::new(Whole::new(adc::unpack))),
        Packing::Lzfse => Some(Box::new(Whole::new(lzfse::unpack))),
    }
}

fn read(kept: &dyn ReadAt, at: u64, length: u64) -> Vec<u8> {
    let mut bytes = vec![0; length as usize];
    let mut there = 0;
    while there < bytes.len() {
        match kept.read_at(at.saturating_add(there as u64), &mut bytes[there..]) {
            0 => break,
            count => there += count,
        }
    }
    bytes.truncate(there);
    bytes
}

impl Open {
    /// Emits more of the chunk. Returns its result once it is complete.
    fn tell(&mut self, kept: &dyn ReadAt, outbox: &mut Outbox) -> Option<Result<(), Fault>> {
        if self.used == self.piece.len() && self.left > 0 {
            self.piece = read(kept, self.at, self.left.min(PIECE_BYTES as u64));
            self.used = 0;
            outbox.worked(self.piece.len());
            if self.piece.is_empty() {
                return Some(Err(TRUNCATED));
            }
            self.at += self.piece.len() as u64;
            self.left -= self.piece.len() as u64;
        }
        let input = &self.piece[self.used..];
        let Some(decoder) = &mut self.decoder else {
            outbox.content(input);
            self.used = self.piece.len();
            return (self.left == 0).then_some(Ok(()));
        };
        let mut output = [0; PIECE_BYTES];
        let progress = decoder.decode(input, &mut output);
        self.used += progress.taken;
        outbox.content(&output[..progress.wrote]);
        match progress.told {
            Told::Over => Some(Ok(())),
            Told::Fault(fault) if fault.fatal => Some(Err(if fault.class == Class::Limit { fault } else { DATA })),
            Told::Nothing if progress.taken == 0 && progress.wrote == 0 && input.is_empty() => {
                Some(decoder.missing().map_or(Ok(()), |_| Err(DATA)))
            }
            _ => None,
        }
    }
}

impl Reader for Dmg {
    fn read(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
        if !std::mem::replace(&mut self.asked, true) {
            outbox.keep(0..u64::MAX);
            return 0;
        }
        self.bytes += input.len() as u64;
        input.len()
    }

    fn end(&mut self, kept: &dyn ReadAt, outbox: &mut Outbox) -> Ended {
        outbox.worked(1);
        self.state = match std::mem::replace(&mut self.state, State::Over) {
            State::Trailer => self.trailer(kept, outbox).unwrap_or(State::Over),
            State::Chunks { chunks, next, open: None, mut told } => match chunks.get(next) {
                None => {
                    outbox.close();
                    State::Volumes(chunks, None)
                }
                Some(chunk) => {
                    let open = self.begin(chunk).map_err(|fault| tell_once(fault, chunk.at, &mut told, outbox));
                    State::Chunks { chunks, next: next + 1, open: open.ok(), told }
                }
            },
            State::Volumes(chunks, volume) => self.volumes(chunks, volume, kept, outbox),
            State::Chunks { chunks, next, open: Some(mut open), mut told } => match open.tell(kept, outbox) {
                None => State::Chunks { chunks, next, open: Some(open), told },
                Some(result) => {
                    if let Err(fault) = result {
                        tell_once(fault, open.at, &mut told, outbox);
                    }
                    State::Chunks { chunks, next, open: None, told }
                }
            },
            State::Over => return Ended::Done,
        };
        Ended::More
    }
}

/// Emits each fault of chunks once for the image.
fn tell_once(fault: Fault, at: u64, told: &mut Vec<&'static str>, outbox: &mut Outbox) {
    if !told.contains(&fault.name) {
        told.push(fault.name);
        outbox.finding(fault.class, fault.name, at);
    }
}

/// Fuzz body: reads an image.
pub fn fuzz_dmg(data: &[u8]) {
    cuts::compare(data, |limits| Box::new(Reading::new(Dmg::new(limits))));
}
