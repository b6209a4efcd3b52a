//! A list as the client sees it: whether it is at hand, whether it answers, and whether it can be believed.

use core::net::IpAddr;
use std::sync::Arc;

use proto::dns::Name;

use super::ADDRESSES_MAX;
use super::cache::Key;
use super::wire::question_of;
use crate::zone::Zones;
use crate::zone::asked::Asked;
use crate::zone::dataset::{Dataset, Sink};
use crate::zone::generic::Record;
use crate::zone::value::ValueId;

/// Penalty of a prefix that only says "query each address"; one with an answer takes one off.
pub(super) const WASTE: u32 = 2;

/// Sum of waste from which on prefixes are not queried; each probe halves it.
pub(super) const WASTE_MAX: u32 = 32;

/// Address that every list of IPv4 addresses lists.
pub(super) const TEST_LISTED: u32 = 0x7f00_0002;

/// Address that no list lists.
pub(super) const TEST_CLEAN: u32 = 0x7f00_0001;

/// A zone that is asked.
#[derive(Debug)]
pub(super) struct List {
    pub(super) name: Name,
    pub(super) local: Local,
    pub(super) failures: u32,
    pub(super) rests_until: u64,
    pub(super) is_off: bool,
    /// Prefixes that were asked for in vain: see [`WASTE_MAX`].
    pub(super) waste: u32,
    pub(super) next_probe: u64,
    /// Answers to the current probes: for 127.0.0.2, for 127.0.0.1.
    pub(super) probed: [Option<bool>; 2],
}

/// Whether a zone is at hand.
#[derive(Debug)]
pub(super) enum Local {
    No,
    Yes(Arc<Zones>),
    /// It is, but its data does not count any more.
    Stale,
}

impl List {
    pub(super) const fn new(name: Name) -> List {
        List {
            name,
            local: Local::No,
            failures: 0,
            rests_until: 0,
            is_off: false,
            waste: 0,
            next_probe: 0,
            probed: [None; 2],
        }
    }
}

/// Answer of a local zone.
pub(super) fn local(zones: &Zones, zone: &Name, address: IpAddr) -> Vec<[u8; 4]> {
    #[derive(Default)]
    struct Found(Vec<[u8; 4]>);
    impl Sink for Found {
        fn listed(&mut self, dataset: &Dataset, value: ValueId, _: crate::zone::value::Key<'_>) {
            if let Some(value) = dataset.values.get(value).filter(|value| !self.0.contains(&value.address)) {
                self.0.push(value.address);
            }
        }
        fn record(&mut self, _: &Record) {}
    }
    let mut found = Found::default();
    if let Some((name, _)) = question_of(Key::single(address), zone)
        && let Some((zone, below)) = zones.find(name.to_lowercase().as_wire())
    {
        zone.find(&Asked::new(below), &mut found);
    }
    found.0.truncate(ADDRESSES_MAX);
    found.0
}
