//! Charsets by the names in mails, with the meaning of Perl's `Encode`, for rules over mails;
//! [`encoding`](crate::encoding) reads mails for people.
//!
//! Browsers read more into a name than Perl: here `gb2312` has no characters of GBK, and Windows-1252 has five holes.
//! [`Charset::strict`] refuses invalid bytes, so that its callers may guess; [`Charset::lossy`] replaces them by
//! U+FFFD.
//!
//! Left out: UTF-16 and UTF-32 by name ([`utf16`](crate::utf16) reads UTF-16), EBCDIC, code pages of DOS other than
//! 866, ISO-2022-KR, VISCII. Known wrongs: in the charsets of East Asia a few characters that only one of the two
//! tables has.

use alloc::borrow::{Cow, ToOwned};
use alloc::string::String;
use alloc::vec::Vec;

use encoding_rs as tables;

use crate::base64;

/// A charset.
#[derive(Debug, Clone, Copy)]
pub struct Charset {
    table: Table,
    holes: Holes,
}

#[derive(Debug, Clone, Copy)]
enum Table {
    Ascii,
    Utf8,
    Latin1,
    Utf7,
    /// ISO-2022-JP: a change of the set right behind another undoes it.
    Escaped(&'static tables::Encoding),
    Of(&'static tables::Encoding),
}

/// Differences between the table and Perl's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holes {
    None,
    /// Bytes that decode to control characters are invalid.
    Controls,
    /// Bytes below 0xA0 stand for control characters.
    Low,
    /// Only pairs of bytes from 0xA1 on, of the rows of GB 2312.
    Gb2312,
    /// Only pairs of bytes from 0xA1 on.
    High,
}

/// Names of charsets, in lower case.
const NAMES: [(&str, &tables::Encoding, Holes); 57] = [
    ("windows-1250", tables::WINDOWS_1250, Holes::Controls),
    ("windows-1251", tables::WINDOWS_1251, Holes::Controls),
    ("windows-1252", tables::WINDOWS_1252, Holes::Controls),
    ("windows-1253", tables::WINDOWS_1253, Holes::Controls),
    ("windows-1254", tables::WINDOWS_1254, Holes::Controls),
    ("windows-1255", tables::WINDOWS_1255, Holes::Controls),
    ("windows-1256", tables::WINDOWS_1256, Holes::Controls),
    ("windows-1257", tables::WINDOWS_1257, Holes::Controls),
    ("windows-1258", tables::WINDOWS_1258, Holes::Controls),
    ("windows-874", tables::WINDOWS_874, Holes::Controls),
    ("iso-8859-2", tables::ISO_8859_2, Holes::None),
    ("iso-8859-3", tables::ISO_8859_3, Holes::None),
    ("iso-8859-4", tables::ISO_8859_4, Holes::None),
    ("iso-8859-5", tables::ISO_8859_5, Holes::None),
    ("iso-8859-6", tables::ISO_8859_6, Holes::None),
    ("iso-8859-7", tables::ISO_8859_7, Holes::None),
    ("iso-8859-8", tables::ISO_8859_8, Holes::None),
    ("iso-8859-9", tables::WINDOWS_1254, Holes::Low),
    ("iso-8859-10", tables::ISO_8859_10, Holes::None),
    ("iso-8859-11", tables::WINDOWS_874, Holes::Low),
    ("tis-620", tables::WINDOWS_874, Holes::Low),
    ("tis620", tables::WINDOWS_874, Holes::Low),
    ("iso-8859-13", tables::ISO_8859_13, Holes::None),
    ("iso-8859-14", tables::ISO_8859_14, Holes::None),
    ("iso-8859-15", tables::ISO_8859_15, Holes::None),
    ("iso-8859-16", tables::ISO_8859_16, Holes::None),
    ("latin2", tables::ISO_8859_2, Holes::None),
    ("latin5", tables::WINDOWS_1254, Holes::Low),
    ("greek", tables::ISO_8859_7, Holes::None),
    ("hebrew", tables::ISO_8859_8, Holes::None),
    ("arabic", tables::ISO_8859_6, Holes::None),
    ("cyrillic", tables::ISO_8859_5, Holes::None),
    ("thai", tables::WINDOWS_874, Holes::Low),
    ("koi8-r", tables::KOI8_R, Holes::None),
    ("koi8r", tables::KOI8_R, Holes::None),
    ("koi8-u", tables::KOI8_U, Holes::None),
    ("koi8u", tables::KOI8_U, Holes::None),
    ("cp866", tables::IBM866, Holes::None),
    ("ibm866", tables::IBM866, Holes::None),
    ("macintosh", tables::MACINTOSH, Holes::None),
    ("x-mac-roman", tables::MACINTOSH, Holes::None),
    ("gb2312", tables::GBK, Holes::Gb2312),
    ("gb2312-80", tables::GBK, Holes::Gb2312),
    ("gb_2312-80", tables::GBK, Holes::Gb2312),
    ("euc-cn", tables::GBK, Holes::Gb2312),
    ("hz-gb-2312", tables::GBK, Holes::Gb2312),
    ("gbk", tables::GBK, Holes::None),
    ("cp936", tables::GBK, Holes::None),
    ("big5", tables::BIG5, Holes::None),
    ("big-5", tables::BIG5, Holes::None),
    ("big5-hkscs", tables::BIG5, Holes::None),
    ("euc-kr", tables::EUC_KR, Holes::High),
    ("ks_c_5601-1987", tables::EUC_KR, Holes::None),
    ("cp949", tables::EUC_KR, Holes::None),
    ("euc-jp", tables::EUC_JP, Holes::None),
    ("shift_jis", tables::SHIFT_JIS, Holes::None),
    ("cp932", tables::SHIFT_JIS, Holes::None),
];

/// Aliases.
const ALIASES: [(&str, &str); 9] = [
    ("uhc", "cp949"),
    ("x-euc-jp", "euc-jp"),
    ("x-x-big5", "big5"),
    ("shift-jis", "shift_jis"),
    ("shiftjis", "shift_jis"),
    ("sjis", "shift_jis"),
    ("x-sjis", "shift_jis"),
    ("windows-31j", "cp932"),
    ("euc_kr", "euc-kr"),
];

impl Charset {
    /// UTF-8.
    pub const UTF_8: Charset = Charset { table: Table::Utf8, holes: Holes::None };
    /// Windows-1252.
    pub const WINDOWS_1252: Charset = Charset { table: Table::Of(tables::WINDOWS_1252), holes: Holes::Controls };

    /// Finds the charset of a name, without regard to case.
    pub fn find(name: &str) -> Option<Charset> {
        let name = name.trim_end().to_ascii_lowercase();
        let plain = |table| Some(Charset { table, holes: Holes::None });
        match name.as_str() {
            "us-ascii" | "ascii" | "iso-646-us" | "646" => return plain(Table::Ascii),
            "utf-8" | "utf8" => return plain(Table::Utf8),
            "utf-7" | "utf7" | "unicode-1-1-utf-7" => return plain(Table::Utf7),
            "iso-2022-jp" => return plain(Table::Escaped(tables::ISO_2022_JP)),
            "latin1" | "latin-1" | "iso-8859-1" | "l1" => return plain(Table::Latin1),
            _ if name.starts_with("ansi_x3.4") || name.starts_with("ansi-x3.4") => return plain(Table::Ascii),
            _ => {}
        }
        let name = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, name)| (*name).to_owned());
        let spelt = spelt_out(&name);
        let found = NAMES.iter().find(|(known, ..)| *known == name || *known == spelt);
        match found {
            Some(&(_, table, holes)) => Some(Charset { table: Table::Of(table), holes }),
            None if spelt == "iso-8859-1" => plain(Table::Latin1),
            None => None,
        }
    }

    /// The characters of `bytes`, if they are of this charset from the first to the last.
    pub fn strict(self, bytes: &[u8]) -> Option<String> {
        match self.table {
            Table::Ascii => bytes.is_ascii().then(|| String::from_utf8_lossy(bytes).into_owned()),
            Table::Utf8 => core::str::from_utf8(bytes).ok().map(str::to_owned),
            Table::Latin1 => Some(bytes.iter().copied().map(char::from).collect()),
            Table::Utf7 => utf7(bytes),
            Table::Escaped(table) => {
                let bytes = single_escapes(bytes);
                table.decode_without_bom_handling_and_without_replacement(&bytes).map(Cow::into_owned)
            }
            Table::Of(table) => {
                if !self.holes.allow(bytes) {
                    return None;
                }
                let text = table.decode_without_bom_handling_and_without_replacement(bytes)?.into_owned();
                self.holes.mend(bytes, text)
            }
        }
    }

    /// Decodes `bytes`, with U+FFFD for invalid ones.
    pub fn lossy(self, bytes: &[u8]) -> String {
        match self.table {
            Table::Ascii => {
                bytes.iter().map(|byte| if byte.is_ascii() { char::from(*byte) } else { '\u{fffd}' }).collect()
            }
            Table::Utf8 => String::from_utf8_lossy(bytes).into_owned(),
            Table::Latin1 => bytes.iter().copied().map(char::from).collect(),
            Table::Utf7 => utf7(bytes).unwrap_or_else(|| Charset::lossy(Charset::UTF_8, bytes)),
            Table::Escaped(table) => table.decode_without_bom_handling(&single_escapes(bytes)).0.into_owned(),
            Table::Of(table) => {
                let text = table.decode_without_bom_handling(bytes).0.into_owned();
                match self.holes {
                    Holes::Controls => text.chars().map(|c| if is_control(c) { '\u{fffd}' } else { c }).collect(),
                    Holes::Low => self.holes.mend(bytes, text).unwrap_or_default(),
                    _ => text,
                }
            }
        }
    }
}

/// Text without escapes that another follows at once.
pub(crate) fn single_escapes(bytes: &[u8]) -> Vec<u8> {
    let is_escape = |at: usize| {
        let Some([0x1b, b'(' | b'$', set]) = bytes.get(at..at + 3) else { return false };
        matches!(set, b'B' | b'J' | b'I' | b'@')
    };
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        if is_escape(at) && is_escape(at + 3) {
            at += 3;
            continue;
        }
        out.push(*byte);
        at += 1;
    }
    out
}

/// UTF-7 (RFC 2152).
pub(crate) fn utf7(bytes: &[u8]) -> Option<String> {
    let mut out = String::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        match byte {
            b'+' if behind.first() == Some(&b'-') => {
                out.push('+');
                rest = &behind[1..];
            }
            b'+' => {
                let length = behind.iter().take_while(|byte| base64::value(**byte).is_some()).count();
                out.push_str(&utf16_of(&behind[..length])?);
                rest = behind[length..].strip_prefix(b"-").unwrap_or(&behind[length..]);
            }
            0..=0x7f => out.push(char::from(byte)),
            _ => return None,
        }
    }
    Some(out)
}

/// The characters that a run of Base64 has.
fn utf16_of(digits: &[u8]) -> Option<String> {
    let (mut bits, mut count, mut units) = (0u32, 0, Vec::with_capacity(digits.len() / 2));
    for value in digits.iter().filter_map(|digit| base64::value(*digit)) {
        (bits, count) = (bits << 6 | u32::from(value), count + 6);
        if count >= 16 {
            count -= 16;
            units.push(u16::try_from(bits >> count & 0xffff).ok()?);
        }
    }
    char::decode_utf16(units).collect::<Result<String, _>>().ok()
}

/// `cp1251`, `windows1251` and `iso8859_5`, written as `windows-1251` and `iso-8859-5`.
pub(crate) fn spelt_out(name: &str) -> String {
    for (prefix, whole) in [
        ("x-cp", "windows-"),
        ("cp", "windows-"),
        ("windows-", "windows-"),
        ("windows_", "windows-"),
        ("windows", "windows-"),
        ("iso-8859-", "iso-8859-"),
        ("iso_8859-", "iso-8859-"),
        ("iso8859-", "iso-8859-"),
        ("iso-8859_", "iso-8859-"),
        ("iso8859_", "iso-8859-"),
        ("iso 8859-", "iso-8859-"),
    ] {
        if let Some(number) = name.strip_prefix(prefix)
            && !number.is_empty()
            && number.bytes().all(|byte| byte.is_ascii_digit())
        {
            return alloc::format!("{whole}{number}");
        }
    }
    name.to_owned()
}

fn is_control(character: char) -> bool {
    ('\u{80}'..='\u{9f}').contains(&character)
}

impl Holes {
    /// Returns whether Perl's charset has the characters of these bytes.
    fn allow(self, bytes: &[u8]) -> bool {
        let rows: fn(u8) -> bool = match self {
            Holes::Gb2312 => |row| matches!(row, 0xA1..=0xA9 | 0xB0..=0xF7),
            Holes::High => |row| matches!(row, 0xA1..=0xFE),
            _ => return true,
        };
        let mut rest = bytes;
        while let Some((&lead, behind)) = rest.split_first() {
            rest = behind;
            if lead.is_ascii() {
                continue;
            }
            match behind.split_first() {
                Some((0xA1..=0xFE, behind)) if rows(lead) => rest = behind,
                _ => return false,
            }
        }
        true
    }

    /// The text as Perl has it, if it has one.
    fn mend(self, bytes: &[u8], text: String) -> Option<String> {
        match self {
            Holes::Controls if text.contains(is_control) => None,
            // A byte is a character here.
            Holes::Low => Some(
                bytes
                    .iter()
                    .zip(text.chars())
                    .map(|(&byte, found)| if byte < 0xA0 { char::from(byte) } else { found })
                    .collect(),
            ),
            _ => Some(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Charset;

    fn strict(name: &str, bytes: &[u8]) -> Option<String> {
        Charset::find(name).and_then(|charset| charset.strict(bytes))
    }

    #[test]
    fn what_is_not_of_the_charset_is_refused() {
        assert_eq!(strict("Windows-1252", b"a\x80b").as_deref(), Some("a€b"));
        assert_eq!(strict("cp1252", b"\x81"), None);
        assert_eq!(strict("ISO-8859-9", b"\x80\xdd").as_deref(), Some("\u{80}İ"));
        assert_eq!(strict("gb2312", b"\xc4\xe3").as_deref(), Some("你"));
        assert_eq!(strict("gb2312", b"\x81\x40"), None);
        assert!(strict("gbk", b"\x81\x40").is_some());
        assert_eq!(strict("utf-7", b"a+APY-b+-").as_deref(), Some("aöb+"));
        assert_eq!(strict("iso-2022-jp", b"\x1b$B%F\x1b(B\x1b$B%9\x1b(B").as_deref(), Some("テス"));
        assert_eq!(strict("us-ascii", b"\xff"), None);
        assert_eq!(strict("utf-8", b"\xff"), None);
        assert_eq!(Charset::WINDOWS_1252.lossy(b"\x81\x93"), "\u{fffd}\u{201c}");
        assert!(Charset::find("unknown-8bit").is_none());
    }
}
