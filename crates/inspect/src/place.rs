//! Where the content of an object stands, and how a mail is read that begins there.

/// The reader of mailboxes.
pub(crate) const MBOX: &str = "mbox";

/// A byte of content: the object of which it is a run, unchanged, and the offset there.
pub(crate) type Place = (u32, u64);

/// How a mail is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tail {
    /// As a mail.
    Read,
    /// By the readers of another object that begins where it does.
    Shared,
    /// By the reader of the mailbox that it is the rest of.
    Divided,
}

impl Tail {
    /// Whether a reader of this name reads what another object has.
    pub(crate) fn omits(self, reader: &str) -> bool {
        self != Tail::Read && matches!(reader, "mime" | MBOX)
    }
}
