//! The files of a setup behind its executable, as InstallShield from version 10 on keeps them: behind a header each, mixed
//! with a key that is made of their names, and compressed as a stream of zlib or not.
//!
//! Bounds: names of [`NAME_MAX`] bytes, one state of zlib-rs.

use stream::Object;

use super::{DATA, TRUNCATED};
use crate::codec::deflate::Deflate;
use crate::frame::archive::{Check, Content, Member, Record};
use crate::frame::codec::{Decoder, Progress, Told, le16, le32};
use crate::frame::name;
use crate::stream::zlib;

const FIXED: &[u8] = b"InstallShield\0";
const STREAM: &[u8] = b"ISSetupStream\0";
/// The header of all.
pub(super) const HEADER_BYTES: usize = 46;
const COUNT_AT: usize = 14;
const NAME_MAX: usize = 1024;
/// Bytes that a mixed run begins anew behind, where the flags say so.
const RUN_BYTES: usize = 1024;

/// A reader of such files.
pub(super) struct Setup {
    is_stream: bool,
    files_left: u16,
    key: Key,
    state: State,
    deflate: Deflate,
}

/// Key that undoes the mixing.
#[derive(Default)]
struct Key {
    bytes: Vec<u8>,
    in_runs: bool,
    at: usize,
}

#[derive(PartialEq)]
enum State {
    /// In front of a file, whose first bytes tell whether it is compressed.
    Begin,
    /// After the first byte.
    First(u8),
    Stored,
    Compressed,
    /// After the compressed content.
    Over,
}

/// Whether such files begin here; nothing if more bytes are needed to say.
pub(super) fn begins(head: &[u8]) -> Option<bool> {
    let is_one = |mark: &[u8]| head.starts_with(mark);
    let may_be = |mark: &[u8]| mark.starts_with(head);
    if is_one(FIXED) || is_one(STREAM) {
        Some(true)
    } else if may_be(FIXED) || may_be(STREAM) {
        None
    } else {
        Some(false)
    }
}

impl Setup {
    /// Reads the header; nothing if more bytes are needed.
    pub fn read(head: &[u8]) -> Option<Setup> {
        if head.len() < HEADER_BYTES {
            return None;
        }
        Some(Setup {
            is_stream: head.starts_with(STREAM),
            files_left: le16(head, COUNT_AT),
            key: Key::default(),
            state: State::Begin,
            deflate: Deflate::new(DATA.name, TRUNCATED.name),
        })
    }

    /// Where a file's name stands and where its header ends, its flags and its size; or how many bytes are needed to say, if
    /// there is a header.
    fn header(&self, head: &[u8]) -> Result<(std::ops::Range<usize>, usize, u32, u32), Option<usize>> {
        const FIXED_NAME: usize = 260;
        const FIXED_BYTES: usize = FIXED_NAME + 52;
        const STREAM_BYTES: usize = 24;
        if !self.is_stream {
            if head.len() < FIXED_BYTES {
                return Err(Some(FIXED_BYTES));
            }
            let end = memchr::memchr(0, &head[..FIXED_NAME]).unwrap_or(FIXED_NAME);
            return Ok((0..end, FIXED_BYTES, le32(head, FIXED_NAME), le32(head, FIXED_NAME + 8)));
        }
        if head.len() < STREAM_BYTES {
            return Err(Some(STREAM_BYTES));
        }
        let end = STREAM_BYTES.saturating_add(le32(head, 0) as usize);
        if end > STREAM_BYTES + NAME_MAX {
            return Err(None);
        }
        if head.len() < end {
            return Err(Some(end));
        }
        Ok((STREAM_BYTES..end, end, le32(head, 4), le32(head, 10)))
    }

    pub fn record(&mut self, head: &[u8], name_bytes_max: usize) -> Record {
        const IS_MIXED: u32 = 2 | 4;
        const IN_RUNS: u32 = 4;
        if head.is_empty() {
            return Record::Need(1);
        }
        if self.files_left == 0 {
            return Record::Rest;
        }
        let (name_at, end, flags, size) = match self.header(head) {
            Ok(header) => header,
            Err(needed) => return needed.map_or(Record::Rest, Record::Need),
        };
        let name = &head[name_at];
        let name = if self.is_stream {
            let units: Vec<u16> = name.chunks_exact(2).map(|pair| le16(pair, 0)).collect();
            String::from_utf16_lossy(&units).into()
        } else {
            name::utf8_or_latin1(name)
        };
        if name.is_empty() {
            return Record::Rest;
        }
        self.files_left = self.files_left.saturating_sub(1);
        let is_mixed = flags & IS_MIXED != 0;
        self.key = if is_mixed { Key::new(name.as_bytes(), flags & IN_RUNS != 0) } else { Key::default() };
        self.state = State::Begin;
        let name = name.chars().scan(0, |bytes, character| {
            *bytes = usize::saturating_add(*bytes, character.len_utf8());
            (*bytes <= name_bytes_max).then_some(character)
        });
        let object = Object { name: Some(name.collect()), ..Object::default() };
        let content = Content::Packed { packed: Some(size.into()), size: None };
        Record::Member(end, Member { object, content, check: Check::None })
    }

    pub fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        const PIECE_BYTES: usize = 512;
        let mut piece = [0; PIECE_BYTES];
        if output.is_empty() {
            return Progress::took(0);
        }
        let count = input.len().min(PIECE_BYTES).min(output.len());
        let piece = &mut piece[..count];
        piece.copy_from_slice(&input[..count]);
        self.key.undo(piece);
        match (&self.state, piece.first()) {
            (State::Begin, Some(first)) => {
                self.state = State::First(*first);
                self.key.at = self.key.at.wrapping_add(1);
                return Progress::took(1);
            }
            (State::First(first), Some(second)) if zlib::is_header([*first, *second]) => {
                self.state = State::Compressed;
                self.deflate.reset();
                self.key.at = self.key.at.wrapping_add(1);
                return Progress::took(1);
            }
            (State::First(first), _) => {
                output[0] = *first;
                self.state = State::Stored;
                return Progress { taken: 0, wrote: 1, told: Told::Nothing };
            }
            _ => {}
        }
        match self.state {
            State::Compressed => {
                let progress = self.deflate.decode(piece, output);
                self.key.at = self.key.at.wrapping_add(progress.taken);
                if progress.told == Told::Over {
                    self.state = State::Over;
                    return Progress { told: Told::Nothing, ..progress };
                }
                progress
            }
            _ if input.is_empty() => Progress::tells(0, Told::Over),
            State::Over => Progress::took(input.len()),
            _ => {
                output[..count].copy_from_slice(piece);
                self.key.at = self.key.at.wrapping_add(count);
                Progress { taken: count, wrote: count, told: Told::Nothing }
            }
        }
    }
}

impl Key {
    fn new(name: &[u8], in_runs: bool) -> Key {
        const MIX: [u8; 4] = [0x13, 0x35, 0x86, 0x07];
        let bytes = name.iter().zip(MIX.iter().cycle()).map(|(byte, mix)| byte ^ mix).collect();
        Key { bytes, in_runs, at: 0 }
    }

    /// Undoes the mixing of bytes that stand where the key is.
    fn undo(&self, bytes: &mut [u8]) {
        if self.bytes.is_empty() {
            return;
        }
        for (index, byte) in bytes.iter_mut().enumerate() {
            let at = self.at.wrapping_add(index);
            let at = if self.in_runs { at % RUN_BYTES } else { at };
            *byte = !(self.bytes[at.checked_rem(self.bytes.len()).unwrap_or_default()] ^ byte.rotate_left(4));
        }
    }
}
