//! Facts about the PDF attachments of a mail, from the lines of the files as they stand: streams are not unpacked.
//!
//! Bounds: [`VALUES_MAX`] values of each kind. Time is that of a few passes over the files.

use std::collections::{BTreeMap, BTreeSet};

use crate::spam::message::{Message, Part};

/// Values of one kind that are kept.
const VALUES_MAX: usize = 100;
/// Bytes of a value that count.
const VALUE_BYTES_MAX: usize = 256;
/// Where the mark of a PDF has to begin.
const MARK_MAX: usize = 1024;
/// Lines of a file of which the fuzzy digest is made.
const FUZZY_LINES_MAX: usize = 69;

/// Facts about all PDF attachments of a mail.
#[derive(Debug, Default)]
pub struct Facts {
    /// Attachments that are called PDF.
    pub(super) count: u32,
    /// Images in them.
    pub(super) images: u32,
    /// The area of all images of the last file that has some.
    pub(super) area: Option<f64>,
    /// Height and width of each image, and the sums in each file.
    pub(super) sizes: BTreeSet<(String, String)>,
    pub(super) names: Vec<Box<[u8]>>,
    /// MD5 of the files, in hexadecimal digits.
    pub(super) digests: Vec<String>,
    /// MD5 of the first lines, and of the names at the beginning of lines.
    pub(super) fuzzy_digests: Vec<String>,
    /// `author`, `creator`, `created`, `modified`, `producer` and `title`.
    pub(super) details: BTreeMap<&'static str, Vec<Box<[u8]>>>,
    pub(super) is_encrypted: bool,
}

/// Details with the key that they stand behind.
const DETAILS: [(&str, &[u8]); 4] =
    [("author", b"/Author"), ("creator", b"/Creator"), ("producer", b"/Producer"), ("title", b"/Title")];
/// Details that are dates.
const DATES: [(&str, &[u8]); 2] = [("created", b"/CreationDate"), ("modified", b"/ModDate")];

impl Facts {
    /// Facts about a mail.
    pub(super) fn of(mail: &Message) -> Facts {
        let mut facts = Facts::default();
        for part in mail.parts().iter().filter(|part| !part.has_parts) {
            let name = part.name.as_deref().unwrap_or_default().trim_ascii_end();
            let kind = part.kind.strip_prefix("application/").or_else(|| part.kind.strip_prefix("image/"));
            let end = name.get(name.len().saturating_sub(4)..).unwrap_or_default().to_ascii_lowercase();
            if kind == Some("pdf") || (kind == Some("octet-stream") && (end == b".pdf" || end == b".fdf")) {
                facts.file(part, name);
                facts.count += 1;
            }
        }
        facts
    }

    fn file(&mut self, part: &Part, name: &[u8]) {
        let data = part.decoded();
        let data = data.strip_prefix(b"\xef\xbb\xbf").unwrap_or(data);
        if !has_mark(data) {
            return;
        }
        if !name.is_empty() && self.names.len() < VALUES_MAX {
            self.names.push(name.into());
        }
        let mut images = Images::default();
        let (mut fuzzy, mut tags, mut lines) = (Vec::new(), Vec::new(), 0);
        let mut is_fuzzy = true;
        for line in data.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            let mut line = line;
            if is_fuzzy {
                lines += 1;
                if lines <= FUZZY_LINES_MAX {
                    if counts(line) {
                        line = line.trim_ascii_end();
                        fuzzy.extend_from_slice(line);
                    }
                    is_fuzzy = !has(line, b"stream");
                }
            }
            self.is_encrypted |= line.starts_with(b"/Encrypt");
            if let Some((height, width)) = images.take(line) {
                is_fuzzy = false;
                self.images += 1;
                self.add_size(height, width);
            }
            if memchr::memchr(b'/', line).is_some() {
                let letters = line.strip_prefix(b"/").unwrap_or_default();
                tags.extend(letters.iter().take_while(|byte| byte.is_ascii_alphabetic()));
                self.details(line);
            }
        }
        if images.height > 0.0 && images.width > 0.0 {
            self.add_size(images.height.to_string(), images.width.to_string());
            self.area = Some(images.area);
        }
        let digest = |bytes: &[u8]| text::hex::encode(&digest::md5::digest(bytes));
        self.digests.push(digest(data));
        self.fuzzy_digests.extend([fuzzy, tags].iter().filter(|bytes| !bytes.is_empty()).map(|bytes| digest(bytes)));
    }

    fn add_size(&mut self, height: String, width: String) {
        if self.sizes.len() < VALUES_MAX {
            self.sizes.insert((height, width));
        }
    }

    fn details(&mut self, line: &[u8]) {
        for (name, key) in DETAILS {
            if let Some(value) = value(line, key) {
                self.detail(name, value);
            }
        }
        for (name, key) in DATES {
            let dates = memchr::memmem::find_iter(line, key).map(|at| skip(&line[at + key.len()..]));
            let digits = |rest: &[u8]| {
                let rest = rest.strip_prefix(b"(D:")?;
                let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
                (length > 0).then(|| rest[..length.min(VALUE_BYTES_MAX)].to_vec())
            };
            if let Some(date) = dates.take(VALUES_MAX).find_map(digits) {
                self.detail(name, date);
            }
        }
    }

    fn detail(&mut self, name: &'static str, value: Vec<u8>) {
        let values = self.details.entry(name).or_default();
        if values.len() < VALUES_MAX && !values.iter().any(|known| **known == value[..]) {
            values.push(value.into());
        }
    }
}

/// Images of a file: the dimensions that follow `/Image`.
#[derive(Default)]
struct Images {
    is_awaited: bool,
    height: f64,
    width: f64,
    area: f64,
}

impl Images {
    /// The height and the width of an image, once a line says both.
    fn take(&mut self, line: &[u8]) -> Option<(String, String)> {
        self.is_awaited |= has(line, b"/Image");
        let (height, width) = if self.is_awaited { dimensions(line)? } else { return None };
        let number = |text: &str| text.parse::<f64>().ok().filter(|number| *number > 0.0);
        let (high, wide) = (number(&height)?, number(&width)?);
        self.is_awaited = false;
        self.height += high;
        self.width += wide;
        self.area += high * wide;
        Some((height, width))
    }
}

/// Height and width of `630 0 0 149 0 0 cm` and `/Width 630/Height 149`.
fn dimensions(line: &[u8]) -> Option<(String, String)> {
    let text = |digits: &[u8]| String::from_utf8_lossy(digits).into_owned();
    if let Some(numbers) = matrix(line) {
        return Some((text(numbers[3]), text(numbers[0])));
    }
    const WIDTH: &[u8] = b"/Width";
    let begins = |key: &[u8]| line.strip_prefix(key).and_then(digits).is_some();
    if begins(WIDTH) || begins(b"/Height") {
        // A line that begins so says one of both.
        return None;
    }
    memchr::memmem::find_iter(line, WIDTH).take(VALUES_MAX).find_map(|at| {
        let (width, rest) = digits(line.get(at + WIDTH.len()..)?)?;
        let (height, _) = digits(rest.strip_prefix(b"/Height")?)?;
        Some((text(height), text(width)))
    })
}

/// Digits behind one blank, and what follows.
fn digits(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let (_, rest) = text.split_first().filter(|(first, _)| first.is_ascii_whitespace())?;
    let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (1..20).contains(&length).then(|| rest.split_at(length))
}

/// The numbers of a line that has six of them and `cm`.
fn matrix(line: &[u8]) -> Option<[&[u8]; 6]> {
    let fits = line.len() < 200 && line.first()?.is_ascii_digit() && line.ends_with(b"cm");
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| fits && !word.is_empty());
    let mut numbers = [&b""[..]; 6];
    for number in &mut numbers {
        *number = words.next().filter(|word| word.len() < 20 && word.iter().all(u8::is_ascii_digit))?;
    }
    (words.next() == Some(b"cm") && words.next().is_none()).then_some(numbers)
}

/// Whether a line is part of the fuzzy digest.
fn counts(line: &[u8]) -> bool {
    let keys: [&[u8]; 4] = [b"/Height", b"/Width", b"/MediaBox", b"/CropBox"];
    !line.starts_with(b"%") && !keys.iter().any(|key| line.starts_with(key)) && matrix(line).is_none()
}

fn has_mark(data: &[u8]) -> bool {
    const MARK: &[u8] = b"%PDF-";
    let head = data.get(..MARK_MAX + MARK.len() + 3).unwrap_or(data);
    let mut marks = memchr::memmem::find_iter(head, MARK).map(|at| &head[at + MARK.len()..]);
    marks.any(|rest| matches!(rest, [major, b'.', minor, ..] if major.is_ascii_digit() && minor.is_ascii_digit()))
}

fn has(line: &[u8], text: &[u8]) -> bool {
    memchr::memmem::find(line, text).is_some()
}

/// Without up to two blanks.
fn skip(text: &[u8]) -> &[u8] {
    let blanks = text.iter().take(2).take_while(|byte| byte.is_ascii_whitespace()).count();
    &text[blanks..]
}

/// The text behind the first key that has one: in parentheses, or hexadecimal digits in angles.
fn value(line: &[u8], key: &[u8]) -> Option<Vec<u8>> {
    let mut is_open = [true; 2];
    for at in memchr::memmem::find_iter(line, key) {
        let rest = skip(&line[at + key.len()..]);
        match rest.first() {
            // No text ends behind a place where none does.
            Some(b'(') if is_open[0] => {
                let close = (1..rest.len()).find(|&at| rest[at] == b')' && rest[at - 1] != b'\\');
                match close {
                    Some(close) => return Some(unescaped(&rest[1..close])),
                    None => is_open[0] = false,
                }
            }
            Some(b'<') if is_open[1] => match memchr::memchr(b'>', rest) {
                Some(close) => return Some(hexadecimal(&rest[1..close])),
                None => is_open[1] = false,
            },
            _ => {}
        }
        if is_open == [false; 2] {
            return None;
        }
    }
    None
}

fn hexadecimal(text: &[u8]) -> Vec<u8> {
    let digit = |at: usize| text.get(at).and_then(|&byte| char::from(byte).to_digit(16));
    let (mut out, mut at) = (Vec::new(), 0);
    while at < text.len() && out.len() < 4 * VALUE_BYTES_MAX {
        match (digit(at), digit(at + 1)) {
            (Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                at += 2;
            }
            _ => at += 1,
        }
    }
    narrowed(out)
}

/// A text with its escapes undone: `\376`, `\(`.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let text = &text[..text.len().min(16 * VALUE_BYTES_MAX)];
    let (mut bytes, mut at) = (Vec::new(), 0);
    while let Some(&byte) = text.get(at) {
        let octal = text.get(at + 1..at + 4).filter(|digits| digits.iter().all(|digit| (b'0'..=b'7').contains(digit)));
        let octal = octal.filter(|digits| digits[0] < b'4' && byte == b'\\' && (at == 0 || text[at - 1] != b'\\'));
        match octal {
            Some(digits) => {
                bytes.push(digits.iter().fold(0_u8, |sum, digit| sum.wrapping_mul(8).wrapping_add(digit - b'0')));
                at += 4;
            }
            None => {
                bytes.push(byte);
                at += 1;
            }
        }
    }
    let mut out = Vec::new();
    let mut rest = narrowed_all(bytes).into_iter().peekable();
    while let Some(byte) = rest.next() {
        let escaped = rest.next_if(|next| byte == b'\\' && b"()\\".contains(next));
        out.push(escaped.unwrap_or(byte));
    }
    out.truncate(VALUE_BYTES_MAX);
    out
}

fn narrowed(bytes: Vec<u8>) -> Vec<u8> {
    let mut out = narrowed_all(bytes);
    out.truncate(VALUE_BYTES_MAX);
    out
}

/// UTF-16 as the bytes that are not 0.
fn narrowed_all(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.starts_with(b"\xfe\xff") || bytes.starts_with(b"\xff\xfe") {
        bytes.drain(..2);
        bytes.retain(|&byte| byte != 0);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_behind_their_keys() {
        for (line, expected) in [
            (&b"<</Title(Foo \\(bar\\))/Author (x)>>"[..], Some(&b"Foo (bar)"[..])),
            (b"/Title<FEFF00570072>", Some(b"Wr")),
            (b"/Title(\\376\\377\\000H\\000P)", Some(b"HP")),
            (b"/Title x /Title  ()", Some(b"")),
            (b"/Title(open /Title<41", None),
            (b"/Title   (x)", None),
        ] {
            assert_eq!(value(line, b"/Title").as_deref(), expected, "{}", line.escape_ascii());
        }
        assert!(value(&b"/Title(".repeat(100_000), b"/Title").is_none());
    }

    #[test]
    fn dimensions_are_read_once_an_image_is_named() {
        let mut images = Images::default();
        assert_eq!(images.take(b"630 0 0 149 0 0 cm"), None);
        assert_eq!(images.take(b"/Subtype/Image"), None);
        assert_eq!(images.take(b"630 0 0  149 0 0 cm"), Some(("149".into(), "630".into())));
        assert_eq!(images.take(b"/Image/Width 20/Height 10/x"), Some(("10".into(), "20".into())));
        assert_eq!(images.take(b"/Image/Width 0/Height 10"), None);
        assert_eq!((images.height, images.width, images.area), (159.0, 650.0, 94_070.0));
    }
}
