//! The mail store of one account, the clock and the randomness of a host.
//!
//! A host answers for this account alone: a mailbox of another account does not exist.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use store::{Change, Mailbox, State};

use crate::limits::SENT_BYTES_MAX;

/// The account of a user who has logged in.
#[derive(Debug, Clone)]
pub struct Account {
    /// Its number in the store.
    pub number: u32,
    /// The name that it logs in by.
    pub name: String,
    /// Addresses that it may write from; the first is the usual one.
    pub addresses: Vec<String>,
}

/// The places of a message or a part, from the start of the message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layout {
    /// Where its header begins.
    pub header: u64,
    /// Where its body begins.
    pub body: u64,
    /// Where it ends.
    pub end: u64,
    /// Whether it is a message within a message.
    pub is_message: bool,
    /// The parts of a multipart, or the message within.
    pub parts: Vec<Layout>,
}

/// The part of a message in which a text is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names say it")]
pub enum Field {
    Anywhere,
    Body,
    From,
    To,
    Cc,
    Bcc,
    Subject,
}

/// An operation of a transaction; all of one list are done, or none.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of the store's transaction")]
pub enum Work {
    Store { mailbox: u32, uid: u32, change: Change, flags: u64, keywords: Vec<String> },
    Copy { from: u32, to: u32, uid: u32 },
    Move { from: u32, to: u32, uid: u32 },
    Expunge { mailbox: u32, uid: u32 },
    Create { name: String, special_use: u16 },
    Rename { mailbox: u32, name: String },
    Remove { mailbox: u32 },
    Subscribe { name: String, is_subscribed: bool },
    SpecialUse { mailbox: u32, special_use: u16 },
    Annotate { name: String, value: Vec<u8> },
}

/// Where a new message goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The mailbox.
    pub mailbox: u32,
    /// System flags of [`store::Flags`].
    pub flags: u64,
    /// Keywords.
    pub keywords: Vec<String>,
}

/// A mail that is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sending {
    /// The sender of the envelope.
    pub from: String,
    /// The recipients.
    pub to: Vec<String>,
    /// The mail, without blind copies.
    pub content: Vec<u8>,
}

/// A failure of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The mailbox or message does not exist.
    Gone,
    /// The account has as much as it may have.
    OverQuota,
    /// A mailbox of this name exists.
    Exists,
    /// A mailbox cannot have this name.
    Name,
    /// The mail is larger than mails may be.
    TooLarge,
    /// The store is full, or cannot be written.
    Store,
    /// Nobody sends mail for this server.
    NoRelay,
    /// A recipient is elsewhere, and mail is delivered here alone.
    Elsewhere,
    /// Too many mails wait to be sent.
    Waiting,
    /// The filters are a script of the user's own.
    Foreign,
}

/// A script in Sieve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// Its name.
    pub name: String,
    /// Its text.
    pub text: Arc<[u8]>,
    /// Whether it runs over mail that comes in.
    pub is_active: bool,
}

/// A change of the account's scripts.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names say it")]
pub enum Filing {
    Put { name: String, text: Vec<u8> },
    Rename { from: String, to: String },
    Remove { name: String },
    Activate { name: Option<String> },
}

/// A reason why scripts stay as they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Misfiled {
    /// The script is wrong, and where.
    Wrong(String),
    /// A script cannot have this name.
    Name,
    /// A script of this name exists.
    Exists,
    /// The script does not exist.
    Gone,
    /// The script runs.
    Active,
    /// The account has as many scripts as it may.
    TooMany,
    /// The script is larger than scripts may be.
    TooLarge,
    /// The store cannot be written.
    Store,
}

/// Bounds of scripts, and the extensions that they may require.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names say it")]
pub struct Sieve {
    pub name_bytes_max: usize,
    pub script_bytes_max: usize,
    pub scripts_max: usize,
    pub redirects_max: usize,
    pub extensions: &'static [&'static str],
}

/// The answer of who is away.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Vacation {
    /// Whether it is sent.
    pub is_enabled: bool,
    /// When it begins, seconds since 1970.
    pub from: Option<i64>,
    /// When it has ended.
    pub to: Option<i64>,
    /// Its subject.
    pub subject: Option<String>,
    /// Its text.
    pub text: Option<String>,
    /// Its text as HTML, which is not kept.
    pub html: Option<String>,
}

/// The mail store of one account.
pub trait Host {
    /// The account.
    fn account(&self) -> &Account;
    /// The name of this mail server.
    fn hostname(&self) -> &str;
    /// Seconds since 1970.
    fn now(&self) -> i64;
    /// Random bytes.
    fn random(&mut self) -> [u8; 16];
    /// A snapshot.
    fn state(&self) -> State;
    /// The parts of a message.
    fn layout(&mut self, message: u64) -> Option<Layout>;
    /// The parts of a message that is not stored.
    fn layout_of(&self, content: &[u8]) -> Layout;
    /// Reads a message; returns 0 at its end, `None` if it cannot be read.
    fn read(&mut self, message: u64, offset: u64, buffer: &mut [u8]) -> Option<usize>;
    /// Mailboxes and UIDs of the messages that contain a text.
    fn find(&mut self, mailboxes: &[(u32, Arc<Mailbox>)], field: Field, text: &str) -> Vec<(u32, u32)>;
    /// Commits one transaction; returns the number of the mailbox that the last [`Work::Create`] made, or 0.
    ///
    /// # Errors
    /// When nothing was done.
    fn apply(&mut self, works: Vec<Work>) -> Result<u32, Failure>;
    /// Stores a message in mailboxes; returns the mailbox and the UID of the first.
    ///
    /// # Errors
    /// When nothing was stored.
    fn deliver(&mut self, content: Vec<u8>, places: Vec<Place>, date: i64) -> Result<(u32, u32), Failure>;
    /// Bytes of a mail that is sent.
    fn sent_bytes_max(&self) -> u64 {
        SENT_BYTES_MAX
    }
    /// Queues a mail.
    ///
    /// # Errors
    /// When it is not sent.
    fn send(&mut self, sending: Sending) -> Result<(), Failure>;
    /// Bounds of scripts.
    fn sieve(&self) -> Sieve {
        Sieve::default()
    }
    /// All scripts.
    fn scripts(&mut self) -> Vec<Script> {
        Vec::new()
    }
    /// Checks a script.
    ///
    /// # Errors
    /// When it is wrong.
    fn check_script(&mut self, text: &[u8]) -> Result<(), Misfiled> {
        let _ = text;
        Err(Misfiled::TooMany)
    }
    /// Changes the scripts.
    ///
    /// # Errors
    /// When they stay as they are.
    fn file_script(&mut self, filing: Filing) -> Result<(), Misfiled> {
        let _ = filing;
        Err(Misfiled::TooMany)
    }
    /// The answer of who is away.
    fn vacation(&mut self) -> Vacation {
        Vacation::default()
    }
    /// Keeps the answer of who is away, as far as it can.
    ///
    /// # Errors
    /// When it stays as it is.
    fn set_vacation(&mut self, vacation: Vacation) -> Result<(), Failure> {
        let _ = vacation;
        Err(Failure::Foreign)
    }
    /// The snapshot of a state that was told to a client of this account.
    fn former(&mut self, state: u64) -> Option<State>;
    /// Keeps a snapshot whose state is told to a client.
    fn remember(&mut self, state: u64, snapshot: State);
    /// An upload of this account: its type and content.
    fn upload(&mut self, id: &str) -> Option<(String, Arc<[u8]>)>;
    /// Keeps an upload; returns its id, `None` if there is no room.
    fn keep_upload(&mut self, kind: &str, content: Vec<u8>) -> Option<String>;
}
