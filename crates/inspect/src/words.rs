//! Words that may be the password of something encrypted in the same mail.
//!
//! People who encrypt an archive write its password beside it: in the text, in the subject, in a file's name. Words near
//! one that means "password" are tried first, then the operator's candidates, then other words.
//!
//! Most mails have nothing that a password opens, so texts are kept as they come, and their words are only looked for
//! when something begins that may be encrypted.
//!
//! Left out: what comes after the archive, passwords in pictures, subjects in encoded words, passwords with blanks in them.
//!
//! Bounds: [`NEAR_MAX`] and [`OTHERS_MAX`] words of at most [`WORD_BYTES_MAX`], of the first [`TEXT_BYTES_MAX`] of each
//! text and of [`TEXTS_BYTES_MAX`] that wait to be read.

/// Words near a keyword that are remembered.
const NEAR_MAX: usize = 64;
/// Other words that are remembered.
const OTHERS_MAX: usize = 192;
/// The longest word.
const WORD_BYTES_MAX: usize = 64;
/// The shortest word that is not near a keyword.
const OTHER_BYTES_MIN: usize = 3;
/// How much of each text is looked at.
const TEXT_BYTES_MAX: usize = 16 << 10;
/// How much text waits to be looked at.
const TEXTS_BYTES_MAX: usize = 64 << 10;
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

/// The beginning of a text.
#[derive(Debug, Default)]
pub(crate) struct Text {
    is_html: bool,
    bytes: Vec<u8>,
}

impl Text {
    pub fn new(is_html: bool) -> Text {
        Text { is_html, bytes: Vec::new() }
    }

    /// Keeps more of it.
    pub fn read(&mut self, bytes: &[u8]) {
        let room = TEXT_BYTES_MAX - self.bytes.len();
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

/// The words of all texts of a mail.
#[derive(Debug, Default)]
pub(crate) struct Words {
    near: Vec<Box<[u8]>>,
    others: Vec<Box<[u8]>>,
    unread: Vec<Text>,
}

/// Reads the words of one text.
#[derive(Debug)]
struct WordReader<'w> {
    words: &'w mut Words,
    is_html: bool,
    in_tag: bool,
    /// The word that is coming; longer than may be when it is too long.
    word: Vec<u8>,
    /// Words behind the last keyword.
    behind: Option<u32>,
}

impl Words {
    /// Adds those of another text.
    pub fn add(&mut self, text: Text) {
        let waiting: usize = self.unread.iter().map(|text| text.bytes.len()).sum();
        if !text.bytes.is_empty() && waiting + text.bytes.len() <= TEXTS_BYTES_MAX {
            self.unread.push(text);
        }
    }

    /// Adds those of the name of a file.
    pub fn name(&mut self, name: &str) {
        let mut text = Text::new(false);
        text.read(name.replace(|letter: char| !letter.is_alphanumeric(), " ").as_bytes());
        self.add(text);
    }

    /// The candidates in the order in which they are tried, the operator's among them; nothing if there is no new text.
    pub fn candidates(&mut self, configured: &[Box<[u8]>]) -> Option<Vec<Box<[u8]>>> {
        if self.unread.is_empty() {
            return None;
        }
        for text in std::mem::take(&mut self.unread) {
            WordReader::new(self, text.is_html).read(&text.bytes);
        }
        let mut all = self.near.clone();
        for word in configured.iter().chain(&self.others) {
            if !all.contains(word) {
                all.push(word.clone());
            }
        }
        Some(all)
    }
}

fn remember(words: &mut Vec<Box<[u8]>>, most: usize, word: &[u8]) {
    if words.len() < most && !words.iter().any(|known| **known == *word) {
        words.push(word.into());
    }
}

impl<'w> WordReader<'w> {
    fn new(words: &'w mut Words, is_html: bool) -> WordReader<'w> {
        WordReader { words, is_html, in_tag: false, word: Vec::new(), behind: None }
    }

    fn read(mut self, text: &[u8]) {
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
        self.finish();
    }

    /// The word that was coming is complete.
    fn finish(&mut self) {
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
        let (mut whole, mut words) = (Text::new(is_html), Words::default());
        text.as_bytes().chunks(piece).for_each(|piece| whole.read(piece));
        words.add(whole);
        let all = words.candidates(&[b"configured"[..].into()]).expect("there is text");
        assert!(words.candidates(&[]).is_none(), "nothing is new");
        all.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect()
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
        words.candidates(&[]);
        assert_eq!(*words.near[0], b"4711"[..]);
    }

    #[test]
    fn no_text_makes_it_hold_more_than_its_bounds() {
        let text: String = (0..50_000).map(|number| format!("{number:05} ")).collect();
        assert_eq!(candidates(&text, false, 4096).len(), OTHERS_MAX + 1);
        assert!(candidates(&"x".repeat(500), false, 7).len() == 1);
        let mut words = Words::default();
        (0..100).for_each(|_| words.name(&"x".repeat(5_000)));
        assert!(words.unread.iter().map(|text| text.bytes.len()).sum::<usize>() <= TEXTS_BYTES_MAX);
    }
}
