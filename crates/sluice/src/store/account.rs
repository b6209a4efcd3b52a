//! `sluice account`: who may log in at `sluice store serve`. The server sees a change within a second.
//!
//! [`change`] is the one way in which commands and the administrator's page change the file.

use std::io::{self, BufRead, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;

use mailbox::accounts::{self, Account, Accounts, in_ascii};
use mailbox::app_passwords::DOORS;
use serde::Deserialize;
use serde_json::{Value, json};

use super::control;
use super::second::NO_SECOND;
use super::shared;
use crate::audit::trail::Trail;
use crate::cli::{self, AccountCommand, AppPasswordCommand, values};
use crate::cluster::documents::{Documents, Edited};
use crate::config::StoreSettings;
use crate::output::Failure;
use crate::process::privileges::{self, Place};

/// The longest password, in bytes.
const PASSWORD_BYTES_MAX: usize = 1_024;

/// A change of an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The account is made.
    Add { password: String, quota_bytes: u64, aliases: Vec<String> },
    /// It has another password.
    Password(String),
    /// It has other settings.
    Set(Settings),
    /// Removes it; its mail stays in the store.
    Remove,
}

/// Settings of an account; those that are `None` stay as they are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Bytes of mail that it may have; 0 is no bound.
    pub quota_bytes: Option<u64>,
    /// Its other addresses.
    pub aliases: Option<Vec<String>>,
    /// Whether nobody may log in.
    pub is_disabled: Option<bool>,
}

/// The verb of the audit log for [`reset`].
pub const TOOK_SECOND: &str = "took away the second step and the passkeys of account";

impl Change {
    /// The verb of the audit log.
    pub fn verb(&self) -> &'static str {
        match self {
            Change::Add { .. } => "added account",
            Change::Password(_) => "set password of account",
            Change::Remove => "removed account",
            Change::Set(settings) => match (&settings.quota_bytes, &settings.aliases, settings.is_disabled) {
                (None, None, Some(true)) => "disabled account",
                (None, None, Some(false)) => "enabled account",
                (Some(_), None, None) => "set quota of account",
                (None, Some(_), None) => "set aliases of account",
                (_, _, None) => "set quota and aliases of account",
                (_, _, Some(true)) => "changed and disabled account",
                (_, _, Some(false)) => "changed and enabled account",
            },
        }
    }
}

/// Changes an account in a file.
///
/// # Errors
/// When the account is there and should not be, or the other way round; when a value is not one; when the file cannot be read or
/// written.
pub fn change(file: &Edited, name: &str, change: &Change) -> io::Result<()> {
    let edit = |name: &str| {
        let work = |found| match (found, change) {
            (Some(_), Change::Add { .. }) => Err(format!("{name} is there already")),
            (None, Change::Add { .. }) => changed(Account::new(name)?, change),
            (Some(account), _) => changed(account, change),
            (None, _) => Err(format!("there is no account {name}")),
        };
        file.rewrite(|before| accounts::edited(before, name, work))
    };
    if let Change::Add { .. } = change {
        return edit(&reached(name).map_err(io::Error::other)?);
    }
    match (edit(name), in_ascii(name)) {
        // Accounts of earlier versions have their domains as they were typed.
        (Err(_), ascii) if !name.is_ascii() => edit(&ascii),
        (edited, _) => edited,
    }
}

/// Other addresses of an account as mail comes to them; `@example.org` is all of a domain.
fn all_reached(addresses: &[String]) -> Result<Vec<String>, String> {
    let one = |address: &String| match address.strip_prefix('@') {
        Some(domain) => values::domain(domain).map(|domain| format!("@{domain}")),
        None => reached(address),
    };
    addresses.iter().map(one).collect()
}

/// A name as mail comes to it. One that no mail could be sent to is refused: an account's name is its address, or what stands before the `@`
/// (RFC 5321, section 4.5.3.1.1; RFC 6531).
fn reached(name: &str) -> Result<String, String> {
    const LOCAL_BYTES_MAX: usize = 64;
    let (local, domain) = name.rsplit_once('@').map_or((name, None), |(local, domain)| (local, Some(domain)));
    let is_atom_byte =
        |byte: u8| byte >= 0x80 || byte.is_ascii_alphanumeric() || b"!#$%&'*+/=?^_`{|}~-".contains(&byte);
    let is_atom = |atom: &str| !atom.is_empty() && atom.bytes().all(is_atom_byte);
    if local.len() > LOCAL_BYTES_MAX || !local.split('.').all(is_atom) {
        return Err(format!(
            "no mail reaches {name:?}: a name has 1 to {LOCAL_BYTES_MAX} letters, digits, hyphens and single points before the @"
        ));
    }
    match domain {
        None => Ok(local.to_owned()),
        Some(domain) => values::domain(domain).map(|domain| format!("{local}@{domain}")),
    }
}

fn changed(mut account: Account, change: &Change) -> Result<Option<Account>, String> {
    match change {
        Change::Add { password, quota_bytes, aliases } => {
            account.quota_bytes = *quota_bytes;
            account.set_aliases(all_reached(aliases)?.iter().map(String::as_str))?;
            set_password(&mut account, password)?;
        }
        Change::Password(password) => set_password(&mut account, password)?,
        Change::Set(Settings { quota_bytes, aliases, is_disabled }) => {
            if let Some(aliases) = aliases {
                account.set_aliases(all_reached(aliases)?.iter().map(String::as_str))?;
            }
            account.quota_bytes = quota_bytes.unwrap_or(account.quota_bytes);
            account.is_disabled = is_disabled.unwrap_or(account.is_disabled);
        }
        Change::Remove => return Ok(None),
    }
    Ok(Some(account))
}

fn set_password(account: &mut Account, password: &str) -> Result<(), String> {
    match password.len() {
        0 => Err("a password is needed".into()),
        _ if password.contains(char::is_control) => {
            Err("a password has no control characters: programs and forms cannot send them".into())
        }
        1..=PASSWORD_BYTES_MAX => account.set_password(password.as_bytes()).map_err(|error| error.to_string()),
        _ => Err(format!("a password has at most {PASSWORD_BYTES_MAX} bytes")),
    }
}

/// Asks the server that has the store open to take the second step of an account away.
///
/// # Errors
/// When no server has it, and what the server answers as an error.
pub fn reset(volume: &Place, name: &str) -> Result<(), Failure> {
    if name.contains(char::is_control) {
        return Err(NO_SECOND.into());
    }
    let answer = control::ask(&volume.way(), &format!("second {name}"))?;
    answer.map(drop).ok_or_else(|| "no server has the store open, and only one changes it".into())
}

/// Does what the command line says.
pub fn run(args: &cli::Account) -> Result<ExitCode, Failure> {
    privileges::harden()?;
    let trail = if args.accounts.is_some() { Trail::none() } else { Trail::find(&args.config)? };
    let documents = if args.accounts.is_some() { None } else { Documents::find(&args.config)? };
    let place = Place::enter(&file(args)?)?;
    let named = |error: io::Error| format!("{}: {error}", place.path().display());
    let set = Change::Set;
    let (name, wanted) = match &args.command {
        AccountCommand::List => {
            let accounts = Accounts::open(&place.way()).map_err(named)?;
            accounts.directory().accounts().for_each(|account| println!("{}", line(account)));
            return Ok(ExitCode::SUCCESS);
        }
        AccountCommand::Reset { name } => {
            let volume = Place::enter(&settings(args)?.volume())?;
            trail.change(TOOK_SECOND, name, || reset(&volume, name).map_err(|error| error.to_string()))?;
            return Ok(ExitCode::SUCCESS);
        }
        AccountCommand::AppPassword { command } => {
            return app_passwords(&Place::enter(&settings(args)?.volume())?, command, &trail);
        }
        AccountCommand::Add(add) => {
            let (password, quota_bytes, aliases) = (password()?, add.quota, add.aliases.clone());
            (&add.name, Change::Add { password, quota_bytes, aliases })
        }
        AccountCommand::Passwd { name } => (name, Change::Password(password()?)),
        AccountCommand::Remove { name } => (name, Change::Remove),
        AccountCommand::Disable { name } => (name, set(Settings { is_disabled: Some(true), ..Settings::default() })),
        AccountCommand::Enable { name } => (name, set(Settings { is_disabled: Some(false), ..Settings::default() })),
        AccountCommand::Quota { name, bytes } => {
            (name, set(Settings { quota_bytes: Some(*bytes), ..Settings::default() }))
        }
        AccountCommand::Alias { name, addresses } => {
            (name, set(Settings { aliases: Some(addresses.clone()), ..Settings::default() }))
        }
    };
    let file = Edited::new(documents.as_ref(), shared::accounts(place.way()));
    trail.change(wanted.verb(), name, || change(&file, name, &wanted).map_err(named))?;
    Ok(ExitCode::SUCCESS)
}

/// Has the server make, list or withdraw app passwords; prints its answer.
fn app_passwords(volume: &Place, command: &AppPasswordCommand, trail: &Trail) -> Result<ExitCode, Failure> {
    let (what, account, request) = match command {
        AppPasswordCommand::Add { account, name, protocols } => {
            let doors = if protocols.is_empty() { DOORS.map(String::from).into() } else { protocols.clone() };
            ("added an app password of account", account, json!({ "account": account, "name": name, "doors": doors }))
        }
        AppPasswordCommand::List { account } => ("", account, json!({ "account": account })),
        AppPasswordCommand::Delete { account, id } => {
            ("removed an app password of account", account, json!({ "account": account, "delete": id }))
        }
    };
    let ask = || -> Result<Value, Failure> {
        let answer = control::ask(&volume.way(), &format!("app {request}"))?;
        Ok(answer.ok_or("no server has the store open, and only one changes it")?)
    };
    let answer = if what.is_empty() { ask()? } else { trail.change(what, account, ask)? };
    if let Some(password) = answer["password"].as_str() {
        println!("password {password}");
    }
    for one in answer["list"].as_array().into_iter().flatten() {
        let doors: Vec<&str> = one["doors"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let used = one["used"].as_str().unwrap_or("never used");
        println!("{}\t{}\t{}\t{used}", one["id"], one["name"].as_str().unwrap_or_default(), doors.join(","));
    }
    Ok(ExitCode::SUCCESS)
}

/// An account as it is listed.
fn line(account: &Account) -> String {
    let quota = match account.quota_bytes {
        0 => "no quota".to_owned(),
        bytes => format!("{bytes} bytes"),
    };
    let disabled = if account.is_disabled { "\tdisabled" } else { "" };
    format!("{}\t{quota}\t{}{disabled}", account.name, account.aliases.join(" "))
}

/// The file of accounts: that of the configuration if none is named.
fn file(args: &cli::Account) -> Result<PathBuf, Failure> {
    if let Some(file) = &args.accounts {
        return Ok(file.clone());
    }
    Ok(settings(args)?.accounts())
}

fn settings(args: &cli::Account) -> Result<StoreSettings, Failure> {
    let store = StoreSettings::read(&args.config)?;
    Ok(store.ok_or_else(|| format!("{}: not there, and no --accounts FILE", args.config.display()))?)
}

/// The password on the standard input; on a terminal, one that is made and printed.
fn password() -> Result<String, Failure> {
    if io::stdin().is_terminal() {
        let password = accounts::random_password()?;
        println!("password {password}");
        return Ok(password);
    }
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    match line.trim_end_matches(['\r', '\n']) {
        "" => Err("a password is needed on the standard input".into()),
        password => Ok(password.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_no_mail_reaches_is_refused() {
        for (name, wanted) in [
            ("ann", "ann"),
            ("ann@example.org", "ann@example.org"),
            ("o'neil+x@mx.test", "o'neil+x@mx.test"),
            ("j\u{f6}rg@B\u{fc}cher.example", "j\u{f6}rg@xn--bcher-kva.example"),
            (&"a".repeat(64), &"a".repeat(64)),
        ] {
            assert_eq!(reached(name).as_deref(), Ok(wanted), "{name}");
        }
        let long = "a".repeat(65);
        for name in [
            "",
            "x@",
            "@example.org",
            "a..b@example.org",
            ".a@example.org",
            "a.",
            "<i>@example.org",
            "a@-x",
            "a@1.2.3.4",
            &long,
        ] {
            assert!(reached(name).is_err(), "{name}");
        }
        let aliases = |one: &str| all_reached(&[one.into()]);
        assert_eq!(aliases("@B\u{fc}cher.example"), Ok(vec!["@xn--bcher-kva.example".into()]));
        assert!(aliases("a..b@example.org").is_err() && aliases("@10.0.0.1").is_err());
    }
}
