//! Mail that a script sends: redirected mails, and answers. It is in the [queue](crate::queue) by the transaction
//! that delivers the mail; one that finds no room there, or no relay, is kept in the INBOX unless it is stored
//! elsewhere.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sieve::Vacation;
use store::{Error, Sealed, Transaction};

use super::Plans;
use crate::accounts;
use crate::file::File;
use crate::filter::{Plan, REDIRECTED};
use crate::outbox::{self, Entry, Recipient};
use crate::site::{Site, seconds};

/// Facts about a mail that may be redirected or answered.
#[derive(Default)]
pub(super) struct Leaving {
    /// The sender of the envelope.
    pub from: String,
    pub return_path_bytes: u64,
    pub is_spam: bool,
    /// See [`Entry::require_tls`].
    pub require_tls: bool,
    pub has_relay: bool,
    /// Answers that may be sent, and their content.
    pub answers: Vec<(Vacation, Sealed)>,
    /// Recipients elsewhere.
    pub relayed: Option<Entry>,
    /// Where the mail goes already.
    pub sent: BTreeSet<String>,
    /// Whether something waits that did not before.
    pub is_queued: bool,
}

impl Leaving {
    /// Sends a mail on, as a plan says; whether all of that waits.
    pub fn redirect(
        &mut self,
        transaction: &mut Transaction<'_, File>,
        sealed: &Sealed,
        address: &str,
        recipient: &accounts::Recipient,
        plan: &Plan,
    ) -> bool {
        let mut all = true;
        for to in plan.redirects.iter().filter(|to| !self.sent.contains(*to)).cloned().collect::<Vec<_>>() {
            let account = recipient.account.name.clone();
            let now = seconds();
            let entry = Entry {
                since: now,
                from: self.from.clone(),
                recipients: vec![Recipient::new(to.clone(), now)],
                trace: format!("{REDIRECTED}: {address}\r\n"),
                address: address.into(),
                account,
                skipped: self.return_path_bytes,
                is_stored: !plan.places.is_empty(),
                is_spam: self.is_spam,
                require_tls: self.require_tls,
                ..Entry::default()
            };
            let outcome = match self.has_relay {
                true => outbox::add(transaction, sealed, &entry).map_err(|error| error.to_string()),
                false => Err("there is no relay".into()),
            };
            match outcome {
                Ok(()) => {
                    self.is_queued = true;
                    self.sent.insert(to);
                }
                Err(error) => {
                    tracing::warn!(account = entry.account, %to, error, "mail not redirected, kept in INBOX");
                    all = false;
                }
            }
        }
        all
    }

    /// Queues the mail for recipients elsewhere; without room there no account has it either.
    pub fn relay(&mut self, transaction: &mut Transaction<'_, File>, sealed: &Sealed) -> Result<(), Error> {
        let Some(entry) = &self.relayed else { return Ok(()) };
        self.is_queued = true;
        outbox::add(transaction, sealed, entry)
    }

    /// Sends an answer.
    pub fn answer(&mut self, transaction: &mut Transaction<'_, File>, vacation: &Vacation) {
        let sealed = self.answers.iter().find(|(answer, _)| answer == vacation).map(|(_, sealed)| sealed);
        let outcome = match sealed {
            Some(sealed) => outbox::add(transaction, sealed, &Entry::answer(vacation.to.clone(), seconds())),
            None => return tracing::warn!(to = vacation.to, "vacation answer not sent: no relay"),
        };
        match outcome {
            Ok(()) => self.is_queued = true,
            Err(error) => tracing::warn!(to = vacation.to, %error, "vacation answer not sent"),
        }
    }
}

/// The answers that plans have, written, where there is a relay.
pub(super) async fn answers(site: &Site, plans: &Plans) -> Result<Vec<(Vacation, Sealed)>, Error> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut answers: Vec<(Vacation, Sealed)> = Vec::new();
    let vacations = plans.iter().flatten().filter_map(|plan| plan.vacation.as_ref());
    for vacation in vacations.filter(|_| site.relay.is_some()) {
        if answers.iter().any(|(known, _)| known == vacation) {
            continue;
        }
        let id = format!("{}.{}.{}", seconds(), std::process::id(), COUNT.fetch_add(1, Relaxed));
        let text = format!("Message-ID: <vacation.{id}@{}>\r\n{}", site.hostname, vacation.message);
        let mut incoming = site.store.incoming();
        let mut digest = crate::digest::Digest::default();
        digest.read(text.as_bytes());
        incoming.write(text.as_bytes()).await?;
        answers.push((vacation.clone(), incoming.seal(digest.finish()).await?.sealed));
    }
    Ok(answers)
}
