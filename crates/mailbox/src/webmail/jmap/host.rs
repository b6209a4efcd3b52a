//! The mail server as the [`Host`](jmap::Host) of an account's requests. Whatever names a mailbox of another account names nothing.

use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ::jmap::{
    Account, Failure, Field, Filing, Host, Layout, Misfiled, Place, Script, Sending, Sieve, Tables, Vacation, Work,
    limits,
};
use ::webmail::filters::{self, Filters};
use ::webmail::mail::Failure as Unsent;
use ::webmail::session::hex;
use keep::Keep;
use keep::digest::{Digest, Part};
use keep::find::Key;
use keep::name::{self, is_name};
use keep::{acl, webmail};
use store::{Arrival, Error, Mailbox, Refused, SpecialUse, State, Transaction, Uids};

use super::super::host::Server;
use super::super::sending;
use crate::file::File;
use crate::imap::find;
use crate::learner;
use crate::scripts;

/// The time that all searches of one request may take.
const SEARCH_WAIT: Duration = Duration::from_secs(10);

/// The store of an account while a request is answered. Its methods wait, as those of [`Server`].
pub(super) struct Door<'a> {
    server: Server<'a>,
    account: Account,
    /// When searches end, from the first on.
    until: Option<Instant>,
}

impl<'a> Door<'a> {
    pub fn new(server: Server<'a>, account: Account) -> Door<'a> {
        Door { server, account, until: None }
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.server.site.jmap.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn misfiled(&self, failure: scripts::Failure) -> Misfiled {
        match failure {
            scripts::Failure::Name => Misfiled::Name,
            scripts::Failure::Nonexistent => Misfiled::Gone,
            scripts::Failure::Exists => Misfiled::Exists,
            scripts::Failure::Active => Misfiled::Active,
            scripts::Failure::TooMany => Misfiled::TooMany,
            scripts::Failure::TooLarge => Misfiled::TooLarge,
            scripts::Failure::Wrong(why) => Misfiled::Wrong(why),
            scripts::Failure::Store(error) => {
                self.failed(&error);
                Misfiled::Store
            }
        }
    }

    fn failed(&self, error: &Error) -> Failure {
        match error {
            Error::Refused(Refused::NoSuchMailbox | Refused::NoSuchMessage | Refused::NoSuchAccount) => Failure::Gone,
            Error::Refused(Refused::OverQuota) => Failure::OverQuota,
            Error::Refused(Refused::Exists) => Failure::Exists,
            Error::Refused(Refused::Name) => Failure::Name,
            Error::Refused(Refused::TooLarge) => Failure::TooLarge,
            error => {
                webmail::Host::log(&self.server, "the store does not take what a client of JMAP has sent", error);
                Failure::Store
            }
        }
    }
}

impl Host for Door<'_> {
    fn account(&self) -> &Account {
        &self.account
    }

    fn hostname(&self) -> &str {
        &self.server.site.hostname
    }

    fn now(&self) -> i64 {
        self.server.now()
    }

    fn random(&mut self) -> [u8; 16] {
        self.server.random()
    }

    fn state(&self) -> State {
        self.server.state()
    }

    fn layout(&mut self, message: u64) -> Option<Layout> {
        webmail::known(&mut self.server, message).map(|known| layout(&known.root))
    }

    fn layout_of(&self, content: &[u8]) -> Layout {
        let mut digest = Digest::default();
        digest.read(content);
        layout(&digest.known().root)
    }

    fn read(&mut self, message: u64, offset: u64, buffer: &mut [u8]) -> Option<usize> {
        let read = self.server.read(message, offset, buffer);
        read.inspect_err(|error| webmail::Host::log(&self.server, "a message cannot be read", error)).ok()
    }

    fn find(&mut self, mailboxes: &[(u32, Arc<Mailbox>)], field: Field, text: &str) -> Vec<(u32, u32)> {
        let header = |name: &str| Key::Header(name.into(), text.into());
        let key = match field {
            Field::Anywhere => Key::Text(text.into()),
            Field::Body => Key::Body(text.into()),
            Field::From => header("from"),
            Field::To => header("to"),
            Field::Cc => header("cc"),
            Field::Bcc => header("bcc"),
            Field::Subject => header("subject"),
        };
        let site = self.server.site;
        let until = *self.until.get_or_insert_with(|| Instant::now() + SEARCH_WAIT.min(site.work_max));
        let mut found = Vec::new();
        for (number, mailbox) in mailboxes {
            let uids = self.server.wait(find(site, *number, mailbox, &key, until));
            found.extend(uids.into_iter().map(|uid| (*number, uid)));
        }
        found
    }

    fn apply(&mut self, works: Vec<Work>) -> Result<u32, Failure> {
        let (account, now) = (self.account.number, self.now());
        let removed: Vec<u32> = works
            .iter()
            .filter_map(|work| if let Work::Remove { mailbox } = work { Some(*mailbox) } else { None })
            .collect();
        let outcome = self.server.transact(move |transaction| {
            let (mut made, mut moved) = (0, Vec::new());
            for work in works {
                apply(transaction, account, now, work, &mut made, &mut moved)?;
            }
            Ok((made, moved))
        });
        let (made, moved) = outcome.map_err(|error| self.failed(&error))?;
        removed.iter().for_each(|&mailbox| self.server.site.recents.forget(mailbox));
        if let Some(learner) = &self.server.site.learner {
            let state = self.server.state();
            for (from_to, uid) in moved {
                learner::tell(&**learner, &state, &self.account.name, from_to, [uid].into_iter());
            }
        }
        Ok(made)
    }

    fn deliver(&mut self, content: Vec<u8>, places: Vec<Place>, date: i64) -> Result<(u32, u32), Failure> {
        let mut digest = Digest::default();
        digest.read(&content);
        let (account, now) = (self.account.number, self.now());
        let outcome = self.server.deliver(content, digest.finish(), move |transaction, sealed| {
            let mut first = None;
            for place in &places {
                own(transaction.state(), account, place.mailbox)?;
                let keywords: Vec<&str> = place.keywords.iter().map(String::as_str).collect();
                let arrival = Arrival { flags: place.flags, keywords: &keywords, date, now };
                let uid = transaction.deliver(sealed, place.mailbox, &arrival)?;
                first.get_or_insert((place.mailbox, uid));
            }
            first.ok_or_else(|| Refused::NoSuchMailbox.into())
        });
        outcome.map_err(|error| self.failed(&error))
    }

    fn sent_bytes_max(&self) -> u64 {
        self.server.site.message_bytes_max.min(limits::SENT_BYTES_MAX)
    }

    fn send(&mut self, sending: Sending) -> Result<(), Failure> {
        let Sending { from, to, content } = sending;
        let site = self.server.site;
        if site.relay.is_none() && !self.server.wait(sending::stays(site, &to)) {
            return Err(Failure::NoRelay);
        }
        let (owners, name) = (self.server.owners(), self.account.name.clone());
        let outcome = self.server.wait(sending::submit(site, owners, name, (from, to), &content));
        match outcome {
            Ok(Ok(())) => Ok(()),
            Ok(Err(Unsent::Queue | Unsent::Rate)) => Err(Failure::Waiting),
            Ok(Err(_)) => Err(Failure::Store),
            Err(error) => Err(self.failed(&error)),
        }
    }

    fn sieve(&self) -> Sieve {
        Sieve {
            name_bytes_max: scripts::NAME_BYTES_MAX,
            script_bytes_max: scripts::SCRIPT_BYTES_MAX,
            scripts_max: scripts::SCRIPTS_MAX,
            redirects_max: sieve::Limits::default().redirects_max,
            extensions: &sieve::EXTENSIONS,
        }
    }

    fn scripts(&mut self) -> Vec<Script> {
        let state = self.server.state();
        let Some(account) = state.account(self.account.number) else { return Vec::new() };
        let script = |(name, is_active): (String, bool)| {
            let text = scripts::get(account, &name)?;
            Some(Script { name, text, is_active })
        };
        scripts::list(account).into_iter().filter_map(script).collect()
    }

    fn check_script(&mut self, text: &[u8]) -> Result<(), Misfiled> {
        let state = self.server.state();
        let checked = scripts::check(&self.server.site.scripts, state.account(self.account.number), text);
        checked.map(drop).map_err(|failure| self.misfiled(failure))
    }

    fn file_script(&mut self, filing: Filing) -> Result<(), Misfiled> {
        let (site, account) = (self.server.site, self.account.number);
        let filed = self.server.wait(async {
            match filing {
                Filing::Put { name, text } => scripts::put(&site.store, &site.scripts, account, &name, text).await,
                Filing::Rename { from, to } => scripts::rename(&site.store, account, &from, &to).await,
                Filing::Remove { name } => scripts::delete(&site.store, account, &name).await,
                Filing::Activate { name } => {
                    scripts::activate(&site.store, &site.scripts, account, name.as_deref()).await
                }
            }
        });
        filed.map_err(|failure| self.misfiled(failure))
    }

    fn vacation(&mut self) -> Vacation {
        let Some(script) = self.server.script_of(self.account.number) else { return Vacation::default() };
        let Some(Filters { vacation, .. }) = Filters::read(&script.text) else { return Vacation::default() };
        let filters::Vacation { is_on, from, until, subject, text } = vacation;
        let some = |text: String| Some(text).filter(|text| !text.is_empty());
        let is_enabled = is_on && script.is_active;
        Vacation { is_enabled, from, to: until, subject: some(subject), text: some(text), html: None }
    }

    fn set_vacation(&mut self, vacation: Vacation) -> Result<(), Failure> {
        let number = self.account.number;
        let script = self.server.script_of(number).ok_or(Failure::Gone)?;
        let mut filters = Filters::read(&script.text).ok_or(Failure::Foreign)?;
        let Vacation { is_enabled, from, to, subject, text, html } = vacation;
        let text = text.or_else(|| html.map(|html| ::webmail::text_of_html(&html))).unwrap_or_default();
        let subject = subject.unwrap_or_default();
        filters.vacation = filters::Vacation::new(is_enabled, (from, to), &subject, &text);
        self.server.keep_script(number, &script.name, &filters.script()).map_err(|failure| match failure {
            scripts::Failure::Store(error) => self.failed(&error),
            _ => Failure::TooLarge,
        })
    }

    fn former(&mut self, state: u64) -> Option<State> {
        self.tables().former(self.account.number, state)
    }

    fn remember(&mut self, state: u64, snapshot: State) {
        self.tables().remember(self.account.number, state, snapshot);
    }

    fn upload(&mut self, id: &str) -> Option<(String, Arc<[u8]>)> {
        self.tables().upload(self.account.number, id, self.now())
    }

    fn keep_upload(&mut self, kind: &str, content: Vec<u8>) -> Option<String> {
        let (id, now) = (format!("U{}", hex(&self.random())), self.now());
        let is_kept = self.tables().keep_upload(self.account.number, id.clone(), kind, content.into(), now);
        is_kept.then_some(id)
    }
}

/// Whether a mailbox is of the account.
fn own(state: &State, account: u32, mailbox: u32) -> Result<&Arc<Mailbox>, Error> {
    let found = state.mailbox(mailbox).filter(|found| found.account == account);
    found.ok_or_else(|| Refused::NoSuchMailbox.into())
}

/// Whether a mailbox may be named so.
fn named(name: &str) -> Result<&[u8], Error> {
    let name = name.as_bytes();
    let others = acl::OTHERS.strip_suffix(b"/").unwrap_or(acl::OTHERS);
    let is_others = name.get(..others.len()).is_some_and(|head| head.eq_ignore_ascii_case(others));
    match name.eq_ignore_ascii_case(b"INBOX") {
        true => Err(Refused::Exists.into()),
        false if !is_name(name) || is_others => Err(Refused::Name.into()),
        false => Ok(name),
    }
}

/// Does one operation; notes a mailbox that was made, and messages that have moved, by their mailboxes and the UID they have there.
fn apply(
    transaction: &mut Transaction<'_, File>,
    account: u32,
    now: i64,
    work: Work,
    made: &mut u32,
    moved: &mut Vec<([u32; 2], u32)>,
) -> Result<(), Error> {
    let one = |uid: u32| -> Uids { [uid].into_iter().collect() };
    let is_own = |transaction: &Transaction<'_, File>, mailbox| own(transaction.state(), account, mailbox).map(drop);
    match work {
        Work::Store { mailbox, uid, change, flags, keywords } => {
            is_own(transaction, mailbox)?;
            let keywords: Vec<&str> = keywords.iter().map(String::as_str).collect();
            transaction.store(mailbox, &one(uid), change, (flags, &keywords), u64::MAX)?;
        }
        Work::Copy { from, to, uid } => {
            is_own(transaction, from).and_then(|()| is_own(transaction, to))?;
            transaction.copy(from, to, &one(uid), now)?;
        }
        Work::Move { from, to, uid } => {
            is_own(transaction, from).and_then(|()| is_own(transaction, to))?;
            let pairs = transaction.move_to(from, to, &one(uid), now)?;
            moved.extend(pairs.iter().map(|pair| ([from, to], pair.1)));
        }
        Work::Expunge { mailbox, uid } => {
            is_own(transaction, mailbox)?;
            transaction.expunge(mailbox, &one(uid))?;
        }
        Work::Create { name, special_use } => {
            let name = named(&name)?;
            *made = name::create(transaction, account, name, SpecialUse(special_use))?;
        }
        Work::Rename { mailbox, name } => {
            let (before, name) = (own(transaction.state(), account, mailbox)?.name.clone(), named(&name)?);
            let is_within = name.strip_prefix(&*before).is_some_and(|rest| rest.first() == Some(&store::DELIMITER));
            if &*before == b"INBOX" || is_within {
                return Err(Refused::Name.into());
            }
            if transaction.state().mailbox_named(account, name).is_some() {
                return Err(Refused::Exists.into());
            }
            transaction.rename(mailbox, name)?;
        }
        Work::Remove { mailbox } => {
            if &*own(transaction.state(), account, mailbox)?.name == b"INBOX" {
                return Err(Refused::Name.into());
            }
            transaction.remove(mailbox)?;
        }
        Work::Subscribe { name, is_subscribed } => transaction.subscribe(account, name.as_bytes(), is_subscribed)?,
        Work::SpecialUse { mailbox, special_use } => {
            is_own(transaction, mailbox)?;
            transaction.set_special_use(mailbox, SpecialUse(special_use))?;
        }
        Work::Annotate { name, value } => transaction.annotate(account, None, name.as_bytes(), Some(&value))?,
    }
    Ok(())
}

fn layout(part: &Part) -> Layout {
    let Part { header, body, end, is_message, parts } = part;
    let parts = parts.iter().map(layout).collect();
    Layout { header: *header, body: *body, end: *end, is_message: *is_message, parts }
}
