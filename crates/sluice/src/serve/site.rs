//! Everything that is made from one reading of the configuration.

use std::fmt::Write as _;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

use edge::message::intrusion::Sentinel;
use edge::message::memory;
use edge::message::notice::Notices;
use edge::message::passage::Means;
use edge::message::pool::Pool;
use edge::metrics::Metrics;
use edge::net::identity::Identities;
use edge::net::opener::Opener;
use edge::net::{listening, tls};
use edge::porch::door::{Door, House};
use edge::porch::filter::{AllowAll, Filter};
use edge::porch::runtime::{Measure, Runtime, Settings, Signatures};
use edge::recipients::directory::Directory;
use edge::scanner::door::Clamd;
use edge::settings::Rulings;
use edge::trust::warden::Warden;
use flow::Inspector;
use inspect::Engine;
use jail::{Bells, Children, Counts, Jails, Launch, Local, Memory, Suspects};

use super::ids::Intrusion;
use super::logins::Users;
use super::rights;
use super::scorer::SpamRules;
use super::watcher::{Stamp, stamps};
use super::web::WebLists;
use crate::cli::Serve;
use crate::config::clamd_conf;
use crate::config::{Config, Isolation};
use crate::database;
use crate::database::{Loaded, Wanted};
use crate::dnsbl::ask::{self, Lists, Own};
use crate::learned::{Bounds, Memories};
use crate::logging;
use crate::lookups::Lookups;
use crate::output::Failure;
use crate::process::privileges;
use crate::process::supervise::lead::lead;
use crate::resolver::Resolver;
use crate::resolver::blocks::Blocks;
use crate::store::gateway::Store;

/// What one run of the program serves, until the next reload: what its doors have of it, and what it was made from.
#[derive(Clone)]
pub struct Site {
    /// The configuration.
    pub config: Config,
    /// How the lists that it names were when they were read.
    pub stamps: Vec<Option<Stamp>>,
    /// How many event loops there are.
    pub threads: usize,
    /// What the doors have.
    pub runtime: Arc<Runtime>,
    /// Where the signatures come from.
    pub wanted: Wanted,
    /// What has become of them.
    pub database: Arc<Loaded>,
    /// The rules that mails are scored with.
    spam: Option<Arc<SpamRules>>,
    /// The lists of the web.
    web: Option<Arc<WebLists>>,
    /// Who logs in at doors of the web.
    users: Option<Arc<Users>>,
    /// Intrusion rules.
    intrusion: Option<Arc<Intrusion>>,
    /// The mail store, for the whole run.
    pub store: Option<Arc<Store>>,
    /// Tables of databases and directories.
    pub lookups: Lookups,
    /// Who looks up what inspections ask.
    resolver: Option<Arc<Resolver>>,
    /// What is known of clients, lists that are asked about them among it.
    lists: Arc<Lists>,
    /// Who keeps what was learned.
    memory: Option<Arc<Memories>>,
    /// The sessions of all doors; one count for the whole run.
    house: Arc<House>,
    /// What was seen of clients; for the whole run.
    own: Own,
    /// What inspections have in common; for the whole run.
    common: Common,
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

/// What all inspections have in common, whatever their signatures.
#[derive(Clone)]
struct Common {
    /// What those in this process hold.
    memory: Arc<Memory>,
    /// What is counted of processes that inspect, and what they died of.
    counts: Arc<Counts>,
    suspects: Arc<Suspects>,
    /// What they wake event loops by.
    bells: Arc<Bells>,
}

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

impl Site {
    /// Reads configuration and signatures and opens the listening sockets that `old` does not have.
    ///
    /// # Errors
    /// When something cannot be read, understood or opened; nothing has changed then.
    pub fn load(args: &Serve, old: Option<&Site>) -> Result<Site, Failure> {
        let mut config = match (&args.config, &args.clamd_conf) {
            (Some(path), _) => Config::read(path)?,
            (None, Some(_)) => Config::default(),
            (None, None) => Config::parse(FIRST_STEPS, BUILT_IN)?,
        };
        config.has_credentials()?;
        let stamps = stamps(&config.lists);
        let undone = match &args.clamd_conf {
            Some(path) => clamd_conf::apply(&mut config, path)?,
            None => Vec::new(),
        };
        config.check()?;
        config.database.paths.extend(args.database.databases.iter().cloned());
        if !config.serves() {
            return Err("the configuration has no [[listener]], and no address in [clamd] or [store]".into());
        }
        if old.is_none() {
            logging::start(&config.log);
        }
        undone.iter().for_each(|what| tracing::warn!(what, "unsupported option ignored"));
        config.warnings().iter().for_each(|warning| tracing::warn!("{warning}"));
        let mut wanted = config.database.wanted(args.database.cache.as_ref());
        wanted.certificates = args.database.certificates.clone().or(wanted.certificates);
        wanted.choose(&args.database.pua);
        if let Some(old) = old {
            check_fixed(&old.config, &config)?;
            rights::check_reload(args, &config, &wanted).map_err(NeedsProcess)?;
        }
        let (pool, common) = match old {
            Some(old) => (old.runtime.means.pool.clone(), old.common.clone()),
            None => (
                Pool::new(config.resources.head_pool_bytes),
                Common {
                    memory: Arc::new(Memory::new(config.resources.inspection_pool_bytes)),
                    counts: Arc::default(),
                    suspects: Arc::default(),
                    bells: Arc::new(Bells::new(threads(&config))?),
                },
            ),
        };
        let before = old.map(|old| &*old.runtime);
        let (metrics, known) = before.map(|old| (old.metrics.clone(), old.known.clone())).unwrap_or_default();
        let generation = before.map_or(1, |old| old.signatures.generation + 1);
        // The event loops that run are those of the start.
        let threads = old.map_or_else(|| threads(&config), |old| old.threads);
        let metrics_socket = match (config.metrics.address, before) {
            (Some(address), Some(old)) if old.settings.metrics == Some(address) => old.metrics_socket.clone(),
            (Some(address), _) => Arc::new(Mutex::new(Some(metrics_socket(address)?))),
            (None, _) => Arc::default(),
        };
        let identities = Arc::new(Identities::load(&config.tls)?);
        let tls = match config.tls.certificates.is_empty() {
            true => None,
            false => Some(tls::server(identities.clone(), config.tls.minimum)?),
        };
        let opener = config.opens_tls().then(|| Opener::new(&config.tls)).transpose()?;
        let house = old.map_or_else(|| Arc::new(House::new(0)), |old| old.house.clone());
        let doors = config.listeners.iter().map(|listener| {
            let (spam, authentication) = (config.spam.as_ref(), config.authentication.as_ref());
            let rulings = Rulings::new(listener, &config.attachments, spam, authentication);
            let known = before
                .and_then(|old| old.doors.iter().find(|door| door.listener.place.address == listener.place.address));
            match known {
                Some(door) => door.with_settings(listener.clone(), rulings, &config.tls).map(Arc::new),
                None => Door::open(listener.clone(), rulings, &config.tls, threads, house.clone()).map(Arc::new),
            }
        });
        let doors = doors.collect::<Result<Vec<_>, String>>()?;
        let store = local_store(&config, old)?;
        let clamd = Arc::new(Clamd::load(&config.clamd, before.map(|old| &*old.clamd), threads)?);
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
        let lookups = Lookups::start(&config, old.map(|old| &old.lookups))?;
        let tables = lookups.recipients();
        let recipients = Directory::load(&config.recipients, &tables, &config.tls, before.map(|old| &*old.recipients))?;
        let notices = Notices::load(&config.notices, &config.hostname, before.map(|old| &*old.notices))?;
        let spam = SpamRules::load(&config)?.map(Arc::new);
        let web = WebLists::load(&config)?.map(Arc::new);
        let users = Users::load(&config, &lookups, old.and_then(|old| old.users.as_ref()))?;
        let before_intrusion = old.and_then(|old| old.intrusion.as_deref());
        let intrusion = Intrusion::load(&config, &metrics, before_intrusion)?.map(Arc::new);
        let rules = Rules { spam: spam.as_deref(), web: web.as_deref(), intrusion: intrusion.as_deref() };
        let (inspector, measure) = inspector(&config, threads, &database, rules, &common)?;
        let own = old.map_or_else(ask::nothing_seen, |old| old.own.clone());
        let old_resolver = old.and_then(|old| old.resolver.as_ref());
        let resolver = config.asks_dns().then(|| Resolver::start(&config.dns, &metrics, old_resolver)).transpose()?;
        let lists = lists(&config, own.clone(), old)?;
        let memory = memories(&config, spam.as_deref(), &metrics, old.and_then(|old| old.memory.as_ref()))?;
        let warden = Warden::load(&config.trust, Some(lists.clone()), before.map(|before| &*before.warden))?;
        let means = Means {
            inspector,
            passwords: config.archives.passwords.iter().map(|word| word.as_bytes().into()).collect(),
            pool,
            resolver: resolver.clone().map(|resolver| {
                let resolver = ask::first(&lists, resolver);
                match &spam {
                    Some(spam) => Blocks::before(resolver, spam.blocks.clone()),
                    None => resolver,
                }
            }),
            memory: memory.clone().map(|memory| memory as Arc<dyn memory::Memory>),
            sentinel: intrusion.as_ref().map(|intrusion| intrusion.lookout.clone() as Arc<dyn Sentinel>),
            metrics: metrics.clone(),
        };
        let runtime = Runtime {
            means,
            settings: Arc::new(settings(&config)),
            warden: Arc::new(warden),
            measure: with_store(with_lookups(measure, &lookups), store.as_ref()),
            signatures: signatures(&config, &wanted, &database, generation)?,
            tls,
            opener: opener.map(Arc::new),
            identities,
            doors,
            recipients: Arc::new(recipients),
            clamd,
            notices: Arc::new(notices),
            known,
            filter: web.as_ref().map_or_else(|| Arc::new(AllowAll) as Arc<dyn Filter>, |web| web.filter.clone()),
            logins: users.clone().map(|users| users as Arc<dyn edge::porch::login::Logins>),
            metrics,
            metrics_socket,
        };
        let runtime = Arc::new(runtime);
        Ok(Site {
            config,
            stamps,
            threads,
            runtime,
            wanted,
            database,
            spam,
            web,
            users,
            intrusion,
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

    /// What wakes the event loops, each by its own.
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
        let rules =
            Rules { spam: self.spam.as_deref(), web: self.web.as_deref(), intrusion: self.intrusion.as_deref() };
        let (inspector, measure) = inspector(&self.config, self.threads, &database, rules, &self.common)?;
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
            .for_each(|list| tracing::info!(file = %list.path.display(), recipients = list.len(), "recipients"));
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

/// Who keeps what was learned; nobody where mails are not scored, or nothing says where it is.
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
    Memories::start(bayes, bounds, metrics, old).map(Some)
}

/// Checks what a process settles once, when it starts.
fn check_fixed(old: &Config, new: &Config) -> Result<(), NeedsProcess> {
    let (before, after) = (&old.resources, &new.resources);
    let fixed = [
        ("threads", old.threads == new.threads),
        ("user and group", (&old.user, &old.group) == (&new.user, &new.group)),
        ("confine", old.confine == new.confine),
        ("head_pool_bytes", before.head_pool_bytes == after.head_pool_bytes),
        ("inspection_pool_bytes", before.inspection_pool_bytes == after.inspection_pool_bytes),
        ("[log]", old.log == new.log),
    ];
    let changed: Vec<&str> = fixed.iter().filter(|(_, is_same)| !is_same).map(|(name, _)| *name).collect();
    match changed.is_empty() {
        true => Ok(()),
        false => Err(NeedsProcess(format!("changed: {}", changed.join(", ")))),
    }
}

/// The mail store: the same through all reloads.
fn local_store(config: &Config, old: Option<&Site>) -> Result<Option<Arc<Store>>, Failure> {
    let Some(old) = old else {
        let open = |settings| Store::open(settings, config.cluster.as_ref(), &config.tls.authorities);
        return Ok(config.store.as_ref().map(open).transpose()?.map(Arc::new));
    };
    let looked_up = |config: &Config| {
        let names: Vec<String> = config.store.iter().flat_map(|store| store.lookups.clone()).collect();
        config.lookups.iter().filter(|table| names.contains(&table.name)).cloned().collect::<Vec<_>>()
    };
    match config.store == old.config.store
        && config.cluster == old.config.cluster
        && looked_up(config) == looked_up(&old.config)
    {
        true => Ok(old.store.clone()),
        false => Err(NeedsProcess("changed: [store] or [cluster]".into()).into()),
    }
}

/// What holds for all doors.
fn settings(config: &Config) -> Settings {
    Settings {
        hostname: config.hostname.clone(),
        head_window_bytes: config.resources.head_window_bytes,
        metrics: config.metrics.address,
        tls: config.tls.clone(),
    }
}

/// What is known of clients. Lists that have not changed are asked on as before.
fn lists(config: &Config, own: Own, old: Option<&Site>) -> Result<Arc<Lists>, String> {
    match old.filter(|old| ask::is_same(&old.config.trust, &config.trust)) {
        Some(old) => Ok(old.lists.clone()),
        None => Lists::start(&config.trust, own).map(Arc::new),
    }
}

/// What is told of these signatures, which are loaded now.
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
    Arc::new(move |metrics| measure(metrics) + &store.numbers())
}

/// Rules of all kinds that inspections have besides signatures.
#[derive(Clone, Copy)]
struct Rules<'r> {
    spam: Option<&'r SpamRules>,
    web: Option<&'r WebLists>,
    intrusion: Option<&'r Intrusion>,
}

/// Who inspects with these signatures, processes of their own or this one, and how that is measured.
fn inspector(
    config: &Config,
    threads: usize,
    database: &Loaded,
    Rules { spam, web, intrusion }: Rules<'_>,
    common: &Common,
) -> Result<(Arc<dyn Inspector>, Measure), Failure> {
    let (limits, memory_bytes) = (config.limits.limits(), config.resources.inspection_pool_bytes);
    if config.isolation == Isolation::None {
        let engine = Arc::new(Engine { database: database.database.clone(), limits });
        let memory = common.memory.clone();
        let measure = move |metrics: &Metrics| {
            metrics.inspection_pool_free_bytes.set(memory.free_bytes() as u64);
            processes(None, &[], metrics)
        };
        let local = Local::new(engine, Some(common.memory.clone()))
            .with_pages(web.and_then(|web| web.pages.clone()))
            .with_intrusion(intrusion.and_then(|intrusion| intrusion.rules.clone()));
        let local = match spam.and_then(|spam| spam.scorer.clone()) {
            Some(scorer) => local.scoring_apart(scorer)?,
            None => local,
        };
        return Ok((Arc::new(local), Arc::new(measure)));
    }
    let launch: Box<dyn Launch> = match lead() {
        Some(lead) => Box::new(lead),
        None => Box::new(Children { user: privileges::is_root().then_some(privileges::NOBODY) }),
    };
    let bells = common.bells.clone();
    let settings = jail::Settings { count: threads, limits, memory_bytes, launch, bells };
    let (counts, suspects) = (common.counts.clone(), common.suspects.clone());
    let rules = spam.map(SpamRules::file).transpose()?.flatten();
    let pages = web.map(WebLists::file).transpose()?.flatten();
    let intrusion = intrusion.map(Intrusion::file).transpose()?.flatten();
    let handed = jail::Signatures { rules, pages, intrusion, ..database.signatures()? };
    let (jails, confined) = Jails::start(settings, handed, counts.clone(), suspects)?;
    tracing::info!(processes = threads, %confined, "inspections are isolated");
    let missing = confined.missing();
    if !confined.is_enough() {
        tracing::warn!(missing, "inspections are not confined as they should be");
    } else if !missing.is_empty() {
        tracing::info!(missing, "not all layers of the isolation can be had here");
    }
    let jails = Arc::new(jails);
    // The metrics do not keep jails that nobody inspects with any more.
    let measured = Arc::downgrade(&jails);
    let measure = move |metrics: &Metrics| {
        let jails = measured.upgrade();
        metrics.inspection_pool_free_bytes.set(jails.as_ref().map_or(0, |jails| jails.free_bytes()));
        metrics.inspection_processes_started_total.set(counts.started.load(Relaxed));
        metrics.inspection_processes_lost_total.set(counts.lost.load(Relaxed));
        metrics.inspections_banned_total.set(counts.banned.load(Relaxed));
        let template = jails.as_ref().and_then(|jails| jails.template());
        processes(template, &jails.map_or_else(Vec::new, |jails| jails.processes()), metrics)
    };
    Ok((jails, Arc::new(measure)))
}

/// The processes, each with its own numbers, in Prometheus' text format.
fn processes(template: Option<jail::Ready>, jails: &[jail::Process], metrics: &Metrics) -> String {
    let name = |jail: &jail::Process| format!("process=\"jail_{}\"", jail.number);
    let pid = |pid: Option<u32>| pid.map_or_else(String::new, |pid| pid.to_string());
    let edge = format!("process=\"edge\",pid=\"{}\"", std::process::id());
    let resident = jails.iter().map(|jail| (format!("{},pid=\"{}\"", name(jail), pid(jail.pid)), jail.resident_bytes));
    let mut text = String::new();
    let mut family = |name: &str, kind: &str, help: &str, values: Vec<(String, u64)>| {
        let _ = write!(text, "# HELP sluice_process_{name} {help}\n# TYPE sluice_process_{name} {kind}\n");
        for (labels, value) in values {
            let _ = writeln!(text, "sluice_process_{name}{{{labels}}} {value}");
        }
    };
    let template = template.map(|at| (format!("process=\"jails\",pid=\"{}\"", at.pid), at.resident_bytes));
    let edge = (edge, metrics.resident_bytes.get());
    let resident = std::iter::once(edge).chain(template).chain(resident).collect();
    family("resident_bytes", "gauge", "Resident memory of a process.", resident);
    let each = |of: fn(&jail::Process) -> u64| jails.iter().map(|jail| (name(jail), of(jail))).collect();
    family("inspections_total", "counter", "Inspections begun by a process.", each(|jail| jail.inspections));
    family("starts_total", "counter", "Starts of an inspection process.", each(|jail| jail.starts));
    text
}

/// What the socket for the metrics is called.
pub fn metrics_name(address: SocketAddr) -> String {
    format!("metrics {address}")
}

fn metrics_socket(address: SocketAddr) -> Result<TcpListener, String> {
    if let Some(socket) = listening::inherited(&metrics_name(address)).and_then(|mut sockets| sockets.pop()) {
        return Ok(TcpListener::from(socket));
    }
    let socket = TcpListener::bind(address).and_then(|socket| socket.set_nonblocking(true).map(|()| socket));
    socket.map_err(|error| format!("cannot listen on {address} for the metrics: {error}"))
}

fn threads(config: &Config) -> usize {
    match config.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    }
}
