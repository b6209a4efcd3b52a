//! The checksum of bzip2: that of gzip, with the bits of each byte and of the sum the other way round.

use zlib_rs::crc32::crc32;

/// A sum under way.
#[derive(Default)]
pub(super) struct Crc(u32);

impl Crc {
    pub fn update(&mut self, bytes: &[u8]) {
        let mut turned = [0; 512];
        for piece in bytes.chunks(turned.len()) {
            for (to, from) in turned.iter_mut().zip(piece) {
                *to = from.reverse_bits();
            }
            self.0 = crc32(self.0, &turned[..piece.len()]);
        }
    }

    /// The sum of all that was fed.
    pub const fn sum(&self) -> u32 {
        self.0.reverse_bits()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_the_usual_nine_digits() {
        let mut crc = Crc::default();
        crc.update(b"1234");
        crc.update(b"56789");
        assert_eq!(crc.sum(), 0xfc89_1918);
    }
}
