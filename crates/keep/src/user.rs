//! The account of a user in the store, with its first mailboxes.

use alloc::sync::Arc;

use store::{Device, Error, Mailbox, Quota, Refused, SpecialUse, State, Transaction};

/// The mailboxes of a new account, with what they are for, as an index into [`SpecialUse::NAMES`].
pub const MAILBOXES: [(&[u8], Option<u16>); 6] = [
    (b"INBOX", None),
    (b"Archive", Some(1)),
    (b"Drafts", Some(2)),
    (b"Junk", Some(4)),
    (b"Sent", Some(5)),
    (b"Trash", Some(6)),
];

/// Names of mailboxes for a use with other servers and programs, the usual ones first.
const CALLED: [(u16, &str); 17] = [
    (1, "Archive"),
    (1, "Archives"),
    (2, "Drafts"),
    (2, "Draft"),
    (4, "Junk"),
    (4, "Spam"),
    (4, "Junk E-mail"),
    (4, "Junk Email"),
    (4, "Junk Mail"),
    (5, "Sent"),
    (5, "Sent Items"),
    (5, "Sent Messages"),
    (5, "Sent Mail"),
    (6, "Trash"),
    (6, "Deleted Items"),
    (6, "Deleted Messages"),
    (6, "Bin"),
];

/// The number of an account that lacks nothing that [`ensure`] gives it.
pub fn standing(state: &State, name: &str, quota_bytes: u64) -> Option<u32> {
    let (number, found) = state.account_named(name.as_bytes())?;
    let is_whole = found.quota == Quota { bytes: quota_bytes, messages: 0 }
        && found.mailboxes.contains_key(&b"INBOX"[..])
        && is_furnished(state, number);
    is_whole.then_some(number)
}

fn is_furnished(state: &State, account: u32) -> bool {
    mailboxes(state, account).any(|(_, mailbox)| mailbox.special_use != SpecialUse::default())
}

/// The number of an account. It is made, with its first mailboxes, if it is not there, and has its quota; 0 bytes is no bound.
///
/// # Errors
/// When the volume is full or failed.
pub fn ensure<D: Device>(transaction: &mut Transaction<'_, D>, name: &str, quota_bytes: u64) -> Result<u32, Error> {
    let quota = Quota { bytes: quota_bytes, messages: 0 };
    if let Some((number, found)) = transaction.state().account_named(name.as_bytes()) {
        let (quota_is_other, has_inbox) = (found.quota != quota, found.mailboxes.contains_key(&b"INBOX"[..]));
        if quota_is_other {
            transaction.set_quota(number, quota)?;
        }
        if !has_inbox {
            transaction.create(number, b"INBOX", SpecialUse::default())?;
        }
        furnish(transaction, number)?;
        return Ok(number);
    }
    let number = transaction.add_account(name.as_bytes(), quota)?;
    for (name, special_use) in MAILBOXES {
        transaction.create(number, name, SpecialUse(special_use.map_or(0, |bit| 1 << bit)))?;
        transaction.subscribe(number, name, true)?;
    }
    Ok(number)
}

/// Gives an account the first mailboxes if none of its mailboxes is for anything, as after an import.
///
/// # Errors
/// When the volume is full or failed.
pub fn furnish<D: Device>(transaction: &mut Transaction<'_, D>, account: u32) -> Result<(), Error> {
    if is_furnished(transaction.state(), account) {
        return Ok(());
    }
    for bit in MAILBOXES.iter().filter_map(|(_, bit)| *bit) {
        provide(transaction, account, bit)?;
    }
    Ok(())
}

/// The mailbox of an account for a use, an index into [`SpecialUse::NAMES`]: the one that has it, else one that has no use and is called so,
/// else a new one.
///
/// # Errors
/// When a mailbox with another use has its name, or the use is none of [`MAILBOXES`]; when the volume is full or failed.
pub fn provide<D: Device>(transaction: &mut Transaction<'_, D>, account: u32, bit: u16) -> Result<u32, Error> {
    let wanted = SpecialUse(1 << bit);
    let used = mailboxes(transaction.state(), account).find(|(_, found)| found.special_use.0 & wanted.0 != 0);
    if let Some((number, _)) = used {
        return Ok(number);
    }
    let unused =
        mailboxes(transaction.state(), account).filter(|(_, found)| found.special_use == SpecialUse::default());
    let called = unused.filter_map(|(number, found)| Some((place(&found.name, bit)?, number))).min();
    if let Some((_, number)) = called {
        transaction.set_special_use(number, wanted)?;
        return Ok(number);
    }
    let first = MAILBOXES.iter().find(|(_, of)| *of == Some(bit));
    let (name, _) = first.ok_or(Error::Refused(Refused::NoSuchMailbox))?;
    let number = transaction.create(account, name, wanted)?;
    transaction.subscribe(account, name, true)?;
    Ok(number)
}

fn mailboxes(state: &State, account: u32) -> impl Iterator<Item = (u32, &Arc<Mailbox>)> {
    let numbers = state.account(account).into_iter().flat_map(|account| account.mailboxes.values());
    numbers.filter_map(move |&number| Some((number, state.mailbox(number)?)))
}

/// The place of a name among those for a use.
fn place(name: &[u8], bit: u16) -> Option<usize> {
    CALLED.iter().position(|(of, called)| *of == bit && called.as_bytes().eq_ignore_ascii_case(name))
}
