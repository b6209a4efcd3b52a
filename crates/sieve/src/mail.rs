//! The subject of a script: a mail and its envelope.
//!
//! [`Mail`] reads a mail that is in memory, or as much of it as the host has: header fields when it is made, parts of the body
//! when a script asks for them. Not the reading of the inspection: nothing but the filing of a mail is decided by it.
//!
//! Bounds: [`FIELDS_MAX`], [`PARTS_MAX`], [`DEPTH_MAX`].

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use mime::{Value, header_text};
use stream::Coding;
use text::encoding::Encoding;
use text::html::reference::{self, Place};
use text::{base64, html};

/// Header fields that are read.
pub const FIELDS_MAX: usize = 2_000;
/// Parts of a body that are read.
pub const PARTS_MAX: usize = 200;
/// How deep they are nested.
pub const DEPTH_MAX: usize = 16;
/// The longest value of a field, in bytes.
pub const VALUE_BYTES_MAX: usize = 64 << 10;

/// A header field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// As it is written.
    pub name: String,
    /// Value after the colon, unfolded, without white space around it, encoded words as they stand.
    pub raw: String,
    /// The value with encoded words decoded.
    pub value: String,
}

impl Field {
    /// A field from its raw value.
    pub fn new(name: &str, raw: &[u8]) -> Field {
        let value = header_text(raw, VALUE_BYTES_MAX).trim().to_string();
        Field { name: name.to_string(), raw: String::from_utf8_lossy(raw).into_owned(), value }
    }
}

/// A part of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Type and subtype in lower case.
    pub kind: String,
    /// Its content, with transfer coding and charset undone.
    pub content: String,
}

/// A mail, as scripts look at it.
pub trait View {
    /// Bytes of the mail.
    fn size(&self) -> u64;
    /// Its header fields, in their order.
    fn fields(&self) -> &[Field];
    /// Its body, undecoded.
    fn body(&self) -> String;
    /// The parts of its body, and the messages in it. The content of a multipart is the text around its parts.
    fn parts(&self) -> Vec<Part>;
}

/// A mail in memory.
#[derive(Debug, Clone)]
pub struct Mail<'a> {
    size: u64,
    fields: Vec<Field>,
    body: &'a [u8],
}

impl<'a> Mail<'a> {
    /// Reads the header of a mail of `size` bytes, of which these are the first.
    pub fn new(bytes: &'a [u8], size: u64) -> Mail<'a> {
        let (fields, body) = header(bytes);
        Mail { size, fields, body }
    }
}

impl View for Mail<'_> {
    fn size(&self) -> u64 {
        self.size
    }

    fn fields(&self) -> &[Field] {
        &self.fields
    }

    fn body(&self) -> String {
        String::from_utf8_lossy(self.body).into_owned()
    }

    fn parts(&self) -> Vec<Part> {
        let mut parts = Vec::new();
        entity(&self.fields, self.body, DEPTH_MAX, &mut parts);
        parts
    }
}

/// Splits a message into its fields and its body.
fn header(bytes: &[u8]) -> (Vec<Field>, &[u8]) {
    let mut fields: Vec<(String, Vec<u8>)> = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let (line, after) = line(rest);
        if line.is_empty() {
            rest = after;
            break;
        }
        let is_folded = line.first().is_some_and(|first| b" \t".contains(first));
        let name = line.iter().position(|&byte| byte == b':').and_then(|colon| line.split_at_checked(colon));
        match (name, fields.last_mut()) {
            (_, Some((_, value))) if is_folded => {
                let room = VALUE_BYTES_MAX.saturating_sub(value.len());
                let start = value.len();
                value.extend_from_slice(line.get(..room).unwrap_or(line));
                // A fold is white space between words, whatever the line begins with.
                value.iter_mut().skip(start).take(1).for_each(|first| *first = b' ');
            }
            (Some((name, value)), _) if !is_folded => {
                let name = String::from_utf8_lossy(name.trim_ascii_end()).into_owned();
                let value = value.get(1..).unwrap_or_default();
                if fields.len() < FIELDS_MAX {
                    fields.push((name, value.get(..VALUE_BYTES_MAX).unwrap_or(value).to_vec()));
                }
            }
            // A line that is no field: the body begins, as other readers have it too.
            (_, None) => {}
            _ => break,
        }
        rest = after;
    }
    (fields.iter().map(|(name, value)| Field::new(name, value.trim_ascii())).collect(), rest)
}

/// Splits off a line, without its end.
fn line(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.iter().position(|&byte| byte == b'\n').unwrap_or(bytes.len());
    let (line, after) = bytes.split_at(end);
    (line.strip_suffix(b"\r").unwrap_or(line), after.get(1..).unwrap_or_default())
}

fn entity(fields: &[Field], body: &[u8], depth: usize, parts: &mut Vec<Part>) {
    if parts.len() >= PARTS_MAX {
        return;
    }
    let get = |name: &str| fields.iter().find(|field| field.name.eq_ignore_ascii_case(name)).map(|field| &*field.raw);
    let declared = Value::read(get("content-type").unwrap_or_default().as_bytes());
    let kind = match declared.media_type() {
        Some((kind, subtype)) => String::from_utf8_lossy(&[kind, b"/", subtype].concat()).to_ascii_lowercase(),
        None => "text/plain".into(),
    };
    if let (true, Some(depth)) = (kind.starts_with("multipart/"), depth.checked_sub(1)) {
        let boundary = declared.get("boundary").unwrap_or_default().trim_ascii_end();
        let (around, within) = multipart(body, boundary);
        parts.push(Part { kind, content: String::from_utf8_lossy(&around).into_owned() });
        for part in within {
            let (fields, body) = header(part);
            entity(&fields, body, depth, parts);
        }
        return;
    }
    if let (true, Some(depth)) = (kind == "message/rfc822", depth.checked_sub(1)) {
        let (fields, inner) = header(body);
        let length = body.len().saturating_sub(inner.len());
        let head = body.get(..length).unwrap_or_default();
        parts.push(Part { kind, content: String::from_utf8_lossy(head).into_owned() });
        return entity(&fields, inner, depth, parts);
    }
    let decoded = match mime::value::transfer_coding(get("content-transfer-encoding").unwrap_or_default().as_bytes()) {
        Some(Coding::Base64) => base64::decode_loosely(&String::from_utf8_lossy(body)),
        Some(Coding::QuotedPrintable) => quoted_printable(body),
        _ => body.to_vec(),
    };
    let label = declared.get("charset").unwrap_or_default();
    let content = match kind.starts_with("text/") {
        true => Encoding::of(label, &decoded, kind == "text/html").decode(&decoded).0.into_owned(),
        false => String::from_utf8_lossy(&decoded).into_owned(),
    };
    parts.push(Part { kind, content });
}

/// Splits a multipart: the text before and after the delimiter lines, and the parts between them; no parts without a
/// boundary.
fn multipart<'a>(body: &'a [u8], boundary: &[u8]) -> (Vec<u8>, Vec<&'a [u8]>) {
    let mut parts = Vec::new();
    let mut around = Vec::new();
    let mut start = None;
    let mut at = 0usize;
    while !boundary.is_empty() && at < body.len() && parts.len() < PARTS_MAX {
        let rest = body.get(at..).unwrap_or_default();
        let (line, after) = line(rest);
        let next = body.len().saturating_sub(after.len());
        let delimiter =
            line.strip_prefix(b"--").and_then(|line| line.strip_prefix(boundary)).map(<[u8]>::trim_ascii_end);
        if let Some(behind @ (b"" | b"--")) = delimiter {
            match start.replace(next) {
                Some(start) => {
                    let part = body.get(start..at).unwrap_or_default();
                    let part = part.strip_suffix(b"\n").unwrap_or(part);
                    parts.push(part.strip_suffix(b"\r").unwrap_or(part));
                }
                None => around.extend_from_slice(body.get(..at).unwrap_or_default()),
            }
            if behind == b"--" {
                around.extend_from_slice(after);
                return (around, parts);
            }
        }
        at = next;
    }
    match start {
        Some(start) => parts.extend(body.get(start..)),
        None => around.extend_from_slice(body),
    }
    (around, parts)
}

fn quoted_printable(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = body;
    while !rest.is_empty() {
        let (whole, after) = line(rest);
        let has_end = whole.len() < rest.len();
        let mut line = whole.trim_ascii_end();
        let is_soft = line.ends_with(b"=");
        line = line.strip_suffix(b"=").unwrap_or(line);
        while let Some((&byte, behind)) = line.split_first() {
            let decoded = match behind {
                &[high, low, ..] if byte == b'=' => text::hex::pair(high, low),
                _ => None,
            };
            match decoded {
                Some(decoded) => {
                    out.push(decoded);
                    line = behind.get(2..).unwrap_or_default();
                }
                None => {
                    out.push(byte);
                    line = behind;
                }
            }
        }
        if has_end && !is_soft {
            out.extend_from_slice(b"\r\n");
        }
        rest = after;
    }
    out
}

/// Elements that stand in lines of their own, and cells of tables: words on both sides of their tags are two.
fn separates(name: &[u8]) -> bool {
    const BLOCKS: [&[u8]; 45] = [
        b"address",
        b"article",
        b"aside",
        b"blockquote",
        b"body",
        b"br",
        b"caption",
        b"center",
        b"dd",
        b"details",
        b"dialog",
        b"dir",
        b"div",
        b"dl",
        b"dt",
        b"fieldset",
        b"figcaption",
        b"figure",
        b"footer",
        b"form",
        b"h1",
        b"h2",
        b"h3",
        b"h4",
        b"h5",
        b"h6",
        b"header",
        b"hr",
        b"legend",
        b"li",
        b"main",
        b"menu",
        b"nav",
        b"ol",
        b"optgroup",
        b"option",
        b"p",
        b"pre",
        b"section",
        b"summary",
        b"table",
        b"td",
        b"th",
        b"tr",
        b"ul",
    ];
    BLOCKS.binary_search(&name).is_ok()
}

/// The text of a part that is HTML.
pub fn of_html(page: &str) -> String {
    let mut text = Vec::new();
    let mut reader = html::Tokeniser::new();
    let mut tell = |_: u64, token: html::Token<'_>| match token {
        html::Token::Text { within: html::Within::Page, bytes } => text.extend_from_slice(bytes),
        html::Token::Open(name) | html::Token::Close(name) if separates(name) && !text.ends_with(b"\n") => {
            text.push(b'\n')
        }
        _ => {}
    };
    reader.read(page.as_bytes(), &mut tell);
    String::from_utf8_lossy(&reference::decode(&text, Place::Page)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAIL: &str = "Subject: =?utf-8?q?gr=C3=BCn?=\n and blue\nContent-Type: multipart/mixed; boundary=\"x\"\n\npre\n--x\n\
        Content-Transfer-Encoding: base64\n\naGVsbG8=\n--x\nContent-Type: text/html; charset=iso-8859-1\n\
        Content-Transfer-Encoding: quoted-printable\n\n<b>gr=FCn</b> =\nzwei\n--x\nContent-Type: message/rfc822\n\n\
        Subject: inner\n\nmore\n--x--\nafter\n";

    #[test]
    fn texts_are_read_as_browsers_read_them() {
        let content = |fields: &str, body: &[u8]| {
            let mail = [fields.as_bytes(), b"\n\n", body].concat();
            Mail::new(&mail, 0).parts()[0].content.clone()
        };
        assert_eq!(content("Content-Type: text/plain; charset=iso-8859-1", b"It\x92s \x80"), "It’s €");
        assert_eq!(content("Subject: x", b"It\x92s"), "It’s");
        assert_eq!(content("Content-Type: text/plain; charset=gb18030", b"\xd6\xd0"), "中");
        let page = content("Content-Type: text/html", b"<meta charset=koi8-r>\xf0&nbsp&checkmark;");
        assert_eq!(of_html(&page), "П\u{a0}✓");
    }

    #[test]
    fn parts_are_decoded() {
        let mail = Mail::new(MAIL.as_bytes(), 7);
        assert_eq!(mail.fields()[0].value, "grün and blue");
        assert_eq!(mail.fields()[0].raw, "=?utf-8?q?gr=C3=BCn?= and blue");
        let parts: Vec<(String, String)> = mail.parts().into_iter().map(|part| (part.kind, part.content)).collect();
        let part = |kind: &str, content: &str| (kind.to_string(), content.to_string());
        let wanted = [
            part("multipart/mixed", "pre\nafter\n"),
            part("text/plain", "hello"),
            part("text/html", "<b>grün</b> zwei"),
            part("message/rfc822", "Subject: inner\n\n"),
            part("text/plain", "more"),
        ];
        assert_eq!(parts, wanted);
        assert!(mail.body().starts_with("pre\n") && mail.size() == 7);
    }

    #[test]
    fn words_of_two_blocks_are_two() {
        for (page, wanted) in [
            ("<p>one</p>two", "one two"),
            ("<table><tr><td>six</td><td>seven</td></tr></table>", "six seven"),
            ("<h1>ten</h1>eleven", "ten eleven"),
            ("<ul><li>eight</li></ul>nine", "eight nine"),
            ("<select><option>m<option>n</select>", "m n"),
            ("<dl><dt>a</dt><dd>b</dd></dl><hr>c<section>d</section>e", "a b c d e"),
            ("<b>bo</b>ld <span>x</span>y", "bold xy"),
        ] {
            let words: Vec<String> = of_html(page).split_whitespace().map(str::to_string).collect();
            assert_eq!(words.join(" "), wanted, "{page}");
        }
    }

    #[test]
    fn odd_mails_are_read() {
        for mail in ["", "\n", "x", "x\n\ny", " folded\nA: b\n\nc", "Content-Type: multipart/mixed; boundary=x\n\n--x"]
        {
            let mail = Mail::new(mail.as_bytes(), 0);
            assert!(mail.parts().len() <= 2);
        }
        let deep: String =
            (0..100).map(|at| alloc::format!("Content-Type: multipart/mixed; boundary=b{at}\n\n--b{at}\n")).collect();
        assert!(Mail::new(deep.as_bytes(), 0).parts().len() <= DEPTH_MAX + 1);
    }
}
