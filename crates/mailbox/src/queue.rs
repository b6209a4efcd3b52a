//! Mail that waits to go out: what scripts redirect, their answers, what users write in the [webmail](crate::webmail), and notices of what did not go out.
//!
//! ```text
//!  a delivery ─ one transaction ─► waits ─ due ─► the relay ─ takes it ────────► gone
//!                                    ▲              ├ not now ─ back-off ─┐
//!                                    └──────────────┼────────────────────┘
//!                                                   ├ refuses it ─────────────► kept in the INBOX of whose script it was
//!                                                   └ not within five days ───► a notice to the sender
//!                       written here, and refused or not sent in five days ───────► a notice in the INBOX of the account
//! ```
//!
//! A mail that waits is a message of a mailbox in the store, of an account that no accounts file can name, with an annotation that
//! says where it goes: it is there by the flush that acknowledged it, and as a copy of what is delivered takes no room. A mail may be
//! sent twice if the server is killed between the relay's answer and the note of it. Bounds: [`WAITING_MAX`]; 16 are sent at
//! a time, of each a piece is held.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use store::{Arrival, Error, Quota, Refused, Sealed, SpecialUse, State, Transaction, Uids};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::content::Body;
use crate::file::File;
use crate::relay::{Outgoing, Unsent};
use crate::site::{Site, seconds};

mod entry;
mod notice;

pub use crate::relay::Patience;
pub use entry::Entry;

/// The account: with a blank in it, which no other's name has.
const ACCOUNT: &[u8] = b"sluice queue";
const MAILBOX: &[u8] = b"INBOX";

/// Mails that wait; with as many, what is redirected is kept, and nobody is answered.
pub const WAITING_MAX: usize = 1_000;

/// Mails that are sent at a time.
const AT_ONCE: usize = 16;

/// Bytes of a mail that are held while it is sent.
const PIECE_BYTES: usize = 64 << 10;

/// How long a mail that is being sent may go on when the server ends.
const GRACE: Duration = Duration::from_secs(2);

/// The mails that wait, by number.
pub fn waiting(state: &State) -> Vec<(u32, Entry)> {
    let Some(mailbox) = place(state).and_then(|(_, mailbox)| state.mailbox(mailbox)) else { return Vec::new() };
    let entry = |(uid, _)| Some((uid, Entry::decode(mailbox.annotations.get(&*key(uid))?)?));
    mailbox.from(0).filter_map(entry).collect()
}

/// How many mails wait.
pub fn waiting_count(state: &State) -> usize {
    place(state).and_then(|(_, mailbox)| state.mailbox(mailbox)).map_or(0, |mailbox| mailbox.entries.len())
}

/// All that wait are tried now; how many.
///
/// # Errors
/// When it cannot be noted.
pub async fn retry(site: &Site) -> Result<usize, Error> {
    let now = seconds();
    let all = site.store.transact(move |transaction| {
        let all = waiting(transaction.state());
        for (uid, entry) in &all {
            note(transaction, *uid, Some(&Entry { due: now, ..entry.clone() }))?;
        }
        Ok(all.len())
    });
    let count = all.await?;
    site.wake.wake();
    Ok(count)
}

/// Adds a mail, whose content is `sealed`.
pub(crate) fn add(transaction: &mut Transaction<'_, File>, sealed: &Sealed, entry: &Entry) -> Result<(), Error> {
    let (_, mailbox) = match place(transaction.state()) {
        Some(place) => place,
        None => {
            let account = transaction.add_account(ACCOUNT, Quota::default())?;
            (account, transaction.create(account, MAILBOX, SpecialUse::default())?)
        }
    };
    let count = transaction.state().mailbox(mailbox).map_or(0, |mailbox| mailbox.entries.len());
    if count >= WAITING_MAX {
        return Err(Refused::OverQuota.into());
    }
    let uid =
        transaction.deliver(sealed, mailbox, &Arrival { date: entry.since, now: entry.since, ..Arrival::default() })?;
    let noted = note(transaction, uid, Some(entry));
    if noted.is_err() {
        transaction.expunge(mailbox, &one(uid))?;
    }
    noted
}

fn place(state: &State) -> Option<(u32, u32)> {
    let (account, _) = state.account_named(ACCOUNT)?;
    Some((account, state.mailbox_named(account, MAILBOX)?.0))
}

fn key(uid: u32) -> Vec<u8> {
    format!("queue/{uid}").into_bytes()
}

fn one(uid: u32) -> Uids {
    [uid].into_iter().collect()
}

fn note(transaction: &mut Transaction<'_, File>, uid: u32, entry: Option<&Entry>) -> Result<(), Error> {
    let (account, mailbox) = place(transaction.state()).ok_or(Refused::NoSuchMailbox)?;
    // What was taken out meanwhile does not come back.
    let is_there = transaction.state().mailbox(mailbox).is_some_and(|mailbox| mailbox.entry(uid).is_some());
    let value = entry.filter(|_| is_there).map(Entry::encode);
    transaction.annotate(account, Some(mailbox), &key(uid), value.as_deref())
}

fn remove(transaction: &mut Transaction<'_, File>, uid: u32) -> Result<(), Error> {
    let (_, mailbox) = place(transaction.state()).ok_or(Refused::NoSuchMailbox)?;
    note(transaction, uid, None)?;
    transaction.expunge(mailbox, &one(uid)).map(drop)
}

/// Sends what is due, until the server ends. Without a relay all of it waits.
pub async fn run(site: Arc<Site>) {
    if site.relay.is_none() {
        return site.ended().await;
    }
    if let Err(error) = site.store.transact(tidy).await {
        tracing::error!(%error, "the queue is not in order");
    }
    let (mut sending, mut under_way) = (JoinSet::new(), BTreeSet::new());
    loop {
        let now = seconds();
        let mut next = i64::MAX;
        let idle = waiting(&site.store.state()).into_iter().filter(|(uid, _)| !under_way.contains(uid));
        for (uid, entry) in idle.collect::<Vec<_>>() {
            if entry.due > now {
                next = next.min(entry.due);
            } else if under_way.len() < AT_ONCE {
                under_way.insert(uid);
                let site = site.clone();
                sending.spawn(async move {
                    attempt(&site, uid, entry).await;
                    uid
                });
            }
        }
        let wait = Duration::from_secs(u64::try_from(next.saturating_sub(now)).unwrap_or(0).min(3_600));
        tokio::select! {
            Some(sent) = sending.join_next() => drop(sent.map(|uid| under_way.remove(&uid))),
            () = site.wake.woken() => {}
            () = tokio::time::sleep(wait) => {}
            () = site.ended() => break,
        }
    }
    let _ = tokio::time::timeout(GRACE, async { while sending.join_next().await.is_some() {} }).await;
}

/// What is noted of mails that were taken out of the store goes.
fn tidy(transaction: &mut Transaction<'_, File>) -> Result<(), Error> {
    let Some((account, number)) = place(transaction.state()) else { return Ok(()) };
    let Some(mailbox) = transaction.state().mailbox(number).cloned() else { return Ok(()) };
    let uid = |name: &[u8]| std::str::from_utf8(name.strip_prefix(b"queue/")?).ok()?.parse().ok();
    for name in mailbox.annotations.keys().filter(|name| uid(name).is_some_and(|uid| mailbox.entry(uid).is_none())) {
        transaction.annotate(account, Some(number), name, None)?;
    }
    Ok(())
}

/// Tries to send a mail, and notes what came of it.
async fn attempt(site: &Site, uid: u32, entry: Entry) {
    let outcome = send(site, uid, &entry).await;
    let (account, to) = (entry.account.clone(), entry.to.clone());
    let noted = match outcome {
        Ok(()) => {
            tracing::info!(account, %to, "sent on");
            site.store.transact(move |transaction| remove(transaction, uid)).await
        }
        Err(Unsent { why, is_final }) => {
            let is_over = seconds().saturating_sub(entry.since) >= site.patience.whole;
            tracing::warn!(account, %to, error = why, given_up = is_final || is_over, "not sent on");
            match is_final || is_over {
                true if entry.is_written => return_to_writer(site, uid, entry, &why).await,
                true => give_up(site, uid, entry, is_final).await,
                false => {
                    let later = entry.after(why, site.patience);
                    site.store.transact(move |transaction| note(transaction, uid, Some(&later))).await
                }
            }
        }
    };
    if let Err(error) = noted {
        tracing::error!(account, %to, %error, "what became of a mail that goes out is not noted");
        // It is tried again, and not at once.
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
}

async fn send(site: &Site, uid: u32, entry: &Entry) -> Result<(), Unsent> {
    let relay = site.relay.as_ref().ok_or_else(|| Unsent::for_now("there is no relay"))?;
    let state = site.store.state();
    let mailbox = place(&state).and_then(|(_, mailbox)| state.mailbox(mailbox));
    let number = mailbox.and_then(|mailbox| mailbox.entry(uid)).map(|entry| entry.message.get());
    let body = number.and_then(|number| Body::open(&site.store, number));
    let mut body = body.ok_or_else(|| Unsent::for_now("it was taken out of the store"))?;
    let mut piece = entry.trace.clone().into_bytes();
    let bytes = piece.len() as u64 + body.size().saturating_sub(entry.skipped);
    let (pieces, content) = mpsc::channel(1);
    let is_eight_bit = tokio::task::block_in_place(|| is_eight_bit(&mut body, entry.skipped));
    let (from, to) = (entry.from.clone(), entry.to.clone());
    let sending = relay.send(Outgoing { from, to, bytes, is_eight_bit, content });
    let feeding = async {
        let mut at = entry.skipped;
        // Whoever does not listen any more says why.
        while piece.is_empty() || pieces.send(std::mem::take(&mut piece)).await.is_ok() {
            piece = vec![0; PIECE_BYTES];
            match tokio::task::block_in_place(|| body.read(at, &mut piece)) {
                Ok(length @ 1..) => piece.truncate(length),
                _ => break,
            }
            at += piece.len() as u64;
        }
        drop(pieces);
    };
    tokio::join!(sending, feeding).0
}

/// Whether a mail has bytes beyond ASCII. What cannot be read is found out when it is sent.
fn is_eight_bit(body: &mut Body<'_>, mut at: u64) -> bool {
    let mut piece = vec![0; PIECE_BYTES];
    while let Ok(length @ 1..) = body.read(at, &mut piece) {
        if !piece[..length].is_ascii() {
            return true;
        }
        at += length as u64;
    }
    false
}

/// A mail that does not go out is kept, or the sender is told; of what is somebody's already, and of notices, nobody is.
async fn give_up(site: &Site, uid: u32, entry: Entry, is_refused: bool) -> Result<(), Error> {
    if entry.is_answer || entry.is_stored {
        return site.store.transact(move |transaction| remove(transaction, uid)).await;
    }
    if is_refused || entry.from.is_empty() || entry.is_spam {
        return site.store.transact(move |transaction| keep(transaction, uid, &entry)).await;
    }
    let text = notice::write(site, uid, &entry);
    let mut incoming = site.store.incoming();
    let mut digest = crate::digest::Digest::default();
    digest.read(&text);
    incoming.write(&text).await?;
    let notice = Entry::answer(entry.from, seconds());
    incoming
        .finish(digest.finish(), move |transaction, sealed| {
            remove(transaction, uid)?;
            add(transaction, sealed, &notice)
        })
        .await?;
    site.wake.wake();
    Ok(())
}

/// A mail that its account has written and that does not go out: the account is told in its INBOX.
async fn return_to_writer(site: &Site, uid: u32, entry: Entry, why: &str) -> Result<(), Error> {
    let text = notice::write_to_writer(site, uid, &entry, why);
    let mut incoming = site.store.incoming();
    let mut digest = crate::digest::Digest::default();
    digest.read(&text);
    incoming.write(&text).await?;
    let work = move |transaction: &mut Transaction<'_, File>, sealed: &Sealed| {
        remove(transaction, uid)?;
        let state = transaction.state();
        let account = state.account_named(entry.account.as_bytes()).map(|(number, _)| number);
        let inbox = account.and_then(|account| state.mailbox_named(account, MAILBOX)).map(|(inbox, _)| inbox);
        let Some(inbox) = inbox else { return Ok(()) };
        let now = seconds();
        match transaction.deliver(sealed, inbox, &Arrival { date: now, now, ..Arrival::default() }) {
            // Whoever has no room is not told, and the queue goes on.
            Err(Error::Refused(Refused::OverQuota)) => Ok(()),
            outcome => outcome.map(drop),
        }
    };
    incoming.finish(digest.finish(), work).await
}

fn keep(transaction: &mut Transaction<'_, File>, uid: u32, entry: &Entry) -> Result<(), Error> {
    let (_, queue) = place(transaction.state()).ok_or(Refused::NoSuchMailbox)?;
    let state = transaction.state();
    let account = state.account_named(entry.account.as_bytes()).map(|(number, _)| number);
    if let Some((inbox, _)) = account.and_then(|account| state.mailbox_named(account, b"INBOX")) {
        transaction.copy(queue, inbox, &one(uid), seconds())?;
    }
    remove(transaction, uid)
}
