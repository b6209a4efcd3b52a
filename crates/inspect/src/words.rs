//! Words that may be the password of something encrypted in the same mail.
//!
//! People who encrypt an archive write its password beside it: in the text, in the subject, in a file's name. Words near
//! one that means "password" are tried first, then the operator's candidates, then other words.
//!
//! Most mails have nothing that a password opens, so texts are kept as they come, and their words are only looked for
//! when something begins that may be encrypted.
//!
//! A page is read twice: with a word ending at each tag, and with tags as if they were not there. Of a word in which
//! other letters stand beside ASCII, as where Chinese is written without blanks, the ASCII is a candidate by itself. What
//! stands in quotes, or on a line behind a keyword with a colon, is one with its blanks. At the end come [`COMMON`] ones.
//!
//! Left out: what comes after the archive, passwords in pictures.
//!
//! Bounds: [`NEAR_MAX`] and [`OTHERS_MAX`] words of at most [`WORD_BYTES_MAX`], of the first [`TEXT_BYTES_MAX`] of each
//! text and of [`TEXTS_BYTES_MAX`] that wait to be read.

/// Words near a keyword that are remembered.
const NEAR_MAX: usize = 64;
/// Other words that are remembered.
const OTHERS_MAX: usize = 192;
/// The longest word.
const WORD_BYTES_MAX: usize = 64;
/// The longest word in which letters are written as entities.
const ENCODED_BYTES_MAX: usize = 8 * WORD_BYTES_MAX;
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

/// Passwords that those use who send each other what is dangerous.
pub(crate) const COMMON: [&str; 8] =
    ["infected", "virus", "malware", "password", "1234", "12345", "123456", "infected666"];

/// Characters between a keyword and a password in one word.
const SIGNS: [char; 8] = [':', '=', '/', '|', '(', '[', '：', '＝'];
/// Pairs of quotes around a password.
const QUOTES: [(char, char); 5] = [('"', '"'), ('\'', '\''), ('“', '”'), ('„', '“'), ('«', '»')];

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
    /// A tag ends a word.
    tags_end: bool,
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
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        let words = name.replace(|letter: char| !letter.is_alphanumeric(), " ");
        let mut text = Text::new(false);
        text.read(format!("{stem} {} {words}", stem.replace('_', " ")).as_bytes());
        self.add(text);
    }

    /// The candidates in the order in which they are tried, the operator's among them; nothing if there is no new text.
    pub fn candidates(&mut self, configured: &[Box<[u8]>]) -> Option<Vec<Box<[u8]>>> {
        if self.unread.is_empty() {
            return None;
        }
        for text in std::mem::take(&mut self.unread) {
            WordReader::new(self, text.is_html, true).read(&text.bytes);
            if text.is_html {
                WordReader::new(self, true, false).read(&text.bytes);
            } else {
                self.phrases(&String::from_utf8_lossy(&text.bytes));
            }
        }
        let mut all = self.near.clone();
        let common = COMMON.map(|word| Box::from(word.as_bytes()));
        for word in configured.iter().chain(&self.others).chain(&common) {
            if !all.contains(word) {
                all.push(word.clone());
            }
        }
        Some(all)
    }
}

impl Words {
    /// Adds what has blanks in it: what stands in quotes, and on a line behind a keyword and a sign.
    fn phrases(&mut self, text: &str) {
        for line in text.lines() {
            let said = line.split_once([':', '=', '：']).filter(|(before, _)| is_keyword(before.as_bytes()));
            let behind = said.map(|(_, behind)| behind.trim());
            let quoted = QUOTES.iter().filter_map(|&(open, close)| {
                let (_, behind) = line.split_once(open)?;
                behind.split_once(close).map(|(phrase, _)| phrase)
            });
            for phrase in behind.into_iter().chain(quoted) {
                if phrase.contains(' ') && phrase.len() <= WORD_BYTES_MAX {
                    remember(&mut self.near, NEAR_MAX, phrase.as_bytes());
                }
            }
        }
    }
}

fn remember(words: &mut Vec<Box<[u8]>>, most: usize, word: &[u8]) {
    if word.len() <= WORD_BYTES_MAX && words.len() < most && !words.iter().any(|known| **known == *word) {
        words.push(word.into());
    }
}

impl<'w> WordReader<'w> {
    fn new(words: &'w mut Words, is_html: bool, tags_end: bool) -> WordReader<'w> {
        WordReader { words, is_html, tags_end, in_tag: false, word: Vec::new(), behind: None }
    }

    fn read(mut self, text: &[u8]) {
        for &byte in text {
            match byte {
                b'<' if self.is_html => {
                    if self.tags_end {
                        self.finish();
                    }
                    self.in_tag = true;
                }
                b'>' if self.in_tag => self.in_tag = false,
                _ if self.in_tag => {}
                0..=b' ' => self.finish(),
                _ if self.word.len() <= ENCODED_BYTES_MAX => self.word.push(byte),
                _ => {}
            }
        }
        self.finish();
    }

    /// The word that was coming is complete.
    fn finish(&mut self) {
        if self.word.is_empty() {
            return;
        }
        let mut word = std::mem::take(&mut self.word);
        if word.len() > ENCODED_BYTES_MAX {
            // It is none.
        } else if !self.is_html || !word.contains(&b'&') {
            self.finish_word(&word);
        } else {
            for piece in without_entities(&String::from_utf8_lossy(&word)).split([' ', '\u{a0}']) {
                self.finish_word(piece.as_bytes());
            }
        }
        // The next word has its memory.
        word.clear();
        self.word = word;
    }

    fn finish_word(&mut self, word: &[u8]) {
        if word.is_empty() {
            return;
        }
        if let Some(secret) = behind_keyword(word) {
            self.behind = Some(0);
            return self.candidates(secret.as_bytes());
        }
        let behind_sign = word.iter().rposition(|byte| matches!(byte, b':' | b'=')).map(|at| &word[at + 1..]);
        if is_keyword(word) {
            self.behind = Some(0);
            // "password:secret" is both.
            self.ascii_within(word);
            return behind_sign.into_iter().for_each(|word| self.candidates(word));
        }
        self.candidates(word);
        self.ascii_within(word);
        behind_sign.into_iter().for_each(|word| self.candidates(word));
        self.behind = self.behind.map(|behind| behind + 1).filter(|behind| *behind < REACH);
    }

    /// The ASCII in a word that has other letters, too.
    fn ascii_within(&mut self, word: &[u8]) {
        if word.is_ascii() {
            return;
        }
        for run in word.split(|byte| !byte.is_ascii()).filter(|run| !run.is_empty()) {
            self.candidates(run);
        }
    }

    /// The word as it stands, and without the punctuation around it.
    fn candidates(&mut self, word: &[u8]) {
        if word.iter().all(u8::is_ascii_alphanumeric) {
            return self.candidate(word);
        }
        let text = String::from_utf8_lossy(word);
        let sentence = text.trim_end_matches(['.', ',', ';', '!', '?', ':']);
        let quoted = sentence.trim_matches(|letter: char| !letter.is_alphanumeric());
        for word in [word, sentence.as_bytes(), quoted.as_bytes()] {
            self.candidate(word);
        }
    }

    fn candidate(&mut self, word: &[u8]) {
        match self.behind {
            _ if word.is_empty() => {}
            Some(_) => remember(&mut self.words.near, NEAR_MAX, word),
            None if word.len() < OTHER_BYTES_MIN => {}
            None => remember(&mut self.words.others, OTHERS_MAX, word),
        }
    }
}

/// Rest of a word after a keyword and a sign.
fn behind_keyword(word: &[u8]) -> Option<String> {
    let may_have_sign = |byte: &u8| !byte.is_ascii() || matches!(byte, b':' | b'=' | b'/' | b'|' | b'(' | b'[');
    if !word.iter().any(may_have_sign) {
        return None;
    }
    let text = String::from_utf8_lossy(word);
    let (keyword, secret) = text.split_once(SIGNS)?;
    (!secret.is_empty() && is_keyword(keyword.as_bytes())).then(|| secret.to_string())
}

/// A text of HTML with its entities, numbers and the usual names, taken for what they mean.
fn without_entities(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, entity)) = rest.split_once('&') {
        plain += before;
        let (name, behind) = entity.split_once(';').unwrap_or((entity, ""));
        match letter_of(name) {
            Some(letter) => {
                plain.push(letter);
                rest = behind;
            }
            None => {
                plain.push('&');
                rest = entity;
            }
        }
    }
    plain + rest
}

fn letter_of(entity: &str) -> Option<char> {
    let code = match entity.strip_prefix('#') {
        Some(hex) if hex.starts_with(['x', 'X']) => u32::from_str_radix(&hex[1..], 16).ok()?,
        Some(digits) => digits.parse().ok()?,
        None => {
            return Some(match entity {
                "nbsp" => '\u{a0}',
                "lt" => '<',
                "gt" => '>',
                "quot" => '"',
                "amp" => '&',
                "apos" => '\'',
                "excl" => '!',
                "dollar" => '$',
                "num" => '#',
                "commat" => '@',
                "lowbar" => '_',
                "hyphen" | "dash" => '-',
                _ => return None,
            });
        }
    };
    char::from_u32(code)
}

fn is_keyword(word: &[u8]) -> bool {
    if word.is_ascii() {
        return is_ascii_keyword(word);
    }
    let word = String::from_utf8_lossy(word).to_lowercase();
    let bare = word.trim_matches(|letter: char| !letter.is_alphanumeric());
    KEYWORDS.iter().any(|keyword| word.contains(keyword)) || SHORT_KEYWORDS.contains(&bare)
}

/// The same for ASCII, without a copy: most words are, and few of their letters begin a keyword.
fn is_ascii_keyword(word: &[u8]) -> bool {
    let begins = |rest: &[u8], keyword: &str| {
        rest.get(..keyword.len()).is_some_and(|start| start.eq_ignore_ascii_case(keyword.as_bytes()))
    };
    let is_in = |rest: &[u8]| KEYWORDS.iter().any(|keyword| begins(rest, keyword));
    let mut places = word.iter().enumerate().filter(|(_, byte)| BEGINS_KEYWORD[usize::from(**byte & 0x7f)]);
    if places.any(|(at, _)| is_in(&word[at..])) {
        return true;
    }
    let start = word.iter().position(u8::is_ascii_alphanumeric).unwrap_or(word.len());
    let end = word.iter().rposition(u8::is_ascii_alphanumeric).map_or(start, |last| last + 1);
    let bare = &word[start..end];
    SHORT_KEYWORDS.iter().any(|keyword| bare.eq_ignore_ascii_case(keyword.as_bytes()))
}

/// Letters of ASCII, of either case, that a keyword begins with.
const BEGINS_KEYWORD: [bool; 128] = {
    let mut begins = [false; 128];
    let mut at = 0;
    while at < KEYWORDS.len() {
        let first = KEYWORDS[at].as_bytes()[0];
        if first.is_ascii() {
            begins[first as usize] = true;
            begins[first.to_ascii_uppercase() as usize] = true;
        }
        at += 1;
    }
    begins
};

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
            ("密码是Geheim-42。", false, "Geheim-42"),
            ("打开附件，解压密码：x9y8", false, "x9y8"),
            ("pw/x/", false, "x"),
            ("The password: two words\r\nRegards", false, "two words"),
            ("password 'with a blank'.", false, "with a blank"),
            ("<p>Password: G<b>eh</b>eim<wbr>-42</p>", true, "Geheim-42"),
            ("Password: &#71;eheim&#x2d;4&#50;", true, "Geheim-42"),
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
    fn keywords_are_found_in_any_case_and_within_words() {
        for word in [
            "pass",
            "PassPhrase",
            "xPWDx",
            "Kennwort:",
            "(pin)",
            "Code!",
            "\"KEY\"",
            "ppassword",
            "HESLO",
            "Hasło",
            "ПАРОЛЬ",
            "密码是",
        ] {
            assert!(is_keyword(word.as_bytes()), "{word}");
        }
        for word in ["", "pas", "spin", "keys", "coded", "p", "...", "claves".split_at(3).0, "contrast", "łó"] {
            assert!(!is_keyword(word.as_bytes()), "{word}");
        }
    }

    #[test]
    fn the_name_of_a_file_is_a_text() {
        let mut words = Words::default();
        words.name("invoice_pass_4711.zip");
        words.candidates(&[]);
        assert!(words.near.iter().any(|word| **word == b"4711"[..]));
        words.name("Geheim-42.zip");
        words.candidates(&[]);
        assert!(words.near.iter().chain(&words.others).any(|word| **word == b"Geheim-42"[..]));
    }

    #[test]
    fn no_text_makes_it_hold_more_than_its_bounds() {
        let text: String = (0..50_000).map(|number| format!("{number:05} ")).collect();
        assert_eq!(candidates(&text, false, 4096).len(), OTHERS_MAX + 1 + COMMON.len());
        assert!(candidates(&"x".repeat(500), false, 7).len() == 1 + COMMON.len());
        let mut words = Words::default();
        (0..100).for_each(|_| words.name(&"x".repeat(5_000)));
        assert!(words.unread.iter().map(|text| text.bytes.len()).sum::<usize>() <= TEXTS_BYTES_MAX);
    }
}
