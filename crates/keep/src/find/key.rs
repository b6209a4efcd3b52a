//! The conditions of a search, as plain values.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use store::Uids;

/// A condition on a message.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of IMAP's SEARCH")]
pub enum Key {
    /// All of these.
    And(Vec<Key>),
    Or(Box<(Key, Key)>),
    Not(Box<Key>),
    /// Numbers in the view.
    Numbers(Uids),
    Uids(Uids),
    /// Among those that an earlier search has saved in the view (`$`, RFC 5182).
    Result,
    /// A system flag, a bit of [`store::Flags`].
    Flag(u64),
    Keyword(String),
    Recent,
    /// Arrival: from the first day on, before the second; days since 1970.
    Arrived(i64, i64),
    /// The day on which it came into the mailbox, as [`Key::Arrived`].
    Saved(i64, i64),
    /// The day in the field `Date`.
    Sent(i64, i64),
    /// Arrival within so many seconds.
    Younger(u64),
    Larger(u64),
    Smaller(u64),
    /// A field, by its name, whose value holds a text; any value if the text is empty.
    Header(Vec<u8>, Vec<u8>),
    Body(Vec<u8>),
    Text(Vec<u8>),
    /// Changed by this transaction or later.
    Modseq(u64),
    /// The ids that [`crate::view`] writes.
    EmailId(Vec<u8>),
    ThreadId(Vec<u8>),
}

impl Key {
    /// Whether a condition is on transactions.
    pub fn asks_for_modseq(&self) -> bool {
        match self {
            Key::And(keys) => keys.iter().any(Key::asks_for_modseq),
            Key::Or(keys) => keys.0.asks_for_modseq() || keys.1.asks_for_modseq(),
            Key::Not(key) => key.asks_for_modseq(),
            Key::Modseq(_) => true,
            _ => false,
        }
    }
}
