//! Recalls a mail: finds the mailboxes that have it, and removes it from all of them in one transaction. Every
//! mailbox points to one copy.
//!
//! A mail is known by its `Message-ID`, which its sender wrote: whoever wrote the same one twice has both found. There is no
//! index; the headers of all messages are read, each up to 256 KiB.

use keep::content::Reader as _;
use keep::header::fields;
use store::{Error, State, Transaction, Uids};

use crate::content::Body;
use crate::file::File;
use crate::indexing::forget;
use crate::writer::Handle;

/// Bytes of a header that are looked at.
const HEADER_BYTES_MAX: usize = 256 << 10;

/// Where a mail is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The account.
    pub account: String,
    /// Its mailbox.
    pub mailbox: String,
    /// Its UID there.
    pub uid: u32,
    /// The stored message: places of one copy have the same.
    pub message: u64,
}

/// Places of a mail, and the number of messages that could not be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// Everywhere that it is.
    pub places: Vec<Place>,
    /// Messages that cannot be read: whether they are it is not known.
    pub unread: u64,
}

/// Where the mails with this `Message-ID` are. Reads much, and waits for the disk.
pub fn find(store: &Handle, message_id: &str) -> Found {
    let state = store.state();
    let (messages, unread) = messages(store, &state, message_id);
    Found { places: places(&state, &messages), unread }
}

/// Takes the mails with this `Message-ID` out of all mailboxes, and returns from where. What is delivered or copied meanwhile is
/// found too, if it is the same copy.
///
/// # Errors
/// When it cannot be made durable; nothing has changed then.
pub async fn recall(store: &Handle, message_id: &str) -> Result<Found, Error> {
    let (handle, wanted) = (store.clone(), message_id.to_owned());
    let looked = tokio::task::spawn_blocking(move || messages(&handle, &handle.state(), &wanted)).await;
    let (messages, unread) = looked.map_err(|_| Error::Failed)?;
    if messages.is_empty() {
        return Ok(Found { places: Vec::new(), unread });
    }
    let taken = store.transact(move |transaction| {
        let places = places(transaction.state(), &messages);
        take_out(transaction, &messages)?;
        Ok(places)
    });
    Ok(Found { places: taken.await?, unread })
}

fn take_out(transaction: &mut Transaction<'_, File>, messages: &[u64]) -> Result<(), Error> {
    let mut mailboxes: std::collections::BTreeMap<u32, Vec<u32>> = std::collections::BTreeMap::new();
    for (mailbox, uid, _) in found_in(transaction.state(), messages) {
        mailboxes.entry(mailbox).or_default().push(uid);
    }
    for (mailbox, uids) in mailboxes {
        // Of what is recalled no word stays in an index.
        let account = transaction.state().mailbox(mailbox).map(|mailbox| mailbox.account);
        account.into_iter().try_for_each(|account| forget(transaction, account))?;
        let uids: Uids = uids.into_iter().collect();
        transaction.expunge(mailbox, &uids)?;
    }
    Ok(())
}

fn places(state: &State, messages: &[u64]) -> Vec<Place> {
    let place = |(mailbox, uid, message): (u32, u32, u64)| {
        let mailbox = state.mailbox(mailbox)?;
        let account = state.account(mailbox.account)?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Some(Place { account: text(&account.name), mailbox: text(&mailbox.name), uid, message })
    };
    let mut places: Vec<Place> = found_in(state, messages).filter_map(place).collect();
    places
        .sort_by(|one, other| (&one.account, &one.mailbox, one.uid).cmp(&(&other.account, &other.mailbox, other.uid)));
    places
}

/// Mailboxes and UIDs of these messages, which are ascending; one pass over all mailboxes.
fn found_in<'a>(state: &'a State, messages: &'a [u64]) -> impl Iterator<Item = (u32, u32, u64)> + 'a {
    state.mailboxes().flat_map(move |(number, mailbox)| {
        let entries = mailbox.from(0).map(move |(uid, entry)| (number, uid, entry.message.get()));
        entries.filter(move |(_, _, message)| messages.binary_search(message).is_ok())
    })
}

/// The messages with this id, ascending, and how many cannot be read.
fn messages(store: &Handle, state: &State, message_id: &str) -> (Vec<u64>, u64) {
    let wanted = bare(message_id.as_bytes());
    let (mut found, mut unread) = (Vec::new(), 0);
    for (number, _) in state.messages() {
        match id_of(store, number) {
            Ok(id) if id.as_deref() == Some(wanted) => found.push(number),
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(message = number, %error, "a message cannot be read");
                unread += 1;
            }
        }
    }
    found.sort_unstable();
    (found, unread)
}

fn id_of(store: &Handle, number: u64) -> Result<Option<Vec<u8>>, Error> {
    // No mailbox has it any more.
    let Some(mut body) = Body::open(store, number) else { return Ok(None) };
    let mut header = Vec::new();
    body.read_header(HEADER_BYTES_MAX, &mut header)?;
    let value = fields(&header).find_map(|field| {
        let colon = field.iter().position(|&byte| byte == b':')?;
        let is_it = field[..colon].trim_ascii_end().eq_ignore_ascii_case(b"message-id");
        is_it.then(|| bare(&field[colon + 1..]).to_vec())
    });
    Ok(value)
}

/// Without blanks and angle brackets.
fn bare(id: &[u8]) -> &[u8] {
    let id = id.trim_ascii();
    let id = id.strip_prefix(b"<").unwrap_or(id);
    id.strip_suffix(b">").unwrap_or(id)
}
