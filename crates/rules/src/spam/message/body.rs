//! The bodies that rules look at, made of the parts of a mail.

use super::alternatives::{Alternatives, Words, is_alternative};
use super::coding::normalised;
use super::html::Page;
use super::perl::{Text, is_space};
use super::{MessageLimits, Part, Reading};

const LINE_BYTES_MAX: usize = 2048;

/// Text parts, rendered.
#[derive(Debug, Default)]
pub(super) struct Rendered {
    pub(super) text: Text,
    pub(super) visible: Text,
    pub(super) invisible: Text,
    pub(super) pages: Vec<Page>,
    pub(super) alternatives: Alternatives,
    pub(super) is_cut: bool,
}

impl Rendered {
    /// Renders the parts that have content.
    pub(super) fn read(parts: &mut [Part], reading: &Reading, limits: &MessageLimits) -> Rendered {
        let mut out = Rendered::default();
        let has_alternatives = parts.iter().any(is_alternative);
        let mut words: Vec<Option<Words>> = parts.iter().map(|_| None).collect();
        let leaves = parts.iter_mut().zip(&mut words).filter(|(part, _)| !part.has_parts && !part.kind.is_empty());
        for (part, words) in leaves {
            for text in [&mut out.text, &mut out.visible, &mut out.invisible] {
                if !text.characters.is_empty() {
                    text.characters.push('\n');
                }
            }
            let kind = part.effective_kind();
            let is_html = kind == "text/html";
            if !is_html && kind != "text/plain" {
                continue;
            }
            let length = part.decoded().len();
            let text = decoded(part, reading);
            part.is_rendered = true;
            if is_html && length == 0 {
                out.pages.push(Page::default());
            }
            if !is_html || length == 0 {
                *words = has_alternatives.then(|| Words::read(&text, is_html, false));
                out.add(&mut [text.clone(), text, Text::default()], reading);
                continue;
            }
            let mut page = Page::read(&text, length, limits.elements_max, limits.uris_max);
            *words = has_alternatives.then(|| Words::read(&page.text, true, page.html.tags.contains_key("img")));
            let texts = [&mut page.text, &mut page.visible, &mut page.invisible];
            let mut texts = texts.map(std::mem::take);
            out.is_cut |= page.is_cut;
            out.add(&mut texts, reading);
            out.pages.push(page);
        }
        out.alternatives = Alternatives::read(parts, &words);
        out
    }

    /// Adds what a part shows, what of it can be seen, and what cannot.
    fn add(&mut self, texts: &mut [Text; 3], reading: &Reading) {
        for (all, text) in [&mut self.text, &mut self.visible, &mut self.invisible].into_iter().zip(texts) {
            if reading.body_part_scan_size > 0 {
                text.cut(reading.body_part_scan_size, &['\n', ' ']);
            }
            all.push(text);
        }
    }
}

/// The text of a part.
fn decoded(part: &Part, reading: &Reading) -> Text {
    let charset = part.charset.as_deref().map_or("us-ascii".into(), String::from_utf8_lossy);
    let bytes = part.decoded();
    if reading.normalize_charset {
        return normalised(bytes, &charset, false);
    }
    let may_be_utf8 = charset.eq_ignore_ascii_case("us-ascii") || charset.eq_ignore_ascii_case("utf-8");
    match std::str::from_utf8(bytes) {
        Ok(text) if may_be_utf8 && !bytes.is_ascii() => Text::wide(text.to_owned()),
        _ => Text::narrow(bytes),
    }
}

/// The lines that body rules look at: blanks made one, a line for each paragraph, `first` before them.
pub(super) fn lines(first: &[u8], text: &Text) -> Vec<Box<[u8]>> {
    let paragraphs = paragraphs(text);
    let bytes = super::perl::bytes(&paragraphs, text.is_wide);
    let whole = [first, &bytes].concat();
    let mut out = Vec::new();
    for mut line in super::perl::lines(&whole) {
        while line.len() > LINE_BYTES_MAX {
            let space = line[..=LINE_BYTES_MAX].iter().rposition(|byte| *byte == b' ');
            let (begin, rest) = line.split_at(space.map_or(LINE_BYTES_MAX, |at| at + 1));
            out.push(begin.into());
            line = rest;
        }
        out.push(line.into());
    }
    out
}

/// Runs of blanks made one: a line feed where two stand in them, from the first to the last of them, else a space.
fn paragraphs(text: &Text) -> String {
    let mut out = String::with_capacity(text.characters.len());
    let mut rest = text.characters.as_str();
    while let Some(next) = rest.chars().next() {
        let plain = plain_length(rest.as_bytes());
        if plain > 0 {
            out.push_str(&rest[..plain]);
            rest = &rest[plain..];
            continue;
        }
        let is_gap = |c: char| is_space(c, text.is_wide);
        if !is_gap(next) {
            let length = rest.find(|c| is_gap(c) || c == '\0').unwrap_or(rest.len());
            if length > 0 {
                out.push_str(&rest[..length]);
                rest = &rest[length..];
            } else {
                out.push('\n');
                rest = &rest[1..];
            }
            continue;
        }
        let length = rest.find(|c| !is_gap(c)).unwrap_or(rest.len());
        let gap = &rest[..length];
        rest = &rest[length..];
        match (gap.find('\n'), gap.rfind('\n')) {
            (Some(first), Some(last)) if first < last => {
                let after = &gap[last + 1..];
                out.push_str(if first > 0 { " \n" } else { "\n" });
                out.push_str(if after.is_empty() { "" } else { " " });
            }
            _ => out.push(' '),
        }
    }
    out
}

/// How many bytes there are of words in ASCII with one space between each two, which stay as they are.
fn plain_length(bytes: &[u8]) -> usize {
    const IS_WORD: [bool; 256] = {
        let mut is_word = [false; 256];
        let mut byte = 1;
        while byte < 0x80 {
            is_word[byte] = !matches!(byte as u8, b'\t'..=b'\r' | b' ');
            byte += 1;
        }
        is_word
    };
    let is_word = |byte: u8| IS_WORD[usize::from(byte)];
    let mut at = 0;
    loop {
        while bytes[at..].first_chunk().is_some_and(is_plain_block) {
            at += BLOCK;
        }
        at += bytes[at..].iter().take_while(|byte| is_word(**byte)).count();
        match bytes[at..] {
            [b' ', next, ..] if is_word(next) => at += 1,
            _ => return at,
        }
    }
}

/// Bytes that are looked at together, in vectors that the compiler makes.
const BLOCK: usize = 32;

/// Whether a block and the byte behind it are letters, signs and single spaces.
fn is_plain_block(block: &[u8; BLOCK + 1]) -> bool {
    let is_visible = block.iter().fold(true, |all, byte| all & (b' '..0x80).contains(byte));
    let pairs = block[..BLOCK].iter().zip(&block[1..]);
    is_visible && !pairs.fold(false, |any, (&byte, &next)| any | (byte == b' ' && next == b' '))
}

/// The pieces of the decoded text parts that rawbody rules look at.
pub(super) fn raw(parts: &[Part], reading: &Reading) -> Vec<Box<[u8]>> {
    let mut out = Vec::new();
    for part in parts.iter().filter(|part| !part.has_parts && !part.kind.is_empty()) {
        let kind = part.effective_kind();
        let is_text = ["text", "message"].iter().any(|known| {
            kind.strip_prefix(known).is_some_and(|rest| !rest.bytes().next().is_some_and(super::perl::is_word_byte))
        });
        if is_text && &*part.kind != "text/calendar" {
            pieces(cut(part.decoded(), reading.rawbody_part_scan_size), &mut out);
        }
    }
    out
}

/// Cut at `bytes_max`, near it behind a line end, a tag or a space.
fn cut(bytes: &[u8], bytes_max: usize) -> &[u8] {
    if bytes_max == 0 || bytes.len() <= bytes_max {
        return bytes;
    }
    let near = &bytes[bytes_max..bytes.len().min(bytes_max + 1025)];
    let stop = [b'\n', b'>', b' '].iter().find_map(|stop| memchr::memchr(*stop, near));
    &bytes[..stop.map_or(bytes_max, |at| bytes_max + at + 1)]
}

/// Pieces of two to four kilobytes that end with a line, a tag or a word.
fn pieces(text: &[u8], out: &mut Vec<Box<[u8]>>) {
    if text.len() <= LINE_BYTES_MAX {
        out.push(text.into());
        return;
    }
    let mut rest = text;
    while rest.len() > 2 * LINE_BYTES_MAX {
        let window = &rest[LINE_BYTES_MAX..2 * LINE_BYTES_MAX];
        let stop = [b'\n', b'>', b' '].iter().find_map(|stop| memchr::memchr(*stop, window)).unwrap_or(0);
        let (piece, behind) = rest.split_at(LINE_BYTES_MAX + stop + 1);
        out.push(piece.into());
        rest = behind;
    }
    if !rest.is_empty() {
        out.push(rest.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let lines = lines(b"s\n", &Text::wide(text.to_owned()));
        lines.iter().map(|line| String::from_utf8_lossy(line).into_owned()).collect()
    }

    #[test]
    fn plain_text_ends_at_the_same_place_in_blocks() {
        let by_bytes = |bytes: &[u8]| {
            let is_word = |at: usize| bytes.get(at).is_some_and(|&byte| byte > b' ' && byte < 0x80);
            (0..bytes.len()).find(|&at| !(is_word(at) || bytes[at] == b' ' && is_word(at + 1))).unwrap_or(bytes.len())
        };
        for length in 0..100 {
            let plain: Vec<u8> = (0..length).map(|at| if at % 7 == 3 { b' ' } else { b'a' + at as u8 % 26 }).collect();
            assert_eq!(plain_length(&plain), by_bytes(&plain), "{length}");
            for at in 0..plain.len() {
                for odd in [b' ', b'\n', 0, 0x7f, 0xc3] {
                    let mut text = plain.clone();
                    text[at] = odd;
                    assert_eq!(plain_length(&text), by_bytes(&text), "{odd} at {at} of {length}");
                }
            }
        }
    }

    #[test]
    fn paragraphs_are_lines() {
        assert_eq!(shown("a\nb \n\t\n c\n\n\nd"), ["s\n", "a b \n", " c\n", "d"]);
        assert_eq!(shown("\n\na\u{a0} b\0c"), ["s\n", "\n", "a b\n", "c"]);
        assert_eq!(shown(&"x".repeat(3000)).iter().map(String::len).collect::<Vec<_>>(), [2, 2048, 952]);
    }

    #[test]
    fn long_text_is_cut_into_pieces() {
        let mut out = Vec::new();
        pieces(&[&b"x".repeat(2100)[..], b"\n", &b"y".repeat(5000)].concat(), &mut out);
        assert_eq!(out.iter().map(|piece| piece.len()).collect::<Vec<_>>(), [2101, 2049, 2951]);
        assert_eq!(cut(b"abc def", 2), b"abc ");
    }
}
