//! LZMA by push: one stream of symbols, as zip, lzip, 7z and `.lzma` files have it, without its container.
//!
//! A symbol cannot be decoded in part. So it is decoded only when as many bytes have arrived as it may take, or when
//! the input has ended; until then they are held. LZMA2, which has whole chunks, uses the parts in the modules.
//!
//! Bounds: a dictionary that grows with the data up to the cap, the model (up to 6 MB for the widest literals, 28 KiB
//! for usual ones), 4 KiB held. A reference further back than the cap is a Limit finding and ends the reading.

mod dictionary;
mod range;
mod symbols;

use stream::Class;

use crate::frame::codec::{Decoder, Fault, Progress, Told, le32};
pub(crate) use dictionary::{Dictionary, SHORT, Unreachable};
pub(crate) use range::{INIT_BYTES, Registers};
pub(crate) use symbols::Lzma;

/// Maximum held bytes, and those of one symbol: 22 modelled bits of at most 6.1 bits each, and 26 others.
const HELD_BYTES_MAX: usize = 4096;
const SYMBOL_BYTES_MAX: usize = 24;

/// Bytes of lc, lp, pb and the size of the dictionary.
pub(crate) const PROPERTIES_BYTES: usize = 5;

const LIMIT: Fault = Fault::fatal(Class::Limit, "Heuristics.Limits.Exceeded.Codec");

/// A decoder of one LZMA stream.
pub(crate) struct LzmaStream {
    lzma: Lzma,
    dictionary: Dictionary,
    registers: Registers,
    /// The length, if it is known. Then an end marker may follow; else one must.
    length: Option<u64>,
    /// Bytes taken that are not decoded yet.
    held: Vec<u8>,
    state: State,
    data: Fault,
    truncated: Fault,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Init,
    Decoding,
    /// The last symbol needed more bytes than exist; its apparent content is emitted first.
    Overrun,
    Over,
}

impl LzmaStream {
    /// A decoder that reports `data` for a broken stream and `truncated` for an early end; `None` if there are no such
    /// properties.
    pub fn new(
        properties: [u8; PROPERTIES_BYTES],
        length: Option<u64>,
        codec_bytes_max: usize,
        data: &'static str,
        truncated: &'static str,
    ) -> Option<LzmaStream> {
        const LITERAL_BITS_MAX: u32 = 12;
        let mut lzma = Lzma::new();
        if !lzma.set_properties(properties[0], LITERAL_BITS_MAX) {
            return None;
        }
        let mut dictionary = Dictionary::new();
        dictionary.declare(u64::from(le32(&properties, 1)), codec_bytes_max);
        Some(LzmaStream {
            lzma,
            dictionary,
            registers: Registers::default(),
            length,
            held: Vec::new(),
            state: State::Init,
            data: Fault::fatal(Class::Malformed, data),
            truncated: Fault::fatal(Class::Truncated, truncated),
        })
    }

    fn init(&mut self, input: &[u8]) -> Progress {
        let taken = input.len().min(INIT_BYTES - self.held.len());
        self.held.extend_from_slice(&input[..taken]);
        if self.held.len() < INIT_BYTES {
            return Progress::took(taken);
        }
        let Some(registers) = Registers::start(&self.held) else {
            return self.ends(taken, 0, Told::Fault(self.data));
        };
        self.registers = registers;
        self.state = State::Decoding;
        Progress::took(taken)
    }

    fn symbols(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        let last = input.is_empty();
        let taken = input.len().min(HELD_BYTES_MAX.saturating_sub(self.held.len()));
        self.held.extend_from_slice(&input[..taken]);
        let until = if last { self.held.len() + 1 } else { (self.held.len() + 1).saturating_sub(SYMBOL_BYTES_MAX) };
        let left = self.length.map_or(u64::MAX, |length| length - self.dictionary.position());
        if left == 0 {
            return self.behind_content(taken, until, last);
        }
        let wanted = usize::try_from(left).map_or(output.len(), |left| left.min(output.len()));
        let (wrote, result) = self.decode_some(until, &mut output[..wanted]);
        if let Err(unreachable) = result {
            let told = match unreachable {
                Unreachable::Forgotten => Told::Fault(LIMIT),
                Unreachable::Never if self.lzma.is_end_marker() => return self.behind_marker(taken, wrote),
                Unreachable::Never => Told::Fault(self.data),
            };
            return self.ends(taken, wrote, told);
        }
        if self.registers.at() > self.held.len() {
            self.state = State::Overrun;
        }
        self.drop_used();
        Progress { taken, wrote, told: Told::Nothing }
    }

    fn decode_some(&mut self, until: usize, output: &mut [u8]) -> (usize, Result<(), Unreachable>) {
        let count = self.dictionary.room(output.len());
        let before = self.dictionary.position();
        let result = self.lzma.decode(&mut self.registers, &self.held, until, &mut self.dictionary, count);
        let wrote = (self.dictionary.position() - before) as usize;
        output[..wrote].copy_from_slice(self.dictionary.last(wrote));
        (wrote, result)
    }

    /// Writes the rest of the broken last symbol.
    fn overrun(&mut self, output: &mut [u8]) -> Progress {
        if !self.lzma.is_pending() {
            return self.ends(0, 0, Told::Fault(self.truncated));
        }
        let (wrote, _) = self.decode_some(0, output);
        Progress { taken: 0, wrote, told: Told::Nothing }
    }

    /// All content is out: the range decoder is spent, or the end marker follows.
    fn behind_content(&mut self, taken: usize, until: usize, last: bool) -> Progress {
        if self.lzma.is_pending() {
            return self.ends(taken, 0, Told::Fault(self.data));
        }
        if self.registers.at() >= until && !last {
            return Progress::took(taken);
        }
        let mut range = self.registers.over(&self.held);
        if range.is_spent() {
            self.registers = range.registers();
            return self.ends(taken, 0, Told::Over);
        }
        let (_, result) = self.decode_some(usize::MAX, &mut [0]);
        if result == Err(Unreachable::Never) && self.lzma.is_end_marker() {
            return self.behind_marker(taken, 0);
        }
        self.ends(taken, 0, Told::Fault(self.data))
    }

    fn behind_marker(&mut self, taken: usize, wrote: usize) -> Progress {
        let mut range = self.registers.over(&self.held);
        let is_spent = range.is_spent();
        self.registers = range.registers();
        let told = match self.registers.at() > self.held.len() {
            true => Told::Fault(self.truncated),
            false if !is_spent || self.length.is_some_and(|length| length != self.dictionary.position()) => {
                Told::Fault(self.data)
            }
            false => Told::Over,
        };
        self.ends(taken, wrote, told)
    }

    fn ends(&mut self, taken: usize, wrote: usize, told: Told) -> Progress {
        self.drop_used();
        self.state = State::Over;
        Progress { taken, wrote, told }
    }

    fn drop_used(&mut self) {
        let used = self.registers.at().min(self.held.len());
        self.held.drain(..used);
        self.registers.dropped(used);
    }
}

impl Decoder for LzmaStream {
    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        match self.state {
            State::Init => self.init(input),
            State::Decoding => self.symbols(input, output),
            State::Overrun => self.overrun(output),
            State::Over => Progress::tells(0, Told::Over),
        }
    }

    fn missing(&self) -> Option<Fault> {
        (self.state != State::Over).then_some(self.truncated)
    }

    fn surplus(&self) -> &[u8] {
        &self.held
    }
}
