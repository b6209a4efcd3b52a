//! Where lines of a mail are broken that are longer than SMTP has them (RFC 5321, section 4.5.3.1.6): hosts refuse such mail, or cut it.
//!
//! A line end and a space are put into such a line, as often as it needs: a field is folded by that, and HTML shows no difference. Letters of UTF-8
//! stay whole. Bounds: a number of eight bytes for 997 bytes of the mail.

/// The longest line, without its end.
const LINE_BYTES_MAX: u64 = 998;

/// What is put in.
const BREAK: &[u8] = b"\r\n ";

/// Places in a mail, found from its pieces.
#[derive(Debug, Default)]
pub(super) struct Breaks {
    /// Offsets in the mail, in front of which a break is.
    all: Vec<u64>,
    /// Offset of the next byte.
    at: u64,
    /// Bytes of its line so far, and the offset of the last one that begins a letter.
    line: u64,
    letter: u64,
    /// The byte before was a CR.
    is_after_return: bool,
}

/// A place in the mail with its breaks.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In the mail, and how much of it may be read there.
    Mail(u64, Option<usize>),
    Inserted(&'static [u8]),
}

impl Breaks {
    /// Looks for them from an offset on.
    pub fn from(at: u64) -> Breaks {
        Breaks { at, letter: at, ..Breaks::default() }
    }

    /// The next piece of the mail.
    pub fn add(&mut self, piece: &[u8]) {
        let mut rest = piece;
        while !rest.is_empty() {
            // Lines that end within the bound are passed over.
            let room = usize::try_from(LINE_BYTES_MAX.saturating_sub(self.line)).unwrap_or(0);
            match memchr::memchr(b'\n', rest.get(..room.saturating_add(1)).unwrap_or(rest)) {
                Some(end) => {
                    (self.line, self.is_after_return) = (0, false);
                    self.at += end as u64 + 1;
                    self.letter = self.at;
                    rest = rest.get(end + 1..).unwrap_or_default();
                }
                None => {
                    let some = room.clamp(1, rest.len());
                    let (some, behind) = rest.split_at(some);
                    some.iter().for_each(|&byte| self.byte(byte));
                    rest = behind;
                }
            }
        }
    }

    fn byte(&mut self, byte: u8) {
        // A CR at the bound ends the line, unless something else follows than LF.
        let is_over = self.line >= LINE_BYTES_MAX && byte != b'\r' && byte != b'\n'
            || self.line > LINE_BYTES_MAX && byte != b'\n';
        if byte & 0xc0 != 0x80 && !(self.is_after_return && is_over) {
            self.letter = self.at;
        }
        if is_over {
            // What is no UTF-8 is broken here.
            let before = self.at.saturating_sub(self.letter);
            let place = if before < 4 { self.letter } else { self.at };
            self.all.push(place);
            self.line = 1 + self.at.saturating_sub(place);
        }
        self.line += 1;
        self.at += 1;
        self.is_after_return = byte == b'\r';
        if byte == b'\n' {
            self.line = 0;
        }
    }

    /// Bytes that are put in.
    pub fn bytes(&self) -> u64 {
        self.all.len() as u64 * BREAK.len() as u64
    }

    /// The place of an offset in the mail with its breaks.
    pub fn at(&self, at: u64) -> Place {
        let width = BREAK.len() as u64;
        // Breaks that begin here or before.
        let mut begun = 0;
        let mut end = self.all.len();
        while begun < end {
            let middle = begun + (end - begun) / 2;
            match self.all.get(middle) {
                Some(place) if place + middle as u64 * width <= at => begun = middle + 1,
                _ => end = middle,
            }
        }
        let last = begun.checked_sub(1).and_then(|last| Some(self.all.get(last)? + last as u64 * width));
        if let Some(inside) = last.map(|last| at - last).filter(|&inside| inside < width) {
            return Place::Inserted(BREAK.get(inside as usize..).unwrap_or_default());
        }
        let at = at.saturating_sub(begun as u64 * width);
        let most = self.all.get(begun).map(|next| usize::try_from(next.saturating_sub(at)).unwrap_or(usize::MAX));
        Place::Mail(at, most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mail as it goes out, where it comes in pieces and is read in pieces.
    fn broken(mail: &[u8], piece: usize) -> Vec<u8> {
        let mut breaks = Breaks::from(0);
        mail.chunks(piece).for_each(|piece| breaks.add(piece));
        let size = mail.len() as u64 + breaks.bytes();
        let (mut out, mut at) = (Vec::new(), 0);
        while at < size {
            let some = match breaks.at(at) {
                Place::Inserted(bytes) => bytes,
                Place::Mail(from, most) => {
                    let rest = &mail[from as usize..];
                    &rest[..most.unwrap_or(usize::MAX).min(rest.len()).min(piece)]
                }
            };
            assert!(!some.is_empty(), "at {at} of {size}");
            out.extend_from_slice(some);
            at += some.len() as u64;
        }
        out
    }

    #[test]
    fn no_line_is_longer_than_998_bytes() {
        let long = |count| "x".repeat(count);
        for (mail, wanted) in [
            (format!("{}\r\n{}\r\n", long(998), long(3)), format!("{}\r\n{}\r\n", long(998), long(3))),
            (format!("{}\r\n", long(999)), format!("{}\r\n x\r\n", long(998))),
            (format!("a\r\n{}\r\nb", long(998 + 997 + 1)), format!("a\r\n{}\r\n {}\r\n x\r\nb", long(998), long(997))),
            (format!("{}\u{e9}\r\n", long(997)), format!("{}\r\n \u{e9}\r\n", long(997))),
            (format!("{}\u{20ac}x", long(996)), format!("{}\r\n \u{20ac}x", long(996))),
            (format!("{}\ry\r\n", long(998)), format!("{}\r\n \ry\r\n", long(998))),
            (String::new(), String::new()),
        ] {
            for piece in [1, 2, 3, 7, 997, 998, 999, 1_000, 64 << 10] {
                let out = String::from_utf8(broken(mail.as_bytes(), piece)).expect("letters stay whole");
                assert_eq!(out, wanted, "{piece}");
            }
        }
    }

    #[test]
    fn what_is_no_text_is_broken_as_well() {
        let mail = [&[0x80; 5_000][..], b"\r\n"].concat();
        for piece in [1, 64, 4_096] {
            let out = broken(&mail, piece);
            assert!(out.split(|&byte| byte == b'\n').all(|line| line.len() <= 999), "{piece}");
            let joined: Vec<u8> = out.iter().copied().filter(|byte| !b"\r\n ".contains(byte)).collect();
            assert_eq!(joined, [0x80; 5_000]);
        }
    }
}
