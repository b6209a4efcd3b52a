//! Looks for an end record in bytes that are read as something else: a header's variable part, a member's data.
//!
//! A reader that searches from the end of the file would go by that record, unless the archive that is being read has
//! an end record of its own behind it. Archives within archives bring such bytes along honestly.

use memchr::memmem;

const SIGNATURE: &[u8; 4] = b"PK\x05\x06";
const SEAM: usize = SIGNATURE.len() - 1;

/// Sees bytes in order, some of them again.
#[derive(Default)]
pub(super) struct Watch {
    /// Where the next byte stands.
    at: u64,
    /// The bytes in front of it.
    tail: [u8; SEAM],
    /// Where the first signature stands.
    found: Option<u64>,
}

impl Watch {
    /// Takes bytes that were read at offset `at`.
    pub fn pass(&mut self, at: u64, bytes: &[u8]) {
        if at != self.at {
            self.tail = [0; SEAM];
        }
        if self.found.is_none() {
            let mut seam = [0; 2 * SEAM];
            let ahead = bytes.len().min(SEAM);
            seam[..SEAM].copy_from_slice(&self.tail);
            seam[SEAM..SEAM + ahead].copy_from_slice(&bytes[..ahead]);
            let in_seam =
                memmem::find(&seam[..SEAM + ahead], SIGNATURE).map(|place| (place as u64).wrapping_sub(SEAM as u64));
            let behind = || memmem::find(bytes, SIGNATURE).map(|place| place as u64);
            self.found = in_seam.or_else(behind).map(|place| at.wrapping_add(place));
        }
        let last = &bytes[bytes.len().saturating_sub(SEAM)..];
        self.tail.copy_within(last.len().., 0);
        self.tail[SEAM - last.len()..].copy_from_slice(last);
        self.at = at + bytes.len() as u64;
    }

    /// Forgets bytes from `at` on, which were given back: they do not count, nor does a signature that ends there.
    pub fn back(&mut self, at: u64) {
        if at < self.at {
            (self.at, self.tail) = (at, [0; SEAM]);
            self.found = self.found.filter(|found| found + SIGNATURE.len() as u64 <= at);
        }
    }

    /// Whether an end record's signature was among them.
    pub const fn found(&self) -> bool {
        self.found.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_found_at_every_cut() {
        let bytes = b"PKPK\x05\x06PK\x05P";
        for first in 0..=bytes.len() {
            for second in first..=bytes.len() {
                let mut watch = Watch::default();
                watch.pass(0, &bytes[..first]);
                assert_eq!(watch.found(), first >= 6);
                watch.pass(first as u64, &bytes[first..second]);
                assert_eq!(watch.found(), second >= 6);
            }
        }
    }

    #[test]
    fn what_was_given_back_was_not_seen() {
        for at in 0..10 {
            let mut watch = Watch::default();
            watch.pass(0, b"12PK\x05\x0634");
            watch.back(at);
            assert_eq!(watch.found(), at >= 6);
            watch.pass(at.min(8), b"\x05\x06");
            assert_eq!(watch.found(), at >= 6, "{at}");
        }
    }
}
