//! A bounded table of networks that strangers cannot empty.
//!
//! A network has eight places; where they are taken it takes that of the least worth, and only of one that is worth no more
//! than itself: what has proved itself is not driven out by newcomers, however many they are. All networks of one IPv6 /32
//! share 512 places, so that whoever has one cannot fill the table. Memory is taken as entries come.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;

use crate::settings::Network;

/// Entries that share a place in the table.
const WAYS: usize = 8;

/// Places that the networks of one IPv6 /32 have.
const SPREAD: u64 = 64;

/// Worth of an entry against others, least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Worth {
    /// Nothing is known of it that matters any more.
    Nothing,
    /// It was seen last at that time.
    Seen(u64),
    /// It has proved itself, and was seen last at that time.
    Proven(u64),
}

impl Worth {
    /// Whether a newcomer of this worth may have the place of one of that worth. Among equals the newest wins.
    fn displaces(self, other: Worth) -> bool {
        !matches!((self, other), (Worth::Nothing | Worth::Seen(_), Worth::Proven(_)))
    }
}

/// An entry of a table.
pub trait Entry: Default {
    /// Its worth now.
    fn worth(&self, now: u64) -> Worth;
}

/// Entries by network.
#[derive(Debug)]
pub struct Table<E> {
    sets: Vec<Vec<(Network, E)>>,
    hasher: RandomState,
    count: usize,
}

impl<E: Entry> Table<E> {
    /// For so many entries.
    pub fn new(entries_max: usize) -> Table<E> {
        let sets = (0..(entries_max / WAYS).max(1)).map(|_| Vec::new()).collect();
        Table { sets, hasher: RandomState::new(), count: 0 }
    }

    /// How many entries there are.
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Entry of a network.
    pub fn get(&self, network: Network) -> Option<&E> {
        self.sets[self.place(network)].iter().find(|(known, _)| *known == network).map(|(_, entry)| entry)
    }

    /// Entry of a network that is worth `worth` to us; a new one, if there is none and a place can be had.
    pub fn enter(&mut self, network: Network, worth: Worth, now: u64) -> Option<&mut E> {
        let place = self.place(network);
        let set = &mut self.sets[place];
        let at = match set.iter().position(|(known, _)| *known == network) {
            Some(at) => at,
            None if set.len() < WAYS => {
                set.push((network, E::default()));
                self.count += 1;
                set.len() - 1
            }
            None => {
                let (at, least) =
                    set.iter().map(|(_, entry)| entry.worth(now)).enumerate().min_by_key(|&(_, worth)| worth)?;
                if !worth.displaces(least) {
                    return None;
                }
                set[at] = (network, E::default());
                at
            }
        };
        Some(&mut set[at].1)
    }

    fn place(&self, network: Network) -> usize {
        let hash = match network.address() {
            IpAddr::V4(_) => self.hasher.hash_one(network),
            IpAddr::V6(address) => {
                let [one, two, ..] = address.segments();
                self.hasher.hash_one((one, two)).wrapping_add(self.hasher.hash_one(network) % SPREAD)
            }
        };
        usize::try_from(hash % self.sets.len() as u64).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, PartialEq)]
    struct Known {
        seen: u64,
        proven: bool,
    }

    impl Entry for Known {
        fn worth(&self, _: u64) -> Worth {
            if self.proven { Worth::Proven(self.seen) } else { Worth::Seen(self.seen) }
        }
    }

    fn enter(table: &mut Table<Known>, address: IpAddr, proven: bool, now: u64) -> bool {
        let bits = if address.is_ipv4() { 32 } else { 64 };
        let worth = if proven { Worth::Proven(now) } else { Worth::Seen(now) };
        let known = table.enter(Network::around(address, bits), worth, now);
        known.map(|known| *known = Known { seen: now, proven }).is_some()
    }

    fn v4(number: u32) -> IpAddr {
        IpAddr::V4((0x0a00_0000 + number).into())
    }

    #[test]
    fn strangers_drive_out_strangers_and_nobody_who_has_proved_himself() {
        // So many places that no nine of the good ones have to share eight.
        let mut table = Table::new(8_000);
        (0..400).for_each(|number| assert!(enter(&mut table, v4(number), true, 1)));
        (1_000..101_000).for_each(|number| _ = enter(&mut table, v4(number), false, 2));
        let kept = (0..400).filter(|&number| table.get(Network::around(v4(number), 32)).is_some()).count();
        assert_eq!(kept, 400);
        assert!(table.count() <= 8_000, "{}", table.count());
        assert!(enter(&mut table, v4(200_000), true, 3), "who proves himself finds a place");
    }

    #[test]
    fn a_large_ipv6_network_has_its_part_of_the_table_and_no_more() {
        let mut table = Table::new(8_000);
        (0..2_000).for_each(|number| assert!(enter(&mut table, v4(number), false, 1)));
        for number in 0..200_000_u128 {
            enter(&mut table, IpAddr::V6(((0x2001_0db8_u128 << 96) + (number << 64)).into()), false, 2);
        }
        assert!(table.count() <= 2_000 + 512, "{}", table.count());
        let kept = (0..2_000).filter(|&number| table.get(Network::around(v4(number), 32)).is_some()).count();
        assert!(kept > 1_700, "{kept} of 2000 are left");
    }

    #[test]
    fn an_entry_is_found_again_and_the_oldest_stranger_goes_first() {
        let mut table = Table::new(WAYS);
        (0..8).for_each(|number| assert!(enter(&mut table, v4(number), false, u64::from(number))));
        assert!(enter(&mut table, v4(8), false, 9));
        assert_eq!(table.get(Network::around(v4(0), 32)), None);
        assert_eq!(table.get(Network::around(v4(1), 32)), Some(&Known { seen: 1, proven: false }));
        assert_eq!(table.count(), 8);
    }
}
