//! A member as it was seen, to be compared with what the directory says of it.

use super::tail::NameDigest;

/// A member as it was seen.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// Where its local header begins.
    pub offset: u64,
    /// Where it ends, descriptor included.
    pub end: u64,
    pub name: NameDigest,
    pub compressed: Size,
    pub uncompressed: Size,
    /// Without meaning where the compressed size is not known.
    pub crc: u32,
    pub method: u16,
    pub encrypted: bool,
    /// Whether a directory entry has spoken of it.
    pub listed: bool,
}

/// A size as seen, where that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size(u64);

impl Size {
    pub const UNKNOWN: Size = Size(u64::MAX);

    pub const fn of(bytes: u64) -> Size {
        Size(bytes)
    }

    pub fn differs_from(self, told: u64) -> bool {
        self != Size::UNKNOWN && self.0 != told
    }
}

const _: () = assert!(size_of::<Entry>() == 56, "the bound above says so");
