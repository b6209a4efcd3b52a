//! Actions of operators on mails that wait: they are selected, tried now, held, released, taken out, or sent back.

use std::collections::BTreeSet;

use store::{Error, State, Transaction};

use super::{attempt, sender_of};
use crate::file::File;
use crate::outbox::{self, Entry, Recipient, note};
use crate::site::{Site, seconds};

/// Mails that are changed in one transaction.
const BATCH: usize = 500;

/// A choice of mails: all tests have to hold. Without any, all mails are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// One of these numbers; none is any.
    pub mails: Vec<u32>,
    /// The sender, or the account; `<>` is the null sender.
    pub sender: Option<String>,
    /// A recipient.
    pub recipient: Option<String>,
    /// The domain of a recipient.
    pub domain: Option<String>,
    /// It waits for so many seconds at least.
    pub age_seconds: i64,
    /// Stands in the reason why a recipient was not taken.
    pub reason: Option<String>,
    /// Whether it is held.
    pub is_held: Option<bool>,
}

/// An action of an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Tried now; destinations rest no longer.
    Retry,
    /// Not tried until it is released.
    Hold,
    /// Tried again.
    Release,
    /// Taken out; nobody is told.
    Delete,
    /// Given up now: the sender is told.
    Bounce,
}

impl Filter {
    /// Whether a mail is meant.
    fn is_meant(&self, mail: u32, entry: &Entry, now: i64) -> bool {
        let is_sender = |sender: &String| match sender.as_str() {
            "<>" => entry.from.is_empty(),
            sender => entry.from.eq_ignore_ascii_case(sender) || entry.account == sender,
        };
        (self.mails.is_empty() || self.mails.contains(&mail))
            && self.sender.as_ref().is_none_or(is_sender)
            && (self.age_seconds <= 0 || now.saturating_sub(entry.since) >= self.age_seconds)
            && self.is_held.is_none_or(|is_held| is_held == entry.is_held)
            && entry.recipients.iter().any(|recipient| self.is_recipient(recipient))
    }

    /// Whether a recipient of a mail is meant.
    fn is_recipient(&self, recipient: &Recipient) -> bool {
        let is_domain = |domain: &String| recipient.destination().eq_ignore_ascii_case(domain);
        self.recipient.as_ref().is_none_or(|address| recipient.to.eq_ignore_ascii_case(address))
            && self.domain.as_ref().is_none_or(is_domain)
            && self.reason.as_ref().is_none_or(|reason| recipient.why.contains(reason.as_str()))
    }
}

/// The mails that are meant.
pub fn select(state: &State, filter: &Filter) -> Vec<(u32, Entry)> {
    meant(state, filter, 0).collect()
}

/// Some of the mails that are meant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// By number.
    pub mails: Vec<(u32, Entry)>,
    /// The number behind which the next page begins; none if this is the last one.
    pub next: Option<u32>,
}

/// Up to so many of the mails that are meant, with numbers above `after`.
pub fn page(state: &State, filter: &Filter, after: u32, most: usize) -> Page {
    let mut page = Page::default();
    for (mail, entry) in meant(state, filter, after) {
        if page.mails.len() >= most {
            page.next = page.mails.last().map(|(mail, _)| *mail);
            break;
        }
        page.mails.push((mail, entry));
    }
    page
}

/// How many mails are meant.
pub fn count(state: &State, filter: &Filter) -> usize {
    meant(state, filter, 0).count()
}

fn meant<'a>(state: &'a State, filter: &'a Filter, after: u32) -> impl Iterator<Item = (u32, Entry)> + 'a {
    let (now, mailbox) = (seconds(), outbox::place(state).map(|(_, mailbox)| mailbox));
    let mails = mailbox.into_iter().flat_map(move |mailbox| {
        let of = move |(mail, _)| Some((mail, Entry::decode(mailbox.note(mail)?)?));
        mailbox.from(after.saturating_add(1)).filter_map(of)
    });
    mails.filter(move |(mail, entry)| filter.is_meant(*mail, entry, now))
}

/// All that wait are tried now; how many.
///
/// # Errors
/// When it cannot be noted.
pub async fn retry(site: &Site) -> Result<usize, Error> {
    Ok(act(site, &Filter::default(), Action::Retry).await?.mails)
}

/// The mails that an action was for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Acted {
    /// How many those are.
    pub mails: usize,
    /// How many of them are being sent: what was done to them holds if the attempt does not send them.
    pub under_way: usize,
}

/// Does something with the mails that are meant. Of a mail, recipients that are not meant are left alone, except that it is held and
/// released as a whole. One that is to be sent later is tried only where its number is named. An attempt that is under way ends, unless
/// the next hop may have the mail already.
///
/// # Errors
/// When it cannot be noted.
pub async fn act(site: &Site, filter: &Filter, action: Action) -> Result<Acted, Error> {
    let now = seconds();
    let mut all = select(&site.store.state(), filter);
    all.retain(|(_, entry)| action != Action::Retry || !is_left(entry, filter, now));
    let is_busy = |mail: u32, one: &Recipient| filter.is_recipient(one) && is_under_way(site, mail, one.destination());
    let is_sent = |(mail, entry): &&(u32, Entry)| entry.recipients.iter().any(|one| is_busy(*mail, one));
    let under_way = all.iter().filter(is_sent).count();
    if action == Action::Bounce {
        for (mail, entry) in &all {
            bounce(site, filter, *mail, entry).await?;
        }
    }
    for batch in all.chunks(BATCH).filter(|_| action != Action::Bounce) {
        let mails: Vec<u32> = batch.iter().map(|(mail, _)| *mail).collect();
        let filter = filter.clone();
        let work = move |transaction: &mut Transaction<'_, File>| {
            mails.iter().try_for_each(|&mail| change(transaction, mail, &filter, action))
        };
        site.store.transact(work).await?;
    }
    let mut destinations = BTreeSet::new();
    for (mail, entry) in &all {
        let of_mail: Vec<String> = entry.destinations().into_iter().map(str::to_owned).collect();
        destinations.extend(of_mail.iter().cloned());
        site.queue.change(*mail, of_mail);
    }
    if action == Action::Retry {
        let mut schedule = site.queue.schedule();
        destinations.iter().for_each(|destination| schedule.wake(destination));
    }
    site.queue.wake.wake();
    Ok(Acted { mails: all.len(), under_way })
}

/// Gives up recipients of a mail; those that are being sent if that does not succeed.
async fn bounce(site: &Site, filter: &Filter, mail: u32, entry: &Entry) -> Result<(), Error> {
    let meant = || entry.recipients.iter().filter(|one| filter.is_recipient(one));
    let (mut busy, mut lent) = (BTreeSet::new(), BTreeSet::new());
    {
        let mut schedule = site.queue.schedule();
        for destination in meant().map(Recipient::destination) {
            let is_new = !busy.contains(destination) && !lent.contains(destination);
            let is_busy = || schedule.job(mail, destination).is_some_and(|job| schedule.is_busy(job));
            match is_new.then(is_busy) {
                Some(true) => _ = busy.insert(destination.to_owned()),
                // Nobody begins to send it meanwhile.
                Some(false) => {
                    schedule.lend(mail, destination, sender_of(entry));
                    lent.insert(destination.to_owned());
                }
                None => {}
            }
        }
    }
    let is_idle = |one: &Recipient| filter.is_recipient(one) && lent.contains(one.destination());
    let mut outcome = attempt::give_up(site, mail, entry, is_idle).await;
    let is_busy = {
        let (filter, busy) = (filter.clone(), busy.clone());
        move |one: &Recipient| filter.is_recipient(one) && busy.contains(one.destination())
    };
    if outcome.is_ok() && !busy.is_empty() {
        let work = move |transaction: &mut Transaction<'_, File>| {
            let Some(mut entry) = outbox::entry(transaction.state(), mail) else { return Ok(()) };
            entry.recipients.iter_mut().filter(|one| is_busy(one)).for_each(|one| one.is_given_up = true);
            note(transaction, mail, &entry)
        };
        outcome = site.store.transact(work).await;
    }
    let mut schedule = site.queue.schedule();
    for destination in &lent {
        if let Some(job) = schedule.job(mail, destination) {
            schedule.remove(job);
        }
    }
    drop(schedule);
    // What still waits of it is entered anew.
    site.queue.change(mail, meant().map(|one| one.destination().to_owned()).collect());
    outcome
}

/// Whether a mail is being sent to a destination, here or by a process before this one.
pub fn is_under_way(site: &Site, mail: u32, destination: &str) -> bool {
    let schedule = site.queue.schedule();
    schedule.job(mail, destination).is_some_and(|job| schedule.is_busy(job))
}

/// Whether a mail that is sent later is left alone.
fn is_left(entry: &Entry, filter: &Filter, now: i64) -> bool {
    entry.is_sent_later(now) && filter.mails.is_empty()
}

/// Until when a destination rests; 0 if it does not.
pub fn rests_until(site: &Site, destination: &str) -> i64 {
    site.queue.schedule().rests_until(destination)
}

fn change(transaction: &mut Transaction<'_, File>, mail: u32, filter: &Filter, action: Action) -> Result<(), Error> {
    let Some(mut entry) = outbox::entry(transaction.state(), mail) else { return Ok(()) };
    let now = seconds();
    let meant = |recipient: &Recipient| filter.is_recipient(recipient);
    match action {
        Action::Hold => entry.is_held = true,
        Action::Release => entry.is_held = false,
        Action::Delete => entry.recipients.retain(|recipient| !meant(recipient)),
        // A mail that is sent later is sent earlier only where it is named.
        Action::Retry if is_left(&entry, filter, now) => return Ok(()),
        Action::Retry => entry.recipients.iter_mut().filter(|one| meant(one)).for_each(|one| one.due = now),
        Action::Bounce => {}
    }
    note(transaction, mail, &entry)
}
