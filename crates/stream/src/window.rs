//! A byte buffer of fixed capacity between a writer and a reader.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use alloc::boxed::Box;
use alloc::vec;

/// A buffer that is filled at its end and emptied from its front. It never grows and refuses what does not fit. It has memory from
/// its first byte on, until it is empty and [rests](Window::rest).
#[derive(Debug, Clone)]
pub struct Window {
    /// Nothing, or as many bytes as its capacity.
    bytes: Box<[u8]>,
    capacity: usize,
    start: usize,
    end: usize,
}

impl Window {
    /// A window that holds at most `capacity` bytes.
    pub fn with_capacity(capacity: usize) -> Window {
        Window { bytes: Box::default(), capacity, start: 0, end: 0 }
    }

    /// Frees its memory if it is empty: who waits for more needs none. The next byte allocates it again.
    pub fn rest(&mut self) {
        if self.is_empty() {
            self.clear();
            self.bytes = Box::default();
        }
    }

    /// How many bytes it can hold in all.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// How many more bytes fit.
    pub fn room(&self) -> usize {
        self.capacity.saturating_sub(self.len())
    }

    /// How many bytes wait to be taken.
    pub fn len(&self) -> usize {
        self.end.saturating_sub(self.start)
    }

    /// Whether nothing waits to be taken.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// The bytes that wait to be taken.
    pub fn filled(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// The free space, to be written from its front and then announced by [`Window::wrote`].
    pub fn spare(&mut self) -> &mut [u8] {
        self.compact();
        if self.bytes.is_empty() {
            self.bytes = vec![0; self.capacity].into_boxed_slice();
        }
        &mut self.bytes[self.end..]
    }

    /// Says that the first `count` bytes of [`Window::spare`] have been written.
    ///
    /// # Panics
    /// If more is announced than there was room for: a mistake of the caller.
    pub fn wrote(&mut self, count: usize) {
        assert!(count <= self.bytes.len().saturating_sub(self.end), "wrote more than the window has room for");
        self.end = self.end.saturating_add(count);
    }

    /// Copies as much of `bytes` as fits and returns how much that was.
    pub fn push(&mut self, bytes: &[u8]) -> usize {
        let count = bytes.len().min(self.room());
        if count == 0 {
            return 0;
        }
        self.spare()[..count].copy_from_slice(&bytes[..count]);
        self.end = self.end.saturating_add(count);
        count
    }

    /// Removes `count` bytes from the front.
    ///
    /// # Panics
    /// Fewer bytes are present, by a mistake of the caller.
    pub fn take(&mut self, count: usize) {
        assert!(count <= self.len(), "took more than the window holds");
        self.start = self.start.saturating_add(count);
        if self.start == self.end {
            self.clear();
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.start = 0;
        self.end = 0;
    }

    /// Moves the bytes to the front, so that all free space follows them.
    fn compact(&mut self) {
        if self.start == 0 {
            return;
        }
        self.bytes.copy_within(self.start..self.end, 0);
        self.end = self.end.saturating_sub(self.start);
        self.start = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_pushed_is_taken_in_order_and_the_rest_is_refused() {
        let mut window = Window::with_capacity(4);
        assert_eq!(window.push(b"abcdef"), 4);
        assert_eq!(window.filled(), b"abcd");
        window.take(3);
        assert_eq!(window.push(b"efgh"), 3);
        assert_eq!(window.filled(), b"defg");
        assert_eq!(window.room(), 0);
    }

    #[test]
    fn the_spare_space_is_whole_after_a_partial_take() {
        let mut window = Window::with_capacity(4);
        window.push(b"abcd");
        window.take(2);
        assert_eq!(window.spare().len(), 2);
        window.spare()[0] = b'x';
        window.wrote(1);
        assert_eq!(window.filled(), b"cdx");
    }

    #[test]
    fn an_empty_window_that_rests_has_no_memory_and_takes_as_much_as_before() {
        let mut window = Window::with_capacity(4);
        assert!(window.bytes.is_empty());
        window.push(b"abc");
        window.rest();
        assert_eq!(window.filled(), b"abc");
        window.take(3);
        window.rest();
        assert!(window.bytes.is_empty());
        assert_eq!((window.capacity(), window.room(), window.filled()), (4, 4, &b""[..]));
        assert_eq!(window.push(b"defgh"), 4);
        assert_eq!(window.filled(), b"defg");
    }

    #[test]
    #[should_panic(expected = "wrote more")]
    fn announcing_more_than_was_there_is_a_mistake() {
        Window::with_capacity(2).wrote(3);
    }
}
