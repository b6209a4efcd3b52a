//! Writing messages: names compressed (RFC 1035 section 4.1.4), and never more than a limit.
//!
//! A record that does not fit is left out whole, and the writer says so; the caller decides whether that means TC.

use alloc::vec::Vec;

use super::{HEADER_BYTES, flag, name};

/// How many labels are remembered as targets of pointers; further ones are written in full.
const TARGETS_MAX: usize = 128;

/// Parts of a message behind the question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    /// Answer section.
    Answer,
    /// Authority section.
    Authority,
    /// Additional section.
    Additional,
}

/// Owner name of a record.
#[derive(Debug, Clone, Copy)]
pub enum Owner<'a> {
    /// The name of the question, or what begins at this label of it: an offset into the message.
    At(u16),
    /// A name in wire form.
    Name(&'a [u8]),
}

/// Writes one message into a buffer.
pub struct Writer<'b> {
    out: &'b mut Vec<u8>,
    limit: usize,
    targets: [Target; TARGETS_MAX],
    target_count: usize,
}

/// Where a label stands that a pointer may point to, and how long the name is that it begins, in wire form: names of other
/// lengths need not be compared.
#[derive(Clone, Copy)]
struct Target {
    at: u16,
    len: u16,
}

impl<'b> Writer<'b> {
    /// Begins a message of at most `limit` bytes. `out` is emptied and keeps its room. A limit below the header's bytes
    /// counts as these.
    pub fn new(out: &'b mut Vec<u8>, limit: usize, id: u16, flags: u16) -> Writer<'b> {
        out.clear();
        out.extend_from_slice(&id.to_be_bytes());
        out.extend_from_slice(&flags.to_be_bytes());
        out.extend_from_slice(&[0; 8]);
        Writer {
            out,
            limit: limit.clamp(HEADER_BYTES, 65_535),
            targets: [Target { at: 0, len: 0 }; TARGETS_MAX],
            target_count: 0,
        }
    }

    /// How many bytes there are.
    pub fn len(&self) -> usize {
        self.out.len()
    }

    /// Whether there is nothing; never true, for there is a header.
    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// Changes how long the message may become.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit.clamp(HEADER_BYTES, 65_535);
    }

    /// Sets bits of the header's second word.
    pub fn set_flags(&mut self, bits: u16) {
        let flags = self.word(2) | bits;
        self.set_word(2, flags);
    }

    /// Clears bits of the header's second word.
    pub fn clear_flags(&mut self, bits: u16) {
        let flags = self.word(2) & !bits;
        self.set_word(2, flags);
    }

    /// Sets the response code's lower bits.
    pub fn set_rcode(&mut self, rcode: u16) {
        let flags = (self.word(2) & !15) | (rcode & 15);
        self.set_word(2, flags);
    }

    /// How many records a section has.
    pub fn count(&self, section: Section) -> u16 {
        self.word(count_at(section))
    }

    /// Marks the message as cut off.
    pub fn truncate(&mut self) {
        self.set_flags(flag::TC);
    }

    /// Writes a question; `false` if it does not fit.
    pub fn question(&mut self, name: &[u8], kind: u16, class: u16) -> bool {
        let start = self.mark();
        let whole = self.name(name) && self.bytes(&kind.to_be_bytes()) && self.bytes(&class.to_be_bytes());
        self.keep(whole, start, 4)
    }

    /// Writes a record whose data `write` writes; `false`, and nothing of it, if it does not fit.
    pub fn record(
        &mut self,
        section: Section,
        owner: Owner<'_>,
        kind: u16,
        class: u16,
        ttl: u32,
        write: impl FnOnce(&mut Self) -> bool,
    ) -> bool {
        let start = self.mark();
        let owned = match owner {
            Owner::At(offset) => self.bytes(&(0xc000 | offset).to_be_bytes()),
            Owner::Name(name) => self.name(name),
        };
        let mut fixed = [0; 10];
        fixed[..2].copy_from_slice(&kind.to_be_bytes());
        fixed[2..4].copy_from_slice(&class.to_be_bytes());
        fixed[4..8].copy_from_slice(&ttl.to_be_bytes());
        let whole = owned && self.bytes(&fixed) && self.data(write);
        self.keep(whole, start, count_at(section))
    }

    /// Writes data, with its length before it.
    fn data(&mut self, write: impl FnOnce(&mut Self) -> bool) -> bool {
        let start = self.out.len();
        if !write(self) {
            return false;
        }
        let Ok(len) = u16::try_from(self.out.len() - start) else {
            return false;
        };
        self.set_word(start - 2, len);
        true
    }

    /// Writes bytes; `false`, and nothing, if they do not fit. For a record's data.
    pub fn bytes(&mut self, bytes: &[u8]) -> bool {
        let fits = self.out.len() + bytes.len() <= self.limit;
        if fits {
            self.out.extend_from_slice(bytes);
        }
        fits
    }

    /// Writes a name in wire form, compressed. For a record's data.
    pub fn name(&mut self, wire: &[u8]) -> bool {
        let mut rest = wire;
        loop {
            if rest.first().is_none_or(|&len| len == 0) {
                return self.bytes(&[0]);
            }
            if let Some(target) = self.target_of(rest) {
                return self.bytes(&(0xc000 | target).to_be_bytes());
            }
            let at = self.out.len();
            let label_len = usize::from(rest[0]) + 1;
            let Some(label) = rest.get(..label_len) else {
                return false;
            };
            if !self.bytes(label) {
                return false;
            }
            self.remember(at, rest.len());
            rest = &rest[label_len..];
        }
    }

    /// Whether anything was written behind the header that starts at an offset of two bytes: for callers that go back.
    pub fn rewind(&mut self, len: usize) {
        self.out.truncate(len.max(HEADER_BYTES));
        self.forget_from(self.out.len());
    }

    /// Sets how many records a section has, after a rewind.
    pub fn set_count(&mut self, section: Section, count: u16) {
        self.set_word(count_at(section), count);
    }

    fn mark(&self) -> usize {
        self.out.len()
    }

    /// Counts what was written since `start`, or takes it back.
    fn keep(&mut self, whole: bool, start: usize, count_at: usize) -> bool {
        let count = self.word(count_at).checked_add(1);
        match count {
            Some(count) if whole => {
                self.set_word(count_at, count);
                true
            }
            _ => {
                self.out.truncate(start);
                self.forget_from(start);
                false
            }
        }
    }

    fn remember(&mut self, at: usize, len: usize) {
        let (Ok(at), Ok(len)) = (u16::try_from(at), u16::try_from(len)) else { return };
        if at < 0x4000 && self.target_count < TARGETS_MAX {
            self.targets[self.target_count] = Target { at, len };
            self.target_count += 1;
        }
    }

    fn forget_from(&mut self, len: usize) {
        while self.target_count > 0 && usize::from(self.targets[self.target_count - 1].at) >= len {
            self.target_count -= 1;
        }
    }

    /// Where `wire` stands in the message already. Case counts, so that nobody's is changed.
    fn target_of(&self, wire: &[u8]) -> Option<u16> {
        let len = u16::try_from(wire.len()).ok()?;
        let alike = self.targets[..self.target_count].iter().filter(|target| target.len == len);
        alike.map(|target| target.at).find(|&at| self.is_at(usize::from(at), wire))
    }

    /// Whether the name at `at` is `wire`. Pointers of ours point back, so this ends.
    fn is_at(&self, mut at: usize, wire: &[u8]) -> bool {
        let mut labels = name::labels(wire);
        loop {
            match self.out.get(at) {
                Some(&len @ 1..=0x3f) => {
                    let end = at + 1 + usize::from(len);
                    if self.out.get(at + 1..end) != labels.next() {
                        return false;
                    }
                    at = end;
                }
                Some(&high @ 0xc0..) => {
                    let Some(&low) = self.out.get(at + 1) else { return false };
                    at = usize::from(high & 0x3f) << 8 | usize::from(low);
                }
                Some(0) => return labels.next().is_none(),
                _ => return false,
            }
        }
    }

    fn word(&self, at: usize) -> u16 {
        super::u16_at(self.out, at).unwrap_or(0)
    }

    fn set_word(&mut self, at: usize, word: u16) {
        if let Some(two) = self.out.get_mut(at..at + 2) {
            two.copy_from_slice(&word.to_be_bytes());
        }
    }
}

const fn count_at(section: Section) -> usize {
    match section {
        Section::Answer => 6,
        Section::Authority => 8,
        Section::Additional => 10,
    }
}
