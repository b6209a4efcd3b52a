//! Changes that hold together: all of them, or none.
//!
//! A transaction sees what was staged before it, and its own operations. One that is dropped has not been.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::append::Sealed;
use crate::apply::{Effects, Pairs};
use crate::device::Device;
use crate::error::{Error, Refused};
use crate::operation::{Change, Delivery, Operation, Uids};
use crate::record::{HEADER_BYTES, SECTOR_BYTES};
use crate::state::{
    ANNOTATED_BYTES_MAX, ANNOTATION_BYTES_MAX, ANNOTATION_NAME_BYTES_MAX, ANNOTATIONS_MAX, KEYWORD_BYTES_MAX,
    KEYWORDS_MAX, NAME_BYTES_MAX, NOTE_BYTES_MAX, Quota, SpecialUse, State,
};
use crate::volume::{Staged, Volume};

/// Operations of one transaction, in bytes.
pub const TRANSACTION_BYTES_MAX: usize = 1 << 20;

/// A transaction being made.
#[derive(Debug)]
pub struct Transaction<'a, D: Device> {
    volume: &'a mut Volume<D>,
    before: State,
    operations: Vec<u8>,
    effects: Effects,
    /// Messages that this transaction adds.
    added: Vec<Sealed>,
    grows: bool,
    is_staged: bool,
}

/// How a message comes into a mailbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Arrival<'a> {
    /// System flags.
    pub flags: u64,
    /// Keywords.
    pub keywords: &'a [&'a str],
    /// INTERNALDATE, seconds since 1970.
    pub date: i64,
    /// The time, seconds since 1970.
    pub now: i64,
}

impl<D: Device> Volume<D> {
    /// Begins a transaction; makes room for it first if there is little.
    pub fn transaction(&mut self) -> Result<Transaction<'_, D>, Error> {
        self.writable()?;
        self.reclaim_if_low()?;
        self.begin()
    }

    /// The same, where room is being made.
    pub(crate) fn begin(&mut self) -> Result<Transaction<'_, D>, Error> {
        self.writable()?;
        let before = self.working.clone();
        self.working.commits += 1;
        Ok(Transaction {
            volume: self,
            before,
            operations: Vec::new(),
            effects: Effects::default(),
            added: Vec::new(),
            grows: false,
            is_staged: false,
        })
    }

    pub(crate) fn renumber(&mut self) -> Result<(), Error> {
        let mut transaction = self.begin()?;
        transaction.apply(&Operation::Renumber)?;
        transaction.stage()?;
        self.publish()
    }
}

impl<D: Device> Transaction<'_, D> {
    /// The state with the operations of this transaction.
    pub fn state(&self) -> &State {
        &self.volume.working
    }

    /// Adds an account.
    pub fn add_account(&mut self, name: &[u8], quota: Quota) -> Result<u32, Error> {
        let number = self.volume.working.next_account;
        self.grow(&Operation::AddAccount { number, name: named(name)?, quota })?;
        Ok(number)
    }

    /// Sets the bounds of an account; content beyond them stays.
    pub fn set_quota(&mut self, account: u32, quota: Quota) -> Result<(), Error> {
        self.apply(&Operation::SetQuota { account, quota }).map(drop)
    }

    /// Removes an account with all its mailboxes.
    pub fn remove_account(&mut self, account: u32) -> Result<(), Error> {
        self.apply(&Operation::RemoveAccount { account }).map(drop)
    }

    /// Creates a mailbox; those above it need not exist.
    pub fn create(&mut self, account: u32, name: &[u8], special_use: SpecialUse) -> Result<u32, Error> {
        let number = self.volume.working.next_mailbox;
        self.grow(&Operation::AddMailbox { number, account, name: named(name)?, special_use })?;
        Ok(number)
    }

    /// Renames a mailbox and those below it.
    pub fn rename(&mut self, mailbox: u32, name: &[u8]) -> Result<(), Error> {
        self.apply(&Operation::Rename { mailbox, name: named(name)? }).map(drop)
    }

    /// Deletes a mailbox with its messages; those below it stay.
    pub fn remove(&mut self, mailbox: u32) -> Result<(), Error> {
        self.apply(&Operation::RemoveMailbox { mailbox }).map(drop)
    }

    /// Subscribes to a name, or not any more.
    pub fn subscribe(&mut self, account: u32, name: &[u8], subscribed: bool) -> Result<(), Error> {
        self.apply(&Operation::Subscribe { account, name: named(name)?, subscribed }).map(drop)
    }

    /// Sets the special use of a mailbox.
    pub fn set_special_use(&mut self, mailbox: u32, special_use: SpecialUse) -> Result<(), Error> {
        self.apply(&Operation::SetSpecialUse { mailbox, special_use }).map(drop)
    }

    /// Notes something of an account, or of one of its mailboxes; without a value it is forgotten.
    pub fn annotate(
        &mut self,
        account: u32,
        mailbox: Option<u32>,
        name: &[u8],
        value: Option<&[u8]>,
    ) -> Result<(), Error> {
        if !(1..=ANNOTATION_NAME_BYTES_MAX).contains(&name.len()) {
            return Err(Refused::Name.into());
        }
        let owner = self.state().account(account).ok_or(Refused::NoSuchAccount)?;
        if mailbox.is_some_and(|mailbox| !owner.mailboxes.values().any(|&known| known == mailbox)) {
            return Err(Refused::NoSuchMailbox.into());
        }
        let operation = Operation::Annotate {
            account,
            mailbox: mailbox.unwrap_or(0),
            name: name.into(),
            value: value.map(Into::into),
        };
        let Some(value) = value else { return self.apply(&operation).map(drop) };
        let annotations = match mailbox {
            Some(mailbox) => self.state().mailbox(mailbox).map(|mailbox| &mailbox.annotations),
            None => Some(&owner.annotations),
        };
        let former = annotations.and_then(|annotations| annotations.get(name));
        let (count, bytes) = self.state().annotations_of(account);
        let count = count.saturating_add(usize::from(former.is_none()));
        let replaced = former.map_or(0, |former| name.len().saturating_add(former.len()));
        let bytes = bytes.saturating_sub(replaced).saturating_add(name.len()).saturating_add(value.len());
        if value.len() > ANNOTATION_BYTES_MAX || count > ANNOTATIONS_MAX || bytes > ANNOTATED_BYTES_MAX {
            return Err(Refused::TooManyAnnotations.into());
        }
        self.grow(&operation).map(drop)
    }

    /// Sets the note of a message in a mailbox, or removes it. It goes with the message, and does not follow it into
    /// another mailbox. One that is not longer than the one before may use the room that deletions have.
    pub fn note(&mut self, mailbox: u32, uid: u32, value: Option<&[u8]>) -> Result<(), Error> {
        if value.is_some_and(|value| value.len() > NOTE_BYTES_MAX) {
            return Err(Refused::TooManyAnnotations.into());
        }
        let operation = Operation::Note { mailbox, uid, value: value.map(Into::into) };
        let former = self.state().mailbox(mailbox).and_then(|mailbox| mailbox.note(uid)).map_or(0, |note| note.len());
        match value.map_or(0, <[u8]>::len) > former {
            true => self.grow(&operation).map(drop),
            false => self.apply(&operation).map(drop),
        }
    }

    /// Puts a message into a mailbox; returns its UID. If it is refused, for its quota, say, the others stand.
    pub fn deliver(&mut self, message: &Sealed, mailbox: u32, arrival: &Arrival<'_>) -> Result<u32, Error> {
        let keywords: Vec<String> = arrival.keywords.iter().map(|keyword| keyword.to_string()).collect();
        check_keywords(&keywords)?;
        self.volume.belongs(message.opened)?;
        let target = self.state().mailbox(mailbox).ok_or(Refused::NoSuchMailbox)?;
        let (uid, account) = (target.uid_next, target.account);
        self.check_quota(account, message.message.size, 1)?;
        match self.state().message(message.number) {
            Some(present) if present.id == message.message.id => {}
            Some(_) => return Err(Refused::NoSuchMessage.into()),
            None if message.is_known => return Err(Refused::NoSuchMessage.into()),
            // Another one has come under this id since this one began.
            None if self.volume.message_by_id(message.message.id).is_some() => {
                return Err(Refused::KnownIdOtherContent.into());
            }
            None => {
                self.grow(&Operation::AddMessage { number: message.number, message: message.message.clone() })?;
                self.added.push(message.clone());
            }
        }
        let delivery = Delivery {
            mailbox,
            uid,
            message: message.number,
            date: arrival.date,
            saved: arrival.now,
            flags: arrival.flags,
            keywords,
        };
        self.grow(&Operation::Deliver(delivery))?;
        Ok(uid)
    }

    /// Changes flags; returns the UIDs of changed messages. Messages that another transaction changed after
    /// `unchanged_since` stay unchanged, and are returned second (RFC 7162).
    pub fn store(
        &mut self,
        mailbox: u32,
        uids: &Uids,
        change: Change,
        (flags, keywords): (u64, &[&str]),
        unchanged_since: u64,
    ) -> Result<(Vec<u32>, Vec<u32>), Error> {
        let keywords: Vec<String> = keywords.iter().map(|keyword| keyword.to_string()).collect();
        check_keywords(&keywords)?;
        let target = self.state().mailbox(mailbox).ok_or(Refused::NoSuchMailbox)?.clone();
        let later = |uid: &u32| target.entry(*uid).is_some_and(|entry| entry.modseq > unchanged_since);
        let (late, early): (Vec<u32>, Vec<u32>) = match target.highest_modseq > unchanged_since {
            true => target.among(uids).map(|(uid, _)| uid).partition(later),
            false => Default::default(),
        };
        let uids = if late.is_empty() { uids.clone() } else { early.into_iter().collect() };
        let changed = self.apply(&Operation::Store { mailbox, uids, change, flags, keywords })?;
        Ok((changed.into_iter().map(|(uid, _)| uid).collect(), late))
    }

    /// Removes messages from a mailbox; returns the UIDs of those that existed.
    pub fn expunge(&mut self, mailbox: u32, uids: &Uids) -> Result<Vec<u32>, Error> {
        let gone = self.apply(&Operation::Expunge { mailbox, uids: uids.clone() })?;
        Ok(gone.into_iter().map(|(uid, _)| uid).collect())
    }

    /// Puts messages of a mailbox into another, with their flags; returns the UIDs there and here.
    pub fn copy(&mut self, from: u32, to: u32, uids: &Uids, now: i64) -> Result<Pairs, Error> {
        self.transfer(from, to, uids, now, false)
    }

    /// The same, and removes them here.
    pub fn move_to(&mut self, from: u32, to: u32, uids: &Uids, now: i64) -> Result<Pairs, Error> {
        self.transfer(from, to, uids, now, true)
    }

    /// Ends the transaction: it will be durable and visible after the next [`Volume::commit`]. Returns its number, the
    /// MODSEQ of its changes. Without operations it takes no number.
    pub fn stage(mut self) -> Result<u64, Error> {
        if self.operations.is_empty() {
            return Ok(self.before.commits);
        }
        if self.operations.len() > self.operation_bytes_max() {
            return Err(Refused::TransactionTooLarge.into());
        }
        self.volume.admits(self.operations.len(), self.grows)?;
        for sealed in &self.added {
            self.volume.working.forget_unlinked(sealed.number, &mut self.effects);
        }
        let commit = self.volume.working.commits;
        self.volume.staged.push(Staged { commit, payload: core::mem::take(&mut self.operations), grows: self.grows });
        self.volume.effects.added.append(&mut self.effects.added);
        self.volume.effects.freed.append(&mut self.effects.freed);
        self.is_staged = true;
        Ok(commit)
    }

    pub(crate) fn is_begun(&self) -> bool {
        !self.operations.is_empty()
    }

    pub(crate) fn relocate(&mut self, operation: &Operation) -> Result<(), Error> {
        self.apply(operation).map(drop)
    }

    fn transfer(&mut self, from: u32, to: u32, uids: &Uids, now: i64, moved: bool) -> Result<Pairs, Error> {
        let source = self.state().mailbox(from).ok_or(Refused::NoSuchMailbox)?;
        let target = self.state().mailbox(to).ok_or(Refused::NoSuchMailbox)?;
        let first_uid = target.uid_next;
        if !(moved && source.account == target.account) {
            let message = |entry: &crate::state::Entry| self.state().message(entry.message.get());
            let sizes = source.among(uids).filter_map(|(_, entry)| message(entry)).map(|message| message.size);
            let (bytes, count) = sizes.fold((0u64, 0), |(bytes, count), size| (bytes.saturating_add(size), count + 1));
            self.check_quota(target.account, bytes, count)?;
            self.grows = true;
        }
        self.apply(&Operation::Copy { from, to, uids: uids.clone(), first_uid, saved: now, moved })
    }

    fn check_quota(&self, account: u32, bytes: u64, messages: u64) -> Result<(), Error> {
        let account = self.state().account(account).ok_or(Refused::NoSuchAccount)?;
        let (bytes, messages) = (account.used_bytes.saturating_add(bytes), account.used_messages + messages);
        match account.quota.is_exceeded_by(bytes, messages) {
            true => Err(Refused::OverQuota.into()),
            false => Ok(()),
        }
    }

    fn grow(&mut self, operation: &Operation) -> Result<Pairs, Error> {
        self.grows = true;
        self.apply(operation)
    }

    fn apply(&mut self, operation: &Operation) -> Result<Pairs, Error> {
        let (added, freed) = (self.effects.added.len(), self.effects.freed.len());
        let before = self.volume.working.clone();
        let length = self.operations.len();
        let commit = before.commits;
        operation.encode(&mut self.operations);
        let outcome = match self.operations.len() > self.operation_bytes_max() {
            true => Err(Refused::TransactionTooLarge),
            false => self.volume.working.apply(operation, commit, &mut self.effects),
        };
        if outcome.is_err() {
            self.volume.working = before;
            self.operations.truncate(length);
            self.effects.added.truncate(added);
            self.effects.freed.truncate(freed);
        }
        Ok(outcome?)
    }

    fn operation_bytes_max(&self) -> usize {
        let segment = self.volume.geometry().segment_bytes as usize;
        TRANSACTION_BYTES_MAX.min(segment - 2 * SECTOR_BYTES - HEADER_BYTES)
    }
}

impl<D: Device> Drop for Transaction<'_, D> {
    fn drop(&mut self) {
        if !self.is_staged {
            self.volume.working = self.before.clone();
        }
    }
}

fn named(name: &[u8]) -> Result<Box<[u8]>, Refused> {
    match (1..=NAME_BYTES_MAX).contains(&name.len()) {
        true => Ok(name.into()),
        false => Err(Refused::Name),
    }
}

fn check_keywords(keywords: &[String]) -> Result<(), Refused> {
    let is_long = |keyword: &String| keyword.is_empty() || keyword.len() > KEYWORD_BYTES_MAX;
    match keywords.len() > KEYWORDS_MAX || keywords.iter().any(is_long) {
        true => Err(Refused::TooManyKeywords),
        false => Ok(()),
    }
}
