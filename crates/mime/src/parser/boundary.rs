//! Recognising the delimiter lines of all open multiparts in one pass over a line (RFC 2046, section 5.1.1).
//!
//! A line is a delimiter if it begins with two hyphens and the boundary of an open multipart. Of several the longest
//! boundary counts, since one may be the beginning of another. What may follow is white space and the closing hyphens;
//! readers disagree about anything else, which comes out as [`Tail::is_junk`].
//!
//! The work per byte is bounded by the number of open multiparts.

/// Maximum number of open multiparts, whatever the limits: one bit each.
pub(super) const LEVELS_MAX: usize = 64;

/// How much white space behind a boundary is looked at before the line is taken for a delimiter.
const SPACE_MAX: u32 = 256;

/// The boundary of one open multipart, as the matcher sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Boundary<'a> {
    pub bytes: &'a [u8],
    /// Its closing delimiter has been seen, so that of two equal boundaries the other one is meant.
    pub closed: bool,
}

/// Knowledge about a line after some of its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// More bytes decide.
    Undecided,
    /// The line is not a delimiter.
    Content,
    /// The line is a delimiter.
    Delimiter(Delimiter),
}

/// A delimiter line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Delimiter {
    /// Level of the multipart that it belongs to.
    pub level: usize,
    /// Whether it is the closing one.
    pub close: bool,
    /// Whether something follows the boundary that not every reader accepts.
    pub junk: bool,
}

/// Reads one line byte by byte.
#[derive(Debug, Clone)]
pub(super) struct Matcher {
    dashes: u8,
    /// Levels whose boundary may still be meant, by bit.
    viable: u64,
    position: usize,
    best: Option<Best>,
}

#[derive(Debug, Clone, Copy)]
struct Best {
    level: usize,
    tail: Tail,
    spaces: u32,
}

/// Bytes after the boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tail {
    Nothing,
    Space,
    Hyphen,
    Close,
    CloseSpace,
    Junk,
    CloseJunk,
}

impl Matcher {
    /// A matcher at the start of a line.
    pub(super) const fn new() -> Matcher {
        Matcher { dashes: 0, viable: 0, position: 0, best: None }
    }

    /// Reads the next byte of the line, which is not its end.
    pub(super) fn push<'a>(&mut self, byte: u8, boundaries: impl Iterator<Item = (usize, Boundary<'a>)>) -> Verdict {
        if self.dashes < 2 {
            return self.dash(byte, boundaries);
        }
        let mut viable = 0;
        let mut matched: Option<(usize, bool)> = None;
        for (level, boundary) in boundaries {
            if self.viable & bit(level) == 0 || boundary.bytes.get(self.position) != Some(&byte) {
                continue;
            }
            if boundary.bytes.len() > self.position + 1 {
                viable |= bit(level);
            } else if !boundary.closed || matched.is_none_or(|(_, closed)| closed) {
                matched = Some((level, boundary.closed));
            }
        }
        self.viable = viable;
        self.position += 1;
        match matched {
            Some((level, _)) => self.best = Some(Best::new(level)),
            None => {
                if let Some(best) = &mut self.best {
                    best.push(byte);
                }
            }
        }
        self.verdict()
    }

    /// The line ends here.
    pub(super) fn finish(&self) -> Verdict {
        self.best.map_or(Verdict::Content, |best| best.delimiter())
    }

    fn dash<'a>(&mut self, byte: u8, boundaries: impl Iterator<Item = (usize, Boundary<'a>)>) -> Verdict {
        if byte != b'-' {
            return Verdict::Content;
        }
        self.dashes += 1;
        if self.dashes < 2 {
            return Verdict::Undecided;
        }
        for (level, boundary) in boundaries {
            if boundary.bytes.is_empty() {
                self.best = Some(Best::new(level));
            } else {
                self.viable |= bit(level);
            }
        }
        self.verdict()
    }

    fn verdict(&self) -> Verdict {
        if self.viable != 0 {
            return Verdict::Undecided;
        }
        match self.best {
            None => Verdict::Content,
            Some(best) if best.is_decided() => best.delimiter(),
            Some(_) => Verdict::Undecided,
        }
    }
}

impl Best {
    const fn new(level: usize) -> Best {
        Best { level, tail: Tail::Nothing, spaces: 0 }
    }

    fn push(&mut self, byte: u8) {
        // A CR comes here only where it is not taken for a line end.
        let space = matches!(byte, b' ' | b'\t' | b'\r');
        self.spaces += u32::from(space);
        self.tail = match (self.tail, byte) {
            (Tail::Nothing, b'-') => Tail::Hyphen,
            (Tail::Hyphen, b'-') => Tail::Close,
            (Tail::Nothing | Tail::Space, _) if space => Tail::Space,
            (Tail::Close | Tail::CloseSpace, _) if space => Tail::CloseSpace,
            (Tail::Close | Tail::CloseSpace | Tail::CloseJunk, _) => Tail::CloseJunk,
            _ => Tail::Junk,
        };
    }

    fn is_decided(&self) -> bool {
        matches!(self.tail, Tail::Junk | Tail::CloseJunk) || self.spaces > SPACE_MAX
    }

    const fn delimiter(&self) -> Verdict {
        Verdict::Delimiter(Delimiter {
            level: self.level,
            close: matches!(self.tail, Tail::Close | Tail::CloseSpace | Tail::CloseJunk),
            junk: matches!(self.tail, Tail::Junk | Tail::CloseJunk | Tail::Hyphen),
        })
    }
}

/// Whether the bytes behind two hyphens at the start of a line can still become a boundary, as far as they are known.
pub(super) fn is_possible<'a>(behind: &[u8], mut boundaries: impl Iterator<Item = (usize, Boundary<'a>)>) -> bool {
    boundaries.any(|(_, boundary)| {
        let common = behind.len().min(boundary.bytes.len());
        behind[..common] == boundary.bytes[..common]
    })
}

const fn bit(level: usize) -> u64 {
    1 << (level % LEVELS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(boundaries: &[&str], line: &str) -> Verdict {
        let all = || {
            let boundary = |bytes| Boundary { bytes, closed: false };
            boundaries.iter().map(move |text| boundary(text.as_bytes())).enumerate()
        };
        let mut matcher = Matcher::new();
        for &byte in line.as_bytes() {
            match matcher.push(byte, all()) {
                Verdict::Undecided => {}
                decided => return decided,
            }
        }
        matcher.finish()
    }

    fn delimiter(level: usize, close: bool, junk: bool) -> Verdict {
        Verdict::Delimiter(Delimiter { level, close, junk })
    }

    #[test]
    fn the_longest_boundary_wins_in_any_order() {
        for (boundaries, long) in [(["B1", "B1-a"], 1), (["B1-a", "B1"], 0)] {
            assert_eq!(judge(&boundaries, "--B1-a"), delimiter(long, false, false));
            assert_eq!(judge(&boundaries, "--B1-a--"), delimiter(long, true, false));
            assert_eq!(judge(&boundaries, "--B1"), delimiter(1 - long, false, false));
            assert_eq!(judge(&boundaries, "--B1--"), delimiter(1 - long, true, false));
            assert_eq!(judge(&boundaries, "--B1-b"), delimiter(1 - long, false, true));
        }
    }

    #[test]
    fn white_space_may_follow_and_other_things_are_junk() {
        assert_eq!(judge(&["B"], "--B \t"), delimiter(0, false, false));
        assert_eq!(judge(&["B"], "--B-- "), delimiter(0, true, false));
        assert_eq!(judge(&["B"], "--B-"), delimiter(0, false, true));
        assert_eq!(judge(&["B"], "--Bx"), delimiter(0, false, true));
        assert_eq!(judge(&["B"], "--B--x"), delimiter(0, true, true));
        assert_eq!(judge(&["B"], "--B x"), delimiter(0, false, true));
    }

    #[test]
    fn other_lines_are_content() {
        for line in ["", "-", "--", "- -B", "-B", "--C", "--b", "B"] {
            assert_eq!(judge(&["B"], line), Verdict::Content, "{line}");
        }
        assert_eq!(judge(&[], "--"), Verdict::Content);
    }

    #[test]
    fn of_two_equal_boundaries_the_inner_one_counts() {
        assert_eq!(judge(&["B", "B"], "--B"), delimiter(1, false, false));
    }

    #[test]
    fn an_empty_boundary_is_two_hyphens() {
        assert_eq!(judge(&[""], "--"), delimiter(0, false, false));
        assert_eq!(judge(&[""], "----"), delimiter(0, true, false));
        assert_eq!(judge(&["", "B"], "--B"), delimiter(1, false, false));
    }
}
