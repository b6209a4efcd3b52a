//! Data descriptors: what follows a member whose sizes were not known in front, in all the forms that are met.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use crate::frame::codec::{le32, le64};

/// Descriptor after a member whose sizes were not known in front.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Descriptor {
    pub crc: u32,
    pub compressed: u64,
    pub uncompressed: u64,
}

/// The forms in which descriptors are met: with and without signature, with 32 and 64 bits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Form {
    signed: bool,
    wide: bool,
}

impl Form {
    /// The likelier first.
    pub const ALL: [Form; 4] = [
        Form { signed: true, wide: false },
        Form { signed: true, wide: true },
        Form { signed: false, wide: false },
        Form { signed: false, wide: true },
    ];

    pub const fn is_signed(self) -> bool {
        self.signed
    }

    pub const fn len(self) -> usize {
        (if self.signed { 8usize } else { 4 }).saturating_add(if self.wide { 16 } else { 8 })
    }

    /// The descriptor of this form at the front of `bytes`, if they are enough and signed as they should be.
    pub fn read(self, bytes: &[u8]) -> Option<Descriptor> {
        if bytes.len() < self.len() || self.signed && !bytes.starts_with(b"PK\x07\x08") {
            return None;
        }
        let fields = if self.signed { &bytes[4..] } else { bytes };
        let (compressed, uncompressed) = match self.wide {
            true => (le64(fields, 4), le64(fields, 12)),
            false => (u64::from(le32(fields, 4)), u64::from(le32(fields, 8))),
        };
        Some(Descriptor { crc: le32(fields, 0), compressed, uncompressed })
    }
}

/// The most bytes that a descriptor takes.
pub(super) const DESCRIPTOR_BYTES_MAX: usize = 24;

/// Bytes that a search for a descriptor and the record after it needs.
pub(super) const AHEAD: usize = DESCRIPTOR_BYTES_MAX + 4;

/// Measured values of a member.
#[derive(Debug, Clone, Copy)]
pub(super) struct Truth {
    pub crc: u32,
    pub compressed: u64,
    pub uncompressed: u64,
    /// Whether the content could be decoded; otherwise only the compressed size is known.
    pub understood: bool,
}

impl Truth {
    fn is_told_by(&self, descriptor: &Descriptor) -> bool {
        let content = descriptor.crc == self.crc && descriptor.uncompressed == self.uncompressed;
        descriptor.compressed == self.compressed && (content || !self.understood)
    }
}

/// The descriptor at the front of `bytes`, and its length: the one that tells the truth, else one with its signature.
pub(super) fn find(bytes: &[u8], truth: Truth) -> Option<(usize, Descriptor)> {
    let followed = |length: usize| {
        let next = &bytes[length..];
        next.len() < 2 || next.starts_with(b"PK")
    };
    let all = || Form::ALL.into_iter().filter_map(|form| Some((form, form.len(), form.read(bytes)?)));
    let best = all().find(|(_, length, found)| truth.is_told_by(found) && followed(*length));
    let best = best.or_else(|| all().find(|(_, _, found)| truth.is_told_by(found)));
    let best = best.or_else(|| all().find(|(form, length, _)| form.is_signed() && followed(*length)));
    best.map(|(_, length, found)| (length, found))
}

/// The descriptor that ends at `end` of `bytes`, if it tells that all bytes in front of it are the data.
pub(super) fn ending_at(bytes: &[u8], end: usize) -> Option<Descriptor> {
    Form::ALL.iter().find_map(|form| {
        let start = end.checked_sub(form.len())?;
        let found = form.read(bytes.get(start..end)?)?;
        (found.compressed == start as u64).then_some(found)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRUTH: Truth = Truth { crc: 7, compressed: 2, uncompressed: 0, understood: true };

    #[test]
    fn a_wide_descriptor_of_an_empty_member_is_not_taken_for_a_narrow_one() {
        let wide = b"PK\x07\x08\x07\0\0\0\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0PK\x01\x02";
        assert_eq!(find(wide, TRUTH).map(|(length, _)| length), Some(24));
        assert_eq!(find(&wide[4..], TRUTH).map(|(length, _)| length), Some(20));
    }

    #[test]
    fn a_lie_is_believed_only_if_it_is_signed_and_a_record_follows() {
        let lie = b"PK\x07\x08\x09\0\0\0\x02\0\0\0\0\0\0\0PK\x01\x02xxxxxxxx";
        assert_eq!(find(lie, TRUTH).map(|(length, found)| (length, found.crc)), Some((16, 9)));
        assert_eq!(find(&lie[4..], TRUTH), None);
    }
}
