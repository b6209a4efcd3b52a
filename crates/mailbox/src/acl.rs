//! Rights that others have (RFC 4314), as an administrator changes them.

use proto::imap::acl::Modification;

use crate::account::checked;
use crate::writer::Handle;

pub use keep::acl::told;
pub(crate) use keep::acl::*;

/// Changes what somebody may do with a mailbox, for an administrator: `letters` may begin with `+` or `-`. Whether such an account
/// exists is not looked at.
///
/// # Errors
/// When there is no such mailbox or right, or no room.
pub async fn set(store: &Handle, account: &str, mailbox: &str, who: &str, letters: &str) -> Result<(), String> {
    let modification = Modification::parse(letters.as_bytes())?;
    let who = who.to_ascii_lowercase();
    let name = who.strip_prefix('-').unwrap_or(&who);
    if checked(name)? == account.to_ascii_lowercase() {
        return Err("the owner has all rights".into());
    }
    let state = store.state();
    let number = named(&state, account, mailbox).ok_or(format!("{account} has no mailbox {mailbox}"))?.0;
    let changed = store.transact(move |transaction| change(transaction, number, &who, modification)).await;
    changed.map_err(|error| error.to_string())
}
