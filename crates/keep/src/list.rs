//! The names of an account's mailboxes, with those above them, and the choice of those that patterns match.
//!
//! A mailbox of somebody else has the name that it has for the account. Patterns are compared until the host's slice of time is over.

use alloc::collections::{BTreeMap, btree_map};
use alloc::vec::Vec;

use proto::imap::pattern::{Patterns, Scratch};
use store::{DELIMITER, State};

use crate::name::LEVELS_MAX;

/// A name that may be told.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Name {
    /// The mailbox; `None` of a name that only others are below, or that is only subscribed.
    pub mailbox: Option<u32>,
    /// A mailbox is below it.
    pub has_children: bool,
    /// It is subscribed.
    pub is_subscribed: bool,
    /// Names below it that are subscribed.
    pub subscribed_below: usize,
    /// A subscribed name below it does not match the patterns.
    pub hides_subscribed: bool,
}

/// The names that patterns match, as far as they have been compared.
pub struct Listing<'a> {
    patterns: Patterns,
    /// For INBOX, which matches in letters of either case, and for the names below it, of which that level does.
    inbox: Patterns,
    below_inbox: Patterns,
    scratch: Scratch,
    rest: btree_map::IntoIter<&'a [u8], Name>,
    found: Vec<(&'a [u8], Name)>,
}

impl<'a> Listing<'a> {
    /// The names of an account, and those of `others`, that patterns match.
    pub fn new(state: &'a State, account: u32, others: &'a [(Vec<u8>, u32)], patterns: &[Vec<u8>]) -> Listing<'a> {
        let upper: Vec<Vec<u8>> = patterns.iter().map(|pattern| pattern.to_ascii_uppercase()).collect();
        let below: Vec<Vec<u8>> = patterns.iter().map(|pattern| with_inbox(pattern)).collect();
        Listing {
            patterns: Patterns::new(patterns, DELIMITER),
            inbox: Patterns::new(&upper, DELIMITER),
            below_inbox: Patterns::new(&below, DELIMITER),
            scratch: Scratch::default(),
            rest: names(state, account, others).into_iter(),
            found: Vec::new(),
        }
    }

    /// Goes on comparing until `is_over`; returns true at the end.
    pub fn go_on(&mut self, is_over: impl Fn() -> bool) -> bool {
        for (name, found) in self.rest.by_ref() {
            let is_inbox = match name.strip_prefix(b"INBOX") {
                Some([]) => self.inbox.matches(name, &mut self.scratch),
                Some([DELIMITER, ..]) => self.below_inbox.matches(name, &mut self.scratch),
                _ => false,
            };
            if is_inbox || self.patterns.matches(name, &mut self.scratch) {
                self.found.push((name, found));
            }
            if is_over() {
                return false;
            }
        }
        true
    }

    /// The names that match, in order.
    pub fn found(mut self) -> Vec<(&'a [u8], Name)> {
        let mut shown: BTreeMap<&[u8], usize> = BTreeMap::new();
        for (name, _) in self.found.iter().filter(|(_, found)| found.is_subscribed) {
            for above in above(name) {
                let count = shown.entry(above).or_default();
                *count = count.saturating_add(1);
            }
        }
        for (name, found) in &mut self.found {
            found.hides_subscribed = found.subscribed_below > shown.get(name).copied().unwrap_or(0);
        }
        self.found
    }
}

/// All names of an account, with those above them, and those of others that it may know of.
fn names<'a>(state: &'a State, number: u32, others: &'a [(Vec<u8>, u32)]) -> BTreeMap<&'a [u8], Name> {
    let mut names: BTreeMap<&[u8], Name> = BTreeMap::new();
    let Some(account) = state.account(number) else { return names };
    let own = account.mailboxes.iter().map(|(name, &mailbox)| (&**name, mailbox));
    for (name, mailbox) in others.iter().map(|(name, mailbox)| (&**name, *mailbox)).chain(own) {
        names.entry(name).or_default().mailbox = Some(mailbox);
        for above in above(name) {
            names.entry(above).or_default().has_children = true;
        }
    }
    for name in account.subscriptions.iter() {
        names.entry(name).or_default().is_subscribed = true;
        for above in above(name) {
            let above = names.entry(above).or_default();
            above.subscribed_below = above.subscribed_below.saturating_add(1);
        }
    }
    names
}

/// The names above a mailbox, from the top, at most as many as a new name may have levels.
fn above(name: &[u8]) -> impl Iterator<Item = &[u8]> {
    let ends = name.iter().enumerate().filter(|(_, byte)| **byte == DELIMITER);
    ends.map(|(at, _)| &name[..at]).take(LEVELS_MAX)
}

/// A pattern whose first level is in upper case, up to a wildcard, which may stand for names below it.
fn with_inbox(pattern: &[u8]) -> Vec<u8> {
    let end = pattern.iter().position(|byte| b"*%/".contains(byte)).unwrap_or(pattern.len());
    [pattern[..end].to_ascii_uppercase().as_slice(), &pattern[end..]].concat()
}
