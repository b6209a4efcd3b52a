//! Addresses and ports of rules, with variables, lists and negation.
//!
//! A list matches what one of its plain items matches and none of its negated ones; a list of negated items alone matches the rest.

use core::net::{IpAddr, Ipv4Addr};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Variables by their names without `$`.
pub type Variables = BTreeMap<String, String>;

/// How deep variables and brackets nest.
const DEPTH_MAX: u32 = 16;

/// A set of values, each item a range.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Group<T> {
    /// Nothing stands for all.
    plain: Vec<RangeInclusive<T>>,
    negated: Vec<RangeInclusive<T>>,
}

pub(super) type Addresses = Group<u128>;
pub(super) type Ports = Group<u16>;

impl<T: PartialOrd + Copy> Group<T> {
    pub fn has(&self, value: T) -> bool {
        let within = |ranges: &[RangeInclusive<T>]| ranges.iter().any(|range| range.contains(&value));
        (self.plain.is_empty() || within(&self.plain)) && !within(&self.negated)
    }
}

/// An address as a number: one of version 4 is mapped into version 6.
pub(super) fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// Reads a group of one kind.
struct Reader<'v, T> {
    variables: &'v Variables,
    items_max: usize,
    range: fn(&str) -> Option<RangeInclusive<T>>,
    group: Group<T>,
    /// Whether `any` or its like stood in it.
    is_any: bool,
}

impl<T> Reader<'_, T> {
    fn read(&mut self, text: &str, is_negated: bool, depth: u32) -> Result<(), String> {
        if depth > DEPTH_MAX || self.group.plain.len() + self.group.negated.len() > self.items_max {
            return Err("lists nested too deep, or too long".into());
        }
        let text = text.trim();
        if let Some(rest) = text.strip_prefix('!') {
            return self.read(rest, !is_negated, depth + 1);
        }
        if let Some(name) = text.strip_prefix('$') {
            let value = self.variables.get(name).ok_or_else(|| format!("no variable ${name}"))?;
            return self.read(value, is_negated, depth + 1);
        }
        if let Some(inner) = text.strip_prefix('[') {
            let inner = inner.strip_suffix(']').ok_or_else(|| format!("{text}: [ without ]"))?;
            return split(inner).into_iter().try_for_each(|item| self.read(item, is_negated, depth + 1));
        }
        if text.contains(',') {
            return split(text).into_iter().try_for_each(|item| self.read(item, is_negated, depth + 1));
        }
        if text == "any" {
            if is_negated {
                return Err("!any matches nothing".into());
            }
            self.is_any = true;
            return Ok(());
        }
        let range = (self.range)(text).ok_or_else(|| format!("{text:?} is no address or port"))?;
        let ranges = if is_negated { &mut self.group.negated } else { &mut self.group.plain };
        ranges.push(range);
        Ok(())
    }
}

/// The items of a list, brackets kept together.
pub(super) fn split(text: &str) -> Vec<&str> {
    let (mut items, mut depth, mut start) = (Vec::new(), 0i32, 0);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'[' => depth += 1,
            b']' => depth -= 1,
            b',' if depth == 0 => {
                items.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    items.push(&text[start..]);
    items
}

fn group<T>(
    text: &str,
    variables: &Variables,
    items_max: usize,
    range: fn(&str) -> Option<RangeInclusive<T>>,
) -> Result<Group<T>, String> {
    let group = Group { plain: Vec::new(), negated: Vec::new() };
    let mut reader = Reader { variables, items_max, range, group, is_any: false };
    reader.read(text, false, 0)?;
    if reader.is_any {
        reader.group.plain.clear();
    }
    Ok(reader.group)
}

pub(super) fn addresses(text: &str, variables: &Variables, items_max: usize) -> Result<Addresses, String> {
    group(text, variables, items_max, address_range)
}

pub(super) fn ports(text: &str, variables: &Variables, items_max: usize) -> Result<Ports, String> {
    group(text, variables, items_max, port_range)
}

fn address_range(text: &str) -> Option<RangeInclusive<u128>> {
    if let Some((first, last)) = text.split_once('-') {
        let range = number(first.trim().parse().ok()?)..=number(last.trim().parse().ok()?);
        return (!range.is_empty()).then_some(range);
    }
    let Some((address, mask)) = text.split_once('/') else {
        let address = number(text.parse().ok()?);
        return Some(address..=address);
    };
    let address: IpAddr = address.parse().ok()?;
    let bits = match (mask.parse::<u32>(), address) {
        (Ok(bits), IpAddr::V4(_)) if bits <= 32 => bits + 96,
        (Ok(bits), IpAddr::V6(_)) if bits <= 128 => bits,
        (Ok(_), _) => return None,
        (Err(_), _) => 96 + u32::from(mask.parse::<Ipv4Addr>().ok()?).leading_ones(),
    };
    let host = u128::MAX.checked_shr(bits).unwrap_or(0);
    let first = number(address) & !host;
    Some(first..=first | host)
}

fn port_range(text: &str) -> Option<RangeInclusive<u16>> {
    let Some((first, last)) = text.split_once(':') else {
        let port = text.parse().ok()?;
        return Some(port..=port);
    };
    let first = if first.trim().is_empty() { 0 } else { first.trim().parse().ok()? };
    let last = if last.trim().is_empty() { u16::MAX } else { last.trim().parse().ok()? };
    (first <= last).then_some(first..=last)
}

/// The variables of a plain installation: private networks are at home, servers are there, and ports are the usual ones.
pub fn default_variables() -> Variables {
    let home = "$HOME_NET";
    let rows = [
        ("HOME_NET", "[192.168.0.0/16,10.0.0.0/8,172.16.0.0/12]"),
        ("EXTERNAL_NET", "!$HOME_NET"),
        ("HTTP_SERVERS", home),
        ("SMTP_SERVERS", home),
        ("SQL_SERVERS", home),
        ("DNS_SERVERS", home),
        ("TELNET_SERVERS", home),
        ("SSH_SERVERS", home),
        ("FTP_SERVERS", home),
        ("SIP_SERVERS", home),
        ("AIM_SERVERS", "$EXTERNAL_NET"),
        ("DC_SERVERS", home),
        ("DNP3_SERVER", home),
        ("DNP3_CLIENT", home),
        ("MODBUS_CLIENT", home),
        ("MODBUS_SERVER", home),
        ("ENIP_CLIENT", home),
        ("ENIP_SERVER", home),
        ("HTTP_PORTS", "any"),
        ("SHELLCODE_PORTS", "!80"),
        ("ORACLE_PORTS", "1521"),
        ("SSH_PORTS", "22"),
        ("DNP3_PORTS", "20000"),
        ("MODBUS_PORTS", "502"),
        ("FILE_DATA_PORTS", "any"),
        ("FTP_PORTS", "21"),
        ("MAIL_PORTS", "[25,110,143,465,587,993,995]"),
        ("SIP_PORTS", "[5060,5061]"),
        ("GENEVE_PORTS", "6081"),
        ("VXLAN_PORTS", "4789"),
        ("TEREDO_PORTS", "3544"),
        ("GTP_PORTS", "[2123,2152,3386]"),
    ];
    rows.into_iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(list: &str, address: &str) -> bool {
        let list = addresses(list, &default_variables(), 100).expect("a list");
        list.has(number(address.parse().expect("an address")))
    }

    #[test]
    fn lists_with_negated_items_and_variables_are_read() {
        assert!(has("any", "1.2.3.4") && has("$HOME_NET", "10.9.9.9") && !has("$EXTERNAL_NET", "10.9.9.9"));
        assert!(!has("[!10.0.0.1,10.0.0.0/8]", "10.0.0.1") && has("[10.0.0.0/8,!10.0.0.1]", "10.0.0.2"));
        assert!(
            has("1.1.1.1-1.1.1.9", "1.1.1.5")
                && has("10.0.0.0/255.0.0.0", "10.1.1.1")
                && has("2001:db8::/32", "2001:db8::1")
        );
        assert!(addresses("$NONE", &default_variables(), 100).is_err());
        let list = ports("[1:2000,!1001]", &default_variables(), 100).expect("ports");
        assert!(list.has(1000) && !list.has(1001) && !list.has(2001));
    }
}
