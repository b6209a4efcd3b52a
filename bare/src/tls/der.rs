//! The little of ASN.1's DER that keys, signatures and a certificate take (X.690).

use alloc::vec::Vec;

pub const INTEGER: u8 = 2;
pub const OCTETS: u8 = 4;
pub const SEQUENCE: u8 = 0x30;

/// The content of the first value and what is behind it, if the value has this tag.
pub fn value(tag: u8, input: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = match *input {
        [known, length @ ..=0x7f, ref rest @ ..] if known == tag => (usize::from(length), rest),
        [known, 0x81, length, ref rest @ ..] if known == tag => (usize::from(length), rest),
        [known, 0x82, high, low, ref rest @ ..] if known == tag => (usize::from(u16::from_be_bytes([high, low])), rest),
        _ => return None,
    };
    rest.split_at_checked(length)
}

/// A value: its tag, its length, its content in pieces. Content of 64 KiB has no length here: the settings have no name of that size.
pub fn wrapped(tag: u8, content: &[&[u8]]) -> Vec<u8> {
    let content = content.concat();
    let [high, low] = u16::try_from(content.len()).unwrap_or(u16::MAX).to_be_bytes();
    let head: &[u8] = match content.len() {
        0..0x80 => &[tag, low],
        0x80..0x100 => &[tag, 0x81, low],
        _ => &[tag, 0x82, high, low],
    };
    [head, &content].concat()
}

/// A positive number, of big-endian bytes.
pub fn number(bytes: &[u8]) -> Vec<u8> {
    let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
    let bytes = bytes.get(zeros..).unwrap_or_default();
    let sign: &[u8] = if bytes.first().is_none_or(|&first| first >= 0x80) { &[0] } else { &[] };
    wrapped(INTEGER, &[sign, bytes])
}
