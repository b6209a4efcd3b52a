//! Bytes that wait: they come at the end and are taken from the front.

use alloc::vec::Vec;

/// What waits, behind what has been taken and not cleared away yet.
#[derive(Debug)]
pub(crate) struct Waiting {
    bytes: Vec<u8>,
    taken: usize,
}

impl Waiting {
    /// Room for so many bytes; it grows where that is not enough.
    pub(crate) fn with_room(bytes: usize) -> Waiting {
        Waiting { bytes: Vec::with_capacity(bytes), taken: 0 }
    }

    /// What waits.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[self.taken..]
    }

    /// How much that is.
    pub(crate) const fn len(&self) -> usize {
        self.bytes.len() - self.taken
    }

    /// More waits. What has been taken is cleared away before more room is made.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.bytes.len() + bytes.len() > self.bytes.capacity() {
            self.bytes.drain(..core::mem::take(&mut self.taken));
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The first `count` bytes wait no more.
    pub(crate) fn take(&mut self, count: usize) -> &[u8] {
        self.taken += count;
        &self.bytes[self.taken - count..self.taken]
    }

    /// The room, with nothing in it.
    pub(crate) fn cleared(mut self) -> Waiting {
        self.bytes.clear();
        self.taken = 0;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_comes_in_order_and_room_is_used_again() {
        let mut waiting = Waiting::with_room(32);
        let (mut next, mut expected) = (0_u8, 0_u8);
        for round in 0..250 {
            let bytes: Vec<u8> = (0..round % 7).map(|n| next.wrapping_add(n)).collect();
            next = next.wrapping_add(round % 7);
            waiting.push(&bytes);
            for &byte in waiting.take(waiting.len() / 2) {
                assert_eq!(byte, expected);
                expected = expected.wrapping_add(1);
            }
            assert_eq!(waiting.bytes.capacity(), 32);
        }
        assert_eq!(waiting.cleared().len(), 0);
    }
}
