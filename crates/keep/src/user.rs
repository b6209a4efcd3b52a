//! The account of a user in the store, with its first mailboxes.

use store::{Device, Error, Quota, SpecialUse, Transaction};

/// The mailboxes of a new account, with what they are for, as an index into [`SpecialUse::NAMES`].
pub const MAILBOXES: [(&[u8], Option<u16>); 6] = [
    (b"INBOX", None),
    (b"Archive", Some(1)),
    (b"Drafts", Some(2)),
    (b"Junk", Some(4)),
    (b"Sent", Some(5)),
    (b"Trash", Some(6)),
];

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
        return Ok(number);
    }
    let number = transaction.add_account(name.as_bytes(), quota)?;
    for (name, special_use) in MAILBOXES {
        transaction.create(number, name, SpecialUse(special_use.map_or(0, |bit| 1 << bit)))?;
        transaction.subscribe(number, name, true)?;
    }
    Ok(number)
}
