//! ActiveMime (`editdata.mso`), in which Office stores macros and objects beside web pages: a header and a zlib stream
//! with a compound file.
//!
//! The header has the place of the stream; other readers try two usual places, which are tried if there is none.
//! Source: the description in oletools. Bounds: a header of 66 KiB.

use stream::Class;

use crate::frame::codec::{Decoder, Fault, Progress, Told, le16};
use crate::frame::compressed::Compressed;
use crate::frame::cuts;
use crate::frame::format::{Format, Reads};
use crate::stream::zlib::{self, Zlib};

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "ActiveMime (MSO)",
    methods: "zlib",
    not_read: "",
    reads: Reads::Stream,
    memory: "a header of 66 KiB, 57 KiB",
    decoder: "own; zlib-rs",
    fuzz: "unpack_activemime",
    compared_with: "Python's `zlib`, over the seeds",
};

const HEADER: Fault = Fault::fatal(Class::Malformed, "Heuristics.Malformed.ActiveMime.Header");
const TRUNCATED: Fault = Fault::fatal(Class::Truncated, "Heuristics.Truncated.ActiveMime");

/// Beginning of such a file.
pub(crate) const MAGIC: &[u8] = b"ActiveMime\0\0";

/// Where the header tells how far behind [`OFFSET_FROM`] the stream begins.
const OFFSET_AT: usize = 30;
const OFFSET_FROM: usize = 46;
/// Where streams usually begin.
const USUAL: [usize; 2] = [50, 554];

/// A decoder of such files.
pub(crate) struct ActiveMime {
    /// The header and the bytes collected after it, used up to `at`.
    held: Vec<u8>,
    at: usize,
    body: Option<Zlib>,
}

impl ActiveMime {
    pub const fn new() -> ActiveMime {
        ActiveMime { held: Vec::new(), at: 0, body: None }
    }

    /// How many bytes have to be there before the stream is looked for.
    fn wanted(&self) -> usize {
        let [.., last] = USUAL;
        2 + last.max(self.told().unwrap_or(0))
    }

    /// Where the stream begins by the header.
    fn told(&self) -> Option<usize> {
        (self.held.len() >= OFFSET_AT + 2).then(|| OFFSET_FROM + usize::from(le16(&self.held, OFFSET_AT)))
    }

    fn begin(&mut self, taken: usize) -> Progress {
        let is_stream = |at: &usize| {
            let header = self.held.get(*at..).and_then(|from| from.first_chunk());
            header.is_some_and(|header| zlib::is_header(*header))
        };
        let found = self.told().into_iter().chain(USUAL).find(is_stream);
        let Some(at) = found.filter(|_| self.held.starts_with(MAGIC)) else {
            return Progress::fault(taken, if self.held.len() < self.wanted() { TRUNCATED } else { HEADER });
        };
        self.at = at;
        self.body = Some(Zlib::new());
        Progress::tells(taken, Told::Begin(None))
    }
}

impl Decoder for ActiveMime {
    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        let Some(body) = &mut self.body else {
            let mut taken = 0;
            while self.held.len() < self.wanted() && taken < input.len() {
                let count = (self.wanted() - self.held.len()).min(input.len() - taken);
                self.held.extend_from_slice(&input[taken..taken + count]);
                taken += count;
            }
            let is_whole = self.held.len() >= self.wanted() || input.is_empty() && !self.held.is_empty();
            return if is_whole { self.begin(taken) } else { Progress::took(taken) };
        };
        while self.at < self.held.len() {
            let mut progress = body.decode(&self.held[self.at..], output);
            self.at += progress.taken;
            progress.taken = 0;
            if progress.wrote > 0 || !matches!(progress.told, Told::Nothing | Told::Begin(_)) {
                return progress;
            }
        }
        let mut progress = body.decode(input, output);
        if matches!(progress.told, Told::Begin(_)) {
            progress.told = Told::Nothing;
        }
        progress
    }

    fn missing(&self) -> Option<Fault> {
        self.body.as_ref().map_or(Some(TRUNCATED), |body| body.missing())
    }

    fn surplus(&self) -> &[u8] {
        &self.held[self.at..]
    }
}

/// Fuzz body: reads such a file.
pub fn fuzz_activemime(data: &[u8]) {
    cuts::compare(data, |_| Box::new(Compressed::new(ActiveMime::new())));
}
