//! Bits of flows and of addresses that rules set, and ask for.

use core::net::IpAddr;

use super::buffer::Direction;
use super::flow::{Desk, Flow};
use super::rule::{Amount, BitVerb, Bits, Condition, Port, Scope, StreamSide, Transport};
use super::transaction::Transaction;

impl Flow {
    /// Whether a condition holds.
    pub(super) fn meets(&self, condition: &Condition, direction: Direction, desk: &mut Desk<'_>) -> bool {
        match condition {
            Condition::Address { end, test } => {
                let (source, target) = self.peers(direction);
                let address = if *end == Port::Source { source.0 } else { target.0 };
                let (rules, added) = (desk.rules, &mut desk.site.added);
                !address.is_unspecified() && rules.sets.has_address(test, address, added, &rules.limits)
            }
            Condition::App { apps, is_negated } => self.app().is_some_and(|app| apps.contains(&app) != *is_negated),
            Condition::Carried(number) => number.has(self.transport().number()),
            Condition::SameAddress => {
                let (source, target) = self.peers(Direction::ToServer);
                source.0 == target.0 && !source.0.is_unspecified()
            }
            Condition::Stream { side, size } => {
                let [client, server] =
                    self.sent().map(|sent| i64::try_from(sent).unwrap_or(i64::MAX).saturating_add(1));
                self.transport() == Transport::Tcp
                    && match side {
                        StreamSide::One(Direction::ToServer) => size.has(client),
                        StreamSide::One(Direction::ToClient) => size.has(server),
                        StreamSide::Both => size.has(client) && size.has(server),
                        StreamSide::Either => size.has(client) || size.has(server),
                    }
            }
        }
    }

    fn bit_key(&self, scope: Scope, name: u32, direction: Direction) -> (u32, Option<IpAddr>, Option<IpAddr>) {
        let (source, target) = self.peers(direction);
        match scope {
            Scope::Source => (name, Some(source.0), None),
            Scope::Target => (name, Some(target.0), None),
            _ => (name, Some(source.0.min(target.0)), Some(source.0.max(target.0))),
        }
    }

    pub(super) fn test_bits(
        &self,
        bits: &Bits,
        direction: Direction,
        transaction: &Transaction,
        desk: &Desk<'_>,
    ) -> bool {
        let is_set = |name: &u32| match bits.scope {
            Scope::Flow => self.bits.contains_key(name),
            Scope::Transaction => transaction.bits.contains(name),
            scope => {
                let until = desk.site.bits.get(&self.bit_key(scope, *name, direction));
                until.is_some_and(|until| *until > desk.now_ms)
            }
        };
        match bits.verb {
            BitVerb::IsSet => bits.names.iter().any(is_set),
            BitVerb::IsNotSet => bits.names.iter().any(|name| !is_set(name)),
            BitVerb::Compare(order, amount) => self.amount(amount).is_some_and(|value| {
                bits.names.iter().any(|name| self.bits.get(name).is_some_and(|number| order.holds(*number, value)))
            }),
            // A rule that takes a number from another does not match before there is one.
            BitVerb::Put(amount) | BitVerb::Add(amount) | BitVerb::Subtract(amount) => self.amount(amount).is_some(),
            _ => true,
        }
    }

    fn amount(&self, amount: Amount) -> Option<i64> {
        match amount {
            Amount::Number(number) => Some(number),
            Amount::Named(name) => self.bits.get(&name).copied(),
        }
    }

    pub(super) fn change_bits(&mut self, bits: &Bits, direction: Direction, desk: &mut Desk<'_>) {
        if bits.scope == Scope::Transaction {
            return;
        }
        for &name in &bits.names {
            if bits.scope == Scope::Flow {
                self.change_flow_bit(name, bits.verb, desk);
                continue;
            }
            let key = self.bit_key(bits.scope, name, direction);
            let is_set = desk.site.bits.get(&key).is_some_and(|until| *until > desk.now_ms);
            match bits.verb {
                BitVerb::Set(seconds) => put_bit(desk, key, seconds),
                BitVerb::Toggle if !is_set => put_bit(desk, key, 0),
                _ => drop(desk.site.bits.remove(&key)),
            }
        }
    }

    fn change_flow_bit(&mut self, name: u32, verb: BitVerb, desk: &Desk<'_>) {
        let is_set = self.bits.contains_key(&name);
        if !is_set && self.bits.len() >= desk.rules.limits.bits_max {
            return;
        }
        let (before, of) = (self.bits.get(&name).copied().unwrap_or(0), |amount| self.amount(amount).unwrap_or(0));
        let value = match verb {
            BitVerb::Put(amount) => of(amount),
            BitVerb::Add(amount) => before.saturating_add(of(amount)).max(0),
            BitVerb::Subtract(amount) => before.saturating_sub(of(amount)).max(0),
            BitVerb::Set(_) => 1,
            BitVerb::Toggle if !is_set => 1,
            _ => {
                self.bits.remove(&name);
                return;
            }
        };
        self.bits.insert(name, value);
    }
}

impl Transaction {
    /// Changes bits that last as long as the transaction.
    pub(super) fn change_bits(&mut self, bits: &Bits, bits_max: usize) {
        for &name in &bits.names {
            let is_set = match bits.verb {
                BitVerb::Set(_) => true,
                BitVerb::Toggle => !self.bits.contains(&name),
                BitVerb::Unset => false,
                _ => continue,
            };
            match is_set {
                true if self.bits.len() < bits_max => _ = self.bits.insert(name),
                true => {}
                false => _ = self.bits.remove(&name),
            }
        }
    }
}

/// Sets a bit of addresses; when there are too many, those that have expired go first.
fn put_bit(desk: &mut Desk<'_>, key: (u32, Option<IpAddr>, Option<IpAddr>), seconds: u64) {
    let now = desk.now_ms;
    if desk.site.bits.len() >= desk.rules.limits.bits_max {
        desk.site.bits.retain(|_, until| *until > now);
    }
    if desk.site.bits.len() < desk.rules.limits.bits_max {
        let until = if seconds == 0 { u64::MAX } else { now.saturating_add(seconds.saturating_mul(1000)) };
        desk.site.bits.insert(key, until);
    }
}
