//! Passkeys of an account for the webmail: an annotation of the account in the store, a line for each.
//!
//! A login and the note of its counter are one transaction, so no counter counts twice. Passkeys outlive a change of the password, as app
//! passwords do. Bounds are those of [`webauthn`].

use store::{Account, Error, Refused, Transaction};

use crate::file::File;
use crate::second;
use crate::webauthn::{self, Credential, Passkey};
use crate::writer::Handle;

/// The annotation.
const NAME: &[u8] = b"login/passkeys";

/// The outcome of a removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// The passkey is removed.
    Done,
    /// It was not there.
    Gone,
    /// It stays: it is the last one, and the second step has no device.
    Last,
}

/// The passkeys of an account, the oldest first.
pub fn of(account: &Account) -> Vec<Passkey> {
    let value = account.annotations.get(NAME).map(|value| String::from_utf8_lossy(value).into_owned());
    webauthn::read(&value.unwrap_or_default())
}

/// Adds a passkey; false if it has no name, is there already, or there are as many as may be.
///
/// # Errors
/// When that cannot be made durable.
pub async fn add(store: &Handle, account: u32, name: &str, credential: Credential, now: i64) -> Result<bool, Error> {
    let name = name.to_owned();
    change(store, account, move |_, all| webauthn::add(all, &name, credential, now)).await
}

/// Removes a passkey.
///
/// # Errors
/// When that cannot be made durable.
pub async fn remove(store: &Handle, account: u32, id: u32) -> Result<Removal, Error> {
    let remove = move |account: &Account, all: &mut Vec<Passkey>| {
        let needs_one = second::of(account).is_some_and(|second| !second.has_device());
        match all.iter().position(|one| one.id == id) {
            None => Removal::Gone,
            Some(_) if needs_one && all.len() == 1 => Removal::Last,
            Some(at) => {
                all.remove(at);
                Removal::Done
            }
        }
    };
    change(store, account, remove).await
}

/// Notes a login by a passkey with its counter; false if it is gone, or another login has come in between.
///
/// # Errors
/// When that cannot be made durable.
pub async fn note(store: &Handle, account: u32, id: u32, counter: u32, now: i64) -> Result<bool, Error> {
    let note = move |_: &Account, all: &mut Vec<Passkey>| {
        all.iter_mut().find(|one| one.id == id).is_some_and(|one| one.note(counter, now))
    };
    change(store, account, note).await
}

/// Takes all passkeys and the second step of an account away.
///
/// # Errors
/// When that cannot be made durable.
pub async fn reset(store: &Handle, account: u32) -> Result<(), Error> {
    let reset = move |transaction: &mut Transaction<'_, File>| {
        transaction.annotate(account, None, NAME, None)?;
        second::take_away(transaction, account)
    };
    store.transact(reset).await
}

/// Does something with the passkeys of an account, and keeps them if they are others then.
async fn change<T: Send + 'static>(
    store: &Handle,
    account: u32,
    work: impl FnOnce(&Account, &mut Vec<Passkey>) -> T + Send + 'static,
) -> Result<T, Error> {
    let change = move |transaction: &mut Transaction<'_, File>| {
        let known = transaction.state().account(account).ok_or(Refused::NoSuchAccount)?;
        let (before, mut all) = (of(known), of(known));
        let outcome = work(known, &mut all);
        if all != before {
            let value = webauthn::write(&all);
            transaction.annotate(account, None, NAME, Some(value.as_bytes()).filter(|value| !value.is_empty()))?;
        }
        Ok(outcome)
    };
    store.transact(change).await
}
