//! The mails that wait to go out, as they stand in the store and in the index: who adds one needs no more than this.
//!
//! A mail that waits is a message of a mailbox in the store, of an account that no accounts file can name, with a note that has its
//! envelope ([`Entry`]). Bounds: [`WAITING_MAX`].

mod delivered;
mod entry;
mod former;
mod leavings;
pub mod schedule;
mod suppressed;

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use store::{Arrival, Error, Mailbox, Quota, Refused, Sealed, SpecialUse, State, Transaction, Uids};

use crate::file::File;
use crate::relay::Wake;
use schedule::{Limits, Schedule};

pub(crate) use delivered::{is_delivered, mark_delivered};
pub(crate) use entry::words_of;
pub use entry::{Entry, Recipient};
pub use leavings::Leavings;
pub(crate) use leavings::{Left, List};
pub use suppressed::{Suppressed, is_suppressed, suppressed};
pub(crate) use suppressed::{forgive, suppress};

/// The account: with a blank in it, which no other's name has.
const ACCOUNT: &[u8] = b"sluice queue";
pub(crate) const MAILBOX: &[u8] = b"INBOX";

/// Mails that wait; with as many, what is redirected is kept, nobody is answered, and what is submitted is deferred.
pub const WAITING_MAX: usize = 1_000_000;

/// Why a recipient gets nothing, as its senders are told.
pub(crate) const SUPPRESSED: &str =
    "The recipient has reported mail from here: it gets no more (sluice queue suppress)";

/// The name of an annotation that remembers a mail of the maildrop, in front of its key.
const TAKEN: &[u8] = b"maildrop/";

/// The part of the queue that is shared with those who add to it and look into it.
#[derive(Debug)]
pub struct Queue {
    pub(crate) wake: Wake,
    /// Mails that were changed by somebody else, with their destinations before.
    changed: Mutex<Vec<(u32, Vec<String>)>>,
    schedule: Mutex<Schedule>,
    stop_seconds: AtomicU64,
    /// Lists of mails whose answers come when the store is with another process; none: such mails are cut off.
    pub leavings: Option<Leavings>,
    /// Outcomes of recipients.
    pub counts: Counts,
}

/// Outcomes of recipients so far.
#[derive(Debug, Default)]
pub struct Counts {
    /// A next hop or a mailbox has taken them.
    pub sent: AtomicU64,
    /// Recipients that wait on after an attempt.
    pub deferred: AtomicU64,
    /// Recipients that were given up.
    pub failed: AtomicU64,
    /// They have reported a mail, and get no more.
    pub reported: AtomicU64,
}

impl Queue {
    /// An index of nothing yet.
    pub fn new(limits: Limits) -> Queue {
        let schedule = Mutex::new(Schedule::new(limits));
        Queue {
            wake: Wake::default(),
            changed: Mutex::default(),
            schedule,
            stop_seconds: AtomicU64::new(2),
            leavings: None,
            counts: Counts::default(),
        }
    }

    /// How long mails that a next hop may have already wait for its answer when the server ends.
    pub fn set_stop_seconds(&self, seconds: u64) {
        self.stop_seconds.store(seconds, Relaxed);
    }

    pub(crate) fn stop_wait(&self) -> Duration {
        Duration::from_secs(self.stop_seconds.load(Relaxed))
    }

    /// Recipients' destinations of mails that wait, of one sender: an account, or an address.
    pub(crate) fn of_sender(&self, sender: &str) -> usize {
        self.schedule().of_sender(hash(sender))
    }

    /// How many wait for a destination each, how many of them are under way, how many destinations there are, and how many rest at this time.
    pub fn numbers(&self, now: i64) -> [usize; 4] {
        let schedule = self.schedule();
        let (destinations, resting) = schedule.destinations(now);
        [schedule.len(), schedule.under_way() as usize, destinations, resting]
    }

    pub(crate) fn schedule(&self) -> MutexGuard<'_, Schedule> {
        self.schedule.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody has changed a mail; its destinations were these.
    pub(crate) fn change(&self, mail: u32, destinations: Vec<String>) {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner).push((mail, destinations));
    }

    /// The mails that were changed since this was asked last.
    pub(crate) fn take_changed(&self) -> Vec<(u32, Vec<String>)> {
        std::mem::take(&mut *self.changed.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The mails that wait, by number. Decodes all of them.
pub fn waiting(state: &State) -> Vec<(u32, Entry)> {
    let Some((_, mailbox)) = place(state) else { return Vec::new() };
    mailbox.notes.iter().filter_map(|(uid, note)| Some((uid as u32, Entry::decode(note)?))).collect()
}

/// How many mails wait.
pub fn waiting_count(state: &State) -> usize {
    place(state).map_or(0, |(_, mailbox)| mailbox.entries.len())
}

/// A mail that waits.
pub fn entry(state: &State, mail: u32) -> Option<Entry> {
    Entry::decode(place(state)?.1.note(mail)?)
}

/// Adds a mail, whose content is `sealed`.
pub(crate) fn add(transaction: &mut Transaction<'_, File>, sealed: &Sealed, entry: &Entry) -> Result<(), Error> {
    let mailbox = match place(transaction.state()) {
        Some((number, _)) => number,
        None => {
            let account = transaction.add_account(ACCOUNT, Quota::default())?;
            transaction.create(account, MAILBOX, SpecialUse::default())?
        }
    };
    if waiting_count(transaction.state()) >= WAITING_MAX {
        return Err(Refused::OverQuota.into());
    }
    let arrival = Arrival { date: entry.since, now: entry.since, ..Arrival::default() };
    let uid = transaction.deliver(sealed, mailbox, &arrival)?;
    let noted = transaction.note(mailbox, uid, Some(&entry.encode()));
    if noted.is_err() {
        transaction.expunge(mailbox, &one(uid))?;
    }
    noted
}

/// Whether the mail of the maildrop with this key has been added, and its file may still be there.
pub(crate) fn is_taken(state: &State, key: &str) -> bool {
    place(state).is_some_and(|(_, mailbox)| mailbox.annotations.contains_key(&*name_of(key)))
}

/// The keys of mails of the maildrop that are remembered.
pub fn taken(state: &State) -> Vec<String> {
    let Some((_, mailbox)) = place(state) else { return Vec::new() };
    let key = |name: &[u8]| String::from_utf8(name.strip_prefix(TAKEN)?.to_vec()).ok();
    mailbox.annotations.keys().filter_map(|name| key(name)).collect()
}

/// Remembers that a mail of the maildrop has been added: in the transaction that adds it.
pub(crate) fn remember_taken(transaction: &mut Transaction<'_, File>, key: &str) -> Result<(), Error> {
    annotate(transaction, key, Some(b""))
}

/// Forgets a mail of the maildrop, whose file is gone.
pub(crate) fn forget_taken(transaction: &mut Transaction<'_, File>, key: &str) -> Result<(), Error> {
    annotate(transaction, key, None)
}

fn annotate(transaction: &mut Transaction<'_, File>, key: &str, value: Option<&[u8]>) -> Result<(), Error> {
    let found = place(transaction.state()).map(|(number, mailbox)| (mailbox.account, number));
    let Some((account, mailbox)) = found else { return Ok(()) };
    transaction.annotate(account, Some(mailbox), &name_of(key), value)
}

fn name_of(key: &str) -> Vec<u8> {
    [TAKEN, key.as_bytes()].concat()
}

pub(crate) fn place(state: &State) -> Option<(u32, &Arc<Mailbox>)> {
    let (account, _) = state.account_named(ACCOUNT)?;
    state.mailbox_named(account, MAILBOX)
}

pub(crate) fn one(uid: u32) -> Uids {
    [uid].into_iter().collect()
}

/// Notes an entry anew; without recipients the mail is gone. What was taken out meanwhile does not come back.
pub(crate) fn note(transaction: &mut Transaction<'_, File>, mail: u32, entry: &Entry) -> Result<(), Error> {
    let (mailbox, found) = place(transaction.state()).ok_or(Refused::NoSuchMailbox)?;
    let is_present = found.entry(mail).is_some();
    let left = if is_present { &*entry.recipients } else { &[] };
    delivered::forget_delivered(transaction, mail, left)?;
    match (is_present, entry.recipients.is_empty()) {
        (false, _) => Ok(()),
        (true, false) => transaction.note(mailbox, mail, Some(&entry.encode())),
        (true, true) => transaction.expunge(mailbox, &one(mail)).map(drop),
    }
}

/// FNV-1a: who sends, for the index. Senders of one hash share their turns.
pub(crate) fn hash(sender: &str) -> u32 {
    sender.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// Turns entries of earlier versions into notes of messages; those of mails that were taken out of the store go.
pub(crate) fn take_over(transaction: &mut Transaction<'_, File>) -> Result<(), Error> {
    let Some((number, mailbox)) = place(transaction.state()).map(|(number, mailbox)| (number, mailbox.clone())) else {
        return Ok(());
    };
    for (name, value) in mailbox.annotations.iter() {
        let Some(uid) = former::uid(name) else { continue };
        if let Some(entry) = former::decode(value).filter(|_| mailbox.entry(uid).is_some()) {
            transaction.note(number, uid, Some(&entry.encode()))?;
        }
        transaction.annotate(mailbox.account, Some(number), name, None)?;
    }
    Ok(())
}
