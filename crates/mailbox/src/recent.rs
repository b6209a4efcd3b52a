//! Recent messages (RFC 3501, section 2.3.2): those that no session was told of before.
//!
//! A mark for each mailbox: UIDs from there on are recent for whoever selects it next. Sessions move it in memory as they are told
//! of messages, and note it in the store when they leave the mailbox, so mail costs no second flush. What a crash forgets is
//! recent once more, as section 2.3.2 wants it where nobody knows. Bounds: a number for each mailbox that was selected.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use store::{Error, Mailbox};

use crate::writer::Handle;

/// The annotation of a mailbox: the mark, in decimal digits.
const NAME: &[u8] = b"recent";

/// The marks that have moved.
#[derive(Debug, Default)]
pub(crate) struct Recents(Mutex<HashMap<u32, u32>>);

impl Recents {
    fn lock(&self) -> MutexGuard<'_, HashMap<u32, u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first UID that is recent.
    pub fn mark(&self, number: u32, mailbox: &Mailbox) -> u32 {
        let held = self.lock().get(&number).copied();
        held.unwrap_or(0).max(noted(mailbox))
    }

    /// The same; from here on nothing in `mailbox` is recent any more.
    pub fn claim(&self, number: u32, mailbox: &Mailbox) -> u32 {
        let mut marks = self.lock();
        let held = marks.entry(number).or_default();
        let mark = (*held).max(noted(mailbox));
        *held = mark.max(mailbox.uid_next);
        mark
    }

    /// The mailbox is gone.
    pub fn forget(&self, number: u32) {
        self.lock().remove(&number);
    }

    /// Notes the mark of a mailbox if it has moved. An account with as many annotations as it may have stays as it is.
    pub async fn note(&self, store: &Handle, number: u32) {
        let Some(mark) = self.lock().get(&number).copied() else { return };
        let state = store.state();
        match state.mailbox(number) {
            None => return self.forget(number),
            Some(mailbox) if noted(mailbox) >= mark => return,
            Some(_) => {}
        }
        let note = store.transact(move |transaction| {
            let mailbox = transaction.state().mailbox(number).ok_or(store::Refused::NoSuchMailbox)?;
            if noted(mailbox) >= mark {
                return Ok::<_, Error>(());
            }
            let account = mailbox.account;
            transaction.annotate(account, Some(number), NAME, Some(mark.to_string().as_bytes()))
        });
        if let Err(error) = note.await {
            tracing::debug!(%error, "recent flags not stored");
        }
    }
}

fn noted(mailbox: &Mailbox) -> u32 {
    let value = mailbox.annotations.get(NAME).and_then(|value| std::str::from_utf8(value).ok());
    value.and_then(|digits| digits.parse().ok()).unwrap_or(1)
}
