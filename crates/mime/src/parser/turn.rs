//! Where one state of the parser leads to another: what is opened, closed and offered there.

use alloc::boxed::Box;
use alloc::vec::Vec;

use stream::{Class, Coding, Kind, Object};

use super::body::{Body, Leaf};
use super::boundary::Delimiter;
use super::entity::{Certainty, Entity, Readings, Structure};
use super::header::Header;
use super::reader::{Guess, Level, LineEnds, Multipart, Reader, Tell};
use super::{Advance, HeaderEnd, Parser, READINGS_MAX, State};

impl Parser {
    /// Executes `advance`, except for taking bytes.
    pub(super) fn turn(&mut self, advance: Advance) {
        match advance {
            Advance::Content(_) | Advance::Took(_) => {}
            Advance::HeaderEnd(end) => self.header_ends(end),
            Advance::Delimiter(delimiter) => self.delimiter(delimiter),
            Advance::BareDelimiter(delimiter) => self.bare_delimiter(delimiter),
            Advance::Guess => self.guess(),
            Advance::Field { line_at } => self.field(line_at),
            Advance::Finished => self.close_all(),
        }
    }

    /// The header is complete: tells how the body is read, and how else it could be.
    fn header_ends(&mut self, end: HeaderEnd) {
        let State::Header(mut header) = core::mem::replace(&mut self.state, State::Done) else {
            return;
        };
        self.reader.end_fields(&mut header);
        if end == HeaderEnd::NoMessage {
            return self.close_all();
        }
        let default_message = self.reader.in_digest();
        let Readings { mut first, others, more } = header.found.readings(default_message);
        for (class, name) in header.found.incomplete() {
            let finding = self.reader.finding(class, name);
            self.reader.tell(Tell::Finding(finding));
        }
        let utf16 = header.is_empty() && self.reader.is_at_start() && first.note_utf16(self.reader.held());
        // Where the blank line before the first delimiter is missing, both readings come to the same parts.
        if end == HeaderEnd::NotField && !utf16 && !first.delimits(self.reader.held()) {
            self.reader.offer("Heuristics.Ambiguous.Mime.HeaderEnd", |reader| {
                let mut other = reader.branch(State::Done);
                other.state = State::Header(header.going_on(&mut other.reader));
                other
            });
        }
        if let HeaderEnd::Delimiter(delimiter) = end {
            self.open(first);
            return self.delimiter(delimiter);
        }
        self.offer_readings(others, more);
        self.open(first);
        if let State::Body(body) = &mut self.state
            && header.is_empty()
            && end == HeaderEnd::Clear
        {
            body.want_field();
        }
    }

    fn offer_readings(&mut self, others: Vec<(&'static str, Entity)>, more: bool) {
        if more || others.len() > READINGS_MAX {
            let finding = self.reader.finding(Class::Ambiguous, "Heuristics.Ambiguous.Mime.Forks");
            self.reader.tell(Tell::Finding(finding));
        }
        for (name, other) in others.into_iter().take(READINGS_MAX) {
            let is_quiet = other.structure.is_of_groups();
            let branch = |reader: &Reader| {
                let mut branch = reader.branch(State::Done);
                branch.open(other);
                branch
            };
            match is_quiet {
                true => self.reader.offer_quietly(name, branch),
                false => self.reader.offer(name, branch),
            }
        }
    }

    /// Begins the body of `entity`.
    fn open(&mut self, entity: Entity) {
        let nested = !matches!(entity.structure, Structure::Leaf);
        if nested && self.reader.is_full() {
            let name = "Heuristics.Limits.Exceeded.MultipartDepth";
            let finding = self.reader.finding(Class::Limit, name);
            self.reader.tell(Tell::Finding(finding));
            return self.open_leaf(entity.object);
        }
        match entity.structure {
            Structure::Leaf => self.open_leaf(entity.object),
            Structure::Message(certainty) => {
                self.open_container(Kind::Message, entity.object, Level::Message);
                let mut header = Box::new(match certainty {
                    Certainty::Whole => Header::of_message(),
                    Certainty::Piece => Header::of_piece(),
                    Certainty::Possible | Certainty::Groups => Header::of_possible_message(),
                });
                self.reader.replay_header(&mut header);
                self.state = State::Header(header);
            }
            Structure::Multipart(multipart) => {
                self.open_container(Kind::Multipart, entity.object, Level::Multipart(multipart));
                self.state = State::Body(Body::new(Leaf::preamble()));
            }
        }
    }

    fn open_leaf(&mut self, object: Object) {
        let mut leaf = Leaf::part(object);
        leaf.open(&mut self.reader);
        self.state = State::Body(Body::new(leaf));
    }

    fn open_container(&mut self, kind: Kind, object: Object, level: Level) {
        let raw_offset = self.reader.held_offset();
        self.reader.tell(Tell::Open(Object { kind, raw_offset, coding: Coding::Identity, ..object }));
        self.reader.push_level(level);
    }

    /// Handles a held delimiter line of an open multipart.
    fn delimiter(&mut self, delimiter: Delimiter) {
        if delimiter.junk {
            self.offer_content();
        }
        self.reader.drop_held();
        self.close_leaf();
        self.delimit(delimiter);
    }

    /// The second reading of a delimiter line that not every reader takes for one: the body goes on.
    fn offer_content(&mut self) {
        let State::Body(body) = &self.state else {
            return;
        };
        let mut body = body.clone();
        self.reader.offer("Heuristics.Ambiguous.Mime.BoundaryJunk", |reader| {
            let mut other = reader.branch(State::Done);
            other.reader.set_strict();
            body.take_for_content(&mut other.reader);
            other.state = State::Body(body);
            other
        });
    }

    /// Handles a possible delimiter line after a bare CR: content, but for some readers a delimiter.
    fn bare_delimiter(&mut self, delimiter: Delimiter) {
        self.reader.offer("Heuristics.Ambiguous.Mime.BareCr", |reader| {
            let mut other = reader.branch(State::Done);
            other.reader.set_line_ends(LineEnds::Any);
            other.reader.end_outside(delimiter.level);
            other.reader.drop_held();
            other.delimit(delimiter);
            other
        });
        if let State::Body(body) = &mut self.state {
            body.take_for_content(&mut self.reader);
        }
    }

    /// Before the first delimiter of a multipart stands a line that looks like one, of another boundary.
    fn guess(&mut self) {
        let State::Body(body) = &mut self.state else {
            return;
        };
        let Some(boundary) = body.guessed_boundary(&self.reader) else {
            return body.take_for_content(&mut self.reader);
        };
        let guess = self.reader.takes_guess(&boundary);
        if guess == Guess::Taken {
            let level = self.reader.depth().saturating_sub(1);
            self.reader.drop_held();
            self.close_leaf();
            return self.delimit(Delimiter { level, close: false, junk: false });
        }
        if guess == Guess::Known {
            return body.take_for_content(&mut self.reader);
        }
        self.reader.offer("Heuristics.Ambiguous.Mime.Boundary", |reader| {
            let mut other = reader.branch(State::Done);
            other.reader.drop_held();
            let level = other.reader.push_silent(Multipart::guessed(boundary));
            other.delimit(Delimiter { level, close: false, junk: false });
            other
        });
        if let State::Body(body) = &mut self.state {
            body.take_for_content(&mut self.reader);
        }
    }

    /// Handles a line that looks like a field where no header is expected: content, but readers that skip blank lines,
    /// or take the text before the first delimiter for a part, see a header.
    fn field(&mut self, line_at: usize) {
        if self.reader.takes_stray_field() {
            return self.take_field_for_content();
        }
        self.reader.offer("Heuristics.Ambiguous.Mime.HeaderStart", |reader| {
            let mut other = reader.branch(State::Done);
            other.reader.drop_held_front(line_at);
            let mut header = Box::new(Header::of_stray_fields());
            other.reader.replay_header(&mut header);
            other.state = State::Header(header);
            other
        });
        self.take_field_for_content();
    }

    fn take_field_for_content(&mut self) {
        if let State::Body(body) = &mut self.state {
            body.take_field_for_content(&mut self.reader);
        }
    }

    /// Closes the objects that the delimiter ends; the rest of its line comes next.
    pub(super) fn delimit(&mut self, delimiter: Delimiter) {
        if self.reader.is_outside(delimiter.level) {
            return self.close_all();
        }
        self.reader.close_to(delimiter.level, delimiter.close);
        self.state = State::Delimiter { close: delimiter.close, after_cr: false };
    }

    pub(super) fn close_leaf(&mut self) {
        if let State::Body(body) = &mut self.state {
            body.leaf.close(&mut self.reader);
        }
    }

    pub(super) fn close_all(&mut self) {
        self.close_leaf();
        self.reader.close_all();
        self.state = State::Done;
    }
}
