//! Invisible characters: control characters, the controls of bidirectional text, the separators of lines and
//! paragraphs, blanks without width, and tags. A terminal obeys the first; the others make a line read as another, or
//! hide a word from a search. Joiners (U+200C, U+200D) and variation selectors are not included, since words and
//! pictures need them.

use alloc::borrow::Cow;
use alloc::string::String;
use core::fmt::Write as _;

/// Whether a character is one of them.
pub fn is_hazard(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
                | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
        )
}

/// A text of JSON in which each of them is written as `\uXXXX`, beyond 16 bits as two (RFC 8259, section 7). The blanks of ASCII
/// between its values stay.
pub fn json(text: &str) -> Cow<'_, str> {
    escaped(text, |out, character| {
        character.encode_utf16(&mut [0; 2]).iter().try_for_each(|unit| write!(out, "\\u{unit:04x}"))
    })
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
        let hazards = "\u{7f}\u{80}\u{9b}\u{9f}\u{61c}\u{180e}\u{200b}\u{200e}\u{200f}\u{2028}\u{2029}\u{202a}\u{202e}\u{2060}\
                       \u{2066}\u{2069}\u{206f}\u{feff}\u{fff9}";
        for character in hazards.chars() {
            assert!(is_hazard(character));
            let code = u32::from(character);
            assert_eq!(json(&alloc::format!("\"a{character}\"")), alloc::format!("\"a\\u{code:04x}\""));
            assert_eq!(line(&alloc::format!("a{character}")), alloc::format!("a\\u{{{code:x}}}"));
        }
        assert_eq!(json("\"\u{e0041}\""), "\"\\udb40\\udc41\"");
        for plain in ["Grüße 😀", "\"שלום\"", "a\u{200c}\u{200d}\u{fe0f}", "{\n\t\"a\": 1\n}", "\u{1b}[2mdim\u{1b}[0m"]
        {
            assert!(matches!(json(plain), Cow::Borrowed(_)) && line(plain) == plain, "{plain}");
        }
    }
}
