//! Records of clients and of their prefixes: the tests that they have passed, the mails that they have sent, and how many
//! of their recipients there are.

use std::collections::HashMap;
use std::net::IpAddr;

use super::harvest::{self, Harvest};
use super::limit::Limit;
use super::table::{Entry, Table, Worth};
use crate::settings::{Bounds, Network, TrustSettings};

/// How many times more clients than prefixes are remembered.
const CLIENTS_OF_A_PREFIX: usize = 5;

/// A client, and the prefix that it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Who {
    /// The network that counts as one client.
    pub client: Network,
    /// The one around it.
    pub prefix: Network,
}

impl Who {
    /// Client with this address, of which `bits` bits identify it.
    pub fn new(settings: &TrustSettings, address: IpAddr, bits: u8) -> Who {
        let address = address.to_canonical();
        let wider = if address.is_ipv4() { settings.prefix_ipv4_bits } else { settings.prefix_ipv6_bits };
        Who { client: Network::around(address, bits), prefix: Network::around(address, wider.min(bits)) }
    }
}

/// Outcome of a recipient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recipient {
    /// It was taken.
    Known,
    /// The recipient does not exist.
    Unknown,
}

/// Record of a client or a prefix. Times are milliseconds.
#[derive(Debug, Default)]
struct Record {
    seen: u64,
    passed_until: u64,
    proven_until: u64,
    window: u64,
    counts: Counts,
    harvest: Harvest,
}

/// Within the window.
#[derive(Debug, Default)]
struct Counts {
    arrivals: u32,
    messages: u32,
    recipients: u32,
    unknown: u32,
}

impl Entry for Record {
    fn worth(&self, now: u64) -> Worth {
        if now < self.proven_until { Worth::Proven(self.seen) } else { Worth::Seen(self.seen) }
    }
}

impl Record {
    /// It is seen now.
    fn touch(&mut self, settings: &TrustSettings, now: u64) {
        self.seen = now;
        let window = now / (settings.window_seconds.max(1) * 1_000);
        if self.window != window {
            (self.window, self.counts) = (window, Counts::default());
        }
    }
}

/// Adds one to a count; whether that is more than may be.
fn exceeds(count: &mut u32, most: u32) -> bool {
    *count = count.saturating_add(1);
    most > 0 && *count > most
}

/// Everybody of whom something is known. Bounds: `clients_max` clients and a fifth as many prefixes, see [`Table`].
#[derive(Debug)]
pub struct Clients {
    clients: Table<Record>,
    prefixes: Table<Record>,
    /// Sessions by client and by prefix; no more than there are sessions.
    open: [HashMap<Network, u32>; 2],
}

/// Decision about a new client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// It has waited for a greeting before.
    Known,
    /// It has to show that it can.
    New,
}

impl Clients {
    /// Nobody is known.
    pub fn new(clients_max: usize) -> Clients {
        Clients {
            clients: Table::new(clients_max),
            prefixes: Table::new(clients_max / CLIENTS_OF_A_PREFIX),
            open: Default::default(),
        }
    }

    /// How many are remembered.
    pub const fn count(&self) -> usize {
        self.clients.count()
    }

    /// Counts a session that begins; the caller calls [`Clients::leave`] at its end.
    ///
    /// # Errors
    /// The bound that the client has reached.
    pub fn arrive(&mut self, settings: &TrustSettings, who: Who, now: u64) -> Result<Arrival, Limit> {
        let bounds = [&settings.client, &settings.prefix];
        for ((open, network), bounds) in self.open.iter().zip([who.client, who.prefix]).zip(bounds) {
            let open = open.get(&network).copied().unwrap_or(0);
            if bounds.connections_max > 0 && open >= bounds.connections_max {
                return Err(Limit::Connections);
            }
        }
        self.tally(settings, who, now, |counts, bounds| {
            exceeds(&mut counts.arrivals, bounds.arrivals_max).then_some(Limit::Arrivals)
        })?;
        for (open, network) in self.open.iter_mut().zip([who.client, who.prefix]) {
            *open.entry(network).or_default() += 1;
        }
        let passed = self.clients.get(who.client).is_some_and(|record| now < record.passed_until);
        Ok(if passed { Arrival::Known } else { Arrival::New })
    }

    /// A session that was let in has ended.
    pub fn leave(&mut self, who: Who) {
        for (open, network) in self.open.iter_mut().zip([who.client, who.prefix]) {
            if let Some(count) = open.get_mut(&network) {
                *count -= 1;
                if *count == 0 {
                    open.remove(&network);
                }
            }
        }
    }

    /// It has waited for its greeting.
    pub fn passed(&mut self, settings: &TrustSettings, who: Who, now: u64) {
        if let Some(record) = self.clients.enter(who.client, Worth::Seen(now), now) {
            record.touch(settings, now);
            record.passed_until = now.saturating_add(settings.remember_seconds.saturating_mul(1_000));
        }
    }

    /// It begins a message.
    ///
    /// # Errors
    /// The bound that stands against it.
    pub fn message(&mut self, settings: &TrustSettings, who: Who, now: u64) -> Result<(), Limit> {
        self.rests(who, now)?;
        self.tally(settings, who, now, |counts, bounds| {
            exceeds(&mut counts.messages, bounds.messages_max).then_some(Limit::Messages)
        })
    }

    /// It names a recipient.
    ///
    /// # Errors
    /// The bound that stands against it.
    pub fn recipient(&mut self, settings: &TrustSettings, who: Who, now: u64) -> Result<(), Limit> {
        self.rests(who, now)?;
        self.tally(settings, who, now, |counts, bounds| {
            if bounds.unknown_max > 0 && counts.unknown >= bounds.unknown_max {
                return Some(Limit::Unknown);
            }
            exceeds(&mut counts.recipients, bounds.recipients_max).then_some(Limit::Recipients)
        })
    }

    /// Counts the outcome of a recipient; true if it makes the client a harvester.
    pub fn answered(&mut self, settings: &TrustSettings, who: Who, recipient: Recipient, now: u64) -> bool {
        let is_known = recipient == Recipient::Known;
        let harvest = &settings.harvest;
        let bound = |unknown_min, share_percent| harvest::Bound {
            unknown_min,
            share_percent,
            rest_ms: harvest.seconds.saturating_mul(1_000),
            half_life_ms: harvest.half_life_seconds.saturating_mul(1_000),
        };
        let mut is_new = false;
        let of_client = bound(harvest.unknown_min, harvest.share_percent);
        if let Some(record) = self.clients.enter(who.client, Worth::Seen(now), now) {
            record.touch(settings, now);
            record.counts.unknown += u32::from(!is_known);
            is_new = record.harvest.count(is_known, &of_client, now);
        }
        let of_prefix = bound(harvest.prefix_unknown_min, harvest.prefix_share_percent);
        if let Some(record) = self.prefixes.enter(who.prefix, Worth::Seen(now), now) {
            record.touch(settings, now);
            record.counts.unknown += u32::from(!is_known);
            record.harvest.count(is_known, &of_prefix, now);
        }
        is_new
    }

    /// Its message was taken: it has proved itself, and has passed whatever there is to pass.
    pub fn accepted(&mut self, settings: &TrustSettings, who: Who, now: u64) {
        let until = now.saturating_add(settings.remember_seconds.saturating_mul(1_000));
        for (table, network) in [(&mut self.clients, who.client), (&mut self.prefixes, who.prefix)] {
            if let Some(record) = table.enter(network, Worth::Proven(now), now) {
                record.touch(settings, now);
                (record.proven_until, record.passed_until) = (until, until);
            }
        }
    }

    /// Whether it, or its prefix, has tried out addresses. Who has proved itself does not answer for its neighbours.
    fn rests(&self, who: Who, now: u64) -> Result<(), Limit> {
        let client = self.clients.get(who.client);
        let rests = |record: &Record| record.harvest.is_resting(now);
        let is_proven = client.is_some_and(|record| now < record.proven_until);
        if client.is_some_and(rests) || !is_proven && self.prefixes.get(who.prefix).is_some_and(rests) {
            return Err(Limit::Harvest);
        }
        Ok(())
    }

    /// Counts for a client and its prefix. One that has no place in the table is not counted.
    fn tally(
        &mut self,
        settings: &TrustSettings,
        who: Who,
        now: u64,
        mut one: impl FnMut(&mut Counts, &Bounds) -> Option<Limit>,
    ) -> Result<(), Limit> {
        let mut reached = None;
        for (table, network, bounds) in
            [(&mut self.clients, who.client, &settings.client), (&mut self.prefixes, who.prefix, &settings.prefix)]
        {
            if let Some(record) = table.enter(network, Worth::Seen(now), now) {
                record.touch(settings, now);
                reached = reached.or(one(&mut record.counts, bounds));
            }
        }
        reached.map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000;

    fn settings() -> TrustSettings {
        TrustSettings::default()
    }

    fn who(address: &str) -> Who {
        Who::new(&settings(), address.parse().unwrap(), 32)
    }

    #[test]
    fn who_has_waited_once_need_not_wait_again_for_a_while() {
        let (mut clients, settings, one) = (Clients::new(100), settings(), who("192.0.2.1"));
        assert_eq!(clients.arrive(&settings, one, 0), Ok(Arrival::New));
        clients.passed(&settings, one, SECOND);
        assert_eq!(clients.arrive(&settings, one, 2 * SECOND), Ok(Arrival::Known));
        assert_eq!(clients.arrive(&settings, who("192.0.2.2"), 2 * SECOND), Ok(Arrival::New), "the neighbour has not");
        let later = settings.remember_seconds * SECOND + SECOND;
        assert_eq!(clients.arrive(&settings, one, later), Ok(Arrival::New));
    }

    #[test]
    fn sessions_of_a_prefix_have_a_bound() {
        let settings = TrustSettings { prefix: Bounds { connections_max: 2, ..Bounds::default() }, ..settings() };
        let mut clients = Clients::new(100);
        assert!(clients.arrive(&settings, who("192.0.2.1"), 0).is_ok());
        assert!(clients.arrive(&settings, who("192.0.2.2"), 0).is_ok());
        assert_eq!(clients.arrive(&settings, who("192.0.2.3"), 0), Err(Limit::Connections));
        assert!(clients.arrive(&settings, who("192.0.3.3"), 0).is_ok());
        clients.leave(who("192.0.2.1"));
        assert!(clients.arrive(&settings, who("192.0.2.3"), 0).is_ok());
        ["192.0.2.2", "192.0.2.3", "192.0.3.3"].iter().for_each(|address| clients.leave(who(address)));
        assert!(clients.open.iter().all(HashMap::is_empty));
    }

    #[test]
    fn what_a_client_and_a_prefix_send_within_the_window_has_bounds() {
        let client =
            Bounds { messages_max: 2, recipients_max: 3, unknown_max: 1, arrivals_max: 4, ..Bounds::default() };
        let prefix = Bounds { messages_max: 3, ..Bounds::default() };
        let settings = TrustSettings { client, prefix, ..settings() };
        let (mut clients, one, two) = (Clients::new(100), who("192.0.2.1"), who("192.0.2.2"));
        let mut message = |who, now| clients.message(&settings, who, now);
        assert_eq!([message(one, 0), message(one, 0), message(one, 0)], [Ok(()), Ok(()), Err(Limit::Messages)]);
        assert_eq!(message(two, 0), Err(Limit::Messages), "the prefix has three, of whomever");
        assert_eq!(message(one, 3_600 * SECOND), Ok(()));
        let recipients: Vec<_> = (0..4).map(|_| clients.recipient(&settings, two, 0)).collect();
        assert_eq!(recipients, [Ok(()), Ok(()), Ok(()), Err(Limit::Recipients)]);
        clients.answered(&settings, one, Recipient::Unknown, 0);
        assert_eq!(clients.recipient(&settings, one, 0), Err(Limit::Unknown));
        let arrivals: Vec<_> = (0..5).map(|_| clients.arrive(&settings, one, 0).is_ok()).collect();
        assert_eq!(arrivals, [true, true, true, true, false]);
    }

    #[test]
    fn a_harvester_is_deferred_for_a_while_and_its_neighbours_are_not() {
        let (mut clients, settings, one) = (Clients::new(100), settings(), who("192.0.2.1"));
        let made = (0..20).map(|_| clients.answered(&settings, one, Recipient::Unknown, 0)).position(|made| made);
        assert_eq!(made, Some(19));
        assert_eq!(clients.message(&settings, one, SECOND), Err(Limit::Harvest));
        assert_eq!(clients.recipient(&settings, one, SECOND), Err(Limit::Harvest));
        assert_eq!(clients.message(&settings, who("192.0.2.2"), SECOND), Ok(()));
        assert_eq!(clients.message(&settings, one, 601 * SECOND), Ok(()));
    }

    #[test]
    fn a_prefix_that_harvests_is_deferred_but_for_those_who_have_proved_themselves() {
        let (mut clients, settings, good) = (Clients::new(1_000), settings(), who("192.0.2.250"));
        clients.accepted(&settings, good, 0);
        for number in 0..220 {
            clients.answered(&settings, who(&format!("192.0.2.{number}")), Recipient::Unknown, SECOND);
        }
        assert_eq!(clients.message(&settings, who("192.0.2.240"), SECOND), Err(Limit::Harvest));
        assert_eq!(clients.message(&settings, good, SECOND), Ok(()));
        assert_eq!(clients.message(&settings, who("192.0.3.1"), SECOND), Ok(()));
    }

    #[test]
    fn ipv6_clients_in_the_hundred_thousands_leave_the_good_ones_known() {
        let (mut clients, settings) = (Clients::new(1_000), settings());
        let of = |number: u128| Who::new(&settings, IpAddr::V6(((0x2001_0db8_u128 << 96) + (number << 64)).into()), 64);
        let good: Vec<Who> = (0..100).map(|number| who(&format!("198.51.{number}.1"))).collect();
        good.iter().for_each(|&who| clients.accepted(&settings, who, 0));
        for number in 0..200_000 {
            assert!(clients.arrive(&settings, of(number), SECOND).is_ok());
            clients.answered(&settings, of(number), Recipient::Unknown, SECOND);
            clients.leave(of(number));
        }
        assert!(clients.count() <= 1_000 && clients.open.iter().all(HashMap::is_empty));
        for who in good {
            assert_eq!(clients.arrive(&settings, who, 2 * SECOND), Ok(Arrival::Known));
        }
    }
}
