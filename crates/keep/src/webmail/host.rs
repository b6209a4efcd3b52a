//! The host of a webmail session: what lies beyond the store, and whose session it is.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Display;

use ::webmail::mail::{
    AppPassword, Failure, Identity, NewPasskey, Passkeys, Program, Script, Second, Sending, Setup, Unkept,
};
use ::webmail::session::{Ending, Session};
use store::{Mailbox, State};

use crate::Keep;
use crate::search::Words;

/// Additions of a host to its [`Keep`] for users who read and write in a browser.
pub trait Host: Keep {
    /// The name of this mail server.
    fn hostname(&self) -> &str;

    /// Mailboxes and UIDs of the messages that have all words, and whether all messages were searched.
    fn search(&mut self, mailboxes: &[(u32, Arc<Mailbox>)], words: &Words) -> (Vec<(u32, u32)>, bool);

    /// Sends a mail. Its draft and what it answers are the sender's.
    ///
    /// # Errors
    /// Why it is not sent.
    fn send(&mut self, sender: Sender, sending: Sending) -> Result<(), Failure>;

    /// Messages have been moved from one mailbox to another, where they have these UIDs.
    fn moved(&self, user: &str, state: &State, from_to: [u32; 2], uids: &[u32]) {
        let _ = (user, state, from_to, uids);
    }

    /// A mailbox has been deleted.
    fn deleted(&self, mailbox: u32) {
        let _ = mailbox;
    }

    /// The second step of an account's login; `None` where there is none to be had.
    fn second(&mut self, user: &User) -> Option<Second> {
        let _ = user;
        None
    }

    /// Sets it up, if the password and the first code are right; recovery codes.
    ///
    /// # Errors
    /// Why it is not set up.
    fn begin_second(&mut self, user: &User, setup: Setup<'_>) -> Result<Vec<String>, Failure> {
        let _ = (user, setup);
        Err(Failure::Gone)
    }

    /// Sessions of an account in browsers, the last used first.
    fn sessions(&mut self, user: &User) -> Vec<Session> {
        let _ = user;
        Vec::new()
    }

    /// Ends sessions of an account.
    fn end_sessions(&mut self, user: &User, ending: Ending<'_>) {
        let _ = (user, ending);
    }

    /// Takes it away, with a code.
    ///
    /// # Errors
    /// Why it stays.
    fn end_second(&mut self, user: &User, code: &str) -> Result<(), Failure> {
        let _ = (user, code);
        Err(Failure::Gone)
    }

    /// App passwords of an account, the oldest first; `None` where there are none to be had.
    fn app_passwords(&mut self, user: &User) -> Option<Vec<AppPassword>> {
        let _ = user;
        None
    }

    /// Makes an app password, if the account's own is right; returns it.
    ///
    /// # Errors
    /// Why it is not made.
    fn add_app_password(&mut self, user: &User, own: &str, program: Program<'_>) -> Result<String, Failure> {
        let _ = (user, own, program);
        Err(Failure::Gone)
    }

    /// Withdraws an app password.
    ///
    /// # Errors
    /// Why it stays.
    fn end_app_password(&mut self, user: &User, id: u32) -> Result<(), Failure> {
        let _ = (user, id);
        Err(Failure::Gone)
    }

    /// Passkeys of an account, and what a browser is asked for a new one with, for this session; `None` where there are none to be had.
    fn passkeys(&mut self, user: &User, session: &Session) -> Option<Passkeys> {
        let _ = (user, session);
        None
    }

    /// Adds a passkey, if the account's own password is right.
    ///
    /// # Errors
    /// Why it is not added.
    fn add_passkey(&mut self, user: &User, session: &Session, new: NewPasskey<'_>) -> Result<(), Failure> {
        let _ = (user, session, new);
        Err(Failure::Gone)
    }

    /// Removes a passkey.
    ///
    /// # Errors
    /// Why it stays.
    fn end_passkey(&mut self, user: &User, id: u32) -> Result<(), Failure> {
        let _ = (user, id);
        Err(Failure::Gone)
    }

    /// The script of an account that runs, or the one that forms have written; `None` where there are no scripts.
    fn script(&mut self, user: &User) -> Option<Script> {
        let _ = user;
        None
    }

    /// Keeps a script of an account, and lets it run.
    fn set_script(&mut self, user: &User, name: &str, text: &str) -> Result<(), Unkept> {
        let _ = (user, name, text);
        Err(Unkept::Failure(Failure::Gone))
    }

    /// Names and signatures of the addresses of an account; none where none are kept.
    fn identities(&mut self, user: &User) -> Vec<Identity> {
        let _ = user;
        Vec::new()
    }

    /// Keeps the name and the signature of an address.
    ///
    /// # Errors
    /// Why they are not kept.
    fn set_identity(&mut self, user: &User, identity: Identity) -> Result<(), Failure> {
        let _ = (user, identity);
        Err(Failure::Gone)
    }

    /// Whether other servers can be asked for what mails name there.
    fn fetches(&self) -> bool {
        false
    }

    /// Pictures at these URLs, each at the place of its URL, as large as `bytes_max` in all; `None` for one that is not to be had.
    fn pictures(&mut self, urls: &[String], bytes_max: usize) -> Vec<Option<Vec<u8>>> {
        let _ = bytes_max;
        urls.iter().map(|_| None).collect()
    }

    /// Leaves a mailing list by a request to this URL (RFC 8058), if a signature of the message covers the fields that name it.
    ///
    /// # Errors
    /// Why the list is not left.
    fn leave(&mut self, message: u64, url: &str) -> Result<(), Failure> {
        let _ = (message, url);
        Err(Failure::Gone)
    }

    /// Does work that takes long where messages are many: a host may have others served meanwhile.
    fn at_length<T>(&self, work: impl FnOnce() -> T) -> T {
        work()
    }

    /// Logs what a user is told in less words.
    fn log(&self, what: &str, error: &dyn Display);
}

/// The account of a user who has logged in.
#[derive(Debug, Clone)]
pub struct User {
    /// Its number in the store.
    pub number: u32,
    /// The name that it logs in by.
    pub name: String,
    /// Addresses that it may write from; the first is the usual one.
    pub addresses: Vec<String>,
}

/// The account that sends, and its mailbox for sent mail.
#[derive(Debug)]
pub struct Sender {
    /// Its number in the store.
    pub account: u32,
    /// The name that it logs in by.
    pub name: String,
    /// The mailbox, if it has one.
    pub sent: Option<u32>,
}
