//! Cutting text into terms.

use alloc::string::String;
use core::mem::take;

use text::normal::Composing;

/// The longest term, in characters. A longer run becomes several that overlap.
pub const TERM_CHARACTERS_MAX: usize = 32;

/// Distance between the beginnings of terms in a longer run: a substring of at most one character more lies within one
/// of them.
const STRIDE: usize = TERM_CHARACTERS_MAX / 2;

/// Maximum length of a substring that lies within one term wherever it begins.
pub(crate) const WITHIN_MAX: usize = STRIDE + 1;

/// Characters of a term in a script without blanks.
pub(crate) const DENSE: usize = 3;

/// Class of a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// It stands between terms.
    Blank,
    /// Letter of a script with spaces between words.
    Word,
    /// Letter of a script without them.
    Dense,
    /// A mark over the letter before it, which is left out.
    Mark,
}

impl Class {
    pub fn of(character: char) -> Class {
        match character {
            'a'..='z' | 'A'..='Z' | '0'..='9' => Class::Word,
            '\0'..='\x7f' => Class::Blank,
            // Thai, Lao, Burmese, Khmer; Kana; Han.
            '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' => Class::Dense,
            '\u{3041}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' | '\u{ff66}'..='\u{ff9f}' => Class::Dense,
            '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' => Class::Dense,
            '\u{20000}'..='\u{3ffff}' => Class::Dense,
            '\u{300}'..='\u{36f}' => Class::Mark,
            _ if character.is_alphanumeric() => Class::Word,
            _ => Class::Blank,
        }
    }
}

/// Emits a character in lower case, as terms have it.
pub(crate) fn lower(character: char, mut tell: impl FnMut(char)) {
    match character {
        '\0'..='\x7f' => tell(character.to_ascii_lowercase()),
        // One letter, at any position in a word.
        'ς' => tell('σ'),
        // Without the dot that it has besides.
        'İ' => tell('i'),
        _ => character.to_lowercase().for_each(tell),
    }
}

/// A text whose characters are composed.
pub(crate) fn composed(text: &str) -> String {
    let (mut told, mut composing) = (String::with_capacity(text.len()), Composing::default());
    let mut tell = |character| told.push(character);
    text.chars().for_each(|character| composing.take(character, &mut tell));
    composing.end(&mut tell);
    told
}

/// A text in lower case, as terms are.
pub fn lowered(text: &str) -> String {
    let mut lowered = String::with_capacity(text.len());
    let text = composed(text);
    let letters = text.chars().filter(|character| Class::of(*character) != Class::Mark);
    letters.for_each(|character| lower(character, |character| lowered.push(character)));
    lowered
}

/// Cuts a text that comes in pieces; however it comes, the terms are the same.
#[derive(Debug, Clone, Default)]
pub struct Cutter {
    /// The current run: of words the characters not emitted yet and [`STRIDE`] before them, of others the last two.
    run: String,
    /// Characters in it.
    length: usize,
    /// Whether something of the run was emitted.
    is_begun: bool,
    /// Whether it is of a script without blanks.
    is_dense: bool,
    composing: Composing,
}

impl Cutter {
    /// Reads on, and tells each term that is complete.
    pub fn read(&mut self, text: &str, tell: &mut impl FnMut(&str)) {
        let mut composing = take(&mut self.composing);
        text.chars().for_each(|character| composing.take(character, &mut |character| self.take(character, tell)));
        self.composing = composing;
    }

    /// Flushes the pending run, at the end of the text or before a gap.
    pub fn end(&mut self, tell: &mut impl FnMut(&str)) {
        take(&mut self.composing).end(&mut |character| self.take(character, tell));
        self.flush(tell);
    }

    fn take(&mut self, character: char, tell: &mut impl FnMut(&str)) {
        let class = Class::of(character);
        if class == Class::Mark {
            return;
        }
        if class == Class::Blank || (self.length > 0 && self.is_dense != (class == Class::Dense)) {
            self.flush(tell);
        }
        if class != Class::Blank {
            self.is_dense = class == Class::Dense;
            lower(character, |character| self.push(character, tell));
        }
    }

    fn flush(&mut self, tell: &mut impl FnMut(&str)) {
        let kept = match (self.is_begun, self.is_dense) {
            (false, _) => 0,
            (true, false) => STRIDE,
            (true, true) => DENSE - 1,
        };
        if self.length > kept {
            tell(&self.run);
        }
        self.run.clear();
        (self.length, self.is_begun) = (0, false);
    }

    fn push(&mut self, character: char, tell: &mut impl FnMut(&str)) {
        self.run.push(character);
        self.length += 1;
        let (full, kept) = if self.is_dense { (DENSE, DENSE - 1) } else { (TERM_CHARACTERS_MAX, STRIDE) };
        if self.length == full {
            tell(&self.run);
            let cut = self.run.char_indices().nth(full - kept).map_or(self.run.len(), |(at, _)| at);
            self.run.drain(..cut);
            (self.length, self.is_begun) = (kept, true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(text: &str) -> Vec<String> {
        let (mut terms, mut cutter) = (Vec::new(), Cutter::default());
        let mut tell = |term: &str| terms.push(term.to_owned());
        cutter.read(text, &mut tell);
        cutter.end(&mut tell);
        terms
    }

    #[test]
    fn words_are_runs_of_letters_and_digits_in_lower_case() {
        assert_eq!(terms("Re: [#42] Grüße, ÄRGER-frei_x"), ["re", "42", "grüße", "ärger", "frei", "x"]);
        assert_eq!(terms("ΟΔΟΣ οδος"), ["οδοσ", "οδοσ"]);
        assert_eq!(terms("E\u{301}tude \u{ff21}\u{ff22} \u{ff76}\u{ff9e}"), ["\u{e9}tude", "ab", "\u{30ac}"]);
        assert!(terms(" .-\r\n").is_empty());
    }

    #[test]
    fn scripts_without_blanks_are_cut_at_each_character() {
        assert_eq!(terms("解压密码x9发票"), ["解压密", "压密码", "x9", "发票"]);
        assert_eq!(terms("あ"), ["あ"]);
    }

    #[test]
    fn a_long_run_becomes_terms_that_overlap() {
        let run: String = ('a'..='z').cycle().take(70).collect();
        let terms = terms(&run);
        assert_eq!(terms, [&run[..32], &run[16..48], &run[32..64], &run[48..70]]);
        assert_eq!(super::tests::terms(&run[..32]), [&run[..32]]);
        assert_eq!(super::tests::terms(&run[..33]), [&run[..32], &run[16..33]]);
    }

    #[test]
    fn terms_are_the_same_however_the_text_is_cut() {
        let text = "Hello e\u{301}tude \u{ff76}\u{ff9e} World 密码是Geheim und aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab";
        let whole = terms(text);
        for (cut, _) in text.char_indices() {
            let (mut found, mut cutter) = (Vec::new(), Cutter::default());
            let mut tell = |term: &str| found.push(term.to_owned());
            cutter.read(&text[..cut], &mut tell);
            cutter.read(&text[cut..], &mut tell);
            cutter.end(&mut tell);
            assert_eq!(found, whole, "{cut}");
        }
    }
}
