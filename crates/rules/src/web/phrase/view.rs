//! The views of a page in which phrases are looked for: its bytes as they come, without markup, or of title and descriptions alone.
//!
//! Each takes the bytes of a page piece by piece and keeps no more than a few of them.

use memchr::memchr;

use super::fold::Fold;

/// `%41` in a page, decoded where the configuration asks for it.
#[derive(Debug, Clone, Default)]
pub(super) struct Percent {
    kept: [u8; 2],
    count: usize,
}

impl Percent {
    /// Decodes a piece of a page behind what came before.
    pub fn feed(&mut self, bytes: &[u8], into: &mut Vec<u8>) {
        for &byte in bytes {
            match (self.count, byte) {
                (0, b'%') => self.keep(byte),
                (0, _) => into.push(byte),
                (1, _) if byte.is_ascii_hexdigit() => self.keep(byte),
                (2, _) if byte.is_ascii_hexdigit() => {
                    into.push(digit(self.kept[1]) << 4 | digit(byte));
                    self.count = 0;
                }
                _ => {
                    self.finish(into);
                    if byte == b'%' { self.keep(byte) } else { into.push(byte) }
                }
            }
        }
    }

    fn keep(&mut self, byte: u8) {
        self.kept[self.count] = byte;
        self.count += 1;
    }

    /// Hands on what is no sequence.
    pub fn finish(&mut self, into: &mut Vec<u8>) {
        into.extend(&self.kept[..self.count]);
        self.count = 0;
    }
}

fn digit(byte: u8) -> u8 {
    (byte as char).to_digit(16).map_or(0, |digit| digit as u8)
}

/// The text between tags: a tag becomes a blank, and blanks stand alone. What is never closed is left out to the end.
#[derive(Debug, Clone)]
pub(super) struct Text {
    is_in_tag: bool,
    /// The last byte that was shown is a blank.
    is_behind_blank: bool,
    tags: Tags,
    gap: Gap,
    name: Name,
}

/// How the text of tags is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tags {
    /// A tag is a blank.
    Blanks,
    /// A tag is a blank, but the first one within a word is told.
    Watched,
    /// A tag is a blank: one within a word was told.
    Parted,
    /// Tags within a line are nothing.
    Joined,
}

/// Tags between the text that was shown and the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gap {
    None,
    /// Tags that stand within a line: `<b>`, `<span>`, comments.
    Inline,
    /// At least one of them breaks the line, or stands beside a blank.
    Block,
}

impl Text {
    /// Starts after the blank that a page begins with.
    pub fn new() -> Text {
        Text { is_in_tag: false, is_behind_blank: true, tags: Tags::Blanks, gap: Gap::None, name: Name::default() }
    }

    /// The same, but a tag within a word is told.
    pub fn watched() -> Text {
        Text { tags: Tags::Watched, ..Text::new() }
    }

    /// Parts the reading at a tag within a word: goes on with a blank there, and returns the one without it.
    pub fn part(&mut self) -> Text {
        self.tags = Tags::Parted;
        Text { tags: Tags::Joined, ..self.clone() }
    }

    /// Takes a piece of a page, and folds it. No other byte is folded to `<`, and `>` is folded to a blank. Returns how much was taken
    /// up to a tag within a word, if there is the first.
    pub fn feed(&mut self, bytes: &[u8], fold: &Fold, into: &mut Vec<u8>) -> Option<usize> {
        let mut rest = bytes;
        loop {
            if self.is_in_tag {
                let end = memchr(b'>', rest);
                self.name.read(&rest[..end.unwrap_or(rest.len())]);
                rest = self.close(&rest[end?..]);
            }
            let end = memchr(b'<', rest);
            let text = &rest[..end.unwrap_or(rest.len())];
            if let Some(&first) = text.first()
                && self.gap != Gap::None
                && self.is_within_word(fold[usize::from(first)], into)
            {
                return Some(bytes.len() - rest.len());
            }
            self.show(text, fold, into);
            rest = &rest[end? + 1..];
            self.is_in_tag = true;
            self.name = Name { is_over: self.tags == Tags::Blanks || self.is_behind_blank, ..Name::default() };
        }
    }

    /// Ends a tag, with what follows from its `>` on, and returns the text behind it.
    fn close<'b>(&mut self, rest: &'b [u8]) -> &'b [u8] {
        self.is_in_tag = false;
        if self.tags == Tags::Blanks {
            return rest;
        }
        let is_inline = self.gap != Gap::Block && !self.is_behind_blank && self.name.is_inline();
        self.gap = if is_inline { Gap::Inline } else { Gap::Block };
        &rest[1..]
    }

    /// Ends the gap before a byte. Returns whether it is to be told.
    fn is_within_word(&mut self, next: u8, into: &mut Vec<u8>) -> bool {
        let is_within = self.gap == Gap::Inline && !self.is_behind_blank && next != b' ';
        if is_within && self.tags == Tags::Watched {
            return true;
        }
        self.gap = Gap::None;
        if !(self.is_behind_blank || is_within && self.tags == Tags::Joined) {
            into.push(b' ');
            self.is_behind_blank = true;
        }
        false
    }

    /// Shows text outside of tags.
    fn show(&mut self, text: &[u8], fold: &Fold, into: &mut Vec<u8>) {
        let start = into.len();
        into.resize(start + text.len(), 0);
        let (room, mut end) = (&mut into[start..], 0);
        for &byte in text {
            let byte = fold[usize::from(byte)];
            let is_blank = byte == b' ';
            // Written in any case: no processor could guess where words end.
            room[end] = byte;
            end += usize::from(!(is_blank & self.is_behind_blank));
            self.is_behind_blank = is_blank;
        }
        into.truncate(start + end);
    }
}

/// The name of a tag, in lower case.
#[derive(Debug, Clone, Default)]
struct Name {
    bytes: [u8; 10],
    count: usize,
    is_over: bool,
}

impl Name {
    fn read(&mut self, bytes: &[u8]) {
        let mut bytes = bytes.iter();
        while !self.is_over
            && let Some(&byte) = bytes.next()
        {
            match self.bytes.get_mut(self.count) {
                _ if byte == b'/' && self.count == 0 => {}
                Some(room) if byte.is_ascii_alphanumeric() => {
                    *room = byte.to_ascii_lowercase();
                    self.count += 1;
                }
                // No name of a block is so long.
                None if byte.is_ascii_alphanumeric() => (self.count, self.is_over) = (0, true),
                _ => self.is_over = true,
            }
        }
    }

    /// Whether the element stands within a line: all but those of [`BLOCKS`].
    fn is_inline(&self) -> bool {
        BLOCKS.binary_search(&&self.bytes[..self.count]).is_err()
    }
}

/// Elements that begin a line, a cell or a box, in order.
const BLOCKS: &[&[u8]] = &[
    b"address",
    b"article",
    b"aside",
    b"blockquote",
    b"body",
    b"br",
    b"button",
    b"caption",
    b"center",
    b"dd",
    b"details",
    b"dialog",
    b"dir",
    b"div",
    b"dl",
    b"dt",
    b"fieldset",
    b"figcaption",
    b"figure",
    b"footer",
    b"form",
    b"frame",
    b"h1",
    b"h2",
    b"h3",
    b"h4",
    b"h5",
    b"h6",
    b"head",
    b"header",
    b"hr",
    b"html",
    b"iframe",
    b"img",
    b"input",
    b"legend",
    b"li",
    b"main",
    b"menu",
    b"meta",
    b"nav",
    b"object",
    b"ol",
    b"optgroup",
    b"option",
    b"p",
    b"pre",
    b"script",
    b"section",
    b"select",
    b"style",
    b"summary",
    b"table",
    b"tbody",
    b"td",
    b"textarea",
    b"tfoot",
    b"th",
    b"thead",
    b"title",
    b"tr",
    b"ul",
    b"video",
];

/// Text of `<title>` and of `<meta>` tags, up to the end of the head or the beginning of the body.
#[derive(Debug, Clone, Default)]
pub(super) struct Head {
    state: HeadState,
    /// The first bytes of the tag.
    name: [u8; 6],
    count: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum HeadState {
    #[default]
    Outside,
    Name,
    Meta,
    Title,
    /// The head is over.
    Over,
}

impl Head {
    /// Takes a piece of a page, and folds it.
    pub fn feed(&mut self, bytes: &[u8], fold: &Fold, into: &mut Vec<u8>) {
        for &byte in bytes {
            let byte = fold[usize::from(byte)];
            match (self.state, byte) {
                (HeadState::Over, _) => return,
                (HeadState::Meta | HeadState::Title, b'<') | (_, b'<') => {
                    into.push(b' ');
                    self.state = HeadState::Name;
                    self.count = 0;
                }
                (HeadState::Outside, _) => {}
                (HeadState::Name, _) => self.name(byte),
                (HeadState::Meta, b'>') => {
                    into.push(b' ');
                    self.state = HeadState::Outside;
                }
                (HeadState::Meta | HeadState::Title, _) => into.push(byte),
            }
        }
    }

    fn name(&mut self, byte: u8) {
        let is_over = self.count == self.name.len();
        if !is_over {
            self.name[self.count] = byte.to_ascii_lowercase();
            self.count += 1;
        }
        if matches!(&self.name[..self.count], b"/head>" | b"/head " | b"body>" | b"body ") {
            self.state = HeadState::Over;
        } else if self.name[..self.count] == *b"meta " {
            self.state = HeadState::Meta;
        } else if byte == b'>' {
            let is_title = !is_over && self.name[..self.count] == *b"title>";
            self.state = if is_title { HeadState::Title } else { HeadState::Outside };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each byte is its own, but for the end of a tag.
    fn fold() -> Fold {
        std::array::from_fn(|byte| if byte as u8 == b'>' { b' ' } else { byte as u8 })
    }

    /// Checks that the output is the same however the page is cut.
    fn all_cuts(page: &str, run: impl Fn(&[&[u8]]) -> Vec<u8>) -> String {
        let page = page.as_bytes();
        let whole = run(&[page]);
        (0..=page.len()).for_each(|at| assert_eq!(run(&[&page[..at], &page[at..]]), whole, "{at}"));
        String::from_utf8_lossy(&whole).into_owned()
    }

    #[test]
    fn percent_is_decoded_across_pieces() {
        let run = |pieces: &[&[u8]]| {
            let (mut percent, mut out) = (Percent::default(), Vec::new());
            pieces.iter().for_each(|piece| percent.feed(piece, &mut out));
            percent.finish(&mut out);
            out
        };
        assert_eq!(all_cuts("a%41%%42%4g%2", run), "aA%B%4g%2");
    }

    #[test]
    fn tags_are_blanks_and_blanks_stand_alone() {
        let run = |pieces: &[&[u8]]| {
            let (mut text, mut out) = (Text::new(), Vec::new());
            pieces.iter().for_each(|piece| assert_eq!(text.feed(piece, &fold(), &mut out), None));
            out
        };
        assert_eq!(all_cuts("a<b>  c<<d>e >f<g", run), "a c e f");
    }

    #[test]
    fn tags_within_a_word_part_the_reading() {
        assert!(BLOCKS.is_sorted());
        let run = |pieces: &[&[u8]]| {
            let (mut text, mut out) = (Text::watched(), Vec::new());
            let mut joined: Option<(Text, Vec<u8>)> = None;
            for piece in pieces {
                let mut rest = *piece;
                if let Some(at) = text.feed(rest, &fold(), &mut out) {
                    rest = &rest[at..];
                    joined = Some((text.part(), out.clone()));
                    assert_eq!(text.feed(rest, &fold(), &mut out), None);
                }
                if let Some((text, out)) = &mut joined {
                    assert_eq!(text.feed(rest, &fold(), out), None);
                }
            }
            [&out[..], b"|", joined.as_ref().map_or(b"", |(_, out)| out)].concat()
        };
        assert_eq!(all_cuts("<i>a</i> <b>b</b> x, <p>c</p>d<br>e", run), "a b x, c d e|");
        assert_eq!(
            all_cuts("ba<B x>d</b><!-- --><unknownlongname>w <i>o</i></span>r<br>d", run),
            "ba d w o r d|badw or d"
        );
    }

    #[test]
    fn title_and_meta_are_taken_out() {
        let run = |pieces: &[&[u8]]| {
            let (mut head, mut out) = (Head::default(), Vec::new());
            let fold = std::array::from_fn(|byte| byte as u8);
            pieces.iter().for_each(|piece| head.feed(piece, &fold, &mut out));
            out
        };
        assert_eq!(all_cuts("x<title>a</title>y<meta b>z<titles>q<metal c>", run), " a  b   ");
        assert_eq!(all_cuts("<title>a</title></head><body><title>b</title>", run), " a  ");
        assert_eq!(all_cuts("<bodyx><meta a><body b><meta c>", run), "  a  ");
    }
}
