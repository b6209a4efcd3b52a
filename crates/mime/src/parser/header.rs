//! The header of a message or part: its fields, raw and in order, and where it ends.
//!
//! A field ends with the line end that no white space follows. A header ends with an empty line, with a delimiter of an
//! open multipart, or with a line that is not a field: the body begins with that line, as for mutt and Python's email
//! package, and the second reading takes it for garbage and goes on, as Thunderbird does. The line `From ` of mbox
//! files is told as a field.
//!
//! Past `Limits::fields_max` fields the rest of the header is told as one field. The value of a `Content-*` field that
//! is longer than `Limits::field_bytes_max` is read up to there, which is a finding.

use alloc::boxed::Box;
use alloc::vec::Vec;

use stream::{Class, Coding, Kind, Limits, Object};

use super::boundary::{Matcher, Verdict};
use super::entity::Found;
use super::reader::{LineEnds, Reader, Tell};
use super::{Advance, HeaderEnd, Parser, State};
use crate::field;

/// The longest field name that is recognised; a line that is longer before its colon is not a field.
const NAME_BYTES_MAX: usize = 256;

/// The fields whose values are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Type,
    TransferEncoding,
    Disposition,
}

/// A header being read.
#[derive(Debug, Clone)]
pub(super) struct Header {
    pub found: Found,
    /// Of a message, where mbox lines are expected, and not of a part.
    of_message: bool,
    /// Fields told; the last one may hold several when there are too many.
    fields: u32,
    /// A field precedes, which a line that begins with white space continues.
    in_field: bool,
    /// That field is an open object of this reading.
    open: bool,
    /// What the field means that is being read, and its bytes from the name on.
    meaning: Option<Meaning>,
    value: Vec<u8>,
    value_cut: bool,
    /// What is done with a line that is not a field.
    garbage: Garbage,
    /// A second reading for bare CRs has been offered, or this is it.
    bare_cr_told: bool,
    at: At,
}

#[derive(Debug, Clone)]
enum At {
    /// At the start of a line, of which the held bytes have been read.
    Start(Start),
    /// In the value of a field; whether the line has had only white space so far.
    Value { blank: bool },
    /// Behind a CR in the value.
    ValueCr { blank: bool },
    /// Behind two CRs at what may be the first line end of all; the second is held.
    ValueCrCr { blank: bool },
    /// Behind the line end of a line of only white space.
    AfterBlank,
    /// In the empty line that ends the header.
    End(HeaderEnd),
}

/// What is done with a line that is not a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Garbage {
    /// The body begins with it.
    EndsHeader,
    /// It is told as a field and the header goes on.
    Field,
    /// The body begins with it, which nobody doubts.
    EndsHeaderClearly,
    /// If it is the first line, then this is no message, and the second reading that took it for one is over.
    EndsReading,
}

/// What the bytes of a line so far may become.
#[derive(Debug, Clone)]
struct Start {
    /// None when the line is not a delimiter.
    matcher: Option<Matcher>,
    line: Line,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    Empty,
    /// CRs only.
    Crs,
    /// White space only, and no field that it could continue.
    White,
    Name,
    NameSpace,
    /// Begins with two hyphens, as no field does and a delimiter of the very entity may.
    Dashes,
    Field,
    NotField,
}

pub(super) const fn worst_case_bytes(limits: &Limits) -> usize {
    // The value grows by doubling; what is found in it is no longer than four values of each kind.
    10 * limits.field_bytes_max as usize + size_of::<Header>()
}

impl Header {
    pub(super) fn of_message() -> Header {
        Header { of_message: true, ..Header::of_part() }
    }

    /// Of a message of which only a piece may be there, without its header.
    pub(super) fn of_piece() -> Header {
        Header { garbage: Garbage::EndsHeaderClearly, ..Header::of_message() }
    }

    /// Of what is a message only for some readers, and only if it begins like one.
    pub(super) fn of_possible_message() -> Header {
        Header { garbage: Garbage::EndsReading, ..Header::of_message() }
    }

    pub(super) fn of_part() -> Header {
        Header {
            found: Found::default(),
            of_message: false,
            fields: 0,
            in_field: false,
            open: false,
            meaning: None,
            value: Vec::new(),
            value_cut: false,
            garbage: Garbage::EndsHeader,
            bare_cr_told: false,
            at: At::start(),
        }
    }

    /// Whether nothing has been told of it.
    pub(super) const fn is_empty(&self) -> bool {
        self.fields == 0
    }

    /// The second reading at a line that is not a field: the line, held by `reader`, is told as one and more follow.
    pub(super) fn going_on(&self, reader: &mut Reader) -> Box<Header> {
        let mut header = Box::new(self.as_second_reading());
        header.garbage = Garbage::Field;
        reader.begin_field(&mut header);
        header
    }

    fn as_second_reading(&self) -> Header {
        Header { open: false, ..self.clone() }
    }

    fn note_value(&mut self, bytes: &[u8], bytes_max: usize) {
        if self.meaning.is_none() {
            return;
        }
        let room = bytes_max.saturating_sub(self.value.len());
        self.value_cut |= bytes.len() > room;
        self.value.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

impl At {
    const fn start() -> At {
        At::Start(Start { matcher: Some(Matcher::new()), line: Line::Empty })
    }
}

impl Reader {
    pub(super) fn read_header(&mut self, header: &mut Header, input: &[u8]) -> Advance {
        let Some(&next) = input.first() else {
            return Advance::Took(0);
        };
        match header.at {
            At::Start(_) => self.line_start(header, input),
            At::Value { blank } => self.value(header, input, blank),
            At::ValueCr { blank } => self.value_cr(header, next, blank),
            At::ValueCrCr { blank } => self.value_cr_cr(header, next, blank),
            At::AfterBlank => {
                header.at = At::start();
                if !matches!(next, b'\r' | b'\n') {
                    self.offer_header_end(header);
                }
                Advance::Took(0)
            }
            At::End(end) => Advance::HeaderEnd(end),
        }
    }

    /// The input ends within the header.
    pub(super) fn read_header_end(&mut self, header: &mut Header) -> Advance {
        let start = match &header.at {
            At::Start(start) => start,
            At::End(end) => return Advance::HeaderEnd(*end),
            _ => {
                // If a CR is held, it is the second of two: an empty line.
                self.drop_held();
                return Advance::HeaderEnd(HeaderEnd::Clear);
            }
        };
        let verdict = start.matcher.as_ref().map(Matcher::finish);
        if let Some(Verdict::Delimiter(delimiter)) = verdict.map(|verdict| self.judge(verdict)) {
            return Advance::HeaderEnd(HeaderEnd::Delimiter(delimiter));
        }
        match start.line {
            Line::Empty | Line::Crs | Line::White => {
                self.drop_held();
                Advance::HeaderEnd(HeaderEnd::Clear)
            }
            // Nothing follows that could be read in another way.
            _ => Advance::HeaderEnd(HeaderEnd::Clear),
        }
    }

    // --- at the start of a line

    fn line_start(&mut self, header: &mut Header, input: &[u8]) -> Advance {
        if self.held().is_empty()
            && let Some(advance) = self.plain_line_start(header, input)
        {
            return advance;
        }
        let mut taken = 0;
        for &byte in input {
            let At::Start(start) = &mut header.at else {
                break;
            };
            if start.line == Line::Crs {
                if self.empty_line(header, byte) {
                    taken += 1;
                }
                break;
            }
            let may_be_empty = start.line == Line::Empty || self.line_ends().is_none();
            if self.ends_line(byte) && !(byte == b'\r' && may_be_empty) {
                self.line_ended(header);
                break;
            }
            self.line_goes_on(header, byte);
            taken += 1;
        }
        if taken > 0 {
            return Advance::Took(taken);
        }
        match header.at {
            At::End(end) => Advance::HeaderEnd(end),
            _ => Advance::Took(0),
        }
    }

    /// The usual lines, recognised without holding anything.
    fn plain_line_start(&mut self, header: &mut Header, input: &[u8]) -> Option<Advance> {
        match input.first()? {
            b'\n' => {
                self.took(1);
                self.saw_lf();
                header.at = At::End(HeaderEnd::Clear);
                Some(Advance::Took(1))
            }
            b' ' | b'\t' if header.in_field => {
                if !header.open {
                    self.open_field(header);
                }
                header.at = At::Value { blank: true };
                Some(Advance::Took(0))
            }
            b'-' => None,
            _ => {
                let near = &input[..input.len().min(NAME_BYTES_MAX)];
                let end = near.iter().position(|&byte| !is_name_byte(byte))?;
                if end == 0 || near[end] != b':' {
                    return None;
                }
                self.end_field(header);
                self.open_field(header);
                header.meaning = meaning(&near[..end]);
                header.at = At::Value { blank: false };
                Some(Advance::Took(0))
            }
        }
    }

    /// Reads one more byte of a line whose role is open, and holds it.
    fn line_goes_on(&mut self, header: &mut Header, byte: u8) {
        let At::Start(start) = &mut header.at else {
            return;
        };
        let verdict = match &mut start.matcher {
            Some(matcher) => matcher.push(byte, self.boundaries()),
            None => Verdict::Content,
        };
        let verdict = self.judge(verdict);
        start.line = next_line(start.line, byte, self.held(), header.of_message);
        self.hold(byte);
        match verdict {
            Verdict::Undecided => return,
            Verdict::Content => start.matcher = None,
            Verdict::Delimiter(delimiter) => {
                header.at = At::End(HeaderEnd::Delimiter(delimiter));
                return;
            }
        }
        match start.line {
            Line::Field => self.begin_field(header),
            Line::NotField => self.garbage(header),
            _ => {}
        }
    }

    /// The line ends before its role was clear; its end has not been taken.
    fn line_ended(&mut self, header: &mut Header) {
        let At::Start(start) = &header.at else {
            return;
        };
        let verdict = start.matcher.as_ref().map(Matcher::finish);
        if let Some(Verdict::Delimiter(delimiter)) = verdict.map(|verdict| self.judge(verdict)) {
            header.at = At::End(HeaderEnd::Delimiter(delimiter));
        } else if start.line == Line::White {
            self.drop_held();
            header.at = At::start();
            header.in_field = false;
        } else {
            self.garbage(header);
        }
    }

    fn garbage(&mut self, header: &mut Header) {
        match header.garbage {
            Garbage::Field => self.begin_field(header),
            Garbage::EndsHeaderClearly => header.at = At::End(HeaderEnd::Clear),
            Garbage::EndsReading if header.is_empty() => {
                header.at = At::End(HeaderEnd::NoMessage);
            }
            _ => header.at = At::End(HeaderEnd::NotField),
        }
    }

    /// `byte` follows CRs at the start of a line. Whether it is the end of an empty line.
    fn empty_line(&mut self, header: &mut Header, byte: u8) -> bool {
        let any = self.line_ends() == Some(LineEnds::Any);
        if byte == b'\n' {
            self.took(1);
            self.saw_lf();
            self.drop_held();
            header.at = At::End(HeaderEnd::Clear);
            return true;
        }
        if any || self.line_ends().is_none() {
            self.set_line_ends(LineEnds::Any);
            self.drop_held();
            header.at = At::End(HeaderEnd::Clear);
            return false;
        }
        if byte == b'\r' && self.held().len() < NAME_BYTES_MAX {
            self.hold(byte);
            return true;
        }
        self.garbage(header);
        false
    }

    // --- fields

    /// The line of which the beginning is held is a field, or told as one.
    pub(super) fn begin_field(&mut self, header: &mut Header) {
        self.end_field(header);
        self.open_field(header);
        let colon = self.held().iter().position(|&byte| byte == b':');
        header.meaning = colon.and_then(|colon| meaning(&self.held()[..colon]));
        header.note_value(self.held(), self.bounds.field_bytes_max);
        self.tell_held();
        header.at = At::Value { blank: false };
    }

    fn open_field(&mut self, header: &mut Header) {
        header.in_field = true;
        if header.open {
            return;
        }
        header.open = true;
        header.fields += 1;
        self.tell(Tell::Open(Object {
            kind: Kind::Field,
            raw_offset: self.held_offset(),
            coding: Coding::Identity,
            ..Object::default()
        }));
    }

    /// The field before the place is complete: reads what it means, and closes it unless it holds the rest of a header
    /// with too many fields.
    fn end_field(&mut self, header: &mut Header) {
        self.read_field(header);
        header.in_field = false;
        if header.fields < self.bounds.fields_max {
            self.close_field(header);
        }
    }

    /// The header is complete, and with it its last field.
    pub(super) fn end_fields(&mut self, header: &mut Header) {
        self.read_field(header);
        self.close_field(header);
    }

    fn close_field(&mut self, header: &mut Header) {
        if header.open {
            header.open = false;
            self.tell(Tell::Close);
        }
    }

    /// Reads what is held as the beginning of a header.
    pub(super) fn replay_header(&mut self, header: &mut Header) {
        for byte in self.give_back() {
            match header.at {
                At::Start(_) => self.line_goes_on(header, byte),
                _ => self.hold(byte),
            }
        }
        if matches!(header.at, At::Value { .. }) {
            self.tell_held();
        }
    }

    fn read_field(&mut self, header: &mut Header) {
        let Some(meaning) = header.meaning.take() else {
            return;
        };
        if header.value_cut {
            let name = "Heuristics.Limits.Exceeded.FieldBytes";
            let finding = self.finding(Class::Limit, name);
            self.tell(Tell::Finding(finding));
        }
        let colon = header.value.iter().position(|&byte| byte == b':');
        let value = &header.value[colon.map_or(0, |colon| colon + 1)..];
        let bytes_max = self.bounds.name_bytes_max;
        let found = &mut header.found;
        match meaning {
            Meaning::Type => found.note_type(field::content_type(value, bytes_max)),
            Meaning::TransferEncoding => found.note_coding(field::transfer_coding(value)),
            Meaning::Disposition => found.note_name(field::disposition_name(value, bytes_max)),
        }
        header.value.clear();
        header.value_cut = false;
    }

    fn value(&mut self, header: &mut Header, input: &[u8], blank: bool) -> Advance {
        let end = memchr::memchr2(b'\n', b'\r', input);
        let taken = end.map_or(input.len(), |end| end + 1);
        let bytes = &input[..taken];
        header.note_value(bytes, self.bounds.field_bytes_max);
        let blank = blank && bytes.iter().all(u8::is_ascii_whitespace);
        header.at = match bytes.last() {
            Some(b'\n') => self.value_line_end(blank),
            Some(b'\r') => At::ValueCr { blank },
            _ => At::Value { blank },
        };
        Advance::Content(taken)
    }

    fn value_line_end(&mut self, blank: bool) -> At {
        self.saw_lf();
        if blank { At::AfterBlank } else { At::start() }
    }

    fn value_cr(&mut self, header: &mut Header, next: u8, blank: bool) -> Advance {
        match (next, self.line_ends()) {
            (b'\n', _) => {
                header.at = self.value_line_end(blank);
                return Advance::Content(1);
            }
            (b'\r', Some(LineEnds::Lf)) => return Advance::Content(1),
            (b'\r', None) => {
                self.hold(b'\r');
                header.at = At::ValueCrCr { blank };
                return Advance::Took(1);
            }
            (_, Some(LineEnds::Lf)) => self.bare_cr(header, blank),
            (_, Some(LineEnds::Any)) => header.at = At::start(),
            (_, None) => self.first_line_ends_with_cr(header, blank),
        }
        Advance::Took(0)
    }

    fn value_cr_cr(&mut self, header: &mut Header, next: u8, blank: bool) -> Advance {
        if next == b'\n' {
            self.saw_lf();
            self.tell_held();
            header.at = At::ValueCr { blank };
        } else {
            self.first_line_ends_with_cr(header, blank);
        }
        Advance::Took(0)
    }

    /// The first line end of all is a bare CR: it ends lines, except in the second reading.
    fn first_line_ends_with_cr(&mut self, header: &mut Header, blank: bool) {
        header.bare_cr_told = true;
        let mut second = header.as_second_reading();
        self.offer("Heuristics.Ambiguous.Mime.BareCr", |reader| {
            let mut other = reader.branch(State::Done);
            other.reader.set_line_ends(LineEnds::Lf);
            other.reader.open_field(&mut second);
            other.reader.tell_held();
            second.at = At::Value { blank };
            other.state = State::Header(Box::new(second));
            other
        });
        self.set_line_ends(LineEnds::Any);
        header.at = At::start();
        if let At::Start(start) = &mut header.at
            && !self.held().is_empty()
        {
            start.line = Line::Crs;
        }
    }

    /// A bare CR where lines end with LF: part of the value, except in the second reading.
    fn bare_cr(&mut self, header: &mut Header, blank: bool) {
        header.at = At::Value { blank };
        if header.bare_cr_told {
            return;
        }
        header.bare_cr_told = true;
        let mut second = header.as_second_reading();
        self.offer("Heuristics.Ambiguous.Mime.BareCr", |reader| {
            let mut other = reader.branch(State::Done);
            other.reader.set_line_ends(LineEnds::Any);
            second.at = At::start();
            other.state = State::Header(Box::new(second));
            other
        });
    }

    /// A line of only white space precedes: for some readers the header has ended with it.
    fn offer_header_end(&mut self, header: &Header) {
        let mut second = header.as_second_reading();
        self.offer("Heuristics.Ambiguous.Mime.BlankLine", |reader| {
            let mut other: Box<Parser> = reader.branch(State::Done);
            second.at = At::End(HeaderEnd::Clear);
            other.state = State::Header(Box::new(second));
            other
        });
    }
}

/// What a line is with one more byte; `line` and `held` are what it was before.
fn next_line(line: Line, byte: u8, held: &[u8], of_message: bool) -> Line {
    let is_short = held.len() < NAME_BYTES_MAX;
    match (line, byte) {
        (Line::Empty, b'\r') => Line::Crs,
        (Line::Empty | Line::White, b' ' | b'\t' | b'\r') if is_short => Line::White,
        (Line::Name, b'-') if held == b"-" => Line::Dashes,
        (Line::Dashes, _) if is_short => Line::Dashes,
        (Line::Name, b' ' | b'\t') if is_mbox_line(held, of_message) => Line::Field,
        (Line::Name | Line::NameSpace, b' ' | b'\t') if is_short => Line::NameSpace,
        (Line::Name | Line::NameSpace, b':') => Line::Field,
        (Line::Empty | Line::White | Line::Name, _) if is_short && is_name_byte(byte) => Line::Name,
        (Line::Field, _) => Line::Field,
        _ => Line::NotField,
    }
}

fn is_mbox_line(held: &[u8], of_message: bool) -> bool {
    let held = held.strip_prefix(b"\xef\xbb\xbf").unwrap_or(held);
    of_message && (held == b"From" || held == b">From")
}

/// Whether a byte may stand in a field name. Names with 8-bit characters are met.
const fn is_name_byte(byte: u8) -> bool {
    byte > b' ' && byte != b':' && byte != 0x7f
}

fn meaning(name: &[u8]) -> Option<Meaning> {
    const PREFIX: &[u8] = b"content-";
    let name = name.trim_ascii();
    let (prefix, rest) = name.split_at_checked(PREFIX.len())?;
    if !prefix.eq_ignore_ascii_case(PREFIX) {
        return None;
    }
    if rest.eq_ignore_ascii_case(b"type") {
        Some(Meaning::Type)
    } else if rest.eq_ignore_ascii_case(b"transfer-encoding") {
        Some(Meaning::TransferEncoding)
    } else if rest.eq_ignore_ascii_case(b"disposition") {
        Some(Meaning::Disposition)
    } else {
        None
    }
}
