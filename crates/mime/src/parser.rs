//! The parser of messages (RFC 5322, 2045, 2046), as a stream of events.
//!
//! Each header field is a `Field` object with its raw bytes; each body that is not a container a `Part` with its raw,
//! still encoded bytes; multiparts and unencoded messages are containers. Text before the first and after the last
//! delimiter of a multipart is a `Part` without media type, from its first byte on that is not a line end. The content
//! of an object is always one run of the input. Only names are decoded.
//!
//! ```text
//!            blank line                       delimiter
//! Header ───────────────▶ Body ─────────────────────────────▶ Delimiter
//!   ▲                      │ (message: Header of the inner)      │    │ closing: Body (epilogue)
//!   └──────────────────────┴─────────────────────────────────────┘◀───┘
//! ```
//!
//! # Second readings
//!
//! Where two mail readers could disagree, [`Note::Fork`] is emitted, and [`Stage::alternative`] is a parser of the
//! second reading, which ends where the readings meet again: at a delimiter of a multipart around the place. At most
//! [`FORKS_MAX`] are offered in one message; one finding `Heuristics.Ambiguous.Mime.Forks` replaces the others. An
//! object of a second reading that begins before the fork has no `raw_offset`.
//!
//! # Bounds
//!
//! [`Parser::worst_case_bytes`]. Of a boundary `Limits::name_bytes_max` bytes count; at most 64 multiparts are open at
//! once whatever the limits.
//!
//! # Known wrongs
//!
//! The rest of a delimiter line (white space, or text with an ambiguity finding) is content only of the second reading,
//! which continues the part that the first one ends there.

mod body;
mod boundary;
mod entity;
mod header;
mod reader;
mod turn;

use alloc::boxed::Box;

use stream::{Event, Fuel, Limits, ReadAt, Stage, Step, Window};

use body::{Body, Leaf};
use boundary::Delimiter;
use header::Header;
use reader::{Multipart, Reader, Tell};

/// How many second readings are offered in one message.
const FORKS_MAX: u32 = 1_024;

/// How many second readings of one body are offered; more are the finding `Heuristics.Ambiguous.Mime.Forks`.
const READINGS_MAX: usize = 3;

/// Reads a message. See the [crate] documentation; `step` as long as there is input, then `finish` until it ends.
#[derive(Debug, Clone)]
pub struct Parser {
    reader: Reader,
    state: State,
    /// The second reading that was offered by the last event.
    alternative: Option<Box<Parser>>,
}

#[derive(Debug, Clone)]
enum State {
    /// In the header of a message or part.
    Header(Box<Header>),
    /// In a body that is not a container, or before or after the parts of a multipart.
    Body(Body),
    /// After the boundary on a delimiter line.
    Delimiter { close: bool, after_cr: bool },
    /// Everything is closed.
    Done,
}

/// Result of a state on the input.
#[derive(Debug)]
enum Advance {
    /// So many bytes are content of the innermost open object.
    Content(usize),
    /// So many bytes have been taken and are no content, or not yet.
    Took(usize),
    /// The header ends here; the held bytes belong to the body.
    HeaderEnd(HeaderEnd),
    /// The bytes held are the beginning of a delimiter line.
    Delimiter(Delimiter),
    /// The bytes held are a delimiter only for readers that take a bare CR for a line end.
    BareDelimiter(Delimiter),
    /// The bytes held are content, but may be a delimiter of a multipart that declares another boundary.
    Guess,
    /// The bytes held, behind a line end of so many, are content, but for some readers the beginning of a header.
    Field { line_at: usize },
    /// The input ended and nothing is held.
    Finished,
}

/// Why a header ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HeaderEnd {
    /// By its blank line, or with the input.
    Clear,
    /// By a line that is not a field; the line is held.
    NotField,
    /// Immediately: the content of a message part does not begin like a message.
    NoMessage,
    /// By a delimiter line; it is held.
    Delimiter(Delimiter),
}

impl Parser {
    /// A parser at the start of a message.
    pub fn new(limits: &Limits) -> Parser {
        Parser { reader: Reader::new(limits), state: State::Header(Box::new(Header::of_message())), alternative: None }
    }

    /// A parser at the start of the body of a multipart whose boundary is not known: the first line that looks like a
    /// delimiter tells it. For bodies that had a transfer coding although they are multiparts.
    pub fn of_multipart(limits: &Limits) -> Parser {
        let mut parser = Parser::new(limits);
        parser.reader.push_silent(Multipart::default());
        parser.state = State::Body(Body::new(Leaf::preamble()));
        parser
    }

    /// The most memory that a parser takes, second readings included that are offered and not yet asked for. One that
    /// runs is a parser of its own.
    pub fn worst_case_bytes(limits: &Limits) -> usize {
        let one = Reader::worst_case_bytes(limits) + header::worst_case_bytes(limits);
        // One more for the line that is not a field.
        one * (2 + READINGS_MAX)
    }

    /// Emits the next waiting event: objects opened and closed, remarks, then held content.
    fn pending(&mut self, output: &mut Window) -> Option<Event> {
        match self.reader.pending(output)? {
            Tell::Open(object) => Some(Event::Open(object)),
            Tell::Close => Some(Event::Close),
            Tell::Finding(finding) => Some(Event::finding(finding)),
            Tell::Fork(finding, other) => {
                self.alternative = Some(other);
                Some(Event::Note(stream::Note::Fork(finding)))
            }
            Tell::Wrote => Some(Event::Wrote),
        }
    }

    fn advance(&mut self, input: &[u8]) -> Advance {
        match &mut self.state {
            State::Header(header) => self.reader.read_header(header, input),
            State::Body(body) => body.advance(&mut self.reader, input),
            State::Delimiter { .. } => {
                let taken = self.delimiter_line(input);
                self.reader.took(taken);
                Advance::Took(taken)
            }
            State::Done => Advance::Finished,
        }
    }

    fn advance_at_end(&mut self) -> Advance {
        match &mut self.state {
            State::Header(header) => self.reader.read_header_end(header),
            State::Body(body) => body.advance_at_end(&mut self.reader),
            State::Delimiter { .. } | State::Done => Advance::Finished,
        }
    }

    fn delimiter_line(&mut self, input: &[u8]) -> usize {
        let State::Delimiter { close, after_cr } = &mut self.state else {
            return 0;
        };
        let close = *close;
        let taken = if *after_cr {
            usize::from(input.first() == Some(&b'\n'))
        } else {
            let Some(end) = self.reader.find_line_end(input) else {
                return input.len();
            };
            if input.get(end) == Some(&b'\r') {
                *after_cr = true;
                return end + 1;
            }
            end + 1
        };
        self.state =
            if close { State::Body(Body::new(Leaf::epilogue())) } else { State::Header(Box::new(Header::of_part())) };
        taken
    }
}

impl Stage for Parser {
    fn step(&mut self, input: &[u8], output: &mut Window, fuel: &mut Fuel) -> Step {
        if fuel.is_empty() {
            return Step::idle(0);
        }
        self.alternative = None;
        let offered = &input[..fuel.allows(input.len())];
        loop {
            if let Some(event) = self.pending(output) {
                fuel.burn(output.len().max(1));
                return Step::tell(0, event);
            }
            if matches!(self.state, State::Done) {
                return Step::tell(0, Event::End);
            }
            if offered.is_empty() {
                return Step::idle(0);
            }
            match self.advance(offered) {
                Advance::Content(taken) if taken > 0 => {
                    self.reader.took(taken);
                    fuel.burn(taken);
                    return Step::tell(taken, Event::Verbatim);
                }
                Advance::Took(taken) if taken > 0 => {
                    fuel.burn(taken);
                    let event = self.pending(output).unwrap_or(Event::Idle);
                    fuel.burn(output.len());
                    return Step::tell(taken, event);
                }
                advance => self.turn(advance),
            }
        }
    }

    fn finish(&mut self, _: &dyn ReadAt, output: &mut Window, fuel: &mut Fuel) -> Event {
        if fuel.is_empty() {
            return Event::Idle;
        }
        self.alternative = None;
        loop {
            if let Some(event) = self.pending(output) {
                fuel.burn(output.len().max(1));
                return event;
            }
            if matches!(self.state, State::Done) {
                return Event::End;
            }
            let advance = self.advance_at_end();
            self.turn(advance);
        }
    }

    fn alternative(&mut self) -> Option<Box<dyn Stage>> {
        let other = self.alternative.take()?;
        Some(other)
    }
}
