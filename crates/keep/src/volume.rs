//! A volume as a [`Keep`] and as the host of pages: for a machine with one task, and for tests.
//!
//! Mail that is written here is delivered to accounts of this server; it is sent to no other.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Display;

use ::webmail::mail::{Failure, Sending};
use store::{Append, Arrival, Content, Device, Error, Flags, Mailbox, Refused, Sealed, State, Transaction, Volume};

use crate::Keep;
use crate::content::{Messages, Reader};
use crate::digest::{Digest, thread};
use crate::search::{Words, scan};
use crate::user::ensure;
use crate::webmail::{Host, Sender, failure, note_sent, was_sent};

/// Messages of a mailbox that a search looks through.
const SEARCHED_MAX: usize = 2_000;

/// The rest of a machine: its clock, its randomness, its accounts.
pub trait Machine {
    /// Seconds since 1970.
    fn now(&self) -> i64;
    /// Random bytes.
    fn random(&mut self) -> [u8; 16];
    /// The name of the mail server.
    fn hostname(&self) -> &str;
    /// The account whose an address is, with its quota in bytes.
    fn owner(&self, address: &str) -> Option<(&str, u64)>;
    /// Logs an error.
    fn log(&self, what: &str, error: &dyn Display);
}

/// A volume on a machine.
pub struct Own<D, M> {
    volume: Volume<D>,
    /// The machine.
    pub machine: M,
    reading: Option<(u64, Content)>,
}

impl<D: Device, M: Machine> Own<D, M> {
    /// An open volume.
    pub fn new(volume: Volume<D>, machine: M) -> Own<D, M> {
        Own { volume, machine, reading: None }
    }

    /// The volume.
    pub fn volume(&self) -> &Volume<D> {
        &self.volume
    }

    /// Its device.
    pub fn device_mut(&mut self) -> &mut D {
        self.volume.device_mut()
    }

    /// Begins a message, which is written in pieces.
    ///
    /// # Errors
    /// When the volume is full or failed.
    pub fn begin(&mut self) -> Result<Append, Error> {
        self.volume.append(None)
    }

    /// Writes a piece of it.
    ///
    /// # Errors
    /// As [`Own::begin`].
    pub fn write(&mut self, append: &mut Append, bytes: &[u8]) -> Result<(), Error> {
        self.volume.write(append, bytes)
    }

    /// Delivers it to the INBOXes of accounts; durable when it returns.
    ///
    /// # Errors
    /// As [`Own::begin`], and when an account has no room: then no account has it.
    pub fn arrive(&mut self, append: Append, digest: &[u8], accounts: &[(String, u64)]) -> Result<(), Error> {
        let (sealed, now) = (self.volume.seal(append, digest, thread(digest))?, self.machine.now());
        let accounts = accounts.to_vec();
        self.transact(move |transaction| arrive(transaction, &sealed, &accounts, now))
    }

    fn sealed(&mut self, content: &[u8]) -> Result<Sealed, Error> {
        let mut digest = Digest::default();
        digest.read(content);
        let mut append = self.volume.append(None)?;
        self.volume.write(&mut append, content)?;
        let digest = digest.finish();
        self.volume.seal(append, &digest, thread(&digest))
    }

    fn dispatch(&mut self, sender: &Sender, sending: &Sending, to: Vec<(String, u64)>) -> Result<(), Error> {
        let visible = usize::try_from(sending.private).ok().and_then(|private| sending.content.get(private..));
        let (written, sent) = (self.sealed(&sending.content)?, self.sealed(visible.unwrap_or_default())?);
        let (account, place, now) = (sender.account, sender.sent, self.machine.now());
        let origin = sending.origin;
        self.transact(move |transaction| {
            if was_sent(transaction.state(), account, &origin.id) {
                return Ok(());
            }
            arrive(transaction, &sent, &to, now)?;
            let named = transaction.state().mailbox_named(account, b"Sent").map(|(number, _)| number);
            if let Some(place) = place.or(named) {
                let arrival = Arrival { flags: Flags::SEEN, date: now, now, ..Arrival::default() };
                transaction.deliver(&written, place, &arrival)?;
            }
            note_sent(transaction, account, &origin)
        })
    }
}

fn arrive<D: Device>(
    transaction: &mut Transaction<'_, D>,
    sealed: &Sealed,
    accounts: &[(String, u64)],
    now: i64,
) -> Result<(), Error> {
    for (name, quota_bytes) in accounts {
        let account = ensure(transaction, name, *quota_bytes)?;
        let inbox = transaction.state().mailbox_named(account, b"INBOX").ok_or(Refused::NoSuchMailbox)?.0;
        transaction.deliver(sealed, inbox, &Arrival { date: now, now, ..Arrival::default() })?;
    }
    Ok(())
}

impl<D: Device, M: Machine> Host for Own<D, M> {
    fn hostname(&self) -> &str {
        self.machine.hostname()
    }

    fn search(&mut self, mailboxes: &[(u32, Arc<Mailbox>)], words: &Words) -> (Vec<(u32, u32)>, bool) {
        let mut found = Vec::new();
        for (number, mailbox) in mailboxes {
            let uids = scan(self, mailbox, words, SEARCHED_MAX);
            found.extend(uids.into_iter().map(|uid| (*number, uid)));
        }
        (found, mailboxes.iter().all(|(_, mailbox)| mailbox.entries.len() <= SEARCHED_MAX))
    }

    fn send(&mut self, sender: Sender, sending: Sending) -> Result<(), Failure> {
        let owner = |address: &String| self.machine.owner(address).map(|(name, quota)| (name.to_owned(), quota));
        let mut to = sending.to.iter().map(owner).collect::<Option<Vec<_>>>().ok_or(Failure::Elsewhere)?;
        to.sort_unstable();
        to.dedup();
        self.dispatch(&sender, &sending, to).map_err(|error| failure(self, &error))
    }

    fn log(&self, what: &str, error: &dyn Display) {
        self.machine.log(what, error);
    }
}

/// A message of a volume that is being read.
pub struct Stored<'a, D> {
    volume: &'a Volume<D>,
    content: Content,
}

impl<D: Device> Reader for Stored<'_, D> {
    fn piece(&mut self, offset: u64) -> Result<&[u8], Error> {
        self.content.hold(self.volume.device(), self.volume.geometry(), offset)?;
        Ok(self.content.held(offset))
    }
}

impl<D: Device, M: Machine> Messages for Own<D, M> {
    type Reader<'a>
        = Stored<'a, D>
    where
        Self: 'a;

    fn reader(&self, message: u64) -> Option<Stored<'_, D>> {
        let content = Content::new(message, self.volume.state().message(message)?);
        Some(Stored { volume: &self.volume, content })
    }

    fn digest(&self, message: u64) -> Result<Vec<u8>, Error> {
        self.volume.digest(message)
    }
}

impl<D: Device, M: Machine> Keep for Own<D, M> {
    type Device = D;

    fn state(&self) -> State {
        self.volume.state().clone()
    }

    fn read(&mut self, message: u64, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        if self.reading.as_ref().is_none_or(|(open, _)| *open != message) {
            let found = self.volume.state().message(message).ok_or(Refused::NoSuchMessage)?;
            self.reading = Some((message, Content::new(message, found)));
        }
        let Some((_, content)) = &mut self.reading else { return Ok(0) };
        self.volume.read_piece(content, offset, buffer)
    }

    fn transact<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut Transaction<'_, D>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        // A commit may move what is read.
        self.reading = None;
        let mut transaction = self.volume.transaction()?;
        let value = work(&mut transaction)?;
        transaction.stage()?;
        self.volume.commit()?;
        Ok(value)
    }

    fn deliver<T: Send + 'static>(
        &mut self,
        content: Vec<u8>,
        digest: Vec<u8>,
        work: impl FnOnce(&mut Transaction<'_, D>, &Sealed) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let mut append = self.volume.append(None)?;
        self.volume.write(&mut append, &content)?;
        let sealed = self.volume.seal(append, &digest, thread(&digest))?;
        self.transact(move |transaction| work(transaction, &sealed))
    }

    fn now(&self) -> i64 {
        self.machine.now()
    }

    fn random(&mut self) -> [u8; 16] {
        self.machine.random()
    }
}
