//! Accounts of the mail store: the file that `sluice account` changes, by the same code, and the levels that the store has of them.

use std::collections::HashMap;
use std::path::Path;

use mailbox::accounts::{Account, Accounts, in_ascii, random_password};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::admin::fault::{Fault, Outcome, away};
use crate::admin::role::{Right, Who};
use crate::admin::site::Site;
use crate::cluster::documents::Edited;
pub use crate::store::account::Settings;
use crate::store::account::{Change, TOOK_SECOND, change, reset};
use crate::store::look::Look;
use crate::store::second::NO_SECOND;
use crate::store::shared;
use crate::store::source::Source;

/// Characters of a password that somebody else chooses (NIST SP 800-63B, section 5.1.1.2).
const PASSWORD_CHARS_MIN: usize = 8;

/// A new account.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct New {
    pub name: String,
    /// The password; one is made if there is none.
    pub password: Option<String>,
    #[serde(default)]
    pub quota_bytes: u64,
    #[serde(default)]
    pub aliases: Vec<String>,
}

/// A password; one is made if there is none.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Password {
    pub password: Option<String>,
}

/// All accounts of the file, with what the store has of them.
///
/// # Errors
/// Without the right, and when the file cannot be read. A store that cannot be looked into leaves its columns empty.
pub fn list(site: &Site, who: &Who) -> Outcome {
    if !who.may(Right::Accounts) {
        return Err(Fault::forbidden());
    }
    let store = site.store()?;
    let file = Accounts::open(&store.accounts.way());
    let file = file.map_err(|error| Fault::away(format!("{}: {error}", store.accounts.path().display())))?;
    let (levels, unknown) = match levels(site) {
        Ok(levels) => (levels, None),
        Err(fault) => (HashMap::new(), Some(fault.text)),
    };
    let all: Vec<Value> = file.directory().accounts().map(|one| account(one, levels.get(&one.name))).collect();
    Ok(json!({ "count": all.len(), "accounts": all, "store": unknown }))
}

/// One account.
///
/// # Errors
/// As [`list`], and when there is no such account.
pub fn one(site: &Site, who: &Who, name: &str) -> Outcome {
    let all = list(site, who)?;
    let found = all["accounts"].as_array().into_iter().flatten().find(|one| one["name"] == name.to_ascii_lowercase());
    found.cloned().ok_or_else(no_account)
}

/// Makes an account. The answer has the password, if it was made here.
///
/// # Errors
/// Without the right, and when a value is not one or the account is there.
pub fn add(site: &Site, who: &Who, new: New) -> Outcome {
    let (password, made) = chosen(new.password)?;
    let name = new.name;
    let wanted = Change::Add { password, quota_bytes: new.quota_bytes, aliases: new.aliases };
    edit(site, who, Right::Change, &name, &wanted)?;
    Ok(json!({ "name": name, "password": made }))
}

/// Sets the password of an account. The answer has the password, if it was made here.
///
/// # Errors
/// As [`add`].
pub fn set_password(site: &Site, who: &Who, name: &str, wanted: Password) -> Outcome {
    let (password, made) = chosen(wanted.password)?;
    edit(site, who, Right::Password, name, &Change::Password(password))?;
    Ok(json!({ "name": name, "password": made }))
}

/// Changes settings of an account, all or none of them.
///
/// # Errors
/// As [`add`].
pub fn set(site: &Site, who: &Who, name: &str, settings: Settings) -> Outcome {
    if settings != Settings::default() {
        edit(site, who, Right::Change, name, &Change::Set(settings))?;
    }
    one(site, who, name)
}

/// Removes an account. Its mail stays in the store.
///
/// # Errors
/// As [`add`].
pub fn remove(site: &Site, who: &Who, name: &str) -> Outcome {
    edit(site, who, Right::Change, name, &Change::Remove)
}

/// Takes the second step and the passkeys of an account's login away.
///
/// # Errors
/// Without the right, when the account has neither, and when no server has the store open.
pub fn reset_second(site: &Site, who: &Who, name: &str) -> Outcome {
    site.change(who, Right::Change, TOOK_SECOND, name, || {
        reset(&site.store()?.volume, name).map_err(|error| match error.to_string() {
            text if text == NO_SECOND => Fault::missing(&text),
            text => Fault::away(text),
        })?;
        Ok(json!({ "name": name }))
    })
}

fn edit(site: &Site, who: &Who, right: Right, name: &str, wanted: &Change) -> Outcome {
    site.change(who, right, wanted.verb(), name, || {
        let path = site.store()?.accounts.way();
        let file = Edited::new(site.store()?.documents.as_ref(), shared::accounts(path.clone()));
        change(&file, name, wanted).map_err(|error| match (wanted, is_there(&path, name)) {
            (Change::Add { .. }, _) | (_, true) => Fault::wrong(error),
            (_, false) => no_account(),
        })?;
        Ok(json!({ "name": name }))
    })
}

/// Whether a file has an account; also where it cannot be read, which is another fault.
fn is_there(path: &Path, name: &str) -> bool {
    let names = [name.to_lowercase(), in_ascii(&name.to_lowercase())];
    Accounts::open(path).map_or(true, |file| file.directory().accounts().any(|one| names.contains(&one.name)))
}

fn no_account() -> Fault {
    Fault::missing("there is no such account")
}

/// The password that is set, and the one that was made for it.
fn chosen(password: Option<String>) -> Result<(String, Option<String>), Fault> {
    match password.filter(|password| !password.is_empty()) {
        Some(password) if password.chars().count() < PASSWORD_CHARS_MIN => Err(Fault::wrong(format!(
            "a password has at least {PASSWORD_CHARS_MIN} characters: shorter ones are guessed; leave it out to have one made"
        ))),
        Some(password) => Ok((password, None)),
        None => {
            let made = random_password().map_err(Fault::away)?;
            Ok((made.clone(), Some(made)))
        }
    }
}

/// Levels of each account in the store, as `sluice store ls` prints them.
fn levels(site: &Site) -> Result<HashMap<String, Value>, Fault> {
    let server = Source::of_server(&site.store()?.volume).map_err(away)?;
    let mut server = server.ok_or_else(|| Fault::away("no server has the store open"))?;
    let named = |row: Value| Some((row["account"].as_str()?.to_owned(), row));
    Ok(server.all(&Look::Accounts).map_err(away)?.into_iter().filter_map(named).collect())
}

fn account(account: &Account, levels: Option<&Value>) -> Value {
    let level = |name: &str| levels.map_or(Value::Null, |levels| levels[name].clone());
    json!({
        "name": account.name, "quota_bytes": account.quota_bytes, "aliases": account.aliases,
        "is_disabled": account.is_disabled, "messages": level("messages"), "bytes": level("bytes"),
        "last_login": level("last_login"), "door": level("door"), "has_second_step": level("has_second_step"),
        "passkeys": level("passkeys"),
    })
}
