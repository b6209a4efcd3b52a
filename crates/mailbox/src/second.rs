//! The second step of a login at the webmail: an annotation of the account in the store.
//!
//! A check and the note of the code that it has used up are one transaction, so a code counts once, whichever connections it comes
//! over. Other protocols have no place for a code: an account chooses whether they take its password alone, or are closed to it. An
//! annotation that cannot be read lets no code count.

use store::{Account, Error, Refused, Transaction};

use crate::file::File;
use crate::totp::Second;
use crate::writer::Handle;

/// The annotation: a [`Second`] as text.
const NAME: &[u8] = b"login/second";

/// The annotation of an account that logs in at the webmail alone.
const ALONE: &[u8] = b"login/webmail-only";

/// Whether an account has a second step.
pub fn is_set(account: &Account) -> bool {
    account.annotations.get(NAME).is_some()
}

/// Whether an account logs in at the webmail alone.
pub fn is_alone(account: &Account) -> bool {
    account.annotations.get(ALONE).is_some()
}

/// The second step of an account, if it has one that can be read.
pub fn of(account: &Account) -> Option<Second> {
    std::str::from_utf8(account.annotations.get(NAME)?).ok()?.parse().ok()
}

/// Whether a code counts now; it is used up then.
///
/// # Errors
/// When that cannot be made durable.
pub async fn takes(store: &Handle, account: u32, code: &str, now: i64) -> Result<bool, Error> {
    let code = code.to_owned();
    let check = move |transaction: &mut Transaction<'_, File>| {
        let Some(mut second) = transaction.state().account(account).and_then(of) else {
            return Ok(false);
        };
        if !second.takes(&code, now) {
            return Ok(false);
        }
        transaction.annotate(account, None, NAME, Some(second.to_string().as_bytes()))?;
        Ok(true)
    };
    store.transact(check).await
}

/// Gives an account a second step, unless it has one.
///
/// # Errors
/// When it has one, and when that cannot be made durable.
pub async fn begin(store: &Handle, account: u32, second: Second, is_alone: bool) -> Result<(), Error> {
    let set = move |transaction: &mut Transaction<'_, File>| {
        if transaction.state().account(account).is_some_and(is_set) {
            return Err(Refused::Exists.into());
        }
        transaction.annotate(account, None, NAME, Some(second.to_string().as_bytes()))?;
        transaction.annotate(account, None, ALONE, is_alone.then_some(&b"1"[..]))
    };
    store.transact(set).await
}

/// Takes the second step of an account away.
///
/// # Errors
/// When that cannot be made durable.
pub async fn end(store: &Handle, account: u32) -> Result<(), Error> {
    store.transact(move |transaction| take_away(transaction, account)).await
}

/// The same within a transaction.
pub(crate) fn take_away(transaction: &mut Transaction<'_, File>, account: u32) -> Result<(), Error> {
    transaction.annotate(account, None, NAME, None)?;
    transaction.annotate(account, None, ALONE, None)
}
