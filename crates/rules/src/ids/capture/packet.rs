//! Segments and datagrams in captured packets: Ethernet with VLANs, raw IP, Linux cooked and loopback links; IPv4 and IPv6.
//!
//! Fragments, tunnels and bad checksums are not looked into.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::pcap::Captured;

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

pub(super) const FIN: u8 = 1;
pub(super) const SYN: u8 = 2;
pub(super) const RST: u8 = 4;
pub(super) const ACK: u8 = 16;

/// Reads a packet; none where it carries nothing that is followed.
pub(super) fn read<'a>(captured: &Captured<'a>) -> Option<Packet<'a>> {
    let bytes = captured.bytes;
    match captured.link {
        1 => ethernet(bytes),
        0 | 108 => internet(bytes.get(4..)?),
        12 | 101 | 228 | 229 => internet(bytes),
        113 => internet(bytes.get(16..)?),
        276 => internet(bytes.get(20..)?),
        _ => None,
    }
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn ethernet(bytes: &[u8]) -> Option<Packet<'_>> {
    let mut at = 12;
    for _ in 0..3 {
        match half(bytes, at)? {
            0x8100 | 0x88a8 | 0x9100 => at += 4,
            0x0800 | 0x86dd => return internet(bytes.get(at + 2..)?),
            0x8864 => return internet(bytes.get(at + 10..)?),
            _ => return None,
        }
    }
    None
}

fn internet(bytes: &[u8]) -> Option<Packet<'_>> {
    match bytes.first()? >> 4 {
        4 => {
            let head = usize::from(bytes[0] & 15) * 4;
            let total = usize::from(half(bytes, 2)?);
            if head < 20 || half(bytes, 6)? & 0x3fff != 0 {
                return None;
            }
            // Captures of machines that segment in hardware may say 0.
            let end = if total == 0 { bytes.len() } else { total.min(bytes.len()) };
            let of = |at: usize| Some(IpAddr::from(Ipv4Addr::from(<[u8; 4]>::try_from(bytes.get(at..at + 4)?).ok()?)));
            transport(*bytes.get(9)?, bytes.get(head..end)?, of(12)?, of(16)?)
        }
        6 => {
            let of =
                |at: usize| Some(IpAddr::from(Ipv6Addr::from(<[u8; 16]>::try_from(bytes.get(at..at + 16)?).ok()?)));
            let end = usize::from(half(bytes, 4)?).saturating_add(40).min(bytes.len());
            let (mut next, mut at) = (*bytes.get(6)?, 40);
            for _ in 0..8 {
                if !matches!(next, 0 | 43 | 60) {
                    break;
                }
                (next, at) = (*bytes.get(at)?, at + (usize::from(*bytes.get(at + 1)?) + 1) * 8);
            }
            transport(next, bytes.get(at..end)?, of(8)?, of(24)?)
        }
        _ => None,
    }
}

fn transport(protocol: u8, bytes: &[u8], source: IpAddr, target: IpAddr) -> Option<Packet<'_>> {
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
        _ => return None,
    };
    Some(Packet { source: (source, half(bytes, 0)?), target: (target, half(bytes, 2)?), carried })
}
