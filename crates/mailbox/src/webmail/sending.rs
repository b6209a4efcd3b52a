//! Mails that a user sends.
//!
//! One transaction puts a mail into the [queue](crate::queue), once for all recipients, and a copy into `Sent`, takes the draft away and
//! marks what it answers: a mail is sent with its copy, or not at all. The queue has it
//! inspected before anybody gets it.

use ::webmail::mail::{Failure, Sending};
use keep::webmail::{Sender, note_sent, was_sent};
use store::{Arrival, Error, Flags, SpecialUse, Transaction};

use crate::digest::Digest;
use crate::file::File;
use crate::in_flight::Owner;
use crate::outbox::{self, Entry, Recipient};
use crate::queue;
use crate::site::{Site, seconds};
use crate::writer::Incoming;

/// Mails of one account that wait to go out: others have room, too.
const WAITING_OF_ONE_MAX: usize = 1_000;

/// The attribute of the mailbox for sent mail.
const SENT: SpecialUse = SpecialUse(1 << 5);

/// Sends a mail. Its draft and what it answers are the sender's.
pub(super) async fn send(
    site: &Site,
    owners: Vec<Owner>,
    sender: Sender,
    sending: Sending,
) -> Result<Result<(), Failure>, Error> {
    let Sender { account, name, sent } = sender;
    let Sending { origin, from, to, content, private } = sending;
    let (recipients, writer) = (to.len(), name.clone());
    if let Err(failure) = admit(site, &name, recipients) {
        return Ok(Err(failure));
    }
    let work = move |transaction: &mut Transaction<'_, File>, sealed: &store::Sealed| {
        if was_sent(transaction.state(), account, &origin.id) {
            return Ok(Ok(()));
        }
        let entry = Entry { skipped: private, ..entry(name, from, to) };
        match outbox::add(transaction, sealed, &entry) {
            Err(Error::Refused(store::Refused::OverQuota)) => return Ok(Err(Failure::Queue)),
            outcome => outcome?,
        }
        let now = seconds();
        let named = transaction.state().mailbox_named(account, b"Sent").map(|(number, _)| number);
        let sent = match sent.or(named) {
            Some(sent) => sent,
            None => transaction.create(account, b"Sent", SENT)?,
        };
        transaction.deliver(sealed, sent, &Arrival { flags: Flags::SEEN, date: now, now, ..Arrival::default() })?;
        note_sent(transaction, account, &origin).map(Ok)
    };
    let (incoming, digest) = incoming(site, owners, &content).await?;
    let outcome = incoming.finish(digest, work).await?;
    if outcome.is_ok() {
        tracing::info!(account = writer, recipients, "a mail is sent from a browser");
        site.queue.wake.wake();
    }
    Ok(outcome)
}

/// Puts a mail into the queue, which is in no mailbox by that.
pub(super) async fn submit(
    site: &Site,
    owners: Vec<Owner>,
    name: String,
    (from, to): (String, Vec<String>),
    content: &[u8],
) -> Result<Result<(), Failure>, Error> {
    let (recipients, writer) = (to.len(), name.clone());
    if let Err(failure) = admit(site, &name, recipients) {
        return Ok(Err(failure));
    }
    let work = move |transaction: &mut Transaction<'_, File>, sealed: &store::Sealed| {
        let added = outbox::add(transaction, sealed, &entry(name, from, to));
        match added {
            Err(Error::Refused(store::Refused::OverQuota)) => Ok(Err(Failure::Queue)),
            outcome => outcome.map(Ok),
        }
    };
    let (incoming, digest) = incoming(site, owners, content).await?;
    let outcome = incoming.finish(digest, work).await?;
    if outcome.is_ok() {
        tracing::info!(account = writer, recipients, "a mail is sent");
        site.queue.wake.wake();
    }
    Ok(outcome)
}

/// Whether a mail needs no relay: all of its recipients have accounts here.
pub(super) async fn stays(site: &Site, to: &[String]) -> bool {
    for address in to {
        if !queue::is_here(site, address).await {
            return false;
        }
    }
    true
}

/// Counts the recipients of a mail as those of a mail client are; an error if they are too many, at once or within an hour.
fn admit(site: &Site, account: &str, recipients: usize) -> Result<(), Failure> {
    if site.queue.of_sender(account).saturating_add(recipients) > WAITING_OF_ONE_MAX {
        return Err(Failure::Queue);
    }
    let count = u32::try_from(recipients).unwrap_or(u32::MAX);
    if !site.may_send(account, count, site.recipients_hour_max) {
        tracing::warn!(account, recipients, "too many recipients of one login within an hour");
        return Err(Failure::Rate);
    }
    Ok(())
}

/// A mail that an account has written.
fn entry(account: String, from: String, to: Vec<String>) -> Entry {
    let now = seconds();
    Entry {
        since: now,
        address: from.clone(),
        from,
        account,
        is_written: true,
        recipients: to.into_iter().map(|to| Recipient::new(to, now)).collect(),
        ..Entry::default()
    }
}

/// Stores the content of a mail, which is in no mailbox yet.
async fn incoming(site: &Site, owners: Vec<Owner>, content: &[u8]) -> Result<(Incoming, Vec<u8>), Error> {
    if content.len() as u64 > site.message_bytes_max {
        return Err(store::Refused::TooLarge.into());
    }
    let mut digest = Digest::default();
    digest.read(content);
    let mut incoming = site.store.incoming_of(site.in_flight.begin(owners));
    incoming.write(content).await?;
    Ok((incoming, digest.finish()))
}
