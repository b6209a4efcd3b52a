//! Errors: impossible requests, failures of the device, and damage.

use core::fmt;

use crate::device::DeviceError;

/// Reason for which a call failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The device failed. After a failed write or flush nothing more is written until the volume is opened again, since
    /// the content of stable storage is unknown.
    Device(DeviceError),
    /// An earlier write or flush failed.
    Failed,
    /// The volume was opened to be read.
    ReadOnly,
    /// The volume is full. Deleting is still possible.
    Full,
    /// The call is invalid; nothing has changed.
    Refused(Refused),
    /// Stored bytes differ from the written ones.
    Damaged(Damage),
    /// The record is not there any more: compaction has moved it. Look the message up again.
    Moved,
    /// The device has no volume.
    NotAVolume,
    /// The volume has a format that this program does not know.
    Version(u32),
    /// The device is too small, or sizes do not fit each other.
    Geometry(&'static str),
}

/// Impossible requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names say it, and `Display` says more")]
pub enum Refused {
    NoSuchAccount,
    NoSuchMailbox,
    NoSuchMessage,
    Exists,
    /// Too long, or empty.
    Name,
    /// The account would have more than its quota.
    OverQuota,
    /// A message with this id and other bytes exists: an error of its author, or an attack.
    KnownIdOtherContent,
    /// A mailbox has at most [`KEYWORDS_MAX`](crate::KEYWORDS_MAX) keywords.
    TooManyKeywords,
    /// An account has at most [`ANNOTATIONS_MAX`](crate::ANNOTATIONS_MAX), of bounded length.
    TooManyAnnotations,
    /// The operations of one transaction fit into one record.
    TransactionTooLarge,
    /// The account has as many of its kind as it may have.
    TooMany,
    /// A digest fits into one record, and a message has at most 2^40 bytes.
    TooLarge,
    /// A mailbox has given 2^32 - 1 UIDs.
    NoMoreUids,
    /// Operations that contradict the state: only in a damaged volume.
    Inconsistent,
}

/// A record whose checksum or content does not match what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damage {
    /// The damaged thing.
    pub what: Damaged,
    /// Where, in bytes from the start of the device.
    pub position: u64,
}

/// Things that can be damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damaged {
    /// Both superblocks, or the one that was written last.
    Superblock,
    /// The head of a segment that is needed.
    Segment,
    /// A checkpoint.
    Checkpoint,
    /// Operations on mailboxes.
    Transaction,
    /// Records of the log, which ones cannot be known.
    Log,
    /// The content of this message.
    Message(u64),
    /// The digest of this message.
    Digest(u64),
}

impl From<DeviceError> for Error {
    fn from(error: DeviceError) -> Self {
        Error::Device(error)
    }
}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Self {
        Error::Refused(refused)
    }
}

impl Error {
    pub(crate) fn damaged(what: Damaged, position: u64) -> Self {
        Error::Damaged(Damage { what, position })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Device(error) => error.fmt(f),
            Error::Failed => f.write_str("an earlier write failed; the volume has to be opened anew"),
            Error::ReadOnly => f.write_str("the volume is open for reading only"),
            Error::Full => f.write_str("the volume is full"),
            Error::Refused(refused) => refused.fmt(f),
            Error::Damaged(damage) => damage.fmt(f),
            Error::Moved => f.write_str("the message has been moved"),
            Error::NotAVolume => f.write_str("this is no volume"),
            Error::Version(version) => write!(f, "volumes of version {version} are not known"),
            Error::Geometry(why) => f.write_str(why),
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refused::NoSuchAccount => "there is no such account",
            Refused::NoSuchMailbox => "there is no such mailbox",
            Refused::NoSuchMessage => "there is no such message",
            Refused::Exists => "it exists already",
            Refused::Name => "names have 1 to 1024 bytes",
            Refused::OverQuota => "the account is over its quota",
            Refused::KnownIdOtherContent => "a message with this id and other content exists",
            Refused::TooManyKeywords => "the mailbox has too many keywords",
            Refused::TooManyAnnotations => "too many annotations, or too long",
            Refused::TransactionTooLarge => "too many operations for one transaction",
            Refused::TooMany => "the account has as many of these as it may have",
            Refused::TooLarge => "the message or its digest is too large",
            Refused::NoMoreUids => "the mailbox has no more UIDs",
            Refused::Inconsistent => "the operation does not fit the state before it",
        })
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.what {
            Damaged::Superblock => f.write_str("a superblock")?,
            Damaged::Segment => f.write_str("the head of a segment")?,
            Damaged::Checkpoint => f.write_str("a checkpoint")?,
            Damaged::Transaction => f.write_str("a transaction")?,
            Damaged::Log => f.write_str("the log")?,
            Damaged::Message(number) => write!(f, "the content of message {number}")?,
            Damaged::Digest(number) => write!(f, "the digest of message {number}")?,
        }
        write!(f, " is damaged at {}", self.position)
    }
}

impl core::error::Error for Error {}
impl core::error::Error for Refused {}
