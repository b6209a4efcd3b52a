//! Declarations of a document's XML about the whole document: parts that are fetched from elsewhere (relationships of
//! OOXML, ECMA-376 part 2, 8), and encryption of its package (the manifest of ODF, OpenDocument 1.3 part 2, 4).
//!
//! A relationship with a remote target is a finding, and its target is emitted as text. Left out: hyperlinks, which are
//! followed by a click, and targets on the reader's own disk. Text in UTF-16 is read without its NULs, comments and CDATA
//! as if they were tags.
//!
//! Bounds: one tag, [`TAG_BYTES_MAX`]; a relationship longer than that is a finding whatever it says.

use memchr::memchr;
use stream::{Class, FileType, Kind, Object, ReadAt};

use crate::frame::cuts;
use crate::frame::format::{Format, Reads};
use crate::frame::reader::{Ended, Outbox, Reader, Reading};

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "parts of OOXML and ODF",
    methods: "relationships with a remote target (templates, OLE links and others), manifests of encrypted packages",
    not_read: "",
    reads: Reads::Stream,
    memory: "a tag of 16 KiB",
    decoder: "own",
    fuzz: "unpack_relationships",
    compared_with: "documents made for it",
};

/// The longest tag that is read.
const TAG_BYTES_MAX: usize = 16 << 10;
/// Maximum length of a relevant name, with its prefix.
const NAME_BYTES_MAX: usize = 64;

/// Returns whether a part with this name and type may describe the document: XML, or a text of any type with the name
/// of relationships.
pub(crate) fn may_be(name: &str, file_type: FileType) -> bool {
    use FileType::{Binary, Html, Text, Xml};
    const EXTENSION: &str = ".rels";
    let end = name.len().checked_sub(EXTENSION.len()).and_then(|at| name.get(at..));
    let is_named = end.is_some_and(|end| end.eq_ignore_ascii_case(EXTENSION));
    file_type == Xml || is_named && matches!(file_type, Html | Text | Binary)
}

/// A reader of XML.
pub(crate) struct Relationships {
    at: u64,
    /// The open tag without its `<`, as far as it has come, and where it began.
    tag: Option<(Vec<u8>, u64)>,
    quote: Option<u8>,
    encrypted_told: bool,
}

/// Kind of a tag.
#[derive(Debug, PartialEq, Eq)]
enum Element {
    /// Its name is not complete.
    Unknown,
    Relationship,
    EncryptionData,
    Other,
}

impl Relationships {
    pub const fn new() -> Relationships {
        Relationships { at: 0, tag: None, quote: None, encrypted_told: false }
    }

    /// Reads a byte of the open tag; whether the tag goes on.
    fn byte(&mut self, byte: u8, outbox: &mut Outbox) -> bool {
        let Some((tag, at)) = &mut self.tag else { return false };
        match (byte, self.quote) {
            (0, _) => return true,
            (b'>', None) => {
                let (tag, at) = (std::mem::take(tag), *at);
                self.whole(&tag, at, outbox);
                return false;
            }
            (b'"' | b'\'', None) => self.quote = Some(byte),
            (byte, Some(quote)) if byte == quote => self.quote = None,
            _ => {}
        }
        tag.push(byte);
        match element(tag) {
            Element::Other => false,
            Element::Relationship if tag.len() == TAG_BYTES_MAX => {
                outbox.finding(Class::External, LINK, *at);
                false
            }
            _ => tag.len() < TAG_BYTES_MAX,
        }
    }

    fn whole(&mut self, tag: &[u8], at: u64, outbox: &mut Outbox) {
        match element(&[tag, b" "].concat()) {
            Element::Relationship => relationship(&String::from_utf8_lossy(tag), at, outbox),
            Element::EncryptionData if !std::mem::replace(&mut self.encrypted_told, true) => {
                outbox.finding(Class::Encrypted, "Heuristics.Encrypted.Odf", at);
            }
            _ => {}
        }
    }
}

const TEMPLATE: &str = "Heuristics.External.Ooxml.Template";
const OBJECT: &str = "Heuristics.External.Ooxml.Object";
const LINK: &str = "Heuristics.External.Ooxml.Link";

/// Returns the kind of the tag with the name at the front, for any prefix.
fn element(tag: &[u8]) -> Element {
    let Some(end) = tag.iter().take(NAME_BYTES_MAX).position(|&byte| byte.is_ascii_whitespace() || byte == b'/') else {
        return if tag.len() < NAME_BYTES_MAX { Element::Unknown } else { Element::Other };
    };
    match tag[..end].rsplit(|&byte| byte == b':').next() {
        Some(b"Relationship") => Element::Relationship,
        Some(b"encryption-data") => Element::EncryptionData,
        _ => Element::Other,
    }
}

/// Emits a relationship whose target is fetched.
fn relationship(tag: &str, at: u64, outbox: &mut Outbox) {
    let value = |name| attribute(tag, name).map(unescaped).unwrap_or_default();
    let target = value("Target");
    if value("TargetMode") != "External" || !is_remote(&target) {
        return;
    }
    let finding = match value("Type").rsplit('/').next() {
        Some("hyperlink") => return,
        Some("attachedTemplate") => TEMPLATE,
        Some("oleObject" | "package") => OBJECT,
        _ => LINK,
    };
    outbox.finding(Class::External, finding, at);
    outbox.open(Object { kind: Kind::Embedded, media_type: Some("text/plain".into()), ..Object::default() });
    outbox.content(target.as_bytes());
    outbox.close();
}

/// Returns the value of an attribute, undecoded.
fn attribute<'a>(tag: &'a str, wanted: &str) -> Option<&'a str> {
    let mut rest = tag;
    loop {
        let (before, value) = rest.split_once('=')?;
        let value = value.trim_start();
        let quote = value.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
        let (value, behind) = value[1..].split_once(quote)?;
        if before.split_whitespace().next_back() == Some(wanted) {
            return Some(value);
        }
        rest = behind;
    }
}

/// The text that an attribute's value stands for.
pub(crate) fn unescaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    let mut rest = value;
    while let Some((before, reference)) = rest.split_once('&') {
        text.push_str(before);
        let found = reference.split_once(';').and_then(|(name, behind)| Some((character(name)?, behind)));
        let found = found.or_else(|| number_alone(reference));
        match found {
            Some((character, behind)) => {
                text.push(character);
                rest = behind;
            }
            None => {
                text.push('&');
                rest = reference;
            }
        }
    }
    text + rest
}

/// The character of a reference by number that has no semicolon, and what stands behind it.
fn number_alone(reference: &str) -> Option<(char, &str)> {
    let digits = reference.strip_prefix('#')?;
    let (digits, is_digit) = match digits.strip_prefix(['x', 'X']) {
        Some(hex) => (hex, (|char| char.is_ascii_hexdigit()) as fn(char) -> bool),
        None => (digits, (|char| char.is_ascii_digit()) as fn(char) -> bool),
    };
    let behind = digits.trim_start_matches(is_digit);
    let name = &reference[..reference.len() - behind.len()];
    Some((character(name)?, behind))
}

/// The character that a reference names: those of XML, by number, and the marks of a `data:` URI.
pub(crate) fn character(name: &str) -> Option<char> {
    let number = match name {
        "amp" => return Some('&'),
        "lt" => return Some('<'),
        "gt" => return Some('>'),
        "quot" => return Some('"'),
        "apos" => return Some('\''),
        "colon" => return Some(':'),
        "semi" => return Some(';'),
        "comma" => return Some(','),
        "sol" => return Some('/'),
        "plus" => return Some('+'),
        "equals" => return Some('='),
        "Tab" => return Some('\t'),
        "NewLine" => return Some('\n'),
        _ => name.strip_prefix('#')?,
    };
    let code = match number.strip_prefix(['x', 'X']) {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => number.parse(),
    };
    char::from_u32(code.ok()?)
}

/// Returns whether a target is on another machine: a URL other than of a local file, or a network path.
fn is_remote(target: &str) -> bool {
    const FILE: &str = "file:";
    let is_slash = |char: char| matches!(char, '/' | '\\');
    let is_unc = |path: &str| path.chars().take(2).filter(|&char| is_slash(char)).count() == 2;
    let target = target.trim();
    if let Some(path) = target.get(FILE.len()..).filter(|_| target[..FILE.len()].eq_ignore_ascii_case(FILE)) {
        return match path.strip_prefix("///") {
            Some(path) => path.starts_with(is_slash),
            None => is_unc(path),
        };
    }
    // A single letter is a drive.
    is_unc(target) || target.split_once(':').is_some_and(|(scheme, _)| scheme.len() > 1 && !scheme.contains(is_slash))
}

impl Reader for Relationships {
    fn read(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
        let mut taken = 0;
        while taken < input.len() && outbox.is_empty() {
            if self.tag.is_none() {
                let run = memchr(b'<', &input[taken..]).unwrap_or(input.len() - taken);
                taken += run;
                if taken == input.len() {
                    break;
                }
                (self.tag, self.quote) = (Some((Vec::new(), self.at + taken as u64)), None);
            } else if !self.byte(input[taken], outbox) {
                self.tag = None;
            }
            taken += 1;
        }
        self.at += taken as u64;
        taken
    }

    fn end(&mut self, _: &dyn ReadAt, _: &mut Outbox) -> Ended {
        Ended::Done
    }
}

/// Fuzz body: reads XML.
pub fn fuzz_relationships(data: &[u8]) {
    cuts::compare(data, |_| Box::new(Reading::new(Relationships::new())));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_elsewhere_is_told_from_what_lies_here() {
        for target in [
            "http://example.test/a.dotm",
            "mhtml:http://example.test/a!x-usc:b",
            "\\\\host\\share\\a.dotm",
            "//host/a",
            "file://host/a",
            "FILE:///\\\\host\\a",
            "file:////host/a",
            " https://example.test",
        ] {
            assert!(is_remote(target), "{target}");
        }
        for target in ["file:///C:\\a.dotm", "C:\\a.dotm", "Normal.dotm", "file:///home/a", "a/b:c", "", "é"] {
            assert!(!is_remote(target), "{target}");
        }
    }

    #[test]
    fn attributes_are_found_in_either_quotes_and_unescaped() {
        let tag = "r:Relationship Id='x=\"1\"' Target = \"a&amp;b&#x3c;&#62;&no;&\" TargetMode='External'/";
        assert_eq!(attribute(tag, "Target").map(unescaped).as_deref(), Some("a&b<>&no;&"));
        assert_eq!(attribute(tag, "TargetMode"), Some("External"));
        assert_eq!(attribute(tag, "Type"), None);
    }

    #[test]
    fn an_element_is_known_by_its_name_without_the_prefix() {
        assert_eq!(element(b"pkg:Relationship "), Element::Relationship);
        assert_eq!(element(b"manifest:encryption-data\n"), Element::EncryptionData);
        assert_eq!(element(b"Relationships "), Element::Other);
        assert_eq!(element(b"Relation"), Element::Unknown);
        assert_eq!(element(&[b'a'; NAME_BYTES_MAX]), Element::Other);
    }
}
