//! A mail that has come in whole, on its way into mailboxes: scripts are run, what they say is done, and each recipient has an
//! outcome.
//!
//! ```text
//!   no script ─────────────────────────────► one transaction with the mail
//!   a script ─► sealed ─► read, run ─► one transaction: places, what goes out, and who was answered
//! ```
//!
//! What a script redirects waits in the store for the relay from that transaction on, as answers do. A refusal has to be the
//! answer to all that were asked for as one; else the mail is kept in the INBOX of those who refuse it.

mod outgoing;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use keep::header::end_of_header;
use keep::name::{MAILBOXES_MAX, is_name};
use sieve::{Mail, Program};
use store::{Arrival, Error, Refused, Sealed, SpecialUse, State, Transaction};

use crate::accounts::Recipient;
use crate::feedback::Feedback;
use crate::file::File;
use crate::filter::{self, Case, LOOKED_AT_BYTES_MAX, Placement, Plan, Said, Target};
use crate::learner::JUNK;
use crate::outbox::{Entry, mark_delivered, suppress};
use crate::remembered::{ANSWERED, Remembered, SEEN};
use crate::site::{Site, ensure, seconds};
use crate::writer::Incoming;
use outgoing::Leaving;

/// Why an address gets no more mail that has reported some.
const REPORTED: &str = "it has reported a mail";

/// Bytes of a mail that are copied at a time.
const PIECE_BYTES: usize = 64 << 10;

/// A mail that has come in.
pub(crate) struct Arrived {
    /// The sender of the envelope, without angle brackets; empty for the null sender.
    pub from: String,
    /// Addresses, and whose they are.
    pub recipients: Vec<(String, Vec<Recipient>)>,
    pub incoming: Incoming,
    pub digest: Vec<u8>,
    /// The header, or the beginning of a long one.
    pub header: Vec<u8>,
    /// Bytes of the field `Return-Path`, which it begins with.
    pub return_path_bytes: u64,
    /// All recipients have one answer.
    pub is_one: bool,
    /// It comes from a gateway that has looked for viruses.
    pub is_inspected: bool,
    /// `REQUIRETLS` was asked for, and is for what a script sends on.
    pub require_tls: bool,
    /// Recipients elsewhere, who wait in the queue from the transaction on in which accounts get it.
    pub relayed: Option<Entry>,
    /// The mail of the queue that it is: that it has been delivered is noted in the same transaction.
    pub queued: Option<u32>,
}

/// Why a recipient does not get a mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Undelivered {
    /// A script refuses it, and says why.
    Rejected(String),
    Failed(Error),
}

/// Outcome for one address.
pub(crate) type Outcome = Result<(), Undelivered>;

/// Outcomes for all addresses of a mail.
pub(crate) struct Outcomes {
    /// For each address, or one for all.
    pub all: Vec<Outcome>,
    /// The mailboxes that have it, for each address: for the log.
    pub filed: Vec<Vec<String>>,
}

/// Plans of the accounts of each address.
type Plans = Vec<Vec<Plan>>;
/// Scripts of each account of each address, in the order in which they run.
type Programs = Vec<Vec<Vec<Arc<Program>>>>;

/// Delivers a mail.
pub(crate) async fn deliver(site: &Site, mail: Arrived) -> Result<Outcomes, Error> {
    let (began, numbers) = (Instant::now(), &site.numbers);
    let outcomes = delivered(site, mail).await;
    numbers.took(began.elapsed());
    let errors = outcomes.iter().flat_map(|outcomes| &outcomes.all).filter_map(|outcome| match outcome {
        Err(Undelivered::Failed(error)) => Some(error),
        _ => None,
    });
    for error in errors.chain(outcomes.as_ref().err()) {
        match error {
            Error::Refused(Refused::OverQuota) => numbers.over_quota.fetch_add(1, Relaxed),
            Error::Full => numbers.full.fetch_add(1, Relaxed),
            _ => 0,
        };
    }
    let is_delivered = outcomes.as_ref().is_ok_and(|outcomes| outcomes.all.iter().all(Result::is_ok));
    if is_delivered { &numbers.delivered } else { &numbers.undelivered }.fetch_add(1, Relaxed);
    outcomes
}

async fn delivered(site: &Site, mail: Arrived) -> Result<Outcomes, Error> {
    let said = Said::of(&mail.header, mail.is_inspected);
    let state = site.store.state();
    let program = |recipient: &Recipient| {
        let number = state.account_named(recipient.account.name.as_bytes()).map(|(number, _)| number);
        site.scripts.around(number.and_then(|number| site.compiled.active(&site.scripts, &state, number)))
    };
    let programs: Programs =
        mail.recipients.iter().map(|(_, accounts)| accounts.iter().map(program).collect()).collect();
    let Arrived { incoming, digest, recipients, is_one, relayed, queued, .. } = mail;
    let is_feedback = |feedback: &&Feedback| mail.is_inspected && recipients.iter().any(|(to, _)| feedback.is_at(to));
    let feedback = site.feedback.as_ref().filter(is_feedback);
    if feedback.is_none() && programs.iter().flatten().all(Vec::is_empty) {
        let usual = Plan::keep(if said.is_spam && site.junk { Target::Junk } else { Target::Usual });
        let plans: Plans = recipients.iter().map(|(_, accounts)| vec![usual.clone(); accounts.len()]).collect();
        let work = move |transaction: &mut Transaction<'_, File>, sealed: &Sealed| {
            let mut delivery = Delivery::new(transaction, sealed, &[], is_one);
            delivery.leaving.relayed = relayed;
            delivery.queued = queued;
            delivery.all(&recipients, &plans)
        };
        return Ok(woken(site, incoming.finish(digest, work).await?));
    }
    let whole = incoming.seal(digest).await?;
    let sealed = whole.sealed.clone();
    let head = site.store.read_sealed(&sealed, 0, LOOKED_AT_BYTES_MAX).await?;
    let reported = feedback.map(|feedback| feedback.reported(&head)).unwrap_or_default();
    site.queue.counts.reported.fetch_add(reported.len() as u64, Relaxed);
    let (from, size, hostname, junk) = (mail.from.clone(), sealed.size(), site.hostname.clone(), site.junk);
    let filtering = Arc::new(Filtering { said, state, from, head, size, hostname, junk, now: seconds() });
    let mut plans = filtering.run(site, &recipients, programs).await?;
    refuse_together(&mut plans, is_one, relayed.is_some());
    let leaving = Leaving {
        from: mail.from,
        return_path_bytes: mail.return_path_bytes,
        is_spam: said.is_spam,
        require_tls: mail.require_tls,
        has_relay: site.relay.is_some(),
        answers: outgoing::answers(site, &plans).await?,
        relayed,
        ..Leaving::default()
    };
    let edited = edited(site, &plans, &filtering.head, &sealed).await?;
    let work = move |transaction: &mut Transaction<'_, File>| {
        let mut delivery = Delivery::new(transaction, &sealed, &edited, is_one);
        (delivery.leaving, delivery.queued) = (leaving, queued);
        let outcomes = delivery.all(&recipients, &plans)?;
        for address in &reported {
            tracing::info!(address, "a recipient has reported a mail, and gets no more");
            suppress(transaction, address, REPORTED, seconds())?;
        }
        Ok(outcomes)
    };
    Ok(woken(site, site.store.transact(work).await?))
}

/// Wakes the queue if something waits there.
fn woken(site: &Site, (outcomes, is_queued): (Outcomes, bool)) -> Outcomes {
    if is_queued {
        site.queue.wake.wake();
    }
    outcomes
}

/// The mail that scripts are run on, and what they know of it.
struct Filtering {
    said: Said,
    state: State,
    from: String,
    head: Vec<u8>,
    size: u64,
    hostname: String,
    junk: bool,
    now: i64,
}

impl Filtering {
    /// Runs the scripts of all recipients.
    async fn run(
        self: &Arc<Self>,
        site: &Site,
        recipients: &[(String, Vec<Recipient>)],
        programs: Programs,
    ) -> Result<Plans, Error> {
        let mut plans = Plans::new();
        for ((to, accounts), programs) in recipients.iter().zip(programs) {
            let mut planned = Vec::new();
            for (recipient, programs) in accounts.iter().zip(programs) {
                planned.push(self.plan(site, to, recipient, programs).await?);
            }
            plans.push(planned);
        }
        Ok(plans)
    }

    /// Runs the scripts of one account in its turn: those of one run one after the other, and keep nobody else waiting.
    async fn plan(
        self: &Arc<Self>,
        site: &Site,
        to: &str,
        recipient: &Recipient,
        programs: Vec<Arc<Program>>,
    ) -> Result<Plan, Error> {
        if programs.is_empty() {
            return Ok(Plan::keep(if self.said.is_spam && self.junk { Target::Junk } else { Target::Usual }));
        }
        let _turn = site.filters.turn(recipient.account.name.clone()).await;
        let (filtering, to, recipient) = (self.clone(), to.to_owned(), recipient.clone());
        let run = move || {
            let Filtering { said, state, from, head, size, hostname, junk, now } = &*filtering;
            let number = state.account_named(recipient.account.name.as_bytes()).map_or(0, |(number, _)| number);
            let (said, junk, now) = (*said, *junk, *now);
            let (programs, to, recipient) = (&*programs, &*to, &recipient);
            Case { programs, from, to, recipient, number, said, junk, state, hostname, now }
                .plan(&Mail::new(head, *size))
        };
        tokio::task::spawn_blocking(run).await.map_err(|_| Error::Failed)
    }
}

/// Keeps a rejected mail for accounts whose reply is shared with recipients who take it: other accounts, and those elsewhere.
fn refuse_together(plans: &mut Plans, is_one: bool, is_relayed: bool) {
    let is_refused = |plans: &[Plan]| plans.iter().all(|plan| plan.reject.is_some());
    let all = !is_relayed && plans.iter().all(|plans| is_refused(plans));
    for plans in plans.iter_mut().filter(|plans| if is_one { !all } else { !is_refused(plans) }) {
        for plan in plans.iter_mut().filter(|plan| plan.reject.is_some()) {
            *plan = Plan::keep(Target::Inbox);
        }
    }
}

/// The mails with other headers that scripts have made.
async fn edited(site: &Site, plans: &Plans, head: &[u8], sealed: &Sealed) -> Result<Vec<(Arc<[u8]>, Sealed)>, Error> {
    let mut edited: Vec<(Arc<[u8]>, Sealed)> = Vec::new();
    let places = plans.iter().flatten().flat_map(|plan| &plan.places);
    for header in places.filter_map(|place| place.header.as_ref()) {
        let Some(body) = end_of_header(head, 0) else { continue };
        if edited.iter().any(|(known, _)| known == header) {
            continue;
        }
        let (mut incoming, mut digest) = (site.store.incoming(), crate::digest::Digest::default());
        digest.read(header);
        incoming.write(header).await?;
        let mut at = body as u64;
        while at < sealed.size() {
            let piece = site.store.read_sealed(sealed, at, PIECE_BYTES).await?;
            digest.read(&piece);
            incoming.write(&piece).await?;
            at += piece.len().max(1) as u64;
        }
        edited.push((header.clone(), incoming.seal(digest.finish()).await?.sealed));
    }
    Ok(edited)
}

/// A mail on its way into mailboxes.
struct Delivery<'a, 'b> {
    transaction: &'a mut Transaction<'b, File>,
    sealed: &'a Sealed,
    edited: &'a [(Arc<[u8]>, Sealed)],
    is_one: bool,
    leaving: Leaving,
    queued: Option<u32>,
    now: i64,
    /// By mailbox and message.
    outcomes: BTreeMap<(u32, u64), Result<(), Error>>,
    /// The mailboxes that the address has it in.
    filed: Vec<String>,
}

impl<'a, 'b> Delivery<'a, 'b> {
    fn new(
        transaction: &'a mut Transaction<'b, File>,
        sealed: &'a Sealed,
        edited: &'a [(Arc<[u8]>, Sealed)],
        is_one: bool,
    ) -> Self {
        let (leaving, outcomes, filed) = (Leaving::default(), BTreeMap::new(), Vec::new());
        Delivery { transaction, sealed, edited, is_one, leaving, queued: None, now: seconds(), outcomes, filed }
    }

    /// To all addresses, and whether something waits that goes out. What fails as a whole is returned outside.
    fn all(mut self, recipients: &[(String, Vec<Recipient>)], plans: &Plans) -> Result<(Outcomes, bool), Error> {
        let mut outcomes = Outcomes { all: Vec::new(), filed: Vec::new() };
        for ((address, accounts), plans) in recipients.iter().zip(plans) {
            let outcome = self.to(address, accounts, plans)?;
            match outcome {
                // Of one answer for all: what fails takes all of it back.
                Err(Undelivered::Failed(error)) if self.is_one => return Err(error),
                outcome => {
                    if let Some(mail) = self.queued.filter(|_| outcome.is_ok()) {
                        mark_delivered(self.transaction, mail, address)?;
                    }
                    outcomes.all.push(outcome);
                }
            }
            outcomes.filed.push(std::mem::take(&mut self.filed));
        }
        self.leaving.relay(self.transaction, self.sealed)?;
        if self.is_one {
            outcomes.all.truncate(1);
        }
        Ok((outcomes, self.leaving.is_queued))
    }

    /// To all accounts of one address: well if it came to one of them.
    fn to(&mut self, address: &str, recipients: &[Recipient], plans: &[Plan]) -> Result<Outcome, Error> {
        let mut outcome = Err(Undelivered::Failed(Refused::NoSuchAccount.into()));
        for (recipient, plan) in recipients.iter().zip(plans) {
            if let Some(reason) = &plan.reject {
                outcome = outcome.or(Err(Undelivered::Rejected(reason.clone())));
                continue;
            }
            let account = ensure(self.transaction, &recipient.account)?;
            let goes = self.leaving.redirect(self.transaction, self.sealed, address, recipient, plan);
            let kept = (!goes && plan.places.is_empty()).then(|| Plan::keep(Target::Inbox));
            let mut one = Ok(());
            for (at, place) in kept.as_ref().unwrap_or(plan).places.iter().enumerate() {
                let placed = self.place(account, recipient, place)?;
                one = if at == 0 { placed } else { one.or(placed) };
            }
            match one {
                Ok(()) => {
                    outcome = Ok(());
                    self.remember(account, plan)?;
                    self.answer(account, plan)?;
                }
                Err(error) => {
                    tracing::warn!(account = recipient.account.name, %error, "not delivered");
                    outcome = outcome.or(Err(Undelivered::Failed(error)));
                }
            }
        }
        Ok(outcome)
    }

    fn place(&mut self, account: u32, recipient: &Recipient, place: &Placement) -> Result<Result<(), Error>, Error> {
        let mailbox = self.mailbox(account, recipient, &place.target)?;
        let edited = place.header.as_ref();
        let edited = edited.and_then(|header| self.edited.iter().find(|(known, _)| known == header));
        let sealed = edited.map_or(self.sealed, |(_, sealed)| sealed);
        if let Some(before) = self.outcomes.get(&(mailbox, sealed.number())) {
            let before = before.clone();
            self.note(mailbox, before.is_ok());
            return Ok(before);
        }
        let keywords: Vec<&str> = place.keywords.iter().map(String::as_str).collect();
        let arrival = Arrival { flags: place.flags, keywords: &keywords, date: self.now, now: self.now };
        let outcome = match self.transaction.deliver(sealed, mailbox, &arrival) {
            // A mail counts for more than its keywords.
            Err(Error::Refused(Refused::TooManyKeywords)) => {
                self.transaction.deliver(sealed, mailbox, &Arrival { keywords: &[], ..arrival })
            }
            outcome => outcome,
        };
        let outcome = outcome.map(drop);
        self.note(mailbox, outcome.is_ok());
        self.outcomes.insert((mailbox, sealed.number()), outcome.clone());
        Ok(outcome)
    }

    /// Notes for the log where the mail is.
    fn note(&mut self, mailbox: u32, is_there: bool) {
        let name = self.transaction.state().mailbox(mailbox).filter(|_| is_there);
        let name = name.map(|mailbox| String::from_utf8_lossy(&mailbox.name).into_owned());
        self.filed.extend(name.filter(|name| !self.filed.contains(name)));
    }

    fn mailbox(&mut self, account: u32, recipient: &Recipient, target: &Target) -> Result<u32, Error> {
        let state = self.transaction.state();
        let inbox = filter::named(state, account, "INBOX").ok_or(Refused::NoSuchMailbox)?;
        let found = match target {
            Target::Inbox => Some(inbox),
            Target::Junk => filter::with_use(state, account, JUNK),
            Target::Usual => recipient.detail.as_deref().and_then(|detail| of_detail(state, account, detail)),
            Target::Named { name, special_use, .. } => {
                let special_use = special_use.as_deref().and_then(filter::special_use);
                let of_use = special_use.and_then(|special_use| filter::with_use(state, account, special_use));
                of_use.or_else(|| filter::named(state, account, name))
            }
        };
        if let Some(found) = found {
            return Ok(found);
        }
        if let Target::Named { name, create, .. } = target {
            match create.then(|| self.create(account, name)) {
                Some(Ok(mailbox)) => return Ok(mailbox),
                _ => tracing::warn!(account = recipient.account.name, mailbox = name, "no such mailbox, kept in INBOX"),
            }
        }
        Ok(inbox)
    }

    fn create(&mut self, account: u32, name: &str) -> Result<u32, Error> {
        let known = self.transaction.state().account(account).map_or(0, |account| account.mailboxes.len());
        if known >= MAILBOXES_MAX || !is_name(name.as_bytes()) {
            return Err(Refused::Name.into());
        }
        let mailbox = self.transaction.create(account, name.as_bytes(), SpecialUse::default())?;
        self.transaction.subscribe(account, name.as_bytes(), true)?;
        Ok(mailbox)
    }

    /// Notes that the mail has come. Where there is no room for that it will not be known.
    fn remember(&mut self, account: u32, plan: &Plan) -> Result<(), Error> {
        if plan.seen.is_empty() {
            return Ok(());
        }
        let owner = self.transaction.state().account(account).ok_or(Refused::NoSuchAccount)?;
        let mut seen = Remembered::of(owner, SEEN, self.now);
        plan.seen.iter().for_each(|mail| seen.note(mail));
        if let Err(error) = self.transaction.annotate(account, None, SEEN, Some(&seen.encode())) {
            tracing::warn!(account, %error, "delivered mail not remembered for duplicate");
        }
        Ok(())
    }

    /// Notes that the sender is answered, unless he was lately.
    fn answer(&mut self, account: u32, plan: &Plan) -> Result<(), Error> {
        let Some(vacation) = plan.vacation.as_ref().filter(|_| !self.leaving.is_spam) else { return Ok(()) };
        let owner = self.transaction.state().account(account).ok_or(Refused::NoSuchAccount)?;
        let mut answered = Remembered::of(owner, ANSWERED, self.now);
        if answered.is_due(vacation) {
            // No room to note it: nobody is answered.
            let noted = self.transaction.annotate(account, None, ANSWERED, Some(&answered.encode()));
            if noted.is_ok() {
                self.leaving.answer(self.transaction, vacation);
            }
        }
        Ok(())
    }
}

/// The mailbox that an address's detail names: addresses come in lower case, mailboxes as they were named.
fn of_detail(state: &State, account: u32, detail: &str) -> Option<u32> {
    let mailboxes = &state.account(account)?.mailboxes;
    let is_detail = |name: &[u8]| name.eq_ignore_ascii_case(detail.as_bytes());
    mailboxes.iter().find(|(name, _)| is_detail(name)).map(|(_, &number)| number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_the_answer_of_all_who_have_the_same_answer() {
        let refusing = || Plan { reject: Some("no".into()), ..Plan::default() };
        let taking = || Plan::keep(Target::Usual);
        let refused_with = |mut plans: Plans, is_one, is_relayed| {
            refuse_together(&mut plans, is_one, is_relayed);
            let told = |plans: &Vec<Plan>| plans.iter().map(|plan| plan.reject.is_some()).collect::<Vec<_>>();
            plans.iter().map(told).collect::<Vec<_>>()
        };
        let refused = |plans, is_one| refused_with(plans, is_one, false);
        assert_eq!(refused(vec![vec![refusing()], vec![taking()]], false), [[true], [false]]);
        assert_eq!(refused(vec![vec![refusing()], vec![taking()]], true), [[false], [false]]);
        assert_eq!(refused(vec![vec![refusing()], vec![refusing()]], true), [[true], [true]]);
        assert_eq!(refused(vec![vec![refusing(), taking()]], false), [[false, false]]);
        assert_eq!(refused_with(vec![vec![refusing()]], true, true), [[false]], "others elsewhere get it");
    }
}
