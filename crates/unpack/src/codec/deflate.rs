//! Deflate (RFC 1951), raw, by push. What surrounds it is the business of gzip, zlib and zip.
//!
//! Bounds: one state of zlib-rs, about 41 KiB, allocated when it is made, and content of [`CONTENT_BYTES`] that waits to be
//! told.

use std::ops::Range;

use stream::Class;
use zlib_rs::{Inflate, InflateFlush, Status};

use crate::frame::codec::{Decoder, Fault, Progress, Told};

/// Size of the output buffer, for smaller windows: the library is slow with less than 260 bytes of output space.
const CONTENT_BYTES: usize = 16 << 10;

/// An inflater.
pub(crate) struct Deflate {
    inflate: Inflate,
    /// Output, of which `waiting` has not been emitted.
    content: Box<[u8]>,
    waiting: Range<usize>,
    /// Event after it.
    owing: Told,
    /// Fault of a broken stream.
    data: Fault,
    truncated: Fault,
}

impl Deflate {
    /// An inflater that reports `data` for a broken stream and `truncated` for an early end.
    pub fn new(data: &'static str, truncated: &'static str) -> Deflate {
        const WINDOW_BITS: u8 = 15;
        Deflate {
            inflate: Inflate::new(false, WINDOW_BITS),
            content: Box::default(),
            waiting: 0..0,
            owing: Told::Nothing,
            data: Fault::fatal(Class::Malformed, data),
            truncated: Fault::fatal(Class::Truncated, truncated),
        }
    }

    /// Prepares for the next stream.
    pub fn reset(&mut self) {
        self.inflate.reset(false);
        (self.waiting, self.owing) = (0..0, Told::Nothing);
    }

    /// Prepares for a stream that may refer back to the end of `before`. Returns whether that is possible.
    pub fn restart(&mut self, before: &[u8]) -> bool {
        const REACH: usize = 32 << 10;
        self.reset();
        let before = &before[before.len().saturating_sub(REACH)..];
        before.is_empty() || self.inflate.set_dictionary(before).is_ok()
    }

    /// Decodes into `output`, and returns the next event.
    fn inflate(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        let (taken, wrote) = (self.inflate.total_in(), self.inflate.total_out());
        let status = self.inflate.decompress(input, output, InflateFlush::NoFlush);
        let taken = (self.inflate.total_in() - taken) as usize;
        let wrote = (self.inflate.total_out() - wrote) as usize;
        let stuck = taken == 0 && wrote == 0 && !input.is_empty();
        let told = match status {
            Ok(Status::StreamEnd) => Told::Over,
            Ok(Status::Ok | Status::BufError) if !stuck => Told::Nothing,
            _ => Told::Fault(self.data),
        };
        Progress { taken, wrote, told }
    }

    /// Makes content that waits; how much of the input that took.
    fn make(&mut self, input: &[u8]) -> usize {
        let mut content = std::mem::take(&mut self.content);
        if content.is_empty() {
            content = vec![0; CONTENT_BYTES].into();
        }
        let made = self.inflate(input, &mut content);
        (self.content, self.waiting, self.owing) = (content, 0..made.wrote, made.told);
        made.taken
    }
}

impl Decoder for Deflate {
    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        let mut taken = 0;
        if self.waiting.is_empty() && self.owing == Told::Nothing {
            if output.len() >= CONTENT_BYTES {
                return self.inflate(input, output);
            }
            taken = self.make(input);
        }
        let wrote = self.waiting.len().min(output.len());
        output[..wrote].copy_from_slice(&self.content[self.waiting.start..][..wrote]);
        self.waiting.start += wrote;
        let told = match self.waiting.is_empty() {
            true => std::mem::replace(&mut self.owing, Told::Nothing),
            false => Told::Nothing,
        };
        Progress { taken, wrote, told }
    }

    fn missing(&self) -> Option<Fault> {
        Some(self.truncated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_taken_up_to_an_error_do_not_depend_on_the_cut() {
        let mut plain = Vec::new();
        for i in 0u32..3000 {
            plain.extend_from_slice(format!("{} and {} ", i * 7919 % 1000, i % 13).as_bytes());
        }
        let mut packed = vec![0; plain.len() + 64];
        let config = zlib_rs::DeflateConfig { window_bits: -15, ..zlib_rs::DeflateConfig::default() };
        let (packed, _) = zlib_rs::compress_slice(&mut packed, &plain, config);
        for at in (0..packed.len()).step_by(23) {
            for bit in [0, 3, 6] {
                let mut broken = packed.to_vec();
                broken[at] ^= 1 << bit;
                let whole = run(&broken, usize::MAX, 65536);
                for (piece, window) in [(1, 65536), (7, 65536), (65536, 1), (100, 300), (300, 13)] {
                    assert_eq!(run(&broken, piece, window), whole, "{at} {bit} {piece} {window}");
                }
            }
        }
    }

    fn run(input: &[u8], piece: usize, window: usize) -> (usize, usize, bool) {
        let mut deflate = Deflate::new("data", "truncated");
        let mut output = vec![0; window];
        let (mut at, mut wrote) = (0, 0);
        loop {
            let end = at + piece.min(input.len() - at);
            let progress = deflate.decode(&input[at..end], &mut output);
            at += progress.taken;
            wrote += progress.wrote;
            match progress.told {
                Told::Nothing if progress.taken + progress.wrote == 0 => return (at, wrote, false),
                Told::Nothing => {}
                told => return (at, wrote, told == Told::Over),
            }
        }
    }
}
