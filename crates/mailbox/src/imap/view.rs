//! A mailbox as a client sees it: messages by number, and what it was told of them.

use std::sync::Arc;

use proto::imap::acl::Rights;
use proto::imap::response;
use proto::imap::syntax::{Flags as Names, Set};
use store::{Flags, Mailbox, State, Uids};

use super::Enabled;
use crate::acl;
use crate::recent::Recents;

/// A mailbox that is selected.
pub(super) struct View {
    pub number: u32,
    pub read_only: bool,
    /// What may be done there, as it was when it was opened.
    rights: Rights,
    /// As of the last time that something was told.
    pub mailbox: Arc<Mailbox>,
    /// UIDs by number, from 1; ascending.
    pub uids: Vec<u32>,
    /// What a search has saved (RFC 5182).
    pub saved: Uids,
    /// Which of them this session was told of first.
    pub recent: Uids,
    recents: Arc<Recents>,
    /// Some of them are not there any more, and that was not told yet.
    expunges: bool,
}

/// A mailbox as it was, and the UID from which on it is compared.
pub(super) struct Changes {
    before: Arc<Mailbox>,
    from: u32,
}

impl View {
    /// Opens a mailbox, only to be read or not, with these rights.
    pub fn open(
        number: u32,
        mailbox: Arc<Mailbox>,
        (read_only, rights): (bool, Rights),
        recents: Arc<Recents>,
    ) -> View {
        let uids = mailbox.from(0).map(|(uid, _)| uid).collect();
        let (saved, recent) = (Uids::default(), Uids::default());
        let mut view = View { number, read_only, rights, mailbox, uids, saved, recent, recents, expunges: false };
        view.claim();
        view
    }

    /// What nobody was told of is recent here, and only here; who only examines a mailbox takes it from nobody.
    fn claim(&mut self) {
        let mark = match self.read_only {
            true => self.recents.mark(self.number, &self.mailbox),
            false => self.recents.claim(self.number, &self.mailbox),
        };
        if let Some(&last) = self.uids.last().filter(|&&last| last >= mark) {
            self.recent = self.recent.runs().chain([(mark, last)]).collect();
        }
    }

    fn recent_count(&self) -> usize {
        let at = |uid: u32| self.uids.partition_point(|&known| known < uid);
        self.recent.runs().map(|(first, last)| at(last.saturating_add(1)) - at(first)).sum()
    }

    /// What SELECT tells.
    pub fn opening(&self, enabled: Enabled) -> Vec<u8> {
        let mailbox = &self.mailbox;
        let mut out = Vec::new();
        self.names(&mut out);
        let mut line = |text: String| out.extend_from_slice(format!("* {text}\r\n").as_bytes());
        line(format!("{} EXISTS", self.uids.len()));
        if !enabled.rev2 {
            line(format!("{} RECENT", self.recent_count()));
        }
        if mailbox.unseen > 0 && !enabled.rev2 {
            let unseen =
                self.uids.iter().position(|&uid| mailbox.entry(uid).is_some_and(|entry| !entry.flags.has(Flags::SEEN)));
            unseen.into_iter().for_each(|at| line(format!("OK [UNSEEN {}] First unseen", at + 1)));
        }
        line(format!("OK [UIDVALIDITY {}] UIDs valid", mailbox.uid_validity));
        line(format!("OK [UIDNEXT {}] Predicted next UID", mailbox.uid_next));
        line(format!("OK [HIGHESTMODSEQ {}] Highest", mailbox.highest_modseq.max(1)));
        line(format!("OK [MAILBOXID ({})] Ok", mailbox_id(self.number)));
        out
    }

    fn names(&self, out: &mut Vec<u8>) {
        let mut names = Names::SYSTEM.join(" ");
        for keyword in self.mailbox.keywords.iter() {
            names = format!("{names} {keyword}");
        }
        let permanent = match self.read_only {
            true => String::new(),
            false => {
                let may = |name: &&str| self.rights.has(acl::needed_for(name));
                names.split(' ').chain(["\\*"]).filter(may).collect::<Vec<_>>().join(" ")
            }
        };
        let text = format!("* FLAGS ({names})\r\n* OK [PERMANENTFLAGS ({permanent})] Flags permitted\r\n");
        out.extend_from_slice(text.as_bytes());
    }

    /// The number of a message.
    pub fn number_of(&self, uid: u32) -> Option<u32> {
        let at = self.uids.binary_search(&uid).ok()?;
        u32::try_from(at + 1).ok()
    }

    /// UIDs of a set, ascending. None if a number in it is of no message.
    pub fn uids_of(&self, set: &Set, by_uid: bool) -> Option<Vec<u32>> {
        if set.is_saved() {
            return Some(self.uids.iter().copied().filter(|&uid| self.saved.contains(uid)).collect());
        }
        let count = u32::try_from(self.uids.len()).ok()?;
        let last = if by_uid { self.uids.last().copied().unwrap_or(0) } else { count };
        let runs = || set.runs(last);
        if !by_uid && runs().any(|(first, last)| first == 0 || last > count) {
            return None;
        }
        let mut uids = Vec::new();
        // However often a message is named, it is there once.
        for (first, last) in runs().collect::<Uids>().runs() {
            let range = match by_uid {
                true => self.uids.partition_point(|&uid| uid < first)..self.uids.partition_point(|&uid| uid <= last),
                false => first as usize - 1..last as usize,
            };
            uids.extend_from_slice(&self.uids[range]);
        }
        Some(uids)
    }

    /// Tells what is different in `mailbox`, what is gone only if it may; and what has to be compared for [`View::flags_changed`].
    pub fn follow(
        &mut self,
        mailbox: &Arc<Mailbox>,
        may_expunge: bool,
        enabled: Enabled,
        out: &mut Vec<u8>,
    ) -> Option<Changes> {
        if Arc::ptr_eq(mailbox, &self.mailbox) && !(may_expunge && self.expunges) {
            return None;
        }
        let before = std::mem::replace(&mut self.mailbox, mailbox.clone());
        if before.keywords != mailbox.keywords {
            self.names(out);
        }
        self.expunges |= before.vanished != mailbox.vanished;
        if may_expunge && std::mem::take(&mut self.expunges) {
            self.expunge(enabled, out);
        }
        let count = self.uids.len();
        self.uids.extend(mailbox.from(before.uid_next).map(|(uid, _)| uid));
        if self.uids.len() > count {
            self.claim();
            out.extend_from_slice(format!("* {} EXISTS\r\n", self.uids.len()).as_bytes());
            if !enabled.rev2 {
                out.extend_from_slice(format!("* {} RECENT\r\n", self.recent_count()).as_bytes());
            }
        }
        (mailbox.highest_modseq != before.highest_modseq).then_some(Changes { before, from: 0 })
    }

    /// Tells flags that have changed, but for those of `untold`, up to so many bytes; whether there are more.
    pub fn flags_changed(
        &self,
        changes: &mut Changes,
        untold: &[u32],
        enabled: Enabled,
        bytes_max: usize,
        out: &mut Vec<u8>,
    ) -> bool {
        let before = &changes.before;
        let is_new = |uid: u32| before.uid_next != 0 && uid >= before.uid_next;
        for (uid, entry) in self.mailbox.from(changes.from).take_while(|&(uid, _)| !is_new(uid)) {
            if out.len() >= bytes_max {
                changes.from = uid;
                return true;
            }
            let is_known = entry.modseq <= before.highest_modseq
                || before.entry(uid).is_some_and(|known| known.flags == entry.flags && !enabled.condstore);
            let is_silent = untold.binary_search(&uid).is_ok();
            let Some(number) = self.number_of(uid).filter(|_| !is_known && (!is_silent || enabled.condstore)) else {
                continue;
            };
            self.tell(number, uid, entry, !is_silent, enabled, out);
        }
        false
    }

    /// Whether a message bears `\Recent`, which IMAP4rev2 does not know.
    pub fn is_recent(&self, uid: u32, enabled: Enabled) -> bool {
        !enabled.rev2 && self.recent.contains(uid)
    }

    fn expunge(&mut self, enabled: Enabled, out: &mut Vec<u8>) {
        let is_gone = |uid: &u32| self.mailbox.entry(*uid).is_none();
        if enabled.qresync {
            let gone: Vec<u32> = self.uids.iter().copied().filter(is_gone).collect();
            if !gone.is_empty() {
                out.extend_from_slice(b"* VANISHED ");
                response::set(gone, out);
                out.extend_from_slice(b"\r\n");
            }
        } else {
            // The last first, so that no number changes before it is told.
            for (at, _) in self.uids.iter().enumerate().rev().filter(|(_, uid)| is_gone(uid)) {
                out.extend_from_slice(format!("* {} EXPUNGE\r\n", at + 1).as_bytes());
            }
        }
        let mailbox = &self.mailbox;
        self.uids.retain(|&uid| mailbox.entry(uid).is_some());
    }

    fn tell(&self, number: u32, uid: u32, entry: &store::Entry, flags: bool, enabled: Enabled, out: &mut Vec<u8>) {
        out.extend_from_slice(format!("* {number} FETCH (UID {uid}").as_bytes());
        if flags {
            out.extend_from_slice(b" FLAGS ");
            flags_of(&self.mailbox, entry.flags, self.is_recent(uid, enabled), out);
        }
        if enabled.condstore {
            out.extend_from_slice(format!(" MODSEQ ({})", entry.modseq).as_bytes());
        }
        out.extend_from_slice(b")\r\n");
    }

    /// Tells which of these UIDs vanished after a transaction (RFC 7162).
    pub fn vanished(&self, modseq: u64, among: &Uids, out: &mut Vec<u8>) {
        let gone: Uids = match self.mailbox.vanished_since(modseq) {
            Some(runs) => runs.collect(),
            // Some of it was forgotten: all that is not there.
            None => self.gaps().into_iter().collect(),
        };
        let (mut gone, mut among) = (gone.runs().peekable(), among.runs().peekable());
        let mut told: Vec<String> = Vec::new();
        while let (Some(&(first, last)), Some(&(from, to))) = (gone.peek(), among.peek()) {
            let common = (first.max(from), last.min(to));
            if common.0 < common.1 {
                told.push(format!("{}:{}", common.0, common.1));
            } else if common.0 == common.1 {
                told.push(common.0.to_string());
            }
            // Whichever ends first has nothing in common with what follows.
            let _ = if last <= to { gone.next() } else { among.next() };
        }
        if !told.is_empty() {
            out.extend_from_slice(format!("* VANISHED (EARLIER) {}\r\n", told.join(",")).as_bytes());
        }
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

    /// Tells what was changed after a transaction.
    pub fn changed(&self, modseq: u64, enabled: Enabled, out: &mut Vec<u8>) {
        for (uid, entry) in self.mailbox.from(0).filter(|(_, entry)| entry.modseq > modseq) {
            if let Some(number) = self.number_of(uid) {
                self.tell(number, uid, entry, true, enabled, out);
            }
        }
    }
}

/// The id of the content of a message (RFC 8474, section 5.1).
pub(super) fn email_id(state: &State, message: u64) -> String {
    format!("M{:032x}", state.message(message).map_or(0, |message| message.id))
}

/// The id of its conversation, if it is in one.
pub(super) fn thread_id(state: &State, message: u64) -> Option<String> {
    let thread = state.message(message).map_or(0, |message| message.thread);
    (thread != 0).then(|| format!("T{thread:x}"))
}

/// Appends the flags of a message: `(\Seen $x)`.
pub(super) fn flags_of(mailbox: &Mailbox, flags: Flags, is_recent: bool, out: &mut Vec<u8>) {
    let system = Names::SYSTEM.iter().enumerate().filter(|(bit, _)| flags.has(1 << bit)).map(|(_, name)| *name);
    let recent = is_recent.then_some("\\Recent");
    out.push(b'(');
    for (at, name) in recent.into_iter().chain(system).chain(mailbox.keywords_of(flags)).enumerate() {
        out.extend_from_slice(if at == 0 { b"" } else { b" " });
        out.extend_from_slice(name.as_bytes());
    }
    out.push(b')');
}

/// What a mailbox is known by, however it is called (RFC 8474).
pub(super) fn mailbox_id(number: u32) -> String {
    format!("F{number}")
}
