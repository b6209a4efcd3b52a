//! The text of an object as a reader sees it, for an index of mails: its terms, or whether a text is in it.
//!
//! Text in its charset (UTF-8 or Windows-1252 where none is declared); pages and XML without their tags, with what attributes say of
//! places and titles; Rich Text without its commands; of PDF what its pages write in strings of one byte a character. Names of
//! files and the header fields of parts count as text.
//!
//! Left out: text of PDF in fonts that number their characters, of Office's binary files, in pictures. Known wrongs: of a header
//! field the first 1,024 bytes; a charset declared within a page does not count.
//!
//! Bounds: a line of [`LINE_BYTES_MAX`] that is not decoded yet, [`TERMS_BYTES`] of terms that are not reported yet.

mod page;
mod pdf;
mod rtf;

use std::collections::HashSet;

use flow::{Out, Sought};
use index::{Cutter, lowered};
use stream::FileType;
use text::charset::Charset;

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
    charset: Option<Charset>,
    /// What has come of a line.
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

impl Gather {
    /// Of an object of this type in such a container; none if it has no text.
    pub fn new(
        sought: &Sought,
        file_type: FileType,
        container: Option<FileType>,
        charset: Option<&str>,
        head: &[u8],
    ) -> Option<Gather> {
        let notation = match file_type {
            FileType::Text | FileType::Binary if container == Some(FileType::Pdf) && pdf::is_page(head) => {
                Notation::Pdf(Box::default())
            }
            FileType::Text => Notation::Plain,
            FileType::Html => Notation::Page(Box::new(Page::new(false))),
            FileType::Xml => Notation::Page(Box::new(Page::new(true))),
            FileType::Rtf => Notation::Rtf(Box::default()),
            _ => return None,
        };
        let charset = charset.and_then(Charset::find);
        Some(Gather { notation, charset, line: Vec::new(), sink: Sink::new(sought) })
    }

    /// What there is to report of a text that is there at once.
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
            if self.line.ends_with(b"\n") || self.line.len() >= LINE_BYTES_MAX {
                self.decode();
            }
        }
    }

    /// There is no more.
    pub fn end(&mut self) {
        self.decode();
        self.sink.blank();
    }

    /// What there is to report, if it is enough or the text is over.
    pub fn report(&mut self, is_over: bool) -> Option<Out> {
        let is_due = match &self.sink.aim {
            Aim::Terms { bytes, .. } => *bytes >= TERMS_BYTES,
            Aim::Phrase { is_present, .. } => *is_present,
        };
        if is_over || is_due { self.sink.report() } else { None }
    }

    fn decode(&mut self) {
        let line = std::mem::take(&mut self.line);
        match &mut self.notation {
            Notation::Rtf(rtf) => rtf.read(&line, &mut self.sink),
            Notation::Pdf(pdf) => pdf.read(&line, &mut self.sink),
            Notation::Plain => self.sink.text(&decoded(self.charset, &line)),
            Notation::Page(page) => page.read(&decoded(self.charset, &line), &mut self.sink),
        }
    }
}

fn decoded(charset: Option<Charset>, bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    match (std::str::from_utf8(bytes), charset) {
        (Ok(text), _) if bytes.is_ascii() && !bytes.contains(&0x1b) => text.into(),
        (Ok(text), None) => text.into(),
        (Err(_), None) => Charset::WINDOWS_1252.lossy(bytes).into(),
        (_, Some(charset)) => charset.lossy(bytes).into(),
    }
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
        // A phrase goes on behind it.
        if let Aim::Terms { found, bytes, .. } = &mut self.aim {
            let mut cutter = Cutter::default();
            cutter.read(text, &mut |term| add(found, bytes, term));
            cutter.end(&mut |term| add(found, bytes, term));
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
        let mut gather = Gather::new(sought, file_type, container, charset, text).unwrap();
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
    }

    #[test]
    fn pages_are_read_without_their_tags() {
        let page = b"<html><title>On&eacute;</title><p>in<b>voice</b></p><div>two<br>three</div><script>no()</script>\
                     <a href='https://b.example/x?y=1' class=c title=tip>li&#110;k</a><!-- never -->";
        let wanted = ["1", "b", "example", "https", "invoice", "link", "oné", "three", "tip", "two", "x", "y"];
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
