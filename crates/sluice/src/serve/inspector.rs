//! The inspector of a configuration: isolated processes or this one, and what the metrics show of them.

use std::fmt::Write as _;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use edge::metrics::Metrics;
use edge::porch::runtime::Measure;
use flow::Inspector;
use inspect::Engine;
use jail::{Bells, Children, Counts, Jails, Launch, Local, Memory, Suspects};

use super::ids::Intrusion;
use super::scorer::SpamRules;
use super::web::WebLists;
use crate::config::{Config, Isolation};
use crate::database::Loaded;
use crate::output::Failure;
use crate::process::privileges;
use crate::process::supervise::lead::lead;

/// State that all inspections share, whatever their signatures, for the whole run.
#[derive(Clone)]
pub struct Common {
    /// The memory that inspections in this process hold.
    memory: Arc<Memory>,
    /// Counts of processes that inspect, and of their ends.
    counts: Arc<Counts>,
    suspects: Arc<Suspects>,
    /// Wakes event loops, each by its own.
    pub bells: Arc<Bells>,
}

impl Common {
    /// For so many event loops.
    ///
    /// # Errors
    /// When the system has no more descriptors.
    pub fn new(config: &Config, threads: usize) -> io::Result<Common> {
        Ok(Common {
            memory: Arc::new(Memory::new(config.resources.inspection_pool_bytes)),
            counts: Arc::default(),
            suspects: Arc::default(),
            bells: Arc::new(Bells::new(threads)?),
        })
    }
}

/// Rules of all kinds that inspections have besides signatures.
#[derive(Clone)]
pub struct Rules {
    /// Scores of mails.
    pub spam: Option<Arc<SpamRules>>,
    /// Lists of the web.
    pub web: Option<Arc<WebLists>>,
    /// Intrusion rules.
    pub intrusion: Option<Arc<Intrusion>>,
}

impl Rules {
    /// Reads them; what intrusion rules have seen of connections is taken from those before a reload.
    ///
    /// # Errors
    /// When files cannot be read or understood.
    pub fn load(config: &Config, metrics: &Arc<Metrics>, old: Option<&Rules>) -> Result<Rules, Failure> {
        let before = old.and_then(|old| old.intrusion.as_deref());
        Ok(Rules {
            spam: SpamRules::load(config)?.map(Arc::new),
            web: WebLists::load(config)?.map(Arc::new),
            intrusion: Intrusion::load(config, metrics, before)?.map(Arc::new),
        })
    }
}

/// An inspector with these signatures, in processes of its own or in this one, and its numbers.
///
/// # Errors
/// When processes cannot be started.
pub fn start(
    config: &Config,
    threads: usize,
    database: &Loaded,
    rules: &Rules,
    common: &Common,
) -> Result<(Arc<dyn Inspector>, Measure), Failure> {
    let Rules { spam, web, intrusion } = rules;
    let (spam, web, intrusion) = (spam.as_deref(), web.as_deref(), intrusion.as_deref());
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
        tracing::warn!(missing, "required layers of the isolation are missing");
    } else if !missing.is_empty() {
        tracing::info!(missing, "some layers of the isolation are unavailable here");
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
    family("starts_total", "counter", "Starts of a process.", each(|jail| jail.starts));
    text
}
