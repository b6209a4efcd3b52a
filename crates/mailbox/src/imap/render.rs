//! A [`View`] as IMAP tells it: what SELECT answers, and the untagged responses between two snapshots.

use std::ops::ControlFlow;
use std::sync::Arc;

use keep::view::{Changes, Row, View, mailbox_id};
use proto::imap::acl::Rights;
use proto::imap::response;
use proto::imap::syntax::{Flags as Names, Set};
use store::{Flags, Mailbox, Uids};

use super::Enabled;
use crate::recent::Recents;

/// Opens a mailbox, to be read only or not, with these rights.
pub(super) fn open(number: u32, mailbox: Arc<Mailbox>, access: (bool, Rights), recents: &Recents) -> View {
    let mut view = View::open(number, mailbox, access.0, access.1);
    claim(&mut view, recents);
    view
}

/// Messages that no session was told of are recent here, and only here; a mailbox that is only read is claimed from nobody.
fn claim(view: &mut View, recents: &Recents) {
    let mark = match view.read_only {
        true => recents.mark(view.number, &view.mailbox),
        false => recents.claim(view.number, &view.mailbox),
    };
    view.add_recent(mark);
}

/// The answer to SELECT.
pub(super) fn opening(view: &View, enabled: Enabled) -> Vec<u8> {
    let mailbox = &view.mailbox;
    let mut out = Vec::new();
    names(view, &mut out);
    let mut line = |text: String| out.extend_from_slice(format!("* {text}\r\n").as_bytes());
    line(format!("{} EXISTS", view.uids.len()));
    if !enabled.rev2 {
        line(format!("{} RECENT", view.recent_count()));
        let unseen = view.first_unseen();
        unseen.into_iter().for_each(|number| line(format!("OK [UNSEEN {number}] First unseen")));
    }
    line(format!("OK [UIDVALIDITY {}] UIDs valid", mailbox.uid_validity));
    line(format!("OK [UIDNEXT {}] Predicted next UID", mailbox.uid_next));
    line(format!("OK [HIGHESTMODSEQ {}] Highest", mailbox.highest_modseq.max(1)));
    line(format!("OK [MAILBOXID ({})] Ok", mailbox_id(view.number)));
    out
}

fn names(view: &View, out: &mut Vec<u8>) {
    let mut names = Names::SYSTEM.join(" ");
    for keyword in view.mailbox.keywords.iter() {
        names = format!("{names} {keyword}");
    }
    let permanent = names.split(' ').chain(["\\*"]).filter(|name| view.may_set(name));
    let permanent = permanent.collect::<Vec<_>>().join(" ");
    let text = format!("* FLAGS ({names})\r\n* OK [PERMANENTFLAGS ({permanent})] Flags permitted\r\n");
    out.extend_from_slice(text.as_bytes());
}

/// The UIDs of a set, ascending. `None` if a number in it is of no message.
pub(super) fn uids_of(view: &View, set: &Set, by_uid: bool) -> Option<Vec<u32>> {
    match by_uid {
        _ if set.is_saved() => Some(view.saved_uids()),
        true => Some(view.uids_within(set.runs(view.last_uid()))),
        false => view.uids_numbered(&set.runs(view.count()).collect::<Vec<_>>()),
    }
}

/// Tells the difference to `mailbox`, messages that are gone only if it may; returns the flags that [`flags_changed`] compares.
pub(super) fn follow(
    view: &mut View,
    recents: &Recents,
    (mailbox, may_expunge): (&Arc<Mailbox>, bool),
    enabled: Enabled,
    out: &mut Vec<u8>,
) -> Option<Changes> {
    let step = view.follow(mailbox, may_expunge)?;
    if step.has_other_keywords {
        names(view, out);
    }
    expunged(&step.gone, enabled, out);
    if step.has_new {
        claim(view, recents);
        out.extend_from_slice(format!("* {} EXISTS\r\n", view.uids.len()).as_bytes());
        if !enabled.rev2 {
            out.extend_from_slice(format!("* {} RECENT\r\n", view.recent_count()).as_bytes());
        }
    }
    step.changes
}

fn expunged(gone: &[(u32, u32)], enabled: Enabled, out: &mut Vec<u8>) {
    if !enabled.qresync {
        // The last first, so that no number changes before it is told.
        let lines = gone.iter().rev().map(|(number, _)| format!("* {number} EXPUNGE\r\n"));
        lines.for_each(|line| out.extend_from_slice(line.as_bytes()));
    } else if !gone.is_empty() {
        out.extend_from_slice(b"* VANISHED ");
        response::set(gone.iter().map(|(_, uid)| *uid), out);
        out.extend_from_slice(b"\r\n");
    }
}

/// Tells flags that have changed, but for those of `untold`, up to about so many bytes; returns whether there may be more.
pub(super) fn flags_changed(
    view: &View,
    changes: &mut Changes,
    untold: &[u32],
    (enabled, bytes_max): (Enabled, usize),
    out: &mut Vec<u8>,
) -> bool {
    view.flags_changed(changes, untold, enabled.condstore, |row, is_silent| {
        tell(view, &row, !is_silent, enabled, out);
        if out.len() >= bytes_max { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
}

/// Tells the messages among these UIDs that were changed after a transaction.
pub(super) fn changed(view: &View, modseq: u64, among: &Uids, enabled: Enabled, out: &mut Vec<u8>) {
    let changed = view.changed_since(modseq).filter(|row| among.contains(row.uid));
    changed.for_each(|row| tell(view, &row, true, enabled, out));
}

fn tell(view: &View, row: &Row<'_>, flags: bool, enabled: Enabled, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("* {} FETCH (UID {}", row.number, row.uid).as_bytes());
    if flags {
        out.extend_from_slice(b" FLAGS ");
        flags_of(&view.mailbox, row.entry.flags, is_recent(view, row.uid, enabled), out);
    }
    if enabled.condstore {
        out.extend_from_slice(format!(" MODSEQ ({})", row.entry.modseq).as_bytes());
    }
    out.extend_from_slice(b")\r\n");
}

/// Tells the UIDs among these that vanished after a transaction (RFC 7162).
pub(super) fn vanished(view: &View, modseq: u64, among: &Uids, out: &mut Vec<u8>) {
    let gone = view.vanished_since(modseq, among);
    let run = |(first, last): (u32, u32)| if first == last { first.to_string() } else { format!("{first}:{last}") };
    if !gone.is_empty() {
        let runs: Vec<String> = gone.runs().map(run).collect();
        out.extend_from_slice(format!("* VANISHED (EARLIER) {}\r\n", runs.join(",")).as_bytes());
    }
}

/// Whether a message bears `\Recent`, which IMAP4rev2 does not know.
pub(super) fn is_recent(view: &View, uid: u32, enabled: Enabled) -> bool {
    !enabled.rev2 && view.recent.contains(uid)
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
