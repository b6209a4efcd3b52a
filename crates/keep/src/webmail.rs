//! The mailbox of a user as [`webmail::Mail`]: snapshots and digests for what is shown, transactions for what is changed.
//!
//! Folders and messages come in as numbers of a browser, and are looked up among those of the account: what is somebody else's is not
//! there. Rights that others have given (ACL) are not used here.

mod host;

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

use ::webmail::mail::{
    AppPassword, Failure, Flag, Flags as Shown, Folder, Identity, Layout, Message, NewPasskey, Origin, Passkeys,
    Program, Purpose, Row, Script, Second, Sending, Setup, Unkept,
};
use ::webmail::session::{Ending, Session};
use proto::imap::name::canonical;
use store::{Arrival, Change, Device, Entry, Error, Flags, Mailbox, Refused, SpecialUse, State, Transaction, Uids};
use text::normal::composed;

use crate::Keep;
use crate::acl;
use crate::conversation;
use crate::digest::{Digest, Known, Part, Text};
use crate::name::{self, is_name};
use crate::search::Words;
use crate::user;
pub use host::{Host, Sender, User};

/// The annotation that has the settings of a user.
const SETTINGS: &[u8] = b"webmail/settings";

/// The annotation that has the forms which a user has sent last.
const SENT: &[u8] = b"webmail/sent";

/// Bytes of them: of 32.
const SENT_BYTES_MAX: usize = 32 * 16;

/// The annotation that has the drafts which were kept last: folder, random bytes of the form, UID.
const DRAFTS: &[u8] = b"webmail/drafts";

/// Bytes of one of them, and how many are known beside the last.
const DRAFT_BYTES: usize = 24;
const DRAFTS_MAX: usize = 31;

/// The annotations that have the contacts of a user, one behind the other.
const CONTACTS: [&[u8]; 3] = [b"webmail/contacts", b"webmail/contacts/2", b"webmail/contacts/3"];

/// Bytes of the contacts in one of them.
const CONTACTS_BYTES_MAX: usize = 200 << 10;

/// Words of a search.
const WORDS_MAX: usize = 10;

/// Bytes of a message that are read at a time, where its digest is made again.
const CHUNK_BYTES: usize = 32 << 10;

/// Bytes of a message without a digest that a list looks at.
const GLANCE_BYTES: u64 = 128 << 10;

/// Bytes that the lists of one page read of such messages: those of 256. A message beyond has neither sender nor subject there.
const GLANCES_BYTES_MAX: u64 = 256 * GLANCE_BYTES;

/// Attributes of mailboxes, as bits of [`SpecialUse`], and purposes.
const PURPOSES: [(u16, Purpose); 5] = [
    (1 << 1, Purpose::Archive),
    (1 << 2, Purpose::Drafts),
    (1 << 4, Purpose::Junk),
    (1 << 5, Purpose::Sent),
    (1 << 6, Purpose::Trash),
];

/// The mailbox of a user while a request is answered.
pub struct Mail<'a, H> {
    host: &'a mut H,
    user: User,
    state: State,
    /// Messages that were told, which may be read.
    told: Vec<u64>,
    is_broken: bool,
    /// Bytes of messages without a digest that lists may still read.
    glances: u64,
}

impl<'a, H: Host> Mail<'a, H> {
    /// The mailbox of an account, as it is now.
    pub fn new(host: &'a mut H, user: User) -> Mail<'a, H> {
        let state = host.state();
        Mail { host, user, state, told: Vec::new(), is_broken: false, glances: GLANCES_BYTES_MAX }
    }

    /// Continues a reply that was begun: with the messages that were [told](Mail::told) then.
    pub fn resumed(host: &'a mut H, user: User, told: Vec<u64>) -> Mail<'a, H> {
        Mail { told, ..Mail::new(host, user) }
    }

    /// Messages that were told, and may be read.
    pub fn told(self) -> Vec<u64> {
        self.told
    }

    /// Whether a message could not be read.
    pub fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// A mailbox of this account.
    fn own(&self, folder: u32) -> Result<&Arc<Mailbox>, Failure> {
        self.state.mailbox(folder).filter(|mailbox| mailbox.account == self.user.number).ok_or(Failure::Gone)
    }

    /// Looks at what a change has made.
    fn changed<T>(&mut self, outcome: Result<T, Error>) -> Result<T, Failure> {
        self.state = self.host.state();
        outcome.map_err(|error| failure(self.host, &error))
    }

    fn change<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut Transaction<'_, H::Device>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Failure> {
        let outcome = self.host.transact(work);
        self.changed(outcome)
    }

    fn row(&mut self, folder: u32, uid: u32, entry: &Entry) -> Row {
        let number = entry.message.get();
        let (envelope, has_attachment) = self.glance(number);
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
            envelope,
            has_attachment,
            count: 1,
        }
    }

    /// The envelope of a message, and whether there is something to save; where no digest was stored, as far as its beginning tells.
    fn glance(&mut self, number: u64) -> (Vec<u8>, bool) {
        let stored = self.host.digest(number).unwrap_or_default();
        if let Some(envelope) = Text::Envelope.of(&stored) {
            return (envelope.to_vec(), has_attachment(Text::BodyStructure.of(&stored).unwrap_or_default()));
        }
        let most = GLANCE_BYTES.min(self.glances);
        let (known, read) = made_anew(self.host, number, most).unwrap_or_default();
        self.glances = self.glances.saturating_sub(read);
        (known.envelope, has_attachment(&known.body_structure))
    }

    /// The row of a conversation: of its newest message, and unread if one of them is.
    fn head(&mut self, folder: u32, head: &conversation::Head) -> Row {
        let row = self.row(folder, head.uid, &head.entry);
        let flags = Shown { seen: head.is_seen, ..row.flags };
        Row { flags, count: head.count, ..row }
    }

    /// An annotation of the account; empty if there is none.
    fn noted(&self, name: &[u8]) -> Vec<u8> {
        let account = self.state.account(self.user.number);
        account.and_then(|account| account.annotations.get(name)).map(|value| value.to_vec()).unwrap_or_default()
    }

    fn note(&mut self, name: &'static [u8], value: &[u8]) -> Result<(), Failure> {
        let (account, value) = (self.user.number, value.to_vec());
        self.change(move |transaction| transaction.annotate(account, None, name, Some(&value)))
    }

    /// The mailbox for a purpose.
    fn mailbox_for(&self, wanted: Purpose) -> Option<u32> {
        let account = self.state.account(self.user.number)?;
        account.mailboxes.values().copied().find(|&number| self.own(number).is_ok_and(|found| purpose(found) == wanted))
    }
}

impl<H: Host> ::webmail::Mail for Mail<'_, H> {
    fn user(&self) -> &str {
        &self.user.name
    }

    fn addresses(&self) -> Vec<String> {
        self.user.addresses.clone()
    }

    fn hostname(&self) -> &str {
        self.host.hostname()
    }

    fn now(&self) -> i64 {
        self.host.now()
    }

    fn random(&mut self) -> [u8; 16] {
        self.host.random()
    }

    fn quota(&self) -> (u64, u64) {
        self.state.account(self.user.number).map_or((0, 0), |account| (account.used_bytes, account.quota.bytes))
    }

    fn folders(&mut self) -> Vec<Folder> {
        let Some(account) = self.state.account(self.user.number) else { return Vec::new() };
        let folder = |name: &[u8], number: u32| {
            let mailbox = self.state.mailbox(number)?;
            let name = String::from_utf8_lossy(name).into_owned();
            let (purpose, count, unseen) = (purpose(mailbox), mailbox.entries.len(), mailbox.unseen);
            Some(Folder { number, name, purpose, count, unseen })
        };
        let mut all: Vec<Folder> =
            account.mailboxes.iter().filter_map(|(name, &number)| folder(name, number)).collect();
        all.sort_by_key(|folder| folder.purpose as u8);
        all
    }

    fn rows(&mut self, folder: u32, before: u32, count: usize) -> Vec<Row> {
        let Ok(mailbox) = self.own(folder).cloned() else { return Vec::new() };
        let newest = conversation::newest(&mailbox, before, count);
        newest.iter().map(|(uid, entry)| self.row(folder, *uid, entry)).collect()
    }

    fn message(&mut self, folder: u32, uid: u32) -> Option<Message> {
        let entry = *self.own(folder).ok()?.entry(uid)?;
        let number = entry.message.get();
        let known = known(self.host, number)?;
        self.told.push(number);
        let row = Row { envelope: known.envelope, ..self.row(folder, uid, &entry) };
        Some(Message { row, number, layout: layout(&known.root) })
    }

    fn read(&mut self, message: u64, offset: u64, buffer: &mut [u8]) -> usize {
        if !self.told.contains(&message) {
            return 0;
        }
        match self.host.read(message, offset, buffer) {
            Ok(length) => length,
            Err(error) => {
                self.host.log("a message cannot be read", &error);
                self.is_broken = true;
                0
            }
        }
    }

    fn search(&mut self, words: &str, count: usize) -> (Vec<Row>, bool) {
        let words = Words::new(words, WORDS_MAX);
        let Some(account) = self.state.account(self.user.number).filter(|_| !words.is_empty()) else {
            return (Vec::new(), true);
        };
        let own = |&number: &u32| Some((number, self.own(number).ok()?.clone()));
        let mailboxes: Vec<(u32, Arc<Mailbox>)> = account.mailboxes.values().filter_map(own).collect();
        let (found, is_whole) = self.host.search(&mailboxes, &words);
        let entry = |&(folder, uid): &(u32, u32)| Some((folder, uid, *self.own(folder).ok()?.entry(uid)?));
        let mut found: Vec<(u32, u32, Entry)> = found.iter().filter_map(entry).collect();
        found.sort_by_key(|(folder, uid, entry)| Reverse((entry.date, *uid, *folder)));
        let rows = found.iter().take(count).map(|(folder, uid, entry)| self.row(*folder, *uid, entry)).collect();
        (rows, is_whole)
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
        let (uids, now) = (set(uids), self.host.now());
        let pairs = self.change(move |transaction| transaction.move_to(folder, to, &uids, now))?;
        let copies: Vec<u32> = pairs.iter().map(|pair| pair.1).collect();
        self.host.moved(&self.user.name, &self.state, [folder, to], &copies);
        Ok(())
    }

    fn expunge(&mut self, folder: u32, uids: &[u32]) -> Result<(), Failure> {
        self.own(folder)?;
        let uids = set(uids);
        self.change(move |transaction| transaction.expunge(folder, &uids).map(drop))
    }

    fn empty(&mut self, folder: u32, upto: u32) -> Result<(), Failure> {
        let uids = conversation::newest(self.own(folder)?, upto.saturating_add(1), usize::MAX);
        let uids = uids.into_iter().map(|(uid, _)| uid).collect();
        self.change(move |transaction| transaction.expunge(folder, &uids).map(drop))
    }

    fn save(&mut self, folder: u32, content: Vec<u8>, replaces: Option<u32>, id: [u8; 16]) -> Result<u32, Failure> {
        self.own(folder)?;
        let mut digest = Digest::default();
        digest.read(&content);
        let now = self.host.now();
        let arrival = Arrival { flags: Flags::DRAFT | Flags::SEEN, date: now, now, ..Arrival::default() };
        let account = self.user.number;
        let outcome = self.host.deliver(content, digest.finish(), move |transaction, sealed| {
            let known = transaction.state().account(account).and_then(|account| account.annotations.get(DRAFTS));
            let known = known.map(|known| known.to_vec()).unwrap_or_default();
            let form = [&folder.to_be_bytes()[..], &id].concat();
            let same = known.chunks_exact(DRAFT_BYTES).find_map(|entry| entry.strip_prefix(&form[..]));
            let same = same.and_then(|uid| uid.try_into().ok()).map(u32::from_be_bytes);
            for uid in replaces.into_iter().chain(same) {
                transaction.expunge(folder, &set(&[uid]))?;
            }
            let uid = transaction.deliver(sealed, folder, &arrival)?;
            let others = known.chunks_exact(DRAFT_BYTES).filter(|entry| !entry.starts_with(&form)).take(DRAFTS_MAX);
            let noted = [&form[..], &uid.to_be_bytes(), &others.collect::<Vec<_>>().concat()].concat();
            transaction.annotate(account, None, DRAFTS, Some(&noted))?;
            Ok(uid)
        });
        self.changed(outcome)
    }

    fn send(&mut self, sending: Sending) -> Result<(), Failure> {
        let own = |place: Option<(u32, u32)>| place.filter(|(folder, _)| self.own(*folder).is_ok());
        let Origin { draft, answers, forwards, .. } = sending.origin;
        let (draft, answers, forwards) = (own(draft), own(answers), own(forwards));
        let origin = Origin { draft, answers, forwards, ..sending.origin };
        let (account, name, sent) = (self.user.number, self.user.name.clone(), self.mailbox_for(Purpose::Sent));
        let outcome = self.host.send(Sender { account, name, sent }, Sending { origin, ..sending });
        self.state = self.host.state();
        outcome
    }

    fn provide(&mut self, purpose: Purpose) -> Result<u32, Failure> {
        let (bits, _) = PURPOSES.iter().find(|(_, known)| *known == purpose).ok_or(Failure::Gone)?;
        let (account, bit) = (self.user.number, bits.trailing_zeros() as u16);
        self.change(move |transaction| user::provide(transaction, account, bit))
    }

    fn create(&mut self, name: &str) -> Result<(), Failure> {
        let (account, name) = (self.user.number, folder_name(name)?);
        self.change(move |transaction| {
            name::create(transaction, account, &name, SpecialUse::default())?;
            transaction.subscribe(account, &name, true)
        })
    }

    fn rename(&mut self, folder: u32, name: &str) -> Result<(), Failure> {
        let before = self.own(folder)?.name.clone();
        let (account, name) = (self.user.number, folder_name(name)?);
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
        self.host.deleted(folder);
        Ok(())
    }

    fn settings(&mut self) -> Vec<u8> {
        self.noted(SETTINGS)
    }

    fn set_settings(&mut self, settings: &[u8]) -> Result<(), Failure> {
        self.note(SETTINGS, settings)
    }

    fn contacts(&mut self) -> Vec<u8> {
        CONTACTS.iter().flat_map(|name| self.noted(name)).collect()
    }

    fn set_contacts(&mut self, contacts: &[u8]) -> Result<(), Failure> {
        let (account, contacts) = (self.user.number, contacts.to_vec());
        self.change(move |transaction| {
            let mut pieces = contacts.chunks(CONTACTS_BYTES_MAX);
            CONTACTS.iter().try_for_each(|name| transaction.annotate(account, None, name, pieces.next()))
        })
    }

    fn second(&mut self) -> Option<Second> {
        self.host.second(&self.user)
    }

    fn begin_second(&mut self, setup: Setup<'_>) -> Result<Vec<String>, Failure> {
        let outcome = self.host.begin_second(&self.user, setup);
        self.state = self.host.state();
        outcome
    }

    fn end_second(&mut self, code: &str) -> Result<(), Failure> {
        let outcome = self.host.end_second(&self.user, code);
        self.state = self.host.state();
        outcome
    }

    fn app_passwords(&mut self) -> Option<Vec<AppPassword>> {
        self.host.app_passwords(&self.user)
    }

    fn add_app_password(&mut self, own: &str, program: Program<'_>) -> Result<String, Failure> {
        let outcome = self.host.add_app_password(&self.user, own, program);
        self.state = self.host.state();
        outcome
    }

    fn end_app_password(&mut self, id: u32) -> Result<(), Failure> {
        let outcome = self.host.end_app_password(&self.user, id);
        self.state = self.host.state();
        outcome
    }

    fn passkeys(&mut self, session: &Session) -> Option<Passkeys> {
        self.host.passkeys(&self.user, session)
    }

    fn add_passkey(&mut self, session: &Session, new: NewPasskey<'_>) -> Result<(), Failure> {
        let outcome = self.host.add_passkey(&self.user, session, new);
        self.state = self.host.state();
        outcome
    }

    fn end_passkey(&mut self, id: u32) -> Result<(), Failure> {
        let outcome = self.host.end_passkey(&self.user, id);
        self.state = self.host.state();
        outcome
    }

    fn script(&mut self) -> Option<Script> {
        self.host.script(&self.user)
    }

    fn set_script(&mut self, name: &str, text: &str) -> Result<(), Unkept> {
        let outcome = self.host.set_script(&self.user, name, text);
        self.state = self.host.state();
        outcome
    }

    fn identities(&mut self) -> Vec<Identity> {
        self.host.identities(&self.user)
    }

    fn set_identity(&mut self, identity: Identity) -> Result<(), Failure> {
        let outcome = self.host.set_identity(&self.user, identity);
        self.state = self.host.state();
        outcome
    }

    fn fetches(&self) -> bool {
        self.host.fetches()
    }

    fn pictures(&mut self, urls: &[String], bytes_max: usize) -> Vec<Option<Vec<u8>>> {
        self.host.pictures(urls, bytes_max)
    }

    fn leave(&mut self, message: u64, url: &str) -> Result<(), Failure> {
        if !self.told.contains(&message) {
            return Err(Failure::Gone);
        }
        self.host.leave(message, url)
    }

    fn sessions(&mut self) -> Vec<Session> {
        self.host.sessions(&self.user)
    }

    fn end_sessions(&mut self, ending: Ending<'_>) {
        self.host.end_sessions(&self.user, ending);
    }

    fn conversations(&mut self, folder: u32, before: u32, count: usize) -> Vec<Row> {
        let Ok(mailbox) = self.own(folder).cloned() else { return Vec::new() };
        let heads = self.host.at_length(|| conversation::heads(&self.state, &mailbox));
        let heads = heads.into_iter().filter(|head| head.uid < before);
        heads.take(count).map(|head| self.head(folder, &head)).collect()
    }

    fn of_conversations(&mut self, folder: u32, uids: &[u32]) -> Vec<u32> {
        let Ok(mailbox) = self.own(folder) else { return Vec::new() };
        conversation::whole(&self.state, mailbox, uids)
    }

    fn conversation(&mut self, folder: u32, uid: u32, count: usize) -> Vec<Row> {
        let Some(entry) = self.own(folder).ok().and_then(|mailbox| mailbox.entry(uid)).copied() else {
            return Vec::new();
        };
        let Some(account) = self.state.account(self.user.number) else { return Vec::new() };
        let thread = conversation::thread(&self.state, &entry);
        let mut found: Vec<(u32, u32, Entry)> = Vec::new();
        let mut left = conversation::LOOKED_AT_IN_ALL_MAX;
        let others = account.mailboxes.values().copied().filter(|&number| number != folder);
        for number in core::iter::once(folder).chain(others) {
            let Ok(mailbox) = self.own(number) else { continue };
            let is_aside = number != folder && matches!(purpose(mailbox), Purpose::Junk | Purpose::Trash);
            if is_aside || left == 0 {
                continue;
            }
            left = left.saturating_sub(mailbox.entries.len());
            let own = conversation::messages(&self.state, mailbox, thread);
            found.extend(own.into_iter().map(|(uid, entry)| (number, uid, entry)));
        }
        if thread.is_none() {
            found.push((folder, uid, entry));
        }
        found.sort_by_key(|(folder, uid, entry)| (entry.date, *folder, *uid));
        let first = found.len().saturating_sub(count);
        found.iter().skip(first).map(|(folder, uid, entry)| self.row(*folder, *uid, entry)).collect()
    }
}

/// Whether the mail of a form was sent already, so that two requests with one form send one mail.
pub fn was_sent(state: &State, account: u32, id: &[u8; 16]) -> bool {
    let known = state.account(account).and_then(|account| account.annotations.get(SENT));
    known.is_some_and(|known| known.chunks(id.len()).any(|known| known == id))
}

/// Notes that the mail of a form is sent: its draft goes, and the message is marked that it answers or forwards.
///
/// # Errors
/// When a message is gone, and when the volume is full or failed.
pub fn note_sent<D: Device>(transaction: &mut Transaction<'_, D>, account: u32, sent: &Origin) -> Result<(), Error> {
    let known = transaction.state().account(account).and_then(|account| account.annotations.get(SENT));
    let known = known.map(|known| known.to_vec()).unwrap_or_default();
    let ids: Vec<u8> = sent.id.iter().chain(&known).copied().take(SENT_BYTES_MAX).collect();
    transaction.annotate(account, None, SENT, Some(&ids))?;
    if let Some((folder, uid)) = sent.draft {
        transaction.expunge(folder, &set(&[uid]))?;
    }
    if let Some((folder, uid)) = sent.answers {
        transaction.store(folder, &set(&[uid]), Change::Add, (Flags::ANSWERED, &[]), u64::MAX)?;
    }
    if let Some((folder, uid)) = sent.forwards {
        let change = (0, &["$Forwarded"][..]);
        match transaction.store(folder, &set(&[uid]), Change::Add, change, u64::MAX) {
            // A mailbox has no room for another keyword.
            Err(Error::Refused(_)) => {}
            outcome => drop(outcome?),
        }
    }
    Ok(())
}

/// Facts of a message; it is read anew where nothing was stored of it.
pub fn known(keep: &mut impl Keep, number: u64) -> Option<Known> {
    let stored = keep.digest(number).ok()?;
    Known::decode(&stored).or_else(|| made_anew(keep, number, u64::MAX).map(|(known, _)| known))
}

/// Facts of a message, of as many of its bytes, and how many were read.
fn made_anew(keep: &mut impl Keep, number: u64, bytes: u64) -> Option<(Known, u64)> {
    let (mut digest, mut offset, mut chunk) = (Digest::default(), 0, vec![0; CHUNK_BYTES]);
    while offset < bytes {
        let left = usize::try_from(bytes.saturating_sub(offset)).unwrap_or(usize::MAX).min(CHUNK_BYTES);
        match keep.read(number, offset, chunk.get_mut(..left)?).ok()? {
            0 => break,
            length => {
                digest.read(chunk.get(..length)?);
                offset = offset.saturating_add(length as u64);
            }
        }
    }
    Some((digest.known(), offset))
}

/// Whether a BODYSTRUCTURE has a part that is to be saved.
fn has_attachment(structure: &[u8]) -> bool {
    let mut lists = memchr::memchr_iter(b'(', structure).filter_map(|at| structure.get(at..));
    lists.any(|list| list.get(..13).is_some_and(|list| list.eq_ignore_ascii_case(b"(\"attachment\"")))
}

fn purpose(mailbox: &Mailbox) -> Purpose {
    if &*mailbox.name == b"INBOX" {
        return Purpose::Inbox;
    }
    let found = PURPOSES.iter().find(|(bit, _)| mailbox.special_use.0 & bit != 0);
    found.map_or(Purpose::Other, |(_, purpose)| *purpose)
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

/// The name of a folder as it is typed: letters with their accents in one way, INBOX in capitals.
fn folder_name(name: &str) -> Result<Vec<u8>, Failure> {
    let name = canonical(composed(name.trim()).into_owned().into_bytes());
    let begins = |others: &[u8]| name.get(..others.len()).is_some_and(|head| head.eq_ignore_ascii_case(others));
    let is_others = begins(acl::OTHERS.strip_suffix(b"/").unwrap_or(acl::OTHERS));
    match name.eq_ignore_ascii_case(b"INBOX") {
        true => Err(Failure::Exists),
        false if !is_name(&name) || is_others => Err(Failure::Name),
        false => Ok(name),
    }
}

/// A failure of the store, for its user.
pub fn failure(host: &impl Host, error: &Error) -> Failure {
    match error {
        Error::Refused(Refused::NoSuchMailbox | Refused::NoSuchMessage | Refused::NoSuchAccount) => Failure::Gone,
        Error::Refused(Refused::OverQuota) => Failure::Quota,
        Error::Refused(Refused::Exists) => Failure::Exists,
        Error::Refused(Refused::Name) => Failure::Name,
        Error::Refused(Refused::TooLarge) => Failure::TooLarge,
        error => {
            host.log("the store does not take what a browser has sent", error);
            Failure::Store
        }
    }
}
