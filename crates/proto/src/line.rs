//! Lines that end in LF, with or without CR: the frame of every command and reply.

use alloc::vec::Vec;

use memchr::memchr;

/// Collects a line that arrives in pieces, up to a bound.
#[derive(Debug, Clone, Default)]
pub(crate) struct LineBuffer {
    bytes: Vec<u8>,
    overflow: bool,
    bare: bool,
}

/// A line, or why there is none.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A line without its end.
    Whole(Vec<u8>),
    /// A line that was longer than allowed; it is gone.
    TooLong,
    /// Its end has not come.
    Unfinished,
}

impl LineBuffer {
    /// Whether the line under way is longer than allowed already.
    pub fn is_overflowing(&self) -> bool {
        self.overflow
    }

    /// Whether nothing of a line has come.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty() && !self.overflow
    }

    /// Whether a line has ended by LF alone.
    pub fn has_bare_newline(&self) -> bool {
        self.bare
    }

    /// Takes bytes of `input` up to the end of a line, and returns how many.
    pub fn take(&mut self, input: &[u8], bytes_max: usize) -> (usize, Line) {
        let end = memchr(b'\n', input).map(|at| at + 1);
        let count = end.unwrap_or(input.len());
        let room = bytes_max.saturating_sub(self.bytes.len());
        self.overflow |= count > room;
        if !self.overflow {
            self.bytes.extend_from_slice(&input[..count]);
        }
        if end.is_none() {
            return (count, Line::Unfinished);
        }
        let mut line = core::mem::take(&mut self.bytes);
        if core::mem::take(&mut self.overflow) {
            return (count, Line::TooLong);
        }
        line.pop();
        match line.last() {
            Some(b'\r') => _ = line.pop(),
            _ => self.bare = true,
        }
        (count, Line::Whole(line))
    }
}
