//! `sluice update`: fetches signatures and intrusion rules, looks at them, and puts them in force.
//!
//! ```text
//!  each file:  asked for, if it is time ──► newer? ──► read, its signature verified ──┐
//!                 └ failed: asked again later and later                              ▼
//!                                        the whole folder, as it would be, is read ──► put in place, one by one
//! ```
//!
//! What is in force stays until what is new has been read; what was in force before stays beside it, for `--rollback`.
//! Sets of intrusion rules are brought in the same run ([`rules`]).
//!
//! Of a container that is ahead of the one in force, the incremental updates (`.cdiff`) are fetched and put into a `.cld`;
//! the whole only where that does not work.

mod fetch;
mod folder;
mod rules;
mod state;

use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;
use sha2::{Digest, Sha256};

use self::fetch::{Client, Fetched};
use self::folder::{Folder, STATE, Steps};
use self::state::State;
use crate::cli::{self, Update};
use crate::config::Config;
use crate::config::freshclam_conf;
use crate::config::update::{RuleSource, UpdateSettings, Wanted};
use crate::output::Failure;
use crate::process::confine::Reach;
use crate::process::held::Held;
use crate::process::privileges;
use crate::process::privileges::Account;

/// Fetches what has changed. Exit status: 0 what is in force is up to date, 2 something failed.
pub fn run(args: &Update) -> Result<ExitCode, Failure> {
    let usual = args.freshclam_conf.is_none().then_some(Path::new(cli::CONFIG));
    let mut config = match args.config.as_deref().or(usual) {
        Some(path) => Config::read(path)?,
        None => Config::default(),
    };
    if let Some(path) = &args.freshclam_conf {
        for what in freshclam_conf::apply(&mut config, path)? {
            eprintln!("sluice: unsupported option ignored: {what}");
        }
    }
    let settings = &config.update;
    if settings.folder.is_none() && settings.rules_folder.is_none() {
        return Err("no folder is set: [update] folder = \"PATH\", or rules_folder".into());
    }
    if args.dry_run && settings.rules_folder.is_none() {
        return Err("--dry-run is about intrusion rules: [update] rules_folder is not set".into());
    }
    privileges::harden()?;
    let checker = config.database.checker()?;
    let owner = config.update.owner.as_deref().map(|name| Account::named(name, None)).transpose()?;
    let folder = settings.folder.as_deref().filter(|_| !args.dry_run);
    let folder = folder.map(|path| open(path, owner.as_ref(), |held| Folder::open(held, checker))).transpose()?;
    let rules = settings.rules_folder.as_deref();
    let rules = rules.map(|path| open(path, owner.as_ref(), rules::Folder::open)).transpose()?;
    confine(&config, folder.as_ref(), rules.as_ref())?;
    if args.rollback {
        return roll_back(folder.as_ref(), rules.as_ref());
    }
    let client = Client::new(settings, &config.tls.authorities)?;
    let mut failed = false;
    if let Some(folder) = &folder {
        failed |= signatures(settings, &client, folder, args.force)?;
    }
    if let Some(rules) = &rules {
        let manner = rules::Manner { is_forced: args.force || args.dry_run, is_dry: args.dry_run };
        failed |= rules::update(&config, &client, rules, manner)?;
    }
    Ok(ExitCode::from(if failed { 2 } else { 0 }))
}

/// Enters a folder, and takes it for the update.
fn open<F>(path: &Path, owner: Option<&Account>, take: impl FnOnce(Held) -> io::Result<F>) -> Result<F, Failure> {
    let held = privileges::enter(path, owner)?;
    Ok(take(held).map_err(|error| format!("{}: {error}", path.display()))?)
}

/// Puts what was in force before in force again.
fn roll_back(folder: Option<&Folder>, rules: Option<&rules::Folder>) -> Result<ExitCode, Failure> {
    for name in folder.map(Folder::roll_back).transpose()?.unwrap_or_default() {
        println!("{name}: as it was before");
    }
    if let Some(rules) = rules {
        match rules.roll_back()? {
            true => println!("rules: as they were before"),
            false => println!("rules: none were in force before"),
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Brings signatures, and puts them in force; whether something has failed.
fn signatures(settings: &UpdateSettings, client: &Client, folder: &Folder, is_forced: bool) -> Result<bool, Failure> {
    let mut state = folder.state();
    let mut failed = false;
    let mut fresh = Vec::new();
    for wanted in settings.wanted()? {
        match update(&wanted, client, folder, &mut state, is_forced) {
            Ok(Outcome::Fresh(file)) => fresh.push((wanted.name, file)),
            Ok(Outcome::UpToDate) => println!("{}: up to date", wanted.name),
            Ok(Outcome::Waits(seconds)) => println!("{}: not asked for: {seconds} s to wait", wanted.name),
            Err(reason) => {
                failed = true;
                eprintln!("sluice: {}: {reason}", wanted.name);
            }
        }
    }
    let files: Vec<String> = fresh.iter().map(|(_, file)| file.clone()).collect();
    if let Err(error) = folder.put_in_force(&files) {
        eprintln!("sluice: {error}: everything stays as it was");
        failed = true;
        // What was fetched is of no use: the next time it is asked for anew.
        fresh.drain(..).for_each(|(name, _)| state.file(&name).forget());
    }
    fresh.iter().for_each(|(_, file)| println!("{file}: new"));
    folder.keep_state(&state)?;
    Ok(failed)
}

/// Seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

/// The last outcome for each file, as it is remembered beside them; nothing where nothing was fetched yet or nobody may read it.
pub fn last(config: &Config) -> Value {
    let text = config.update.folder.as_ref().and_then(|folder| std::fs::read_to_string(folder.join(STATE)).ok());
    text.and_then(|text| serde_json::from_str::<State>(&text).ok())
        .map_or(Value::Array(Vec::new()), |state| state.told())
}

/// Confines the rest of the run to the folders.
fn confine(config: &Config, folder: Option<&Folder>, rules: Option<&rules::Folder>) -> Result<(), Failure> {
    let mut reach = Reach::default();
    reach.connect().read(&config.tls.authorities);
    config.database.certificates.iter().for_each(|path| _ = reach.read(path));
    if rules.is_some() {
        let sources = config.update.rule_sources()?;
        let paths = sources.iter().filter_map(|source| match source {
            RuleSource::Path(path) => Some(path.as_path()),
            RuleSource::Url { .. } => None,
        });
        paths.chain(config.ids.iter().flat_map(|ids| ids.folders())).for_each(|path| _ = reach.read(path));
    }
    let held: Vec<&Held> =
        folder.map(|folder| &folder.held).into_iter().chain(rules.map(|rules| &rules.held)).collect();
    reach.confine(&held)?;
    Ok(())
}

enum Outcome {
    /// It has been fetched and read, as this file.
    Fresh(String),
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
    let now = now();
    let known = state.file(&wanted.name);
    if known.url != wanted.identity() || !folder.holds(&wanted.name) {
        known.begin(&wanted.identity());
    }
    if let Some(seconds) = known.not_before.checked_sub(now).filter(|&seconds| seconds > 0 && !force) {
        return Ok(Outcome::Waits(seconds));
    }
    let mut fetched = client.fetch(wanted, known, folder, false);
    if let Ok(Fetched::Ahead { steps, etag, last_modified }) = &fetched {
        match increments(wanted, client, folder, steps) {
            Ok(outcome) => {
                (known.etag, known.last_modified) = (etag.clone(), last_modified.clone());
                known.succeeded();
                return Ok(outcome);
            }
            // The whole is more than the update that it does not want to give now.
            Err(Some(error)) if error.wants_rest => {
                known.retry_after = error.retry_after;
                known.failed(now);
                return Err(error.reason);
            }
            Err(Some(error)) => eprintln!("sluice: {}: {}: it is fetched whole", wanted.name, error.reason),
            Err(None) => {}
        }
        known.forget();
        fetched = client.fetch(wanted, known, folder, true);
    }
    let outcome = match fetched {
        Ok(Fetched::NotModified | Fetched::Ahead { .. }) => Ok(Outcome::UpToDate),
        Ok(Fetched::Body { etag, last_modified }) => {
            let _ = signature(wanted, client, folder, folder.coming_version(&wanted.name));
            folder.look_at(&wanted.name, wanted.sha256.as_deref()).map(|newer| {
                (known.etag, known.last_modified) = (etag, last_modified);
                if newer { Outcome::Fresh(wanted.name.clone()) } else { Outcome::UpToDate }
            })
        }
        Err(error) => {
            known.retry_after = error.retry_after;
            Err(error.reason)
        }
    };
    let outcome = match outcome {
        Ok(Outcome::UpToDate) => missing_signature(wanted, client, folder).map(|()| Outcome::UpToDate),
        outcome => outcome,
    };
    match &outcome {
        Ok(_) => known.succeeded(),
        Err(_) => known.failed(now),
    }
    outcome
}

/// Fetches the signature beside a container of this version, if certificates are configured and the server has one. It is
/// put beside what came.
fn signature(wanted: &Wanted, client: &Client, folder: &Folder, version: Option<u32>) -> Option<()> {
    let stem = wanted.url.strip_suffix(".cvd").filter(|_| folder.checker.is_wanted())?;
    let version = version?;
    let sign = client.increment(&format!("{stem}-{version}.cvd.sign")).ok()?;
    let name = wanted.name.replace(".cvd", &format!("-{version}.cvd.sign"));
    folder.receive(&name, &*sign).ok().map(drop)
}

/// Fetches the signature of a container that is in force without one: it came before certificates were configured, or before
/// the server had it.
///
/// # Errors
/// When the signature is not that of what is in force.
fn missing_signature(wanted: &Wanted, client: &Client, folder: &Folder) -> Result<(), String> {
    let unsigned = folder.unsigned_version(&wanted.name);
    match signature(wanted, client, folder, unsigned) {
        Some(()) => folder.put_signature_in_force(&wanted.name),
        None => Ok(()),
    }
}

/// Fetches the incremental updates that lead to a version, and puts them into what is in force.
///
/// # Errors
/// When that does not work, with the reason if it is not that the server has none.
fn increments(
    wanted: &Wanted,
    client: &Client,
    folder: &Folder,
    steps: &Steps,
) -> Result<Outcome, Option<fetch::Error>> {
    if steps.from == steps.to {
        return Ok(Outcome::UpToDate);
    }
    let stem = wanted.url.strip_suffix(".cvd").ok_or(None)?;
    let name = wanted.name.strip_suffix(".cvd").map(|stem| format!("{stem}.cld")).ok_or(None)?;
    let failed = |reason| Some(fetch::Error { reason, retry_after: None, wants_rest: false });
    let mut bytes = folder.read(&steps.file).map_err(|error| failed(error.to_string()))?;
    let mut file = &steps.file;
    for version in steps.from + 1..=steps.to {
        let url = format!("{stem}-{version}.cdiff");
        let cdiff = client.increment(&url).map_err(|error| Some(error).filter(|error| error.wants_rest))?;
        if folder.checker.is_wanted() {
            match client.increment(&format!("{url}.sign")) {
                Ok(sign) => {
                    let signed = folder.checker.verify(&sign, &Sha256::digest(&cdiff).into());
                    signed.map_err(|reason| failed(format!("update {version}: {reason}")))?;
                }
                Err(_) if !folder.checker.is_required() => {}
                Err(error) => return Err(failed(format!("update {version}: no signature: {}", error.reason))),
            }
        }
        bytes = scan::patched(file, &bytes, &cdiff).map_err(|reason| failed(format!("update {version}: {reason}")))?;
        file = &name;
    }
    folder.receive(&name, &*bytes).map_err(|error| failed(error.to_string()))?;
    match folder.look_at(&name, None).map_err(failed)? {
        true => Ok(Outcome::Fresh(name)),
        false => Ok(Outcome::UpToDate),
    }
}
