//! DNS queries of a configuration's rules.

use std::collections::HashMap;

use flow::RecordKind;

use super::hashed::Hashed;
use super::hosts::{self, Hosts};
use super::list::{About, HostList, Only, fields, zone};
use super::scope::Scope;
use super::subtest::Subtest;
use super::template::Template;
use crate::spam::message::Message;
use crate::spam::rule::{Rule, Rules, Test, View};
use crate::spam::syntax::call::Call;
use crate::spam::syntax::dns::{Subject, UriList};
use crate::spam::syntax::value::Value;

/// A list of hosts in addresses.
#[derive(Debug)]
pub(super) struct AddressList {
    pub(super) rule: u32,
    pub(super) subject: Subject,
    pub(super) zone: Box<[u8]>,
    pub(super) kind: RecordKind,
    pub(super) subtest: Subtest,
    pub(super) only: Only,
    /// The addresses of the host are asked about (`a`).
    pub(super) by_address: bool,
    /// The whole name is, and not the registered domain (`notrim`).
    pub(super) is_whole: bool,
    pub(super) hits_max: u32,
}

/// DNS queries of a configuration's rules.
#[derive(Debug, Default)]
pub struct Lists {
    pub(super) hosts: Vec<HostList>,
    /// Rules that look at the answers of others, by the set.
    pub(super) parts: HashMap<Box<[u8]>, Vec<(u32, Subtest)>>,
    pub(super) addresses: Vec<AddressList>,
    pub(super) templates: Vec<Template>,
    pub(super) hashed: Vec<Hashed>,
    /// Some rule wants to know what authors say of their signatures.
    pub(super) has_practices: bool,
    pub(super) scope: Scope,
}

impl Lists {
    /// Queries of the rules that run, where the network is asked.
    pub(crate) fn new(rules: &Rules, asks: bool, runs: impl Fn(u32) -> bool) -> Lists {
        let mut lists = Lists { scope: Scope::of(rules), ..Lists::default() };
        let is_available =
            !matches!(rules.setting("dns_available"), Some(Value::Text(text)) if **text == *b"no" || **text == *b"0");
        if !asks || !is_available {
            return lists;
        }
        for (id, rule) in (0..).zip(rules.names()).filter(|(id, _)| runs(*id)) {
            lists.add(id, rule);
        }
        if lists.scope.is_without_lists {
            lists.hosts.clear();
        }
        if lists.scope.is_without_addresses {
            lists.addresses.clear();
        }
        lists
    }

    /// Whether nothing is asked.
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty()
            && self.addresses.is_empty()
            && self.templates.is_empty()
            && self.hashed.is_empty()
            && !self.has_practices
    }

    /// Hosts in the addresses of a mail that are looked up.
    pub(in crate::spam) fn hosts_of(&self, mail: &Message) -> Hosts {
        hosts::chosen(mail, &self.scope)
    }

    fn add(&mut self, id: u32, rule: &Rule) {
        match &rule.test {
            Some(Test::AskDns(asked)) => self.templates.extend(Template::new(id, rule, asked)),
            Some(Test::Eval(_, call)) if &*call.function == "check_uridnsbl" => {
                self.addresses.extend(rule.uri_list.as_ref().and_then(|list| address_list(id, rule, list)));
            }
            Some(Test::Eval(view, call)) => self.call(id, rule, *view, call),
            _ => {}
        }
    }

    fn call(&mut self, id: u32, rule: &Rule, view: View, call: &Call) {
        let argument = |place: usize| call.arguments.get(place).map(|argument| &**argument);
        let set = argument(0).unwrap_or_default();
        // What a rule is about, and where its subtest stands behind the set and the zone.
        let (about, kind) = match &*call.function {
            "check_rbl" => (About::Relays, RecordKind::A),
            "check_rbl_txt" => (About::Relays, RecordKind::Txt),
            "check_rbl_accreditor" => (About::Accredited(argument(3).unwrap_or_default().into()), RecordKind::A),
            "check_rbl_from_host" => (About::FromHosts, RecordKind::A),
            "check_rbl_from_domain" => (About::FromDomains, RecordKind::A),
            "check_rbl_envfrom" => (About::Envelope, RecordKind::A),
            "check_rbl_ns_from" => (About::NameServers, RecordKind::A),
            "check_rbl_headers" => (About::Fields(fields(argument(3))), RecordKind::A),
            "check_rbl_rcvd" => (About::Oldest, RecordKind::A),
            "check_rbl_sub" => {
                if let Some(subtest) = argument(1).and_then(|text| Subtest::of_list(Some(text))) {
                    self.parts.entry(set.into()).or_default().push((id, subtest));
                }
                return;
            }
            "check_dkim_adsp" | "check_dkim_signall" => {
                self.has_practices = true;
                return;
            }
            _ => {
                self.hashed.extend(Hashed::new(id, rule, view, call));
                return;
            }
        };
        let Some(subtest) = Subtest::of_list(argument(2)) else { return };
        let zone = argument(1).map(zone).unwrap_or_default();
        let is_nice = rule.flags.has("nice");
        let only = Only::of(rule);
        self.hosts.push(HostList { rule: id, about, set: set.into(), zone, kind, subtest, is_nice, only });
    }
}

fn address_list(id: u32, rule: &Rule, list: &UriList) -> Option<AddressList> {
    let subtest = Subtest::of_uri(list.subtest.as_deref())?;
    let kind = if &*list.record == "TXT" { RecordKind::Txt } else { RecordKind::A };
    Some(AddressList {
        rule: id,
        subject: list.subject,
        zone: zone(list.zone.as_bytes()),
        kind,
        subtest,
        only: Only::of(rule),
        by_address: rule.flags.has("a"),
        is_whole: rule.flags.has("notrim"),
        hits_max: rule.flags.hits_max(),
    })
}
