//! Objects: blocks that are kept beside the database, under names that are never used again.
//!
//! ```text
//!  5f0c…/0000001a-3-4711-9e07…      volume / block (hexadecimal) - epoch - flush - attempt (hexadecimal)
//! ```
//!
//! The attempt is a random number of one try of a fold. So all bytes that are ever sent under a name are the same, and a request that arrives late
//! or twice changes nothing; no compare-and-swap is needed. A name that the database has given up is not taken up again.

use alloc::format;
use alloc::string::String;

/// A block that is kept as an object, as its row has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// Name, without the prefix of the bucket.
    pub name: String,
    /// Length in bytes.
    pub length: u32,
    /// SHA-256 of its bytes.
    pub sum: [u8; 32],
}

/// The parts of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts {
    /// The block that it has.
    pub block: u64,
    /// The owner that wrote it.
    pub epoch: u64,
    /// The flush of the fold.
    pub flush: u64,
    /// Random number of the attempt.
    pub attempt: u64,
}

impl Parts {
    /// Returns the name of an object of a volume.
    pub fn name(&self, volume: &str) -> String {
        let Parts { block, epoch, flush, attempt } = self;
        format!("{volume}/{block:08x}-{epoch}-{flush}-{attempt:016x}")
    }

    /// Reads the name of an object of a volume; `None` if it is another file's.
    pub fn read(name: &str, volume: &str) -> Option<Parts> {
        let mut fields = name.strip_prefix(volume)?.strip_prefix('/')?.split('-');
        let mut next = |radix| u64::from_str_radix(fields.next()?, radix).ok();
        let parts = Parts { block: next(16)?, epoch: next(10)?, flush: next(10)?, attempt: next(16)? };
        (parts.name(volume) == name).then_some(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_were_written() {
        let parts = Parts { block: 26, epoch: 3, flush: 4_711, attempt: 0x9e07 };
        assert_eq!(parts.name("v"), "v/0000001a-3-4711-0000000000009e07");
        assert_eq!(Parts::read(&parts.name("v"), "v"), Some(parts));
        let largest = Parts { block: u64::MAX, epoch: u64::MAX, flush: u64::MAX, attempt: u64::MAX };
        assert_eq!(Parts::read(&largest.name("v"), "v"), Some(largest));
        for wrong in ["", "v", "v/", "w/0000001a-3-4711-0000000000009e07", "v/0000001A-3-4711-0000000000009e07"] {
            assert_eq!(Parts::read(wrong, "v"), None, "{wrong}");
        }
        assert_eq!(Parts::read("v/1a-3-4711-9e07", "v"), None);
        assert_eq!(Parts::read("v/0000001a-+3-4711-0000000000009e07", "v"), None);
    }
}
