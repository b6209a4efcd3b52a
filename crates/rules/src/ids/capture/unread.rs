//! Packets that are not read, counted by the kind that their outer heads name.

use std::collections::BTreeMap;
use std::fmt;

/// Kinds that are counted each; packets of more kinds are of other ones.
pub(super) const KINDS_MAX: usize = 32;

/// The kind of a packet that is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Of a link of this type.
    Link(u32),
    /// Of this EtherType.
    Ethernet(u16),
    /// Of this protocol over IP, or broken within it.
    Protocol(u8),
    /// Too short to tell.
    Broken,
    /// Of kinds beyond those that are counted.
    Other,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Link(number) => write!(f, "link type {number}"),
            Kind::Ethernet(0x0806) => f.write_str("ARP"),
            Kind::Ethernet(number) => write!(f, "EtherType 0x{number:04x}"),
            Kind::Protocol(1) => f.write_str("ICMP"),
            Kind::Protocol(58) => f.write_str("ICMPv6"),
            Kind::Protocol(number) => write!(f, "IP protocol {number}"),
            Kind::Broken => f.write_str("broken"),
            Kind::Other => f.write_str("other"),
        }
    }
}

/// Counts of packets that are not read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unread(BTreeMap<Kind, u64>);

impl Unread {
    /// Counts a packet.
    pub(super) fn add(&mut self, kind: Kind) {
        let is_counted = self.0.contains_key(&kind) || self.0.len() < KINDS_MAX;
        let count = self.0.entry(if is_counted { kind } else { Kind::Other }).or_default();
        *count = count.saturating_add(1);
    }

    /// How many there are of each kind.
    pub fn counts(&self) -> impl Iterator<Item = (Kind, u64)> {
        self.0.iter().map(|(kind, count)| (*kind, *count))
    }
}

impl fmt::Display for Unread {
    /// The kinds, those of most packets first.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut all: Vec<_> = self.counts().collect();
        all.sort_by_key(|(kind, count)| (std::cmp::Reverse(*count), *kind));
        for (at, (kind, count)) in all.iter().enumerate() {
            write!(f, "{}{count} {kind}", if at > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}
