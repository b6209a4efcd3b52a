//! The mailbox of a user as [`webmail::Mail`]: snapshots and digests for what is shown, transactions for what is changed.
//!
//! Folders and messages come in as numbers of a browser, and are looked up among those of the account: what is somebody else's is not
//! there. Rights that others have given (ACL) are not used here.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ::webmail::mail::{Failure, Flag, Flags as Shown, Folder, Layout, Message, Purpose, Row, Sending};
use proto::imap::search::Key;
use store::{Change, Entry, Error, Flags, Mailbox, Refused, SpecialUse, State, Transaction, Uids};
use tokio::runtime::Handle;

use super::sending::{self, Sender};
use crate::account::Account;
use crate::acl;
use crate::content::{self, Body};
use crate::digest::{Digest, Known, Part, Text};
use crate::file::File;
use crate::imap::{MAILBOXES_MAX, find, is_name};
use crate::in_flight::Owner;
use crate::learner;
use crate::password::random;
use crate::site::{Site, seconds};

/// The annotation that has the settings of a user.
const SETTINGS: &[u8] = b"webmail/settings";

/// Words of a search.
const WORDS_MAX: usize = 10;

/// The time that a search may take: a user waits for its page.
const SEARCH_WAIT: Duration = Duration::from_secs(10);

/// Bytes of a message that are read at a time, where its digest is made again.
const CHUNK_BYTES: usize = 32 << 10;

/// Attributes of mailboxes, as bits of [`SpecialUse`], and purposes.
const PURPOSES: [(u16, Purpose); 5] = [
    (1 << 1, Purpose::Archive),
    (1 << 2, Purpose::Drafts),
    (1 << 4, Purpose::Junk),
    (1 << 5, Purpose::Sent),
    (1 << 6, Purpose::Trash),
];

/// The mailbox of a user while a request is answered.
pub(super) struct Mail<'a> {
    site: &'a Site,
    account: Arc<Account>,
    number: u32,
    state: State,
    /// Messages that were told, which may be read.
    told: Vec<u64>,
    reading: Option<(u64, Body<'a>)>,
    /// Whether a message could not be read.
    pub is_broken: bool,
    runtime: Handle,
}

impl<'a> Mail<'a> {
    /// The mailbox of an account, as it is now. Its methods wait, and are called where a thread may ([`tokio::task::block_in_place`]).
    pub fn new(site: &'a Site, account: Arc<Account>, number: u32) -> Mail<'a> {
        let (state, runtime) = (site.store.state(), Handle::current());
        Mail { site, account, number, state, told: Vec::new(), reading: None, is_broken: false, runtime }
    }

    /// A mailbox of this account.
    fn own(&self, folder: u32) -> Result<&Arc<Mailbox>, Failure> {
        self.state.mailbox(folder).filter(|mailbox| mailbox.account == self.number).ok_or(Failure::Gone)
    }

    /// Waits for a change, and looks at what it has made.
    fn wait<T>(&mut self, change: impl Future<Output = Result<T, Error>>) -> Result<T, Failure> {
        let outcome = self.runtime.block_on(change);
        self.state = self.site.store.state();
        outcome.map_err(failure)
    }

    fn change<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut Transaction<'_, File>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Failure> {
        let site = self.site;
        self.wait(site.store.transact(work))
    }

    /// Who content that comes in is counted for.
    fn owners(&self) -> Vec<Owner> {
        vec![Owner::Account(self.account.name.clone())]
    }

    fn row(&self, folder: u32, uid: u32, entry: &Entry) -> Row {
        let number = entry.message.get();
        let digest = content::digest(&self.site.store, number).unwrap_or_default();
        let structure = Text::BodyStructure.of(&digest).unwrap_or_default().to_ascii_lowercase();
        Row {
            folder,
            uid,
            flags: Shown {
                seen: entry.flags.has(Flags::SEEN),
                answered: entry.flags.has(Flags::ANSWERED),
                flagged: entry.flags.has(Flags::FLAGGED),
            },
            date: entry.date,
            size: self.state.message(number).map_or(0, |message| message.size),
            envelope: Text::Envelope.of(&digest).unwrap_or_default().to_vec(),
            has_attachment: memchr::memmem::find(&structure, b"(\"attachment\"").is_some(),
        }
    }

    /// What is known of a message; it is read anew where nothing was stored of it.
    fn known(&mut self, number: u64) -> Option<Known> {
        let stored = content::digest(&self.site.store, number).ok()?;
        if let Some(known) = Known::decode(&stored) {
            return Some(known);
        }
        let mut body = Body::open(&self.site.store, number)?;
        let (mut digest, mut offset, mut chunk) = (Digest::default(), 0, vec![0; CHUNK_BYTES]);
        loop {
            match body.read(offset, &mut chunk).ok()? {
                0 => return Some(digest.known()),
                length => {
                    digest.read(&chunk[..length]);
                    offset += length as u64;
                }
            }
        }
    }

    /// The entries of a mailbox below a UID, the newest first. The store has them in ascending order: so it is asked for more and more.
    fn newest(mailbox: &Mailbox, before: u32, count: usize) -> Vec<(u32, Entry)> {
        let mut span = u32::try_from(count.saturating_mul(2)).unwrap_or(u32::MAX).max(16);
        let end = before.min(mailbox.uid_next.max(1));
        loop {
            let from = end.saturating_sub(span);
            let below = mailbox.from(from).take_while(|(uid, _)| *uid < before);
            let mut found: Vec<(u32, Entry)> = below.map(|(uid, entry)| (uid, *entry)).collect();
            if found.len() >= count || from == 0 {
                found.reverse();
                found.truncate(count);
                return found;
            }
            span = span.saturating_mul(4);
        }
    }

    fn purpose(mailbox: &Mailbox) -> Purpose {
        if &*mailbox.name == b"INBOX" {
            return Purpose::Inbox;
        }
        let found = PURPOSES.iter().find(|(bit, _)| mailbox.special_use.0 & bit != 0);
        found.map_or(Purpose::Other, |(_, purpose)| *purpose)
    }

    /// The mailbox for a purpose.
    fn mailbox_for(&self, wanted: Purpose) -> Option<u32> {
        let account = self.state.account(self.number)?;
        account
            .mailboxes
            .values()
            .copied()
            .find(|&number| self.own(number).is_ok_and(|found| Mail::purpose(found) == wanted))
    }
}

impl ::webmail::Mail for Mail<'_> {
    fn user(&self) -> &str {
        &self.account.name
    }

    fn addresses(&self) -> Vec<String> {
        let name = match self.account.name.contains('@') {
            true => self.account.name.clone(),
            false => format!("{}@{}", self.account.name, self.site.hostname),
        };
        // An alias without a local part is a whole domain, one without a domain an address here.
        let aliases = self.account.aliases.iter().filter(|alias| alias.find('@').is_some_and(|at| at > 0));
        std::iter::once(name).chain(aliases.cloned()).collect()
    }

    fn hostname(&self) -> &str {
        &self.site.hostname
    }

    fn now(&self) -> i64 {
        seconds()
    }

    fn random(&mut self) -> [u8; 16] {
        random().unwrap_or_else(|_| (seconds() as u128).to_le_bytes())
    }

    fn quota(&self) -> (u64, u64) {
        self.state.account(self.number).map_or((0, 0), |account| (account.used_bytes, account.quota.bytes))
    }

    fn folders(&mut self) -> Vec<Folder> {
        let Some(account) = self.state.account(self.number) else { return Vec::new() };
        let folder = |name: &[u8], number: u32| {
            let mailbox = self.state.mailbox(number)?;
            let name = String::from_utf8_lossy(name).into_owned();
            let (purpose, count, unseen) = (Mail::purpose(mailbox), mailbox.entries.len(), mailbox.unseen);
            Some(Folder { number, name, purpose, count, unseen })
        };
        let mut all: Vec<Folder> =
            account.mailboxes.iter().filter_map(|(name, &number)| folder(name, number)).collect();
        all.sort_by_key(|folder| folder.purpose as u8);
        all
    }

    fn rows(&mut self, folder: u32, before: u32, count: usize) -> Vec<Row> {
        let Ok(mailbox) = self.own(folder).cloned() else { return Vec::new() };
        let newest = Mail::newest(&mailbox, before, count);
        newest.iter().map(|(uid, entry)| self.row(folder, *uid, entry)).collect()
    }

    fn message(&mut self, folder: u32, uid: u32) -> Option<Message> {
        let entry = *self.own(folder).ok()?.entry(uid)?;
        let number = entry.message.get();
        let known = self.known(number)?;
        self.told.push(number);
        let row = Row { envelope: known.envelope, ..self.row(folder, uid, &entry) };
        Some(Message { row, number, layout: layout(&known.root) })
    }

    fn read(&mut self, message: u64, offset: u64, buffer: &mut [u8]) -> usize {
        if !self.told.contains(&message) {
            return 0;
        }
        if self.reading.as_ref().is_none_or(|(open, _)| *open != message) {
            self.reading = Body::open(&self.site.store, message).map(|body| (message, body));
        }
        let read = self.reading.as_mut().map(|(_, body)| body.read(offset, buffer));
        match read {
            Some(Ok(length)) => length,
            failed => {
                tracing::error!(message, error = ?failed.and_then(Result::err), "a message cannot be read");
                self.is_broken = true;
                0
            }
        }
    }

    fn search(&mut self, words: &str, count: usize) -> Vec<Row> {
        let words: Vec<Key> = words.split_whitespace().take(WORDS_MAX).map(key).collect();
        let Some(account) = self.state.account(self.number).filter(|_| !words.is_empty()) else { return Vec::new() };
        let (key, until) = (Key::And(words), Instant::now() + SEARCH_WAIT.min(self.site.work_max));
        let mailboxes: Vec<u32> = account.mailboxes.values().copied().collect();
        let mut found: Vec<(u32, u32, Entry)> = Vec::new();
        for number in mailboxes {
            let Ok(mailbox) = self.own(number).cloned() else { continue };
            let uids = self.runtime.block_on(find(self.site, number, &mailbox, &key, until));
            found.extend(uids.iter().filter_map(|&uid| Some((number, uid, *mailbox.entry(uid)?))));
        }
        found.sort_by_key(|(folder, uid, entry)| std::cmp::Reverse((entry.date, *uid, *folder)));
        found.iter().take(count).map(|(folder, uid, entry)| self.row(*folder, *uid, entry)).collect()
    }

    fn flag(&mut self, folder: u32, uids: &[u32], flag: Flag, is_set: bool) -> Result<(), Failure> {
        self.own(folder)?;
        let bits = match flag {
            Flag::Seen => Flags::SEEN,
            Flag::Flagged => Flags::FLAGGED,
        };
        let (uids, change) = (set(uids), if is_set { Change::Add } else { Change::Remove });
        self.change(move |transaction| transaction.store(folder, &uids, change, (bits, &[]), u64::MAX).map(drop))
    }

    fn move_to(&mut self, folder: u32, uids: &[u32], to: u32) -> Result<(), Failure> {
        self.own(folder).and(self.own(to))?;
        let uids = set(uids);
        let pairs = self.change(move |transaction| transaction.move_to(folder, to, &uids, seconds()))?;
        if let Some(learner) = &self.site.learner {
            let copies = pairs.iter().map(|pair| pair.1);
            learner::tell(&**learner, &self.state, &self.account.name, [folder, to], copies);
        }
        Ok(())
    }

    fn expunge(&mut self, folder: u32, uids: &[u32]) -> Result<(), Failure> {
        self.own(folder)?;
        let uids = set(uids);
        self.change(move |transaction| transaction.expunge(folder, &uids).map(drop))
    }

    fn save(&mut self, folder: u32, content: Vec<u8>, replaces: Option<u32>) -> Result<u32, Failure> {
        self.own(folder)?;
        let site = self.site;
        let saving = sending::save(site, self.owners(), folder, content, replaces);
        self.wait(saving)
    }

    fn send(&mut self, sending: Sending) -> Result<(), Failure> {
        if self.site.relay.is_none() {
            return Err(Failure::NoRelay);
        }
        let own = |place: Option<(u32, u32)>| place.filter(|(folder, _)| self.own(*folder).is_ok());
        let (draft, answers) = (own(sending.draft), own(sending.answers));
        let (account, name, sent) = (self.number, self.account.name.clone(), self.mailbox_for(Purpose::Sent));
        let (site, owners, sender) = (self.site, self.owners(), Sender { account, name, sent });
        self.wait(sending::send(site, owners, sender, Sending { draft, answers, ..sending }))?
    }

    fn create(&mut self, name: &str) -> Result<(), Failure> {
        let (account, name) = (self.number, folder_name(name)?);
        self.change(move |transaction| {
            if transaction.state().account(account).is_some_and(|account| account.mailboxes.len() >= MAILBOXES_MAX) {
                return Err(Refused::TransactionTooLarge.into());
            }
            let number = transaction.create(account, &name, SpecialUse::default())?;
            transaction.subscribe(account, &name, true)?;
            acl::inherit(transaction, account, number).map(drop)
        })
    }

    fn rename(&mut self, folder: u32, name: &str) -> Result<(), Failure> {
        let before = self.own(folder)?.name.clone();
        let (account, name) = (self.number, folder_name(name)?);
        if &*before == b"INBOX" {
            return Err(Failure::Inbox);
        }
        if name.strip_prefix(&*before).is_some_and(|rest| rest.first() == Some(&store::DELIMITER)) {
            return Err(Failure::Name);
        }
        self.change(move |transaction| {
            if transaction.state().mailbox_named(account, &name).is_some() {
                return Err(Refused::Exists.into());
            }
            transaction.rename(folder, &name)
        })
    }

    fn delete(&mut self, folder: u32) -> Result<(), Failure> {
        if &*self.own(folder)?.name == b"INBOX" {
            return Err(Failure::Inbox);
        }
        self.change(move |transaction| transaction.remove(folder))?;
        self.site.recents.forget(folder);
        Ok(())
    }

    fn settings(&mut self) -> Vec<u8> {
        let account = self.state.account(self.number);
        account.and_then(|account| account.annotations.get(SETTINGS)).map(|value| value.to_vec()).unwrap_or_default()
    }

    fn set_settings(&mut self, settings: &[u8]) -> Result<(), Failure> {
        let (account, settings) = (self.number, settings.to_vec());
        self.change(move |transaction| transaction.annotate(account, None, SETTINGS, Some(&settings)))
    }
}

/// A word of a search: `from:`, `to:` and `subject:` look in that field.
fn key(word: &str) -> Key {
    let (name, text) = word.split_once(':').unwrap_or(("", word));
    match name {
        "from" | "to" | "cc" | "subject" if !text.is_empty() => Key::Header(name.into(), text.into()),
        _ => Key::Text(word.into()),
    }
}

fn layout(part: &Part) -> Layout {
    let Part { header, body, end, is_message, parts } = part;
    Layout {
        header: *header,
        body: *body,
        end: *end,
        is_message: *is_message,
        parts: parts.iter().map(layout).collect(),
    }
}

fn set(uids: &[u32]) -> Uids {
    let mut uids = uids.to_vec();
    uids.sort_unstable();
    uids.dedup();
    uids.into_iter().collect()
}

fn folder_name(name: &str) -> Result<Vec<u8>, Failure> {
    let name = name.trim().as_bytes();
    let begins = |others: &[u8]| name.get(..others.len()).is_some_and(|head| head.eq_ignore_ascii_case(others));
    let is_others = begins(acl::OTHERS.strip_suffix(b"/").unwrap_or(acl::OTHERS));
    match name.eq_ignore_ascii_case(b"INBOX") {
        true => Err(Failure::Exists),
        false if !is_name(name) || is_others => Err(Failure::Name),
        false => Ok(name.to_vec()),
    }
}

/// A failure of the store for its user.
fn failure(error: Error) -> Failure {
    match error {
        Error::Refused(Refused::NoSuchMailbox | Refused::NoSuchMessage | Refused::NoSuchAccount) => Failure::Gone,
        Error::Refused(Refused::OverQuota) => Failure::Quota,
        Error::Refused(Refused::Exists) => Failure::Exists,
        Error::Refused(Refused::Name) => Failure::Name,
        Error::Refused(Refused::TooLarge) => Failure::TooLarge,
        error => {
            tracing::warn!(%error, "the store does not take what a browser has sent");
            Failure::Store
        }
    }
}
