//! The gateway as the pages and the HTTP interface reach it, and the one way to a change: the right, the change, the audit log.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde_json::json;
use time::OffsetDateTime;
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;

use super::access::Access;
use super::fault::{Fault, Outcome};
use super::history::{EVERY, History};
use super::role::{Right, Role, Who};
use super::update::Updates;
use crate::audit::trail::make;
use crate::audit::{self, Log};
use crate::cluster::documents::Documents;
use crate::config::StoreSettings;
use crate::numbers::ask;
use crate::process::privileges;
use crate::quarantine::place::Place;

/// Failed logins that are noted within a minute.
const STRANGERS_MINUTE_MAX: u32 = 20;

/// Characters of the thing that was changed, in a note.
const ON_CHARS_MAX: usize = 300;

/// The gateway.
pub struct Site {
    pub access: Access,
    pub history: History,
    /// Where the gateway's numbers are.
    pub metrics: Option<SocketAddr>,
    /// The quarantines and the configuration that names them.
    pub place: Place,
    /// The configuration.
    pub path: PathBuf,
    pub hostname: String,
    /// The folder of people, tokens and the audit log; without one, changes are lines of the standard error alone.
    pub folder: Option<PathBuf>,
    /// Runs of `sluice update` that were begun here.
    pub updates: Updates,
    store: OnceLock<Store>,
    log: OnceLock<Log>,
    strangers: Strangers,
}

/// Notes of strangers within the minute: they do not fill the log.
#[derive(Debug, Default)]
struct Strangers(Mutex<(i64, u32)>);

impl Strangers {
    /// Takes one more, if this minute has room for it.
    fn take(&self, minute: i64) -> bool {
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.0 != minute {
            *taken = (minute, 0);
        }
        taken.1 = taken.1.saturating_add(1);
        taken.1 <= STRANGERS_MINUTE_MAX
    }
}

/// The files of a mail store.
pub struct Store {
    /// Its settings.
    pub settings: StoreSettings,
    /// The file of accounts.
    pub accounts: privileges::Place,
    /// The store itself.
    pub volume: privileges::Place,
    /// The keys that mail is signed with.
    pub keys: privileges::Place,
    /// The documents of its cluster.
    pub documents: Option<Documents>,
}

impl Site {
    /// The gateway of a configuration.
    pub fn new(
        access: Access,
        place: Place,
        path: &Path,
        metrics: Option<SocketAddr>,
        folder: Option<PathBuf>,
    ) -> Site {
        Site {
            access,
            history: History::default(),
            metrics: metrics.or(place.config.metrics.address),
            hostname: place.config.hostname.clone(),
            path: path.into(),
            place,
            folder,
            updates: Updates::default(),
            store: OnceLock::new(),
            log: OnceLock::new(),
            strangers: Strangers::default(),
        }
    }

    /// Asks the gateway for its numbers, again and again.
    pub async fn watch(self: Arc<Site>) {
        let Some(address) = self.metrics else {
            return self.history.take(Err("the configuration has no address in [metrics]".into()));
        };
        loop {
            let answer = spawn_blocking(move || ask(address).map_err(|error| format!("{address}: {error}"))).await;
            self.history.take(answer.unwrap_or_else(|error| Err(error.to_string())));
            tokio::time::sleep(EVERY).await;
        }
    }

    /// The mail store, whose folder may be made after this process has begun.
    ///
    /// # Errors
    /// When there is none, or its folder cannot be opened.
    pub fn store(&self) -> Result<&Store, Fault> {
        if let Some(store) = self.store.get() {
            return Ok(store);
        }
        if privileges::is_root() && Handle::try_current().is_ok() {
            // Root becomes the owner of the folder while there is one thread, or never.
            return Err(Fault::away(
                "the folder of the store was not there when this was started by root: start it again",
            ));
        }
        let settings = self.place.config.store.as_ref();
        let settings = settings.ok_or_else(|| Fault::missing("the configuration has no table [store]"))?;
        // Read as whoever started this.
        let documents = Documents::of(&self.place.config).map_err(Fault::away)?;
        let enter = |path: PathBuf| privileges::Place::enter(&path).map_err(Fault::away);
        let opened = Store {
            accounts: enter(settings.accounts())?,
            volume: enter(settings.volume())?,
            keys: enter(settings.dkim())?,
            documents,
            settings: settings.clone(),
        };
        Ok(self.store.get_or_init(|| opened))
    }

    /// The audit log, if there is a folder for it.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn log(&self) -> Result<Option<&Log>, Fault> {
        let Some(folder) = &self.folder else { return Ok(None) };
        if let Some(log) = self.log.get() {
            return Ok(Some(log));
        }
        let path = folder.join("audit");
        let opened = make(folder).and_then(|()| Log::open(&path));
        let opened = opened.map_err(|error| Fault::away(format!("{}: {error}", path.display())))?;
        Ok(Some(self.log.get_or_init(|| opened)))
    }

    /// Makes a change for somebody who has the right, and notes it with its outcome: `what` is a verb, `on` the thing that is changed.
    /// Without room for the note nothing is changed.
    ///
    /// # Errors
    /// When the right is lacking, when it cannot be noted, and what the change fails with.
    pub fn change(&self, who: &Who, right: Right, what: &str, on: &str, work: impl FnOnce() -> Outcome) -> Outcome {
        if !who.may(right) {
            return Err(Fault::forbidden());
        }
        self.reserve()?;
        let outcome = work();
        self.note(who, what, on, outcome.as_ref().err().map(|fault| fault.text.as_str())).map_err(unnoted)?;
        outcome
    }

    /// Takes room for a note, before what is noted is done.
    ///
    /// # Errors
    /// When there is none.
    pub fn reserve(&self) -> Result<(), Fault> {
        self.log()?.map_or(Ok(()), Log::reserve).map_err(unnoted)
    }

    /// Notes a thing that somebody has done, or failed to do.
    ///
    /// # Errors
    /// When it is not on stable storage.
    pub fn note(&self, who: &Who, what: &str, on: &str, failed: Option<&str>) -> io::Result<()> {
        let line = Line { name: &who.name, role: Some(who.role), from: who.from, is_program: who.is_program };
        self.write(&line, what, on, failed)
    }

    /// Notes that somebody could not log in by a name.
    ///
    /// # Errors
    /// When it is not on stable storage.
    pub fn note_stranger(&self, name: &str, from: IpAddr) -> io::Result<()> {
        if !self.strangers.take(OffsetDateTime::now_utc().unix_timestamp() / 60) {
            return Ok(());
        }
        let name: String = name.chars().take(64).collect();
        let line = Line { name: &name, role: None, from, is_program: false };
        self.write(&line, "logged in as", &name, Some("name, password or code is wrong"))
    }

    fn write(&self, line: &Line, what: &str, on: &str, failed: Option<&str>) -> io::Result<()> {
        let on: String = on.chars().take(ON_CHARS_MAX).collect();
        let (name, from, on) = (safe(line.name), line.from, on.as_str());
        let by = if line.is_program { "a program" } else { "a browser" };
        match failed {
            None => eprintln!("{from}, {name}, {by}: {what} {}", safe(on)),
            Some(why) => eprintln!("{from}, {name}, {by}: not {what} {}: {}", safe(on), safe(why)),
        }
        let Ok(Some(log)) = self.log() else { return Ok(()) };
        log.note(&json!({
            "time": audit::now(), "who": line.name, "role": line.role.map(Role::name), "from": from.to_string(),
            "is_program": line.is_program, "what": what, "on": on, "failed": failed,
        }))
    }
}

/// Somebody, as a line of the log has it.
struct Line<'a> {
    name: &'a str,
    role: Option<Role>,
    from: IpAddr,
    is_program: bool,
}

fn unnoted(error: io::Error) -> Fault {
    Fault::away(format!("the audit log cannot be written: {error}"))
}

/// Text of others in a line of the log.
fn safe(text: &str) -> String {
    text.chars().take(300).map(|letter| if letter.is_control() { '?' } else { letter }).collect()
}
