//! Addresses: single ones, subnets and ranges, of IPv4 and IPv6.
//!
//! A single address counts before a subnet, a subnet before a range, whatever their order is. Of two lines with one address the
//! last counts, of overlapping subnets and ranges the first.

use core::net::IpAddr;

/// Addresses, each with a value.
#[derive(Debug, Clone)]
pub(crate) struct Addresses<V> {
    single: Vec<(u128, V)>,
    subnets: Vec<(u128, u128, V)>,
    ranges: Vec<(u128, u128, V)>,
}

impl<V> Default for Addresses<V> {
    fn default() -> Addresses<V> {
        Addresses { single: Vec::new(), subnets: Vec::new(), ranges: Vec::new() }
    }
}

impl<V: Copy> Addresses<V> {
    /// Adds what a line says; false where it is not understood.
    pub fn push(&mut self, text: &str, value: V) -> bool {
        if let Some((first, last)) = text.split_once('-') {
            let Some((first, last)) = number(first).zip(number(last)) else { return false };
            self.ranges.push((first, last, value));
            return first <= last;
        }
        let Some((address, length)) = text.split_once('/') else {
            let single = number(text).map(|address| self.single.push((address, value)));
            return single.is_some();
        };
        let Some((address, mask)) = number(address).zip(mask(length, address.contains(':'))) else { return false };
        self.subnets.push((address & mask, mask, value));
        true
    }

    /// Puts single addresses into order.
    pub fn seal(&mut self) {
        self.single.reverse();
        self.single.sort_by_key(|(address, _)| *address);
        self.single.dedup_by_key(|(address, _)| *address);
    }

    /// The value of an address.
    pub fn get(&self, address: IpAddr) -> Option<V> {
        let address = of(address);
        if let Ok(place) = self.single.binary_search_by_key(&address, |(single, _)| *single) {
            return self.single.get(place).map(|(_, value)| *value);
        }
        let subnet = self.subnets.iter().find(|(first, mask, _)| address & mask == *first);
        let range = || self.ranges.iter().find(|(first, last, _)| (*first..=*last).contains(&address));
        subnet.or_else(range).map(|(_, _, value)| *value)
    }

    /// How many lines there are.
    pub fn len(&self) -> usize {
        self.single.len() + self.subnets.len() + self.ranges.len()
    }
}

/// IPv4 addresses as those that IPv6 maps.
fn of(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

fn number(text: &str) -> Option<u128> {
    text.trim().parse().ok().map(of)
}

/// A mask, as a length of its ones or as an address.
fn mask(text: &str, is_long: bool) -> Option<u128> {
    let before = if is_long { 0 } else { 96 };
    let Ok(length) = text.trim().parse::<u32>() else {
        return number(text).map(|mask| if is_long { mask } else { mask | u128::MAX << 32 });
    };
    let length = length.checked_add(before).filter(|length| *length <= 128)?;
    Some(u128::MAX.checked_shl(128 - length).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_addresses_count_before_subnets_and_those_before_ranges() {
        let mut all = Addresses::default();
        let lines = [
            ("10.0.0.1-10.0.0.99", 1),
            ("10.0.0.0/255.255.255.0", 2),
            ("10.0.0.0/16", 3),
            ("10.0.0.5", 4),
            ("10.0.0.5", 5),
            ("10.1.0.1-10.2.0.0", 6),
            ("2001:db8::/32", 7),
        ];
        assert!(lines.iter().all(|(text, value)| all.push(text, *value)));
        all.seal();
        let get = |text: &str| all.get(text.parse().expect("an address"));
        assert_eq!((get("10.0.0.5"), get("10.0.0.6"), get("10.0.1.6")), (Some(5), Some(2), Some(3)));
        assert_eq!((get("10.1.9.9"), get("11.0.0.1"), get("2001:db8::9")), (Some(6), None, Some(7)));
        for wrong in ["", "x", "10.0.0.1/33", "10.0.0.9-10.0.0.1", "10.0.0.1-", "::/129"] {
            assert!(!Addresses::default().push(wrong, 0), "{wrong}");
        }
    }
}
