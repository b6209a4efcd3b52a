//! Passwords for programs: an account has a few beside its own, each for some protocols, and never for the webmail.
//!
//! They are an annotation of the account in the store. A password is made here, of 100 random bits, and kept as its SHA-256: who gets
//! hold of the digest would have to try 2^99 passwords, so a slow hash and a salt would add nothing, and a login costs a microsecond. The
//! password is shown once. They stay when the account gets another password of its own. Bounds: [`PASSWORDS_MAX`] of an account, each
//! with a name of [`NAME_CHARACTERS_MAX`].

use std::fmt::{self, Display, Formatter};
use std::io;

use sha2::{Digest as _, Sha256};
use store::{Account, Error, Refused, Transaction};
use text::hex;

pub use ::webmail::mail::AppPassword;

use crate::file::File;
use crate::password::random_password;
use crate::writer::Handle;

/// The annotation: a line for each password.
const NAME: &[u8] = b"login/app-passwords";

/// Protocols that programs log in by, as the log names them.
pub const DOORS: [&str; 5] = ["imap", "pop3", "submission", "managesieve", "jmap"];

/// Passwords of one account.
pub const PASSWORDS_MAX: usize = 25;

/// Characters of a name.
pub const NAME_CHARACTERS_MAX: usize = 60;

/// A password for a program, as it is kept.
struct Kept {
    shown: AppPassword,
    digest: String,
}

/// Why a password is not made.
#[derive(Debug)]
pub enum NotMade {
    /// The account has as many as it may have.
    TooMany,
    /// It has no name, or is for no protocol that is known.
    Wrong,
    /// Random numbers are unavailable.
    Random(io::Error),
    /// It cannot be made durable.
    Store(Error),
}

impl Display for NotMade {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            NotMade::TooMany => write!(f, "an account has at most {PASSWORDS_MAX} app passwords"),
            NotMade::Wrong => write!(f, "an app password has a name, and protocols of {}", DOORS.join(", ")),
            NotMade::Random(error) => error.fmt(f),
            NotMade::Store(error) => error.fmt(f),
        }
    }
}

/// The passwords of an account for programs, the oldest first. A line that cannot be read is none.
pub fn of(account: &Account) -> Vec<AppPassword> {
    kept(account).into_iter().map(|one| one.shown).collect()
}

fn kept(account: &Account) -> Vec<Kept> {
    let value = account.annotations.get(NAME).map(|value| String::from_utf8_lossy(value).into_owned());
    value.unwrap_or_default().lines().filter_map(read).collect()
}

/// The password that this is, if it is one for a protocol.
pub(crate) fn find(account: &Account, door: &str, password: &[u8]) -> Option<u32> {
    let all = kept(account);
    let digest = if all.is_empty() { return None } else { digest(password) };
    all.into_iter().find(|one| one.digest == digest && one.shown.doors.contains(&door)).map(|one| one.shown.id)
}

/// Makes a password of an account for these protocols, and returns it.
///
/// # Errors
/// Why it is not made.
pub async fn add(store: &Handle, account: u32, name: &str, doors: &[&str], now: i64) -> Result<String, NotMade> {
    let name: String = name.chars().filter(|c| !text::hazard::is_hazard(*c)).take(NAME_CHARACTERS_MAX).collect();
    let name = name.trim().to_owned();
    let known: Vec<&'static str> = DOORS.into_iter().filter(|door| doors.contains(door)).collect();
    if name.is_empty() || known.is_empty() || doors.iter().any(|door| !DOORS.contains(door)) {
        return Err(NotMade::Wrong);
    }
    let password = random_password().map_err(NotMade::Random)?;
    let digest = digest(password.as_bytes());
    let added = change(store, account, move |all| {
        let id = all.iter().map(|one| one.shown.id).max().unwrap_or(0).saturating_add(1);
        let has_room = all.len() < PASSWORDS_MAX;
        if has_room {
            all.push(Kept { shown: AppPassword { id, name, doors: known, made: now, used: None }, digest });
        }
        has_room
    });
    match added.await {
        Ok(true) => Ok(password),
        Ok(false) => Err(NotMade::TooMany),
        Err(error) => Err(NotMade::Store(error)),
    }
}

/// Withdraws a password; whether it was there.
///
/// # Errors
/// When that cannot be made durable.
pub async fn delete(store: &Handle, account: u32, id: u32) -> Result<bool, Error> {
    change(store, account, move |all| {
        let before = all.len();
        all.retain(|one| one.shown.id != id);
        all.len() < before
    })
    .await
}

/// Notes a login with a password, if it is still there.
pub(crate) async fn note(store: &Handle, account: u32, id: u32, login: (i64, String)) -> Result<(), Error> {
    let noted = change(store, account, move |all| {
        let found = all.iter_mut().find(|one| one.shown.id == id);
        found.map(|one| one.shown.used = Some(login)).is_some()
    });
    noted.await.map(drop)
}

/// Changes the passwords of an account, where `work` says that it has.
async fn change(
    store: &Handle,
    account: u32,
    work: impl FnOnce(&mut Vec<Kept>) -> bool + Send + 'static,
) -> Result<bool, Error> {
    let change = move |transaction: &mut Transaction<'_, File>| {
        let mut all = kept(transaction.state().account(account).ok_or(Refused::NoSuchAccount)?);
        if !work(&mut all) {
            return Ok(false);
        }
        let value: String = all.iter().map(line).collect();
        transaction.annotate(account, None, NAME, Some(value.as_bytes()).filter(|value| !value.is_empty()))?;
        Ok(true)
    };
    store.transact(change).await
}

fn digest(password: &[u8]) -> String {
    hex::encode(&Sha256::digest(password))
}

/// `ID DIGEST DOOR,DOOR MADE USED DOOR NAME`; one that was not used has 0 and `-`.
fn line(one: &Kept) -> String {
    let Kept { shown: AppPassword { id, name, doors, made, used }, digest } = one;
    let (seconds, door) = used.as_ref().map_or((0, "-"), |(seconds, door)| (*seconds, door));
    format!("{id} {digest} {} {made} {seconds} {door} {name}\n", doors.join(","))
}

fn read(line: &str) -> Option<Kept> {
    let mut words = line.splitn(7, ' ');
    let (id, digest, doors) = (words.next()?.parse().ok()?, words.next()?.to_owned(), words.next()?);
    let (made, seconds, door) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?, words.next()?);
    let used = (door != "-").then(|| (seconds, door.into()));
    let doors = DOORS.into_iter().filter(|known| doors.split(',').any(|door| door == *known)).collect();
    let shown = AppPassword { id, name: words.next()?.into(), doors, made, used };
    Some(Kept { shown, digest })
}
