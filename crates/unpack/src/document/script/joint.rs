//! Text between two strings: whether the second goes on with the first, by an operator, a comma, a line end or a statement that
//! appends it.

use super::{Escape, Script, State};
use crate::document::html::append::{APPEND_BYTES, is_append, is_of_append};

/// Characters after a string that show its use.
const TAIL_BYTES: usize = 40;

impl Script {
    /// Reads a byte behind a string; whether it was read.
    pub(super) fn behind(&mut self, mut tail: Vec<u8>, byte: u8) -> bool {
        let goes_on = matches!(byte, b'+' | b'&' | b'_' | b'.' | b']' | b')') || byte.is_ascii_whitespace();
        if tail.is_empty() && !goes_on && !(byte == b',' && self.value.array) {
            return self.over(tail, &[], byte);
        }
        let joint: Vec<u8> = tail.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
        let is_quote = matches!(byte, b'"' | b'\'' | b'`');
        if is_quote && (joint == b"." || !matches!(joint.first(), Some(b'.' | b']' | b')'))) {
            return self.next_piece(&tail, &joint, byte);
        }
        let goes_on = match joint.first() {
            _ if tail.contains(&b'\n') && is_prefix(&[&joint[..], &[byte]].concat()) => true,
            Some(b']' | b')') if joint.len() == 1 => byte.is_ascii_whitespace() || byte == b'.',
            Some(b'.') if joint.len() == 1 && byte.is_ascii_whitespace() => true,
            Some(b'.' | b']' | b')') => is_method(&joint, byte),
            None => byte.is_ascii_whitespace() || matches!(byte, b'+' | b'&' | b'_' | b',' | b'.' | b']' | b')'),
            Some(_) => byte.is_ascii_whitespace() || joint == b"&" && byte == b'_',
        };
        if goes_on && tail.len() < TAIL_BYTES {
            tail.push(byte);
            self.state = State::Behind(tail);
            return true;
        }
        self.over(tail, &joint, byte)
    }

    /// Another string begins behind one, after this text: whether it belongs to the first.
    fn next_piece(&mut self, tail: &[u8], joint: &[u8], quote: u8) -> bool {
        let adjoins = tail.contains(&b'\n') && is_prefix(joint);
        let joins = matches!(joint, b"+" | b"&" | b"&_" | b"_&" | b".") || adjoins;
        let lists = joint == b"," && self.value.array && !self.value.is_telling() && !self.value.is_template();
        if !joins && !lists {
            self.remember(tail);
            return self.finish(&[]);
        }
        self.value.adjoins |= adjoins;
        self.value.has_commas |= lists;
        self.value.listed = lists && (self.value.listed || self.value.pieces == 1);
        self.value.pieces += 1;
        self.state = State::In { quote, escape: Escape::None };
        true
    }

    /// The string is whole, unless the statement behind it goes on with its variable; whether the byte was read.
    fn over(&mut self, mut tail: Vec<u8>, joint: &[u8], byte: u8) -> bool {
        let may_append = !self.variable.is_empty() && is_prefix(joint) && is_of_append(byte);
        if may_append && !self.value.is_hopeless() {
            tail.push(byte);
            self.state = State::Append(tail);
            return true;
        }
        self.remember(&tail);
        self.finish(joint)
    }

    /// Reads a byte of a statement that may append the next string; whether it was read.
    pub(super) fn append(&mut self, mut text: Vec<u8>, byte: u8) -> bool {
        if is_of_append(byte) && text.len() < APPEND_BYTES {
            text.push(byte);
            self.state = State::Append(text);
            return true;
        }
        if matches!(byte, b'"' | b'\'' | b'`') && is_append(&text, &self.variable) {
            self.value.pieces += 1;
            self.state = State::In { quote: byte, escape: Escape::None };
            return true;
        }
        self.does_not_append(&text);
        false
    }

    /// The string is whole: the statement behind it appends nothing, and is read as others are.
    pub(super) fn does_not_append(&mut self, text: &[u8]) {
        self.finish(&[]);
        let mut at = 0;
        while at < text.len() {
            at += self.outside(&text[at..]);
        }
    }
}

/// Returns whether this text, with one character more, may be a call that reverses or joins strings and arrays.
fn is_method(tail: &[u8], next: u8) -> bool {
    const METHODS: [&[u8]; 3] = [b".split(", b".reverse(", b".join("];
    let call = tail.strip_prefix(b"]").or(tail.strip_prefix(b")")).unwrap_or(tail);
    let call = [call, &[next]].concat();
    let fits = |method: &&[u8]| method.starts_with(&call) || call.starts_with(method);
    next != b';' && next != b'\n' && METHODS.iter().any(fits)
}

/// Whether this is nothing, or what Python and C write in front of a string.
fn is_prefix(text: &[u8]) -> bool {
    text.len() <= 2 && text.iter().all(|byte| b"bBrRuUfFL".contains(byte))
}
