//! `sluice migrate`: configurations of other programs become one of Sluice.
//!
//! Of Postfix `main.cf`, `master.cf` and the tables that they name are read; nothing of it is changed, and no database is asked.

mod access;
mod aliases;
mod certificates;
mod doors;
mod draft;
mod hops;
mod logins;
mod parameters;
mod people;
mod queries;
mod reasons;
mod services;
mod tables;
mod translate;
mod translation;
mod ways;

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::ExitCode;

use self::draft::Draft;
use self::parameters::Parameters;
use self::services::Service;
use crate::cli::MigratePostfix;
use crate::config;
use crate::output::Failure;
use crate::process::privileges;

/// Reads Postfix's configuration, and writes what becomes of it.
pub fn postfix(args: &MigratePostfix) -> Result<ExitCode, Failure> {
    privileges::harden()?;
    let mut draft = read(&args.folder)?;
    let text = draft.text(&args.folder.display().to_string());
    match &args.output {
        // Passwords of databases stand in it.
        Some(path) => {
            let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
            let written = file.and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()));
            written.map_err(|error| format!("{}: {error}", path.display()))?;
        }
        None if args.json => {}
        None => print!("{text}"),
    }
    if args.json {
        println!("{}", draft.json());
    }
    Ok(ExitCode::SUCCESS)
}

fn read(folder: &Path) -> Result<Draft, String> {
    let (main, master) = (folder.join("main.cf"), folder.join("master.cf"));
    let text = tables::read(&main)?;
    let parameters = Parameters::parse(&tables::shown(&main), &text, &tables::shown(folder), &config::host_name());
    let (mut services, mut strange) = (Vec::<Service>::new(), Vec::new());
    // One folder may have main.cf alone: the output of postconf -n.
    if master.exists() {
        for line in services::services(&tables::shown(&master), &tables::read(&master)?) {
            match line {
                Ok(service) => services.push(service),
                Err(line) => strange.push(line),
            }
        }
    }
    let mut draft = translate::translate(folder, &parameters, &services);
    for (place, line) in strange {
        draft.note(Some(&place), line, "this line is not a service");
    }
    Ok(draft)
}

#[cfg(test)]
mod tests;
