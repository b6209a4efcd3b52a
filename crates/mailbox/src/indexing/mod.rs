//! The index of an account's mails: it is made when one is first searched for by what is in it, and brought up to date when later
//! searches find mails that are not in it.
//!
//! ```text
//!  SEARCH ─ lookup ─► segments ─► those that may hold it ─ looked into where the index alone cannot say ─► answer
//!     └─ too many that are in none ─► the account waits ─► run: text of each, from an inspection ─► a segment ─► merged
//! ```
//!
//! So mail comes in as fast as without, and who never searches costs nothing. Segments are messages of the store, in mailboxes of an
//! account that no accounts file can name: they are there by one transaction, checked as they are read, and go with it when they are
//! merged. An index that is damaged is thrown away, and made again: nothing is only there.
//!
//! Texts are read by the inspection of the host, with its bounds: attachments, archives and documents too. What it breaks off, or has
//! more than [`TERMS_BYTES_MAX`] of terms, is in the index as a mail that may hold anything.
//!
//! Bounds: one account at a time is brought up to date, [`MAILS_MAX`] mails or [`BUILDER_BYTES`] in a segment; merging holds a block
//! of each of [`SEGMENTS_MAX`].

mod lookup;
mod segments;
mod texts;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::index::{Builder, Document, Field, Merger};
use flow::{Inspector, Out, Sought};
use store::{Error, State};
use tokio::task::block_in_place;

use crate::content::Body;
use crate::site::Site;

pub(crate) use lookup::{Found, Lookup, Told};
pub(crate) use texts::{bare_addresses, holds};

/// Mails of one segment that is made of them.
pub const MAILS_MAX: usize = 4_096;

/// The memory of a segment that is being made, in bytes.
pub const BUILDER_BYTES: usize = 16 << 20;

/// Terms of one mail, in bytes, each as often as an inspection reports it.
pub const TERMS_BYTES_MAX: usize = 8 << 20;

/// This part of the volume is left to mail: where what is kept reaches into it, there are no new segments.
const FREE_PART: u64 = 4;

/// How long an account is left alone that could not be brought up to date.
const PAUSE: Duration = Duration::from_secs(600);

/// As many segments of about one size become one.
pub const SEGMENTS_MAX: usize = 4;

/// Mails that are in no segment with which an account is brought up to date; fewer are searched without.
pub(crate) const BEHIND_MAX: usize = 32;

/// Brings accounts up to date, until the server ends. Without an inspector there is no index.
pub async fn run(site: Arc<Site>) {
    let Some(inspector) = site.inspector.clone() else { return site.ended().await };
    let mut failed: BTreeMap<u32, Instant> = BTreeMap::new();
    loop {
        let (account, is_damaged) = tokio::select! {
            next = site.behind.next() => next,
            () = site.ended() => return,
        };
        failed.retain(|_, at| at.elapsed() < PAUSE);
        if failed.contains_key(&account) {
            continue;
        }
        let outcome = tokio::select! {
            outcome = catch_up(&site, &*inspector, account, is_damaged) => outcome,
            () = site.ended() => return,
        };
        if let Err(error) = outcome {
            tracing::warn!(account = name(&site.store.state(), account), %error, "the index is not up to date");
            failed.insert(account, Instant::now());
        }
    }
}

async fn catch_up(site: &Site, inspector: &dyn Inspector, account: u32, is_damaged: bool) -> Result<(), Error> {
    segments::tidy(site).await?;
    if is_damaged {
        segments::remove(site, account).await?;
    }
    let mut count = 0;
    while let Some(behind) = behind(site, account).await? {
        let usage = site.store.usage().await?;
        if usage.live_bytes > usage.total_bytes - usage.total_bytes / FREE_PART {
            return Err(Error::Full);
        }
        count += behind.len().min(MAILS_MAX);
        let built = build(site, inspector, &behind).await?;
        segments::add(site, account, built.finish().into_iter(), Vec::new()).await?;
        merge(site, account).await?;
    }
    let name = name(&site.store.state(), account);
    tracing::info!(account = name, messages = count, "the index is up to date");
    Ok(())
}

/// The messages of an account that are in no segment, ascending; none if there are none.
async fn behind(site: &Site, account: u32) -> Result<Option<Vec<u64>>, Error> {
    let state = site.store.state();
    let read = block_in_place(|| Lookup::open(&site.store, &state, account));
    let known = match read {
        Ok(known) => known,
        Err(why) => {
            tracing::error!(account = name(&state, account), why, "the index is damaged and made again");
            segments::remove(site, account).await?;
            None
        }
    };
    let all = messages(&state, account);
    let is_known = |number: &u64| known.as_ref().is_some_and(|known| known.has(*number));
    let behind: Vec<u64> = block_in_place(|| all.into_iter().filter(|number| !is_known(number)).collect());
    Ok(Some(behind).filter(|behind| !behind.is_empty()))
}

fn messages(state: &State, account: u32) -> BTreeSet<u64> {
    let mailboxes = state.account(account).into_iter().flat_map(|account| account.mailboxes.values());
    let mailboxes = mailboxes.filter_map(|&mailbox| state.mailbox(mailbox));
    mailboxes.flat_map(|mailbox| mailbox.from(0).map(|(_, entry)| entry.message.get())).collect()
}

fn name(state: &State, account: u32) -> String {
    state.account(account).map_or_else(String::new, |account| String::from_utf8_lossy(&account.name).into_owned())
}

/// A segment of as many of these messages as go into one.
async fn build(site: &Site, inspector: &dyn Inspector, messages: &[u64]) -> Result<Builder, Error> {
    let mut builder = Builder::default();
    for &number in messages.iter().take(MAILS_MAX) {
        builder.begin(Document { number, is_partial: false });
        // What was removed meanwhile is a document without terms.
        let Some(mut body) = Body::open(&site.store, number) else { continue };
        let is_whole = texts::header(&mut body, &mut |field, term| builder.add(field, term));
        let mut bytes = 0;
        let mut add = |out| match out {
            Out::Terms(terms) => {
                bytes += terms.len();
                terms.lines().for_each(|term| builder.add(Field::Body, term));
                if bytes > TERMS_BYTES_MAX { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            }
            _ => ControlFlow::Continue(()),
        };
        let read = texts::read(inspector, &mut body, Sought::Terms, &mut add).await;
        if !is_whole || !matches!(read, Ok(ControlFlow::Continue(()))) {
            builder.is_partial();
        }
        if builder.bytes() >= BUILDER_BYTES {
            break;
        }
    }
    Ok(builder)
}

/// Merges segments of about one size, as long as there are enough of them.
async fn merge(site: &Site, account: u32) -> Result<(), Error> {
    loop {
        let state = site.store.state();
        let mut sizes: BTreeMap<u32, Vec<segments::Place>> = BTreeMap::new();
        for place in segments::of(&state, account) {
            let bytes = state.message(place.message).map_or(0, |message| message.size);
            sizes.entry(bytes.max(1).ilog(SEGMENTS_MAX as u64)).or_default().push(place);
        }
        let Some(places) = sizes.into_values().find(|places| places.len() >= SEGMENTS_MAX) else { return Ok(()) };
        let all = messages(&state, account);
        let merger = block_in_place(|| {
            let opened: Result<Vec<_>, _> =
                places.iter().map(|place| segments::open(&site.store, place.message)).collect();
            opened.map(|opened| Merger::new(opened, |number| all.contains(&number)))
        });
        let mut merger = merger?;
        let blocks = std::iter::from_fn(|| block_in_place(|| merger.next_block().transpose()));
        segments::replace(site, account, blocks, places).await?;
    }
}
