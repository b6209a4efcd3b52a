//! Reading a message at any offset, from wherever its pieces are. Each piece is checked before a byte of it is handed out.
//!
//! A reader needs the device, the geometry and a [`Message`] of some snapshot, and nothing of the writer.

use alloc::vec;
use alloc::vec::Vec;

use crate::device::Device;
use crate::error::{Damaged, Error};
use crate::record::{self, HEADER_BYTES, Header, Kind};
use crate::state::Message;
use crate::superblock::Geometry;

/// A message being read: holds one piece of it.
#[derive(Debug, Clone)]
pub struct Content {
    number: u64,
    message: Message,
    /// The record of the piece, behind its header.
    record: Vec<u8>,
    /// Where that piece begins in the message.
    held: Option<u64>,
}

impl Content {
    /// A reader of this message.
    pub fn new(number: u64, message: &Message) -> Self {
        Content { number, message: message.clone(), record: Vec::new(), held: None }
    }

    /// The message.
    pub fn message(&self) -> &Message {
        &self.message
    }

    /// Reads from `offset`, as much as there is room for in `buffer` and held in one piece; 0 at the end. Fails as
    /// [`Content::hold`] does.
    pub fn read_at<D: Device>(
        &mut self,
        device: &D,
        geometry: &Geometry,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<usize, Error> {
        if buffer.is_empty() {
            return Ok(0);
        }
        self.hold(device, geometry, offset)?;
        let rest = self.held(offset);
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        Ok(length)
    }

    /// Reads the piece at `offset`, if it is not held. [`Error::Moved`]: the place holds something else, or is damaged;
    /// look the message up again, and if its place is the same it is damaged.
    pub fn hold<D: Device>(&mut self, device: &D, geometry: &Geometry, offset: u64) -> Result<(), Error> {
        if offset >= self.message.size {
            return Ok(());
        }
        let piece_bytes = u64::from(geometry.piece_bytes);
        let first = offset - offset % piece_bytes;
        if self.held == Some(first) {
            return Ok(());
        }
        self.held = None;
        let index = u32::try_from(offset / piece_bytes).map_err(|_| Error::Moved)?;
        let position = self.message.place.piece(index, geometry.stride()).ok_or(Error::Moved)?;
        let length = self.message.piece_length(index, geometry.piece_bytes);
        let wanted = Wanted { kind: Kind::Piece, number: self.number, index, length };
        wanted.read(device, geometry, position, &mut self.record)?;
        self.held = Some(first);
        Ok(())
    }

    /// The held bytes from `offset` to the end of its piece. Empty if that piece is not held, and at the end.
    pub fn held(&self, offset: u64) -> &[u8] {
        let within = self.held.and_then(|first| usize::try_from(offset.checked_sub(first)?).ok());
        let from = within.and_then(|within| within.checked_add(HEADER_BYTES));
        from.and_then(|from| self.record.get(from..)).unwrap_or_default()
    }
}

/// Returns the digest that the host stored with a message; empty without one.
pub fn digest<D: Device>(device: &D, geometry: &Geometry, number: u64, message: &Message) -> Result<Vec<u8>, Error> {
    if message.digest == 0 {
        return Ok(Vec::new());
    }
    let wanted = Wanted { kind: Kind::Digest, number, index: 0, length: u64::from(message.digest_bytes) };
    let mut record = Vec::new();
    wanted.read(device, geometry, message.digest, &mut record)?;
    record.drain(..HEADER_BYTES);
    Ok(record)
}

struct Wanted {
    kind: Kind,
    number: u64,
    index: u32,
    length: u64,
}

impl Wanted {
    /// Reads the record at `position`, if that is the one: its payload is behind [`HEADER_BYTES`].
    fn read<D: Device>(
        &self,
        device: &D,
        geometry: &Geometry,
        position: u64,
        record: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let what = match self.kind {
            Kind::Digest => Damaged::Digest(self.number),
            _ => Damaged::Message(self.number),
        };
        let length = usize::try_from(self.length).ok().filter(|_| self.length <= u64::from(geometry.piece_bytes));
        let length = length.ok_or(Error::damaged(what, position))?;
        let end = position.checked_add((HEADER_BYTES + length) as u64).ok_or(Error::Moved)?;
        if end > device.len() {
            return Err(Error::Moved);
        }
        if record.len() != HEADER_BYTES + length {
            // An allocator has zeroes faster than a loop.
            *record = vec![0; HEADER_BYTES + length];
        }
        device.read_at(position, record)?;
        let header = Header::decode(record, geometry.volume(), position).ok_or(Error::Moved)?;
        if (header.kind, header.subject, header.index) != (self.kind, self.number, self.index)
            || u64::from(header.length) != self.length
        {
            return Err(Error::Moved);
        }
        match record::payload_checksum(geometry.volume(), header.epoch, &record[HEADER_BYTES..])
            == header.payload_checksum
        {
            true => Ok(()),
            false => Err(Error::damaged(what, position)),
        }
    }
}
