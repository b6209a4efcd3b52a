//! Parts without their transfer coding (BINARY, RFC 3516), and the beginning of a text (PREVIEW, RFC 8970).
//!
//! A part is decoded as it is read: once to count its bytes, which are announced, and once to send them. So it may have any size.

use alloc::string::String;
use alloc::vec::Vec;

use mime::Decoder;
use stream::{Coding, Event, Fuel, Nothing, Stage, Window};

use super::Unread;

const WINDOW_BYTES: usize = 16 << 10;

/// The longest preview, in characters (RFC 8970, section 3.1: 200 at most, 256 for others).
const PREVIEW_CHARACTERS: usize = 200;

/// Reads a message from an offset.
type Read<'a> = dyn FnMut(u64, &mut [u8]) -> Result<usize, Unread> + 'a;

/// Decodes what `read` brings from an offset on, up to an end.
pub(super) struct Decoding {
    decoder: Option<Decoder>,
    window: Window,
    /// Read and not decoded yet.
    input: Vec<u8>,
    at: u64,
    end: u64,
    is_over: bool,
}

impl Decoding {
    pub fn new(coding: Coding, from: u64, to: u64) -> Self {
        let decoder = (coding != Coding::Identity).then(|| Decoder::trimming(coding));
        let window = Window::with_capacity(WINDOW_BYTES);
        Decoding { decoder, window, input: Vec::new(), at: from, end: to, is_over: false }
    }

    /// The next bytes; empty at the end.
    pub fn next(&mut self, read: &mut Read<'_>) -> Result<Vec<u8>, Unread> {
        while !self.is_over {
            if self.input.is_empty() && self.at < self.end {
                self.fill(read)?;
            }
            let Some(decoder) = &mut self.decoder else {
                self.is_over = self.input.is_empty();
                return Ok(core::mem::take(&mut self.input));
            };
            let mut fuel = Fuel::new(WINDOW_BYTES as u64 * 8);
            let event = match self.input.is_empty() {
                true => decoder.finish(&Nothing, &mut self.window, &mut fuel),
                false => {
                    let step = decoder.step(&self.input, &mut self.window, &mut fuel);
                    self.input.drain(..step.taken);
                    step.event
                }
            };
            self.is_over = event == Event::End;
            if !self.window.is_empty() {
                let decoded = self.window.filled().to_vec();
                self.window.clear();
                return Ok(decoded);
            }
        }
        Ok(Vec::new())
    }

    fn fill(&mut self, read: &mut Read<'_>) -> Result<(), Unread> {
        let wanted = usize::try_from(self.end - self.at).unwrap_or(usize::MAX).min(WINDOW_BYTES);
        self.input.resize(wanted, 0);
        let length = read(self.at, &mut self.input)?;
        if length == 0 {
            return Err(Unread::Short);
        }
        self.input.truncate(length);
        self.at += length as u64;
        Ok(())
    }
}

/// The beginning of the first text of a mail, in one line.
pub(super) fn preview(mail: &[u8]) -> String {
    use sieve::View as _;
    let parts = sieve::Mail::new(mail, mail.len() as u64).parts();
    let is = |kind: &'static str| parts.iter().find(move |part| part.kind == kind);
    // Of unknown subtypes as if they were plain (RFC 2046, section 4.1.4).
    let other = || parts.iter().find(|part| part.kind.starts_with("text/"));
    let text = match (is("text/plain"), is("text/html")) {
        (Some(part), _) => part.content.clone(),
        (None, Some(part)) => sieve::mail::of_html(&part.content),
        (None, None) => other().map(|part| part.content.clone()).unwrap_or_default(),
    };
    let mut preview = String::new();
    // What is cited was read before.
    for word in text.lines().filter(|line| !line.starts_with('>')).flat_map(str::split_whitespace) {
        let separator = usize::from(!preview.is_empty());
        let room = PREVIEW_CHARACTERS.saturating_sub(preview.chars().count() + separator);
        if room == 0 {
            break;
        }
        preview.extend((separator > 0).then_some(' '));
        preview.extend(word.chars().filter(|character| !character.is_control()).take(room));
    }
    preview
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(coding: Coding, text: &[u8], piece: usize) -> Vec<u8> {
        let mut decoding = Decoding::new(coding, 3, 3 + text.len() as u64);
        let mut read = |at: u64, buffer: &mut [u8]| {
            let rest = &text[at as usize - 3..];
            let length = rest.len().min(buffer.len()).min(piece);
            buffer[..length].copy_from_slice(&rest[..length]);
            Ok(length)
        };
        let mut all = Vec::new();
        while let piece @ [_, ..] = decoding.next(&mut read).unwrap().as_slice() {
            all.extend_from_slice(piece);
        }
        all
    }

    #[test]
    fn a_preview_is_of_any_text() {
        for kind in ["text/plain", "text/x-y", "text/html"] {
            let mail = format!("Content-Type: {kind}\r\n\r\n> cited\r\nsome  words\r\n");
            assert!(preview(mail.as_bytes()).ends_with("some words"), "{kind}");
        }
        assert_eq!(preview(b"Content-Type: image/png\r\n\r\nx\r\n"), "");
    }

    #[test]
    fn parts_are_decoded_however_they_are_read() {
        let long: Vec<u8> = (0..100_000u32).map(|at| at as u8).collect();
        let lines = text::base64::encode(&long);
        let lines: Vec<u8> = lines.as_bytes().chunks(76).flat_map(|line| [line, b"\r\n"].concat()).collect();
        for piece in [1_000, 7_001, usize::MAX] {
            assert_eq!(decoded(Coding::Base64, &lines, piece), long);
            assert_eq!(decoded(Coding::Identity, &long, piece), long);
        }
        assert_eq!(decoded(Coding::QuotedPrintable, b"a=3Db=\r\nc\r\n", 1), b"a=bc\r\n");
        assert_eq!(decoded(Coding::QuotedPrintable, b"hello  \r\n=20\t\r\n", 1), b"hello\r\n \r\n");
        assert_eq!(decoded(Coding::Base64, b"", 1), b"");
    }

    #[test]
    fn a_preview_is_one_line_of_what_is_new() {
        assert_eq!(preview(b"Subject: x\r\n\r\n> old\r\n one \r\n\r\ntwo\r\n"), "one two");
        assert_eq!(preview(b"Content-Type: text/html\r\n\r\n<p>one<p><b>two</b>"), "one two");
        assert_eq!(preview(b"Content-Type: text/html; charset=utf-8 (x)\r\n\r\n<h1>one</h1>two"), "one two");
        assert_eq!(preview(b"Content-Type: image/png\r\n\r\nxx"), "");
        let long = format!("\r\n{}", "grün ".repeat(100));
        assert_eq!(preview(long.as_bytes()).chars().count(), 199, "a blank would be the last");
    }
}
