//! The parts of a message: what each is, which are its text, and which are attachments. Where they are the store has known since the
//! delivery ([`Layout`]); of each the header is read, by the readers of `mime`.
//!
//! Bounds: [`PARTS_MAX`] parts, of each a header of [`HEADER_BYTES_MAX`].

mod content;
mod shown;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use mime::{Value, value};
use stream::Coding;
use text::encoding::Encoding;

use crate::envelope::{sent, shown};
use crate::mail::{Layout, Mail, Message};
use crate::percent::decoded;
use crate::sanitise::Picture;

pub use content::Content;
pub use shown::Shown;

/// Parts of a message that are shown: as many as the store knows.
const PARTS_MAX: usize = 1_000;

/// Bytes of a header that are read.
const HEADER_BYTES_MAX: usize = 16 << 10;

/// Bytes of a message within a message that tell whether it is encoded.
const FIRST_BYTES: u64 = 200;

/// Bytes of a text that are shown.
pub const TEXT_BYTES_MAX: usize = 2 << 20;

/// Endings of the names of files, by type.
const ENDINGS: [(&str, &str); 34] = [
    ("message/rfc822", "eml"),
    ("message/delivery-status", "txt"),
    ("message/disposition-notification", "txt"),
    ("text/plain", "txt"),
    ("text/rfc822-headers", "txt"),
    ("text/html", "html"),
    ("text/calendar", "ics"),
    ("text/vcard", "vcf"),
    ("text/x-vcard", "vcf"),
    ("text/csv", "csv"),
    ("text/markdown", "md"),
    ("text/x-patch", "patch"),
    ("text/x-diff", "diff"),
    ("text/rtf", "rtf"),
    ("text/xml", "xml"),
    ("image/png", "png"),
    ("image/jpeg", "jpg"),
    ("image/gif", "gif"),
    ("image/webp", "webp"),
    ("image/avif", "avif"),
    ("image/bmp", "bmp"),
    ("image/tiff", "tiff"),
    ("image/heic", "heic"),
    ("image/svg+xml", "svg"),
    ("audio/mpeg", "mp3"),
    ("audio/wav", "wav"),
    ("video/mp4", "mp4"),
    ("application/pdf", "pdf"),
    ("application/zip", "zip"),
    ("application/rtf", "rtf"),
    ("application/json", "json"),
    ("application/xml", "xml"),
    ("application/pgp-signature", "asc"),
    ("application/pkcs7-signature", "p7s"),
];

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The way to it: `1`, `1.2`.
    pub path: String,
    /// Type and subtype in lower case.
    pub kind: String,
    /// The name of a file.
    pub name: String,
    /// `Content-Description`
    description: String,
    charset: String,
    is_flowed: bool,
    deletes_space: bool,
    is_attachment: bool,
    is_inline: bool,
    /// `Content-ID` without its brackets.
    id: String,
    /// `Content-Location`
    location: String,
    coding: Coding,
    message: u64,
    body: u64,
    end: u64,
    parts: Vec<Part>,
    /// Of a message within: the fields that stand above it.
    pub letter: Option<Box<Letter>>,
}

/// The fields of a message within a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter {
    /// `Subject`
    pub subject: String,
    /// `From`, as it is written.
    pub from: String,
    /// The time of `Date`, seconds since 1970.
    pub date: Option<i64>,
}

/// The fields of a header.
pub struct Header(Vec<u8>);

impl Header {
    /// Reads the header of a message or part.
    pub fn read(mail: &mut dyn Mail, message: u64, layout: &Layout) -> Header {
        let length = layout.body.saturating_sub(layout.header).min(HEADER_BYTES_MAX as u64);
        Header(range(mail, message, layout.header, length))
    }

    /// The header of a message that begins with these bytes.
    fn of_message(bytes: &[u8]) -> Header {
        let mut end = 0usize;
        for line in bytes.split_inclusive(|&byte| byte == b'\n').take_while(|line| !line.trim_ascii().is_empty()) {
            end = end.saturating_add(line.len());
        }
        Header(bytes.get(..end).unwrap_or_default().into())
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
        let named = header.get("content-transfer-encoding").and_then(|value| value::transfer_coding(&value));
        let named = named.unwrap_or_default();
        let coding = match layout.is_message {
            true => value::coding_of_message(named, &range(mail, message, layout.body, FIRST_BYTES)),
            false => named,
        };
        let named = place.get("filename").or_else(|| kind.get("name")).map(shown).unwrap_or_default();
        let field = |name: &str| header.get(name).map(|value| shown(&value));
        let parameter = |name: &str| kind.get(name).map(shown).unwrap_or_default();
        let mut part = Part {
            kind: match kind.media_type() {
                _ if layout.is_message => "message/rfc822".into(),
                Some((main, sub)) => shown(&[main, b"/", sub].concat()).to_ascii_lowercase(),
                None => "text/plain".into(),
            },
            name: last_name(&named).into(),
            description: field("content-description").unwrap_or_default(),
            charset: parameter("charset"),
            is_flowed: parameter("format").eq_ignore_ascii_case("flowed"),
            deletes_space: parameter("delsp").eq_ignore_ascii_case("yes"),
            is_attachment: place.main.eq_ignore_ascii_case(b"attachment"),
            is_inline: place.main.eq_ignore_ascii_case(b"inline"),
            id: field("content-id").map(|id| content_id(&id).into()).unwrap_or_default(),
            location: field("content-location").unwrap_or_default(),
            coding,
            message,
            body: layout.body,
            end: layout.end,
            parts: Vec::new(),
            letter: None,
            path,
        };
        let inner = layout.parts.first().filter(|_| layout.is_message);
        if let Some(inner) = inner {
            let header = match part.is_coded_message() {
                true => Header::of_message(&part.bytes(mail, HEADER_BYTES_MAX)),
                false => Header::read(mail, message, inner),
            };
            let field = |name: &str| header.get(name).map(|value| shown(&value)).unwrap_or_default();
            let date = header.get("date").and_then(|date| sent(&date));
            part.letter = Some(Box::new(Letter { subject: field("subject"), from: field("from"), date }));
        }
        // The places within an encoded message are those of its digits.
        let children = if part.is_coded_message() { &[][..] } else { &layout.parts };
        for (at, child) in children.iter().enumerate() {
            if *left == 0 {
                break;
            }
            let path = format!("{}.{}", part.path, at.saturating_add(1));
            let child = Part::at(mail, message, child, path, left);
            part.parts.push(child);
        }
        part
    }

    /// Whether it is a message with a transfer coding: a file, of which the header is known.
    pub fn is_coded_message(&self) -> bool {
        self.kind == "message/rfc822" && self.coding != Coding::Identity
    }

    /// Whether it has as many parts as are read, and so perhaps more.
    pub fn is_cut(&self) -> bool {
        self.count() >= PARTS_MAX
    }

    fn count(&self) -> usize {
        self.parts.iter().map(Part::count).fold(1, usize::saturating_add)
    }

    /// The part at a path.
    pub fn find(&self, path: &str) -> Option<&Part> {
        if self.path == path {
            return Some(self);
        }
        self.parts.iter().find_map(|part| part.find(path))
    }

    /// The part that a page names as a picture: by a URL of its identifier (RFC 2392), or by its place (RFC 2557).
    pub fn picture(&self, named: Picture<'_>) -> Option<&Part> {
        let (value, is_id) = match named {
            Picture::Part(id) => (id, true),
            Picture::Place(place) => (place, false),
            Picture::Remote(_) => return None,
        };
        let plain = decoded(value.as_bytes(), false);
        let name = if is_id { content_id(&plain) } else { plain.trim() };
        if name.is_empty() {
            return None;
        }
        let is_one =
            |part: &Part, fits: fn(&str, &str) -> bool| fits(if is_id { &part.id } else { &part.location }, name);
        self.first(&|part| is_one(part, |a, b| a == b))
            .or_else(|| self.first(&|part| is_one(part, str::eq_ignore_ascii_case)))
    }

    fn first(&self, fits: &dyn Fn(&Part) -> bool) -> Option<&Part> {
        if fits(self) {
            return Some(self);
        }
        self.parts.iter().find_map(|part| part.first(fits))
    }

    /// A name to save it by.
    pub fn file_name(&self) -> String {
        if !self.name.is_empty() {
            return self.name.chars().take(120).collect();
        }
        let subject = self.letter.as_ref().map_or("", |letter| &letter.subject);
        let subject: String = subject.chars().filter(|c| !matches!(c, '/' | '\\')).take(110).collect();
        if !subject.trim().is_empty() {
            return format!("{}.eml", subject.trim());
        }
        let end = ENDINGS.iter().find(|(kind, _)| *kind == self.kind).map(|(_, end)| *end);
        let described: String = last_name(&self.description).chars().take(110).collect();
        match (described.rsplit_once('.'), end) {
            _ if described.is_empty() => format!("part-{}.{}", self.path, end.unwrap_or("bin")),
            (Some((_, known)), _) if end.is_none_or(|end| end.eq_ignore_ascii_case(known)) => described,
            _ => format!("{described}.{}", end.unwrap_or("bin")),
        }
    }

    /// Whether browsers show it as a picture, by its first bytes, and its type if they do.
    pub fn picture_kind(&self, mail: &mut dyn Mail) -> Option<&'static str> {
        picture_kind(&self.bytes(mail, 16))
    }

    /// Whether it is shown as a text beside the mail.
    pub fn is_readable(&self) -> bool {
        self.kind.starts_with("text/")
            || self.is_coded_message()
            || matches!(&*self.kind, "application/json" | "application/xml")
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

/// The name of a file without the folders before it, as servers of two kinds write them.
fn last_name(path: &str) -> &str {
    path.rsplit(['/', '\\'])
        .map(str::trim)
        .find(|name| !name.is_empty() && *name != "." && *name != "..")
        .unwrap_or_default()
}

/// The type of a picture that browsers show, told by its first bytes, whatever the mail says.
pub(crate) fn picture_kind(bytes: &[u8]) -> Option<&'static str> {
    Some(match bytes {
        [0x89, b'P', b'N', b'G', ..] => "image/png",
        [0xff, 0xd8, 0xff, ..] => "image/jpeg",
        [b'G', b'I', b'F', b'8', ..] => "image/gif",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "image/webp",
        [_, _, _, _, b'f', b't', b'y', b'p', b'a', b'v', b'i', b'f' | b's', ..] => "image/avif",
        [b'B', b'M', _, _, _, _, 0, 0, 0, 0, ..] => "image/bmp",
        [0, 0, 1 | 2, 0, 1..=64, 0, ..] => "image/x-icon",
        _ => return None,
    })
}

/// An identifier without its brackets, and what stands around them.
fn content_id(value: &str) -> &str {
    let inner = value.split_once('<').map_or(value, |(_, behind)| behind);
    inner.split('>').next().unwrap_or_default().trim()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_the_name_behind_its_folders() {
        for (path, wanted) in [
            ("../../etc/pass wd", "pass wd"),
            ("C:\\dir\\x.doc", "x.doc"),
            ("a/b/", "b"),
            ("plain.txt", "plain.txt"),
            ("../..", ""),
            ("/", ""),
        ] {
            assert_eq!(last_name(path), wanted, "{path}");
        }
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
