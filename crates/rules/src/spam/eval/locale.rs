//! Charsets of languages that nobody here reads: what `ok_locales` does not name.
//!
//! The environment has no say, other than in SpamAssassin, which adds the locale that it runs in. What is `utf-8`, of the West,
//! or of Windows is everybody's, so it is old charsets that this is about.

use super::{Arguments, Context, Function, look, truth};
use crate::spam::message::eval;

/// The functions.
pub(super) const FUNCTIONS: &[Function] = &[
    look("check_for_faraway_charset", of_body),
    look("check_for_faraway_charset_in_headers", of_header),
    look("check_for_mime", of_parts),
    // SpamAssassin 4.0.1 keeps the charsets that HTML declares where this function does not look: it never hits.
    look("html_charset_faraway", |_, _| 0.0),
];

/// The locales that are fine; none where all are.
fn locales<'c>(context: &Context<'c>) -> Option<Vec<&'c [u8]>> {
    let named = context.settings.text("ok_locales")?;
    let locales: Vec<&[u8]> = named.split(u8::is_ascii_whitespace).filter(|locale| !locale.is_empty()).collect();
    (!locales.contains(&&b"all"[..])).then_some(locales)
}

/// Whether the header declares such a charset, and the text has as many bytes beyond ASCII as others.
fn of_body(context: &Context<'_>, _: &Arguments<'_>) -> f64 {
    let Some(locales) = locales(context) else { return 0.0 };
    let kind = context.fields.get("Content-Type");
    let declared = eval::declared_charset(&kind);
    if declared.is_none_or(|charset| is_read(charset, &locales)) {
        return 0.0;
    }
    let (mut high, mut low) = (0usize, context.mail.body().len().saturating_sub(1));
    for &byte in context.mail.body().iter().flat_map(|line| line.iter()) {
        if byte.is_ascii() { low += 1 } else { high += 1 }
    }
    truth(low <= high && high > 3)
}

/// Whether an encoded word of the author or the subject is in such a charset.
fn of_header(context: &Context<'_>, _: &Arguments<'_>) -> f64 {
    let Some(locales) = locales(context) else { return 0.0 };
    let fields = ["From:raw", "Subject:raw"].map(|name| context.fields.values(name));
    let mut words = fields.iter().flat_map(|values| values.iter()).flat_map(|field| charsets(field));
    truth(words.any(|charset| !is_read(charset, &locales)))
}

/// The charsets of the encoded words of a field; words do not reach over the end of a line.
fn charsets(field: &[u8]) -> impl Iterator<Item = &[u8]> {
    field.split(|byte| *byte == b'\n').flat_map(|line| {
        let mut rest = line;
        // Where one word is not complete, none behind it on the line is.
        core::iter::from_fn(move || {
            let begun = rest.get(memchr::memmem::find(rest, b"=?")? + 2..)?;
            let mut marks = memchr::memchr_iter(b'?', begun).skip_while(|&at| at == 0);
            let end = marks.find(|&at| begun.get(at + 2) == Some(&b'?'))?;
            let text = &begun[end + 3..];
            rest = &text[memchr::memmem::find(text, b"?=")? + 2..];
            Some(&begun[..end])
        })
    })
}

/// `check_for_mime`: `mime_faraway_charset` asks whether a part declares such a charset, all else the view knows.
fn of_parts(context: &Context<'_>, arguments: &Arguments<'_>) -> f64 {
    if arguments.get(0) != Some(b"mime_faraway_charset") {
        return eval::mime(context.mail, arguments.values);
    }
    let Some(locales) = locales(context) else { return 0.0 };
    truth(eval::part_charsets(context.mail).iter().any(|charset| !is_read(charset, &locales)))
}

/// Charsets that everybody reads: those that are called so, and those whose names begin so.
const EVERYWHERE: [&str; 5] = ["USASCII", "ASCII", "IBM852", "XUNKNOWN", "ISO"];
const EVERYWHERE_BEGINNING: [&str; 8] =
    ["ISO8859", "ISO10646", "UTF", "UCS", "CP125", "WINDOWS", "UNICODE11UTF7", "UNICODE11UTF8"];

const CYRILLIC: &[&str] = &["KOI8R", "KOI8U", "KOI8T", "ISOIR111", "CP1251", "GEORGIANPS", "PT154", "CP866"];

/// The charsets of locales that have some of their own, by the first two letters of the locale.
const OF_LOCALES: [(&[u8], &[&str]); 10] = [
    (
        b"ja",
        &[
            "EUCJP",
            "JISX020119760",
            "JISX020819830",
            "JISX020819900",
            "JISX020819970",
            "JISX021219900",
            "JISX021320001",
            "JISX021320002",
            "SHIFT_JIS",
            "SHIFTJIS",
            "ISO2022JP",
            "SJIS",
            "JIS7",
            "JISX0201",
            "JISX0208",
            "JISX0212",
        ],
    ),
    (b"ko", &["EUCKR", "KSC56011987"]),
    (b"ru", CYRILLIC),
    (b"ka", CYRILLIC),
    (b"tg", CYRILLIC),
    (b"be", CYRILLIC),
    (b"uk", CYRILLIC),
    (b"bg", CYRILLIC),
    (b"th", &["TIS620"]),
    (b"zh", &["GB1988", "GB2312", "GB231219800", "GB18030", "GBK", "BIG5HKSCS", "BIG5", "EUCTW", "ISO2022CN"]),
];

/// Whether people of one of these locales read a charset.
fn is_read(charset: &[u8], locales: &[&[u8]]) -> bool {
    let letters = charset.iter().filter(|byte| byte.is_ascii_alphanumeric());
    let name: String = letters.map(|&byte| char::from(byte.to_ascii_uppercase())).collect();
    // What quoted-printable leaves of `=`.
    let name = name.strip_prefix("3D").unwrap_or(&name);
    EVERYWHERE.contains(&name)
        || EVERYWHERE_BEGINNING.iter().any(|beginning| name.starts_with(beginning))
        || OF_LOCALES
            .iter()
            .any(|(locale, names)| names.contains(&name) && locales.iter().any(|own| own.starts_with(locale)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_charsets_are_those_of_their_locale() {
        for (charset, locales, expected) in [
            ("UTF-8", "en", true),
            ("3Dutf-8", "en", true),
            ("windows-1251", "en", true),
            ("koi8-r", "en", false),
            ("koi8-r", "en ru", true),
            ("CP866", "bg", true),
            ("gb2312", "zh_TW.Big5", true),
            ("Shift_JIS", "zh", false),
            ("euc-kr", "ko", true),
            ("x-nothing", "en ja ko ru th zh", false),
            ("", "en", false),
        ] {
            let named: Vec<&[u8]> = locales.split(' ').map(str::as_bytes).collect();
            assert_eq!(is_read(charset.as_bytes(), &named), expected, "{charset} {locales}");
        }
    }

    #[test]
    fn encoded_words_tell_their_charset() {
        let found = |field: &'static str| -> Vec<&str> {
            charsets(field.as_bytes()).map(|charset| core::str::from_utf8(charset).unwrap()).collect()
        };
        assert_eq!(found("a =?koi8-r?B?x?= b =?utf-8?q?y?="), ["koi8-r", "utf-8"]);
        assert_eq!(found("=?a?B?=?b?Q?x?="), ["a"]);
        assert_eq!(found("=?koi8-r?Base?Q?x?= =?x"), ["koi8-r?Base"]);
        assert_eq!(found("=?a\n?B?x?="), [""; 0]);
    }
}
