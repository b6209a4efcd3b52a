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
    piece: Vec<u8>,
    held: Option<u32>,
}

impl Content {
    /// A reader of this message.
    pub fn new(number: u64, message: &Message) -> Self {
        Content { number, message: message.clone(), piece: Vec::new(), held: None }
    }

    /// The message.
    pub fn message(&self) -> &Message {
        &self.message
    }

    /// Reads from `offset`, as much as there is room for in `buffer` and held in one piece; 0 at the end. [`Error::Moved`]:
    /// what is there is something else, or damaged; look the message up again, and if it is where it was it is damaged.
    pub fn read_at<D: Device>(
        &mut self,
        device: &D,
        geometry: &Geometry,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<usize, Error> {
        if offset >= self.message.size || buffer.is_empty() {
            return Ok(0);
        }
        let index = u32::try_from(offset / u64::from(geometry.piece_bytes)).map_err(|_| Error::Moved)?;
        let within = (offset % u64::from(geometry.piece_bytes)) as usize;
        if self.held != Some(index) {
            self.held = None;
            let position = self.message.place.piece(index, geometry.stride()).ok_or(Error::Moved)?;
            let length = self.message.piece_length(index, geometry.piece_bytes);
            let wanted = Wanted { kind: Kind::Piece, number: self.number, index, length };
            self.piece = wanted.read(device, geometry, position)?;
            self.held = Some(index);
        }
        let rest = self.piece.get(within..).ok_or(Error::Moved)?;
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        Ok(length)
    }
}

/// What the host had derived of a message when it was stored; empty if nothing.
pub fn digest<D: Device>(device: &D, geometry: &Geometry, number: u64, message: &Message) -> Result<Vec<u8>, Error> {
    if message.digest == 0 {
        return Ok(Vec::new());
    }
    let wanted = Wanted { kind: Kind::Digest, number, index: 0, length: u64::from(message.digest_bytes) };
    wanted.read(device, geometry, message.digest)
}

struct Wanted {
    kind: Kind,
    number: u64,
    index: u32,
    length: u64,
}

impl Wanted {
    /// The payload of the record at `position`, if that is the one.
    fn read<D: Device>(&self, device: &D, geometry: &Geometry, position: u64) -> Result<Vec<u8>, Error> {
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
        let mut record = vec![0; HEADER_BYTES + length];
        device.read_at(position, &mut record)?;
        let header = Header::decode(&record, geometry.volume(), position).ok_or(Error::Moved)?;
        if (header.kind, header.subject, header.index) != (self.kind, self.number, self.index)
            || u64::from(header.length) != self.length
        {
            return Err(Error::Moved);
        }
        record.drain(..HEADER_BYTES);
        match record::payload_checksum(geometry.volume(), header.epoch, &record) == header.payload_checksum {
            true => Ok(record),
            false => Err(Error::damaged(what, position)),
        }
    }
}
