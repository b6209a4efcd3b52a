//! Bodies of HTTP that are streams of messages, each of which is of use before the body ends: server-sent events (HTML, section 9.2) and
//! messages of gRPC.
//!
//! [`Reader`] takes the bytes of a body and says where its messages end. Events that come together are one message, their bytes as they
//! stand on the wire. Events have lines of the known fields alone: with any other line the rest of the body is one message, so that no file
//! passes in pieces because it is called a stream of events.
//!
//! Bounds: five bytes of a line or a head. Not here: content codings, gRPC in Base64 (`application/grpc-web-text`).
#![deny(clippy::arithmetic_side_effects)]

use alloc::vec::Vec;

/// Bytes before a message of gRPC: flags, and a length.
const HEAD_BYTES: usize = 5;

/// Flags of a message of gRPC: its content is packed; it is the trailer (gRPC-Web).
const PACKED: u8 = 1;
const TRAILER: u8 = 0x80;

/// The fields of an event.
const FIELDS: [&[u8]; 4] = [b"data", b"event", b"id", b"retry"];

/// Bytes of the longest field.
const FIELD_BYTES_MAX: usize = 5;

/// The mark that a text in UTF-8 may begin with.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// The form of the messages in a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Server-sent events.
    Events,
    /// gRPC, or gRPC-Web.
    Grpc,
}

impl Form {
    /// The form of a body of this media type; none of one that is no stream of messages.
    pub fn of(media_type: &[u8]) -> Option<Form> {
        let essence = media_type.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii();
        if essence.eq_ignore_ascii_case(b"text/event-stream") {
            return Some(Form::Events);
        }
        let end = essence.iter().position(|&byte| byte == b'+').unwrap_or(essence.len());
        let name = essence.get(..end)?;
        let is_grpc =
            [&b"application/grpc"[..], b"application/grpc-web"].iter().any(|grpc| name.eq_ignore_ascii_case(grpc));
        is_grpc.then_some(Form::Grpc)
    }
}

/// An event of a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// More input is needed.
    Idle,
    /// A message begins. The bytes taken are its head, and no content.
    Begin(Head),
    /// The bytes taken are content.
    Content,
    /// The message is complete.
    End,
    /// The bytes are no messages of gRPC: the body is of no more use.
    Refused,
}

/// The head of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Head {
    /// Its bytes on the wire, which go before its content; none of events.
    pub bytes: Option<[u8; HEAD_BYTES]>,
    /// The content is packed as the field `grpc-encoding` says.
    pub is_packed: bool,
}

/// Reads the messages of one body.
#[derive(Debug)]
pub struct Reader(State);

#[derive(Debug)]
enum State {
    /// Between two messages of events, or within one.
    Events { line: Line, is_within: bool, has_ended: bool },
    /// The head of a message of gRPC: its first bytes.
    Head { bytes: [u8; HEAD_BYTES], count: usize },
    /// Content of a message of gRPC, of which this many bytes are left.
    Content(u32),
    /// A body of another form, whose only message has begun.
    Other,
}

/// A line of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    /// The mark of UTF-8 before the first line: how much of it.
    Mark(usize),
    /// Nothing of the line.
    Begin,
    /// Nothing of the line, and a CR before it, to which an LF belongs. `is_blank`: the CR ends an event.
    Return { is_blank: bool },
    /// The name of a field.
    Name([u8; FIELD_BYTES_MAX], usize),
    /// A comment, or the value of a field.
    Value,
}

impl Reader {
    /// Begins a body.
    pub const fn new(form: Form) -> Reader {
        Reader(match form {
            Form::Events => State::Events { line: Line::Mark(0), is_within: false, has_ended: false },
            Form::Grpc => State::Head { bytes: [0; HEAD_BYTES], count: 0 },
        })
    }

    /// True when the body is of another form than its type says, and is one message to its end.
    pub const fn is_other(&self) -> bool {
        matches!(self.0, State::Other)
    }

    /// Takes a prefix of the input, and emits one event.
    pub fn step(&mut self, input: &[u8]) -> (usize, Event) {
        match &mut self.0 {
            State::Events { has_ended, is_within, .. } if *has_ended => {
                (*has_ended, *is_within) = (false, false);
                (0, Event::End)
            }
            _ if input.is_empty() => (0, self.end_of_empty()),
            State::Events { is_within, .. } if !*is_within => {
                *is_within = true;
                (0, Event::Begin(Head::default()))
            }
            State::Events { .. } => (self.take_lines(input), Event::Content),
            State::Head { .. } => self.take_head(input),
            State::Content(0) => (0, self.end_of_empty()),
            State::Content(left) => {
                let count = usize::try_from(*left).map_or(input.len(), |left| left.min(input.len()));
                *left = left.saturating_sub(u32::try_from(count).unwrap_or(u32::MAX));
                (count, Event::Content)
            }
            State::Other => (input.len(), Event::Content),
        }
    }

    /// A message of gRPC ends where nothing of it is left, without a further byte.
    fn end_of_empty(&mut self) -> Event {
        if !matches!(self.0, State::Content(0)) {
            return Event::Idle;
        }
        self.0 = State::Head { bytes: [0; HEAD_BYTES], count: 0 };
        Event::End
    }

    /// Takes bytes of a head, and the message begins with the last of them.
    fn take_head(&mut self, input: &[u8]) -> (usize, Event) {
        let State::Head { bytes, count } = &mut self.0 else { return (0, Event::Idle) };
        let mut taken = 0_usize;
        for (to, from) in bytes.iter_mut().skip(*count).zip(input) {
            *to = *from;
            taken = taken.saturating_add(1);
        }
        *count = count.saturating_add(taken);
        let (bytes, count) = (*bytes, *count);
        let [flags, length @ ..] = bytes;
        if count < HEAD_BYTES {
            return (taken, Event::Idle);
        }
        if flags & !(PACKED | TRAILER) != 0 {
            return (0, Event::Refused);
        }
        self.0 = State::Content(u32::from_be_bytes(length));
        (taken, Event::Begin(Head { bytes: Some(bytes), is_packed: flags & PACKED != 0 }))
    }

    /// The bytes of the input up to the end of its last event, or all of them.
    fn take_lines(&mut self, input: &[u8]) -> usize {
        let State::Events { line, has_ended, .. } = &mut self.0 else { return 0 };
        let mut last = None;
        for (at, &byte) in input.iter().enumerate() {
            let Some((next, is_end)) = line.next(byte) else {
                self.0 = State::Other;
                return input.len();
            };
            *line = next;
            if is_end {
                last = Some((at.saturating_add(1), next));
            }
        }
        match last {
            // The bytes behind it are read again, as those of the next message.
            Some((end, state)) => {
                (*line, *has_ended) = (state, true);
                end
            }
            None => input.len(),
        }
    }
}

impl Line {
    /// The line after one more byte, and whether an event has ended with it; none where the byte is of no event.
    fn next(self, byte: u8) -> Option<(Line, bool)> {
        let next = match (self, byte) {
            (Line::Mark(count), byte) if MARK.get(count) == Some(&byte) => Line::Mark(count.saturating_add(1)),
            (Line::Mark(1 | 2), _) => return None,
            (Line::Return { is_blank }, b'\n') => return Some((Line::Begin, is_blank)),
            (Line::Mark(_) | Line::Return { .. }, byte) => return Line::Begin.next(byte),
            (Line::Begin, b'\r') => return Some((Line::Return { is_blank: true }, true)),
            (Line::Begin, b'\n') => return Some((Line::Begin, true)),
            (Line::Begin, b':') => Line::Value,
            (Line::Begin, byte) => Line::Name([byte, 0, 0, 0, 0], 1),
            (Line::Name(name, count), b':' | b'\r' | b'\n') => {
                let is_known = name.get(..count).is_some_and(|name| FIELDS.contains(&name));
                return if is_known { Line::Value.next(byte) } else { None };
            }
            (Line::Name(mut name, count), byte) => {
                *name.get_mut(count)? = byte;
                Line::Name(name, count.saturating_add(1))
            }
            (Line::Value, b'\r') => Line::Return { is_blank: false },
            (Line::Value, b'\n') => Line::Begin,
            (Line::Value, _) => Line::Value,
        };
        Some((next, false))
    }
}

/// The body of the fuzz target: no byte is lost or moved, and messages end where they end in any other cut.
pub fn fuzz(data: &[u8]) {
    let [control, bytes @ ..] = data else { return };
    let form = if control & 1 == 0 { Form::Events } else { Form::Grpc };
    let (whole, is_whole_refused) = written(form, bytes, bytes.len());
    let (cut, is_cut_refused) = written(form, bytes, usize::from(control >> 1).max(1));
    assert_eq!((&whole, is_whole_refused), (&cut, is_cut_refused));
    assert!(if is_whole_refused { bytes.starts_with(&whole) } else { bytes == whole });
}

/// The heads and contents of a body that is fed in pieces of this size, and whether its end is refused.
fn written(form: Form, bytes: &[u8], piece: usize) -> (Vec<u8>, bool) {
    let (mut reader, mut written) = (Reader::new(form), Vec::new());
    let (mut at, mut end) = (0, 0);
    loop {
        let (taken, event) = reader.step(&bytes[at..end]);
        let input = &bytes[at..at.saturating_add(taken)];
        at = at.saturating_add(taken);
        match event {
            Event::Idle if taken == 0 && end == bytes.len() => {
                // The part of a head that has come.
                written.extend_from_slice(&bytes[written.len()..at]);
                return (written, false);
            }
            Event::Idle if taken == 0 => end = end.saturating_add(piece.max(1)).min(bytes.len()),
            Event::Idle | Event::End => {}
            Event::Begin(head) => written.extend(head.bytes.iter().flatten()),
            Event::Content => written.extend_from_slice(input),
            Event::Refused => return (written, true),
        }
    }
}

#[cfg(test)]
#[expect(clippy::arithmetic_side_effects, reason = "places in texts of a test")]
mod tests {
    use alloc::string::String;

    use super::*;

    /// The messages of a body, in words; fed in pieces of this size.
    fn said(form: Form, bytes: &[u8], piece: usize) -> String {
        let (mut reader, mut words) = (Reader::new(form), String::new());
        let (mut at, mut end) = (0, 0);
        loop {
            let (taken, event) = reader.step(&bytes[at..end]);
            let input = &bytes[at..at + taken];
            at += taken;
            match event {
                Event::Idle if taken == 0 && end == bytes.len() => return words,
                Event::Idle if taken == 0 => end = (end + piece.max(1)).min(bytes.len()),
                Event::Idle => {}
                Event::Begin(head) => words.push_str(if head.is_packed { "packed(" } else { "(" }),
                Event::Content => words.push_str(&String::from_utf8_lossy(input)),
                Event::End => words.push(')'),
                Event::Refused => return words + "!",
            }
        }
    }

    #[test]
    fn the_media_type_names_the_form() {
        for (media_type, form) in [
            ("text/event-stream", Some(Form::Events)),
            (" Text/Event-Stream ; charset=utf-8", Some(Form::Events)),
            ("text/event-streams", None),
            ("application/grpc", Some(Form::Grpc)),
            ("application/grpc+proto", Some(Form::Grpc)),
            ("application/grpc-web+proto; x=1", Some(Form::Grpc)),
            ("application/grpc-web-text", None),
            ("application/grpcs", None),
            ("", None),
        ] {
            assert_eq!(Form::of(media_type.as_bytes()), form, "{media_type}");
        }
    }

    #[test]
    fn an_event_ends_with_a_blank_line() {
        for (body, alone) in [
            ("data: a\n\ndata: b\n\n", "(data: a\n\n)(data: b\n\n)"),
            ("data: a\r\rid\r\r", "(data: a\r\r)(id\r\r)"),
            ("\u{feff}: hi\nevent:x\ndata\n\nretry: 1", "(\u{feff}: hi\nevent:x\ndata\n\n)(retry: 1"),
            ("\n:\n\n", "(\n)(:\n\n)"),
        ] {
            assert_eq!(
                said(Form::Events, body.as_bytes(), 1).replace('\u{fffd}', ""),
                alone.replace('\u{feff}', ""),
                "{body:?}"
            );
        }
        let both = b"data: a\r\n\r\ndata: b\r\n\r\ndata: c";
        assert_eq!(said(Form::Events, both, 99), "(data: a\r\n\r\ndata: b\r\n\r\n)(data: c");
        assert_eq!(said(Form::Events, both, 1), "(data: a\r\n\r)(\n)(data: b\r\n\r)(\n)(data: c");
    }

    #[test]
    fn a_file_that_is_called_events_is_one_message() {
        for body in [
            "MZ\n\nPE\n\n",
            "PK\x03\x04\n\n\n\n",
            "#!/bin/sh\n\nrm x\n\n",
            "<html>\n\n",
            "dat: a\n\nx",
            "events: a\n\nx",
        ] {
            for piece in [1, 3, 99] {
                let mut reader = Reader::new(Form::Events);
                let mut rest = body.as_bytes();
                while !rest.is_empty() {
                    let (taken, event) = reader.step(&rest[..rest.len().min(piece)]);
                    assert_ne!(event, Event::End, "{body:?}");
                    rest = &rest[taken..];
                }
                assert!(reader.is_other());
            }
        }
        // What comes before is of use.
        assert_eq!(said(Form::Events, b"data: a\n\nMZ\n\nPE\n\n", 9), "(data: a\n\n)(MZ\n\nPE\n\n");
    }

    #[test]
    fn a_message_of_grpc_is_as_long_as_its_head_says() {
        let body = b"\0\0\0\0\x03abc\0\0\0\0\0\x01\0\0\0\x02xy\x80\0\0\0\x01t\0\0\0\0\x09un";
        for piece in 1..30 {
            assert_eq!(said(Form::Grpc, body, piece), "(abc)()packed(xy)(t)(un", "{piece}");
        }
        assert_eq!(said(Form::Grpc, b"\0\0\0\0\x01a\x04\0\0\0\x01a", 3), "(a)!");
    }

    #[test]
    fn no_byte_is_lost_however_a_body_is_cut() {
        for body in [
            &b"data: a\r\n\r\nid:1\n\nMZ\n\n"[..],
            b"\0\0\0\0\x03abc\x01\0\0\0\x02xy\0\0",
            b"\xef\xbbx",
            b"\x02\0\0\0\0",
        ] {
            (0..60).for_each(|control| fuzz(&[&[control], body].concat()));
        }
    }
}
