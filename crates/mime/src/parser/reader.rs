//! Common state of all states of the parser: the place in the input, the open containers, held bytes, waiting events.

mod levels;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::mem::size_of;
use core::ops::Range;

use memchr::{memchr, memchr2};
use stream::{Class, Finding, Limits, Object, Window};

use super::boundary::LEVELS_MAX;
use super::{FORKS_MAX, Parser, State};
use crate::field::{BOUNDARIES_MAX, NAMES_MAX};
pub(super) use levels::{Guess, Level, Multipart};

/// Events to emit before more input is read.
#[derive(Debug, Clone)]
pub(super) enum Tell {
    Open(Object),
    Close,
    Finding(Finding),
    Fork(Finding, Box<Parser>),
    /// Held bytes, written to the window.
    Wrote,
}

/// Bytes that end a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineEnds {
    /// LF, with CR before it or without.
    Lf,
    /// LF, CR, and both together, in any mixture.
    Any,
}

#[derive(Debug, Clone)]
pub(super) struct Reader {
    pub bounds: Bounds,
    /// Bytes taken. Below zero only while bytes from before a second reading are read again.
    offset: i64,
    /// Unknown until the first line end.
    line_ends: Option<LineEnds>,
    levels: Vec<Level>,
    /// The reading ends at delimiters of the levels below this one.
    outside: usize,
    /// The levels below this one are not opened and closed by this reading.
    silent: usize,
    /// Bytes taken whose role is not known yet.
    held: Vec<u8>,
    /// Range of the held bytes that are still to be emitted as content.
    telling: Option<Range<usize>>,
    queue: VecDeque<Tell>,
    forks: u32,
    /// A line with junk behind the boundary is no delimiter.
    strict: bool,
}

/// The limits that matter here, as the types that they are compared with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub levels_max: usize,
    pub fields_max: u32,
    pub name_bytes_max: usize,
    pub field_bytes_max: usize,
}

impl Bounds {
    fn new(limits: &Limits) -> Bounds {
        let bytes = |limit: u32| usize::try_from(limit).unwrap_or(usize::MAX);
        Bounds {
            levels_max: bytes(limits.multipart_depth_max).min(LEVELS_MAX - 1),
            fields_max: limits.fields_max.max(1),
            name_bytes_max: bytes(limits.name_bytes_max).max(70),
            field_bytes_max: bytes(limits.field_bytes_max),
        }
    }
}

impl Reader {
    pub(super) fn new(limits: &Limits) -> Reader {
        Reader {
            bounds: Bounds::new(limits),
            offset: 0,
            line_ends: None,
            levels: Vec::new(),
            outside: 0,
            silent: 0,
            held: Vec::new(),
            telling: None,
            queue: VecDeque::with_capacity(8),
            forks: FORKS_MAX,
            strict: false,
        }
    }

    pub(super) fn worst_case_bytes(limits: &Limits) -> usize {
        let bounds = Bounds::new(limits);
        let level = size_of::<Level>() + BOUNDARIES_MAX * bounds.name_bytes_max;
        let object = size_of::<Tell>() + (NAMES_MAX + 3) * bounds.name_bytes_max;
        let held = 2 * (bounds.name_bytes_max + 1024);
        // Growing vectors take up to twice their content; a header end may offer several readings at once.
        2 * (bounds.levels_max + 1) * (level + size_of::<Tell>()) + 8 * object + held
    }

    /// Offers `make`'s parser as the second reading from here on.
    pub(super) fn offer(&mut self, name: &'static str, make: impl FnOnce(&Reader) -> Box<Parser>) {
        if !self.may_fork() {
            return;
        }
        let other = make(self);
        let finding = self.finding(Class::Ambiguous, name);
        self.tell(Tell::Fork(finding, other));
    }

    /// Offers `make`'s parser as a second reading whose finding already has the class for two inspected readings.
    pub(super) fn offer_quietly(&mut self, name: &'static str, make: impl FnOnce(&Reader) -> Box<Parser>) {
        let other = make(self);
        let finding = self.finding(Class::TwoReadings, name);
        self.tell(Tell::Fork(finding, other));
    }

    /// A parser that reads on from here and ends with the entity that is being read. Nothing is open in it yet.
    pub(super) fn branch(&self, state: State) -> Box<Parser> {
        Box::new(Parser { reader: self.for_branch(), state, alternative: None })
    }

    fn for_branch(&self) -> Reader {
        Reader {
            bounds: self.bounds,
            offset: 0,
            line_ends: self.line_ends,
            levels: self.levels.clone(),
            outside: self.levels.len(),
            silent: self.levels.len(),
            held: self.held.clone(),
            telling: None,
            queue: VecDeque::new(),
            forks: self.forks,
            strict: self.strict,
        }
    }

    // --- the place in the input

    pub(super) fn took(&mut self, count: usize) {
        self.offset = self.offset.saturating_add_unsigned(count as u64);
    }

    /// Returns the offset of the held bytes, if this reading has read them.
    pub(super) fn held_offset(&self) -> Option<u64> {
        u64::try_from(self.offset.saturating_sub_unsigned(self.held.len() as u64)).ok()
    }

    /// Returns whether the held bytes are the beginning of the message.
    pub(super) fn is_at_start(&self) -> bool {
        self.held_offset() == Some(0) && self.levels.is_empty()
    }

    // --- line ends

    pub(super) const fn line_ends(&self) -> Option<LineEnds> {
        self.line_ends
    }

    pub(super) const fn set_line_ends(&mut self, line_ends: LineEnds) {
        self.line_ends = Some(line_ends);
    }

    /// Notes that a line ended with LF, the usual case.
    pub(super) fn saw_lf(&mut self) {
        self.line_ends.get_or_insert(LineEnds::Lf);
    }

    pub(super) fn bare_cr_is_content(&self) -> bool {
        self.line_ends == Some(LineEnds::Lf)
    }

    pub(super) fn ends_line(&self, byte: u8) -> bool {
        byte == b'\n' || byte == b'\r' && !self.bare_cr_is_content()
    }

    pub(super) fn find_line_end(&self, input: &[u8]) -> Option<usize> {
        if self.bare_cr_is_content() { memchr(b'\n', input) } else { memchr2(b'\n', b'\r', input) }
    }

    // --- held bytes

    /// Takes a byte whose role is not known yet.
    pub(super) fn hold(&mut self, byte: u8) {
        self.took(1);
        self.held.push(byte);
    }

    pub(super) fn held(&self) -> &[u8] {
        &self.held
    }

    pub(super) fn drop_held(&mut self) {
        self.held.clear();
        self.telling = None;
    }

    /// Gives the held bytes back, to be taken again.
    pub(super) fn give_back(&mut self) -> Vec<u8> {
        self.offset = self.offset.saturating_sub_unsigned(self.held.len() as u64);
        core::mem::take(&mut self.held)
    }

    /// Drops the first `count` held bytes.
    pub(super) fn drop_held_front(&mut self, count: usize) {
        self.held.drain(..count.min(self.held.len()));
    }

    /// The held bytes but the last `kept` are content of the object that will be open when the queue is empty.
    pub(super) fn tell_held_but(&mut self, kept: usize) {
        let end = self.held.len().saturating_sub(kept);
        if end > 0 {
            self.telling = Some(0..end);
        }
    }

    /// The held bytes are content of the object that will be open when the queue is empty.
    pub(super) fn tell_held(&mut self) {
        self.tell_held_but(0);
    }

    // --- telling

    pub(super) fn tell(&mut self, tell: Tell) {
        self.queue.push_back(tell);
    }

    /// Makes a finding about the held bytes, or else about the next byte.
    pub(super) fn finding(&self, class: Class, name: &'static str) -> Finding {
        Finding::new(class, name, self.held_offset().unwrap_or(0))
    }

    pub(super) fn pending(&mut self, output: &mut Window) -> Option<Tell> {
        if let Some(tell) = self.queue.pop_front() {
            return Some(tell);
        }
        let telling = self.telling.as_mut()?;
        telling.start += output.push(&self.held[telling.clone()]);
        if telling.start == telling.end {
            self.held.drain(..telling.end);
            self.telling = None;
        }
        Some(Tell::Wrote)
    }

    /// Whether one more second reading may be offered.
    pub(super) fn may_fork(&mut self) -> bool {
        if self.forks == 0 {
            return false;
        }
        self.forks -= 1;
        if self.forks == 0 {
            let finding = self.finding(Class::Ambiguous, "Heuristics.Ambiguous.Mime.Forks");
            self.tell(Tell::Finding(finding));
        }
        self.forks > 0
    }
}
