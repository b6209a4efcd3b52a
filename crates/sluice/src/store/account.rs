//! `sluice account`: who may log in at `sluice store serve`. The server sees a change within a second.

use std::io::{self, BufRead, IsTerminal};
use std::process::ExitCode;

use mailbox::accounts::{self, Account, Accounts};

use crate::cli::{self, AccountCommand};
use crate::{Failure, privileges};

/// Does what the command line says.
pub fn run(args: &cli::Account) -> Result<ExitCode, Failure> {
    privileges::harden()?;
    let path = &args.accounts;
    let edit = |name: &str, change: &mut dyn FnMut(Option<Account>) -> Result<Option<Account>, String>| {
        accounts::edit(path, name, change).map_err(|error| format!("{}: {error}", path.display()))
    };
    match &args.command {
        AccountCommand::Add(add) => {
            let hash = hash()?;
            edit(&add.name, &mut |found| match found {
                Some(_) => Err(format!("{} is there already", add.name)),
                None => {
                    let account = Account::new(&add.name)?;
                    let aliases = add.aliases.iter().map(|alias| alias.to_ascii_lowercase()).collect();
                    Ok(Some(Account { hash: hash.clone(), quota_bytes: add.quota, aliases, ..account }))
                }
            })?;
        }
        AccountCommand::Passwd { name } => {
            let hash = hash()?;
            edit(name, &mut |found| match found {
                Some(account) => Ok(Some(Account { hash: hash.clone(), ..account })),
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
            let accounts = Accounts::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
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

/// Of the password on the standard input; on a terminal, of one that is made and printed.
fn hash() -> Result<String, Failure> {
    if io::stdin().is_terminal() {
        let password = accounts::random_password()?;
        println!("password {password}");
        return Ok(accounts::hash(password.as_bytes())?);
    }
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    match line.trim_end_matches(['\r', '\n']) {
        "" => Err("a password is needed on the standard input".into()),
        password => Ok(accounts::hash(password.as_bytes())?),
    }
}
