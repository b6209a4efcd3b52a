//! A message being read, wherever compaction moves it meanwhile. Holds one piece of it.

use store::{Content, Error, Refused};

use crate::file::Cached;
use crate::header::end_of_header;
use crate::writer::Handle;

/// How often a message may be found to have moved in one read.
const MOVES_MAX: usize = 3;

/// The content of a message.
pub struct Body<'a> {
    handle: &'a Handle,
    number: u64,
    content: Content,
}

impl<'a> Body<'a> {
    /// The message with this number; none if no mailbox has it any more.
    pub fn open(handle: &'a Handle, number: u64) -> Option<Body<'a>> {
        let content = Content::new(number, &handle.message(number)?);
        Some(Body { handle, number, content })
    }

    /// Its size, in bytes.
    pub fn size(&self) -> u64 {
        self.content.message().size
    }

    /// Reads from `offset`, as much as is there and there is room for; 0 at the end.
    ///
    /// # Errors
    /// When it is damaged, or no mailbox has it any more.
    pub fn read(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        let rest = self.piece(offset)?;
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        Ok(length)
    }

    /// Reads all of it, and what was derived of it when it was stored.
    ///
    /// # Errors
    /// As [`Body::read`].
    pub fn verify(&mut self) -> Result<(), Error> {
        let mut offset = 0;
        while offset < self.size() {
            offset += self.piece(offset)?.len() as u64;
        }
        digest(self.handle, self.number).map(drop)
    }

    /// As [`Body::read`] for a session, which keeps others waiting: what is in memory is read at once, and for the disk it waits apart.
    ///
    /// # Errors
    /// As [`Body::read`].
    pub(crate) fn read_in_session(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        let cached = Cached(self.handle.device());
        match self.content.read_at(&cached, self.handle.geometry(), offset, buffer) {
            Ok(length) => Ok(length),
            Err(_) => tokio::task::block_in_place(|| self.read(offset, buffer)),
        }
    }

    /// Appends the header, its empty line included, or as much as `bytes_max` of what has none.
    ///
    /// # Errors
    /// As [`Body::read`]; what was read before is there.
    pub(crate) fn read_header(&mut self, bytes_max: usize, header: &mut Vec<u8>) -> Result<(), Error> {
        while header.len() < bytes_max {
            let piece = self.piece(header.len() as u64)?;
            let piece = &piece[..piece.len().min(bytes_max - header.len())];
            if piece.is_empty() {
                break;
            }
            // Of what is in one piece, which most are, no more is copied.
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

    /// What the piece at `offset` has from there on; nothing at the end.
    ///
    /// # Errors
    /// As [`Body::read`].
    pub(crate) fn piece(&mut self, offset: u64) -> Result<&[u8], Error> {
        for _ in 0..MOVES_MAX {
            match self.content.hold(self.handle.device(), self.handle.geometry(), offset) {
                Ok(()) => return Ok(self.content.held(offset)),
                Err(Error::Moved) => {}
                Err(error) => return Err(error),
            }
            let message = self.handle.message(self.number).ok_or(Refused::NoSuchMessage)?;
            self.content = Content::new(self.number, &message);
        }
        Err(Error::Moved)
    }
}

/// What was derived of a message when it was stored; empty if nothing.
pub fn digest(handle: &Handle, number: u64) -> Result<Vec<u8>, Error> {
    for _ in 0..MOVES_MAX {
        let message = handle.message(number).ok_or(Refused::NoSuchMessage)?;
        match store::digest(handle.device(), handle.geometry(), number, &message) {
            Err(Error::Moved) => {}
            outcome => return outcome,
        }
    }
    Err(Error::Moved)
}

/// The same, if it is in memory.
pub(crate) fn cached_digest(handle: &Handle, number: u64) -> Option<Vec<u8>> {
    let message = handle.message(number)?;
    store::digest(&Cached(handle.device()), handle.geometry(), number, &message).ok()
}
