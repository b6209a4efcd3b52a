//! Overwriting a part, so that it stays well formed and holds nothing.
//!
//! Every byte keeps its place: line ends, padding and lengths are those of the original, so that sizes that were
//! announced stay true. The filler decodes to NULs in the part's own transfer coding and is harmless as plain text.
//!
//! Known wrong: quoted-printable is filled by whole `=00` escapes; where fewer than three characters of a line are at
//! hand (the end of the line, or of what was given), it is filled by the digit 0.

use stream::Coding;

/// Overwrites the bytes of one part, in order.
#[derive(Debug, Clone)]
pub struct Filler {
    coding: Coding,
    /// The two bytes before the next one.
    before: [u8; 2],
    /// Whether the current line is structure, which stays.
    kept_line: bool,
}

impl Filler {
    /// A filler that begins in the middle of a part, after the two bytes `before`; `b"\r\n"` at its start.
    pub const fn new(coding: Coding, before: [u8; 2]) -> Filler {
        Filler { coding, before, kept_line: false }
    }

    /// Overwrites `bytes`, which follow those of the last call.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        let mut at = 0;
        while at < bytes.len() {
            let line_end = bytes[at..].iter().position(|&byte| byte == b'\n').map_or(bytes.len(), |end| at + end + 1);
            self.fill_line(&mut bytes[at..line_end]);
            at = line_end;
        }
    }

    /// Overwrites a line, or the part of one that is at hand.
    fn fill_line(&mut self, line: &mut [u8]) {
        let starts = self.before[1] == b'\n';
        let original_end = [line.len().checked_sub(2).map_or(self.before[1], |at| line[at]), line[line.len() - 1]];
        if starts {
            self.kept_line = self.is_structure(line);
        }
        let text_len = line.iter().position(|byte| matches!(byte, b'\r' | b'\n')).unwrap_or(line.len());
        let whole = text_len < line.len();
        let text = &mut line[..text_len];
        if !self.kept_line {
            match self.coding {
                Coding::Identity => text.fill(b' '),
                Coding::Base64 => {
                    replace(text, |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'), b'A', b"=")
                }
                Coding::Uuencode => replace(&mut text[usize::from(starts).min(text_len)..], |_| true, b'`', b""),
                Coding::BinHex => replace(text, |byte| byte != b':', b'!', b":"),
                Coding::Yenc => text.fill(b'*'),
                Coding::QuotedPrintable => self.fill_escapes(text, whole),
            }
        }
        self.before = original_end;
    }

    /// Lines that say where the content begins and ends, and not what it is.
    fn is_structure(&self, line: &[u8]) -> bool {
        match self.coding {
            Coding::Uuencode => line.starts_with(b"begin") || line.starts_with(b"end"),
            Coding::BinHex => line.starts_with(b"(This file"),
            Coding::Yenc => line.starts_with(b"=y"),
            Coding::Identity | Coding::Base64 | Coding::QuotedPrintable => false,
        }
    }

    fn fill_escapes(&self, text: &mut [u8], whole_line: bool) {
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
        escapes.by_ref().for_each(|escape| escape.copy_from_slice(b"=00"));
        escapes.into_remainder().fill(b'0');
    }
}

/// Turns what `is_content` into `filler`, keeps `kept`, and blanks the rest.
fn replace(text: &mut [u8], is_content: impl Fn(u8) -> bool, filler: u8, kept: &[u8]) {
    for byte in text {
        if is_content(*byte) {
            *byte = filler;
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
    }
}
