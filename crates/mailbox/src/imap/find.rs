//! Searches of this server: the keys of IMAP as the keep has them, the index of the account, and searches of other doors in turns
//! with other accounts.

use std::cell::{Cell, OnceCell};
use std::sync::Arc;
use std::time::Instant;

use keep::content::Messages;
use keep::find::{Answer, Finder, Index, Key, Place};
use keep::view::View;
use proto::imap::acl::Rights;
use proto::imap::search;
use store::{Mailbox, State};
use tokio::task::block_in_place;

use super::render;
use crate::indexing::{BEHIND_MAX, Found, Lookup, holds};
use crate::labour::Slice;
use crate::site::{Site, seconds};
use crate::writer::Handle;

/// The UIDs of the messages that match, ascending; those that were not looked at by `until` are left out.
pub(crate) async fn find(site: &Site, number: u32, mailbox: &Arc<Mailbox>, key: &Key, until: Instant) -> Vec<u32> {
    let view = render::open(number, mailbox.clone(), (true, Rights::READ), &site.recents);
    let (mut finder, mut found) = (finder(site, &view, key), Vec::new());
    while Instant::now() < until {
        let turn = site.workers.turn(mailbox.account).await;
        let slice = Slice::begin();
        let is_done = block_in_place(|| finder.go_on(|| slice.is_over(), |message| found.push(message.uid())));
        drop(turn);
        if is_done {
            break;
        }
    }
    found
}

/// A search in the messages of a view as they are now.
pub(super) fn finder<'a>(site: &'a Site, view: &'a View, key: &'a Key) -> Finder<'a, Handle, AccountIndex<'a>> {
    let state = site.store.state();
    let account = state.mailbox(view.number).unwrap_or(&view.mailbox).account;
    let (lookup, unindexed) = (OnceCell::new(), Cell::new(0));
    let index = AccountIndex { site, state: state.clone(), account, lookup, unindexed };
    Finder::new(&site.store, index, state, view, key, seconds())
}

/// A key with its sets as they are in a view.
pub(super) fn in_view(key: &search::Key, view: &View) -> Key {
    use search::Key as Given;
    match key {
        Given::And(keys) => Key::And(keys.iter().map(|key| in_view(key, view)).collect()),
        Given::Or(keys) => Key::Or(Box::new((in_view(&keys.0, view), in_view(&keys.1, view)))),
        Given::Not(key) => Key::Not(Box::new(in_view(key, view))),
        Given::Messages(set) | Given::Uids(set) if set.is_saved() => Key::Result,
        Given::Messages(set) => Key::Numbers(set.runs(view.count()).collect()),
        Given::Uids(set) => Key::Uids(set.runs(view.last_uid()).collect()),
        Given::Flag(bit) => Key::Flag(*bit),
        Given::Keyword(name) => Key::Keyword(name.clone()),
        Given::Recent => Key::Recent,
        Given::Arrived(from, to) => Key::Arrived(*from, *to),
        Given::Saved(from, to) => Key::Saved(*from, *to),
        Given::Sent(from, to) => Key::Sent(*from, *to),
        Given::Younger(seconds) => Key::Younger(*seconds),
        Given::Larger(bytes) => Key::Larger(*bytes),
        Given::Smaller(bytes) => Key::Smaller(*bytes),
        Given::Header(name, text) => Key::Header(name.clone(), text.clone()),
        Given::Body(text) => Key::Body(text.clone()),
        Given::Text(text) => Key::Text(text.clone()),
        Given::Modseq(modseq) => Key::Modseq(*modseq),
        Given::EmailId(id) => Key::EmailId(id.clone()),
        Given::ThreadId(id) => Key::ThreadId(id.clone()),
    }
}

/// The index of an account, opened when it is first asked.
pub(super) struct AccountIndex<'a> {
    site: &'a Site,
    state: State,
    account: u32,
    lookup: OnceCell<Option<Lookup<'a>>>,
    /// Messages that were read since it knows nothing of them.
    unindexed: Cell<usize>,
}

impl<'a> AccountIndex<'a> {
    fn lookup(&self) -> Option<&Lookup<'a>> {
        let open = || {
            self.site.inspector.as_ref()?;
            // What cannot be opened is made again by who brings it up to date.
            Lookup::open(&self.site.store, &self.state, self.account).unwrap_or(None)
        };
        self.lookup.get_or_init(open).as_ref()
    }
}

impl Index for AccountIndex<'_> {
    type Found = Found;

    fn find(&self, place: Place<'_>, text: &[u8]) -> Option<Found> {
        let lookup = self.lookup()?;
        match place {
            Place::Field(name) => lookup.in_header(name, text),
            Place::Body => lookup.in_body(text),
            Place::Anywhere => lookup.anywhere(text),
        }
    }

    fn tell(&self, message: u64, found: Option<&Found>) -> Answer {
        let lookup = self.lookup();
        if !lookup.is_some_and(|lookup| lookup.has(message)) {
            self.unindexed.set(self.unindexed.get() + 1);
        }
        lookup.zip(found).map_or(Answer::Unknown, |(lookup, found)| lookup.tells(message, found))
    }

    fn inspect(&self, message: u64, text: &str) -> bool {
        let (Some(inspector), Some(mut body)) = (&self.site.inspector, self.site.store.reader(message)) else {
            return false;
        };
        tokio::runtime::Handle::current().block_on(holds(&**inspector, &mut body, text))
    }
}

/// An account of which too much is in no index is brought up to date.
impl Drop for AccountIndex<'_> {
    fn drop(&mut self) {
        let index = self.lookup.get().and_then(Option::as_ref);
        let is_damaged = index.is_some_and(Lookup::is_damaged);
        // More than half of what is in it is gone.
        let links = self.state.account(self.account).map_or(0, |account| account.used_messages);
        let is_stale = index.is_some_and(|index| index.len() as u64 / 2 > links + BEHIND_MAX as u64);
        if self.site.inspector.is_some() && (is_damaged || is_stale || self.unindexed.get() >= BEHIND_MAX) {
            self.site.behind.add(self.account, is_damaged);
        }
    }
}
