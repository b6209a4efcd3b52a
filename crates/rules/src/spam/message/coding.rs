//! Transfer codings and charsets, undone as SpamAssassin undoes them.

use text::base64;
use text::charset::Charset;

use super::perl::{Text, begins, is_blank};

/// Base64. What is no whole number of quanta, or has junk in it, is read in another way: junk is left out, `=` within
/// stands for the last letter of the alphabet.
pub(super) fn base64(coded: &[u8]) -> Vec<u8> {
    let mut letters: Vec<u8> = coded.iter().copied().filter(|byte| !is_blank(*byte)).collect();
    let is_clean = letters.len() >= 2 && letters.len().is_multiple_of(4) && letters.iter().all(|byte| is_letter(*byte));
    if !is_clean {
        letters.retain(|byte| is_letter(*byte));
    }
    let end = letters.iter().rposition(|byte| *byte != b'=').map_or(0, |last| last + 1);
    letters.truncate(end);
    let within = if is_clean { 0 } else { 63 };
    if !is_clean && letters.len() % 4 == 1 {
        letters.pop();
    }
    let mut out = Vec::with_capacity(letters.len() / 4 * 3 + 3);
    for quantum in letters.chunks(4) {
        let mut bits = 0u32;
        for at in 0..4 {
            bits = bits << 6 | quantum.get(at).map_or(0, |letter| base64::value(*letter).map_or(within, u32::from));
        }
        let [_, bytes @ ..] = bits.to_be_bytes();
        out.extend_from_slice(&bytes[..quantum.len() * 3 / 4]);
    }
    out
}

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// Quoted-printable: blanks at the end of lines go, then soft line breaks, then escapes.
pub(super) fn quoted_printable(coded: &[u8]) -> Vec<u8> {
    let mut lines = Vec::with_capacity(coded.len());
    for line in coded.split_inclusive(|byte| *byte == b'\n') {
        let Some(text) = line.strip_suffix(b"\n") else {
            lines.extend_from_slice(line);
            continue;
        };
        let (text, end): (_, &[u8]) = match text.strip_suffix(b"\r") {
            Some(text) => (text, b"\r\n"),
            None => (text, b"\n"),
        };
        let length = text.iter().rposition(|byte| !matches!(byte, b' ' | b'\t')).map_or(0, |last| last + 1);
        let text = &text[..length];
        match text.strip_suffix(b"=") {
            Some(text) => lines.extend_from_slice(text),
            None => {
                lines.extend_from_slice(text);
                lines.extend_from_slice(end);
            }
        }
    }
    let mut out = Vec::with_capacity(lines.len());
    let mut rest = &lines[..];
    while let Some(at) = memchr::memchr(b'=', rest) {
        out.extend_from_slice(&rest[..at]);
        match rest.get(at + 1..at + 3).and_then(hex_byte) {
            Some(byte) => {
                out.push(byte);
                rest = &rest[at + 3..];
            }
            None => {
                out.push(b'=');
                rest = &rest[at + 1..];
            }
        }
    }
    out.extend_from_slice(rest);
    out
}

fn hex_byte(digits: &[u8]) -> Option<u8> {
    let &[high, low] = digits else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    Some(digit(high)? << 4 | digit(low)?)
}

/// CRLF made LF.
pub(super) fn line_feeds(bytes: &mut Vec<u8>) {
    if memchr::memmem::find(bytes, b"\r\n").is_none() {
        return;
    }
    let mut out = Vec::with_capacity(bytes.len());
    for (at, &byte) in bytes.iter().enumerate() {
        if byte != b'\r' || bytes.get(at + 1) != Some(&b'\n') {
            out.push(byte);
        }
    }
    *bytes = out;
}

/// The text that `bytes` are in the charset that is declared, or else in the one that fits best. With `insists` nothing is
/// guessed while the declared one is known.
pub(super) fn normalised(bytes: &[u8], declared: &str, insists: bool) -> Text {
    let is_ascii = bytes.is_ascii();
    if is_ascii && is_ascii_enough(declared) {
        return Text::narrow(bytes);
    }
    if !is_ascii
        && !insists
        && let Ok(text) = std::str::from_utf8(bytes)
    {
        return Text::wide(text.to_owned());
    }
    if let Some(text) = declared_text(bytes, declared, insists, !is_ascii && !insists) {
        return Text::wide(text);
    }
    if is_ascii {
        return Text::narrow(bytes);
    }
    Text::wide(Charset::WINDOWS_1252.lossy(bytes))
}

/// The text in the charset that is declared.
fn declared_text(bytes: &[u8], declared: &str, insists: bool, tried_utf8: bool) -> Option<String> {
    let lower = declared.to_ascii_lowercase();
    if matches!(&*lower, "ascii" | "us-ascii") && !insists {
        return None;
    }
    if lower.starts_with("utf16") || lower.starts_with("utf-16") || lower.starts_with("utf 16") {
        return utf16(bytes);
    }
    let charset = match &*lower {
        "iso-8859-1" | "iso8859-1" | "windows-1252" | "cp1252" => Charset::WINDOWS_1252,
        "utf-8" | "utf8" if tried_utf8 => return None,
        "utf-8" | "utf8" => Charset::UTF_8,
        _ if is_gb18030(&lower) => Charset::find("gbk")?,
        _ => Charset::find(declared)?,
    };
    if insists { Some(charset.lossy(bytes)) } else { charset.strict(bytes) }
}

/// UTF-16 without a mark: in the order of bytes that makes most sense. With one, it is guessed.
fn utf16(bytes: &[u8]) -> Option<String> {
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return None;
    }
    let (mut little, mut big, mut even, mut odd) = (0u64, 0u64, 0u64, 0u64);
    let nibbles = |byte: u8| u64::from(byte >> 4) + u64::from(byte & 15);
    for pair in bytes.chunks(2) {
        let (first, second) = (pair[0], pair.get(1).copied().unwrap_or(0));
        even += nibbles(first);
        odd += nibbles(second);
        little += u64::from((first, second) == (0x20, 0));
        big += u64::from((first, second) == (0, 0x20));
    }
    little += u64::from(even > odd.saturating_mul(4));
    big += u64::from(odd.saturating_mul(4) > even);
    if little == big || !bytes.len().is_multiple_of(2) {
        return None;
    }
    let unit = |pair: &[u8]| match little > big {
        true => u16::from_le_bytes([pair[0], pair[1]]),
        false => u16::from_be_bytes([pair[0], pair[1]]),
    };
    char::decode_utf16(bytes.chunks_exact(2).map(unit)).collect::<Result<String, _>>().ok()
}

fn is_gb18030(lower: &str) -> bool {
    ["gb18030", "gb-18030", "gb 18030"].iter().any(|name| {
        lower.strip_prefix(name).is_some_and(|rest| rest.is_empty() || (rest.len() == 5 && rest.starts_with("-20")))
    })
}

/// Whether text that is ASCII needs no decoding in the charset that is declared.
fn is_ascii_enough(declared: &str) -> bool {
    let name = declared.as_bytes();
    let all = |bytes: &[u8], range: std::ops::RangeInclusive<usize>, fits: fn(&u8) -> bool| {
        range.contains(&bytes.len()) && bytes.iter().all(fits)
    };
    let rest = |prefix: &[u8]| if begins(name, prefix) { Some(&name[prefix.len()..]) } else { None };
    let digit = u8::is_ascii_digit;
    if ["ascii", "us-ascii", "iso646-us", "utf8", "utf-8", "big5", "gbk"]
        .iter()
        .any(|known| declared.eq_ignore_ascii_case(known))
    {
        return true;
    }
    if let Some(rest) = rest(b"windows-") {
        return all(rest, 4..=4, digit);
    }
    if let Some(rest) = rest(b"koi8-").or(rest(b"euc-")) {
        return all(rest, 1..=2, u8::is_ascii_alphabetic);
    }
    if let Some(rest) = rest(b"iso8859").or(rest(b"iso-8859")).or(rest(b"iso 8859")) {
        return rest.is_empty() || rest.strip_prefix(b"-").is_some_and(|number| all(number, 1..=2, digit));
    }
    if let Some(rest) = rest(b"ansi x3.4-").or(rest(b"ansi_x3.4-")).or(rest(b"ansix3.4-")) {
        return matches!(rest, b"1986" | b"1968");
    }
    is_gb18030(&declared.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read_with_its_junk() {
        assert_eq!(base64(b"aGVs\nbG8="), b"hello");
        assert_eq!(base64(b"aGVsbG8"), b"hello");
        assert_eq!(base64(b"aG*VsbG8="), b"hello");
        assert_eq!(base64(b"aGVs=GVs"), b"hel\0e\x6c".as_slice());
        assert_eq!(base64(b""), b"");
    }

    #[test]
    fn quoted_printable_is_read_with_its_junk() {
        assert_eq!(quoted_printable(b"a=3D=\nb =\r\nc  \nd=zz=3"), b"a=b c\nd=zz=3");
        assert_eq!(quoted_printable(b"=41=  \n"), b"A");
    }

    #[test]
    fn a_text_is_in_the_charset_that_fits() {
        assert_eq!(normalised(b"abc", "us-ascii", false), Text::narrow(b"abc"));
        assert_eq!(normalised("é".as_bytes(), "iso-8859-1", false), Text::wide("é".into()));
        assert_eq!(normalised(b"\xe9\x80", "iso-8859-1", false), Text::wide("é€".into()));
        assert_eq!(normalised(b"abc", "gb2312", false), Text::wide("abc".into()));
        assert_eq!(normalised(b"\xff", "nonsense", false), Text::wide("ÿ".into()));
        assert_eq!(normalised(b"a\0 \0b\0", "utf-16", false), Text::wide("a b".into()));
    }
}
