//! Text against binary, and which text is HTML or XML.
//!
//! Text has hardly any control characters but those of line printers, in an ASCII-compatible charset or in UTF-16 (with a byte
//! order mark, or with every other byte NUL). Eight-bit charsets count as text: nothing else has a thousand bytes
//! without a control character.

use std::borrow::Cow;

use stream::FileType;

/// Text, HTML or XML, or `None` for binary.
pub(super) fn recognise(head: &[u8]) -> Option<FileType> {
    let narrow = narrow(head);
    let controls = controls(&narrow);
    if controls == 0 {
        return Some(markup(&narrow));
    }
    // Browsers pass over control characters, NULs too; editors show them.
    let few = controls * FEW <= narrow.len();
    let some = controls * SOME <= narrow.len();
    match markup(&narrow) {
        FileType::Html if some => Some(FileType::Html),
        other if few && !narrow.contains(&0) => Some(other),
        _ => None,
    }
}

/// One control character in so many bytes leaves a text a text. Compressed data has one in ten.
const FEW: usize = 64;
/// Share of tags that keep a text HTML: one in this number.
const SOME: usize = 6;

/// The text with one byte for each unit of its charset; units beyond Latin-1 become `?`.
fn narrow(head: &[u8]) -> Cow<'_, [u8]> {
    let big = |pair: &[u8]| u16::from_be_bytes([pair[0], pair[1]]);
    let little = |pair: &[u8]| u16::from_le_bytes([pair[0], pair[1]]);
    match head {
        [0xef, 0xbb, 0xbf, text @ ..] => text.into(),
        [0xff, 0xfe, 0, 0, text @ ..] if text.len() > 3 => wide(text, 4, |unit| little(&unit[..2])),
        [0xff, 0xfe, text @ ..] => wide(text, 2, little),
        [0xfe, 0xff, text @ ..] => wide(text, 2, big),
        _ if every_other_is_nul(head, 1) => wide(head, 2, little),
        _ if every_other_is_nul(head, 0) => wide(head, 2, big),
        _ => head.into(),
    }
}

fn wide(text: &[u8], width: usize, unit: impl Fn(&[u8]) -> u16) -> Cow<'_, [u8]> {
    let units = text.chunks_exact(width).map(unit);
    units.map(|unit| u8::try_from(unit).unwrap_or(b'?')).collect()
}

/// UTF-16 of Latin text without a byte order mark.
fn every_other_is_nul(head: &[u8], parity: usize) -> bool {
    const UNITS_MIN: usize = 4;
    let mut pairs = head.chunks_exact(2);
    pairs.len() >= UNITS_MIN && pairs.all(|pair| pair[parity] == 0 && pair[1 - parity] != 0)
}

/// How many control characters a text has. Counted in bytes, so that a vector holds many counts.
fn controls(text: &[u8]) -> usize {
    let count = |part: &[u8]| part.iter().fold(0_u8, |count, &byte| count.wrapping_add(is_control(byte).into()));
    text.chunks(255).map(|part| usize::from(count(part))).sum()
}

/// Returns whether a byte is a control character other than backspace, the movements of a printer (tab to carriage
/// return), the end of a file under DOS, and escape.
fn is_control(byte: u8) -> bool {
    (byte < 8) | ((byte > b'\r') & (byte < 26)) | ((byte > 27) & (byte < 32)) | (byte == 127)
}

/// Tags that begin or betray HTML, in lower case.
const TAGS: [&[u8]; 14] = [
    b"<!doctype html",
    b"<html",
    b"<head",
    b"<body",
    b"<script",
    b"<iframe",
    b"<meta ",
    b"<title",
    b"<style",
    b"<a href",
    b"<table",
    b"<img ",
    b"<div",
    b"<form",
];

fn markup(text: &[u8]) -> FileType {
    let start = text.trim_ascii_start();
    let is_xml =
        start.starts_with(b"<?xml") || (start.starts_with(b"<") && memchr::memmem::find(start, b"xmlns").is_some());
    let tags = if is_xml { &TAGS[..2] } else { &TAGS[..] };
    let is_tag = |at: usize| {
        // The byte after a `<` rules out most tags.
        let first = start.get(at + 1).map_or(0, u8::to_ascii_lowercase);
        tags.iter().any(|tag| tag[1] == first && begins_with_tag(&start[at..], tag))
    };
    if memchr::memchr_iter(b'<', start).any(is_tag) {
        return FileType::Html;
    }
    if is_xml { FileType::Xml } else { FileType::Text }
}

/// Whether the text begins with the tag, and not with another tag whose name begins like it.
fn begins_with_tag(text: &[u8], tag: &[u8]) -> bool {
    let Some((name, rest)) = text.split_at_checked(tag.len()) else {
        return false;
    };
    let goes_on = || rest.first().is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    name.eq_ignore_ascii_case(tag) && (tag.ends_with(b" ") || !goes_on())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charsets_are_text_and_control_characters_are_not() {
        for text in [
            &b"plain\r\n\ttext\x0c"[..],
            "naïve déjà vu".as_bytes(),
            b"Gr\xfc\xdfe",
            b"\xd0\xd2\xc9\xd7\xc5\xd4",
            b"\xff\xfeh\0i\0",
            b"\xfe\xff\0h\0i",
            b"\xff\xfe\x3c\x04\x38\x04\x40\x04",
            b"s\0c\0r\0i\0p\0t\0",
            b"cut in the middle of \xc3",
        ] {
            assert_eq!(recognise(text), Some(FileType::Text), "{}", text.escape_ascii());
        }
        for binary in [&b"abc\0def"[..], b"\x01\x02\x03", b"\x00\x00\x00\x00"] {
            assert_eq!(recognise(binary), None, "{}", binary.escape_ascii());
        }
    }

    #[test]
    fn what_moves_a_printer_on_is_no_control_character() {
        let counted: Vec<u8> = (0..=255).filter(|&byte| controls(&[byte]) == 1).collect();
        assert_eq!(counted, [&[0, 1, 2, 3, 4, 5, 6, 7][..], &Vec::from_iter(14..26), &[28, 29, 30, 31, 127]].concat());
        assert_eq!(controls(&[1; 1000]), 1000);
    }

    #[test]
    fn each_tag_is_found_in_any_case() {
        for tag in TAGS {
            let text = [b"<a <", tag, b">"].concat();
            assert_eq!(recognise(&text), Some(FileType::Html), "{}", text.escape_ascii());
            assert_eq!(recognise(&text.to_ascii_uppercase()), Some(FileType::Html), "{}", text.escape_ascii());
        }
    }

    #[test]
    fn html_is_told_from_xml_and_both_from_text() {
        let html: [&[u8]; 5] = [
            b"<!DOCTYPE HTML><p>",
            b"  \n<HTML>",
            b"text first <script>alert(1)</script>",
            b"<?xml version='1.0'?><html xmlns='x'>",
            b"\xff\xfe<\0h\0t\0m\0l\0>\0",
        ];
        for text in html {
            assert_eq!(recognise(text), Some(FileType::Html), "{}", text.escape_ascii());
        }
        assert_eq!(recognise(b"<?xml version='1.0'?><a/>"), Some(FileType::Xml));
        assert_eq!(recognise(b"<svg xmlns='http://x'>"), Some(FileType::Xml));
        assert_eq!(recognise(b"a < b and c > d"), Some(FileType::Text));
        assert_eq!(recognise(b"<headline>"), Some(FileType::Text));
        assert_eq!(recognise(b"<<<headline><head"), Some(FileType::Html));
        let sprinkled = b"\0<html>\x01<body> of some words </body>";
        assert_eq!(recognise(sprinkled), Some(FileType::Html));
        assert_eq!(recognise(&[b"\x01\0\0"[..].repeat(99), b"<html>".to_vec()].concat()), None);
    }
}
