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
use store::{Error, State, Usage};
use stream::Class;
use tokio::task::block_in_place;
use tokio::time::timeout;

use crate::content::Body;
use crate::site::Site;

pub(crate) use lookup::{Found, Lookup};
pub(crate) use segments::forget;
pub(crate) use texts::holds;

/// Mails of one segment that is made of them.
pub const MAILS_MAX: usize = 4_096;

/// The memory of a segment that is being made, in bytes.
pub const BUILDER_BYTES: usize = 16 << 20;

/// Terms of one mail, in bytes, each as often as an inspection reports it.
pub const TERMS_BYTES_MAX: usize = 8 << 20;

/// This part of the volume is left to mail: where what is kept reaches into it, there are no new segments.
const FREE_PART: u64 = 4;

/// Where what is kept reaches into this part, there is none at all.
const KEPT_PART: u64 = 8;

/// A segment of which more than this part is gone is written anew.
const GONE_PART: usize = 4;

/// How long an account is worked for before it is another's turn.
pub const SLICE: Duration = Duration::from_secs(5);

/// How often it is looked whether mail needs the room.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// How long an account is left alone that could not be brought up to date.
const PAUSE: Duration = Duration::from_secs(600);

/// As many segments of about one size become one.
pub const SEGMENTS_MAX: usize = 4;

/// Mails that are in no segment with which an account is brought up to date; fewer are searched without.
pub(crate) const BEHIND_MAX: usize = 32;

/// Brings accounts up to date, a [`SLICE`] of each at a time, until the server ends. Without an inspector there is no index.
pub async fn run(site: Arc<Site>) {
    let Some(inspector) = site.inspector.clone() else {
        if let Err(error) = segments::remove_all(&site).await {
            tracing::warn!(%error, "search index not removed");
        }
        return site.ended().await;
    };
    let mut failed: BTreeMap<u32, Instant> = BTreeMap::new();
    loop {
        let work = async {
            let (account, is_damaged) = tokio::select! {
                next = timeout(LOOK_EVERY, site.behind.next()) => match next {
                    Ok(next) => next,
                    Err(_) => return make_room(&site, false).await,
                },
                () = site.store.is_full() => return make_room(&site, true).await,
            };
            failed.retain(|_, at| at.elapsed() < PAUSE);
            if failed.contains_key(&account) {
                return;
            }
            match catch_up(&site, &*inspector, account, is_damaged).await {
                Ok(true) => {}
                Ok(false) => site.behind.add(account, false),
                Err(error) => {
                    let account_name = name(&site.store.state(), account);
                    tracing::warn!(account = account_name, %error, "the index is not up to date");
                    failed.insert(account, Instant::now());
                    make_room(&site, false).await;
                }
            }
        };
        tokio::select! {
            () = work => {}
            () = site.ended() => return,
        }
    }
}

/// Mail comes before indexes: where it needs the room they go, at once where something has found none.
async fn make_room(site: &Site, is_full: bool) {
    if segments::are_none(&site.store.state()) {
        return;
    }
    let outcome = match site.store.usage().await {
        Ok(usage) if !is_full && leaves(usage, KEPT_PART) => return,
        Ok(_) => segments::remove_all(site).await,
        Err(error) => Err(error),
    };
    match outcome {
        Ok(()) => tracing::warn!("the store is almost full: the indexes of searches were removed"),
        Err(error) => tracing::warn!(%error, "the indexes of searches cannot be removed"),
    }
}

/// Whether this part of the room for messages is left.
fn leaves(usage: Usage, part: u64) -> bool {
    let room = usage.total_bytes.saturating_sub(usage.reserve_bytes);
    usage.live_bytes <= room - room / part
}

/// Does a slice of an account's work; whether nothing is left of it.
async fn catch_up(site: &Site, inspector: &dyn Inspector, account: u32, is_damaged: bool) -> Result<bool, Error> {
    segments::tidy(site).await?;
    if is_damaged {
        segments::remove(site, account).await?;
    }
    let Some(behind) = behind(site, account).await? else {
        compact(site, account).await?;
        return Ok(true);
    };
    if !leaves(site.store.usage().await?, FREE_PART) {
        return Err(Error::Full);
    }
    let built = build(site, inspector, &behind).await?;
    let (messages, left) = (built.documents(), behind.len().saturating_sub(built.documents()));
    segments::add(site, account, built.finish().into_iter(), Vec::new()).await?;
    merge(site, account).await?;
    let name = name(&site.store.state(), account);
    if left > 0 {
        tracing::debug!(account = name, messages, left, "indexed");
        return Ok(false);
    }
    compact(site, account).await?;
    tracing::info!(account = name, messages, "the index is up to date");
    Ok(true)
}

/// Writes anew what has too much of what is gone.
async fn compact(site: &Site, account: u32) -> Result<(), Error> {
    let state = site.store.state();
    let all = block_in_place(|| messages(&state, account));
    for place in segments::of(&state, account) {
        let opened = block_in_place(|| segments::open(&site.store, place.message))?;
        let gone = opened.documents().iter().filter(|document| !all.contains(&document.number)).count();
        if gone * GONE_PART > opened.documents().len() {
            write_merged(site, account, vec![place], &all).await?;
        }
    }
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
    let (mut builder, began) = (Builder::default(), Instant::now());
    for &number in messages.iter().take(MAILS_MAX) {
        builder.begin(Document { number, is_partial: false });
        // What was removed meanwhile is a document without terms.
        let Some(mut body) = Body::open(&site.store, number) else { continue };
        let is_whole = texts::header(&mut body, &mut |field, term| builder.add(field, term));
        let (mut bytes, mut is_limited) = (0, false);
        let mut add = |out| match out {
            Out::Terms(terms) => {
                bytes += terms.len();
                terms.lines().for_each(|term| builder.add(Field::Body, term));
                if bytes > TERMS_BYTES_MAX { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            }
            // What the inspection has passed over may be anything.
            Out::Finding(spotted) if spotted.finding.class == Class::Limit => {
                is_limited = true;
                ControlFlow::Continue(())
            }
            _ => ControlFlow::Continue(()),
        };
        let read = texts::read(inspector, &mut body, Sought::Terms, &mut add).await;
        if !is_whole || is_limited || !matches!(read, Ok(ControlFlow::Continue(()))) {
            builder.is_partial();
        }
        if builder.bytes() >= BUILDER_BYTES || began.elapsed() >= SLICE {
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
        write_merged(site, account, places, &all).await?;
    }
}

/// Makes one segment of some, with what is not gone.
async fn write_merged(
    site: &Site,
    account: u32,
    places: Vec<segments::Place>,
    all: &BTreeSet<u64>,
) -> Result<(), Error> {
    let merger = block_in_place(|| {
        let opened: Result<Vec<_>, _> = places.iter().map(|place| segments::open(&site.store, place.message)).collect();
        opened.map(|opened| Merger::new(opened, |number| all.contains(&number)))
    });
    let mut merger = merger?;
    if merger.documents() == 0 {
        return segments::expunge(site, account, places).await;
    }
    let blocks = std::iter::from_fn(|| block_in_place(|| merger.next_block().transpose()));
    segments::replace(site, account, blocks, places).await
}
