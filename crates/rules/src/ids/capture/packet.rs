//! Segments and datagrams in captured packets: Ethernet with VLANs, VN-Tags, MPLS and PPPoE, raw IP, Linux cooked, loopback, PPP and Cisco HDLC links;
//! IPv4 and IPv6, also in tunnels of IP, GRE, VXLAN and Geneve.
//!
//! Other tunnels and bad checksums are not looked into. Fragments are told as they are.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::fragments::{Fragment, Key};
use super::unread::Kind;

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
    Segment(Segment<'a>),
    Datagram(&'a [u8]),
}

/// A segment of TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segment<'a> {
    pub sequence: u32,
    pub acknowledged: u32,
    pub flags: u8,
    pub window: u16,
    /// The number of urgent bytes from its beginning; the last of them is no part of the stream.
    pub urgent: u16,
    /// The exponent of later windows, where an option says it.
    pub scale: Option<u8>,
    pub bytes: &'a [u8],
}

impl Segment<'_> {
    fn read(bytes: &[u8]) -> Option<Segment<'_>> {
        let word = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let head = (usize::from(bytes.get(12)? >> 4) * 4).max(20);
        let flags = *bytes.get(13)?;
        Some(Segment {
            sequence: word(4)?,
            acknowledged: word(8)?,
            flags,
            window: half(bytes, 14)?,
            urgent: if flags & URG == 0 { 0 } else { half(bytes, 18)? },
            scale: scale(bytes.get(20..head)?),
            bytes: bytes.get(head..)?,
        })
    }
}

/// The scale of windows in the options of a segment (RFC 7323, section 2).
fn scale(mut options: &[u8]) -> Option<u8> {
    loop {
        options = match options {
            [1, rest @ ..] => rest,
            [3, 3, scale, ..] => return Some((*scale).min(14)),
            [0, ..] | [] | [_] => return None,
            [_, length, ..] => options.get(usize::from(*length).max(2)..)?,
        };
    }
}

/// A packet, or a part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Read<'a> {
    Whole(Packet<'a>),
    Part(Fragment<'a>),
}

/// Heads of IP within each other.
const TUNNELS_MAX: u8 = 4;
/// The protocol of the head that authenticates a packet (RFC 4302).
const AUTHENTICATION: u8 = 51;
/// Tags of Ethernet in front of each other.
const TAGS_MAX: usize = 8;
/// Links of PPP, with and without the heads of HDLC.
const PPP: u32 = 9;
const PPP_HDLC: u32 = 50;
/// The port of VXLAN (RFC 7348) and that of Geneve (RFC 8926).
const VXLAN_PORT: u16 = 4789;
const GENEVE_PORT: u16 = 6081;

pub(super) const FIN: u8 = 1;
pub(super) const SYN: u8 = 2;
pub(super) const RST: u8 = 4;
pub(super) const ACK: u8 = 16;
const URG: u8 = 32;

/// Reads a packet; none where it carries nothing that is followed.
pub(super) fn read(link: Link, bytes: &[u8]) -> Option<Read<'_>> {
    match link.0 {
        PPP | PPP_HDLC => point_to_point(bytes, 0),
        _ => {
            let (kind, inner) = linked(link, bytes)??;
            typed(kind, inner, 0)
        }
    }
}

/// The EtherType of a packet, and what follows its head; none for links that are not known, and for packets that are too short.
fn linked(link: Link, bytes: &[u8]) -> Option<Option<(u16, &[u8])>> {
    const IP: u16 = 0x0800;
    let typed = |at, behind| half(bytes, at).zip(bytes.get(behind..));
    Some(match link.0 {
        1 => typed(12, 14),
        0 | 108 => Some(IP).zip(bytes.get(4..)),
        12 | 101 | 228 | 229 => Some((IP, bytes)),
        104 => typed(2, 4),
        113 => typed(14, 16),
        276 => typed(0, 20),
        _ => return None,
    })
}

/// The kind of a packet by its outer heads.
pub(super) fn kind(link: Link, bytes: &[u8]) -> Kind {
    let inner = match linked(link, bytes) {
        _ if matches!(link.0, PPP | PPP_HDLC) => return Kind::Broken,
        None => return Kind::Link(link.0),
        Some(None) => return Kind::Broken,
        Some(Some((kind, inner))) => match untagged(kind, inner) {
            Some((0x0800 | 0x86dd, inner)) => inner,
            Some((kind, _)) => return Kind::Ethernet(kind),
            None => return Kind::Broken,
        },
    };
    let protocol = match inner.first().map(|first| first >> 4) {
        Some(4) => inner.get(9),
        Some(6) => inner.get(6),
        _ => None,
    };
    protocol.map_or(Kind::Broken, |&protocol| Kind::Protocol(protocol))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn ethernet(bytes: &[u8], depth: u8) -> Option<Read<'_>> {
    typed(half(bytes, 12)?, bytes.get(14..)?, depth)
}

/// Reads what an EtherType says.
fn typed(kind: u16, bytes: &[u8], depth: u8) -> Option<Read<'_>> {
    match untagged(kind, bytes)? {
        (0x0800 | 0x86dd, bytes) => internet(bytes, depth),
        (0x8847 | 0x8848, bytes) => labelled(bytes, depth),
        (0x8864, bytes) => point_to_point(bytes.get(6..)?, depth),
        _ => None,
    }
}

/// The EtherType behind all tags, and what follows it; none where there are too many.
fn untagged(mut kind: u16, mut bytes: &[u8]) -> Option<(u16, &[u8])> {
    for _ in 0..=TAGS_MAX {
        let tag = match kind {
            0x8100 | 0x88a8 | 0x9100 | 0x9200 => 2,
            0x8926 => 4,
            _ => return Some((kind, bytes)),
        };
        (kind, bytes) = (half(bytes, tag)?, bytes.get(tag + 2..)?);
    }
    None
}

/// The packet behind the labels of MPLS (RFC 3032): of IP, or of Ethernet with or without a control word (RFC 4448).
fn labelled(bytes: &[u8], depth: u8) -> Option<Read<'_>> {
    let last = bytes.chunks_exact(4).position(|label| label[2] & 1 != 0)?;
    let inner = bytes.get((last + 1) * 4..)?;
    match inner.first()? >> 4 {
        4 | 6 => internet(inner, depth),
        0 => ethernet(inner.get(4..)?, depth).or_else(|| ethernet(inner, depth)),
        _ => ethernet(inner, depth),
    }
}

/// The packet in one of PPP, whose address and leading zero may be left out.
fn point_to_point(bytes: &[u8], depth: u8) -> Option<Read<'_>> {
    let bytes = bytes.strip_prefix(&[0xff, 3]).unwrap_or(bytes);
    let bytes = bytes.strip_prefix(&[0]).unwrap_or(bytes);
    matches!(bytes.first(), Some(0x21 | 0x57)).then(|| internet(&bytes[1..], depth))?
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
    loop {
        match next {
            // Options, routes, mobility, HIP, Shim6.
            0 | 43 | 60 | 135 | 139 | 140 => {
                (next, at) = (*bytes.get(at)?, at + (usize::from(*bytes.get(at + 1)?) + 1) * 8);
            }
            AUTHENTICATION => (next, at) = (*bytes.get(at)?, at + (usize::from(*bytes.get(at + 1)?) + 2) * 4),
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
        6 => Carried::Segment(Segment::read(bytes)?),
        17 => {
            let end = usize::from(half(bytes, 4)?).clamp(8, bytes.len().max(8));
            let content = bytes.get(8..end)?;
            if let Some(read) = (depth < TUNNELS_MAX).then(|| overlaid(half(bytes, 2)?, content, depth + 1)).flatten() {
                return Some(read);
            }
            Carried::Datagram(content)
        }
        AUTHENTICATION if depth < TUNNELS_MAX => {
            let inner = bytes.get((usize::from(*bytes.get(1)?) + 2) * 4..)?;
            return carried(*bytes.first()?, inner, [source, target], depth + 1);
        }
        4 | 41 if depth < TUNNELS_MAX => return internet(bytes, depth + 1),
        47 if depth < TUNNELS_MAX => return encapsulated(bytes, depth + 1),
        _ => return None,
    };
    Some(Read::Whole(Packet { source: (source, half(bytes, 0)?), target: (target, half(bytes, 2)?), carried }))
}

/// The packet in a datagram to a port of VXLAN or Geneve.
fn overlaid(port: u16, bytes: &[u8], depth: u8) -> Option<Read<'_>> {
    let flags = *bytes.first()?;
    match port {
        VXLAN_PORT if flags & 8 != 0 => ethernet(bytes.get(8..)?, depth),
        // Version 0, and options in words of four bytes.
        GENEVE_PORT if flags < 0x40 => within(half(bytes, 2)?, bytes.get(8 + usize::from(flags) * 4..)?, depth),
        _ => None,
    }
}

/// The packet in one of GRE (RFC 2784, RFC 2890, RFC 2637), that with routes left out.
fn encapsulated(bytes: &[u8], depth: u8) -> Option<Read<'_>> {
    let (flags, kind) = (half(bytes, 0)?, half(bytes, 2)?);
    let fields: &[u16] = match flags & 7 {
        0 => &[0x8000, 0x2000, 0x1000],
        // The length and the call stand where the key does.
        1 if flags & 0x2000 != 0 && kind == 0x880b => &[0x2000, 0x1000, 0x0080],
        _ => return None,
    };
    if flags & 0x4000 != 0 {
        return None;
    }
    let inner = bytes.get(4 + 4 * fields.iter().filter(|field| flags & **field != 0).count()..)?;
    // ERSPAN has a head of its own where its packets are numbered.
    let mirrored = if kind == 0x88be && flags & 0x1000 != 0 { 8 } else { 0 };
    within(kind, inner.get(mirrored..)?, depth)
}

/// Reads what a tunnel says that it carries: Ethernet, PPP, or what Ethernet carries.
fn within(kind: u16, inner: &[u8], depth: u8) -> Option<Read<'_>> {
    match kind {
        0x6558 | 0x88be => ethernet(inner, depth),
        0x880b => point_to_point(inner, depth),
        _ => typed(kind, inner, depth),
    }
}

#[cfg(test)]
mod tests {
    use super::super::unread::{KINDS_MAX, Unread};
    use super::*;

    /// A packet of IPv4 around a content.
    fn around(protocol: u8, content: &[u8]) -> Vec<u8> {
        let length = u16::try_from(20 + content.len()).expect("a packet").to_be_bytes();
        let head = [0x45, 0, length[0], length[1], 0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, protocol, 10, 0, 0, 9];
        [&head[..], content].concat()
    }

    #[test]
    fn segments_are_read_through_tunnels_of_a_bounded_depth() {
        let plain = segment();
        let Some(Read::Whole(segment)) = internet(&plain, 0) else { panic!("no segment") };
        assert!(
            matches!(segment.carried, Carried::Segment(Segment { bytes: b"text", .. })) && segment.source.1 == 1,
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

    /// A packet of IPv4 with a segment of some text.
    fn segment() -> Vec<u8> {
        let mut segment = [0; 24];
        segment[..4].copy_from_slice(&[0, 1, 0, 2]);
        (segment[12], segment[13]) = (0x50, ACK);
        segment[20..].copy_from_slice(b"text");
        around(6, &segment)
    }

    #[test]
    fn segments_are_read_behind_tags_labels_and_overlays() {
        let plain = segment();
        let wanted = internet(&plain, 0);
        assert!(matches!(wanted, Some(Read::Whole(_))));
        let framed = |head: &[u8], inner: &[u8]| [&[2; 12][..], head, inner].concat();
        let frame = framed(&[8, 0], &plain);
        let tag = [0x81, 0, 0, 7];
        for head in [
            [tag, tag, tag, tag].concat(),
            [&[0x89, 0x26, 0, 0, 0, 0][..], &tag].concat(),
            [[0x88, 0xa8, 0, 7], tag, tag].concat(),
        ] {
            assert_eq!(ethernet(&framed(&[&head[..], &[8, 0]].concat(), &plain), 0), wanted, "{head:?}");
        }
        let labels = [0, 1, 0x40, 64, 0, 1, 0x41, 64];
        for inner in [plain.clone(), frame.clone(), [&[0; 4][..], &frame].concat()] {
            assert_eq!(ethernet(&framed(&[0x88, 0x47], &[&labels[..], &inner].concat()), 0), wanted);
        }
        for (link, head) in [
            (113, [&[0; 14][..], &[8, 0]].concat()),
            (113, [&[0; 14][..], &tag, &[8, 0]].concat()),
            (276, [&[0x88, 0xa8][..], &[0; 18], &[0, 7], &tag, &[8, 0]].concat()),
            (104, vec![15, 0, 8, 0]),
            (9, vec![0xff, 3, 0, 0x21]),
            (50, vec![0x21]),
        ] {
            assert_eq!(read(Link(link), &[&head[..], &plain].concat()), wanted, "{link} {head:?}");
        }
        assert_eq!(ethernet(&framed(&[0x88, 0x64, 0x11, 0, 0, 1, 0, 99, 0, 0x21], &plain), 0), wanted);
        for inner in [
            [&[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1][..], &[0x10; 8], &frame].concat(),
            [&[0, 0, 0x88, 0xbe][..], &frame].concat(),
            [&[0x30, 0x81, 0x88, 0x0b, 0, 99, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0xff, 3, 0, 0x21][..], &plain].concat(),
            [&[0, 0, 0x88, 0x47][..], &labels, &plain].concat(),
        ] {
            assert_eq!(internet(&around(47, &inner), 0), wanted, "{inner:?}");
        }
        let datagram = |port: u16, inner: &[u8]| {
            let length = u16::try_from(inner.len() + 8).expect("a packet").to_be_bytes();
            around(17, &[&[9, 9][..], &port.to_be_bytes(), &length, &[0, 0], inner].concat())
        };
        let wide = [&[8, 0, 0, 0, 0, 0, 7, 0][..], &frame].concat();
        let general = [&[1, 0, 0x65, 0x58, 0, 0, 7, 0, 1, 1, 1, 0][..], &frame].concat();
        assert_eq!(internet(&datagram(VXLAN_PORT, &wide), 0), wanted);
        assert_eq!(internet(&datagram(GENEVE_PORT, &general), 0), wanted);
        // A datagram of something else is one.
        for other in [datagram(VXLAN_PORT, &wide[..20]), datagram(53, &wide)] {
            let Some(Read::Whole(packet)) = internet(&other, 0) else { panic!("no packet") };
            assert!(matches!(packet.carried, Carried::Datagram(_)));
        }
    }

    #[test]
    fn segments_are_read_behind_all_extensions_of_ipv6() {
        let content = segment()[20..].to_vec();
        let six = |next: u8, content: &[u8]| {
            let length = u16::try_from(content.len()).expect("a packet").to_be_bytes();
            [&[0x60, 0, 0, 0, length[0], length[1], next, 64][..], &[1; 16], &[2; 16], content].concat()
        };
        let plain = six(6, &content);
        let wanted = internet(&plain, 0);
        assert!(matches!(wanted, Some(Read::Whole(_))));
        for kind in [0, 43, 60, 135, 139, 140] {
            let head = [6, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            assert_eq!(internet(&six(kind, &[&head[..], &content].concat()), 0), wanted, "{kind}");
        }
        let signed = [&[6, 4][..], &[0; 22], &content].concat();
        assert_eq!(internet(&six(AUTHENTICATION, &signed), 0), wanted);
        assert!(internet(&around(AUTHENTICATION, &signed), 0).is_some());
        let many = [[60, 0, 1, 4, 0, 0, 0, 0].repeat(20), vec![6, 0, 1, 4, 0, 0, 0, 0], content].concat();
        assert_eq!(internet(&six(60, &many), 0), wanted);
    }

    #[test]
    fn packets_that_are_not_read_are_counted_by_their_kind() {
        let ethernet = |kind: u16, inner: &[u8]| [&[2; 12][..], &kind.to_be_bytes(), inner].concat();
        let four = |protocol: u8| [&[0x45, 0, 0, 20, 0, 0, 0, 0, 64, protocol][..], &[0; 10]].concat();
        let mut unread = Unread::default();
        for packet in [
            ethernet(0x0806, &[0; 28]),
            ethernet(0x8100, &[&[0, 7, 8, 6][..], &[0; 28]].concat()),
            ethernet(0x0800, &four(1)),
            ethernet(0x86dd, &[&[0x60, 0, 0, 0, 0, 0, 58, 64][..], &[0; 32]].concat()),
            ethernet(0x88cc, &[]),
            vec![0; 5],
        ] {
            assert!(read(Link(1), &packet).is_none());
            unread.add(kind(Link(1), &packet));
        }
        unread.add(kind(Link::RAW, &four(132)));
        unread.add(kind(Link(147), &[0; 40]));
        let wanted = "2 ARP, 1 link type 147, 1 EtherType 0x88cc, 1 ICMP, 1 ICMPv6, 1 IP protocol 132, 1 broken";
        assert_eq!(unread.to_string(), wanted);
        (0..1_000).for_each(|number| unread.add(kind(Link(1), &ethernet(0x9300 + number, &[]))));
        assert_eq!(unread.counts().count(), KINDS_MAX + 1);
    }
}
