//! Percent encoding of URLs and forms (RFC 3986, section 2.1).

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Text as a value of a query has it: all but unreserved characters encoded.
pub(crate) fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            true => out.push(char::from(byte)),
            false => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// Text without percent encoding.
pub(crate) fn decoded(text: &[u8], plus_is_blank: bool) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        let digit = |at: usize| behind.get(at).and_then(|&digit| char::from(digit).to_digit(16));
        match (byte, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                out.push(u8::try_from(high.saturating_mul(16).saturating_add(low)).unwrap_or(b'?'));
                rest = behind.get(2..).unwrap_or_default();
            }
            (b'+', ..) if plus_is_blank => out.push(b' '),
            _ => out.push(byte),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}
