//! Streams of zlib that stand in a file one behind the other, with or without something between them: archives that keep
//! their table at the end are read forward that way.
//!
//! A stream is found by its header and by [`LOOK`] bytes that inflate. Behind its end the search goes on; where it is broken,
//! too. Bounds: [`LOOK`] bytes and a piece of input, two states of zlib-rs.

use stream::{Kind, Object, ReadAt};

use crate::codec::deflate::Deflate;
use crate::frame::codec::{Decoder, Fault, Told};
use crate::frame::reader::{CONTENT_BYTES, Ended, Outbox, Reader};
use crate::stream::zlib::{Zlib, is_header};

/// Bytes that have to make sense.
const LOOK: usize = 1024;
/// Cost of a look, in bytes worked on.
const LOOK_WORK: usize = 4 * LOOK;
/// The first byte of a stream with a window of 32 KiB.
const FIRST: u8 = 0x78;
/// Flag of a preset dictionary, which is not available.
const DICTIONARY: u8 = 0x20;

/// The file around the streams.
pub(crate) trait Around: Send {
    /// Passes bytes between streams; returns how many were looked at, which is all where streams are searched for, and
    /// 0 where none ever will be.
    fn passed(&mut self, bytes: &[u8], outbox: &mut Outbox) -> usize;

    /// How many bytes it takes to say whether there will be any.
    fn wants(&self) -> usize {
        usize::MAX
    }

    /// Whether streams are looked for from here on.
    fn is_open(&self) -> bool;

    /// Whether no stream will ever be.
    fn is_over(&self) -> bool {
        false
    }

    /// Reports the end of the file.
    fn end(&mut self, _: &mut Outbox) {}

    /// Returns the name of the next stream.
    fn name(&mut self) -> Option<Box<str>> {
        None
    }
}

/// A reader of such a file.
pub(crate) struct Chain<A> {
    around: A,
    at: u64,
    /// Bytes read that are not done with.
    held: Vec<u8>,
    /// Made for the first look: most files have none.
    trial: Option<Deflate>,
    stream: Option<Zlib>,
}

enum Turn {
    /// Something was done.
    Done,
    /// More input is needed.
    Wants,
}

impl<A: Around> Chain<A> {
    pub fn new(around: A) -> Chain<A> {
        Chain { around, at: 0, held: Vec::new(), trial: None, stream: None }
    }

    /// Does a piece of the work; `last` says that no more input follows.
    fn turn(&mut self, last: bool, outbox: &mut Outbox) -> Turn {
        match self.stream.take() {
            Some(stream) => self.inflate(stream, last, outbox),
            None => self.search(last, outbox),
        }
    }

    fn search(&mut self, last: bool, outbox: &mut Outbox) -> Turn {
        if !self.around.is_open() {
            let count = self.held.len();
            self.pass(count, outbox);
            return if self.held.len() < count { Turn::Done } else { Turn::Wants };
        }
        let Some(start) = memchr::memchr(FIRST, &self.held) else {
            self.pass(self.held.len(), outbox);
            return Turn::Wants;
        };
        self.pass(start, outbox);
        if self.held.len() < LOOK && !last {
            return Turn::Wants;
        }
        if self.is_stream(outbox) {
            outbox.open(Object { kind: Kind::Member, name: self.around.name(), ..Object::default() });
            self.stream = Some(Zlib::new());
        } else {
            self.pass(1, outbox);
        }
        Turn::Done
    }

    /// Returns whether the held bytes begin a stream.
    fn is_stream(&mut self, outbox: &mut Outbox) -> bool {
        let look = &self.held[..self.held.len().min(LOOK)];
        let [first, second, deflated @ ..] = look else { return false };
        if !is_header([*first, *second]) || second & DICTIONARY != 0 {
            return false;
        }
        outbox.worked(LOOK_WORK);
        let mut content = [0; LOOK];
        let trial = self.trial.get_or_insert_with(|| Deflate::new("", ""));
        trial.reset();
        let progress = trial.decode(deflated, &mut content);
        progress.wrote > 0 && !matches!(progress.told, Told::Fault(_))
    }

    fn inflate(&mut self, mut stream: Zlib, last: bool, outbox: &mut Outbox) -> Turn {
        let mut content = [0; CONTENT_BYTES];
        let progress = stream.decode(&self.held, &mut content);
        self.drop(progress.taken);
        outbox.content(&content[..progress.wrote]);
        match progress.told {
            Told::Over => outbox.close(),
            Told::Fault(fault) => self.broken(fault, outbox),
            Told::Nothing if progress.taken == 0 && progress.wrote == 0 && last => match stream.missing() {
                Some(fault) => self.broken(fault, outbox),
                None => outbox.close(),
            },
            Told::Nothing if progress.taken == 0 && progress.wrote == 0 => {
                self.stream = Some(stream);
                return Turn::Wants;
            }
            _ => self.stream = Some(stream),
        }
        Turn::Done
    }

    fn broken(&self, fault: Fault, outbox: &mut Outbox) {
        outbox.finding(fault.class, fault.name, self.at);
        outbox.close();
    }

    /// Emits so many held bytes, which belong to no stream.
    fn pass(&mut self, count: usize, outbox: &mut Outbox) {
        let looked_at = self.around.passed(&self.held[..count], outbox);
        self.drop(looked_at);
    }

    fn drop(&mut self, count: usize) {
        self.held.drain(..count);
        self.at = self.at.saturating_add(count as u64);
    }
}

impl<A: Around> Reader for Chain<A> {
    fn read(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
        if !self.held.is_empty()
            && let Turn::Done = self.turn(false, outbox)
        {
            return 0;
        }
        let taken = input.len().min(self.around.wants());
        self.held.extend_from_slice(&input[..taken]);
        taken
    }

    fn is_over(&self) -> bool {
        self.around.is_over()
    }

    fn end(&mut self, _: &dyn ReadAt, outbox: &mut Outbox) -> Ended {
        match self.turn(true, outbox) {
            Turn::Done => Ended::More,
            Turn::Wants => {
                self.around.end(outbox);
                Ended::Done
            }
        }
    }
}
