//! Options that keep state between packets and requests: bits and numbers of connections and hosts.

use super::Options;
use crate::ids::lexer::text;
use crate::ids::rule::{Amount, BitVerb, Bits, Order, Scope};
use crate::ids::values::number;

impl Options<'_, '_> {
    /// Options about bits and numbers of flows.
    pub(super) fn state(&mut self, name: &str, value: &[u8]) -> Result<bool, String> {
        let value = text(value);
        match name {
            "flowbits" | "hostbits" => self.flow_bits(name, &value)?,
            "xbits" => self.x_bits(&value)?,
            "flowint" => self.flow_number(&value)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    pub(super) fn bit(&mut self, family: &str, name: &str) -> u32 {
        let next = u32::try_from(self.shared.bits.len()).unwrap_or(u32::MAX);
        *self.shared.bits.entry(format!("{family} {}", name.trim())).or_insert(next)
    }

    pub(super) fn flow_bits(&mut self, family: &str, value: &str) -> Result<(), String> {
        let mut list = value.split(',').map(str::trim);
        let verb = match list.next().unwrap_or_default() {
            "noalert" => {
                self.rule.is_silent = true;
                return Ok(());
            }
            "reset" => return Ok(()),
            verb => bit_verb(verb).ok_or_else(|| format!("no verb {verb}"))?,
        };
        let name = list.next().filter(|name| !name.is_empty()).ok_or("no name")?;
        if name.split(['|', '&']).any(|name| name.trim().contains(char::is_whitespace)) {
            return Err(format!("{name:?} is no name; a ; may be missing"));
        }
        let is_any = name.contains('|');
        let separator = if is_any { '|' } else { '&' };
        let names: Vec<u32> = name.split(separator).map(|name| self.bit(family, name)).collect();
        let scope = match (family, list.next()) {
            ("hostbits", Some("dst")) => Scope::Target,
            ("hostbits", Some("both")) => Scope::Pair,
            ("hostbits", _) => Scope::Source,
            _ => Scope::Flow,
        };
        if is_any {
            self.rule.bits.push(Bits { is_xbits: false, scope, names, verb });
        } else {
            self.rule.bits.extend(names.into_iter().map(|name| Bits {
                is_xbits: false,
                scope,
                names: vec![name],
                verb,
            }));
        }
        Ok(())
    }

    pub(super) fn x_bits(&mut self, value: &str) -> Result<(), String> {
        let (mut scope, mut expire) = (Scope::Source, 30);
        let mut list = value.split(',').map(str::trim);
        let verb = list.next().unwrap_or_default();
        if verb == "noalert" {
            self.rule.is_silent = true;
            return Ok(());
        }
        let name = list.next().ok_or("no name")?;
        for item in list {
            let (word, rest) = item.split_once(char::is_whitespace).unwrap_or((item, ""));
            match (word, rest.trim()) {
                ("track", "ip_src") => scope = Scope::Source,
                ("track", "ip_dst") => scope = Scope::Target,
                ("track", "ip_pair") => scope = Scope::Pair,
                ("track", "tx") => scope = Scope::Transaction,
                ("expire" | "expire:", seconds) => expire = seconds.parse().map_err(|_| "no number of seconds")?,
                _ => return Err(format!("{item} is not known")),
            }
        }
        let verb = match bit_verb(verb).ok_or_else(|| format!("no verb {verb}"))? {
            BitVerb::Set(_) => BitVerb::Set(expire),
            verb => verb,
        };
        let name = self.bit("xbits", name);
        self.rule.bits.push(Bits { is_xbits: true, scope, names: vec![name], verb });
        Ok(())
    }

    pub(super) fn flow_number(&mut self, value: &str) -> Result<(), String> {
        let list: Vec<&str> = value.split(',').map(str::trim).collect();
        let (Some(name), Some(verb)) = (list.first(), list.get(1)) else { return Err("no name and verb".into()) };
        let named = |name: &&&str| !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c == '-');
        let amount = match list.get(2) {
            Some(value) => number(value)
                .map(Amount::Number)
                .or_else(|| Some(value).filter(named).map(|name| Amount::Named(self.bit("flowint", name)))),
            None => None,
        };
        let verb = match (*verb, amount) {
            ("=", Some(amount)) => BitVerb::Put(amount),
            ("+", Some(amount)) => BitVerb::Add(amount),
            ("-", Some(amount)) => BitVerb::Subtract(amount),
            ("isset", _) => BitVerb::IsSet,
            ("notset" | "isnotset", _) => BitVerb::IsNotSet,
            (order, Some(amount)) => {
                BitVerb::Compare(Order::named(order.as_bytes()).ok_or("an order that is not known")?, amount)
            }
            _ => return Err("no number and no name of one".into()),
        };
        let name = self.bit("flowint", name);
        self.rule.bits.push(Bits { is_xbits: false, scope: Scope::Flow, names: vec![name], verb });
        Ok(())
    }
}

fn bit_verb(name: &str) -> Option<BitVerb> {
    Some(match name {
        "set" | "setx" => BitVerb::Set(0),
        "unset" => BitVerb::Unset,
        "toggle" => BitVerb::Toggle,
        "isset" => BitVerb::IsSet,
        "isnotset" => BitVerb::IsNotSet,
        _ => return None,
    })
}
