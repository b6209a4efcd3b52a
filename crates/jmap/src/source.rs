//! Bytes of a message, and the content of a blob, read piece by piece.

use alloc::sync::Arc;
use alloc::vec::Vec;

use mime::Decoder;
use stream::{Coding, Event, Fuel, Nothing, Stage, Window};

use crate::host::Host;

const PIECE_BYTES: usize = 32 << 10;

/// Where the bytes of a message are.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// In the store.
    Stored(u64),
    /// In memory.
    Bytes(Arc<[u8]>),
}

impl Source {
    /// Reads from an offset; 0 at the end.
    pub fn read(&self, host: &mut dyn Host, offset: u64, buffer: &mut [u8]) -> Option<usize> {
        let bytes = match self {
            Source::Stored(message) => return host.read(*message, offset, buffer),
            Source::Bytes(bytes) => bytes,
        };
        let rest = usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..)).unwrap_or_default();
        let length = rest.len().min(buffer.len());
        buffer.get_mut(..length)?.copy_from_slice(rest.get(..length)?);
        Some(length)
    }

    /// The bytes of a range, which is bounded by the caller.
    pub fn range(&self, host: &mut dyn Host, start: u64, end: u64) -> Vec<u8> {
        let mut bytes = alloc::vec![0; usize::try_from(end.saturating_sub(start)).unwrap_or(0)];
        let mut filled = 0usize;
        while let Some(room) = bytes.get_mut(filled..).filter(|room| !room.is_empty()) {
            match self.read(host, start.saturating_add(filled as u64), room) {
                None | Some(0) => break,
                Some(count) => filled = filled.saturating_add(count),
            }
        }
        bytes.truncate(filled);
        bytes
    }
}

/// The content of a blob, read piece by piece.
pub struct Blob {
    source: Source,
    at: u64,
    end: u64,
    decoder: Decoder,
    is_raw: bool,
    is_broken: bool,
    is_over: bool,
    window: Window,
    input: Vec<u8>,
}

impl Blob {
    pub(crate) fn new(source: Source, start: u64, end: u64, coding: Coding) -> Blob {
        Blob {
            source,
            at: start,
            end,
            decoder: Decoder::trimming(coding),
            is_raw: coding == Coding::Identity,
            is_broken: false,
            is_over: false,
            window: Window::with_capacity(PIECE_BYTES),
            input: Vec::new(),
        }
    }

    /// Whether the store failed, or the coding was not what it claims to be.
    pub fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// The next piece; `None` at the end.
    pub fn next(&mut self, host: &mut dyn Host) -> Option<Vec<u8>> {
        while !self.is_over {
            if self.input.is_empty() && !self.fill(host) {
                return self.finish();
            }
            if self.is_raw {
                return Some(core::mem::take(&mut self.input));
            }
            let step = self.decoder.step(&self.input, &mut self.window, &mut Fuel::unlimited());
            let taken: Vec<u8> = self.input.drain(..step.taken.min(self.input.len())).collect();
            match step.event {
                Event::Wrote => return Some(self.written()),
                Event::Verbatim => return Some(taken),
                Event::End => self.is_over = true,
                _ => {}
            }
        }
        None
    }

    fn finish(&mut self) -> Option<Vec<u8>> {
        while !self.is_over && !self.is_raw {
            match self.decoder.finish(&Nothing, &mut self.window, &mut Fuel::unlimited()) {
                Event::Wrote => return Some(self.written()),
                Event::End => self.is_over = true,
                _ => {}
            }
        }
        self.is_over = true;
        None
    }

    fn written(&mut self) -> Vec<u8> {
        let bytes = self.window.filled().to_vec();
        self.window.clear();
        bytes
    }

    fn fill(&mut self, host: &mut dyn Host) -> bool {
        let left = usize::try_from(self.end.saturating_sub(self.at)).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
        self.input.resize(left, 0);
        let count = if left == 0 { Some(0) } else { self.source.read(host, self.at, &mut self.input) };
        self.is_broken |= count.is_none();
        self.input.truncate(count.unwrap_or(0));
        self.at = self.at.saturating_add(self.input.len() as u64);
        !self.input.is_empty()
    }

    /// All of it up to so many bytes, and whether that is the whole.
    pub(crate) fn bytes(&mut self, host: &mut dyn Host, most: usize) -> (Vec<u8>, bool) {
        let mut bytes = Vec::new();
        while let Some(piece) = self.next(host) {
            bytes.extend_from_slice(&piece);
            if bytes.len() > most {
                bytes.truncate(most);
                return (bytes, false);
            }
        }
        (bytes, true)
    }

    /// How many bytes it is.
    pub(crate) fn count(mut self, host: &mut dyn Host) -> u64 {
        if self.is_raw {
            return self.end.saturating_sub(self.at);
        }
        let mut count = 0u64;
        while let Some(piece) = self.next(host) {
            count = count.saturating_add(piece.len() as u64);
        }
        count
    }
}
