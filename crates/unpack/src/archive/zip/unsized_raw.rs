//! Raw content whose length follows it: it ends where a record begins, and a descriptor before that record has exactly
//! the length (and checksum) of the content.
//!
//! Bounds: the 27 bytes of a possible descriptor and the beginning of a signature, and half a kilobyte of work space.

use zlib_rs::crc32::crc32;

use super::descriptor::{DESCRIPTOR_BYTES_MAX, Descriptor, Form};
use super::record::Kind;

pub(super) const SIGNATURE: usize = 4;
/// Bytes that may still turn out not to be content.
const HELD: usize = DESCRIPTOR_BYTES_MAX + SIGNATURE - 1;
const HOLD: usize = 512 + HELD + SIGNATURE;

/// A search for the end of such content.
pub(super) struct UnsizedRaw {
    hold: Vec<u8>,
    /// How many bytes at the front of the hold are known to be content.
    decided: usize,
    /// Content told so far.
    pub told: u64,
    /// Checksum of the emitted content.
    pub crc: u32,
    /// Whether the content is stored, so that both sizes and the checksum must agree.
    stored: bool,
    end: Option<Descriptor>,
}

impl UnsizedRaw {
    pub fn new(stored: bool) -> UnsizedRaw {
        UnsizedRaw { hold: Vec::with_capacity(HOLD), decided: 0, told: 0, crc: 0, stored, end: None }
    }

    /// Content ready to be emitted.
    pub fn ready(&self) -> &[u8] {
        &self.hold[..self.decided]
    }

    /// The first `count` ready bytes have been emitted.
    pub fn tell(&mut self, count: usize) {
        let count = count.min(self.decided);
        self.crc = crc32(self.crc, &self.hold[..count]);
        self.told += count as u64;
        self.decided -= count;
        self.hold.drain(..count);
    }

    /// Takes bytes, at most up to the end of the next signature; nothing once the end is found or bytes are ready.
    pub fn take(&mut self, input: &[u8]) -> usize {
        if self.end.is_some() || self.decided > 0 {
            return 0;
        }
        let room = HOLD - self.hold.len();
        let (count, signed) = up_to_signature(&self.hold, &input[..input.len().min(room)]);
        self.hold.extend_from_slice(&input[..count]);
        if !(signed && self.find_end(self.hold.len() - SIGNATURE)) {
            self.decided = self.hold.len().saturating_sub(HELD);
        }
        count
    }

    /// Ends the input: held bytes are a descriptor or content. Returns whether any are left to emit.
    pub fn finish(&mut self) -> bool {
        if !self.find_end(self.hold.len()) {
            self.decided = self.hold.len();
        }
        self.end.is_some() || self.decided > 0
    }

    /// The descriptor, and the bytes of the next record that were taken with it, once all content has been emitted.
    pub fn end(&mut self) -> Option<(Descriptor, Vec<u8>)> {
        let end = self.end.filter(|_| self.decided == 0)?;
        Some((end, std::mem::take(&mut self.hold)))
    }

    /// Whether a descriptor ends at `at` of the hold; if so the content ends in front of it.
    fn find_end(&mut self, at: usize) -> bool {
        let fits = |form: &Form| {
            let start = at.checked_sub(form.len())?;
            let end = form.read(&self.hold[start..at])?;
            self.is_told_by(end, *form, start).then_some((start, end))
        };
        let Some((start, end)) = Form::ALL.iter().find_map(fits) else {
            return false;
        };
        // Only the next record's first bytes stay behind the content.
        self.hold.drain(start..at);
        self.decided = start;
        self.end = Some(end);
        true
    }

    fn is_told_by(&self, end: Descriptor, form: Form, content_in_hold: usize) -> bool {
        let length = self.told + content_in_hold as u64;
        if end.compressed != length || self.stored && end.uncompressed != length {
            return false;
        }
        // With its signature a descriptor of the right length may lie about the checksum, and is then reported.
        form.is_signed() || !self.stored || end.crc == crc32(self.crc, &self.hold[..content_in_hold])
    }
}

/// Returns how many bytes of `input` to take so that, after `held`, they end with a record's signature; all of them if
/// there is none.
pub(super) fn up_to_signature(held: &[u8], input: &[u8]) -> (usize, bool) {
    let tail = &held[held.len().saturating_sub(SIGNATURE - 1)..];
    let mut seam = [0; 2 * (SIGNATURE - 1)];
    let ahead = input.len().min(SIGNATURE - 1);
    seam[..tail.len()].copy_from_slice(tail);
    seam[tail.len()..tail.len() + ahead].copy_from_slice(&input[..ahead]);
    let seam = &seam[..tail.len() + ahead];
    if let Some(at) = signature(seam) {
        return (at + SIGNATURE - tail.len(), true);
    }
    match signature(input) {
        Some(at) => (at + SIGNATURE, true),
        None => (input.len(), false),
    }
}

fn signature(bytes: &[u8]) -> Option<usize> {
    memchr::memmem::find_iter(bytes, b"PK").find(|&at| {
        let record = bytes.get(at..at + SIGNATURE).and_then(Kind::of);
        record.is_some_and(|kind| kind != Kind::Marker)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How much content is told of `bytes`, and whether its end was found.
    fn read(bytes: &[u8]) -> (u64, bool) {
        let mut raw = UnsizedRaw::new(true);
        let mut at = 0;
        loop {
            let taken = raw.take(&bytes[at..]);
            at += taken;
            if taken == 0 && raw.ready().is_empty() && raw.end.is_none() && !raw.finish() {
                return (raw.told, false);
            }
            raw.tell(usize::MAX);
            if raw.end().is_some() {
                return (raw.told, true);
            }
        }
    }

    fn stored(signed: bool, crc: u32) -> Vec<u8> {
        let signature = if signed { &b"PK\x07\x08"[..] } else { b"" };
        let sizes = [5, 0, 0, 0, 5, 0, 0, 0];
        [b"hello", signature, &crc.to_le_bytes(), &sizes, b"PK\x01\x02"].concat()
    }

    #[test]
    fn without_its_signature_a_descriptor_must_know_the_checksum() {
        let crc = crc32(0, b"hello");
        assert_eq!(read(&stored(false, crc)), (5, true));
        assert_eq!(read(&stored(false, crc ^ 1)), (21, false));
        assert_eq!(read(&stored(true, crc ^ 1)), (5, true));
    }
}
