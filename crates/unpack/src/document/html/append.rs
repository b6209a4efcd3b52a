//! Statements that append one string after the other to a variable, as scripts do that put a file together.

/// Bytes between two strings of which one is appended to the other.
pub(in crate::document) const APPEND_BYTES: usize = 64;

/// Whether a byte may stand between them.
pub(in crate::document) const fn is_of_append(byte: u8) -> bool {
    is_of_name(byte) || byte.is_ascii_whitespace() || matches!(byte, b';' | b'+' | b'=' | b'&' | b'.')
}

const fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.')
}

/// The name at the end of a text.
fn last_name(text: &[u8]) -> &[u8] {
    let text = text.trim_ascii_end();
    let length = text.iter().rev().take_while(|&&byte| is_of_name(byte)).count();
    &text[text.len() - length..]
}

/// The variable that the string behind this text is assigned or appended to; empty without one.
pub(in crate::document) fn variable(before: &[u8]) -> &[u8] {
    match before.trim_ascii_end() {
        [rest @ .., b'+' | b'&' | b'.', b'='] | [rest @ .., b'=' | b'+' | b'&' | b'.'] => last_name(rest),
        _ => b"",
    }
}

/// Whether a statement between two strings appends the second to this variable, which has the first.
pub(in crate::document) fn is_append(text: &[u8], variable: &[u8]) -> bool {
    let text = text.trim_ascii();
    let text = text.strip_prefix(b";").unwrap_or(text).trim_ascii();
    let Some(operator) = text.strip_prefix(variable) else { return false };
    match operator.trim_ascii() {
        b"+=" | b"&=" | b".=" => true,
        [b'=', rest @ .., b'+' | b'&' | b'.'] => rest.trim_ascii() == variable,
        _ => false,
    }
}
