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
}

impl Text {
    /// Starts after the blank that a page begins with.
    pub fn new() -> Text {
        Text { is_in_tag: false, is_behind_blank: true }
    }

    /// Takes a piece of a page, and folds it. No other byte is folded to `<`, and `>` is folded to a blank.
    pub fn feed(&mut self, bytes: &[u8], fold: &Fold, into: &mut Vec<u8>) {
        let mut rest = bytes;
        loop {
            if self.is_in_tag {
                let Some(end) = memchr(b'>', rest) else { return };
                (self.is_in_tag, rest) = (false, &rest[end..]);
            }
            let Some(end) = memchr(b'<', rest) else { return self.show(rest, fold, into) };
            self.show(&rest[..end], fold, into);
            (self.is_in_tag, rest) = (true, &rest[end + 1..]);
        }
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

/// Text of `<title>` and of `<meta>` tags.
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
}

impl Head {
    /// Takes a piece of a page, and folds it.
    pub fn feed(&mut self, bytes: &[u8], fold: &Fold, into: &mut Vec<u8>) {
        for &byte in bytes {
            let byte = fold[usize::from(byte)];
            match (self.state, byte) {
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
        if self.name[..self.count] == *b"meta " {
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
            pieces.iter().for_each(|piece| text.feed(piece, &fold(), &mut out));
            out
        };
        assert_eq!(all_cuts("a<b>  c<<d>e >f<g", run), "a c e f");
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
    }
}
