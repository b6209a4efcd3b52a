//! Files and folders whose owner or mode is wrong, and a store for which the disk has no room.
//!
//! Judged by mode bits and groups: what access control lists add is not seen. Of what is not there yet it is looked whether the service
//! may make it.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use edge::settings::{Certificate, Forward};
use serde_json::Value;

use crate::config::shown::{Entry, HIDDEN};
use crate::config::{Config, StoreSettings};
use crate::learned;
use crate::process::privileges::Account;

const READ: u32 = 4;
const WRITE: u32 = 2;
const SEARCH: u32 = 1;

/// Warnings, a line each.
pub fn warnings(config: &Config) -> Vec<String> {
    let user = config.user.as_deref().and_then(|user| Account::named(user, config.group.as_deref()).ok());
    let user = user.filter(|user| !user.is_root());
    let paths = if user.is_some() { written(config) } else { Vec::new() };
    let mut all: Vec<String> =
        user.iter().flat_map(|user| paths.iter().filter_map(move |path| denied(user, path))).collect();
    let read = config.store.as_ref().map(StoreSettings::accounts);
    all.extend(user.iter().zip(&read).filter_map(|(user, path)| unread(user, path)));
    all.extend(exposed(config));
    all.extend(config.store.iter().filter_map(|store| writable_by_all(&store.folder)));
    all.dedup();
    all.extend(config.store.as_ref().and_then(room));
    all
}

/// Folders and files that the service writes to.
pub(super) fn written(config: &Config) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = config.quarantines().map(Path::to_path_buf).collect();
    all.dedup();
    if let Some(store) = &config.store {
        let volume = store.volume();
        all.extend([store.folder.clone(), volume.with_extension("audit"), volume]);
        all.extend(store.maildrop.clone());
    }
    for bayes in config.spam.iter().flat_map(|spam| &spam.bayes) {
        all.extend([bayes.ledger.clone(), bayes.ledger.join(learned::FILE)]);
    }
    all.extend(config.trust.reputation.clone());
    all.extend(config.listeners.iter().filter_map(|listener| match &listener.hop.forward {
        Forward::Maildir(path) => Some(path.clone()),
        _ => None,
    }));
    all
}

/// Says that a user cannot write to what is there, or not make what is not.
fn denied(user: &Account, path: &Path) -> Option<String> {
    let Ok(facts) = fs::metadata(path) else { return unmade(user, path) };
    let wanted = if facts.is_dir() { WRITE | SEARCH } else { READ | WRITE };
    if !may(user, &facts, wanted) {
        let (uid, gid, mode) = (facts.uid(), facts.gid(), facts.mode() & 0o7777);
        return Some(format!(
            "{}: {} cannot write to it: it belongs to {}, mode {mode:04o}",
            path.display(),
            user.name,
            Account::numbered(uid, gid).name
        ));
    }
    let above = path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty());
    let mut closed = above.filter(|above| fs::metadata(above).is_ok_and(|facts| !may(user, &facts, SEARCH)));
    closed.next().map(|closed| format!("{}: {} cannot pass {}", path.display(), user.name, closed.display()))
}

/// Says that a user cannot make the first folder on the way that is not there.
fn unmade(user: &Account, path: &Path) -> Option<String> {
    let path = std::path::absolute(path).ok()?;
    let mut levels = path.ancestors().zip(path.ancestors().skip(1));
    let (missing, above) = levels.find(|(_, above)| above.exists())?;
    let facts = fs::metadata(above).ok().filter(|facts| !may(user, facts, WRITE | SEARCH))?;
    Some(format!("{}: {} cannot make it: {}", missing.display(), user.name, owner(above, &facts)))
}

/// Says that a user cannot read a file that is there.
fn unread(user: &Account, path: &Path) -> Option<String> {
    let facts = fs::metadata(path).ok().filter(|facts| !may(user, facts, READ))?;
    Some(format!("{}: {} cannot read it: {}", path.display(), user.name, owner(path, &facts)))
}

fn owner(path: &Path, facts: &Metadata) -> String {
    let name = Account::numbered(facts.uid(), facts.gid()).name;
    format!("{} belongs to {name}, mode {:04o}", path.display(), facts.mode() & 0o7777)
}

/// Says that all users may take files of a folder away and put others there.
fn writable_by_all(folder: &Path) -> Option<String> {
    let mode = fs::metadata(folder).ok()?.mode() & 0o7777;
    (mode & WRITE != 0)
        .then(|| format!("{}: all users may write to it, mode {mode:04o}: chmod o-w helps", folder.display()))
}

fn may(user: &Account, facts: &Metadata, wanted: u32) -> bool {
    let shift = match (facts.uid() == user.number(), user.is_in(facts.gid())) {
        (true, _) => 6,
        (_, true) => 3,
        _ => 0,
    };
    (facts.mode() >> shift) & wanted == wanted
}

/// Secrets that all users of the machine may read.
fn exposed(config: &Config) -> impl Iterator<Item = String> {
    let keys = config.tls.certificates.iter().filter_map(|certificate| match certificate {
        Certificate::Files { key, .. } => Some(("private key", key.clone())),
        _ => None,
    });
    let accounts = config.store.iter().map(|store| ("accounts", store.accounts()));
    let secrets = config.secrets.iter().map(|path| ("password", path.clone()));
    let srs = config.store.iter().filter_map(|store| Some(("secret", store.queue.srs_secret.clone()?)));
    let logins = config.store.iter().filter_map(|store| Some(("logins", store.queue.logins.clone()?)));
    let volume = config.store.iter().map(|store| ("store", store.volume()));
    let quarantines = config.quarantines().map(|path| ("quarantine", path.to_path_buf()));
    let ledger = config.spam.iter().flat_map(|spam| &spam.bayes);
    let ledger = ledger.map(|bayes| ("ledger", bayes.ledger.join(learned::FILE)));
    let authority = config.tls.signing_authority.iter().map(|path| ("signing authority", path.clone()));
    let mut all: Vec<_> = keys
        .chain(authority)
        .chain(accounts)
        .chain(secrets)
        .chain(srs)
        .chain(logins)
        .chain(volume)
        .chain(quarantines)
        .chain(ledger)
        .collect();
    all.sort();
    all.dedup();
    all.into_iter().filter_map(|(what, path)| {
        let facts = fs::metadata(&path).ok()?;
        let is_open = facts.mode() & READ != 0 || facts.is_dir() && facts.mode() & SEARCH != 0;
        let mode = facts.mode() & 0o7777;
        is_open.then(|| format!("{what} {}: all users may read it, mode {mode:04o}: chmod o= helps", path.display()))
    })
}

/// Passwords that stand in the configuration itself, or in a file that it includes, and that all users of the machine may read.
pub fn inline_passwords(entries: &[Entry]) -> Vec<String> {
    let told = |entry: &Entry| {
        let (file, _) = entry.place.rsplit_once(':')?;
        let mode = fs::metadata(file).ok()?.mode() & 0o7777;
        let key = &entry.key;
        let advice = "chmod o= helps, or file: before the name of a file with it";
        (holds_password(entry) && mode & READ != 0)
            .then(|| format!("{}: {key}: all users may read this password, mode {mode:04o}: {advice}", entry.place))
    };
    entries.iter().filter_map(told).collect()
}

/// Whether the value of a key is a password, or a URL with one. Passwords that are tried on archives are no secrets.
fn holds_password(entry: &Entry) -> bool {
    let in_url = |text: &str| {
        let authority = text.split_once("://").and_then(|(_, rest)| rest.split(['/', '?', '#']).next());
        let user = authority.and_then(|authority| authority.rsplit_once('@')).map(|(user, _)| user);
        user.and_then(|user| user.split_once(':')).is_some_and(|(_, password)| !password.is_empty())
    };
    match &entry.value {
        Value::String(text) if text == HIDDEN => entry.key.ends_with("password"),
        Value::String(text) => in_url(text),
        Value::Array(texts) => texts.iter().filter_map(Value::as_str).any(in_url),
        _ => false,
    }
}

/// Says that a store does not fit on the disk, one that would be made, or one that is a copy with holes.
fn room(store: &StoreSettings) -> Option<String> {
    let volume = store.volume();
    let wanted = match volume.metadata() {
        Ok(found) if found.is_file() => {
            found.len().max(store.size.unwrap_or(0)).saturating_sub(found.blocks().saturating_mul(512))
        }
        Ok(_) => return None,
        Err(_) => store.new_size(),
    };
    let folder = std::path::absolute(&store.folder).ok()?;
    let there = folder.ancestors().find(|folder| folder.is_dir())?;
    let found = rustix::fs::statvfs(there).ok()?;
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    (free < wanted).then(|| {
        let (wanted, free) = (wanted >> 20, free >> 20);
        format!("store: {wanted} MiB are wanted, and the disk of {} has {free} MiB free", there.display())
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, chown};

    use super::*;
    use crate::config::Source;

    #[test]
    fn passwords_in_a_configuration_that_all_users_read_are_told() {
        let place = tempfile::tempdir().expect("a folder");
        let at = |name: &str| place.path().join(name);
        let password = "[[listener]]\naddress = '127.0.0.1:8080'\nupstream_password = 'one'\n[archives]\npasswords = ['infected']\n";
        let lookup = "[[lookup]]\nname = 'a'\npassword = 'file:secret'\n[[lookup]]\nname = 'b'\npassword = 'two'\n\
                      [[lookup]]\nname = 'c'\nservers = ['mysql://u:three@db.test/m', 'mysql://u@db.test/m']\n";
        let named = |name: &str| at(name).display().to_string();
        fs::write(at("sluice.toml"), format!("include = ['more.toml']\n{password}")).expect("written");
        fs::write(at("more.toml"), lookup).expect("written");
        let told = |modes: [u32; 2]| {
            for (name, mode) in ["sluice.toml", "more.toml"].into_iter().zip(modes) {
                fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).expect("a mode");
            }
            let entries =
                Source::read(&at("sluice.toml")).and_then(|source| source.entries()).expect("a configuration");
            inline_passwords(&entries)
                .iter()
                .map(|line| line.split(" all").next().unwrap_or_default().to_owned())
                .collect()
        };
        let inline = format!("{}:4: listener[1].upstream_password:", named("sluice.toml"));
        let two = format!("{}:6: lookup[2].password:", named("more.toml"));
        let three = format!("{}:9: lookup[3].servers:", named("more.toml"));
        for (modes, wanted) in [
            ([0o644, 0o644], vec![inline.clone(), two.clone(), three.clone()]),
            ([0o640, 0o644], vec![two, three]),
            ([0o604, 0o600], vec![inline]),
            ([0o640, 0o600], Vec::new()),
        ] {
            let found: Vec<String> = told(modes);
            assert_eq!(found, wanted, "{modes:?}");
        }
    }

    #[test]
    fn wrong_owners_and_modes_are_told() {
        let place = tempfile::tempdir().expect("a folder");
        let at = |name: &str| place.path().join(name);
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).expect("a mode");
        for folder in ["store", "q", "ledger"] {
            fs::create_dir(at(folder)).expect("a folder");
            fs::set_permissions(at(folder), fs::Permissions::from_mode(0o755)).expect("a mode");
        }
        for file in ["store/mail", "store/accounts", "ledger/learned.db", "secret"] {
            fs::write(at(file), "x").expect("written");
            fs::set_permissions(at(file), fs::Permissions::from_mode(0o644)).expect("a mode");
        }
        let text = "user = 'nobody'\n[store]\nfolder = 'store'\n[spam.bayes]\nledger = 'ledger'\n[[lookup]]\nname = 'l'\n\
                    servers = ['ldap://127.0.0.1']\nbase = 'dc=x'\nfilter = '(uid=%s)'\npassword = 'file:secret'\n\
                    bind_dn = 'cn=x'\n[[listener]]\nprotocol = 'smtp'\naddress = '127.0.0.1:2525'\nforward = 'store:'\n";
        fs::write(at("sluice.toml"), text).expect("written");
        let mut config = Config::read(&at("sluice.toml")).expect("a configuration");
        config.listeners[0].content.quarantine = Some(at("q"));
        let told = |config: &Config| warnings(config).join("\n").replace(place.path().to_str().expect("a name"), "");
        let found = told(&config);
        for wanted in [
            "accounts /store/accounts: all users may read it, mode 0644",
            "password /secret: all",
            "store /store/mail: all",
            "quarantine /q: all users may read it, mode 0755",
            "ledger /ledger/learned.db: all",
        ] {
            assert!(found.contains(wanted), "{wanted}: {found}");
        }
        if crate::process::privileges::is_root() {
            for path in ["/store", "/store/mail", "/q", "/ledger", "/ledger/learned.db"] {
                assert!(
                    found.contains(&format!("{path}: nobody cannot write to it: it belongs to root")),
                    "{path}: {found}"
                );
            }
            for path in ["store", "store/mail", "q", "ledger", "ledger/learned.db", "store/accounts", "secret"] {
                chown(at(path), Some(65_534), None).expect("given away");
            }
        }
        for path in ["store", "store/mail", "q", "ledger", "ledger/learned.db", "store/accounts", "secret"] {
            let mode = if at(path).is_dir() { 0o700 } else { 0o600 };
            fs::set_permissions(at(path), fs::Permissions::from_mode(mode)).expect("a mode");
        }
        if crate::process::privileges::is_root() {
            assert_eq!(told(&config), "");
        }
        if crate::process::privileges::is_root() {
            config.listeners[0].content.quarantine = Some(at("new/q"));
            let wanted = format!("/new: nobody cannot make it: {} belongs to root, mode 0755", place.path().display());
            assert_eq!(told(&config), wanted.replace(place.path().to_str().expect("a name"), ""));
            chown(at("store/accounts"), Some(0), None).expect("taken");
            assert!(told(&config).contains("/store/accounts: nobody cannot read it: /store/accounts belongs to root"));
            fs::set_permissions(at("store"), fs::Permissions::from_mode(0o777)).expect("a mode");
            assert!(told(&config).contains("/store: all users may write to it, mode 0777"), "{}", told(&config));
        }
        fs::remove_file(at("store/mail")).expect("removed");
        config.store.as_mut().expect("a store").size = Some(1 << 60);
        assert!(told(&config).contains("store: 1099511627776 MiB are wanted, and the disk"), "{}", told(&config));
    }
}
