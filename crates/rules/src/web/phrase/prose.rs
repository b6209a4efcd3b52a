//! A page as its readers see it: characters in UTF-8 and lower case, references decoded, invisible characters left out.
//!
//! Bytes of ASCII without a reference are handed on as they are. Bytes that are no UTF-8 stay, so that phrases in the encoding of an
//! undeclared page occur. No more is kept than the beginning of a reference or of a character.

use memchr::memchr2;
use text::{entities, references};

/// The longest reference that is decoded.
const REFERENCE_BYTES_MAX: usize = 34;

/// The filter of one page.
#[derive(Debug, Default)]
pub(super) struct Prose {
    keeps_case: bool,
    /// A reference or a character that is not over.
    kept: Vec<u8>,
    shown: Vec<u8>,
}

impl Prose {
    /// A filter; with `keeps_case` letters stay as they are.
    pub fn new(keeps_case: bool) -> Prose {
        Prose { keeps_case, ..Prose::default() }
    }

    /// Filters a whole text.
    pub fn whole(text: &[u8], keeps_case: bool) -> Vec<u8> {
        let mut prose = Prose::new(keeps_case);
        prose.run(text, true);
        prose.shown
    }

    /// Filters the next bytes.
    pub fn feed<'a>(&'a mut self, bytes: &'a [u8]) -> &'a [u8] {
        if self.kept.is_empty() && plain(bytes) == bytes.len() {
            return bytes;
        }
        self.shown.clear();
        let mut input = std::mem::take(&mut self.kept);
        if input.is_empty() {
            self.run(bytes, false);
        } else {
            input.extend(bytes);
            self.run(&input, false);
        }
        &self.shown
    }

    /// Hands on what was kept.
    pub fn finish(&mut self) -> &[u8] {
        self.shown.clear();
        let input = std::mem::take(&mut self.kept);
        self.run(&input, true);
        &self.shown
    }

    fn run(&mut self, input: &[u8], is_last: bool) {
        let mut rest = input;
        loop {
            let (before, behind) = rest.split_at(plain(rest));
            self.shown.extend(before);
            let taken = match behind.first() {
                None => return,
                Some(b'&') => self.reference(behind, is_last),
                // Browsers leave it out.
                Some(0) => Some(1),
                Some(_) => self.character(behind, is_last),
            };
            match taken {
                Some(taken) => rest = &behind[taken..],
                None => return self.kept.extend(behind),
            }
        }
    }

    /// Reads a reference; `None` if it may go on in the next bytes.
    fn reference(&mut self, text: &[u8], is_last: bool) -> Option<usize> {
        let behind = &text[1..text.len().min(REFERENCE_BYTES_MAX)];
        let is_part = |(at, byte): &(usize, &u8)| byte.is_ascii_alphanumeric() || *at == 0 && **byte == b'#';
        let length = behind.iter().enumerate().take_while(is_part).count();
        if length == behind.len() && text.len() < REFERENCE_BYTES_MAX && !is_last {
            return None;
        }
        let (name, rest) = behind.split_at(length);
        let is_closed = rest.first() == Some(&b';');
        // The digits of a number end without a mark, too.
        let length = match name {
            _ if is_closed => length,
            [b'#', b'x' | b'X', digits @ ..] => 2 + digits.iter().take_while(|byte| byte.is_ascii_hexdigit()).count(),
            [b'#', digits @ ..] => 1 + digits.iter().take_while(|byte| byte.is_ascii_digit()).count(),
            _ => references::unclosed(name),
        };
        let character = match &name[..length] {
            b"ZeroWidthSpace"
            | b"NegativeThinSpace"
            | b"NegativeMediumSpace"
            | b"NegativeThickSpace"
            | b"NegativeVeryThinSpace" => Some('\u{200b}'),
            b"NoBreak" => Some('\u{2060}'),
            known => entities::character(known),
        };
        match character {
            // The character is text: it begins and ends no tag.
            Some('<' | '>' | '&') => self.shown.push(b' '),
            Some(character) => self.show(character),
            None => {
                self.shown.push(b'&');
                return Some(1);
            }
        }
        Some(1 + length + usize::from(is_closed))
    }

    /// Reads a character beyond ASCII; `None` if it goes on in the next bytes.
    fn character(&mut self, text: &[u8], is_last: bool) -> Option<usize> {
        let length = match text[0] {
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            _ => 1,
        };
        let is_short = text.len() < length;
        if is_short && !is_last && text[1..].iter().all(|byte| byte & 0xc0 == 0x80) {
            return None;
        }
        let character = text.get(..length).and_then(|bytes| std::str::from_utf8(bytes).ok());
        match character.and_then(|text| text.chars().next()) {
            Some(character) => {
                self.show(character);
                Some(length)
            }
            None => {
                self.shown.push(text[0]);
                Some(1)
            }
        }
    }

    fn show(&mut self, character: char) {
        let mut push = |character: char| self.shown.extend(character.encode_utf8(&mut [0; 4]).as_bytes());
        match character {
            // Soft hyphens, joiners, marks of direction and of selection.
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' => {}
            '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}' => {}
            // Letters without case, and those that are small, by the blocks in which pages are written.
            '\u{df}'..='\u{ff}' | '\u{430}'..='\u{45f}' | '\u{5d0}'..='\u{e7f}' | '\u{3041}'..='\u{d7ff}' => {
                push(character)
            }
            '\u{ff01}'..='\u{ff5e}' => {
                let ascii = (u32::from(character) - 0xfee0) as u8;
                self.shown.push(if self.keeps_case { ascii } else { ascii.to_ascii_lowercase() });
            }
            _ if character.is_whitespace() => self.shown.push(b' '),
            _ if self.keeps_case => push(character),
            _ => character.to_lowercase().for_each(push),
        }
    }
}

/// How many bytes stand for themselves.
fn plain(bytes: &[u8]) -> usize {
    let end = memchr2(b'&', 0, bytes).unwrap_or(bytes.len());
    let before = &bytes[..end];
    if before.is_ascii() { end } else { before.iter().position(|byte| !byte.is_ascii()).unwrap_or(end) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_read_as_its_readers_see_it_however_it_is_cut() {
        for (page, wanted) in [
            ("plain Text", "plain Text"),
            ("&#98;ad&#x50;hrase &#98ad", "badphrase bad"),
            ("ПРИВЕТ&nbsp;МИР \u{c9}\u{e9}", "привет мир éé"),
            ("stra&szlig;e &lt;b&gt; a&amp;b", "straße  b  a b"),
            ("b\u{ad}a\u{200b}d&shy;x ｂＡｄ \u{3000}", "badx bad  "),
            (
                "& &no; &aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; &#",
                "& &no; &aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; &#",
            ),
            ("日本 \u{1f600}", "日本 \u{1f600}"),
            ("b\0a&ZeroWidthSpace;d b&NoBreak;ad b&shyad b\u{e0061}ad &copyx &no", "bad bad bad bad ©x &no"),
        ] {
            let page = page.as_bytes();
            assert_eq!(String::from_utf8_lossy(&Prose::whole(page, false)), wanted);
            let pieces = |size: usize| {
                let (mut prose, mut out) = (Prose::new(false), Vec::new());
                page.chunks(size).for_each(|piece| out.extend(prose.feed(piece)));
                out.extend(prose.finish());
                String::from_utf8(out).expect("text")
            };
            (1..=page.len()).for_each(|size| assert_eq!(pieces(size), wanted, "{size}"));
        }
        assert_eq!(Prose::whole(b"CAF\xc9LAT \xe2\x82", false), b"CAF\xc9LAT \xe2\x82");
        assert_eq!(Prose::whole("\u{c9}".as_bytes(), true), "\u{c9}".as_bytes());
    }
}
