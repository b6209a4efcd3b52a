//! ARC of System Enhancement Associates: headers and contents one behind the other.
//!
//! Stored, packed (runs), squeezed (Huffman and runs), crunched of the last kind (LZW of 9 to 12 bits and runs), squashed (LZW of
//! 9 to 13 bits). Recognised and emitted raw: the first kinds of crunching, crushed and distilled members. Garbled members are not
//! marked as such: their checksum is wrong. Source: the description of the format in ARC's manual. Bounds: a header of 29
//! bytes, a table of 8,192 codes, what one code makes (half a MiB).

use stream::{Class, Entry, Limits, Object};

use crate::bits::tokens::{Bits, Broken, Tokens, Tokenwise};
use crate::frame::archive::{Archive, Check, Content, Faults, Member, Record, Records};
use crate::frame::codec::{Decoder, Fault, Progress, le16, le32};
use crate::frame::cuts;
use crate::frame::format::{Format, Reads};
use crate::frame::name;
use crate::stream::lzw::Lzw;

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "ARC",
    methods: "stored, packed, squeezed, crunched (method 8), squashed",
    not_read: "crunched by the first versions (5 to 7), crushed, distilled; garbled members",
    reads: Reads::Stream,
    memory: "1 MiB",
    decoder: "own",
    fuzz: "unpack_arc",
    compared_with: "arc, which made the seeds",
};

const HEADER: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.Arc.Header");
const DATA: Fault = Fault::fatal(Class::Malformed, "Heuristics.Malformed.Arc.Data");
const METHOD: Fault = Fault::passing(Class::Limit, "Heuristics.Limits.Exceeded.ArcMethod");
const TRUNCATED: &str = "Heuristics.Truncated.Arc";

const MARK: u8 = 0x1a;
const HEADER_BYTES: usize = 29;
/// Without the size of the content, which the oldest method has not.
const OLD_BYTES: usize = 25;
const OLD: u8 = 1;
const NAME: std::ops::Range<usize> = 2..15;
const SQUASHED_BITS: u32 = 13;

/// A reader of archives.
pub(crate) struct Arc {
    name_bytes_max: usize,
    decoder: Option<Box<dyn Decoder>>,
    ended: bool,
}

/// A header: a method, a name that ends, and sizes that agree.
pub(crate) fn is_header(head: &[u8]) -> bool {
    let (Some([MARK, method]), Some(name)) = (head.get(..2), head.get(NAME)) else { return false };
    let end = name.iter().position(|&byte| byte == 0).unwrap_or(0);
    let is_name = end > 0 && name[..end].iter().all(|byte| !byte.is_ascii_control() && *byte != b' ');
    let (packed, size) = (le32(head, 15), le32(head, 25));
    let fits = if *method == 2 { packed == size } else { packed <= size.saturating_add(64) };
    head.len() >= HEADER_BYTES && (2..=11).contains(method) && is_name && fits
}

/// Whether a header is more than chance: its name is one of DOS, and its date and time are on the calendar. Of random bytes
/// one in 50,000 is a header, and one in a million is this.
pub(crate) fn is_plausible(head: &[u8]) -> bool {
    let name = head.get(NAME).unwrap_or_default().split(|&byte| byte == 0).next().unwrap_or_default();
    let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-~!#$%&'()@^{}".contains(byte);
    let Some(stamp) = head.get(19..23) else { return false };
    let (date, time) = (le16(stamp, 0), le16(stamp, 2));
    let is_date = (1..=12).contains(&(date >> 5 & 15)) && date & 31 > 0;
    let is_time = time >> 11 < 24 && (time >> 5 & 63) < 60 && time & 31 < 30;
    name.iter().all(is_of_name) && is_date && is_time
}

impl Arc {
    pub fn new(limits: &Limits) -> Arc {
        Arc { name_bytes_max: limits.name_bytes_max as usize, decoder: None, ended: false }
    }

    fn member(&mut self, head: &[u8], faults: &mut Vec<Fault>) -> Record {
        let method = head[1];
        let (length, packed) = (if method == OLD { OLD_BYTES } else { HEADER_BYTES }, le32(head, 15));
        let size = u64::from(if method == OLD { packed } else { le32(head, 25) });
        self.decoder = decoder(method, size);
        let is_read = self.decoder.is_some() || method <= 2;
        if !is_read {
            faults.push(METHOD);
        }
        let packed = u64::from(packed);
        let content = match self.decoder {
            // The decoder knows the size, and where the last code ends.
            Some(_) => Content::Packed { packed: Some(packed), size: None },
            None => Content::Raw(packed),
        };
        let check = if is_read { Check::crc16(le16(head, 23)) } else { Check::None };
        let name = head[NAME].split(|&byte| byte == 0).next().unwrap_or_default();
        let name = Some(name::utf8_or_cp437(&name[..name.len().min(self.name_bytes_max)]));
        let entry = Some(Box::new(Entry { packed: Some(packed), size: Some(size), ..Entry::default() }));
        let object = Object { name, size: is_read.then_some(size), entry, ..Object::default() };
        Record::Member(length, Member { object, content, check })
    }
}

/// The decoder of a method, if there is one.
fn decoder(method: u8, size: u64) -> Option<Box<dyn Decoder>> {
    fn of(tokens: impl Tokens + 'static, size: u64) -> Option<Box<dyn Decoder>> {
        Some(Box::new(Tokenwise::new(tokens, Some(size), DATA.name, TRUNCATED)))
    }
    match method {
        3 => of(Runs::new(Plain), size),
        4 => of(Runs::new(Squeezed::default()), size),
        8 => of(Runs::new(Crunched::default()), size),
        9 => of(Lzw::new(SQUASHED_BITS, true), size),
        _ => None,
    }
}

impl Records for Arc {
    const FAULTS: Faults = Faults {
        truncated: Fault::passing(Class::Truncated, TRUNCATED),
        check: Fault::passing(Class::Malformed, "Heuristics.Malformed.Arc.Crc"),
        size: Fault::passing(Class::Malformed, "Heuristics.Malformed.Arc.Size"),
    };

    fn record(&mut self, head: &[u8], _: u64, faults: &mut Vec<Fault>) -> Record {
        match head {
            _ if self.ended => Record::Rest,
            [MARK, 0, ..] => {
                self.ended = true;
                Record::pass_bytes(2)
            }
            [] | [MARK] => Record::Need(2),
            [MARK, OLD, ..] if head.len() < OLD_BYTES => Record::Need(OLD_BYTES),
            [MARK, method, ..] if *method != OLD && head.len() < HEADER_BYTES => Record::Need(HEADER_BYTES),
            [MARK, ..] => self.member(head, faults),
            _ => {
                faults.push(HEADER);
                Record::Rest
            }
        }
    }

    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        match &mut self.decoder {
            Some(decoder) => decoder.decode(input, output),
            None => Progress::fault(0, DATA),
        }
    }

    fn surplus(&self) -> &[u8] {
        self.decoder.as_ref().map_or(&[], |decoder| decoder.surplus())
    }

    fn may_end(&self) -> bool {
        self.ended
    }
}

/// Bytes as they stand.
struct Plain;

impl Tokens for Plain {
    const BITS_MAX: u32 = 8;

    fn token(&mut self, bits: &mut Bits, content: &mut Vec<u8>) -> Result<(), Broken> {
        content.push(bits.take(8) as u8);
        Ok(())
    }

    fn may_end(&self, bits_left: u32) -> bool {
        bits_left == 0
    }
}

/// Run-length coding with a marker byte, over the output of another method.
struct Runs<T> {
    inner: T,
    made: Vec<u8>,
    last: u8,
    marked: bool,
}

impl<T> Runs<T> {
    const fn new(inner: T) -> Runs<T> {
        Runs { inner, made: Vec::new(), last: 0, marked: false }
    }
}

impl<T: Tokens> Tokens for Runs<T> {
    const BITS_MAX: u32 = T::BITS_MAX;

    fn token(&mut self, bits: &mut Bits, content: &mut Vec<u8>) -> Result<(), Broken> {
        const RUN: u8 = 0x90;
        self.made.clear();
        self.inner.token(bits, &mut self.made)?;
        for &byte in &self.made {
            match (std::mem::take(&mut self.marked), byte) {
                (false, RUN) => self.marked = true,
                (true, 0) => {
                    content.push(RUN);
                    self.last = RUN;
                }
                (true, count) => content.resize(content.len() + usize::from(count) - 1, self.last),
                (false, byte) => {
                    content.push(byte);
                    self.last = byte;
                }
            }
        }
        Ok(())
    }

    fn may_end(&self, bits_left: u32) -> bool {
        self.inner.may_end(bits_left)
    }

    fn is_over(&self) -> bool {
        self.inner.is_over()
    }
}

/// Codes of a tree that precedes the data: each node has two children, of which negative ones are symbols.
#[derive(Default)]
struct Squeezed {
    /// How many nodes the tree has, once that was read.
    count: Option<usize>,
    nodes: Vec<[i16; 2]>,
    at: usize,
    over: bool,
}

impl Squeezed {
    const NODES_MAX: usize = 256;
    const END: i16 = 256;

    fn child(&mut self, child: i16, content: &mut Vec<u8>) -> Result<(), Broken> {
        if let Ok(at) = usize::try_from(child) {
            self.at = at;
            return if at < self.nodes.len() { Ok(()) } else { Err(Broken) };
        }
        self.at = 0;
        match !child {
            Self::END => self.over = true,
            symbol => content.push(u8::try_from(symbol).map_err(|_| Broken)?),
        }
        Ok(())
    }
}

impl Tokens for Squeezed {
    const BITS_MAX: u32 = 32;

    fn token(&mut self, bits: &mut Bits, content: &mut Vec<u8>) -> Result<(), Broken> {
        let Some(count) = self.count else {
            let count = bits.take(16) as usize;
            self.count = Some(count);
            self.over = count == 0;
            return if count <= Self::NODES_MAX { Ok(()) } else { Err(Broken) };
        };
        if self.nodes.len() < count {
            let children = [bits.take(16), bits.take(16)];
            self.nodes.push(children.map(|child| child as u16 as i16));
            return Ok(());
        }
        let children = *self.nodes.get(self.at).ok_or(Broken)?;
        let child = children[bits.take(1) as usize];
        self.child(child, content)
    }

    fn may_end(&self, _: u32) -> bool {
        self.over
    }

    fn is_over(&self) -> bool {
        self.over
    }
}

/// LZW behind the width of its longest codes.
#[derive(Default)]
struct Crunched {
    lzw: Option<Lzw>,
}

impl Tokens for Crunched {
    const BITS_MAX: u32 = Lzw::BITS_MAX;

    fn token(&mut self, bits: &mut Bits, content: &mut Vec<u8>) -> Result<(), Broken> {
        const WIDTHS: std::ops::RangeInclusive<u32> = 9..=13;
        match &mut self.lzw {
            Some(lzw) => lzw.token(bits, content),
            None => {
                let width = Some(bits.take(8)).filter(|width| WIDTHS.contains(width)).ok_or(Broken)?;
                self.lzw = Some(Lzw::new(width, true));
                Ok(())
            }
        }
    }

    fn may_end(&self, bits_left: u32) -> bool {
        self.lzw.as_ref().is_some_and(|lzw| lzw.may_end(bits_left))
    }
}

/// Fuzz body: reads an ARC archive.
pub fn fuzz_arc(data: &[u8]) {
    cuts::compare(data, |limits| Box::new(Archive::new(Arc::new(limits), limits)));
}
