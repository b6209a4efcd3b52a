//! Where segments are: messages of a mailbox for each account, in an account of their own.

use std::fmt;

use ::index::{Segment, Source, Wrong};
use keep::content::Reader as _;
use store::{Arrival, Error, Quota, Refused, SpecialUse, State, Transaction, Uids};

use crate::content::Body;
use crate::file::File;
use crate::site::{Site, seconds};
use crate::writer::Handle;

/// The account: with a blank in it, which no other's name has.
const ACCOUNT: &[u8] = b"sluice index";

/// A segment in the store.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub uid: u32,
    pub message: u64,
}

/// A message as what a segment is read from.
pub(crate) struct Content<'a>(Body<'a>);

impl Source for Content<'_> {
    type Error = Error;

    fn len(&self) -> u64 {
        self.0.size()
    }

    fn read_at(&mut self, mut at: u64, mut buffer: &mut [u8]) -> Result<(), Error> {
        while !buffer.is_empty() {
            let count = self.0.read(at, buffer)?;
            if count == 0 {
                return Err(Refused::NoSuchMessage.into());
            }
            at += count as u64;
            buffer = &mut buffer[count..];
        }
        Ok(())
    }
}

/// A segment cannot be read; the store's errors say why if it is not damaged.
#[derive(Debug)]
pub(crate) struct Unread(Wrong<Error>);

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<Unread> for Error {
    fn from(Unread(wrong): Unread) -> Error {
        match wrong {
            Wrong::Source(error) => error,
            Wrong::Malformed => Refused::NoSuchMessage.into(),
        }
    }
}

/// The segments of an account.
pub(super) fn of(state: &State, account: u32) -> Vec<Place> {
    let found = mailbox(state, account).and_then(|mailbox| state.mailbox(mailbox));
    let places = found.into_iter().flat_map(|mailbox| mailbox.from(0));
    places.map(|(uid, entry)| Place { uid, message: entry.message.get() }).collect()
}

/// Opens a segment.
pub(super) fn open(store: &Handle, message: u64) -> Result<Segment<Content<'_>>, Unread> {
    let body = Body::open(store, message).ok_or(Unread(Wrong::Source(Refused::NoSuchMessage.into())))?;
    Segment::open(Content(body)).map_err(Unread)
}

fn mailbox(state: &State, account: u32) -> Option<u32> {
    let (index, _) = state.account_named(ACCOUNT)?;
    Some(state.mailbox_named(index, account.to_string().as_bytes())?.0)
}

/// Adds a segment, and replaces those that it covers.
pub(super) async fn add(
    site: &Site,
    account: u32,
    blocks: impl Iterator<Item = Vec<u8>>,
    replaced: Vec<Place>,
) -> Result<(), Error> {
    replace(site, account, blocks.map(Ok::<_, Wrong<Error>>), replaced).await
}

/// Puts a segment in the place of others, in one transaction.
pub(super) async fn replace(
    site: &Site,
    account: u32,
    blocks: impl Iterator<Item = Result<Vec<u8>, Wrong<Error>>>,
    replaced: Vec<Place>,
) -> Result<(), Error> {
    let mut incoming = site.store.incoming();
    for block in blocks {
        incoming.write(&block.map_err(Unread)?).await?;
    }
    let now = seconds();
    let place = move |transaction: &mut Transaction<'_, File>, sealed: &store::Sealed| {
        let mailbox = ensure(transaction, account)?;
        transaction.deliver(sealed, mailbox, &Arrival { date: now, now, ..Arrival::default() })?;
        let uids: Uids = replaced.iter().map(|place| place.uid).collect();
        if !replaced.is_empty() {
            transaction.expunge(mailbox, &uids)?;
        }
        Ok(())
    };
    incoming.finish(Vec::new(), place).await
}

fn ensure(transaction: &mut Transaction<'_, File>, account: u32) -> Result<u32, Error> {
    if let Some(mailbox) = mailbox(transaction.state(), account) {
        return Ok(mailbox);
    }
    // Whose account was removed meanwhile needs none.
    transaction.state().account(account).ok_or(Refused::NoSuchAccount)?;
    let index = match transaction.state().account_named(ACCOUNT) {
        Some((index, _)) => index,
        None => transaction.add_account(ACCOUNT, Quota::default())?,
    };
    transaction.create(index, account.to_string().as_bytes(), SpecialUse::default())
}

/// Removes segments.
pub(super) async fn expunge(site: &Site, account: u32, places: Vec<Place>) -> Result<(), Error> {
    let uids: Uids = places.iter().map(|place| place.uid).collect();
    let expunge = move |transaction: &mut Transaction<'_, File>| match mailbox(transaction.state(), account) {
        Some(mailbox) => transaction.expunge(mailbox, &uids).map(drop),
        None => Ok(()),
    };
    site.store.transact(expunge).await
}

/// Whether no account has an index.
pub(super) fn are_none(state: &State) -> bool {
    state.account_named(ACCOUNT).is_none_or(|(_, index)| index.used_messages == 0)
}

/// Throws all indexes away.
pub(super) async fn remove_all(site: &Site) -> Result<(), Error> {
    if are_none(&site.store.state()) {
        return Ok(());
    }
    let remove = |transaction: &mut Transaction<'_, File>| {
        let index = transaction.state().account_named(ACCOUNT).map(|(_, index)| index.mailboxes.clone());
        index.iter().flat_map(|mailboxes| mailboxes.values()).try_for_each(|&mailbox| transaction.remove(mailbox))
    };
    site.store.transact(remove).await
}

/// Throws the index of an account away.
pub(super) async fn remove(site: &Site, account: u32) -> Result<(), Error> {
    site.store.transact(move |transaction| forget(transaction, account)).await
}

/// The same in a transaction that takes more away.
pub(crate) fn forget(transaction: &mut Transaction<'_, File>, account: u32) -> Result<(), Error> {
    match mailbox(transaction.state(), account) {
        Some(mailbox) => transaction.remove(mailbox),
        None => Ok(()),
    }
}

/// Removes the indexes of accounts that are not there any more.
pub(super) async fn tidy(site: &Site) -> Result<(), Error> {
    let state = site.store.state();
    let Some((_, index)) = state.account_named(ACCOUNT) else { return Ok(()) };
    let number = |name: &[u8]| std::str::from_utf8(name).ok()?.parse::<u32>().ok();
    let gone =
        index.mailboxes.keys().filter_map(|name| number(name)).filter(|account| state.account(*account).is_none());
    for account in gone.collect::<Vec<_>>() {
        remove(site, account).await?;
    }
    Ok(())
}
