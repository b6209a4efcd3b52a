//! `sluice dkim`: the keys that mail of a domain is signed with, and the records of the DNS that name them.
//!
//! One key of each kind signs for a domain: the one that began last. A key that is made for a domain that has some begins later, so that
//! its record can be published first; the former one is then needed until what it has signed has arrived everywhere.

pub mod keys;
mod rsa;
pub mod signer;

use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;

use self::keys::{Key, Keys, Kind};
use crate::audit::trail::Trail;
use crate::cli::{self, DkimCommand};
use crate::config::StoreSettings;
use crate::output::Failure;
use crate::process::privileges::{self, Place};

/// How long a record is published before its key signs, in seconds: a day.
const PUBLISHED_BEFORE: i64 = 86_400;

/// Does what the command line says.
pub fn run(args: &cli::Dkim) -> Result<ExitCode, Failure> {
    privileges::harden()?;
    let settings = StoreSettings::read(&args.config)?.ok_or_else(|| format!("{}: not there", args.config.display()))?;
    let trail = Trail::find(&args.config)?;
    let place = Place::enter(&settings.dkim())?;
    let path = place.way();
    let named = |error: std::io::Error| Failure::from(format!("{}: {error}", place.path().display()));
    let mut keys = Keys::read(&path).map_err(named)?;
    let now = now();
    let shown = match &args.command {
        DkimCommand::List { domain } => keys
            .all()
            .iter()
            .filter(|key| domain.as_ref().is_none_or(|domain| key.domain == *domain))
            .cloned()
            .collect(),
        DkimCommand::Create { domain, selector } => {
            if keys.all().iter().any(|key| key.domain == *domain) {
                return Err(format!("{domain} has keys: sluice dkim rotate makes others").into());
            }
            made(&keys, domain, selector.as_deref(), now)?
        }
        DkimCommand::Rotate { domain, .. } if keys.all().iter().all(|key| key.domain != *domain) => {
            return Err(format!("{domain} has no keys: sluice dkim create makes some").into());
        }
        DkimCommand::Rotate { domain, selector } => made(&keys, domain, selector.as_deref(), now + PUBLISHED_BEFORE)?,
        DkimCommand::Remove { domain, selector } => {
            let is_meant = |key: &Key| key.domain == *domain && key.selector == *selector;
            let removed: Vec<Key> = keys.all().iter().filter(|key| is_meant(key)).cloned().collect();
            if removed.is_empty() {
                return Err(format!("{domain} has no key {selector}").into());
            }
            keys.retain(|key| !is_meant(key));
            trail.change(&format!("removed DKIM key {selector} of domain"), domain, || {
                keys.write(&path).map_err(named)
            })?;
            return Ok(ExitCode::SUCCESS);
        }
    };
    if let DkimCommand::Create { domain, .. } | DkimCommand::Rotate { domain, .. } = &args.command {
        keys.extend(shown.iter().cloned());
        trail.change("added DKIM keys of domain", domain, || keys.write(&path).map_err(named))?;
    }
    print(&keys, &shown, now, args.json);
    Ok(ExitCode::SUCCESS)
}

/// All keys, those of a domain that has none among them: they are made.
pub fn keys_of(place: &Place, domain: &str) -> Result<Keys, Failure> {
    let path = place.way();
    let named = |error: std::io::Error| Failure::from(format!("{}: {error}", place.path().display()));
    let mut keys = Keys::read(&path).map_err(named)?;
    if keys.all().iter().all(|key| key.domain != domain) {
        keys.extend(made(&keys, domain, None, now())?);
        keys.write(&path).map_err(named)?;
    }
    Ok(keys)
}

/// A key of each kind, with selectors that the domain does not have.
fn made(keys: &Keys, domain: &str, selector: Option<&str>, from: i64) -> Result<Vec<Key>, Failure> {
    let date = time::OffsetDateTime::from_unix_timestamp(from).map_err(|error| error.to_string())?.date();
    let stem = match selector {
        Some(selector) => selector.to_ascii_lowercase(),
        None => format!("s{}{:02}{:02}", date.year(), u8::from(date.month()), date.day()),
    };
    [(Kind::Rsa, "r"), (Kind::Ed25519, "e")]
        .into_iter()
        .map(|(kind, tag)| {
            let taken =
                |selector: &String| keys.all().iter().any(|key| key.domain == domain && key.selector == *selector);
            let mut names = std::iter::once(format!("{stem}{tag}")).chain((2..100).map(|n| format!("{stem}{tag}{n}")));
            let selector = names.find(|name| !taken(name)).ok_or("too many keys of this name")?;
            Ok(Key::make(domain, &selector, kind, from)?)
        })
        .collect()
}

/// Zone lines; what is said of a key stands in front of them.
fn print(keys: &Keys, shown: &[Key], now: i64, as_json: bool) {
    for key in shown {
        let state = match (keys.signs(key, now), key.from > now) {
            (true, _) => "signs".to_owned(),
            (false, true) => format!("signs in {} hours", (key.from - now).div_euclid(3_600)),
            (false, false) => "retired".to_owned(),
        };
        match as_json {
            true => println!(
                "{}",
                json!({
                    "domain": key.domain, "selector": key.selector, "kind": key.kind.name(), "from": key.from,
                    "state": state, "name": key.record_name(), "record": key.record(),
                })
            ),
            false => println!("; {} {}: {state}\n{}", key.domain, key.kind.name(), key.zone_line()),
        }
    }
}

pub(super) fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}
