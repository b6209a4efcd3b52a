//! XXH32 with seed 0, fed in pieces (xxHash fast digest algorithm, version 0.1.1).

use crate::frame::codec::le32;

const PRIMES: [u32; 5] = [0x9e37_79b1, 0x85eb_ca77, 0xc2b2_ae3d, 0x27d4_eb2f, 0x1656_67b1];
const STRIPE_BYTES: usize = 16;

/// A sum under way.
#[derive(Clone)]
pub(super) struct XxHash32 {
    lanes: [u32; 4],
    /// Bytes that do not make a stripe yet.
    rest: [u8; STRIPE_BYTES],
    length: u64,
}

impl Default for XxHash32 {
    fn default() -> XxHash32 {
        let lanes = [PRIMES[0].wrapping_add(PRIMES[1]), PRIMES[1], 0, 0u32.wrapping_sub(PRIMES[0])];
        XxHash32 { lanes, rest: [0; STRIPE_BYTES], length: 0 }
    }
}

impl XxHash32 {
    /// The sum of `bytes`.
    pub fn of(bytes: &[u8]) -> u32 {
        let mut sum = XxHash32::default();
        sum.update(bytes);
        sum.sum()
    }

    pub fn update(&mut self, bytes: &[u8]) {
        let have = self.rest_bytes();
        self.length += bytes.len() as u64;
        let (first, bytes) = bytes.split_at(bytes.len().min(STRIPE_BYTES - have));
        self.rest[have..have + first.len()].copy_from_slice(first);
        if have + first.len() < STRIPE_BYTES {
            return;
        }
        self.stripe(self.rest);
        let (stripes, rest) = bytes.as_chunks();
        stripes.iter().for_each(|&stripe| self.stripe(stripe));
        self.rest[..rest.len()].copy_from_slice(rest);
    }

    const fn rest_bytes(&self) -> usize {
        (self.length % STRIPE_BYTES as u64) as usize
    }

    fn stripe(&mut self, stripe: [u8; STRIPE_BYTES]) {
        for (lane, at) in self.lanes.iter_mut().zip([0, 4, 8, 12]) {
            let mixed = lane.wrapping_add(le32(&stripe, at).wrapping_mul(PRIMES[1]));
            *lane = mixed.rotate_left(13).wrapping_mul(PRIMES[0]);
        }
    }

    /// The sum of all that was fed.
    pub fn sum(&self) -> u32 {
        let [a, b, c, d] = self.lanes;
        let start = match self.length {
            0..16 => PRIMES[4],
            _ => a
                .rotate_left(1)
                .wrapping_add(b.rotate_left(7))
                .wrapping_add(c.rotate_left(12))
                .wrapping_add(d.rotate_left(18)),
        };
        let mut sum = start.wrapping_add(self.length as u32);
        let (words, bytes) = self.rest[..self.rest_bytes()].as_chunks::<4>();
        for word in words {
            sum = sum.wrapping_add(le32(word, 0).wrapping_mul(PRIMES[2]));
            sum = sum.rotate_left(17).wrapping_mul(PRIMES[3]);
        }
        for &byte in bytes {
            sum = sum.wrapping_add(u32::from(byte).wrapping_mul(PRIMES[4]));
            sum = sum.rotate_left(11).wrapping_mul(PRIMES[0]);
        }
        sum = (sum ^ sum >> 15).wrapping_mul(PRIMES[1]);
        sum = (sum ^ sum >> 13).wrapping_mul(PRIMES[2]);
        sum ^ sum >> 16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_gives_the_known_sums() {
        assert_eq!(XxHash32::of(b""), 0x02cc_5d05);
        assert_eq!(XxHash32::of(b"abc"), 0x32d1_53ff);
        assert_eq!(XxHash32::of(b"Nobody inspects the spammish repetition"), 0xe229_3b2f);
    }

    #[test]
    fn pieces_sum_to_the_same() {
        let bytes: Vec<u8> = (0..=255).collect();
        for piece in [1, 3, 15, 16, 17, 100] {
            let mut sum = XxHash32::default();
            bytes.chunks(piece).for_each(|piece| sum.update(piece));
            assert_eq!(sum.sum(), XxHash32::of(&bytes), "{piece}");
        }
    }
}
