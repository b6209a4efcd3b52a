//! Files written into text: uuencode (and `begin-base64`), BinHex 4.0, yEnc.
//!
//! Reads decoded text and tells each file as an `Embedded` object: its lines as they stand, from the line that announces
//! it to the one that ends it, without the line end behind. The text around them is not told. A file without its end
//! goes on to the next announcement or to the end of the text; a [`Decoder`](crate::Decoder) for its coding skips what
//! does not belong to it.
//!
//! Not recognised: data without its announcing line.

mod marker;

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use memchr::{memchr, memchr2};
use stream::{Coding, Event, Fuel, Kind, Limits, Object, ReadAt, Stage, Step, Window};

pub use marker::announces_yenc;
use marker::{LINE_MAX, Marker};

/// Finds files in text. Bounded by one line of 1 KiB and the name.
#[derive(Debug, Clone)]
pub struct Embedded {
    name_bytes_max: usize,
    /// Bytes taken.
    offset: u64,
    inside: Option<Inside>,
    at: At,
    /// The beginning of a line that may be a marker.
    held: Vec<u8>,
    /// How many held bytes have been emitted, when they turned out to be content.
    telling: Option<usize>,
    queue: VecDeque<Event>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    LineStart,
    Middle,
    /// The file has ended; all of it was emitted.
    Close,
    Done,
}

/// The file that is being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inside {
    Uuencode,
    UuencodeBase64,
    Yenc,
    /// How many of the two colons around the data have been seen; one when the first comes next.
    BinHex {
        colons: u8,
    },
}

enum Advance {
    Content(usize),
    Took(usize),
}

impl Embedded {
    /// A reader at the start of a text.
    pub fn new(limits: &Limits) -> Embedded {
        Embedded {
            name_bytes_max: usize::try_from(limits.name_bytes_max).unwrap_or(usize::MAX),
            offset: 0,
            inside: None,
            at: At::LineStart,
            held: Vec::new(),
            telling: None,
            queue: VecDeque::new(),
        }
    }

    fn advance(&mut self, input: &[u8]) -> Advance {
        match self.at {
            At::LineStart => self.line_start(input),
            At::Middle => self.middle(input),
            At::Close => {
                self.close();
                Advance::Took(0)
            }
            At::Done => Advance::Took(0),
        }
    }

    fn line_start(&mut self, input: &[u8]) -> Advance {
        if self.held.is_empty() && marker::begins_binhex(input, self.inside) {
            self.inside = Some(Inside::BinHex { colons: 1 });
            self.at = At::Middle;
            return Advance::Took(0);
        }
        for (taken, &byte) in input.iter().enumerate() {
            if matches!(byte, b'\r' | b'\n') || self.held.len() >= LINE_MAX {
                self.line_ends();
                return Advance::Took(taken);
            }
            self.held.push(byte);
            self.offset += 1;
            if !marker::is_possible(&self.held, self.inside) {
                self.no_marker();
                return Advance::Took(taken + 1);
            }
        }
        Advance::Took(input.len())
    }

    /// The line held is complete, its line end not taken.
    fn line_ends(&mut self) {
        match marker::read(&self.held, self.inside) {
            Marker::Begin(inside, name) => {
                let name = name.map(|name| crate::field::text(name, self.name_bytes_max));
                self.close();
                self.inside = Some(inside);
                self.queue.push_back(Event::Open(Object {
                    kind: Kind::Embedded,
                    name,
                    coding: inside.coding(),
                    raw_offset: Some(self.offset - self.held.len() as u64),
                    ..Object::default()
                }));
                self.telling = Some(0);
                self.at = At::Middle;
            }
            Marker::End => {
                self.telling = Some(0);
                self.at = At::Close;
            }
            Marker::None => self.no_marker(),
        }
    }

    fn no_marker(&mut self) {
        self.at = At::Middle;
        if self.inside.is_none() {
            self.held.clear();
        } else if !self.held.is_empty() {
            self.telling = Some(0);
        }
    }

    fn close(&mut self) {
        if self.inside.take().is_some() {
            self.queue.push_back(Event::Close);
        }
        if self.at != At::Done {
            self.at = At::Middle;
        }
    }

    fn middle(&mut self, input: &[u8]) -> Advance {
        match self.inside {
            Some(Inside::BinHex { colons: 1 }) => {
                self.inside = Some(Inside::BinHex { colons: 2 });
                return self.passed(1);
            }
            Some(Inside::BinHex { colons: 2 }) => return self.binhex(input),
            _ => {}
        }
        let mut at = 0;
        while let Some(end) = memchr2(b'\r', b'\n', &input[at..]) {
            at += end + 1;
            let line = &input[at..];
            if marker::is_possible(line, self.inside) || marker::begins_binhex(line, self.inside) {
                self.at = At::LineStart;
                return self.passed(at);
            }
        }
        self.passed(input.len())
    }

    fn binhex(&mut self, input: &[u8]) -> Advance {
        let end = memchr(b':', input).map(|end| end + 1);
        if end.is_some() {
            self.at = At::Close;
        }
        self.passed(end.unwrap_or(input.len()))
    }

    fn passed(&mut self, count: usize) -> Advance {
        self.offset += count as u64;
        match self.inside {
            Some(_) => Advance::Content(count),
            None => Advance::Took(count),
        }
    }

    fn pending(&mut self, output: &mut Window) -> Option<Event> {
        if let Some(event) = self.queue.pop_front() {
            return Some(event);
        }
        let told = self.telling?;
        let end = told + output.push(&self.held[told..]);
        self.telling = Some(end);
        if end == self.held.len() {
            self.held.clear();
            self.telling = None;
        }
        Some(Event::Wrote)
    }

    fn advance_at_end(&mut self) {
        match self.at {
            At::LineStart if !self.held.is_empty() => self.line_ends(),
            _ => {
                self.at = At::Done;
                self.close();
            }
        }
    }
}

impl Inside {
    const fn coding(self) -> Coding {
        match self {
            Inside::Uuencode | Inside::UuencodeBase64 => Coding::Uuencode,
            Inside::Yenc => Coding::Yenc,
            Inside::BinHex { .. } => Coding::BinHex,
        }
    }
}

impl Stage for Embedded {
    fn step(&mut self, input: &[u8], output: &mut Window, fuel: &mut Fuel) -> Step {
        if fuel.is_empty() {
            return Step::idle(0);
        }
        let input = &input[..fuel.allows(input.len())];
        loop {
            if let Some(event) = self.pending(output) {
                fuel.burn(output.len().max(1));
                return Step::tell(0, event);
            }
            if input.is_empty() {
                return Step::idle(0);
            }
            match self.advance(input) {
                Advance::Content(0) | Advance::Took(0) => {}
                Advance::Content(taken) => {
                    fuel.burn(taken);
                    return Step::tell(taken, Event::Verbatim);
                }
                Advance::Took(taken) => {
                    fuel.burn(taken);
                    let event = self.pending(output).unwrap_or(Event::Idle);
                    return Step::tell(taken, event);
                }
            }
        }
    }

    fn finish(&mut self, _: &dyn ReadAt, output: &mut Window, fuel: &mut Fuel) -> Event {
        if fuel.is_empty() {
            return Event::Idle;
        }
        loop {
            if let Some(event) = self.pending(output) {
                fuel.burn(output.len().max(1));
                return event;
            }
            if self.at == At::Done {
                return Event::End;
            }
            self.advance_at_end();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stream::law::{Told, content, holds, holds_at_every_cut, tell};

    /// Coding, name, offset and content of the files in `text`.
    fn files(text: &[u8]) -> Vec<(Coding, Option<String>, u64, Vec<u8>)> {
        let make = || Embedded::new(&Limits::default());
        holds(make, text);
        holds_at_every_cut(make, text);
        let mut files = Vec::new();
        for told in tell(make(), text) {
            match told {
                Told::Open(object) => files.push((
                    object.coding,
                    object.name.map(String::from),
                    object.raw_offset.expect("a run of the text"),
                    Vec::new(),
                )),
                Told::Content(bytes) => files.last_mut().expect("open").3.extend(bytes),
                _ => {}
            }
        }
        for (.., offset, content) in &files {
            assert!(text[*offset as usize..].starts_with(content));
        }
        files
    }

    fn decoded(coding: Coding, encoded: &[u8]) -> Vec<u8> {
        content(&tell(crate::Decoder::new(coding), encoded))
    }

    #[test]
    fn uuencoded_files_are_found_one_after_another() {
        let text = b"Hello,\r\n\r\nbegin 644 a b.txt\r\n#86)C\r\n`\r\nend\r\nand\r\nbegin-base64 600 b\r\nYWJj\r\n====\r\nbegin 644 c\n#86)C\n";
        let files = files(text);
        let found: Vec<_> = files.iter().map(|file| (file.1.as_deref(), file.2)).collect();
        assert_eq!(found, [(Some("a b.txt"), 10), (Some("b"), 49), (Some("c"), 81)]);
        assert!(files[0].3.ends_with(b"`\r\nend"));
        for (coding, _, _, encoded) in files {
            assert_eq!(decoded(coding, &encoded), b"abc");
        }
    }

    #[test]
    fn text_that_only_speaks_of_it_is_not_a_file() {
        for text in [
            &b"begin\r\nbegin 12\nbegin  the day\nbegin 644\nBEGIN 644 x\n begin 644 x\nbegin 999 x\n"[..],
            b"x begin 644 a\n(This file must be converted with care)\n=ypart\n=yend\nend\n",
            b"",
        ] {
            assert_eq!(files(text), []);
        }
    }

    #[test]
    fn a_file_without_end_stops_at_the_next_one() {
        let files = files(b"begin 644 a\n#86)C\nbegin 644 b\n#86)C\nend");
        assert_eq!(files.len(), 2);
        assert_eq!(files[0].3, b"begin 644 a\n#86)C\n");
    }

    #[test]
    fn yenc_and_binhex_are_found() {
        let text = b"=ybegin line=128 size=2 name=my file.bin\r\n\x8b\x8c\r\n=yend size=2\r\n\r\n(This file must be converted with BinHex 4.0)\r\n\r\n:abc\r\ndef:\r\nmore: text\r\n";
        let files = files(text);
        assert_eq!(files.len(), 2);
        assert_eq!(files[0].1.as_deref(), Some("my file.bin"));
        assert_eq!(decoded(files[0].0, &files[0].3), b"ab");
        assert_eq!(files[1].0, Coding::BinHex);
        assert!(files[1].3.ends_with(b":abc\r\ndef:"));
    }
}
