//! `sluice account`: who may log in at `sluice store serve`. The server sees a change within a second.

use std::io::{self, BufRead, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;

use mailbox::accounts::{self, Account, Accounts};

use crate::cli::{self, AccountCommand};
use crate::config::StoreSettings;
use crate::output::Failure;
use crate::process::privileges::{self, Place};

/// Does what the command line says.
pub fn run(args: &cli::Account) -> Result<ExitCode, Failure> {
    privileges::harden()?;
    let place = Place::enter(&file(args)?)?;
    let path = &place.way();
    let named = |error: io::Error| format!("{}: {error}", place.path().display());
    let edit = |name: &str, change: &mut dyn FnMut(Option<Account>) -> Result<Option<Account>, String>| {
        accounts::edit(path, name, change).map_err(named)
    };
    match &args.command {
        AccountCommand::Add(add) => {
            let password = password()?;
            edit(&add.name, &mut |found| match found {
                Some(_) => Err(format!("{} is there already", add.name)),
                None => {
                    let aliases = add.aliases.iter().map(|alias| alias.to_ascii_lowercase()).collect();
                    let account = Account { quota_bytes: add.quota, aliases, ..Account::new(&add.name)? };
                    with(account, &password)
                }
            })?;
        }
        AccountCommand::Passwd { name } => {
            let password = password()?;
            edit(name, &mut |found| match found {
                Some(account) => with(account, &password),
                None => Err(format!("there is no account {name}")),
            })?;
        }
        AccountCommand::Remove { name } => {
            edit(name, &mut |found| match found {
                Some(_) => Ok(None),
                None => Err(format!("there is no account {name}")),
            })?;
        }
        AccountCommand::List => {
            let accounts = Accounts::open(path).map_err(named)?;
            for account in accounts.directory().accounts() {
                let quota = match account.quota_bytes {
                    0 => "no quota".to_owned(),
                    bytes => format!("{bytes} bytes"),
                };
                println!("{}\t{quota}\t{}", account.name, account.aliases.join(" "));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The file of accounts: that of the configuration if none is named.
fn file(args: &cli::Account) -> Result<PathBuf, Failure> {
    if let Some(file) = &args.accounts {
        return Ok(file.clone());
    }
    let store = StoreSettings::read(&args.config)?;
    let store = store.ok_or_else(|| format!("{}: not there, and no --accounts FILE", args.config.display()))?;
    Ok(store.accounts())
}

fn with(mut account: Account, password: &str) -> Result<Option<Account>, String> {
    account.set_password(password.as_bytes()).map_err(|error| error.to_string())?;
    Ok(Some(account))
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
