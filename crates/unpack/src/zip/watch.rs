//! Looks for an end record in bytes that are read as something else: a header's variable part, a member's data.
//!
//! A reader that searches from the end of the file would go by that record, unless the archive that is being read has
//! an end record of its own behind it. Archives within archives bring such bytes along honestly.

use memchr::memmem;

const SIGNATURE: &[u8; 4] = b"PK\x05\x06";
const SEAM: usize = SIGNATURE.len() - 1;

/// Sees bytes in order.
#[derive(Default)]
pub(super) struct Watch {
    /// The bytes in front of the next one.
    tail: [u8; SEAM],
    found: bool,
}

impl Watch {
    /// These bytes have been read.
    pub fn pass(&mut self, bytes: &[u8]) {
        if self.found {
            return;
        }
        let mut seam = [0; 2 * SEAM];
        let ahead = bytes.len().min(SEAM);
        seam[..SEAM].copy_from_slice(&self.tail);
        seam[SEAM..SEAM + ahead].copy_from_slice(&bytes[..ahead]);
        self.found = [&seam[..SEAM + ahead], bytes].iter().any(|bytes| memmem::find(bytes, SIGNATURE).is_some());
        let last = &bytes[bytes.len().saturating_sub(SEAM)..];
        self.tail.copy_within(last.len().., 0);
        self.tail[SEAM - last.len()..].copy_from_slice(last);
    }

    /// Whether an end record's signature was among them.
    pub const fn found(&self) -> bool {
        self.found
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
                watch.pass(&bytes[..first]);
                assert_eq!(watch.found(), first >= 6);
                watch.pass(&bytes[first..second]);
                assert_eq!(watch.found(), second >= 6);
            }
        }
    }
}
