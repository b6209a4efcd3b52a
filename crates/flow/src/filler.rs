//! Overwriting a part, so that it stays well formed and holds nothing.
//!
//! Every byte keeps its place: line ends, padding and lengths are those of the original, so that sizes that were
//! announced stay true. The filler decodes to NULs in the part's own transfer coding and is harmless as plain text.
//! Where nobody else tells the reader it begins with [`NOTICE`], as far as that fits the part, in the same coding; not in
//! BinHex and yEnc.
//!
//! Known wrong: quoted-printable is filled by whole `=00` escapes; where fewer than three characters of a line are at
//! hand (the end of the line, or of what was given), it is filled by the digit 0.

use stream::Coding;

/// The beginning of a filler that tells the reader. It has whole groups of three bytes, so that four digits of Base64
/// end with it.
pub const NOTICE: &[u8] = b"[Dangerous content was removed on its way to you.] ";

const _: () = assert!(NOTICE.len().is_multiple_of(3), "the filler of Base64 goes on at a group");

/// Overwrites the bytes of one part, in order.
#[derive(Debug, Clone)]
pub struct Filler {
    coding: Coding,
    /// The two bytes before the next one.
    before: [u8; 2],
    /// Whether the current line is structure, which stays.
    kept_line: bool,
    notice: Notice,
}

/// The rest of the notice, in bytes or in groups of six bits.
#[derive(Debug, Clone, Copy)]
struct Notice {
    text: &'static [u8],
    at: usize,
}

impl Notice {
    fn byte(&mut self) -> Option<u8> {
        self.at += 1;
        self.text.get(self.at - 1).copied()
    }

    fn six_bits(&mut self) -> Option<u8> {
        let (group, shift) = (self.at / 4 * 3, 18 - 6 * (self.at % 4));
        self.at += 1;
        let bytes = self.text.get(group..group + 3)?;
        let word = bytes.iter().fold(0u32, |word, &byte| word << 8 | u32::from(byte));
        Some((word >> shift & 63) as u8)
    }
}

impl Filler {
    /// A filler that begins in the middle of a part, after the two bytes `before`; `b"\r\n"` at its start.
    pub const fn new(coding: Coding, before: [u8; 2]) -> Filler {
        Filler { coding, before, kept_line: false, notice: Notice { text: b"", at: 0 } }
    }

    /// The same for the start of a part, beginning with [`NOTICE`].
    pub const fn with_notice(coding: Coding) -> Filler {
        Filler { notice: Notice { text: NOTICE, at: 0 }, ..Filler::new(coding, *b"\r\n") }
    }

    /// Overwrites `bytes`, which follow those of the last call.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        let mut at = 0;
        while at < bytes.len() {
            let is_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
            let line_end = bytes[at..].iter().position(is_end).map_or(bytes.len(), |end| at + end + 1);
            self.fill_line(&mut bytes[at..line_end]);
            at = line_end;
        }
    }

    /// Overwrites a line, or the part of one that is at hand. What follows a bare carriage return is no structure.
    fn fill_line(&mut self, line: &mut [u8]) {
        let starts = self.before[1] == b'\n';
        let original_end = [line.len().checked_sub(2).map_or(self.before[1], |at| line[at]), line[line.len() - 1]];
        if starts {
            self.kept_line = self.is_structure(line);
        } else if self.before[1] == b'\r' && line[0] != b'\n' {
            self.kept_line = false;
        }
        let text_len = line.len() - usize::from(matches!(line.last(), Some(b'\r' | b'\n')));
        let whole = text_len < line.len();
        let text = &mut line[..text_len];
        if !self.kept_line {
            match self.coding {
                Coding::Identity => text.fill_with(|| self.notice.byte().unwrap_or(b' ')),
                Coding::Base64 => {
                    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
                    replace(text, is_digit, || base64_digit(self.notice.six_bits()), b"=");
                }
                Coding::Uuencode => {
                    let digits = &mut text[usize::from(starts).min(text_len)..];
                    digits.fill_with(|| uuencode_digit(self.notice.six_bits()));
                }
                Coding::BinHex => replace(text, |byte| byte != b':', || b'!', b":"),
                Coding::Yenc => text.fill(b'*'),
                Coding::QuotedPrintable => self.fill_escapes(text, whole),
            }
        }
        self.before = original_end;
    }

    /// Whether a line delimits the content and is not part of it.
    fn is_structure(&self, line: &[u8]) -> bool {
        match self.coding {
            Coding::Uuencode => line.starts_with(b"begin") || line.starts_with(b"end"),
            Coding::BinHex => line.starts_with(b"(This file"),
            Coding::Yenc => line.starts_with(b"=y"),
            Coding::Identity | Coding::Base64 | Coding::QuotedPrintable => false,
        }
    }

    fn fill_escapes(&mut self, text: &mut [u8], whole_line: bool) {
        // An escape that has begun keeps its length: its digits become 0.
        let begun = match self.before {
            [_, b'='] => 2,
            [b'=', digit] if digit.is_ascii_hexdigit() => 1,
            _ => 0,
        };
        let (digits, text) = text.split_at_mut(begun.min(text.len()));
        digits.fill(b'0');
        let soft_break = whole_line && text.last() == Some(&b'=');
        let fillable = text.len() - usize::from(soft_break);
        let mut escapes = text[..fillable].chunks_exact_mut(3);
        for escape in escapes.by_ref() {
            let byte = self.notice.byte().unwrap_or(0);
            escape.copy_from_slice(&[b'=', hex_digit(byte >> 4), hex_digit(byte & 15)]);
        }
        escapes.into_remainder().fill(b'0');
    }
}

fn base64_digit(six_bits: Option<u8>) -> u8 {
    text::base64::ALPHABET[usize::from(six_bits.unwrap_or(0) & 63)]
}

fn uuencode_digit(six_bits: Option<u8>) -> u8 {
    match six_bits {
        None | Some(0) => b'`',
        Some(bits) => b' ' + bits,
    }
}

fn hex_digit(four_bits: u8) -> u8 {
    if four_bits < 10 { b'0' + four_bits } else { b'A' + four_bits - 10 }
}

/// Turns what `is_content` into `filler`, keeps `kept`, and blanks the rest.
fn replace(text: &mut [u8], is_content: impl Fn(u8) -> bool, mut filler: impl FnMut() -> u8, kept: &[u8]) {
    for byte in text {
        if is_content(*byte) {
            *byte = filler();
        } else if !kept.contains(byte) {
            *byte = b' ';
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(coding: Coding, before: [u8; 2], text: &str) -> String {
        let mut bytes = text.as_bytes().to_vec();
        Filler::new(coding, before).fill(&mut bytes);
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn base64_keeps_lines_and_padding() {
        assert_eq!(filled(Coding::Base64, *b"\r\n", "TVqQ\r\nAA==\r\n"), "AAAA\r\nAA==\r\n");
        assert_eq!(filled(Coding::Base64, *b"TV", "q*\r\n"), "A \r\n");
    }

    #[test]
    fn quoted_printable_decodes_to_nuls_and_keeps_soft_breaks() {
        assert_eq!(filled(Coding::QuotedPrintable, *b"\r\n", "abcdefg=\r\nx=3Dy\r\n"), "=00=000=\r\n=0000\r\n");
        assert_eq!(filled(Coding::QuotedPrintable, *b"a=", "3Dabc\r\n"), "00=00\r\n");
        assert_eq!(filled(Coding::QuotedPrintable, *b"=3", "Dabc\r\n"), "0=00\r\n");
    }

    #[test]
    fn uuencode_keeps_its_frame_and_the_lengths_of_its_lines() {
        let text = "begin 644 a.exe\r\n#0V%T\r\n`\r\nend\r\n";
        assert_eq!(filled(Coding::Uuencode, *b"\r\n", text), "begin 644 a.exe\r\n#````\r\n`\r\nend\r\n");
        assert_eq!(filled(Coding::Uuencode, *b"#0", "V%T\r\n"), "```\r\n");
    }

    #[test]
    fn plain_text_becomes_spaces() {
        assert_eq!(filled(Coding::Identity, *b"\r\n", "evil\r\n\r\nx"), "    \r\n\r\n ");
    }

    #[test]
    fn what_follows_a_bare_carriage_return_is_overwritten_too() {
        assert_eq!(filled(Coding::Identity, *b"\r\n", "a\revil\r\n"), " \r    \r\n");
        assert_eq!(filled(Coding::Base64, *b"\r\n", "TVqQ\rTVqQ\n"), "AAAA\rAAAA\n");
        assert_eq!(filled(Coding::QuotedPrintable, *b"\r\n", "abc\r=41\n"), "=00\r=00\n");
        assert_eq!(filled(Coding::Uuencode, *b"\r\n", "begin 644 a\revil\n"), "begin 644 a\r````\n");
    }

    fn announced(coding: Coding, text: &str) -> String {
        let mut bytes = text.as_bytes().to_vec();
        Filler::with_notice(coding).fill(&mut bytes);
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_notice_stands_at_the_head_in_the_parts_own_coding() {
        let line = "x".repeat(60);
        assert_eq!(announced(Coding::Identity, &line), std::str::from_utf8(NOTICE).unwrap().to_owned() + "         ");
        assert_eq!(announced(Coding::Identity, "two\r\nlines\r\n"), "[Da\r\nngero\r\n");
        let digits = "W0Rhbmdlcm91cyBjb250ZW50IHdhcyByZW1vdmVkIG9uIGl0cyB3YXkgdG8geW91Ll0gAAAAAAAA==";
        assert_eq!(announced(Coding::Base64, &format!("{}==", "x".repeat(76))), digits);
        assert_eq!(announced(Coding::Base64, "xx xx\r\nx===\r\n"), "W0 Rh\r\nb===\r\n");
        assert_eq!(announced(Coding::QuotedPrintable, "abcdefg=\r\nx=3Dy\r\n"), "=5B=440=\r\n=6100\r\n");
        assert_eq!(announced(Coding::Uuencode, "begin 644 a\r\n#0V%T\r\n"), "begin 644 a\r\n#6T1A\r\n");
    }

    #[test]
    fn the_filler_is_the_same_however_the_part_is_cut() {
        let text = b"begin 644 a.exe\r\n#0V%T\r\n#0V%T\r\n`\r\nend\r\n";
        for coding in [Coding::Identity, Coding::Base64, Coding::BinHex, Coding::Yenc] {
            let mut whole = text.to_vec();
            Filler::new(coding, *b"\r\n").fill(&mut whole);
            for cut in 1..text.len() {
                let mut pieces = text.to_vec();
                let (first, second) = pieces.split_at_mut(cut);
                let mut filler = Filler::new(coding, *b"\r\n");
                filler.fill(first);
                filler.fill(second);
                assert_eq!(pieces, whole, "{coding:?} cut at {cut}");
            }
        }
        for coding in [Coding::Identity, Coding::Base64] {
            let whole = announced(coding, std::str::from_utf8(text).unwrap());
            for cut in 1..text.len() {
                let mut pieces = text.to_vec();
                let (first, second) = pieces.split_at_mut(cut);
                let mut filler = Filler::with_notice(coding);
                filler.fill(first);
                filler.fill(second);
                assert_eq!(String::from_utf8(pieces).unwrap(), whole, "{coding:?} cut at {cut}");
            }
        }
    }
}
