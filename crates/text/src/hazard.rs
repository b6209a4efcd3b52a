//! Characters that nobody sees and that change what is seen around them: control characters, the controls of bidirectional text,
//! and the separators of lines and paragraphs. A terminal obeys the first, and the others make a line read as another.

use alloc::borrow::Cow;
use alloc::string::String;
use core::fmt::Write as _;

/// Whether a character is one of them.
pub fn is_hazard(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A text of JSON in which each of them is written as `\uXXXX`. The blanks of ASCII between its values stay.
pub fn json(text: &str) -> Cow<'_, str> {
    escaped(text, |out, character| write!(out, "\\u{:04x}", u32::from(character)))
}

/// A line for people in which each of them is written as `\u{XX}`, but for those of ASCII before the blank, which terminals have for
/// colours.
pub fn line(text: &str) -> Cow<'_, str> {
    escaped(text, |out, character| write!(out, "\\u{{{:x}}}", u32::from(character)))
}

fn escaped(text: &str, write: impl Fn(&mut String, char) -> core::fmt::Result) -> Cow<'_, str> {
    let is_wanted = |character: char| character >= '\u{7f}' && is_hazard(character);
    if !text.contains(is_wanted) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match is_wanted(character) {
            // A String takes all that is written.
            true => _ = write(&mut out, character),
            false => out.push(character),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_seen_is_written() {
        let hazards = "\u{7f}\u{80}\u{9b}\u{9f}\u{61c}\u{200e}\u{200f}\u{2028}\u{2029}\u{202a}\u{202e}\u{2066}\u{2069}";
        for character in hazards.chars() {
            assert!(is_hazard(character));
            let code = u32::from(character);
            assert_eq!(json(&alloc::format!("\"a{character}\"")), alloc::format!("\"a\\u{code:04x}\""));
            assert_eq!(line(&alloc::format!("a{character}")), alloc::format!("a\\u{{{code:x}}}"));
        }
        for plain in ["Grüße 😀", "\"שלום\"", "a\u{200b}\u{2065}\u{206a}", "{\n\t\"a\": 1\n}", "\u{1b}[2mdim\u{1b}[0m"]
        {
            assert!(matches!(json(plain), Cow::Borrowed(_)) && line(plain) == plain, "{plain}");
        }
    }
}
