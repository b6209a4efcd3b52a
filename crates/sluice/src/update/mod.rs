//! `sluice update`: fetches signatures, looks at them, and puts them in force.
//!
//! ```text
//!  each file:  asked for, if it is time ──► newer? ──► read, its signature verified ──┐
//!                 └ failed: asked again later and later                              ▼
//!                                        the whole folder, as it would be, is read ──► put in place, one by one
//! ```
//!
//! What is in force stays until what is new has been read; what was in force before stays beside it, for `--rollback`.
//! Not here: incremental updates (`.cdiff`): a database that has changed is fetched whole.

mod fetch;
mod folder;
mod state;

use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use self::fetch::{Client, Fetched};
use self::folder::Folder;
use self::state::State;
use crate::Failure;
use crate::cli::Update;
use crate::config::Config;
use crate::update_settings::Wanted;

/// Fetches what has changed. Exit status: 0 what is in force is up to date, 2 something failed.
pub fn run(args: &Update) -> Result<ExitCode, Failure> {
    let config = Config::read(&args.config)?;
    let settings = &config.update;
    let path = settings.folder.as_ref().ok_or("no folder is set: [update] folder = \"PATH\"")?;
    let folder = Folder::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
    if args.rollback {
        for name in folder.roll_back()? {
            println!("{name}: as it was before");
        }
        return Ok(ExitCode::SUCCESS);
    }
    let client = Client::new(settings, &config.tls.authorities)?;
    let mut state = folder.state();
    let mut failed = false;
    let mut fresh = Vec::new();
    for wanted in settings.wanted()? {
        match update(&wanted, &client, &folder, &mut state, args.force) {
            Ok(Outcome::Fresh) => fresh.push(wanted.name),
            Ok(Outcome::UpToDate) => println!("{}: up to date", wanted.name),
            Ok(Outcome::Waits(seconds)) => println!("{}: not asked for: {seconds} s to wait", wanted.name),
            Err(reason) => {
                failed = true;
                eprintln!("sluice: {}: {reason}", wanted.name);
            }
        }
    }
    if let Err(error) = folder.put_in_force(&fresh) {
        eprintln!("sluice: {error}: everything stays as it was");
        failed = true;
        // What was fetched is of no use: the next time it is asked for anew.
        fresh.drain(..).for_each(|name| state.file(&name).forget());
    }
    fresh.iter().for_each(|name| println!("{name}: new"));
    folder.keep_state(&state)?;
    Ok(ExitCode::from(if failed { 2 } else { 0 }))
}

enum Outcome {
    /// It has been fetched and read.
    Fresh,
    UpToDate,
    /// It has failed before: so many seconds are left.
    Waits(u64),
}

/// Fetches one file, if it is time and there is something new.
fn update(
    wanted: &Wanted,
    client: &Client,
    folder: &Folder,
    state: &mut State,
    force: bool,
) -> Result<Outcome, String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let known = state.file(&wanted.name);
    if known.url != wanted.url || !folder.holds(&wanted.name) {
        known.begin(&wanted.url);
    }
    if let Some(seconds) = known.not_before.checked_sub(now).filter(|&seconds| seconds > 0 && !force) {
        return Ok(Outcome::Waits(seconds));
    }
    let outcome = match client.fetch(wanted, known, folder) {
        Ok(Fetched::NotModified) => Ok(Outcome::UpToDate),
        Ok(Fetched::Body { etag, last_modified }) => folder.look_at(&wanted.name).map(|newer| {
            (known.etag, known.last_modified) = (etag, last_modified);
            if newer { Outcome::Fresh } else { Outcome::UpToDate }
        }),
        Err(error) => {
            known.retry_after = error.retry_after;
            Err(error.reason)
        }
    };
    match &outcome {
        Ok(_) => known.succeeded(),
        Err(_) => known.failed(now),
    }
    outcome
}
