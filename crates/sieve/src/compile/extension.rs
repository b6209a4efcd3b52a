//! The supported extensions.

use alloc::format;
use alloc::string::String;

/// Names that `require` accepts.
pub const EXTENSIONS: [&str; 30] = [
    "body",
    "comparator-i;ascii-casemap",
    "comparator-i;ascii-numeric",
    "comparator-i;octet",
    "comparator-i;unicode-casemap",
    "copy",
    "date",
    "duplicate",
    "editheader",
    "encoded-character",
    "envelope",
    "environment",
    "ereject",
    "fileinto",
    "ihave",
    "imap4flags",
    "include",
    "index",
    "mailbox",
    "regex",
    "reject",
    "relational",
    "spamtest",
    "spamtestplus",
    "special-use",
    "subaddress",
    "vacation",
    "vacation-seconds",
    "variables",
    "virustest",
];

/// Extensions that an extension implies.
pub(super) fn implied(extension: &str) -> &'static [&'static str] {
    match extension {
        "vacation-seconds" => &["vacation"],
        "spamtestplus" => &["spamtest"],
        "special-use" => &["mailbox"],
        _ => &[],
    }
}

/// Decodes `${hex:...}` and `${unicode:...}` in a string (RFC 5228, section 2.4.2.4); malformed ones stay.
pub(super) fn decode_characters(source: &str) -> Result<String, String> {
    let mut out = alloc::vec::Vec::new();
    let mut rest = source;
    while let Some(at) = rest.find("${") {
        let (before, from) = rest.split_at(at);
        out.extend_from_slice(before.as_bytes());
        let inner = from.get(2..).unwrap_or_default();
        let decoded = inner.split_once('}').and_then(|(inner, behind)| Some((decode(inner)?, behind)));
        match decoded {
            Some((bytes, behind)) => {
                out.extend_from_slice(&bytes?);
                rest = behind;
            }
            None => {
                out.extend_from_slice(b"${");
                rest = inner;
            }
        }
    }
    out.extend_from_slice(rest.as_bytes());
    String::from_utf8(out).map_err(|_| "encoded characters are not UTF-8".into())
}

fn decode(inner: &str) -> Option<Result<alloc::vec::Vec<u8>, String>> {
    let (kind, digits) = inner.split_once(':')?;
    let mut words = digits.split_ascii_whitespace().peekable();
    words.peek()?;
    let number = |word: &str, most: usize| {
        let is_hex = word.bytes().all(|byte| byte.is_ascii_hexdigit());
        (is_hex && word.len() <= most).then(|| u32::from_str_radix(word, 16).ok()).flatten()
    };
    if kind.eq_ignore_ascii_case("hex") {
        return words
            .map(|word| number(word, 2).and_then(|byte| u8::try_from(byte).ok()))
            .collect::<Option<_>>()
            .map(Ok);
    }
    if !kind.eq_ignore_ascii_case("unicode") {
        return None;
    }
    let mut text = String::new();
    for word in words {
        let value = number(word.trim_start_matches('0'), 7);
        let value = if word.bytes().all(|byte| byte == b'0') { 0 } else { value? };
        match char::from_u32(value) {
            Some(character) => text.push(character),
            None => return Some(Err(format!("{word} is not a character"))),
        }
    }
    Some(Ok(text.into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_decoded_as_the_standard_shows() {
        for (source, wanted) in [
            ("$${hex:40}", "$@"),
            ("${hex: 40 }", "@"),
            ("${HEX: 40}", "@"),
            ("${hex:40", "${hex:40"),
            ("${hex:400}", "${hex:400}"),
            ("${hex:4${hex:30}}", "${hex:40}"),
            ("${unicode:40}", "@"),
            ("${ unicode:40}", "${ unicode:40}"),
            ("${UNICODE:40}", "@"),
            ("${UnICoDE:0000040}", "@"),
            ("${Unicode:40}", "@"),
            ("${Unicode:Cool}", "${Unicode:Cool}"),
            ("${hex:c3 a9}", "é"),
        ] {
            assert_eq!(decode_characters(source).as_deref(), Ok(wanted), "{source}");
        }
        assert!(decode_characters("${unicode:200000}").is_err());
        assert!(decode_characters("${Unicode:DF01}").is_err());
        assert!(decode_characters("${hex:c3}").is_err());
    }
}
