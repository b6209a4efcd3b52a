//! Everything that is made from one reading of the configuration.

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

use edge::message::asking;
use edge::message::intrusion::Sentinel;
use edge::message::memory;
use edge::message::notice::Notices;
use edge::message::passage::Means;
use edge::message::pool::Pool;
use edge::metrics::Metrics;
use edge::net::identity::Identities;
use edge::net::opener::Opener;
use edge::net::{listening, tls};
use edge::porch::door::Door;
use edge::porch::filter::{AllowAll, Filter};
use edge::porch::gate::House;
use edge::porch::runtime::{Measure, Runtime, Settings, Signatures};
use edge::recipients::directory::Directory;
use edge::scanner::door::Clamd;
use edge::settings::{Listener, Rulings};
use edge::trust::warden::Warden;
use jail::Bells;

use super::exposition;
use super::inspector::{self, Common, Rules};
use super::logins::Users;
use super::reading::{NeedsProcess, Reading, check_fixed};
use super::rights;
use super::scorer::SpamRules;
use super::watcher::Stamp;
use crate::cli::Serve;
use crate::cluster;
use crate::config::Config;
use crate::database::{self, Loaded, Wanted};
use crate::dnsbl::ask::{self, Lists, Own};
use crate::learned::{Bounds, Memories};
use crate::lookups::Lookups;
use crate::output::Failure;
use crate::resolver::Resolver;
use crate::resolver::blocks::Blocks;
use crate::store::local::Store;

/// A socket that the event loop takes which serves the metrics.
type MetricsSocket = Arc<Mutex<Option<TcpListener>>>;

/// State of the program until the next reload: the doors' part, and its sources.
#[derive(Clone)]
pub struct Site {
    /// The configuration.
    pub config: Config,
    /// How the lists that it names were when they were read.
    pub stamps: Vec<Option<Stamp>>,
    /// How many event loops there are.
    pub threads: usize,
    /// State of the doors.
    pub runtime: Arc<Runtime>,
    /// Where the signatures come from.
    pub wanted: Wanted,
    /// Database in force.
    pub database: Arc<Loaded>,
    /// Rules besides signatures.
    rules: Rules,
    /// Users of the web doors.
    users: Option<Arc<Users>>,
    /// The mail store, for the whole run.
    pub store: Option<Arc<Store>>,
    /// Tables of databases and directories.
    pub lookups: Lookups,
    /// Resolver for inspections.
    resolver: Option<Arc<Resolver>>,
    /// Reputation of clients, with the lists asked about them.
    lists: Arc<Lists>,
    /// Learned data.
    memory: Option<Arc<Memories>>,
    /// The sessions of all doors; one count for the whole run.
    house: Arc<House>,
    /// Own observations of clients, for the whole run.
    own: Own,
    /// State that inspections share, for the whole run.
    common: Common,
}

impl Site {
    /// Reads configuration and signatures and opens the listening sockets that `old` does not have.
    ///
    /// # Errors
    /// When something cannot be read, understood or opened; nothing has changed then.
    pub fn load(args: &Serve, old: Option<&Site>) -> Result<Site, Failure> {
        let Reading { config, stamps, wanted } = reading(args, old)?;
        // The event loops that run are those of the start.
        let threads = old.map_or_else(|| threads(&config), |old| old.threads);
        let common = match old {
            Some(old) => old.common.clone(),
            None => Common::new(&config, threads)?,
        };
        let before = old.map(|old| &*old.runtime);
        let opened = Opened::new(&config, threads, old)?;
        match old {
            Some(_) => rights::make_folders(&config, &wanted)?,
            // What strangers have made is read after this.
            None => rights::settle(args, &config, &wanted)?,
        }
        let database = database(&wanted, old)?;
        let lookups = Lookups::start(&config, old.map(|old| &old.lookups))?;
        let tables = lookups.recipients();
        let recipients = Directory::load(&config.recipients, &tables, &config.tls, before.map(|old| &*old.recipients))?;
        let notices = Notices::load(&config.notices, &config.hostname, before.map(|old| &*old.notices))?;
        let rules = Rules::load(&config, &opened.metrics, old.map(|old| &old.rules))?;
        let spam = rules.spam.as_deref();
        let users = Users::load(&config, &lookups, old.and_then(|old| old.users.as_ref()))?;
        let (inspector, measure) = inspector::start(&config, threads, &database, &rules, &common)?;
        let own = old.map_or_else(ask::nothing_seen, |old| old.own.clone());
        let resolver = resolver(&config, &opened.metrics, old)?;
        let lists = lists(&config, own.clone(), old)?;
        let memory = memories(&config, spam, &opened.metrics, old.and_then(|old| old.memory.as_ref()))?;
        let warden = Warden::load(&config.trust, Some(lists.clone()), before.map(|before| &*before.warden))?;
        let generation = before.map_or(1, |old| old.signatures.generation + 1);
        let Opened { metrics, pool, metrics_socket, identities, opener, house, doors, store, clamd } = opened;
        let tls = |_| tls::server(identities.clone(), config.tls.minimum);
        let means = Means {
            inspector,
            passwords: config.archives.passwords.iter().map(|word| word.as_bytes().into()).collect(),
            pool,
            resolver: resolver.as_ref().map(|resolver| asked(resolver, &lists, spam)),
            memory: memory.clone().map(|memory| memory as Arc<dyn memory::Memory>),
            sentinel: rules.intrusion.as_ref().map(|intrusion| intrusion.lookout.clone() as Arc<dyn Sentinel>),
            evaluations: store.as_ref().and_then(|store| store.evaluations()),
            metrics: metrics.clone(),
        };
        let runtime = Runtime {
            means,
            settings: Arc::new(settings(&config)),
            warden: Arc::new(warden),
            measure: with_store(with_lookups(measure, &lookups), store.as_ref()),
            signatures: signatures(&config, &wanted, &database, generation)?,
            tls: config.tls.certificates.first().map(tls).transpose()?,
            opener,
            identities,
            doors,
            recipients: Arc::new(recipients),
            clamd,
            notices: Arc::new(notices),
            known: before.map(|old| old.known.clone()).unwrap_or_default(),
            filter: rules.web.as_ref().map_or_else(|| Arc::new(AllowAll) as Arc<dyn Filter>, |web| web.filter.clone()),
            logins: users.clone().map(|users| users as Arc<dyn edge::porch::login::Logins>),
            metrics,
            metrics_socket,
        };
        Ok(Site {
            config,
            stamps,
            threads,
            runtime: Arc::new(runtime),
            wanted,
            database,
            rules,
            users,
            store,
            lookups,
            resolver,
            lists,
            memory,
            house,
            own,
            common,
        })
    }

    /// Bells of the event loops.
    pub fn bells(&self) -> Arc<Bells> {
        self.common.bells.clone()
    }

    /// It is what holds from here on, for the store too.
    pub fn begin(&self) {
        self.house.allow(self.config.resources.sessions_max);
        let spam = self.config.spam.as_ref().and_then(|spam| spam.under([None, None]));
        self.store.iter().for_each(|store| store.show(&self.runtime, spam.clone()));
    }

    /// The same with the signatures as the files have them now; nothing if they have not changed.
    ///
    /// # Errors
    /// When something cannot be read or understood.
    pub fn with_new_signatures(&self) -> Result<Option<Site>, Failure> {
        let Some(database) = self.wanted.refresh(&self.database)? else { return Ok(None) };
        database.warn();
        let generation = self.runtime.signatures.generation + 1;
        let (inspector, measure) = inspector::start(&self.config, self.threads, &database, &self.rules, &self.common)?;
        let runtime = Runtime {
            means: Means { inspector, ..self.runtime.means.clone() },
            measure: with_store(with_lookups(measure, &self.lookups), self.store.as_ref()),
            signatures: signatures(&self.config, &self.wanted, &database, generation)?,
            ..Runtime::clone(&self.runtime)
        };
        Ok(Some(Site { runtime: Arc::new(runtime), database: Arc::new(database), ..self.clone() }))
    }

    /// The same with the files of recipients as they are now; nothing if they have not changed. One that cannot be taken is
    /// told in the log, and stays as it was.
    pub fn with_new_recipients(&self) -> Option<Site> {
        let (recipients, errors) = self.runtime.recipients.refreshed();
        errors.iter().for_each(|error| tracing::error!(%error, "recipients not reloaded, the old ones stay in force"));
        let recipients = Arc::new(recipients?);
        recipients
            .lists()
            .for_each(|list| tracing::info!(file = %list.path.display(), recipients = list.len(), "recipients loaded"));
        Some(Site { runtime: Arc::new(Runtime { recipients, ..Runtime::clone(&self.runtime) }), ..self.clone() })
    }

    /// Says in the log that the signatures are old, if they are.
    pub fn warn_of_age(&self) {
        let signatures = &self.runtime.signatures;
        if signatures.is_older(self.config.database.warn_days) {
            tracing::warn!(days = signatures.age_days(), "signatures are out of date");
        }
    }
}

/// Reads a configuration that may take the place of the one before.
fn reading(args: &Serve, old: Option<&Site>) -> Result<Reading, Failure> {
    let reading = Reading::of(args, old.is_none())?;
    if let Some(old) = old {
        check_fixed(&old.config, &reading.config)?;
        rights::check_reload(args, &reading.config, &reading.wanted).map_err(NeedsProcess)?;
    }
    Ok(reading)
}

/// Keys and sockets, opened as whoever started the program; those of before a reload stay.
struct Opened {
    metrics: Arc<Metrics>,
    pool: Pool,
    metrics_socket: MetricsSocket,
    identities: Arc<Identities>,
    opener: Option<Arc<Opener>>,
    house: Arc<House>,
    doors: Vec<Arc<Door>>,
    store: Option<Arc<Store>>,
    clamd: Arc<Clamd>,
}

impl Opened {
    fn new(config: &Config, threads: usize, old: Option<&Site>) -> Result<Opened, Failure> {
        let before = old.map(|old| &*old.runtime);
        let identities = Arc::new(Identities::load(&config.tls)?);
        identities.warnings().for_each(|warning| tracing::warn!("{warning}"));
        let opener = config.opens_tls().then(|| Opener::new(&config.tls)).transpose()?.map(Arc::new);
        let house = old.map_or_else(|| Arc::new(House::new(0)), |old| old.house.clone());
        Ok(Opened {
            metrics: before.map(|old| old.metrics.clone()).unwrap_or_default(),
            pool: before.map_or_else(|| Pool::new(config.resources.head_pool_bytes), |old| old.means.pool.clone()),
            metrics_socket: metrics_socket(config.metrics.address, before)?,
            identities,
            opener,
            doors: doors(config, threads, &house, before)?,
            house,
            store: local_store(config, old)?,
            clamd: Arc::new(Clamd::load(&config.clamd, before.map(|old| &*old.clamd), threads)?),
        })
    }
}

/// The signatures; those of before where nothing has changed.
fn database(wanted: &Wanted, old: Option<&Site>) -> Result<Arc<Loaded>, Failure> {
    let database = match old.filter(|old| old.wanted == *wanted) {
        Some(old) => wanted.refresh(&old.database)?.map_or_else(|| old.database.clone(), Arc::new),
        None => Arc::new(wanted.open(&mut |_, _| ())?),
    };
    database.warn();
    Ok(database)
}

/// The doors of the listeners: those that are open go on with new settings.
fn doors(config: &Config, threads: usize, house: &Arc<House>, old: Option<&Runtime>) -> Result<Vec<Arc<Door>>, String> {
    let open = |listener: &Listener| {
        let (spam, authentication) = (config.spam.as_ref(), config.authentication.as_ref());
        let rulings = Rulings::new(listener, &config.attachments, spam, authentication);
        let mut doors = old.into_iter().flat_map(|old| &old.doors);
        match doors.find(|door| door.listener.place.address == listener.place.address) {
            Some(door) => door.with_settings(listener.clone(), rulings, &config.tls).map(Arc::new),
            None => Door::open(listener.clone(), rulings, &config.tls, threads, house.clone()).map(Arc::new),
        }
    };
    config.listeners.iter().map(open).collect()
}

/// The resolver for inspections, if anything is asked.
fn resolver(config: &Config, metrics: &Arc<Metrics>, old: Option<&Site>) -> Result<Option<Arc<Resolver>>, String> {
    let old = old.and_then(|old| old.resolver.as_ref());
    config.asks_dns().then(|| Resolver::start(&config.dns, metrics, old)).transpose()
}

/// Answers to what inspections ask: from lists here, then from the DNS.
fn asked(resolver: &Arc<Resolver>, lists: &Arc<Lists>, spam: Option<&SpamRules>) -> Arc<dyn asking::Resolver> {
    let resolver = ask::first(lists, resolver.clone());
    match spam {
        Some(spam) => Blocks::before(resolver, spam.blocks.clone()),
        None => resolver,
    }
}

/// Opens the learned data; none where mails are not scored or no place is set.
fn memories(
    config: &Config,
    rules: Option<&SpamRules>,
    metrics: &Arc<Metrics>,
    old: Option<&Arc<Memories>>,
) -> Result<Option<Arc<Memories>>, String> {
    let bayes = config.spam.as_ref().and_then(|spam| spam.bayes.as_ref());
    let Some((bayes, rules)) = bayes.zip(rules) else { return Ok(None) };
    let senders = config.spam.as_ref().and_then(|spam| spam.reputation).unwrap_or_default();
    let reports = config.spam.as_ref().and_then(|spam| spam.fuzzy).unwrap_or_default();
    let bounds = Bounds { words_max: rules.words_max, senders, reports };
    let source = cluster::ledger::source(config, &bayes.ledger)?;
    Memories::start(&source, bayes, bounds, metrics, old).map(Some)
}

/// The mail store: the same through all reloads.
fn local_store(config: &Config, old: Option<&Site>) -> Result<Option<Arc<Store>>, Failure> {
    let Some(old) = old else {
        let open = |settings| Store::open(settings, config);
        return Ok(config.store.as_ref().map(open).transpose()?.map(Arc::new));
    };
    let looked_up = |config: &Config| {
        let names: Vec<String> = config.store.iter().flat_map(|store| store.lookups.clone()).collect();
        config.lookups.iter().filter(|table| names.contains(&table.name)).cloned().collect::<Vec<_>>()
    };
    match config.store == old.config.store
        && (config.store.is_none() || config.isolation == old.config.isolation)
        && config.cluster == old.config.cluster
        && looked_up(config) == looked_up(&old.config)
    {
        true => Ok(old.store.clone()),
        false => Err(NeedsProcess("changed: [store] or [cluster]".into()).into()),
    }
}

/// Settings of all doors.
fn settings(config: &Config) -> Settings {
    Settings {
        hostname: config.hostname.clone(),
        head_window_bytes: config.resources.head_window_bytes,
        metrics: config.metrics.address,
        tls: config.tls.clone(),
    }
}

/// Reputation of clients. Lists that have not changed are kept.
fn lists(config: &Config, own: Own, old: Option<&Site>) -> Result<Arc<Lists>, String> {
    match old.filter(|old| ask::is_same(&old.config.trust, &config.trust)) {
        Some(old) => Ok(old.lists.clone()),
        None => Lists::start(&config.trust, own).map(Arc::new),
    }
}

/// Facts about the signatures just loaded, for metrics.
fn signatures(config: &Config, wanted: &Wanted, database: &Loaded, generation: u64) -> Result<Signatures, Failure> {
    let (newest, daily) = database::releases(&wanted.paths)?;
    Ok(Signatures {
        count: database.signatures,
        files: database.files as u64,
        generation,
        loaded: time::OffsetDateTime::now_utc(),
        built: newest.map(|release| release.built),
        release: daily.map(|release| (release.version, release.built)),
        unready_days: config.database.unready_days,
    })
}

/// The same, and tables.
fn with_lookups(measure: Measure, lookups: &Lookups) -> Measure {
    let lookups = lookups.clone();
    Arc::new(move |metrics| measure(metrics) + &lookups.measured())
}

/// Adds the numbers of the store.
fn with_store(measure: Measure, store: Option<&Arc<Store>>) -> Measure {
    let Some(store) = store.cloned() else { return measure };
    let of_store = move |store: &Store| exposition::joined(store.numbers(), &store.documents_text());
    Arc::new(move |metrics| exposition::joined(measure(metrics), &of_store(&store)))
}

/// Name of the metrics socket.
pub fn metrics_name(address: SocketAddr) -> String {
    format!("metrics {address}")
}

/// The socket for the metrics; an old one stays where its address does.
fn metrics_socket(address: Option<SocketAddr>, old: Option<&Runtime>) -> Result<MetricsSocket, String> {
    let Some(address) = address else { return Ok(Arc::default()) };
    if let Some(old) = old.filter(|old| old.settings.metrics == Some(address)) {
        return Ok(old.metrics_socket.clone());
    }
    let open = || {
        let socket = TcpListener::bind(address)?;
        socket.set_nonblocking(true).map(|()| socket)
    };
    let inherited = listening::inherited(&metrics_name(address)).and_then(|mut sockets| sockets.pop());
    let socket = inherited.map_or_else(open, |socket| Ok(TcpListener::from(socket)));
    let socket = socket.map_err(|error| format!("cannot listen on {address} for the metrics: {error}"))?;
    Ok(Arc::new(Mutex::new(Some(socket))))
}

fn threads(config: &Config) -> usize {
    match config.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    }
}
