//! Text in header fields: encoded words (RFC 2047, also where it forbids them), UTF-8 and raw 8-bit.
//!
//! Charsets are read by [`text::encoding`]; an unknown one as UTF-8 or, failing that, windows-1252.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use text::encoding::Encoding;

use crate::decoder::base64_word;

/// The text of `raw` with encoded words decoded, cut to `bytes_max`.
pub fn text(raw: &[u8], bytes_max: usize) -> Box<str> {
    if !raw.windows(2).any(|pair| pair == b"=?") {
        return cut(&decode(b"", raw), bytes_max);
    }
    let mut words = Words::default();
    let mut rest = raw;
    while !rest.is_empty() {
        let start = memchr::memmem::find(rest, b"=?").unwrap_or(rest.len());
        let (plain, from_word) = rest.split_at(start);
        match encoded_word(from_word) {
            Some((word, behind)) => {
                words.plain(plain, true);
                words.push(word);
                rest = behind;
            }
            None => {
                let literal = (start + 2).min(rest.len());
                words.plain(&rest[..literal], false);
                rest = &rest[literal..];
            }
        }
    }
    cut(&words.finish(), bytes_max)
}

/// The text of `bytes` in the charset labelled `charset`.
pub(super) fn decode<'a>(charset: &[u8], bytes: &'a [u8]) -> Cow<'a, str> {
    Encoding::find(charset).unwrap_or_default().decode(bytes).0
}

/// `text` cut to `bytes_max` between two characters.
pub(super) fn cut(text: &str, bytes_max: usize) -> Box<str> {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].into()
}

/// The last `bytes_max` bytes of `text`, from between two characters.
pub(super) fn tail(text: &str, bytes_max: usize) -> Box<str> {
    let mut start = text.len().saturating_sub(bytes_max);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    text[start..].into()
}

struct Word<'a> {
    charset: &'a [u8],
    bytes: Vec<u8>,
}

/// Splits an encoded word from the front of `raw`.
fn encoded_word(raw: &[u8]) -> Option<(Word<'_>, &[u8])> {
    let inner = raw.strip_prefix(b"=?")?;
    let mut pieces = inner.splitn(3, |&byte| byte == b'?');
    let (charset, coding, rest) = (pieces.next()?, pieces.next()?, pieces.next()?);
    let end = memchr::memmem::find(rest, b"?=")?;
    let encoded = &rest[..end];
    let bytes = match coding {
        b"b" | b"B" => base64_word(encoded),
        b"q" | b"Q" => quoted_word(encoded),
        _ => return None,
    };
    let language = charset.iter().position(|&byte| byte == b'*');
    let charset = &charset[..language.unwrap_or(charset.len())];
    Some((Word { charset, bytes }, &rest[end + 2..]))
}

fn quoted_word(encoded: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut rest = encoded;
    while let Some((&byte, behind)) = rest.split_first() {
        let pair = behind.first().zip(behind.get(1));
        match (byte, pair.and_then(|(&high, &low)| text::hex::pair(high, low))) {
            (b'=', Some(decoded)) => {
                bytes.push(decoded);
                rest = &behind[2..];
                continue;
            }
            (b'_', _) => bytes.push(b' '),
            _ => bytes.push(byte),
        }
        rest = behind;
    }
    bytes
}

/// Joins words, so that a character split over two words of one charset is whole again.
#[derive(Default)]
struct Words {
    text: String,
    charset: Vec<u8>,
    bytes: Vec<u8>,
    after_word: bool,
}

impl Words {
    fn push(&mut self, word: Word) {
        if !self.charset.eq_ignore_ascii_case(word.charset) {
            self.flush();
            self.charset = word.charset.to_vec();
        }
        self.bytes.extend_from_slice(&word.bytes);
        self.after_word = true;
    }

    /// Text outside of words; white space between two words does not count.
    fn plain(&mut self, raw: &[u8], word_follows: bool) {
        if self.after_word && word_follows && raw.trim_ascii().is_empty() {
            return;
        }
        if raw.is_empty() {
            return;
        }
        self.flush();
        self.text.push_str(&decode(b"", raw));
        self.after_word = false;
    }

    fn flush(&mut self) {
        let bytes = core::mem::take(&mut self.bytes);
        self.text.push_str(&decode(&self.charset, &bytes));
    }

    fn finish(mut self) -> String {
        self.flush();
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_joined_before_their_charset_is_decoded() {
        let raw = b"=?utf-8?B?w6TDpMM=?= =?UTF-8?Q?=A4?= x =?nope?q?y?= =?utf-8?z?a?=";
        assert_eq!(&*text(raw, 100), "äää x y =?utf-8?z?a?=");
        let raw = b"=?ISO-2022-JP?B?GyRCJUYbKEI=?= =?iso-2022-jp?B?GyRCJTkbKEI=?= =?cp949?q?=C7=D1?=";
        assert_eq!(&*text(raw, 100), "テス한");
    }

    #[test]
    fn half_a_word_is_plain_text() {
        assert_eq!(&*text(b"=?utf-8?Q?abc", 100), "=?utf-8?Q?abc");
        assert_eq!(&*text(b"a=?", 100), "a=?");
    }
}
