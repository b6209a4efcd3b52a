//! Filters of users (Sieve, RFC 5228): where they are kept, which one is active, and compiled ones at hand.
//!
//! Scripts are annotations of the account in the store: they are durable by the same flush as mail, in the same backups and
//! snapshots, and nothing is written to any other file. A script is checked before it is kept. Bounds: [`SCRIPTS_MAX`],
//! [`SCRIPT_BYTES_MAX`], and what the store allows for an account.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use sieve::{Location, Program};
use store::{Account, Annotations, Error, Refused, State, Transaction};

use crate::apart::apart;
use crate::file::File;
use crate::writer::Handle;

/// Scripts of an account.
pub const SCRIPTS_MAX: usize = 64;
/// The largest script, in bytes.
pub const SCRIPT_BYTES_MAX: usize = store::ANNOTATION_BYTES_MAX;
/// The longest name of a script, in bytes.
pub const NAME_BYTES_MAX: usize = 400;

/// The annotation that holds the name of the active script.
const ACTIVE: &[u8] = b"sieve/active";
/// Prefix of the names of annotations with scripts.
const SCRIPT: &[u8] = b"sieve/script/";
/// Compiled scripts that are held.
const COMPILED_MAX: usize = 1_000;

/// Why something cannot be done with a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// It is empty, too long, or holds control characters.
    Name,
    /// No script has this name.
    Nonexistent,
    /// A script has this name already.
    Exists,
    /// It is the active one.
    Active,
    /// The account has as many as it may.
    TooMany,
    /// The script, or all of them together, is too large.
    TooLarge,
    /// It is wrong, and where.
    Wrong(String),
    /// The store failed.
    Store(Error),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Name => write!(f, "a name has 1 to {NAME_BYTES_MAX} bytes, and no control characters"),
            Failure::Nonexistent => f.write_str("there is no such script"),
            Failure::Exists => f.write_str("a script of that name exists"),
            Failure::Active => f.write_str("the script is active"),
            Failure::TooMany => write!(f, "an account has at most {SCRIPTS_MAX} scripts"),
            Failure::TooLarge => {
                write!(f, "a script has at most {SCRIPT_BYTES_MAX} bytes, and all of them not much more")
            }
            Failure::Wrong(why) => f.write_str(why),
            Failure::Store(error) => error.fmt(f),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match error {
            Error::Refused(Refused::TooManyAnnotations | Refused::TransactionTooLarge) => Failure::TooLarge,
            Error::Refused(Refused::Name) => Failure::Name,
            error => Failure::Store(error),
        }
    }
}

/// The scripts of an account, by name, and which is active.
pub fn list(account: &Account) -> Vec<(String, bool)> {
    let active = active(account);
    let names = account.annotations.keys().filter_map(|name| name.strip_prefix(SCRIPT));
    let names = names.map(|name| String::from_utf8_lossy(name).into_owned());
    names.map(|name| (name.clone(), active.as_deref() == Some(&*name))).collect()
}

/// The text of a script.
pub fn get(account: &Account, name: &str) -> Option<Arc<[u8]>> {
    account.annotations.get(&*key(name)).cloned()
}

/// The name of the active script.
pub fn active(account: &Account) -> Option<String> {
    account.annotations.get(ACTIVE).map(|name| String::from_utf8_lossy(name).into_owned())
}

/// Scripts of the site: those that all may include (`include :global`), and those that run before and after each user's own.
#[derive(Debug, Clone, Default)]
pub struct SiteScripts {
    global: BTreeMap<String, String>,
    before: Option<Arc<Program>>,
    after: Option<Arc<Program>>,
}

impl SiteScripts {
    /// Reads them: `NAME.sieve` of the folder, and two files.
    ///
    /// # Errors
    /// What cannot be read, or is wrong in one that runs by itself, and where.
    pub fn read(global: Option<&Path>, before: Option<&Path>, after: Option<&Path>) -> Result<SiteScripts, String> {
        let mut scripts = SiteScripts::default();
        for entry in global.map(std::fs::read_dir).transpose().map_err(|error| error.to_string())?.into_iter().flatten()
        {
            let path = entry.map_err(|error| error.to_string())?.path();
            if let (Some(name), Some("sieve")) = (path.file_stem(), path.extension().and_then(|end| end.to_str())) {
                scripts.global.insert(name.to_string_lossy().into_owned(), text_of(&path)?);
            }
        }
        let compiled = |path: &Path| {
            let program = check(&scripts, None, text_of(path)?.as_bytes());
            program.map(Arc::new).map_err(|error| format!("{}: {error}", path.display()))
        };
        let (before, after) = (before.map(compiled).transpose()?, after.map(compiled).transpose()?);
        Ok(SiteScripts { before, after, ..scripts })
    }

    /// Scripts that run for an account, in order: the site's first, its own, the site's last.
    pub(crate) fn around(&self, own: Option<Arc<Program>>) -> Vec<Arc<Program>> {
        [self.before.clone(), own, self.after.clone()].into_iter().flatten().collect()
    }
}

fn text_of(path: &Path) -> Result<String, String> {
    let text = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let fits = text.len() <= SCRIPT_BYTES_MAX;
    String::from_utf8(text).ok().filter(|_| fits).ok_or_else(|| format!("{}: not UTF-8, or too large", path.display()))
}

/// Compiles a script with those that it includes.
///
/// # Errors
/// What is wrong, and where.
pub fn check(site: &SiteScripts, account: Option<&Account>, text: &[u8]) -> Result<Program, Failure> {
    if text.len() > SCRIPT_BYTES_MAX {
        return Err(Failure::TooLarge);
    }
    let source = std::str::from_utf8(text).map_err(|_| Failure::Wrong("not UTF-8".into()))?;
    let library = Library(site, account);
    sieve::compile(source, &library).map_err(|error| Failure::Wrong(error.to_string()))
}

/// Whether there is room for a script of this size.
///
/// # Errors
/// Why not.
pub fn has_space(account: &Account, name: &str, bytes: u64) -> Result<(), Failure> {
    checked(name)?;
    let is_new = get(account, name).is_none();
    let count = account.annotations.keys().filter(|name| name.starts_with(SCRIPT)).count();
    if is_new && count >= SCRIPTS_MAX {
        return Err(Failure::TooMany);
    }
    let others = account.annotations.iter().filter(|(other, _)| ***other != *key(name));
    let used: u64 = others.map(|(name, value)| (name.len() + value.len()) as u64).sum();
    match bytes > SCRIPT_BYTES_MAX as u64 || used.saturating_add(bytes) > store::ANNOTATED_BYTES_MAX as u64 {
        true => Err(Failure::TooLarge),
        false => Ok(()),
    }
}

/// Keeps a script under a name, in place of one that had it before.
///
/// # Errors
/// When it is wrong, or there is no room for it; nothing has changed then.
pub async fn put(store: &Handle, site: &SiteScripts, account: u32, name: &str, text: Vec<u8>) -> Result<(), Failure> {
    let state = store.state();
    let owner = state.account(account).ok_or(Failure::Store(Refused::NoSuchAccount.into()))?;
    has_space(owner, name, text.len() as u64)?;
    apart(|| check(site, Some(owner), &text))?;
    let name = name.to_owned();
    change(store, account, move |transaction, owner| {
        has_space(owner, &name, text.len() as u64)?;
        Ok(transaction.annotate(account, None, &key(&name), Some(&text))?)
    })
    .await
}

/// Makes a script the active one, or none of them.
///
/// # Errors
/// When there is no such script, or it does not work any more.
pub async fn activate(store: &Handle, site: &SiteScripts, account: u32, name: Option<&str>) -> Result<(), Failure> {
    if let Some(name) = name {
        checked(name)?;
        let state = store.state();
        let owner = state.account(account).ok_or(Failure::Store(Refused::NoSuchAccount.into()))?;
        let text = get(owner, name).ok_or(Failure::Nonexistent)?;
        apart(|| check(site, Some(owner), &text))?;
    }
    let name = name.map(str::to_owned);
    change(store, account, move |transaction, owner| {
        if name.as_ref().is_some_and(|name| get(owner, name).is_none()) {
            return Err(Failure::Nonexistent);
        }
        Ok(transaction.annotate(account, None, ACTIVE, name.as_ref().map(String::as_bytes))?)
    })
    .await
}

/// Removes a script that is not active.
///
/// # Errors
/// When there is no such script, or it is active.
pub async fn delete(store: &Handle, account: u32, name: &str) -> Result<(), Failure> {
    checked(name)?;
    let name = name.to_owned();
    change(store, account, move |transaction, owner| {
        get(owner, &name).ok_or(Failure::Nonexistent)?;
        if active(owner).as_ref() == Some(&name) {
            return Err(Failure::Active);
        }
        Ok(transaction.annotate(account, None, &key(&name), None)?)
    })
    .await
}

/// Gives a script another name; if it is the active one, it is so still.
///
/// # Errors
/// When there is no such script, or one with the other name.
pub async fn rename(store: &Handle, account: u32, from: &str, to: &str) -> Result<(), Failure> {
    checked(from)?;
    checked(to)?;
    let (from, to) = (from.to_owned(), to.to_owned());
    change(store, account, move |transaction, owner| {
        let text = get(owner, &from).ok_or(Failure::Nonexistent)?;
        if get(owner, &to).is_some() {
            return Err(Failure::Exists);
        }
        let is_active = active(owner).as_ref() == Some(&from);
        // In this order there is no more than there is room for.
        transaction.annotate(account, None, &key(&from), None)?;
        transaction.annotate(account, None, &key(&to), Some(&text))?;
        if is_active {
            transaction.annotate(account, None, ACTIVE, Some(to.as_bytes()))?;
        }
        Ok(())
    })
    .await
}

/// A change to what an account is as the transaction finds it.
async fn change(
    store: &Handle,
    account: u32,
    work: impl FnOnce(&mut Transaction<'_, File>, &Account) -> Result<(), Failure> + Send + 'static,
) -> Result<(), Failure> {
    let (tell, told) = std::sync::mpsc::channel();
    let outcome = store.transact(move |transaction| {
        let owner = transaction.state().account(account).ok_or(Refused::NoSuchAccount)?.clone();
        work(transaction, &owner).map_err(|failure| {
            let _ = tell.send(failure);
            // Whatever it is: nothing of the transaction stays.
            Error::Refused(Refused::Inconsistent)
        })
    });
    let outcome = outcome.await;
    match told.try_recv() {
        Ok(failure) => Err(failure),
        Err(_) => Ok(outcome?),
    }
}

fn checked(name: &str) -> Result<(), Failure> {
    let is_odd = |character: char| character.is_control() || matches!(character, '\u{2028}' | '\u{2029}');
    let fits = (1..=NAME_BYTES_MAX).contains(&name.len());
    if fits && !name.contains(is_odd) { Ok(()) } else { Err(Failure::Name) }
}

fn key(name: &str) -> Box<[u8]> {
    [SCRIPT, name.as_bytes()].concat().into()
}

/// Scripts that `include` finds: the site's, and others of the account.
struct Library<'a>(&'a SiteScripts, Option<&'a Account>);

impl sieve::Scripts for Library<'_> {
    fn script(&self, location: Location, name: &str) -> Option<String> {
        match location {
            Location::Global => self.0.global.get(name).cloned(),
            Location::Personal => String::from_utf8(get(self.1?, name)?.to_vec()).ok(),
        }
    }
}

/// Compiled active scripts, by account, as long as nothing of the account's annotations has changed.
#[derive(Default)]
pub(crate) struct Compiled(Mutex<HashMap<u32, Held>>);

type Held = (Annotations, Option<Arc<Program>>);

impl Compiled {
    /// The active script; none if there is none, or it does not compile any more, which is logged.
    pub fn active(&self, site: &SiteScripts, state: &State, number: u32) -> Option<Arc<Program>> {
        let account = state.account(number)?;
        let name = active(account)?;
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((annotations, program)) = held.get(&number)
            && Arc::ptr_eq(annotations, &account.annotations)
        {
            return program.clone();
        }
        let text = get(account, &name).unwrap_or_default();
        let program = match check(site, Some(account), &text) {
            Ok(program) => Some(Arc::new(program)),
            Err(error) => {
                let account = String::from_utf8_lossy(&account.name);
                tracing::warn!(%account, script = name, %error, "the active script does not compile, mail goes to INBOX");
                None
            }
        };
        if held.len() >= COMPILED_MAX {
            held.clear();
        }
        held.insert(number, (account.annotations.clone(), program.clone()));
        program
    }
}
