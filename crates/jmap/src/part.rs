//! The parts of a message as `EmailBodyPart` has them (RFC 8621, section 4.1.4), and which of them are its text.
//!
//! Bounds: [`PARTS_MAX`] parts, of each a header of [`HEADER_BYTES_MAX`].

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use mime::{Value as Structured, value};
use stream::Coding;
use text::encoding::Encoding;
use text::html::reference::{self, Place};
use text::html::{Token, Tokeniser, Within};

use crate::header::Header;
use crate::host::{Host, Layout};
use crate::limits::{HEADER_BYTES_MAX, PARTS_MAX};
use crate::source::{Blob, Source};

/// Bytes of a message within a message that tell whether it is encoded.
const FIRST_BYTES: u64 = 200;

/// A part of a message.
#[derive(Debug, Clone, Default)]
pub(crate) struct Part {
    /// The numbers that lead to it; empty for a message with several parts.
    pub path: String,
    pub header: Header,
    /// Type and subtype in lower case.
    pub kind: String,
    pub name: Option<String>,
    pub charset: Option<String>,
    pub disposition: Option<String>,
    pub cid: Option<String>,
    pub languages: Option<Vec<String>>,
    pub location: Option<String>,
    pub coding: Coding,
    /// Whether the coding is one that nobody knows.
    pub is_unknown_coding: bool,
    pub body: u64,
    pub end: u64,
    pub parts: Vec<Part>,
}

/// The parts that are shown, and the others.
#[derive(Debug, Default)]
pub(crate) struct Bodies<'a> {
    pub text: Vec<&'a Part>,
    pub html: Vec<&'a Part>,
    pub attachments: Vec<&'a Part>,
}

impl Part {
    /// Reads the parts of a message.
    pub fn read(host: &mut dyn Host, source: &Source, layout: &Layout) -> Part {
        Part::at(host, source, layout, String::new(), false, &mut { PARTS_MAX })
    }

    fn at(
        host: &mut dyn Host,
        source: &Source,
        layout: &Layout,
        path: String,
        in_digest: bool,
        left: &mut usize,
    ) -> Part {
        *left = left.saturating_sub(1);
        let header_end = layout.body.min(layout.header.saturating_add(HEADER_BYTES_MAX));
        let header = Header::read(&source.range(host, layout.header, header_end));
        let kind = Structured::read(&header.unfolded("content-type").unwrap_or_default());
        let place = Structured::read(&header.unfolded("content-disposition").unwrap_or_default());
        let coding = header.unfolded("content-transfer-encoding").map(|value| value::transfer_coding(&value));
        let named = coding.flatten().unwrap_or_default();
        let coding_here = match layout.is_message {
            true => value::coding_of_message(
                named,
                &source.range(host, layout.body, layout.end.min(layout.body.saturating_add(FIRST_BYTES))),
            ),
            false => named,
        };
        let parameter = |name: &str| kind.get(name).map(text).filter(|text| !text.is_empty());
        let default = if in_digest { "message/rfc822" } else { "text/plain" };
        let media = match kind.media_type() {
            Some((main, sub)) => lower(&[main, b"/", sub].concat()),
            None => default.into(),
        };
        let trimmed =
            |name: &str| header.unfolded(name).map(|value| text(value.trim_ascii())).filter(|text| !text.is_empty());
        let mut part = Part {
            name: place.get("filename").map(text).or_else(|| parameter("name")),
            charset: parameter("charset").or_else(|| media.starts_with("text/").then(|| "us-ascii".into())),
            disposition: Some(lower(&place.main)).filter(|main| !main.is_empty()),
            cid: trimmed("content-id").map(|id| id.trim_matches(['<', '>']).to_string()),
            languages: trimmed("content-language").map(|list| list.split(',').map(|tag| tag.trim().into()).collect()),
            location: trimmed("content-location"),
            coding: coding_here,
            is_unknown_coding: coding == Some(None),
            body: layout.body,
            end: layout.end,
            parts: Vec::new(),
            kind: media,
            header,
            path,
        };
        let is_multipart = part.kind.starts_with("multipart/");
        if is_multipart && !layout.is_message {
            let in_digest = part.kind == "multipart/digest";
            for (at, child) in layout.parts.iter().enumerate() {
                if *left == 0 {
                    break;
                }
                let number = at.saturating_add(1);
                let path = if part.path.is_empty() { format!("{number}") } else { format!("{}.{number}", part.path) };
                part.parts.push(Part::at(host, source, child, path, in_digest, left));
            }
        }
        if part.path.is_empty() && !is_multipart {
            part.path = "1".into();
        }
        part
    }

    pub fn is_multipart(&self) -> bool {
        self.kind.starts_with("multipart/")
    }

    /// The part at a path.
    pub fn find(&self, path: &str) -> Option<&Part> {
        if self.path == path && !self.is_multipart() {
            return Some(self);
        }
        self.parts.iter().find_map(|part| part.find(path))
    }

    /// Its content, decoded as it is read.
    pub fn content(&self, source: &Source) -> Blob {
        Blob::new(source.clone(), self.body, self.end, self.coding)
    }

    /// Texts and attachments, by the algorithm of the standard.
    pub fn bodies(&self) -> Bodies<'_> {
        let mut found = Bodies::default();
        let all = core::slice::from_ref(self);
        collect(all, "mixed", false, (true, true), &mut found);
        found
    }

    fn is_media(&self) -> bool {
        ["image/", "audio/", "video/"].iter().any(|kind| self.kind.starts_with(kind))
    }

    fn is_inline(&self, at: usize, within: &str) -> bool {
        let is_shown = self.kind == "text/plain" || self.kind == "text/html" || self.is_media();
        let stands = at == 0 || (within != "related" && (self.is_media() || self.name.is_none()));
        self.disposition.as_deref() != Some("attachment") && is_shown && stands
    }
}

fn collect<'a>(
    parts: &'a [Part],
    within: &str,
    in_alternative: bool,
    (mut to_text, mut to_html): (bool, bool),
    found: &mut Bodies<'a>,
) {
    let (texts, htmls) = (found.text.len(), found.html.len());
    for (at, part) in parts.iter().enumerate() {
        if part.is_multipart() {
            let sub = part.kind.get("multipart/".len()..).unwrap_or_default();
            collect(&part.parts, sub, in_alternative || sub == "alternative", (to_text, to_html), found);
            continue;
        }
        if !part.is_inline(at, within) {
            found.attachments.push(part);
            continue;
        }
        if within == "alternative" {
            match part.kind.as_str() {
                "text/plain" if to_text => found.text.push(part),
                "text/html" if to_html => found.html.push(part),
                "text/plain" | "text/html" => {}
                _ => found.attachments.push(part),
            }
            continue;
        }
        if in_alternative {
            to_html &= part.kind != "text/plain";
            to_text &= part.kind != "text/html";
        }
        if to_text {
            found.text.push(part);
        }
        if to_html {
            found.html.push(part);
        }
        if !(to_text && to_html) && part.is_media() {
            found.attachments.push(part);
        }
    }
    if within == "alternative" && to_text && to_html {
        let has_text = found.text.len() > texts;
        let has_html = found.html.len() > htmls;
        if !has_text && has_html {
            found.text.extend_from_slice(found.html.get(htmls..).unwrap_or_default());
        }
        if has_text && !has_html {
            found.html.extend_from_slice(found.text.get(texts..).unwrap_or_default());
        }
    }
}

/// A parameter or a field as text: words that are encoded are decoded.
fn text(raw: &[u8]) -> String {
    mime::header_text(raw, 2_000).chars().filter(|c| *c != '\0').collect()
}

fn lower(raw: &[u8]) -> String {
    text(raw).trim().to_ascii_lowercase()
}

/// Decoded text of the content of a part, and whether something could not be read.
pub(crate) fn decoded(bytes: &[u8], part: &Part) -> (String, bool) {
    let label = part.charset.as_deref().unwrap_or("us-ascii").as_bytes();
    let (decoded, is_broken) = Encoding::of(label, bytes, part.kind == "text/html").decode(bytes);
    let is_broken = is_broken || Encoding::find(label).is_none();
    (decoded.replace("\r\n", "\n").replace('\0', "\u{fffd}"), is_broken)
}

/// The text of a page, with a blank for each tag.
pub(crate) fn text_of_html(page: &str) -> String {
    let (mut text, mut tokeniser) = (String::new(), Tokeniser::new());
    let mut tell = |_: u64, token: Token<'_>| match token {
        Token::Text { within: Within::Page, bytes } => {
            text.push_str(&String::from_utf8_lossy(&reference::decode(bytes, Place::Page)));
        }
        Token::Open(_) | Token::Close(_) => text.push(' '),
        _ => {}
    };
    tokeniser.read(page.as_bytes(), &mut tell);
    tokeniser.end(&mut tell);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_within_is_told_decoded() {
        let part = |coding: &str, body: &str| {
            let head = format!("Content-Type: message/rfc822\r\nContent-Transfer-Encoding: {coding}\r\n\r\n");
            let (start, whole) = (head.len() as u64, [head.as_str(), body].concat());
            let layout =
                Layout { header: 0, body: start, end: whole.len() as u64, is_message: true, ..Layout::default() };
            let (source, host) = (Source::Bytes(whole.into_bytes().into()), &mut crate::fuzz::Empty::default());
            let content = Part::read(host, &source, &layout).content(&source).bytes(host, 100).0;
            String::from_utf8_lossy(&content).into_owned()
        };
        assert_eq!(part("base64", "U3ViamVjdDogYQ0KDQpiDQo=\r\n"), "Subject: a\r\n\r\nb\r\n");
        assert_eq!(part("quoted-printable", "Subject: =C3=BC\r\n\r\nb=20"), "Subject: \u{fc}\r\n\r\nb ");
        for coding in ["base64", "7bit", "binary"] {
            assert_eq!(part(coding, "Subject: a\r\n\r\nb"), "Subject: a\r\n\r\nb");
        }
    }

    #[test]
    fn a_text_has_the_charset_of_its_label_or_of_its_page() {
        for (kind, charset, bytes, wanted, is_broken) in [
            ("text/plain", "iso-8859-1", &b"It\x92s \x80"[..], "It’s €", false),
            ("text/plain", "us-ascii", b"It\x92s", "It’s", true),
            ("text/plain", "gb2312", b"\xd6\xd0\x81\x40", "中丂", false),
            ("text/plain", "x-unknown", b"a", "a", true),
            ("text/html", "us-ascii", b"<meta charset=koi8-r>\xf0", "<meta charset=koi8-r>П", false),
        ] {
            let part = Part { kind: kind.into(), charset: Some(charset.into()), ..Part::default() };
            assert_eq!(decoded(bytes, &part), (wanted.into(), is_broken), "{charset}");
        }
        assert_eq!(text_of_html("a&nbsp|<b>&checkmark;</b>"), "a\u{a0}| ✓ ");
    }
}
