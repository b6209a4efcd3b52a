//! A search: flags, dates and sizes from the snapshot; headers and texts from the [`Index`] of the account, and by reading the
//! messages that are not in it, or of which it cannot say.
//!
//! Strings are compared in letters of either case, as the index does. Headers are decoded first (RFC 2047); bodies
//! are searched as they stand, and then part by part with transfer coding and charset undone, where the message has at most
//! [`DECODED_BYTES_MAX`]. Texts in attachments are found by the index; where several words are to stand beside each other
//! there, the index inspects the message, [`INSPECTIONS_MAX`] times in a search.
//!
//! Work goes on until the host's slice of time is over, in the midst of a message if need be, and is taken up again there.

mod key;
mod message;
mod text;

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use ::text::date;
use store::{Flags, Mailbox, State};

pub use key::Key;
pub use message::{DECODED_BYTES_MAX, HEADER_BYTES_MAX, Message};

use crate::content::Messages;
use crate::view::View;

/// Messages that one search has inspected for a text which the index cannot tell of.
pub const INSPECTIONS_MAX: usize = 2_000;

const DAY: i64 = 86_400;

/// The part of a message in which a text is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place<'a> {
    /// Header fields of this name.
    Field(&'a [u8]),
    /// All behind the header.
    Body,
    /// All of it.
    Anywhere,
}

/// Answer of the index: whether a text is in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It is not in the message.
    Absent,
    /// It is in the message.
    Present,
    /// It may be in the message.
    Maybe,
    /// Nothing is known of the message.
    Unknown,
}

/// The index of the texts of an account, as a host has one.
pub trait Index {
    /// The messages in which a text was found.
    type Found;

    /// Looks for a text; `None` if an index can tell nothing of such a text.
    fn find(&self, place: Place<'_>, text: &[u8]) -> Option<Self::Found>;

    /// The answer for one message, which is [`Answer::Unknown`] where nothing was found at all.
    fn tell(&self, message: u64, found: Option<&Self::Found>) -> Answer;

    /// Whether a text is in a message, attachments and archives too; slow.
    fn inspect(&self, message: u64, text: &str) -> bool;
}

/// A host without an index: every message is read.
pub struct NoIndex;

impl Index for NoIndex {
    type Found = ();

    fn find(&self, _: Place<'_>, _: &[u8]) -> Option<()> {
        None
    }

    fn tell(&self, _: u64, _: Option<&()>) -> Answer {
        Answer::Unknown
    }

    fn inspect(&self, _: u64, _: &str) -> bool {
        false
    }
}

/// A search in a view, under way.
pub struct Finder<'a, M, I: Index> {
    messages: &'a M,
    index: I,
    state: State,
    mailbox: Arc<Mailbox>,
    view: &'a View,
    key: &'a Key,
    now: i64,
    /// Hits in the index for each text, by the address of its key.
    indexed: RefCell<BTreeMap<usize, Option<I::Found>>>,
    inspections: Cell<usize>,
    /// How many of the messages are behind it.
    at: usize,
    /// The texts that were looked for in the next message, and whether they are there.
    looked: RefCell<BTreeMap<usize, bool>>,
    /// A text was looked for in this slice.
    has_looked: Cell<bool>,
}

/// The slice is over in the midst of a message.
struct Pause;

impl<'a, M: Messages, I: Index> Finder<'a, M, I> {
    /// Begins a search of the messages of a view as they are in a snapshot, at a time in seconds since 1970.
    pub fn new(messages: &'a M, index: I, state: State, view: &'a View, key: &'a Key, now: i64) -> Self {
        let mailbox = state.mailbox(view.number).unwrap_or(&view.mailbox).clone();
        Finder {
            messages,
            index,
            state,
            mailbox,
            view,
            key,
            now,
            indexed: RefCell::default(),
            inspections: Cell::default(),
            at: 0,
            looked: RefCell::default(),
            has_looked: Cell::default(),
        }
    }

    /// Goes on until `is_over`, and hands out the messages that match; returns true at the end. In each slice something is done: a
    /// message is behind it, or a text was looked for in one.
    pub fn go_on(&mut self, is_over: impl Fn() -> bool, mut found: impl FnMut(&Message<'_, M>)) -> bool {
        self.has_looked.set(false);
        let rest = self.view.uids.get(self.at..).unwrap_or_default();
        let mut entries = self.mailbox.from(rest.first().copied().unwrap_or(u32::MAX)).peekable();
        for (at, &uid) in (self.at..).zip(rest) {
            while entries.next_if(|(known, _)| *known < uid).is_some() {}
            if let Some((_, &entry)) = entries.next_if(|(known, _)| *known == uid) {
                let number = u32::try_from(at + 1).unwrap_or(u32::MAX);
                let message = Message::new(self.messages, &self.state, (number, uid), entry);
                match self.matches(&message, self.key, &is_over) {
                    Ok(true) => found(&message),
                    Ok(false) => {}
                    Err(Pause) => {
                        self.at = at;
                        return false;
                    }
                }
                self.looked.borrow_mut().clear();
            }
            if is_over() {
                self.at = at + 1;
                return false;
            }
        }
        true
    }

    fn matches(&self, message: &Message<'_, M>, key: &Key, is_over: &impl Fn() -> bool) -> Result<bool, Pause> {
        let entry = message.entry();
        Ok(match key {
            Key::And(keys) => {
                for key in keys {
                    if !self.matches(message, key, is_over)? {
                        return Ok(false);
                    }
                }
                true
            }
            Key::Or(keys) => self.matches(message, &keys.0, is_over)? || self.matches(message, &keys.1, is_over)?,
            Key::Not(key) => !self.matches(message, key, is_over)?,
            Key::Numbers(numbers) => numbers.contains(message.number()),
            Key::Uids(uids) => uids.contains(message.uid()),
            Key::Result => self.view.saved.contains(message.uid()),
            Key::Flag(bit) => entry.flags.has(*bit),
            Key::Keyword(name) => {
                let at = self.mailbox.keywords.iter().position(|known| known.eq_ignore_ascii_case(name));
                at.is_some_and(|at| entry.flags.has(1 << (Flags::KEYWORDS_AT as usize + at)))
            }
            Key::Recent => self.view.recent.contains(message.uid()),
            Key::Arrived(from, to) => (*from..*to).contains(&entry.date.div_euclid(DAY)),
            Key::Saved(from, to) => (*from..*to).contains(&entry.saved.div_euclid(DAY)),
            Key::Sent(from, to) => message
                .field(b"date")
                .any(|value| date::parse_sent(&value).is_some_and(|day| (*from..*to).contains(&day))),
            Key::Younger(seconds) => self.now.saturating_sub(entry.date) <= i64::try_from(*seconds).unwrap_or(i64::MAX),
            Key::Larger(bytes) => message.size() > *bytes,
            Key::Smaller(bytes) => message.size() < *bytes,
            Key::Header(name, text) => return self.has_text(message, (Place::Field(name), text), is_over),
            Key::Body(text) => return self.has_text(message, (Place::Body, text), is_over),
            Key::Text(text) => return self.has_text(message, (Place::Anywhere, text), is_over),
            Key::Modseq(modseq) => entry.modseq >= *modseq,
            Key::EmailId(id) => message.email_id().as_bytes() == id,
            Key::ThreadId(id) => message.thread_id().is_some_and(|known| known.as_bytes() == id),
        })
    }

    /// Looks for a text in a message, once, however often the message is begun with.
    fn has_text(
        &self,
        message: &Message<'_, M>,
        (place, text): (Place<'_>, &Vec<u8>),
        is_over: &impl Fn() -> bool,
    ) -> Result<bool, Pause> {
        // The key is borrowed as long as the search goes on.
        let name = core::ptr::from_ref(text).addr();
        if let Some(&has) = self.looked.borrow().get(&name) {
            return Ok(has);
        }
        if self.has_looked.get() && is_over() {
            return Err(Pause);
        }
        let has = self.looks(message, name, place, text);
        self.has_looked.set(true);
        self.looked.borrow_mut().insert(name, has);
        Ok(has)
    }

    fn looks(&self, message: &Message<'_, M>, name: usize, place: Place<'_>, text: &[u8]) -> bool {
        let answer = {
            let mut indexed = self.indexed.borrow_mut();
            let found = indexed.entry(name).or_insert_with(|| self.index.find(place, text));
            self.index.tell(message.stored(), found.as_ref())
        };
        match answer {
            Answer::Absent => false,
            Answer::Present => true,
            Answer::Unknown => message.holds(place, text),
            Answer::Maybe => message.holds(place, text) || self.an_attachment_holds(message, place, text),
        }
    }

    /// Whether a text is in a part that only an inspection reads.
    fn an_attachment_holds(&self, message: &Message<'_, M>, place: Place<'_>, text: &[u8]) -> bool {
        let Ok(text) = core::str::from_utf8(text) else { return false };
        let is_bounded = self.inspections.get() >= INSPECTIONS_MAX;
        if matches!(place, Place::Field(_)) || is_bounded || !message.has_more_than_text() {
            return false;
        }
        self.inspections.set(self.inspections.get() + 1);
        self.index.inspect(message.stored(), text)
    }
}
