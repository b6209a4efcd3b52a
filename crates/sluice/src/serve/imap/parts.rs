//! Where in a message its parts stand, by the numbers that IMAP gives them (RFC 9051, section 6.4.5).
//!
//! Read as the inspection reads it, so what is overwritten stands where this says. A server that reads the structure in
//! another way numbers other parts; then a client sees another part than it asked for, overwritten as it has to be.
//! Bounds: [`PARTS_MAX`] parts; more are not known.

use std::ops::Range;

use proto::imap::{Part, Section};
use stream::{Event, Fuel, Kind, Limits, Nothing, Object, Stage, Window};

/// Parts that are known of a message.
pub const PARTS_MAX: usize = 256;

/// The parts of a message.
#[derive(Debug, Default)]
pub struct Parts {
    all: Vec<Place>,
    /// Its size in bytes.
    len: u64,
}

#[derive(Debug)]
struct Place {
    path: Vec<u32>,
    /// The header in front of the part: of the message, for the message itself.
    header: Range<u64>,
    body: Range<u64>,
    /// The header and the body of the message that it is.
    message: Option<(Range<u64>, Range<u64>)>,
}

impl Parts {
    /// The range that a section stands for; empty where it is beyond the end. None if there is no such part, or it is no
    /// run of the message.
    pub fn range(&self, section: &Section) -> Option<Range<u64>> {
        let place = self.place(&section.path)?;
        let whole = match (&section.part, &place.message) {
            (Part::All, _) if section.path.is_empty() => 0..self.len,
            (Part::All, _) => place.body.clone(),
            (Part::Mime, _) => place.header.clone(),
            (Part::Header, Some((header, _))) => header.clone(),
            (Part::Text, Some((_, body))) => body.clone(),
            _ => return None,
        };
        let Some((origin, len)) = section.partial else { return Some(whole) };
        let start = whole.start.saturating_add(origin).min(whole.end);
        let end = len.map_or(whole.end, |len| start.saturating_add(len).min(whole.end));
        Some(start..end)
    }

    /// A part by its numbers. As with Dovecot, a part that has no parts is its own first part.
    fn place(&self, path: &[u32]) -> Option<&Place> {
        let find = |path: &[u32]| self.all.iter().find(|place| place.path == path);
        let as_its_first = || {
            let (last, parent) = path.split_last()?;
            find(parent).filter(|place| *last == 1 && place.message.is_none())
        };
        find(path).or_else(as_its_first)
    }

    /// The size of the message.
    pub fn len(&self) -> u64 {
        self.len
    }
}

/// Finds the parts of a message as it passes.
pub struct Finder {
    parser: mime::Parser,
    window: Window,
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
            parser: mime::Parser::new(&Limits::default()),
            window: Window::with_capacity(4 << 10),
            at: 0,
            lines: Lines::default(),
            header: None,
            open: vec![Open::Message(0)],
            parts: Parts { all: vec![root], len: 0 },
        }
    }
}

impl Finder {
    /// Takes more of the message.
    pub fn take(&mut self, mut content: &[u8]) {
        while !content.is_empty() {
            let step = self.parser.step(content, &mut self.window, &mut Fuel::new(u64::MAX));
            let (taken, rest) = content.split_at(step.taken);
            self.lines.see(taken);
            content = rest;
            let before = self.at;
            self.at += step.taken as u64;
            let told = self.window.len() as u64;
            self.window.clear();
            match step.event {
                Event::Verbatim => self.grow(self.at - before),
                Event::Wrote => self.grow(told),
                Event::Open(object) => self.open(&object),
                Event::Close => self.close(self.lines.delimiter_start),
                Event::End => return,
                _ => {}
            }
        }
    }

    /// The message is complete.
    pub fn finish(mut self) -> Parts {
        loop {
            let event = self.parser.finish(&Nothing, &mut self.window, &mut Fuel::new(u64::MAX));
            let told = self.window.len() as u64;
            self.window.clear();
            match event {
                Event::Wrote => self.grow(told),
                Event::Open(object) => self.open(&object),
                Event::Close => self.close(self.at),
                Event::End => break,
                _ => {}
            }
        }
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
            Some(Open::Leaf(Some(part))) => self.parts.all[*part].body.end += count,
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
                let mut path = self.parts.all[*part].path.clone();
                path.push(number);
                path
            }
            Some(Open::Message(message)) => {
                let place = &mut self.parts.all[*message];
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
        if self.parts.all.len() == PARTS_MAX {
            return Open::Leaf(None);
        }
        path.shrink_to_fit();
        self.parts.all.push(Place { path, header, body: start..start, message: None });
        let part = self.parts.all.len() - 1;
        match kind {
            Kind::Multipart => Open::Multipart { part, children: 0 },
            Kind::Message => Open::Message(part),
            _ => Open::Leaf(Some(part)),
        }
    }

    /// What is open ends, at the latest at `end`.
    fn close(&mut self, end: u64) {
        let (part, is_message) = match self.open.pop() {
            Some(Open::Multipart { part, .. }) => {
                (part, matches!(self.open.last(), Some(Open::Message(of)) if *of == part))
            }
            Some(Open::Message(part)) => (part, true),
            _ => return,
        };
        let place = &mut self.parts.all[part];
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

/// What the last lines look like, and where a delimiter begins.
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

#[cfg(test)]
mod tests {
    use super::*;

    const MAIL: &str = "From: a\r\nContent-Type: multipart/mixed; boundary=x\r\n\r\npre\r\n--x\r\n\
        Content-Type: text/plain\r\n\r\nhello\r\n--x\r\n\r\nno header\r\n--x\r\nContent-Type: message/rfc822\r\n\r\n\
        Subject: in\r\nContent-Type: multipart/alternative; boundary=y\r\n\r\n--y\r\n\r\ninner\r\n--y--\r\n--x\r\n\
        Content-Type: message/rfc822\r\n\r\nSubject: bare\r\n\r\nbare\r\n--x--\r\nend\r\n";

    fn parts(mail: &str, cut: usize) -> Parts {
        let mut finder = Finder::default();
        finder.take(&mail.as_bytes()[..cut]);
        finder.take(&mail.as_bytes()[cut..]);
        finder.finish()
    }

    fn text<'a>(mail: &'a str, parts: &Parts, section: &str) -> Option<&'a str> {
        let section = Section::parse(section.as_bytes()).unwrap().unwrap();
        let range = parts.range(&section)?;
        Some(&mail[range.start as usize..range.end as usize])
    }

    #[test]
    fn parts_have_the_numbers_of_the_standard_however_the_mail_is_cut() {
        for cut in 0..MAIL.len() {
            let parts = parts(MAIL, cut);
            let inner = "Subject: in\r\nContent-Type: multipart/alternative; boundary=y\r\n\r\n";
            for (section, wanted) in [
                ("BODY[1]", "hello"),
                ("BODY[1.1]", "hello"),
                ("BODY[1.MIME]", "Content-Type: text/plain\r\n\r\n"),
                ("BODY[2]", "no header"),
                ("BODY[2.MIME]", "\r\n"),
                ("BODY[3.HEADER]", inner),
                ("BODY[3.TEXT]", "--y\r\n\r\ninner\r\n--y--"),
                ("BODY[3.1]", "inner"),
                ("BODY[4]", "Subject: bare\r\n\r\nbare"),
                ("BODY[4.1]", "bare"),
                ("BODY[1]<1.3>", "ell"),
                ("BODY[1]<9.3>", ""),
                ("BODY[]<0.4>", "From"),
            ] {
                assert_eq!(text(MAIL, &parts, section), Some(wanted), "{section} cut at {cut}");
            }
            assert!(text(MAIL, &parts, "BODY[TEXT]").unwrap().starts_with("pre\r\n--x"));
            for section in ["BODY[5]", "BODY[1.2]", "BODY[1.TEXT]", "BODY[3.HEADER.FIELDS (A)]"] {
                assert_eq!(text(MAIL, &parts, section), None, "{section}");
            }
        }
    }

    #[test]
    fn a_mail_of_one_part_has_one() {
        let mail = "Subject: a\r\n\r\nbody\r\n";
        let parts = parts(mail, 5);
        assert_eq!(text(mail, &parts, "BODY[1]"), Some("body\r\n"));
        assert_eq!(text(mail, &parts, "BODY[TEXT]"), Some("body\r\n"));
        assert_eq!(text(mail, &parts, "BODY[]<0.9>"), Some("Subject: "));
    }

    #[test]
    fn no_more_parts_are_kept_than_the_bound() {
        let mail = format!("Content-Type: multipart/mixed; boundary=x\r\n\r\n{}", "--x\r\n\r\npart\r\n".repeat(1_000));
        assert_eq!(parts(&mail, 100).all.len(), PARTS_MAX);
    }
}
