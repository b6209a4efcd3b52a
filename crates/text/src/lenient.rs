//! HTML as the reader of mails that SpamAssassin stands on cuts it: Perl's `HTML::Parser`, marked sections on.
//!
//! What is a tag to it is none to a browser and the other way round, and the differences decide which rules hit. A page is
//! held whole; the [`Reader`] may be given more of it, and what is incomplete then is read again together with it. Text is cut
//! where the other reader cuts it, its references undone.
//!
//! ```text
//! a < b <A HREF=x&amp;y>c   Text "a " · Text "< b " · Open a [href: x&y] · Text "c"
//! ```
//!
//! Bounds: time near linear in the page; memory that of the page. Attributes of one tag beyond [`ATTRIBUTES_MAX`] are left out.
//!
//! Known wrongs: marked sections may stand in each other 64 deep, deeper ones are not kept apart.

mod tag;

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use memchr::{memchr, memmem};

use crate::references;
use tag::{bogus, closing, closing_tag, doctype_end, is_blank, is_markup, is_name_first, marked, tag};

/// Names in lower case and values, the first of each name; the value of an attribute without one is its name.
pub type Attributes = Vec<(String, String)>;

/// As many attributes of a tag are told.
pub const ATTRIBUTES_MAX: usize = 1000;
const SECTIONS_MAX: usize = 64;
/// `<a>`
const TAG_BYTES_MIN: usize = 3;

/// A piece of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token<'a> {
    /// A tag that opens an element.
    Open {
        /// Its name in lower case.
        name: &'a str,
        /// Attributes of the tag.
        attributes: Attributes,
    },
    /// A tag that closes an element, or what stands for one.
    Close(&'a str),
    /// Text.
    Text(Cow<'a, str>),
    /// A comment or what counts as one, with what delimits it.
    Comment(&'a str),
    /// A document type, with what delimits it.
    Declaration(&'a str),
}

/// Elements in which only their own end is a tag, and whether references count in them.
const LITERAL: [(&str, bool); 7] = [
    ("script", false),
    ("style", false),
    ("xmp", false),
    ("iframe", false),
    ("plaintext", false),
    ("title", true),
    ("textarea", true),
];

/// A marked section that is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Section {
    /// Its keyword is unknown.
    Unknown,
    Include,
    Rcdata,
    Cdata,
    Ignore,
}

/// Reads a page.
#[derive(Debug, Clone, Default)]
pub struct Reader {
    /// Incomplete input so far.
    rest: String,
    /// The element that only its own end closes, of [`LITERAL`].
    literal: Option<usize>,
    sections: Vec<Section>,
    /// A comment may end with any `>`.
    is_comment_short: bool,
    /// The page ended in a script: references count no more.
    is_raw: bool,
    /// Elements whose end was looked for up to the end of the page in vain, a bit each.
    absent: u8,
    /// Whether the page has ended.
    is_over: bool,
    /// An element that the page's end closed: told before the next tag.
    pending: Option<&'static str>,
}

/// Extent of a piece at a place.
enum Extent {
    /// A piece ends at this offset.
    End(usize),
    /// No piece begins here.
    Nothing,
    /// The piece is incomplete.
    Incomplete,
}

impl Reader {
    /// A reader of a page from its beginning.
    pub fn new() -> Reader {
        Reader::default()
    }

    /// Reads on, and tells what is complete.
    pub fn read(&mut self, more: &str, tell: &mut impl FnMut(Token<'_>)) {
        let page = if self.rest.is_empty() {
            Cow::Borrowed(more)
        } else {
            let mut page = core::mem::take(&mut self.rest);
            page.push_str(more);
            Cow::Owned(page)
        };
        let taken = self.pieces(&page, tell);
        self.rest = page.get(taken..).unwrap_or_default().into();
    }

    /// The page is over: tells what is left of it.
    pub fn end(mut self, tell: &mut impl FnMut(Token<'_>)) {
        let page = core::mem::take(&mut self.rest);
        let mut at = 0;
        (self.is_over, self.absent) = (true, 0);
        while at < page.len() {
            let rest = &page[at..];
            if let Some(literal) = self.literal {
                if !self.end_literal(literal, tell) {
                    break;
                }
            } else if !self.is_comment_short && rest.starts_with("<!--") {
                self.is_comment_short = true;
            } else {
                break;
            }
            at += self.pieces(rest, tell);
        }
        if let Some(rest) = page.get(at..).filter(|rest| !rest.is_empty()) {
            match self.literal.is_none() && is_markup(rest) {
                true => tell(Token::Comment(rest)),
                false => self.text(rest, tell),
            }
        }
        self.close_pending(tell);
    }

    /// The page is over in an element that only its own end closes. Whether the rest is read for tags.
    fn end_literal(&mut self, literal: usize, tell: &mut impl FnMut(Token<'_>)) -> bool {
        let name = LITERAL[literal].0;
        match name {
            "script" | "style" => {
                self.is_raw = true;
                tell(Token::Close(name));
            }
            "title" => self.pending = Some(name),
            _ => return false,
        }
        self.literal = None;
        true
    }

    fn section(&self) -> Option<Section> {
        self.sections.last().copied()
    }

    /// In a section in which nothing is a tag.
    fn is_text_only(&self) -> bool {
        matches!(self.section(), Some(Section::Cdata | Section::Rcdata | Section::Ignore))
    }

    fn text(&self, text: &str, tell: &mut impl FnMut(Token<'_>)) {
        if text.is_empty() || self.section() == Some(Section::Ignore) {
            return;
        }
        let counts = match self.literal {
            Some(literal) => LITERAL[literal].1,
            None => !self.is_raw && self.section() != Some(Section::Cdata),
        };
        tell(Token::Text(if counts { references::decode(text, true) } else { Cow::Borrowed(text) }));
    }

    /// Tells the pieces that are complete; how much of the page that is.
    fn pieces(&mut self, page: &str, tell: &mut impl FnMut(Token<'_>)) -> usize {
        // Where the text that was not told yet begins, and where the next markup is looked for.
        let (mut begin, mut at) = (0, 0);
        loop {
            if let Some(literal) = self.literal {
                let name = LITERAL[literal].0;
                if self.is_over && self.absent & 1 << literal != 0 {
                    return begin;
                }
                let Some((text_end, tag_end)) = closing(page, begin, name) else {
                    self.absent |= 1 << literal;
                    return begin;
                };
                self.text(&page[begin..text_end], tell);
                (self.literal, self.is_raw) = (None, false);
                tell(Token::Close(name));
                (begin, at) = (tag_end, tag_end);
                continue;
            }
            if !self.sections.is_empty() && self.section() != Some(Section::Unknown) {
                match self.section_piece(page, begin, at, tell) {
                    Some(next) => {
                        (begin, at) = (next, next);
                        continue;
                    }
                    None if self.is_text_only() => return begin,
                    None => {}
                }
            }
            let end = self.markup(page, at);
            let Some(end) = end else {
                return match self.section() {
                    // Text is held until its section ends.
                    Some(Section::Include) => begin,
                    _ => self.last_words(page, begin, tell),
                };
            };
            if end > begin {
                self.text(&page[begin..end], tell);
                begin = end;
            }
            match self.piece(page, end, tell) {
                Extent::End(next) => (begin, at) = (next, next),
                Extent::Nothing => at = end + 1,
                Extent::Incomplete => return begin,
            }
        }
    }

    /// Where the next `<` stands, within the section that is open.
    fn markup(&self, page: &str, at: usize) -> Option<usize> {
        memchr(b'<', page.as_bytes().get(at..)?).map(|found| at + found)
    }

    /// The offset behind the end of the section, if nothing else that counts in it comes first.
    fn section_piece(
        &mut self,
        page: &str,
        begin: usize,
        at: usize,
        tell: &mut impl FnMut(Token<'_>),
    ) -> Option<usize> {
        let tag = self.markup(page, at);
        // In one that is read for tags, only what stands before the next.
        let within = tag.filter(|_| self.section() == Some(Section::Include)).unwrap_or(page.len());
        let end = at + memmem::find(page.as_bytes().get(at..within)?, b"]]>")?;
        let next = tag.filter(|&next| next < end);
        if let Some(next) = next
            && self.section() != Some(Section::Cdata)
            && let Some((section, behind)) = marked(page, next).filter(|(_, behind)| *behind <= end)
        {
            self.text(&page[begin..next], tell);
            self.open_section(section);
            return Some(behind);
        }
        self.text(&page[begin..end], tell);
        self.sections.pop();
        self.is_raw = false;
        Some(end + 3)
    }

    fn open_section(&mut self, section: Section) {
        let outer = self.section().unwrap_or(Section::Unknown);
        if self.sections.len() < SECTIONS_MAX {
            self.sections.push(section.max(outer));
        }
    }

    /// Text up to the end of what has come so far: its last word may go on.
    fn last_words(&self, page: &str, begin: usize, tell: &mut impl FnMut(Token<'_>)) -> usize {
        let text = &page[begin..];
        let is_word = |at: usize| !is_blank(text.as_bytes()[at]);
        let mut end = text.len();
        while end > 0 && is_word(end - 1) && !is_blank(text.as_bytes()[text.len() - 1]) {
            end -= 1;
        }
        while end > 0 && !is_word(end - 1) {
            end -= 1;
        }
        self.text(&text[..end], tell);
        begin + end
    }

    /// Reads the piece that begins with the `<` at `at`.
    fn piece(&mut self, page: &str, at: usize, tell: &mut impl FnMut(Token<'_>)) -> Extent {
        if page.len() - at < TAG_BYTES_MIN {
            return Extent::Incomplete;
        }
        match page.as_bytes().get(at + 1) {
            None => Extent::Incomplete,
            Some(b'!') => self.declaration(page, at, tell),
            Some(b'?') => self.instruction(page, at, tell),
            Some(b'/') => self.close(page, at, tell),
            Some(byte) if is_name_first(*byte) => self.open(page, at, tell),
            Some(_) => Extent::Nothing,
        }
    }

    /// Skips a processing instruction, without a token.
    fn instruction(&mut self, page: &str, at: usize, tell: &mut impl FnMut(Token<'_>)) -> Extent {
        let Some(end) = memchr(b'>', &page.as_bytes()[at..]) else { return Extent::Incomplete };
        self.close_pending(tell);
        Extent::End(at + end + 1)
    }

    /// Tells the end of what the page's end closed.
    fn close_pending(&mut self, tell: &mut impl FnMut(Token<'_>)) {
        if let Some(pending) = self.pending.take() {
            tell(Token::Close(pending));
        }
    }

    fn open(&mut self, page: &str, at: usize, tell: &mut impl FnMut(Token<'_>)) -> Extent {
        let Some((name, attributes, end)) = tag(page, at + 1) else { return Extent::Incomplete };
        self.close_pending(tell);
        let name = name.to_lowercase();
        self.literal = LITERAL.iter().position(|(literal, _)| *literal == name);
        self.is_raw &= self.literal.is_none();
        tell(Token::Open { name: &name, attributes });
        Extent::End(end)
    }

    fn close(&mut self, page: &str, at: usize, tell: &mut impl FnMut(Token<'_>)) -> Extent {
        let Some((name, end)) = closing_tag(page, at + 2) else { return Extent::Incomplete };
        if name.is_empty() {
            tell(Token::Comment(&page[at..end]));
            return Extent::End(end);
        }
        self.close_pending(tell);
        tell(Token::Close(&name.to_lowercase()));
        Extent::End(end)
    }

    fn declaration(&mut self, page: &str, at: usize, tell: &mut impl FnMut(Token<'_>)) -> Extent {
        let bytes = &page.as_bytes()[at..];
        if bytes.starts_with(b"<!--") {
            return match self.comment(&bytes[4..]) {
                Some(end) => {
                    let end = at + 4 + end;
                    tell(Token::Comment(&page[at..end]));
                    Extent::End(end)
                }
                None => Extent::Incomplete,
            };
        }
        if bytes.len() < 4 && b"<!--".starts_with(bytes) {
            return Extent::Incomplete;
        }
        if bytes.starts_with(b"<![") {
            if let Some((section, end)) = marked(page, at) {
                self.close_pending(tell);
                self.open_section(section);
                return Extent::End(end);
            }
            return bogus(page, at, tell);
        }
        let word = bytes[2..].iter().take_while(|byte| byte.is_ascii_alphanumeric() || b"-._:".contains(byte)).count();
        if !bytes[2..2 + word].eq_ignore_ascii_case(b"doctype") {
            return bogus(page, at, tell);
        }
        match doctype_end(&bytes[2 + word..]) {
            Some(end) => {
                let end = at + 2 + word + end;
                self.close_pending(tell);
                tell(Token::Declaration(&page[at..end]));
                Extent::End(end)
            }
            None => Extent::Incomplete,
        }
    }

    /// Where a comment ends, behind its `<!--`.
    fn comment(&self, bytes: &[u8]) -> Option<usize> {
        if self.is_comment_short {
            return memchr(b'>', bytes).map(|at| at + 1);
        }
        let mut at = 0;
        while let Some(found) = memchr(b'>', &bytes[at..]) {
            let end = at + found;
            let before = bytes[..end].iter().rposition(|&byte| !is_blank(byte)).map_or(0, |last| last + 1);
            if bytes[..before].ends_with(b"--") {
                return Some(end + 1);
            }
            at = end + 1;
        }
        None
    }
}
