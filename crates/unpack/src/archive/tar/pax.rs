//! Extended headers: POSIX.1-2001 pax records, read as they stream, and GNU long names, which say the same thing.
//!
//! Of all keys only the name, the size and what makes a member sparse are kept; names are cut at `name_bytes_max`, maps
//! end at `regions_max` regions.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use super::sparse::Map;

/// Values of extended headers for a member.
pub(super) struct Pax {
    name_bytes_max: usize,
    path: Option<Vec<u8>>,
    /// Takes precedence: with GNU sparse files `path` is a made-up name.
    sparse_path: Option<Vec<u8>>,
    long_name: Option<Vec<u8>>,
    sparse: bool,
    map: Option<Map>,
    regions_max: usize,
    /// `GNU.sparse.major` and `GNU.sparse.minor`.
    sparse_version: [Option<u64>; 2],
    sparse_size: Option<u64>,
    pub size: Option<u64>,
    record: Record,
}

/// How the records make a member sparse.
pub(super) enum Sparse {
    /// The records describe no sparse member.
    No,
    /// By a map that they tell, and a size.
    Map(Map, u64),
    /// By a map in front of the stored bytes, and a size.
    Listing(u64),
    /// By records that contradict each other.
    Broken,
}

enum Record {
    /// In the decimal length of the record, after so many bytes of it.
    Length { value: u64, read: u64 },
    /// In the key; `left` bytes of the record remain.
    Key { key: Vec<u8>, left: u64 },
    /// In the value and the newline behind it.
    Value { key: Key, value: Vec<u8>, left: u64 },
    /// The rest has no records.
    Broken,
}

#[derive(Clone, Copy, PartialEq)]
enum Key {
    Path,
    SparsePath,
    SparseMajor,
    SparseMinor,
    SparseSize,
    SparseOffset,
    SparseLength,
    SparseMap,
    Sparse,
    Size,
    Other,
}

const KEY_BYTES_MAX: usize = 64;
const START: Record = Record::Length { value: 0, read: 0 };

impl Pax {
    pub const fn new(name_bytes_max: usize, regions_max: usize) -> Pax {
        Pax {
            name_bytes_max,
            path: None,
            sparse_path: None,
            long_name: None,
            sparse: false,
            map: None,
            regions_max,
            sparse_version: [None; 2],
            sparse_size: None,
            size: None,
            record: START,
        }
    }

    /// Reads a piece of the records.
    pub fn read(&mut self, mut input: &[u8]) {
        while !input.is_empty() {
            let taken = self.read_some(input);
            input = &input[taken..];
        }
    }

    /// Adds the records of `other`.
    pub fn add(&mut self, other: Pax) {
        self.path = other.path.or(self.path.take());
        self.sparse_path = other.sparse_path.or(self.sparse_path.take());
        self.size = other.size.or(self.size);
        self.sparse |= other.sparse;
        self.map = other.map.or(self.map.take());
        let [major, minor] = other.sparse_version;
        self.sparse_version = [major.or(self.sparse_version[0]), minor.or(self.sparse_version[1])];
        self.sparse_size = other.sparse_size.or(self.sparse_size);
        self.record = other.record;
    }

    /// The name told by a GNU `L` header.
    pub fn set_long_name(&mut self, name: &[u8]) {
        let end = memchr::memchr(0, name).unwrap_or(name.len());
        self.long_name = Some(name[..end].to_vec());
    }

    pub fn name(&self) -> Option<&[u8]> {
        let name = self.sparse_path.as_ref().or(self.path.as_ref());
        name.or(self.long_name.as_ref()).map(Vec::as_slice)
    }

    /// All names of the member, the one that counts first.
    pub fn into_names(self) -> impl Iterator<Item = Vec<u8>> {
        self.sparse_path.into_iter().chain(self.path).chain(self.long_name)
    }

    pub const fn is_sparse(&self) -> bool {
        self.sparse
    }

    /// How the member is sparse; takes the map.
    pub fn take_sparse(&mut self) -> Sparse {
        match (self.sparse_version, self.map.take(), self.sparse_size) {
            ([Some(1), Some(0)], _, Some(size)) => Sparse::Listing(size),
            ([None | Some(0), _], Some(map), Some(size)) => Sparse::Map(map, size),
            ([None, None], None, _) => Sparse::No,
            _ => Sparse::Broken,
        }
    }

    /// Whether the records broke off or never were any.
    pub const fn is_broken(&self) -> bool {
        !matches!(self.record, Record::Length { read: 0, .. })
    }

    fn read_some(&mut self, input: &[u8]) -> usize {
        match std::mem::replace(&mut self.record, START) {
            Record::Length { value, read } => {
                self.record = length(value, read, input[0]);
                1
            }
            Record::Key { key, left } => {
                self.record = read_key(key, left, input[0]);
                1
            }
            Record::Value { key, value, left } => self.read_value(key, value, left, input),
            Record::Broken => {
                self.record = Record::Broken;
                input.len()
            }
        }
    }

    fn read_value(&mut self, key: Key, mut value: Vec<u8>, left: u64, input: &[u8]) -> usize {
        let count = input.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        if key == Key::SparseMap {
            self.map().add_list(&input[..count]);
        } else if key != Key::Other {
            let keep = self.name_bytes_max.saturating_add(1).saturating_sub(value.len()).min(count);
            value.extend_from_slice(&input[..keep]);
        }
        let left = left.saturating_sub(count as u64);
        if left > 0 {
            self.record = Record::Value { key, value, left };
            return count;
        }
        if value.last() == Some(&b'\n') {
            value.pop();
        }
        value.truncate(self.name_bytes_max);
        match key {
            Key::Path => self.path = Some(value),
            Key::SparsePath => self.sparse_path = Some(value),
            Key::Size => self.size = decimal(&value),
            Key::SparseMajor => self.sparse_version[0] = decimal(&value),
            Key::SparseMinor => self.sparse_version[1] = decimal(&value),
            Key::SparseSize => self.sparse_size = decimal(&value),
            Key::SparseOffset => self.map().add_offset(decimal(&value)),
            Key::SparseLength => self.map().add_length(decimal(&value)),
            Key::SparseMap | Key::Sparse | Key::Other => {}
        }
        self.sparse |= !matches!(key, Key::Path | Key::Size | Key::Other);
        count
    }

    fn map(&mut self) -> &mut Map {
        self.map.get_or_insert(Map::new(self.regions_max))
    }
}

fn length(value: u64, read: u64, byte: u8) -> Record {
    const DIGITS_MAX: u64 = 18;
    match byte {
        b'0'..=b'9' if read < DIGITS_MAX => Record::Length {
            value: value.saturating_mul(10).saturating_add((byte & 15).into()),
            read: read.saturating_add(1),
        },
        // A key, an equals sign and a newline must fit.
        b' ' if read > 0 && value > read.saturating_add(3) => {
            Record::Key { key: Vec::new(), left: value.saturating_sub(read).saturating_sub(1) }
        }
        // Some writers pad the body with NULs.
        0 if read == 0 => START,
        _ => Record::Broken,
    }
}

fn read_key(mut key: Vec<u8>, left: u64, byte: u8) -> Record {
    let left = left.saturating_sub(1);
    if left == 0 {
        return Record::Broken;
    }
    if byte != b'=' {
        if key.len() < KEY_BYTES_MAX {
            key.push(byte);
        }
        return Record::Key { key, left };
    }
    let key = match key.as_slice() {
        b"path" => Key::Path,
        b"GNU.sparse.name" => Key::SparsePath,
        b"GNU.sparse.major" => Key::SparseMajor,
        b"GNU.sparse.minor" => Key::SparseMinor,
        b"GNU.sparse.size" | b"GNU.sparse.realsize" => Key::SparseSize,
        b"GNU.sparse.offset" => Key::SparseOffset,
        b"GNU.sparse.numbytes" => Key::SparseLength,
        b"GNU.sparse.map" => Key::SparseMap,
        b"size" => Key::Size,
        other if other.starts_with(b"GNU.sparse.") || other == b"SCHILY.realsize" => Key::Sparse,
        _ => Key::Other,
    };
    Record::Value { key, value: Vec::new(), left }
}

fn decimal(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_and_size_are_kept_at_every_cut() {
        let records = b"21 path=a/b/c/d=e f\n\n12 size=123\n30 mtime=1350244992.023960108\n";
        for cut in 0..records.len() {
            let mut pax = Pax::new(100, 10);
            pax.read(&records[..cut]);
            pax.read(&records[cut..]);
            assert_eq!(pax.size, Some(123));
            assert!(!pax.is_broken());
            assert_eq!(pax.name(), Some(&b"a/b/c/d=e f\n"[..]));
        }
    }

    #[test]
    fn what_is_no_record_is_broken() {
        for text in [&b"path=abc\n"[..], b"4 a=", b"9999999999999999999 a=b\n", b"12 size=12"] {
            let mut pax = Pax::new(100, 10);
            pax.read(text);
            assert!(pax.is_broken(), "{}", text.escape_ascii());
        }
    }
}
