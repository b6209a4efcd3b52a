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
//! the note, which waits for no flush. A server that ends sends no final dot any more, and waits for answers to those that it has sent, for a
//! server that follows in its [`Leavings`]. Bounds: [`WAITING_MAX`], and
//! [`schedule::Limits`]; of each mail under way a piece is held.

mod attempt;
mod breaks;
mod content;
mod handover;
mod local;
mod manage;
mod notice;
mod outcome;
mod qualified;
mod suppression;
mod traits;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use store::State;
use tokio::task::JoinSet;

use crate::outbox::{Left, List, hash, place, take_over};
use crate::relay::Gate;
use crate::site::{Site, seconds};
use outcome::{Ended, Owed};
use schedule::{Health, Job, Schedule, Turn};

pub use crate::outbox::{
    Counts, Entry, Leavings, Queue, Recipient, Suppressed, WAITING_MAX, entry, schedule, suppressed, taken, waiting,
    waiting_count,
};
pub use crate::relay::Patience;
pub use handover::{Handover, Untaken, forget, hand_over};
pub(crate) use local::is_here;
pub use manage::{Acted, Action, Filter, Page, act, count, is_under_way, page, rests_until, retry, select};
pub use suppression::{forgive_all, suppress_all};

/// How long a mail that is being sent may go on when the server ends, unless its next hop may have it already.
const GRACE: Duration = Duration::from_secs(2);

/// How often it is looked whether one of those is left.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How long failures of a mail wait for its other destinations that are under way, in seconds: one notification names them all.
const ROUND: i64 = 10;

/// How often it is looked whether a process before this one has let go of its mails.
const LIST_EVERY: u64 = 1;

/// How long it takes at most to leave mails to a list.
const LEAVE_WAIT: Duration = Duration::from_secs(1);

/// When outcomes that could not be stored are to be noted again, in seconds.
const DEBT_PAUSE: i64 = 60;

/// Mails with outcomes that are not in the store. With as many no other mail is tried, since what became of it could not be kept.
const DEBTS_MAX: usize = 10_000;

/// How often the clock is looked at, and by how much it is put back without that anything is reckoned anew, in seconds.
const CLOCK_EVERY: u64 = 60;
const CLOCK_SLACK: i64 = 60;

/// How many wait for a destination each, how many are under way, how many destinations there are, and how many of them rest.
pub fn numbers(site: &Site) -> [usize; 4] {
    site.queue.numbers(seconds())
}

/// Sends what is due, until the server ends. Without a relay mail to accounts here is delivered, and all else waits.
pub async fn run(site: Arc<Site>) {
    if let Err(error) = site.store.transact(take_over).await {
        tracing::error!(%error, "mail of an earlier queue cannot be taken over");
    }
    let lists = site.queue.leavings.as_ref().map(Leavings::found).unwrap_or_default();
    let (tasks, work, debts) = (JoinSet::new(), HashMap::new(), HashMap::new());
    let mut sender = Sender { site: &site, next_uid: 0, clock: seconds(), tasks, work, debts, lists, left: Vec::new() };
    sender.lend();
    loop {
        sender.read_lists().await;
        sender.follow_clock();
        sender.index();
        let until = sender.begin_due();
        let longest = if sender.lists.is_empty() { CLOCK_EVERY } else { LIST_EVERY };
        let wait = Duration::from_secs(u64::try_from(until.saturating_sub(seconds())).unwrap_or(0).min(longest));
        tokio::select! {
            Some(ended) = sender.tasks.join_next_with_id() => sender.settle(ended),
            () = site.queue.wake.woken() => {}
            () = tokio::time::sleep(wait) => {}
            () = site.ended() => break,
        }
    }
    sender.finish().await;
}

/// The one who sends: what is under way.
struct Sender<'a> {
    site: &'a Arc<Site>,
    /// Mails from this one on are not in the index yet.
    next_uid: u32,
    /// The time when it was looked at last.
    clock: i64,
    tasks: JoinSet<Ended>,
    work: HashMap<tokio::task::Id, Work>,
    /// Outcomes that are not in the store yet, by mail. Their jobs are with the host.
    debts: HashMap<u32, Debt>,
    /// Mails that processes before this one have sent, and wait for.
    lists: Vec<List>,
    /// Mails whose answers are left to the next one.
    left: Vec<Left>,
}

/// The work of a task.
enum Work {
    /// A mail is sent.
    Attempt(Job, Arc<Gate>),
    /// A mail is looked at, since its time has come.
    Look(Job),
    /// What is owed of a mail is noted.
    Debt(u32, Vec<Job>),
}

/// Outcomes of a mail that are to be noted.
struct Debt {
    jobs: Vec<Job>,
    owed: Owed,
    /// They are noted then, whatever other destinations of the mail do.
    until: i64,
}

/// Why a mail is not touched at once.
#[derive(Debug, Clone, Copy)]
struct Pause {
    /// The task is lost, and what it did is not known.
    is_lost: bool,
    /// It was looked at: if its time has still come, that could not be noted.
    was_looked_at: bool,
}

impl Work {
    fn gate(&self) -> Option<&Arc<Gate>> {
        if let Work::Attempt(_, gate) = self { Some(gate) } else { None }
    }

    const fn job(&self) -> Option<Job> {
        if let Work::Attempt(job, _) = self { Some(*job) } else { None }
    }

    fn mail(&self) -> u32 {
        match self {
            Work::Attempt(job, _) | Work::Look(job) => job.mail,
            Work::Debt(mail, _) => *mail,
        }
    }
}

impl Sender<'_> {
    /// Brings the index up to date: mails that are new, and those that were changed.
    fn index(&mut self) {
        let state = self.site.store.state();
        let changed = self.site.queue.take_changed();
        for (mail, _) in &changed {
            if let Some(debt) = self.debts.get_mut(mail) {
                debt.until = 0;
            }
        }
        changed.iter().for_each(|(mail, _)| self.stop(*mail, &state));
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

    /// Ends attempts that an operator has made void, unless a next hop may have the mail already.
    fn stop(&self, mail: u32, state: &State) {
        let of_mail = self.work.values().filter(|work| work.mail() == mail);
        for (job, gate) in of_mail.filter_map(|work| Some((work.job()?, work.gate()?))) {
            let destination = self.site.queue.schedule().destination(job).to_owned();
            let is_meant = |one: &Recipient| one.destination() == destination && !one.is_given_up;
            let is_wanted = |entry: Entry| !entry.is_held && entry.recipients.iter().any(is_meant);
            if entry(state, mail).is_none_or(|entry| !is_wanted(entry)) {
                gate.close();
            }
        }
    }

    /// Leaves the mails alone that are on lists.
    fn lend(&self) {
        let state = self.site.store.state();
        let mut schedule = self.site.queue.schedule();
        for (mail, destination) in self.lists.iter().flat_map(|list| &list.sent) {
            if let Some(entry) = entry(&state, *mail).filter(|entry| entry.destinations().contains(&&**destination)) {
                schedule.lend(*mail, destination, sender_of(&entry));
            }
        }
    }

    /// Notes the answers on lists whose process has let go of them, and takes back its mails.
    async fn read_lists(&mut self) {
        for list in std::mem::take(&mut self.lists) {
            let Some(answers) = list.answers() else {
                self.lists.push(list);
                continue;
            };
            let (sent, count) = (list.sent.len(), answers.len());
            tracing::info!(mails = sent, answers = count, "mails that the process before has sent");
            let mut is_whole = true;
            for (mail, fates) in answers {
                if let Some(owed) = attempt::answered(self.site, mail, fates).await.owed {
                    is_whole &= !owed.is_refused;
                    self.owe(mail, Vec::new(), owed);
                }
            }
            let job = |(mail, destination): &(u32, String)| self.site.queue.schedule().job(*mail, destination);
            let jobs: Vec<Job> = list.sent.iter().filter_map(job).collect();
            for job in jobs {
                match self.debts.get_mut(&job.mail) {
                    Some(debt) => debt.jobs.push(job),
                    None => self.wait(job, Pause { is_lost: false, was_looked_at: false }),
                }
            }
            // Without room for its answers it is read again by the next process.
            if is_whole {
                list.remove();
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
        let Some((entry, due)) =
            entry.filter(|_| is_sent).and_then(|entry| Some((entry, self.due(entry, destination)?)))
        else {
            return job.into_iter().for_each(|job| schedule.remove(job));
        };
        let sender = sender_of(entry);
        match entry.is_held {
            true => schedule.hold(mail, destination, sender),
            false => schedule.insert(mail, destination, sender, due, entry.alarm(self.site.patience)),
        };
    }

    fn due(&self, entry: &Entry, destination: &str) -> Option<i64> {
        entry.due(destination, self.site.patience, seconds())
    }

    /// Where the clock was put back, all times are entered anew: they were reckoned by one that was ahead.
    fn follow_clock(&mut self) {
        let now = seconds();
        if std::mem::replace(&mut self.clock, now) <= now.saturating_add(CLOCK_SLACK) {
            return;
        }
        tracing::warn!("the clock was put back: the times of waiting mail are reckoned anew");
        self.next_uid = 0;
        self.debts.values_mut().for_each(|debt| debt.until = now);
        self.site.queue.schedule().wake_all();
    }

    /// Begins what is due; until when nothing else is.
    fn begin_due(&mut self) -> i64 {
        let now = seconds();
        self.pay(now);
        let soonest = self.debts.values().map(|debt| debt.until).min().unwrap_or(i64::MAX);
        if self.debts.len() >= DEBTS_MAX {
            return soonest.min(now.saturating_add(DEBT_PAUSE));
        }
        loop {
            let mut schedule = self.site.queue.schedule();
            let (job, is_alarm) = match schedule.next(seconds()) {
                Turn::Idle(until) => return until.min(soonest),
                Turn::Attempt(job) => (job, false),
                Turn::Alarm(job) => (job, true),
            };
            let (site, destination) = (self.site.clone(), schedule.destination(job).to_owned());
            drop(schedule);
            let gate = Arc::new(Gate::default());
            let work = if is_alarm { Work::Look(job) } else { Work::Attempt(job, gate.clone()) };
            let task = self.tasks.spawn(async move {
                match is_alarm {
                    true => attempt::look(&site, job.mail, &destination).await,
                    false => attempt::attempt(&site, job.mail, &destination, gate).await,
                }
            });
            self.work.insert(task.id(), work);
        }
    }

    /// A task has ended: the mail waits on, or is gone, or its outcome has still to be noted.
    fn settle(&mut self, ended: Result<(tokio::task::Id, Ended), tokio::task::JoinError>) {
        let (id, ended) = match ended {
            Ok((id, ended)) => (id, Some(ended)),
            Err(error) => (error.id(), None),
        };
        let Some(work) = self.work.remove(&id) else { return };
        let pause = Pause { is_lost: ended.is_none(), was_looked_at: matches!(work, Work::Look(_)) };
        let Ended { health, owed, left } = ended.unwrap_or(Ended { health: Health::Unknown, owed: None, left: None });
        self.left.extend(left);
        let (mail, jobs) = match work {
            Work::Attempt(job, _) | Work::Look(job) => {
                self.site.queue.schedule().done(job, health, seconds());
                (job.mail, vec![job])
            }
            Work::Debt(mail, jobs) => (mail, jobs),
        };
        match owed {
            Some(owed) => self.owe(mail, jobs, owed),
            None => jobs.into_iter().for_each(|job| self.wait(job, pause)),
        }
        let is_under_way = self.work.values().any(|work| work.mail() == mail);
        if let Some(debt) = self.debts.get_mut(&mail).filter(|debt| !debt.owed.is_refused && !is_under_way) {
            debt.until = 0;
        }
    }

    /// Puts a job of which no task works any more back into the index.
    fn wait(&self, job: Job, pause: Pause) {
        let entry = entry(&self.site.store.state(), job.mail);
        let mut schedule = self.site.queue.schedule();
        let destination = schedule.destination(job).to_owned();
        let due = entry.as_ref().and_then(|entry| self.due(entry, &destination));
        match (entry, due) {
            (Some(entry), Some(_)) if entry.is_held => _ = schedule.hold(job.mail, &destination, sender_of(&entry)),
            (Some(entry), Some(due)) => {
                let now = seconds();
                let later = |is_so: bool| if is_so { now.saturating_add(DEBT_PAUSE) } else { 0 };
                let due = due.max(later(pause.is_lost));
                let alarm = entry.alarm(self.site.patience);
                let alarm = alarm.max(later(pause.is_lost || pause.was_looked_at && alarm <= now));
                schedule.insert(job.mail, &destination, sender_of(&entry), due, alarm);
            }
            _ => schedule.remove(job),
        }
    }

    /// Outcomes are to be noted: those that found no room later, others at the end of what is under way of their mail.
    fn owe(&mut self, mail: u32, jobs: Vec<Job>, owed: Owed) {
        let wait = if owed.is_refused { DEBT_PAUSE } else { ROUND };
        let until = seconds().saturating_add(wait);
        match self.debts.get_mut(&mail) {
            Some(debt) => {
                debt.jobs.extend(jobs);
                debt.owed.events.extend(owed.events);
                debt.owed.is_refused |= owed.is_refused;
            }
            None => _ = self.debts.insert(mail, Debt { jobs, owed, until }),
        }
    }

    /// Ends what is under way: mails that a next hop may have already wait for its answer, others may be cut off.
    async fn finish(&mut self) {
        let gates = self.work.values().filter_map(Work::gate);
        gates.for_each(|gate| gate.close());
        let begun = Instant::now();
        let mut passed = begun;
        loop {
            self.debts.retain(|_, debt| !debt.owed.is_refused);
            self.pay(i64::MAX);
            let is_passed = self.work.values().filter_map(Work::gate).any(|gate| gate.is_passed());
            if is_passed {
                passed = Instant::now();
            }
            // An answer that has come is still to be noted.
            let is_late =
                if is_passed { begun.elapsed() >= self.site.queue.stop_wait() } else { passed.elapsed() >= GRACE };
            if self.tasks.is_empty() || is_late {
                return self.leave().await;
            }
            if let Ok(Some(ended)) = tokio::time::timeout(LOOK_EVERY, self.tasks.join_next_with_id()).await {
                self.settle(ended);
            }
        }
    }

    /// Leaves mails that a next hop may have already to a list, where another process takes over.
    async fn leave(&mut self) {
        let Some(leavings) = self.site.queue.leavings.clone().filter(Leavings::hands_over) else { return };
        let passed = |sender: &Sender<'_>| -> Vec<Arc<Gate>> {
            sender.work.values().filter_map(Work::gate).filter(|gate| gate.is_passed()).cloned().collect()
        };
        passed(self).iter().for_each(|gate| gate.leave());
        let begun = Instant::now();
        while !passed(self).is_empty() && begun.elapsed() < LEAVE_WAIT {
            if let Ok(Some(ended)) = tokio::time::timeout(LOOK_EVERY, self.tasks.join_next_with_id()).await {
                self.settle(ended);
            }
        }
        let left = std::mem::take(&mut self.left);
        if !left.is_empty()
            && let Err(error) = leavings.leave(left)
        {
            tracing::warn!(%error, "mails whose answer has not come yet are cut off");
        }
    }

    /// Notes what is owed by this time.
    fn pay(&mut self, now: i64) {
        let due: Vec<u32> = self.debts.iter().filter(|(_, debt)| debt.until <= now).map(|(mail, _)| *mail).collect();
        for mail in due {
            let Some(Debt { jobs, owed, .. }) = self.debts.remove(&mail) else { continue };
            let site = self.site.clone();
            let task = self.tasks.spawn(async move { outcome::settle(&site, mail, owed).await });
            self.work.insert(task.id(), Work::Debt(mail, jobs));
        }
    }
}

/// The sender by whom mails take turns.
fn sender_of(entry: &Entry) -> u32 {
    hash(if entry.account.is_empty() { &entry.from } else { &entry.account })
}
