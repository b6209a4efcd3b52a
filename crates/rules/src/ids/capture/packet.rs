//! Segments and datagrams in captured packets: Ethernet with VLANs, raw IP, Linux cooked and loopback links; IPv4 and IPv6, also in
//! tunnels of IP and GRE.
//!
//! Other tunnels and bad checksums are not looked into. Fragments are told as they are.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::fragments::{Fragment, Key};

/// The type of a link, as captures number them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link(pub u32);

impl Link {
    /// Packets of IP without a head of a link.
    pub const RAW: Link = Link(101);
}

/// Addresses and payload of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Packet<'a> {
    pub source: (IpAddr, u16),
    pub target: (IpAddr, u16),
    pub carried: Carried<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Carried<'a> {
    Segment { sequence: u32, flags: u8, bytes: &'a [u8] },
    Datagram(&'a [u8]),
}

/// A packet, or a part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Read<'a> {
    Whole(Packet<'a>),
    Part(Fragment<'a>),
}

/// Heads of IP within each other.
const TUNNELS_MAX: u8 = 4;
const EXTENSIONS_MAX: usize = 8;

pub(super) const FIN: u8 = 1;
pub(super) const SYN: u8 = 2;
pub(super) const RST: u8 = 4;
pub(super) const ACK: u8 = 16;

/// Reads a packet; none where it carries nothing that is followed.
pub(super) fn read(link: Link, bytes: &[u8]) -> Option<Read<'_>> {
    match link.0 {
        1 => ethernet(bytes, 0),
        0 | 108 => internet(bytes.get(4..)?, 0),
        12 | 101 | 228 | 229 => internet(bytes, 0),
        113 => internet(bytes.get(16..)?, 0),
        276 => internet(bytes.get(20..)?, 0),
        _ => None,
    }
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn ethernet(bytes: &[u8], depth: u8) -> Option<Read<'_>> {
    let mut at = 12;
    for _ in 0..3 {
        match half(bytes, at)? {
            0x8100 | 0x88a8 | 0x9100 => at += 4,
            0x0800 | 0x86dd => return internet(bytes.get(at + 2..)?, depth),
            0x8864 => return internet(bytes.get(at + 10..)?, depth),
            _ => return None,
        }
    }
    None
}

fn internet(bytes: &[u8], depth: u8) -> Option<Read<'_>> {
    match bytes.first()? >> 4 {
        4 => {
            let head = usize::from(bytes[0] & 15) * 4;
            let total = usize::from(half(bytes, 2)?);
            if head < 20 {
                return None;
            }
            // Captures of machines that segment in hardware may say 0.
            let end = if total == 0 { bytes.len() } else { total.min(bytes.len()) };
            let of = |at: usize| Some(IpAddr::from(Ipv4Addr::from(<[u8; 4]>::try_from(bytes.get(at..at + 4)?).ok()?)));
            let (protocol, addresses, content) = (*bytes.get(9)?, [of(12)?, of(16)?], bytes.get(head..end)?);
            let place = half(bytes, 6)?;
            if place & 0x3fff == 0 {
                return carried(protocol, content, addresses, depth);
            }
            let key = Key { addresses, number: u32::from(half(bytes, 4)?), protocol };
            let (offset, is_last) = (usize::from(place & 0x1fff) * 8, place & 0x2000 == 0);
            Some(Read::Part(Fragment { key, offset, is_last, bytes: content, depth }))
        }
        6 => {
            let of =
                |at: usize| Some(IpAddr::from(Ipv6Addr::from(<[u8; 16]>::try_from(bytes.get(at..at + 16)?).ok()?)));
            let end = usize::from(half(bytes, 4)?).saturating_add(40).min(bytes.len());
            extended(*bytes.get(6)?, bytes.get(40..end)?, [of(8)?, of(24)?], depth)
        }
        _ => None,
    }
}

/// Reads the content of a packet of IPv6 behind its extensions.
fn extended(mut next: u8, bytes: &[u8], addresses: [IpAddr; 2], depth: u8) -> Option<Read<'_>> {
    let mut at = 0;
    for _ in 0..EXTENSIONS_MAX {
        match next {
            0 | 43 | 60 => (next, at) = (*bytes.get(at)?, at + (usize::from(*bytes.get(at + 1)?) + 1) * 8),
            44 => {
                let place = half(bytes, at + 2)?;
                let number = u32::from_be_bytes(bytes.get(at + 4..at + 8)?.try_into().ok()?);
                (next, at) = (*bytes.get(at)?, at + 8);
                // One fragment may be all of the packet.
                if place & 0xfff9 != 0 {
                    let key = Key { addresses, number, protocol: next };
                    let (offset, is_last) = (usize::from(place & 0xfff8), place & 1 == 0);
                    return Some(Read::Part(Fragment { key, offset, is_last, bytes: bytes.get(at..)?, depth }));
                }
            }
            _ => break,
        }
    }
    carried(next, bytes.get(at..)?, addresses, depth)
}

/// Reads the content of a packet that was put together, which counts as one more head around what is in it.
pub(super) fn joined(key: Key, bytes: &[u8], depth: u8) -> Option<Read<'_>> {
    let depth = depth.checked_add(1).filter(|depth| *depth <= TUNNELS_MAX)?;
    match key.addresses[0] {
        IpAddr::V4(_) => carried(key.protocol, bytes, key.addresses, depth),
        IpAddr::V6(_) => extended(key.protocol, bytes, key.addresses, depth),
    }
}

/// Reads the content of a packet of IP: a segment, a datagram, or another packet.
fn carried(protocol: u8, bytes: &[u8], [source, target]: [IpAddr; 2], depth: u8) -> Option<Read<'_>> {
    let carried = match protocol {
        6 => {
            let head = usize::from(bytes.get(12)? >> 4) * 4;
            let sequence = u32::from_be_bytes(bytes.get(4..8)?.try_into().ok()?);
            Carried::Segment { sequence, flags: *bytes.get(13)?, bytes: bytes.get(head.max(20)..)? }
        }
        17 => {
            let end = usize::from(half(bytes, 4)?).clamp(8, bytes.len().max(8));
            Carried::Datagram(bytes.get(8..end)?)
        }
        4 | 41 if depth < TUNNELS_MAX => return internet(bytes, depth + 1),
        47 if depth < TUNNELS_MAX => return encapsulated(bytes, depth + 1),
        _ => return None,
    };
    Some(Read::Whole(Packet { source: (source, half(bytes, 0)?), target: (target, half(bytes, 2)?), carried }))
}

/// The packet in one of GRE (RFC 2784, RFC 2890), that of version 1 and with routes left out.
fn encapsulated(bytes: &[u8], depth: u8) -> Option<Read<'_>> {
    let flags = half(bytes, 0)?;
    if flags & 0x4007 != 0 {
        return None;
    }
    let fields = [0x8000, 0x2000, 0x1000].into_iter().filter(|field| flags & field != 0).count();
    let inner = bytes.get(4 + 4 * fields..)?;
    match half(bytes, 2)? {
        0x0800 | 0x86dd => internet(inner, depth),
        0x6558 => ethernet(inner, depth),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet of IPv4 around a content.
    fn around(protocol: u8, content: &[u8]) -> Vec<u8> {
        let length = u16::try_from(20 + content.len()).expect("a packet").to_be_bytes();
        let head = [0x45, 0, length[0], length[1], 0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, protocol, 10, 0, 0, 9];
        [&head[..], content].concat()
    }

    #[test]
    fn segments_are_read_through_tunnels_of_a_bounded_depth() {
        let mut segment = [0; 24];
        segment[..4].copy_from_slice(&[0, 1, 0, 2]);
        (segment[12], segment[13]) = (0x50, ACK);
        segment[20..].copy_from_slice(b"text");
        let plain = around(6, &segment);
        let Some(Read::Whole(segment)) = internet(&plain, 0) else { panic!("no segment") };
        assert!(
            matches!(segment.carried, Carried::Segment { bytes: b"text", .. }) && segment.source.1 == 1,
            "{segment:?}"
        );
        let wanted = Read::Whole(segment);
        let bridged = [&[0x20, 0, 0x65, 0x58, 0, 0, 0, 7][..], &[2; 12], &[8, 0], &plain].concat();
        let routed = [&[0, 0, 8, 0][..], &plain].concat();
        for (protocol, content) in [(4, &plain), (47, &bridged), (47, &routed)] {
            assert_eq!(internet(&around(protocol, content), 0), Some(wanted));
        }
        let deep = (0..TUNNELS_MAX).fold(plain.clone(), |packet, _| around(4, &packet));
        assert_eq!(internet(&deep, 0), Some(wanted));
        assert_eq!(internet(&around(4, &deep), 0), None);
        for unread in [&[0x40, 0, 8, 0][..], &[0, 1, 8, 0], &[0, 0, 8, 6], &[0]] {
            assert_eq!(internet(&around(47, &[unread, &plain].concat()), 0), None);
        }
    }
}
