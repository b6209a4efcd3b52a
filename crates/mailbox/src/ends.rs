//! Line ends of mail that comes from files, and from clients that write it as Unix does.

/// Makes a bare LF a CR LF (RFC 5322, section 2.3), piece by piece: what the store has goes to clients as it is. A CR alone stays.
#[derive(Debug, Default)]
pub struct LineEnds {
    is_after_return: bool,
    whole: Vec<u8>,
}

impl LineEnds {
    /// The next piece with its line ends; the piece itself where nothing is to be done.
    pub fn of<'p>(&'p mut self, piece: &'p [u8]) -> &'p [u8] {
        let Some(last) = piece.last() else { return piece };
        let is_after_return = std::mem::replace(&mut self.is_after_return, *last == b'\r');
        let is_bare = |at: &usize| match at.checked_sub(1) {
            Some(before) => piece[before] != b'\r',
            None => !is_after_return,
        };
        let mut ends = memchr::memchr_iter(b'\n', piece).filter(is_bare).peekable();
        if ends.peek().is_none() {
            return piece;
        }
        self.whole.clear();
        let mut from = 0;
        for at in ends {
            self.whole.extend_from_slice(&piece[from..at]);
            self.whole.extend_from_slice(b"\r\n");
            from = at + 1;
        }
        self.whole.extend_from_slice(&piece[from..]);
        &self.whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_with_both_however_they_are_cut() {
        let text = b"\na\r\nb\n\n\r\r\nc\rd\n";
        for size in 1..=text.len() {
            let (mut ends, mut seen) = (LineEnds::default(), Vec::new());
            text.chunks(size).for_each(|piece| seen.extend_from_slice(ends.of(piece)));
            assert_eq!(seen, b"\r\na\r\nb\r\n\r\n\r\r\nc\rd\r\n", "{size}");
        }
        assert_eq!(LineEnds::default().of(b""), b"");
    }
}
