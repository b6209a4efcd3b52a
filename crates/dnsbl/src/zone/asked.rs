//! Names in question, and the addresses that they spell.

/// A name in question, below a zone or subzone.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// In wire form without root, in lower case; empty for the zone itself.
    pub name: &'a [u8],
    /// The IPv4 address that it spells.
    pub ip4: Option<u32>,
    /// The IPv6 address that it spells.
    pub ip6: Option<u128>,
}

impl<'a> Asked<'a> {
    /// Reads the addresses that a name spells.
    pub fn new(name: &'a [u8]) -> Asked<'a> {
        let ip6 = nibbles(name);
        let ip4 = ip6.map_or_else(|| octets(name), embedded);
        Asked { name, ip4, ip6 }
    }
}

/// Four labels of one to three digits, the last octet first.
fn octets(name: &[u8]) -> Option<u32> {
    let (mut address, mut rest) = (0_u32, name);
    for index in 0..4 {
        let (&len, behind) = rest.split_first()?;
        let label = behind.get(..usize::from(len)).filter(|label| label.len() <= 3)?;
        address |= u32::from(super::value::number(label)?) << (8 * index);
        rest = &behind[label.len()..];
    }
    rest.is_empty().then_some(address)
}

/// 32 labels of a hexadecimal digit each, the last one first.
fn nibbles(name: &[u8]) -> Option<u128> {
    if name.len() != 64 {
        return None;
    }
    name.chunks_exact(2).rev().try_fold(0_u128, |address, label| {
        let digit = char::from(label[1]).to_digit(16).filter(|_| label[0] == 1)?;
        Some(address << 4 | u128::from(digit))
    })
}

/// The IPv4 address in an IPv6 address: mapped (`::ffff:0:0/96`), or of 6to4 (`2002::/16`).
const fn embedded(address: u128) -> Option<u32> {
    if address >> 32 == 0xffff {
        return Some(address as u32);
    }
    if address >> 112 == 0x2002 { Some((address >> 80) as u32) } else { None }
}

/// Whether an address is an IPv4 address in IPv6's clothes.
pub const fn is_mapped(address: u128) -> bool {
    address >> 32 == 0xffff
}
