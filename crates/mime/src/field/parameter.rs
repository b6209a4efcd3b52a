//! Parameters of structured fields: RFC 2045 with the continuations and charsets of RFC 2231, and what is met instead.
//!
//! At most [`PARAMETERS_MAX`] parameters of a field are read.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec::Vec;

use text::encoding::Encoding;

use super::cursor::Cursor;
use super::word;

/// How many parameters of one field are read.
const PARAMETERS_MAX: usize = 128;

/// Names and values.
type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

/// The parameters of one field, in order.
#[derive(Debug, Default)]
pub(super) struct Parameters {
    all: Vec<Parameter>,
    /// Whether parameters were left out, beyond the limit.
    pub cut: bool,
}

#[derive(Debug)]
struct Parameter {
    /// The name in lower case, without section and star.
    name: Vec<u8>,
    /// The section of a continued value.
    section: Option<u32>,
    /// Percent-encoded.
    extended: bool,
    value: Vec<u8>,
    /// The value as another reader takes it, if that differs.
    other: Option<Vec<u8>>,
    /// A file name as readers take it that end an unquoted value at white space, or read on behind the closing quote.
    loose: Option<Vec<u8>>,
}

/// A value in its readings.
#[derive(Debug, Default)]
struct Reading {
    value: Vec<u8>,
    other: Option<Vec<u8>>,
    loose: Option<Vec<u8>>,
}

impl Parameters {
    pub(super) fn parse(value: &[u8]) -> Parameters {
        let mut cursor = Cursor::new(value);
        let mut all = Vec::new();
        while cursor.peek().is_some() && all.len() < PARAMETERS_MAX {
            cursor.skip_space();
            let name = cursor.until(|byte| byte <= b' ' || b"=;,(\"".contains(&byte));
            cursor.skip_space();
            if cursor.skip(b'=') {
                cursor.skip_space();
                all.push(Parameter::new(name, read_value(&mut cursor)));
            } else if name.is_empty() {
                cursor.advance(1);
            }
        }
        Parameters { all, cut: cursor.peek().is_some() }
    }

    /// All values that a reader may take for the parameter `name`, in order: each plain one, then the continued one.
    pub(super) fn candidates<'a>(&'a self, name: &'a [u8]) -> impl Iterator<Item = Cow<'a, [u8]>> {
        let plain = self.named(name).filter(|parameter| parameter.is_plain());
        plain
            .flat_map(|parameter| {
                let other = parameter.other.as_deref();
                [Some(parameter.value.as_slice()), other]
            })
            .flatten()
            .map(Cow::Borrowed)
            .chain(self.continued(name).map(|(_, bytes)| Cow::Owned(bytes)))
    }

    /// Whether the continued value of `name` is in a charset whose letters are not those of ASCII, or that is not known: a reader
    /// that decodes it sees another value.
    pub(super) fn is_undecoded(&self, name: &[u8]) -> bool {
        let charset = self.continued(name).and_then(|(charset, _)| charset).unwrap_or_default();
        let is_plain = || Encoding::find(&charset).is_some_and(Encoding::is_ascii_compatible);
        !charset.is_empty() && !is_plain()
    }

    /// The parameter `name` as text: the RFC 2231 form if there is one, else the first plain one.
    pub(super) fn text(&self, name: &[u8], bytes_max: usize) -> Option<Box<str>> {
        let sections = self.sections(name);
        if !sections.is_empty() {
            return Some(word::cut(&joined_text(&sections), bytes_max));
        }
        let plain = self.named(name).find(|parameter| parameter.is_plain())?;
        Some(word::text(&plain.value, bytes_max))
    }

    /// All texts that a reader may take for the parameter `name`: that of [`text`](Parameters::text) first, then each plain value,
    /// each extended one, and the sections without those before them.
    pub(super) fn texts<'a>(&'a self, name: &'a [u8]) -> impl Iterator<Item = Box<str>> {
        let plain = self.named(name).filter(|parameter| parameter.is_plain()).flat_map(|parameter| {
            let others = [parameter.other.as_deref(), parameter.loose.as_deref()].into_iter().flatten();
            others.chain([&parameter.value[..]]).map(|value| word::text(value, usize::MAX))
        });
        let lone = self.named(name).filter(|parameter| parameter.extended && parameter.section.is_none());
        let lone = lone.map(|parameter| joined_text(&[parameter]));
        self.text(name, usize::MAX).into_iter().chain(plain).chain(lone).chain(self.numbered_texts(name))
    }

    /// The numbered sections of `name`, joined: the first of each number, the last of each, and those before a missing one.
    fn numbered_texts(&self, name: &[u8]) -> Vec<Box<str>> {
        let numbered: Vec<&Parameter> = self.named(name).filter(|parameter| parameter.section.is_some()).collect();
        let mut first = numbered.clone();
        first.sort_by_key(|parameter| parameter.section);
        first.dedup_by_key(|parameter| parameter.section);
        let mut last: Vec<&Parameter> = numbered.into_iter().rev().collect();
        last.sort_by_key(|parameter| parameter.section);
        last.dedup_by_key(|parameter| parameter.section);
        let gap = first.windows(2).position(|pair| match pair {
            [one, two] => one.section.and_then(|section| section.checked_add(1)) != two.section,
            _ => false,
        });
        let unbroken = gap.map(|gap| first[..=gap].to_vec());
        let readings = [Some(first), Some(last), unbroken].into_iter().flatten();
        readings.filter(|sections| !sections.is_empty()).map(|sections| joined_text(&sections)).collect()
    }

    /// Names and values as one reader takes them, each name once: the continued value before a plain one. Those in percent encoding
    /// stand in the first list as they are, and decoded in the second.
    pub(super) fn joined(&self) -> (Pairs, Pairs) {
        let (mut all, mut decoded) = (Pairs::new(), Pairs::new());
        let mut seen: Vec<&[u8]> = Vec::new();
        for Parameter { name, .. } in &self.all {
            if name.is_empty() || seen.contains(&&name[..]) {
                continue;
            }
            seen.push(name);
            match self.continued(name) {
                Some((_, value)) if self.named(name).any(|parameter| parameter.extended) => {
                    all.push(([name, &b"*"[..]].concat(), self.encoded(name)));
                    decoded.push((name.clone(), value));
                }
                Some((_, value)) => all.push((name.clone(), value)),
                None => {
                    let plain = self.named(name).next();
                    let value = plain.map(|plain| plain.other.as_ref().unwrap_or(&plain.value).clone());
                    all.push((name.clone(), value.unwrap_or_default()));
                }
            }
        }
        (all, decoded)
    }

    /// The sections of `name`, joined in percent encoding.
    fn encoded(&self, name: &[u8]) -> Vec<u8> {
        let mut joined = Vec::new();
        for section in self.sections(name) {
            match section.extended {
                true => joined.extend_from_slice(&section.value),
                false => percent_encode(&section.value, &mut joined),
            }
        }
        joined
    }

    fn sections<'a>(&'a self, name: &'a [u8]) -> Vec<&'a Parameter> {
        let mut sections: Vec<&Parameter> = self.named(name).filter(|parameter| !parameter.is_plain()).collect();
        sections.sort_by_key(|parameter| parameter.section.unwrap_or(0));
        sections.dedup_by_key(|parameter| parameter.section.unwrap_or(0));
        sections
    }

    fn named<'a>(&'a self, name: &'a [u8]) -> impl Iterator<Item = &'a Parameter> {
        self.all.iter().filter(move |parameter| parameter.name == name)
    }

    /// The sections of `name` in their order, joined, and the charset that the first declares.
    fn continued(&self, name: &[u8]) -> Option<(Option<Vec<u8>>, Vec<u8>)> {
        let sections = self.sections(name);
        (!sections.is_empty()).then(|| join(&sections))
    }
}

/// The sections joined, and the charset that the first declares.
fn join(sections: &[&Parameter]) -> (Option<Vec<u8>>, Vec<u8>) {
    let mut charset = None;
    let mut joined = Vec::new();
    for (index, section) in sections.iter().enumerate() {
        let mut value = section.value.as_slice();
        if index == 0 && section.extended {
            (charset, value) = split_charset(value);
        }
        if section.extended {
            percent_decode(value, &mut joined);
        } else {
            joined.extend_from_slice(value);
        }
    }
    (charset, joined)
}

/// The text of sections. Some writers put encoded words into them.
fn joined_text(sections: &[&Parameter]) -> Box<str> {
    match join(sections) {
        (Some(charset), bytes) => word::decode(&charset, &bytes).into(),
        (None, bytes) => word::text(&bytes, usize::MAX),
    }
}

impl Parameter {
    fn new(name: &[u8], Reading { value, other, loose }: Reading) -> Parameter {
        let (name, extended) = match name {
            [name @ .., b'*'] => (name, true),
            _ => (name, false),
        };
        let star = name.iter().position(|&byte| byte == b'*');
        let digits = star.and_then(|star| core::str::from_utf8(&name[star + 1..]).ok());
        let section = digits.and_then(|digits| digits.parse().ok());
        let base = match (star, section) {
            (Some(star), Some(_)) => &name[..star],
            _ => name,
        };
        Parameter { name: base.to_ascii_lowercase(), section, extended, value, other, loose }
    }

    const fn is_plain(&self) -> bool {
        !self.extended && self.section.is_none()
    }
}

/// Reads a value as most readers do, and as others do if that differs.
fn read_value(cursor: &mut Cursor) -> Reading {
    if cursor.skip(b'"') {
        let (value, other) = quoted(cursor);
        let loose = behind_quote(&value, cursor.rest());
        return Reading { value, other, loose };
    }
    let mut ahead = cursor.clone();
    let value = ahead.until(|byte| b";\r\n".contains(&byte)).trim_ascii();
    let word_end = value.iter().position(u8::is_ascii_whitespace);
    let (word, tail) = value.split_at(word_end.unwrap_or(value.len()));
    // Behind a space may come a comment, or a parameter whose semicolon was forgotten; else the space is part of it.
    if tail.contains(&b'=') || tail.trim_ascii_start().starts_with(b"(") || word.ends_with(b",") {
        cursor.advance(word.len());
        return Reading { value: word.strip_suffix(b",").unwrap_or(word).to_vec(), ..Reading::default() };
    }
    *cursor = ahead;
    Reading { value: value.to_vec(), other: None, loose: word_end.map(|_| word.to_vec()) }
}

/// A quoted value with the text that stands right behind its closing quote, if there is some.
fn behind_quote(value: &[u8], rest: &[u8]) -> Option<Vec<u8>> {
    let end = rest.iter().position(|&byte| byte <= b' ' || b";(=".contains(&byte));
    let tail = &rest[..end.unwrap_or(rest.len())];
    (!tail.is_empty()).then(|| [value, tail].concat().into_iter().filter(|&byte| byte != b'"').collect())
}

fn quoted(cursor: &mut Cursor) -> (Vec<u8>, Option<Vec<u8>>) {
    let whole = cursor.rest();
    let mut kept = Vec::new();
    let mut strict = Vec::new();
    while let Some(byte) = cursor.peek() {
        cursor.advance(1);
        match (byte, cursor.peek()) {
            (b'"', _) => return (kept.clone(), (strict != kept).then_some(strict)),
            (b'\\', Some(next)) => {
                cursor.advance(1);
                // File names of Windows come with single backslashes.
                if !matches!(next, b'"' | b'\\') {
                    kept.push(b'\\');
                }
                kept.push(next);
                strict.push(next);
            }
            (b'\r' | b'\n', _) => {}
            _ => {
                kept.push(byte);
                strict.push(byte);
            }
        }
    }
    unterminated(whole, &kept, cursor)
}

fn unterminated<'a>(whole: &'a [u8], kept: &[u8], cursor: &mut Cursor<'a>) -> (Vec<u8>, Option<Vec<u8>>) {
    let kept = kept.trim_ascii_end();
    let Some(end) = whole.iter().position(|&byte| byte == b';') else {
        return (kept.to_vec(), None);
    };
    *cursor = Cursor::new(&whole[end..]);
    (whole[..end].trim_ascii().to_vec(), Some(kept.to_vec()))
}

/// Splits `charset'language'rest`.
fn split_charset(value: &[u8]) -> (Option<Vec<u8>>, &[u8]) {
    let mut pieces = value.splitn(3, |&byte| byte == b'\'');
    match (pieces.next(), pieces.next(), pieces.next()) {
        (Some(charset), Some(_), Some(rest)) => (Some(charset.to_vec()), rest),
        _ => (None, value),
    }
}

fn percent_encode(value: &[u8], into: &mut Vec<u8>) {
    for &byte in value {
        match byte.is_ascii_alphanumeric() || b"!#$&+-.^_`{|}~".contains(&byte) {
            true => into.push(byte),
            false => into.extend_from_slice(alloc::format!("%{byte:02X}").as_bytes()),
        }
    }
}

fn percent_decode(value: &[u8], into: &mut Vec<u8>) {
    let mut rest = value;
    while let Some((&byte, behind)) = rest.split_first() {
        let pair = behind.first().zip(behind.get(1));
        match pair.and_then(|(&high, &low)| text::hex::pair(high, low)) {
            Some(decoded) if byte == b'%' => {
                into.push(decoded);
                rest = &behind[2..];
            }
            _ => {
                into.push(byte);
                rest = behind;
            }
        }
    }
}
