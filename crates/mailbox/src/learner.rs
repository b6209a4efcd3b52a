//! Moving mail teaches: what users move into the mailbox for junk is spam to them, and what they take out of it is not.

use store::{Mailbox, SpecialUse, State};

/// Bit of `\Junk` among the special uses.
pub(crate) const JUNK: SpecialUse = SpecialUse(1 << 4);

/// Bit of `\Trash`.
const TRASH: SpecialUse = SpecialUse(1 << 6);

/// Receiver of what users teach by moving mail.
pub trait Learner: Send + Sync {
    /// A message, by its number in the store, is spam to the user who has moved it, or is not. Never waits.
    fn moved(&self, user: &str, message: u64, is_spam: bool);
}

/// Lesson of a move or copy from one mailbox to another: spam, not spam, or none. Moves to the trash teach nothing.
fn lesson(from: &Mailbox, to: &Mailbox) -> Option<bool> {
    let is = |mailbox: &Mailbox, wanted: SpecialUse| mailbox.special_use.0 & wanted.0 != 0;
    match (is(from, JUNK), is(to, JUNK)) {
        (false, true) => Some(true),
        (true, false) if !is(to, TRASH) => Some(false),
        _ => None,
    }
}

/// A user has copied messages from one mailbox to another, or moved them; `copies` are their UIDs there.
pub(crate) fn tell(
    learner: &dyn Learner,
    state: &State,
    user: &str,
    [from, to]: [u32; 2],
    copies: impl Iterator<Item = u32>,
) {
    let (Some(from), Some(to)) = (state.mailbox(from), state.mailbox(to)) else { return };
    let Some(is_spam) = lesson(from, to) else { return };
    copies.filter_map(|uid| to.entry(uid)).for_each(|entry| learner.moved(user, entry.message.get(), is_spam));
}
