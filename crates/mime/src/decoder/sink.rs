//! Where decoded bytes go: the window, and what of one item does not fit there any more.

use alloc::vec::Vec;

use stream::Window;

/// Decoded bytes that found no room. No more than one item of a coding decodes to (a run of 256 bytes).
#[derive(Debug, Clone, Default)]
pub(super) struct Spill {
    bytes: Vec<u8>,
    at: usize,
}

/// The window with the spill behind it.
#[derive(Debug)]
pub(super) struct Sink<'a> {
    window: &'a mut Window,
    spill: &'a mut Spill,
}

impl Spill {
    pub(super) const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Moves what fits to the window; whether anything was there.
    pub(super) fn flush(&mut self, window: &mut Window) -> bool {
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
    pub(super) const fn new(window: &'a mut Window, spill: &'a mut Spill) -> Sink<'a> {
        Sink { window, spill }
    }

    /// Whether nothing more should be decoded now.
    pub(super) fn is_full(&self) -> bool {
        self.window.room() == 0 || !self.spill.is_empty()
    }

    /// Writes one item, however little room there is.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let fit = match self.spill.is_empty() {
            true => self.window.push(bytes),
            false => 0,
        };
        self.spill.bytes.extend_from_slice(&bytes[fit..]);
    }

    /// The room in the window, to be written from its front.
    pub(super) fn spare(&mut self) -> &mut [u8] {
        self.window.spare()
    }

    pub(super) fn wrote(&mut self, count: usize) {
        self.window.wrote(count);
    }
}
