//! Undoing transfer codings as the bytes come.
//!
//! Whatever is fed in, something sensible comes out: junk is skipped or kept as mail readers do. One unnamed output, so
//! no objects are emitted. Memory is bounded by a constant (under 4 KiB).

mod base64;
mod binhex;
mod quoted_printable;
mod sink;
mod uuencode;
mod yenc;

use alloc::boxed::Box;
use alloc::vec::Vec;

use stream::{Class, Coding, Event, Finding, Fuel, Note, ReadAt, Stage, Step, Window};

use base64::Base64;
use binhex::BinHex;
use quoted_printable::QuotedPrintable;
pub(crate) use sink::{Sink, Spill};
use uuencode::Uuencode;
use yenc::Yenc;

/// Least share of junk bytes in content that is not Base64, one in this number: text has more by its full stops alone.
const JUNK_SHARE: u64 = 64;

const SOFT_BREAK: &str = "Heuristics.Ambiguous.QuotedPrintable.SoftBreak";

/// Undoes one transfer coding. `step` as long as there is input, then `finish` until it ends.
///
/// In Base64, junk is one finding `Heuristics.Malformed.Base64.Junk`; where data follows padding the stream can be read
/// as ending there, which is `Heuristics.Ambiguous.Base64.Padding`: this reading goes on, the second ends at once. In the same
/// line the second goes on, too, as if there were no padding.
#[derive(Debug, Clone)]
pub struct Decoder {
    inner: Inner,
    offset: u64,
    spill: Spill,
    remark: Option<Remark>,
    /// The second reading that the last event offered.
    alternative: Option<Other>,
}

/// A second reading of the following content.
#[derive(Debug, Clone)]
enum Other {
    Ended,
    Skipping(Base64),
    Joining(QuotedPrintable),
}

#[derive(Debug, Clone)]
enum Inner {
    Identity,
    Base64(Base64),
    QuotedPrintable(QuotedPrintable),
    Uuencode(Uuencode),
    BinHex(BinHex),
    Yenc(Yenc),
}

/// Remark of a coding on the next byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Remark {
    /// It is not of the alphabet. It has been skipped.
    Junk,
    /// It follows padding.
    DataAfterPadding,
    /// It follows padding in the same line.
    DataBesidePadding,
    /// It follows one character of padding where there should be two.
    DataInPadding,
    /// It ends a soft break within an escape.
    BrokenEscape,
    /// It ends a line that has more white space behind its `=` than a soft break may have here.
    LongSoftBreak,
}

impl Decoder {
    /// A decoder for `coding`; for [`Coding::Identity`] one that passes everything on.
    pub fn new(coding: Coding) -> Decoder {
        Decoder {
            inner: match coding {
                Coding::Identity => Inner::Identity,
                Coding::Base64 => Inner::Base64(Base64::default()),
                Coding::QuotedPrintable => Inner::QuotedPrintable(QuotedPrintable::default()),
                Coding::Uuencode => Inner::Uuencode(Uuencode::default()),
                Coding::BinHex => Inner::BinHex(BinHex::default()),
                Coding::Yenc => Inner::Yenc(Yenc::default()),
            },
            offset: 0,
            spill: Spill::default(),
            remark: None,
            alternative: None,
        }
    }

    /// A decoder of texts that are shown, counted or searched: white space at the ends of lines of quoted-printable is no part of
    /// them (RFC 2045, section 6.7 (3)). [`Decoder::new`] keeps it for signatures, which are made of what readers keep.
    pub fn trimming(coding: Coding) -> Decoder {
        let mut decoder = Decoder::new(coding);
        if coding == Coding::QuotedPrintable {
            decoder.inner = Inner::QuotedPrintable(QuotedPrintable::trimming());
        }
        decoder
    }

    /// Returns whether so much of the content is outside of the alphabet that the coding is unlikely.
    pub fn is_junk(&self) -> bool {
        matches!(&self.inner, Inner::Base64(base64) if base64.junk_bytes().saturating_mul(JUNK_SHARE) > self.offset)
    }

    /// Decodes a prefix of `input`; how long it was. It returns when the sink is full, or with a remark.
    fn decode(&mut self, input: &[u8], output: &mut Window) -> usize {
        let mut sink = Sink::new(output, &mut self.spill);
        match &mut self.inner {
            Inner::Identity => 0,
            Inner::Base64(base64) => {
                let (taken, remark) = base64.decode(input, &mut sink);
                self.remark = remark;
                taken
            }
            Inner::QuotedPrintable(quoted) => {
                let (taken, remark) = quoted.decode(input, &mut sink);
                self.remark = remark;
                taken
            }
            Inner::Uuencode(uuencode) => uuencode.decode(input, &mut sink),
            Inner::BinHex(binhex) => binhex.decode(input, &mut sink),
            Inner::Yenc(yenc) => yenc.decode(input, &mut sink),
        }
    }

    fn decode_end(&mut self, output: &mut Window) {
        let mut sink = Sink::new(output, &mut self.spill);
        match &mut self.inner {
            Inner::Identity | Inner::BinHex(_) | Inner::Yenc(_) => {}
            Inner::Base64(base64) => base64.finish(&mut sink),
            Inner::QuotedPrintable(quoted) => quoted.finish(&mut sink),
            Inner::Uuencode(uuencode) => uuencode.finish(&mut sink),
        }
    }

    fn remark(&mut self) -> Option<Event> {
        Some(Event::Note(match self.remark.take()? {
            Remark::Junk => {
                Note::Finding(Finding::new(Class::Malformed, "Heuristics.Malformed.Base64.Junk", self.offset - 1))
            }
            remark @ (Remark::DataAfterPadding | Remark::DataBesidePadding) => {
                self.alternative = Some(match &self.inner {
                    Inner::Base64(base64) if remark == Remark::DataBesidePadding => Other::Skipping(base64.skipping()),
                    _ => Other::Ended,
                });
                Note::Fork(Finding::new(Class::Ambiguous, "Heuristics.Ambiguous.Base64.Padding", self.offset))
            }
            Remark::DataInPadding => {
                if let Inner::Base64(base64) = &self.inner {
                    self.alternative = Some(Other::Skipping(base64.skipping()));
                }
                Note::Fork(Finding::new(Class::Ambiguous, "Heuristics.Ambiguous.Base64.Quantum", self.offset))
            }
            Remark::LongSoftBreak => Note::Finding(Finding::new(Class::Ambiguous, SOFT_BREAK, self.offset)),
            Remark::BrokenEscape => {
                if let Inner::QuotedPrintable(quoted) = &self.inner {
                    self.alternative = Some(Other::Joining(quoted.joining()));
                }
                Note::Fork(Finding::new(Class::Ambiguous, SOFT_BREAK, self.offset))
            }
        }))
    }

    /// Emits the next waiting event.
    fn pending(&mut self, output: &mut Window) -> Option<Event> {
        if self.spill.flush(output) {
            return Some(Event::Wrote);
        }
        self.remark()
    }
}

impl Stage for Decoder {
    fn step(&mut self, input: &[u8], output: &mut Window, fuel: &mut Fuel) -> Step {
        if fuel.is_empty() {
            return Step::idle(0);
        }
        self.alternative = None;
        if let Some(event) = self.pending(output) {
            fuel.burn(output.len().max(1));
            return Step::tell(0, event);
        }
        let input = &input[..fuel.allows(input.len())];
        if matches!(self.inner, Inner::Identity) {
            fuel.burn(input.len());
            self.offset += input.len() as u64;
            let event = if input.is_empty() { Event::Idle } else { Event::Verbatim };
            return Step::tell(input.len(), event);
        }
        let taken = self.decode(input, output);
        self.offset += taken as u64;
        fuel.burn(taken.max(output.len()).max(1));
        if !output.is_empty() {
            return Step::tell(taken, Event::Wrote);
        }
        Step::tell(taken, self.remark().unwrap_or(Event::Idle))
    }

    fn finish(&mut self, _: &dyn ReadAt, output: &mut Window, fuel: &mut Fuel) -> Event {
        if fuel.is_empty() {
            return Event::Idle;
        }
        self.alternative = None;
        fuel.burn(1);
        if self.spill.is_empty() && self.remark.is_none() {
            self.decode_end(output);
            if !output.is_empty() {
                return Event::Wrote;
            }
        }
        self.pending(output).unwrap_or(Event::End)
    }

    fn alternative(&mut self) -> Option<Box<dyn Stage>> {
        Some(match self.alternative.take()? {
            Other::Ended => Box::new(Ended),
            Other::Skipping(base64) => {
                Box::new(Decoder { inner: Inner::Base64(base64), ..Decoder::new(Coding::Base64) })
            }
            Other::Joining(quoted) => {
                Box::new(Decoder { inner: Inner::QuotedPrintable(quoted), ..Decoder::new(Coding::QuotedPrintable) })
            }
        })
    }
}

/// The second reading of Base64 at its padding: it is over.
#[derive(Debug, Clone, Copy)]
struct Ended;

impl Stage for Ended {
    fn step(&mut self, _: &[u8], _: &mut Window, fuel: &mut Fuel) -> Step {
        match fuel.is_empty() {
            true => Step::idle(0),
            false => Step::tell(0, Event::End),
        }
    }

    fn finish(&mut self, _: &dyn ReadAt, _: &mut Window, fuel: &mut Fuel) -> Event {
        match fuel.is_empty() {
            true => Event::Idle,
            false => Event::End,
        }
    }
}

/// Decodes the Base64 of a short text whole, junk and padding skipped.
pub(crate) fn base64_word(encoded: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(encoded.len() / 4 * 3 + 3);
    let mut window = Window::with_capacity(encoded.len() + 4);
    let mut spill = Spill::default();
    let mut base64 = Base64::default();
    let mut rest = encoded;
    while !rest.is_empty() {
        let (taken, _) = base64.decode(rest, &mut Sink::new(&mut window, &mut spill));
        rest = &rest[taken..];
    }
    base64.finish(&mut Sink::new(&mut window, &mut spill));
    decoded.extend_from_slice(window.filled());
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;
    use stream::law::{Told, content, holds, holds_at_every_cut, tell};

    fn decode(coding: Coding, input: &[u8]) -> Vec<u8> {
        holds_at_every_cut(|| Decoder::new(coding), input);
        holds(|| Decoder::new(coding), input);
        content(&tell(Decoder::new(coding), input))
    }

    fn notes(coding: Coding, input: &[u8]) -> Vec<(alloc::string::String, u64)> {
        let told = tell(Decoder::new(coding), input);
        told.iter()
            .filter_map(|told| match told {
                Told::Note(Note::Finding(finding) | Note::Fork(finding)) => {
                    Some((finding.name.clone().into_owned(), finding.offset))
                }
                _ => None,
            })
            .collect()
    }

    #[test]
    fn base64_of_every_length_and_shape_is_decoded() {
        for (encoded, decoded) in [
            (&b""[..], &b""[..]),
            (b"YQ==", b"a"),
            (b"YWI=", b"ab"),
            (b"YWJj", b"abc"),
            (b"YQ", b"a"),
            (b"YWI", b"ab"),
            (b"Y\r\nW\r\nJ\r\nj\r\n", b"abc"),
            (b"YWJjZGVmZ2hpamtsbW5v\r\nYWJjZGVmZ2hpamtsbW5v", b"abcdefghijklmnoabcdefghijklmno"),
            (b"Y", b""),
            (b"====", b""),
        ] {
            assert_eq!(decode(Coding::Base64, encoded), decoded);
            assert_eq!(notes(Coding::Base64, encoded), []);
        }
    }

    #[test]
    fn junk_in_base64_is_skipped_and_told_once() {
        assert_eq!(decode(Coding::Base64, b"YW!J*j-\x00\xff"), b"abc");
        let junk = "Heuristics.Malformed.Base64.Junk".into();
        assert_eq!(notes(Coding::Base64, b"YW!J*j"), [(junk, 2)]);
        assert_eq!(decode(Coding::Base64, b"Y=WJj"), b"abc");
    }

    #[test]
    fn data_behind_half_of_the_padding_is_ambiguous() {
        let [half, padding] = ["Quantum", "Padding"].map(|name| format!("Heuristics.Ambiguous.Base64.{name}"));
        assert_eq!(notes(Coding::Base64, b"WD=VPIVA"), [(half, 3), (padding, 3)]);
    }

    #[test]
    fn data_behind_padding_is_decoded_and_can_be_read_as_absent() {
        let input = b"YQ==\r\nYWI=YWJj";
        assert_eq!(decode(Coding::Base64, input), b"aababc");
        let told = tell(Decoder::new(Coding::Base64), input);
        assert_eq!(told[0], Told::Content(b"a".to_vec()));
        assert_eq!(told[2], Told::Alternative([Told::End(0)].to_vec()));
        let padding = "Heuristics.Ambiguous.Base64.Padding".into();
        assert_eq!(notes(Coding::Base64, input), [(padding, 6)]);
    }

    #[test]
    fn lines_that_are_decoded_together_are_those_that_are_decoded_apart() {
        let line = |length: usize| -> Vec<u8> { (0..length).map(|at| text::base64::ALPHABET[at * 7 % 64]).collect() };
        for (length, end) in
            [(76, "\r\n"), (75, "\n"), (61, "\r\n"), (1, "\n"), (9_000, "\r\n"), (130, "\n\n"), (76, "\r")]
        {
            let lines = [&line(length)[..], end.as_bytes()].concat().repeat(20_000 / length);
            for unusual in ["", "!", "=", "==", "\x0c\x00"] {
                let (head, tail) = lines.split_at(lines.len() / 3);
                let input = [head, unusual.as_bytes(), tail].concat();
                let mut apart = Decoder::new(Coding::Base64);
                let (mut window, mut fuel) = (Window::with_capacity(64), Fuel::new(u64::MAX));
                let mut decoded = Vec::new();
                for byte in &input {
                    while apart.step(core::slice::from_ref(byte), &mut window, &mut fuel).taken == 0 {}
                    decoded.extend_from_slice(window.filled());
                    window.clear();
                }
                while apart.finish(&stream::Nothing, &mut window, &mut fuel) != Event::End {
                    decoded.extend_from_slice(window.filled());
                    window.clear();
                }
                assert!(
                    content(&tell(Decoder::new(Coding::Base64), &input)) == decoded,
                    "{length} {end:?} {unusual:?}"
                );
            }
        }
    }

    #[test]
    fn padding_within_a_line_can_be_read_as_absent() {
        for (input, first, second) in
            [("WDV=PIVA", r"X5<\x85@", "O!P"), ("WA==DVPIVA", r"X\rS\xc8T", r"\x00\xd5<\x85@")]
        {
            assert_eq!(decode(Coding::Base64, input.as_bytes()).escape_ascii().to_string(), first);
            let told = tell(Decoder::new(Coding::Base64), input.as_bytes());
            let other = told.iter().find_map(|told| match told {
                Told::Alternative(told) => Some(content(told).escape_ascii().to_string()),
                _ => None,
            });
            assert_eq!(other.as_deref(), Some(second), "{input}");
        }
    }

    #[test]
    fn quoted_printable_is_decoded_with_all_its_wrongs() {
        for (encoded, decoded) in [
            (&b"plain\r\ntext"[..], &b"plain\r\ntext"[..]),
            (b"=41=4a=4A", b"AJJ"),
            (b"soft=\r\nbreak=\nand=  \t\r\nmore=\rx", b"softbreakandmorex"),
            (b"bad=ZZ=4=Z=", b"bad=ZZ=4=Z"),
            (b"soft=\r\r\nbreak", b"softbreak"),
            (b"==41= =  x", b"=A= =  x"),
            (b"=4", b"=4"),
            (b"a=  ", b"a"),
        ] {
            assert_eq!(
                decode(Coding::QuotedPrintable, encoded).escape_ascii().to_string(),
                decoded.escape_ascii().to_string()
            );
        }
        let spaces = [b"=".as_slice(), &[b' '; 300], b"x"].concat();
        assert_eq!(decode(Coding::QuotedPrintable, &spaces), spaces);
    }

    #[test]
    fn blanks_at_the_ends_of_lines_are_no_part_of_a_text() {
        for (encoded, text) in [
            ("hello \t \r\nsome  words =\r\n on \nlast  ", "hello\r\nsome  words  on\nlast"),
            (" \r\n\t\r\n x\t\rkept=20\r\nkept=09  \r\n", "\r\n\r\n x\rkept \r\nkept\t\r\n"),
            ("a  =41  =\r\n  \r\nb =zz =", "a  A  \r\nb =zz "),
        ] {
            holds_at_every_cut(|| Decoder::trimming(Coding::QuotedPrintable), encoded.as_bytes());
            let told = tell(Decoder::trimming(Coding::QuotedPrintable), encoded.as_bytes());
            assert_eq!(content(&told).escape_ascii().to_string(), text.escape_default().to_string());
        }
        let line = |blanks: usize| [vec![b' '; blanks], b"\n".to_vec()].concat();
        holds(|| Decoder::trimming(Coding::QuotedPrintable), &line(2_500));
        for (blanks, kept) in [(998, 0), (999, 998), (2_500, 1_996)] {
            let told = tell(Decoder::trimming(Coding::QuotedPrintable), &line(blanks));
            assert_eq!(content(&told), line(kept), "{blanks}");
        }
    }

    #[test]
    fn a_soft_break_within_an_escape_is_read_in_both_ways() {
        for (input, first, second) in [
            (&b"a=5=\r\n8b"[..], "a=58b", "aXb"),
            (b"=5= \t\r8=5=\n8", "=58=58", "XX"),
            (b"a==\r\n58b", "a=58b", "aXb"),
            (b"==\n58== \n=\n58=5=\n=\r\n8", "=58=58=58", "XXX"),
        ] {
            assert_eq!(decode(Coding::QuotedPrintable, input).escape_ascii().to_string().replace("\\n", "\n"), first);
            let told = tell(Decoder::new(Coding::QuotedPrintable), input);
            let other = told.iter().find_map(|told| match told {
                Told::Alternative(other) => Some(content(other)),
                _ => None,
            });
            let before = told.iter().take_while(|told| !matches!(told, Told::Note(_))).cloned().collect::<Vec<_>>();
            let whole = [content(&before), other.expect("it is offered")].concat();
            assert_eq!(whole.escape_ascii().to_string().replace("\\n", "\n"), second);
        }
        assert_eq!(notes(Coding::QuotedPrintable, b"=5=41 == =Z= a=\r\nb=3D=\r\n58"), []);
        // Lines of equals signs are broken between any two bytes in ordinary mails; both readings are the same.
        assert_eq!(notes(Coding::QuotedPrintable, b"=3D==\r\n=3D=3D==\n=\n=3D=5=\r\n=3D== \nFx==\nF=\n=3D"), []);
    }

    #[test]
    fn a_soft_break_of_too_much_white_space_is_told() {
        for (before, offset) in [("=", 71), ("==", 72), ("=4=", 73)] {
            let line = format!("{before}{}\t", " ".repeat(69));
            assert_eq!(
                notes(Coding::QuotedPrintable, format!("{line}\r\nb").as_bytes()),
                [(SOFT_BREAK.into(), offset)]
            );
            let input = format!("{line}x\r\n{line}\n{line}\n");
            assert_eq!(decode(Coding::QuotedPrintable, input.as_bytes()), input.as_bytes());
        }
    }

    #[test]
    fn uuencode_is_decoded_with_all_its_wrongs() {
        for encoded in [
            &b"begin 644 x\n#86)C\n`\nend\n"[..],
            b"text\r\n\r\nbegin 644 x\r\n#86)C\r\n \r\nend\r\nmore\r\n",
            b"begin 644 x\r#86)C",
            b"begin 644 x\n#86)CX\nsome text that is none\n",
            b"begin-base64 644 x\nYWJj\n====\n",
        ] {
            assert_eq!(decode(Coding::Uuencode, encoded), b"abc", "{}", encoded.escape_ascii());
        }
        let stripped = b"begin 644 x\n&86)C\nend\nbegin 644 y\n#86)C\nend\n";
        assert_eq!(decode(Coding::Uuencode, stripped), b"abc\0\0\0abc");
        let headless = b"M86)C86)C86)C86)C86)C86)C86)C86)C86)C86)C86)C86)C86)C86)C86)C\n#86)C\n";
        assert_eq!(decode(Coding::Uuencode, headless), b"abc".repeat(16));
    }

    #[test]
    fn yenc_is_decoded() {
        let encoded = b"text\r\n=ybegin part=1 line=128 size=4 name=x y\r\n=ypart begin=1 end=4\r\n\x8b\x8c\r\n=}=J\r\n=yend size=4\r\nmore";
        assert_eq!(decode(Coding::Yenc, encoded), b"ab\x13\xe0");
    }

    #[test]
    fn binhex_is_unpacked_to_its_data_fork() {
        let encoded = b"Text: with colon\r\n(This file must be converted with BinHex 4.0)\r\n\r\n\
            :#(4PFh3ZG(Kd!&4&@&4dG(Kd!*!%!6i!!!!)4M\"KBQ0kN2pkN#f3!*!!C@jNN!#\r\n3#JBcFQ9cEh9bBf8SE!:\r\nmore";
        let repeated = [&b"abc"[..], &[b'z'; 300], b"\x90\x90end", &[0x90; 10]].concat();
        assert_eq!(decode(Coding::BinHex, encoded), repeated);
    }
}
