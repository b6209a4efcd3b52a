//! The lines that announce and end files in text.

use super::Inside;

/// How much of a line is looked at.
pub(super) const LINE_MAX: usize = 1024;

const BEGIN: &[u8] = b"begin ";
const BEGIN_BASE64: &[u8] = b"begin-base64 ";
const YBEGIN: &[u8] = b"=ybegin ";
const BINHEX: &[u8] = b"(This file must be converted with BinHex";

const BEGINNINGS: [&[u8]; 4] = [BEGIN, BEGIN_BASE64, YBEGIN, BINHEX];

/// Whether a line of this beginning of a content announces yEnc, whose data is no text.
pub fn announces_yenc(head: &[u8]) -> bool {
    memchr::memmem::find_iter(head, YBEGIN).any(|at| at == 0 || head.get(at.wrapping_sub(1)) == Some(&b'\n'))
}

/// Meaning of a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Marker<'a> {
    /// A file begins, perhaps with a name.
    Begin(Inside, Option<&'a [u8]>),
    /// The file being read ends.
    End,
    None,
}

/// Whether a line that begins with `line` can be a marker.
pub(super) fn is_possible(line: &[u8], inside: Option<Inside>) -> bool {
    let fits = |marker: &[u8]| {
        let common = line.len().min(marker.len());
        line[..common] == marker[..common]
    };
    match line.first() {
        None => true,
        Some(b'b' | b'=' | b'(') if BEGINNINGS.iter().any(|marker| fits(marker)) => true,
        _ => ending(inside).is_some_and(fits),
    }
}

const fn ending(inside: Option<Inside>) -> Option<&'static [u8]> {
    match inside {
        None => None,
        Some(Inside::Uuencode) => Some(b"end"),
        Some(Inside::UuencodeBase64) => Some(b"===="),
        Some(Inside::Yenc) => Some(b"=yend"),
        Some(Inside::BinHex { .. }) => None,
    }
}

/// Whether `line` begins the data of a BinHex file that has been announced.
pub(super) fn begins_binhex(line: &[u8], inside: Option<Inside>) -> bool {
    inside == Some(Inside::BinHex { colons: 0 }) && line.first() == Some(&b':')
}

/// Reads a complete line.
pub(super) fn read(line: &[u8], inside: Option<Inside>) -> Marker<'_> {
    if let Some(name) = line.strip_prefix(BEGIN).and_then(name_behind_mode) {
        return Marker::Begin(Inside::Uuencode, Some(name));
    }
    if let Some(name) = line.strip_prefix(BEGIN_BASE64).and_then(name_behind_mode) {
        return Marker::Begin(Inside::UuencodeBase64, Some(name));
    }
    if line.starts_with(YBEGIN) {
        return Marker::Begin(Inside::Yenc, yenc_name(line));
    }
    if line.starts_with(BINHEX) {
        return Marker::Begin(Inside::BinHex { colons: 0 }, None);
    }
    let ends = match inside {
        Some(Inside::Uuencode) => line.trim_ascii_end() == b"end",
        Some(Inside::UuencodeBase64) => line.starts_with(b"===="),
        Some(Inside::Yenc) => line.starts_with(b"=yend"),
        _ => false,
    };
    if ends { Marker::End } else { Marker::None }
}

fn name_behind_mode(rest: &[u8]) -> Option<&[u8]> {
    let rest = rest.trim_ascii_start();
    let digits = rest.iter().take_while(|byte| matches!(byte, b'0'..=b'7'));
    let digits = digits.count();
    let (mode, name) = rest.split_at(digits);
    let spaced = name.first().is_some_and(u8::is_ascii_whitespace);
    let name = name.trim_ascii();
    ((3..=6).contains(&mode.len()) && spaced && !name.is_empty()).then_some(name)
}

fn yenc_name(line: &[u8]) -> Option<&[u8]> {
    let at = memchr::memmem::find(line, b" name=")?;
    Some(line[at + 6..].trim_ascii())
}
