//! Mailboxes by their names: made, renamed, subscribed to.

use core::ops::Bound;

use store::{DELIMITER, Device, Error, Refused, SpecialUse, State, Transaction, Uids};

use crate::acl;

/// Mailboxes of one account.
pub const MAILBOXES_MAX: usize = 10_000;

/// Levels of a name above its last: each is a name that LIST tells.
pub const LEVELS_MAX: usize = 50;

/// Names that an account may subscribe to beyond those of its mailboxes, in number: of others, and of what is gone.
pub const SUBSCRIPTIONS_MORE: usize = 1_000;

/// Whether a mailbox may be called so.
pub fn is_name(name: &[u8]) -> bool {
    let is_odd = |byte: &u8| *byte < b' ' || *byte == 0x7f || b"%*".contains(byte);
    let levels_are_empty = name.split(|&byte| byte == DELIMITER).any(<[u8]>::is_empty);
    let is_deep = name.iter().filter(|&&byte| byte == DELIMITER).count() > LEVELS_MAX;
    !name.iter().any(is_odd) && !levels_are_empty && !is_deep && core::str::from_utf8(name).is_ok()
}

/// Makes a mailbox, with the rights of the one above it; returns its number.
///
/// # Errors
/// When the name is taken, or the account has as many as it may have.
pub fn create<D: Device>(
    transaction: &mut Transaction<'_, D>,
    account: u32,
    name: &[u8],
    special_use: SpecialUse,
) -> Result<u32, Error> {
    if transaction.state().account(account).is_some_and(|account| account.mailboxes.len() >= MAILBOXES_MAX) {
        return Err(Refused::TooMany.into());
    }
    let number = transaction.create(account, name, special_use)?;
    acl::inherit(transaction, account, number)?;
    Ok(number)
}

/// Renames a mailbox.
///
/// # Errors
/// When the name is taken.
pub fn rename<D: Device>(transaction: &mut Transaction<'_, D>, number: u32, name: &[u8]) -> Result<(), Error> {
    let account = transaction.state().mailbox(number).ok_or(Refused::NoSuchMailbox)?.account;
    if transaction.state().mailbox_named(account, name).is_some() {
        return Err(Refused::Exists.into());
    }
    transaction.rename(number, name)
}

/// Whether a name is of no mailbox, and some are below it.
pub fn is_only_above(state: &State, account: u32, name: &[u8]) -> bool {
    let Some(mailboxes) = state.account(account).map(|account| &account.mailboxes) else { return false };
    let below = [name, &[DELIMITER]].concat();
    let mut behind = mailboxes.range::<[u8], _>((Bound::Included(&below[..]), Bound::Unbounded));
    !mailboxes.contains_key(name) && behind.next().is_some_and(|(next, _)| next.starts_with(&below))
}

/// Renames what is below a name that is of no mailbox: one that is made for that takes it along.
///
/// # Errors
/// When the new name is taken.
pub fn rename_below<D: Device>(
    transaction: &mut Transaction<'_, D>,
    account: u32,
    from: &[u8],
    name: &[u8],
) -> Result<(), Error> {
    let number = transaction.create(account, from, SpecialUse::default())?;
    rename(transaction, number, name)?;
    transaction.remove(number)
}

/// Moves all messages of a mailbox to a new one; the mailbox stays (RFC 9051, section 6.3.6).
///
/// # Errors
/// As [`rename`].
pub fn rename_content<D: Device>(
    transaction: &mut Transaction<'_, D>,
    number: u32,
    name: &[u8],
    now: i64,
) -> Result<(), Error> {
    let account = transaction.state().mailbox(number).ok_or(Refused::NoSuchMailbox)?.account;
    if transaction.state().mailbox_named(account, name).is_some() {
        return Err(Refused::Exists.into());
    }
    let target = transaction.create(account, name, SpecialUse::default())?;
    transaction.move_to(number, target, &Uids::all(), now).map(drop)
}

/// Subscribes an account to a name, or ends that.
///
/// # Errors
/// When the account has subscribed to as many as it may.
pub fn subscribe<D: Device>(
    transaction: &mut Transaction<'_, D>,
    account: u32,
    name: &[u8],
    is_subscribed: bool,
) -> Result<(), Error> {
    let found = transaction.state().account(account);
    let is_full = found.is_some_and(|found| found.subscriptions.len() >= found.mailboxes.len() + SUBSCRIPTIONS_MORE);
    if is_subscribed && is_full {
        return Err(Refused::TooMany.into());
    }
    transaction.subscribe(account, name, is_subscribed)
}
