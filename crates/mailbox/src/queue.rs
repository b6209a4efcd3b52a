//! Mail that waits to go out: what clients submit, what is relayed, what scripts redirect, their answers, what users write in the
//! [webmail](crate::webmail), and notifications of what became of all that.
//!
//! ```text
//!  a mail ─ one transaction ─► waits ─ due ─► the relay ─ takes it ────────► gone, or a notification that was asked for
//!                                ▲              ├ not now ─ back-off ─┐
//!                                └──────────────┼────────────────────┘
//!                                               └ refuses it, or not within five days ─► the sender is told
//!   redirected by a script, and refused ────────────► kept in the INBOX of whose script it was
//!   written by an account here ─────────────────────► the notification comes into its INBOX
//! ```
//!
//! A mail that waits is a message of a mailbox in the store, of an account that no accounts file can name, with a note that has its
//! envelope ([`Entry`]) for all recipients: it is there by the flush that acknowledged it, and as a copy of what is delivered takes no
//! room. In memory there is an index of who is due when ([`schedule`]); notes are decoded for it once, and again when they are tried.
//! A mail may be sent twice if the server is killed between the next hop's answer and the note of it. Bounds: [`WAITING_MAX`], and
//! [`schedule::Limits`]; of each mail under way a piece is held.

mod attempt;
mod entry;
mod former;
mod local;
mod manage;
mod notice;
pub mod schedule;

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use store::{Arrival, Error, Mailbox, Quota, Refused, Sealed, SpecialUse, State, Transaction, Uids};
use tokio::task::JoinSet;

use crate::file::File;
use crate::relay::Wake;
use crate::site::{Site, seconds};
use schedule::{Health, Job, Limits, Schedule, Turn};

pub use crate::relay::Patience;
pub use entry::{Entry, Recipient};
pub use manage::{Action, Filter, act, rests_until, retry, select};

/// The account: with a blank in it, which no other's name has.
const ACCOUNT: &[u8] = b"sluice queue";
const MAILBOX: &[u8] = b"INBOX";

/// Mails that wait; with as many, what is redirected is kept, nobody is answered, and what is submitted is deferred.
pub const WAITING_MAX: usize = 1_000_000;

/// How long a mail that is being sent may go on when the server ends.
const GRACE: Duration = Duration::from_secs(2);

/// What the queue shares with those who add to it and look into it.
#[derive(Debug)]
pub struct Queue {
    pub(crate) wake: Wake,
    /// Mails that were changed by somebody else, with their destinations before.
    changed: Mutex<Vec<(u32, Vec<String>)>>,
    schedule: Mutex<Schedule>,
    /// What came of recipients.
    pub counts: Counts,
}

/// What came of recipients so far.
#[derive(Debug, Default)]
pub struct Counts {
    /// A next hop or a mailbox has taken them.
    pub sent: AtomicU64,
    /// They wait on after an attempt.
    pub deferred: AtomicU64,
    /// They were given up.
    pub failed: AtomicU64,
}

impl Queue {
    /// An index of nothing yet.
    pub fn new(limits: Limits) -> Queue {
        let schedule = Mutex::new(Schedule::new(limits));
        Queue { wake: Wake::default(), changed: Mutex::default(), schedule, counts: Counts::default() }
    }

    /// Recipients' destinations of mails that wait, of one sender: an account, or an address.
    pub(crate) fn of_sender(&self, sender: &str) -> usize {
        self.schedule().of_sender(hash(sender))
    }

    /// How many wait for a destination each, how many of them are under way, how many destinations there are, and how many rest.
    pub fn numbers(&self) -> [usize; 4] {
        let schedule = self.schedule();
        let (destinations, resting) = schedule.destinations(seconds());
        [schedule.len(), schedule.under_way() as usize, destinations, resting]
    }

    fn schedule(&self) -> MutexGuard<'_, Schedule> {
        self.schedule.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody has changed a mail; its destinations were these.
    fn change(&self, mail: u32, destinations: Vec<String>) {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner).push((mail, destinations));
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

fn place(state: &State) -> Option<(u32, &Arc<Mailbox>)> {
    let (account, _) = state.account_named(ACCOUNT)?;
    state.mailbox_named(account, MAILBOX)
}

fn one(uid: u32) -> Uids {
    [uid].into_iter().collect()
}

/// Notes an entry anew; without recipients the mail is gone. What was taken out meanwhile does not come back.
fn note(transaction: &mut Transaction<'_, File>, mail: u32, entry: &Entry) -> Result<(), Error> {
    let (mailbox, found) = place(transaction.state()).ok_or(Refused::NoSuchMailbox)?;
    match (found.entry(mail).is_some(), entry.recipients.is_empty()) {
        (false, _) => Ok(()),
        (true, false) => transaction.note(mailbox, mail, Some(&entry.encode())),
        (true, true) => transaction.expunge(mailbox, &one(mail)).map(drop),
    }
}

/// FNV-1a: who sends, for the index. Senders of one hash share their turns.
fn hash(sender: &str) -> u32 {
    sender.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// Sends what is due, until the server ends. Without a relay all of it waits.
pub async fn run(site: Arc<Site>) {
    if site.relay.is_none() {
        return site.ended().await;
    }
    if let Err(error) = site.store.transact(take_over).await {
        tracing::error!(%error, "the queue is not in order");
    }
    let mut sender = Sender { site: &site, next_uid: 0, tasks: JoinSet::new(), jobs: HashMap::new() };
    loop {
        sender.index();
        let until = sender.begin_due();
        let wait = Duration::from_secs(u64::try_from(until.saturating_sub(seconds())).unwrap_or(0).min(3_600));
        tokio::select! {
            Some(ended) = sender.tasks.join_next_with_id() => sender.settle(ended),
            () = site.queue.wake.woken() => {}
            () = tokio::time::sleep(wait) => {}
            () = site.ended() => break,
        }
    }
    let mut tasks = sender.tasks;
    let _ = tokio::time::timeout(GRACE, async { while tasks.join_next().await.is_some() {} }).await;
}

/// The one who sends: what is under way.
struct Sender<'a> {
    site: &'a Arc<Site>,
    /// Mails from this one on are not in the index yet.
    next_uid: u32,
    tasks: JoinSet<Option<Health>>,
    jobs: HashMap<tokio::task::Id, Job>,
}

type Ended = Result<(tokio::task::Id, Option<Health>), tokio::task::JoinError>;

impl Sender<'_> {
    /// Brings the index up to date: mails that are new, and those that were changed.
    fn index(&mut self) {
        let state = self.site.store.state();
        let changed = std::mem::take(&mut *self.site.queue.changed.lock().unwrap_or_else(PoisonError::into_inner));
        let mut schedule = self.site.queue.schedule();
        for (mail, destinations) in changed.iter().filter(|(mail, _)| *mail < self.next_uid) {
            let entry = entry(&state, *mail);
            destinations.iter().for_each(|destination| self.enter(&mut schedule, *mail, entry.as_ref(), destination));
        }
        let Some((_, mailbox)) = place(&state) else { return };
        for (mail, _) in mailbox.from(self.next_uid) {
            self.next_uid = mail.saturating_add(1);
            let Some(entry) = mailbox.note(mail).and_then(|note| Entry::decode(note)) else { continue };
            for destination in entry.destinations() {
                self.enter(&mut schedule, mail, Some(&entry), destination);
            }
        }
    }

    /// Enters a mail for one destination anew, or takes it out if it does not wait for it any more. What is under way enters at its end.
    fn enter(&self, schedule: &mut Schedule, mail: u32, entry: Option<&Entry>, destination: &str) {
        let job = schedule.job(mail, destination);
        if job.is_some_and(|job| schedule.is_busy(job)) {
            return;
        }
        let Some((entry, due)) = entry.and_then(|entry| Some((entry, entry.due(destination)?))) else {
            return job.into_iter().for_each(|job| schedule.remove(job));
        };
        let sender = hash(if entry.account.is_empty() { &entry.from } else { &entry.account });
        match entry.is_held {
            true => schedule.hold(mail, destination, sender),
            false => schedule.insert(mail, destination, sender, due, entry.alarm(self.site.patience)),
        };
    }

    /// Begins what is due; until when nothing else is.
    fn begin_due(&mut self) -> i64 {
        loop {
            let mut schedule = self.site.queue.schedule();
            let (job, is_alarm) = match schedule.next(seconds()) {
                Turn::Idle(until) => return until,
                Turn::Attempt(job) => (job, false),
                Turn::Alarm(job) => (job, true),
            };
            let (site, destination) = (self.site.clone(), schedule.destination(job).to_owned());
            drop(schedule);
            let task = self.tasks.spawn(async move {
                match is_alarm {
                    true => attempt::look(&site, job.mail, &destination).await,
                    false => attempt::attempt(&site, job.mail, &destination).await,
                }
            });
            self.jobs.insert(task.id(), job);
        }
    }

    /// A task has ended: the mail waits on, or is gone.
    fn settle(&mut self, ended: Ended) {
        let (id, health) = ended.unwrap_or_else(|error| (error.id(), None));
        let Some(job) = self.jobs.remove(&id) else { return };
        let entry = entry(&self.site.store.state(), job.mail);
        let now = seconds();
        let mut schedule = self.site.queue.schedule();
        let destination = schedule.destination(job).to_owned();
        schedule.done(job, health.unwrap_or(Health::Unknown), now);
        let sender = entry.as_ref().map(|entry| if entry.account.is_empty() { &entry.from } else { &entry.account });
        let sender = sender.map_or(0, |sender| hash(sender));
        let due = entry.as_ref().and_then(|entry| entry.due(&destination));
        match (entry, due) {
            (Some(entry), Some(_)) if entry.is_held => _ = schedule.hold(job.mail, &destination, sender),
            (Some(entry), Some(due)) => {
                // What could not be noted is tried again, and not at once.
                let soonest = if health.is_none() { now.saturating_add(60) } else { 0 };
                let alarm = entry.alarm(self.site.patience).max(soonest);
                schedule.insert(job.mail, &destination, sender, due.max(soonest), alarm);
            }
            _ => schedule.remove(job),
        }
    }
}

/// What earlier versions have noted becomes notes of messages; what is noted of mails that were taken out of the store goes.
fn take_over(transaction: &mut Transaction<'_, File>) -> Result<(), Error> {
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
