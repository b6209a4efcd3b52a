//! Grammar of lines: expressions, tests of headers, calls, metas, scores, flags, values, lists in the DNS.

pub mod call;
pub mod dns;
pub mod expression;
pub mod field;
pub mod flags;
pub mod meta;
pub mod score;
pub mod value;

/// The longest name of a rule.
pub const NAME_BYTES_MAX: usize = 127;

/// A rule's name: letters, digits and underscores, no digit first, at most 127 bytes.
pub fn name(word: &[u8]) -> Option<&str> {
    let first = *word.first()?;
    let fits = word.len() <= NAME_BYTES_MAX && !first.is_ascii_digit();
    let is_name = fits && word.iter().all(|&byte| byte.is_ascii_alphanumeric() || byte == b'_');
    core::str::from_utf8(word).ok().filter(|_| is_name)
}

/// The first word and what stands behind it.
pub(super) fn word(text: &[u8]) -> (&[u8], &[u8]) {
    let text = text.trim_ascii_start();
    let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    (word, rest.trim_ascii_start())
}

/// The words of a text.
pub(super) fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}
