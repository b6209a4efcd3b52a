//! Packets: found by their length before anybody looks into them. The body is never collected.

use alloc::vec::Vec;

/// The most data of a packet that is collected: a header field of the largest size that Sendmail hands out, and its name.
const DATA_BYTES_MAX: u32 = 128 << 10;

/// The most data of a body packet: the largest that can be agreed on (1 MiB), and to spare.
const BODY_BYTES_MAX: u32 = 2 << 20;

/// Result of reading a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Packet {
    /// It goes on.
    Unfinished,
    /// A whole packet: its letter and its data.
    Whole(u8, Vec<u8>),
    /// The bytes just taken are of the message's body, and whether its packet ends with them.
    Body {
        /// How many.
        bytes: usize,
        /// Whether the packet ends here.
        last: bool,
    },
    /// No packet of this protocol.
    Broken(&'static str),
}

/// Finds packets in what comes.
#[derive(Debug, Clone, Default)]
pub struct PacketReader {
    head: Vec<u8>,
    data: Vec<u8>,
    /// Data of the packet under way that has not come.
    left: Option<u32>,
}

impl PacketReader {
    /// Takes a prefix of `input`. Of a body packet the bytes are the last that were taken.
    pub fn take(&mut self, input: &[u8]) -> (usize, Packet) {
        let mut taken = 0;
        if self.left.is_none() {
            taken = input.len().min(5 - self.head.len());
            self.head.extend_from_slice(&input[..taken]);
            let Ok([a, b, c, d, letter]) = <[u8; 5]>::try_from(self.head.as_slice()) else {
                return (taken, Packet::Unfinished);
            };
            let Some(length) = u32::from_be_bytes([a, b, c, d]).checked_sub(1) else {
                return (taken, Packet::Broken("an empty packet"));
            };
            if length > if letter == b'B' { BODY_BYTES_MAX } else { DATA_BYTES_MAX } {
                return (taken, Packet::Broken("a packet is too long"));
            }
            self.left = Some(length);
            if letter == b'B' && length > 0 {
                return (taken, Packet::Unfinished);
            }
        }
        let letter = self.head.last().copied().unwrap_or_default();
        let left = self.left.unwrap_or(0);
        let rest = &input[taken..];
        let count = usize::try_from(left).map_or(rest.len(), |left| left.min(rest.len()));
        let left = left - count as u32;
        self.left = Some(left);
        if letter == b'B' {
            if left > 0 && count == 0 {
                return (taken, Packet::Unfinished);
            }
            if left == 0 {
                self.next();
            }
            return (taken + count, Packet::Body { bytes: count, last: left == 0 });
        }
        self.data.extend_from_slice(&rest[..count]);
        if left > 0 {
            return (taken + count, Packet::Unfinished);
        }
        let data = core::mem::take(&mut self.data);
        self.next();
        (taken + count, Packet::Whole(letter, data))
    }

    fn next(&mut self) {
        self.left = None;
        self.head.clear();
    }
}

/// Appends a packet.
pub(super) fn write(out: &mut Vec<u8>, letter: u8, data: &[&[u8]]) {
    let length = data.iter().map(|piece| piece.len()).sum::<usize>() + 1;
    out.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
    out.push(letter);
    data.iter().for_each(|piece| out.extend_from_slice(piece));
}

/// Modifications of a message that were negotiated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Changes(pub(super) u32);

impl Changes {
    pub(super) const ADD_FIELDS: u32 = 0x01;
    pub(super) const BODY: u32 = 0x02;
    pub(super) const FIELDS: u32 = 0x10;
    pub(super) const QUARANTINE: u32 = 0x20;

    /// Whether fields may be added to the header.
    pub const fn may_add_fields(self) -> bool {
        self.0 & Changes::ADD_FIELDS != 0
    }

    /// Whether fields of the header may be changed and deleted.
    pub const fn may_change_fields(self) -> bool {
        self.0 & Changes::FIELDS != 0
    }

    /// Whether the body may be replaced.
    pub const fn may_replace_body(self) -> bool {
        self.0 & Changes::BODY != 0
    }

    /// Whether the message may be held by the server.
    pub const fn may_quarantine(self) -> bool {
        self.0 & Changes::QUARANTINE != 0
    }
}
