//! The tags by which ClamAV tells HTML from other text, anywhere in it.
//!
//! The list was read off clamscan 1.4 with its built-in magic. A database's own magic (`.ftm`) may name others.

use memchr::memchr;

/// The tags, in lower case.
const TAGS: [&[u8]; 8] = [b"<html>", b"<head>", b"<script", b"<iframe", b"<a href", b"<table", b"<img ", b"<object"];

/// The longest of them.
const TAG_BYTES_MAX: usize = 7;

/// Whether one of the tags is in these bytes.
pub(crate) fn has_tag(bytes: &[u8]) -> bool {
    let mut late = Late::default();
    let mut rest = bytes;
    while !rest.is_empty() {
        let (taken, tag) = late.read(rest);
        if tag.is_some() {
            return true;
        }
        rest = &rest[taken..];
    }
    false
}

/// Text in which none of the tags has come.
#[derive(Debug, Clone, Default)]
pub(super) struct Late {
    /// Possible beginning of a tag, as it stands.
    begun: [u8; TAG_BYTES_MAX],
    length: usize,
}

impl Late {
    /// Reads bytes up to the end of a tag, if there is one; how many were read, and the tag as it stands.
    pub(super) fn read(&mut self, input: &[u8]) -> (usize, Option<&[u8]>) {
        let mut at = 0;
        while at < input.len() {
            if self.length == 0 {
                let Some(next) = memchr(b'<', &input[at..]) else { return (input.len(), None) };
                at += next;
            }
            self.begun[self.length] = input[at];
            self.length += 1;
            let begun = self.begun[..self.length].to_ascii_lowercase();
            if TAGS.contains(&begun.as_slice()) {
                return (at + 1, Some(&self.begun[..self.length]));
            }
            if TAGS.iter().any(|tag| tag.starts_with(&begun)) {
                at += 1;
            } else {
                // A byte that ends one beginning may be another.
                at += usize::from(self.length == 1);
                self.length = 0;
            }
        }
        (input.len(), None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_found_wherever_it_is_cut_and_in_any_case() {
        let text = b"a < b <<b> <<htMl> <script";
        for cut in 0..text.len() {
            let mut late = Late::default();
            let (taken, found) = late.read(&text[..cut]);
            if cut >= 18 {
                assert_eq!((taken, found), (18, Some(&b"<htMl>"[..])), "{cut}");
            } else {
                assert_eq!((taken, found), (cut, None), "{cut}");
                assert_eq!(late.read(&text[cut..]), (18 - cut, Some(&b"<htMl>"[..])), "{cut}");
            }
        }
        assert!(has_tag(b"text <A HREF") && !has_tag(b"<p> <htm <headline <table"[..19].as_ref()));
    }
}
