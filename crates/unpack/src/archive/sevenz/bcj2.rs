//! BCJ2: x86 code whose calls and jumps have their targets, made absolute, in streams of their own.
//!
//! ```text
//! for each byte of the main stream that is E8, E9 or the second of 0F 8x:
//!     if the range coder says so: the next target of the call stream (E8) or the jump stream, made relative
//! ```
//! Bounds: 4 KiB for each of the four streams.

use stream::ReadAt;

use super::pull::{CUT, DATA, Pull, Read};
use crate::frame::codec::Fault;

const BUFFER_BYTES: usize = 4096;
const MAIN: usize = 0;
const CALLS: usize = 1;
const JUMPS: usize = 2;
const CODER: usize = 3;

const EVEN: u16 = 1024;
const TOP: u32 = 1 << 24;

/// The content.
pub(super) struct Bcj2<S> {
    inputs: [Buffered<S>; 4],
    probabilities: [u16; 258],
    range: u32,
    code: u32,
    /// Bytes of the coder's stream that initialise it and have been read.
    init: usize,
    /// The last byte, and whether it may be an opcode whose bit has not been read.
    last: u8,
    opcode: Option<u8>,
    /// A target being read: its stream and its bytes so far.
    target: Option<(usize, Vec<u8>)>,
    /// A target to be written.
    pending: Vec<u8>,
    position: u32,
    left: u64,
}

struct Buffered<S> {
    source: S,
    bytes: Box<[u8; BUFFER_BYTES]>,
    start: usize,
    end: usize,
}

/// Why a byte is not there.
enum Missing {
    Later,
    End,
    Fault(Fault),
}

impl<S: Pull> Buffered<S> {
    fn byte(&mut self, kept: &dyn ReadAt) -> Result<u8, Missing> {
        if self.start == self.end {
            match self.source.read(kept, &mut self.bytes[..]).map_err(Missing::Fault)? {
                Read::Some(count) => (self.start, self.end) = (0, count),
                Read::Later => return Err(Missing::Later),
                Read::End => return Err(Missing::End),
            }
        }
        self.start += 1;
        Ok(self.bytes[self.start - 1])
    }
}

impl<S: Pull> Bcj2<S> {
    pub fn new(inputs: [S; 4], size: u64) -> Bcj2<S> {
        let inputs = inputs.map(|source| Buffered { source, bytes: Box::new([0; BUFFER_BYTES]), start: 0, end: 0 });
        Bcj2 {
            inputs,
            probabilities: [EVEN; 258],
            range: u32::MAX,
            code: 0,
            init: 0,
            last: 0,
            opcode: None,
            target: None,
            pending: Vec::new(),
            position: 0,
            left: size,
        }
    }

    /// As [`Pull::read`].
    pub fn read(&mut self, kept: &dyn ReadAt, output: &mut [u8]) -> Result<Read, Fault> {
        let wanted = usize::try_from(self.left).map_or(output.len(), |left| left.min(output.len()));
        if wanted == 0 {
            return Ok(Read::End);
        }
        let mut wrote = 0;
        while wrote < wanted {
            match self.next(kept) {
                Ok(byte) => {
                    output[wrote] = byte;
                    wrote += 1;
                }
                Err(_) if wrote > 0 => break,
                Err(Missing::Later) => return Ok(Read::Later),
                Err(Missing::End) => return Err(DATA),
                Err(Missing::Fault(fault)) => return Err(fault),
            }
        }
        self.left -= wrote as u64;
        Ok(Read::Some(wrote))
    }

    fn next(&mut self, kept: &dyn ReadAt) -> Result<u8, Missing> {
        const INIT_BYTES: usize = 5;
        while self.init < INIT_BYTES {
            self.code = self.code << 8 | u32::from(self.inputs[CODER].byte(kept)?);
            self.init += 1;
        }
        if let Some(opcode) = self.opcode {
            self.convert(opcode, kept)?;
        }
        if !self.pending.is_empty() {
            return Ok(self.tell(self.pending[0]));
        }
        let byte = self.inputs[MAIN].byte(kept)?;
        if byte & 0xfe == 0xe8 || self.last == 0x0f && byte & 0xf0 == 0x80 {
            self.opcode = Some(byte);
            self.position = self.position.wrapping_add(1);
            return Ok(byte);
        }
        self.last = byte;
        self.position = self.position.wrapping_add(1);
        Ok(byte)
    }

    /// Emits a byte of a target.
    fn tell(&mut self, byte: u8) -> u8 {
        self.pending.remove(0);
        self.position = self.position.wrapping_add(1);
        byte
    }

    /// Reads whether a target follows the opcode, and the target. It may be called again where it stopped.
    fn convert(&mut self, opcode: u8, kept: &dyn ReadAt) -> Result<(), Missing> {
        if self.target.is_none() {
            if !self.bit(opcode, kept)? {
                self.last = opcode;
                self.opcode = None;
                return Ok(());
            }
            let stream = if opcode == 0xe8 { CALLS } else { JUMPS };
            self.target = Some((stream, Vec::with_capacity(4)));
        }
        let Some((stream, bytes)) = &mut self.target else {
            return Err(Missing::Fault(CUT));
        };
        while bytes.len() < 4 {
            bytes.push(self.inputs[*stream].byte(kept)?);
        }
        let absolute = bytes.iter().fold(0, |value, &byte| value << 8 | u32::from(byte));
        let relative = absolute.wrapping_sub(self.position.wrapping_add(4));
        self.pending = relative.to_le_bytes().to_vec();
        self.last = (relative >> 24) as u8;
        (self.target, self.opcode) = (None, None);
        Ok(())
    }

    fn bit(&mut self, opcode: u8, kept: &dyn ReadAt) -> Result<bool, Missing> {
        if self.range < TOP {
            self.code = self.code << 8 | u32::from(self.inputs[CODER].byte(kept)?);
            self.range <<= 8;
        }
        let probability = match opcode {
            0xe8 => &mut self.probabilities[usize::from(self.last)],
            0xe9 => &mut self.probabilities[256],
            _ => &mut self.probabilities[257],
        };
        let bound = (self.range >> 11) * u32::from(*probability);
        if self.code < bound {
            self.range = bound;
            *probability += (2048 - *probability) >> 5;
            return Ok(false);
        }
        self.range -= bound;
        self.code -= bound;
        *probability -= *probability >> 5;
        Ok(true)
    }
}
