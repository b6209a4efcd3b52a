//! LZMA2: chunks, each with the lengths of both its forms in front.
//!
//! Bounds: the compressed bytes of one chunk (at most 64 KiB), the model (at most 40 KiB), the dictionary.

use crate::codec::lzma::{Dictionary, INIT_BYTES, Lzma, Registers, Unreachable};
use crate::frame::codec::{Collected, Progress, Told};

/// A decoder of LZMA2 data.
pub(crate) struct Lzma2 {
    dictionary: Dictionary,
    lzma: Lzma,
    chunk: Vec<u8>,
    state: State,
    needs: Needs,
}

#[derive(Clone, Copy)]
enum State {
    /// Before a chunk.
    Control,
    /// In the header behind the control byte.
    Header(u8),
    /// Collecting the compressed bytes.
    Filling {
        plain: usize,
        packed: usize,
        started: bool,
    },
    /// Decoding them; so many bytes are still to come out.
    Decoding {
        left: usize,
        registers: Registers,
    },
    /// As `Decoding`, where the data end within the chunk.
    Cut {
        left: usize,
        registers: Registers,
    },
    /// In an uncompressed chunk.
    Copying {
        left: usize,
    },
    /// The last chunk ended in undecodable data.
    Broken(Why),
    Over,
}

/// Requirement for the next chunk.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Needs {
    Nothing,
    State,
    Properties,
    Dictionary,
}

/// The data cannot be decoded any further.
#[derive(Debug, PartialEq)]
pub(crate) struct Broken {
    /// Bytes taken by the call that found it.
    pub taken: usize,
    pub why: Why,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    Malformed,
    /// Only the cap of the dictionary stands in the way.
    Limit,
    /// The data end within a chunk.
    Truncated,
}

impl Broken {
    const fn data(taken: usize) -> Broken {
        Broken { taken, why: Why::Malformed }
    }
}

/// How many bits of context and position a literal may depend on together.
const LITERAL_BITS_MAX: u32 = 4;

impl Lzma2 {
    pub fn new() -> Lzma2 {
        Lzma2 {
            dictionary: Dictionary::new(),
            lzma: Lzma::new(),
            chunk: Vec::new(),
            state: State::Control,
            needs: Needs::Dictionary,
        }
    }

    /// Begins anew, with a dictionary of the size that its property byte declares; whether there is such a size.
    pub fn start(&mut self, property: u8, codec_bytes_max: usize) -> bool {
        const LARGEST: u8 = 40;
        if property > LARGEST {
            return false;
        }
        let size = (2 | u64::from(property & 1)) << (property / 2 + 11);
        self.dictionary.declare(size, codec_bytes_max);
        self.state = State::Control;
        self.needs = Needs::Dictionary;
        self.chunk.clear();
        true
    }

    /// Takes a prefix of `input` and fills a prefix of `output`. [`Told::Over`] at the end of the data.
    pub fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Result<Progress, Broken> {
        match self.state {
            State::Control => self.control(input),
            State::Header(control) => self.header(control, input),
            State::Filling { plain, packed, started } => self.fill(plain, packed, started, input),
            State::Decoding { left, registers } => self.decode_chunk(left, registers, output),
            State::Cut { left, registers } => self.decode_cut(left, registers, output),
            State::Copying { left } => Ok(self.copy(left, input, output)),
            State::Broken(why) => Err(Broken { taken: 0, why }),
            State::Over => Ok(Progress::tells(0, Told::Over)),
        }
    }

    fn control(&mut self, input: &[u8]) -> Result<Progress, Broken> {
        let Some(&control) = input.first() else {
            return Ok(Progress::took(0));
        };
        if control == 0 {
            self.state = State::Over;
            return Ok(Progress::tells(1, Told::Over));
        }
        let brings = match control {
            1 | 0xe0.. => Needs::Dictionary,
            0xc0.. => Needs::Properties,
            0xa0.. => Needs::State,
            2 | 0x80.. => Needs::Nothing,
            _ => return Err(Broken::data(0)),
        };
        let wanted = if control == 2 && self.needs != Needs::Dictionary { Needs::Nothing } else { self.needs };
        if brings < wanted {
            return Err(Broken::data(0));
        }
        if brings == Needs::Dictionary {
            self.dictionary.reset();
        }
        self.needs = match control {
            1 => Needs::Properties,
            2 => self.needs,
            _ => Needs::Nothing,
        };
        self.chunk.clear();
        self.state = State::Header(control);
        Ok(Progress::took(1))
    }

    fn header(&mut self, control: u8, input: &[u8]) -> Result<Progress, Broken> {
        let wanted = match control {
            1 | 2 => 2,
            0xc0.. => 5,
            _ => 4,
        };
        let taken = input.len().min(wanted - self.chunk.len());
        self.chunk.extend_from_slice(&input[..taken]);
        if self.chunk.len() < wanted {
            return Ok(Progress::took(taken));
        }
        let mut bytes = Collected::<5>::new();
        bytes.fill(&self.chunk, wanted);
        self.chunk.clear();
        let number = |at: usize| usize::from(bytes.bytes()[at]) << 8 | usize::from(bytes.bytes()[at + 1]);
        if wanted == 2 {
            self.state = State::Copying { left: number(0) + 1 };
            return Ok(Progress::took(taken));
        }
        let plain = (usize::from(control & 0x1f) << 16) + number(0) + 1;
        let packed = number(2) + 1;
        match bytes.whole() {
            Some(whole) if !self.lzma.set_properties(whole[4], LITERAL_BITS_MAX) => {
                return Err(Broken::data(taken));
            }
            None if control >= 0xa0 => self.lzma.reset(),
            _ => {}
        }
        if packed < INIT_BYTES {
            return Err(Broken::data(taken));
        }
        self.state = State::Filling { plain, packed, started: false };
        Ok(Progress::took(taken))
    }

    fn fill(&mut self, plain: usize, packed: usize, started: bool, input: &[u8]) -> Result<Progress, Broken> {
        if !started {
            self.chunk.clear();
            self.chunk.reserve_exact(packed);
        }
        let taken = input.len().min(packed - self.chunk.len());
        self.chunk.extend_from_slice(&input[..taken]);
        self.state = State::Filling { plain, packed, started: true };
        if self.chunk.len() == packed {
            let registers = Registers::start(&self.chunk).ok_or(Broken::data(taken))?;
            self.state = State::Decoding { left: plain, registers };
        }
        Ok(Progress::took(taken))
    }

    fn decode_chunk(&mut self, left: usize, mut registers: Registers, output: &mut [u8]) -> Result<Progress, Broken> {
        let (wrote, result) = self.decode_some(left, &mut registers, usize::MAX, output);
        let left = left - wrote;
        self.state = match result {
            Err(unreachable) => State::Broken(why(&unreachable)),
            Ok(()) if left > 0 => State::Decoding { left, registers },
            Ok(()) if registers.over(&self.chunk).is_finished() && !self.lzma.is_pending() => State::Control,
            Ok(()) => State::Broken(Why::Malformed),
        };
        self.wrote(wrote)
    }

    /// As [`decode_chunk`](Self::decode_chunk), up to the symbol that needs more than there is.
    fn decode_cut(&mut self, left: usize, mut registers: Registers, output: &mut [u8]) -> Result<Progress, Broken> {
        let until = self.chunk.len() + 1;
        let (wrote, result) = self.decode_some(left, &mut registers, until, output);
        let left = left - wrote;
        let goes_on = left > 0 && (registers.at() < until || self.lzma.is_pending());
        self.state = match result {
            Err(unreachable) => State::Broken(why(&unreachable)),
            Ok(()) if goes_on => State::Cut { left, registers },
            Ok(()) => State::Broken(Why::Truncated),
        };
        self.wrote(wrote)
    }

    fn decode_some(
        &mut self,
        left: usize,
        registers: &mut Registers,
        until: usize,
        output: &mut [u8],
    ) -> (usize, Result<(), Unreachable>) {
        let count = self.dictionary.room(left.min(output.len()));
        let before = self.dictionary.position();
        let result = self.lzma.decode(registers, &self.chunk, until, &mut self.dictionary, count);
        let wrote = (self.dictionary.position() - before) as usize;
        output[..wrote].copy_from_slice(self.dictionary.last(wrote));
        (wrote, result)
    }

    const fn wrote(&self, wrote: usize) -> Result<Progress, Broken> {
        match self.state {
            State::Broken(why) if wrote == 0 => Err(Broken { taken: 0, why }),
            _ => Ok(Progress { taken: 0, wrote, told: Told::Nothing }),
        }
    }

    /// Ends the data within a chunk, after a call with empty input: the existing part is decoded. Returns whether there
    /// may be more content.
    pub fn cut_short(&mut self) -> bool {
        let State::Filling { plain, started: true, .. } = self.state else { return false };
        let Some(registers) = Registers::start(&self.chunk) else { return false };
        self.state = State::Cut { left: plain, registers };
        true
    }

    fn copy(&mut self, left: usize, input: &[u8], output: &mut [u8]) -> Progress {
        let count = left.min(output.len()).min(input.len());
        if count == 0 {
            return Progress::took(0);
        }
        let count = self.dictionary.room(count);
        self.dictionary.extend(&input[..count]);
        output[..count].copy_from_slice(&input[..count]);
        self.state = match left - count {
            0 => State::Control,
            left => State::Copying { left },
        };
        Progress { taken: count, wrote: count, told: Told::Nothing }
    }
}

const fn why(unreachable: &Unreachable) -> Why {
    match unreachable {
        Unreachable::Forgotten => Why::Limit,
        Unreachable::Never => Why::Malformed,
    }
}
