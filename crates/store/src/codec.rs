//! Numbers and names in records: LEB128 numbers, names after their length.
//!
//! Input is checked against its own length: no stated length allocates more than the bytes that follow it.

use alloc::vec::Vec;

/// Bytes that are no such thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed;

pub(crate) fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Where encoded values are read from.
pub(crate) trait Source {
    fn byte(&mut self) -> Result<u8, Malformed>;

    /// The next `length` bytes. Allocates no more than there are.
    fn take(&mut self, length: usize) -> Result<Vec<u8>, Malformed>;

    /// Whether nothing is left.
    fn is_at_end(&self) -> bool;

    fn number(&mut self) -> Result<u64, Malformed> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(Malformed);
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Malformed)
    }

    fn u32(&mut self) -> Result<u32, Malformed> {
        u32::try_from(self.number()?).map_err(|_| Malformed)
    }

    /// A name of at most `bytes_max`.
    fn name(&mut self, bytes_max: usize) -> Result<Vec<u8>, Malformed> {
        let length = usize::try_from(self.number()?).map_err(|_| Malformed)?;
        if length > bytes_max { Err(Malformed) } else { self.take(length) }
    }
}

impl Source for &[u8] {
    fn byte(&mut self) -> Result<u8, Malformed> {
        let (&first, rest) = self.split_first().ok_or(Malformed)?;
        *self = rest;
        Ok(first)
    }

    fn take(&mut self, length: usize) -> Result<Vec<u8>, Malformed> {
        let (taken, rest) = self.split_at_checked(length).ok_or(Malformed)?;
        *self = rest;
        Ok(taken.to_vec())
    }

    fn is_at_end(&self) -> bool {
        self.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_and_long_ones_are_refused() {
        for number in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            let mut out = Vec::new();
            put(&mut out, number);
            assert_eq!(out.as_slice().number(), Ok(number));
            assert_eq!((&out[..out.len() - 1]).number(), Err(Malformed));
        }
        assert_eq!((&[0xff; 9][..]).number(), Err(Malformed));
        assert_eq!((&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2][..]).number(), Err(Malformed));
        assert_eq!((&[200, 1, 0][..]).name(1000), Err(Malformed));
    }
}
