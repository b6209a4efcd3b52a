//! The fields of a header: opened, told, read where they matter, and closed; and what a bare CR in one may mean.

use alloc::boxed::Box;

use stream::{Class, Coding, Kind, Object};

use super::line::Line;
use super::{At, Garbage, Header};
use crate::field;
use crate::parser::reader::{LineEnds, Reader, Tell};
use crate::parser::{Advance, HeaderEnd, Parser, State};

/// The fields whose values are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    Type,
    TransferEncoding,
    Disposition,
}

impl Reader {
    /// Begins a field with the held beginning of its line.
    pub(in crate::parser) fn begin_field(&mut self, header: &mut Header) {
        self.end_field(header);
        self.open_field(header);
        // Where there is no colon it may follow on a line that continues this one.
        let colon = self.held().iter().position(|&byte| byte == b':').unwrap_or(self.held().len());
        header.meaning = meaning(&self.held()[..colon]);
        header.note_value(self.held(), self.bounds.field_bytes_max);
        self.tell_held();
        header.at = At::Value { blank: false };
    }

    pub(super) fn open_field(&mut self, header: &mut Header) {
        header.in_field = true;
        if header.open {
            return self.one_field_more(header);
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

    /// A field begins that is emitted as part of the one before it, which is emitted once.
    fn one_field_more(&mut self, header: &mut Header) {
        if header.fields == self.bounds.fields_max {
            header.fields += 1;
            let finding = self.finding(Class::Limit, "Heuristics.Limits.Exceeded.Fields");
            self.tell(Tell::Finding(finding));
        }
    }

    /// Ends the previous field: reads its meaning, and closes it unless it holds the rest of a header with too many
    /// fields.
    pub(super) fn end_field(&mut self, header: &mut Header) {
        self.read_field(header);
        header.in_field = false;
        if header.fields < self.bounds.fields_max {
            self.close_field(header);
        }
    }

    /// The header is complete, and with it its last field.
    pub(in crate::parser) fn end_fields(&mut self, header: &mut Header) {
        self.read_field(header);
        self.close_field(header);
    }

    fn close_field(&mut self, header: &mut Header) {
        if header.open {
            header.open = false;
            self.tell(Tell::Close);
        }
    }

    /// Reads the held bytes as the beginning of a header.
    pub(in crate::parser) fn replay_header(&mut self, header: &mut Header) {
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
        let value = core::mem::take(&mut header.value);
        let colon = value.iter().position(|&byte| byte == b':').unwrap_or(value.len());
        let (name, behind) = value.split_at(colon);
        let doubt = field::without_comments(name);
        if let Some(value) = behind.get(1..) {
            self.read_value(header, meaning, value, doubt.is_some());
        }
        // For readers that know comments there, a colon within a comment does not end the name.
        let whole = field::without_comments(&value).filter(|_| doubt.is_some());
        if let Some(colon) = whole.as_deref().and_then(|whole| whole.iter().position(|&byte| byte == b':')) {
            self.read_value(header, meaning, &whole.unwrap_or_default()[colon + 1..], true);
        }
        header.value = value;
        header.value.clear();
        header.value_cut = false;
    }

    /// Reads the value of a field. Readers that know no comments in the name, where there is one, do not see the field:
    /// then it is in doubt.
    fn read_value(&self, header: &mut Header, meaning: Meaning, value: &[u8], doubt: bool) {
        let bytes_max = self.bounds.name_bytes_max;
        let found = &mut header.found;
        if doubt {
            found.doubt(meaning == Meaning::Type, meaning == Meaning::TransferEncoding);
        }
        if meaning != Meaning::TransferEncoding {
            found.names.read(value, bytes_max);
        }
        match meaning {
            Meaning::Type => {
                found.note_type(field::content_type(value, bytes_max));
                // ClamAV takes comments out wherever they stand.
                if let Some(bare) = field::without_comments(value) {
                    found.note_type(field::content_type(&bare, bytes_max));
                }
                // Readers that ignore unclosed comments see the text after them.
                if let Some(text) = field::with_unclosed_comment(value) {
                    found.note_type(field::content_type(&text, bytes_max));
                    if let Some(bare) = field::without_comments(&text) {
                        found.note_type(field::content_type(&bare, bytes_max));
                    }
                }
                // Some readers decode encoded words; those of names are everywhere and change nothing.
                if let Some(decoded) = field::decoded_type(value) {
                    found.note_type(field::content_type(decoded.as_bytes(), bytes_max));
                }
            }
            Meaning::TransferEncoding => found.note_coding(field::transfer_coding(value)),
            Meaning::Disposition => found.note_name(field::disposition_name(value, bytes_max)),
        }
    }

    pub(super) fn value(&mut self, header: &mut Header, input: &[u8], blank: bool) -> Advance {
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

    pub(super) fn value_cr(&mut self, header: &mut Header, next: u8, blank: bool) -> Advance {
        match (next, self.line_ends()) {
            (b'\n', _) => {
                header.at = self.value_line_end(blank);
                return Advance::Content(1);
            }
            (b'\r', Some(LineEnds::Lf)) if header.bare_cr_told => return Advance::Content(1),
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

    pub(super) fn value_cr_cr(&mut self, header: &mut Header, next: u8, blank: bool) -> Advance {
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

    /// A bare CR, or two, where lines end with LF: part of the value, except in the second reading.
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

    /// A line of CRs precedes: some readers see a line that is no field, and further fields behind it.
    pub(super) fn offer_more_fields(&mut self, header: &Header) {
        let mut second = Header { garbage: Garbage::Field, in_field: false, ..header.as_second_reading() };
        self.offer("Heuristics.Ambiguous.Mime.HeaderEnd", |reader| {
            let mut other: Box<Parser> = reader.branch(State::Done);
            second.at = At::start();
            other.state = State::Header(Box::new(second));
            other
        });
    }

    /// A line of only white space precedes: for some readers the header has ended with it.
    pub(super) fn offer_header_end(&mut self, header: &Header) {
        let mut second = header.as_second_reading();
        self.offer("Heuristics.Ambiguous.Mime.BlankLine", |reader| {
            let mut other: Box<Parser> = reader.branch(State::Done);
            second.at = At::End(HeaderEnd::Clear);
            other.state = State::Header(Box::new(second));
            other
        });
    }
}

pub(super) fn meaning(name: &[u8]) -> Option<Meaning> {
    pub(super) const PREFIX: &[u8] = b"content-";
    let bare = field::without_comments(name);
    let name = bare.as_deref().unwrap_or(name).trim_ascii();
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
