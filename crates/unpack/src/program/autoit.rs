//! Scripts compiled by AutoIt (`EA05`, `EA06`), and the files that stand behind them.
//!
//! Behind the mark, which stands behind an interpreter, among its resources or in a file of its own, each file stands behind
//! what it is, its path and its sizes, encrypted by a generator of random numbers whose seeds everybody knows. Most are
//! compressed: literals, and matches within 32 KiB. The script of newer versions is a run of tokens, which is emitted as text.
//!
//! Bounds: names of [`NAME_MAX`] characters, a window of 32 KiB, one token of a script.
//!
//! Left out: names of built-in functions that tokens tell by number; the compressions `JB00` and `JB01` of versions before
//! 3.1, whose files are emitted as they are packed; the checksums. Source: the behaviour of the tool autoit-ripper.

mod cipher;
mod lz;
mod tokens;

use memchr::memmem;
use stream::{Class, Kind, Object, ReadAt};

use crate::frame::codec::le32;
use crate::frame::cuts;
use crate::frame::format::{Format, Reads};
use crate::frame::name;
use crate::frame::reader::{CONTENT_BYTES, Ended, Outbox, Reader, Reading};
use cipher::Cipher;
use lz::Lz;
use tokens::Tokens;

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "AutoIt",
    methods: "compiled scripts EA05 and EA06 and the files after them, stored and compressed; tokens as text",
    not_read: "compressions of versions before 3.1; names of functions stored as numbers",
    reads: Reads::Stream,
    memory: "a window of 32 KiB, names of 1 KiB",
    decoder: "own",
    fuzz: "unpack_autoit",
    compared_with: "autoit-ripper, over files made by its description",
};

/// The type that the part of a file behind the mark is told with.
pub(crate) const SCRIPT: &str = "application/x-autoit";

const DATA: &str = "Heuristics.Malformed.AutoIt.Data";
const MARK: &[u8; 16] = b"\xa3\x48\x4b\xbe\x98\x6c\x4a\xa9\x99\x4c\x53\x0a\x86\xd6\x48\x7d";
/// The mark with what always follows it: interpreters have the mark alone among their constants.
const WHOLE_MARK: &[u8; 23] = b"\xa3\x48\x4b\xbe\x98\x6c\x4a\xa9\x99\x4c\x53\x0a\x86\xd6\x48\x7dAU3!EA0";
/// Bytes after the mark: its second half, the version, and a digest.
const HEAD_BYTES: usize = 24;
const NAME_MAX: u32 = 1024;
/// Differences between versions: numbers that fields are mixed with, and seeds.
struct Version {
    mark: &'static [u8; 4],
    is_wide: bool,
    begin_seed: u32,
    kind: (u32, u32),
    path: (u32, u32),
    size: u32,
    content_seed: u32,
    /// Whether the digest's sum is added to it.
    seed_has_sum: bool,
}

static VERSIONS: [Version; 2] = [
    Version {
        mark: b"EA05",
        is_wide: false,
        begin_seed: 0x16fa,
        kind: (0x29bc, 0xa25e),
        path: (0x29ac, 0xf25e),
        size: 0x45aa,
        content_seed: 0x22af,
        seed_has_sum: true,
    },
    Version {
        mark: b"EA06",
        is_wide: true,
        begin_seed: 0x18ee,
        kind: (0xadbc, 0xb33f),
        path: (0xf820, 0xf479),
        size: 0x87bc,
        content_seed: 0x2477,
        seed_has_sum: false,
    },
];

/// Where a script begins in these bytes, behind the first half of its mark, if all of the mark is there.
pub(crate) fn find(bytes: &[u8]) -> Option<usize> {
    memmem::find(bytes, WHOLE_MARK).map(|at| at + MARK.len())
}

/// The length of the mark.
pub(crate) const MARK_BYTES: usize = WHOLE_MARK.len();

/// A reader of the script after the mark, or from the mark on.
pub(crate) struct AutoIt {
    at: u64,
    held: Vec<u8>,
    state: State,
}

enum State {
    Head,
    File(&'static Version, u32),
    Content(Box<Content>),
    Over,
}

/// The content of a file on its way.
struct Content {
    version: &'static Version,
    sum: u32,
    left: u32,
    cipher: Cipher,
    packing: Packing,
    script: Option<Tokens>,
}

enum Packing {
    None,
    /// The compression's own head, as far as it has come.
    Head(Vec<u8>),
    Packed(Lz),
}

impl AutoIt {
    pub fn new() -> AutoIt {
        AutoIt { at: 0, held: Vec::new(), state: State::Head }
    }

    /// Reads the head of the next file from what is held; nothing if more is needed.
    fn file(&mut self, version: &'static Version, sum: u32, outbox: &mut Outbox) -> Option<State> {
        const BEGIN: &[u8] = b"FILE";
        const SCRIPT_KIND: &str = ">>>AUTOIT SCRIPT<<<";
        let mut fields = Fields { bytes: &self.held, version };
        let begin = fields.take(BEGIN.len(), version.begin_seed)?;
        if begin != BEGIN {
            return Some(State::Over);
        }
        let Some(kind) = fields.text(version.kind)? else { return Some(State::Over) };
        let Some(path) = fields.text(version.path)? else { return Some(State::Over) };
        let fixed = fields.bytes.get(..FIXED_BYTES)?;
        let is_packed = fixed[0] == 1;
        let (packed, size) = (le32(fixed, 1) ^ version.size, le32(fixed, 5) ^ version.size);
        let taken = self.held.len() - fields.bytes.len() + FIXED_BYTES;
        self.held.drain(..taken);
        let name = path.rsplit(['\\', '/']).next().unwrap_or_default();
        let name = if kind.starts_with('>') || name.is_empty() { "script.au3" } else { name }.into();
        let size = Some(u64::from(size)).filter(|_| kind != SCRIPT_KIND);
        outbox.open(Object { kind: Kind::Member, name: Some(name), size, ..Object::default() });
        if packed == 0 {
            outbox.close();
            return Some(State::File(version, sum));
        }
        let seed = version.content_seed.wrapping_add(if version.seed_has_sum { sum } else { 0 });
        Some(State::Content(Box::new(Content {
            version,
            sum,
            left: packed,
            cipher: Cipher::new(version, seed),
            packing: if is_packed { Packing::Head(Vec::new()) } else { Packing::None },
            script: (kind == SCRIPT_KIND).then(Tokens::default),
        })))
    }

    fn head(&self) -> Option<State> {
        let behind = self.held.strip_prefix(MARK).unwrap_or(&self.held);
        let head = behind.get(..HEAD_BYTES)?;
        let version = VERSIONS.iter().find(|version| head[4..8] == *version.mark);
        let sum = head[8..].iter().map(|byte| u32::from(*byte)).sum();
        Some(version.map_or(State::Over, |version| State::File(version, sum)))
    }
}

impl Reader for AutoIt {
    fn read(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
        const FILE_BYTES_MAX: usize = 64 + 4 * NAME_MAX as usize;
        match &mut self.state {
            State::Over => return input.len(),
            State::Content(content) => {
                let (taken, is_sound) = content.read(input, outbox);
                self.at += taken as u64;
                if !is_sound {
                    outbox.finding(Class::Malformed, DATA, self.at);
                    outbox.close();
                    self.state = State::Over;
                } else if content.left == 0 {
                    let next = State::File(content.version, content.sum);
                    outbox.close();
                    self.state = next;
                }
                return taken;
            }
            State::Head | State::File(..) => {}
        }
        // Byte by byte: what is behind the head is content, and is not held.
        let Some((&byte, _)) = input.split_first() else { return 0 };
        self.held.push(byte);
        self.at += 1;
        let next = match self.state {
            State::Head => self.head(),
            State::File(version, _) if self.held.len() < needed(&self.held, version) => None,
            State::File(version, sum) => self.file(version, sum, outbox),
            _ => None,
        };
        match next {
            None if self.held.len() > FILE_BYTES_MAX => self.state = State::Over,
            Some(next @ State::File(..)) => {
                self.held.clear();
                self.state = next;
            }
            Some(next) => self.state = next,
            None => {}
        }
        1
    }

    fn end(&mut self, _: &dyn ReadAt, _: &mut Outbox) -> Ended {
        Ended::Done
    }
}

/// Bytes after the texts in the head of a file: packing, sizes, a checksum, times.
const FIXED_BYTES: usize = 1 + 12 + 16;

/// How many bytes the head of a file has, as far as these tell; none more if they make no sense.
fn needed(held: &[u8], version: &Version) -> usize {
    const LENGTH_BYTES: usize = 4;
    let mut end = 2 * LENGTH_BYTES;
    for (mix, _) in [version.kind, version.path] {
        if held.len() < end {
            return end;
        }
        let length = le32(held, end - LENGTH_BYTES) ^ mix;
        if length > NAME_MAX {
            return held.len();
        }
        end += length as usize * if version.is_wide { 2 } else { 1 } + LENGTH_BYTES;
    }
    end - LENGTH_BYTES + FIXED_BYTES
}

/// Encrypted fields, one behind the other.
struct Fields<'a> {
    bytes: &'a [u8],
    version: &'static Version,
}

impl Fields<'_> {
    fn take(&mut self, count: usize, seed: u32) -> Option<Vec<u8>> {
        let (field, rest) = self.bytes.split_at_checked(count)?;
        self.bytes = rest;
        let mut cipher = Cipher::new(self.version, seed);
        Some(field.iter().map(|byte| byte ^ cipher.next()).collect())
    }

    /// A text behind its length; nothing within if it is too long.
    fn text(&mut self, (length_mix, seed): (u32, u32)) -> Option<Option<String>> {
        let length = u32::from_le_bytes(*self.bytes.first_chunk()?) ^ length_mix;
        if length > NAME_MAX {
            return Some(None);
        }
        self.bytes = &self.bytes[4..];
        let count = length as usize * if self.version.is_wide { 2 } else { 1 };
        let text = self.take(count, seed.wrapping_add(length))?;
        Some(Some(if self.version.is_wide {
            let units: Vec<u16> = text.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
            String::from_utf16_lossy(&units)
        } else {
            name::utf8_or_latin1(&text).into()
        }))
    }
}

impl Content {
    /// Takes some bytes of the file; how many, and whether they made sense.
    fn read(&mut self, input: &[u8], outbox: &mut Outbox) -> (usize, bool) {
        let mut taken = 0;
        while taken < input.len() && self.left > 0 && outbox.content_bytes() < CONTENT_BYTES {
            let byte = input[taken] ^ self.cipher.next();
            taken += 1;
            self.left -= 1;
            if !self.byte(byte, outbox) {
                return (taken, false);
            }
        }
        (taken, true)
    }

    fn byte(&mut self, byte: u8, outbox: &mut Outbox) -> bool {
        const PACKING_BYTES: usize = 8;
        match &mut self.packing {
            Packing::None => emit(&[byte], &mut self.script, outbox),
            Packing::Head(head) => {
                head.push(byte);
                if head.len() < PACKING_BYTES {
                    return true;
                }
                let size = head[4..].iter().fold(0, |size, byte| size << 8 | u32::from(*byte));
                match VERSIONS.iter().position(|version| head.starts_with(version.mark)) {
                    Some(index) => self.packing = Packing::Packed(Lz::new(index as u32, size)),
                    None => {
                        let head = std::mem::take(head);
                        self.packing = Packing::None;
                        return emit(&head, &mut self.script, outbox);
                    }
                }
                true
            }
            Packing::Packed(lz) if lz.left == 0 => true,
            Packing::Packed(lz) => {
                lz.bits = lz.bits << 8 | u128::from(byte);
                lz.count += 8;
                lz.symbols(&mut self.script, outbox)
            }
        }
    }
}

fn emit(bytes: &[u8], script: &mut Option<Tokens>, outbox: &mut Outbox) -> bool {
    match script {
        Some(tokens) => bytes.iter().all(|byte| tokens.byte(*byte, outbox)),
        None => {
            outbox.content(bytes);
            true
        }
    }
}

/// Fuzz body: reads what begins with the mark.
pub fn fuzz_autoit(data: &[u8]) {
    cuts::compare(data, |_| Box::new(Reading::new(AutoIt::new())));
}
