//! The header of a message or part: its fields, raw and in order, and where it ends.
//!
//! A field ends with the line end that no white space follows. A header ends with an empty line, with a delimiter of an
//! open multipart, or with a line that is not a field: the body begins with that line, as for mutt and Python's email
//! package, and the second reading takes it for garbage and goes on, as Thunderbird does. The line `From ` of mbox
//! files is emitted as a field.
//!
//! Past `Limits::fields_max` fields the rest of the header is emitted as one field, and of the value of a `Content-*` field
//! no more than `Limits::field_bytes_max` is read. Both are findings.

mod line;
mod value;

use alloc::boxed::Box;
use alloc::vec::Vec;

use stream::Limits;

use super::boundary::{Matcher, Verdict};
use super::entity::Found;
use super::reader::{LineEnds, Reader};
use super::{Advance, HeaderEnd};
use crate::field::NAMES_MAX;
use line::{Line, NAME_BYTES_MAX, is_name_byte, next_line};
use value::{Meaning, meaning};

/// A header being read.
#[derive(Debug, Clone)]
pub(super) struct Header {
    pub found: Found,
    /// Whether it is the header of a message, where mbox lines are expected, and not of a part.
    of_message: bool,
    /// Fields told; the last one may hold several when there are too many.
    fields: u32,
    /// A field precedes, which a line that begins with white space continues.
    in_field: bool,
    /// That field is an open object of this reading.
    open: bool,
    /// Meaning of the field in progress, and its bytes from the name on.
    meaning: Option<Meaning>,
    value: Vec<u8>,
    value_cut: bool,
    /// Treatment of a line that is not a field.
    garbage: Garbage,
    /// A second reading for bare CRs has been offered, or this is it.
    bare_cr_told: bool,
    at: At,
}

#[derive(Debug, Clone)]
enum At {
    /// At the start of a line whose held bytes have been read.
    Start(Start),
    /// In the value of a field; whether the line has had only white space so far.
    Value { blank: bool },
    /// After a CR in the value.
    ValueCr { blank: bool },
    /// After two CRs that may be the first line end of the message; the second is held.
    ValueCrCr { blank: bool },
    /// After the line end of a line of only white space.
    AfterBlank,
    /// After an empty line with more than one CR before its LF.
    AfterCrs,
    /// In the empty line that ends the header.
    End(HeaderEnd),
}

/// Treatment of a line that is not a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Garbage {
    /// The body begins with this line.
    EndsHeader,
    /// It is emitted as a field and the header goes on.
    Field,
    /// The body begins with this line, without ambiguity.
    EndsHeaderClearly,
    /// If it is the first line, then this is no message, and the second reading that took it for one is over.
    EndsReading,
}

/// Possible roles of a line after its bytes so far.
#[derive(Debug, Clone)]
struct Start {
    /// None when the line is not a delimiter.
    matcher: Option<Matcher>,
    line: Line,
}

pub(super) const fn worst_case_bytes(limits: &Limits) -> usize {
    // The value grows by doubling; its findings are at most four values of each kind.
    10 * limits.field_bytes_max as usize + NAMES_MAX * limits.name_bytes_max as usize + size_of::<Header>()
}

impl Header {
    pub(super) fn of_message() -> Header {
        Header { of_message: true, ..Header::of_part() }
    }

    /// Header of a message that may be only a piece, without its header.
    pub(super) fn of_piece() -> Header {
        Header { garbage: Garbage::EndsHeaderClearly, ..Header::of_message() }
    }

    /// Header of content that only some readers take for a message, and only if it begins like one.
    pub(super) fn of_possible_message() -> Header {
        Header { garbage: Garbage::EndsReading, ..Header::of_message() }
    }

    /// Header that only some readers know, without doubts about its fields.
    pub(super) fn of_stray_fields() -> Header {
        Header { garbage: Garbage::Field, ..Header::of_part() }
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

    /// Makes the second reading at a line that is not a field: the line, held by `reader`, is emitted as a field, and
    /// more follow. If readers disagree about the length of its name, the next such line is ambiguous again.
    pub(super) fn going_on(&self, reader: &mut Reader) -> Box<Header> {
        let mut header = Box::new(self.as_second_reading());
        let held = reader.held();
        let is_long_name = held.len() > NAME_BYTES_MAX && held.iter().copied().all(is_name_byte);
        // A first line that goes on with nothing is passed over by readers for whom the next such line ends the header.
        let is_continuation = matches!(held, [b' ' | b'\t', ..]);
        let may_be_field = is_long_name || is_continuation || held.starts_with(b":");
        header.garbage = if may_be_field { Garbage::EndsHeader } else { Garbage::Field };
        reader.begin_field(&mut header);
        header
    }

    fn as_second_reading(&self) -> Header {
        Header { open: false, ..self.clone() }
    }

    fn note_value(&mut self, mut bytes: &[u8], bytes_max: usize) {
        if self.meaning.is_none() || self.value_cut {
            return;
        }
        loop {
            let room = bytes_max.saturating_sub(self.value.len());
            let (taken, rest) = bytes.split_at(bytes.len().min(room));
            self.value.extend_from_slice(taken);
            if rest.is_empty() {
                return;
            }
            bytes = rest;
            squeeze(&mut self.value);
            // Each time much is gained, so that all of it takes linear time.
            if self.value.len() > bytes_max / 4 * 3 {
                self.value_cut = true;
                return;
            }
        }
    }
}

/// Takes out blanks behind blanks, and empty parameters, where they are in no quotes.
fn squeeze(value: &mut Vec<u8>) {
    let (mut sign, mut was_blank, mut in_quotes, mut is_escaped) = (0, false, false, false);
    value.retain_mut(|byte| {
        if in_quotes {
            (in_quotes, is_escaped) = (*byte != b'"' || is_escaped, *byte == b'\\' && !is_escaped);
            return true;
        }
        if byte.is_ascii_whitespace() {
            *byte = b' ';
            return !core::mem::replace(&mut was_blank, true) && sign != b';';
        }
        was_blank = false;
        in_quotes = *byte == b'"';
        core::mem::replace(&mut sign, *byte) != b';' || *byte != b';'
    });
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
            At::AfterCrs => {
                header.at = At::End(HeaderEnd::Clear);
                self.offer_more_fields(header);
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
            // As within a field: the header ends here, or goes on.
            self.begin_field(header);
            header.at = At::Value { blank: true };
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
            header.at = if self.held().len() > 1 { At::AfterCrs } else { At::End(HeaderEnd::Clear) };
            self.took(1);
            self.saw_lf();
            self.drop_held();
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_parameters_take_no_room() {
        for (value, wanted) in [
            ("text/html ; ; ;; ; charset=x", "text/html ;charset=x"),
            ("a;b=\"; ;  \\\";;\"; ;c=d  e", "a;b=\"; ;  \\\";;\";c=d e"),
            ("a\r\n\tb;\r\n c", "a b;c"),
        ] {
            let mut squeezed = value.as_bytes().to_vec();
            squeeze(&mut squeezed);
            assert_eq!(String::from_utf8_lossy(&squeezed), wanted);
        }
        for (value, is_cut) in [("; ".repeat(50_000) + "charset=utf-8", false), ("x; ".repeat(10_000), true)] {
            for cut in [1, 7, 1_000, 100_000] {
                let mut header = Header { meaning: Some(Meaning::Type), ..Header::of_part() };
                value.as_bytes().chunks(cut).for_each(|piece| header.note_value(piece, 8_192));
                assert_eq!((header.value_cut, header.value.len() <= 8_192), (is_cut, true));
                assert_eq!(header.value.ends_with(b"charset=utf-8"), !is_cut);
            }
        }
    }
}
