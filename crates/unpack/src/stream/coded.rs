//! Content codings of HTTP (RFC 9110, section 8.4.1): an object's head declares them, and the last one is undone first.
//!
//! Content that does not begin like its coding is ambiguous: one reader refuses it, another shows it unchanged, and a
//! third skips the coding. `deflate` is read as zlib (RFC 1950), its meaning, and raw (RFC 1951), as some servers send
//! it; if both are possible, it is read twice.
//!
//! Left out: `compress`, which is unused, and unregistered names. Bounds: those of the decoders.

use stream::{Class, ContentCoding, Event, Finding, Fuel, Kind, Limits, Note, Object, ReadAt, Stage, Step, Window};

use super::{brotli::Brotli, gzip::Gzip, zlib, zlib::Zlib, zstd::Zstd};
use crate::codec::deflate::Deflate;
use crate::frame::codec::{Decoder, Fault, Progress, Told};
use crate::frame::compressed::Compressed;
use crate::frame::cuts::compare;
use crate::frame::doubt::Doubt;
use crate::frame::format::{Format, Reads};
use crate::open::{Due, Opener};

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "content codings of HTTP",
    methods: "gzip, deflate (zlib and raw), br, zstd, one over the other",
    not_read: "compress",
    reads: Reads::Stream,
    memory: "those of the streams",
    decoder: "those of the streams",
    fuzz: "unpack_coded",
    compared_with: "the responses of http-evader",
};

const AMBIGUOUS: &str = "Heuristics.Ambiguous.ContentCoding";

/// The readers of an object that begins so and whose head declares content codings.
pub fn undo(object: &Object, head: &[u8], limits: &Limits) -> Vec<Opener> {
    let Some((&coding, rest)) = object.content_codings.split_last().filter(|_| !head.is_empty()) else {
        return Vec::new();
    };
    let content = Object { kind: Kind::Stream, content_codings: rest.into(), raw_offset: None, ..object.clone() };
    let raw = || Box::new(Compressed::new(Raw::new()));
    let set = |inner: Box<dyn Stage>, is_sure| {
        let stage = Box::new(Coded { inner, content: content.clone(), is_sure, state: State::Before { open: false } });
        Opener { name: "coded", due: Due::Claim, expands: true, doubt: Doubt::None, stage }
    };
    match coding {
        ContentCoding::Gzip => vec![set(Box::new(Compressed::new(Gzip::new(limits))), true)],
        ContentCoding::Brotli => vec![set(Box::new(Compressed::new(Brotli::new(limits))), true)],
        ContentCoding::Zstd => vec![set(Box::new(Compressed::new(Zstd::new(limits))), true)],
        ContentCoding::Deflate => match head.first_chunk().is_some_and(|&two| zlib::is_header(two)) {
            true => vec![set(Box::new(Compressed::new(Zlib::new())), true), set(raw(), false)],
            false => vec![set(raw(), true)],
        },
    }
}

/// A reader of one coding, and the state of its content.
struct Coded {
    inner: Box<dyn Stage>,
    content: Object,
    /// Whether the content has to begin so; otherwise this is a second try.
    is_sure: bool,
    state: State,
}

enum State {
    /// Nothing is decoded yet; whether the object of the content is open.
    Before { open: bool },
    /// Something is decoded.
    Within,
    /// It does not begin so: the object has to be closed.
    Closing,
    /// It does not begin so.
    Failed,
}

impl Coded {
    /// Converts an event of the reader.
    fn told(&mut self, event: Event) -> Event {
        match (event, &self.state) {
            (Event::Open(object), &State::Before { open: false }) if object.kind == Kind::Stream => {
                self.state = State::Before { open: true };
                Event::Open(self.content.clone())
            }
            (Event::Note(Note::Finding(finding)), &State::Before { open }) if finding.class == Class::Malformed => {
                self.state = if open { State::Closing } else { State::Failed };
                match self.is_sure {
                    true => Event::finding(Finding::new(Class::Ambiguous, AMBIGUOUS, finding.offset)),
                    false => Event::Idle,
                }
            }
            // The second try is over before it has begun.
            (Event::Note(_), State::Before { .. }) if !self.is_sure => Event::Idle,
            (event @ Event::Wrote, State::Before { .. }) => {
                self.state = State::Within;
                event
            }
            (event, _) => event,
        }
    }
}

impl Stage for Coded {
    fn step(&mut self, input: &[u8], output: &mut Window, fuel: &mut Fuel) -> Step {
        match self.state {
            State::Closing => {
                fuel.burn(1);
                self.state = State::Failed;
                Step::tell(0, Event::Close)
            }
            State::Failed => {
                let count = fuel.allows(input.len());
                fuel.burn(count.max(1));
                Step::idle(count)
            }
            State::Before { .. } | State::Within => {
                let Step { taken, event } = self.inner.step(input, output, fuel);
                Step::tell(taken, self.told(event))
            }
        }
    }

    fn finish(&mut self, kept: &dyn ReadAt, output: &mut Window, fuel: &mut Fuel) -> Event {
        match self.state {
            State::Closing => {
                fuel.burn(1);
                self.state = State::Failed;
                Event::Close
            }
            State::Failed => {
                fuel.burn(1);
                Event::End
            }
            State::Before { .. } | State::Within => {
                let event = self.inner.finish(kept, output, fuel);
                self.told(event)
            }
        }
    }
}

/// A raw stream of deflate.
struct Raw {
    deflate: Deflate,
    has_begun: bool,
    is_over: bool,
}

impl Raw {
    fn new() -> Raw {
        let deflate = Deflate::new("Heuristics.Malformed.Deflate.Data", "Heuristics.Truncated.Deflate");
        Raw { deflate, has_begun: false, is_over: false }
    }
}

impl Decoder for Raw {
    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        if !std::mem::replace(&mut self.has_begun, true) {
            return Progress::tells(0, Told::Begin(None));
        }
        if self.is_over {
            return Progress::tells(0, Told::Over);
        }
        let progress = self.deflate.decode(input, output);
        self.is_over = progress.told == Told::Over;
        progress
    }

    fn missing(&self) -> Option<Fault> {
        self.deflate.missing().filter(|_| !self.is_over)
    }
}

/// Fuzz body: undoes codings. The second byte chooses them.
pub fn fuzz_coded(data: &[u8]) {
    use ContentCoding::{Brotli, Deflate, Gzip, Zstd};
    let Some((&[cut, choice], stream)) = data.split_first_chunk() else { return };
    let coding = [Gzip, Deflate, Brotli, Zstd][usize::from(choice % 4)];
    let object = Object { content_codings: [Gzip, coding].into(), ..Object::default() };
    let data = [&[cut], stream].concat();
    let count = undo(&object, stream, &Limits::default()).len();
    for number in 0..count {
        compare(&data, |limits| undo(&object, stream, limits).swap_remove(number).stage);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::cuts::tell;

    fn deflated(content: &[u8], window_bits: i32) -> Vec<u8> {
        let mut packed = vec![0; content.len() + 64];
        let config = zlib_rs::DeflateConfig { window_bits, ..zlib_rs::DeflateConfig::default() };
        zlib_rs::compress_slice(&mut packed, content, config).0.to_vec()
    }

    fn told(codings: &[ContentCoding], said: &[u8]) -> String {
        let object = Object { content_codings: codings.into(), ..Object::default() };
        let mut readers = undo(&object, said, &Limits::default());
        readers.iter_mut().map(|one| format!("{:?}\n", tell(one.stage.as_mut(), said, 7, 100))).collect()
    }

    #[test]
    fn deflate_is_read_with_and_without_its_frame() {
        for window_bits in [15, -15] {
            let told = told(&[ContentCoding::Gzip, ContentCoding::Deflate], &deflated(b"some content", window_bits));
            assert!(told.contains("content_codings: [Gzip]"), "{told}");
            assert!(!told.contains("Heuristics"), "{told}");
        }
    }

    #[test]
    fn what_does_not_begin_as_its_coding_is_ambiguous_and_told_once() {
        use ContentCoding::{Brotli, Deflate, Gzip, Zstd};
        for coding in [Gzip, Deflate, Brotli, Zstd] {
            let told = told(&[coding], b"hello, this is plain text");
            assert_eq!(told.matches("Heuristics").count(), 1, "{told}");
            assert!(told.contains(AMBIGUOUS), "{told}");
        }
        assert!(undo(&Object::default(), b"x", &Limits::default()).is_empty());
    }
}
