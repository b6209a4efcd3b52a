//! Packed executables: the file that their stub would make in memory.
//!
//! A packed executable begins with a stub, outside of its first section, that unpacks the rest. The file is kept, and
//! unpacked at its end in the way of its stub; the unpacked file is emitted as a member, whose content is read, and
//! which may be packed again. Nothing is run on the machine.
//!
//! Bounds: `spool_bytes_max` of the file, as much for the unpacked file, and as much again for LZMA's window or while
//! the file is assembled.

mod aplib;
mod calls;
mod elf;
mod emulator;
mod image;
mod mew;
mod nrv;
mod pe;
mod pespin;
mod program;
mod source;
mod upx;
mod wwpack;
mod yc;

use stream::{Class, Kind, Limits, Object, ReadAt};

use crate::frame::cuts;
use crate::frame::format::{Format, Reads};
use crate::frame::reader::{CONTENT_BYTES, Ended, Outbox, Reader, Reading};
use crate::program::autoit;
use crate::program::executable::head::Head;
use source::Whole;

/// Row of executables packed by UPX.
pub(crate) const UPX: Format = Format {
    name: "UPX",
    methods: "Windows (32 and 64 bits) and ELF (32 and 64 bits, both byte orders): NRV2B, NRV2D, NRV2E, LZMA; the filters 0x26 and 0x49; headers without their marks",
    not_read: "other filters, which are left as they are; tables of imports and relocations, and resources that UPX left unpacked, are not put back; other systems",
    reads: Reads::Spool("kept, up to `spool_bytes_max`"),
    memory: "what it is unpacked to, up to `spool_bytes_max`, twice",
    decoder: "own",
    fuzz: "unpack_packed",
    compared_with: "the files that upx was given",
};

/// Row of executables packed by other known packers.
pub(crate) const OTHERS: Format = Format {
    name: "MEW, WWPack32, yoda's Crypter, PESpin",
    methods: "MEW 11 with aPLib, WWPack32 1.x, yoda's Crypter 1.3, PESpin 1.1",
    not_read: "PESpin with a password; tables of imports, and what the stubs of crypters took of the code, are not put back",
    reads: Reads::Spool("kept, up to `spool_bytes_max`"),
    memory: "what it is unpacked to, up to `spool_bytes_max`, twice",
    decoder: "own",
    fuzz: "unpack_packed",
    compared_with: "the scan inputs of ClamAV",
};

/// Row of executables packed by anything else.
pub(crate) const EMULATED: Format = Format {
    name: "other packed PE",
    methods: "Windows executables of 32 bits whose stub runs in an emulated processor: ASPack, FSG, MEW with LZMA, NsPack, PEtite, Upack and what behaves like them",
    not_read: "stubs that want floating point, vectors, threads or functions of the system besides memory and imports; 64 bits; tables of imports are not put back",
    reads: Reads::Spool("kept, up to `spool_bytes_max`"),
    memory: "the image and its heap, up to `spool_bytes_max`, and the image once more",
    decoder: "own",
    fuzz: "unpack_packed",
    compared_with: "the executables that were packed, over public collections of packed files",
};

const DATA: &str = "Heuristics.Malformed.Packed.Data";
const LIMIT: &str = "Heuristics.Limits.Exceeded.Packed";

/// Bytes that say whether a file may be packed.
const HEAD_BYTES: usize = 4096;
/// Bytes unpacked in one turn.
const TURN_BYTES: usize = 64 << 10;

/// Unpacker of a packed file, turn by turn.
trait Unpacker: Send {
    fn turn(&mut self, file: &Whole, unpacked: &mut Unpacked) -> Turn;

    /// Whether nothing else is to be tried behind it.
    fn is_last(&self) -> bool {
        false
    }
}

/// Result of a turn.
enum Turn {
    More,
    Done,
    /// The data is invalid; the unpacked part is emitted.
    Broken,
    /// It would become too large; the same.
    TooLarge,
    /// It was not packed this way after all.
    Not,
}

/// Unpacked bytes so far, of bounded length.
struct Unpacked {
    bytes: Vec<u8>,
    bytes_max: usize,
    /// Work done besides appending to them.
    work: usize,
}

/// A reader of packed executables.
pub(crate) struct Packed {
    bytes_max: usize,
    at: u64,
    head: Vec<u8>,
    is_over: bool,
    scripts: Scripts,
    state: State,
}

/// A search for a compiled script, which is told from behind its mark on: with it, it would be found in itself again.
#[derive(Default)]
struct Scripts {
    is_over: bool,
    /// The last bytes, in which the mark may have begun.
    tail: Vec<u8>,
    is_found: bool,
}

impl Scripts {
    /// Looks through bytes that end at `end` in the file.
    fn pass(&mut self, bytes: &[u8], end: u64, outbox: &mut Outbox) {
        if self.is_found {
            return outbox.content(bytes);
        }
        if self.is_over {
            self.tail = Vec::new();
            return;
        }
        self.tail.extend_from_slice(bytes);
        let Some(at) = autoit::find(&self.tail) else {
            self.tail.drain(..self.tail.len().saturating_sub(autoit::MARK_BYTES - 1));
            return;
        };
        let script = self.tail.split_off(at);
        let raw_offset = Some(end.saturating_sub(script.len() as u64));
        let media_type = Some(autoit::SCRIPT.into());
        outbox.open(Object { kind: Kind::Member, media_type, raw_offset, ..Object::default() });
        outbox.content(&script);
        (self.tail, self.is_found) = (Vec::new(), true);
    }
}

enum State {
    Begin,
    Unpacking(Box<dyn Unpacker>, Unpacked),
    Telling(Vec<u8>, usize),
    Over,
}

impl Packed {
    pub fn new(limits: &Limits) -> Packed {
        let bytes_max = limits.spool_bytes_max as usize;
        Packed {
            bytes_max,
            at: 0,
            head: Vec::with_capacity(HEAD_BYTES),
            is_over: false,
            scripts: Scripts::default(),
            state: State::Begin,
        }
    }

    fn begin(&mut self, kept: &dyn ReadAt, outbox: &mut Outbox) -> State {
        let file = Whole { head: &self.head, kept };
        let unpacker = pe::unpacker(&file, self.bytes_max).or_else(|| elf::unpacker(&file));
        outbox.worked(HEAD_BYTES);
        unpacker.map_or(State::Over, |unpacker| self.unpacking(unpacker))
    }

    /// Runs the stub of a file that no unpacker knows.
    fn emulate(&self, kept: &dyn ReadAt) -> State {
        let emulator = pe::emulated(&Whole { head: &self.head, kept }, self.bytes_max);
        emulator.map_or(State::Over, |emulator| self.unpacking(emulator))
    }

    fn unpacking(&self, unpacker: Box<dyn Unpacker>) -> State {
        State::Unpacking(unpacker, Unpacked { bytes: Vec::new(), bytes_max: self.bytes_max, work: 0 })
    }

    fn unpack(
        &self,
        mut unpacker: Box<dyn Unpacker>,
        mut unpacked: Unpacked,
        kept: &dyn ReadAt,
        outbox: &mut Outbox,
    ) -> State {
        let before = unpacked.bytes.len();
        let turn = unpacker.turn(&Whole { head: &self.head, kept }, &mut unpacked);
        let work = std::mem::take(&mut unpacked.work) + unpacked.bytes.len().abs_diff(before);
        outbox.worked(work.max(1024));
        match turn {
            Turn::More => return State::Unpacking(unpacker, unpacked),
            Turn::Not if unpacker.is_last() => return State::Over,
            Turn::Not => return self.emulate(kept),
            Turn::Done => {}
            Turn::Broken => outbox.finding(Class::Malformed, DATA, self.at),
            Turn::TooLarge => outbox.finding(Class::Limit, LIMIT, self.at),
        }
        if unpacked.bytes.is_empty() {
            return State::Over;
        }
        let size = Some(unpacked.bytes.len() as u64);
        outbox.open(Object { kind: Kind::Member, size, ..Object::default() });
        State::Telling(unpacked.bytes, 0)
    }
}

/// Returns how much of a file has to be kept, if its head looks packed: the stub is in the last section, or the first
/// section takes nothing of the file. A file that is too large to be kept is ignored without a mark of UPX.
fn wanted(head: &[u8], bytes_max: usize) -> Option<u64> {
    if elf::is_candidate(head) {
        return Some(u64::MAX);
    }
    let emulated = emulator::is_candidate(head);
    let has_mark = memchr::memmem::find(head, upx::MARK).is_some();
    let head = Head::read(head)?;
    let (first, last) = (head.sections.first()?, head.sections.last()?);
    let is_away = head.entry.wrapping_sub(first.address) >= first.memory_bytes;
    let is_odd = first.file.is_empty() || head.entry >= last.address;
    let end = head.image_end()?;
    let is_stub = is_away && is_odd || emulated;
    (is_stub && (has_mark || end <= bytes_max as u64)).then_some(end)
}

impl Reader for Packed {
    fn read(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
        let taken = match HEAD_BYTES - self.head.len() {
            0 => input.len(),
            left => input.len().min(left),
        };
        self.at += taken as u64;
        self.scripts.pass(&input[..taken], self.at, outbox);
        if self.head.len() < HEAD_BYTES {
            self.head.extend_from_slice(&input[..taken]);
            if self.head.len() == HEAD_BYTES {
                match wanted(&self.head, self.bytes_max) {
                    Some(end) if end > self.at => outbox.keep(self.at..end),
                    Some(_) => {}
                    None => self.is_over = true,
                }
                // A file of its own begins with the script; behind an interpreter it may stand anywhere.
                self.scripts.is_over = !self.scripts.is_found && !self.head.starts_with(b"MZ");
            }
        }
        taken
    }

    fn is_over(&self) -> bool {
        self.is_over && self.scripts.is_over
    }

    fn end(&mut self, kept: &dyn ReadAt, outbox: &mut Outbox) -> Ended {
        if std::mem::take(&mut self.scripts.is_found) {
            outbox.close();
            return Ended::More;
        }
        self.state = match std::mem::replace(&mut self.state, State::Over) {
            State::Begin if self.is_over => State::Over,
            State::Begin => self.begin(kept, outbox),
            State::Unpacking(unpacker, unpacked) => self.unpack(unpacker, unpacked, kept, outbox),
            State::Telling(bytes, told) => {
                let end = bytes.len().min(told + CONTENT_BYTES);
                outbox.content(&bytes[told..end]);
                if end == bytes.len() { State::Over } else { State::Telling(bytes, end) }
            }
            State::Over => return Ended::Done,
        };
        Ended::More
    }
}

/// Fuzz body: reads a packed executable.
pub fn fuzz_packed(data: &[u8]) {
    cuts::compare(data, |limits| {
        let limits = Limits { spool_bytes_max: 1 << 20, ..limits.clone() };
        Box::new(Reading::new(Packed::new(&limits)))
    });
}
