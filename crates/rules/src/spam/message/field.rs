//! Fields of a header, of a mail or of a part.

use super::coding::{base64, normalised, quoted_printable};
use super::perl::{begins, is_blank, trim};

/// A field of a header.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Field {
    /// The name as it is written.
    pub name: Box<[u8]>,
    /// Value after the colon as it came, folded, with the line feed that ends it: the text of `:raw`.
    pub raw: Box<[u8]>,
    /// Unfolded and decoded to UTF-8, without blanks around it. What rules look at is this with a line feed behind it.
    pub value: Box<[u8]>,
}

impl Field {
    /// A field as it came.
    pub(super) fn new(name: &[u8], raw: &[u8]) -> Field {
        let value = decoded(trim(&unfolded(raw, Fold::OfMail)), name);
        Field { name: name.into(), raw: raw.into(), value: value.into() }
    }

    /// Whether this is the field of that name, whatever its case.
    pub fn is(&self, name: &[u8]) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }

    /// The value with the line feed that rules expect behind it.
    pub fn line(&self) -> Vec<u8> {
        [&self.value[..], b"\n"].concat()
    }
}

/// The folds of a field that become one space each. SpamAssassin has two readings of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fold {
    /// `\n[ \t]+`, when a mail is read.
    OfMail,
    /// `\r?\n\s+`, when a rule asks for a field as it came.
    OfRule,
}

/// A field without its folds; other line ends stay.
pub(crate) fn unfolded(raw: &[u8], fold: Fold) -> Vec<u8> {
    let is_of_rule = fold == Fold::OfRule;
    let mut out = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'\n', rest) {
        let (line, behind) = (&rest[..at], &rest[at + 1..]);
        let is_of_fold = |byte: &&u8| matches!(byte, b' ' | b'\t') || is_of_rule && is_blank(**byte);
        let blanks = behind.iter().take_while(is_of_fold).count();
        match line.strip_suffix(b"\r").filter(|_| is_of_rule && blanks > 0) {
            Some(line) => out.extend_from_slice(line),
            None => out.extend_from_slice(line),
        }
        out.push(if blanks > 0 { b' ' } else { b'\n' });
        rest = &behind[blanks..];
    }
    out.extend_from_slice(rest);
    out
}

/// The value of a field, or a part of one, decoded: line ends go, what is not ASCII becomes UTF-8, encoded words are undone
/// except in fields that cannot have any.
pub(crate) fn decoded(value: &[u8], name: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(value.len());
    let mut rest = value;
    while let Some(end) = memchr::memchr(b'\n', rest) {
        let line = &rest[..end];
        text.extend_from_slice(line.strip_suffix(b"\r").unwrap_or(line));
        rest = &rest[end + 1..];
        if let Some(behind) = rest.strip_prefix(b"\t") {
            text.push(b' ');
            rest = behind;
        }
    }
    text.extend_from_slice(rest);
    if !text.is_ascii() {
        text = normalised(&text, "UTF-8", false).bytes().into_owned();
    }
    if has_no_words(name) || memchr::memmem::find(&text, b"=?").is_none() {
        return text;
    }
    words_undone(&text)
}

/// Whether encoded words are not decoded in a field.
fn has_no_words(name: &[u8]) -> bool {
    let known: [&[u8]; 8] = [
        b"received",
        b"message-id",
        b"resent-message-id",
        b"date",
        b"resent-date",
        b"mime-version",
        b"references",
        b"in-reply-to",
    ];
    begins(name, b"list-") || known.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// An encoded word: its charset, whether it is Base64, its text, its length.
fn word(text: &[u8]) -> Option<(&[u8], bool, &[u8], usize)> {
    let rest = text.strip_prefix(b"=?")?;
    let length = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || b"*_-".contains(byte)).count();
    let (charset, rest) = rest.split_at(length);
    let is_base64 = match rest {
        [b'?', b'b' | b'B', b'?', ..] => true,
        [b'?', b'q' | b'Q', b'?', ..] => false,
        _ => return None,
    };
    let coded = &rest[3..];
    let end = memchr::memchr(b'?', coded)?;
    (length > 0 && coded.get(end + 1) == Some(&b'=')).then(|| (charset, is_base64, &coded[..end], length + end + 7))
}

/// Encoded words undone; those in a row of one charset together, since a character may be cut between two.
fn words_undone(text: &[u8]) -> Vec<u8> {
    // Charset, none for what is no word, and bytes.
    let mut sections: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (charset, bytes, length) = match word(rest) {
            Some((charset, is_base64, coded, length)) => {
                let behind = &rest[length..];
                let blanks = behind.iter().take_while(|byte| is_blank(**byte)).count();
                let gap = if blanks > 0 && word(&behind[blanks..]).is_some() { blanks } else { 0 };
                (charset.to_ascii_lowercase(), word_bytes(is_base64, coded), length + gap)
            }
            None => {
                let length = memchr::memchr(b'=', &rest[1..]).map_or(rest.len(), |at| at + 1);
                (Vec::new(), rest[..length].to_vec(), length)
            }
        };
        rest = &rest[length..];
        match sections.last_mut().filter(|(known, _)| *known == charset) {
            Some((_, joined)) => joined.extend_from_slice(&bytes),
            None => sections.push((charset, bytes)),
        }
    }
    let mut out = Vec::with_capacity(text.len());
    for (charset, bytes) in sections {
        if charset.is_empty() {
            out.extend_from_slice(&bytes);
            continue;
        }
        let name = charset.split(|byte| *byte == b'*').next().unwrap_or_default();
        out.extend_from_slice(&utf8_of_word(&bytes, &String::from_utf8_lossy(name)));
    }
    out
}

/// Converts an encoded word to UTF-8; ASCII and unknown charsets stay as they are where possible.
fn utf8_of_word(bytes: &[u8], charset: &str) -> Vec<u8> {
    let text = normalised(bytes, charset, true);
    if text.is_wide { text.characters.into_bytes() } else { bytes.to_vec() }
}

fn word_bytes(is_base64: bool, coded: &[u8]) -> Vec<u8> {
    if is_base64 {
        return base64(coded);
    }
    let mut plain = Vec::with_capacity(coded.len());
    for &byte in coded {
        match byte {
            b'_' => plain.extend_from_slice(b"=20"),
            _ => plain.push(byte),
        }
    }
    quoted_printable(&plain)
}

/// A parsed `Content-Type`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ContentType {
    /// In lower case; `text/plain` where it says none.
    pub(super) kind: String,
    pub(super) boundary: Option<Vec<u8>>,
    pub(super) charset: Option<Vec<u8>>,
    pub(super) name: Option<Vec<u8>>,
    /// It says no type.
    pub(super) is_missing: bool,
}

impl ContentType {
    /// Reads the value of the field, if there is one.
    pub(super) fn read(value: Option<&[u8]>) -> ContentType {
        let given = value.filter(|value| !value.is_empty() && *value != b"0");
        let value = given.unwrap_or(b"text/plain; charset=us-ascii");
        let mut name = parameter(value, &[b"filename", b"name"]);
        if name.as_ref().is_none_or(|name| name.is_empty()) {
            name = continued_name(value).or(name);
        }
        let kind = kind(value);
        let is_missing = given.is_none() || kind.is_empty() || kind == b"0";
        ContentType {
            boundary: boundary(value),
            charset: parameter(value, &[b"charset"]),
            name,
            kind: known_kind(&kind),
            is_missing,
        }
    }
}

/// The type as it is written, in lower case.
fn kind(value: &[u8]) -> Vec<u8> {
    let start = super::perl::trim_start(value);
    let text = start.split(|byte| *byte == b';').next().unwrap_or_default();
    let Some(slash) = memchr::memchr(b'/', text).filter(|at| *at > 0) else { return text.to_ascii_lowercase() };
    let sub = text[slash + 1..].iter().take_while(|byte| !is_blank(**byte) && **byte != b'/').count();
    text[..slash + 1 + sub].to_ascii_lowercase()
}

/// The type that counts: text that is not read otherwise is plain, and odd characters go.
fn known_kind(kind: &[u8]) -> String {
    let others: [&[u8]; 3] = [b"text/x-vcard", b"text/calendar", b"text/html"];
    let is_text = kind.starts_with(b"text") && kind.get(4).is_none_or(|byte| !super::perl::is_word_byte(*byte));
    if kind.is_empty() || kind == b"0" || (is_text && !others.contains(&kind)) {
        return "text/plain".into();
    }
    let fits = |byte: &&u8| matches!(**byte, 0x21..=0x7e) && !b"\"(),:;<=>?@[\\]".contains(byte);
    kind.iter().filter(fits).map(|byte| char::from(*byte)).collect()
}

/// Where the value of a parameter of that name begins, from `from` on.
fn value_at(value: &[u8], name: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        let found = super::perl::find(value, name, at)?;
        at = found + 1;
        let is_apart = found == 0 || !super::perl::is_word_byte(value[found - 1]);
        if let (true, Some(rest)) = (is_apart, assigned(&value[found + name.len()..])) {
            return Some(value.len() - rest.len());
        }
    }
}

/// Text after `=`, with the blanks around it skipped.
fn assigned(rest: &[u8]) -> Option<&[u8]> {
    super::perl::trim_start(rest).strip_prefix(b"=").map(super::perl::trim_start)
}

fn boundary(value: &[u8]) -> Option<Vec<u8>> {
    let mut from = 0;
    while let Some(at) = value_at(value, b"boundary", from) {
        let rest = &value[at..];
        let (text, is_one) = match rest.strip_prefix(b"\"") {
            Some(quoted) => {
                let length = memchr::memchr(b'"', quoted).unwrap_or(quoted.len());
                (&quoted[..length], length > 0)
            }
            None => {
                let length = rest.iter().take_while(|byte| !is_blank(**byte) && !b"\";".contains(byte)).count();
                (&rest[..length], length > 0 && rest.get(length) != Some(&b'"'))
            }
        };
        if is_one {
            return Some(text.to_vec());
        }
        from = at;
    }
    None
}

/// The value of the first parameter of one of these names, quotes around it taken off.
fn parameter(value: &[u8], names: &[&[u8]]) -> Option<Vec<u8>> {
    let at = names.iter().filter_map(|name| value_at(value, name, 0)).min()?;
    Some(unquoted(&value[at..]).to_vec())
}

fn unquoted(rest: &[u8]) -> &[u8] {
    let rest = match rest {
        [b'"' | b'\'', rest @ ..] => rest,
        rest => rest,
    };
    let is_end = |at: usize| at >= rest.len() || rest[at] == b';' || (at + 1 == rest.len() && rest[at] == b'\n');
    let mut end = 0;
    while !(is_end(end) || (matches!(rest[end], b'"' | b'\'') && is_end(end + 1))) {
        end += 1;
    }
    &rest[..end]
}

/// A name in pieces, `name*0=...; name*1=...` (RFC 2231, section 3).
fn continued_name(value: &[u8]) -> Option<Vec<u8>> {
    const PIECES_MAX: usize = 100;
    let mut pieces: Vec<Vec<u8>> = Vec::new();
    let mut at = 0;
    while let Some(found) = super::perl::find(value, b"name*", at) {
        at = found + 5;
        let digits = value[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number = std::str::from_utf8(&value[at..at + digits]).ok().and_then(|text| text.parse::<usize>().ok());
        let (Some(number), Some(rest)) = (number.filter(|at| *at < PIECES_MAX), assigned(&value[at + digits..])) else {
            continue;
        };
        if pieces.len() <= number {
            pieces.resize(number + 1, Vec::new());
        }
        pieces[number] = unquoted(rest).to_vec();
    }
    (!pieces.is_empty()).then(|| pieces.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(raw: &str) -> String {
        String::from_utf8(Field::new(b"Subject", raw.as_bytes()).value.into()).unwrap()
    }

    #[test]
    fn a_value_is_unfolded_and_decoded() {
        assert_eq!(value(" a\n\tb \n"), "a b");
        assert_eq!(value(" =?utf-8?q?a_b?=\n =?UTF-8?B?w6k=?= c =?x\n"), "a bé c =?x");
        assert_eq!(value(" =?utf-8?q?=C3?= =?utf-8?q?=A9?=\n"), "é");
        assert_eq!(value(" =?iso-8859-1*en?q?=E9?=\n"), "é");
        assert_eq!(&*Field::new(b"List-Id", b" =?utf-8?q?a?=\n").value, b"=?utf-8?q?a?=");
        assert_eq!(&*Field::new(b"Subject", b"\xe9\n").value, "é".as_bytes());
    }

    #[test]
    fn a_content_type_is_read_with_its_faults() {
        let read = |value: &str| ContentType::read(Some(value.as_bytes()));
        let found = read("Multipart/Mixed; boundary=\"a b\"; charset='utf-8'");
        assert_eq!((&*found.kind, found.boundary.as_deref()), ("multipart/mixed", Some(&b"a b"[..])));
        assert_eq!(found.charset.as_deref(), Some(&b"utf-8"[..]));
        assert_eq!(read("text/richtext").kind, "text/plain");
        assert_eq!(read("image/gif; filename=a.gif").name.as_deref(), Some(&b"a.gif"[..]));
        assert_eq!(read("a/b; name*0=\"x\"; name*1=y").name.as_deref(), Some(&b"xy"[..]));
        assert!(ContentType::read(None).is_missing && read(";").is_missing);
    }
}
