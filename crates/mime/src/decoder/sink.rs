//! Where decoded bytes go: the window, and what of one item does not fit there any more.

use alloc::vec::Vec;

use stream::Window;

/// Decoded bytes that found no room. No more than one item of a coding decodes to (998 blanks of a line).
#[derive(Debug, Clone, Default)]
pub(crate) struct Spill {
    bytes: Vec<u8>,
    at: usize,
}

/// The window with the spill behind it.
#[derive(Debug)]
pub(crate) struct Sink<'a> {
    window: &'a mut Window,
    spill: &'a mut Spill,
}

impl Spill {
    pub(crate) const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Moves as much as fits to the window. Returns whether there were any bytes.
    pub(crate) fn flush(&mut self, window: &mut Window) -> bool {
        if self.bytes.is_empty() {
            return false;
        }
        self.at += window.push(&self.bytes[self.at..]);
        if self.at == self.bytes.len() {
            self.bytes.clear();
            self.at = 0;
        }
        true
    }
}

impl<'a> Sink<'a> {
    pub(crate) const fn new(window: &'a mut Window, spill: &'a mut Spill) -> Sink<'a> {
        Sink { window, spill }
    }

    /// Whether nothing more should be decoded now.
    pub(crate) fn is_full(&self) -> bool {
        self.window.room() == 0 || !self.spill.is_empty()
    }

    /// Writes one item, however little room there is.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let fit = match self.spill.is_empty() {
            true => self.window.push(bytes),
            false => 0,
        };
        self.spill.bytes.extend_from_slice(&bytes[fit..]);
    }

    /// The room in the window, to be written from its front.
    pub(crate) fn spare(&mut self) -> &mut [u8] {
        self.window.spare()
    }

    pub(crate) fn wrote(&mut self, count: usize) {
        self.window.wrote(count);
    }
}
