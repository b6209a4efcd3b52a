//! Where the parser stands, and what it steps over.

use super::super::error::{SyntaxError, Wrong};
use super::Parser;

impl<'t> Parser<'t, '_> {
    pub(super) fn fail<T>(&self, wrong: Wrong) -> Result<T, SyntaxError> {
        Err(SyntaxError { offset: self.at, wrong })
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// Text that is not read yet.
    pub(super) fn rest(&self) -> &'t [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Steps over the byte if it stands here and is not quoted.
    pub(super) fn eat(&mut self, byte: u8) -> bool {
        !self.is_quoted && self.eat_plain(byte)
    }

    /// Steps over the byte if it stands here.
    pub(super) fn eat_plain(&mut self, byte: u8) -> bool {
        let is_here = self.peek() == Some(byte);
        self.at += usize::from(is_here);
        is_here
    }

    /// Steps over what is up to `end`, and `end`; tells what is between.
    pub(super) fn take_until(&mut self, end: u8) -> Option<&'t [u8]> {
        let rest = self.rest();
        let length = memchr::memchr(end, rest)?;
        self.at += length + 1;
        Some(&rest[..length])
    }

    /// Steps over at most `most` bytes for which `holds`, and tells them.
    pub(super) fn take_while(&mut self, most: usize, holds: impl Fn(u8) -> bool) -> &'t [u8] {
        let rest = self.rest();
        let length = rest.iter().take(most).take_while(|&&byte| holds(byte)).count();
        self.at += length;
        &rest[..length]
    }

    /// Steps over comments, with `x` over blanks too, and over `\E` and `\Q`.
    pub(super) fn skip_comments(&mut self) -> Result<(), SyntaxError> {
        loop {
            if !self.flags.extended && !matches!(self.peek(), Some(b'\\' | b'(')) {
                return Ok(());
            }
            if self.rest().starts_with(b"\\E") {
                self.is_quoted = false;
                self.at += 2;
            } else if self.is_quoted {
                return Ok(());
            } else if self.rest().starts_with(b"\\Q") {
                self.is_quoted = true;
                self.at += 2;
            } else if self.rest().starts_with(b"(?#") {
                if self.take_until(b')').is_none() {
                    return self.fail(Wrong::OpenGroup);
                }
            } else if !self.flags.extended || !self.skip_blank() {
                return Ok(());
            }
        }
    }

    /// Steps over a blank or a comment to the end of the line, and says whether one was here.
    fn skip_blank(&mut self) -> bool {
        match self.peek() {
            Some(b' ' | b'\t'..=b'\r') => self.at += 1,
            Some(b'#') => {
                if self.take_until(b'\n').is_none() {
                    self.at = self.text.len();
                }
            }
            _ => return false,
        }
        true
    }
}
