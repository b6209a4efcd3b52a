//! A message being read, wherever compaction moves it meanwhile. Holds one piece of it.

use keep::content::{Messages, Reader};
use store::{Content, Error, Message, Refused, State};

use crate::file::Cached;
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
        Some(Body::of(handle, number, &handle.message(number)?))
    }

    fn of(handle: &'a Handle, number: u64, message: &Message) -> Body<'a> {
        Body { handle, number, content: Content::new(number, message) }
    }

    /// Its size, in bytes.
    pub fn size(&self) -> u64 {
        self.content.message().size
    }

    /// Reads all of it, and what was derived of it when it was stored.
    ///
    /// # Errors
    /// As [`Reader::read`].
    pub fn verify(&mut self) -> Result<(), Error> {
        let mut offset = 0;
        while offset < self.size() {
            offset += self.piece(offset)?.len() as u64;
        }
        digest(self.handle, self.number).map(drop)
    }

    /// As [`Reader::read`] for a session, which keeps others waiting: what is in memory is read at once, and for the disk it waits apart.
    ///
    /// # Errors
    /// As [`Reader::read`].
    pub(crate) fn read_in_session(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        let cached = Cached(self.handle.device());
        match self.content.read_at(&cached, self.handle.geometry(), offset, buffer) {
            Ok(length) => Ok(length),
            Err(_) => tokio::task::block_in_place(|| self.read(offset, buffer)),
        }
    }
}

impl Reader for Body<'_> {
    fn piece(&mut self, offset: u64) -> Result<&[u8], Error> {
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

impl Messages for Handle {
    type Reader<'a> = Body<'a>;

    fn reader(&self, message: u64) -> Option<Body<'_>> {
        Body::open(self, message)
    }

    fn digest(&self, message: u64) -> Result<Vec<u8>, Error> {
        digest(self, message)
    }
}

/// Messages as they stood: one that was expunged since then is read from where it was, until something else is written there.
pub(crate) struct Standing<'a> {
    handle: &'a Handle,
    state: &'a State,
}

impl<'a> Standing<'a> {
    pub fn new(handle: &'a Handle, state: &'a State) -> Standing<'a> {
        Standing { handle, state }
    }

    fn message(&self, number: u64) -> Option<Message> {
        self.handle.message(number).or_else(|| self.state.message(number).cloned())
    }

    /// Digest of a message, if it is in memory.
    pub fn cached_digest(&self, number: u64) -> Option<Vec<u8>> {
        cached(self.handle, number, &self.message(number)?)
    }
}

impl Messages for Standing<'_> {
    type Reader<'a>
        = Body<'a>
    where
        Self: 'a;

    fn reader(&self, message: u64) -> Option<Body<'_>> {
        Some(Body::of(self.handle, message, &self.message(message)?))
    }

    fn digest(&self, message: u64) -> Result<Vec<u8>, Error> {
        digest_of(self.handle, message, || self.message(message))
    }
}

/// Digest of a stored message; empty if it has none.
pub fn digest(handle: &Handle, number: u64) -> Result<Vec<u8>, Error> {
    digest_of(handle, number, || handle.message(number))
}

fn digest_of(handle: &Handle, number: u64, found: impl Fn() -> Option<Message>) -> Result<Vec<u8>, Error> {
    for _ in 0..MOVES_MAX {
        let message = found().ok_or(Refused::NoSuchMessage)?;
        match store::digest(handle.device(), handle.geometry(), number, &message) {
            Err(Error::Moved) => {}
            outcome => return outcome,
        }
    }
    Err(Error::Moved)
}

/// The same, if it is in memory.
pub(crate) fn cached_digest(handle: &Handle, number: u64) -> Option<Vec<u8>> {
    cached(handle, number, &handle.message(number)?)
}

fn cached(handle: &Handle, number: u64, message: &Message) -> Option<Vec<u8>> {
    store::digest(&Cached(handle.device()), handle.geometry(), number, message).ok()
}
