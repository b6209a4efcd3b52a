//! A script of a page as ClamAV normalises it: comments and blanks are gone, strings that are joined are one string,
//! variables have numbers for names, the arguments of `unescape` and `eval` are resolved.
//!
//! It is no parser of the language: regular expressions are read like anything else, and a comment of one line ends at
//! its first blank. Left out: what packers other than these two functions hide.
//!
//! Bounds: a script is read whole, in pieces of [`SOURCE_BYTES_MAX`]; each of its bytes makes at most one token of 12
//! bytes. Functions within functions have names of their own [`names::DEPTH_MAX`] deep. `eval` within `eval` is resolved [`EVAL_DEPTH_MAX`] times.

mod names;
mod tokens;

use tokens::{Kind, Tokens};

/// The longest script that is read as one.
pub(super) const SOURCE_BYTES_MAX: usize = 256 << 10;

const EVAL_DEPTH_MAX: u32 = 4;

/// A script that is being collected.
#[derive(Debug, Clone, Default)]
pub(super) struct Script {
    source: Vec<u8>,
}

impl Script {
    /// Collects a byte; whether there is room for another.
    pub(super) fn push(&mut self, byte: u8) -> bool {
        self.source.push(byte);
        self.source.len() < SOURCE_BYTES_MAX
    }

    /// Leaves out the tag that ended it.
    pub(super) fn cut_tag(&mut self) {
        let end = memchr::memrchr(b'<', &self.source).unwrap_or(self.source.len());
        self.source.truncate(end);
    }

    /// Writes the script.
    pub(super) fn write(self, out: &mut Vec<u8>) {
        let mut tokens = Tokens::default();
        tokens.read(&self.source, EVAL_DEPTH_MAX);
        let names = names::resolve(&tokens);
        out.extend_from_slice(b"<script>");
        let mut after_word = false;
        for (index, token) in tokens.all.iter().enumerate() {
            let is_word = matches!(token.kind, Kind::Word | Kind::Number);
            if is_word && after_word {
                out.push(b' ');
            }
            after_word = is_word;
            let text = tokens.text(token);
            match (token.kind, names.get(&index)) {
                (Kind::Word, Some(number)) => out.extend_from_slice(format!("n{number:03}").as_bytes()),
                (Kind::String | Kind::Constant, _) => out.extend([b"\"", text, b"\""].concat().to_ascii_lowercase()),
                _ => out.extend(text.to_ascii_lowercase()),
            }
        }
        out.extend_from_slice(b"</script>");
    }
}
