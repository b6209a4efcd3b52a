//! Rights on mailboxes of other accounts (RFC 4314).
//!
//! Rights are annotations of the mailbox: `acl/NAME` for an account, `acl/anyone` for all, `acl/-NAME` for rights
//! that are denied to the account, whoever else grants them. The owner has all rights, which nobody can take away.
//! Mailboxes of others are `Other Users/ACCOUNT/MAILBOX`; without `l` or another right an account does not learn that
//! the mailbox exists.
//!
//! All who read a mailbox share one set of flags, `\Seen` too. The bound of annotations bounds lists too: 2,000 in an
//! account, together with scripts and metadata.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use proto::imap::acl::{Modification, Rights};
use proto::imap::name;
use store::{Change, DELIMITER, Device, Error, Flags, Mailbox, Refused, State, Transaction, Uids};

/// The list of a mailbox, for an administrator: names, and letters. None if there is no such account or mailbox.
pub fn told(state: &State, account: &str, mailbox: &str) -> Option<Vec<(String, String)>> {
    let mailbox = named(state, account, mailbox)?.1;
    Some(list(mailbox).map(|(who, rights)| (who, rights.letters())).collect())
}

/// A mailbox of an account by their names.
pub fn named<'a>(state: &'a State, account: &str, mailbox: &str) -> Option<(u32, &'a Arc<Mailbox>)> {
    let (number, _) = state.account_named(account.to_ascii_lowercase().as_bytes())?;
    state.mailbox_named(number, &name::canonical(mailbox.into()))
}

/// Prefix of the names of mailboxes of others.
pub const OTHERS: &[u8] = b"Other Users/";

/// Prefix of the names of annotations with rights.
const PREFIX: &[u8] = b"acl/";

/// Rights to change a mailbox: without one of them it is read-only.
pub const CHANGES: Rights =
    Rights::SEEN.with(Rights::WRITE).with(Rights::INSERT).with(Rights::MARK).with(Rights::EXPUNGE);

/// Everybody who has an account.
pub const ANYONE: &str = "anyone";

/// A mailbox with the rights of a user.
#[derive(Debug, Clone)]
pub struct Place {
    /// Account that owns the mailbox.
    pub account: u32,
    /// The number of the mailbox.
    pub number: u32,
    /// The mailbox.
    pub mailbox: Arc<Mailbox>,
    /// The rights of who asks.
    pub rights: Rights,
}

/// The mailbox that an account calls so; none if there is none, or it may not know of it.
pub fn place(state: &State, account: u32, name: &[u8]) -> Option<Place> {
    let other = || {
        let (owner, name) = split(name.strip_prefix(OTHERS)?)?;
        let (owner, _) = state.account_named(&owner.to_ascii_lowercase())?;
        Some((owner, state.mailbox_named(owner, &name::canonical(name.to_vec()))?))
    };
    // Before there was such a place somebody may have called one of his so.
    let (owner, (number, mailbox)) = other().or_else(|| Some((account, state.mailbox_named(account, name)?)))?;
    let rights = rights(state, account, mailbox);
    (rights != Rights::NONE).then(|| Place { account: owner, number, mailbox: mailbox.clone(), rights })
}

/// Rights of an account on a mailbox.
pub fn rights(state: &State, account: u32, mailbox: &Mailbox) -> Rights {
    if mailbox.account == account {
        return Rights::ALL;
    }
    let Some(name) = state.account(account).map(|account| String::from_utf8_lossy(&account.name).into_owned()) else {
        return Rights::NONE;
    };
    let of = |who: &str| given(mailbox, who);
    let granted = of(&name).with(of(ANYONE));
    granted.without(of(&format!("-{name}"))).without(of(&format!("-{ANYONE}")))
}

/// Rights that the mailbox's list has for one identifier.
pub fn given(mailbox: &Mailbox, who: &str) -> Rights {
    let letters = mailbox.annotations.get(&*key(who));
    letters.and_then(|letters| Rights::parse(letters).ok()).unwrap_or_default()
}

/// Right that setting a flag needs.
pub fn needed_for(flag: &str) -> Rights {
    match flag {
        "\\Seen" => Rights::SEEN,
        "\\Deleted" => Rights::MARK,
        _ => Rights::WRITE,
    }
}

/// The system flags that somebody may set.
pub fn flags(rights: Rights) -> u64 {
    let seen = if rights.has(Rights::SEEN) { Flags::SEEN } else { 0 };
    let deleted = if rights.has(Rights::MARK) { Flags::DELETED } else { 0 };
    let others = if rights.has(Rights::WRITE) { Flags::SYSTEM & !(Flags::SEEN | Flags::DELETED) } else { 0 };
    seen | deleted | others
}

/// The list of a mailbox.
pub fn list(mailbox: &Mailbox) -> impl Iterator<Item = (String, Rights)> {
    mailbox.annotations.iter().filter_map(|(name, letters)| {
        let who = core::str::from_utf8(name.strip_prefix(PREFIX)?).ok()?;
        Some((who.to_owned(), Rights::parse(letters).ok()?))
    })
}

/// Changes what somebody may; who may nothing is not in the list.
///
/// # Errors
/// When there is no such mailbox, or no room.
pub fn change<D: Device>(
    transaction: &mut Transaction<'_, D>,
    number: u32,
    who: &str,
    modification: Modification,
) -> Result<(), Error> {
    let mailbox = transaction.state().mailbox(number).ok_or(Refused::NoSuchMailbox)?;
    let (account, before) = (mailbox.account, given(mailbox, who));
    let letters = modification.of(before).letters();
    let value = (!letters.is_empty()).then_some(letters.as_bytes());
    if value.is_none() && before == Rights::NONE {
        return Ok(());
    }
    transaction.annotate(account, Some(number), &key(who), value)
}

/// Gives a mailbox the list of the one above it.
///
/// # Errors
/// When there is no room.
pub fn inherit<D: Device>(transaction: &mut Transaction<'_, D>, account: u32, number: u32) -> Result<(), Error> {
    let state = transaction.state();
    let above = state.mailbox(number).and_then(|mailbox| above(&mailbox.name).map(<[u8]>::to_vec));
    let parent = above.and_then(|above| Some(state.mailbox_named(account, &above)?.1.clone()));
    for (who, rights) in parent.iter().flat_map(|parent| list(parent)) {
        change(transaction, number, &who, Modification::Replace(rights))?;
    }
    Ok(())
}

/// Takes all flags from messages that somebody with these rights may set; returns the messages that it took some from, and those that
/// were changed after `since`.
///
/// # Errors
/// When there is no such mailbox.
pub fn withdraw<D: Device>(
    transaction: &mut Transaction<'_, D>,
    number: u32,
    uids: &Uids,
    rights: Rights,
    since: u64,
) -> Result<(Vec<u32>, Vec<u32>), Error> {
    let mailbox = transaction.state().mailbox(number).ok_or(Refused::NoSuchMailbox)?;
    let keywords: Vec<String> = match rights.has(Rights::WRITE) {
        true => mailbox.keywords.to_vec(),
        false => Vec::new(),
    };
    let keywords: Vec<&str> = keywords.iter().map(String::as_str).collect();
    transaction.store(number, uids, Change::Remove, (flags(rights), &keywords), since)
}

/// Splits a name at the first delimiter.
fn split(name: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = name.iter().position(|&byte| byte == DELIMITER)?;
    Some((name.get(..at)?, name.get(at.checked_add(1)?..)?))
}

/// The name that stands above.
pub fn above(name: &[u8]) -> Option<&[u8]> {
    let at = name.iter().rposition(|&byte| byte == DELIMITER)?;
    name.get(..at)
}

/// All mailboxes of others that an account may know of, by the names that they have for it. Those of which nothing is given to it
/// are not looked at.
pub fn others(state: &State, account: u32) -> impl Iterator<Item = (Vec<u8>, u32)> {
    let name = state.account(account).map(|account| key(&String::from_utf8_lossy(&account.name)));
    let given: BTreeSet<u32> = [name, Some(key(ANYONE))]
        .iter()
        .flatten()
        .flat_map(|key| state.mailboxes_annotated(key))
        .map(|(number, _)| number)
        .collect();
    given.into_iter().filter_map(move |number| {
        let mailbox = state.mailbox(number).filter(|mailbox| mailbox.account != account)?;
        if !rights(state, account, mailbox).has(Rights::LOOKUP) {
            return None;
        }
        let owner = state.account(mailbox.account)?;
        Some(([OTHERS, &owner.name, &[DELIMITER], &mailbox.name].concat(), number))
    })
}

fn key(who: &str) -> Vec<u8> {
    [PREFIX, who.as_bytes()].concat()
}
