//! Fragments of IP, put together: where they overlap, the bytes that came first stay.
//!
//! At most 1,024 packets and 8 MiB of them are held; beyond that the oldest goes. One that is not whole after 30 seconds is forgotten, and
//! nothing of it is looked at.

use core::net::IpAddr;
use std::collections::BTreeMap;
use std::ops::Range;

/// Packets that are not whole.
const PACKETS_MAX: usize = 1024;
/// Bytes of all of them.
const BYTES_MAX: usize = 8 << 20;
/// Microseconds after which one is forgotten.
const AGE_MICROS_MAX: u64 = 30_000_000;
/// Bytes of one.
const PACKET_BYTES_MAX: usize = 65_535;

/// A part of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fragment<'a> {
    pub key: Key,
    /// The place of its bytes in the packet.
    pub offset: usize,
    pub is_last: bool,
    pub bytes: &'a [u8],
    /// Heads of IP around it.
    pub depth: u8,
}

/// The packet that a fragment is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub addresses: [IpAddr; 2],
    pub number: u32,
    pub protocol: u8,
}

/// Packets of which fragments have come.
#[derive(Default)]
pub(super) struct Fragments {
    packets: BTreeMap<Key, Whole>,
    bytes: usize,
}

struct Whole {
    since_micros: u64,
    bytes: Vec<u8>,
    /// The places whose bytes have come, in order and apart.
    known: Vec<Range<usize>>,
    end: Option<usize>,
}

impl Fragments {
    /// Takes a fragment, and tells the content of its packet once it is whole.
    pub fn take(&mut self, fragment: &Fragment<'_>, micros: u64) -> Option<Vec<u8>> {
        let end = fragment.offset + fragment.bytes.len();
        // All but the last have lengths of eight bytes.
        if end > PACKET_BYTES_MAX
            || fragment.bytes.is_empty()
            || !fragment.is_last && !fragment.bytes.len().is_multiple_of(8)
        {
            return None;
        }
        let is_old = |whole: &Whole| micros.saturating_sub(whole.since_micros) > AGE_MICROS_MAX;
        if self.packets.get(&fragment.key).is_some_and(is_old) {
            self.forget(&fragment.key);
        }
        let packet = self.packets.entry(fragment.key).or_insert_with(|| Whole {
            since_micros: micros,
            bytes: Vec::new(),
            known: Vec::new(),
            end: None,
        });
        let before = packet.bytes.len();
        if fragment.is_last {
            packet.end.get_or_insert(end);
        }
        packet.put(fragment.offset, fragment.bytes);
        self.bytes += packet.bytes.len() - before;
        if packet.is_whole() {
            let mut bytes = self.forget(&fragment.key)?;
            bytes.bytes.truncate(bytes.end?);
            return Some(bytes.bytes);
        }
        while self.packets.len() > PACKETS_MAX || self.bytes > BYTES_MAX {
            let oldest = self.packets.iter().min_by_key(|(_, whole)| whole.since_micros).map(|(key, _)| *key);
            self.forget(&oldest?);
        }
        None
    }

    fn forget(&mut self, key: &Key) -> Option<Whole> {
        let whole = self.packets.remove(key)?;
        self.bytes -= whole.bytes.len();
        Some(whole)
    }
}

impl Whole {
    /// Puts bytes where none have come.
    fn put(&mut self, offset: usize, bytes: &[u8]) {
        let end = offset + bytes.len();
        self.bytes.resize(self.bytes.len().max(end), 0);
        let first = self.known.partition_point(|range| range.end < offset);
        let last = self.known.partition_point(|range| range.start <= end);
        let mut at = offset;
        for range in &self.known[first..last] {
            if at < range.start {
                self.bytes[at..range.start].copy_from_slice(&bytes[at - offset..range.start - offset]);
            }
            at = at.max(range.end);
        }
        if at < end {
            self.bytes[at..end].copy_from_slice(&bytes[at - offset..]);
        }
        let touched = &self.known[first..last];
        let start = touched.first().map_or(offset, |range| range.start.min(offset));
        let end = touched.last().map_or(end, |range| range.end.max(end));
        self.known.splice(first..last, std::iter::once(start..end));
    }

    fn is_whole(&self) -> bool {
        matches!((&self.known[..], self.end), ([only], Some(end)) if only.start == 0 && only.end >= end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fragment(number: u32, offset: usize, is_last: bool, bytes: &[u8]) -> Fragment<'_> {
        let addresses = [IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2])];
        Fragment { key: Key { addresses, number, protocol: 6 }, offset, is_last, bytes, depth: 0 }
    }

    #[test]
    fn bytes_that_came_first_stay_in_any_order() {
        let mut fragments = Fragments::default();
        assert_eq!(fragments.take(&fragment(1, 16, false, b"ccccCCCC"), 0), None);
        assert_eq!(fragments.take(&fragment(1, 8, false, b"bbbbBBBBxxxxxxxxddddDDDD"), 0), None);
        assert_eq!(fragments.take(&fragment(1, 32, true, b"end"), 0), None);
        assert_eq!(fragments.take(&fragment(2, 0, false, b"otherone"), 0), None);
        let whole = fragments.take(&fragment(1, 0, false, b"aaaaAAAAyyyyyyyy"), 0);
        assert_eq!(whole.as_deref(), Some(&b"aaaaAAAAbbbbBBBBccccCCCCddddDDDDend"[..]));
        assert_eq!(fragments.bytes, 8);
        // One that is too old begins anew.
        assert_eq!(fragments.take(&fragment(2, 8, true, b"x"), AGE_MICROS_MAX + 1), None);
        assert_eq!(
            fragments.take(&fragment(2, 0, false, b"otherone"), AGE_MICROS_MAX + 1).as_deref(),
            Some(&b"otheronex"[..])
        );
        assert!(fragments.packets.is_empty() && fragments.bytes == 0);
    }

    #[test]
    fn fragments_that_never_end_are_bounded() {
        let mut fragments = Fragments::default();
        for number in 0..5000 {
            assert_eq!(fragments.take(&fragment(number, 65_520, false, &[0; 8]), u64::from(number)), None);
            assert!(fragments.packets.len() <= PACKETS_MAX && fragments.bytes <= BYTES_MAX);
        }
        assert_eq!(fragments.take(&fragment(4999, 65_528, true, &[0; 8]), 5000), None);
        assert_eq!(fragments.take(&fragment(1, 0, false, b"odd"), 5000), None);
        for at in (0..8000).step_by(2) {
            assert_eq!(fragments.take(&fragment(9999, at * 8, false, &[0; 8]), 5000), None);
        }
        assert!(fragments.packets.values().all(|whole| whole.known.len() <= 4000));
    }
}
