//! Signatures and rules that the configuration names, updates of them, and certificates.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::admin::fault::{Fault, Outcome};
use crate::admin::role::{Right, Who};
use crate::admin::site::Site;
use crate::config::Config;
use crate::database::files::{files, release};
use crate::update::last;

/// Files of one set that are named.
const FILES_MAX: usize = 500;

/// Files of rules that are counted, and folders below folders.
const WALKED_MAX: usize = 20_000;
const DEPTH_MAX: usize = 8;

/// The sets of signatures and rules, what the gateway has of them in force, and the outcome of updates.
///
/// # Errors
/// Without the right.
pub fn list(site: &Site, who: &Who) -> Outcome {
    if !who.may(Right::Look) {
        return Err(Fault::forbidden());
    }
    let config = &site.place.config;
    let numbers = site.history.last().unwrap_or_default();
    let number = |name: &str| numbers.get(name).copied();
    Ok(json!({
        "in_force": { "signatures": number("signatures"), "built": number("database_built_seconds") },
        "signatures": signatures(config),
        "rules": rules(config),
        "update": { "folder": config.update.folder, "files": last(config), "run": site.updates.told() },
    }))
}

/// Begins `sluice update`.
///
/// # Errors
/// Without the right, when no folder is set, and when a run is under way.
pub fn update(site: &Site, who: &Who) -> Outcome {
    site.change(who, Right::Change, "begun update", "signatures", || {
        let folder = site.place.config.update.folder.as_ref();
        folder.ok_or_else(|| Fault::missing("no folder is set: [update] folder"))?;
        site.updates.begin(&site.path).map_err(|text| Fault { status: 409, text })?;
        Ok(site.updates.told())
    })
}

/// The certificates that the gateway has, and when they expire.
///
/// # Errors
/// Without the right, and when the gateway does not answer.
pub fn certificates(site: &Site, who: &Who) -> Outcome {
    if !who.may(Right::Look) {
        return Err(Fault::forbidden());
    }
    let numbers = site.history.last().map_err(Fault::away)?;
    let named = numbers.iter().filter_map(|(name, expires)| {
        let name = name.strip_prefix("certificate_expires_seconds{name=\"")?.strip_suffix("\"}")?;
        Some(json!({ "name": name, "expires": *expires as i64 }))
    });
    Ok(json!({ "certificates": named.collect::<Vec<Value>>() }))
}

fn signatures(config: &Config) -> Value {
    let all = match files(&config.database.paths) {
        Ok(all) => all,
        Err(error) => return json!({ "failed": error.to_string(), "files": [] }),
    };
    let one = |path: &PathBuf| {
        let release = release(path);
        let (bytes, modified) = facts(path);
        json!({
            "file": path, "bytes": bytes, "modified": modified, "version": release.map(|release| release.version),
            "built": release.map(|release| release.built),
        })
    };
    json!({ "count": all.len(), "files": all.iter().take(FILES_MAX).map(one).collect::<Vec<Value>>() })
}

fn rules(config: &Config) -> Vec<Value> {
    const ANY: &[&str] = &[];
    let spam = config.rule_folders().unwrap_or_default().into_iter().map(|path| ("spam", &["cf", "pre"][..], path));
    let ids = config.ids.iter().flat_map(|ids| &ids.rules).map(|path| ("intrusion", &["rules"][..], path.clone()));
    let web = config.web.iter().filter_map(|web| web.config.clone()).map(|path| ("web", ANY, path));
    let one = |(kind, endings, path): (&str, &[&str], PathBuf)| {
        let (count, bytes, newest) = walked(&path, endings);
        json!({ "kind": kind, "path": path, "files": count, "bytes": bytes, "modified": newest })
    };
    spam.chain(ids).chain(web).map(one).collect()
}

/// Files below a path with these endings, their bytes, and when the newest was changed.
fn walked(path: &Path, endings: &[&str]) -> (usize, u64, u64) {
    // A pattern is in the last part; its folder stands for it.
    let is_pattern = path.file_name().is_some_and(|name| name.to_string_lossy().contains(['*', '?']));
    let root = if is_pattern { path.parent().unwrap_or(path) } else { path };
    let entries = walkdir::WalkDir::new(root).max_depth(if is_pattern { 1 } else { DEPTH_MAX }).into_iter();
    let is_meant = |path: &Path| {
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        endings.is_empty() || endings.contains(&ending)
    };
    let files = entries.filter_map(Result::ok).filter(|entry| entry.file_type().is_file() && is_meant(entry.path()));
    let files = files.take(WALKED_MAX);
    files.fold((0, 0, 0), |(count, bytes, newest), entry| {
        let (size, modified) = facts(entry.path());
        (count + 1, bytes + size, newest.max(modified))
    })
}

/// The size of a file, and when it was changed in seconds since 1970.
fn facts(path: &Path) -> (u64, u64) {
    let Ok(facts) = path.metadata() else { return (0, 0) };
    let modified = facts.modified().unwrap_or(SystemTime::UNIX_EPOCH).duration_since(UNIX_EPOCH);
    (facts.len(), modified.map_or(0, |since| since.as_secs()))
}
