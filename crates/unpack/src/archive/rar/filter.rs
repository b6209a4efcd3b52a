//! Filters of RAR: transformations of a block of content that made it pack better, undone here.
//!
//! A block is collected as it comes out of the history, undone, and then told. Bounds: a block of at most
//! [`BLOCK_BYTES_MAX`], and a second one where the filter cannot work in place; [`FILTERS_MAX`] filters that wait.

mod delta;
mod jumps;
mod rgb;

use std::collections::VecDeque;

/// The longest block.
pub(super) const BLOCK_BYTES_MAX: u32 = 4 << 20;
/// The most filters that wait for their blocks.
const FILTERS_MAX: usize = 8192;

/// A filter, and the block that it is for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Filter {
    pub kind: Kind,
    /// Where the block begins, in bytes of history.
    pub start: u64,
    pub length: u32,
}

/// Filter to undo.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    /// Differences between every n-th byte.
    Delta { channels: usize },
    /// Absolute targets behind E8, or E8 and E9. Up to version 4 offsets do not wrap at 16 MiB.
    X86 { jumps: bool, wraps: bool },
    /// Absolute targets of ARM's BL.
    Arm,
    /// Absolute targets of Itanium's branches.
    Itanium,
    /// Differences to neighbours in a picture of three bytes a pixel.
    Rgb { stride: usize, red_at: usize },
    /// Differences from predicted sound.
    Audio { channels: usize },
}

/// The filters that wait, and the block that is being collected or told.
pub(super) struct Filters {
    waiting: VecDeque<Filter>,
    /// The collected block.
    block: Vec<u8>,
    /// Where the block began in the member.
    block_at: u64,
    /// Work space of the same length.
    other: Vec<u8>,
    /// How much of the block has been emitted, once it is undone.
    told: Option<usize>,
}

impl Filters {
    pub const fn new() -> Filters {
        Filters { waiting: VecDeque::new(), block: Vec::new(), block_at: 0, other: Vec::new(), told: None }
    }

    /// Forgets all filters.
    pub fn clear(&mut self) {
        self.waiting.clear();
        self.block.clear();
        self.told = None;
    }

    /// Adds a filter, told when the history was at `position`; whether that makes sense.
    pub fn add(&mut self, filter: Filter, position: u64) -> bool {
        if filter.length == 0 || filter.length > BLOCK_BYTES_MAX {
            return filter.length == 0;
        }
        let stacks = |last: &Filter| (last.start, last.length) == (filter.start, filter.length);
        let follows = |last: &Filter| filter.start >= last.start + u64::from(last.length);
        let fits = self.waiting.back().is_none_or(|last| stacks(last) || follows(last));
        if !fits || filter.start < position || self.waiting.len() == FILTERS_MAX {
            return false;
        }
        self.waiting.push_back(filter);
        true
    }

    /// How many bytes, at most `most`, may come in one run at `position`.
    pub fn wants(&self, position: u64, most: usize) -> usize {
        let Some(first) = self.waiting.front() else {
            return most;
        };
        let (until, most) = match first.start.checked_sub(position) {
            Some(before) if before > 0 => (before, most),
            _ => (first.start + u64::from(first.length) - position, usize::MAX),
        };
        usize::try_from(until).map_or(most, |until| until.min(most))
    }

    /// Whether the byte at `position` belongs to the block of a filter.
    pub fn is_within(&self, position: u64) -> bool {
        self.waiting.front().is_some_and(|first| first.start <= position)
    }

    /// Takes bytes of the block; `at` is where they stand in the member.
    pub fn push(&mut self, bytes: &[u8], at: u64) {
        if self.block.is_empty() {
            self.block_at = at;
        }
        self.block.extend_from_slice(bytes);
        let Some(first) = self.waiting.front().copied() else {
            return;
        };
        if self.block.len() < first.length as usize {
            return;
        }
        let stacked = self.waiting.iter().take_while(|next| next.start == first.start).count();
        for filter in self.waiting.drain(..stacked) {
            filter.kind.undo(&mut self.block, &mut self.other, self.block_at);
        }
        self.told = Some(0);
    }

    /// The block will not be completed: it is emitted as it is.
    pub fn give_up(&mut self) {
        self.waiting.clear();
        if !self.block.is_empty() && self.told.is_none() {
            self.told = Some(0);
        }
    }

    /// Whether undone bytes wait to be emitted.
    pub const fn is_ready(&self) -> bool {
        self.told.is_some()
    }

    /// Copies undone bytes out.
    pub fn take(&mut self, output: &mut [u8]) -> usize {
        let Some(told) = self.told else {
            return 0;
        };
        let count = output.len().min(self.block.len() - told);
        output[..count].copy_from_slice(&self.block[told..told + count]);
        self.told = Some(told + count);
        if told + count == self.block.len() {
            self.block.clear();
            self.told = None;
        }
        count
    }
}

impl Kind {
    /// Undoes it in a block that begins at `at` of the member.
    fn undo(self, block: &mut Vec<u8>, other: &mut Vec<u8>, at: u64) {
        other.clear();
        match self {
            Kind::X86 { jumps, wraps } => return jumps::x86(block, at, jumps, wraps),
            Kind::Arm => return jumps::arm(block, at),
            Kind::Itanium => return jumps::itanium(block, at),
            Kind::Delta { channels } => {
                other.resize(block.len(), 0);
                delta::bytes(block, other, channels);
            }
            Kind::Audio { channels } => {
                other.resize(block.len(), 0);
                delta::audio(block, other, channels);
            }
            Kind::Rgb { stride, red_at } => {
                other.resize(block.len(), 0);
                rgb::undo(block, other, stride, red_at);
            }
        }
        std::mem::swap(block, other);
    }
}
