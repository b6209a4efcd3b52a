//! The view of lines: a text whose lines end in LF, whatever they were sent with.
//!
//! Bounds: a CR is held.

/// The normaliser.
#[derive(Debug, Clone, Default)]
pub(super) struct Lines {
    after_return: bool,
}

impl Lines {
    pub(super) fn read(&mut self, input: &[u8], out: &mut Vec<u8>) {
        for &byte in input {
            if std::mem::take(&mut self.after_return) && byte != b'\n' {
                out.push(b'\r');
            }
            match byte {
                b'\r' => self.after_return = true,
                byte => out.push(byte),
            }
        }
    }

    pub(super) fn end(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.after_return) {
            out.push(b'\r');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_in_a_line_feed_however_they_are_cut() {
        for (text, lines) in [("a\r\nb\r\n", "a\nb\n"), ("a\r\r\nb\rc\n", "a\r\nb\rc\n"), ("a\r", "a\r")] {
            for piece in 1..text.len() {
                let (mut view, mut out) = (Lines::default(), Vec::new());
                text.as_bytes().chunks(piece).for_each(|piece| view.read(piece, &mut out));
                view.end(&mut out);
                assert_eq!(out, lines.as_bytes(), "{text:?} by {piece}");
            }
        }
    }
}
