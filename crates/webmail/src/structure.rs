//! The parts of a message: what each is, which are its text, and which are attachments. Where they are the store has known since the
//! delivery ([`Layout`]); of each the header is read, by the readers of `mime`.
//!
//! Bounds: [`PARTS_MAX`] parts, of each a header of [`HEADER_BYTES_MAX`].

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use mime::{Decoder, Value, value};
use stream::{Coding, Event, Fuel, Nothing, Stage, Window};
use text::encoding::Encoding;

use crate::envelope::shown;
use crate::mail::{Layout, Mail, Message};

/// Parts of a message that are shown.
const PARTS_MAX: usize = 200;

/// Bytes of a header that are read.
const HEADER_BYTES_MAX: usize = 16 << 10;

/// Bytes of a text that are shown.
pub const TEXT_BYTES_MAX: usize = 2 << 20;

/// Bytes of a message that are read at a time.
const PIECE_BYTES: usize = 64 << 10;

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The way to it: `1`, `1.2`.
    pub path: String,
    /// Type and subtype in lower case.
    pub kind: String,
    /// The name of a file.
    pub name: String,
    charset: String,
    is_flowed: bool,
    deletes_space: bool,
    is_attachment: bool,
    /// `Content-ID` without its brackets.
    pub id: String,
    coding: Coding,
    message: u64,
    body: u64,
    end: u64,
    parts: Vec<Part>,
}

/// A text of a message, in the forms that it has.
#[derive(Debug, Clone, Copy, Default)]
pub struct Text<'a> {
    /// As HTML.
    pub html: Option<&'a Part>,
    /// As plain text.
    pub plain: Option<&'a Part>,
}

/// A message in the order in which it is read.
#[derive(Debug, Default)]
pub struct Shown<'a> {
    /// Texts.
    pub texts: Vec<Text<'a>>,
    /// Pictures that a text shows.
    pub pictures: Vec<&'a Part>,
    /// All else.
    pub attachments: Vec<&'a Part>,
}

/// The fields of a header.
pub struct Header(Vec<u8>);

impl Header {
    /// Reads the header of a message or part.
    pub fn read(mail: &mut dyn Mail, message: u64, layout: &Layout) -> Header {
        let length = layout.body.saturating_sub(layout.header).min(HEADER_BYTES_MAX as u64);
        Header(range(mail, message, layout.header, length))
    }

    /// A header of these bytes.
    #[cfg(test)]
    pub fn of(bytes: &[u8]) -> Header {
        Header(bytes.into())
    }

    /// The value of a field, the first of its name, unfolded.
    pub fn get(&self, name: &str) -> Option<Vec<u8>> {
        self.all(name).into_iter().next()
    }

    /// The values of all fields of a name, unfolded.
    pub fn all(&self, name: &str) -> Vec<Vec<u8>> {
        let (mut found, mut is_within): (Vec<Vec<u8>>, bool) = (Vec::new(), false);
        for line in self.0.split(|&byte| byte == b'\n') {
            if line.first().is_some_and(|byte| b" \t".contains(byte)) {
                found.last_mut().filter(|_| is_within).into_iter().for_each(|value| value.extend_from_slice(line));
                continue;
            }
            let colon = line.iter().position(|&byte| byte == b':').unwrap_or(line.len());
            let (known, value) = line.split_at(colon);
            is_within = !value.is_empty() && known.trim_ascii_end().eq_ignore_ascii_case(name.as_bytes());
            if is_within {
                found.push(value.get(1..).unwrap_or_default().to_vec());
            }
        }
        found.iter().map(|value| mime::unfolded(value).trim_ascii().to_vec()).collect()
    }
}

/// Bytes of a message.
pub(crate) fn range(mail: &mut dyn Mail, message: u64, offset: u64, length: u64) -> Vec<u8> {
    let mut bytes = alloc::vec![0; usize::try_from(length).unwrap_or(0)];
    let mut filled = 0usize;
    while let Some(room) = bytes.get_mut(filled..).filter(|room| !room.is_empty()) {
        match mail.read(message, offset.saturating_add(filled as u64), room) {
            0 => break,
            count => filled = filled.saturating_add(count),
        }
    }
    bytes.truncate(filled);
    bytes
}

impl Part {
    /// Reads the parts of a message.
    pub fn read(mail: &mut dyn Mail, message: &Message) -> Part {
        let mut left = PARTS_MAX;
        Part::at(mail, message.number, &message.layout, "1".into(), &mut left)
    }

    fn at(mail: &mut dyn Mail, message: u64, layout: &Layout, path: String, left: &mut usize) -> Part {
        *left = left.saturating_sub(1);
        let header = Header::read(mail, message, layout);
        let kind = Value::read(&header.get("content-type").unwrap_or_default());
        let place = Value::read(&header.get("content-disposition").unwrap_or_default());
        let coding = header.get("content-transfer-encoding").and_then(|value| value::transfer_coding(&value));
        let named = place.get("filename").or_else(|| kind.get("name")).map(shown).unwrap_or_default();
        let parameter = |name: &str| kind.get(name).map(shown).unwrap_or_default();
        let mut part = Part {
            kind: match kind.media_type() {
                _ if layout.is_message => "message/rfc822".into(),
                Some((main, sub)) => shown(&[main, b"/", sub].concat()).to_ascii_lowercase(),
                None => "text/plain".into(),
            },
            name: named.chars().filter(|c| !matches!(c, '/' | '\\')).collect(),
            charset: parameter("charset"),
            is_flowed: parameter("format").eq_ignore_ascii_case("flowed"),
            deletes_space: parameter("delsp").eq_ignore_ascii_case("yes"),
            is_attachment: place.main.eq_ignore_ascii_case(b"attachment"),
            id: header
                .get("content-id")
                .map(|id| shown(id.trim_ascii()).trim_matches(['<', '>']).into())
                .unwrap_or_default(),
            coding: if layout.is_message { Coding::Identity } else { coding.unwrap_or_default() },
            message,
            body: layout.body,
            end: layout.end,
            parts: Vec::new(),
            path,
        };
        if !layout.is_message {
            for (at, child) in layout.parts.iter().enumerate() {
                if *left == 0 {
                    break;
                }
                let path = format!("{}.{}", part.path, at.saturating_add(1));
                let child = Part::at(mail, message, child, path, left);
                part.parts.push(child);
            }
        }
        part
    }

    /// The part at a path.
    pub fn find(&self, path: &str) -> Option<&Part> {
        if self.path == path {
            return Some(self);
        }
        self.parts.iter().find_map(|part| part.find(path))
    }

    /// The part with this `Content-ID`.
    pub fn with_id(&self, id: &str) -> Option<&Part> {
        if !id.is_empty() && self.id == id {
            return Some(self);
        }
        self.parts.iter().find_map(|part| part.with_id(id))
    }

    /// Its texts and attachments.
    pub fn shown(&self) -> Shown<'_> {
        let mut shown = Shown::default();
        self.collect(false, &mut shown);
        shown
    }

    fn collect<'a>(&'a self, is_related: bool, shown: &mut Shown<'a>) {
        match self.kind.as_str() {
            "multipart/alternative" => {
                let mut text = Text::default();
                for part in &self.parts {
                    let mut one = Shown::default();
                    part.collect(false, &mut one);
                    for found in one.texts {
                        text = Text { html: found.html.or(text.html), plain: found.plain.or(text.plain) };
                    }
                    shown.pictures.extend(one.pictures);
                    shown.attachments.extend(one.attachments);
                }
                if text.html.is_some() || text.plain.is_some() {
                    shown.texts.push(text);
                }
            }
            _ if !self.parts.is_empty() => {
                let is_related = self.kind == "multipart/related";
                self.parts.iter().for_each(|part| part.collect(is_related, shown));
            }
            "text/html" if !self.is_attachment => shown.texts.push(Text { html: Some(self), plain: None }),
            "text/plain" if !self.is_attachment && self.name.is_empty() => {
                shown.texts.push(Text { html: None, plain: Some(self) });
            }
            kind if is_related && kind.starts_with("image/") && !self.id.is_empty() => shown.pictures.push(self),
            kind if kind.starts_with("multipart/") => {}
            _ => shown.attachments.push(self),
        }
    }

    /// A name to save it by.
    pub fn file_name(&self) -> String {
        if !self.name.is_empty() {
            return self.name.chars().take(120).collect();
        }
        let end = match self.kind.as_str() {
            "message/rfc822" => "eml",
            "text/plain" => "txt",
            "text/html" => "html",
            "image/png" => "png",
            "image/jpeg" => "jpg",
            "image/gif" => "gif",
            "application/pdf" => "pdf",
            _ => "bin",
        };
        format!("part-{}.{end}", self.path)
    }

    /// Bytes of it, about, decoded.
    pub fn size(&self) -> u64 {
        let raw = self.end.saturating_sub(self.body);
        if self.coding == Coding::Base64 { raw / 4 * 3 } else { raw }
    }

    /// Its content, decoded as it is read.
    pub fn content(&self) -> Content {
        Content::new(self.message, (self.body, self.end), self.coding)
    }

    /// Its content as a whole, up to so many bytes.
    pub fn bytes(&self, mail: &mut dyn Mail, bytes_max: usize) -> Vec<u8> {
        let (mut content, mut bytes) = (self.content(), Vec::new());
        while bytes.len() < bytes_max
            && let Some(piece) = content.next(mail)
        {
            bytes.extend_from_slice(piece);
        }
        bytes.truncate(bytes_max);
        bytes
    }

    /// Its text, with line feeds between lines.
    pub fn text(&self, mail: &mut dyn Mail) -> String {
        let bytes = self.bytes(mail, TEXT_BYTES_MAX);
        let encoding = Encoding::of(self.charset.as_bytes(), &bytes, self.kind == "text/html");
        let text = with_line_feeds(encoding.decode(&bytes).0.into_owned());
        if self.is_flowed { crate::plain::unflowed(&text, self.deletes_space) } else { text }
    }
}

/// A text whose lines end with line feeds, whatever ended them.
fn with_line_feeds(text: String) -> String {
    if memchr::memchr(b'\r', text.as_bytes()).is_none() {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    let mut pieces = text.split('\r');
    out.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        out.push('\n');
        out.push_str(piece.strip_prefix('\n').unwrap_or(piece));
    }
    out
}

/// The content of a part, piece by piece.
pub struct Content {
    message: u64,
    at: u64,
    end: u64,
    decoder: Box<Decoder>,
    is_raw: bool,
    /// The piece that was told last, of what is decoded.
    window: Window,
    /// Bytes that were read, of which the first `taken` are done with.
    input: Vec<u8>,
    taken: usize,
    is_over: bool,
}

impl Content {
    fn new(message: u64, (at, end): (u64, u64), coding: Coding) -> Content {
        // Decoded it is not longer.
        let bytes = usize::try_from(end.saturating_sub(at)).unwrap_or(PIECE_BYTES).clamp(1 << 10, PIECE_BYTES);
        Content {
            message,
            at,
            end,
            decoder: Box::new(Decoder::new(coding)),
            is_raw: coding == Coding::Identity,
            window: Window::with_capacity(bytes),
            input: Vec::new(),
            taken: 0,
            is_over: false,
        }
    }

    /// A message as it stands.
    pub fn whole(message: &Message) -> Content {
        Content::new(message.number, (0, message.row.size), Coding::Identity)
    }

    /// The next piece; `None` at the end.
    pub fn next(&mut self, mail: &mut dyn Mail) -> Option<&[u8]> {
        self.window.clear();
        while !self.is_over {
            if self.taken == self.input.len() && !self.fill(mail) {
                return self.finish();
            }
            let from = self.taken;
            if self.is_raw {
                self.taken = self.input.len();
                return self.input.get(from..);
            }
            let rest = self.input.get(from..).unwrap_or_default();
            let step = self.decoder.step(rest, &mut self.window, &mut Fuel::unlimited());
            self.taken = from.saturating_add(step.taken).min(self.input.len());
            match step.event {
                Event::Wrote => return Some(self.window.filled()),
                Event::Verbatim => return self.input.get(from..self.taken),
                Event::End => self.is_over = true,
                _ => {}
            }
        }
        None
    }

    fn finish(&mut self) -> Option<&[u8]> {
        while !self.is_over && !self.is_raw {
            match self.decoder.finish(&Nothing, &mut self.window, &mut Fuel::unlimited()) {
                Event::Wrote => return Some(self.window.filled()),
                Event::End => self.is_over = true,
                _ => {}
            }
        }
        self.is_over = true;
        None
    }

    /// Reads on, once all that was read is done with.
    fn fill(&mut self, mail: &mut dyn Mail) -> bool {
        let left = usize::try_from(self.end.saturating_sub(self.at)).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
        self.input.resize(left, 0);
        let count = if left == 0 { 0 } else { mail.read(self.message, self.at, &mut self.input) };
        self.input.truncate(count);
        self.taken = 0;
        self.at = self.at.saturating_add(count as u64);
        count > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(kind: &str, id: &str, parts: Vec<Part>) -> Part {
        Part {
            path: "1".into(),
            kind: kind.into(),
            name: String::new(),
            charset: String::new(),
            is_flowed: false,
            deletes_space: false,
            is_attachment: false,
            id: id.into(),
            coding: Coding::Identity,
            message: 0,
            body: 0,
            end: 0,
            parts,
        }
    }

    #[test]
    fn pictures_of_a_text_are_no_attachments() {
        let page = || part("text/html", "", Vec::new());
        let related = part("multipart/related", "", vec![page(), part("image/png", "a@b", Vec::new())]);
        let both = part("multipart/alternative", "", vec![part("text/plain", "", Vec::new()), related]);
        let all = part("multipart/mixed", "", vec![both, part("image/gif", "c@d", Vec::new())]);
        let shown = all.shown();
        let ids = |parts: &[&Part]| parts.iter().map(|part| part.id.clone()).collect::<Vec<_>>();
        assert_eq!((ids(&shown.pictures), ids(&shown.attachments)), (vec!["a@b".into()], vec!["c@d".into()]));
    }

    #[test]
    fn lines_end_with_line_feeds() {
        for (text, wanted) in
            [("", ""), ("a\nb", "a\nb"), ("a\r\nb\r\n", "a\nb\n"), ("a\rb\r", "a\nb\n"), ("\r\r\n\n\r", "\n\n\n\n")]
        {
            assert_eq!(with_line_feeds(text.into()), wanted, "{text:?}");
        }
    }
}
