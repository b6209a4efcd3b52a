//! The Emails of an account: each message once, with the mailboxes that have it, from one snapshot.
//!
//! Memory while a request is answered: 48 bytes a message.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use store::{Entry, Flags, Mailbox, Message, State};

/// Keywords of the system flags (RFC 8621, section 4.1.1).
pub(crate) const SYSTEM: [(u64, &str); 4] =
    [(Flags::SEEN, "$seen"), (Flags::ANSWERED, "$answered"), (Flags::FLAGGED, "$flagged"), (Flags::DRAFT, "$draft")];

/// The Emails of an account.
pub struct Index {
    /// The snapshot.
    pub(crate) snapshot: State,
    /// Its mailboxes, by number.
    pub(crate) mailboxes: Vec<(u32, Arc<Mailbox>)>,
    /// Message, mailbox and UID, sorted.
    places: Vec<(u64, u32, u32)>,
    /// Ids and messages, sorted.
    ids: Vec<(u128, u64)>,
}

/// An Email as the store knows it, without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Email {
    pub message: u64,
    pub id: String,
    pub thread: String,
    pub size: u64,
    pub received: i64,
    pub mailboxes: BTreeSet<u32>,
    pub keywords: BTreeSet<String>,
}

impl Index {
    /// The Emails of an account in a snapshot.
    pub fn new(snapshot: State, account: u32) -> Index {
        let numbers: BTreeSet<u32> =
            snapshot.account(account).map(|account| account.mailboxes.values().copied().collect()).unwrap_or_default();
        let mailboxes: Vec<(u32, Arc<Mailbox>)> =
            numbers.iter().filter_map(|&number| Some((number, snapshot.mailbox(number)?.clone()))).collect();
        let of = |(number, mailbox): &(u32, Arc<Mailbox>)| -> Vec<(u64, u32, u32)> {
            mailbox.from(0).map(|(uid, entry)| (entry.message.get(), *number, uid)).collect()
        };
        let mut places: Vec<(u64, u32, u32)> = mailboxes.iter().flat_map(of).collect();
        places.sort_unstable();
        let mut ids = Vec::new();
        for (message, ..) in &places {
            if ids.last().is_none_or(|(_, last)| last != message)
                && let Some(found) = snapshot.message(*message)
            {
                ids.push((found.id, *message));
            }
        }
        ids.sort_unstable();
        Index { snapshot, mailboxes, places, ids }
    }

    /// The fingerprint of an account: it changes with its mailboxes, their names, the messages in them, and its scripts.
    pub fn state(snapshot: &State, account: u32) -> u64 {
        let mut hash = Hash::default();
        let Some(found) = snapshot.account(account) else { return 0 };
        for (name, &number) in found.mailboxes.iter() {
            let Some(mailbox) = snapshot.mailbox(number) else { continue };
            hash.bytes(name);
            for part in [
                u64::from(number),
                mailbox.highest_modseq,
                u64::from(mailbox.uid_next),
                u64::from(mailbox.special_use.0),
            ] {
                hash.bytes(&part.to_le_bytes());
            }
        }
        found.subscriptions.iter().for_each(|name| hash.bytes(name));
        let is_told = |name: &[u8]| name.starts_with(b"jmap/") || name.starts_with(b"sieve/");
        for (name, value) in found.annotations.iter().filter(|(name, _)| is_told(name)) {
            hash.bytes(name);
            hash.bytes(value);
        }
        hash.0
    }

    /// Whether an account has a message in a snapshot that did not exist in one before.
    pub fn has_grown(before: &State, now: &State, account: u32) -> bool {
        let Some(account) = now.account(account) else { return false };
        account.mailboxes.values().any(|&number| {
            let first = before.mailbox(number).map_or(1, |mailbox| mailbox.uid_next);
            let is_new = |(_, entry): (u32, &Entry)| before.message(entry.message.get()).is_none();
            now.mailbox(number).is_some_and(|mailbox| first > 0 && mailbox.from(first).any(is_new))
        })
    }

    /// A mailbox by its id.
    pub(crate) fn mailbox(&self, id: &str) -> Option<&(u32, Arc<Mailbox>)> {
        let number = mailbox_number(id)?;
        let at = self.mailboxes.binary_search_by_key(&number, |(known, _)| *known).ok()?;
        self.mailboxes.get(at)
    }

    /// The message of an Email.
    pub(crate) fn message_of(&self, id: &str) -> Option<u64> {
        let digits = id.strip_prefix('M').filter(|digits| digits.len() == 32)?;
        if digits.bytes().any(|byte| !matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            return None;
        }
        let id = u128::from_str_radix(digits, 16).ok()?;
        let at = self.ids.binary_search_by_key(&id, |(known, _)| *known).ok()?;
        self.ids.get(at).map(|(_, message)| *message)
    }

    /// All messages.
    pub(crate) fn messages(&self) -> impl Iterator<Item = u64> {
        self.ids.iter().map(|(_, message)| *message)
    }

    /// The mailboxes and UIDs of a message.
    pub(crate) fn places(&self, message: u64) -> impl Iterator<Item = (u32, u32)> {
        let start = self.places.partition_point(|(known, ..)| *known < message);
        let rest = self.places.get(start..).unwrap_or_default().iter();
        rest.take_while(move |(known, ..)| *known == message).map(|(_, mailbox, uid)| (*mailbox, *uid))
    }

    /// The mailboxes, the UIDs and the entries of a message.
    pub(crate) fn entries(&self, message: u64) -> impl Iterator<Item = (&Mailbox, u32, u32, &Entry)> {
        self.places(message).filter_map(|(number, uid)| {
            let at = self.mailboxes.binary_search_by_key(&number, |(known, _)| *known).ok()?;
            let (_, mailbox) = self.mailboxes.get(at)?;
            Some((&**mailbox, number, uid, mailbox.entry(uid)?))
        })
    }

    /// An Email. Of several mailboxes its keywords are joined; it is seen when it is seen in all.
    pub(crate) fn email(&self, message: u64) -> Option<Email> {
        let found = self.snapshot.message(message)?;
        let mut email = Email {
            message,
            id: email_id(found),
            thread: thread_id(found),
            size: found.size,
            received: i64::MAX,
            mailboxes: BTreeSet::new(),
            keywords: BTreeSet::new(),
        };
        let mut is_seen = true;
        for (mailbox, number, _, entry) in self.entries(message) {
            email.mailboxes.insert(number);
            email.received = email.received.min(entry.date);
            is_seen &= entry.flags.has(Flags::SEEN);
            let system = SYSTEM.iter().filter(|(bit, _)| entry.flags.has(*bit)).map(|(_, name)| name.to_string());
            email.keywords.extend(system);
            email.keywords.extend(mailbox.keywords_of(entry.flags).map(str::to_ascii_lowercase));
        }
        if !is_seen {
            email.keywords.remove("$seen");
        }
        (!email.mailboxes.is_empty()).then_some(email)
    }

    /// The id of the Email that a message is.
    pub(crate) fn id_of(&self, message: u64) -> Option<String> {
        self.snapshot.message(message).map(email_id)
    }

    /// The thread of a message.
    pub(crate) fn thread(&self, message: u64) -> Option<String> {
        self.snapshot.message(message).map(thread_id)
    }

    /// Whether a message is in the same mailboxes with the same flags in another snapshot.
    pub(crate) fn is_same(&self, other: &Index, message: u64) -> bool {
        let of = |index: &Index| -> Vec<(u32, u32, u64)> {
            index.entries(message).map(|(_, number, uid, entry)| (number, uid, entry.modseq)).collect()
        };
        of(self) == of(other)
    }
}

/// The id of an Email, which is the EMAILID of IMAP.
fn email_id(message: &Message) -> String {
    format!("M{:032x}", message.id)
}

/// The id of a thread, which is the THREADID of IMAP; a message without one is a thread for itself.
fn thread_id(message: &Message) -> String {
    match message.thread {
        0 => format!("T{}", email_id(message)),
        thread => format!("T{thread:x}"),
    }
}

/// The id of a mailbox, which is the MAILBOXID of IMAP.
pub(crate) fn mailbox_id(number: u32) -> String {
    format!("F{number}")
}

fn mailbox_number(id: &str) -> Option<u32> {
    let number = id.strip_prefix('F')?.parse().ok()?;
    (mailbox_id(number) == id).then_some(number)
}

/// FNV-1a of 64 bits, each piece with its length.
struct Hash(u64);

impl Default for Hash {
    fn default() -> Hash {
        Hash(0xcbf2_9ce4_8422_2325)
    }
}

impl Hash {
    fn bytes(&mut self, bytes: &[u8]) {
        for byte in (bytes.len() as u64).to_le_bytes().iter().chain(bytes) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}
