//! HTML as browsers cut it into tags, attributes, text and comments (WHATWG HTML, 13.2.5, tokenisation).
//!
//! ```text
//! <a href="x&amp;y">b</a>   Open a · Attribute href · Value x&amp;y · End · Text b · Close a · End
//! ```
//! A [`Tokeniser`] reads a page piece by piece and holds next to nothing of it: whatever may be long (text, values, comments)
//! is told in pieces, as they came in. Pieces belong together where one begins at the offset at which the other ends. However
//! the page is cut, what the pieces come to is the same.
//!
//! References to characters (`&amp;`) are left as they stand, so that offsets are those of the page;
//! [`reference::decode`] undoes them, where the token says that they count.
//!
//! It builds no tree: what is nested in what, tags that are implied, and which attribute of two with one name counts is its
//! callers' business. Scripts are text within `script`.
//!
//! Bounds: the beginnings of a name and of what may close an element, 300 bytes in all; nothing is allocated.
//!
//! Known wrongs: within SVG and MathML, `style`, `title` and the like are read as those of HTML, and CDATA as a declaration;
//! `<!--` in a script does not keep `</script>` from ending it; `noscript` is read as where no scripts run, as in mail.

mod fuzz;
pub mod reference;

pub use fuzz::fuzz_html;
use memchr::memchr;

/// As much of a name is told.
pub const NAME_BYTES_MAX: usize = 256;

/// A piece of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token<'a> {
    /// A piece of what stands between tags.
    Text {
        /// Where it stands.
        within: Within,
        /// As it stands there.
        bytes: &'a [u8],
    },
    /// A tag that opens an element begins: its name in lower case.
    Open(&'a [u8]),
    /// A tag that closes one.
    Close(&'a [u8]),
    /// An attribute of the tag: its name in lower case.
    Attribute(&'a [u8]),
    /// A piece of the value of the attribute; references count in it.
    Value(&'a [u8]),
    /// The tag is over.
    End {
        /// It ended with `/>`.
        is_closed: bool,
    },
    /// A piece of a comment.
    Comment(&'a [u8]),
    /// A piece of what else stands between `<!`, `<?` or `</` and `>`: a document type, an instruction, nonsense.
    Declaration(&'a [u8]),
}

/// Where text stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Within {
    /// Between tags that count; so do references.
    Page,
    /// In an element of which only its own end is a tag, where references count: `title`, `textarea`.
    Escapable(&'static str),
    /// In an element of which only its own end is a tag, where no references count: `script`, `style` and others.
    Raw(&'static str),
}

impl Within {
    /// The elements whose text is not read for tags.
    const ELEMENTS: [Within; 9] = [
        Within::Escapable("title"),
        Within::Escapable("textarea"),
        Within::Raw("script"),
        Within::Raw("style"),
        Within::Raw("iframe"),
        Within::Raw("noembed"),
        Within::Raw("noframes"),
        Within::Raw("xmp"),
        Within::Raw(PLAINTEXT),
    ];

    /// The name of the element, if it is one of these.
    pub const fn element(self) -> Option<&'static str> {
        match self {
            Within::Page => None,
            Within::Escapable(name) | Within::Raw(name) => Some(name),
        }
    }
}

/// The element that nothing ends.
const PLAINTEXT: &str = "plaintext";

/// As much of what may close an element is held: `</plaintext`.
const HELD_BYTES_MAX: usize = 2 + PLAINTEXT.len();

/// Reads a page.
#[derive(Debug, Clone)]
pub struct Tokeniser {
    state: State,
    /// The offset of the byte that comes next.
    at: u64,
    /// Where the text that comes stands.
    within: Within,
    /// Whether the open tag is an end tag, whose attributes are ignored.
    is_closing: bool,
    /// Where the name, the tag or the attribute began.
    begin: u64,
    name: Name<NAME_BYTES_MAX>,
    /// Bytes that may close the element around the text, as they are in the input.
    held: Name<HELD_BYTES_MAX>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Text,
    /// After `<`.
    Less,
    /// After `</`.
    LessSlash,
    TagName,
    /// In a tag, where an attribute may begin.
    BeforeAttribute,
    AttributeName,
    AfterAttributeName,
    /// After `=`.
    BeforeValue,
    Quoted(u8),
    Bare,
    /// After the quote that ends a value.
    AfterValue,
    /// After a `/` in a tag.
    Slash,
    /// After `<!`, and after `<!-`.
    Exclamation {
        dash: bool,
    },
    Comment(Dashes),
    Declaration,
    /// In what may close the element that the text is within.
    Closing,
}

/// The part of a comment's end that has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dashes {
    /// Nothing; the comment has just begun, where `>` and `->` end it.
    Begun,
    BegunOne,
    None,
    One,
    Two,
    /// `--!`
    Bang,
}

/// The beginning of a name.
#[derive(Debug, Clone, Copy)]
struct Name<const N: usize> {
    bytes: [u8; N],
    length: usize,
}

impl<const N: usize> Name<N> {
    const EMPTY: Name<N> = Name { bytes: [0; N], length: 0 };

    const fn clear(&mut self) {
        self.length = 0;
    }

    fn push(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.length) {
            *place = byte;
            self.length += 1;
        }
    }

    /// Takes a piece of a name in lower case, as much as there is room for.
    fn extend(&mut self, piece: &[u8]) {
        let room = &mut self.bytes[self.length..];
        let taken = piece.len().min(room.len());
        room[..taken].copy_from_slice(&piece[..taken]);
        room[..taken].make_ascii_lowercase();
        self.length += taken;
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl Default for Tokeniser {
    fn default() -> Tokeniser {
        Tokeniser::new()
    }
}

impl Tokeniser {
    /// A reader of a page from its beginning.
    pub const fn new() -> Tokeniser {
        Tokeniser {
            state: State::Text,
            at: 0,
            within: Within::Page,
            is_closing: false,
            begin: 0,
            name: Name::EMPTY,
            held: Name::EMPTY,
        }
    }

    /// Reads on; tells each token with the offset in the page at which it begins.
    pub fn read(&mut self, input: &[u8], tell: &mut impl FnMut(u64, Token<'_>)) {
        let mut rest = input;
        while let Some((&byte, behind)) = rest.split_first() {
            let run = self.run(rest);
            if run > 0 {
                match self.state {
                    State::TagName | State::AttributeName => self.name.extend(&rest[..run]),
                    _ => self.piece(self.at, &rest[..run], tell),
                }
                self.at += run as u64;
                rest = &rest[run..];
            } else if self.byte(byte, tell) {
                self.at += 1;
                rest = behind;
            }
        }
    }

    /// The page is over. What was begun is text, if no tag had begun by then; a tag that was is over without an
    /// [`End`](Token::End).
    pub fn end(&mut self, tell: &mut impl FnMut(u64, Token<'_>)) {
        match self.state {
            State::Less => self.piece_before(b"<", State::Text, tell),
            State::LessSlash => self.piece_before(b"</", State::Text, tell),
            State::Closing => self.not_closed(tell),
            _ => {}
        }
        self.state = State::Text;
    }

    /// How many of the next bytes belong to a piece, or to a name, whatever comes behind them.
    fn run(&self, bytes: &[u8]) -> usize {
        let stop = match self.state {
            State::Text if self.within == Within::Raw(PLAINTEXT) => None,
            State::Text => memchr(b'<', bytes),
            State::Comment(Dashes::None) => memchr(b'-', bytes),
            State::Declaration => memchr(b'>', bytes),
            State::Quoted(quote) => memchr(quote, bytes),
            State::Bare => bytes.iter().position(|&byte| is_blank(byte) || byte == b'>'),
            State::TagName => bytes.iter().position(|&byte| ends_name(byte)),
            State::AttributeName => bytes.iter().position(|&byte| ends_name(byte) || byte == b'='),
            _ => Some(0),
        };
        stop.unwrap_or(bytes.len())
    }

    /// Tells a piece of what the state is about.
    fn piece(&self, at: u64, bytes: &[u8], tell: &mut impl FnMut(u64, Token<'_>)) {
        let token = match self.state {
            State::Comment(_) => Token::Comment(bytes),
            State::Declaration => Token::Declaration(bytes),
            State::Quoted(_) | State::Bare if self.is_closing => return,
            State::Quoted(_) | State::Bare => Token::Value(bytes),
            _ => Token::Text { within: self.within, bytes },
        };
        tell(at, token);
    }

    /// Reports bytes that were read before as a piece of `state`.
    fn piece_before(&mut self, bytes: &[u8], state: State, tell: &mut impl FnMut(u64, Token<'_>)) {
        self.state = state;
        self.piece(self.at.saturating_sub(bytes.len() as u64), bytes, tell);
    }

    /// Reads a byte that is no content; whether it was taken. If not, it is read again in another state.
    fn byte(&mut self, byte: u8, tell: &mut impl FnMut(u64, Token<'_>)) -> bool {
        match self.state {
            State::Text => self.less(),
            State::Less => return self.behind_less(byte, tell),
            State::LessSlash => return self.behind_slash(byte),
            State::TagName => {
                self.end_tag_name(tell);
                return false;
            }
            State::AttributeName => {
                self.end_attribute_name(tell);
                return false;
            }
            State::BeforeValue => return self.before_value(byte, tell),
            State::Quoted(_) => self.state = State::AfterValue,
            State::Bare => return self.between(byte, tell),
            State::Slash if byte == b'>' => self.close(true, tell),
            State::Slash => {
                self.state = State::BeforeAttribute;
                return false;
            }
            State::AfterAttributeName if byte == b'=' => self.state = State::BeforeValue,
            State::BeforeAttribute | State::AfterAttributeName | State::AfterValue => return self.between(byte, tell),
            State::Exclamation { dash } => return self.exclamation(dash, byte, tell),
            State::Comment(dashes) => return self.comment(dashes, byte, tell),
            State::Declaration => self.state = State::Text,
            State::Closing => return self.closing(byte, tell),
        }
        true
    }

    /// A `<` in text.
    fn less(&mut self) {
        self.begin = self.at;
        if self.within == Within::Page {
            self.state = State::Less;
            return;
        }
        self.state = State::Closing;
        self.held.clear();
        self.held.push(b'<');
    }

    fn behind_less(&mut self, byte: u8, tell: &mut impl FnMut(u64, Token<'_>)) -> bool {
        match byte {
            b'/' => self.state = State::LessSlash,
            b'!' => self.state = State::Exclamation { dash: false },
            b'?' => {
                self.state = State::Declaration;
                return false;
            }
            _ if byte.is_ascii_alphabetic() => {
                self.tag(false);
                return false;
            }
            _ => {
                self.piece_before(b"<", State::Text, tell);
                return false;
            }
        }
        true
    }

    fn behind_slash(&mut self, byte: u8) -> bool {
        match byte {
            // It is nothing at all.
            b'>' => self.state = State::Text,
            _ if byte.is_ascii_alphabetic() => {
                self.tag(true);
                return false;
            }
            _ => {
                self.state = State::Declaration;
                return false;
            }
        }
        true
    }

    fn tag(&mut self, is_closing: bool) {
        (self.is_closing, self.state) = (is_closing, State::TagName);
        self.name.clear();
    }

    fn end_tag_name(&mut self, tell: &mut impl FnMut(u64, Token<'_>)) {
        let name = self.name.bytes();
        tell(self.begin, if self.is_closing { Token::Close(name) } else { Token::Open(name) });
        let is_named = |within: &&Within| within.element().is_some_and(|element| element.as_bytes() == name);
        self.within = match self.is_closing {
            true => Within::Page,
            false => Within::ELEMENTS.iter().find(is_named).copied().unwrap_or(Within::Page),
        };
        self.state = State::BeforeAttribute;
    }

    /// A byte in a tag, between attributes.
    fn between(&mut self, byte: u8, tell: &mut impl FnMut(u64, Token<'_>)) -> bool {
        match byte {
            b'>' => self.close(false, tell),
            b'/' if self.state != State::Bare => self.state = State::Slash,
            _ if is_blank(byte) => {
                if matches!(self.state, State::Bare | State::AfterValue) {
                    self.state = State::BeforeAttribute;
                }
            }
            _ => {
                (self.begin, self.state) = (self.at, State::AttributeName);
                self.name.clear();
                // Whatever it is, it begins a name.
                self.name.push(byte.to_ascii_lowercase());
            }
        }
        true
    }

    fn end_attribute_name(&mut self, tell: &mut impl FnMut(u64, Token<'_>)) {
        if !self.is_closing {
            tell(self.begin, Token::Attribute(self.name.bytes()));
        }
        self.state = State::AfterAttributeName;
    }

    fn before_value(&mut self, byte: u8, tell: &mut impl FnMut(u64, Token<'_>)) -> bool {
        match byte {
            b'"' | b'\'' => self.state = State::Quoted(byte),
            b'>' => self.close(false, tell),
            _ if is_blank(byte) => {}
            _ => {
                self.state = State::Bare;
                return false;
            }
        }
        true
    }

    /// The `>` of a tag.
    fn close(&mut self, is_closed: bool, tell: &mut impl FnMut(u64, Token<'_>)) {
        self.state = State::Text;
        tell(self.at, Token::End { is_closed });
    }

    fn exclamation(&mut self, dash: bool, byte: u8, tell: &mut impl FnMut(u64, Token<'_>)) -> bool {
        match (dash, byte) {
            (false, b'-') => self.state = State::Exclamation { dash: true },
            (true, b'-') => self.state = State::Comment(Dashes::Begun),
            _ => {
                self.state = State::Declaration;
                if dash {
                    self.piece_before(b"-", State::Declaration, tell);
                }
                return false;
            }
        }
        true
    }

    fn comment(&mut self, dashes: Dashes, byte: u8, tell: &mut impl FnMut(u64, Token<'_>)) -> bool {
        use Dashes::{Bang, Begun, BegunOne, None, One, Two};
        let next = match (dashes, byte) {
            (Begun, b'-') => BegunOne,
            (None, b'-') => One,
            (BegunOne | One, b'-') => Two,
            (Begun | BegunOne | Two | Bang, b'>') => {
                self.state = State::Text;
                return true;
            }
            (Two, b'!') => Bang,
            (Two, b'-') => {
                // The first of three is content.
                self.piece(self.at.saturating_sub(2), b"-", tell);
                Two
            }
            _ => {
                let held: &[u8] = match dashes {
                    Begun | None => b"",
                    BegunOne | One => b"-",
                    Two => b"--",
                    Bang => b"--!",
                };
                if !held.is_empty() {
                    self.piece(self.at.saturating_sub(held.len() as u64), held, tell);
                }
                // Behind `--!` a dash may begin the end once more.
                self.state = State::Comment(None);
                return false;
            }
        };
        self.state = State::Comment(next);
        true
    }

    /// A byte of what may close the element that the text is within.
    fn closing(&mut self, byte: u8, tell: &mut impl FnMut(u64, Token<'_>)) -> bool {
        let name = self.within.element().unwrap_or_default().as_bytes();
        let fits = match self.held.length {
            1 => byte == b'/',
            length => name.get(length - 2) == Some(&byte.to_ascii_lowercase()),
        };
        if fits {
            self.held.push(byte);
            return true;
        }
        if self.held.length == name.len() + 2 && (is_blank(byte) || matches!(byte, b'/' | b'>')) {
            self.tag(true);
            name.iter().for_each(|&letter| self.name.push(letter));
            return false;
        }
        self.not_closed(tell);
        false
    }

    /// Reports the held bytes as text: they did not close the element.
    fn not_closed(&mut self, tell: &mut impl FnMut(u64, Token<'_>)) {
        let held = self.held;
        self.piece_before(held.bytes(), State::Text, tell);
    }
}

const fn ends_name(byte: u8) -> bool {
    is_blank(byte) || matches!(byte, b'/' | b'>')
}

/// White space of HTML; a carriage return is as good as a line feed.
const fn is_blank(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\x0c' | b'\r' | b' ')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The tokens of a page that comes in pieces of `piece` bytes: one line a token, pieces that belong together
    /// joined.
    fn tokens(page: &[u8], piece: usize) -> Vec<String> {
        let mut all: Vec<(u64, u64, String, Vec<u8>)> = Vec::new();
        let mut tell = |at: u64, token: Token<'_>| {
            let (kind, bytes) = match token {
                Token::Text { within: Within::Page, bytes } => ("text".into(), bytes),
                Token::Text { within: Within::Escapable(name), bytes } => (format!("text of {name}"), bytes),
                Token::Text { within: Within::Raw(name), bytes } => (format!("raw of {name}"), bytes),
                Token::Open(name) => ("<".into(), name),
                Token::Close(name) => ("</".into(), name),
                Token::Attribute(name) => ("attribute".into(), name),
                Token::Value(bytes) => ("value".into(), bytes),
                Token::End { is_closed } => (if is_closed { "/>" } else { ">" }.into(), &b""[..]),
                Token::Comment(bytes) => ("comment".into(), bytes),
                Token::Declaration(bytes) => ("declaration".into(), bytes),
            };
            match all.last_mut() {
                Some((_, end, last, joined)) if *last == kind && *end == at && !bytes.is_empty() => {
                    joined.extend_from_slice(bytes);
                    *end += bytes.len() as u64;
                }
                _ => all.push((at, at + bytes.len() as u64, kind, bytes.to_vec())),
            }
        };
        let mut tokeniser = Tokeniser::new();
        page.chunks(piece).for_each(|piece| tokeniser.read(piece, &mut tell));
        tokeniser.end(&mut tell);
        all.iter().map(|(at, _, kind, bytes)| format!("{at} {kind} {}", bytes.escape_ascii())).collect()
    }

    fn assert_tokens(page: &str, wanted: &[&str]) {
        for piece in [1, 2, 3, 1000] {
            assert_eq!(tokens(page.as_bytes(), piece), wanted, "{page} in pieces of {piece}");
        }
    }

    #[test]
    fn a_tag_has_a_name_attributes_and_an_end() {
        assert_tokens(
            r#"a<A HREF="x&amp;y" b=c/ d  =  'e' f / g=>h</a i=j>"#,
            &[
                "0 text a",
                "1 < a",
                "4 attribute href",
                "10 value x&amp;y",
                "19 attribute b",
                "21 value c/",
                "24 attribute d",
                "31 value e",
                "34 attribute f",
                "38 attribute g",
                "40 > ",
                "41 text h",
                "42 </ a",
                "49 > ",
            ],
        );
        assert_tokens("<br/><br / >", &["0 < br", "4 /> ", "5 < br", "11 > "]);
        assert_tokens(r#"<p a="b"c = "">"#, &["0 < p", "3 attribute a", "6 value b", "8 attribute c", "14 > "]);
        assert_tokens("<p =a==b>", &["0 < p", "3 attribute =a", "6 value =b", "8 > "]);
    }

    #[test]
    fn what_begins_no_tag_is_text() {
        assert_tokens("1 < 2 <3 a<", &["0 text 1 < 2 <3 a<"]);
        assert_tokens("a</>b</", &["0 text a", "4 text b</"]);
        assert_tokens("a<b c", &["0 text a", "1 < b"]);
    }

    #[test]
    fn comments_end_where_browsers_end_them() {
        assert_tokens("<!--a-->b", &["4 comment a", "8 text b"]);
        assert_tokens("<!-->a<!--->b<!---->c", &["5 text a", "12 text b", "20 text c"]);
        assert_tokens("<!--a--!>b", &["4 comment a", "9 text b"]);
        assert_tokens("<!--a-b--c--!d---->e", &["4 comment a-b--c--!d--", "19 text e"]);
        assert_tokens("<!--a--!->-->b", &["4 comment a--!->", "13 text b"]);
        assert_tokens("<!-- <b> -- > -->", &["4 comment  <b> -- > "]);
    }

    #[test]
    fn declarations_end_at_the_first_angle() {
        assert_tokens(
            "<!DOCTYPE html \"a>b\"><?xml?><!-a></ b><![CDATA[c]]>",
            &[
                "2 declaration DOCTYPE html \\\"a",
                "18 text b\\\">",
                "22 declaration ?xml?",
                "30 declaration -a",
                "35 declaration  b",
                "40 declaration [CDATA[c]]",
            ],
        );
    }

    #[test]
    fn of_some_elements_only_their_own_end_is_a_tag() {
        assert_tokens(
            "<Script a>if (a<b) '</scripts></b>'</SCRIPT ><b>",
            &[
                "0 < script",
                "8 attribute a",
                "9 > ",
                "10 raw of script if (a<b) \\'</scripts></b>\\'",
                "35 </ script",
                "44 > ",
                "45 < b",
                "47 > ",
            ],
        );
        assert_tokens(
            "<title>a&lt;<b></title/>",
            &["0 < title", "6 > ", "7 text of title a&lt;<b>", "15 </ title", "23 /> "],
        );
        assert_tokens("<style><<</st", &["0 < style", "6 > ", "7 raw of style <<</st"]);
        assert_tokens("<plaintext></plaintext>", &["0 < plaintext", "10 > ", "11 raw of plaintext </plaintext>"]);
    }

    #[test]
    fn a_name_that_is_too_long_is_cut() {
        let page = format!("<{0} {0}=1>", "a".repeat(NAME_BYTES_MAX + 9));
        let name = "a".repeat(NAME_BYTES_MAX);
        let told = tokens(page.as_bytes(), 100);
        assert_eq!(told[..2], [format!("0 < {name}"), format!("{} attribute {name}", NAME_BYTES_MAX + 11)]);
    }

    /// Pages of little else than what tags are made of.
    fn page() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop::sample::select(vec![
            "<", ">", "/", "!", "-", "--", "\"", "'", "=", " ", "\n", "a", "B", "?", "&amp;", "<script", "</script",
            "</style>", "<style>", "<title>", "</title", "<!--", "-->", "\0", "\u{e9}",
        ]);
        prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat().into_bytes())
    }

    proptest! {
        #[test]
        fn however_a_page_is_cut_its_tokens_are_the_same(page in page(), piece in 1..9usize) {
            prop_assert_eq!(tokens(&page, piece), tokens(&page, usize::MAX));
        }

        #[test]
        fn what_is_told_stands_where_it_is_told_to_be(page in page(), piece: u8) {
            fuzz_html(&[&[piece % 9], &page[..]].concat());
        }
    }
}
