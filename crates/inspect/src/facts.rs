//! Facts that a door wants to know of a mail besides the verdict: header fields, the start of the body, the places of
//! parts.
//!
//! An observer of the mail's own reader: it sees each step that one takes. So what it reports stands where the inspection has
//! read it. A server that reads the structure in another way numbers other parts; only fields that nobody may bring along are
//! found in every reading. Bounds: [`Parts::PLACES_MAX`] parts,
//! [`Field::BYTES_MAX`] bytes of a field.

use std::borrow::Cow;
use std::ops::Range;

use crate::forged::HeaderLines;
use flow::{Field, Out, Parts, Place, Wants};
use stream::{Event, Kind, Object};

/// The observer.
#[derive(Default)]
pub(crate) struct Facts {
    wants: Wants,
    /// Objects that are open.
    depth: usize,
    /// Bytes of the mail that its reader has taken.
    at: u64,
    /// The field under way, where some are wanted.
    field: Option<Vec<u8>>,
    body: bool,
    /// The lines of the header, where some fields may not be brought along.
    lines: Option<HeaderLines>,
    finder: Option<Finder>,
}

impl Facts {
    /// One that reports what is wanted.
    pub fn new(wants: Wants) -> Facts {
        let finder = wants.parts.then(Finder::default);
        let lines = (!wants.forged.is_empty() || wants.authserv_id.is_some()).then(HeaderLines::default);
        Facts { wants, finder, lines, ..Facts::default() }
    }

    /// Sees a step of the mail's reader: the bytes that it took, what it reported, and the content that this was.
    pub fn see(&mut self, taken: &[u8], event: &Event, content: &[u8], at_end: bool) -> Vec<Out> {
        let mut out = Vec::new();
        if let Some(lines) = &mut self.lines {
            lines.read(taken, |field, place| out.extend(forged(&self.wants, field, place)));
        }
        out.extend(self.see_event(taken, event, content, at_end));
        out
    }

    fn see_event(&mut self, taken: &[u8], event: &Event, content: &[u8], at_end: bool) -> Option<Out> {
        self.at += taken.len() as u64;
        if let Some(finder) = &mut self.finder {
            finder.see(taken, event, content.len() as u64, at_end);
        }
        match event {
            Event::Verbatim | Event::Wrote => {
                if let Some(field) = &mut self.field {
                    let room = Field::BYTES_MAX.saturating_sub(field.len());
                    field.extend_from_slice(&content[..content.len().min(room)]);
                }
                None
            }
            Event::Open(object) => {
                self.depth += 1;
                self.open(object)
            }
            Event::Close => {
                self.depth = self.depth.saturating_sub(1);
                let field = Field(self.field.take()?.into());
                let is_wanted = |wanted: &Cow<'_, str>| field.name().eq_ignore_ascii_case(wanted.as_bytes());
                let is_wanted = self.wants.fields.iter().any(is_wanted) && !is_forged(&self.wants, &field);
                is_wanted.then_some(Out::Field(field))
            }
            _ => None,
        }
    }

    fn open(&mut self, object: &Object) -> Option<Out> {
        match object.kind {
            _ if self.depth > 1 => None,
            Kind::Field => {
                self.field = (!self.wants.fields.is_empty()).then(Vec::new);
                None
            }
            _ if self.body => None,
            _ => {
                self.body = true;
                object.raw_offset.map(Out::Body)
            }
        }
    }

    /// The mail is complete, or is not looked at any further.
    pub fn finish(&mut self) -> Vec<Out> {
        let mut out = Vec::new();
        if let Some(lines) = &mut self.lines {
            lines.finish(|field, place| out.extend(forged(&self.wants, field, place)));
        }
        out.extend(self.finder.take().map(|finder| Out::Parts(finder.finish())));
        out
    }
}

/// The report of a field that nobody may bring along.
fn forged(wants: &Wants, field: &Field, place: Range<u64>) -> Option<Out> {
    is_forged(wants, field).then_some(Out::Forged(place))
}

/// Whether nobody may bring a field along: for its name, or since it pretends to be ours.
fn is_forged(wants: &Wants, field: &Field) -> bool {
    let name = field.name();
    if let Some(own) = &wants.authserv_id
        && name.eq_ignore_ascii_case(auth::report::NAME.as_bytes())
    {
        // Whose it is may stand behind what is kept of it.
        let is_cut = field.0.len() >= Field::BYTES_MAX;
        let value = field.value();
        return auth::report::is_forged(value, own) || is_cut && auth::report::parse(value).is_none();
    }
    let begins =
        |start: &Cow<'_, str>| name.get(..start.len()).is_some_and(|name| name.eq_ignore_ascii_case(start.as_bytes()));
    wants.forged.iter().any(begins)
}

/// Finds the parts of a mail as it passes.
struct Finder {
    at: u64,
    lines: Lines,
    /// The fields that stand in front of what is opened next.
    header: Option<Range<u64>>,
    open: Vec<Open>,
    parts: Parts,
}

/// An object that is open.
enum Open {
    Field,
    /// A leaf; which part it is, if it is one.
    Leaf(Option<usize>),
    Multipart {
        part: usize,
        children: u32,
    },
    Message(usize),
}

impl Default for Finder {
    fn default() -> Finder {
        let root = Place { path: Vec::new(), header: 0..0, body: 0..0, message: None };
        Finder {
            at: 0,
            lines: Lines::default(),
            header: None,
            open: vec![Open::Message(0)],
            parts: Parts { places: vec![root], len: 0 },
        }
    }
}

impl Finder {
    fn see(&mut self, taken: &[u8], event: &Event, told: u64, at_end: bool) {
        self.lines.see(taken);
        self.at += taken.len() as u64;
        match event {
            Event::Verbatim | Event::Wrote => self.grow(told),
            Event::Open(object) => self.open(object),
            Event::Close => self.close(if at_end { self.at } else { self.lines.delimiter_start }),
            _ => {}
        }
    }

    fn finish(mut self) -> Parts {
        self.parts.len = self.at;
        while !self.open.is_empty() {
            self.close(self.at);
        }
        self.parts
    }

    fn grow(&mut self, count: u64) {
        match self.open.last() {
            Some(Open::Field) => {
                if let Some(header) = &mut self.header {
                    header.end = self.at;
                }
            }
            Some(Open::Leaf(Some(part))) => self.parts.places[*part].body.end += count,
            _ => {}
        }
    }

    fn open(&mut self, object: &Object) {
        let start = object.raw_offset.unwrap_or(self.at);
        if object.kind == Kind::Field {
            self.header.get_or_insert(start..start);
            return self.open.push(Open::Field);
        }
        let header = self.header.take().map(|header| header.start..start);
        let opened = match (self.open.last(), object.kind) {
            // Text around the parts of a multipart is none of them.
            (Some(Open::Multipart { .. }), Kind::Part) if header.is_none() && !self.lines.begins_part() => {
                Open::Leaf(None)
            }
            (_, kind) => self.part(kind, header.unwrap_or(self.lines.last_start.min(start)..start), start),
        };
        self.open.push(opened);
    }

    /// A part begins within what is open.
    fn part(&mut self, kind: Kind, header: Range<u64>, start: u64) -> Open {
        let mut path = match self.open.last_mut() {
            Some(Open::Multipart { part, children }) => {
                *children += 1;
                let number = *children;
                let mut path = self.parts.places[*part].path.clone();
                path.push(number);
                path
            }
            Some(Open::Message(message)) => {
                let place = &mut self.parts.places[*message];
                if place.message.is_none() {
                    place.message = Some((header.clone(), start..start));
                }
                // A multipart has no number of its own beside that of its message.
                if kind == Kind::Multipart {
                    return Open::Multipart { part: *message, children: 0 };
                }
                let mut path = place.path.clone();
                path.push(1);
                path
            }
            _ => return Open::Leaf(None),
        };
        if self.parts.places.len() == Parts::PLACES_MAX {
            return Open::Leaf(None);
        }
        path.shrink_to_fit();
        self.parts.places.push(Place { path, header, body: start..start, message: None });
        let part = self.parts.places.len() - 1;
        match kind {
            Kind::Multipart => Open::Multipart { part, children: 0 },
            Kind::Message => Open::Message(part),
            _ => Open::Leaf(Some(part)),
        }
    }

    /// Ends all open objects, at the latest at `end`.
    fn close(&mut self, end: u64) {
        let (part, is_message) = match self.open.pop() {
            Some(Open::Multipart { part, .. }) => {
                (part, matches!(self.open.last(), Some(Open::Message(of)) if *of == part))
            }
            Some(Open::Message(part)) => (part, true),
            _ => return,
        };
        let place = &mut self.parts.places[part];
        if !is_message {
            place.body.end = end.max(place.body.start);
            return;
        }
        place.body.end = end.max(place.body.start);
        if let Some((_, body)) = &mut place.message {
            body.end = end.max(body.start);
        }
    }
}

/// Look of the last lines, and the start of a delimiter.
#[derive(Default)]
struct Lines {
    at: u64,
    /// Where the line under way begins; its line end in front of it left out.
    delimiter_start: u64,
    /// The first and the last bytes of the line under way, without its end.
    text: Vec<u8>,
    after_cr: bool,
    last: [Look; 2],
    /// Where the last whole line begins, and the line under way.
    last_start: u64,
    start: u64,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Look {
    #[default]
    Other,
    Empty,
    /// It may be a delimiter that opens a part.
    Delimiter,
}

impl Lines {
    /// Bytes that are kept of a line: more than a boundary may have.
    const TEXT_BYTES: usize = 80;

    fn see(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.at += 1;
            match byte {
                b'\n' => self.end(),
                b'\r' => self.after_cr = true,
                byte => {
                    self.after_cr = false;
                    if self.text.len() < Lines::TEXT_BYTES {
                        self.text.push(byte);
                    }
                }
            }
        }
    }

    fn end(&mut self) {
        let text = self.text.trim_ascii_end();
        let look = match () {
            () if text.is_empty() => Look::Empty,
            () if text.starts_with(b"--") && !text[2..].ends_with(b"--") => Look::Delimiter,
            () => Look::Other,
        };
        self.last = [self.last[1], look];
        self.delimiter_start = self.at - 1 - u64::from(self.after_cr);
        self.after_cr = false;
        self.text.clear();
        (self.last_start, self.start) = (self.start, self.at);
    }

    /// Whether a part without a header begins here.
    fn begins_part(&self) -> bool {
        self.last == [Look::Delimiter, Look::Empty]
    }
}
