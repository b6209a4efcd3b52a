//! PPMd: a byte is predicted by the longest context in which it has been seen, and range coded.
//!
//! The models ([`ModelH`] of 7z and RAR, [`ModelI`] of zip, one [`Model`] except for the increments) do not know the
//! source of the bytes: they ask a [`Coder`] for choices. [`Ppmd`] is the push decoder of a pure stream of such
//! choices, as 7z and zip have it; RAR mixes them with other data and drives [`ModelH`] itself.
//!
//! A model cannot stop inside of a symbol. So a symbol is decoded only when as many bytes have arrived as it may take,
//! or when the input has ended; until then they are held.
//!
//! Bounds: the memory that the model has filled, at most the declared size; beyond `codec_bytes_max` a Limit finding
//! ends the reading. Besides it 20 KiB of estimates and 4 KiB held.

mod arena;
mod estimate;
mod h;
mod i;
mod model;
mod range;

use stream::Class;

use crate::frame::codec::{Decoder, Fault, Progress, Told};
pub(crate) use h::ModelH;
pub(crate) use i::{ModelI, Restore};
use model::{Model, Variant};
pub(crate) use range::{Carryless, CarrylessRegisters, Coder, SevenZip, SevenZipRegisters};

/// The longest context, in bytes.
pub(crate) const ORDER_MAX: u32 = 64;

/// Decoded symbol of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Symbol {
    Byte(u8),
    /// An escape from all contexts: the end, where the format has one.
    End,
    /// No choice that an encoder would make.
    Broken,
    /// The model needs more memory than it may have. Nothing can be decoded from here on.
    OverLimit,
}

/// The range coder of a stream: where its registers become a decoder.
pub(crate) trait Flavour: Send {
    type Coder<'a>: Coder<Registers = Self::Registers>;
    type Registers: Copy + Default + Send;

    fn over(bytes: &[u8], registers: Self::Registers) -> Self::Coder<'_>;
}

/// The flavour of 7z.
pub(crate) struct OfSevenZip;

/// The flavour of zip and RAR.
pub(crate) struct OfZip;

impl Flavour for OfSevenZip {
    type Coder<'a> = SevenZip<'a>;
    type Registers = SevenZipRegisters;

    fn over(bytes: &[u8], registers: SevenZipRegisters) -> SevenZip<'_> {
        SevenZip::over(bytes, registers)
    }
}

impl Flavour for OfZip {
    type Coder<'a> = Carryless<'a>;
    type Registers = CarrylessRegisters;

    fn over(bytes: &[u8], registers: CarrylessRegisters) -> Carryless<'_> {
        Carryless::over(bytes, registers)
    }
}

/// Bytes held at most. A symbol may take 4 for each context from the longest down to none.
const HELD_BYTES_MAX: usize = 4096;
const _: () = assert!(HELD_BYTES_MAX > (ORDER_MAX as usize + 2) * 4, "the bytes of a symbol can be held");

/// A decoder of a stream of one model and one range coder.
pub(crate) struct Ppmd<V, F: Flavour> {
    model: Box<Model<V>>,
    registers: F::Registers,
    ending: Ending,
    /// Bytes written so far.
    written: u64,
    /// Bytes taken that are not decoded yet.
    held: Vec<u8>,
    state: State,
    data: Fault,
    truncated: Fault,
}

/// How a stream ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Ending {
    /// After so many bytes.
    After(u64),
    /// With the end symbol; after so many bytes it has to come, or is missing.
    EndSymbol(Option<u64>),
}

#[derive(PartialEq)]
enum State {
    Init,
    Decoding,
    Over,
}

const LIMIT: Fault = Fault::fatal(Class::Limit, "Heuristics.Limits.Exceeded.Codec");

impl<V: Variant, F: Flavour> Ppmd<V, F> {
    /// A decoder that reports `data` for a broken stream and `truncated` for an early end.
    pub fn new(model: Model<V>, ending: Ending, data: &'static str, truncated: &'static str) -> Ppmd<V, F> {
        Ppmd {
            model: Box::new(model),
            registers: F::Registers::default(),
            ending,
            written: 0,
            held: Vec::new(),
            state: State::Init,
            data: Fault::fatal(Class::Malformed, data),
            truncated: Fault::fatal(Class::Truncated, truncated),
        }
    }

    /// How many bytes have to be there before a symbol is decoded.
    fn lookahead(&self) -> usize {
        (self.model.order_max() as usize + 2) * F::Coder::CHOICE_BYTES_MAX
    }

    fn init(&mut self, input: &[u8]) -> Progress {
        let taken = input.len().min(F::Coder::INIT_BYTES - self.held.len());
        self.held.extend_from_slice(&input[..taken]);
        if self.held.len() < F::Coder::INIT_BYTES {
            return Progress::took(taken);
        }
        let Some(registers) = F::Coder::start(&self.held) else {
            self.state = State::Over;
            return Progress::fault(taken, self.data);
        };
        self.held.clear();
        self.registers = registers;
        self.state = State::Decoding;
        if self.ending == Ending::After(0) {
            self.state = State::Over;
            return Progress::tells(taken, Told::Over);
        }
        Progress::took(taken)
    }

    fn symbols(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        let last = input.is_empty();
        let taken = input.len().min(HELD_BYTES_MAX.saturating_sub(self.held.len()));
        self.held.extend_from_slice(&input[..taken]);
        let enough = if last { self.held.len() } else { self.held.len().saturating_sub(self.lookahead()) };
        let (mut used, mut wrote, mut told) = (0, 0, Told::Nothing);
        let mut coder = F::over(&self.held, self.registers);
        while told == Told::Nothing && wrote < output.len() && used < enough + usize::from(last) {
            let symbol = self.model.symbol(&mut coder);
            let is_whole = coder.consumed() <= self.held.len();
            told = match symbol {
                Symbol::End if is_whole => Told::Over,
                _ if self.ending == Ending::EndSymbol(Some(self.written)) => {
                    // The bytes received instead do not belong to this stream.
                    told = Told::Over;
                    break;
                }
                Symbol::OverLimit => Told::Fault(LIMIT),
                _ if !is_whole => Told::Fault(self.truncated),
                Symbol::Byte(byte) => {
                    output[wrote] = byte;
                    wrote += 1;
                    self.written += 1;
                    if self.ending == Ending::After(self.written) { Told::Over } else { Told::Nothing }
                }
                Symbol::End | Symbol::Broken => Told::Fault(self.data),
            };
            if !matches!(told, Told::Fault(_)) {
                used = coder.consumed();
            }
        }
        let registers = coder.registers();
        drop(coder);
        self.registers = registers;
        self.held.drain(..used);
        if told != Told::Nothing {
            self.state = State::Over;
        }
        Progress { taken, wrote, told }
    }
}

impl<V: Variant, F: Flavour> Decoder for Ppmd<V, F> {
    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        match self.state {
            State::Init => self.init(input),
            State::Decoding => self.symbols(input, output),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::trial;

    type OfH = Ppmd<h::H, OfSevenZip>;

    /// Content of the golden streams: numbers in hexadecimal, some of them in binary, drawn by a linear congruence.
    fn sample_of(length: usize) -> Vec<u8> {
        let mut sample = Vec::new();
        let mut random = 12345u32;
        while sample.len() < length {
            random = random.wrapping_mul(1_103_515_245).wrapping_add(12345) & 0x7fff_ffff;
            let word = (random >> 16) % 997;
            match (random >> 8) % 61 {
                0 => sample.extend_from_slice(&random.to_le_bytes()),
                _ => sample.extend_from_slice(format!("{:x} ", u64::from(word * word) * 7919).as_bytes()),
            }
        }
        sample.truncate(length);
        sample
    }

    fn sample() -> Vec<u8> {
        sample_of(24_000)
    }

    /// Streams made by 7-Zip: order, memory.
    const OF_H: [(&[u8], u32, u32); 4] = [
        (include_bytes!("../../tests/ppmd/h-2-64k"), 2, 64 << 10),
        (include_bytes!("../../tests/ppmd/h-6-64k"), 6, 64 << 10),
        (include_bytes!("../../tests/ppmd/h-16-65k"), 16, 65 << 10),
        (include_bytes!("../../tests/ppmd/h-32-512k"), 32, 512 << 10),
    ];

    fn of_h(order: u32, memory: u32, length: u64) -> OfH {
        let model = ModelH::new(order, memory, 64 << 20).expect("there is such a model");
        Ppmd::new(model, Ending::After(length), "data", "truncated")
    }

    #[test]
    fn what_7zip_packs_with_variant_h_comes_out_again() {
        for (packed, order, memory) in OF_H {
            let end = trial::run(&mut of_h(order, memory, sample().len() as u64), packed, usize::MAX, 65536);
            assert!(end.content == sample(), "{order} {memory}");
            assert_eq!((end.faults, end.at), (vec![], packed.len()));
        }
    }

    /// Streams made by 7-Zip, after their two bytes of parameters: order, action without memory, length.
    const OF_I: [(&[u8], u32, Restore, usize); 2] = [
        (include_bytes!("../../tests/ppmd/i-4-1m"), 4, Restore::Restart, 24_000),
        (include_bytes!("../../tests/ppmd/i-16-1m-cut-off"), 16, Restore::CutOff, 64_000),
    ];

    fn of_i(order: u32, restore: Restore, length: Option<u64>) -> Ppmd<i::I, OfZip> {
        let model = ModelI::new(order, 1 << 20, restore, 64 << 20).expect("there is such a model");
        Ppmd::new(model, Ending::EndSymbol(length), "data", "truncated")
    }

    #[test]
    fn what_7zip_packs_with_variant_i_comes_out_again() {
        for (packed, order, restore, length) in OF_I {
            for told in [None, Some(length as u64)] {
                let input = [&packed[2..], b"PK"].concat();
                let end = trial::run(&mut of_i(order, restore, told), &input, usize::MAX, 65536);
                assert!(end.content == sample_of(length), "{order} {restore:?}");
                assert_eq!((end.faults, end.at), (vec![], packed.len() - 2));
            }
        }
    }

    #[test]
    fn without_the_end_symbol_the_length_ends_it() {
        let (packed, order, restore, _) = OF_I[0];
        let end = trial::run(&mut of_i(order, restore, Some(100)), &packed[2..], usize::MAX, 65536);
        assert!(end.content == sample_of(100) && end.faults.is_empty());
    }

    #[test]
    fn the_cut_does_not_matter_to_variant_i() {
        let (packed, order, restore, _) = OF_I[0];
        let mut broken = packed[2..].to_vec();
        broken[2000] ^= 0x10;
        for input in [&packed[2..], &broken, &packed[2..5000]] {
            trial::holds(|| of_i(order, restore, None), input);
        }
    }

    #[test]
    fn the_cut_does_not_matter() {
        for (packed, order, memory) in OF_H {
            let mut broken = packed.to_vec();
            broken[packed.len() / 2] ^= 0x10;
            for input in [packed, &broken, &packed[..packed.len() - 9]] {
                trial::holds(|| of_h(order, memory, 24_000), input);
            }
        }
    }

    #[test]
    fn an_early_end_is_told_at_every_length() {
        let (packed, order, memory) = OF_H[0];
        for end in 0..300 {
            let end = trial::run(&mut of_h(order, memory, 24_000), &packed[..end], usize::MAX, 65536);
            assert_eq!(end.faults, ["truncated"]);
            assert!(sample().starts_with(&end.content));
        }
    }

    #[test]
    fn a_model_takes_what_it_fills_and_not_what_is_declared() {
        let (packed, order, memory) = OF_H[3];
        let mut decoder = of_h(order, memory, 24_000);
        trial::run(&mut decoder, &packed[..1000], usize::MAX, 65536);
        assert!(decoder.model.memory_bytes() < 200 << 10);
        assert!(ModelH::new(6, u32::MAX - 100, 64 << 20).is_some_and(|model| model.memory_bytes() < 100 << 10));
    }

    #[test]
    fn a_model_that_may_not_have_its_memory_says_so() {
        let (packed, order, memory) = OF_H[3];
        for bytes_max in [1000, 64 << 10, 200 << 10] {
            let Some(model) = ModelH::new(order, memory, bytes_max) else {
                continue;
            };
            let mut decoder = Ppmd::<_, OfSevenZip>::new(model, Ending::After(24_000), "data", "truncated");
            let end = trial::run(&mut decoder, packed, usize::MAX, 65536);
            assert_eq!(end.faults, [LIMIT.name]);
            assert!(!end.content.is_empty() && sample().starts_with(&end.content));
            assert!(decoder.model.memory_bytes() <= bytes_max);
            let mut coder = SevenZip::over(packed, decoder.registers);
            assert_eq!(decoder.model.symbol(&mut coder), Symbol::OverLimit);
        }
    }

    #[test]
    fn orders_and_memories_that_no_encoder_has_are_refused() {
        assert!(ModelH::new(1, 1 << 20, 1 << 20).is_none());
        assert!(ModelH::new(65, 1 << 20, 1 << 20).is_none());
        assert!(ModelH::new(6, 2047, 1 << 20).is_none());
    }
}
