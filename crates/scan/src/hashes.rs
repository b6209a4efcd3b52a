//! Hash signatures: tables of digests of whole streams, and the running digests of one.
//!
//! A digest is run only for algorithms that the tables hold, and only up to the largest size in them: an object beyond
//! that size has no match and its digest is dropped. The size that an object declares is never trusted for that.

use sha1::Sha1;
use sha2::{Digest, Sha256};

use crate::paired_md5::Md5;

/// The size of an entry that matches whatever the size.
pub(crate) const ANY_SIZE: u64 = u64::MAX;

/// Digests of one algorithm, sorted, each with a size and a name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Digests<const N: usize> {
    digests: Vec<[u8; N]>,
    sizes: Vec<u64>,
    names: Vec<u32>,
    /// The largest size, `ANY_SIZE` if one matches whatever the size.
    largest: Option<u64>,
}

impl<const N: usize> Digests<N> {
    fn new(mut entries: Vec<([u8; N], u64, u32)>) -> Digests<N> {
        entries.sort_unstable();
        Digests {
            digests: entries.iter().map(|entry| entry.0).collect(),
            sizes: entries.iter().map(|entry| entry.1).collect(),
            names: entries.iter().map(|entry| entry.2).collect(),
            largest: entries.iter().map(|entry| entry.1).max(),
        }
    }

    /// The names of the entries that match.
    fn matching(&self, digest: &[u8], size: u64) -> impl Iterator<Item = u32> {
        let first = self.digests.partition_point(|known| known.as_slice() < digest);
        let same = self.digests[first..].iter().take_while(move |known| known.as_slice() == digest).count();
        (first..first + same)
            .filter(move |&index| matches!(self.sizes[index], known if known == size || known == ANY_SIZE))
            .map(|index| self.names[index])
    }
}

/// A hash signature before it is sorted in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HashEntry {
    pub(crate) digest: AnyDigest,
    pub(crate) size: u64,
    pub(crate) name: u32,
}

/// A digest; its length tells the algorithm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AnyDigest {
    Md5([u8; 16]),
    Sha1([u8; 20]),
    Sha256([u8; 32]),
}

impl AnyDigest {
    /// Reads hexadecimal digits.
    pub(crate) fn parse(text: &str) -> Result<AnyDigest, String> {
        match text.len() {
            32 => hex(text).map(AnyDigest::Md5),
            40 => hex(text).map(AnyDigest::Sha1),
            64 => hex(text).map(AnyDigest::Sha256),
            other => Err(format!("{other} digits are no MD5, SHA-1 or SHA-256")),
        }
    }
}

fn hex<const N: usize>(text: &str) -> Result<[u8; N], String> {
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        let digits = pair.iter().map(|&digit| char::from(digit).to_digit(16));
        *byte = digits
            .reduce(|high, low| Some(high? << 4 | low?))
            .flatten()
            .ok_or_else(|| format!("{text:?} is not hexadecimal"))? as u8;
    }
    Ok(bytes)
}

/// One table over all algorithms.
#[derive(Debug, Clone, Default)]
pub(crate) struct HashTable {
    md5: Digests<16>,
    sha1: Digests<20>,
    sha256: Digests<32>,
}

impl HashTable {
    pub(crate) fn new(entries: Vec<HashEntry>) -> HashTable {
        let (mut md5, mut sha1, mut sha256) = (Vec::new(), Vec::new(), Vec::new());
        for HashEntry { digest, size, name } in entries {
            match digest {
                AnyDigest::Md5(digest) => md5.push((digest, size, name)),
                AnyDigest::Sha1(digest) => sha1.push((digest, size, name)),
                AnyDigest::Sha256(digest) => sha256.push((digest, size, name)),
            }
        }
        HashTable { md5: Digests::new(md5), sha1: Digests::new(sha1), sha256: Digests::new(sha256) }
    }

    /// Whether it has no entries.
    pub(crate) fn is_empty(&self) -> bool {
        self.md5.largest.is_none() && self.sha1.largest.is_none() && self.sha256.largest.is_none()
    }

    /// The names of all entries that match, in a fixed order.
    pub(crate) fn matching(&self, sums: &Sums) -> Vec<u32> {
        let md5 = sums.md5.iter().flat_map(|sum| self.md5.matching(sum, sums.size));
        let sha1 = sums.sha1.iter().flat_map(|sum| self.sha1.matching(sum, sums.size));
        let sha256 = sums.sha256.iter().flat_map(|sum| self.sha256.matching(sum, sums.size));
        md5.chain(sha1).chain(sha256).collect()
    }
}

/// The finished digests of a stream, those that were wanted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sums {
    pub(crate) size: u64,
    md5: Option<[u8; 16]>,
    sha1: Option<[u8; 20]>,
    sha256: Option<[u8; 32]>,
}

impl Sums {
    /// A digest that was not computed over the stream.
    pub(crate) fn of_md5(md5: [u8; 16], size: u64) -> Sums {
        Sums { size, md5: Some(md5), ..Sums::default() }
    }
}

/// A digest that runs until the stream is too long for every entry.
#[derive(Debug, Clone)]
struct Bounded<D> {
    digest: D,
    largest: u64,
}

impl<D> Bounded<D> {
    fn new(digest: D, largest: Option<u64>) -> Option<Bounded<D>> {
        largest.map(|largest| Bounded { digest, largest })
    }

    /// The digest that takes in bytes up to `position`; nothing is left when that is too far.
    fn up_to(position: u64, running: &mut Option<Bounded<D>>) -> Option<&mut D> {
        running.take_if(|bounded| position > bounded.largest);
        running.as_mut().map(|bounded| &mut bounded.digest)
    }
}

/// The running digests of one stream.
#[derive(Debug, Clone, Default)]
pub(crate) struct Running {
    md5: Option<Bounded<Md5>>,
    sha1: Option<Bounded<Sha1>>,
    sha256: Option<Bounded<Sha256>>,
}

impl Running {
    /// Starts the digests that some of `tables` want.
    pub(crate) fn new(tables: [&HashTable; 2]) -> Running {
        let largest = |of: fn(&HashTable) -> Option<u64>| tables.into_iter().filter_map(of).max();
        Running {
            md5: Bounded::new(Md5::new(), largest(|table| table.md5.largest)),
            sha1: Bounded::new(Sha1::new(), largest(|table| table.sha1.largest)),
            sha256: Bounded::new(Sha256::new(), largest(|table| table.sha256.largest)),
        }
    }

    /// Takes in the next bytes, which end at `position` of the stream.
    pub(crate) fn update(&mut self, bytes: &[u8], position: u64) {
        if let Some(md5) = Bounded::up_to(position, &mut self.md5) {
            md5.update(bytes);
        }
        if let Some(sha1) = Bounded::up_to(position, &mut self.sha1) {
            sha1.update(bytes);
        }
        if let Some(sha256) = Bounded::up_to(position, &mut self.sha256) {
            sha256.update(bytes);
        }
    }

    /// Bytes that wait to be hashed beside those of another stream.
    pub(crate) fn pending_bytes(&self) -> usize {
        self.md5.as_ref().map_or(0, |running| running.digest.pending_bytes())
    }

    /// Hashes what waits here and there side by side.
    pub(crate) fn hash_beside(&mut self, other: &mut Running) {
        if let (Some(own), Some(other)) = (&mut self.md5, &mut other.md5) {
            own.digest.hash_beside(&mut other.digest);
        }
    }

    /// Ends the digests.
    pub(crate) fn finish(&mut self, size: u64) -> Sums {
        Sums {
            size,
            md5: self.md5.take().map(|running| running.digest.finish()),
            sha1: self.sha1.take().map(|running| running.digest.finalize().into()),
            sha256: self.sha256.take().map(|running| running.digest.finalize().into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(size: u64) -> HashTable {
        let digest = AnyDigest::parse("900150983cd24fb0d6963f7d28e17f72").expect("the MD5 of abc");
        HashTable::new(vec![HashEntry { digest, size, name: 5 }])
    }

    fn names(table: &HashTable, bytes: &[u8]) -> Vec<u32> {
        let mut running = Running::new([table, &HashTable::default()]);
        for (byte, position) in bytes.chunks(1).zip(1..) {
            running.update(byte, position);
        }
        table.matching(&running.finish(bytes.len() as u64))
    }

    #[test]
    fn a_digest_matches_with_its_size_or_with_any() {
        assert_eq!(names(&table(3), b"abc"), [5]);
        assert_eq!(names(&table(ANY_SIZE), b"abc"), [5]);
        assert!(names(&table(4), b"abc").is_empty());
        assert!(names(&table(3), b"abd").is_empty());
    }

    #[test]
    fn a_digest_is_dropped_when_the_stream_is_too_long() {
        let table = table(3);
        let mut running = Running::new([&table, &HashTable::default()]);
        running.update(b"abcd", 4);
        assert!(running.md5.is_none() && running.sha256.is_none());
    }

    #[test]
    fn digits_that_are_none_are_refused() {
        for text in ["", "12", "900150983cd24fb0d6963f7d28e17f7g", &"0".repeat(41)] {
            assert!(AnyDigest::parse(text).is_err(), "{text:?}");
        }
    }
}
