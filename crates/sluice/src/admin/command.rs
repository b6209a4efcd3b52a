//! `sluice admin person` and `sluice admin token`: who may come in at the administrator's page, beside the link.

use std::io::{self, BufRead as _, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use mailbox::accounts::random_password;

use super::people::{People, file};
use crate::audit::trail::{Trail, folder, make};
use crate::cli::{AdminPerson, AdminToken, PersonCommand, TokenCommand};
use crate::config::Config;
use crate::output::Failure;
use crate::process::privileges::{self, Place};

/// Does what the command line says of people.
pub fn person(args: &AdminPerson) -> Result<ExitCode, Failure> {
    let (path, trail) = enter(&args.config)?;
    match &args.command {
        PersonCommand::Add { name, role } => {
            let password = password()?;
            let what = format!("added person of role {}", role.name());
            trail.change(&what, name, || People::edit(&path, |people| people.add_person(name, *role, &password)))?;
        }
        PersonCommand::Passwd { name } => {
            let password = password()?;
            trail.change("set password of person", name, || {
                People::edit(&path, |people| people.person(name)?.set_password(&password))
            })?;
        }
        PersonCommand::Reset { name } => {
            trail.change("took away the second step and the passkeys of person", name, || {
                People::edit(&path, |people| {
                    let person = people.person(name)?;
                    (person.second, person.passkeys) = (None, Vec::new());
                    Ok(())
                })
            })?;
        }
        PersonCommand::Remove { name } => trail.change("removed person", name, || {
            People::edit(&path, |people| {
                people.person(name)?;
                people.people.retain(|person| person.name != *name);
                Ok(())
            })
        })?,
        PersonCommand::List => {
            for person in People::read(&path)?.people {
                let second = if person.second.is_some() { "second step" } else { "password alone" };
                println!("{}\t{}\t{second}", person.name, person.role.name());
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Does what the command line says of tokens.
pub fn token(args: &AdminToken) -> Result<ExitCode, Failure> {
    let (path, trail) = enter(&args.config)?;
    match &args.command {
        TokenCommand::Add { name, role } => {
            let what = format!("added token of role {}", role.name());
            let add = || People::edit(&path, |people| people.add_token(name, *role));
            println!("{}", trail.change(&what, name, add)?);
        }
        TokenCommand::Remove { name } => trail.change("removed token", name, || {
            People::edit(&path, |people| {
                let before = people.tokens.len();
                people.tokens.retain(|token| token.name != *name);
                if people.tokens.len() < before { Ok(()) } else { Err(format!("there is no token {name}")) }
            })
        })?,
        TokenCommand::List => {
            for token in People::read(&path)?.tokens {
                println!("{}\t{}\t{}", token.name, token.role.name(), token.made);
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The file of people and tokens, and the audit log; root becomes the owner of the folder above, and the folder is made.
fn enter(config: &Path) -> Result<(PathBuf, Trail), Failure> {
    privileges::harden()?;
    let config = Config::read(config)?;
    let (folder, trail) = (folder(&config), Trail::of(&config)?);
    let folder = folder.ok_or("no folder is set for people and tokens: [admin] folder")?;
    let above = folder.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let place = Place::enter(above)?;
    let folder = place.way().join(folder.file_name().unwrap_or_default());
    make(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok((file(&folder), trail))
}

/// The password on the standard input; on a terminal, one that is made and printed.
fn password() -> Result<String, Failure> {
    if io::stdin().is_terminal() {
        let password = random_password()?;
        println!("password {password}");
        return Ok(password);
    }
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}
