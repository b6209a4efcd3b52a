//! Addresses and ports of rules, with variables, lists and negation.
//!
//! A list matches what one of its plain items matches and none of its negated ones; a list of negated items alone matches the rest. A
//! list behind `!` is read to a set by itself; the items of any other list in a list are items of the outer one, as in Suricata.

use core::net::{IpAddr, Ipv4Addr};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Variables by their names without `$`.
pub type Variables = BTreeMap<String, String>;

/// How deep variables, brackets and lists nest.
const DEPTH_MAX: u32 = 32;

/// A set of values: ranges in order, none of which overlap.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Group<T>(Vec<RangeInclusive<T>>);

pub(super) type Addresses = Group<u128>;
pub(super) type Ports = Group<u16>;

/// A number that sets are made of.
pub(super) trait Number: Ord + Copy {
    const MIN: Self;
    const MAX: Self;
    /// The number behind it.
    fn next(self) -> Option<Self>;
    /// The number in front of it.
    fn previous(self) -> Option<Self>;
}

macro_rules! numbers {
    ($($number:ty)*) => {$(
        impl Number for $number {
            const MIN: Self = <$number>::MIN;
            const MAX: Self = <$number>::MAX;

            fn next(self) -> Option<Self> {
                self.checked_add(1)
            }

            fn previous(self) -> Option<Self> {
                self.checked_sub(1)
            }
        }
    )*};
}

numbers!(u16 u128);

/// All values.
impl<T: Number> Default for Group<T> {
    fn default() -> Group<T> {
        Group(vec![T::MIN..=T::MAX])
    }
}

impl<T: Number> Group<T> {
    fn of(mut ranges: Vec<RangeInclusive<T>>) -> Group<T> {
        ranges.sort_unstable_by_key(|range| *range.start());
        let mut joined: Vec<RangeInclusive<T>> = Vec::new();
        for range in ranges {
            match joined.last_mut().filter(|last| range.start() <= last.end()) {
                Some(last) => *last = *last.start()..=*last.end().max(range.end()),
                None => joined.push(range),
            }
        }
        Group(joined)
    }

    pub fn has(&self, value: T) -> bool {
        let at = self.0.partition_point(|range| *range.end() < value);
        self.0.get(at).is_some_and(|range| *range.start() <= value)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All other values.
    fn others(&self) -> Group<T> {
        let (mut gaps, mut next) = (Vec::new(), Some(T::MIN));
        for range in &self.0 {
            let gap = next.zip(range.start().previous()).filter(|(first, last)| first <= last);
            gaps.extend(gap.map(|(first, last)| first..=last));
            next = range.end().next();
        }
        gaps.extend(next.map(|first| first..=T::MAX));
        Group(gaps)
    }

    /// The values that both have.
    #[must_use]
    pub fn and(&self, other: &Group<T>) -> Group<T> {
        Group::of([self.others().0, other.others().0].concat()).others()
    }
}

/// The addresses of version 4.
pub(super) fn version_4() -> Addresses {
    let first = Ipv4Addr::UNSPECIFIED.to_ipv6_mapped().to_bits();
    Group(vec![first..=first | u128::from(u32::MAX)])
}

/// The addresses of version 6.
pub(super) fn version_6() -> Addresses {
    version_4().others()
}

/// An address as a number: one of version 4 is mapped into version 6.
pub(super) fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// Reads groups of one kind.
struct Reader<'v, T> {
    variables: &'v Variables,
    /// How many items may still come.
    items_left: usize,
    range: fn(&str) -> Option<RangeInclusive<T>>,
}

/// The items of a list, those of the lists and variables in it among them.
struct Items<T> {
    plain: Vec<RangeInclusive<T>>,
    negated: Vec<RangeInclusive<T>>,
}

impl<T: Number> Reader<'_, T> {
    /// Reads a list to a set of its own.
    fn set(&mut self, text: &str, depth: u32) -> Result<Group<T>, String> {
        let mut items = Items { plain: Vec::new(), negated: Vec::new() };
        self.read(text, &mut items, depth)?;
        let Items { plain, negated } = items;
        let plain = if plain.is_empty() { Group::default() } else { Group::of(plain) };
        Ok(plain.and(&Group::of(negated).others()))
    }

    fn read(&mut self, text: &str, items: &mut Items<T>, depth: u32) -> Result<(), String> {
        if depth > DEPTH_MAX {
            return Err("lists nested too deep".into());
        }
        let text = text.trim();
        let list = split(text);
        if list.len() > 1 {
            return list.into_iter().try_for_each(|item| self.read(item, items, depth + 1));
        }
        if let Some(name) = text.strip_prefix('$') {
            let value = self.variables.get(name).ok_or_else(|| format!("no variable ${name}"))?;
            return self.read(value, items, depth + 1);
        }
        if let Some(rest) = text.strip_prefix('!') {
            let set = self.set(rest, depth + 1)?;
            items.negated.extend(set.0);
            return Ok(());
        }
        if let Some(inner) = text.strip_prefix('[') {
            let inner = inner.strip_suffix(']').ok_or_else(|| format!("{text}: [ without ]"))?;
            return self.read(inner, items, depth + 1);
        }
        self.items_left = self.items_left.checked_sub(1).ok_or("lists too long")?;
        let range = if text == "any" { Some(T::MIN..=T::MAX) } else { (self.range)(text) };
        items.plain.push(range.ok_or_else(|| format!("{text:?} is no address or port"))?);
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

pub(super) fn addresses(text: &str, variables: &Variables, items_max: usize) -> Result<Addresses, String> {
    Reader { variables, items_left: items_max, range: address_range }.set(text, 0)
}

pub(super) fn ports(text: &str, variables: &Variables, items_max: usize) -> Result<Ports, String> {
    Reader { variables, items_left: items_max, range: port_range }.set(text, 0)
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

    #[test]
    fn a_negated_list_is_all_that_the_list_is_not() {
        let list = "![10.0.0.0/8,!10.7.0.0/16]";
        assert!(has(list, "10.7.1.1") && has(list, "8.8.8.8") && !has(list, "10.8.1.1"));
        let list = "[10.0.0.0/8,![10.7.0.0/16,!10.7.7.7]]";
        assert!(has(list, "10.7.7.7") && !has(list, "10.7.7.8") && has(list, "10.8.1.1"));
        let mut variables = default_variables();
        variables.insert("HOME_NET".into(), "[10.0.0.0/8,!10.7.0.0/16]".into());
        let is_external = |address: &str| {
            let list = addresses("$EXTERNAL_NET", &variables, 100).expect("a list");
            list.has(number(address.parse().expect("an address")))
        };
        assert!(is_external("10.7.1.1") && is_external("8.8.8.8") && is_external("2001:db8::1"));
        assert!(!is_external("10.0.0.1"));
        // Items of an inner list are items of the outer one.
        assert!(!has("[[10.0.0.0/8,!10.0.0.1],10.0.0.1]", "10.0.0.1"));
        assert!(!has("!!10.0.0.1", "10.0.0.2") && has("!!10.0.0.1", "10.0.0.1"));
        assert!(addresses("!any", &variables, 100).expect("a list").is_empty());
        assert!(ports("![0:100,65535]", &variables, 100).expect("a list").has(65_534));
        assert!(ports("[1,2,3]", &variables, 2).is_err());
    }

    #[test]
    fn each_address_is_of_one_version() {
        let of = |address: &str| number(address.parse().expect("an address"));
        let all = addresses("any", &Variables::new(), 9).expect("a list");
        let (four, six) = (all.and(&version_4()), all.and(&version_6()));
        assert!(four.has(of("255.255.255.255")) && four.has(of("0.0.0.0")) && !four.has(of("2001:db8::1")));
        assert!(!six.has(of("255.255.255.255")) && !six.has(of("0.0.0.0")) && six.has(of("2001:db8::1")));
    }
}
