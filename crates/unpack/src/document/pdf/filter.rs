//! Filters in a chain (ISO 32000-2, 7.4): each reads the output of the previous one.
//!
//! Pictures and unknown filters end the chain: their input is emitted raw. So is the rest after a fault of a filter.
//!
//! Bounds: [`FILTERS_MAX`] filters, 4 KiB between each two, each filter's own memory; bytes between the filters, which
//! are thrown away, count against `ratio_free_bytes` and `ratio_max` of the input.

use stream::{Class, Limits};

use super::ascii::{Ascii85, AsciiHex};
use super::cipher::Cipher;
use super::layer::{Layer, Parameters};
use super::lzw::Lzw;
use super::predictor::Predictor;
use super::run_length::RunLength;
use crate::frame::codec::{Decoder, Fault, Progress, Told};
use crate::frame::reader::{CONTENT_BYTES, Outbox};
use crate::stream::zlib::Zlib;

/// The most filters in a chain.
pub(super) const FILTERS_MAX: usize = 12;

const BETWEEN_BYTES: usize = 4096;

const DATA: Fault = Fault::fatal(Class::Malformed, "Heuristics.Malformed.Pdf.Filter");
const TRUNCATED: Fault = Fault::fatal(Class::Truncated, "Heuristics.Truncated.PdfStream");
const TOO_MANY: Fault = Fault::fatal(Class::Limit, "Heuristics.Limits.Exceeded.PdfFilters");
const BOMB: Fault = Fault::fatal(Class::Limit, "Heuristics.Limits.Exceeded.Ratio");

/// A filter by its name or abbreviation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Filter {
    AsciiHex,
    Ascii85,
    Lzw,
    Flate,
    RunLength,
    Crypt,
    /// JBIG2, DCT, JPX, CCITT: emitted raw.
    Picture,
    Unknown,
}

impl Filter {
    pub fn of(word: &[u8]) -> Filter {
        match word {
            b"ASCIIHexDecode" | b"AHx" => Filter::AsciiHex,
            b"ASCII85Decode" | b"A85" => Filter::Ascii85,
            b"LZWDecode" | b"LZW" => Filter::Lzw,
            b"FlateDecode" | b"Fl" => Filter::Flate,
            b"RunLengthDecode" | b"RL" => Filter::RunLength,
            b"Crypt" => Filter::Crypt,
            b"DCTDecode" | b"DCT" | b"CCITTFaxDecode" | b"CCF" | b"JBIG2Decode" | b"JPXDecode" => Filter::Picture,
            _ => Filter::Unknown,
        }
    }

    /// Whether its parameters change what comes out, of those that are undone.
    pub fn has_parameters(self) -> bool {
        matches!(self, Filter::Flate | Filter::Lzw | Filter::Crypt)
    }

    /// Whether it finds a fault in what is encrypted.
    pub fn is_strict(self) -> bool {
        matches!(self, Filter::Flate | Filter::AsciiHex | Filter::Ascii85)
    }

    /// Returns whether a stream with this filter may begin with `byte`; otherwise it is probably encrypted.
    pub fn may_begin_with(filter: Option<Filter>, byte: u8) -> bool {
        match filter {
            Some(Filter::Flate) => byte & 0x0f == 8 && byte >> 4 <= 7,
            Some(Filter::AsciiHex | Filter::Ascii85) => byte.is_ascii() && (byte >= 32 || byte.is_ascii_whitespace()),
            Some(Filter::Lzw) => byte == 0x80,
            Some(Filter::Picture) => matches!(byte, 0xff | 0) || byte.is_ascii(),
            _ => true,
        }
    }
}

/// The filters of a stream.
pub(super) struct Chain {
    /// One more filter than buffers between them.
    layers: Vec<Work>,
    between: Vec<Vec<u8>>,
    /// Bytes taken, and bytes made between the filters.
    taken: u64,
    made: u64,
    free_bytes: u64,
    ratio_max: u64,
    fault: Option<Fault>,
    /// The first Flate among them, and whether it has written something.
    flate: Option<usize>,
    has_written: bool,
    /// See [`Chain::takes_surplus`].
    takes_surplus: bool,
}

struct Work {
    layer: Option<Box<dyn Layer>>,
    /// Its output was full: it may hold more.
    full: bool,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Working,
    /// The filter has reached its end: further bytes are thrown away.
    Over,
    /// It has emitted all that is inside, and nothing follows.
    Done,
}

/// Result of a turn of a chain.
#[derive(Debug, PartialEq)]
pub(super) enum Turn {
    /// So many bytes were taken; there may be more to do.
    Took(usize),
    /// The first filter has found its end and all is emitted.
    Over,
}

impl Chain {
    /// The chain of these filters, behind `cipher`.
    pub fn new(cipher: Option<Cipher>, filters: &[Filter], parameters: &[Parameters], limits: &Limits) -> Chain {
        let mut layers: Vec<Box<dyn Layer>> = Vec::new();
        let (mut fault, mut flate) = (None, None);
        let has_end = filters.iter().find(|filter| **filter != Filter::Crypt) == Some(&Filter::Flate);
        let takes_surplus = has_end || matches!(cipher, Some(Cipher::Aes(_)));
        layers.extend(cipher.map(|cipher| Box::new(cipher) as Box<dyn Layer>));
        for (index, &filter) in filters.iter().enumerate() {
            if index == FILTERS_MAX {
                fault = Some(TOO_MANY);
                break;
            }
            let parameters = parameters.get(index).copied().unwrap_or_default();
            match filter {
                Filter::Picture => break,
                Filter::Unknown => {
                    fault = Some(DATA);
                    break;
                }
                Filter::Crypt => {}
                Filter::AsciiHex => layers.push(Box::new(AsciiHex::default())),
                Filter::Ascii85 => layers.push(Box::new(Ascii85::default())),
                Filter::RunLength => layers.push(Box::new(RunLength::default())),
                Filter::Flate => {
                    flate = flate.or(Some(layers.len()));
                    layers.push(Box::new(Flate { zlib: Zlib::new(), begun: false }));
                }
                Filter::Lzw => layers.push(Box::new(Lzw::new(parameters.early_change))),
            }
            if matches!(filter, Filter::Flate | Filter::Lzw) && parameters.predictor > 1 {
                match Predictor::new(&parameters, limits) {
                    Some(predictor) => layers.push(Box::new(predictor)),
                    None => fault = Some(DATA),
                }
            }
        }
        let work = |layer| Work { layer: Some(layer), full: false, state: State::Working };
        Chain {
            between: vec![Vec::new(); layers.len().saturating_sub(1)],
            layers: layers.into_iter().map(work).collect(),
            taken: 0,
            made: 0,
            free_bytes: limits.ratio_free_bytes,
            ratio_max: limits.ratio_max.into(),
            fault,
            flate,
            has_written: false,
            takes_surplus,
        }
    }

    /// Returns whether content is emitted raw.
    pub fn is_empty(&self) -> bool {
        self.layers.is_empty()
    }

    /// Returns whether more than `bytes` were read without a fault.
    pub fn has_decoded(&self, bytes: u64) -> bool {
        self.fault.is_none() && self.taken > bytes
    }

    /// Whether Flate came to its end without a fault, with data: what was encrypted does not.
    pub fn has_inflated(&self) -> bool {
        let flate = self.flate.and_then(|index| self.layers.get(index));
        self.fault.is_none() && self.has_written && flate.is_some_and(|flate| flate.state == State::Over)
    }

    /// Whether bytes behind its data do no harm: Flate knows its end, and AES has whole blocks.
    pub fn takes_surplus(&self) -> bool {
        self.takes_surplus && self.taken > 0 && self.fault.is_none()
    }

    /// The first fault.
    pub fn fault(&self) -> Option<Fault> {
        self.fault
    }

    /// Moves bytes on by one filter, the last one that can work first. `last` says that nothing follows `input`.
    pub fn turn(&mut self, input: &[u8], last: bool, outbox: &mut Outbox) -> Turn {
        if self.layers.is_empty() {
            outbox.content(input);
            return if last { Turn::Over } else { Turn::Took(input.len()) };
        }
        for index in (0..self.layers.len()).rev() {
            let ended = if index == 0 { last } else { self.layers[index - 1].state != State::Working };
            let waits = match index {
                0 => !input.is_empty(),
                _ => !self.between[index - 1].is_empty(),
            };
            let work = &self.layers[index];
            let can_work = match work.state {
                State::Working => waits || work.full || ended,
                State::Over => waits && index > 0,
                State::Done => false,
            };
            if can_work {
                return Turn::Took(self.work(index, input, ended, outbox));
            }
        }
        Turn::Over
    }

    fn work(&mut self, index: usize, input: &[u8], ended: bool, outbox: &mut Outbox) -> usize {
        let mut output = [0; CONTENT_BYTES];
        let buffered = if index == 0 { Vec::new() } else { std::mem::take(&mut self.between[index - 1]) };
        let offered = if index == 0 { input } else { &buffered };
        let work = &mut self.layers[index];
        let progress = match (&mut work.layer, work.state) {
            (_, State::Over | State::Done) => Progress::took(offered.len()),
            (Some(layer), State::Working) => layer.decode(offered, ended, &mut output),
            (None, State::Working) => as_it_stands(offered, &mut output),
        };
        work.full = progress.wrote > 0;
        self.has_written |= work.full && self.flate == Some(index);
        match progress.told {
            Told::Over => (work.state, work.full) = (State::Over, false),
            Told::Fault(fault) => {
                self.fault = self.fault.or(Some(fault));
                work.layer = None;
            }
            _ if ended && progress.wrote == 0 && progress.taken == 0 => work.state = State::Done,
            _ => {}
        }
        self.pass_on(index, &output[..progress.wrote], outbox);
        if index == 0 {
            self.taken += progress.taken as u64;
            return progress.taken;
        }
        self.between[index - 1] = buffered[progress.taken..].to_vec();
        outbox.worked(progress.taken);
        0
    }

    /// Passes a filter's output to the next one, or out.
    fn pass_on(&mut self, index: usize, made: &[u8], outbox: &mut Outbox) {
        let Some(next) = self.between.get_mut(index) else {
            return outbox.content(made);
        };
        debug_assert!(next.len() + made.len() <= BETWEEN_BYTES, "a filter works only when the next one has none left");
        next.extend_from_slice(made);
        self.made += made.len() as u64;
        if self.made > self.free_bytes && self.made / self.ratio_max.max(1) > self.taken {
            self.fault = Some(BOMB);
            self.layers.iter_mut().for_each(|work| work.state = State::Over);
        }
    }
}

fn as_it_stands(input: &[u8], output: &mut [u8]) -> Progress {
    let count = input.len().min(output.len());
    output[..count].copy_from_slice(&input[..count]);
    Progress { wrote: count, ..Progress::took(count) }
}

/// Zlib, whose checksum readers of PDF do not look at. A stream without any data has no content.
struct Flate {
    zlib: Zlib,
    begun: bool,
}

impl Layer for Flate {
    fn decode(&mut self, input: &[u8], last: bool, output: &mut [u8]) -> Progress {
        if !self.begun && input.is_empty() {
            return Progress::tells(0, if last { Told::Over } else { Told::Nothing });
        }
        self.begun = true;
        let mut progress = self.zlib.decode(input, output);
        let stuck = progress.taken == 0 && progress.wrote == 0 && progress.told == Told::Nothing;
        progress.told = match progress.told {
            Told::Fault(fault) if fault.fatal => Told::Fault(DATA),
            Told::Over => Told::Over,
            _ if stuck && last && input.is_empty() && self.zlib.missing().is_some() => Told::Fault(TRUNCATED),
            _ => Told::Nothing,
        };
        progress
    }
}
