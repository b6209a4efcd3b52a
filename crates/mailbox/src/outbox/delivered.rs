//! Recipients here that have a mail already, and still stand in its entry: noted in the transaction that delivers it, until the one that
//! notes the outcome. A server that is killed in between delivers to nobody twice.
//!
//! An annotation of the queue's mailbox for each mail that is being delivered: eight bytes of the SHA-256 of each address.

use std::collections::BTreeSet;

use sha2::{Digest as _, Sha256};
use store::{Error, Refused, State, Transaction};

use super::{Recipient, place};
use crate::file::File;

/// The name of such an annotation, in front of the number of the mail.
const DELIVERED: &str = "delivered/";

type Mark = [u8; 8];

/// Notes that a recipient has the mail, while it waits.
pub(crate) fn mark_delivered(transaction: &mut Transaction<'_, File>, mail: u32, to: &str) -> Result<(), Error> {
    let Some((number, mailbox)) = place(transaction.state()) else { return Ok(()) };
    if mailbox.entry(mail).is_none() {
        return Ok(());
    }
    let (account, name) = (mailbox.account, name_of(mail));
    let mut marks = mailbox.annotations.get(&*name).map(|value| value.to_vec()).unwrap_or_default();
    marks.extend(mark(to));
    match transaction.annotate(account, Some(number), &name, Some(&marks)) {
        // More mails than any server delivers at a time: a delivery counts for more.
        Err(Error::Refused(Refused::TooManyAnnotations)) => Ok(()),
        outcome => outcome,
    }
}

/// Whether a recipient of a mail that waits has it.
pub(crate) fn is_delivered(state: &State, mail: u32, to: &str) -> bool {
    marks(state, mail).contains(&mark(to))
}

/// Forgets the recipients of a mail but for those that are left.
pub(super) fn forget_delivered(
    transaction: &mut Transaction<'_, File>,
    mail: u32,
    left: &[Recipient],
) -> Result<(), Error> {
    let former = marks(transaction.state(), mail);
    let found = place(transaction.state()).map(|(number, mailbox)| (mailbox.account, number));
    let Some((account, number)) = found.filter(|_| !former.is_empty()) else { return Ok(()) };
    let left: BTreeSet<Mark> = left.iter().map(|one| mark(&one.to)).filter(|one| former.contains(one)).collect();
    // What is left of some needs room, and does no harm if it stays.
    match left.is_empty() {
        true => transaction.annotate(account, Some(number), &name_of(mail), None),
        false => Ok(()),
    }
}

fn marks(state: &State, mail: u32) -> BTreeSet<Mark> {
    let found = place(state).and_then(|(_, mailbox)| mailbox.annotations.get(&*name_of(mail)));
    let chunk = |chunk: &[u8]| chunk.try_into().ok();
    found.map(|value| value.chunks(size_of::<Mark>()).filter_map(chunk).collect()).unwrap_or_default()
}

fn mark(to: &str) -> Mark {
    let mut mark = Mark::default();
    let digest = Sha256::digest(to.as_bytes());
    mark.iter_mut().zip(digest).for_each(|(byte, of)| *byte = of);
    mark
}

fn name_of(mail: u32) -> Vec<u8> {
    format!("{DELIVERED}{mail}").into_bytes()
}
