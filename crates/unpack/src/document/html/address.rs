//! Heads of `data:` URIs as browsers read them: an attribute's value is decoded first, and the parser of addresses takes
//! tabs and line ends out.

use crate::document::relationships::unescaped;

/// The text in front of a comma as the parser of addresses has it: references to characters are undone, then tabs and line
/// ends are taken out. `None` if what `end` ends is no comma.
pub(super) fn head_as_read(text: &[u8], end: u8) -> Option<Vec<u8>> {
    if !may_be_head(text) {
        return None;
    }
    let whole = [text, &[end]].concat();
    let mut head = match memchr::memchr(b'&', text) {
        Some(_) => unescaped(&String::from_utf8_lossy(&whole)).into_bytes(),
        None => whole,
    };
    if head.pop() != Some(b',') {
        return None;
    }
    head.retain(|byte| !matches!(byte, b'\t' | b'\r' | b'\n'));
    Some(head)
}

/// Whether the last colon is that of `data:`, or references may stand for it. Most commas end no such text.
fn may_be_head(text: &[u8]) -> bool {
    let is_blank = |byte: &&u8| matches!(**byte, b'\t' | b'\r' | b'\n');
    let ends_scheme = |at: usize| matches!(text[..at].iter().rev().find(|byte| !is_blank(byte)), Some(b'a' | b'A'));
    let is_reference = |at: usize| matches!(text.get(at + 1), Some(b'#' | b'c' | b'T' | b'N'));
    memchr::memrchr(b':', text).is_some_and(ends_scheme) || memchr::memchr_iter(b'&', text).any(is_reference)
}
