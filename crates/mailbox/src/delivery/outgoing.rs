//! What leaves because of a script: redirected mails, and answers. A mail that is stored nowhere else and cannot be sent on is
//! kept in the INBOX.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sieve::Vacation;
use store::Sealed;
use tokio::sync::mpsc;

use super::Plans;
use crate::accounts::Recipient;
use crate::filter::{Plan, REDIRECTED, Target};
use crate::relay::Outgoing;
use crate::site::{Site, seconds};

/// Bytes of a mail that are held while it is sent.
pub(super) const PIECE_BYTES: usize = 64 << 10;

/// Sends a mail on; where that fails it is kept in the INBOX.
pub(super) async fn redirect(
    site: &Site,
    from: &str,
    return_path_bytes: u64,
    sealed: &Sealed,
    recipients: &[(String, Vec<Recipient>)],
    plans: &mut Plans,
) {
    let mut sent: BTreeSet<String> = BTreeSet::new();
    for ((address, accounts), plans) in recipients.iter().zip(plans) {
        for (recipient, plan) in accounts.iter().zip(plans) {
            for to in std::mem::take(&mut plan.redirects) {
                if sent.contains(&to) {
                    continue;
                }
                let account = &recipient.account.name;
                match send_on(site, from, address, &to, return_path_bytes, sealed).await {
                    Ok(()) => {
                        tracing::info!(account, %to, "redirected");
                        sent.insert(to);
                    }
                    Err(error) => {
                        tracing::warn!(account, %to, %error, "not redirected, and kept");
                        if plan.places.is_empty() {
                            *plan = Plan { vacation: plan.vacation.take(), ..Plan::keep(Target::Inbox) };
                        }
                    }
                }
            }
        }
    }
}

async fn send_on(
    site: &Site,
    from: &str,
    address: &str,
    to: &str,
    return_path_bytes: u64,
    sealed: &Sealed,
) -> Result<(), String> {
    let relay = site.relay.as_ref().ok_or("there is no relay")?;
    let trace = format!("{REDIRECTED}: {address}\r\n").into_bytes();
    let bytes = trace.len() as u64 + sealed.size().saturating_sub(return_path_bytes);
    let (pieces, content) = mpsc::channel(1);
    let sending = relay.send(Outgoing { from: from.into(), to: to.into(), bytes, content });
    let feeding = async {
        let mut at = return_path_bytes;
        let mut piece = trace;
        // Whoever does not listen any more says why.
        while pieces.send(piece).await.is_ok() && at < sealed.size() {
            piece = match site.store.read_sealed(sealed, at, PIECE_BYTES).await {
                Ok(piece) if !piece.is_empty() => piece,
                _ => break,
            };
            at += piece.len() as u64;
        }
        drop(pieces);
    };
    tokio::join!(sending, feeding).0
}

/// Sends answers, whatever becomes of them.
pub(super) fn answer(site: &Site, answers: Vec<Vacation>) {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    for answer in answers {
        let Some(relay) = &site.relay else {
            tracing::warn!(to = answer.to, "no answer is sent: there is no relay");
            continue;
        };
        let id = format!("{}.{}.{}", seconds(), std::process::id(), COUNT.fetch_add(1, Relaxed));
        let mail = format!("Message-ID: <vacation.{id}@{}>\r\n{}", site.hostname, answer.message);
        let sending = relay.send(Outgoing::whole(String::new(), answer.to.clone(), mail.into_bytes()));
        tokio::spawn(async move {
            match sending.await {
                Ok(()) => tracing::info!(to = answer.to, "answered"),
                Err(error) => tracing::warn!(to = answer.to, %error, "no answer was sent"),
            }
        });
    }
}
