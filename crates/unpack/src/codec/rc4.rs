//! RC4, the cipher of old documents.

/// The RC4 key stream.
#[derive(Clone)]
pub(crate) struct Rc4 {
    state: [u8; 256],
    i: u8,
    j: u8,
}

impl Rc4 {
    /// Begins with a key that is not empty.
    pub fn new(key: &[u8]) -> Rc4 {
        let mut state: [u8; 256] = std::array::from_fn(|index| index as u8);
        let mut j = 0u8;
        for (i, &byte) in (0..256).zip(key.iter().cycle()) {
            j = j.wrapping_add(state[i]).wrapping_add(byte);
            state.swap(i, usize::from(j));
        }
        Rc4 { state, i: 0, j: 0 }
    }

    pub fn apply(&mut self, data: &mut [u8]) {
        for byte in data {
            self.i = self.i.wrapping_add(1);
            let (i, a) = (usize::from(self.i), self.state[usize::from(self.i)]);
            self.j = self.j.wrapping_add(a);
            self.state.swap(i, usize::from(self.j));
            *byte ^= self.state[usize::from(self.state[i].wrapping_add(a))];
        }
    }
}

/// Encrypts or decrypts all of `data`.
pub(crate) fn rc4(key: &[u8], data: &mut [u8]) {
    Rc4::new(key).apply(data);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rc4_agrees_with_its_published_vector() {
        let mut data = *b"Plaintext";
        rc4(b"Key", &mut data);
        assert_eq!(data, *b"\xbb\xf3\x16\xe8\xd9\x40\xaf\x0a\xd3");
    }
}
