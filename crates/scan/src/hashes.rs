//! Hash signatures: tables of digests of whole streams.

use std::io;

use digest::Sums;
use pattern::flat::{Flat, Reader, Unfit, Writer};

use crate::packed::Packed;

/// The size of an entry that matches whatever the size.
pub(crate) const ANY_SIZE: u64 = u64::MAX;

/// So many digests are told apart by their first bytes, which are then not stored.
const MANY: usize = 1 << 16;
/// How many bytes.
const SHARED: usize = 2;

/// A digest with its size and name.
type Keyed<const N: usize> = ([u8; N], u64, u32);

/// Digests of one algorithm, sorted, each with a size and a name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Digests<const N: usize> {
    /// Where the digests with the same first bytes begin, and behind the last where they end; nothing if they are few.
    starts: Flat<u32>,
    /// The digests, without their first bytes if there are starts.
    bytes: Flat<u8>,
    /// Places among the distinct sizes.
    sizes: Packed,
    names: Packed,
    /// Every size once, sorted and one more than it is; `ANY_SIZE`, if one matches whatever the size, is 0 and the first.
    distinct: Packed,
}

impl<const N: usize> Digests<N> {
    fn new(entries: Vec<Keyed<N>>) -> Digests<N> {
        let (starts, entries) = sorted(entries);
        let mut distinct: Vec<u64> = entries.iter().map(|entry| entry.1.wrapping_add(1)).collect();
        distinct.sort_unstable();
        distinct.dedup();
        let place = |size: u64| distinct.partition_point(|&known| known < size.wrapping_add(1)) as u64;
        let places: Vec<u64> = entries.iter().map(|entry| place(entry.1)).collect();
        let is_cut = entries.len() >= MANY;
        let cut = if is_cut { SHARED } else { 0 };
        let mut bytes = Vec::with_capacity(entries.len() * (N - cut));
        entries.iter().for_each(|entry| bytes.extend_from_slice(&entry.0[cut..]));
        Digests {
            starts: if is_cut { starts } else { Vec::new() }.into(),
            bytes: bytes.into(),
            sizes: Packed::new(places.into_iter()),
            names: Packed::new(entries.iter().map(|entry| entry.2.into())),
            distinct: Packed::new(distinct.into_iter()),
        }
    }

    fn store(&self, writer: &mut Writer<'_>) -> io::Result<()> {
        writer.array(&self.starts)?;
        writer.array(&self.bytes)?;
        self.sizes.store(writer)?;
        self.names.store(writer)?;
        self.distinct.store(writer)
    }

    /// Stored digests, whose names are numbered below `names_end`.
    fn load(reader: &mut Reader, names_end: u32) -> Result<Digests<N>, Unfit> {
        let all = Digests {
            starts: reader.array()?,
            bytes: reader.array()?,
            sizes: Packed::load(reader)?,
            names: Packed::load(reader)?,
            distinct: Packed::load(reader)?,
        };
        let count = all.sizes.len();
        let starts_fit = all.starts.is_empty()
            || all.starts.len() == (1 << (8 * SHARED)) + 1
                && all.starts.is_sorted()
                && all.starts.last().is_some_and(|&end| end as usize == count);
        let fits = starts_fit
            && all.bytes.len() == count * (N - all.cut())
            && all.names.len() == count
            && all.sizes.iter().all(|place| place < all.distinct.len() as u64)
            && all.names.iter().all(|name| name < names_end.into());
        if fits { Ok(all) } else { Err(Unfit::Malformed) }
    }

    /// How many bytes of a digest are not stored.
    fn cut(&self) -> usize {
        if self.starts.is_empty() { 0 } else { SHARED }
    }

    /// The largest size, `ANY_SIZE` if one matches whatever the size.
    pub(crate) fn largest(&self) -> Option<u64> {
        let first = self.distinct.get(0)?;
        let largest = if first == 0 { 0 } else { self.distinct.get(self.distinct.len() - 1)? };
        Some(largest.wrapping_sub(1))
    }

    /// Whether some entry matches content of that size.
    pub(crate) fn has_size(&self, size: u64) -> bool {
        let size = size.wrapping_add(1);
        self.distinct.get(0) == Some(0) || self.distinct.get(self.distinct.before(size)) == Some(size)
    }

    /// The size of an entry.
    fn size(&self, index: usize) -> Option<u64> {
        let place = usize::try_from(self.sizes.get(index)?).ok()?;
        Some(self.distinct.get(place)?.wrapping_sub(1))
    }

    /// The names of the entries that match.
    fn matching(&self, digest: &[u8; N], size: u64) -> impl Iterator<Item = u32> {
        let range = match self.starts.get(first_bytes(digest)..) {
            Some([start, end, ..]) => *start as usize..*end as usize,
            _ => 0..self.sizes.len(),
        };
        let (width, wanted) = (N - self.cut(), &digest[self.cut()..]);
        let known = |index: usize| &self.bytes[index * width..][..width];
        let (mut first, mut end) = (range.start, range.end);
        while first < end {
            let middle = first + (end - first) / 2;
            match known(middle) < wanted {
                true => first = middle + 1,
                false => end = middle,
            }
        }
        let same = (first..range.end).take_while(|&index| known(index) == wanted).count();
        (first..first + same)
            .filter(move |&index| self.size(index).is_some_and(|known| known == size || known == ANY_SIZE))
            .filter_map(|index| Some(self.names.get(index)? as u32))
    }
}

/// The first bytes as a number, the first the highest.
fn first_bytes<const N: usize>(digest: &[u8; N]) -> usize {
    digest[..SHARED].iter().fold(0, |number, &byte| number << 8 | usize::from(byte))
}

/// Entries in their order, and where those with the same first bytes begin, and behind the last where they end; of a few
/// entries that is not told.
fn sorted<const N: usize>(mut entries: Vec<Keyed<N>>) -> (Vec<u32>, Vec<Keyed<N>>) {
    if entries.len() < MANY / 16 {
        entries.sort_unstable();
        return (Vec::new(), entries);
    }
    let mut starts = vec![0u32; (1 << (8 * SHARED)) + 1];
    entries.iter().for_each(|entry| starts[first_bytes(&entry.0) + 1] += 1);
    (1..starts.len()).for_each(|first| starts[first] += starts[first - 1]);
    // Each to those that begin as it does, and only these are sorted.
    let (mut ends, mut sorted) = (starts.clone(), vec![([0; N], 0, 0); entries.len()]);
    for entry in entries {
        let end = &mut ends[first_bytes(&entry.0)];
        sorted[*end as usize] = entry;
        *end += 1;
    }
    starts.windows(2).for_each(|range| sorted[range[0] as usize..range[1] as usize].sort_unstable());
    (starts, sorted)
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

fn hex<const N: usize>(digits: &str) -> Result<[u8; N], String> {
    let mut bytes = [0; N];
    for (byte, [high, low]) in bytes.iter_mut().zip(digits.as_bytes().as_chunks().0) {
        *byte = text::hex::pair(*high, *low).ok_or_else(|| format!("{digits:?} is not hexadecimal"))?;
    }
    Ok(bytes)
}

/// One table over all algorithms.
#[derive(Debug, Clone, Default)]
pub(crate) struct HashTable {
    pub(crate) md5: Digests<16>,
    pub(crate) sha1: Digests<20>,
    pub(crate) sha256: Digests<32>,
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

    pub(crate) fn store(&self, writer: &mut Writer<'_>) -> io::Result<()> {
        self.md5.store(writer)?;
        self.sha1.store(writer)?;
        self.sha256.store(writer)
    }

    /// A stored table, whose names are numbered below `names`.
    pub(crate) fn load(reader: &mut Reader, names: u32) -> Result<HashTable, Unfit> {
        Ok(HashTable {
            md5: Digests::load(reader, names)?,
            sha1: Digests::load(reader, names)?,
            sha256: Digests::load(reader, names)?,
        })
    }

    /// Whether it has no entries.
    pub(crate) fn is_empty(&self) -> bool {
        self.md5.largest().is_none() && self.sha1.largest().is_none() && self.sha256.largest().is_none()
    }

    /// Whether some entry matches content of that size.
    pub(crate) fn has_size(&self, size: u64) -> bool {
        self.md5.has_size(size) || self.sha1.has_size(size) || self.sha256.has_size(size)
    }

    /// The names of all entries that match, in a fixed order.
    pub(crate) fn matching(&self, sums: &Sums) -> Vec<u32> {
        let md5 = sums.md5.iter().flat_map(|sum| self.md5.matching(sum, sums.size));
        let sha1 = sums.sha1.iter().flat_map(|sum| self.sha1.matching(sum, sums.size));
        let sha256 = sums.sha256.iter().flat_map(|sum| self.sha256.matching(sum, sums.size));
        md5.chain(sha1).chain(sha256).collect()
    }
}

/// An MD5 that was not computed over a stream.
pub(crate) fn of_md5(md5: [u8; 16], size: u64) -> Sums {
    Sums { size, md5: Some(md5), ..Sums::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use md5::Digest;

    fn table(size: u64) -> HashTable {
        let digest = AnyDigest::parse("900150983cd24fb0d6963f7d28e17f72").expect("the MD5 of abc");
        HashTable::new(vec![HashEntry { digest, size, name: 5 }])
    }

    fn names(table: &HashTable, bytes: &[u8]) -> Vec<u32> {
        let md5 = md5::Md5::digest(bytes).into();
        table.matching(&of_md5(md5, bytes.len() as u64))
    }

    #[test]
    fn a_digest_matches_with_its_size_or_with_any() {
        assert_eq!(names(&table(3), b"abc"), [5]);
        assert_eq!(names(&table(ANY_SIZE), b"abc"), [5]);
        assert!(names(&table(4), b"abc").is_empty());
        assert!(names(&table(3), b"abd").is_empty());
    }

    #[test]
    fn of_many_digests_each_is_found() {
        let digest = |number: u32| -> [u8; 16] { md5::Md5::digest(number.to_le_bytes()).into() };
        let count = MANY as u32 + 5;
        let entry = |number: u32| HashEntry { digest: AnyDigest::Md5(digest(number)), size: 4, name: number };
        let table = HashTable::new((0..count).map(entry).collect());
        assert_eq!(table.md5.cut(), SHARED);
        let names = |number: u32| table.matching(&of_md5(digest(number), 4));
        assert!((0..count).all(|number| names(number) == [number]));
        assert!((count..2 * count).all(|number| names(number).is_empty()));
    }

    #[test]
    fn a_table_knows_its_sizes() {
        assert!(table(3).has_size(3) && !table(3).has_size(4));
        assert!(table(ANY_SIZE).has_size(4));
        assert!(!HashTable::default().has_size(0));
    }

    #[test]
    fn digits_that_are_none_are_refused() {
        for text in ["", "12", "900150983cd24fb0d6963f7d28e17f7g", &"0".repeat(41)] {
            assert!(AnyDigest::parse(text).is_err(), "{text:?}");
        }
    }
}
