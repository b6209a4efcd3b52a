//! `sluice dkim`: the keys that mail of a domain is signed with, and the records of the DNS that name them.
//!
//! One key of each kind signs for a domain: the one that began last. A key that is made for a domain that has some begins later, so that
//! its record can be published first; the former one is then needed until what it has signed has arrived everywhere.

pub mod keys;
mod rsa;
pub mod signer;

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;

use self::keys::{Key, Keys, Kind};
use crate::audit::trail::Trail;
use crate::cli::{self, DkimCommand};
use crate::cluster::documents::{Document, Documents, Edited};
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
    let documents = Documents::find(&args.config)?;
    let place = Place::enter(&settings.dkim())?;
    let named = |error: io::Error| Failure::from(format!("{}: {error}", place.path().display()));
    let file = Edited::new(documents.as_ref(), document(place.way()));
    let (now, change) = (now(), |work: &mut Work<'_>| changed(&file, work).map_err(named));
    let added = |domain: &str, work: &mut Work<'_>| trail.change("added DKIM keys of domain", domain, || change(work));
    let (keys, shown) = match &args.command {
        DkimCommand::List { domain } => {
            let keys = Keys::read(file.path()).map_err(named)?;
            let is_meant = |key: &&Key| domain.as_ref().is_none_or(|domain| key.domain == *domain);
            let shown = keys.all().iter().filter(is_meant).cloned().collect();
            (keys, shown)
        }
        DkimCommand::Create { domain, selector } => added(domain, &mut |keys| {
            if keys.all().iter().any(|key| key.domain == *domain) {
                return Err(format!("{domain} has keys: sluice dkim rotate makes others"));
            }
            made(keys, domain, selector.as_deref(), now)
        })?,
        DkimCommand::Rotate { domain, selector } => added(domain, &mut |keys| {
            if keys.all().iter().all(|key| key.domain != *domain) {
                return Err(format!("{domain} has no keys: sluice dkim create makes some"));
            }
            made(keys, domain, selector.as_deref(), now + PUBLISHED_BEFORE)
        })?,
        DkimCommand::Remove { domain, selector } => {
            let is_meant = |key: &Key| key.domain == *domain && key.selector == *selector;
            let mut remove = |keys: &mut Keys| {
                if !keys.all().iter().any(is_meant) {
                    return Err(format!("{domain} has no key {selector}"));
                }
                keys.retain(|key| !is_meant(key));
                Ok(Vec::new())
            };
            trail.change(&format!("removed DKIM key {selector} of domain"), domain, || change(&mut remove))?;
            return Ok(ExitCode::SUCCESS);
        }
    };
    print(&keys, &shown, now, args.json);
    Ok(ExitCode::SUCCESS)
}

/// Work on keys, which may be done again on newer ones; the keys that it has made, which are added.
type Work<'a> = dyn FnMut(&mut Keys) -> Result<Vec<Key>, String> + Send + 'a;

/// Changes the file of keys. Returns all keys and the added ones.
fn changed(file: &Edited, work: &mut Work<'_>) -> io::Result<(Keys, Vec<Key>)> {
    let (mut all, mut added) = (Keys::default(), Vec::new());
    file.rewrite(|before| {
        let mut keys = Keys::parse(before).map_err(|error| error.to_string())?;
        added = work(&mut keys)?;
        keys.extend(added.iter().cloned());
        all = keys;
        Ok(all.text())
    })?;
    Ok((all, added))
}

/// All keys, those of a domain that has none among them: they are made.
pub fn keys_of(place: &Place, documents: Option<&Documents>, domain: &str) -> Result<Keys, Failure> {
    let named = |error: io::Error| Failure::from(format!("{}: {error}", place.path().display()));
    let file = Edited::new(documents, document(place.way()));
    let mut make = |keys: &mut Keys| match keys.all().iter().any(|key| key.domain == domain) {
        true => Ok(Vec::new()),
        false => made(keys, domain, None, now()),
    };
    Ok(changed(&file, &mut make).map_err(named)?.0)
}

/// The file of keys as a document of a cluster.
pub fn document(path: PathBuf) -> Document {
    let check = |text: &[u8]| {
        let text = str::from_utf8(text).map_err(|error| error.to_string())?;
        Keys::parse(text).map(drop).map_err(|error| error.to_string())
    };
    Document { name: "dkim".into(), path, check, is_of_acme: false, is_told: false }
}

/// A key of each kind, with selectors that the domain does not have.
fn made(keys: &Keys, domain: &str, selector: Option<&str>, from: i64) -> Result<Vec<Key>, String> {
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
            Key::make(domain, &selector, kind, from)
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
