//! Bytes that a reader took, could not use and gave back: a queue in front of the input.
//!
//! The zip reader feeds them through its states again before any byte of the input, whatever state comes next. Whoever
//! gives back need not know who that is, and whoever reads need not know where its bytes come from.
//!
//! Bounds: what one reader may collect before it decides. Nothing is taken from the input while bytes wait here, so
//! that they cannot pile up: 64 bytes, 4 KiB while a name is judged that a search found, 4 KiB that LZMA and PPMd read ahead,
//! the data of an encrypted member by which passwords are judged (see `lock`).

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

    /// Puts `bytes` in front of what is held: they were read before it.
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

    /// Puts `older` behind what is held, except for its first `taken` bytes, which have been read.
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
