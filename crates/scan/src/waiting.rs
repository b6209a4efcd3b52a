//! Bytes that wait: they come at the end and are taken from the front.

/// What waits, behind what has been taken and not cleared away yet.
#[derive(Debug, Clone, Default)]
pub(crate) struct Waiting {
    bytes: Vec<u8>,
    taken: usize,
}

impl Waiting {
    /// What waits.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[self.taken..]
    }

    /// How much that is.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() - self.taken
    }

    /// More waits. What has been taken is cleared away once there would be no room.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.bytes.len() + bytes.len() > self.bytes.capacity() {
            self.clear_taken();
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The first `count` bytes wait no more.
    pub(crate) fn pass(&mut self, count: usize) {
        self.taken += count;
        debug_assert!(self.taken <= self.bytes.len());
    }

    /// Keeps room for no more than `room` bytes, or for what waits.
    pub(crate) fn shrink_to(&mut self, room: usize) {
        self.clear_taken();
        self.bytes.shrink_to(room);
    }

    fn clear_taken(&mut self) {
        self.bytes.drain(..std::mem::take(&mut self.taken));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_comes_in_order_and_room_is_used_again() {
        let mut waiting = Waiting::default();
        let (mut next, mut expected) = (0_u8, 0_u8);
        for round in 0..250 {
            let bytes: Vec<u8> = (0..round % 7).map(|n| next.wrapping_add(n)).collect();
            next = next.wrapping_add(round % 7);
            waiting.push(&bytes);
            let count = waiting.len() / 2;
            for &byte in &waiting.bytes()[..count] {
                assert_eq!(byte, expected);
                expected = expected.wrapping_add(1);
            }
            waiting.pass(count);
            assert!(waiting.bytes.capacity() <= 64, "{}", waiting.bytes.capacity());
        }
        waiting.shrink_to(0);
        assert_eq!(waiting.bytes.capacity(), waiting.len());
    }
}
