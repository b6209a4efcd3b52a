//! Outcomes of recipients: noted with the notifications that they make, one transaction.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use store::{Arrival, Error, Refused, Sealed, Transaction};

use super::notice::{self, Event, Kind};
use crate::file::File;
use crate::outbox::{self, Entry, Left, MAILBOX, add, note, one, place};
use crate::relay::{Fate, Health, Patience};
use crate::site::{Site, seconds};

/// The end of an attempt.
#[derive(Debug)]
pub(super) struct Ended {
    /// What was learned of the destination.
    pub health: Health,
    /// Outcomes that are not in the store yet.
    pub owed: Option<Owed>,
    /// A next hop may have the mail, and has not answered.
    pub left: Option<Left>,
}

impl Ended {
    pub const fn learned(health: Health) -> Ended {
        Ended { health, owed: None, left: None }
    }

    pub const fn with(health: Health, owed: Option<Owed>) -> Ended {
        Ended { health, owed, left: None }
    }
}

/// Outcomes of a mail that are not in the store yet: its failures wait for those of its other destinations, and what finds no room for that.
#[derive(Debug)]
pub(super) struct Owed {
    pub entry: Entry,
    pub events: Vec<Event>,
    /// They could not be stored.
    pub is_refused: bool,
}

/// The outcome of a recipient that an operator gives up.
pub(super) fn given_up() -> Fate {
    Fate::never((5, 0, 0), "it was given up by the operator of this server")
}

/// Notes what became of recipients, and tells who is to be told; returns what has to be noted later.
pub(super) async fn concluded(site: &Site, mail: u32, entry: Entry, mut events: Vec<Event>) -> Option<Owed> {
    // An operator may have given up some of them meanwhile.
    let present = outbox::entry(&site.store.state(), mail).unwrap_or_default();
    let is_given_up = |to: &str| present.recipients.iter().any(|one| one.is_given_up && one.to == to);
    for event in events.iter_mut().filter(|event| event.kind == Kind::Waits && is_given_up(&event.recipient.to)) {
        (event.kind, event.is_refused, event.fate) = (Kind::Failed, true, given_up());
    }
    events.iter().for_each(|event| log(site, mail, &entry, event));
    let is_one = entry.destinations().len() == 1;
    let waits = |event: &Event| !is_one && event.kind == Kind::Failed && event.is_told(&entry);
    let (owed, now): (Vec<Event>, Vec<Event>) = events.into_iter().partition(waits);
    let mut left = if now.is_empty() { Vec::new() } else { noted(site, mail, &entry, now).await };
    let is_refused = !left.is_empty();
    left.extend(owed);
    (!left.is_empty()).then_some(Owed { entry, events: left, is_refused })
}

/// Notes what is owed; returns what has still to be.
pub(super) async fn settle(site: &Site, mail: u32, owed: Owed) -> Ended {
    let Owed { entry, mut events, .. } = owed;
    // Recipients may have been taken out meanwhile.
    let present = outbox::entry(&site.store.state(), mail).unwrap_or_default();
    events.retain(|event| present.recipients.iter().any(|one| one.to == event.recipient.to));
    let left = if events.is_empty() { events } else { noted(site, mail, &entry, events).await };
    let owed = (!left.is_empty()).then_some(Owed { entry, events: left, is_refused: true });
    Ended::with(Health::Unknown, owed)
}

fn log(site: &Site, mail: u32, entry: &Entry, event: &Event) {
    let Event { kind, fate, recipient, .. } = event;
    let counts = &site.queue.counts;
    match kind {
        Kind::Delivered | Kind::Relayed => counts.sent.fetch_add(1, Relaxed),
        Kind::Failed => counts.failed.fetch_add(1, Relaxed),
        Kind::Waits => counts.deferred.fetch_add(1, Relaxed),
        Kind::Delayed => 0,
    };
    let (account, from, host) = (&entry.account, notice::shown(&entry.from), fate.host.as_deref());
    match kind {
        Kind::Delivered | Kind::Relayed => {
            tracing::info!(mail, account, from, to = recipient.to, host, reply = fate.why, "sent on");
        }
        _ => {
            let given_up = *kind == Kind::Failed;
            tracing::warn!(mail, account, from, to = recipient.to, host, error = fate.why, given_up, "not sent on");
        }
    }
}

/// Notes outcomes, in a full store those that need no room; returns the others.
async fn noted(site: &Site, mail: u32, entry: &Entry, events: Vec<Event>) -> Vec<Event> {
    let all = Arc::new(events);
    let Err(error) = conclude(site, mail, entry, &all, Room::Any).await else { return Vec::new() };
    let account = &entry.account;
    tracing::error!(mail, account, %error, "outcome of an outgoing mail cannot be stored");
    // Its alarm comes again.
    let events = Arc::unwrap_or_clone(all).into_iter().filter(|event| event.kind != Kind::Delayed);
    let needs_room =
        |event: &Event| event.is_told(entry) || event.kind == Kind::Failed && is_kept(entry, event.is_refused);
    let (mut left, others): (Vec<Event>, Vec<Event>) = events.partition(needs_room);
    let others = Arc::new(others);
    if !others.is_empty() && conclude(site, mail, entry, &others, Room::AsBefore).await.is_err() {
        left.extend(Arc::unwrap_or_clone(others));
    }
    left
}

/// The room that a note may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    Any,
    /// No more than the one before: reasons stay what they were.
    AsBefore,
}

pub(super) async fn conclude(
    site: &Site,
    mail: u32,
    entry: &Entry,
    events: &Arc<Vec<Event>>,
    room: Room,
) -> Result<(), Error> {
    let patience = site.patience;
    let keeps = events.iter().any(|event| event.kind == Kind::Failed && is_kept(entry, event.is_refused));
    let told: Vec<&Event> = events.iter().filter(|event| event.is_told(entry) && !keeps).collect();
    let text = match told.is_empty() {
        true => None,
        false => Some(notice::write(site, mail, entry, &told)),
    };
    let require_tls = entry.require_tls;
    // What is gone would be sent twice if it came back, and nothing is lost.
    let is_gone = events.iter().all(|event| matches!(event.kind, Kind::Delivered | Kind::Relayed));
    let (is_warned, is_inspected, address) = (entry.is_warned, entry.is_inspected, entry.from.clone());
    let (writer, skipped) = (entry.is_written.then(|| entry.account.clone()), entry.account.clone());
    let events = events.clone();
    let work = move |transaction: &mut Transaction<'_, File>, notice: Option<&Sealed>| {
        // Somebody may have changed it meanwhile, or taken it out.
        let Some(mut entry) = outbox::entry(transaction.state(), mail) else { return Ok(()) };
        let was_warned = std::mem::replace(&mut entry.is_warned, is_warned);
        entry.is_inspected |= is_inspected;
        if events.iter().all(|event| event.kind == Kind::Delayed) && was_warned {
            return Ok(());
        }
        let now = seconds();
        for event in events.iter() {
            apply(&mut entry, event, room, patience, now);
        }
        if keeps {
            keep(transaction, mail, &skipped)?;
        }
        note(transaction, mail, &entry)?;
        match (notice, writer) {
            (None, _) => Ok(()),
            (Some(sealed), Some(account)) => tell_writer(transaction, sealed, &account),
            (Some(sealed), None) => add(transaction, sealed, &Entry { require_tls, ..Entry::answer(address, now) }),
        }
    };
    let Some(text) = text else {
        let work = move |transaction: &mut Transaction<'_, File>| work(transaction, None);
        return if is_gone { site.store.transact_unflushed(work).await } else { site.store.transact(work).await };
    };
    let mut incoming = site.store.incoming();
    let mut digest = crate::digest::Digest::default();
    digest.read(&text);
    incoming.write(&text).await?;
    incoming.finish(digest.finish(), move |transaction, sealed| work(transaction, Some(sealed))).await?;
    site.queue.wake.wake();
    Ok(())
}

/// An outcome of a recipient, in the entry of its mail.
fn apply(entry: &mut Entry, event: &Event, room: Room, patience: Patience, now: i64) {
    let Some(at) = entry.recipients.iter().position(|one| one.to == event.recipient.to) else { return };
    match event.kind {
        Kind::Delayed => {}
        Kind::Waits => {
            let Some(one) = entry.recipients.get_mut(at) else { return };
            let (mut why, host, tries) = (one.why.clone(), one.host.clone(), one.tries);
            one.after(&event.fate, patience, now);
            if room == Room::AsBefore {
                if one.tries.to_string().len() > tries.to_string().len() {
                    why.pop();
                }
                (one.why, one.host) = (why, host);
            }
        }
        Kind::Failed | Kind::Delivered | Kind::Relayed => _ = entry.recipients.swap_remove(at),
    }
}

/// Whether a mail that does not go out is kept: one that a script has redirected, and that is nowhere else.
fn is_kept(entry: &Entry, is_refused: bool) -> bool {
    let is_redirect = !entry.account.is_empty() && !entry.is_written;
    is_redirect && !entry.is_stored && (is_refused || entry.from.is_empty() || entry.is_spam)
}

/// The account is told in its INBOX. Without room there nobody is told, and the queue goes on.
fn tell_writer(transaction: &mut Transaction<'_, File>, sealed: &Sealed, account: &str) -> Result<(), Error> {
    let state = transaction.state();
    let account = state.account_named(account.as_bytes()).map(|(number, _)| number);
    let inbox = account.and_then(|account| state.mailbox_named(account, MAILBOX)).map(|(inbox, _)| inbox);
    let Some(inbox) = inbox else { return Ok(()) };
    let now = seconds();
    match transaction.deliver(sealed, inbox, &Arrival { date: now, now, ..Arrival::default() }) {
        Err(Error::Refused(Refused::OverQuota)) => Ok(()),
        outcome => outcome.map(drop),
    }
}

fn keep(transaction: &mut Transaction<'_, File>, mail: u32, account: &str) -> Result<(), Error> {
    let state = transaction.state();
    let Some((queue, _)) = place(state) else { return Ok(()) };
    let account = state.account_named(account.as_bytes()).map(|(number, _)| number);
    if let Some((inbox, _)) = account.and_then(|account| state.mailbox_named(account, MAILBOX)) {
        transaction.copy(queue, inbox, &one(mail), seconds())?;
    }
    Ok(())
}
