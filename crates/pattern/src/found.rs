//! Results of a scan: occurrences of parts.

/// An occurrence of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Match {
    /// Offset in the stream at which it was decided: its end, or a byte or two later.
    pub known: u64,
    /// Number of the part.
    pub part: u32,
    /// The offset of its first byte.
    pub start: u64,
    /// The offset behind its last byte.
    pub end: u64,
}

impl Match {
    /// The same, so much further on.
    #[must_use]
    pub const fn shifted(self, by: u64) -> Match {
        Match { known: self.known + by, part: self.part, start: self.start + by, end: self.end + by }
    }
}

/// Result of a scan.
#[derive(Debug, Clone, Copy)]
pub enum Found<'m> {
    /// A part occurs.
    One(Match),
    /// Parts occur behind each of many bytes.
    Repeated {
        /// The first occurrence of each, all known behind the same byte, in order.
        first: &'m [Match],
        /// How often they occur, each time one byte further on.
        times: u64,
    },
}
