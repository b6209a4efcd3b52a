//! User and rights of `serve`: settled once, after the files that need root are open, and before foreign input is
//! read.
//!
//! ```text
//!  configuration · keys of certificates · sockets      as whoever started it
//!  ── no root any more, no core dumps, no new rights ──
//!  folders for mails and compiled signatures, made if they are missing
//!  ── nothing else of the file system ──
//!  signatures · sessions · reloads
//! ```
//! Root is never kept by mistake: without a user to become, it is refused unless `--allow-root` says so. Of root's rights
//! remains that of listening on ports below 1024, and for transparent listeners that of other hosts' addresses; a reload
//! reads keys and configuration as the user, so they have to be readable for it by then.

use std::fs::DirBuilder;
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, MetadataExt as _};
use std::path::Path;

use edge::settings::{Address, Certificate, Forward};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, chownat, fstat, openat};
use rustix::thread::CapabilitySet;

use crate::cli::Serve;
use crate::config::Config;
use crate::database::Wanted;
use crate::output::Failure;
use crate::process::confine::{self, Confined, Reach};
use crate::process::held::Held;
use crate::process::privileges::{self, Account};
use crate::store::{folder, maildrop};

/// Why root is refused.
const REFUSED: &str = "refusing to run as root: set user = \"NAME\" in the configuration (User in clamd.conf), start it as \
                       another user (User= or DynamicUser= in the unit), or give --allow-root";

/// Gives up whatever is not needed from here on.
///
/// # Errors
/// When we are root and may not stay it, cannot become somebody else, or cannot be confined.
pub fn settle(args: &Serve, config: &Config, wanted: &Wanted) -> Result<(), Failure> {
    let account = becomes(args, config)?;
    if let Some(account) = &account {
        give(args, config, account)?;
        account.assume(kept(config))?;
    }
    privileges::harden()?;
    make_folders(config, wanted)?;
    let confined = if config.confine { reach(args, config, wanted).confine(&[])? } else { Confined::Not };
    let user = account.map_or_else(|| rustix::process::geteuid().as_raw().to_string(), |account| account.name);
    tracing::info!(user, confined = %confined, "privileges dropped");
    Ok(())
}

/// The same for the process of the store, which listens already.
///
/// # Errors
/// As [`settle`].
pub fn settle_store(args: &Serve, config: &Config) -> Result<(), Failure> {
    let account = becomes(args, config)?;
    if let Some(account) = &account {
        account.assume(CapabilitySet::empty())?;
    }
    privileges::harden()?;
    let mut reach = Reach::default();
    reach.connect().run_nothing();
    reach_store(config, &mut reach);
    let tables = config.lookups.iter().filter_map(|table| Path::new(table.file()?).parent());
    tables.for_each(|folder| _ = reach.read(folder));
    reach.read(&config.tls.authorities);
    config.cluster.iter().flat_map(|cluster| cluster.files()).for_each(|path| _ = reach.read(path));
    let confined = if config.confine { reach.confine(&[])? } else { Confined::Not };
    let user = account.map_or_else(|| rustix::process::geteuid().as_raw().to_string(), |account| account.name);
    tracing::info!(user, confined = %confined, "the store has a process of its own");
    Ok(())
}

/// Whether a reload can have what it wants.
///
/// # Errors
/// When it lies outside of what the process has confined itself to.
pub fn check_reload(args: &Serve, config: &Config, wanted: &Wanted) -> Result<(), String> {
    confine::granted(&reach(args, config, wanted))
}

/// User to become; none if it is the right one already.
fn becomes(args: &Serve, config: &Config) -> Result<Option<Account>, Failure> {
    let named = config.user.as_deref().map(|user| Account::named(user, config.group.as_deref())).transpose()?;
    if !privileges::is_root() {
        if let Some(account) = named.filter(|account| !account.is_us()) {
            tracing::warn!(user = account.name, "not started as root: user unchanged");
        }
        return Ok(None);
    }
    match named {
        Some(account) if !account.is_root() => Ok(Some(account)),
        _ if args.allow_root => Ok(None),
        None if is_first_steps(args) => Ok(Some(Account::nobody())),
        _ => Err(REFUSED.into()),
    }
}

/// Whether there is no configuration at all.
pub fn is_first_steps(args: &Serve) -> bool {
    args.config.is_none() && args.clamd_conf.is_none()
}

/// Capabilities of root that are kept.
fn kept(config: &Config) -> CapabilitySet {
    let is_transparent =
        config.listeners.iter().any(|listener| listener.hop.transparent.is_some() || listener.hop.keep_source);
    let more = if is_transparent { CapabilitySet::NET_ADMIN } else { CapabilitySet::empty() };
    CapabilitySet::NET_BIND_SERVICE | more
}

/// Gives the user the sockets that were made for it; and without a configuration the folder of the store.
fn give(args: &Serve, config: &Config, account: &Account) -> Result<(), Failure> {
    for path in socket_paths(config) {
        give_socket(path, account).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    if let Some(store) = config.store.as_ref().filter(|_| is_first_steps(args)) {
        let here = Held::open(Path::new("."))?;
        give_folder(&here, &store.folder, account).map_err(|error| format!("{}: {error}", store.folder.display()))?;
    }
    Ok(())
}

/// Only what is a socket of ours with no other name: the folder may be the user's own.
fn give_socket(path: &Path, account: &Account) -> std::io::Result<()> {
    let socket = openat(CWD, path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    let facts = std::fs::File::from(socket.try_clone()?).metadata()?;
    if facts.file_type().is_socket() && facts.uid() == 0 && facts.nlink() == 1 {
        let (uid, gid) = account.numbers();
        // A group that was asked for is not root's.
        let group = (facts.gid() == 0).then(|| rustix::fs::Gid::from_raw(gid));
        chownat(&socket, "", Some(rustix::fs::Uid::from_raw(uid)), group, AtFlags::EMPTY_PATH)?;
    }
    Ok(())
}

/// Only one that was made just now, or is root's: nobody else may look into it.
fn give_folder(here: &Held, path: &Path, account: &Account) -> std::io::Result<()> {
    let folder = here.make(path)?;
    let (uid, gid) = account.numbers();
    if fstat(&folder)?.st_uid == 0 {
        rustix::fs::fchmod(&folder, Mode::from_raw_mode(0o700))?;
        rustix::fs::fchown(&folder, Some(rustix::fs::Uid::from_raw(uid)), Some(rustix::fs::Gid::from_raw(gid)))?;
    }
    Ok(())
}

fn socket_paths(config: &Config) -> impl Iterator<Item = &Path> {
    let listeners = config.listeners.iter().map(|listener| &listener.place.address);
    let store = config.store.iter().flat_map(|store| store.doors().map(|(_, address)| address));
    listeners.chain(&config.clamd.addresses).chain(store).filter_map(|address| match address {
        Address::Unix(path) => Some(path.as_path()),
        Address::Tcp(_) => None,
    })
}

/// Makes what is written to later.
///
/// # Errors
/// When mails could not be put where they are to go.
pub fn make_folders(config: &Config, wanted: &Wanted) -> Result<(), Failure> {
    for listener in &config.listeners {
        if let Forward::Maildir(path) = &listener.hop.forward {
            edge::upstream::maildir::prepare(path).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        if let Some(folder) = &listener.content.quarantine {
            make_private(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        }
    }
    if let Some(folder) = &config.trust.reputation {
        std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    for bayes in config.spam.iter().flat_map(|spam| &spam.bayes) {
        crate::learned::prepare(&bayes.ledger)?;
    }
    if let Some(store) = &config.store {
        folder::prepare(store).map_err(|error| format!("{}: {error}", store.folder.display()))?;
        store.maildrop.as_deref().map_or(Ok(()), maildrop::prepare)?;
    }
    for (_, path) in config.cluster.iter().flat_map(|cluster| cluster.documents()) {
        path.parent().map_or(Ok(()), make_private).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    let acme = config.tls.acme_names().next().map(|_| config.tls.acme.folder.as_path());
    for folder in acme.into_iter().chain(wanted.cache.as_deref()) {
        let _ = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    }
    Ok(())
}

/// Makes a folder that nobody else may look into; those above it are as the system makes them.
fn make_private(folder: &Path) -> std::io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    folder.parent().map_or(Ok(()), std::fs::create_dir_all)?;
    DirBuilder::new().mode(0o700).create(folder)
}

/// Paths that the configuration needs.
fn reach(args: &Serve, config: &Config, wanted: &Wanted) -> Reach {
    let mut reach = Reach::default();
    // Who compiles signatures is started by the supervisor.
    reach.connect().run_nothing();
    let files = args
        .config
        .iter()
        .chain(&config.included)
        .chain(&config.lists)
        .chain(&args.clamd_conf)
        .chain(&config.notices.templates);
    let signatures = wanted.paths.iter().chain(&wanted.certificates);
    let authorities = std::iter::once(&config.tls.authorities).chain(&config.tls.signing_authority);
    let recipients = config.recipients.iter().flat_map(|table| table.paths());
    let access = config.trust.files();
    // A file of SQLite has others beside it while it is written.
    let tables = config.lookups.iter().filter_map(|table| Path::new(table.file()?).parent());
    tables.for_each(|folder| _ = reach.read(folder));
    files
        .chain(signatures)
        .chain(recipients)
        .chain(authorities)
        .chain(access)
        .chain(&config.clamd.paths)
        .for_each(|path| _ = reach.read(path));
    for certificate in &config.tls.certificates {
        if let Certificate::Files { chain, key } = certificate {
            reach.read(chain).read(key);
        }
    }
    // Lists hold at times of the machine's zone, and texts and lists lie where packages install them.
    let zones = ["/etc/localtime", "/usr/share/zoneinfo"];
    let languages = ["/usr/share/e2guardian/languages", "/usr/share/dansguardian/languages"];
    let databases = ["/var/lib/squidguard"];
    let shared = zones.into_iter().chain(languages).chain(databases).map(Path::new);
    let of_web = config.web.iter().flat_map(|web| web.folders().chain(shared.clone()));
    of_web.for_each(|path| _ = reach.read(path));
    config.cluster.iter().flat_map(|cluster| cluster.files()).for_each(|path| _ = reach.read(path));
    let shared = config.cluster.iter().flat_map(|cluster| cluster.documents());
    shared.for_each(|(_, path)| path.parent().into_iter().for_each(|folder| _ = reach.write(folder)));
    config.ids.iter().flat_map(|ids| ids.folders()).for_each(|path| _ = reach.read(path));
    config.ids.iter().flat_map(|ids| ids.logs()).for_each(|path| _ = reach.write(path));
    config.rule_folders().iter().flatten().for_each(|folder| _ = reach.read(folder));
    // The folders of lists that are at hand, since a file is replaced by another of its name.
    crate::config::block_lists::local_files(&config.trust)
        .iter()
        .for_each(|file| _ = reach.read(file.parent().unwrap_or(file)));
    config.spam.iter().flat_map(|spam| &spam.preferences).for_each(|folder| _ = reach.read(folder));
    config.trust.reputation.iter().for_each(|folder| _ = reach.write(folder));
    config.spam.iter().flat_map(|spam| &spam.bayes).for_each(|bayes| _ = reach.write(&bayes.ledger));
    if config.tls.acme_names().next().is_some() {
        reach.write(&config.tls.acme.folder);
    }
    for listener in &config.listeners {
        if let Forward::Maildir(path) = &listener.hop.forward {
            reach.write(path);
        }
        listener.content.quarantine.iter().for_each(|folder| _ = reach.write(folder));
    }
    if !crate::store::apart::is_meant(config) {
        reach_store(config, &mut reach);
    }
    wanted.cache.iter().for_each(|folder| _ = reach.write(folder));
    socket_paths(config).for_each(|path| _ = reach.listen(path));
    reach
}

/// Paths that the store needs.
fn reach_store(config: &Config, reach: &mut Reach) {
    let Some(store) = &config.store else { return };
    reach.write(&store.folder).listen(&store.volume());
    store.maildrop.iter().for_each(|folder| _ = reach.write(folder));
    store.queue.srs_secret.iter().chain(&store.queue.logins).for_each(|path| _ = reach.read(path));
    // A file of accounts is replaced by another of its name.
    let of_accounts = store.accounts();
    if let Some(folder) = of_accounts.parent() {
        // Another node's version is written there.
        _ = if config.cluster.is_some() { reach.write(folder) } else { reach.read(folder) };
    }
    [&store.sieve_before, &store.sieve_after, &store.sieve_global]
        .into_iter()
        .flatten()
        .for_each(|path| _ = reach.read(path));
}
