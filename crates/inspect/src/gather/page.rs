//! The text of pages and of XML: what stands between tags. Where a tag ends a word, there is a blank.

use text::html::reference::{self, Place};
use text::html::{Token, Tokeniser, Within};

use super::Sink;

/// Tags of pages within a word.
const INLINE: [&[u8]; 24] = [
    b"a", b"abbr", b"acronym", b"b", b"bdi", b"bdo", b"big", b"code", b"del", b"em", b"font", b"i", b"ins", b"kbd",
    b"mark", b"s", b"small", b"span", b"strike", b"strong", b"sub", b"sup", b"u", b"wbr",
];

/// Tags of documents that end a word, without their prefix.
const BREAKS: [&[u8]; 14] = [
    b"p",
    b"br",
    b"cr",
    b"tab",
    b"h",
    b"s",
    b"line-break",
    b"tc",
    b"tr",
    b"tbl",
    b"list-item",
    b"list",
    b"note",
    b"table",
];

/// Prefixes of documents' text: Office's, and that of OpenDocument.
const PREFIXES: [&[u8]; 4] = [b"w", b"a", b"text", b"m"];

/// Tags within a run of a sheet's strings.
const RUNS: [&[u8]; 9] = [b"r", b"t", b"rpr", b"rfont", b"sz", b"color", b"family", b"scheme", b"charset"];

/// Attributes that say something to a reader, or where a link leads.
const TOLD: [&[u8]; 19] = [
    b"href",
    b"src",
    b"alt",
    b"title",
    b"value",
    b"placeholder",
    b"aria-label",
    b"action",
    b"formaction",
    b"background",
    b"srcset",
    b"cite",
    b"data",
    b"poster",
    b"longdesc",
    b"xlink:href",
    b"label",
    b"summary",
    b"content",
];

/// Characters that no tag has in its name: the text is an address between angle brackets.
const ODD: &[u8] = b"@.:/";

/// The longest value of an attribute that is read, in bytes.
const VALUE_BYTES_MAX: usize = 2 << 10;

/// Reads a page.
#[derive(Debug)]
pub(super) struct Page {
    tokeniser: Tokeniser,
    is_xml: bool,
    /// The value of an attribute under way, if it is told.
    value: Option<Vec<u8>>,
    /// The text in angle brackets is no tag.
    is_odd: bool,
}

impl Page {
    pub fn new(is_xml: bool) -> Page {
        Page { tokeniser: Tokeniser::default(), is_xml, value: None, is_odd: false }
    }

    pub const fn is_xml(&self) -> bool {
        self.is_xml
    }

    pub fn read(&mut self, text: &str, sink: &mut Sink) {
        let Page { tokeniser, is_xml, value, is_odd } = self;
        tokeniser.read(text.as_bytes(), &mut |_, token| match token {
            Token::Text { within: Within::Raw("script" | "style"), .. } => {}
            Token::Text { bytes, .. } => sink.text(&decoded(bytes, Place::Page)),
            Token::Open(name) if !*is_xml && name.iter().any(|byte| ODD.contains(byte)) => {
                *is_odd = true;
                sink.blank();
                sink.text(&String::from_utf8_lossy(name));
            }
            Token::Open(name) | Token::Close(name) if ends_word(name, *is_xml) => sink.blank(),
            Token::Attribute(name) if *is_odd => {
                sink.blank();
                sink.text(&String::from_utf8_lossy(name));
            }
            Token::Attribute(name) => {
                tell(value, sink);
                *value = (*is_xml || TOLD.contains(&name)).then(Vec::new);
            }
            Token::Value(bytes) => {
                if let Some(value) = value {
                    let room = VALUE_BYTES_MAX.saturating_sub(value.len());
                    value.extend_from_slice(&bytes[..bytes.len().min(room)]);
                }
            }
            Token::End { .. } if std::mem::take(is_odd) => sink.blank(),
            Token::End { .. } => tell(value, sink),
            _ => {}
        });
    }
}

fn tell(value: &mut Option<Vec<u8>>, sink: &mut Sink) {
    if let Some(value) = value.take() {
        sink.aside(&decoded(&value, Place::Value));
        // Not everything that looks like a reference is one.
        if value.contains(&b'&') {
            sink.aside(&String::from_utf8_lossy(&value));
        }
    }
}

fn decoded(bytes: &[u8], place: Place) -> String {
    String::from_utf8_lossy(&reference::decode(bytes, place)).into_owned()
}

fn ends_word(name: &[u8], is_xml: bool) -> bool {
    if !is_xml {
        return !INLINE.contains(&name);
    }
    let mut names = name.splitn(2, |&byte| byte == b':');
    match (names.next(), names.next()) {
        (Some(prefix), Some(name)) if PREFIXES.contains(&prefix) => BREAKS.contains(&name),
        _ => !RUNS.contains(&name),
    }
}
