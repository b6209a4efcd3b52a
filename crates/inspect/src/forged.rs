//! Header fields that nobody may bring along, found by every reading of a header.
//!
//! Readers disagree about a line in a header that is no field: for some the body begins with it, for others the header goes on
//! behind it. So every line up to the first empty one is looked at, whatever stands before it, and a bare CR ends a line, too.
//! A field is a line and those behind it that begin with white space.
//!
//! Bounds: [`Field::BYTES_MAX`] bytes of a field are kept.

use core::ops::Range;

use flow::Field;

/// Reads the lines of a header as they pass.
#[derive(Debug)]
pub(crate) struct HeaderLines {
    at: u64,
    field: Vec<u8>,
    start: u64,
    /// The last byte ended a line.
    at_line: bool,
    /// The bytes since the last LF: nothing, or one CR.
    is_empty: bool,
    after_cr: bool,
    /// The empty line was seen.
    is_over: bool,
}

impl Default for HeaderLines {
    fn default() -> HeaderLines {
        HeaderLines {
            at: 0,
            field: Vec::new(),
            start: 0,
            at_line: true,
            is_empty: true,
            after_cr: false,
            is_over: false,
        }
    }
}

impl HeaderLines {
    /// Reads on; calls `found` with each field that is complete, and where it stands.
    pub fn read(&mut self, bytes: &[u8], mut found: impl FnMut(&Field, Range<u64>)) {
        for &byte in bytes {
            if self.is_over {
                return;
            }
            let ends_crlf = self.after_cr && byte == b'\n';
            if self.at_line && !ends_crlf && !matches!(byte, b' ' | b'\t') {
                self.complete(&mut found);
            }
            self.at += 1;
            if self.field.len() < Field::BYTES_MAX {
                self.field.push(byte);
            }
            if byte == b'\n' && self.is_empty {
                self.is_over = true;
                self.field = Vec::new();
            }
            self.is_empty = byte == b'\n' || byte == b'\r' && self.is_empty && !self.after_cr;
            self.after_cr = byte == b'\r';
            self.at_line = matches!(byte, b'\r' | b'\n');
        }
    }

    /// The mail is over: its last field, if the header goes on to there.
    pub fn finish(&mut self, mut found: impl FnMut(&Field, Range<u64>)) {
        if !self.is_over {
            self.is_over = true;
            self.complete(&mut found);
        }
    }

    fn complete(&mut self, found: &mut impl FnMut(&Field, Range<u64>)) {
        let field = Field(core::mem::take(&mut self.field).into());
        if !field.0.is_empty() {
            found(&field, self.start..self.at);
        }
        self.start = self.at;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(mail: &str) -> Vec<String> {
        let mut cut = Vec::new();
        for piece in [1, 2, 7, mail.len()] {
            let (mut lines, mut told) = (HeaderLines::default(), Vec::new());
            let mut note = |field: &Field, range: Range<u64>| {
                let text = &mail[range.start as usize..range.end as usize];
                assert_eq!(text.as_bytes(), &*field.0);
                told.push(text.to_string());
            };
            mail.as_bytes().chunks(piece).for_each(|piece| lines.read(piece, &mut note));
            lines.finish(&mut note);
            cut.push(told);
        }
        assert!(cut.windows(2).all(|pair| pair[0] == pair[1]), "{cut:?}");
        cut.swap_remove(0)
    }

    #[test]
    fn every_line_up_to_the_empty_one_is_looked_at() {
        for odd in [" x", ": x", "no field", "X Y: z", "--", "\0", "\x0c", "From x", " ", "X: a\r\r"] {
            let told = fields(&format!("{odd}\r\nA: b\r\n c\r\nD: e\r\n\r\nF: g\r\n"));
            assert_eq!(told[told.len() - 2..], ["A: b\r\n c\r\n", "D: e\r\n"], "{odd:?}");
        }
    }

    #[test]
    fn a_bare_cr_ends_a_line_and_no_header() {
        assert_eq!(fields("X: a\rA: b\r\n\r\nC: d"), ["X: a\r", "A: b\r\n"]);
        assert_eq!(fields("X: a\r\rA: b\n\nC: d"), ["X: a\r", "\r", "A: b\n"]);
        assert_eq!(fields("A: b"), ["A: b"]);
        assert_eq!(fields("\r\nA: b"), Vec::<String>::new());
    }
}
