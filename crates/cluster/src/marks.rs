//! Marks: what a node knows of its cache file, as lines of text beside it.
//!
//! ```text
//!  sluice cache 1
//!  volume 5f0c…          the token of the volume in the database
//!  boot 3a61…            the boot of the machine: what was not flushed then is lost after another
//!  flush 4711            all flushes up to this one are in the cache
//!  + 17                  block 17 was written by this node as the owner, perhaps without a flush
//! ```
//!
//! A block that an owner has touched may hold bytes that no flush made durable. Whoever takes the volume over next does not know of them,
//! so the node has to read the block anew.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use core::fmt::Write as _;
use core::ops::RangeInclusive;

/// A block: the unit in which a cache is read anew and a tail is folded, in bytes.
pub const BLOCK_BYTES: u64 = 1 << 20;

/// The blocks of bytes that are written at `at`.
pub fn blocks_of(at: u64, length: usize) -> RangeInclusive<u64> {
    let last = at.saturating_add((length as u64).saturating_sub(1));
    at / BLOCK_BYTES..=last / BLOCK_BYTES
}

const FIRST_LINE: &str = "sluice cache 1";

/// State of a cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marks {
    /// Token of the volume, unique among all volumes.
    pub volume: String,
    /// Id of the machine's boot.
    pub boot: String,
    /// All flushes up to this one are in the cache.
    pub flush: u64,
    /// Blocks that have to be read again.
    pub touched: BTreeSet<u64>,
}

impl Marks {
    /// Writes the lines.
    pub fn text(&self) -> String {
        let Marks { volume, boot, flush, touched } = self;
        let mut text = format!("{FIRST_LINE}\nvolume {volume}\nboot {boot}\nflush {flush}\n");
        touched.iter().for_each(|&block| _ = text.write_str(&Marks::line(block)));
        text
    }

    /// Returns the line of a touched block, to be appended.
    pub fn line(block: u64) -> String {
        format!("+ {block}\n")
    }

    /// Reads the lines; `None` if they are incomplete. A last line without its end was cut off before its block was
    /// written.
    pub fn read(text: &str) -> Option<Marks> {
        let end = text.rfind('\n')? + 1;
        let mut lines = text[..end].lines();
        if lines.next() != Some(FIRST_LINE) {
            return None;
        }
        let mut value = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
        let (volume, boot) = (value("volume")?.into(), value("boot")?.into());
        let flush = value("flush")?.parse().ok()?;
        let touched = lines.map(|line| line.strip_prefix("+ ")?.parse().ok()).collect::<Option<_>>()?;
        Some(Marks { volume, boot, flush, touched })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_read_as_they_were_written() {
        let mut marks = Marks { volume: "v".into(), boot: "b".into(), flush: 4_711, touched: BTreeSet::from([3, 17]) };
        let text = marks.text();
        assert_eq!(Marks::read(&text), Some(marks.clone()));
        marks.touched.insert(20);
        assert_eq!(Marks::read(&(text.clone() + &Marks::line(20))), Some(marks.clone()));
        // Torn.
        marks.touched.remove(&20);
        assert_eq!(Marks::read(&(text.clone() + "+ 2")), Some(marks));
        for wrong in ["", "sluice cache 2\n", &text[..30], &(text.clone() + "x\n")] {
            assert_eq!(Marks::read(wrong), None, "{wrong}");
        }
    }
}
