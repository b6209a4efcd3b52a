//! Item lists: sites, URLs, addresses, extensions, types, search terms, expressions and replacements.
//!
//! A list is its file and those that it includes: each keeps its own category and time, and is searched behind the one that
//! includes it. A file of a list of URLs may be an Adblock list.

mod addresses;
mod expressions;
mod keys;
mod load;
mod lookup;
mod network;
mod replace;

use std::sync::Arc;

pub(super) use addresses::Addresses;
pub(super) use expressions::{Expressions, FLAGS};
use keys::Keys;
pub(super) use load::{load, sorted_terms, sorted_words};
pub(super) use network::{Subject, fuzz as fuzz_network};
pub(super) use replace::{Replacement, Replacements};

use super::moment::Window;
use crate::spam::Place;

/// A kind of list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Kind {
    Address,
    Site,
    AddressSite,
    Url,
    /// The network rules of a list of URLs.
    Network,
    /// Texts that URLs begin with, as squidGuard has them.
    Beginning,
    Expression,
    /// Expressions over URLs as squidGuard sees them: with the port, as they came.
    UrlExpression,
    Replacement,
    Search,
    Extension,
    Type,
}

impl Kind {
    /// The kind that an option of the configuration defines.
    pub fn of_option(option: &str) -> Option<Kind> {
        Some(match option {
            "iplist" => Kind::Address,
            "sitelist" => Kind::Site,
            "ipsitelist" => Kind::AddressSite,
            "urllist" => Kind::Url,
            "regexpboollist" => Kind::Expression,
            "regexpreplacelist" => Kind::Replacement,
            "searchlist" => Kind::Search,
            "fileextlist" => Kind::Extension,
            "mimelist" => Kind::Type,
            _ => return None,
        })
    }
}

/// A list as the configuration defines it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Definition {
    pub kind: Kind,
    pub name: Box<str>,
    /// The number of the message for whoever is blocked.
    pub message: u32,
    /// The number of the message for the log; 0 is the same.
    pub log_message: u32,
    pub path: Box<str>,
    /// Names of sites stand for those below them, too.
    pub walks: bool,
    pub place: Place,
}

/// A list under the name that a group has for it.
#[derive(Debug)]
pub(crate) struct Bound {
    pub definition: Definition,
    pub list: Arc<List>,
}

/// A list that was read.
#[derive(Debug)]
pub(super) struct List {
    pub sections: Vec<Section>,
}

/// A file of a list.
#[derive(Debug)]
pub(super) struct Section {
    pub category: Arc<str>,
    pub window: Option<Window>,
    pub body: Body,
}

/// The entries of a file.
#[derive(Debug)]
pub(super) enum Body {
    Keys(Keys),
    Addresses(Addresses<()>),
    Expressions(Box<Expressions>),
    Replacements(Box<Replacements>),
    Network(Box<network::Rules>),
}

impl Body {
    /// How many entries there are.
    pub fn len(&self) -> usize {
        match self {
            Body::Keys(keys) => keys.len(),
            Body::Addresses(addresses) => addresses.len(),
            Body::Expressions(expressions) => expressions.len(),
            Body::Replacements(replacements) => replacements.len(),
            Body::Network(rules) => rules.len(),
        }
    }

    /// The bytes of its table.
    pub fn bytes(&self) -> usize {
        match self {
            Body::Keys(keys) => keys.bytes(),
            Body::Network(rules) => rules.bytes(),
            _ => 0,
        }
    }
}

/// An entry that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub entry: String,
    pub category: Arc<str>,
}
