//! The content of a folder, pulled out of what was kept through its coders.
//!
//! Bounds: the dictionaries of a folder together at most `codec_bytes_max`, 4 KiB between two coders.

use stream::{Class, Limits, ReadAt};

use super::aes::{Key, Properties};
use super::bcj2::Bcj2;
use super::brotli::BrotliCoder;
use super::header::{AES, Coder, Folder};
use super::pull::{CUT, DATA, Pull, Read};
use crate::bits::tokens::Tokenwise;
use crate::codec::deflate::Deflate;
use crate::codec::deflate64::Deflate64;
use crate::codec::lzma::LzmaStream;
use crate::codec::ppmd::{Ending, ModelH, OfSevenZip, Ppmd};
use crate::frame::codec::{Decoder, Fault, Progress, Told, le32};
use crate::stream::bzip2::Bzip2;
use crate::stream::lz4::Lz4;
use crate::stream::xz::filter::{Chain, FILTER_BYTES};
use crate::stream::xz::lzma2::{Lzma2, Why};
use crate::stream::zstd::Zstd;

const METHOD: Fault = Fault::fatal(Class::Limit, "Heuristics.Limits.Exceeded.SevenZipMethod");
pub(super) const ENCRYPTED: Fault = Fault::fatal(Class::Encrypted, "Heuristics.Encrypted.SevenZip");
const DICTIONARY: Fault = Fault::fatal(Class::Limit, "Heuristics.Limits.Exceeded.Codec");

/// Packed bytes that may be read in one call without anything coming out.
const WORK_BYTES: usize = 64 << 10;

/// Something that bytes come out of.
pub(super) enum Source {
    Packed { at: u64, left: u64 },
    Coder(Box<Coded>),
    Bcj2(Box<Bcj2<Source>>),
}

/// The output of a coder with one input.
pub(super) struct Coded {
    decoder: Box<dyn Decoder>,
    input: Source,
    buffer: [u8; FILTER_BYTES],
    start: usize,
    end: usize,
    /// Whether the input has ended, and the fault if that is too early.
    ended: bool,
    broken: Option<Fault>,
    left: u64,
    owing: Option<Fault>,
}

impl Source {
    /// Opens the content of a folder, or returns the reason for failure. Encrypted content needs a key.
    pub fn of(folder: &Folder, limits: &Limits, key: Option<&Key>) -> Result<Source, Fault> {
        let main = folder.main_output().ok_or(DATA)?;
        Means { limits, key, memory_left: limits.codec_bytes_max as usize }.output(folder, main, folder.coders.len())
    }
}

impl Pull for Source {
    fn read(&mut self, kept: &dyn ReadAt, output: &mut [u8]) -> Result<Read, Fault> {
        match self {
            Source::Packed { left: 0, .. } => Ok(Read::End),
            Source::Packed { at, left } => {
                let wanted = usize::try_from(*left).map_or(output.len(), |left| left.min(output.len()));
                let count = kept.read_at(*at, &mut output[..wanted]);
                (*at, *left) = (*at + count as u64, *left - count as u64);
                if count == 0 { Err(CUT) } else { Ok(Read::Some(count)) }
            }
            Source::Coder(coded) => coded.read(kept, output),
            Source::Bcj2(bcj2) => bcj2.read(kept, output),
        }
    }
}

/// Inputs for the coders of a folder.
struct Means<'a> {
    limits: &'a Limits,
    key: Option<&'a Key>,
    memory_left: usize,
}

impl Means<'_> {
    /// The output of a coder; behind it there can be `depth` more.
    fn output(&mut self, folder: &Folder, output: usize, depth: usize) -> Result<Source, Fault> {
        let (coder, &size) = folder.coders.get(output).zip(folder.sizes.get(output)).ok_or(DATA)?;
        let depth = depth.checked_sub(1).ok_or(DATA)?;
        let first: usize = folder.coders[..output].iter().map(|coder| coder.inputs).sum();
        let inputs = (first..first + coder.inputs).map(|input| self.input(folder, input, depth));
        let mut inputs = inputs.collect::<Result<Vec<_>, _>>()?;
        if coder.id == id::BCJ2 {
            let inputs = inputs.try_into().map_err(|_| DATA)?;
            return Ok(Source::Bcj2(Box::new(Bcj2::new(inputs, size))));
        }
        let (Some(input), true) = (inputs.pop(), inputs.is_empty()) else {
            return Err(DATA);
        };
        Ok(Source::Coder(Box::new(Coded {
            decoder: self.decoder(coder, size)?,
            input,
            buffer: [0; FILTER_BYTES],
            start: 0,
            end: 0,
            ended: false,
            broken: None,
            left: size,
            owing: None,
        })))
    }

    fn input(&mut self, folder: &Folder, input: usize, depth: usize) -> Result<Source, Fault> {
        if let Some((_, output)) = folder.binds.iter().find(|(bound, _)| *bound == input) {
            return self.output(folder, *output, depth);
        }
        let index = folder.packed_inputs.iter().position(|&packed| packed == input).ok_or(DATA)?;
        let &(at, left) = folder.packed.get(index).ok_or(DATA)?;
        Ok(Source::Packed { at, left })
    }

    /// Claims memory, at most the rest of the allowance.
    fn claim(&mut self, declared: u64) -> usize {
        let granted = usize::try_from(declared).map_or(self.memory_left, |declared| declared.min(self.memory_left));
        self.memory_left -= granted;
        granted
    }

    fn decoder(&mut self, coder: &Coder, size: u64) -> Result<Box<dyn Decoder>, Fault> {
        let properties = coder.properties.as_slice();
        let decoder: Option<Box<dyn Decoder>> = match coder.id {
            id::COPY => Some(Box::new(Copy)),
            id::LZMA => properties.first_chunk().and_then(|properties| {
                let memory = self.claim(u64::from(le32(properties, 1)));
                let lzma = LzmaStream::new(*properties, Some(size), memory, DATA.name, CUT.name);
                lzma.map(|lzma| Box::new(lzma) as Box<dyn Decoder>)
            }),
            id::LZMA2 => properties.first().and_then(|&property| {
                let declared = (2 | u64::from(property & 1)) << (property.min(40) / 2 + 11);
                let mut lzma2 = Lzma2::new();
                lzma2.start(property, self.claim(declared)).then(|| Box::new(Lzma2Coder(lzma2)) as Box<dyn Decoder>)
            }),
            // Order and memory; some writers put reserved bytes behind them.
            id::PPMD if properties.len() >= 5 => {
                let memory = le32(properties, 1);
                let model = ModelH::new(u32::from(properties[0]), memory, self.claim(2 * u64::from(memory)));
                model.map(|model| {
                    let ending = Ending::After(size);
                    Box::new(Ppmd::<_, OfSevenZip>::new(model, ending, DATA.name, CUT.name)) as Box<dyn Decoder>
                })
            }
            id::BZIP2 => Some(Box::new(Bzip2::new(self.limits))),
            id::BROTLI => Some(Box::new(BrotliCoder::new(self.limits))),
            id::LZ4 => Some(Box::new(Lz4::new())),
            id::ZSTD => Some(Box::new(Zstd::new(self.limits))),
            id::DEFLATE64 => Some(Box::new(Tokenwise::new(Deflate64::new(), Some(size), DATA.name, CUT.name))),
            AES => {
                let key = self.key.ok_or(ENCRYPTED)?;
                Properties::read(properties).ok_or(METHOD)?.decoder(key)
            }
            id::DEFLATE => Some(Box::new(Deflate::new(DATA.name, CUT.name))),
            id::DELTA => Filtered::of(id::DELTA, properties),
            _ => {
                let branch = id::BRANCHES.iter().find(|(id, _)| *id == coder.id).map(|(_, xz)| *xz);
                let branch = branch.or((coder.id == id::SPARC).then_some(9)).ok_or(METHOD)?;
                Filtered::of(branch, &[])
            }
        };
        decoder.ok_or(DATA)
    }
}

impl Coded {
    fn read(&mut self, kept: &dyn ReadAt, output: &mut [u8]) -> Result<Read, Fault> {
        if let Some(fault) = self.owing {
            return Err(fault);
        }
        let wanted = usize::try_from(self.left).map_or(output.len(), |left| left.min(output.len()));
        if wanted == 0 {
            return Ok(Read::End);
        }
        let mut work = 0;
        while work < WORK_BYTES {
            if self.start == self.end && !self.ended {
                match self.input.read(kept, &mut self.buffer) {
                    Ok(Read::Some(count)) => (self.start, self.end) = (0, count),
                    Ok(Read::End) => self.ended = true,
                    Ok(Read::Later) => return Ok(Read::Later),
                    Err(fault) => (self.ended, self.broken) = (true, Some(fault)),
                }
            }
            let progress = self.decoder.decode(&self.buffer[self.start..self.end], &mut output[..wanted]);
            self.start += progress.taken;
            work += progress.taken.max(1);
            self.left -= progress.wrote as u64;
            let stuck = progress == Progress::took(0) && self.ended;
            match progress.told {
                Told::Fault(fault) if fault.fatal => self.owing = Some(fault),
                Told::Over if self.left > 0 => self.owing = Some(DATA),
                _ if stuck => self.owing = self.broken.or_else(|| self.decoder.missing()).or(Some(DATA)),
                _ => {}
            }
            if progress.wrote > 0 {
                return Ok(Read::Some(progress.wrote));
            }
            if let Some(fault) = self.owing {
                return Err(fault);
            }
        }
        Ok(Read::Later)
    }
}

mod id {
    pub const COPY: u64 = 0;
    pub const DELTA: u64 = 3;
    pub const LZMA2: u64 = 0x21;
    pub const LZMA: u64 = 0x03_01_01;
    pub const BCJ2: u64 = 0x0303_011b;
    pub const PPMD: u64 = 0x03_04_01;
    pub const DEFLATE: u64 = 0x04_01_08;
    pub const BZIP2: u64 = 0x04_02_02;
    pub const ZSTD: u64 = 0x04f7_1101;
    pub const BROTLI: u64 = 0x04f7_1102;
    pub const LZ4: u64 = 0x04f7_1104;
    pub const DEFLATE64: u64 = 0x04_01_09;

    /// Branch filters, with their numbers in xz.
    pub const BRANCHES: [(u64, u64); 13] = [
        (4, 4),
        (5, 5),
        (6, 6),
        (7, 7),
        (8, 8),
        (9, 9),
        (0xa, 0xa),
        (0xb, 0xb),
        (0x0303_0103, 4),
        (0x0303_0205, 5),
        (0x0303_0401, 6),
        (0x0303_0501, 7),
        (0x0303_0701, 8),
    ];
    pub const SPARC: u64 = 0x0303_0805;
}

/// The coder that does nothing.
struct Copy;

impl Decoder for Copy {
    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        let count = input.len().min(output.len());
        output[..count].copy_from_slice(&input[..count]);
        Progress { taken: count, wrote: count, told: Told::Nothing }
    }

    fn missing(&self) -> Option<Fault> {
        Some(DATA)
    }
}

struct Lzma2Coder(Lzma2);

impl Decoder for Lzma2Coder {
    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        let mut progress = self.0.decode(input, output);
        if progress == Ok(Progress::took(0)) && input.is_empty() && self.0.cut_short() {
            progress = self.0.decode(input, output);
        }
        progress.unwrap_or_else(|broken| Progress::fault(broken.taken, fault(broken.why)))
    }

    fn missing(&self) -> Option<Fault> {
        Some(DATA)
    }
}

const fn fault(why: Why) -> Fault {
    match why {
        Why::Malformed => DATA,
        Why::Limit => DICTIONARY,
        Why::Truncated => CUT,
    }
}

/// A filter.
struct Filtered {
    chain: Chain,
    ended: bool,
}

impl Filtered {
    fn of(id: u64, properties: &[u8]) -> Option<Box<dyn Decoder>> {
        let chain = Chain::new(&[(id, properties.to_vec())])?;
        Some(Box::new(Filtered { chain, ended: false }))
    }
}

impl Decoder for Filtered {
    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        let wrote = self.chain.take(output);
        if wrote > 0 {
            return Progress { taken: 0, wrote, told: Told::Nothing };
        }
        let piece = &input[..input.len().min(FILTER_BYTES)];
        match piece {
            [] if self.ended => return Progress::took(0),
            [] => {
                self.ended = true;
                self.chain.finish();
            }
            piece => self.chain.push(piece),
        }
        Progress { taken: piece.len(), wrote: self.chain.take(output), told: Told::Nothing }
    }

    fn missing(&self) -> Option<Fault> {
        Some(DATA)
    }
}
