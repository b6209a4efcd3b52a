//! Messages in a TCP stream: two bytes of length before each (RFC 7766 section 8).

use alloc::vec::Vec;

/// Cuts a stream into messages.
#[derive(Debug, Clone)]
pub struct Frames {
    bytes: Vec<u8>,
    message_bytes_max: usize,
    overflowed: bool,
}

impl Frames {
    /// For messages of at most so many bytes. A longer one ends the stream: what follows it is not looked at.
    pub const fn new(message_bytes_max: usize) -> Frames {
        Frames { bytes: Vec::new(), message_bytes_max, overflowed: false }
    }

    /// Takes a prefix of `input`, as much as one message may have, and returns how many bytes.
    pub fn feed(&mut self, input: &[u8]) -> usize {
        let room = (self.message_bytes_max + 2).saturating_sub(self.bytes.len());
        let taken = input.len().min(room);
        self.bytes.extend_from_slice(&input[..taken]);
        taken
    }

    /// The next whole message. To be called until there is none before more is fed.
    #[allow(clippy::should_implement_trait, reason = "more may come after there is none")]
    pub fn next(&mut self) -> Option<Vec<u8>> {
        let (length, _) = self.bytes.split_first_chunk::<2>()?;
        let len = usize::from(u16::from_be_bytes(*length));
        if len > self.message_bytes_max {
            self.overflowed = true;
            self.bytes.clear();
            return None;
        }
        let message = self.bytes.get(2..2 + len)?.to_vec();
        self.bytes.drain(..2 + len);
        Some(message)
    }

    /// Whether a message was longer than allowed: the connection is to be closed.
    pub const fn has_overflowed(&self) -> bool {
        self.overflowed
    }
}

/// A message with its length before it; `None` if it is longer than a frame can be.
pub fn frame(message: &[u8]) -> Option<Vec<u8>> {
    let length = u16::try_from(message.len()).ok()?;
    Some([&length.to_be_bytes()[..], message].concat())
}
