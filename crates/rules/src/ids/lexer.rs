//! Lines, heads and options of rules, as bytes; their meaning is [`compile`](super::compile)'s.
//!
//! A line that ends with `\` goes on with the next. A value ends at the first `;` without a `\` before it, inside quotes too, as in
//! Suricata.

use std::borrow::Cow;

/// A logical line: its number from 1, and its bytes.
#[derive(Debug)]
pub(super) struct Line<'a> {
    pub number: u32,
    pub text: Cow<'a, [u8]>,
}

/// The logical lines of a file that are not empty and no comment.
pub(super) fn lines(bytes: &[u8]) -> impl Iterator<Item = Line<'_>> {
    let mut physical = bytes.split(|&byte| byte == b'\n').enumerate();
    std::iter::from_fn(move || {
        loop {
            let (at, first) = physical.next()?;
            let number = u32::try_from(at + 1).unwrap_or(u32::MAX);
            let first = first.trim_ascii();
            if first.is_empty() || first.starts_with(b"#") {
                continue;
            }
            let Some(head) = first.strip_suffix(b"\\") else {
                return Some(Line { number, text: Cow::Borrowed(first) });
            };
            let mut text = head.to_vec();
            for (_, next) in physical.by_ref() {
                let next = next.trim_ascii();
                let more = next.strip_suffix(b"\\");
                text.extend_from_slice(more.unwrap_or(next));
                if more.is_none() {
                    break;
                }
            }
            return Some(Line { number, text: Cow::Owned(text) });
        }
    })
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
    fn a_semicolon_in_quotes_ends_the_value() {
        let pieces = pieces(b"alert ip any any -> any any (content:\"a;b\"; sid:1;)").expect("pieces");
        assert!(quoted(pieces.options[0].value.expect("a value")).is_err());
    }
}
