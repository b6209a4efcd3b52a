//! A mailbox as one session sees it: messages by number, compared with the next snapshot when there is one.
//!
//! A view writes no protocol: its host shows what a [`Step`] and an iterator hold. Memory: four bytes a message.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::ControlFlow;

use proto::imap::acl::Rights;
use store::{Entry, Flags, Mailbox, State, Uids};

use crate::acl;

/// A mailbox that is selected.
pub struct View {
    /// The number of the mailbox.
    pub number: u32,
    /// Whether it is only read.
    pub read_only: bool,
    /// The rights of the account when it was opened.
    rights: Rights,
    /// The snapshot that was shown last.
    pub mailbox: Arc<Mailbox>,
    /// UIDs by number, from 1; ascending.
    pub uids: Vec<u32>,
    /// The messages that a search has saved (RFC 5182).
    pub saved: Uids,
    /// The messages that this session was the first to see.
    pub recent: Uids,
    /// Some of the messages are gone, and that was not shown yet.
    expunges: bool,
}

/// The difference between two snapshots, as far as a session may be told of it.
pub struct Step {
    /// The keywords of the mailbox are others.
    pub has_other_keywords: bool,
    /// Numbers and UIDs of messages that are gone, by the numbers before any went; ascending.
    pub gone: Vec<(u32, u32)>,
    /// Set if new messages have come.
    pub has_new: bool,
    /// The comparison of flags, if any may be others.
    pub changes: Option<Changes>,
}

/// A mailbox as it was, and the UID from which on its flags are compared.
pub struct Changes {
    before: Arc<Mailbox>,
    from: u32,
}

/// The state of one message.
pub struct Row<'a> {
    /// Its number.
    pub number: u32,
    /// Its UID.
    pub uid: u32,
    /// Its flags and dates.
    pub entry: &'a Entry,
}

impl View {
    /// Opens a mailbox, to be read only or not, with these rights.
    pub fn open(number: u32, mailbox: Arc<Mailbox>, read_only: bool, rights: Rights) -> View {
        let uids = mailbox.from(0).map(|(uid, _)| uid).collect();
        let (saved, recent) = (Uids::default(), Uids::default());
        View { number, read_only, rights, mailbox, uids, saved, recent, expunges: false }
    }

    /// Takes messages from a UID on for recent.
    pub fn add_recent(&mut self, first: u32) {
        if let Some(&last) = self.uids.last().filter(|&&last| last >= first) {
            self.recent = self.recent.runs().chain([(first, last)]).collect();
        }
    }

    /// How many messages are recent.
    pub fn recent_count(&self) -> usize {
        let at = |uid: u32| self.uids.partition_point(|&known| known < uid);
        self.recent.runs().map(|(first, last)| at(last.saturating_add(1)) - at(first)).sum()
    }

    /// The number of the first message that is not seen.
    pub fn first_unseen(&self) -> Option<usize> {
        if self.mailbox.unseen == 0 {
            return None;
        }
        let is_unseen = |uid: &u32| self.mailbox.entry(*uid).is_some_and(|entry| !entry.flags.has(Flags::SEEN));
        self.uids.iter().position(is_unseen).map(|at| at + 1)
    }

    /// Whether a flag, by its name, may be set for good.
    pub fn may_set(&self, flag: &str) -> bool {
        !self.read_only && self.rights.has(acl::needed_for(flag))
    }

    /// The number of a message.
    pub fn number_of(&self, uid: u32) -> Option<u32> {
        let at = self.uids.binary_search(&uid).ok()?;
        u32::try_from(at + 1).ok()
    }

    /// How many messages there are.
    pub fn count(&self) -> u32 {
        u32::try_from(self.uids.len()).unwrap_or(u32::MAX)
    }

    /// The last UID; 0 without messages.
    pub fn last_uid(&self) -> u32 {
        self.uids.last().copied().unwrap_or(0)
    }

    /// The UIDs among those that a search has saved, ascending.
    pub fn saved_uids(&self) -> Vec<u32> {
        self.uids.iter().copied().filter(|&uid| self.saved.contains(uid)).collect()
    }

    /// The UIDs within runs of UIDs, ascending, each once.
    pub fn uids_within(&self, runs: impl Iterator<Item = (u32, u32)>) -> Vec<u32> {
        let at = |uid: u32| self.uids.partition_point(|&known| known < uid);
        let mut uids = Vec::new();
        for (first, last) in runs.collect::<Uids>().runs() {
            let end = last.checked_add(1).map_or(self.uids.len(), at);
            uids.extend_from_slice(self.uids.get(at(first)..end).unwrap_or_default());
        }
        uids
    }

    /// The UIDs of runs of numbers, ascending, each once. `None` if no message has one of the numbers.
    pub fn uids_numbered(&self, runs: &[(u32, u32)]) -> Option<Vec<u32>> {
        let count = self.count();
        if runs.iter().any(|&(first, last)| first == 0 || last > count) {
            return None;
        }
        let mut uids = Vec::new();
        for (first, last) in runs.iter().copied().collect::<Uids>().runs() {
            uids.extend_from_slice(self.uids.get(first as usize - 1..last as usize)?);
        }
        Some(uids)
    }

    /// Goes on to a snapshot; messages that are gone leave the view only if they may. `None` if nothing is other.
    pub fn follow(&mut self, mailbox: &Arc<Mailbox>, may_expunge: bool) -> Option<Step> {
        if Arc::ptr_eq(mailbox, &self.mailbox) && !(may_expunge && self.expunges) {
            return None;
        }
        let before = core::mem::replace(&mut self.mailbox, mailbox.clone());
        self.expunges |= before.vanished != mailbox.vanished;
        let gone = if may_expunge { self.expunge() } else { Vec::new() };
        let count = self.uids.len();
        self.uids.extend(mailbox.from(before.uid_next).map(|(uid, _)| uid));
        let (has_new, is_other) = (self.uids.len() > count, mailbox.highest_modseq != before.highest_modseq);
        let has_other_keywords = before.keywords != mailbox.keywords;
        Some(Step { has_other_keywords, gone, has_new, changes: is_other.then_some(Changes { before, from: 0 }) })
    }

    /// Takes out the messages that are gone.
    fn expunge(&mut self) -> Vec<(u32, u32)> {
        if !core::mem::take(&mut self.expunges) {
            return Vec::new();
        }
        let mailbox = &self.mailbox;
        let numbered = (1..).zip(self.uids.iter().copied());
        let gone = numbered.filter(|(_, uid)| mailbox.entry(*uid).is_none()).collect();
        self.uids.retain(|&uid| mailbox.entry(uid).is_some());
        gone
    }

    /// Shows messages whose flags have changed, or whose transaction has if `by_modseq`, until `show` breaks; returns whether
    /// some may be left. Messages of `silent`, ascending, are shown if `by_modseq`, with `true`: their flags are known.
    pub fn flags_changed(
        &self,
        changes: &mut Changes,
        silent: &[u32],
        by_modseq: bool,
        mut show: impl FnMut(Row<'_>, bool) -> ControlFlow<()>,
    ) -> bool {
        let before = &changes.before;
        let is_new = |uid: u32| before.uid_next != 0 && uid >= before.uid_next;
        for (uid, entry) in self.mailbox.from(changes.from).take_while(|&(uid, _)| !is_new(uid)) {
            let is_known = entry.modseq <= before.highest_modseq
                || before.entry(uid).is_some_and(|known| known.flags == entry.flags && !by_modseq);
            let is_silent = silent.binary_search(&uid).is_ok();
            let Some(number) = self.number_of(uid).filter(|_| !is_known && (!is_silent || by_modseq)) else { continue };
            if show(Row { number, uid, entry }, is_silent).is_break() {
                changes.from = uid.saturating_add(1);
                return true;
            }
        }
        false
    }

    /// The messages that were changed after a transaction.
    pub fn changed_since(&self, modseq: u64) -> impl Iterator<Item = Row<'_>> {
        let changed = self.mailbox.from(0).filter(move |(_, entry)| entry.modseq > modseq);
        changed.filter_map(|(uid, entry)| Some(Row { number: self.number_of(uid)?, uid, entry }))
    }

    /// The UIDs among these that vanished after a transaction (RFC 7162).
    pub fn vanished_since(&self, modseq: u64, among: &Uids) -> Uids {
        let gone: Uids = match self.mailbox.vanished_since(modseq) {
            Some(runs) => runs.collect(),
            // Some of it was forgotten: all that is not there.
            None => self.gaps().into_iter().collect(),
        };
        let (mut gone, mut among) = (gone.runs().peekable(), among.runs().peekable());
        let common = core::iter::from_fn(|| {
            let (&(first, last), &(from, to)) = (gone.peek()?, among.peek()?);
            // Whichever ends first has nothing in common with what follows.
            let _ = if last <= to { gone.next() } else { among.next() };
            Some((first.max(from), last.min(to)))
        });
        common.filter(|(first, last)| first <= last).collect()
    }

    fn gaps(&self) -> Vec<(u32, u32)> {
        let mut gaps = Vec::new();
        let mut next = 1;
        for &uid in &self.uids {
            if uid > next {
                gaps.push((next, uid - 1));
            }
            next = uid.saturating_add(1);
        }
        if self.mailbox.uid_next > next {
            gaps.push((next, self.mailbox.uid_next - 1));
        }
        gaps
    }
}

/// The id of the content of a message (RFC 8474, section 5.1).
pub fn email_id(state: &State, message: u64) -> String {
    format!("M{:032x}", state.message(message).map_or(0, |message| message.id))
}

/// The id of its conversation, if it is in one.
pub fn thread_id(state: &State, message: u64) -> Option<String> {
    let thread = state.message(message).map_or(0, |message| message.thread);
    (thread != 0).then(|| format!("T{thread:x}"))
}

/// The id of a mailbox, however it is called (RFC 8474).
pub fn mailbox_id(number: u32) -> String {
    format!("F{number}")
}
