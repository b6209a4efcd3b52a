//! The filter group of a client: by its address, the port that it came to, its name, as the plugins of the configuration say.
//!
//! The first plugin that knows the client decides, and behind them the name of a login. A name without a group has the first group.

use std::collections::HashMap;

use super::config::Options;
use super::list::Addresses;
use super::loading::{Loading, Source, lines};
use super::request::Request;
use crate::spam::Place;

/// Membership of groups.
#[derive(Debug, Default)]
pub(super) struct Membership {
    plugins: Vec<Plugin>,
    users: HashMap<Box<str>, u32>,
    first: u32,
}

#[derive(Debug)]
enum Plugin {
    Address(Addresses<u32>),
    Port(HashMap<u16, u32>),
    /// A name that the host has from a login.
    Login,
    /// A name in a field of the request.
    Header(Box<str>),
}

impl Membership {
    /// Reads the files of plugins and of users.
    pub fn load(options: &Options, groups: u32, loading: &mut Loading<'_>) -> Membership {
        let mut all = Membership { first: options.number("defaultfiltergroup", 1, loading), ..Membership::default() };
        for value in &options.plugins {
            if let Some(source) = loading.file(&value.text, &value.place) {
                all.plugins.extend(plugin(options, &source, groups, loading));
            }
        }
        if let Some(value) = options.get("filtergroupslist").filter(|_| groups > 1 || !all.plugins.is_empty())
            && let Some(source) = loading.file(&value.text, &value.place)
        {
            pairs(&source, groups, loading, |name, group, _, _| {
                all.users.insert(name.into(), group);
            });
        }
        all
    }

    /// The number of a client's group, from 1.
    pub fn group_of(&self, request: &Request<'_>) -> u32 {
        let found = self.plugins.iter().find_map(|plugin| match plugin {
            Plugin::Address(addresses) => addresses.get(request.client?),
            Plugin::Port(ports) => ports.get(&request.port).copied(),
            Plugin::Login => self.of_user(request.user?),
            Plugin::Header(name) => self.of_user(std::str::from_utf8(request.header(name.as_bytes())?).ok()?.trim()),
        });
        let found = found.or_else(|| self.users.get(request.user?.to_ascii_lowercase().as_str()).copied());
        found.unwrap_or(self.first.max(1))
    }

    fn of_user(&self, name: &str) -> Option<u32> {
        let group = self.users.get(name.to_ascii_lowercase().as_str()).copied();
        Some(group.unwrap_or(self.first.max(1)))
    }
}

fn plugin(main: &Options, source: &Source, groups: u32, loading: &mut Loading<'_>) -> Option<Plugin> {
    let mut options = Options::beside(main);
    options.read(source, loading);
    let place = Place { file: source.name.clone(), line: 0 };
    let name = options.get("plugname").map(|value| value.text.clone()).unwrap_or_default();
    let list = |option: &str, loading: &mut Loading<'_>| {
        let value = options.get(option).or_else(|| main.get(option))?;
        loading.file(&value.text, &value.place)
    };
    match &*name {
        "ip" => {
            let mut addresses = Addresses::default();
            let source = list("ipgroups", loading)?;
            pairs(&source, groups, loading, |text, group, place, loading| {
                if !addresses.push(text, group) {
                    loading.error(place, format!("{text} is no address"), "write an address, a subnet or a range");
                }
            });
            addresses.seal();
            Some(Plugin::Address(addresses))
        }
        "port" => {
            let mut ports = HashMap::new();
            let source = list("portgroups", loading)?;
            pairs(&source, groups, loading, |text, group, place, loading| match text.parse() {
                Ok(port) => {
                    ports.insert(port, group);
                }
                Err(_) => loading.error(place, format!("{text} is no port"), "write a number"),
            });
            Some(Plugin::Port(ports))
        }
        "proxy-basic" | "proxy-digest" | "proxy-ntlm" | "pf-basic" => Some(Plugin::Login),
        "proxy-header" | "header" => {
            let header = options.get("header").map_or("x-user", |value| &*value.text);
            Some(Plugin::Header(header.to_ascii_lowercase().into()))
        }
        _ => {
            loading.note(&place, format!("the plugin {name} is not read"), "its clients have the first group");
            None
        }
    }
}

/// Reads lines `name=filterN` or `name=N`; each with a group that there is goes to `take`.
fn pairs(
    source: &Source,
    groups: u32,
    loading: &mut Loading<'_>,
    mut take: impl FnMut(&str, u32, &Place, &mut Loading<'_>),
) {
    for (place, line) in lines(source) {
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        let line = String::from_utf8_lossy(line).to_ascii_lowercase();
        let pair = line.split_once('=').map(|(name, group)| (name.trim(), group.trim()));
        let group =
            pair.and_then(|(name, group)| Some((name, group.strip_prefix("filter").unwrap_or(group).parse().ok()?)));
        match group {
            Some((name, group)) if (1..=groups).contains(&group) && !name.is_empty() => {
                take(name, group, &place, loading)
            }
            Some(_) => loading.error(&place, "there is no such group", "the line has no effect"),
            None => loading.error(&place, "the line is not understood", "write name=filter1"),
        }
    }
}
