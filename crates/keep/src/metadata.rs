//! Metadata (RFC 5464): annotations of a mailbox, or of the account for the server.
//!
//! Of a mailbox of somebody else, `/shared` is the owner's: an account that may do anything with its messages is told of it, and
//! one that may change flags (`w`) changes it. `/private` is kept with the account that sets it, by the number of the mailbox; entries
//! of mailboxes that are gone go when it sets the next. Of the server nobody sets `/shared`.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use proto::imap::acl::Rights;
use store::{ANNOTATED_BYTES_MAX, ANNOTATIONS_MAX, Account, Annotations, Device, Error, Refused, State, Transaction};

use crate::acl::Place;

/// The beginning of the names of such annotations.
const PREFIX: &str = "metadata";

/// Rights to the messages of a mailbox.
const USES: Rights = Rights::READ.with(Rights::SEEN).with(Rights::WRITE).with(Rights::INSERT).with(Rights::POST);

/// The entries below `/private` or `/shared`, as an account sees them.
pub struct Entries {
    top: &'static str,
    account: u32,
    mailbox: Option<u32>,
    annotations: Annotations,
    /// The beginning of the names of its annotations.
    prefix: String,
    /// Whether the account may change them.
    pub may_set: bool,
}

impl Entries {
    fn new(top: &'static str, account: u32, mailbox: Option<u32>, annotations: &Annotations, may_set: bool) -> Entries {
        Entries { top, account, mailbox, annotations: annotations.clone(), prefix: PREFIX.into(), may_set }
    }

    /// Whether an entry of this name would be among them.
    pub fn has(&self, name: &str) -> bool {
        name.starts_with(self.top)
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.annotations.iter().filter_map(|(key, value)| {
            let name = core::str::from_utf8(key).ok()?.strip_prefix(&self.prefix)?;
            self.has(name).then_some((name, &**value))
        })
    }
}

/// The entries of the server for an account: `/private`, and `/shared`.
pub fn of_server(number: u32, account: &Account) -> [Entries; 2] {
    [("/private/", true), ("/shared/", false)]
        .map(|(top, may_set)| Entries::new(top, number, None, &account.annotations, may_set))
}

/// The entries of a mailbox for an account: `/private`, and `/shared`. `None` if it may not see them (RFC 5464, section 3).
pub fn of_mailbox(number: u32, account: &Account, place: &Place) -> Option<[Entries; 2]> {
    let (mailbox, notes) = (place.number, &place.mailbox.annotations);
    if place.account == number {
        return Some(["/private/", "/shared/"].map(|top| Entries::new(top, number, Some(mailbox), notes, true)));
    }
    if !place.rights.has_any(USES) {
        return None;
    }
    let private = Entries::new("/private/", number, None, &account.annotations, true);
    let private = Entries { prefix: format!("{PREFIX}:{mailbox}"), ..private };
    let may_set = place.rights.has(Rights::WRITE);
    Some([private, Entries::new("/shared/", place.account, Some(mailbox), notes, may_set)])
}

/// Sets entries for an account; those without a value go.
///
/// # Errors
/// When there is no room, or a mailbox is gone.
pub fn set<D: Device>(
    transaction: &mut Transaction<'_, D>,
    account: u32,
    entries: &[Entries; 2],
    changes: &[(String, Option<Vec<u8>>)],
) -> Result<(), Error> {
    forget_gone(transaction, account)?;
    for (name, value) in changes {
        let Some(entries) = entries.iter().find(|entries| entries.has(name)) else { continue };
        let key = format!("{}{name}", entries.prefix);
        transaction.annotate(entries.account, entries.mailbox, key.as_bytes(), value.as_deref())?;
        if entries.account != account && value.is_some() && !leaves_room(transaction.state(), entries.account) {
            return Err(Refused::TooManyAnnotations.into());
        }
    }
    Ok(())
}

/// Whether the owner of a mailbox can still note as much as is noted: half of the room is nobody else's.
fn leaves_room(state: &State, owner: u32) -> bool {
    let (count, bytes) = state.annotations_of(owner);
    count <= ANNOTATIONS_MAX / 2 && bytes <= ANNOTATED_BYTES_MAX / 2
}

/// Removes the entries that an account has for mailboxes that are gone.
fn forget_gone<D: Device>(transaction: &mut Transaction<'_, D>, account: u32) -> Result<(), Error> {
    let state = transaction.state();
    let is_gone = |key: &[u8]| {
        let number =
            core::str::from_utf8(key).ok()?.strip_prefix(PREFIX)?.strip_prefix(':')?.split('/').next()?.parse();
        Some(state.mailbox(number.ok()?).is_none())
    };
    let notes = state.account(account).map(|account| account.annotations.clone()).unwrap_or_default();
    let gone: Vec<_> = notes.keys().filter(|key| is_gone(key) == Some(true)).collect();
    gone.into_iter().try_for_each(|key| transaction.annotate(account, None, key, None))
}
