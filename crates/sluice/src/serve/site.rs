//! Everything that is made from one reading of the configuration.

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

use flow::Inspector;
use inspect::Engine;
use jail::{Counts, Jails, Local, Memory, Suspects};
use tokio_rustls::rustls::ServerConfig;

use super::clamd::Clamd;
use super::door::{Door, House};
use super::identity::Identities;
use super::known::Known;
use super::log;
use super::metrics::Metrics;
use super::notice::Notices;
use super::pool::Pool;
use super::{rights, tls};
use crate::cli::Serve;
use crate::config::{Config, Isolation};
use crate::database::{Loaded, Wanted};
use crate::{Failure, clamd_conf, database, privileges};

/// What one run of the program serves, until the next reload.
#[derive(Clone)]
pub struct Site {
    /// The configuration.
    pub config: Config,
    /// How many event loops there are.
    pub threads: usize,
    /// Who inspects, with which signatures and bounds.
    pub inspector: Arc<dyn Inspector>,
    /// The processes that do, if they are others.
    pub jails: Option<Arc<Jails>>,
    /// What was counted of them, and what they died of; for the whole run.
    pub counts: Arc<Counts>,
    /// See `counts`.
    pub suspects: Arc<Suspects>,
    /// Where the signatures come from.
    pub wanted: Wanted,
    /// What has become of them.
    pub database: Arc<Loaded>,
    /// Passwords that are tried where something is encrypted.
    pub passwords: Arc<[Box<[u8]>]>,
    /// How many signatures.
    pub signatures: u64,
    /// How often the signatures have been loaded.
    pub generation: u64,
    /// What clients are shown in a handshake, where there is a certificate.
    pub tls: Option<Arc<ServerConfig>>,
    /// The certificates in it.
    pub identities: Arc<Identities>,
    /// The sessions of all doors; one count for the whole run.
    pub house: Arc<House>,
    /// The doors.
    pub doors: Vec<Arc<Door>>,
    /// The door that speaks clamd's protocol.
    pub clamd: Arc<Clamd>,
    /// Who is told what was done.
    pub notices: Arc<Notices>,
    /// When the signatures were loaded.
    pub loaded: time::OffsetDateTime,
    /// When the newest of ClamAV's containers was built, in seconds since 1970.
    pub built: Option<u64>,
    /// The pool of head windows; one for the whole run.
    pub pool: Pool,
    /// What inspections hold; one for the whole run.
    pub memory: Arc<Memory>,
    /// What is known of messages in mailboxes; one memory for the whole run.
    pub known: Arc<Known>,
    /// The numbers; one set for the whole run.
    pub metrics: Arc<Metrics>,
    /// Where the numbers are asked for, until an event loop takes it.
    pub metrics_socket: Arc<Mutex<Option<TcpListener>>>,
}

/// A date as `ctime` writes it.
const CTIME: &[time::format_description::BorrowedFormatItem<'_>] = time::macros::format_description!(
    "[weekday repr:short] [month repr:short] [day padding:space] [hour]:[minute]:[second] [year]"
);

/// What is served without a configuration.
const FIRST_STEPS: &str = r#"
[[listener]]
protocol = "smtp"
address = "127.0.0.1:2525"
forward = "maildir:maildir"
"#;

impl Site {
    /// Reads configuration and signatures and opens the listening sockets that `old` does not have.
    ///
    /// # Errors
    /// When something cannot be read, understood or opened; nothing has changed then.
    pub fn load(args: &Serve, old: Option<&Site>) -> Result<Site, Failure> {
        let mut config = match (&args.config, &args.clamd_conf) {
            (Some(path), _) => Config::read(path)?,
            (None, Some(_)) => Config::default(),
            (None, None) => Config::parse(FIRST_STEPS, "built-in configuration")?,
        };
        let undone = match &args.clamd_conf {
            Some(path) => clamd_conf::apply(&mut config, path)?,
            None => Vec::new(),
        };
        config.check()?;
        config.database.paths.extend(args.database.databases.iter().cloned());
        if !config.serves() {
            return Err("the configuration has no [[listener]], and no address in [clamd]".into());
        }
        if old.is_none() {
            log::start(&config.log);
        }
        undone.iter().for_each(|what| tracing::warn!(what, "not done"));
        config.warnings().iter().for_each(|warning| tracing::warn!("{warning}"));
        let mut wanted = config.database.wanted(args.database.cache.as_ref());
        wanted.certificates = args.database.certificates.clone().or(wanted.certificates);
        wanted.choose(&args.database.pua);
        if old.is_some() {
            rights::check_reload(args, &config, &wanted)?;
        }
        let (pool, memory) = match old {
            Some(old) => (old.pool.clone(), old.memory.clone()),
            None => (
                Pool::new(config.resources.head_pool_bytes),
                Arc::new(Memory::new(config.resources.inspection_pool_bytes)),
            ),
        };
        let (metrics, known) = old.map(|old| (old.metrics.clone(), old.known.clone())).unwrap_or_default();
        let generation = old.map_or(1, |old| old.generation + 1);
        // The event loops that run are those of the start.
        let threads = old.map_or_else(|| threads(&config), |old| old.threads);
        let metrics_socket = match (config.metrics.address, old) {
            (Some(address), Some(old)) if old.config.metrics.address == Some(address) => old.metrics_socket.clone(),
            (Some(address), _) => Arc::new(Mutex::new(Some(metrics_socket(address)?))),
            (None, _) => Arc::default(),
        };
        let identities = Arc::new(Identities::load(&config.tls)?);
        let tls = match config.tls.certificates.is_empty() {
            true => None,
            false => Some(tls::server(identities.clone(), config.tls.minimum)?),
        };
        let house = old.map_or_else(|| Arc::new(House::new(0)), |old| old.house.clone());
        house.allow(config.resources.sessions_max);
        let doors = config.listeners.iter().map(|listener| {
            let known = old.and_then(|old| old.doors.iter().find(|door| door.listener.address == listener.address));
            match known {
                Some(door) => door.with_settings(listener.clone(), &config).map(Arc::new),
                None => Door::open(listener.clone(), &config, threads, house.clone()).map(Arc::new),
            }
        });
        let doors = doors.collect::<Result<Vec<_>, String>>()?;
        let clamd = Arc::new(Clamd::load(&config.clamd, old.map(|old| &*old.clamd), threads)?);
        match old {
            Some(_) => rights::make_folders(&config, &wanted)?,
            // What strangers have made is read after this.
            None => rights::settle(args, &config, &wanted)?,
        }
        let database = match old.filter(|old| old.wanted == wanted) {
            Some(old) => wanted.refresh(&old.database)?.map_or_else(|| old.database.clone(), Arc::new),
            None => Arc::new(wanted.open(&mut |_, _| ())?),
        };
        database.warn();
        let (counts, suspects) = old.map(|old| (old.counts.clone(), old.suspects.clone())).unwrap_or_default();
        let (inspector, jails) = inspector(&config, threads, &database, &memory, (&counts, &suspects))?;
        let notices = Notices::load(&config.notices, &config.hostname, old.map(|old| &*old.notices))?;
        let signatures = database.signatures;
        let loaded = time::OffsetDateTime::now_utc();
        let built = database::newest(&wanted.paths)?;
        let passwords = config.archives.passwords.iter().map(|word| word.as_bytes().into()).collect();
        Ok(Site {
            config,
            threads,
            inspector,
            jails,
            counts,
            suspects,
            wanted,
            database,
            passwords,
            signatures,
            generation,
            tls,
            identities,
            house,
            doors,
            clamd,
            notices: Arc::new(notices),
            loaded,
            built,
            pool,
            memory,
            known,
            metrics,
            metrics_socket,
        })
    }

    /// The same with the signatures as the files have them now; nothing if they have not changed.
    ///
    /// # Errors
    /// When something cannot be read or understood.
    pub fn with_new_signatures(&self) -> Result<Option<Site>, Failure> {
        let Some(database) = self.wanted.refresh(&self.database)? else { return Ok(None) };
        database.warn();
        let rest = (&self.counts, &self.suspects);
        let (inspector, jails) = inspector(&self.config, self.threads, &database, &self.memory, rest)?;
        Ok(Some(Site {
            inspector,
            jails,
            signatures: database.signatures,
            generation: self.generation + 1,
            loaded: time::OffsetDateTime::now_utc(),
            built: database::newest(&self.wanted.paths)?,
            database: Arc::new(database),
            ..self.clone()
        }))
    }

    /// How many days ago the newest of ClamAV's containers was built, if there is one.
    pub fn age_days(&self) -> Option<u64> {
        let now = u64::try_from(database::now()).unwrap_or(0);
        self.built.map(|built| now.saturating_sub(built) / (24 * 3_600))
    }

    /// Whether the signatures are so old that nobody should rely on them.
    pub fn is_too_old(&self) -> bool {
        is_older(self.age_days(), self.config.database.unready_days)
    }

    /// Bytes that inspections may still borrow.
    pub fn inspection_free_bytes(&self) -> u64 {
        self.jails.as_ref().map_or_else(|| self.memory.free_bytes() as u64, |jails| jails.free_bytes())
    }

    /// Says in the log that the signatures are old, if they are.
    pub fn warn_of_age(&self) {
        if is_older(self.age_days(), self.config.database.warn_days) {
            tracing::warn!(days = self.age_days(), "old signatures: the newest container has not changed for days");
        }
    }

    /// What clients of clamd are told of us: they look for its name and the version whose protocol is spoken. What
    /// follows are the generation of the signatures and when they were loaded.
    pub fn clamd_version(&self) -> String {
        let date = self.loaded.format(&CTIME).unwrap_or_default();
        format!("ClamAV 1.4.6 (Sluice {})/{}/{date}", env!("CARGO_PKG_VERSION"), self.generation)
    }
}

/// Who inspects with these signatures: processes of their own, or this one.
fn inspector(
    config: &Config,
    threads: usize,
    database: &Loaded,
    memory: &Arc<Memory>,
    (counts, suspects): (&Arc<Counts>, &Arc<Suspects>),
) -> Result<(Arc<dyn Inspector>, Option<Arc<Jails>>), Failure> {
    if config.isolation == Isolation::None {
        let engine = Engine { database: database.database.clone(), limits: config.limits.limits() };
        return Ok((Arc::new(Local::new(Arc::new(engine), Some(memory.clone()))), None));
    }
    let settings = jail::Settings {
        count: threads,
        limits: config.limits.limits(),
        memory_bytes: config.resources.inspection_pool_bytes,
        user: privileges::is_root().then_some(privileges::NOBODY),
    };
    let (jails, confined) = Jails::start(settings, database.signatures()?, counts.clone(), suspects.clone())?;
    tracing::info!(processes = threads, %confined, "inspections are isolated");
    if !confined.is_enough() {
        tracing::warn!(%confined, "inspections are not confined as they should be");
    }
    let jails = Arc::new(jails);
    Ok((jails.clone(), Some(jails)))
}

fn metrics_socket(address: SocketAddr) -> Result<TcpListener, String> {
    let socket = TcpListener::bind(address).and_then(|socket| socket.set_nonblocking(true).map(|()| socket));
    socket.map_err(|error| format!("cannot listen on {address} for the metrics: {error}"))
}

fn threads(config: &Config) -> usize {
    match config.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    }
}

/// Whether so many days are reached, where 0 means never.
fn is_older(age: Option<u64>, days: u32) -> bool {
    days > 0 && age.is_some_and(|age| age >= u64::from(days))
}
