//! A writer of pages. Markup is what the program holds as a constant; whatever else comes in is a number or a [`Text`], which is escaped.
//! A text that was made at run time cannot become markup: no [`Piece`] takes it.

use alloc::string::String;
use core::fmt::Write as _;

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
    /// Writes a piece.
    pub fn put(&mut self, piece: impl Piece) {
        piece.write(&mut self.0);
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
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' => out.push(character),
            '\u{feff}' => {}
            _ if character.is_control() => {}
            _ => out.push(character),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text() {
        let mut page = Html::default();
        put!(page, "<a title=\"", Text("\"'<b>&\0\u{1b}\r\n"), "\">", 7u32);
        assert_eq!(page.into_string(), "<a title=\"&quot;&#39;&lt;b&gt;&amp;\n\">7");
    }
}
