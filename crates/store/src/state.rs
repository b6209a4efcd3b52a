//! Content of a volume, as plain values: accounts, mailboxes, messages.
//!
//! A [`State`] is a snapshot of all of it: copies share their content and never change. It has the places of messages,
//! not their content.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::num::NonZeroU64;

use crate::error::Refused;
use crate::map::Map;

/// Maximum length of the name of an account or a mailbox, in bytes: as much as IMAP's clients send in a line.
pub const NAME_BYTES_MAX: usize = 1024;
/// Keywords of a mailbox: the bits of [`Entry::flags`] that are not system flags.
pub const KEYWORDS_MAX: usize = 56;
/// Longest keyword, in bytes: as long as keywords of JMAP are (RFC 8621, section 4.1.1).
pub const KEYWORD_BYTES_MAX: usize = 255;
/// Runs of expunged UIDs that a mailbox remembers, for clients that ask for vanished messages (RFC 7162); the oldest go
/// first.
pub const VANISHED_MAX: usize = 1024;
/// Longest name of an annotation, in bytes.
pub const ANNOTATION_NAME_BYTES_MAX: usize = 512;
/// Longest value of an annotation, in bytes: it is held in memory, and fits into a transaction.
pub const ANNOTATION_BYTES_MAX: usize = 256 << 10;
/// Longest note of a message, in bytes: as an annotation, and beside them in one transaction.
pub const NOTE_BYTES_MAX: usize = 256 << 10;
/// Annotations of an account and all its mailboxes together: how many.
pub const ANNOTATIONS_MAX: usize = 2_000;
/// The same in bytes, names and values.
pub const ANNOTATED_BYTES_MAX: usize = 2 << 20;
/// The longest message, in bytes.
pub const MESSAGE_BYTES_MAX: u64 = 1 << 40;
/// Separates the levels of mailbox names.
pub const DELIMITER: u8 = b'/';

/// Notes of the host, by name: scripts of a user, say, or metadata of clients.
pub type Annotations = Arc<BTreeMap<Box<[u8]>, Arc<[u8]>>>;

/// Everything that a volume holds, at one moment.
#[derive(Debug, Clone, Default)]
pub struct State {
    /// The number of the last transaction: the highest MODSEQ (RFC 7162), and the state of JMAP.
    pub commits: u64,
    pub(crate) next_message: u64,
    pub(crate) next_mailbox: u32,
    pub(crate) next_account: u32,
    pub(crate) accounts: Map<Arc<Account>>,
    pub(crate) mailboxes: Map<Arc<Mailbox>>,
    pub(crate) messages: Map<Message>,
    pub(crate) names: Arc<BTreeMap<Box<[u8]>, u32>>,
    /// Mailboxes with annotations, by the hash of their names: how many names of that hash each has. It follows from
    /// the rest.
    pub(crate) annotated: Map<Map<u32>>,
}

/// Owner of mailboxes.
#[derive(Debug, Clone, Default)]
pub struct Account {
    /// Name by which the host knows it.
    pub name: Box<[u8]>,
    /// Its bounds.
    pub quota: Quota,
    /// Bytes of the messages in its mailboxes, each counted per copy.
    pub used_bytes: u64,
    /// How many those are.
    pub used_messages: u64,
    /// Its mailboxes by name.
    pub mailboxes: Arc<BTreeMap<Box<[u8]>, u32>>,
    /// Names it has subscribed to; there need not be such mailboxes (RFC 9051, section 6.3.7).
    pub subscriptions: Arc<BTreeSet<Box<[u8]>>>,
    /// Annotations of the account.
    pub annotations: Annotations,
}

/// How much an account may have; 0 is no bound.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Quota {
    /// Bytes.
    pub bytes: u64,
    /// Messages.
    pub messages: u64,
}

/// A mailbox.
#[derive(Debug, Clone)]
pub struct Mailbox {
    /// Its account.
    pub account: u32,
    /// Its name, with those of the mailboxes above it.
    pub name: Box<[u8]>,
    /// Ascending over the whole volume, never given twice.
    pub uid_validity: u32,
    /// The next UID; 0 when all are used.
    pub uid_next: u32,
    /// The last transaction that changed something in it.
    pub highest_modseq: u64,
    /// Special use (RFC 6154).
    pub special_use: SpecialUse,
    /// The keywords of its messages: bit `8 + n` of their flags stands for the one at `n`.
    pub keywords: Arc<Vec<String>>,
    /// Its messages by UID.
    pub entries: Map<Entry>,
    /// Bytes of its messages.
    pub bytes: u64,
    /// How many do not have the flag [`Flags::SEEN`].
    pub unseen: u32,
    /// How many have the flag [`Flags::DELETED`].
    pub deleted: u32,
    /// Expunged UIDs, the oldest first.
    pub vanished: Arc<Vec<Vanished>>,
    /// Transaction up to which expunged messages may have been forgotten.
    pub vanished_floor: u64,
    /// Annotations of the mailbox.
    pub annotations: Annotations,
    /// Notes of the host on its messages, by UID: state that changes, where the content does not. It goes with the
    /// message.
    pub notes: Map<Arc<[u8]>>,
}

/// A message in a mailbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// The number of the message.
    pub message: NonZeroU64,
    /// System flags in the low eight bits, then the keywords of the mailbox.
    pub flags: Flags,
    /// The last transaction that changed it.
    pub modseq: u64,
    /// INTERNALDATE, seconds since 1970.
    pub date: i64,
    /// When it came into this mailbox (RFC 8514), seconds since 1970.
    pub saved: i64,
}

/// Flags of a message in a mailbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flags(pub u64);

#[allow(missing_docs, reason = "the system flags of RFC 9051, section 2.3.2")]
impl Flags {
    pub const SEEN: u64 = 1;
    pub const ANSWERED: u64 = 2;
    pub const FLAGGED: u64 = 4;
    pub const DELETED: u64 = 8;
    pub const DRAFT: u64 = 16;
    /// All of them.
    pub const SYSTEM: u64 = 31;
    /// The first keyword.
    pub const KEYWORDS_AT: u32 = 8;

    /// Whether all of these are set.
    pub fn has(self, bits: u64) -> bool {
        self.0 & bits == bits
    }
}

/// Special use of a mailbox: a set of the attributes of RFC 6154.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SpecialUse(pub u16);

impl SpecialUse {
    /// The attributes, in the order of their bits.
    pub const NAMES: [&'static str; 8] =
        ["\\All", "\\Archive", "\\Drafts", "\\Flagged", "\\Junk", "\\Sent", "\\Trash", "\\Important"];
}

/// A message, which mailboxes point to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Id for clients (EMAILID of RFC 8474): not made of its content.
    pub id: u128,
    /// Its content, in bytes.
    pub size: u64,
    /// Messages of one thread have the same (THREADID); the host says which.
    pub thread: u64,
    /// In how many places of mailboxes it is.
    pub links: u32,
    /// Where its digest is; 0 if it has none.
    pub(crate) digest: u64,
    /// How long that is.
    pub(crate) digest_bytes: u32,
    pub(crate) place: Place,
}

/// Where the pieces of a message are: runs of records, one behind the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    Run(u64),
    Runs(Arc<[(u64, u32)]>),
}

/// UIDs that were expunged together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vanished {
    /// By which transaction.
    pub modseq: u64,
    /// The first of them.
    pub first: u32,
    /// The last of them; those between that were not there before are among them.
    pub last: u32,
}

impl State {
    /// The account with this name.
    pub fn account_named(&self, name: &[u8]) -> Option<(u32, &Account)> {
        let number = *self.names.get(name)?;
        Some((number, self.account(number)?))
    }

    /// An account.
    pub fn account(&self, number: u32) -> Option<&Account> {
        self.accounts.get(u64::from(number)).map(|account| &**account)
    }

    /// All accounts.
    pub fn accounts(&self) -> impl Iterator<Item = (u32, &Account)> {
        self.accounts.iter().map(|(number, account)| (number as u32, &**account))
    }

    /// A mailbox; its copy is a snapshot.
    pub fn mailbox(&self, number: u32) -> Option<&Arc<Mailbox>> {
        self.mailboxes.get(u64::from(number))
    }

    /// The mailbox of an account with this name.
    pub fn mailbox_named(&self, account: u32, name: &[u8]) -> Option<(u32, &Arc<Mailbox>)> {
        let number = *self.account(account)?.mailboxes.get(name)?;
        Some((number, self.mailbox(number)?))
    }

    /// All mailboxes.
    pub fn mailboxes(&self) -> impl Iterator<Item = (u32, &Arc<Mailbox>)> {
        self.mailboxes.iter().map(|(number, mailbox)| (number as u32, mailbox))
    }

    /// How many annotations an account has with its mailboxes, and their bytes, names and values.
    pub fn annotations_of(&self, account: u32) -> (usize, usize) {
        let Some(account) = self.account(account) else { return (0, 0) };
        let mailboxes = account.mailboxes.values().filter_map(|&number| self.mailbox(number));
        let all = mailboxes.map(|mailbox| &mailbox.annotations).chain([&account.annotations]);
        all.flat_map(|annotations| annotations.iter()).fold((0, 0), |(count, bytes), (name, value)| {
            (count + 1, bytes.saturating_add(name.len()).saturating_add(value.len()))
        })
    }

    /// The mailboxes that have an annotation of this name. Others are not looked at.
    pub fn mailboxes_annotated<'a>(&'a self, name: &'a [u8]) -> impl Iterator<Item = (u32, &'a Arc<Mailbox>)> {
        let found = self.annotated.get(hash(name)).into_iter().flat_map(Map::iter);
        let found = found.filter_map(|(number, _)| Some((number as u32, self.mailbox(number as u32)?)));
        found.filter(move |(_, mailbox)| mailbox.annotations.contains_key(name))
    }

    /// Notes something of an account, or of a mailbox that is not 0; without a value it is forgotten.
    pub(crate) fn annotate(
        &mut self,
        account: u32,
        mailbox: u32,
        name: &[u8],
        value: Option<&[u8]>,
    ) -> Result<(), Refused> {
        let annotations = match mailbox {
            0 => &mut self.account_mut(account)?.annotations,
            mailbox => &mut self.mailbox_mut(mailbox)?.annotations,
        };
        let annotations = Arc::make_mut(annotations);
        let former = match value {
            Some(value) => annotations.insert(name.into(), value.into()),
            None => annotations.remove(name),
        };
        if mailbox != 0 && former.is_some() != value.is_some() {
            self.count_annotated(mailbox, name, value.is_some());
        }
        Ok(())
    }

    /// A mailbox has one more annotation of this name, or no longer the one it had.
    pub(crate) fn count_annotated(&mut self, mailbox: u32, name: &[u8], more: bool) {
        let (hash, mailbox) = (hash(name), u64::from(mailbox));
        if self.annotated.get(hash).is_none() {
            self.annotated.insert(hash, Map::default());
        }
        let Some(mailboxes) = self.annotated.get_mut(hash) else { return };
        let count = mailboxes.get(mailbox).copied().unwrap_or(0);
        match if more { count.saturating_add(1) } else { count.saturating_sub(1) } {
            0 => drop(mailboxes.remove(mailbox)),
            count => drop(mailboxes.insert(mailbox, count)),
        }
        if mailboxes.is_empty() {
            self.annotated.remove(hash);
        }
    }

    /// A message.
    pub fn message(&self, number: u64) -> Option<&Message> {
        self.messages.get(number)
    }

    /// All messages that a mailbox points to.
    pub fn messages(&self) -> impl Iterator<Item = (u64, &Message)> {
        self.messages.iter()
    }

    /// Mailboxes that have a message, with its UIDs. Looks through all of them.
    pub fn places_of(&self, message: u64) -> impl Iterator<Item = (u32, u32)> {
        self.mailboxes().flat_map(move |(number, mailbox)| {
            let found = mailbox.entries.iter().filter(move |(_, entry)| entry.message.get() == message);
            found.map(move |(uid, _)| (number, uid as u32))
        })
    }
}

/// FNV-1a, folded to thirty bits, which are five levels of a [`Map`]. Names of one hash cost time, nothing else.
fn hash(name: &[u8]) -> u64 {
    let hash = name.iter().fold(0x811c_9dc5u32, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    u64::from(hash >> 30 ^ hash & 0x3fff_ffff)
}

impl Mailbox {
    /// Messages from this UID on, in order.
    pub fn from(&self, uid: u32) -> impl Iterator<Item = (u32, &Entry)> {
        self.entries.from(u64::from(uid)).map(|(uid, entry)| (uid as u32, entry))
    }

    /// A message.
    pub fn entry(&self, uid: u32) -> Option<&Entry> {
        self.entries.get(u64::from(uid))
    }

    /// The note of a message.
    pub fn note(&self, uid: u32) -> Option<&Arc<[u8]>> {
        self.notes.get(u64::from(uid))
    }

    /// Messages expunged after a transaction; `None` if some of them have been forgotten.
    pub fn vanished_since(&self, modseq: u64) -> Option<impl Iterator<Item = (u32, u32)>> {
        let since = self.vanished.iter().filter(move |run| run.modseq > modseq).map(|run| (run.first, run.last));
        (modseq >= self.vanished_floor).then_some(since)
    }

    /// The keywords of a message in it.
    pub fn keywords_of(&self, flags: Flags) -> impl Iterator<Item = &str> {
        let set = move |at: &usize| flags.0 >> (Flags::KEYWORDS_AT as usize + at) & 1 != 0;
        self.keywords.iter().enumerate().filter(move |(at, _)| set(at)).map(|(_, keyword)| keyword.as_str())
    }
}

impl Quota {
    /// Whether so much is more than it allows.
    pub fn is_exceeded_by(&self, bytes: u64, messages: u64) -> bool {
        (self.bytes != 0 && bytes > self.bytes) || (self.messages != 0 && messages > self.messages)
    }
}

impl Message {
    /// How many pieces it has.
    pub(crate) fn pieces(&self, piece_bytes: u32) -> u32 {
        u32::try_from(self.size.div_ceil(u64::from(piece_bytes))).unwrap_or(u32::MAX)
    }

    /// How long a piece of it is.
    pub(crate) fn piece_length(&self, piece: u32, piece_bytes: u32) -> u64 {
        let before = u64::from(piece) * u64::from(piece_bytes);
        self.size.saturating_sub(before).min(u64::from(piece_bytes))
    }
}

impl Place {
    /// Where the pieces are that stand at `positions`, in their order.
    pub fn of(positions: &[u64], stride: u64) -> Self {
        let mut runs: Vec<(u64, u32)> = Vec::new();
        for &position in positions {
            match runs.last_mut() {
                Some((first, count)) if *first + u64::from(*count) * stride == position => *count += 1,
                _ => runs.push((position, 1)),
            }
        }
        match runs[..] {
            [] => Place::Run(0),
            [(position, _)] => Place::Run(position),
            _ => Place::Runs(runs.into()),
        }
    }

    /// Returns the place of a piece; `None` if it does not exist.
    pub fn piece(&self, piece: u32, stride: u64) -> Option<u64> {
        let within = |first: u64, piece: u32| first.checked_add(u64::from(piece).checked_mul(stride)?);
        let runs = match self {
            Place::Run(first) => return within(*first, piece),
            Place::Runs(runs) => runs,
        };
        let mut before = 0u32;
        for &(first, count) in runs.iter() {
            match piece.checked_sub(before) {
                Some(piece) if piece < count => return within(first, piece),
                _ => before = before.checked_add(count)?,
            }
        }
        None
    }

    /// The runs, for `pieces` pieces.
    pub fn runs(&self, pieces: u32) -> Vec<(u64, u32)> {
        match self {
            Place::Run(first) => Vec::from([(*first, pieces)]),
            Place::Runs(runs) => runs.to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::apply::Effects;
    use crate::operation::Operation;

    #[test]
    fn an_entry_is_small() {
        assert!(size_of::<Option<Entry>>() <= 40);
        assert!(size_of::<Message>() <= 96);
    }

    /// A removed note is gone whatever shares its hash.
    #[test]
    fn mailboxes_are_found_by_what_is_noted_of_them() {
        let mut state = State::new(1);
        for operation in [
            Operation::AddAccount { number: 1, name: (*b"ann").into(), quota: Quota::default() },
            Operation::AddMailbox { number: 1, account: 1, name: (*b"a").into(), special_use: SpecialUse::default() },
            Operation::AddMailbox { number: 2, account: 1, name: (*b"b").into(), special_use: SpecialUse::default() },
        ] {
            state.apply(&operation, 1, &mut Effects::default()).unwrap();
        }
        let found =
            |state: &State, name: &[u8]| -> Vec<u32> { state.mailboxes_annotated(name).map(|(at, _)| at).collect() };
        let names: [&[u8]; 3] = [b"one", b"two", b"three"];
        for (mailbox, name) in [(1, names[0]), (2, names[0]), (2, names[1]), (2, names[0]), (0, names[2])] {
            state.annotate(1, mailbox, name, Some(b"x")).unwrap();
        }
        // As if both were of one hash.
        state.count_annotated(2, names[2], true);
        assert_eq!(names.map(|name| found(&state, name)), [vec![1, 2], vec![2], vec![]]);
        state.count_annotated(2, names[2], false);
        for (mailbox, name) in [(1, names[0]), (1, names[0]), (1, names[2]), (0, names[2])] {
            state.annotate(1, mailbox, name, None).unwrap();
        }
        assert_eq!(names.map(|name| found(&state, name)), [vec![2], vec![2], vec![]]);
        state.apply(&Operation::RemoveMailbox { mailbox: 2 }, 2, &mut Effects::default()).unwrap();
        assert!(state.annotated.is_empty());
    }

    #[test]
    fn pieces_are_found_in_their_runs() {
        let positions = [100, 110, 120, 50, 60, 200];
        let place = Place::of(&positions, 10);
        assert_eq!(place, Place::Runs([(100, 3), (50, 2), (200, 1)].into()));
        for (piece, &position) in positions.iter().enumerate() {
            assert_eq!(place.piece(piece as u32, 10), Some(position));
        }
        assert_eq!(place.piece(6, 10), None);
        assert_eq!(Place::of(&positions[..3], 10), Place::Run(100));
    }
}
