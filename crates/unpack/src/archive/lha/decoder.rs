//! The decoder of one member, whatever its method.

// A bit machine: its sums are those of the code, and overflow checks are on.
#![allow(clippy::arithmetic_side_effects)]

use super::DATA;
use super::adaptive::{Lh1, Lh2};
use super::larc::{Lz5, Lzs};
use super::lh3::Lh3;
use super::lzh::Lzh;
use super::method::{Method, Run};
use super::pmarc::{Pm1, Pm2};
use crate::bits::history::History;
use crate::bits::pushed::Bits;
use crate::frame::codec::{Progress, Told};

/// The decoder.
pub(crate) struct Decoder {
    bits: Bits,
    history: History,
    method: Box<dyn Method>,
    broken: bool,
}

impl Decoder {
    /// The decoder of a method, if it is known.
    pub fn of(method: [u8; 5]) -> Option<Decoder> {
        let spaces = |bits: u32| vec![b' '; 1 << bits];
        let static_of = |bits: u32| -> (Box<dyn Method>, Vec<u8>) { (Box::new(Lzh::new(bits)), spaces(bits)) };
        let (method, before) = match &method {
            b"-lh1-" => (Box::new(Lh1::new()) as Box<dyn Method>, spaces(12)),
            b"-lh2-" => (Box::new(Lh2::new(1 << 13)) as Box<dyn Method>, spaces(13)),
            b"-lh3-" => (Box::new(Lh3::new()) as Box<dyn Method>, spaces(13)),
            b"-lh4-" => static_of(12),
            b"-lh5-" => static_of(13),
            b"-lh6-" => static_of(15),
            b"-lh7-" => static_of(16),
            b"-lhx-" => static_of(20),
            b"-lzs-" => (Box::new(Lzs) as Box<dyn Method>, spaces(11)),
            b"-lz5-" => (Box::new(Lz5::new()) as Box<dyn Method>, Lz5::before()),
            b"-pm1-" => (Box::new(Pm1::new()) as Box<dyn Method>, Vec::new()),
            b"-pm2-" => (Box::new(Pm2::new(1 << 13)) as Box<dyn Method>, spaces(13)),
            _ => return None,
        };
        Some(Decoder::with(method, &before))
    }

    /// Makes a decoder with this method, which may refer to the output in `before`.
    pub fn with(method: Box<dyn Method>, before: &[u8]) -> Decoder {
        /// Size of `pm1`'s window, which begins with nothing.
        const LEAST: usize = 16 << 10;
        let mut history = History::new();
        history.restart(before.len().max(LEAST), before);
        Decoder { bits: Bits::new(), history, method, broken: false }
    }

    /// As [`Decoder::decode`](crate::frame::codec::Decoder::decode).
    pub fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        let taken = self.bits.fill(input);
        let mut wrote = 0;
        while wrote < output.len() && !self.broken {
            let start = self.history.position();
            let end = start + self.history.dictionary.room(output.len() - wrote) as u64;
            self.history.copy_pending(end);
            let run = self.method.run(&mut self.bits, &mut self.history, end);
            let count = (self.history.position() - start) as usize;
            output[wrote..wrote + count].copy_from_slice(self.history.dictionary.last(count));
            wrote += count;
            match run {
                Some(Run::Full) => {}
                Some(Run::Input) => break,
                None => self.broken = true,
            }
        }
        let told = if self.broken { Told::Fault(DATA) } else { Told::Nothing };
        Progress { taken, wrote, told }
    }

    /// Bytes that were taken and not used.
    pub fn surplus(&self) -> &[u8] {
        self.bits.unread()
    }
}
