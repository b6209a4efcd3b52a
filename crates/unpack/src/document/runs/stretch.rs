//! Stretches of text without other characters than those of an encoding, with which a run may begin.

use super::URL_MIN;

/// Runs that a byte may belong to.
pub(super) const BASE64: u8 = 1;
pub(super) const NUMBER: u8 = 2;
const BASE64_URL: u8 = 4;
const PAIR: u8 = 8;

/// Whether a character is of the usual alphabet: rules of dashes and of underlines are no Base64.
pub(in crate::document) const fn is_base64(byte: u8) -> bool {
    text::base64::value(byte).is_some()
}

pub(super) const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let at = byte as u8;
        if is_base64(at) {
            classes[byte] |= BASE64;
        }
        if at.is_ascii_alphanumeric() || matches!(at, b'-' | b'_') {
            classes[byte] |= BASE64_URL;
        }
        if at.is_ascii_hexdigit() || matches!(at, b' ' | b':' | b',' | b'-' | b'\\' | b'x') {
            classes[byte] |= PAIR;
        }
        if at.is_ascii_digit()
            || matches!(at, b',' | b'-' | b':' | b'\\' | b' ' | b'\n' | b'\r' | b'\t' | b'x' | b'X' | b'a'..=b'f' | b'A'..=b'F')
        {
            classes[byte] |= NUMBER;
        }
        byte += 1;
    }
    classes
};

/// The first stretch of `count` bytes of a class, or where one may still begin.
pub(super) fn stretch(bytes: &[u8], from: usize, class: u8, count: usize) -> Result<usize, usize> {
    let mut from = from;
    while let Some(window) = bytes.get(from..from + count) {
        match window.iter().rposition(|&byte| CLASSES[usize::from(byte)] & class == 0) {
            Some(other) => from += other + 1,
            None => return Ok(from),
        }
    }
    let rest = bytes.get(from..).unwrap_or_default();
    Err(from + rest.iter().rposition(|&byte| CLASSES[usize::from(byte)] & class == 0).map_or(0, |other| other + 1))
}

/// The first stretch of `count` characters of Base64.
pub(in crate::document) fn stretch_of_base64(bytes: &[u8], count: usize) -> Option<usize> {
    stretch(bytes, 0, BASE64, count).ok()
}

/// The first stretch of `count` characters that pairs of hexadecimal digits are written with.
pub(in crate::document) fn stretch_of_pairs(bytes: &[u8], count: usize) -> Option<usize> {
    stretch(bytes, 0, PAIR, count).ok()
}

/// The first stretch of Base64 in the alphabet for URLs that looks neither like words nor like a number, or where one may still
/// begin: in front of other text, or behind a dash. A stretch without a dash is one of the usual alphabet.
pub(super) fn stretch_for_urls(bytes: &[u8], from: usize) -> Result<usize, usize> {
    let is_dash = |byte: u8| matches!(byte, b'-' | b'_');
    let mut from = from;
    loop {
        let at = stretch(bytes, from, BASE64_URL, URL_MIN)?;
        let window = &bytes[at..at + URL_MIN];
        let before = at.checked_sub(1).map_or(b' ', |before| bytes[before]);
        let is_begin = !(before.is_ascii_alphanumeric() || is_dash(before) && is_dash(window[0]));
        let dash = window.iter().position(|&byte| is_dash(byte));
        let count = |is_in: fn(&u8) -> bool| window.iter().filter(|byte| is_in(byte)).count();
        let is_telling = || {
            let is_rule = is_dash(window[0]) && is_dash(window[1]);
            let (upper, lower) = (count(u8::is_ascii_uppercase), count(u8::is_ascii_lowercase));
            upper >= 8 && lower >= 4 && count(u8::is_ascii_digit) >= 1 && !is_rule
        };
        if is_begin && dash.is_some() && is_telling() {
            return Ok(at);
        }
        from = at + dash.map_or(URL_MIN, |dash| dash + 1);
    }
}
