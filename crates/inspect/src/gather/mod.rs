//! The text of an object as a reader sees it, for an index of mails: its terms, or whether a text is in it.
//!
//! Text in its charset (UTF-8 or Windows-1252 where none is declared); pages and XML without their tags, with what attributes say of
//! places and titles; Rich Text without its commands; of PDF what its pages write in strings of one byte a character. Names of
//! files and the header fields of parts count as text.
//!
//! Left out: text of PDF in fonts that number their characters, of Office's binary files, in pictures. Known wrongs: of a header
//! field the first 64 KiB; what stands in the clear in or behind an encoded part.
//!
//! Bounds: a line of [`LINE_BYTES_MAX`] that is not decoded yet, [`TERMS_BYTES`] of terms that are not reported yet.

mod page;
mod pdf;
mod rtf;

use std::borrow::Cow;
use std::collections::HashSet;

use flow::{Out, Sought};
use index::{Cutter, lowered};
use stream::FileType;
use text::charset::Charset;
use text::encoding::Encoding;

use page::Page;
use pdf::PdfPage;
use rtf::Rtf;

/// A longer line is decoded in pieces.
const LINE_BYTES_MAX: usize = 16 << 10;

/// Terms that are reported together, in bytes.
const TERMS_BYTES: usize = 16 << 10;

/// Reads one text.
#[derive(Debug)]
pub(crate) struct Gather {
    notation: Notation,
    /// The encoding that is declared; one of UTF-16 does not count, since its text is read when it is UTF-8.
    encoding: Option<Encoding>,
    /// Bytes of the line so far.
    line: Vec<u8>,
    sink: Sink,
}

/// How text is written down.
#[derive(Debug)]
enum Notation {
    Plain,
    Page(Box<Page>),
    Rtf(Box<Rtf>),
    Pdf(Box<PdfPage>),
}

/// Where text goes.
#[derive(Debug)]
pub(super) struct Sink {
    aim: Aim,
}

#[derive(Debug)]
enum Aim {
    Terms {
        cutter: Cutter,
        found: HashSet<Box<str>>,
        bytes: usize,
    },
    Phrase {
        wanted: String,
        /// The end of what was read, in which it may begin.
        kept: String,
        is_present: bool,
    },
}

/// Facts about an object whose text may be read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claim<'a> {
    /// Type by content.
    pub file_type: FileType,
    /// Type of its container.
    pub container: Option<FileType>,
    /// Whether it is declared to be text, or a part of a mail that is declared to be nothing.
    pub is_declared: bool,
    /// Whether it is declared to be a page.
    pub is_page: bool,
    pub charset: Option<&'a str>,
    pub head: &'a [u8],
}

impl Gather {
    /// Readers of an object: by its content, and by its declaration as text.
    pub fn readers(sought: &Sought, claim: Claim<'_>) -> impl Iterator<Item = Gather> {
        let Claim { file_type, container, is_declared, is_page, charset, head } = claim;
        let by_content = match file_type {
            FileType::Text | FileType::Binary if container == Some(FileType::Pdf) && pdf::is_page(head) => {
                Some(Notation::Pdf(Box::default()))
            }
            FileType::Text if is_page => Some(Notation::Page(Box::new(Page::new(false)))),
            FileType::Text => Some(Notation::Plain),
            FileType::Html => Some(Notation::Page(Box::new(Page::new(false)))),
            FileType::Xml => Some(Notation::Page(Box::new(Page::new(true)))),
            FileType::Rtf => Some(Notation::Rtf(Box::default())),
            _ => None,
        };
        let is_wide = charset.is_some_and(|charset| charset.starts_with("utf-16"))
            || head.starts_with(&[0xff, 0xfe])
            || head.starts_with(&[0xfe, 0xff]);
        let is_read = file_type == FileType::Text || is_wide;
        let by_claim = (is_declared && !is_read).then(|| match file_type {
            FileType::Html | FileType::Xml => Notation::Plain,
            _ if is_page => Notation::Page(Box::new(Page::new(false))),
            _ => Notation::Plain,
        });
        let label = charset.unwrap_or_default().as_bytes();
        let reader = move |notation| {
            let is_page = matches!(&notation, Notation::Page(page) if !page.is_xml());
            let encoding = Encoding::declared(label, head, is_page).filter(|encoding| !encoding.is_wide());
            Gather { notation, encoding, line: Vec::new(), sink: Sink::new(sought) }
        };
        by_content.into_iter().chain(by_claim).map(reader)
    }

    /// Report of a text that is complete at once.
    pub fn of(sought: &Sought, text: &str) -> Option<Out> {
        let mut sink = Sink::new(sought);
        sink.text(text);
        sink.blank();
        sink.report()
    }

    /// Reads on.
    pub fn read(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = LINE_BYTES_MAX.saturating_sub(self.line.len());
            let within = &bytes[..bytes.len().min(room)];
            let end = within.iter().rposition(|&byte| byte == b'\n').map_or(within.len(), |at| at + 1);
            self.line.extend_from_slice(&bytes[..end]);
            bytes = &bytes[end..];
            if self.line.ends_with(b"\n") {
                self.decode(self.line.len());
            } else if self.line.len() >= LINE_BYTES_MAX {
                self.decode(cut_of(&self.line));
            }
        }
    }

    /// Ends the text.
    pub fn end(&mut self) {
        self.decode(self.line.len());
        self.sink.blank();
    }

    /// Takes the report, if it is long enough or the text has ended.
    pub fn report(&mut self, is_over: bool) -> Option<Out> {
        let is_due = match &self.sink.aim {
            Aim::Terms { bytes, .. } => *bytes >= TERMS_BYTES,
            Aim::Phrase { is_present, .. } => *is_present,
        };
        if is_over || is_due { self.sink.report() } else { None }
    }

    fn decode(&mut self, cut: usize) {
        let lines: Vec<u8> = self.line.drain(..cut).collect();
        // Each by itself: what one is read as depends on no other.
        for line in lines.split_inclusive(|&byte| byte == b'\n') {
            match &mut self.notation {
                Notation::Rtf(rtf) => rtf.read(line, &mut self.sink),
                Notation::Pdf(pdf) => pdf.read(line, &mut self.sink),
                Notation::Page(page) => {
                    let (text, other) = readings(self.encoding, line);
                    page.read(&text, &mut self.sink);
                    other.into_iter().for_each(|other| self.sink.aside(&other));
                }
                Notation::Plain => {
                    let (text, other) = readings(self.encoding, line);
                    self.sink.text(&text);
                    other.into_iter().for_each(|other| self.sink.aside(&other));
                }
            }
        }
    }
}

/// Where a line is cut that is too long: behind a blank, or at least between characters.
fn cut_of(line: &[u8]) -> usize {
    let last = |is: fn(&u8) -> bool| line.iter().rposition(is).map(|at| at + 1);
    // In UTF-8 a character begins with no byte of 10xxxxxx; in other charsets of more bytes ASCII stands alone, mostly.
    let start = line.iter().rposition(|byte| byte & 0xc0 != 0x80).filter(|at| *at > 0);
    last(|byte| byte.is_ascii_whitespace()).or(last(|byte| byte.is_ascii_punctuation())).or(start).unwrap_or(line.len())
}

/// Bytes in their charset; and where the charset may be another, as what they may be besides.
fn readings(encoding: Option<Encoding>, bytes: &[u8]) -> (Cow<'_, str>, Option<Cow<'_, str>>) {
    let (read, is_wrong) = encoding.unwrap_or_default().decode(bytes);
    let other = match (std::str::from_utf8(bytes), encoding) {
        (Ok(text), _) => (!text.is_ascii() && read != text).then_some(text.into()),
        (Err(_), Some(_)) => is_wrong.then(|| Charset::WINDOWS_1252.lossy(bytes).into()),
        (Err(_), None) => {
            let other = String::from_utf8_lossy(bytes);
            let has_more = other.chars().any(|character| !character.is_ascii() && character != '\u{fffd}');
            has_more.then_some(other)
        }
    };
    (read, other)
}

impl Sink {
    fn new(sought: &Sought) -> Sink {
        let aim = match sought {
            Sought::Terms => Aim::Terms { cutter: Cutter::default(), found: HashSet::new(), bytes: 0 },
            Sought::Phrase(text) => {
                let mut wanted = String::new();
                append(&mut wanted, text);
                Aim::Phrase { wanted, kept: String::new(), is_present: false }
            }
        };
        Sink { aim }
    }

    /// Text that follows upon what was there before.
    pub fn text(&mut self, text: &str) {
        match &mut self.aim {
            Aim::Terms { cutter, found, bytes } => cutter.read(text, &mut |term| add(found, bytes, term)),
            Aim::Phrase { wanted, kept, is_present } => {
                append(kept, text);
                *is_present |= !wanted.is_empty() && kept.contains(&*wanted);
                let mut cut = kept.len().saturating_sub(wanted.len());
                while !kept.is_char_boundary(cut) {
                    cut -= 1;
                }
                kept.drain(..cut);
            }
        }
    }

    /// A word ends here.
    pub fn blank(&mut self) {
        match &mut self.aim {
            Aim::Terms { cutter, found, bytes } => cutter.end(&mut |term| add(found, bytes, term)),
            Aim::Phrase { .. } => self.text(" "),
        }
    }

    /// Text that stands apart from what was there before and from what follows.
    pub fn aside(&mut self, text: &str) {
        match &mut self.aim {
            Aim::Terms { found, bytes, .. } => {
                let mut cutter = Cutter::default();
                cutter.read(text, &mut |term| add(found, bytes, term));
                cutter.end(&mut |term| add(found, bytes, term));
            }
            // What a phrase goes on with stands behind it.
            Aim::Phrase { wanted, is_present, .. } => {
                let mut apart = String::new();
                append(&mut apart, text);
                *is_present |= !wanted.is_empty() && apart.contains(&*wanted);
            }
        }
    }

    fn report(&mut self) -> Option<Out> {
        match &mut self.aim {
            Aim::Terms { found, bytes, .. } if !found.is_empty() => {
                let mut terms = String::with_capacity(*bytes);
                for term in found.drain() {
                    terms.push_str(&term);
                    terms.push('\n');
                }
                *bytes = 0;
                Some(Out::Terms(terms.into()))
            }
            Aim::Phrase { is_present, .. } => std::mem::take(is_present).then_some(Out::Present),
            Aim::Terms { .. } => None,
        }
    }
}

fn add(found: &mut HashSet<Box<str>>, bytes: &mut usize, term: &str) {
    if !found.contains(term) {
        *bytes += term.len() + 1;
        found.insert(term.into());
    }
}

/// Appends a text in lower case, with a blank for as many as there are.
fn append(to: &mut String, text: &str) {
    for character in lowered(text).chars() {
        match character.is_whitespace() {
            true if to.ends_with(' ') => {}
            true => to.push(' '),
            false => to.push(character),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gather(sought: &Sought, file_type: FileType, charset: Option<&str>, text: &[u8], cut: usize) -> Vec<Out> {
        let container = Some(FileType::Pdf).filter(|_| text.starts_with(b"BT"));
        let claim = Claim { file_type, container, is_declared: false, is_page: false, charset, head: text };
        let mut gather = Gather::readers(sought, claim).next().unwrap();
        text.chunks(cut).for_each(|piece| gather.read(piece));
        gather.end();
        std::iter::from_fn(|| gather.report(true)).collect()
    }

    fn terms(file_type: FileType, charset: Option<&str>, text: &[u8]) -> Vec<String> {
        let told = |cut| {
            let told = gather(&Sought::Terms, file_type, charset, text, cut);
            let [Out::Terms(terms)] = &told[..] else { panic!("{told:?}") };
            let mut terms: Vec<String> = terms.lines().map(str::to_owned).collect();
            terms.sort_unstable();
            terms
        };
        let whole = told(usize::MAX);
        (1..20).for_each(|cut| assert_eq!(told(cut), whole, "{cut}"));
        whole
    }

    fn holds(file_type: FileType, text: &str, wanted: &str) -> bool {
        let sought = Sought::Phrase(wanted.into());
        let whole = gather(&sought, file_type, None, text.as_bytes(), usize::MAX);
        (1..20).for_each(|cut| assert_eq!(gather(&sought, file_type, None, text.as_bytes(), cut), whole, "{cut}"));
        whole == [Out::Present]
    }

    #[test]
    fn texts_are_read_in_their_charset() {
        assert_eq!(terms(FileType::Text, None, b"Gr\xfc\xdfe an Alle\r\n"), ["alle", "an", "grüße"]);
        assert_eq!(terms(FileType::Text, None, "Grüße".as_bytes()), ["grüße"]);
        assert_eq!(terms(FileType::Text, Some("koi8-r"), b"\xf0\xd2\xc9\xd7\xc5\xd4"), ["привет"]);
        assert_eq!(terms(FileType::Text, Some("iso-2022-jp"), b"\x1b$B$\"$$$&\x1b(B x"), ["x", "あいう"]);
        assert_eq!(terms(FileType::Text, Some("iso-8859-1"), b"caf\xe9s \x8cuvre"), ["cafés", "œuvre"]);
        assert_eq!(terms(FileType::Text, Some("gb18030"), b"\xd6\xd0\x81\x40"), ["中丂"]);
        let page = b"<meta charset=windows-1251>\n<p>\xcf\xf0\xe8\xe2\xe5\xf2</p> &checkmark; r&eacutesum&eacute";
        assert_eq!(terms(FileType::Html, None, page), ["résumé", "привет"]);
    }

    #[test]
    fn what_is_labelled_wrongly_is_read_as_what_it_may_be() {
        for charset in ["us-ascii", "iso-8859-1", "koi8-r", "iso-2022-jp", "shift_jis"] {
            let found = terms(FileType::Text, Some(charset), "Grüße".as_bytes());
            assert!(found.contains(&"grüße".to_owned()), "{charset}: {found:?}");
        }
        assert!(terms(FileType::Text, Some("us-ascii"), b"Gr\xfc\xdfe").contains(&"grüße".to_owned()));
        assert!(terms(FileType::Text, None, "Grüße \u{fc}".as_bytes()).contains(&"grüße".to_owned()));
        assert!(terms(FileType::Text, None, b"Gr\xc3\xbc\xc3\x9fe \xff").contains(&"grüße".to_owned()));
        assert!(terms(FileType::Text, Some("utf-7"), b"Gr+APwA3w-e").contains(&"grüße".to_owned()));
        let declared = Claim {
            file_type: FileType::Image,
            container: None,
            is_declared: true,
            is_page: false,
            charset: None,
            head: b"GIF89a is old",
        };
        assert_eq!(Gather::readers(&Sought::Terms, declared).count(), 1);
        let page = Claim { is_page: true, ..declared };
        assert!(Gather::readers(&Sought::Terms, page).all(|gather| matches!(gather.notation, Notation::Page(_))));
        assert_eq!(Gather::readers(&Sought::Terms, Claim { file_type: FileType::Html, ..declared }).count(), 2);
        assert_eq!(Gather::readers(&Sought::Terms, Claim { is_declared: false, ..declared }).count(), 0);
    }

    #[test]
    fn a_long_line_is_cut_between_characters() {
        for (before, word) in
            [("a".repeat(16_380), "Müller"), ("x ".repeat(8_190), "Grüße"), ("é".repeat(8_191) + "x", "-Müller")]
        {
            let text = format!("{before}{word} behind");
            let found = terms(FileType::Text, None, text.as_bytes());
            let wanted = ["müller", "grüße"].iter().any(|word| found.iter().any(|term| term.contains(word)));
            assert!(wanted && found.contains(&"behind".to_owned()), "{word}");
        }
    }

    #[test]
    fn pages_are_read_without_their_tags() {
        let page = b"<html><title>On&eacute;</title><p>in<b>voice</b></p><div>two<br>three</div><script>no()</script>\
                     <a href='https://b.example/x?y=1' class=c title=tip>li&#110;k</a><!-- never --><joe@f.test>";
        let wanted = [
            "1", "b", "example", "f", "https", "invoice", "joe", "link", "oné", "test", "three", "tip", "two", "x", "y",
        ];
        assert_eq!(terms(FileType::Html, None, page), wanted);
        assert!(holds(FileType::Html, "<p>An <b>in</b>voice\n  of&nbsp;May", "an invoice of may"));
        assert!(!holds(FileType::Html, "<p>An in<p>voice", "invoice"));
    }

    #[test]
    fn documents_are_read_without_their_markup() {
        let word = b"<?xml version='1.0'?><w:document><w:p><w:r><w:t>Inv</w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t>oice</w:t></w:r></w:p>\
                     <w:p><w:r><w:t>two</w:t><w:br/><w:t>three</w:t></w:r></w:p></w:document>";
        assert_eq!(terms(FileType::Xml, None, word), ["invoice", "three", "two"]);
        let sheet = b"<sst><si><t>one</t></si><si><r><t>tw</t></r><r><t>o</t></r></si></sst>";
        assert_eq!(terms(FileType::Xml, None, sheet), ["one", "two"]);
        let rtf = b"{\\rtf1\\ansi{\\fonttbl{\\f0 Arial;}}{\\*\\generator x;}\\pard In{\\b vo}ice f\\'fcr \\u8364?\\u1055?\\par next\\tab last\\\nline}";
        assert_eq!(terms(FileType::Rtf, None, rtf), ["für", "invoice", "last", "line", "next", "п"]);
    }

    #[test]
    fn pages_of_pdf_are_read() {
        let page = b"BT /F1 12 Tf 72 712 Td (Hello \\(W\\157rld\\)) Tj 0 -14 Td [(in)20(v)-30(oice)-333(num)5(ber)]TJ <4142> Tj ET";
        assert_eq!(terms(FileType::Text, None, page), ["ab", "hello", "invoice", "number", "world"]);
    }

    #[test]
    fn a_phrase_is_found_over_line_ends_and_in_any_case() {
        assert!(holds(FileType::Text, "one TWO\r\n  Three", "two three"));
        assert!(holds(FileType::Text, "aab", "ab") && !holds(FileType::Text, "one two", "onetwo"));
        assert!(holds(FileType::Text, "ÄÖ", "äö") && !holds(FileType::Text, "x", ""));
        assert_eq!(Gather::of(&Sought::Phrase("voice 4".into()), "Invoice  4.pdf"), Some(Out::Present));
    }
}
