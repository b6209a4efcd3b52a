//! Zip's method table: APPNOTE 6.3.10, section 4.4.5.
//!
//! Not read: tokenize (7), the old and the new TERSE (10, 18), LZ77 of IBM (19), MP3 (94), JPEG (96), WavPack (97), and
//! PPMd that freezes its model.

use stream::{Class, Limits};

use super::record::Header;
use crate::bits::tokens::{Tokens, Tokenwise};
use crate::codec::deflate::Deflate;
use crate::codec::deflate64::Deflate64;
use crate::codec::implode::Implode;
use crate::codec::lzma::{LzmaStream, PROPERTIES_BYTES};
use crate::codec::ppmd::{Ending, ModelI, OfZip, Ppmd, Restore};
use crate::codec::reduce::Reduce;
use crate::codec::shrink::Shrink;
use crate::frame::codec::{Decoder, Fault, Progress, Told, le16};
use crate::stream::bzip2::Bzip2;
use crate::stream::xz::Xz;
use crate::stream::zstd::Zstd;

const DATA: &str = "Heuristics.Malformed.Zip.Data";
const TRUNCATED: &str = "Heuristics.Truncated.Zip";
const METHOD: Fault = Fault::fatal(Class::Limit, "Heuristics.Limits.Exceeded.ZipMethod");

/// The decoder of a member's content; `None` if its method is not read.
pub(super) fn decoder(header: &Header, limits: &Limits) -> Option<Box<dyn Decoder>> {
    let length = length(header);
    Some(match header.method {
        1 => tokens(Shrink::new(), length),
        2..=5 => tokens(Reduce::new(header.method), length),
        6 => tokens(Implode::new(header.flags), length),
        8 => Box::new(Deflate::new(DATA, TRUNCATED)),
        9 => tokens(Deflate64::new(), None),
        12 => Box::new(Bzip2::single(limits)),
        14 => Box::new(Headed::new(LZMA_HEADER_BYTES, lzma, header, limits)),
        93 | 20 => Box::new(Zstd::single(limits)),
        95 => Box::new(Xz::single(limits)),
        98 => Box::new(Headed::new(PPMD_HEADER_BYTES, ppmd, header, limits)),
        _ => return None,
    })
}

/// The length of the content, if the header tells it.
fn length(header: &Header) -> Option<u64> {
    (!header.has_descriptor() || header.uncompressed != 0).then_some(header.uncompressed)
}

fn tokens<T: Tokens + 'static>(tokens: T, length: Option<u64>) -> Box<dyn Decoder> {
    Box::new(Tokenwise::new(tokens, length, DATA, TRUNCATED))
}

/// Version (2), length of the properties (2), properties.
const LZMA_HEADER_BYTES: usize = 4 + PROPERTIES_BYTES;

fn lzma(bytes: &[u8], header: &Header, limits: &Limits) -> Result<Box<dyn Decoder>, Fault> {
    const END_MARKER: u16 = 2;
    const BROKEN: Fault = Fault::fatal(Class::Malformed, DATA);
    let properties = *bytes.get(4..).and_then(<[u8]>::first_chunk).ok_or(BROKEN)?;
    if usize::from(le16(bytes, 2)) != PROPERTIES_BYTES {
        return Err(BROKEN);
    }
    let length = if header.flags & END_MARKER != 0 { None } else { length(header) };
    let stream = LzmaStream::new(properties, length, limits.codec_bytes_max as usize, DATA, TRUNCATED);
    Ok(Box::new(stream.ok_or(BROKEN)?))
}

/// Order, memory in MB, and the action when it is exhausted: 4, 8 and 4 bits.
const PPMD_HEADER_BYTES: usize = 2;

fn ppmd(bytes: &[u8], header: &Header, limits: &Limits) -> Result<Box<dyn Decoder>, Fault> {
    let parameters = le16(bytes, 0);
    let (order, memory) = (u32::from(parameters & 15) + 1, (u32::from(parameters >> 4 & 0xff) + 1) << 20);
    let restore = match parameters >> 12 {
        0 => Restore::Restart,
        1 => Restore::CutOff,
        _ => return Err(METHOD),
    };
    let model = ModelI::new(order, memory, restore, limits.codec_bytes_max as usize).ok_or(METHOD)?;
    Ok(Box::new(Ppmd::<_, OfZip>::new(model, Ending::EndSymbol(length(header)), DATA, TRUNCATED)))
}

/// Makes a decoder from the parameters before its data.
type Make = fn(&[u8], &Header, &Limits) -> Result<Box<dyn Decoder>, Fault>;

/// A decoder whose parameters precede its data.
struct Headed {
    wanted: usize,
    make: Make,
    header: Header,
    limits: Limits,
    bytes: Vec<u8>,
    inner: Option<Box<dyn Decoder>>,
}

impl Headed {
    fn new(wanted: usize, make: Make, header: &Header, limits: &Limits) -> Headed {
        Headed { wanted, make, header: *header, limits: limits.clone(), bytes: Vec::new(), inner: None }
    }
}

impl Decoder for Headed {
    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        if let Some(inner) = &mut self.inner {
            return inner.decode(input, output);
        }
        let taken = input.len().min(self.wanted - self.bytes.len());
        self.bytes.extend_from_slice(&input[..taken]);
        if self.bytes.len() < self.wanted {
            return Progress::took(taken);
        }
        match (self.make)(&self.bytes, &self.header, &self.limits) {
            Ok(inner) => self.inner = Some(inner),
            Err(fault) => return Progress::fault(taken, fault),
        }
        Progress::tells(taken, Told::Nothing)
    }

    fn missing(&self) -> Option<Fault> {
        match &self.inner {
            Some(inner) => inner.missing(),
            None => Some(Fault::fatal(Class::Truncated, TRUNCATED)),
        }
    }

    fn surplus(&self) -> &[u8] {
        self.inner.as_ref().map_or(&[], |inner| inner.surplus())
    }
}
