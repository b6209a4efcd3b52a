//! The filters between LZMA2 and the content: delta, and branch conversion, which turns the absolute targets of jumps
//! back into relative ones.
//!
//! A filter looks a few bytes ahead; what it cannot decide yet stays in its buffer until more comes or the data ends.
//! Bounds: 4 KiB for each of at most three filters.

mod branch;
mod x86;

use branch::Convert;
use x86::X86;

/// Bytes pushed into a filter at once.
pub(crate) const FILTER_BYTES: usize = 4096;

/// The filters of one block, in the order in which they are undone.
pub(crate) struct Chain {
    filters: Vec<Buffered>,
}

struct Buffered {
    filter: Filter,
    bytes: Vec<u8>,
    /// How many bytes at the front are done.
    done: usize,
}

enum Filter {
    Delta(Box<Delta>),
    X86(X86),
    /// A stateless converter, and the position of the first byte not done.
    Branch {
        convert: Convert,
        position: u32,
    },
}

impl Chain {
    /// The chain of filters told by identifier and properties, in the order of the block header; `None` if one is not
    /// known.
    pub fn new(told: &[(u64, Vec<u8>)]) -> Option<Chain> {
        let filters = told.iter().rev().map(|(id, properties)| {
            Some(Buffered {
                filter: Filter::new(*id, properties)?,
                bytes: Vec::with_capacity(2 * FILTER_BYTES),
                done: 0,
            })
        });
        Some(Chain { filters: filters.collect::<Option<_>>()? })
    }

    /// Whether there is nothing to undo.
    pub const fn is_empty(&self) -> bool {
        self.filters.is_empty()
    }

    /// Takes bytes out of LZMA2, at most [`FILTER_BYTES`], once nothing is ready.
    pub fn push(&mut self, bytes: &[u8]) {
        self.run(bytes, false);
    }

    /// Ends the input: undecided bytes are content as they stand.
    pub fn finish(&mut self) {
        self.run(&[], true);
    }

    /// Copies content out.
    pub fn take(&mut self, output: &mut [u8]) -> usize {
        let Some(last) = self.filters.last_mut() else {
            return 0;
        };
        let count = last.done.min(output.len());
        output[..count].copy_from_slice(&last.bytes[..count]);
        last.bytes.drain(..count);
        last.done -= count;
        count
    }

    fn run(&mut self, bytes: &[u8], over: bool) {
        let mut passed = bytes.to_vec();
        let count = self.filters.len();
        for (index, buffered) in self.filters.iter_mut().enumerate() {
            buffered.bytes.extend_from_slice(&passed);
            let undecided = &mut buffered.bytes[buffered.done..];
            let done = buffered.filter.run(undecided);
            buffered.done += if over { undecided.len() } else { done };
            if index + 1 < count {
                passed = buffered.bytes.drain(..buffered.done).collect();
                buffered.done = 0;
            }
        }
    }
}

impl Filter {
    fn new(id: u64, properties: &[u8]) -> Option<Filter> {
        const DELTA: u64 = 3;
        const X86: u64 = 4;
        if id == DELTA {
            return Some(Filter::Delta(Box::new(Delta::new(*properties.first()?))));
        }
        let position = match properties {
            [] => 0,
            _ => u32::from_le_bytes(*properties.first_chunk()?),
        };
        if id == X86 {
            return Some(Filter::X86(self::X86::new(position)));
        }
        let convert = branch::converter(id)?;
        Some(Filter::Branch { convert, position })
    }

    /// Converts from the front of `bytes` and returns how many are done.
    fn run(&mut self, bytes: &mut [u8]) -> usize {
        match self {
            Filter::Delta(delta) => delta.run(bytes),
            Filter::X86(x86) => x86.run(bytes),
            Filter::Branch { convert, position } => {
                let done = convert(*position, bytes);
                *position = position.wrapping_add(done as u32);
                done
            }
        }
    }
}

/// Each byte was stored as its difference to the one `distance` before.
struct Delta {
    history: [u8; 256],
    distance: usize,
    at: usize,
}

impl Delta {
    const fn new(property: u8) -> Delta {
        Delta { history: [0; 256], distance: property as usize + 1, at: 0 }
    }

    fn run(&mut self, bytes: &mut [u8]) -> usize {
        for byte in bytes.iter_mut() {
            let before = &mut self.history[self.at];
            *byte = byte.wrapping_add(*before);
            *before = *byte;
            self.at = if self.at + 1 == self.distance { 0 } else { self.at + 1 };
        }
        bytes.len()
    }
}
