//! A writer of pages. Markup is what the program holds as a constant; whatever else comes in is a number or a [`Text`], which is escaped.
//! A text that was made at run time cannot become markup: no [`Piece`] takes it.

use alloc::string::String;
use core::fmt::Write as _;

use crate::language::pieces;

/// A page that is being written.
#[derive(Debug, Default, Clone)]
pub struct Html(String);

/// A thing that is written into a page.
pub trait Piece {
    /// Writes it.
    fn write(self, page: &mut String);
}

/// Text between tags, or in the quotes of an attribute.
#[derive(Debug, Clone, Copy)]
pub struct Text<'a>(pub &'a str);

impl Html {
    /// An empty page with room for so many bytes.
    pub fn with_capacity(bytes: usize) -> Html {
        Html(String::with_capacity(bytes))
    }

    /// Writes a piece.
    pub fn put(&mut self, piece: impl Piece) {
        piece.write(&mut self.0);
    }

    /// Writes a text of the interface with its values, each in a direction of its own.
    pub(crate) fn say(&mut self, text: &'static str, values: &[&str]) {
        pieces(text, |piece| match piece {
            Ok(piece) => self.put(piece),
            Err(number) => put!(self, "<bdi>", Text(values.get(number).copied().unwrap_or_default()), "</bdi>"),
        });
    }

    /// The page.
    pub fn into_string(self) -> String {
        self.0
    }
}

/// Writes pieces, one behind the other.
#[macro_export]
macro_rules! put {
    ($page:expr, $($piece:expr),+ $(,)?) => {{ $($page.put($piece);)+ }};
}
pub use put;

impl Piece for &'static str {
    fn write(self, page: &mut String) {
        page.push_str(self);
    }
}

impl Piece for u32 {
    fn write(self, page: &mut String) {
        let _ = write!(page, "{self}");
    }
}

impl Piece for u64 {
    fn write(self, page: &mut String) {
        let _ = write!(page, "{self}");
    }
}

impl Piece for usize {
    fn write(self, page: &mut String) {
        let _ = write!(page, "{self}");
    }
}

impl Piece for Text<'_> {
    fn write(self, page: &mut String) {
        escape(self.0, page);
    }
}

/// Markup that the sanitiser has written.
pub(crate) struct Safe(pub String);

impl Piece for Safe {
    fn write(self, page: &mut String) {
        page.push_str(&self.0);
    }
}

impl Piece for Html {
    fn write(self, page: &mut String) {
        page.push_str(&self.0);
    }
}

/// Appends text so that it stays text between tags and in quotes. Control characters but tabs and line feeds are left out.
pub(crate) fn escape(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|byte| SPECIAL[usize::from(byte)]) {
        let (plain, special) = rest.split_at(at);
        out.push_str(plain);
        let mut characters = special.chars();
        match characters.next() {
            Some('&') => out.push_str("&amp;"),
            Some('<') => out.push_str("&lt;"),
            Some('>') => out.push_str("&gt;"),
            Some('"') => out.push_str("&quot;"),
            Some('\'') => out.push_str("&#39;"),
            Some('\u{feff}') => {}
            Some(character) if character.is_control() => {}
            Some(character) => out.push(character),
            None => {}
        }
        rest = characters.as_str();
    }
    out.push_str(rest);
}

/// [`is_special`] of each byte.
static SPECIAL: [bool; 256] = {
    let (mut all, mut byte) = ([false; 256], 0);
    while byte < all.len() {
        all[byte] = is_special(byte as u8);
        byte += 1;
    }
    all
};

/// Whether a character that begins with this byte may be written in another way, or not at all.
const fn is_special(byte: u8) -> bool {
    // C1 controls begin with C2, U+FEFF with EF.
    matches!(byte, b'&' | b'<' | b'>' | b'"' | b'\'' | 0x7f | 0xc2 | 0xef)
        || (byte < b' ' && byte != b'\t' && byte != b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text() {
        let mut page = Html::default();
        put!(page, "<a title=\"", Text("\"'<b>&\0\u{1b}\r\n"), "\">", 7u32);
        assert_eq!(page.into_string(), "<a title=\"&quot;&#39;&lt;b&gt;&amp;\n\">7");
        for character in (0..=0x1_ffff).filter_map(char::from_u32) {
            let mut out = String::new();
            escape(&String::from_iter(['a', character, 'b']), &mut out);
            let is_kept = matches!(character, '\t' | '\n') || !character.is_control() && character != '\u{feff}';
            let is_same =
                out.strip_prefix('a').and_then(|out| out.strip_suffix('b')) == Some(&*String::from(character));
            assert_eq!(is_same, is_kept && !"&<>\"'".contains(character), "{character:?}");
        }
    }
}
