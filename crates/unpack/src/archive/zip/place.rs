//! Where a member stands in the stream, where its findings go, and where it gives back what it read too much.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use std::collections::VecDeque;

use stream::{Class, Finding, Limits};

use super::held::Held;
use crate::frame::password::Passwords;

/// Place of a member in the stream, with its channels for output.
pub(super) struct Place<'a> {
    /// Bytes read so far, by all.
    pub at: u64,
    /// Whether no more input follows.
    pub last: bool,
    pub limits: &'a Limits,
    pub passwords: &'a mut Passwords,
    /// Work besides the bytes taken and emitted.
    pub work: &'a mut usize,
    pub notes: &'a mut VecDeque<Finding>,
    pub held: &'a mut Held,
    /// Whether only findings that matter within other files are reported.
    pub searching: bool,
}

impl Place<'_> {
    /// Gives back the last bytes read, which will be read again.
    pub fn give_back(&mut self, bytes: &[u8]) {
        self.at = self.at.saturating_sub(bytes.len() as u64);
        self.held.give_back(bytes);
    }

    /// Notes something here. A reader that searches keeps malformedness to itself: it may have found no archive at all.
    pub fn note(&mut self, class: Class, name: &'static str) {
        self.note_before(class, name, 0);
    }

    /// Notes something in front of the last `unread` bytes, which a decoder has taken and not used.
    pub fn note_before(&mut self, class: Class, name: &'static str, unread: usize) {
        if !(self.searching && matches!(class, Class::Malformed | Class::Truncated)) {
            self.notes.push_back(Finding::new(class, name, self.at.saturating_sub(unread as u64)));
        }
    }
}
