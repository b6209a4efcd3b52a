//! Quoted-printable (RFC 2045, section 6.7).
//!
//! Digits in either case; a bad escape stays as it stands; white space between the `=` and the line end of a soft break
//! is dropped with it, up to [`SPACE_MAX`] bytes of it. White space at the end of other lines is kept, as most readers
//! do.

use memchr::memchr;

use super::hex_pair;
use super::sink::Sink;

/// How much white space may stand between `=` and its line end.
const SPACE_MAX: usize = 64;

#[derive(Debug, Clone, Default)]
pub(super) struct QuotedPrintable {
    at: At,
}

#[derive(Debug, Clone, Default)]
enum At {
    #[default]
    Text,
    /// Behind `=`.
    Equals,
    /// Behind `=` and a digit.
    Digit(u8),
    /// Behind `=` and so much of white space.
    Space { space: [u8; SPACE_MAX], len: usize },
    /// Behind `=` and CR.
    Cr,
}

impl QuotedPrintable {
    /// Decodes a prefix of `input`; how long it was.
    pub(super) fn decode(&mut self, input: &[u8], sink: &mut Sink) -> usize {
        let mut taken = 0;
        while taken < input.len() && !sink.is_full() {
            let rest = &input[taken..];
            taken += match self.at {
                At::Text => self.text(rest, sink),
                _ => self.escape(rest[0], sink),
            };
        }
        taken
    }

    pub(super) fn finish(&mut self, sink: &mut Sink) {
        if let At::Digit(digit) = self.at {
            sink.push(&[b'=', digit]);
        }
        self.at = At::Text;
    }

    fn text(&mut self, input: &[u8], sink: &mut Sink) -> usize {
        let (spare, room) = {
            let spare = sink.spare();
            let room = spare.len();
            (spare, room)
        };
        let mut taken = 0;
        let mut wrote = 0;
        while wrote < room {
            let rest = &input[taken..];
            match *rest {
                [b'=', high, low, ..] if hex_pair(high, low).is_some() => {
                    spare[wrote] = hex_pair(high, low).unwrap_or_default();
                    taken += 3;
                    wrote += 1;
                }
                [b'=', b'\r', b'\n', ..] => taken += 3,
                [b'=', ..] => {
                    self.at = At::Equals;
                    taken += 1;
                    break;
                }
                [] => break,
                _ => {
                    let run = memchr(b'=', rest).unwrap_or(rest.len()).min(room - wrote);
                    spare[wrote..wrote + run].copy_from_slice(&rest[..run]);
                    taken += run;
                    wrote += run;
                }
            }
        }
        sink.wrote(wrote);
        taken
    }

    /// Reads one byte of an escape; 0 when it is not part of it.
    fn escape(&mut self, byte: u8, sink: &mut Sink) -> usize {
        match (&mut self.at, byte) {
            (At::Digit(high), _) => {
                let high = *high;
                self.at = At::Text;
                match hex_pair(high, byte) {
                    Some(decoded) => sink.push(&[decoded]),
                    None => {
                        sink.push(&[b'=', high]);
                        return 0;
                    }
                }
            }
            (At::Cr, _) => {
                self.at = At::Text;
                return usize::from(byte == b'\n');
            }
            (_, b'\n') => self.at = At::Text,
            (_, b'\r') => self.at = At::Cr,
            (At::Equals, _) if byte.is_ascii_hexdigit() => self.at = At::Digit(byte),
            (At::Equals, b' ' | b'\t') => {
                let mut space = [0; SPACE_MAX];
                space[0] = byte;
                self.at = At::Space { space, len: 1 };
            }
            (At::Space { space, len }, b' ' | b'\t') if *len < SPACE_MAX => {
                space[*len] = byte;
                *len += 1;
            }
            _ => {
                self.not_an_escape(sink);
                return 0;
            }
        }
        1
    }

    fn not_an_escape(&mut self, sink: &mut Sink) {
        sink.push(b"=");
        if let At::Space { space, len } = &self.at {
            sink.push(&space[..*len]);
        }
        self.at = At::Text;
    }
}
