//! Emails (RFC 8621, section 4).

mod compose;
mod get;
pub(crate) mod import;
pub(crate) mod query;
mod set;
mod snippet;

use crate::Value;
use crate::arguments::Arguments;
use crate::changes::{self, Changes};
use crate::engine::Engine;
use crate::error::Error;

pub(crate) use get::{get, parse};
pub(crate) use import::import;
pub(crate) use query::{query, query_changes};
pub(crate) use set::set;
pub(crate) use snippet::snippets;

pub(crate) fn changes(engine: &mut Engine<'_>, arguments: Arguments) -> Result<Value, Error> {
    changes::changes(engine, arguments, |old, new| {
        let mut found = Changes::default();
        let had: alloc::collections::BTreeSet<u64> = old.messages().collect();
        for message in new.messages() {
            let list = match had.contains(&message) {
                false => &mut found.created,
                true if !new.is_same(old, message) => &mut found.updated,
                true => continue,
            };
            list.extend(new.id_of(message));
        }
        let gone = had.into_iter().filter(|&message| new.places(message).next().is_none());
        found.destroyed = gone.filter_map(|message| old.id_of(message)).collect();
        found
    })
}

/// `Email/copy`: there is no other account to copy from.
pub(crate) fn copy(engine: &mut Engine<'_>, mut arguments: Arguments) -> Result<Value, Error> {
    let account = engine.account(&mut arguments)?;
    match arguments.string("fromAccountId")? {
        Some(from) if from != account => Err(Error::new("fromAccountNotFound")),
        _ => Err(Error::arguments("fromAccountId")),
    }
}
