//! A FETCH, from the client's command to its answer.
//!
//! Whole messages and headers are inspected as they pass, and so is the command handed on as it is. Parts and ranges pass
//! of messages that are known to be clean. Of the others they are left out of what the server sends, and each such message
//! is gone through on its own:
//!
//! ```text
//!  Name ─────────► Inspect ─► clean: Deliver, as it was asked for
//!  (UID,           (whole)    not clean: Find ─► Deliver, as ranges of the whole
//!   size, date)                          (parts)
//! ```
//!
//! What is known of a message from an earlier session is known of its size and date as well: some servers give a UID to
//! another message, after they were put back to an older state. Where they are not told, it is known only as long as the
//! mailbox is selected.
//!
//! A FETCH of parts of one message begins there, unless a message with its UID was clean. Each step is a FETCH of our own, by number or by UID as the client's was:
//! the server may take messages away only during the latter.

use std::sync::Arc;

use flow::Parts;
use proto::imap::{Command, Fetch, Item, Kind, Section, Status};

use super::fetching::{Fetching, One, Step, Way};
use super::overwrite::Overwriter;
use super::parts;
use super::session::{Session, Work};
use crate::mailbox::retrieval::Sees;
use crate::message::known::{Fate, Identity};
use crate::message::trace::new_id;

impl Session {
    /// Begins what a client asks for.
    pub fn fetch(&mut self, mut fetching: Fetching) {
        if let Some(number) = fetching.fetch.single().filter(|_| fetching.fetch.asks_for_parts()) {
            let uid = fetching.fetch.by_uid.then_some(number);
            // What comes shows whether it is still that message; if not, it is owed.
            if !uid.is_some_and(|uid| self.seems_clean(uid)) {
                let fetch = fetching.fetch.clone();
                fetching.owed.push_back(One::new(number, uid, fetch));
                return self.next_fetch(Box::new(fetching));
            }
        }
        self.asks.command(&Command::fetch(&fetching.fetch));
        self.work = Work::Fetch(Box::new(fetching));
    }

    /// Handles the end of the request in flight.
    pub fn fetched(&mut self, mut fetching: Box<Fetching>, status: Status) {
        fetching.finished(status);
        self.next_fetch(fetching);
    }

    /// Goes on with the next step, or answers the client.
    fn next_fetch(&mut self, mut fetching: Box<Fetching>) {
        while let Some(one) = fetching.one.take().or_else(|| fetching.owed.pop_front()) {
            let asked = self.next_step(&one, &mut fetching);
            if let Some((step, fetch)) = asked {
                fetching.step = step;
                fetching.one = Some(one);
                self.asks.command(&Command::fetch(&fetch));
                self.work = Work::Fetch(fetching);
                return;
            }
        }
        let Fetching { tag, answer, refusal, .. } = *fetching;
        let done = Status { tagged: true, kind: Kind::Ok, code: Vec::new(), text: b"Fetch completed".to_vec() };
        let answer = answer.unwrap_or(done);
        match refusal.filter(|_| answer.kind == Kind::Ok) {
            Some(refusal) => self.answer(&tag, Kind::No, &refusal),
            None => {
                self.say_status(&tag, &answer);
                self.hears.answered(self.now(), answer.kind);
            }
        }
    }

    /// Next request about a message; none if all is done.
    fn next_step(&mut self, one: &One, fetching: &mut Fetching) -> Option<(Step, Fetch)> {
        let ours = |section| one.fetch.of_one(one.number, section);
        let name = || Some((Step::Name, one.fetch.of_names(one.number)));
        let Some(uid) = one.uid else { return name() };
        let identity = match self.folder.identity(uid) {
            Some(identity) => identity,
            None if !one.named => return name(),
            // It is not told: what is found of it holds no longer than it is sure to be the same.
            None => {
                let identity = Identity::new(&[new_id().as_bytes()]);
                self.folder.identify(uid, identity);
                identity
            }
        };
        let Some(fate) = self.fate(uid, identity) else {
            if one.inspected {
                fetching.refuse("[CANNOT] The message cannot be had in parts".into());
                return None;
            }
            return Some((Step::Inspect, ours(vec![Section::whole()])));
        };
        if fate.is_clean() {
            return Some((Step::Deliver(Vec::new(), None), one.fetch.clone()));
        }
        if let Some(refusal) = &fate.refusal {
            fetching.refuse(refusal.clone());
            return deliver(one, None, &fate, fetching);
        }
        let key = self.key(uid)?;
        let parts = self.found.as_ref().filter(|(found, _)| *found == key).map(|(_, parts)| parts.clone());
        if parts.is_none() && !one.searched {
            return Some((Step::Find, ours(vec![Section::whole()])));
        }
        deliver(one, parts.as_deref(), &fate, fetching)
    }

    /// The parts of the message that was looked through.
    pub fn found(&mut self, parts: Parts) {
        let Work::Fetch(fetching) = &self.work else { return };
        let Some(uid) = fetching.one.as_ref().and_then(|one| one.uid) else { return };
        self.found = self.key(uid).map(|key| (key, Arc::new(parts)));
    }

    /// Decides about an item of a message that the server sends.
    pub fn way(&mut self, section: &Section, number: u32, uid: Option<u32>, identity: Option<Identity>) -> Way {
        if let Work::Fetch(fetching) = &mut self.work
            && let Some(one) = &mut fetching.one
            && uid.is_some()
            && uid == one.uid
        {
            match &mut fetching.step {
                Step::Inspect if section.is_whole() => {
                    one.seen = true;
                    return Way::Inspect;
                }
                Step::Find if section.is_whole() => return Way::Find,
                Step::Deliver(ranges, Some(fate)) => {
                    if let Some(at) = ranges.iter().position(|(_, range)| section.answers(range)) {
                        let (asked, range) = ranges.remove(at);
                        let start = range.partial.map_or(0, |(start, _)| start);
                        return Way::Range(asked, Overwriter::new(fate.clone(), start));
                    }
                }
                _ => {}
            }
        }
        if section.is_whole() {
            return Way::Show(Sees::Message);
        }
        if section.is_header() {
            return Way::Show(Sees::Header);
        }
        let fate = uid.zip(identity).and_then(|(uid, identity)| self.fate(uid, identity));
        if fate.is_some_and(|fate| fate.is_clean()) {
            return Way::Pass;
        }
        if let Work::Fetch(fetching) = &mut self.work {
            match fetching.step {
                Step::AsAsked => fetching.owe(number, uid),
                _ => fetching.refuse("[CANNOT] The message cannot be had in parts".into()),
            }
        }
        Way::Drop
    }
}

/// Requests the rest of a message that is not clean: parts become ranges of the whole.
fn deliver(one: &One, parts: Option<&Parts>, fate: &Arc<Fate>, fetching: &mut Fetching) -> Option<(Step, Fetch)> {
    let mut ranges = Vec::new();
    let mut sections = Vec::new();
    for section in &one.fetch.sections {
        if section.is_whole() || section.is_header() {
            sections.push(section.clone());
            continue;
        }
        let Some(parts) = parts else {
            fetching.refuse("[CANNOT] The message cannot be had in parts".into());
            continue;
        };
        if section.item == Item::Binary {
            fetching.refuse("[UNKNOWN-CTE] Ask for it without BINARY".into());
            continue;
        }
        let Some(place) = parts::range(parts, section) else {
            fetching.refuse("[CANNOT] This part cannot be had of this message".into());
            continue;
        };
        // Of what is empty the server is asked for a byte behind the end.
        let (start, len) = match place.end.checked_sub(place.start) {
            Some(len @ 1..) => (place.start, len),
            _ => (parts.len, 1),
        };
        let range = Section::range(section.peek, start, len);
        sections.push(range.clone());
        ranges.push((section.clone(), range));
    }
    if sections.is_empty() && one.fetch.plain.is_empty() {
        return None;
    }
    Some((Step::Deliver(ranges, Some(fate.clone())), Fetch { sections, ..one.fetch.clone() }))
}
