//! Common part of the compressions of all RAR versions: a history, matches into it, filters after it.
//!
//! A [`Model`] turns bits into literals and matches; [`Unpack`] gives it room for a run of bytes at a time and passes
//! them on, through declared filters. Bounds: the dictionary that the member declares, growing with the data up to
//! `codec_bytes_max`; two filter blocks.

use stream::Class;

use super::filter::{Filter, Filters};
use crate::bits::history::History;
use crate::bits::pushed::Bits;
use crate::codec::lzma::Unreachable;
use crate::frame::codec::{Fault, Progress, Told};

pub(super) const DATA: Fault = Fault::fatal(Class::Malformed, "Heuristics.Malformed.Rar.Data");
pub(super) const DICTIONARY: Fault = Fault::fatal(Class::Limit, "Heuristics.Limits.Exceeded.Codec");

/// One version's compression.
pub(super) trait Model: Send {
    /// Begins another member; a solid one continues with the learned state.
    fn start(&mut self, solid: bool);

    /// Reads symbols until the history is at `end`, or as `Stop` says.
    fn run(&mut self, bits: &mut Bits, history: &mut History, end: u64) -> Stop;

    /// Reads what stands behind the last byte of a member and counts for the next one; `false` where that takes more input.
    fn conclude(&mut self, _: &mut Bits, _: &mut History) -> bool {
        true
    }
}

/// Why a run ended.
#[derive(Debug)]
pub(super) enum Stop {
    /// All bytes of the output have been made.
    Full,
    /// The input is used up.
    Input,
    /// A filter was declared.
    Filter(Filter),
    /// The packed data say that they end here.
    Over,
    /// Nothing more can be read.
    Fault(Fault),
}

impl From<Unreachable> for Stop {
    fn from(unreachable: Unreachable) -> Stop {
        Stop::Fault(match unreachable {
            Unreachable::Never => DATA,
            Unreachable::Forgotten => DICTIONARY,
        })
    }
}

/// The decoder of one archive: one member behind the other.
pub(super) struct Unpack {
    bits: Bits,
    history: History,
    filters: Filters,
    model: Box<dyn Model>,
    /// Bytes of the member that came out of the history.
    written: u64,
    /// The event after which no more output comes.
    stopped: Option<Told>,
    /// Whether all that counts for the next member has been read.
    concluded: bool,
}

impl Unpack {
    /// A decoder whose history may grow to `dictionary_bytes`, if that is not more than `codec_bytes_max`.
    pub fn new(model: Box<dyn Model>) -> Unpack {
        Unpack {
            bits: Bits::new(),
            history: History::new(),
            filters: Filters::new(),
            model,
            written: 0,
            stopped: None,
            concluded: false,
        }
    }

    /// A member begins that knows nothing of the ones before.
    pub fn start(&mut self, dictionary_bytes: u64, codec_bytes_max: usize) {
        self.history.dictionary.declare(dictionary_bytes, codec_bytes_max);
        self.begin(false);
    }

    /// A solid member begins; whether the one before ended well.
    pub fn go_on(&mut self) -> bool {
        let sound = self.history.position() > 0 && !matches!(self.stopped, Some(Told::Fault(_)));
        self.begin(true);
        sound
    }

    fn begin(&mut self, solid: bool) {
        self.bits.restart();
        self.history.drop_pending();
        self.filters.clear();
        self.model.start(solid);
        self.written = 0;
        self.stopped = None;
        self.concluded = false;
    }

    /// Whether bits behind the last byte of the member are still to be read.
    pub fn reads_on(&self) -> bool {
        self.stopped.is_none() && !self.concluded
    }

    /// As [`Decoder::decode`](crate::frame::codec::Decoder::decode). Without room for output the member is complete, and what stands behind
    /// it is read.
    pub fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        let taken = self.bits.fill(input);
        if output.is_empty() {
            self.concluded = self.model.conclude(&mut self.bits, &mut self.history);
            return Progress::took(taken);
        }
        let mut wrote = self.filters.take(output);
        while wrote < output.len() && !self.filters.is_ready() && self.stopped.is_none() {
            let stop = self.run(&mut output[wrote..], &mut wrote);
            match stop {
                Stop::Full => {}
                Stop::Input if !self.bits.is_at_end() => break,
                Stop::Input => {
                    self.filters.give_up();
                    wrote += self.filters.take(&mut output[wrote..]);
                    break;
                }
                Stop::Filter(filter) => {
                    if !self.filters.add(filter, self.history.position()) {
                        self.stopped = Some(Told::Fault(DATA));
                    }
                }
                Stop::Over => self.stopped = Some(Told::Over),
                Stop::Fault(fault) => self.stopped = Some(Told::Fault(fault)),
            }
            wrote += self.filters.take(&mut output[wrote..]);
        }
        if self.stopped.is_some() && wrote < output.len() {
            self.filters.give_up();
            wrote += self.filters.take(&mut output[wrote..]);
        }
        let told = match &self.stopped {
            Some(Told::Fault(fault)) if !self.filters.is_ready() => Told::Fault(*fault),
            Some(Told::Over) if !self.filters.is_ready() => Told::Over,
            _ => Told::Nothing,
        };
        Progress { taken, wrote, told }
    }

    /// Reads symbols for at most as many bytes as fit the output or the filter that waits for them.
    fn run(&mut self, output: &mut [u8], wrote: &mut usize) -> Stop {
        let start = self.history.position();
        let wanted = self.filters.wants(start, output.len());
        let count = self.history.dictionary.room(wanted);
        let end = start + count as u64;
        self.history.copy_pending(end);
        let stop = if self.history.position() == end {
            Stop::Full
        } else {
            self.model.run(&mut self.bits, &mut self.history, end)
        };
        let run = (self.history.position() - start) as usize;
        let bytes = self.history.dictionary.last(run);
        if self.filters.is_within(start) {
            self.filters.push(bytes, self.written);
        } else {
            output[..run].copy_from_slice(bytes);
            *wrote += run;
        }
        self.written += run as u64;
        stop
    }

    /// Bytes that were taken and not used.
    pub fn surplus(&self) -> &[u8] {
        self.bits.unread()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{lz20::Lz20, lz29::Lz29};
    use super::*;

    /// Bits of a packed member.
    #[derive(Default)]
    struct Packed(Vec<bool>);

    impl Packed {
        fn put(&mut self, value: usize, count: usize) -> &mut Packed {
            self.0.extend((0..count).rev().map(|at| value >> at & 1 == 1));
            self
        }

        /// Code lengths of 1 for the symbols at these places, each given by the distance from the one before: three symbols tell them,
        /// `one`, and two kinds of runs of zeros.
        fn lengths(&mut self, gaps: &[usize], short: usize) -> &mut Packed {
            for &gap in gaps {
                let mut zeros = gap;
                while zeros >= 11 {
                    let run = zeros.min(138);
                    self.put(0b11, 2).put(run - 11, 7);
                    zeros -= run;
                }
                if zeros >= 3 {
                    self.put(0b10, 2).put(zeros - 3, short);
                    zeros = 0;
                }
                assert_eq!(zeros, 0, "no run is that short");
                self.put(0, 1);
            }
            self
        }

        fn bytes(&self) -> Vec<u8> {
            let byte = |bits: &[bool]| bits.iter().enumerate().map(|(at, &bit)| u8::from(bit) << (7 - at)).sum();
            self.0.chunks(8).map(byte).collect()
        }
    }

    /// Unpacks members one behind the other, each of so many bytes, from input in pieces.
    fn solid(mut unpack: Unpack, members: &[(Vec<u8>, usize)], piece: usize) -> Vec<Vec<u8>> {
        unpack.start(1 << 16, 1 << 20);
        let mut all = Vec::new();
        for (number, (packed, size)) in members.iter().enumerate() {
            assert!(number == 0 || unpack.go_on());
            let (mut content, mut length, mut at) = (vec![0; *size], 0, 0);
            while length < *size || unpack.reads_on() {
                let until = packed.len().min(at + piece);
                let progress = unpack.decode(&packed[at..until], &mut content[length..]);
                (at, length) = (at + progress.taken, length + progress.wrote);
                assert!(!matches!(progress.told, Told::Fault(_)), "member {number}: {:?}", progress.told);
            }
            all.push(content);
        }
        all
    }

    #[test]
    fn what_stands_behind_a_member_counts_for_the_next() {
        // Two symbols of the main code, the byte and the end of a block; two of each other code.
        let codes29 = |byte: usize| {
            let mut packed = Packed::default();
            packed.put(0, 2).put(0, 4).put(1, 4);
            (2..18).for_each(|_| _ = packed.put(0, 4));
            packed.put(2, 4).put(2, 4);
            packed.lengths(&[byte, 256 - byte - 1, 42, 0, 58, 0, 15, 0], 3);
            packed.put(0b11, 2).put(26 - 11, 7);
            packed
        };
        let (mut first, mut second) = (codes29(97), codes29(98));
        // The member ends, and the next begins with codes.
        first.put(0, 3).put(0b101, 3);
        second.put(0, 2).put(0b100, 3);
        let members = [(first.bytes(), 3), (second.bytes(), 2)];
        for piece in [1, 7, 1_000] {
            let unpack = Unpack::new(Box::new(Lz29::new(1 << 20)));
            assert_eq!(solid(unpack, &members, piece), [b"aaa".to_vec(), b"bb".to_vec()], "{piece}");
        }
        let codes20 = |packed: &mut Packed, byte: usize| {
            packed.put(0, 2).put(0, 4).put(1, 4);
            (2..17).for_each(|_| _ = packed.put(0, 4));
            packed.put(2, 4).put(2, 4);
            packed.lengths(&[byte, 269 - byte - 1, 28, 0, 46, 0], 3);
            packed.put(0b11, 2).put(26 - 11, 7);
        };
        let (mut first, mut second) = (Packed::default(), Packed::default());
        codes20(&mut first, 97);
        first.put(0, 3).put(1, 1);
        codes20(&mut first, 98);
        second.put(0, 2);
        let members = [(first.bytes(), 3), (second.bytes(), 2)];
        for piece in [1, 7, 1_000] {
            let unpack = Unpack::new(Box::new(Lz20::new()));
            assert_eq!(solid(unpack, &members, piece), [b"aaa".to_vec(), b"bb".to_vec()], "{piece}");
        }
    }
}
