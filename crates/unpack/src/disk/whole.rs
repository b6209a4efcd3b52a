//! A file system that is read when all of its image is kept.

use stream::{Limits, ReadAt};

use crate::frame::codec::Fault;
use crate::frame::reader::{Ended, Outbox, Reader};

/// A file system in an image that is kept.
pub(crate) trait FileSystem: Sized + Send {
    /// Least cost of a turn, in bytes worked on.
    const TURN_WORK: usize = 0;

    /// Opens an image of so many bytes; `None` if it is not one.
    ///
    /// # Errors
    /// The fault of its header.
    fn open(kept: &dyn ReadAt, limits: &Limits, bytes: u64) -> Result<Option<Self>, Fault>;

    /// Does a piece of the work; whether that was the last.
    fn turn(&mut self, kept: &dyn ReadAt, outbox: &mut Outbox) -> bool;
}

/// A reader of such images: it asks for all of them to be kept.
pub(crate) struct Whole<F> {
    limits: Limits,
    asked: bool,
    bytes: u64,
    state: State<F>,
}

enum State<F> {
    Header,
    Open(Box<F>),
    Over,
}

impl<F> Whole<F> {
    pub fn new(limits: &Limits) -> Whole<F> {
        Whole { limits: limits.clone(), asked: false, bytes: 0, state: State::Header }
    }
}

impl<F: FileSystem> Reader for Whole<F> {
    fn read(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
        if !std::mem::replace(&mut self.asked, true) {
            outbox.keep(0..u64::MAX);
            return 0;
        }
        self.bytes += input.len() as u64;
        input.len()
    }

    fn end(&mut self, kept: &dyn ReadAt, outbox: &mut Outbox) -> Ended {
        outbox.worked(F::TURN_WORK);
        self.state = match std::mem::replace(&mut self.state, State::Over) {
            State::Header => match F::open(kept, &self.limits, self.bytes) {
                Ok(Some(opened)) => State::Open(Box::new(opened)),
                Ok(None) => State::Over,
                Err(fault) => {
                    outbox.finding(fault.class, fault.name, 0);
                    State::Over
                }
            },
            State::Open(mut opened) => match opened.turn(kept, outbox) {
                true => State::Over,
                false => State::Open(opened),
            },
            State::Over => return Ended::Done,
        };
        Ended::More
    }
}
