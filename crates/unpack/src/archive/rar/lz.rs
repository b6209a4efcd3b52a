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
}

impl Unpack {
    /// A decoder whose history may grow to `dictionary_bytes`, if that is not more than `codec_bytes_max`.
    pub fn new(model: Box<dyn Model>) -> Unpack {
        Unpack { bits: Bits::new(), history: History::new(), filters: Filters::new(), model, written: 0, stopped: None }
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
    }

    /// As [`Decoder::decode`](crate::frame::codec::Decoder::decode).
    pub fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        let taken = self.bits.fill(input);
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
