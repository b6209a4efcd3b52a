//! The mailbox of the user who has logged in, as a host has it.
//!
//! Folders are numbers that the store never gives twice. A host answers for the folders of this user alone: whatever number comes in, one
//! of somebody else's is none.

use alloc::string::String;
use alloc::vec::Vec;

use crate::language::Words;
use crate::session::{Ending, Session};

/// A mailbox, the clock and the randomness of a host.
pub trait Mail {
    /// The name that the user has logged in by.
    fn user(&self) -> &str;
    /// Addresses that the user may write from; the first is the usual one.
    fn addresses(&self) -> Vec<String>;
    /// The name of this mail server.
    fn hostname(&self) -> &str;
    /// Seconds since 1970.
    fn now(&self) -> i64;
    /// Random bytes.
    fn random(&mut self) -> [u8; 16];
    /// Bytes that are used, and how many may be; 0 is no bound.
    fn quota(&self) -> (u64, u64);
    /// All folders, the INBOX first.
    fn folders(&mut self) -> Vec<Folder>;
    /// Messages of a folder with a UID below `before`, the newest first, as the store knows them without reading any.
    fn rows(&mut self, folder: u32, before: u32, count: usize) -> Vec<Row>;
    /// A message.
    fn message(&mut self, folder: u32, uid: u32) -> Option<Message>;
    /// Reads of a message that [`Mail::message`] told; returns 0 at its end.
    fn read(&mut self, message: u64, offset: u64, buffer: &mut [u8]) -> usize;
    /// Messages with all of these words, the newest first, and whether all messages were searched.
    fn search(&mut self, words: &str, count: usize) -> (Vec<Row>, bool);
    /// Sets or clears a flag.
    fn flag(&mut self, folder: u32, uids: &[u32], flag: Flag, is_set: bool) -> Result<(), Failure>;
    /// Moves messages.
    fn move_to(&mut self, folder: u32, uids: &[u32], to: u32) -> Result<(), Failure>;
    /// Removes messages for good.
    fn expunge(&mut self, folder: u32, uids: &[u32]) -> Result<(), Failure>;
    /// Removes the messages of a folder for good, up to one of them.
    fn empty(&mut self, folder: u32, upto: u32) -> Result<(), Failure> {
        let mut before = upto.saturating_add(1);
        loop {
            let uids: Vec<u32> = self.rows(folder, before, 500).iter().map(|row| row.uid).collect();
            let Some(last) = uids.last() else { return Ok(()) };
            before = *last;
            self.expunge(folder, &uids)?;
        }
    }
    /// Keeps a draft in place of another, and of the one that was kept of the same form; returns its UID. `id`: random bytes of the form.
    fn save(&mut self, folder: u32, content: Vec<u8>, replaces: Option<u32>, id: [u8; 16]) -> Result<u32, Failure>;
    /// Sends a mail.
    fn send(&mut self, sending: Sending) -> Result<(), Failure>;
    /// The folder for a purpose, which is made if there is none.
    fn provide(&mut self, purpose: Purpose) -> Result<u32, Failure>;
    /// Makes a folder.
    fn create(&mut self, name: &str) -> Result<(), Failure>;
    /// Gives a folder another name.
    fn rename(&mut self, folder: u32, name: &str) -> Result<(), Failure>;
    /// Deletes a folder with what is in it.
    fn delete(&mut self, folder: u32) -> Result<(), Failure>;
    /// Settings, as [`Mail::set_settings`] was given them; empty at first.
    fn settings(&mut self) -> Vec<u8>;
    /// Keeps settings.
    fn set_settings(&mut self, settings: &[u8]) -> Result<(), Failure>;
    /// The second step of the login; `None` where a host has none.
    fn second(&mut self) -> Option<Second> {
        None
    }
    /// Sets the second step up; recovery codes.
    fn begin_second(&mut self, setup: Setup<'_>) -> Result<Vec<String>, Failure> {
        let _ = setup;
        Err(Failure::Gone)
    }
    /// Takes the second step away, with a code.
    fn end_second(&mut self, code: &str) -> Result<(), Failure> {
        let _ = code;
        Err(Failure::Gone)
    }
    /// App passwords, the oldest first; `None` where a host has none.
    fn app_passwords(&mut self) -> Option<Vec<AppPassword>> {
        None
    }
    /// Makes an app password, if the user's own is right; returns it.
    fn add_app_password(&mut self, own: &str, program: Program<'_>) -> Result<String, Failure> {
        let _ = (own, program);
        Err(Failure::Gone)
    }
    /// Withdraws an app password.
    fn end_app_password(&mut self, id: u32) -> Result<(), Failure> {
        let _ = id;
        Err(Failure::Gone)
    }
    /// Passkeys, and what a browser is asked for a new one with, for this session; `None` where a host has none.
    fn passkeys(&mut self, session: &Session) -> Option<Passkeys> {
        let _ = session;
        None
    }
    /// Adds a passkey, if the user's own password is right.
    fn add_passkey(&mut self, session: &Session, new: NewPasskey<'_>) -> Result<(), Failure> {
        let _ = (session, new);
        Err(Failure::Gone)
    }
    /// Removes a passkey.
    fn end_passkey(&mut self, id: u32) -> Result<(), Failure> {
        let _ = id;
        Err(Failure::Gone)
    }
    /// Contacts, as [`Mail::set_contacts`] was given them; empty at first.
    fn contacts(&mut self) -> Vec<u8>;
    /// Keeps contacts.
    fn set_contacts(&mut self, contacts: &[u8]) -> Result<(), Failure>;
    /// Sessions of this user in browsers, the last used first.
    fn sessions(&mut self) -> Vec<Session> {
        Vec::new()
    }
    /// Ends sessions of this user.
    fn end_sessions(&mut self, ending: Ending<'_>) {
        let _ = ending;
    }
    /// The script that runs over mail that comes in, or the one that forms have written; `None` where a host has no filters.
    fn script(&mut self) -> Option<Script> {
        None
    }
    /// Keeps a script under a name, and lets it run over mail that comes in.
    fn set_script(&mut self, name: &str, text: &str) -> Result<(), Unkept> {
        let _ = (name, text);
        Err(Unkept::Failure(Failure::Gone))
    }
    /// Names and signatures of all addresses; none where a host keeps none.
    fn identities(&mut self) -> Vec<Identity> {
        Vec::new()
    }
    /// Keeps the name and the signature of an address.
    fn set_identity(&mut self, identity: Identity) -> Result<(), Failure> {
        let _ = identity;
        Err(Failure::Gone)
    }
    /// Whether other servers can be asked for what a mail names there.
    fn fetches(&self) -> bool {
        false
    }
    /// Pictures at these URLs, each at the place of its URL, as large as `bytes_max` in all; `None` for one that is not to be had.
    fn pictures(&mut self, urls: &[String], bytes_max: usize) -> Vec<Option<Vec<u8>>> {
        let _ = bytes_max;
        urls.iter().map(|_| None).collect()
    }
    /// Leaves a mailing list by a request to its server (RFC 8058), if a signature of the message that [`Mail::message`] told covers the
    /// fields that name it.
    fn leave(&mut self, message: u64, url: &str) -> Result<(), Failure> {
        let _ = (message, url);
        Err(Failure::Gone)
    }
    /// The newest messages of a folder, one of each conversation, that have a UID below `before`. [`Row::count`] has how many there are
    /// of it in the folder; a conversation is unread if one of those is.
    fn conversations(&mut self, folder: u32, before: u32, count: usize) -> Vec<Row> {
        self.rows(folder, before, count)
    }
    /// The messages of the conversation that a message is of, in this folder and others but junk and trash, the oldest first.
    fn conversation(&mut self, folder: u32, uid: u32, count: usize) -> Vec<Row> {
        let _ = (folder, uid, count);
        Vec::new()
    }
    /// The messages of a folder that are of the conversations of these.
    fn of_conversations(&mut self, folder: u32, uids: &[u32]) -> Vec<u32> {
        let _ = folder;
        uids.to_vec()
    }
}

/// The name of the script that forms write.
pub const SCRIPT_NAME: &str = "webmail";

/// A script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// Its name.
    pub name: String,
    /// Its text; empty if it is not there yet.
    pub text: String,
    /// Whether it runs.
    pub is_active: bool,
}

/// The reason why a script is not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unkept {
    /// Its host does not keep it.
    Failure(Failure),
    /// It is wrong, as whoever reads scripts says of it.
    Wrong(String),
}

/// The name and the signature of an address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// The address.
    pub address: String,
    /// The name that mails are from.
    pub name: String,
    /// The text below a mail.
    pub signature: String,
}

/// A second step that a user sets up.
#[derive(Debug, Clone, Copy)]
pub struct Setup<'a> {
    /// The password of now: a session alone does not lock its owner out.
    pub password: &'a str,
    /// The secret of the device, and the code that it shows; passkeys take its place where there is none.
    pub device: Option<(&'a str, &'a str)>,
    /// Whether other protocols are closed to the account.
    pub is_alone: bool,
}

/// The second step of a login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Second {
    /// It is set up, and so many recovery codes are left.
    Set {
        /// The recovery codes.
        recovery_codes: usize,
    },
    /// It is not set up.
    Unset {
        /// A new secret for a device.
        secret: String,
        /// The link by which a device takes it.
        link: String,
    },
}

/// A program that logs in with a password of its own.
#[derive(Debug, Clone, Copy)]
pub struct Program<'a> {
    /// The name that the user gives it.
    pub name: &'a str,
    /// Protocols, as the host names them.
    pub doors: &'a [&'a str],
}

/// An app password, without the password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppPassword {
    /// Its number.
    pub id: u32,
    /// The name of its program.
    pub name: String,
    /// Protocols that it is for.
    pub doors: Vec<&'static str>,
    /// When it was made, seconds since 1970.
    pub made: i64,
    /// The last login with it: when, and by which protocol.
    pub used: Option<(i64, String)>,
}

/// Passkeys of a user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Passkeys {
    /// All, the oldest first.
    pub all: Vec<PasskeySummary>,
    /// The challenge that a new one answers.
    pub challenge: String,
    /// The name by which authenticators know the user.
    pub user: String,
}

/// A passkey.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PasskeySummary {
    /// Its number.
    pub id: u32,
    /// The name that the user has given it.
    pub name: String,
    /// When it was made, seconds since 1970.
    pub made: i64,
    /// When it was used last, if it was.
    pub used: Option<i64>,
    /// The identifier of its credential, in Base64 for URLs.
    pub credential: String,
}

/// A passkey that a browser has made.
#[derive(Debug, Clone, Copy)]
pub struct NewPasskey<'a> {
    /// The password of now: a session alone makes no way in.
    pub password: &'a str,
    /// The name that the user gives it.
    pub name: &'a str,
    /// The client data, in Base64 for URLs.
    pub client: &'a str,
    /// The attestation object, in Base64 for URLs.
    pub attestation: &'a str,
}

/// A folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    /// Its number.
    pub number: u32,
    /// Its name, with those of the folders above it.
    pub name: String,
    /// Its purpose.
    pub purpose: Purpose,
    /// Messages.
    pub count: usize,
    /// Messages that are unread.
    pub unseen: u32,
}

/// The purpose of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names say it")]
pub enum Purpose {
    Inbox,
    Drafts,
    Sent,
    Archive,
    Junk,
    Trash,
    Other,
}

/// A flag of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names say it")]
pub enum Flag {
    Seen,
    Flagged,
}

/// Flags of a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names say it")]
pub struct Flags {
    pub seen: bool,
    pub answered: bool,
    pub flagged: bool,
}

/// A message in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Its folder.
    pub folder: u32,
    /// Its number there.
    pub uid: u32,
    /// Its flags.
    pub flags: Flags,
    /// The time when it came, seconds since 1970.
    pub date: i64,
    /// Its size in bytes.
    pub size: u64,
    /// Its ENVELOPE, as IMAP tells it; empty if it has to be read.
    pub envelope: Vec<u8>,
    /// Whether it has an attachment.
    pub has_attachment: bool,
    /// Messages that it stands for: those of its conversation, or 1.
    pub count: usize,
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// As in a list.
    pub row: Row,
    /// The number that it is read by.
    pub number: u64,
    /// Its parts.
    pub layout: Layout,
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

/// A mail that is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sending {
    /// The form that it was written in.
    pub origin: Origin,
    /// The sender of the envelope.
    pub from: String,
    /// The recipients.
    pub to: Vec<String>,
    /// The mail.
    pub content: Vec<u8>,
    /// Bytes at its beginning that only the sender sees.
    pub private: u64,
}

/// The form that a mail was written in, and messages by folder and UID.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Origin {
    /// Random bytes of it: of two requests with the same the first is sent.
    pub id: [u8; 16],
    /// The draft that the mail was.
    pub draft: Option<(u32, u32)>,
    /// The message that it answers.
    pub answers: Option<(u32, u32)>,
    /// The message that it forwards.
    pub forwards: Option<(u32, u32)>,
}

/// A thing that could not be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The folder or message does not exist.
    Gone,
    /// The account has as much as it may have.
    Quota,
    /// The store is full, or cannot be written.
    Store,
    /// A folder cannot be called so.
    Name,
    /// A folder that is called so is there.
    Exists,
    /// The INBOX stays.
    Inbox,
    /// A code is wrong, or was used already.
    Code,
    /// The password is wrong.
    Password,
    /// An app password has no name, or no protocol, or there are too many.
    Program,
    /// The answer of a browser about a new passkey does not count.
    Passkey,
    /// A passkey has no name, or is there already, or there are too many.
    Passkeys,
    /// The last passkey stays, as the second step needs it.
    LastPasskey,
    /// Nobody takes mail that goes out.
    NoRelay,
    /// A recipient is elsewhere, and mail is delivered here alone.
    Elsewhere,
    /// Too many mails wait to go out.
    Queue,
    /// The account has sent to as many recipients as it may within an hour.
    Rate,
    /// The mail is larger than mails may be.
    TooLarge,
    /// No signature of a mail covers its way to leave a list.
    Unsigned,
    /// Another server does not do what it is asked for.
    Unreached,
}

impl Failure {
    /// A sentence for the user.
    pub(crate) fn text(self, words: &Words) -> &'static str {
        let failures = &words.failures;
        match self {
            Failure::Gone => failures.gone,
            Failure::Quota => failures.quota,
            Failure::Store => failures.store,
            Failure::Name => failures.name,
            Failure::Exists => failures.exists,
            Failure::Inbox => failures.inbox,
            Failure::Code => failures.code,
            Failure::Password => failures.password,
            Failure::Program => failures.program,
            Failure::Passkey => failures.passkey,
            Failure::Passkeys => failures.passkeys,
            Failure::LastPasskey => failures.last_passkey,
            Failure::NoRelay => failures.no_relay,
            Failure::Elsewhere => failures.elsewhere,
            Failure::TooLarge => failures.too_large,
            Failure::Unsigned => failures.unsigned,
            Failure::Unreached => failures.unreached,
            Failure::Queue => failures.queue,
            Failure::Rate => failures.rate,
        }
    }
}

impl Unkept {
    /// A sentence for the user.
    pub(crate) fn text(self, words: &Words) -> String {
        match self {
            Unkept::Failure(failure) => failure.text(words).into(),
            Unkept::Wrong(why) => why,
        }
    }
}
