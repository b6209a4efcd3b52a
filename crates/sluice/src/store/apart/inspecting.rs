//! An inspection that the gateway makes, as the store has it: [`super::frames`] on a socket of its own.
//!
//! The store asks for no rules of spam and no authentication, so that nothing is asked back. Bounds: one frame of content is on its
//! way at a time, and reports are heard before more of them are read.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::os::unix::net::UnixStream as Begun;
use std::task::{Context, Poll, ready};

use flow::{Answer, Context as Object, Inspecting, Out, Progress, Recalled, Unfinished, wire};
use tokio::net::UnixStream;

use super::frames::{self, Frames, Kind, PIECE_BYTES, TOLD_BYTES_MAX};

/// Bytes read at a time.
const READ_BYTES: usize = 16 << 10;

/// An inspection in the gateway's process.
pub struct Distant {
    stream: Way,
    output: Vec<u8>,
    written: usize,
    input: Frames,
    reports: VecDeque<Out>,
    progress: Progress,
    /// A frame whose progress has not come.
    is_asked: bool,
    /// The content is complete, and the gateway has not heard of it.
    is_complete: bool,
}

/// The way to the gateway.
enum Way {
    /// Not polled yet: only then there is an event loop for sure.
    Begun(Begun),
    Open(UnixStream),
    Gone,
}

impl Way {
    fn open(&mut self) -> io::Result<&UnixStream> {
        if let Way::Begun(_) = self
            && let Way::Begun(begun) = std::mem::replace(self, Way::Gone)
        {
            begun.set_nonblocking(true)?;
            *self = Way::Open(UnixStream::from_std(begun)?);
        }
        match self {
            Way::Open(stream) => Ok(stream),
            Way::Begun(_) | Way::Gone => Err(ErrorKind::NotConnected.into()),
        }
    }
}

impl Distant {
    /// An inspection whose other end the gateway has.
    pub fn new(stream: Begun, context: &Object) -> Distant {
        let mut output = Vec::new();
        frames::write(Kind::Open, &wire::write(context, Vec::new()), &mut output);
        Distant {
            stream: Way::Begun(stream),
            output,
            written: 0,
            input: Frames::new(TOLD_BYTES_MAX),
            reports: VecDeque::new(),
            progress: Progress::Hungry,
            is_asked: false,
            is_complete: false,
        }
    }

    const fn is_over(&self) -> bool {
        matches!(self.progress, Progress::Done | Progress::Lost(_))
    }

    /// Writes until all is written, or there is no room.
    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written < self.output.len() {
            let stream = self.stream.open()?;
            match stream.try_write(&self.output[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => ready!(stream.poll_write_ready(context))?,
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        (self.output, self.written) = (Vec::new(), 0);
        Poll::Ready(Ok(()))
    }

    /// Reads once.
    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut bytes = [0; READ_BYTES];
        loop {
            let stream = self.stream.open()?;
            match stream.try_read(&mut bytes) {
                Ok(0) => return Poll::Ready(Err(ErrorKind::UnexpectedEof.into())),
                Ok(count) => {
                    self.input.input().extend_from_slice(&bytes[..count]);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => ready!(stream.poll_read_ready(context))?,
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    /// Takes the frames that are here; whether there were any.
    fn take(&mut self) -> io::Result<bool> {
        let mut is_news = false;
        while let Some((kind, payload)) = self.input.next()? {
            is_news = true;
            match kind {
                Kind::Out => self.reports.push_back(wire::read(&payload).map_err(io::Error::other)?),
                Kind::Progress if self.is_asked => {
                    self.progress = frames::progress(&payload).ok_or(frames::Broken)?;
                    self.is_asked = false;
                }
                _ => return Err(frames::Broken.into()),
            }
        }
        Ok(is_news)
    }

    fn go_on(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Progress>> {
        loop {
            if !self.is_asked && std::mem::take(&mut self.is_complete) {
                frames::write(Kind::Finish, &[], &mut self.output);
                self.is_asked = true;
            }
            ready!(self.poll_write(context))?;
            if !self.is_asked {
                return Poll::Ready(Ok(self.progress));
            }
            ready!(self.poll_read(context))?;
            if self.take()? && self.is_asked {
                return Poll::Ready(Ok(Progress::Tired));
            }
        }
    }
}

impl Inspecting for Distant {
    fn feed(&mut self, bytes: &[u8]) -> usize {
        if self.is_over() {
            return bytes.len();
        }
        if self.is_asked || bytes.is_empty() {
            return 0;
        }
        let piece = &bytes[..bytes.len().min(PIECE_BYTES)];
        frames::write(Kind::Feed, piece, &mut self.output);
        self.is_asked = true;
        piece.len()
    }

    fn finish(&mut self) {
        self.is_complete = true;
    }

    fn stop(&mut self, _name: &'static str) {}

    fn answer(&mut self, _answer: Answer) {}

    fn recalled(&mut self, _recalled: Option<Recalled>) {}

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Progress> {
        if self.is_over() {
            return Poll::Ready(self.progress);
        }
        let progress = ready!(self.go_on(context)).unwrap_or_else(|error| {
            tracing::debug!(%error, "an inspection for the store is lost");
            self.progress = Progress::Lost(Unfinished::Gone);
            self.progress
        });
        if self.is_over() {
            self.stream = Way::Gone;
        }
        Poll::Ready(progress)
    }

    fn hear(&mut self) -> Option<Out> {
        self.reports.pop_front()
    }
}
