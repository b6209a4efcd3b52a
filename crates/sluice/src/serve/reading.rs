//! A reading of the configuration and of the arguments: what a start or a reload wants, before anything is built or changed.

use crate::cli::Serve;
use crate::config::{Config, clamd_conf};
use crate::database::Wanted;
use crate::logging;
use crate::output::Failure;

use super::watcher::{Stamp, stamps};

/// The name of the configuration that is served without another one.
pub const BUILT_IN: &str = "built-in configuration";

/// Its text.
pub const FIRST_STEPS: &str = r#"
[metrics]
address = "127.0.0.1:2081"

[[listener]]
protocol = "smtp"
address = "127.0.0.1:2525"
forward = "store:"

[store]
folder = "store"
size = "256M"
imap = ["127.0.0.1:2143"]
webmail = ["127.0.0.1:2080"]
relay = "smtp://127.0.0.1:2525"
"#;

/// A configuration, with what the command line adds.
pub struct Reading {
    /// The configuration.
    pub config: Config,
    /// The state of the lists that it names, when they were read.
    pub stamps: Vec<Option<Stamp>>,
    /// The signatures.
    pub wanted: Wanted,
}

impl Reading {
    /// Reads and checks it, and warns of what stands in it; the first one of a process begins the log.
    ///
    /// # Errors
    /// When it cannot be read or understood, or serves nothing.
    pub fn of(args: &Serve, is_first: bool) -> Result<Reading, Failure> {
        let (reading, undone) = Reading::quiet(args)?;
        let config = &reading.config;
        if !config.serves() {
            return Err("the configuration has no [[listener]], and no address in [clamd] or [store]".into());
        }
        if is_first {
            logging::start(&config.log);
        }
        undone.iter().for_each(|what| tracing::warn!(what, "unsupported option ignored"));
        config.warnings().iter().for_each(|warning| tracing::warn!("{warning}"));
        Ok(reading)
    }

    /// Reads it in a process beside the one that has warned of what stands in it, and begins the log.
    ///
    /// # Errors
    /// When it cannot be read or understood.
    pub fn again(args: &Serve) -> Result<Reading, Failure> {
        let (reading, _) = Reading::quiet(args)?;
        logging::start(&reading.config.log);
        Ok(reading)
    }

    /// Reads and checks it; the options that are passed over, too.
    fn quiet(args: &Serve) -> Result<(Reading, Vec<String>), Failure> {
        let mut config = match (&args.config, &args.clamd_conf) {
            (Some(path), _) => Config::read(path)?,
            (None, Some(_)) => Config::default(),
            (None, None) => Config::parse(FIRST_STEPS, BUILT_IN)?,
        };
        config.has_credentials()?;
        let stamps = stamps(&config.watched());
        let undone = match &args.clamd_conf {
            Some(path) => clamd_conf::apply(&mut config, path)?,
            None => Vec::new(),
        };
        config.check()?;
        config.database.paths.extend(args.database.databases.iter().cloned());
        let mut wanted = config.database.wanted(args.database.cache.as_ref());
        wanted.certificates = args.database.certificates.clone().or(wanted.certificates);
        wanted.choose(&args.database.pua);
        Ok((Reading { config, stamps, wanted }, undone))
    }
}

/// A new configuration that this process cannot take over, and a new one can; the reason.
#[derive(Debug)]
pub struct NeedsProcess(pub String);

impl std::fmt::Display for NeedsProcess {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str(&self.0)
    }
}

impl std::error::Error for NeedsProcess {}

/// Checks what a process settles once, when it starts.
///
/// # Errors
/// When some of it has changed.
pub fn check_fixed(old: &Config, new: &Config) -> Result<(), NeedsProcess> {
    let (before, after) = (&old.resources, &new.resources);
    let size = |config: &Config| config.store.as_ref().map(|store| store.size);
    let fixed = [
        ("threads", old.threads == new.threads),
        ("user and group", (&old.user, &old.group) == (&new.user, &new.group)),
        ("confine", old.confine == new.confine),
        ("head_pool_bytes", before.head_pool_bytes == after.head_pool_bytes),
        ("inspection_pool_bytes", before.inspection_pool_bytes == after.inspection_pool_bytes),
        ("[log]", old.log == new.log),
        ("[store] size", size(old) == size(new)),
    ];
    let changed: Vec<&str> = fixed.iter().filter(|(_, is_same)| !is_same).map(|(name, _)| *name).collect();
    match changed.is_empty() {
        true => Ok(()),
        false => Err(NeedsProcess(format!("changed: {}", changed.join(", ")))),
    }
}
