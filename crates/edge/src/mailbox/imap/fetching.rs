//! A FETCH under way: what there is of it, whoever hears and says it.

use std::collections::VecDeque;
use std::sync::Arc;

use proto::imap::{Fact, Fetch, Kind, Section, Status};

use super::OWED_MAX;
use super::overwrite::Overwriter;
use crate::mailbox::retrieval::Sees;
use crate::message::known::Fate;

/// A FETCH of the client's.
pub struct Fetching {
    pub(super) tag: Vec<u8>,
    pub(super) fetch: Fetch,
    pub(super) step: Step,
    /// The message that is gone through on its own.
    pub(super) one: Option<One>,
    /// Messages still to deliver.
    pub(super) owed: VecDeque<One>,
    /// Status of the client's command from the server.
    pub(super) answer: Option<Status>,
    /// Why something was left out for good.
    pub(super) refusal: Option<String>,
}

/// A message, and what the client wants of it.
pub(super) struct One {
    /// Its number, or its UID where the client names messages so.
    pub(super) number: u32,
    pub(super) uid: Option<u32>,
    /// The server was asked which message it is, and has told of it.
    pub(super) named: bool,
    pub(super) inspected: bool,
    /// It was there when it was inspected.
    pub(super) seen: bool,
    /// Its parts were looked for.
    pub(super) searched: bool,
    pub(super) fetch: Fetch,
}

/// Request in flight.
pub(super) enum Step {
    /// The client's command.
    AsAsked,
    /// The UID of the one message, and which message that is.
    Name,
    /// All of it, to be inspected.
    Inspect,
    /// All of it, for its parts.
    Find,
    /// Delivers these sections, each as a range of the whole.
    Deliver(Vec<(Section, Section)>, Option<Arc<Fate>>),
}

/// Treatment of content.
pub enum Way {
    /// It passes.
    Pass,
    /// The item is left out.
    Drop,
    /// It passes as it is inspected.
    Show(Sees),
    /// It is inspected.
    Inspect,
    /// Its parts are looked for.
    Find,
    /// It is what was asked for like this, and is overwritten.
    Range(Section, Overwriter),
}

impl Fetching {
    /// Begins a FETCH of the client with this tag.
    pub fn new(tag: Vec<u8>, fetch: Fetch) -> Fetching {
        Fetching { tag, fetch, step: Step::AsAsked, one: None, owed: VecDeque::new(), answer: None, refusal: None }
    }

    /// Whether what is in flight brings nothing for the client.
    pub fn is_ours(&self) -> bool {
        matches!(self.step, Step::Name | Step::Inspect | Step::Find)
    }

    /// Something is not handed out.
    pub fn refuse(&mut self, reason: String) {
        self.refusal.get_or_insert(reason);
    }

    /// The UID that content must have for which none was told.
    pub fn only(&self) -> Option<u32> {
        match &self.one {
            Some(one) => one.uid,
            None => self.fetch.single().filter(|_| self.fetch.by_uid),
        }
    }

    /// Whether the client wants to hear of this.
    pub fn asks_for(&self, fact: Fact) -> bool {
        let fetch = self.one.as_ref().map_or(&self.fetch, |one| &one.fetch);
        !self.is_ours() && fetch.asks_for(fact)
    }

    /// The message with this sequence number has this UID.
    pub fn named(&mut self, number: u32, uid: u32) {
        if let (Step::Name, Some(one)) = (&self.step, &mut self.one)
            && one.number == (if self.fetch.by_uid { uid } else { number })
        {
            one.uid = Some(uid);
            one.named = true;
        }
    }

    /// Parts of a message have been left out, and are still to come.
    pub(super) fn owe(&mut self, number: u32, uid: Option<u32>) {
        let number = if self.fetch.by_uid { uid } else { Some(number) };
        let known = self.owed.back().map(|one| one.number);
        let Some(number) = number.filter(|number| Some(*number) != known) else { return };
        if self.owed.len() == OWED_MAX {
            return self.refuse("[LIMIT] Too many messages at a time".into());
        }
        let parts = self.fetch.sections.iter().filter(|section| !section.is_whole() && !section.is_header());
        let fetch = self.fetch.of_one(number, parts.cloned().collect());
        self.owed.push_back(One::new(number, uid, fetch));
    }

    /// Handles the end of the request in flight.
    pub(super) fn finished(&mut self, status: Status) {
        let ok = status.kind == Kind::Ok;
        match (&self.step, self.one.take()) {
            (Step::AsAsked | Step::Deliver(..), _) => {
                self.answer.get_or_insert(status);
            }
            (Step::Name, one) => {
                // A message that is gone has no parts.
                self.one = one.filter(|one| ok && one.named);
                self.answer_without_one(status);
            }
            (Step::Inspect, one) => {
                self.one = one.filter(|one| ok && one.seen).map(|one| One { inspected: true, ..one });
                self.answer_without_one(status);
            }
            (Step::Find, one) => {
                self.one = one.filter(|_| ok).map(|one| One { searched: true, ..one });
                self.answer_without_one(status);
            }
        }
    }

    pub(super) fn answer_without_one(&mut self, status: Status) {
        if self.one.is_none() {
            self.answer.get_or_insert(status);
        }
    }
}

impl One {
    pub(super) fn new(number: u32, uid: Option<u32>, fetch: Fetch) -> One {
        One { number, uid, named: false, inspected: false, seen: false, searched: false, fetch }
    }
}
