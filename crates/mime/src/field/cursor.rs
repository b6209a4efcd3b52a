//! Reading a field value from front to back: white space, comments, tokens, quoted strings (RFC 5322, section 3.2).
//!
//! Nothing here fails; what does not fit the grammar is left for the caller to skip.

use alloc::vec::Vec;

/// A place in a field value.
#[derive(Debug, Clone)]
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(super) const fn new(value: &'a [u8]) -> Cursor<'a> {
        Cursor { rest: value }
    }

    pub(super) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    pub(super) fn advance(&mut self, count: usize) {
        self.rest = self.rest.get(count..).unwrap_or_default();
    }

    /// Takes `byte` if it comes next.
    pub(super) fn skip(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        if found {
            self.advance(1);
        }
        found
    }

    /// Takes white space, line ends and comments.
    pub(super) fn skip_space(&mut self) {
        while let Some(byte) = self.peek() {
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' => self.advance(1),
                b'(' => {
                    self.skip_comment();
                }
                _ => return,
            }
        }
    }

    /// Takes a comment; whether it was closed.
    fn skip_comment(&mut self) -> bool {
        let mut depth = 0_usize;
        while let Some(byte) = self.peek() {
            self.advance(1);
            match byte {
                b'\\' => self.advance(1),
                b'(' => depth += 1,
                b')' if depth <= 1 => return true,
                b')' => depth -= 1,
                _ => {}
            }
        }
        false
    }

    /// Takes a token and the space around it.
    pub(super) fn token(&mut self) -> &'a [u8] {
        self.skip_space();
        let token = self.until(|byte| byte <= b' ' || b"()<>@,;:\\\"/[]?=".contains(&byte));
        self.skip_space();
        token
    }

    /// Takes bytes up to the first that satisfies `stop`.
    pub(super) fn until(&mut self, stop: impl Fn(u8) -> bool) -> &'a [u8] {
        let end = self.rest.iter().position(|&byte| stop(byte));
        let (taken, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        taken
    }
}

/// Returns `value` without its comments, nested and unclosed ones too; parentheses in quotes do not begin a comment.
/// `None` if it has no comment.
pub(crate) fn without_comments(value: &[u8]) -> Option<Vec<u8>> {
    if !value.contains(&b'(') {
        return None;
    }
    let mut bare = Vec::with_capacity(value.len());
    let mut cursor = Cursor::new(value);
    let mut is_quoted = false;
    while let Some(byte) = cursor.peek() {
        if byte == b'(' && !is_quoted {
            cursor.skip_comment();
            continue;
        }
        is_quoted ^= byte == b'"';
        let count = if byte == b'\\' { 2 } else { 1 };
        bare.extend(cursor.rest().iter().take(count));
        cursor.advance(count);
    }
    (bare != value).then_some(bare)
}

/// Returns `value` with a letter in place of the parenthesis of an unclosed comment, which some readers ignore: then
/// the text after it is visible. `None` without such a comment.
pub(crate) fn with_unclosed_comment(value: &[u8]) -> Option<Vec<u8>> {
    let mut cursor = Cursor::new(value);
    let mut is_quoted = false;
    while let Some(byte) = cursor.peek() {
        let at = value.len() - cursor.rest().len();
        if byte == b'(' && !is_quoted {
            if !cursor.skip_comment() {
                let mut text = value.to_vec();
                text[at] = b'x';
                return Some(text);
            }
            continue;
        }
        is_quoted ^= byte == b'"';
        cursor.advance(if byte == b'\\' { 2 } else { 1 });
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_that_is_never_closed_is_text_for_some() {
        for (value, text) in [
            (&b"a; x=(; y=z"[..], Some(&b"a; x=x; y=z"[..])),
            (b"a (b) (c (d) e", Some(b"a (b) xc (d) e")),
            (b"a (b (c) d)", None),
            (b"a \"(\" \\(", None),
        ] {
            assert_eq!(with_unclosed_comment(value).as_deref(), text, "{}", value.escape_ascii());
        }
    }

    #[test]
    fn comments_are_taken_out_but_for_quoted_ones() {
        for (value, bare) in
            [(&b"Content-(a (b) c)Type (x"[..], &b"Content-Type "[..]), (b"a=\"(b)\" (\\) c)d", b"a=\"(b)\" d")]
        {
            assert_eq!(without_comments(value).as_deref(), Some(bare), "{}", value.escape_ascii());
        }
        for value in [&b"plain"[..], b"\"(quoted)\""] {
            assert_eq!(without_comments(value), None);
        }
    }

    #[test]
    fn comments_nest_and_may_not_end() {
        let mut cursor = Cursor::new(b" (a (b\\)) c) base64 (x");
        assert_eq!(cursor.token(), b"base64");
        assert_eq!(cursor.rest(), b"");
    }
}
