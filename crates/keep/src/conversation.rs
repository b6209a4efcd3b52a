//! Conversations in a mailbox: messages of one thread, as the store knows threads (THREADID of RFC 8474).
//!
//! Bounds: the newest [`LOOKED_AT_MAX`] messages of a mailbox are looked at; an older one is in no conversation, and lists of messages
//! have it.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use store::{Entry, Flags, Mailbox, State};

/// Messages of a mailbox that are looked at.
const LOOKED_AT_MAX: usize = 20_000;

/// Messages of an account after which no further mailbox is looked at.
pub(crate) const LOOKED_AT_IN_ALL_MAX: usize = 100_000;

/// A conversation in a mailbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    /// The UID of its newest message.
    pub uid: u32,
    /// Its newest message.
    pub entry: Entry,
    /// Its messages.
    pub count: usize,
    /// Whether all of them were read.
    pub is_seen: bool,
}

/// The conversations of a mailbox, the newest first.
pub(crate) fn heads(state: &State, mailbox: &Mailbox) -> Vec<Head> {
    let mut heads: Vec<Head> = Vec::new();
    let mut places = BTreeMap::new();
    for (uid, entry) in latest(mailbox) {
        let is_seen = entry.flags.has(Flags::SEEN);
        let place = thread(state, &entry).map(|thread| *places.entry(thread).or_insert(heads.len()));
        match place.and_then(|place| heads.get_mut(place)) {
            Some(head) => {
                head.count = head.count.saturating_add(1);
                head.is_seen &= is_seen;
            }
            None => heads.push(Head { uid, entry, count: 1, is_seen }),
        }
    }
    heads
}

/// The messages of a thread in a mailbox.
pub(crate) fn messages(state: &State, mailbox: &Mailbox, of: Option<u64>) -> Vec<(u32, Entry)> {
    match of {
        Some(of) => latest(mailbox).into_iter().filter(|(_, entry)| thread(state, entry) == Some(of)).collect(),
        None => Vec::new(),
    }
}

/// The UIDs of a mailbox's messages that are of the conversations of some.
pub(crate) fn whole(state: &State, mailbox: &Mailbox, uids: &[u32]) -> Vec<u32> {
    let of = |uid: &u32| mailbox.entry(*uid).and_then(|entry| thread(state, entry));
    let threads: BTreeSet<u64> = uids.iter().filter_map(of).collect();
    let is_of = |entry: &Entry| thread(state, entry).is_some_and(|thread| threads.contains(&thread));
    latest(mailbox).into_iter().filter(|(_, entry)| is_of(entry)).map(|(uid, _)| uid).collect()
}

/// The thread of a message, if the store has noted one.
pub(crate) fn thread(state: &State, entry: &Entry) -> Option<u64> {
    state.message(entry.message.get()).map(|message| message.thread).filter(|&thread| thread > 0)
}

fn latest(mailbox: &Mailbox) -> Vec<(u32, Entry)> {
    newest(mailbox, u32::MAX, LOOKED_AT_MAX)
}

/// The entries of a mailbox below a UID, the newest first. The store has them in ascending order: so it is asked for more and more.
pub(crate) fn newest(mailbox: &Mailbox, before: u32, count: usize) -> Vec<(u32, Entry)> {
    let mut span = u32::try_from(count.saturating_mul(2)).unwrap_or(u32::MAX).max(16);
    let end = before.min(mailbox.uid_next.max(1));
    loop {
        let from = end.saturating_sub(span);
        let below = mailbox.from(from).take_while(|(uid, _)| *uid < before);
        let mut found: Vec<(u32, Entry)> = below.map(|(uid, entry)| (uid, *entry)).collect();
        if found.len() >= count || from == 0 {
            found.reverse();
            found.truncate(count);
            return found;
        }
        span = span.saturating_mul(4);
    }
}
