//! Gzip (RFC 1952): any number of members, told as one content, as gunzip does.
//!
//! A wrong checksum or length is a finding and the content is emitted all the same. NUL bytes behind the last member are
//! padding; other bytes there are surplus. Bounds: one inflater and a name of `name_bytes_max`.
//!
//! ```text
//! Magic ─▶ Header ─▶ Body ─▶ Trailer ─▶ Magic (next member) ─▶ … ─▶ over
//! ```

use stream::{Class, Limits};
use zlib_rs::crc32::crc32;

use crate::codec::deflate::Deflate;
use crate::frame::codec::{Collected, Decoder, Fault, Progress, Told, le16, le32};
use crate::frame::format::{Format, Reads};
use crate::frame::name;

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "gzip",
    methods: "deflate, several members, padding",
    not_read: "",
    reads: Reads::Stream,
    memory: "57 KiB",
    decoder: "zlib-rs",
    fuzz: "unpack_gzip",
    compared_with: "the members of the public archives, `gzip -d`",
};

const HEADER: Fault = Fault::fatal(Class::Malformed, "Heuristics.Malformed.Gzip.Header");
const HEADER_CRC: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.Gzip.HeaderCrc");
const CRC: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.Gzip.Crc");
const LENGTH: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.Gzip.Length");
const TRUNCATED: Fault = Fault::fatal(Class::Truncated, "Heuristics.Truncated.Gzip");

const MAGIC: [u8; 3] = [0x1f, 0x8b, 8];

/// A decoder of gzip files.
pub(crate) struct Gzip {
    name_bytes_max: usize,
    state: State,
    /// Made when the first member's content begins, used again by the others.
    deflate: Option<Deflate>,
    /// Whether a member has been read, so that the next bytes may be padding or surplus.
    further: bool,
    surplus: Collected<3>,
}

enum State {
    /// Before a member.
    Magic,
    /// In the header behind the magic.
    Header(Header),
    /// In the deflated content.
    Body { crc: u32, len: u32 },
    /// In the checksum and length.
    Trailer { crc: u32, len: u32, bytes: Collected<8> },
    /// The stream is over.
    Over,
}

impl Gzip {
    pub fn new(limits: &Limits) -> Gzip {
        Gzip {
            name_bytes_max: limits.name_bytes_max as usize,
            state: State::Magic,
            deflate: None,
            further: false,
            surplus: Collected::new(),
        }
    }

    fn magic(&mut self, input: &[u8]) -> Progress {
        let mut padding = 0;
        if self.further && self.surplus.len() == 0 {
            padding = input.iter().take_while(|&&byte| byte == 0).count();
        }
        let taken = padding + self.surplus.fill_while(&input[padding..], |bytes| MAGIC.starts_with(bytes));
        if !MAGIC.starts_with(self.surplus.bytes()) {
            self.state = State::Over;
            if !self.further {
                return Progress::fault(taken, HEADER);
            }
            return Progress::tells(taken, Told::Over);
        }
        if self.surplus.whole().is_some() {
            self.surplus.clear();
            self.state = State::Header(Header::new(self.name_bytes_max));
        }
        Progress::took(taken)
    }

    /// The header is complete: prepare for the content.
    fn begin(&mut self, taken: usize, header: Header) -> Progress {
        match &mut self.deflate {
            Some(deflate) => deflate.reset(),
            none => {
                *none = Some(Deflate::new("Heuristics.Malformed.Gzip.Data", TRUNCATED.name));
            }
        }
        self.state = State::Body { crc: 0, len: 0 };
        if std::mem::replace(&mut self.further, true) {
            return Progress::took(taken);
        }
        let name = (!header.name.is_empty()).then(|| name::utf8_or_latin1(&header.name));
        Progress::tells(taken, Told::Begin(name))
    }

    fn body(&mut self, crc: u32, len: u32, input: &[u8], output: &mut [u8]) -> Progress {
        let Some(deflate) = &mut self.deflate else {
            return Progress::fault(0, HEADER);
        };
        let mut progress = deflate.decode(input, output);
        let crc = crc32(crc, &output[..progress.wrote]);
        let len = len.wrapping_add(progress.wrote as u32);
        self.state = State::Body { crc, len };
        if progress.told == Told::Over {
            let bytes = Collected::new();
            self.state = State::Trailer { crc, len, bytes };
            progress.told = Told::Nothing;
        }
        progress
    }

    fn trailer(&mut self, crc: u32, len: u32, mut bytes: Collected<8>, input: &[u8]) -> Progress {
        let taken = bytes.fill(input, 8);
        let Some(whole) = bytes.whole() else {
            self.state = State::Trailer { crc, len, bytes };
            return Progress::took(taken);
        };
        self.state = State::Magic;
        if le32(whole, 0) != crc {
            return Progress::fault(taken, CRC);
        }
        if le32(whole, 4) != len {
            return Progress::fault(taken, LENGTH);
        }
        Progress::took(taken)
    }
}

impl Decoder for Gzip {
    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Magic => {
                self.state = State::Magic;
                self.magic(input)
            }
            State::Header(mut header) => {
                let taken = header.read(input);
                if header.is_complete() {
                    if !header.crc_is_right {
                        // Told at once; the next call finds the header complete again and begins.
                        header.crc_is_right = true;
                        self.state = State::Header(header);
                        return Progress::fault(taken, HEADER_CRC);
                    }
                    return self.begin(taken, header);
                }
                self.state = State::Header(header);
                Progress::took(taken)
            }
            State::Body { crc, len } => self.body(crc, len, input, output),
            State::Trailer { crc, len, bytes } => self.trailer(crc, len, bytes, input),
            State::Over => Progress::tells(0, Told::Over),
        }
    }

    fn missing(&self) -> Option<Fault> {
        match self.state {
            State::Magic if self.further => None,
            State::Over => None,
            _ => Some(TRUNCATED),
        }
    }

    fn surplus(&self) -> &[u8] {
        self.surplus.bytes()
    }
}

/// The header behind the magic: RFC 1952, section 2.3.
struct Header {
    field: Field,
    flags: u8,
    name: Vec<u8>,
    name_bytes_max: usize,
    crc: u32,
    crc_is_right: bool,
}

enum Field {
    /// FLG, MTIME, XFL, OS.
    Fixed(Collected<7>),
    ExtraLength(Collected<2>),
    Extra {
        left: u16,
    },
    Name,
    Comment,
    Crc(Collected<2>),
    Complete,
}

impl Header {
    const HCRC: u8 = 2;
    const EXTRA: u8 = 4;
    const NAME: u8 = 8;
    const COMMENT: u8 = 16;

    fn new(name_bytes_max: usize) -> Header {
        Header {
            field: Field::Fixed(Collected::new()),
            flags: 0,
            name: Vec::new(),
            name_bytes_max,
            crc: crc32(0, &MAGIC),
            crc_is_right: true,
        }
    }

    const fn is_complete(&self) -> bool {
        matches!(self.field, Field::Complete)
    }

    fn read(&mut self, input: &[u8]) -> usize {
        let mut taken = 0;
        while taken < input.len() && !self.is_complete() {
            taken += self.read_field(&input[taken..]);
        }
        taken
    }

    fn read_field(&mut self, input: &[u8]) -> usize {
        let mut crc_at_end = None;
        let (taken, next) = match &mut self.field {
            Field::Fixed(bytes) => {
                let taken = bytes.fill(input, 7);
                let next = bytes.whole().map(|whole| {
                    self.flags = whole[0];
                    after_fixed(whole[0])
                });
                (taken, next)
            }
            Field::ExtraLength(bytes) => {
                let taken = bytes.fill(input, 2);
                let left = bytes.whole().map(|whole| le16(whole, 0));
                let next = left.map(|left| match left {
                    0 => after_extra(self.flags),
                    _ => Field::Extra { left },
                });
                (taken, next)
            }
            Field::Extra { left } => {
                let taken = input.len().min(usize::from(*left));
                *left -= taken as u16;
                (taken, (*left == 0).then(|| after_extra(self.flags)))
            }
            Field::Name => {
                let (taken, ended) = up_to_nul(input);
                let keep = self.name_bytes_max.saturating_sub(self.name.len());
                let text = &input[..taken - usize::from(ended)];
                self.name.extend_from_slice(&text[..text.len().min(keep)]);
                (taken, ended.then(|| after_name(self.flags)))
            }
            Field::Comment => {
                let (taken, ended) = up_to_nul(input);
                (taken, ended.then(|| after_comment(self.flags)))
            }
            Field::Crc(bytes) => {
                let taken = bytes.fill(input, 2);
                crc_at_end = bytes.whole().map(|whole| le16(whole, 0));
                (taken, crc_at_end.map(|_| Field::Complete))
            }
            Field::Complete => (0, None),
        };
        if let Some(told) = crc_at_end {
            self.crc_is_right = told == self.crc as u16;
        } else if !matches!(self.field, Field::Crc(_)) {
            self.crc = crc32(self.crc, &input[..taken]);
        }
        if let Some(next) = next {
            self.field = next;
        }
        taken
    }
}

fn after_fixed(flags: u8) -> Field {
    if flags & Header::EXTRA != 0 {
        return Field::ExtraLength(Collected::new());
    }
    after_extra(flags)
}

fn after_extra(flags: u8) -> Field {
    if flags & Header::NAME != 0 {
        return Field::Name;
    }
    after_name(flags)
}

fn after_name(flags: u8) -> Field {
    if flags & Header::COMMENT != 0 {
        return Field::Comment;
    }
    after_comment(flags)
}

fn after_comment(flags: u8) -> Field {
    if flags & Header::HCRC != 0 {
        return Field::Crc(Collected::new());
    }
    Field::Complete
}

/// How many bytes of a zero-terminated field are here, the terminator included, and whether it is here.
fn up_to_nul(input: &[u8]) -> (usize, bool) {
    match memchr::memchr(0, input) {
        Some(at) => (at + 1, true),
        None => (input.len(), false),
    }
}
