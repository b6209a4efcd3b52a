//! The map of pax 1.0, which stands in front of the stored bytes: lines of decimal numbers, first how many regions there
//! are, then the offset and the length of each; NULs up to the end of the block. Lines that begin with `#` are comments.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use super::header::BLOCK;
use super::sparse::{Content, MALFORMED, Map, TOO_LONG};
use crate::frame::codec::Fault;

/// The longest line of a region is shorter: two numbers of 20 digits.
const REGION_BYTES: usize = 48;

/// A sparse map while it arrives, kept unchanged: an invalid one is content.
pub(super) struct Listing {
    map: Map,
    /// The bytes that are stored of the member, this map included.
    stored: u64,
    /// The bytes of the member's content.
    size: u64,
    text: Vec<u8>,
    text_bytes_max: usize,
    /// Numbers still to come, once that is known.
    numbers_left: Option<u64>,
    in_comment: bool,
}

impl Listing {
    pub const fn new(stored: u64, size: u64, regions_max: usize) -> Listing {
        Listing {
            map: Map::new(regions_max),
            stored,
            size,
            text: Vec::new(),
            text_bytes_max: regions_max.saturating_mul(REGION_BYTES).saturating_add(BLOCK),
            numbers_left: None,
            in_comment: false,
        }
    }

    /// Takes bytes up to the one that completes or breaks it, and returns how many.
    pub fn read(&mut self, input: &[u8]) -> usize {
        let mut taken = 0;
        while taken < input.len() && !self.is_over() {
            self.take(input[taken]);
            taken = taken.saturating_add(1);
        }
        taken
    }

    /// Whether no more of the input belongs to it.
    pub fn is_over(&self) -> bool {
        let is_complete = self.numbers_left == Some(0) && self.text.len().is_multiple_of(BLOCK);
        is_complete || self.map.fault.is_some() || self.text.len() as u64 >= self.stored
    }

    /// Returns the member's content, or the fault with the bytes read.
    pub fn content(self) -> Result<Content, (Fault, Vec<u8>)> {
        let is_complete = self.numbers_left == Some(0) && self.text.len().is_multiple_of(BLOCK);
        let stored = self.stored.saturating_sub(self.text.len() as u64);
        let content = self.map.content(stored, self.size);
        content.and_then(|content| is_complete.then_some(content).ok_or(MALFORMED)).map_err(|fault| (fault, self.text))
    }

    /// Returns the text taken so far.
    pub fn into_text(self) -> Vec<u8> {
        self.text
    }

    fn take(&mut self, byte: u8) {
        self.text.push(byte);
        if self.numbers_left == Some(0) {
            if byte != 0 {
                self.map.fail(MALFORMED);
            }
            return;
        }
        if self.text.len() >= self.text_bytes_max {
            return self.map.fail(TOO_LONG);
        }
        self.in_comment |= byte == b'#' && self.is_at_line_start();
        if self.in_comment {
            self.in_comment = byte != b'\n';
            return;
        }
        if let Some(number) = self.map.read_digit(byte) {
            self.number(number);
        }
    }

    fn is_at_line_start(&self) -> bool {
        !self.map.is_in_number()
    }

    fn number(&mut self, number: u64) {
        let Some(left) = self.numbers_left else {
            self.numbers_left = number.checked_mul(2);
            return if self.numbers_left.is_none() {
                self.map.fail(MALFORMED)
            };
        };
        self.numbers_left = Some(left.saturating_sub(1));
        self.map.add_number(number);
    }
}
