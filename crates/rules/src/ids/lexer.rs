//! Lines, heads and options of rules, as bytes; their meaning is [`compile`](super::compile)'s.
//!
//! A line that ends with `\` goes on with the next, and so does a rule until a line ends with `)` or another rule begins, as in Snort 3.
//! Comments are lines that begin with `#`, those from `#begin` to `#end`, and `/* */` before a line and before an option.
//! A value ends at the first `;` without a `\` before it, inside quotes too, as in
//! Suricata.

use std::borrow::Cow;
use std::ops::Range;

use super::action::Action;

/// A logical line: its place in the file, its number from 1, and its text.
#[derive(Debug)]
pub(super) struct Line<'a> {
    pub place: Range<usize>,
    pub number: u32,
    pub text: Cow<'a, [u8]>,
}

/// The logical lines of a file that are not empty and no comment.
pub(super) fn lines(bytes: &[u8]) -> impl Iterator<Item = Line<'_>> {
    all_lines(bytes).filter(|line| !line.text.is_empty() && !line.text.starts_with(b"#"))
}

/// All logical lines of a file; a block of comments is one.
pub(super) fn all_lines(bytes: &[u8]) -> impl Iterator<Item = Line<'_>> {
    // Editors of Windows begin a file with a mark.
    let at = if bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    Lines { bytes, at, number: 0 }
}

struct Lines<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The number of the line that was taken last.
    number: u32,
}

impl<'a> Iterator for Lines<'a> {
    type Item = Line<'a>;

    fn next(&mut self) -> Option<Line<'a>> {
        let start = self.at;
        let mut first = self.take()?;
        let number = self.number;
        if first.split(u8::is_ascii_whitespace).next() == Some(b"#begin") {
            while self.take().is_some_and(|line| !line.starts_with(b"#end")) {}
        }
        if first.starts_with(b"/*") {
            first = self.behind_comment(first);
        }
        let text = self.joined(first);
        Some(Line { place: start..self.at, number, text })
    }
}

impl<'a> Lines<'a> {
    /// The next line of the file and its end; none where it is over.
    fn peek(&self) -> Option<(&'a [u8], usize)> {
        let rest = self.bytes.get(self.at..).filter(|rest| !rest.is_empty())?;
        let length = memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
        Some((rest[..length].trim_ascii(), self.at + length))
    }

    fn take(&mut self) -> Option<&'a [u8]> {
        let (line, end) = self.peek()?;
        (self.at, self.number) = (end, self.number.saturating_add(1));
        Some(line)
    }

    /// What follows a comment between `/*` and `*/`.
    fn behind_comment(&mut self, mut line: &'a [u8]) -> &'a [u8] {
        loop {
            if let Some(end) = memchr::memmem::find(line, b"*/") {
                return line[end + 2..].trim_ascii();
            }
            let Some(next) = self.take() else { return b"" };
            line = next;
        }
    }

    /// A line with those that it goes on with.
    fn joined(&mut self, first: &'a [u8]) -> Cow<'a, [u8]> {
        let (is_rule, is_comment) = (begins_rule(first), first.starts_with(b"#"));
        let is_open = |text: &[u8]| is_rule && !is_comment && !text.ends_with(b")");
        if is_comment && !is_rule || !first.ends_with(b"\\") && !is_open(first) {
            return Cow::Borrowed(first);
        }
        let mut text = first.to_vec();
        loop {
            let goes_on = text.pop_if(|last| *last == b'\\').is_some();
            let next = self.peek().filter(|(next, _)| goes_on || is_open(&text) && !begins_rule(next));
            let Some((next, _)) = next else { return Cow::Owned(text) };
            self.take();
            if !goes_on {
                text.push(b' ');
            }
            if goes_on || !next.starts_with(b"#") {
                text.extend_from_slice(next);
            }
        }
    }
}

/// Whether a line begins with an action, behind `#` too.
fn begins_rule(line: &[u8]) -> bool {
    let start = line.iter().position(|byte| *byte != b'#' && !byte.is_ascii_whitespace()).unwrap_or(line.len());
    let mut words = line[start..].split(u8::is_ascii_whitespace);
    let word = words.next().and_then(|word| std::str::from_utf8(word).ok()).unwrap_or_default();
    words.next().is_some() && (word == "file_id" || Action::named(word).is_some())
}

/// A rule in pieces.
#[derive(Debug)]
pub(super) struct Pieces<'a> {
    /// Action, protocol, and where they stand addresses, ports and direction.
    pub head: Vec<&'a [u8]>,
    pub options: Vec<Opt<'a>>,
}

/// An option: its name, and its value without the blanks around it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Opt<'a> {
    pub name: &'a str,
    pub value: Option<&'a [u8]>,
}

/// Takes a rule apart.
pub(super) fn pieces(text: &[u8]) -> Result<Pieces<'_>, String> {
    let open = text.iter().position(|&byte| byte == b'(').ok_or("no options in parentheses")?;
    let (head, rest) = text.split_at(open);
    let rest = rest[1..].trim_ascii_end().strip_suffix(b")").ok_or("no ) at the end")?;
    Ok(Pieces { head: words(head)?, options: options(rest)? })
}

/// A rule with the names of its options in lower case: cases do not count there.
pub(super) fn with_lower_names(text: &[u8]) -> Cow<'_, [u8]> {
    let places: Vec<Range<usize>> = pieces(text)
        .map(|pieces| pieces.options)
        .unwrap_or_default()
        .iter()
        .filter(|option| option.name.bytes().any(|byte| byte.is_ascii_uppercase()))
        .map(|option| {
            let at = option.name.as_ptr().addr().saturating_sub(text.as_ptr().addr());
            at..at + option.name.len()
        })
        .collect();
    let mut text = Cow::Borrowed(text);
    for place in places {
        if let Some(name) = text.to_mut().get_mut(place) {
            name.make_ascii_lowercase();
        }
    }
    text
}

/// Words with blanks between them; a list in brackets is one word.
fn words(head: &[u8]) -> Result<Vec<&[u8]>, String> {
    let (mut words, mut depth, mut start) = (Vec::new(), 0u32, None);
    for (at, &byte) in head.iter().enumerate() {
        match byte {
            b'[' => depth += 1,
            b']' => depth = depth.checked_sub(1).ok_or("] without [")?,
            _ => {}
        }
        if byte.is_ascii_whitespace() && depth == 0 {
            words.extend(start.take().map(|start| &head[start..at]));
        } else if start.is_none() {
            start = Some(at);
        }
    }
    words.extend(start.map(|start| &head[start..]));
    if depth > 0 { Err("[ without ]".into()) } else { Ok(words) }
}

fn options(mut rest: &[u8]) -> Result<Vec<Opt<'_>>, String> {
    let mut options = Vec::new();
    loop {
        rest = rest.trim_ascii_start();
        if rest.is_empty() {
            return Ok(options);
        }
        if rest.starts_with(b"/*") {
            let end = memchr::memmem::find(rest, b"*/").ok_or("/* without */")?;
            rest = &rest[end + 2..];
            continue;
        }
        let end = end_of_option(rest);
        let option = rest.get(..end).unwrap_or(rest).trim_ascii();
        rest = rest.get(end + 1..).unwrap_or_default();
        let (name, value) = match option.iter().position(|&byte| byte == b':') {
            Some(colon) => (&option[..colon], Some(option[colon + 1..].trim_ascii())),
            None => (option, None),
        };
        let name = name.trim_ascii();
        if name.is_empty() {
            if value.is_some() {
                return Err("an option without a name".into());
            }
            continue;
        }
        let name = std::str::from_utf8(name).map_err(|_| "an option whose name is not text")?;
        if name.contains(char::is_whitespace) {
            return Err(format!("{:?} is no name of an option; a ; may be missing", self::text(name.as_bytes())));
        }
        options.push(Opt { name, value });
    }
}

/// The next `;` that no `\` stands before, or the end.
fn end_of_option(text: &[u8]) -> usize {
    let mut from = 0;
    while let Some(at) = memchr::memchr(b';', &text[from..]) {
        let at = from + at;
        if at == 0 || text[at - 1] != b'\\' {
            return at;
        }
        from = at + 1;
    }
    text.len()
}

/// A value that may be negated: whether it is, and the rest.
pub(super) fn negated(value: &[u8]) -> (bool, &[u8]) {
    match value.strip_prefix(b"!") {
        Some(rest) => (true, rest.trim_ascii_start()),
        None => (false, value),
    }
}

/// The text between the quotes of a value, and what follows behind them.
pub(super) fn quoted(value: &[u8]) -> Result<(&[u8], &[u8]), String> {
    let Some(inner) = value.strip_prefix(b"\"") else {
        return Ok((value, &[]));
    };
    let mut at = 0;
    while let Some(&byte) = inner.get(at) {
        match byte {
            b'\\' => at += 1,
            b'"' => return Ok((&inner[..at], inner[at + 1..].trim_ascii())),
            _ => {}
        }
        at += 1;
    }
    Err("a quote that is not closed; a ; inside is written \\;".into())
}

/// The text between the quotes of a value behind which nothing stands.
pub(super) fn only_quoted(value: &[u8]) -> Result<&[u8], String> {
    match quoted(value)? {
        (text, []) => Ok(text),
        _ => Err(BEHIND_QUOTES.into()),
    }
}

/// The reason against a value that goes on behind its quotes.
pub(super) const BEHIND_QUOTES: &str = "words behind the quotes; a ; may be missing";

/// The items of a value between commas, without blanks around them.
pub(super) fn items(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii)
}

/// A value as text; control characters and broken UTF-8 are replaced.
pub(super) fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_taken_apart_over_continued_lines() {
        let file = b"# alert x\n\nalert tcp [1.1.1.1, 2.2.2.2] any -> any any ( \\\n msg:\"a\\;b\"; \\\n content:\"x\"; nocase;)\n";
        let line = lines(file).next().expect("a line");
        let pieces = pieces(&line.text).expect("a rule");
        assert_eq!((line.number, pieces.head.len()), (3, 7));
        let names: Vec<&str> = pieces.options.iter().map(|option| option.name).collect();
        assert_eq!(names, ["msg", "content", "nocase"]);
        assert_eq!(pieces.options[0].value, Some(&b"\"a\\;b\""[..]));
    }

    #[test]
    fn a_rule_goes_on_until_its_parenthesis_is_closed() {
        let file = b"alert tcp any any -> any 80\n(\n  msg:\"a(b)\";\n# content:\"no\";\n\n  /* ; */ sid:1;\n)\n\
            alert tcp any any -> any any (sid:2;\nalert http (sid:3;)\n#begin\nalert tcp (sid:4;)\n#end\n\
            /* alert tcp (sid:5;)\n*/ alert tcp (sid:6;)\n# a folder: C:\\\nvar A b\n";
        let rules: Vec<(u32, Vec<u8>)> = lines(file).map(|line| (line.number, line.text.into_owned())).collect();
        let numbers: Vec<u32> = rules.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, [1, 8, 9, 13, 16]);
        let options = |at: usize| {
            let pieces = pieces(&rules[at].1).ok()?;
            Some(pieces.options.iter().map(|option| option.name.to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(options(0), Some(vec!["msg".to_owned(), "sid".into()]));
        assert_eq!(options(1), None);
        assert_eq!(rules[3].1, b"alert tcp (sid:6;)");
        let marked = [b"\xef\xbb\xbf", &file[..]].concat();
        assert_eq!(lines(&marked).next().expect("a line").text, rules[0].1);
        let places: Vec<Range<usize>> = all_lines(file).map(|line| line.place).collect();
        assert!(places.windows(2).all(|pair| pair[0].end == pair[1].start));
        assert_eq!(places.last().map(|place| place.end), Some(file.len()));
    }

    #[test]
    fn a_semicolon_in_quotes_ends_the_value() {
        let pieces = pieces(b"alert ip any any -> any any (content:\"a;b\"; sid:1;)").expect("pieces");
        assert!(quoted(pieces.options[0].value.expect("a value")).is_err());
    }
}
