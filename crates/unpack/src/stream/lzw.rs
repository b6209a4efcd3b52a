//! Compress (`.Z`): LZW with codes of 9 bits and more.
//!
//! Codes come in groups of eight; where their width changes, and where the table is cleared, the rest of a group is
//! padding. The format has neither length nor checksum: it ends with the input. Source: the format's description in
//! ncompress. Bounds: a table of 65,536 codes, 200 KiB.

use stream::Class;

use crate::bits::tokens::{Bits, Broken, Tokens, Tokenwise};
use crate::frame::codec::{Collected, Decoder, Fault, Progress, Told};
use crate::frame::format::{Format, Reads};

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "compress (.Z)",
    methods: "codes of 9 to 16 bits, with and without clearing",
    not_read: "",
    reads: Reads::Stream,
    memory: "260 KiB",
    decoder: "own",
    fuzz: "unpack_compress",
    compared_with: "`compress`, the public archives",
};

const HEADER: Fault = Fault::fatal(Class::Malformed, "Heuristics.Malformed.Compress.Header");
const DATA: &str = "Heuristics.Malformed.Compress.Data";
const TRUNCATED: Fault = Fault::fatal(Class::Truncated, "Heuristics.Truncated.Compress");

const MAGIC: [u8; 2] = [0x1f, 0x9d];
const BITS_FIRST: u32 = 9;
const BITS_MAX: u32 = 16;

/// A decoder of `.Z` files.
pub(crate) enum Compress {
    Header(Collected<3>),
    Body(Box<Tokenwise<Lzw>>),
}

impl Compress {
    pub fn new() -> Compress {
        Compress::Header(Collected::new())
    }
}

impl Decoder for Compress {
    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        let bytes = match self {
            Compress::Body(body) => return body.decode(input, output),
            Compress::Header(bytes) => bytes,
        };
        let taken = bytes.fill(input, 3);
        let Some(&[first, second, flags]) = bytes.whole() else {
            return Progress::took(taken);
        };
        let bits_last = u32::from(flags & 0x1f);
        if [first, second] != MAGIC || !(BITS_FIRST..=BITS_MAX).contains(&bits_last) {
            return Progress::fault(taken, HEADER);
        }
        let lzw = Lzw::new(bits_last, flags & 0x80 != 0);
        *self = Compress::Body(Box::new(Tokenwise::new(lzw, None, DATA, TRUNCATED.name)));
        Progress::tells(taken, Told::Begin(None))
    }

    fn missing(&self) -> Option<Fault> {
        match self {
            Compress::Header(_) => Some(TRUNCATED),
            Compress::Body(body) => body.missing(),
        }
    }

    fn surplus(&self) -> &[u8] {
        match self {
            Compress::Header(bytes) => bytes.bytes(),
            Compress::Body(body) => body.surplus(),
        }
    }
}

/// The state of the codes.
pub(crate) struct Lzw {
    bits_last: u32,
    /// Whether a code clears the table.
    clears: bool,
    bits: u32,
    /// The code that each code extends by a byte, and the byte.
    prefix: Vec<u16>,
    suffix: Vec<u8>,
    /// The previous code, and the first byte of its expansion.
    last: Option<(usize, u8)>,
    /// Codes read of the group of eight.
    in_group: u32,
    /// Bits of padding still to come.
    padding: u32,
}

const CLEAR: usize = 256;

impl Lzw {
    /// Codes of up to so many bits; whether one clears the table.
    pub fn new(bits_last: u32, clears: bool) -> Lzw {
        let first = CLEAR + usize::from(clears);
        Lzw {
            bits_last,
            clears,
            bits: BITS_FIRST,
            prefix: vec![0; first],
            suffix: (0..first).map(|code| code as u8).collect(),
            last: None,
            in_group: 0,
            padding: 0,
        }
    }

    fn clear(&mut self) {
        let first = CLEAR + usize::from(self.clears);
        self.prefix.truncate(first);
        self.suffix.truncate(first);
        self.last = None;
        self.widen_to(BITS_FIRST);
    }

    /// Changes the width of codes; the rest of the group is padding.
    fn widen_to(&mut self, bits: u32) {
        self.padding = (8 - self.in_group) % 8 * self.bits;
        self.in_group = 0;
        self.bits = bits;
    }

    /// Appends the expansion of a code; codes are shorter than their extensions, so this ends.
    fn expand(&self, mut code: usize, content: &mut Vec<u8>) {
        let start = content.len();
        while code > 255 {
            content.push(self.suffix[code]);
            code = usize::from(self.prefix[code]);
        }
        content.push(code as u8);
        content[start..].reverse();
    }

    fn learn(&mut self, last: usize, byte: u8) {
        if self.prefix.len() < 1 << self.bits_last {
            self.prefix.push(last as u16);
            self.suffix.push(byte);
        }
        if self.prefix.len() == 1 << self.bits && self.bits < self.bits_last {
            self.widen_to(self.bits + 1);
        }
    }
}

impl Tokens for Lzw {
    const BITS_MAX: u32 = BITS_MAX;

    fn token(&mut self, bits: &mut Bits, content: &mut Vec<u8>) -> Result<(), Broken> {
        if self.padding > 0 {
            let count = self.padding.min(BITS_MAX);
            bits.take(count);
            self.padding -= count;
            return Ok(());
        }
        let code = bits.take(self.bits) as usize;
        self.in_group = (self.in_group + 1) % 8;
        if self.clears && code == CLEAR {
            self.clear();
            return Ok(());
        }
        let Some((last, first_byte)) = self.last else {
            // The first code is a byte.
            let byte = u8::try_from(code).map_err(|_| Broken)?;
            content.push(byte);
            self.last = Some((code, byte));
            return Ok(());
        };
        let start = content.len();
        match code.cmp(&self.prefix.len()) {
            std::cmp::Ordering::Less => self.expand(code, content),
            std::cmp::Ordering::Equal => {
                self.expand(last, content);
                content.push(first_byte);
            }
            std::cmp::Ordering::Greater => return Err(Broken),
        }
        let first = content[start];
        self.learn(last, first);
        self.last = Some((code, first));
        Ok(())
    }

    fn may_end(&self, bits_left: u32) -> bool {
        bits_left < self.bits || self.padding > 0
    }
}
