//! `sluice mount`: a folder of which nothing infected is read or written. What passes is decided in the crate `avfs`; what a
//! content holds, by the inspection of `scan` and the doors.
//!
//! ```text
//!  signatures · processes that inspect · folders held open · mount
//!  ── the thread that serves the kernel, and all that it starts, keep the folder and nothing else to write to ──
//! ```
//! The first thread keeps its rights: it waits for signals, takes over new signatures, and unmounts.

use std::os::fd::AsFd as _;
use std::process::ExitCode;

use avfs::{Judge, Mode, Mounted, OnInfected, Rescan, Rules, Settings, Words};
use stream::FileType;
use tokio::signal::unix::Signal;

use super::renewal::Renewal;
use super::{Detached, Inspections, Signals, in_background, opened, start_log, tell_ready, threads};
use crate::cli::{Mount, MountInfected, MountMode, MountRescan};
use crate::database::Loaded;
use crate::output::Failure;
use crate::process::confine::Reach;
use crate::process::held::Held;
use crate::process::privileges;
use crate::process::privileges::Account;

/// Line printed once mounted, for a parent that waits.
const READY: &str = "mounted";

/// Mounts, and serves until the end.
pub fn run(args: &Mount) -> Result<ExitCode, Failure> {
    if args.common.background {
        return in_background(READY);
    }
    start_log(&args.common);
    let rules = rules(args)?;
    check(args, &rules)?;
    privileges::harden()?;
    let renewal = Renewal::open(&args.common)?;
    let detached = Detached::begin(&args.common)?;
    let (signals, hangup) = Signals::new()?;
    let mut mounted = detached.tell(mounted(args, rules, renewal.loaded()))?;
    let signatures = renewal.loaded().signatures;
    tracing::info!(source = %args.source.display(), point = %args.point.display(), signatures, "mounted");
    tell_ready(READY);
    let end = mounted.to_wait();
    signals.wait(Some(end), renew(args, &mounted, renewal, hangup));
    mounted.end()?;
    tracing::info!("unmounted");
    Ok(ExitCode::SUCCESS)
}

fn mounted(args: &Mount, rules: Rules, loaded: &Loaded) -> Result<Mounted, Failure> {
    let judge: Option<Box<dyn Judge>> =
        if args.pass_all { None } else { Some(Box::new(Inspections::new(&args.common, loaded)?)) };
    let (state, quarantine) =
        (Held::private(args.common.state.as_deref())?, Held::private(args.common.quarantine.as_deref())?);
    let source = avfs::bare(&args.source).map_err(|error| format!("{}: {error}", args.source.display()))?;
    let source = Held::at(source, &args.source);
    let options = avfs::Options {
        source: source.as_fd().try_clone_to_owned()?,
        point: args.point.clone(),
        threads: if args.threads == 0 { threads() } else { args.threads },
        held_max: None,
        known_max: None,
        settings: Settings {
            judge,
            mode: if args.mode == MountMode::Full { Mode::Full } else { Mode::Regular },
            on_infected: match args.on_infected {
                MountInfected::Immediate => OnInfected::Immediate,
                MountInfected::Deferred => OnInfected::Deferred,
            },
            rules,
            state: opened(&state)?,
            evidence: opened(&quarantine)?,
        },
        rescan: match args.rescan {
            MountRescan::Off => Rescan::Off,
            MountRescan::Changed => Rescan::Changed,
            MountRescan::All => Rescan::All,
        },
    };
    let confine = move || {
        let held: Vec<&Held> = [&state, &quarantine].into_iter().flatten().collect();
        let confined = Reach::reading().confine_to_mirror(&source, &held)?;
        tracing::info!(%confined, "privileges dropped");
        Ok(())
    };
    Ok(avfs::mount(options, confine)?)
}

/// Has what was known by other signatures inspected in the background, and takes over new ones, as long as it is waited for.
async fn renew(args: &Mount, mounted: &Mounted, mut renewal: Renewal, mut hangup: Signal) {
    if args.pass_all {
        return std::future::pending().await;
    }
    loop {
        if args.rescan != MountRescan::Off {
            match renewal.aside().await {
                Ok(judge) => mounted.rescan(judge),
                Err(error) => tracing::error!(%error, "nothing is inspected in the background"),
            }
        }
        renewal.next(&mut hangup, |judge| mounted.renew(judge)).await;
    }
}

/// The rules of a file.
fn rules(args: &Mount) -> Result<Rules, Failure> {
    let Some(path) = &args.rules else { return Ok(Rules::default()) };
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let user = |name: &str| Account::named(name, None).map(|account| account.number());
    let is_kind = |name: &str| FileType::ALL.iter().any(|kind| kind.name() == name);
    let rules = Rules::read(&text, &Words { user: &user, is_kind: &is_kind });
    rules.map_err(|wrong| format!("{}:{wrong}", path.display()).into())
}

/// Refuses options that contradict each other.
fn check(args: &Mount, rules: &Rules) -> Result<(), Failure> {
    if rules.defers() && args.common.quarantine.is_none() {
        return Err("a rule with on-infected=deferred needs a --quarantine".into());
    }
    if args.on_infected == MountInfected::Deferred && args.common.quarantine.is_none() {
        return Err("--on-infected deferred needs a --quarantine".into());
    }
    let source = args.source.canonicalize().map_err(|error| format!("{}: {error}", args.source.display()))?;
    for inner in [&args.common.quarantine, &args.common.state].into_iter().flatten() {
        if std::path::absolute(inner)?.starts_with(&source) {
            return Err(format!("{} lies in the folder that is mounted", inner.display()).into());
        }
    }
    Ok(())
}
