//! Bytes that a reader took, could not use and gave back: a queue before the input.
//!
//! The zip reader feeds them through its states again before any byte of the input, whatever state comes next. Neither
//! the giver nor the reader has to know the other.
//!
//! Bounds: the bytes that one reader may collect before it decides. No input is taken while bytes wait here, so they
//! cannot pile up: 64 bytes, 4 KiB while a name found by a search is judged, 4 KiB that LZMA and PPMd read ahead, the
//! data of an encrypted member by which passwords are judged (see `lock`).

/// Bytes to be read again.
#[derive(Default)]
pub(super) struct Held {
    bytes: Vec<u8>,
    /// How many of them have been read again.
    read: usize,
}

impl Held {
    pub const fn is_empty(&self) -> bool {
        self.read == self.bytes.len()
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes[self.read..]
    }

    /// Puts `bytes` before the held ones, which were read after them.
    pub fn give_back(&mut self, bytes: &[u8]) {
        match self.read.checked_sub(bytes.len()) {
            Some(start) => {
                self.bytes[start..self.read].copy_from_slice(bytes);
                self.read = start;
            }
            None => {
                self.bytes.splice(..self.read, bytes.iter().copied());
                self.read = 0;
            }
        }
    }

    /// Appends `older` to the held bytes, without its first `taken` bytes, which have been read.
    pub fn join(&mut self, mut older: Held, taken: usize) {
        older.read = older.read.saturating_add(taken).min(older.bytes.len());
        older.give_back(self.bytes());
        *self = if older.is_empty() { Held::default() } else { older };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_back_last_is_read_first() {
        let mut held = Held::default();
        held.give_back(b"cd");
        held.give_back(b"ab");
        assert_eq!(held.bytes(), b"abcd");
    }

    #[test]
    fn what_is_given_back_while_held_bytes_are_read_stands_in_front_of_the_rest() {
        let mut held = Held::default();
        held.give_back(b"abcdef");
        let older = std::mem::take(&mut held);
        held.give_back(b"cd");
        held.join(older, 4);
        assert_eq!(held.bytes(), b"cdef");
    }
}
