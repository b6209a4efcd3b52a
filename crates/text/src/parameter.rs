//! A parameter of a structured header field as it is written (RFC 2045, section 5.1): in quotes, or with its charset and in pieces
//! (RFC 2231). An encoded character is never in two pieces.

use alloc::format;
use alloc::string::String;

/// The longest value, in bytes; characters behind that are left out.
const VALUE_BYTES_MAX: usize = 1_000;
/// The longest value in quotes, in bytes.
const PLAIN_BYTES_MAX: usize = 60;
/// Characters of a piece.
const PIECE_MAX: usize = 60;

/// Writes a parameter with the semicolon in front of it, on lines of its own; nothing for an empty value. Control characters become
/// blanks.
pub fn written(name: &str, value: &str) -> String {
    let is_odd = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    let value: String = value.chars().map(|c| if is_odd(c) { ' ' } else { c }).collect();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._ ".contains(c);
    if value.is_empty() {
        return String::new();
    }
    if value.len() <= PLAIN_BYTES_MAX && value.chars().all(is_plain) {
        return format!(";\r\n {name}=\"{value}\"");
    }
    let (mut out, mut number, mut bytes) = (String::new(), 0usize, 0usize);
    let mut piece = String::from("utf-8''");
    for character in value.chars() {
        bytes = bytes.saturating_add(character.len_utf8());
        if bytes > VALUE_BYTES_MAX {
            break;
        }
        let encoded = encoded(character);
        if piece.len().saturating_add(encoded.len()) > PIECE_MAX {
            out.push_str(&format!(";\r\n {name}*{number}*={piece}"));
            number = number.saturating_add(1);
            piece.clear();
        }
        piece.push_str(&encoded);
    }
    out + &format!(";\r\n {name}*{number}*={piece}")
}

fn encoded(character: char) -> String {
    if character.is_ascii_alphanumeric() || "-._".contains(character) {
        return character.into();
    }
    character.encode_utf8(&mut [0; 4]).bytes().map(|byte| format!("%{byte:02X}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_character_is_in_two_pieces() {
        assert_eq!(written("name", "a b.txt"), ";\r\n name=\"a b.txt\"");
        assert_eq!(written("name", ""), "");
        assert_eq!(written("name", "\u{e4}\r\nx"), ";\r\n name*0*=utf-8''%C3%A4%20%20x");
        for shift in 0..30 {
            for character in ["\u{e4}", "\u{6f22}", "\u{1f600}", "(", " "] {
                let value = "a".repeat(shift) + &character.repeat(61);
                let written = written("filename", &value);
                let mut bytes = Vec::new();
                for (number, line) in written.split(";\r\n ").skip(1).enumerate() {
                    let piece = line.strip_prefix(&format!("filename*{number}*=")).unwrap();
                    assert!(line.len() <= 76, "{line}");
                    let mut parts = piece.strip_prefix("utf-8''").unwrap_or(piece).split('%');
                    let mut whole = parts.next().unwrap().as_bytes().to_vec();
                    for part in parts {
                        whole.push(u8::from_str_radix(&part[..2], 16).unwrap());
                        whole.extend(part[2..].bytes());
                    }
                    assert!(core::str::from_utf8(&whole).is_ok(), "{written}");
                    bytes.extend(whole);
                }
                assert_eq!(String::from_utf8(bytes).unwrap(), value);
            }
        }
        let long = written("filename", &"\u{1f600}".repeat(1_000));
        assert_eq!(long.matches("%F0").count(), VALUE_BYTES_MAX / 4);
    }
}
