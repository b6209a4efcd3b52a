//! Messages of a store, read a piece at a time wherever the host has them.

use alloc::vec::Vec;

use store::Error;

use crate::header::end_of_header;

/// The messages of a host.
pub trait Messages {
    /// A message that is being read.
    type Reader<'a>: Reader
    where
        Self: 'a;

    /// Opens a message; `None` if no mailbox has it any more.
    fn reader(&self, message: u64) -> Option<Self::Reader<'_>>;

    /// The digest of a message, as it was stored with it; empty if nothing was.
    ///
    /// # Errors
    /// When it is damaged, or no mailbox has the message any more.
    fn digest(&self, message: u64) -> Result<Vec<u8>, Error>;
}

/// A message that is being read. Holds one piece of it.
pub trait Reader {
    /// The bytes of a piece from `offset` to its end; empty at the end of the message.
    ///
    /// # Errors
    /// When the message is damaged, or no mailbox has it any more.
    fn piece(&mut self, offset: u64) -> Result<&[u8], Error>;

    /// Reads from `offset`, as much as is there and there is room for; 0 at the end.
    ///
    /// # Errors
    /// As [`Reader::piece`].
    fn read(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        let rest = self.piece(offset)?;
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        Ok(length)
    }

    /// Appends the header, its empty line included, or as much as `bytes_max` of what has none.
    ///
    /// # Errors
    /// As [`Reader::piece`]; the bytes before the damage are there.
    fn read_header(&mut self, bytes_max: usize, header: &mut Vec<u8>) -> Result<(), Error> {
        while header.len() < bytes_max {
            let piece = self.piece(header.len() as u64)?;
            let piece = &piece[..piece.len().min(bytes_max - header.len())];
            if piece.is_empty() {
                break;
            }
            // Of a header that is in one piece, as most are, no more is copied.
            if let Some(end) = end_of_header(piece, 0).filter(|_| header.is_empty()) {
                header.extend_from_slice(&piece[..end]);
                break;
            }
            let from = header.len().saturating_sub(3);
            header.extend_from_slice(piece);
            if let Some(end) = end_of_header(header, from) {
                header.truncate(end);
                break;
            }
        }
        Ok(())
    }
}
