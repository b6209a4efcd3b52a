//! Quoted-printable (RFC 2045, section 6.7).
//!
//! Digits may have either case; a bad escape stays unchanged; white space between the `=` and the line end of a soft
//! break is dropped with it, up to [`SPACE_MAX`] bytes; more white space stays, with a remark if a line end follows.
//! White space at the end of other lines is kept, as most readers do: a signature may be made of any of these bytes. [`QuotedPrintable::trimming`]
//! drops it as RFC 2045, section 6.7 (3) demands, for texts that are shown and counted, in lines of up to [`BLANKS_MAX`] blanks.
//! A soft break within an escape (`=5=` at the end
//! of a line, then `8`; or `==`, then `58`) leaves bad escapes; readers that remove soft breaks first see `=58`, a
//! second reading if both digits exist.

use alloc::vec::Vec;

use memchr::{memchr, memchr2};

use super::Remark;
use super::sink::Sink;

/// How much white space may stand between `=` and its line end.
const SPACE_MAX: usize = 64;

/// How many blanks at the end of a line are dropped: no line of a mail is longer (RFC 5322, section 2.1.1). More blanks stay.
const BLANKS_MAX: usize = 998;

#[derive(Debug, Clone, Default)]
pub(super) struct QuotedPrintable {
    at: At,
    /// An escape goes on behind a soft break within it.
    joins: bool,
    told: bool,
    long_told: bool,
    trims: bool,
    /// Blanks at the end of the input so far, which are dropped if a line end follows.
    blanks: Vec<u8>,
}

#[derive(Debug, Clone, Default)]
enum At {
    #[default]
    Text,
    /// After `=`.
    Equals,
    /// After `=` and a digit.
    Digit(u8),
    /// After `=` and so much white space.
    Space { space: [u8; SPACE_MAX], len: usize },
    /// After `=` and more white space than that, which has been emitted.
    Long,
    /// After the `=` and the CRs of a soft break.
    Cr { within: Option<Escape> },
    /// After a soft break within an escape; the part of the escape that follows it.
    Held(Escape),
    /// After a possible soft break within an escape: a second `=`, and so much white space.
    Broken { escape: Escape, space: [u8; SPACE_MAX], len: usize },
}

/// An escape that has begun.
#[derive(Debug, Clone, Copy)]
enum Escape {
    Equals,
    Digit(u8),
}

impl QuotedPrintable {
    /// A reader that drops white space at the ends of lines.
    pub(super) fn trimming() -> QuotedPrintable {
        QuotedPrintable { trims: true, ..QuotedPrintable::default() }
    }

    /// Decodes a prefix of `input`; how long it was. After a remark nothing more is decoded.
    pub(super) fn decode(&mut self, input: &[u8], sink: &mut Sink) -> (usize, Option<Remark>) {
        let mut taken = 0;
        while taken < input.len() && !sink.is_full() {
            let rest = &input[taken..];
            taken += match &self.at {
                At::Text if self.trims => self.trimmed(rest, sink),
                At::Text => self.text(rest, sink),
                At::Held(Escape::Digit(_)) if rest[0].is_ascii_hexdigit() && !self.joins && !self.told => {
                    self.told = true;
                    return (taken, Some(Remark::BrokenEscape));
                }
                At::Long if matches!(rest[0], b'\r' | b'\n') && !self.long_told => {
                    self.long_told = true;
                    return (taken, Some(Remark::LongSoftBreak));
                }
                _ => self.escape(rest[0], sink),
            };
        }
        (taken, None)
    }

    /// The other reading from the last remark on.
    pub(super) fn joining(&self) -> QuotedPrintable {
        QuotedPrintable { joins: true, ..self.clone() }
    }

    pub(super) fn finish(&mut self, sink: &mut Sink) {
        match self.at {
            At::Digit(digit) => sink.push(&[b'=', digit]),
            At::Broken { escape, .. } | At::Held(escape) | At::Cr { within: Some(escape) } => escape.push(sink),
            _ => {}
        }
        self.at = At::Text;
        self.blanks.clear();
    }

    /// Decodes text up to its next blank, or takes blanks, or decides on those that were taken.
    fn trimmed(&mut self, input: &[u8], sink: &mut Sink) -> usize {
        let room = BLANKS_MAX.saturating_sub(self.blanks.len());
        let run = input.iter().take(room).take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        if run > 0 {
            self.blanks.extend_from_slice(&input[..run]);
            return run;
        }
        if matches!(input, [b'\r' | b'\n', ..]) {
            self.blanks.clear();
        }
        if !self.blanks.is_empty() {
            sink.push(&self.blanks);
            self.blanks.clear();
            return 0;
        }
        let text = memchr2(b' ', b'\t', input).unwrap_or(input.len());
        self.text(&input[..text], sink)
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
                [b'=', high, low, ..] if text::hex::pair(high, low).is_some() => {
                    spare[wrote] = text::hex::pair(high, low).unwrap_or_default();
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
            (At::Digit(high), b'=') => self.at = At::broken(Escape::Digit(*high)),
            (At::Digit(high), _) => {
                let high = *high;
                self.at = At::Text;
                match text::hex::pair(high, byte) {
                    Some(decoded) => sink.push(&[decoded]),
                    None => {
                        sink.push(&[b'=', high]);
                        return 0;
                    }
                }
            }
            (At::Long, b' ' | b'\t') => sink.push(&[byte]),
            (At::Long, _) => {
                self.at = At::Text;
                return 0;
            }
            (At::Cr { .. }, b'\r') => {}
            (At::Cr { within }, _) => {
                self.at = within.map_or(At::Text, At::Held);
                return usize::from(byte == b'\n');
            }
            (At::Broken { escape, .. }, b'\r') => self.at = At::Cr { within: Some(*escape) },
            (At::Broken { escape, .. }, b'\n') => self.at = At::Held(*escape),
            (At::Held(escape), _) if self.joins => {
                self.at = escape.resume();
                return 0;
            }
            (At::Held(Escape::Equals), _) if byte.is_ascii_hexdigit() => self.at = At::Held(Escape::Digit(byte)),
            // Another soft break may follow at once.
            (At::Held(escape), b'=') => self.at = At::broken(*escape),
            (At::Held(escape), _) => {
                escape.push(sink);
                self.at = At::Text;
                return 0;
            }
            (At::Broken { escape, len: 0, .. }, _) if !matches!(byte, b' ' | b'\t') => {
                escape.push(sink);
                self.at = At::Equals;
                return 0;
            }
            (_, b'\n') => self.at = At::Text,
            (_, b'\r') => self.at = At::Cr { within: None },
            (At::Equals, b'=') => self.at = At::broken(Escape::Equals),
            (At::Equals, _) if byte.is_ascii_hexdigit() => self.at = At::Digit(byte),
            (At::Equals, b' ' | b'\t') => {
                let mut space = [0; SPACE_MAX];
                space[0] = byte;
                self.at = At::Space { space, len: 1 };
            }
            (At::Space { space, len } | At::Broken { space, len, .. }, b' ' | b'\t') if *len < SPACE_MAX => {
                space[*len] = byte;
                *len += 1;
            }
            (_, b' ' | b'\t') => {
                self.not_an_escape(sink);
                self.at = At::Long;
                return 0;
            }
            _ => {
                self.not_an_escape(sink);
                return 0;
            }
        }
        1
    }

    fn not_an_escape(&mut self, sink: &mut Sink) {
        if let At::Broken { escape, .. } = &self.at {
            escape.push(sink);
        }
        sink.push(b"=");
        if let At::Space { space, len } | At::Broken { space, len, .. } = &self.at {
            sink.push(&space[..*len]);
        }
        self.at = At::Text;
    }
}

impl At {
    const fn broken(escape: Escape) -> At {
        At::Broken { escape, space: [0; SPACE_MAX], len: 0 }
    }
}

impl Escape {
    /// Emits an invalid escape unchanged.
    fn push(self, sink: &mut Sink) {
        match self {
            Escape::Equals => sink.push(b"="),
            Escape::Digit(digit) => sink.push(&[b'=', digit]),
        }
    }

    const fn resume(self) -> At {
        match self {
            Escape::Equals => At::Equals,
            Escape::Digit(digit) => At::Digit(digit),
        }
    }
}
