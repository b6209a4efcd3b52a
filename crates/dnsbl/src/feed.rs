//! Lines of threat feeds: plain lists, `.netset` files, and CSV.
//!
//! The first field of a line that is an address, a network or a range of two addresses is what is listed; fields end at
//! blanks, commas, semicolons and tabs, and may stand in quotation marks. Other fields, such as scores and dates, are
//! passed over, and so is a line without an address, such as a heading.

use core::net::{Ipv4Addr, Ipv6Addr};

/// Network listed by a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// The first and the last address.
    Ip4(u32, u32),
    /// A network, and its prefix length.
    Ip6(u128, u8),
}

/// Reads a line. Bits behind a prefix are passed over, as feeds often have them.
pub fn read(line: &[u8]) -> Option<Network> {
    let line = core::str::from_utf8(line).ok()?;
    line.split([' ', '\t', ',', ';', '|']).map(|field| field.trim_matches(['"', '\'', '\r'])).find_map(field)
}

fn field(field: &str) -> Option<Network> {
    if let Some((first, last)) = field.split_once('-') {
        let (first, last) = (first.parse::<Ipv4Addr>().ok()?.to_bits(), last.parse::<Ipv4Addr>().ok()?.to_bits());
        return (first <= last).then_some(Network::Ip4(first, last));
    }
    let (address, bits) = match field.split_once('/') {
        Some((address, bits)) => (address, Some(bits.parse::<u8>().ok()?)),
        None => (field, None),
    };
    if let Ok(address) = address.parse::<Ipv4Addr>() {
        let bits = bits.unwrap_or(32);
        let host = match bits {
            0 | 33.. => return None,
            32 => 0,
            _ => u32::MAX >> bits,
        };
        let first = address.to_bits() & !host;
        return Some(Network::Ip4(first, first | host));
    }
    let address = address.parse::<Ipv6Addr>().ok()?.to_bits();
    let bits = bits.unwrap_or(128);
    (1..=128).contains(&bits).then(|| Network::Ip6(address & (u128::MAX << (128 - bits)), bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feeds_are_read_whatever_else_stands_in_their_lines() {
        let four = |text: &str, last: &str| {
            Network::Ip4(text.parse::<Ipv4Addr>().unwrap().to_bits(), last.parse::<Ipv4Addr>().unwrap().to_bits())
        };
        for (line, network) in [
            ("192.0.2.1", Some(four("192.0.2.1", "192.0.2.1"))),
            ("192.0.2.1\t8", Some(four("192.0.2.1", "192.0.2.1"))),
            ("192.0.2.9/24", Some(four("192.0.2.0", "192.0.2.255"))),
            ("192.0.2.0-192.0.3.255", Some(four("192.0.2.0", "192.0.3.255"))),
            ("\"2026-01-01 10:00\",\"192.0.2.1\",\"443\"", Some(four("192.0.2.1", "192.0.2.1"))),
            ("2001:db8::1/32,spam", Some(Network::Ip6(0x2001_0db8 << 96, 32))),
            ("1.2.3.0/24 ; SBL123", Some(four("1.2.3.0", "1.2.3.255"))),
            ("first_seen,dst_ip,port", None),
            ("0.0.0.0/0", None),
        ] {
            assert_eq!(read(line.as_bytes()), network, "{line}");
        }
    }
}
