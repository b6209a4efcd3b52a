//! The mail server as the [`Host`] of a user's pages: changes wait for the writer, and content is read as for any session.

use std::fmt::Display;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::jmap::identity;
use ::webmail::mail::{
    AppPassword, Failure, Identity, NewPasskey, PasskeySummary, Passkeys, Program, SCRIPT_NAME, Script, Second,
    Sending, Setup, Unkept,
};
use ::webmail::session::{Ending, Session};
use keep::content::Reader as _;
use keep::find::Key;
use keep::search::Words;
use keep::webmail::{Host, Sender, User};
use keep::{Keep, Messages};
use store::{Error, Mailbox, Refused, Sealed, State, Transaction};
use tokio::runtime::Handle;
use tokio::task::block_in_place;

use super::{door, sending, step};
use crate::account::Account;
use crate::app_passwords::{self, NotMade};
use crate::content::{self, Body};
use crate::file::File;
use crate::imap::find;
use crate::in_flight::Owner;
use crate::inspecting;
use crate::learner;
use crate::passkeys::{self, Removal};
use crate::password::random;
use crate::remote::NotLeft;
use crate::scripts;
use crate::second;
use crate::site::{Site, seconds};
use crate::totp;
use crate::webauthn::{Ceremony, Origin};

/// The time that a search may take: a user waits for its page.
const SEARCH_WAIT: Duration = Duration::from_secs(10);

/// The mail server, for one account. Methods that wait do so apart from the event loop ([`block_in_place`]).
pub(super) struct Server<'a> {
    pub(super) site: &'a Site,
    name: String,
    reading: Option<(u64, Body<'a>)>,
    runtime: Handle,
    /// The site as the browser names it.
    origin: Option<Origin>,
}

impl<'a> Server<'a> {
    pub fn new(site: &'a Site, name: &str) -> Server<'a> {
        Server { site, name: name.to_owned(), reading: None, runtime: Handle::current(), origin: None }
    }

    /// The mail server for a browser that has come to this site.
    pub fn at(self, origin: Origin) -> Server<'a> {
        Server { origin: Some(origin), ..self }
    }

    /// Waits while others are served by another thread.
    pub(super) fn wait<F: Future>(&self, future: F) -> F::Output {
        block_in_place(|| self.runtime.block_on(future))
    }

    /// The script of an account that runs, or the one that forms have written.
    pub(super) fn script_of(&self, account: u32) -> Option<Script> {
        let state = self.site.store.state();
        let account = state.account(account)?;
        let active = scripts::active(account);
        let (is_active, name) = (active.is_some(), active.unwrap_or_else(|| SCRIPT_NAME.into()));
        let text = scripts::get(account, &name).map(|text| String::from_utf8_lossy(&text).into_owned());
        Some(Script { name, text: text.unwrap_or_default(), is_active })
    }

    /// Keeps a script of an account, and lets it run.
    pub(super) fn keep_script(&self, account: u32, name: &str, text: &str) -> Result<(), scripts::Failure> {
        let Site { store, scripts: site, .. } = self.site;
        self.wait(async {
            scripts::put(store, site, account, name, text.into()).await?;
            scripts::activate(store, site, account, Some(name)).await
        })?;
        tracing::info!(account = self.name, script = name, "filters are changed");
        Ok(())
    }

    /// Whether a password of a user who has logged in is right: a session that somebody has got hold of guesses none.
    fn prove(&self, user: &User, password: &str) -> Result<(), Failure> {
        let is_right = self.wait(self.site.logins.is_right(&user.name, password));
        if is_right.ok_or(Failure::Store)? { Ok(()) } else { Err(Failure::Password) }
    }

    fn has_passkeys(&self, user: &User) -> bool {
        self.site.store.state().account(user.number).is_some_and(|account| !passkeys::of(account).is_empty())
    }

    /// Whether a file from elsewhere holds nothing that is not allowed, as far as somebody inspects.
    fn is_clean(&self, file: &[u8]) -> bool {
        let Some(guard) = &self.site.guard else { return true };
        match self.wait(inspecting::forbidden_in(&**guard, file)) {
            Ok(None) => true,
            Ok(Some(name)) => {
                tracing::warn!(account = self.name, name, "a picture that was fetched is not shown");
                false
            }
            Err(error) => {
                tracing::warn!(
                    account = self.name,
                    ?error,
                    "a picture that was fetched is not inspected, and not shown"
                );
                false
            }
        }
    }

    /// Owners that incoming content counts for.
    pub(super) fn owners(&self) -> Vec<Owner> {
        vec![Owner::Account(self.name.clone())]
    }
}

/// An account as its pages know it.
pub(super) fn user(site: &Site, account: &Account, number: u32) -> User {
    let own = match account.name.contains('@') {
        true => account.name.clone(),
        false => format!("{}@{}", account.name, site.hostname),
    };
    // An alias without a local part is a whole domain, one without a domain an address here.
    let aliases = account.aliases.iter().filter(|alias| alias.find('@').is_some_and(|at| at > 0));
    let addresses = std::iter::once(own).chain(aliases.cloned()).collect();
    User { number, name: account.name.clone(), addresses }
}

impl Messages for Server<'_> {
    type Reader<'a>
        = Body<'a>
    where
        Self: 'a;

    fn reader(&self, message: u64) -> Option<Body<'_>> {
        Body::open(&self.site.store, message)
    }

    fn digest(&self, message: u64) -> Result<Vec<u8>, Error> {
        match content::cached_digest(&self.site.store, message) {
            Some(digest) => Ok(digest),
            None => block_in_place(|| content::digest(&self.site.store, message)),
        }
    }
}

impl Keep for Server<'_> {
    type Device = File;

    fn state(&self) -> State {
        self.site.store.state()
    }

    fn read(&mut self, message: u64, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        if self.reading.as_ref().is_none_or(|(open, _)| *open != message) {
            self.reading = Body::open(&self.site.store, message).map(|body| (message, body));
        }
        let (_, body) = self.reading.as_mut().ok_or(Refused::NoSuchMessage)?;
        body.read_in_session(offset, buffer)
    }

    fn transact<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut Transaction<'_, File>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.wait(self.site.store.transact(work))
    }

    fn deliver<T: Send + 'static>(
        &mut self,
        content: Vec<u8>,
        digest: Vec<u8>,
        work: impl FnOnce(&mut Transaction<'_, File>, &Sealed) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        if content.len() as u64 > self.site.message_bytes_max {
            return Err(Refused::TooLarge.into());
        }
        let mut incoming = self.site.store.incoming_of(self.site.in_flight.begin(self.owners()));
        self.wait(async {
            incoming.write(&content).await?;
            incoming.finish(digest, work).await
        })
    }

    fn now(&self) -> i64 {
        seconds()
    }

    fn random(&mut self) -> [u8; 16] {
        random().unwrap_or_else(|_| (seconds() as u128).to_le_bytes())
    }
}

impl Host for Server<'_> {
    fn hostname(&self) -> &str {
        &self.site.hostname
    }

    fn search(&mut self, mailboxes: &[(u32, Arc<Mailbox>)], words: &Words) -> (Vec<(u32, u32)>, bool) {
        let key = Key::And(words.iter().map(key).collect());
        let until = Instant::now() + SEARCH_WAIT.min(self.site.work_max);
        let mut found = Vec::new();
        for (number, mailbox) in mailboxes {
            let uids = self.wait(find(self.site, *number, mailbox, &key, until));
            found.extend(uids.into_iter().map(|uid| (*number, uid)));
        }
        (found, Instant::now() < until)
    }

    fn send(&mut self, sender: Sender, sending: Sending) -> Result<(), Failure> {
        if self.site.relay.is_none() && !self.wait(sending::stays(self.site, &sending.to)) {
            return Err(Failure::NoRelay);
        }
        let outcome = self.wait(sending::send(self.site, self.owners(), sender, sending));
        outcome.unwrap_or_else(|error| Err(keep::webmail::failure(self, &error)))
    }

    fn moved(&self, user: &str, state: &State, from_to: [u32; 2], uids: &[u32]) {
        if let Some(learner) = &self.site.learner {
            learner::tell(&**learner, state, user, from_to, uids.iter().copied());
        }
    }

    fn deleted(&self, mailbox: u32) {
        self.site.recents.forget(mailbox);
    }

    fn second(&mut self, user: &User) -> Option<Second> {
        let state = self.site.store.state();
        let account = state.account(user.number)?;
        if second::is_set(account) {
            let recovery_codes = second::of(account).map_or(0, |second| second.recovery_count());
            return Some(Second::Set { recovery_codes });
        }
        let secret = totp::Second::secret().ok()?;
        let link = totp::link(&self.site.hostname, &user.name, &secret);
        Some(Second::Unset { secret, link })
    }

    fn begin_second(&mut self, user: &User, setup: Setup<'_>) -> Result<Vec<String>, Failure> {
        let Setup { password, device, is_alone } = setup;
        self.prove(user, password)?;
        let begun = match device {
            Some((secret, code)) => totp::Second::begin(secret, code.trim(), seconds()),
            None if !self.has_passkeys(user) => return Err(Failure::Gone),
            None => totp::Second::without_device().map(Some),
        };
        let (second, codes) = begun.map_err(|_| Failure::Store)?.ok_or(Failure::Code)?;
        let kept = self.wait(second::begin(&self.site.store, user.number, second, is_alone));
        kept.map_err(|error| keep::webmail::failure(self, &error))?;
        tracing::info!(account = user.name, "the second step of a login is set up");
        Ok(codes)
    }

    fn end_second(&mut self, user: &User, code: &str) -> Result<(), Failure> {
        let (store, now) = (&self.site.store, seconds());
        let end = async {
            if !second::takes(store, user.number, code, now).await? {
                return Ok(false);
            }
            second::end(store, user.number).await.map(|()| true)
        };
        // A session that somebody has got hold of guesses no codes.
        match self.wait(self.site.logins.guarded(&user.name, end)).ok_or(Failure::Code)? {
            Ok(true) => {
                tracing::info!(account = user.name, "the second step of a login is removed");
                Ok(())
            }
            Ok(false) => Err(Failure::Code),
            Err(error) => Err(keep::webmail::failure(self, &error)),
        }
    }

    fn app_passwords(&mut self, user: &User) -> Option<Vec<AppPassword>> {
        self.site.store.state().account(user.number).map(app_passwords::of)
    }

    fn add_app_password(&mut self, user: &User, own: &str, program: Program<'_>) -> Result<String, Failure> {
        // A session that somebody has got hold of makes itself no way back in.
        self.prove(user, own)?;
        let Program { name, doors } = program;
        let made = app_passwords::add(&self.site.store, user.number, name, doors, seconds());
        let password = self.wait(made).map_err(|why| match why {
            NotMade::TooMany | NotMade::Wrong => Failure::Program,
            NotMade::Random(_) => Failure::Store,
            NotMade::Store(error) => keep::webmail::failure(self, &error),
        })?;
        tracing::info!(account = user.name, "an app password is made");
        Ok(password)
    }

    fn end_app_password(&mut self, user: &User, id: u32) -> Result<(), Failure> {
        match self.wait(app_passwords::delete(&self.site.store, user.number, id)) {
            Ok(true) => {
                tracing::info!(account = user.name, app_password = id, "an app password is withdrawn");
                Ok(())
            }
            Ok(false) => Err(Failure::Gone),
            Err(error) => Err(keep::webmail::failure(self, &error)),
        }
    }

    fn passkeys(&mut self, user: &User, session: &Session) -> Option<Passkeys> {
        let state = self.site.store.state();
        let challenge = self.site.challenges.make(&step::registration(session), seconds()).ok()?;
        let shown = |one: crate::webauthn::Passkey| {
            let credential = one.credential();
            PasskeySummary { id: one.id, name: one.name, made: one.made, used: one.used, credential }
        };
        let all = passkeys::of(state.account(user.number)?).into_iter().map(shown).collect();
        Some(Passkeys { all, challenge, user: step::handle(user.number) })
    }

    fn add_passkey(&mut self, user: &User, session: &Session, new: NewPasskey<'_>) -> Result<(), Failure> {
        let NewPasskey { password, name, client, attestation } = new;
        self.prove(user, password)?;
        let (origin, now) = (self.origin.as_ref().ok_or(Failure::Passkey)?, seconds());
        let ceremony =
            Ceremony { challenges: &self.site.challenges, purpose: &step::registration(session), origin, now };
        let credential = ceremony.register(client, attestation).map_err(|why| {
            tracing::warn!(account = user.name, %why, "a passkey is refused");
            Failure::Passkey
        })?;
        let added = self.wait(passkeys::add(&self.site.store, user.number, name, credential, now));
        if !added.map_err(|error| keep::webmail::failure(self, &error))? {
            return Err(Failure::Passkeys);
        }
        tracing::info!(account = user.name, "a passkey is added");
        Ok(())
    }

    fn end_passkey(&mut self, user: &User, id: u32) -> Result<(), Failure> {
        match self.wait(passkeys::remove(&self.site.store, user.number, id)) {
            Ok(Removal::Done) => {
                tracing::info!(account = user.name, passkey = id, "a passkey is removed");
                Ok(())
            }
            Ok(Removal::Gone) => Err(Failure::Gone),
            Ok(Removal::Last) => Err(Failure::LastPasskey),
            Err(error) => Err(keep::webmail::failure(self, &error)),
        }
    }

    fn script(&mut self, user: &User) -> Option<Script> {
        self.script_of(user.number)
    }

    fn set_script(&mut self, user: &User, name: &str, text: &str) -> Result<(), Unkept> {
        self.keep_script(user.number, name, text).map_err(|failure| match failure {
            scripts::Failure::Store(error) => Unkept::Failure(keep::webmail::failure(self, &error)),
            failure => Unkept::Wrong(failure.to_string()),
        })
    }

    fn identities(&mut self, user: &User) -> Vec<Identity> {
        let state = self.site.store.state();
        let noted = state.account(user.number).and_then(|account| account.annotations.get(identity::NOTED.as_bytes()));
        let noted = noted.map(|noted| noted.to_vec()).unwrap_or_default();
        let of = |address: &String| {
            let (name, signature) = identity::named(&noted, address);
            Identity { address: address.clone(), name, signature }
        };
        user.addresses.iter().map(of).collect()
    }

    fn set_identity(&mut self, user: &User, identity: Identity) -> Result<(), Failure> {
        let (account, Identity { address, name, signature }) = (user.number, identity);
        self.transact(move |transaction| {
            let noted = transaction.state().account(account).ok_or(Refused::NoSuchAccount)?;
            let noted = noted.annotations.get(identity::NOTED.as_bytes()).map(|noted| noted.to_vec());
            let noted = identity::renamed(&noted.unwrap_or_default(), &address, &name, &signature);
            let noted = noted.ok_or(Refused::TooManyAnnotations)?;
            transaction.annotate(account, None, identity::NOTED.as_bytes(), Some(&noted))
        })
        .map_err(|error| keep::webmail::failure(self, &error))
    }

    fn sessions(&mut self, user: &User) -> Vec<Session> {
        door::sessions(self.site).of(user.number, seconds())
    }

    fn end_sessions(&mut self, user: &User, ending: Ending<'_>) {
        door::sessions(self.site).end_of(user.number, ending);
        tracing::info!(account = user.name, "sessions in browsers are ended");
    }

    fn fetches(&self) -> bool {
        self.site.remote.is_some()
    }

    fn pictures(&mut self, urls: &[String], bytes_max: usize) -> Vec<Option<Vec<u8>>> {
        let Some(remote) = &self.site.remote else { return urls.iter().map(|_| None).collect() };
        let found = remote.pictures(urls, bytes_max);
        tracing::info!(
            account = self.name,
            asked = urls.len(),
            found = found.iter().flatten().count(),
            "pictures fetched"
        );
        found.into_iter().map(|file| file.filter(|file| self.is_clean(file))).collect()
    }

    fn leave(&mut self, message: u64, url: &str) -> Result<(), Failure> {
        let remote = self.site.remote.as_ref().ok_or(Failure::Gone)?;
        let mut body = Body::open(&self.site.store, message).ok_or(Failure::Gone)?;
        let mut at = 0;
        let mut read = |piece: &mut [u8]| {
            let count = body.read(at, piece).ok()?;
            at += count as u64;
            Some(count)
        };
        let outcome = remote.leave(url, &mut read);
        let reason = outcome.err().map(NotLeft::words);
        tracing::info!(account = self.name, reason, "unsubscribe request sent to the server of a list");
        outcome.map_err(|why| match why {
            NotLeft::Unread => Failure::Store,
            NotLeft::Unsigned => Failure::Unsigned,
            NotLeft::Unreached => Failure::Unreached,
        })
    }

    fn at_length<T>(&self, work: impl FnOnce() -> T) -> T {
        block_in_place(work)
    }

    fn log(&self, what: &str, error: &dyn Display) {
        tracing::warn!(account = self.name, %error, "{what}");
    }
}

/// A word as a search of IMAP has it.
fn key((field, word): (Option<&'static str>, &str)) -> Key {
    match field {
        Some(field) => Key::Header(field.into(), word.into()),
        None => Key::Text(word.into()),
    }
}
