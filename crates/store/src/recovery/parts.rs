//! Reads the parts of a checkpoint as one source of bytes.

use alloc::vec::Vec;

use super::Attempt;
use crate::codec::{Malformed, Source};
use crate::device::Device;
use crate::record::{self, HEADER_BYTES, Header, Kind, SECTOR_BYTES};
use crate::superblock::Root;

/// The parts of a checkpoint, one behind the other.
pub(super) struct Parts<'a, 'b, D> {
    pub(super) attempt: &'b Attempt<'a, D>,
    pub(super) root: Root,
    pub(super) chain: &'b [u32],
    /// Position of the next part.
    pub(super) position: u64,
    /// Offset in the held part up to which it was taken.
    pub(super) at: usize,
    pub(super) held: Vec<u8>,
    pub(super) index: u32,
    pub(super) is_last: bool,
    pub(super) bytes: u64,
}

impl<D: Device> Parts<'_, '_, D> {
    fn refill(&mut self) -> Result<(), Malformed> {
        if self.is_last {
            return Err(Malformed);
        }
        let header = match self.header(self.position) {
            Some(header) => header,
            None => {
                // A part that did not fit into its segment begins the next one.
                let geometry = &self.attempt.geometry;
                let segment = geometry.segment_of(self.position.saturating_sub(1)).ok_or(Malformed)?;
                let at = self.chain.iter().position(|&number| number == segment).ok_or(Malformed)?;
                let next = *self.chain.get(at + 1).ok_or(Malformed)?;
                self.position = geometry.segment_at(next) + SECTOR_BYTES as u64;
                self.header(self.position).ok_or(Malformed)?
            }
        };
        if header.length > self.attempt.geometry.piece_bytes {
            return Err(Malformed);
        }
        self.held.resize(header.length as usize, 0);
        self.attempt.device.read_at(self.position + HEADER_BYTES as u64, &mut self.held).map_err(|_| Malformed)?;
        let volume = self.attempt.geometry.volume();
        if record::payload_checksum(volume, header.epoch, &self.held) != header.payload_checksum {
            return Err(Malformed);
        }
        self.position += header.stored_bytes();
        self.bytes += header.stored_bytes();
        (self.at, self.index, self.is_last) = (0, self.index + 1, header.last);
        Ok(())
    }

    fn header(&self, position: u64) -> Option<Header> {
        let mut bytes = [0; HEADER_BYTES];
        self.attempt.device.read_at(position, &mut bytes).ok()?;
        let header = Header::decode(&bytes, self.attempt.geometry.volume(), position)?;
        let is_next = header.kind == Kind::Checkpoint
            && (header.subject, header.index) == (self.root.number, self.index)
            && header.sequence.checked_sub(self.root.sequence) == Some(u64::from(self.index));
        is_next.then_some(header)
    }
}

impl<D: Device> Source for Parts<'_, '_, D> {
    fn byte(&mut self) -> Result<u8, Malformed> {
        while self.at >= self.held.len() {
            self.refill()?;
        }
        self.at += 1;
        self.held.get(self.at - 1).copied().ok_or(Malformed)
    }

    fn take(&mut self, length: usize) -> Result<Vec<u8>, Malformed> {
        let mut taken = Vec::new();
        while taken.len() < length {
            if self.at >= self.held.len() {
                self.refill()?;
                continue;
            }
            let rest = &self.held[self.at..];
            let more = rest.len().min(length - taken.len());
            taken.extend_from_slice(&rest[..more]);
            self.at += more;
        }
        Ok(taken)
    }

    fn is_at_end(&self) -> bool {
        self.is_last && self.at >= self.held.len()
    }
}
