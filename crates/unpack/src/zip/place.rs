//! Where a member stands in the stream, and where its findings go.

use std::collections::VecDeque;

use stream::{Class, Finding, Limits};

/// Where a member stands, and what it has to say.
pub(super) struct Place<'a> {
    /// Bytes of input taken so far, by all.
    pub at: u64,
    /// Whether no more input follows.
    pub last: bool,
    pub limits: &'a Limits,
    pub notes: &'a mut VecDeque<Finding>,
    /// Whether only what matters wherever an archive hides is reported.
    pub searching: bool,
}

impl Place<'_> {
    /// Notes something in front of `ahead`, the bytes looked at last.
    pub fn note_behind(&mut self, ahead: &[u8], class: Class, name: &'static str) {
        let at = self.at;
        self.at -= ahead.len() as u64;
        self.note(class, name);
        self.at = at;
    }

    /// Notes something here. A reader that searches keeps malformedness to itself: it may have found no archive at all.
    pub fn note(&mut self, class: Class, name: &'static str) {
        if !(self.searching && matches!(class, Class::Malformed | Class::Truncated)) {
            self.notes.push_back(Finding::new(class, name, self.at));
        }
    }
}
