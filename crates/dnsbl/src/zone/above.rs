//! Names that have nothing of their own, but names below them: empty non-terminals (RFC 4592, 2.2.2). They exist, and a resolver
//! that asks label by label (RFC 9156) gives up at the first that does not (RFC 8020).
//!
//! Of addresses a name of fewer labels stands for a prefix, in which something has to be listed. Of names the ancestors are
//! kept as hashes: one that is wrong makes NODATA of NXDOMAIN.

use super::asked::Asked;
use super::value::{ValueId, number};

/// So many excluded networks of a prefix are passed over in search of one that is listed; with more, one is assumed.
pub const EXCLUDED_MAX: usize = 256;

/// The addresses below a name that spells the beginning of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefix<Address> {
    /// The first of them.
    pub first: Address,
    /// The bits that they have in common.
    pub bits: u8,
}

impl Prefix<u128> {
    /// The last of them.
    pub const fn last(self) -> u128 {
        if self.bits >= 128 { self.first } else { self.first | u128::MAX >> self.bits }
    }
}

/// The IPv4 addresses below a name of one to three octets, the last one first.
pub fn octets(name: &[u8]) -> Option<Prefix<u32>> {
    // The last label is the first octet.
    let (mut first, mut count, mut rest) = (0_u32, 0_u8, name);
    while let Some((&len, behind)) = rest.split_first() {
        let label = behind.get(..usize::from(len)).filter(|label| label.len() <= 3 && count < 3)?;
        first = first >> 8 | u32::from(number(label)?) << 24;
        (rest, count) = (behind.get(label.len()..)?, count + 1);
    }
    (count > 0).then_some(Prefix { first, bits: 8 * count })
}

/// The IPv6 addresses below a name of one to 31 hexadecimal digits, the last one first.
pub fn nibbles(name: &[u8]) -> Option<Prefix<u128>> {
    if name.is_empty() || name.len() >= 64 || !name.len().is_multiple_of(2) {
        return None;
    }
    let mut prefix = Prefix { first: 0, bits: 0 };
    for label in name.chunks_exact(2).rev() {
        let digit = char::from(label[1]).to_digit(16).filter(|_| label[0] == 1)?;
        prefix.bits += 4;
        prefix.first |= u128::from(digit) << (128 - prefix.bits);
    }
    Some(prefix)
}

/// The IPv4 addresses that are spelt as IPv6 addresses below such a name: mapped, and those of 6to4.
pub fn embedded(prefix: Prefix<u128>) -> impl Iterator<Item = Prefix<u32>> {
    [(0xffff_u128 << 32, 96_u8), (0x2002_u128 << 112, 16)].into_iter().filter_map(move |(base, bits)| {
        let common = prefix.bits.min(bits);
        if (prefix.first ^ base) >> (128 - common) != 0 {
            return None;
        }
        let first = (prefix.first << bits >> 96) as u32;
        Some(Prefix { first: if prefix.bits > bits { first } else { 0 }, bits: (prefix.bits - common).min(32) })
    })
}

/// Whether something is listed, of the values of networks in a prefix and of that which covers it.
pub fn any_listed(mut within: impl Iterator<Item = ValueId>, covers: impl FnOnce() -> bool) -> bool {
    let mut passed = 0;
    within.any(|value| {
        passed += 1;
        value != ValueId::EXCLUDED || passed > EXCLUDED_MAX
    }) || covers()
}

/// The ancestors of names, as sorted hashes.
#[derive(Debug, Default)]
pub struct Ancestors(Vec<u64>);

impl Ancestors {
    /// Collects the ancestors of names in wire form without root, each with whether it exists only for names below it.
    pub fn new<'n>(names: impl Iterator<Item = (&'n [u8], bool)>) -> Ancestors {
        let mut all = Vec::new();
        let mut sorted = 0;
        for (name, wild) in names {
            if wild {
                all.push(hash(name));
            }
            let mut rest = name;
            while let Some(parent) = parent(rest).filter(|parent| !parent.is_empty()) {
                all.push(hash(parent));
                rest = parent;
            }
            // Most names share their ancestors, so that the list stays short.
            if all.len() > 2 * sorted + 65_536 {
                tidy(&mut all);
                sorted = all.len();
            }
        }
        tidy(&mut all);
        all.shrink_to_fit();
        Ancestors(all)
    }

    /// Whether a name is an ancestor of a listed name.
    pub fn has(&self, name: &[u8]) -> bool {
        self.0.binary_search(&hash(name)).is_ok()
    }

    /// How many bytes they take.
    pub fn memory_bytes(&self) -> usize {
        8 * self.0.capacity()
    }
}

fn tidy(all: &mut Vec<u64>) {
    all.sort_unstable();
    all.dedup();
}

fn parent(name: &[u8]) -> Option<&[u8]> {
    let (&len, behind) = name.split_first()?;
    behind.get(usize::from(len)..)
}

fn hash(name: &[u8]) -> u64 {
    name.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// A name of prefixes (`y.x.p4`, nibbles below `p6`) that is not whole, without the label that says so.
pub fn of_prefixes(name: &[u8]) -> Option<Vec<u8>> {
    let (mut front, mut count) = (0, 0);
    loop {
        let rest = name.get(front..)?;
        for (label, labels) in [(&b"\x02p4"[..], 3), (b"\x02p6", 12)] {
            if let Some(behind) = rest.strip_prefix(label) {
                return (count < labels).then(|| [&name[..front], behind].concat());
            }
        }
        front += usize::from(*rest.first()?) + 1;
        count += 1;
    }
}

/// Whether a name spells the beginning of an address of a family: IPv4, IPv6.
pub fn spells(asked: &Asked<'_>) -> (bool, bool) {
    let six = nibbles(asked.name);
    let four = octets(asked.name).is_some() || six.is_some_and(|six| embedded(six).next().is_some());
    (four, six.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginnings_of_addresses_are_read_from_behind() {
        let prefix = |first, bits| Some(Prefix { first, bits });
        assert_eq!(octets(b"\x03127"), prefix(0x7f00_0000, 8));
        assert_eq!(octets(b"\x012\x010\x03127"), prefix(0x7f00_0200, 24));
        assert_eq!(octets(b"\x012\x010\x010\x03127"), None);
        assert_eq!(octets(b"\x011\x01x"), None);
        assert_eq!(nibbles(b"\x01d\x010\x010\x012"), Some(Prefix { first: 0x200d << 112, bits: 16 }));
        assert_eq!(nibbles(b"\x0212"), None);
    }

    #[test]
    fn addresses_of_the_other_family_are_below_their_prefixes() {
        let of = |name: &[u8]| nibbles(name).map(|prefix| embedded(prefix).collect::<Vec<_>>()).unwrap_or_default();
        assert_eq!(of(b"\x012"), [Prefix { first: 0, bits: 0 }]);
        assert_eq!(of(b"\x01f\x017\x012\x010\x010\x012"), [Prefix { first: 0x7f00_0000, bits: 8 }]);
        assert_eq!(of(b"\x010").len(), 1);
        assert_eq!(of(b"\x013"), []);
    }

    #[test]
    fn names_of_prefixes_lose_their_label() {
        assert_eq!(of_prefixes(b"\x010\x03127\x02p4\x01x"), Some(b"\x010\x03127\x01x".to_vec()));
        assert_eq!(of_prefixes(b"\x02p6"), Some(Vec::new()));
        assert_eq!(of_prefixes(b"\x012\x010\x010\x02p4"), None);
        assert_eq!(of_prefixes(b"\x012\x010"), None);
    }
}
