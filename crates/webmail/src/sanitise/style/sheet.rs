//! A style as a list of declarations: without comments, and cut at the semicolons between them.

use alloc::borrow::Cow;
use alloc::string::String;

/// A style whose comments are blanks. One that is not closed goes to the end.
pub(super) fn without_comments(style: &str) -> Cow<'_, str> {
    if !style.contains("/*") {
        return Cow::Borrowed(style);
    }
    let (mut out, mut rest, mut quotes) = (String::with_capacity(style.len()), style, Quotes::default());
    loop {
        let comment = rest.char_indices().find(|&(at, c)| quotes.passes(c) && c == '/' && begins_at(rest, at, "/*"));
        let Some((at, _)) = comment else { break };
        let (before, comment) = rest.split_at(at);
        out.push_str(before);
        out.push(' ');
        rest = comment.get(2..).and_then(|comment| comment.split_once("*/")).map_or("", |(_, behind)| behind);
    }
    out.push_str(rest);
    Cow::Owned(out)
}

fn begins_at(text: &str, at: usize, beginning: &str) -> bool {
    text.get(at..).is_some_and(|text| text.starts_with(beginning))
}

/// Tells what stands in quotes, character by character.
#[derive(Default)]
pub(super) struct Quotes {
    open: Option<char>,
    is_escaped: bool,
}

impl Quotes {
    /// Whether a character stands outside, and is no quote.
    pub fn passes(&mut self, character: char) -> bool {
        if core::mem::take(&mut self.is_escaped) {
            return false;
        }
        self.is_escaped = character == '\\';
        match self.open {
            Some(open) => {
                if character == open || character == '\n' {
                    self.open = None;
                }
                false
            }
            None => {
                self.open = Some(character).filter(|character| matches!(character, '"' | '\''));
                self.open.is_none()
            }
        }
    }
}

/// Declarations that are still to be read.
pub(super) struct Sheet<'a> {
    pub rest: &'a str,
    /// Whether a quote or a bracket is not closed: from there on each semicolon ends a declaration.
    pub is_open: bool,
}

impl<'a> Sheet<'a> {
    /// The next declaration, which ends at a semicolon outside of quotes and brackets.
    pub fn declaration(&mut self) -> Option<&'a str> {
        self.rest = self.rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ';');
        if self.rest.is_empty() {
            return None;
        }
        let end = self.end().unwrap_or_else(|| self.rest.find(';').unwrap_or(self.rest.len()));
        let (declaration, rest) = self.rest.split_at(end);
        self.rest = rest;
        Some(declaration)
    }

    fn end(&mut self) -> Option<usize> {
        if self.is_open {
            return None;
        }
        let (mut quotes, mut depth) = (Quotes::default(), 0u32);
        for (at, character) in self.rest.char_indices() {
            match character {
                _ if !quotes.passes(character) => {}
                '(' | '[' | '{' => depth = depth.saturating_add(1),
                ')' | ']' | '}' => depth = depth.saturating_sub(1),
                ';' if depth == 0 => return Some(at),
                _ => {}
            }
        }
        self.is_open = depth > 0 || quotes.open.is_some();
        None
    }
}
