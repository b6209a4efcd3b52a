//! Sources: clients that are named together, and the branches of access rules that they have.

use std::collections::HashSet;

use super::time::When;
use crate::web::list::Addresses;
use crate::web::moment::Moment;
use crate::web::request::Request;

/// All sources in their order.
#[derive(Debug, Default)]
pub(in crate::web) struct Sources {
    pub all: Vec<Source>,
    /// The branches of clients without a source, and of those whose own do not hold now.
    pub default: Vec<Choice>,
}

/// Clients that are named together. With addresses and users, a client has to have one of each.
#[derive(Debug, Default)]
pub(in crate::web) struct Source {
    pub name: Box<str>,
    pub addresses: Option<Addresses<()>>,
    /// Names in lower case.
    pub users: Option<HashSet<Box<str>>>,
    pub when: When,
    /// Some option of it is not understood.
    pub is_unknown: bool,
    pub choices: Vec<Choice>,
}

/// A branch of access rules: the time at which it holds, and the number of its group, from 1.
#[derive(Debug, Clone)]
pub(in crate::web) struct Choice {
    pub when: When,
    pub group: u32,
}

impl Source {
    fn has(&self, request: &Request<'_>) -> bool {
        let has_address = |addresses: &Addresses<()>| {
            request.client.is_some_and(|client| addresses.get(client.to_canonical()).is_some())
        };
        let has_user = |users: &HashSet<Box<str>>| {
            request.user.is_some_and(|user| users.contains(user.to_ascii_lowercase().as_str()))
        };
        let has_clients = self.addresses.is_some() || self.users.is_some();
        has_clients
            && !self.is_unknown
            && self.when.holds(request.now)
            && self.addresses.as_ref().is_none_or(has_address)
            && self.users.as_ref().is_none_or(has_user)
    }
}

impl Sources {
    /// The number of a client's group; `None` where no branch holds. A group that the host knows is the name of a source.
    pub fn group_of(&self, request: &Request<'_>) -> Option<u32> {
        let named = request.group.and_then(|name| self.all.iter().find(|source| *source.name == *name));
        let source = named.or_else(|| self.all.iter().find(|source| source.has(request)));
        let own = source.map(|source| &source.choices[..]).unwrap_or_default();
        first(own, request.now).or_else(|| first(&self.default, request.now))
    }
}

fn first(choices: &[Choice], now: Moment) -> Option<u32> {
    choices.iter().find(|choice| choice.when.holds(now)).map(|choice| choice.group)
}
