//! Header fields that SpamAssassin adds to a mail, as it writes them: tags filled in, folded, and in ASCII.
//!
//! Folding goes by `fold_headers 1`, its default: a text of several lines keeps them, one of a single line is folded behind
//! blanks and commas where it would get longer than 79 columns.

/// The longest line of a field, in columns; a tab takes eight.
const FIELD_COLUMNS: usize = 79;

/// Where a text may be broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Break {
    /// At each blank, which stays.
    Blank,
    /// After each blank and comma.
    Behind,
}

/// The value of `X-Spam-NAME`, without a line end: folded lines begin with a tab.
pub(super) fn field(name: &str, text: &str) -> String {
    let text = text.trim_end_matches(['\r', '\n']);
    let value = if text.contains('\n') {
        joined(text)
    } else {
        // The colon is put in afterwards, so that the name is never alone on a line.
        let folded = wrap(&format!("X-Spam-{name}!!{text}"), "\t", "", FIELD_COLUMNS, Break::Behind);
        let lines: Vec<&str> = folded.split('\n').filter(|line| !line.trim().is_empty()).collect();
        let folded = lines.join("\n");
        folded.split_once("!!").map_or(String::new(), |(_, value)| value.to_string())
    };
    value.split_inclusive('\n').map(encoded).collect()
}

/// The same in one line (`fold_headers 0`).
pub(super) fn line(text: &str) -> String {
    encoded(&text.trim_end_matches(['\r', '\n']).replace('\n', " "))
}

/// An escape of a template's text: `\n`, `\t`; others are taken away.
pub(super) fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some('\\') => out.push('\\'),
                _ => {}
            },
            letter => out.push(letter),
        }
    }
    out
}

/// Blanks around line breaks become one tab behind them.
fn joined(text: &str) -> String {
    let mut out = String::new();
    for (index, line) in text.split('\n').enumerate() {
        let line = if index == 0 { line.trim_end() } else { line.trim() };
        if index == 0 {
            out.push_str(line);
        } else if !line.is_empty() {
            out.push_str("\n\t");
            out.push_str(line);
        }
    }
    out
}

/// A line in ASCII: what is not is an encoded word (RFC 2047), from the first word to the last that needs it.
fn encoded(line: &str) -> String {
    let is_plain = |letter: char| letter == '\t' || (' '..='~').contains(&letter);
    let (text, end) = line.strip_suffix('\n').map_or((line, ""), |text| (text, "\n"));
    if text.chars().all(is_plain) {
        return line.into();
    }
    let first = text.find(|letter| !is_plain(letter)).unwrap_or(0);
    let start = text[..first].rfind([' ', '\t']).map_or(0, |at| at + 1);
    let last = text.rfind(|letter| !is_plain(letter)).unwrap_or(0);
    let stop = text[last..].find([' ', '\t']).map_or(text.len(), |at| last + at);
    let word: String = text.as_bytes()[start..stop].iter().map(|&byte| quoted(byte)).collect();
    format!("{}=?UTF-8?Q?{word}?={}{end}", &text[..start], &text[stop..])
}

fn quoted(byte: u8) -> String {
    match byte {
        b' ' => "_".into(),
        b'=' | b'?' | b'_' | 0..=0x1f | 0x7f.. => format!("={byte:02X}"),
        byte => char::from(byte).to_string(),
    }
}

/// Breaks a text into lines of at most `columns`, as far as words let it; the first begins with `first`, all others with
/// `prefix`.
pub(super) fn wrap(text: &str, prefix: &str, first: &str, columns: usize, at: Break) -> String {
    let mut pieces = pieces(text, at).into_iter().peekable();
    let mut lines: Vec<String> = Vec::new();
    let mut line = match first {
        "" => pieces.next().unwrap_or_default().to_string(),
        first => first.to_string(),
    };
    let mut is_begun = false;
    while let Some(piece) = pieces.peek() {
        // What a line begins with takes the next piece whatever its length.
        let width = width(&line) + if is_begun { self::width(piece) } else { 0 };
        if width <= columns {
            line.push_str(piece);
            pieces.next();
            is_begun = true;
        } else {
            line.truncate(line.trim_end().len());
            lines.push(std::mem::replace(&mut line, prefix.to_string()));
            is_begun = false;
        }
    }
    lines.push(line);
    lines.join("\n")
}

fn width(text: &str) -> usize {
    text.len() + 7 * text.bytes().filter(|&byte| byte == b'\t').count()
}

/// The words and what is between them; where that is nothing, it still counts as a piece.
fn pieces(text: &str, at: Break) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut start = 0;
    for (index, letter) in text.char_indices() {
        let behind = index + letter.len_utf8();
        match at {
            Break::Blank if letter.is_ascii_whitespace() => {
                pieces.extend([&text[start..index], &text[index..behind]]);
                start = behind;
            }
            Break::Behind if letter.is_ascii_whitespace() || letter == ',' => {
                pieces.extend([&text[start..behind], ""]);
                start = behind;
            }
            _ => {}
        }
    }
    pieces.push(&text[start..]);
    while pieces.last().is_some_and(|piece| piece.is_empty()) {
        pieces.pop();
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_of_tests_is_folded_behind_commas() {
        let text = "Yes, score=15.2 required=5.0 tests=ADVANCE_FEE_2_NEW_MONEY,BAYES_99,FREEMAIL_FROM, \
                    HTML_MESSAGE autolearn=no version=4.0.1";
        assert_eq!(
            field("Status", text),
            "Yes, score=15.2 required=5.0 tests=ADVANCE_FEE_2_NEW_MONEY,\n\tBAYES_99,FREEMAIL_FROM, HTML_MESSAGE \
             autolearn=no version=4.0.1"
        );
        assert_eq!(field("Level", ""), "");
        assert_eq!(field("Flag", "YES"), "YES");
    }

    #[test]
    fn lines_are_kept_and_other_scripts_encoded() {
        assert_eq!(field("Report", "\n* 1.0 A b\n*      c \n"), "\n\t* 1.0 A b\n\t*      c");
        assert_eq!(field("X", "a \u{e9}=b c"), "a =?UTF-8?Q?=C3=A9=3Db?= c");
        assert_eq!(unescaped(r"a\tb\nc\\d\x"), "a\tb\nc\\d");
    }
}
