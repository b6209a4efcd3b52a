//! Words that may be the password of something encrypted in the same mail.
//!
//! People who encrypt an archive write its password beside it: in the text, in the subject, in a file's name. Words near
//! one that means "password" are tried first, then the operator's candidates, then other words.
//!
//! Left out: what comes after the archive, passwords in pictures, subjects in encoded words, passwords with blanks in them.
//!
//! Bounds: [`NEAR_MAX`] and [`OTHERS_MAX`] words of at most [`WORD_BYTES_MAX`], of the first [`TEXT_BYTES_MAX`] of each
//! text.

/// Words near a keyword that are remembered.
const NEAR_MAX: usize = 64;
/// Other words that are remembered.
const OTHERS_MAX: usize = 192;
/// The longest word.
const WORD_BYTES_MAX: usize = 64;
/// The shortest word that is not near a keyword.
const OTHER_BYTES_MIN: usize = 3;
/// How much of each text is looked at.
const TEXT_BYTES_MAX: usize = 64 << 10;
/// How many words behind a keyword are near it.
const REACH: u32 = 6;

/// Parts of words that mean "password", in lower case.
const KEYWORDS: &[&str] = &[
    "pass",
    "pwd",
    "kennwort",
    "contrase",
    "clave",
    "senha",
    "wachtwoord",
    "lösenord",
    "kodeord",
    "salasana",
    "heslo",
    "hasło",
    "jelsz",
    "parol",
    "şifre",
    "парол",
    "密码",
    "密碼",
    "パスワード",
    "암호",
    "비밀번호",
];

/// Whole words that mean "password", in lower case.
const SHORT_KEYWORDS: &[&str] = &["pw", "pin", "code", "key"];

/// The words of one text, or of all.
#[derive(Debug, Default)]
pub(crate) struct Words {
    near: Vec<Box<[u8]>>,
    others: Vec<Box<[u8]>>,
}

/// Reads the words of one text.
#[derive(Debug, Default)]
pub(crate) struct WordReader {
    pub words: Words,
    is_html: bool,
    in_tag: bool,
    /// The word that is coming; longer than may be when it is too long.
    word: Vec<u8>,
    /// Words behind the last keyword.
    behind: Option<u32>,
    bytes: usize,
}

impl Words {
    /// Adds those of another text; whether there is a new one.
    pub fn add(&mut self, words: Words) -> bool {
        let before = (self.near.len(), self.others.len());
        words.near.into_iter().for_each(|word| remember(&mut self.near, NEAR_MAX, &word));
        words.others.into_iter().for_each(|word| remember(&mut self.others, OTHERS_MAX, &word));
        before != (self.near.len(), self.others.len())
    }

    /// Adds those of the name of a file; whether there is a new one.
    pub fn name(&mut self, name: &str) -> bool {
        let mut reader = WordReader::default();
        name.split(|letter: char| !letter.is_alphanumeric()).for_each(|word| reader.finish_word(word.as_bytes()));
        self.add(reader.words)
    }

    /// The candidates in the order in which they are tried, the operator's among them.
    pub fn candidates(&self, configured: &[Box<[u8]>]) -> Vec<Box<[u8]>> {
        let mut all = self.near.clone();
        for word in configured.iter().chain(&self.others) {
            if !all.contains(word) {
                all.push(word.clone());
            }
        }
        all
    }
}

fn remember(words: &mut Vec<Box<[u8]>>, most: usize, word: &[u8]) {
    if words.len() < most && !words.iter().any(|known| **known == *word) {
        words.push(word.into());
    }
}

impl WordReader {
    pub fn new(is_html: bool) -> WordReader {
        WordReader { is_html, ..WordReader::default() }
    }

    /// Reads more of the text.
    pub fn read(&mut self, text: &[u8]) {
        let text = &text[..text.len().min(TEXT_BYTES_MAX - self.bytes)];
        self.bytes += text.len();
        for &byte in text {
            match byte {
                b'<' if self.is_html => {
                    self.finish();
                    self.in_tag = true;
                }
                b'>' if self.in_tag => self.in_tag = false,
                _ if self.in_tag => {}
                0..=b' ' => self.finish(),
                _ if self.word.len() <= WORD_BYTES_MAX => self.word.push(byte),
                _ => {}
            }
        }
        if self.bytes == TEXT_BYTES_MAX {
            self.finish();
        }
    }

    /// The word that was coming is complete.
    pub fn finish(&mut self) {
        let word = std::mem::take(&mut self.word);
        if word.is_empty() || word.len() > WORD_BYTES_MAX {
            return;
        }
        if !self.is_html || !word.contains(&b'&') {
            return self.finish_word(&word);
        }
        let text = String::from_utf8_lossy(&word);
        for piece in text.split("&nbsp;") {
            let piece = piece.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&#39;", "'");
            self.finish_word(piece.replace("&amp;", "&").as_bytes());
        }
    }

    fn finish_word(&mut self, word: &[u8]) {
        if word.is_empty() {
            return;
        }
        let behind_sign = word.iter().rposition(|byte| matches!(byte, b':' | b'=')).map(|at| &word[at + 1..]);
        if is_keyword(word) {
            self.behind = Some(0);
            // "password:secret" is both.
            return behind_sign.into_iter().for_each(|word| self.candidates(word));
        }
        self.candidates(word);
        behind_sign.into_iter().for_each(|word| self.candidates(word));
        self.behind = self.behind.map(|behind| behind + 1).filter(|behind| *behind < REACH);
    }

    /// The word as it stands, and without the punctuation around it.
    fn candidates(&mut self, word: &[u8]) {
        let text = String::from_utf8_lossy(word);
        let sentence = text.trim_end_matches(['.', ',', ';', '!', '?', ':']);
        let quoted = sentence.trim_matches(|letter: char| !letter.is_alphanumeric());
        for word in [word, sentence.as_bytes(), quoted.as_bytes()] {
            match self.behind {
                _ if word.is_empty() => {}
                Some(_) => remember(&mut self.words.near, NEAR_MAX, word),
                None if word.len() < OTHER_BYTES_MIN => {}
                None => remember(&mut self.words.others, OTHERS_MAX, word),
            }
        }
    }
}

fn is_keyword(word: &[u8]) -> bool {
    let word = String::from_utf8_lossy(word).to_lowercase();
    let bare = word.trim_matches(|letter: char| !letter.is_alphanumeric());
    KEYWORDS.iter().any(|keyword| word.contains(keyword)) || SHORT_KEYWORDS.contains(&bare)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates(text: &str, is_html: bool, piece: usize) -> Vec<String> {
        let mut reader = WordReader::new(is_html);
        text.as_bytes().chunks(piece).for_each(|piece| reader.read(piece));
        reader.finish();
        let words = reader.words.candidates(&[b"configured"[..].into()]);
        words.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect()
    }

    #[test]
    fn a_word_near_a_keyword_comes_first() {
        for (text, html, first) in [
            ("Hello, the password is \"Abc-12\".", false, "Abc-12"),
            ("Passwort: geheim!", false, "geheim!"),
            ("pass=1", false, "1"),
            ("Das Kennwort lautet:\r\n\r\n   x9#y", false, "x9#y"),
            ("Пароль 777", false, "777"),
            ("<p>Password:&nbsp;<b>a&amp;b</b></p>", true, "a&b"),
        ] {
            for piece in [1, 3, 1000] {
                let all = candidates(text, html, piece);
                let near = all.iter().position(|word| word == "configured").expect("it is there");
                assert!(all[..near].iter().any(|word| word == first), "{text}: {all:?}");
            }
        }
    }

    #[test]
    fn other_words_come_behind_the_configured_ones() {
        assert_eq!(candidates("open it with infected, no", false, 99)[..3], ["configured", "open", "with"]);
        assert!(candidates("open it with infected, no", false, 99).contains(&"infected".into()));
    }

    #[test]
    fn the_name_of_a_file_is_a_text() {
        let mut words = Words::default();
        words.name("invoice_pass_4711.zip");
        assert_eq!(*words.near[0], b"4711"[..]);
    }

    #[test]
    fn no_text_makes_it_hold_more_than_its_bounds() {
        let text: String = (0..50_000).map(|number| format!("{number:05} ")).collect();
        assert_eq!(candidates(&text, false, 4096).len(), OTHERS_MAX + 1);
        assert!(candidates(&"x".repeat(500), false, 7).len() == 1);
    }
}
