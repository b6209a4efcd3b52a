//! A message being read, wherever compaction moves it meanwhile. Holds one piece of it.

use store::{Content, Error, Refused};

use crate::writer::Handle;

/// How often a message may be found to have moved in one read.
const MOVES_MAX: usize = 3;

/// The content of a message.
pub struct Body {
    handle: Handle,
    number: u64,
    content: Content,
}

impl Body {
    /// The message with this number; none if no mailbox has it any more.
    pub fn open(handle: &Handle, number: u64) -> Option<Body> {
        let content = Content::new(number, handle.state().message(number)?);
        Some(Body { handle: handle.clone(), number, content })
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
        for _ in 0..MOVES_MAX {
            match self.content.read_at(self.handle.device(), self.handle.geometry(), offset, buffer) {
                Err(Error::Moved) => {}
                outcome => return outcome,
            }
            let state = self.handle.state();
            let message = state.message(self.number).ok_or(Refused::NoSuchMessage)?;
            self.content = Content::new(self.number, message);
        }
        Err(Error::Moved)
    }
}

/// What was derived of a message when it was stored; empty if nothing.
pub fn digest(handle: &Handle, number: u64) -> Result<Vec<u8>, Error> {
    for _ in 0..MOVES_MAX {
        let state = handle.state();
        let message = state.message(number).ok_or(Refused::NoSuchMessage)?;
        match store::digest(handle.device(), handle.geometry(), number, message) {
            Err(Error::Moved) => {}
            outcome => return outcome,
        }
    }
    Err(Error::Moved)
}
