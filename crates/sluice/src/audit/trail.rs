//! The audit log as commands write it: `sluice account`, `domain`, `dkim`, `queue`, `quarantine` and `admin`.
//!
//! The log is that of the page, by the configuration. A command that names a file or a folder in place of the configuration has none.
//! Without room for the line nothing is changed.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use nix::unistd::{Uid, User, geteuid, getuid};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use serde_json::json;

use super::{Log, now};
use crate::config::Config;
use crate::output::Failure;
use crate::process::privileges::{Place, is_root};

/// `from` of the lines.
pub const FROM: &str = "command line";

/// Characters of the thing that is changed.
const ON_CHARS_MAX: usize = 300;

/// The number of a process that nobody has logged in for.
const NO_LOGIN: u32 = u32::MAX;

/// The audit log for one command.
pub struct Trail {
    who: String,
    /// The folder of the log, which may have to be made; none without a configuration.
    folder: Option<(Place, PathBuf)>,
    log: OnceLock<Log>,
}

impl Trail {
    /// The log of a configuration, to be found before root becomes somebody else. An empty one without a configuration.
    ///
    /// # Errors
    /// When the configuration cannot be read, or the log is not its folder's owner's.
    pub fn find(config: &Path) -> Result<Trail, Failure> {
        match config.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            true => Ok(Trail::none()),
            false => Trail::of(&Config::read(config)?),
        }
    }

    /// No log.
    pub fn none() -> Trail {
        Trail { who: invoker(), folder: None, log: OnceLock::new() }
    }

    /// As [`Trail::find`], with a configuration that was read already.
    ///
    /// # Errors
    /// As [`Trail::find`].
    pub fn of(config: &Config) -> Result<Trail, Failure> {
        let Some(folder) = folder(config) else { return Ok(Trail::none()) };
        let above = folder.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // The server that makes the folder above has not begun yet: there is nobody to read a log.
        if !above.is_dir() {
            return Ok(Trail::none());
        }
        let trail = Trail { who: invoker(), folder: Some((Place::find(above)?, folder.clone())), log: OnceLock::new() };
        let path = folder.join("audit");
        if is_root() && path.symlink_metadata().is_ok() {
            let log = open(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            trail.log.get_or_init(|| log);
        }
        Ok(trail)
    }

    /// Makes a change and notes it with its outcome, as the page does: `what` is a verb, `on` the thing that is changed.
    ///
    /// # Errors
    /// When it cannot be noted, and what the change fails with.
    pub fn change<T, E: ToString + From<String>>(
        &self,
        what: &str,
        on: &str,
        work: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        self.reserve()?;
        let outcome = work();
        self.note(what, on, outcome.as_ref().err().map(ToString::to_string))?;
        outcome
    }

    /// Takes room for a note, before what is noted is done.
    ///
    /// # Errors
    /// When there is none.
    pub fn reserve(&self) -> Result<(), String> {
        self.log().and_then(|log| log.map_or(Ok(()), Log::reserve)).map_err(unnoted)
    }

    /// Notes a thing that was done, or failed.
    ///
    /// # Errors
    /// When it is not on stable storage.
    pub fn note(&self, what: &str, on: &str, failed: Option<String>) -> Result<(), String> {
        let Some(log) = self.log().map_err(unnoted)? else { return Ok(()) };
        let on: String = on.chars().take(ON_CHARS_MAX).collect();
        let line = json!({
            "time": now(), "who": self.who, "role": null, "from": FROM, "is_program": true, "what": what, "on": on,
            "failed": failed,
        });
        log.note(&line).map_err(unnoted)
    }

    /// The log; one that is not there yet is made by its owner alone.
    fn log(&self) -> io::Result<Option<&Log>> {
        let Some((above, folder)) = &self.folder else { return Ok(None) };
        if let Some(log) = self.log.get() {
            return Ok(Some(log));
        }
        let folder = above.way().join(folder.file_name().unwrap_or_default());
        if !above.is_of(geteuid().as_raw()) && !folder.is_dir() {
            return Ok(None);
        }
        make(&folder)?;
        let log = Log::open(&folder.join("audit"))?;
        Ok(Some(self.log.get_or_init(|| log)))
    }
}

/// Makes the folder of people, tokens and the audit log, but none above it.
///
/// # Errors
/// When that cannot be.
pub fn make(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// The folder of a configuration.
pub fn folder(config: &Config) -> Option<PathBuf> {
    let beside = config.store.as_ref().map(|store| store.folder.join("admin"));
    config.admin.folder.clone().or(beside)
}

fn unnoted(error: io::Error) -> String {
    format!("the audit log cannot be written: {error}")
}

/// The log that is there already, for root: no link, and its folder's owner's.
fn open(path: &Path) -> Result<Log, Failure> {
    let file: File = Place::find(path)?.open(true)?;
    fcntl_setfl(&file, fcntl_getfl(&file)? | OFlags::APPEND)?;
    Ok(Log::from(file))
}

/// The user who has logged in to this machine, and the one that the command runs as, if it is another.
fn invoker() -> String {
    let name = |uid: Uid| User::from_uid(uid).ok().flatten().map_or_else(|| uid.to_string(), |user| user.name);
    let login = std::fs::read_to_string("/proc/self/loginuid").ok().and_then(|text| text.trim().parse::<u32>().ok());
    let own = getuid();
    match login.filter(|&login| login != NO_LOGIN && login != own.as_raw()) {
        Some(login) => format!("{} as {}", name(Uid::from_raw(login)), name(own)),
        None => name(own),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_commands_are_noted_with_their_outcome() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("sluice.toml");
        std::fs::write(&path, format!("[admin]\nfolder = \"{}\"\n", place.path().join("admin").display())).unwrap();
        let trail = Trail::find(&path).unwrap();
        assert_eq!(trail.change("added account", "ann", || Ok::<_, String>(7)), Ok(7));
        assert_eq!(
            trail.change("removed account", "x", || Err::<(), _>("there is none".to_owned())),
            Err("there is none".into())
        );
        // The next command finds the log that is there.
        Trail::find(&path).unwrap().change("added domain", "mx.test", || Ok::<_, String>(())).unwrap();
        let lines = Log::open(&place.path().join("admin/audit")).unwrap().last(9).unwrap();
        let told: Vec<_> = lines.iter().map(|line| (line["what"].as_str().unwrap(), line["failed"].as_str())).collect();
        assert_eq!(told, [("added domain", None), ("removed account", Some("there is none")), ("added account", None)]);
        assert!(
            lines.iter().all(|line| line["from"] == FROM && line["who"].as_str().is_some_and(|who| !who.is_empty()))
        );
        // A log that is somebody else's file is none.
        std::fs::remove_file(place.path().join("admin/audit")).unwrap();
        std::fs::create_dir(place.path().join("admin/audit")).unwrap();
        let blocked = Trail::find(&path).and_then(|trail| {
            trail.change("added account", "ann", || -> Result<(), Failure> { panic!("it would not be noted") })
        });
        assert!(blocked.is_err());
        assert!(Trail::find(&place.path().join("none")).unwrap().change("x", "y", || Ok::<_, String>(1)).is_ok());
    }
}
