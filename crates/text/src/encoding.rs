//! Encodings of texts in mails by their labels, read as browsers and mail readers read them (WHATWG Encoding, 4.2): `iso-8859-1` is
//! Windows-1252, `gb2312` is GB 18030. Rules for spam read labels as Perl does ([`charset`](crate::charset)).
//!
//! More than browsers read: UTF-7, HZ, ISO-2022-KR; UTF-16 without a byte order mark in its likelier order; spellings like `cp949`.
//! `us-ascii` and the absence of a label mean UTF-8 if the text is valid UTF-8, else Windows-1252.
//!
//! Left out: code pages of DOS other than 437, 850, 852, 858 and 866, EBCDIC, UTF-32, VISCII, ISO-2022-CN.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use encoding_rs as tables;

use crate::charset::{single_escapes, spelt_out, utf7};
use crate::code_page::CodePage;
use crate::html::{Token, Tokeniser};
use crate::utf16::Reader;

/// Bytes of a page in which its own declaration is looked for (WHATWG HTML, 13.2.3.2).
const DECLARATION_BYTES_MAX: usize = 1_024;

/// An encoding of texts.
#[derive(Debug, Clone, Copy, Default)]
pub struct Encoding(Table);

#[derive(Debug, Clone, Copy, Default)]
enum Table {
    /// ASCII, and what stands in its place: UTF-8 or Windows-1252.
    #[default]
    Ascii,
    Of(&'static tables::Encoding),
    /// UTF-16 with a label for [`Reader`].
    Wide(&'static str),
    Utf7,
    Dos(CodePage),
    /// Double bytes of a table without their high bits.
    SevenBits(&'static tables::Encoding, &'static [Mark]),
}

/// A sequence in a text of 7 bits.
#[derive(Debug)]
struct Mark {
    bytes: &'static [u8],
    means: &'static [u8],
    /// High bit of the bytes behind it, if it changes that.
    high_bit: Option<u8>,
}

const fn mark(bytes: &'static [u8], means: &'static [u8], high_bit: Option<u8>) -> Mark {
    Mark { bytes, means, high_bit }
}

/// HZ (RFC 1843).
const HZ: [Mark; 4] =
    [mark(b"~{", b"", Some(0x80)), mark(b"~}", b"", Some(0)), mark(b"~~", b"~", None), mark(b"~\n", b"", None)];

/// ISO-2022-KR (RFC 1557).
const KOREAN: [Mark; 3] = [mark(b"\x1b$)C", b"", None), mark(b"\x0e", b"", Some(0x80)), mark(b"\x0f", b"", Some(0))];

/// Labels of ASCII.
const ASCII: [&str; 6] = ["us-ascii", "ascii", "ansi_x3.4-1968", "ansi_x3.4-1986", "iso-646-us", "646"];

/// Names that browsers lack, in lower case, with a label of the same table.
const ALIASES: [(&str, &str); 15] = [
    ("windows-932", "shift_jis"),
    ("shiftjis", "shift_jis"),
    ("windows-936", "gbk"),
    ("ms936", "gbk"),
    ("euc-cn", "gbk"),
    ("gb-18030", "gb18030"),
    ("windows-950", "big5"),
    ("big-5", "big5"),
    ("uhc", "euc-kr"),
    ("euc_kr", "euc-kr"),
    ("koi8r", "koi8-r"),
    ("koi8u", "koi8-u"),
    ("tis620", "tis-620"),
    ("latin-1", "latin1"),
    ("windows-65001", "utf-8"),
];

impl Encoding {
    /// Finds the encoding of a label, without regard to case.
    pub fn find(label: &[u8]) -> Option<Encoding> {
        let label = core::str::from_utf8(label).ok()?.trim().to_ascii_lowercase();
        match label.as_str() {
            "utf-7" | "utf7" | "unicode-1-1-utf-7" => return Some(Encoding(Table::Utf7)),
            "hz-gb-2312" | "hz" => return Some(Encoding(Table::SevenBits(tables::GBK, &HZ))),
            "iso-2022-kr" | "csiso2022kr" => return Some(Encoding(Table::SevenBits(tables::EUC_KR, &KOREAN))),
            label if ASCII.contains(&label) => return Some(Encoding::default()),
            _ => {}
        }
        if let Some(page) = CodePage::find(&label) {
            return Some(Encoding(Table::Dos(page)));
        }
        // `iso-8859-1:1987`
        let spelt = spelt_out(label.split(':').next().unwrap_or_default());
        let alias = ALIASES.iter().find(|(alias, _)| *alias == spelt).map_or(spelt.as_str(), |(_, known)| known);
        let labels = [label.as_str(), alias];
        let table = labels.iter().find_map(|label| tables::Encoding::for_label_no_replacement(label.as_bytes()))?;
        Some(Encoding(match table {
            table if table == tables::UTF_16BE => Table::Wide("utf-16be"),
            table if table != tables::UTF_16LE => Table::Of(table),
            _ if ["utf-16le", "unicodefeff"].contains(&label.as_str()) => Table::Wide("utf-16le"),
            _ => Table::Wide("utf-16"),
        }))
    }

    /// The encoding of a text with a label, which may be empty.
    pub fn of(label: &[u8], text: &[u8], is_page: bool) -> Encoding {
        Encoding::declared(label, text, is_page).unwrap_or_default()
    }

    /// The encoding that a label names or, where that says no more than ASCII, the one that a page declares.
    pub fn declared(label: &[u8], text: &[u8], is_page: bool) -> Option<Encoding> {
        let labelled = Encoding::find(label).filter(|known| !matches!(known.0, Table::Ascii));
        labelled.or_else(|| if is_page { Encoding::of_page(text) } else { None })
    }

    /// The encoding that a page declares by a byte order mark or an element `meta` at its beginning.
    fn of_page(page: &[u8]) -> Option<Encoding> {
        match page {
            [0xef, 0xbb, 0xbf, ..] => return Some(Encoding(Table::Of(tables::UTF_8))),
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => return Some(Encoding(Table::Wide("utf-16"))),
            _ => {}
        }
        let (mut found, mut meta) = (None, None::<Meta>);
        let head = &page[..page.len().min(DECLARATION_BYTES_MAX)];
        Tokeniser::new().read(head, &mut |_, token| match token {
            Token::Open(name) => meta = (name == b"meta").then(Meta::default),
            Token::Attribute(name) => meta.iter_mut().for_each(|meta| meta.begin(name)),
            Token::Value(bytes) => meta.iter_mut().for_each(|meta| meta.value(bytes)),
            Token::End { .. } => found = found.or(meta.take().and_then(|meta| meta.encoding())),
            _ => {}
        });
        found
    }

    /// Whether bytes of ASCII stand for themselves.
    pub fn is_ascii_compatible(self) -> bool {
        match self.0 {
            Table::Ascii | Table::Dos(_) => true,
            Table::Of(table) => table.is_ascii_compatible(),
            Table::Wide(_) | Table::Utf7 | Table::SevenBits(..) => false,
        }
    }

    /// Whether it is UTF-16.
    pub const fn is_wide(self) -> bool {
        matches!(self.0, Table::Wide(_))
    }

    /// Decodes `bytes`, with U+FFFD for invalid ones. Returns also whether the text may be wrong.
    pub fn decode(self, bytes: &[u8]) -> (Cow<'_, str>, bool) {
        let owned = |(text, is_wrong): (Cow<'_, str>, bool)| (Cow::Owned(text.into_owned()), is_wrong);
        match self.0 {
            Table::Ascii => match core::str::from_utf8(bytes) {
                Ok(text) => (text.into(), false),
                Err(_) => (without_mark(tables::WINDOWS_1252, bytes).0, true),
            },
            // A change of the set right behind another is no error where words of a field were joined.
            Table::Of(table) if table == tables::ISO_2022_JP => owned(without_mark(table, &single_escapes(bytes))),
            Table::Of(table) => without_mark(table, bytes),
            Table::Wide(label) => {
                let (mut text, mut reader) = (String::with_capacity(bytes.len()), Reader::new(label));
                bytes.iter().for_each(|&byte| reader.read(byte, &mut |character| text.push(character)));
                text.extend(reader.end());
                let is_wrong = text.contains(char::REPLACEMENT_CHARACTER);
                (text.into(), is_wrong)
            }
            Table::Dos(page) => (page.decode(bytes).into(), false),
            Table::Utf7 => match utf7(bytes) {
                Some(text) => (text.into(), false),
                None => (String::from_utf8_lossy(bytes), true),
            },
            Table::SevenBits(table, marks) => owned(without_mark(table, &with_high_bits(bytes, marks))),
        }
    }
}

/// Decodes a text that comes in pieces.
pub struct Decoder(Pieces);

enum Pieces {
    Dos(CodePage),
    Of(tables::Decoder),
    Wide(Reader),
}

impl Encoding {
    /// A decoder for a text in pieces; `None` for ASCII and UTF-8, which need none, and for the encodings that browsers do not read.
    pub fn decoder(self) -> Option<Decoder> {
        match self.0 {
            Table::Of(table) if table == tables::UTF_8 => None,
            Table::Of(table) => Some(Decoder(Pieces::Of(table.new_decoder_without_bom_handling()))),
            Table::Wide(label) => Some(Decoder(Pieces::Wide(Reader::new(label)))),
            Table::Dos(page) => Some(Decoder(Pieces::Dos(page))),
            Table::Ascii | Table::Utf7 | Table::SevenBits(..) => None,
        }
    }
}

impl Decoder {
    /// Decodes the next bytes, with U+FFFD for invalid ones.
    pub fn read(&mut self, bytes: &[u8], is_last: bool, text: &mut String) {
        match &mut self.0 {
            Pieces::Dos(page) => text.push_str(&page.decode(bytes)),
            Pieces::Of(decoder) => {
                text.reserve(decoder.max_utf8_buffer_length(bytes.len()).unwrap_or(0));
                let _ = decoder.decode_to_string(bytes, text, is_last);
            }
            Pieces::Wide(reader) => {
                bytes.iter().for_each(|&byte| reader.read(byte, &mut |character| text.push(character)));
                text.extend(is_last.then(|| reader.end()).flatten());
            }
        }
    }
}

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Decoder")
    }
}

/// Characters of a table, and whether bytes were invalid.
fn without_mark<'a>(table: &'static tables::Encoding, bytes: &'a [u8]) -> (Cow<'a, str>, bool) {
    table.decode_without_bom_handling(bytes)
}

/// The bytes of 8 bits that a text of 7 bits stands for. A line begins in ASCII.
fn with_high_bits(bytes: &[u8], marks: &[Mark]) -> Vec<u8> {
    let (mut out, mut rest, mut high) = (Vec::with_capacity(bytes.len()), bytes, 0);
    while let Some((&byte, behind)) = rest.split_first() {
        if let Some(mark) = marks.iter().find(|mark| rest.starts_with(mark.bytes)) {
            out.extend_from_slice(mark.means);
            high = mark.high_bit.unwrap_or(high);
            rest = &rest[mark.bytes.len()..];
            continue;
        }
        high = if byte == b'\n' { 0 } else { high };
        out.push(if byte > b' ' { byte | high } else { byte });
        rest = behind;
    }
    out
}

/// The attributes of a `meta` that can declare an encoding.
#[derive(Default)]
struct Meta {
    values: [Vec<u8>; 3],
    /// The one whose value comes.
    at: Option<usize>,
}

impl Meta {
    const NAMES: [&[u8]; 3] = [b"charset", b"http-equiv", b"content"];

    fn begin(&mut self, name: &[u8]) {
        self.at = Meta::NAMES.iter().position(|known| *known == name);
    }

    fn value(&mut self, bytes: &[u8]) {
        let value = self.at.and_then(|at| self.values.get_mut(at));
        value.into_iter().for_each(|value| value.extend_from_slice(bytes));
    }

    fn encoding(&self) -> Option<Encoding> {
        let [charset, kind, content] = &self.values;
        let label: &[u8] = match kind.trim_ascii().eq_ignore_ascii_case(b"content-type") {
            true if charset.is_empty() => parameter(content)?,
            _ => charset,
        };
        // The page was read by bytes so far.
        let wide = |found: Encoding| if found.is_wide() { Encoding(Table::Of(tables::UTF_8)) } else { found };
        Encoding::find(label).map(wide)
    }
}

/// The value behind `charset=` (WHATWG HTML, 2.5.4).
pub fn parameter(content: &[u8]) -> Option<&[u8]> {
    const NAME: &[u8] = b"charset";
    let at = content.windows(NAME.len()).position(|word| word.eq_ignore_ascii_case(NAME))?;
    let value = content[at + NAME.len()..].trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let is_end = |byte: &u8| byte.is_ascii_whitespace() || b";\"'".contains(byte);
    let value = value.strip_prefix(b"\"").or(value.strip_prefix(b"'")).unwrap_or(value);
    Some(value.split(is_end).next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(label: &str, bytes: &[u8]) -> String {
        Encoding::find(label.as_bytes()).unwrap_or_else(|| panic!("{label}")).decode(bytes).0.into_owned()
    }

    #[test]
    fn labels_are_read_as_browsers_read_them() {
        for (labels, bytes, text) in [
            (
                "iso-8859-1 Latin1 latin-1 ISO-8859-1:1987 iso_8859-1:1987 cp1252",
                &b"It\x92s \x80\x81"[..],
                "It’s €\u{81}",
            ),
            ("us-ascii ansi_x3.4-1968 646", b"It\x92s \x80", "It’s €"),
            ("us-ascii utf-8 unicode-1-1-utf-8 cp65001", "é€".as_bytes(), "é€"),
            ("iso-8859-9 latin5", b"\x80\xdd", "€İ"),
            ("tis-620 tis620 iso-8859-11 cp874", b"\x80\xa1", "€ก"),
            ("gb2312 gbk x-gbk cp936 gb18030 GB-18030", b"\xd6\xd0\x81\x40", "中丂"),
            ("gb18030", b"\x81\x39\xee\x39\x94\x39\xda\x33", "㐀💩"),
            ("iso-8859-8 iso-8859-8-i windows-1255", b"\xf9\xec\xe5\xed", "שלום"),
            ("windows-949 cp949 uhc euc-kr ks_c_5601-1987", b"\xc7\xd1\x81\x41", "한갂"),
            ("cp932 ms932 windows-31j shift-jis", b"\x93\xfa\x87\x40", "日①"),
            ("x-mac-cyrillic", b"\x8f\xf0", "Пр"),
            ("utf-16 utf-16le ucs-2", b"a\0\xac\x20", "a€"),
            ("utf-16 utf-16be", b"\0a\x20\xac", "a€"),
            ("utf-16be unicode", b"\xff\xfea\0", "a"),
            ("utf-7", b"a+APY-b", "aöb"),
            ("hz-gb-2312", b"a ~~ ~{VPND~}\n~{VP\nNDb", "a ~ 中文\n中\nNDb"),
            ("iso-2022-kr", b"\x1b$)Ca \x0eGQ\x0fb", "a 한b"),
            ("iso-2022-jp", b"\x1b$B%F\x1b(B\x1b$B%9\x1b(B", "テス"),
            ("cp1251 windows1251 x-cp1251", b"\xcf", "П"),
        ] {
            labels.split(' ').for_each(|label| assert_eq!(decoded(label, bytes), text, "{label}"));
        }
        assert!(
            ["", "x-unknown", "iso-2022-cn", "\u{e4}"].iter().all(|label| Encoding::find(label.as_bytes()).is_none())
        );
    }

    #[test]
    fn a_text_in_pieces_is_decoded_as_a_whole_one() {
        for (label, bytes) in [
            ("shift_jis", &b"a\x93\xfa\x87\x40\x93"[..]),
            ("windows-1251", b"\xcf\xf0"),
            ("utf-16", b"\xff\xfea\0\x3d\xd8\x00\xdeb"),
            ("gb18030", b"\x81\x39\xee\x39\x94\x39\xda\x33"),
        ] {
            let encoding = Encoding::find(label.as_bytes()).expect("an encoding");
            for size in 1..=bytes.len() {
                let (mut decoder, mut text) = (encoding.decoder().expect("a decoder"), String::new());
                bytes.chunks(size).for_each(|piece| decoder.read(piece, false, &mut text));
                decoder.read(b"", true, &mut text);
                assert_eq!(text, encoding.decode(bytes).0, "{label}");
            }
        }
        assert!(
            ["utf-8", "us-ascii"].iter().all(|label| Encoding::find(label.as_bytes()).unwrap().decoder().is_none())
        );
    }

    #[test]
    fn wrong_texts_are_reported() {
        let is_wrong = |label: &str, bytes: &[u8]| Encoding::of(label.as_bytes(), bytes, false).decode(bytes).1;
        assert!(is_wrong("us-ascii", b"\x92") && is_wrong("utf-8", b"\x92") && is_wrong("utf-16", b"a\0b"));
        assert!(!is_wrong("", "é".as_bytes()) && !is_wrong("latin1", b"\x92") && !is_wrong("gb2312", b"\x81\x40"));
    }

    #[test]
    fn a_page_declares_its_encoding() {
        let read = |label: &str, page: &[u8]| Encoding::of(label.as_bytes(), page, true).decode(page).0.into_owned();
        for (meta, byte, wanted) in [
            ("<meta http-equiv=Content-Type content=\"text/html; charset=windows-1251\">", b'\xcf', 'П'),
            ("<META content='text/html;CHARSET = \"koi8-r\" ' HTTP-EQUIV=content-type>", b'\xf0', 'П'),
            ("<!-- <meta charset=x> --><title>t</title><meta charset=koi8-r />", b'\xf0', 'П'),
            ("<meta name=x content='charset=koi8-r'><p charset=koi8-r>", b'\xe9', 'é'),
            ("<meta charset=utf-16>", b'\xe9', '\u{fffd}'),
        ] {
            let page = [meta.as_bytes(), &[byte]].concat();
            assert!(read("", &page).ends_with(wanted), "{meta}");
            assert!(
                read("iso-8859-5", &page).ends_with(Encoding::find(b"iso-8859-5").unwrap().decode(&[byte]).0.as_ref())
            );
        }
        let late = [&[b' '; DECLARATION_BYTES_MAX][..], b"<meta charset=koi8-r>\xe9"].concat();
        assert!(read("", &late).ends_with('é'));
    }
}
