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
//! A mail may be sent twice if the server is killed between the next hop's answer and the note of it, or if the power fails soon after
//! the note, which waits for no flush. Bounds: [`WAITING_MAX`], and
//! [`schedule::Limits`]; of each mail under way a piece is held.

mod attempt;
mod content;
mod handover;
mod local;
mod manage;
mod notice;
mod qualified;
mod suppression;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use crate::outbox::{hash, place, take_over};
use crate::site::{Site, seconds};
use schedule::{Health, Job, Schedule, Turn};

pub use crate::outbox::{
    Counts, Entry, Queue, Recipient, Suppressed, WAITING_MAX, entry, schedule, suppressed, taken, waiting,
    waiting_count,
};
pub use crate::relay::Patience;
pub use handover::{Handover, Untaken, forget, hand_over};
pub(crate) use local::is_here;
pub use manage::{Action, Filter, act, rests_until, retry, select};
pub use suppression::{forgive_all, suppress_all};

/// How long a mail that is being sent may go on when the server ends.
const GRACE: Duration = Duration::from_secs(2);

/// How many wait for a destination each, how many are under way, how many destinations there are, and how many of them rest.
pub fn numbers(site: &Site) -> [usize; 4] {
    site.queue.numbers(seconds())
}

/// Sends what is due, until the server ends. Without a relay mail to accounts here is delivered, and all else waits.
pub async fn run(site: Arc<Site>) {
    if let Err(error) = site.store.transact(take_over).await {
        tracing::error!(%error, "mail of an earlier queue cannot be taken over");
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
        let changed = self.site.queue.take_changed();
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
        let is_sent = self.site.relay.is_some() || self.site.is_home(destination);
        let Some((entry, due)) = entry.filter(|_| is_sent).and_then(|entry| Some((entry, entry.due(destination)?)))
        else {
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
