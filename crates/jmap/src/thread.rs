//! Threads (RFC 8621, section 3): the messages whose THREADID is the same, by the time when they came.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use crate::arguments::{Arguments, only};
use crate::changes::{self, Changes};
use crate::engine::{Engine, got};
use crate::error::Error;
use crate::index::Index;
use crate::{Value, json};

/// The messages of each thread, the oldest first.
pub(crate) fn threads(index: &Index) -> BTreeMap<String, Vec<u64>> {
    let mut threads: BTreeMap<String, Vec<(i64, u64)>> = BTreeMap::new();
    for message in index.messages() {
        let received = index.entries(message).map(|(_, _, _, entry)| entry.date).min().unwrap_or(0);
        if let Some(thread) = index.thread(message) {
            threads.entry(thread).or_default().push((received, message));
        }
    }
    let sorted = |mut messages: Vec<(i64, u64)>| {
        messages.sort_unstable();
        messages.into_iter().map(|(_, message)| message).collect()
    };
    threads.into_iter().map(|(thread, messages)| (thread, sorted(messages))).collect()
}

pub(crate) fn get(engine: &mut Engine<'_>, mut arguments: Arguments) -> Result<Value, Error> {
    let account = engine.account(&mut arguments)?;
    let (ids, properties) = (arguments.ids()?, arguments.properties(&["id", "emailIds"])?);
    arguments.end()?;
    let index = engine.index();
    let threads = threads(&index);
    let ids = ids.unwrap_or_else(|| threads.keys().cloned().collect());
    if ids.len() > crate::limits::GET_MAX {
        return Err(Error::new("requestTooLarge"));
    }
    let (mut list, mut missing) = (Vec::new(), Vec::new());
    for id in ids {
        let Some(messages) = threads.get(&id) else {
            missing.push(id);
            continue;
        };
        let emails: Vec<String> = messages.iter().filter_map(|&message| index.id_of(message)).collect();
        engine.spend(emails.len().saturating_mul(36))?;
        list.push(only(json!({ "id": id, "emailIds": emails }), &properties));
    }
    Ok(got(account, engine.state(), list, missing))
}

pub(crate) fn changes(engine: &mut Engine<'_>, arguments: Arguments) -> Result<Value, Error> {
    changes::changes(engine, arguments, |old, new| {
        let (before, after) = (threads(old), threads(new));
        let mut found = Changes::default();
        for (thread, messages) in &after {
            match before.get(thread) {
                None => found.created.push(thread.clone()),
                Some(former) if former != messages => found.updated.push(thread.clone()),
                Some(_) => {}
            }
        }
        found.destroyed = before.into_keys().filter(|thread| !after.contains_key(thread)).collect();
        found
    })
}
