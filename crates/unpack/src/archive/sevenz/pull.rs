//! Sources from which bytes are pulled: packed streams and coders alike.

use stream::{Class, ReadAt};

use crate::frame::codec::Fault;

pub(super) const DATA: Fault = Fault::fatal(Class::Malformed, "Heuristics.Malformed.SevenZip.Data");
pub(super) const CUT: Fault = Fault::fatal(Class::Truncated, "Heuristics.Truncated.SevenZip");

/// Result of a read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Read {
    /// So many bytes.
    Some(usize),
    /// None yet, after much work.
    Later,
    End,
}

/// Something that bytes come out of.
pub(super) trait Pull {
    /// Fills a prefix of `output`, which is not empty.
    fn read(&mut self, kept: &dyn ReadAt, output: &mut [u8]) -> Result<Read, Fault>;
}
