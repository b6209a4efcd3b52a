//! The value of `Content-Transfer-Encoding` as it is met: in any case, quoted, commented, misspelt.

use alloc::vec::Vec;

use stream::Coding;

use super::cursor::Cursor;
use super::word;

/// Value of a `Content-Transfer-Encoding` field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TransferCoding {
    /// The reading of most readers.
    pub coding: Coding,
    /// Other readings, where they differ.
    pub others: Vec<Coding>,
}

/// Reads the value of a `Content-Transfer-Encoding` field. Some readers decode encoded words in it.
pub(crate) fn transfer_coding(value: &[u8]) -> TransferCoding {
    let mut read = words_as_they_stand(value);
    if memchr::memmem::find(value, b"=?").is_some() {
        let TransferCoding { coding, others } = words_as_they_stand(word::text(value, usize::MAX).as_bytes());
        for other in [coding].into_iter().chain(others) {
            if other != read.coding && !read.others.contains(&other) {
                read.others.push(other);
            }
        }
    }
    read
}

fn words_as_they_stand(value: &[u8]) -> TransferCoding {
    let mut cursor = Cursor::new(value);
    let mut tokens = Vec::new();
    while cursor.peek().is_some() {
        let token = cursor.token();
        if token.is_empty() {
            cursor.advance(1);
        } else {
            tokens.push(token.to_ascii_lowercase());
        }
    }
    let first = tokens.first().map(|token| exact(token));
    let coding = first.flatten().unwrap_or(Coding::Identity);
    let mut others = Vec::new();
    let mut add = |other: Coding| {
        if other != coding && !others.contains(&other) {
            others.push(other);
        }
    };
    tokens.iter().skip(1).filter_map(|token| exact(token)).for_each(&mut add);
    if let (Some(None), Some(token)) = (first, tokens.first())
        && !tokens.iter().any(|token| exact(token).is_some())
    {
        add(guess(token));
    }
    TransferCoding { coding, others }
}

pub(super) fn exact(token: &[u8]) -> Option<Coding> {
    Some(match token {
        b"7bit" | b"8bit" | b"binary" => Coding::Identity,
        b"base64" => Coding::Base64,
        b"quoted-printable" => Coding::QuotedPrintable,
        b"x-uuencode" | b"x-uue" | b"uuencode" | b"uue" | b"x-uu" | b"uu" => Coding::Uuencode,
        b"mac-binhex40" | b"x-binhex40" | b"x-binhex" | b"binhex40" | b"binhex" => Coding::BinHex,
        b"x-yenc" | b"yenc" => Coding::Yenc,
        _ => return None,
    })
}

/// Coding that an unknown word could stand for. A lenient reader may try Base64 on anything, except on words that
/// plainly mean text.
fn guess(token: &[u8]) -> Coding {
    let has = |part: &[u8]| memchr::memmem::find(token, part).is_some();
    if has(b"64") {
        Coding::Base64
    } else if has(b"quot") || has(b"print") || token == b"qp" {
        Coding::QuotedPrintable
    } else if has(b"uu") {
        Coding::Uuencode
    } else if has(b"hex") || has(b"hqx") {
        Coding::BinHex
    } else if has(b"yenc") {
        Coding::Yenc
    } else if TEXT_WORDS.iter().any(|word| has(word)) {
        Coding::Identity
    } else {
        Coding::Base64
    }
}

/// Parts of words that writers put where a coding belongs, and that every reader takes for plain text.
const TEXT_WORDS: [&[u8]; 13] = [
    b"bit",
    b"7",
    b"8",
    b"none",
    b"plain",
    b"text",
    b"ascii",
    b"utf",
    b"iso",
    b"windows",
    b"binary",
    b"identity",
    b"char",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: &[u8]) -> (Coding, Option<Coding>) {
        let TransferCoding { coding, others } = transfer_coding(value);
        assert!(others.len() < 2, "{others:?}");
        (coding, others.first().copied())
    }

    #[test]
    fn no_coding_of_several_is_left_out() {
        use Coding::{Base64, Identity, QuotedPrintable, Uuencode};
        let TransferCoding { coding, others } = transfer_coding(b"7bit, quoted-printable, base64; x-uuencode 8bit");
        assert_eq!((coding, others), (Identity, [QuotedPrintable, Base64, Uuencode].to_vec()));
    }

    #[test]
    fn a_coding_is_read_whatever_stands_around_it() {
        for value in [&b" BASE64"[..], b"(c) base64 (x)", b"\"base64\"", b"base64;", b"=base64", b"base64\r\n junk"] {
            assert_eq!(read(value), (Coding::Base64, None), "{}", value.escape_ascii());
        }
    }

    #[test]
    fn encoded_words_are_read_as_they_stand_and_decoded() {
        for value in [&b"=?us-ascii?q?base64?="[..], b"=?us-ascii?b?YmFzZTY0?=", b"=?utf-8?Q?=62ase6?= =?utf-8?Q?4?="] {
            assert_eq!(read(value), (Coding::Identity, Some(Coding::Base64)), "{}", value.escape_ascii());
        }
    }

    #[test]
    fn an_unknown_word_is_identity_with_a_second_candidate() {
        use Coding::{Base64, Identity, QuotedPrintable};
        assert_eq!(read(b"base-64"), (Identity, Some(Base64)));
        assert_eq!(read(b"quoted printable"), (Identity, Some(QuotedPrintable)));
        assert_eq!(read(b"surprise"), (Identity, Some(Base64)));
        assert_eq!(read(b"surprise quoted-printable"), (Identity, Some(QuotedPrintable)));
        assert_eq!(read(b"8-bit"), (Identity, None));
        assert_eq!(read(b"iso-8859-1"), (Identity, None));
        assert_eq!(read(b""), (Identity, None));
        assert_eq!(read(b"7bit base64"), (Identity, Some(Base64)));
    }
}
