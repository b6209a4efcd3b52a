//! When which mail is tried: an index of the mails that wait, by due time and by destination. It knows no clock and no mail.
//!
//! A [`Job`] is a mail and one destination of it. The host adds jobs, asks for the [`next`](Schedule::next) one and says what came of
//! it ([`done`](Schedule::done)):
//!
//! ```text
//!  insert ─► later ─ due ─► ready ─ next ─► under way ─ done ─► gone, or inserted again
//!               └─────────────┴── alarm ──► Turn::Alarm: the sender is told, or the mail is given up
//! ```
//!
//! - **Destinations.** Each has a window of connections: it begins small, grows by one for each window of successes, and is halved by
//!   a failure of the host (RFC 5681's idea). After a failure with a window of one the destination rests, twice as long each time;
//!   then one mail finds out. Mails for a destination that rests are not touched.
//! - **Fairness.** Destinations with ready jobs take turns, and within one its senders do: a list of a million does not stand before a
//!   mail of somebody else.
//! - **Alarms.** Each job has a time at which the host wants to look at it even if its destination rests. One that should have been tried
//!   before, to a destination that does not rest, is tried first: the server was stopped, or the clock has been put ahead.
//!
//! Bounds: memory is that of the jobs, less than [`JOB_BYTES_MAX`] each; each call works in the logarithm of their number.

use std::collections::{BTreeSet, HashMap, VecDeque};

pub use crate::relay::Health;

/// Bytes of a job at the most, with names of destinations and senders that many jobs share left out.
pub const JOB_BYTES_MAX: usize = 200;

/// A job that is due for so long without having been ready was not tried in its time, in seconds.
const MISSED: i64 = 60;

/// How long such a job may wait for an attempt when its alarm has come, in seconds.
const LAST_ATTEMPT_WAIT: i64 = 3_600;

/// A mail and one of its destinations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Job {
    /// The number of the mail.
    pub mail: u32,
    /// The number of the destination ([`Schedule::destination`]).
    pub destination: u32,
}

/// How many, and how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Jobs under way at a time.
    pub jobs_max: u32,
    /// The same to one destination.
    pub window_max: u32,
    /// The window of a destination that nothing is known of.
    pub window_first: u32,
    /// How long a destination rests after its first failure, in seconds; each rest is twice the one before.
    pub rest_first: i64,
    /// The longest rest.
    pub rest_longest: i64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { jobs_max: 100, window_max: 20, window_first: 2, rest_first: 60, rest_longest: 3_600 }
    }
}

/// The next thing that the host has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// To try to send it.
    Attempt(Job),
    /// To look at it: its alarm has come. It waits for [`Schedule::insert`] or [`Schedule::remove`].
    Alarm(Job),
    /// Nothing before this time; `i64::MAX` if nothing waits for a time.
    Idle(i64),
}

/// The mails that wait.
#[derive(Debug)]
pub struct Schedule {
    limits: Limits,
    jobs: HashMap<Job, Waiting>,
    /// Jobs by the time at which they are due, or of their alarm if they are ready.
    times: BTreeSet<(i64, Job)>,
    destinations: Vec<Destination>,
    names: HashMap<Box<str>, u32>,
    free: Vec<u32>,
    /// Destinations that may send now, in turn.
    turns: VecDeque<u32>,
    /// Destinations with ready jobs that rest, by the end of the rest.
    rests: BTreeSet<(i64, u32)>,
    under_way: u32,
    /// Jobs of each sender.
    senders: HashMap<u32, u32>,
}

#[derive(Debug, Clone, Copy)]
struct Waiting {
    due: i64,
    alarm: i64,
    sender: u32,
    /// It stands in the line of its sender.
    is_in_line: bool,
    at: At,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// It is due at this time.
    Later(i64),
    Ready,
    UnderWay,
    /// The host looks at it.
    Alarmed,
    /// Until it is inserted again.
    Held,
}

#[derive(Debug, Default)]
struct Destination {
    name: Box<str>,
    /// Jobs of it in any state.
    jobs: u32,
    under_way: u32,
    window: u32,
    successes: u32,
    /// Failures in a row.
    failures: u32,
    rests_until: i64,
    /// Why it took no mail at last.
    fault: Box<str>,
    /// Senders with ready jobs, in turn, and the line of each; jobs that are not ready any more are passed over.
    senders: VecDeque<u32>,
    lines: HashMap<u32, VecDeque<u32>>,
    is_listed: bool,
}

impl Schedule {
    /// A schedule without mails.
    pub fn new(limits: Limits) -> Schedule {
        Schedule {
            limits,
            jobs: HashMap::new(),
            times: BTreeSet::new(),
            destinations: Vec::new(),
            names: HashMap::new(),
            free: Vec::new(),
            turns: VecDeque::new(),
            rests: BTreeSet::new(),
            under_way: 0,
            senders: HashMap::new(),
        }
    }

    /// How many jobs a sender has.
    pub fn of_sender(&self, sender: u32) -> usize {
        self.senders.get(&sender).map_or(0, |&jobs| jobs as usize)
    }

    /// How many jobs there are.
    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Whether nothing is scheduled.
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// How many are under way.
    pub fn under_way(&self) -> u32 {
        self.under_way
    }

    /// How many destinations have jobs, and how many of them rest at this time.
    pub fn destinations(&self, now: i64) -> (usize, usize) {
        let resting = self.destinations.iter().filter(|one| one.jobs > 0 && one.rests_until > now).count();
        (self.names.len(), resting)
    }

    /// Adds a job, or sets its times anew: due, alarm, and whose turn it takes.
    pub fn insert(&mut self, mail: u32, destination: &str, sender: u32, due: i64, alarm: i64) -> Job {
        let job = Job { mail, destination: self.number(destination) };
        let is_in_line = self.take_out(job);
        self.place(job, Waiting { due, alarm, sender, is_in_line, at: At::Later(due.min(alarm)) });
        job
    }

    /// Adds a job that is neither tried nor looked at until it is inserted again.
    pub fn hold(&mut self, mail: u32, destination: &str, sender: u32) -> Job {
        let job = Job { mail, destination: self.number(destination) };
        let is_in_line = self.take_out(job);
        self.place(job, Waiting { due: 0, alarm: i64::MAX, sender, is_in_line, at: At::Held });
        job
    }

    /// Adds a job that another process works at: it is with the host until it is inserted again or removed.
    pub fn lend(&mut self, mail: u32, destination: &str, sender: u32) -> Job {
        let job = Job { mail, destination: self.number(destination) };
        let is_in_line = self.take_out(job);
        self.place(job, Waiting { due: 0, alarm: i64::MAX, sender, is_in_line, at: At::Alarmed });
        job
    }

    /// A job is gone, in whatever state it is.
    pub fn remove(&mut self, job: Job) {
        self.take_out(job);
        let Some(destination) = self.destinations.get_mut(job.destination as usize) else { return };
        if destination.jobs > 0 || destination.name.is_empty() {
            return;
        }
        self.rests.remove(&(destination.rests_until, job.destination));
        self.names.remove(&destination.name);
        let is_listed = destination.is_listed;
        *destination = Destination { is_listed, ..Destination::default() };
        if !is_listed {
            self.free.push(job.destination);
        }
    }

    /// The job of a mail for a destination.
    pub fn job(&self, mail: u32, destination: &str) -> Option<Job> {
        let job = Job { mail, destination: *self.names.get(destination)? };
        self.jobs.contains_key(&job).then_some(job)
    }

    /// The name of a destination.
    pub fn destination(&self, job: Job) -> &str {
        self.destinations.get(job.destination as usize).map_or("", |destination| &destination.name)
    }

    /// Whether a job is with the host: under way, or alarmed.
    pub fn is_busy(&self, job: Job) -> bool {
        self.jobs.get(&job).is_some_and(|waiting| matches!(waiting.at, At::UnderWay | At::Alarmed))
    }

    /// Until when a destination rests; 0 if it does not.
    pub fn rests_until(&self, destination: &str) -> i64 {
        self.names.get(destination).and_then(|&at| self.destinations.get(at as usize)).map_or(0, |one| one.rests_until)
    }

    /// Why a destination rests, as it was told last; nothing if it does not.
    pub fn fault(&self, destination: &str) -> String {
        let one = self.names.get(destination).and_then(|&at| self.destinations.get(at as usize));
        one.filter(|one| one.failures > 0).map_or_else(String::new, |one| one.fault.to_string())
    }

    /// Tells why a destination takes no mail.
    pub fn tell(&mut self, destination: &str, fault: String) {
        let one = self.names.get(destination).and_then(|&at| self.destinations.get_mut(at as usize));
        one.into_iter().for_each(|one| one.fault = fault.as_str().into());
    }

    /// A destination rests no longer, whatever it did.
    pub fn wake(&mut self, destination: &str) {
        let Some(&number) = self.names.get(destination) else { return };
        let Some(one) = self.destinations.get_mut(number as usize) else { return };
        self.rests.remove(&(one.rests_until, number));
        (one.rests_until, one.failures) = (0, 0);
        one.window = one.window.max(1);
        self.list(number);
    }

    /// No destination rests any longer.
    pub fn wake_all(&mut self) {
        let names: Vec<Box<str>> = self.names.keys().cloned().collect();
        names.iter().for_each(|name| self.wake(name));
    }

    /// The next thing to do at this time.
    pub fn next(&mut self, now: i64) -> Turn {
        if let Some(job) = self.ripen(now) {
            return Turn::Alarm(job);
        }
        while let Some(&(until, number)) = self.rests.first()
            && until <= now
        {
            self.rests.remove(&(until, number));
            self.list(number);
        }
        while self.under_way < self.limits.jobs_max
            && let Some(number) = self.turns.pop_front()
        {
            if let Some(job) = self.turn(number, now) {
                return Turn::Attempt(job);
            }
        }
        let time = self.times.first().map_or(i64::MAX, |&(time, _)| time);
        let rest = self.rests.first().map_or(i64::MAX, |&(until, _)| until);
        Turn::Idle(if self.under_way < self.limits.jobs_max { time.min(rest) } else { time })
    }

    /// An attempt has ended: what it says of the destination. The job stays with the host until it is inserted again or removed.
    pub fn done(&mut self, job: Job, health: Health, now: i64) {
        let Some(waiting) = self.jobs.get_mut(&job).filter(|waiting| waiting.at == At::UnderWay) else { return };
        waiting.at = At::Alarmed;
        self.under_way = self.under_way.saturating_sub(1);
        let limits = self.limits;
        let Some(destination) = self.destinations.get_mut(job.destination as usize) else { return };
        destination.under_way = destination.under_way.saturating_sub(1);
        destination.learn(health, now, &limits);
        self.list(job.destination);
    }

    /// Makes ready what is due; returns a job whose alarm has come.
    fn ripen(&mut self, now: i64) -> Option<Job> {
        while let Some(&(time, job)) = self.times.first()
            && time <= now
        {
            self.times.remove(&(time, job));
            let Some(waiting) = self.jobs.get_mut(&job) else { continue };
            let rests_until = self.destinations.get(job.destination as usize).map_or(0, |one| one.rests_until);
            let is_missed = waiting.at != At::Ready && waiting.due.saturating_add(MISSED) <= now;
            if waiting.alarm <= now && is_missed && rests_until <= now {
                waiting.alarm = now.saturating_add(LAST_ATTEMPT_WAIT);
            }
            if waiting.alarm <= now {
                waiting.at = At::Alarmed;
                return Some(job);
            }
            waiting.at = At::Ready;
            let (sender, alarm) = (waiting.sender, waiting.alarm);
            self.times.insert((alarm, job));
            let is_in_line = std::mem::replace(&mut waiting.is_in_line, true);
            if let Some(destination) = self.destinations.get_mut(job.destination as usize).filter(|_| !is_in_line) {
                destination.add(sender, job.mail);
            }
            self.list(job.destination);
        }
        None
    }

    /// The next job of a destination whose turn it is.
    fn turn(&mut self, number: u32, now: i64) -> Option<Job> {
        let destination = self.destinations.get_mut(number as usize)?;
        destination.is_listed = false;
        if destination.name.is_empty() {
            self.free.push(number);
            return None;
        }
        if destination.rests_until > now {
            self.rests.insert((destination.rests_until, number));
            return None;
        }
        if destination.under_way >= destination.window.min(self.limits.window_max).max(1) {
            return None;
        }
        let jobs = &mut self.jobs;
        let is_ready = |mail| {
            let waiting = jobs.get_mut(&Job { mail, destination: number });
            waiting.is_some_and(|waiting| {
                waiting.is_in_line = false;
                waiting.at == At::Ready
            })
        };
        let mail = destination.pop(is_ready)?;
        let job = Job { mail, destination: number };
        destination.under_way += 1;
        self.under_way += 1;
        let waiting = self.jobs.get_mut(&job)?;
        waiting.at = At::UnderWay;
        self.times.remove(&(waiting.alarm, job));
        self.list(number);
        Some(job)
    }

    /// Puts a destination among those whose turn comes.
    fn list(&mut self, number: u32) {
        let Some(destination) = self.destinations.get_mut(number as usize) else { return };
        if !destination.is_listed && !destination.senders.is_empty() {
            destination.is_listed = true;
            self.turns.push_back(number);
        }
    }

    fn place(&mut self, job: Job, waiting: Waiting) {
        if let At::Later(due) = waiting.at {
            self.times.insert((due, job));
        }
        self.jobs.insert(job, waiting);
        *self.senders.entry(waiting.sender).or_default() += 1;
        if let Some(destination) = self.destinations.get_mut(job.destination as usize) {
            destination.jobs += 1;
        }
    }

    /// Takes a job out of all but the line of its sender; whether it stands there.
    fn take_out(&mut self, job: Job) -> bool {
        let Some(waiting) = self.jobs.remove(&job) else { return false };
        match self.senders.get_mut(&waiting.sender) {
            Some(jobs) if *jobs > 1 => *jobs -= 1,
            _ => _ = self.senders.remove(&waiting.sender),
        }
        let Some(destination) = self.destinations.get_mut(job.destination as usize) else { return false };
        destination.jobs = destination.jobs.saturating_sub(1);
        match waiting.at {
            At::Later(due) => _ = self.times.remove(&(due, job)),
            At::Ready => _ = self.times.remove(&(waiting.alarm, job)),
            At::UnderWay => {
                destination.under_way = destination.under_way.saturating_sub(1);
                self.under_way = self.under_way.saturating_sub(1);
                self.list(job.destination);
            }
            At::Alarmed | At::Held => {}
        }
        waiting.is_in_line
    }

    fn number(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.names.get(name) {
            return number;
        }
        let destination = Destination { name: name.into(), window: self.limits.window_first, ..Destination::default() };
        let number = match self.free.pop() {
            Some(number) => {
                if let Some(place) = self.destinations.get_mut(number as usize) {
                    *place = destination;
                }
                number
            }
            None => {
                self.destinations.push(destination);
                u32::try_from(self.destinations.len().saturating_sub(1)).unwrap_or(u32::MAX)
            }
        };
        self.names.insert(name.into(), number);
        number
    }
}

impl Destination {
    /// A job is ready.
    fn add(&mut self, sender: u32, mail: u32) {
        let line = self.lines.entry(sender).or_default();
        if line.is_empty() {
            self.senders.push_back(sender);
        }
        line.push_back(mail);
    }

    /// The next mail that is ready; its sender goes to the end of the line.
    fn pop(&mut self, mut is_ready: impl FnMut(u32) -> bool) -> Option<u32> {
        while let Some(sender) = self.senders.pop_front() {
            let Some(line) = self.lines.get_mut(&sender) else { continue };
            let mail = std::iter::from_fn(|| line.pop_front()).find(|&mail| is_ready(mail));
            match line.is_empty() {
                true => _ = self.lines.remove(&sender),
                false => self.senders.push_back(sender),
            }
            if mail.is_some() {
                return mail;
            }
        }
        None
    }

    fn learn(&mut self, health: Health, now: i64, limits: &Limits) {
        match health {
            Health::Unknown => {}
            // Attempts that were under way when it began to rest say nothing new.
            Health::Ill if self.rests_until > now => {}
            Health::Well => {
                (self.failures, self.rests_until) = (0, 0);
                self.successes += 1;
                if self.successes >= self.window {
                    self.window = self.window.saturating_add(1).min(limits.window_max);
                    self.successes = 0;
                }
            }
            Health::Ill => {
                self.successes = 0;
                if self.window > 1 {
                    self.window /= 2;
                    return;
                }
                let doublings = self.failures.min(20);
                let rest = limits.rest_first.saturating_mul(1 << doublings).min(limits.rest_longest);
                self.failures = self.failures.saturating_add(1);
                self.rests_until = now.saturating_add(rest);
            }
        }
    }
}

#[cfg(test)]
mod tests;
