//! Bzip2: any number of streams, told as one content, as bunzip2 does.
//!
//! Bounds: four bytes for each byte of a block (at most 3.6 MB), or two and a half where `codec_bytes_max` is less than
//! that; below that too it is a Limit finding. Allocated when a stream begins. A wrong block checksum ends the reading.

use ::bzip2::{Decompress, Status};
use stream::{Class, Limits};

use crate::codec::{Collected, Decoder, Fault, Progress, Told};

const DATA: Fault = Fault::fatal(Class::Malformed, "Heuristics.Malformed.Bzip2.Data");
const TRUNCATED: Fault = Fault::fatal(Class::Truncated, "Heuristics.Truncated.Bzip2");
const LIMIT: Fault = Fault::fatal(Class::Limit, "Heuristics.Limits.Exceeded.Codec");

/// A decoder of bzip2 files.
pub(crate) struct Bzip2 {
    codec_bytes_max: usize,
    /// Whether to stop after the first stream.
    single: bool,
    further: bool,
    /// `BZh` and the level, collected to tell a stream from surplus; fed to the decompressor first.
    magic: Collected<4>,
    state: State,
}

enum State {
    Magic,
    Body { decompress: Decompress, magic_fed: bool },
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
            state: State::Magic,
        }
    }

    /// Reads one stream only, as it stands in a zip.
    pub fn single(limits: &Limits) -> Bzip2 {
        Bzip2 { single: true, ..Bzip2::new(limits) }
    }

    fn magic(&mut self, input: &[u8]) -> Progress {
        let taken = self.magic.fill(input, 4);
        if !is_magic(self.magic.bytes()) {
            self.state = State::Over;
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
            self.state = State::Over;
            return Progress::fault(taken, LIMIT);
        }
        self.state = State::Body { decompress: Decompress::new(small), magic_fed: false };
        if std::mem::replace(&mut self.further, true) {
            return Progress::took(taken);
        }
        Progress::tells(taken, Told::Begin(None))
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
        let (body, magic_fed) = match &mut self.state {
            State::Magic => return self.magic(input),
            State::Body { decompress, magic_fed } => (decompress, magic_fed),
            State::Over => return Progress::tells(0, Told::Over),
        };
        if !std::mem::replace(magic_fed, true) {
            decompress(body, self.magic.bytes(), output);
            self.magic.clear();
        }
        let mut progress = decompress(body, input, output);
        if progress.told == Told::Over {
            self.state = if self.single { State::Over } else { State::Magic };
            if !self.single {
                progress.told = Told::Nothing;
            }
        }
        progress
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
            State::Body { .. } => &[],
            _ => self.magic.bytes(),
        }
    }
}
