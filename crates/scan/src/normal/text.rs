//! The view of text: lower case, blanks folded to one space, no control characters and nothing beyond ASCII.
//!
//! Bounds: one bit of state; nothing is held.

/// Folding of each byte: 0 is dropped, a space is a blank, anything else stands as it is here.
pub(super) type Folding = [u8; 256];

const FOLDED: Folding = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 128 {
        table[byte] = match byte as u8 {
            b'\t'..=b'\r' | b' ' => b' ',
            0..=31 => 0,
            other => other.to_ascii_lowercase(),
        };
        byte += 1;
    }
    table
};

/// The normaliser.
#[derive(Debug, Clone, Default)]
pub(super) struct Text {
    after_blank: bool,
}

impl Text {
    pub(super) fn read(&mut self, input: &[u8], out: &mut Vec<u8>) {
        self.after_blank = fold(input, &FOLDED, self.after_blank, out);
    }
}

/// Writes bytes as a table has them, with one space for blanks that follow each other; whether a blank came last.
pub(super) fn fold(input: &[u8], table: &Folding, after_blank: bool, out: &mut Vec<u8>) -> bool {
    let start = out.len();
    out.resize(start + input.len(), 0);
    let spare = &mut out[start..];
    let (mut written, mut after_blank) = (0, after_blank);
    // Each byte is written; what is not to be kept is written over by the next one.
    for &byte in input {
        let folded = table[usize::from(byte)];
        spare[written] = folded;
        let is_blank = folded == b' ';
        written += usize::from((folded != 0) & !(is_blank & after_blank));
        after_blank = is_blank | (after_blank & (folded == 0));
    }
    out.truncate(start + written);
    after_blank
}

pub(super) const fn is_blank(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | 11 | 12 | b' ')
}
