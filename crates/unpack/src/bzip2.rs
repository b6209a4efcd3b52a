//! Bzip2: any number of streams, told as one content, as bunzip2 does.
//!
//! Bounds: four bytes for each byte of a block (at most 3.6 MB), or two and a half where `codec_bytes_max` is less than
//! that; below that too it is a Limit finding. Allocated when a stream begins. A wrong block checksum ends the reading.

use ::bzip2::{Decompress, Status};
use stream::{Class, Limits};

use crate::codec::{Collected, Decoder, Fault, Progress, Told};
use crate::formats::{Format, Reads};

/// What is read of it.
pub(crate) const FORMAT: Format = Format {
    name: "bzip2",
    methods: "several streams",
    not_read: "",
    reads: Reads::Stream,
    memory: "3.7 MB, or 2.3 MB where `codec_bytes_max` asks for it",
    decoder: "bzip2 (libbz2-rs)",
    fuzz: "unpack_bzip2",
    compared_with: "`bzip2 -d`",
};

const DATA: Fault = Fault::fatal(Class::Malformed, "Heuristics.Malformed.Bzip2.Data");
const TRUNCATED: Fault = Fault::fatal(Class::Truncated, "Heuristics.Truncated.Bzip2");
const LIMIT: Fault = Fault::fatal(Class::Limit, "Heuristics.Limits.Exceeded.Codec");

/// How many bytes are fed at once, and how many asked for. The library reads ahead within what it is given, and forgets
/// what it wrote in the call that finds an error: only if all its calls are the same does it tell the same.
const PIECE: usize = 16;
const CONTENT: usize = 2048;

/// A decoder of bzip2 files.
pub(crate) struct Bzip2 {
    codec_bytes_max: usize,
    /// Whether to stop after the first stream.
    single: bool,
    further: bool,
    /// `BZh` and the level, collected to tell a stream from surplus; fed to the decompressor first.
    magic: Collected<4>,
    piece: Collected<PIECE>,
    /// Whether the piece is being fed, and not to be added to.
    feeding: bool,
    /// Content of the last call, told up to `content_told`, and what is to be told behind it.
    content: Vec<u8>,
    content_told: usize,
    owing: Told,
    surplus: Vec<u8>,
    state: State,
}

enum State {
    Magic,
    Body(Decompress),
    Over,
}

impl Bzip2 {
    /// Reads all streams up to the end.
    pub fn new(limits: &Limits) -> Bzip2 {
        Bzip2 {
            codec_bytes_max: limits.codec_bytes_max as usize,
            single: false,
            further: false,
            magic: Collected::new(),
            piece: Collected::new(),
            feeding: false,
            content: Vec::new(),
            content_told: 0,
            owing: Told::Nothing,
            surplus: Vec::new(),
            state: State::Magic,
        }
    }

    /// Reads one stream only, as it stands in a zip.
    pub fn single(limits: &Limits) -> Bzip2 {
        Bzip2 { single: true, ..Bzip2::new(limits) }
    }

    /// Reads the magic, from what is left of the last piece first.
    fn magic(&mut self, input: &[u8]) -> Progress {
        let left = self.magic.fill_while(self.piece.bytes(), is_magic);
        self.piece.drop_front(left);
        let taken = if self.piece.len() == 0 && is_magic(self.magic.bytes()) {
            self.magic.fill_while(input, is_magic)
        } else {
            0
        };
        if !is_magic(self.magic.bytes()) {
            self.end();
            if !self.further {
                return Progress::fault(taken, DATA);
            }
            return Progress::tells(taken, Told::Over);
        }
        let Some(&[.., level]) = self.magic.whole() else {
            return Progress::took(taken);
        };
        let block = usize::from(level - b'0') * 100_000;
        let small = block * 4 + STATE_BYTES > self.codec_bytes_max;
        if small && block * 5 / 2 + STATE_BYTES > self.codec_bytes_max {
            self.end();
            return Progress::fault(taken, LIMIT);
        }
        let mut body = Decompress::new(small);
        // The magic is known to be right, and holds no content.
        decompress(&mut body, self.magic.bytes(), &mut []);
        self.magic.clear();
        self.state = State::Body(body);
        if std::mem::replace(&mut self.further, true) {
            return Progress::took(taken);
        }
        Progress::tells(taken, Told::Begin(None))
    }

    /// The reading is over; what was taken and not used follows it.
    fn end(&mut self) {
        self.surplus = [self.magic.bytes(), self.piece.bytes()].concat();
        self.state = State::Over;
    }

    /// Feeds the piece, once it is whole or nothing follows.
    fn body(&mut self, input: &[u8], output: &mut [u8], last: bool) -> Progress {
        let State::Body(body) = &mut self.state else {
            return Progress::tells(0, Told::Over);
        };
        let mut taken = 0;
        if !self.feeding {
            taken = self.piece.fill(input, PIECE);
            self.feeding = self.piece.whole().is_some() || last;
        }
        if !self.feeding {
            return Progress::took(taken);
        }
        self.content.resize(CONTENT, 0);
        let fed = decompress(body, self.piece.bytes(), &mut self.content);
        self.content.truncate(fed.wrote);
        self.content_told = 0;
        self.piece.drop_front(fed.taken);
        self.feeding = self.piece.len() > 0;
        self.owing = self.after(fed.told);
        self.tell(taken, output)
    }

    /// What the end of a stream or of all sense means.
    fn after(&mut self, told: Told) -> Told {
        match told {
            Told::Over if !self.single => {
                self.feeding = false;
                self.state = State::Magic;
                Told::Nothing
            }
            Told::Over | Told::Fault(_) => {
                self.end();
                told
            }
            told => told,
        }
    }

    /// Tells content, and behind it what is owed.
    fn tell(&mut self, taken: usize, output: &mut [u8]) -> Progress {
        let content = &self.content[self.content_told..];
        let wrote = content.len().min(output.len());
        output[..wrote].copy_from_slice(&content[..wrote]);
        self.content_told += wrote;
        let told = match self.content_told == self.content.len() {
            true => std::mem::replace(&mut self.owing, Told::Nothing),
            false => Told::Nothing,
        };
        Progress { taken, wrote, told }
    }
}

/// The decompressor's tables besides the block.
const STATE_BYTES: usize = 70_000;

fn is_magic(bytes: &[u8]) -> bool {
    let fixed = bytes.len().min(3);
    b"BZh".starts_with(&bytes[..fixed]) && bytes.get(3).is_none_or(|level| (b'1'..=b'9').contains(level))
}

fn decompress(decompress: &mut Decompress, input: &[u8], output: &mut [u8]) -> Progress {
    let (taken, wrote) = (decompress.total_in(), decompress.total_out());
    let status = decompress.decompress(input, output);
    let taken = (decompress.total_in() - taken) as usize;
    let wrote = (decompress.total_out() - wrote) as usize;
    let stuck = taken == 0 && wrote == 0 && !input.is_empty();
    let told = match status {
        Ok(Status::StreamEnd) => Told::Over,
        Ok(_) if !stuck => Told::Nothing,
        _ => Told::Fault(DATA),
    };
    Progress { taken, wrote, told }
}

impl Decoder for Bzip2 {
    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        let mut taken = 0;
        if self.content_told < self.content.len() || self.owing != Told::Nothing {
            return self.tell(0, output);
        }
        loop {
            let before = (self.piece.len(), self.magic.len(), std::mem::discriminant(&self.state));
            let rest = &input[taken..];
            let mut progress = match self.state {
                State::Magic => self.magic(rest),
                State::Body(_) => self.body(rest, output, input.is_empty()),
                State::Over => Progress::tells(0, Told::Over),
            };
            taken += progress.taken;
            let after = (self.piece.len(), self.magic.len(), std::mem::discriminant(&self.state));
            if progress.wrote > 0 || progress.told != Told::Nothing || before == after && progress.taken == 0 {
                progress.taken = taken;
                return progress;
            }
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
        match self.state {
            State::Magic => self.magic.bytes(),
            _ => &self.surplus,
        }
    }
}
