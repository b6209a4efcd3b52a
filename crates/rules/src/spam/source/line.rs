//! A line of a file: without its comment, cut into a keyword and a value.
//!
//! A configuration has no lines that are continued. `#` begins a comment wherever it stands, unless a backslash stands
//! before it; that backslash is taken away, even in an expression.

use std::borrow::Cow;

/// A line that says something.
#[derive(Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// The language of the line: `lang de ...`.
    pub language: Option<String>,
    /// The keyword in lower case, with underscores for dashes.
    pub keyword: String,
    /// Value after it, without spaces around it.
    pub value: Cow<'a, [u8]>,
}

impl<'a> Line<'a> {
    /// Reads a line; nothing where there is only a comment.
    pub fn read(line: &'a [u8]) -> Option<Line<'a>> {
        let line = uncommented(line);
        let (keyword, value) = split(&line)?;
        if keyword != b"lang" {
            let range = value.clone();
            return Some(Line { language: None, keyword: name(keyword), value: part(line, range) });
        }
        let halves = split(&line[value.clone()]).map(|(language, rest)| (language, value.start + rest.start));
        let found = halves
            .and_then(|(language, offset)| split(&line[offset..]).map(|(word, rest)| (language, offset, word, rest)));
        let Some((language, offset, keyword, value)) = found else {
            // There is no such setting, and that is what is reported.
            return Some(Line { language: None, keyword: "lang".into(), value: part(line, value) });
        };
        let language = String::from_utf8_lossy(language).into_owned();
        let (keyword, range) = (name(keyword), offset + value.start..offset + value.end);
        Some(Line { language: Some(language), keyword, value: part(line, range) })
    }
}

fn name(keyword: &[u8]) -> String {
    let mut name = String::from_utf8_lossy(keyword).into_owned();
    name.make_ascii_lowercase();
    if name.contains('-') { name.replace('-', "_") } else { name }
}

fn part(line: Cow<'_, [u8]>, range: std::ops::Range<usize>) -> Cow<'_, [u8]> {
    match line {
        Cow::Borrowed(line) => Cow::Borrowed(&line[range]),
        Cow::Owned(line) => Cow::Owned(line[range].to_vec()),
    }
}

/// The first word, and where the rest stands.
fn split(line: &[u8]) -> Option<(&[u8], std::ops::Range<usize>)> {
    let is_space = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0x0b;
    let start = line.iter().position(|byte| !is_space(byte))?;
    let end = line.iter().rposition(|byte| !is_space(byte))? + 1;
    let word = line[start..end].iter().position(is_space).map_or(end, |at| start + at);
    let value = line[word..end].iter().position(|byte| !is_space(byte)).map_or(end, |at| word + at);
    Some((&line[start..word], value..end))
}

/// The line up to its comment, its escaped `#` freed.
fn uncommented(line: &[u8]) -> Cow<'_, [u8]> {
    if !line.contains(&b'#') {
        return Cow::Borrowed(line);
    }
    let mut text = Vec::with_capacity(line.len());
    for &byte in line {
        match byte {
            b'#' if text.last() == Some(&b'\\') => {
                text.pop();
                text.push(b'#');
            }
            b'#' => break,
            _ => text.push(byte),
        }
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Option<(Option<String>, String, String)> {
        Line::read(line.as_bytes())
            .map(|line| (line.language, line.keyword, String::from_utf8(line.value.into_owned()).unwrap()))
    }

    fn plain(keyword: &str, value: &str) -> Option<(Option<String>, String, String)> {
        Some((None, keyword.into(), value.into()))
    }

    #[test]
    fn a_comment_ends_a_line_unless_it_is_escaped() {
        assert_eq!(read("body A /x/ # why"), plain("body", "A /x/"));
        assert_eq!(read(r"body A /\#x\\#y/"), plain("body", r"A /#x\#y/"));
        assert_eq!(read("  # only"), None);
        assert_eq!(read(""), None);
    }

    #[test]
    fn keywords_are_found_in_any_case_and_with_dashes() {
        assert_eq!(read("\tRequired-Score\t 5 \r"), plain("required_score", "5"));
        assert_eq!(read("endif"), plain("endif", ""));
    }

    #[test]
    fn a_language_stands_before_its_line() {
        let line = Some((Some("de".into()), "describe".into(), "A b  c".into()));
        assert_eq!(read("lang de describe  A b  c"), line);
        assert_eq!(read("lang de # nothing"), plain("lang", "de"));
        assert_eq!(read("lang"), plain("lang", ""));
    }
}
