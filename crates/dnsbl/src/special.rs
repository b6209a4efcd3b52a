//! Names that ask for prefixes, and what is said of them: made of the classic answers to all addresses of the prefix, so
//! that it cannot say anything else than they do.

use crate::prefix::{CLASSES_MAX, Hosts, Networks, Prefix, write4, write6};
use crate::zone::Zone;
use crate::zone::asked::is_mapped;
use crate::zone::dataset::Body;

/// Time to live of a capability, in seconds.
const CAPABILITY_TTL: u32 = 86_400;

/// How many stretches of a prefix are looked at.
const STRETCHES_MAX: usize = 2_048;

/// How many stretches of a /48 are looked at before one has to ask for each address.
const STRETCHES6_MAX: usize = 128;

/// A question about prefixes. `subzone` is in wire form without root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Special<'a> {
    /// `_pbl`: whether prefixes are answered.
    Capability {
        /// Where.
        subzone: &'a [u8],
    },
    /// `z.y.x.p4`: x.y.z.0/24.
    Ip4 {
        /// The first address.
        first: u32,
        /// Where.
        subzone: &'a [u8],
    },
    /// Twelve nibbles, and `p6`: a /48.
    Ip6 {
        /// The first address.
        first: u128,
        /// Where.
        subzone: &'a [u8],
    },
    /// `h.z.y.x`: the lower (0) or upper (1) half of x.y.z.0/24.
    Half {
        /// The first address.
        first: u32,
        /// Where.
        subzone: &'a [u8],
    },
}

/// Reads a name below a zone.
pub fn read(name: &[u8]) -> Option<Special<'_>> {
    if let Some(subzone) = name.strip_prefix(b"\x04_pbl") {
        return Some(Special::Capability { subzone });
    }
    if let Some((nibbles, rest)) = name.split_at_checked(24)
        && let Some(subzone) = rest.strip_prefix(b"\x02p6")
    {
        let first = nibbles.chunks_exact(2).rev().try_fold(0_u128, |first, label| {
            let digit = char::from(label[1]).to_digit(16).filter(|_| label[0] == 1)?;
            Some(first << 4 | u128::from(digit))
        })?;
        return Some(Special::Ip6 { first: first << 80, subzone });
    }
    let (half, behind) = label(name)?;
    let is_half = matches!(half, b"0" | b"1");
    if let Some((parts, rest)) = three(behind).filter(|_| is_half) {
        let first = u32::from_be_bytes([parts[2], parts[1], parts[0], if half == b"1" { 128 } else { 0 }]);
        return Some(Special::Half { first, subzone: rest });
    }
    let (parts, rest) = three(name)?;
    let subzone = rest.strip_prefix(b"\x02p4")?;
    Some(Special::Ip4 { first: u32::from_be_bytes([parts[2], parts[1], parts[0], 0]), subzone })
}

fn three(name: &[u8]) -> Option<([u8; 3], &[u8])> {
    let (mut parts, mut rest) = ([0; 3], name);
    for part in &mut parts {
        let (digits, behind) = label(rest)?;
        *part = crate::zone::value::number(digits).filter(|_| digits.len() <= 3)?;
        rest = behind;
    }
    Some((parts, rest))
}

fn label(name: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&len, rest) = name.split_first()?;
    rest.split_at_checked(usize::from(len))
}

/// Result for a prefix: TXT data, or for half a prefix that of AAAA; empty if nothing is listed. With its time to live.
type Said = (Vec<u8>, u32);

/// The classic answer to a name below the zone: addresses, and their time to live.
type Find<'f> = dyn FnMut(&[u8]) -> (Vec<[u8; 4]>, u32) + 'f;

/// Says that prefixes are answered; `None` if they are not.
pub fn capability(zone: &Zone, subzone: &[u8]) -> Option<Said> {
    boundaries4(zone, 0, subzone)?;
    Some((text(b"v=pbl1 p4=24 p6=48"), CAPABILITY_TTL))
}

/// Returns the listings of a /24; `None` if the zone has no prefixes.
pub fn ip4(zone: &Zone, first: u32, subzone: &[u8], find: &mut Find<'_>) -> Option<Said> {
    let (classes, ttl) = classes4(zone, first, subzone, find)?;
    let mut out = Vec::new();
    match classes {
        Prefix::Classes(classes) if classes.is_empty() => return Some((out, ttl)),
        prefix => write4(&prefix, &mut out),
    }
    Some((text(&out), ttl))
}

/// Returns the listings of half a /24, in the form of an AAAA record.
pub fn half(zone: &Zone, first: u32, subzone: &[u8], find: &mut Find<'_>) -> Option<Said> {
    let (mut bitmap, mut ttl) = (0_u128, u32::MAX);
    each_stretch4(zone, first & !0xff, subzone, |host, last| {
        let (addresses, each) = find(&name4(first & !0xff | u32::from(host), subzone));
        if !addresses.is_empty() {
            ttl = ttl.min(each);
            let half = if first & 0x80 == 0 { 0..=127_u8 } else { 128..=255 };
            (host..=last).filter(|host| half.contains(host)).for_each(|host| bitmap |= 1 << (127 - (host & 127)));
        }
    })?;
    (bitmap != 0).then(|| (bitmap.to_be_bytes().to_vec(), ttl))
}

/// The classes of a /24.
fn classes4(zone: &Zone, first: u32, subzone: &[u8], find: &mut Find<'_>) -> Option<(Prefix<Hosts>, u32)> {
    let (mut classes, mut ttl): (Vec<([u8; 4], Hosts)>, u32) = (Vec::new(), u32::MAX);
    each_stretch4(zone, first, subzone, |host, last| {
        let (addresses, each) = find(&name4(first | u32::from(host), subzone));
        for address in addresses {
            ttl = ttl.min(each);
            let index = classes.iter().position(|(class, _)| *class == address).unwrap_or_else(|| {
                classes.push((address, Hosts::default()));
                classes.len() - 1
            });
            classes[index].1.insert(host, last);
        }
    })?;
    Some((if classes.len() > CLASSES_MAX { Prefix::AskSingle } else { Prefix::Classes(classes) }, ttl))
}

/// Calls `each` with the stretches of a /24 in which all hosts have the same answer.
fn each_stretch4(zone: &Zone, first: u32, subzone: &[u8], mut each: impl FnMut(u8, u8)) -> Option<()> {
    let mut starts = boundaries4(zone, first, subzone)?;
    let (begin, end) = (u64::from(first), u64::from(first) + 256);
    starts.retain(|start| (begin..end).contains(start));
    starts.extend([begin, end]);
    starts.sort_unstable();
    starts.dedup();
    for pair in starts.windows(2) {
        let host = |address: u64| u8::try_from(address & 0xff).unwrap_or(0);
        each(host(pair[0]), host(pair[1] - 1));
    }
    Some(())
}

/// Where answers may change within a /24; `None` if the zone's data does not tell.
fn boundaries4(zone: &Zone, first: u32, subzone: &[u8]) -> Option<Vec<u64>> {
    let mut starts = Vec::new();
    let mut any = false;
    let unknown = zone.any_dataset_of(subzone, |dataset| {
        any |= !matches!(dataset.body, Body::Generic(_));
        match &dataset.body {
            Body::Ip4(table) | Body::Feed { ip4: table, .. } => {
                !table.boundaries(first, 24, STRETCHES_MAX, &mut starts)
            }
            Body::Names(_) => true,
            Body::Generic(table) => {
                let spelled = table.spelled4(first, first | 0xff);
                starts.extend(spelled.iter().flat_map(|&address| [u64::from(address), u64::from(address) + 1]));
                false
            }
            _ => false,
        }
    });
    (any && !unknown).then_some(starts)
}

/// Returns the listings of a /48; `None` if the zone has no prefixes.
pub fn ip6(zone: &Zone, first: u128, subzone: &[u8], find: &mut Find<'_>) -> Option<Said> {
    boundaries4(zone, 0, subzone)?;
    let mut out = Vec::new();
    let Some(starts) = boundaries6(zone, first, subzone) else {
        write6(&Prefix::AskSingle, &mut out);
        return Some((text(&out), zone.datasets.first().map_or(0, |dataset| dataset.head.ttl())));
    };
    let (mut classes, mut ttl): (Vec<([u8; 4], Networks)>, u32) = (Vec::new(), u32::MAX);
    for pair in starts.windows(2) {
        let (addresses, each) = find(&name6(pair[0], subzone));
        let network = |address: u128| u16::try_from(address >> 64 & 0xffff).unwrap_or(0);
        for address in addresses {
            ttl = ttl.min(each);
            let index = classes.iter().position(|(class, _)| *class == address).unwrap_or_else(|| {
                classes.push((address, Networks::default()));
                classes.len() - 1
            });
            classes[index].1.insert(network(pair[0]), network(pair[1] - 1));
        }
    }
    if !classes.is_empty() {
        write6(&Prefix::Classes(classes), &mut out);
        out = text(&out);
    }
    Some((out, ttl))
}

/// Where answers may change within a /48, its ends included; `None` if one has to ask for each address.
fn boundaries6(zone: &Zone, first: u128, subzone: &[u8]) -> Option<Vec<u128>> {
    let end = first.checked_add(1 << 80)?;
    let mut starts = vec![first, end];
    let unknown = zone.any_dataset_of(subzone, |dataset| match &dataset.body {
        Body::Ip4(_) => is_mapped(first | 0xffff << 32),
        Body::Feed { ip6, .. } => {
            is_mapped(first | 0xffff << 32) || !ip6.boundaries_of_48(first, STRETCHES6_MAX, &mut starts)
        }
        Body::Ip6(table) => !table.boundaries_of_48(first, STRETCHES6_MAX, &mut starts),
        Body::Ip6Trivial { networks, excluded } => {
            let at = excluded.partition_point(|&address| address < first);
            let from = networks.partition_point(|&network| u128::from(network) << 64 < first);
            let inside =
                networks[from..].iter().map(|&network| u128::from(network) << 64).take_while(|&start| start < end);
            starts.extend(inside.take(STRETCHES6_MAX).flat_map(|start| [start, start + (1 << 64)]));
            starts.len() > STRETCHES6_MAX || excluded.get(at).is_some_and(|&address| address < end)
        }
        Body::Generic(table) => table.spells6(first..end),
        Body::Names(_) | Body::Combined(_) | Body::Acl { .. } => false,
    });
    starts.retain(|start| (first..=end).contains(start));
    starts.sort_unstable();
    starts.dedup();
    (!unknown).then_some(starts)
}

/// The name of an address, in wire form without root.
fn name4(address: u32, subzone: &[u8]) -> Vec<u8> {
    let labels = address.to_be_bytes().into_iter().rev().map(|octet| octet.to_string());
    let mut name = Vec::with_capacity(16 + subzone.len());
    for label in labels {
        name.push(u8::try_from(label.len()).unwrap_or(1));
        name.extend_from_slice(label.as_bytes());
    }
    name.extend_from_slice(subzone);
    name
}

fn name6(address: u128, subzone: &[u8]) -> Vec<u8> {
    let nibbles = (0..32).flat_map(|at| {
        let digit = u32::try_from(address >> (4 * at) & 15).ok().and_then(|digit| char::from_digit(digit, 16));
        [1, digit.map_or(b'0', |digit| digit as u8)]
    });
    nibbles.chain(subzone.iter().copied()).collect()
}

/// Bytes as the data of a TXT record of one string.
fn text(bytes: &[u8]) -> Vec<u8> {
    let len = u8::try_from(bytes.len()).unwrap_or(u8::MAX);
    [&[len][..], &bytes[..usize::from(len)]].concat()
}
