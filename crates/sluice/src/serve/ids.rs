//! Intrusion rules, as processes that inspect are handed them, and the one place that counts and writes down their alerts.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use edge::message::intrusion::{Handshake, Heard, Outcome, Scene, Sentinel};
use edge::metrics::Metrics;
use flow::{Alert, ObjectReport, wire};
use inspect::IntrusionRules;
use jiff::Timestamp;
use rules::ids::{Counts, Entry, Matched, Register};

use super::scorer::sealed;
use crate::config::ids::Record;
use crate::config::{Config, Isolation};
use crate::eve::doors::{self, Ends};
use crate::output::Failure;

/// Rules that do not load and that the log names.
const PROBLEMS_SHOWN: usize = 10;

/// Intrusion rules, ready to be used.
pub struct Intrusion {
    /// Hears of matches at the doors.
    pub lookout: Arc<Lookout>,
    /// The rules, where this process inspects.
    pub rules: Option<IntrusionRules>,
    /// The file for those that inspect.
    file: Option<OwnedFd>,
}

/// Counts matches and writes alerts down.
pub struct Lookout {
    register: Register,
    counts: Arc<Mutex<Counts>>,
    eve: Option<Mutex<File>>,
    fast: Option<Mutex<File>>,
    syslog: Option<Syslog>,
    /// Records beside alerts.
    records: Box<[Record]>,
    metrics: Arc<Metrics>,
}

impl Intrusion {
    /// Reads the rules of the configuration; none where it names none. Rules that do not load are named in the log. Counts of
    /// `old` go on.
    ///
    /// # Errors
    /// When a file cannot be read, or a log cannot be opened.
    pub fn load(
        config: &Config,
        metrics: &Arc<Metrics>,
        old: Option<&Intrusion>,
    ) -> Result<Option<Intrusion>, Failure> {
        let Some(settings) = config.ids.as_ref().filter(|ids| !ids.rules.is_empty()) else { return Ok(None) };
        let changes = settings.changes()?;
        changes.problems().iter().for_each(|problem| tracing::warn!(%problem, "line of a rule change ignored"));
        let files = settings.collect(&changes)?;
        let rules = files.compile();
        let (set, census) = (rules.set(), rules.set().census());
        set.problems()
            .iter()
            .take(PROBLEMS_SHOWN)
            .for_each(|problem| tracing::warn!(%problem, "intrusion rule or threshold not loaded"));
        let refused: usize = census.refused.values().sum();
        tracing::info!(rules = census.rules, active = census.active, refused, "intrusion rules loaded");
        let lookout = Lookout {
            register: Register::of(set),
            counts: old.map(|old| old.lookout.counts.clone()).unwrap_or_default(),
            eve: settings.eve.as_deref().map(append).transpose()?,
            fast: settings.fast.as_deref().map(append).transpose()?,
            syslog: settings.syslog.as_deref().map(Syslog::dial).transpose()?,
            records: settings.records.as_slice().into(),
            metrics: metrics.clone(),
        };
        let is_here = config.isolation == Isolation::None;
        let file = if is_here { None } else { Some(sealed(&wire::write(&files, Vec::new()))?) };
        Ok(Some(Intrusion { lookout: Arc::new(lookout), rules: is_here.then_some(rules), file }))
    }

    /// The file, for one more set of processes.
    ///
    /// # Errors
    /// When there are no descriptors left.
    pub fn file(&self) -> std::io::Result<Option<OwnedFd>> {
        self.file.as_ref().map(OwnedFd::try_clone).transpose()
    }
}

/// A log that lines are appended to.
fn append(path: &Path) -> Result<Mutex<File>, Failure> {
    let file = OpenOptions::new().append(true).create(true).open(path);
    Ok(Mutex::new(file.map_err(|error| format!("ids: {}: {error}", path.display()))?))
}

/// A system log.
struct Syslog {
    path: PathBuf,
    socket: UnixDatagram,
}

impl Syslog {
    fn dial(path: &Path) -> Result<Syslog, Failure> {
        let told = |error: io::Error| format!("ids.syslog: {}: {error}", path.display());
        let socket = UnixDatagram::unbound().map_err(told)?;
        socket.connect(path).map_err(told)?;
        socket.set_nonblocking(true).map_err(told)?;
        Ok(Syslog { path: path.into(), socket })
    }

    /// Sends a line. The socket of a daemon that was started again is another one at the same path.
    fn send(&self, line: &[u8]) -> io::Result<usize> {
        match self.socket.send(line) {
            Err(error) if error.kind() != ErrorKind::WouldBlock => {
                self.socket.connect(&self.path)?;
                self.socket.send(line)
            }
            sent => sent,
        }
    }
}

impl Sentinel for Lookout {
    fn hear(&self, alert: Alert, scene: &Scene) -> Heard {
        let place = alert.rule as usize;
        let Some(entry) = self.register.get(place) else { return Heard::default() };
        let ends = Ends::of(alert, scene);
        let now = Timestamp::now();
        let matched = Matched {
            source: ends.source.ip(),
            target: ends.target.ip(),
            flow: doors::flow(scene),
            now_ms: u64::try_from(now.as_millisecond()).unwrap_or_default(),
        };
        let effect = {
            let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
            self.register.effect(place, matched, &mut counts)
        };
        if effect.blocks {
            self.metrics.ids_blocked_total.add(1);
        }
        if effect.tells {
            self.tell(entry, scene, &ends, now, effect.blocks);
        }
        let blocks = effect.blocks.then(|| format!("Intrusion.{}", entry.sid));
        Heard { blocks, is_told: effect.tells }
    }

    fn wants_files(&self) -> bool {
        self.eve.is_some() && self.records.contains(&Record::Fileinfo)
    }

    fn file(&self, file: &ObjectReport, scene: &Scene) {
        if let Some(eve) = self.eve.as_ref().filter(|_| self.records.contains(&Record::Fileinfo))
            && let Some(line) = doors::file(file, scene, Timestamp::now())
        {
            write(eve, &line.to_string());
        }
    }

    fn wants_handshakes(&self) -> bool {
        self.eve.is_some() && self.records.contains(&Record::Tls)
    }

    fn handshake(&self, handshake: &Handshake) {
        if let Some(eve) = self.eve.as_ref().filter(|_| self.wants_handshakes())
            && let Some(line) = doors::handshake(handshake, Timestamp::now())
        {
            write(eve, &line.to_string());
        }
    }

    fn end(&self, outcome: Outcome<'_>, scene: &Scene) {
        let Some(eve) = self.eve.as_ref().filter(|_| !self.records.is_empty()) else { return };
        let lines = doors::ended(outcome, scene, Timestamp::now());
        for (_, line) in lines.filter(|(record, _)| self.records.contains(record)) {
            write(eve, &line.to_string());
        }
    }
}

impl Lookout {
    fn tell(&self, entry: &Entry, scene: &Scene, ends: &Ends, now: Timestamp, is_blocked: bool) {
        self.metrics.ids_alerts_total.add(1);
        tracing::info!(
            id = &*scene.id,
            sid = entry.sid,
            rule = &*entry.message,
            source = %ends.source,
            target = %ends.target,
            blocked = is_blocked,
            "intrusion"
        );
        if let Some(eve) = &self.eve {
            write(eve, &doors::alert(entry, scene, ends, now, is_blocked).to_string());
        }
        if let Some(fast) = &self.fast {
            write(fast, &doors::fast(entry, ends, now, is_blocked));
        }
        if let Some(syslog) = &self.syslog
            && let Err(error) = syslog.send(doors::syslog(entry, ends, is_blocked).as_bytes())
        {
            tracing::error!(%error, "cannot write an alert to the system log");
        }
    }
}

/// Appends a line, whole or not at all as far as the system goes.
fn write(log: &Mutex<File>, line: &str) {
    let mut file = log.lock().unwrap_or_else(PoisonError::into_inner);
    if let Err(error) = file.write_all(format!("{line}\n").as_bytes()) {
        tracing::error!(%error, "cannot write an alert");
    }
}
