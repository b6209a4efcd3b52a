//! `sluice watch`: folders of which nothing infected is opened.
//!
//! ```text
//!  signatures · processes that inspect · marks
//!  ── the thread that the kernel asks, and all that it starts, may read, write to the folders of the options, and no more ──
//! ```
//! The first thread keeps its rights: it waits for signals, and takes over new signatures.

use std::process::ExitCode;
use std::time::Duration;

use avfs::{WatchOptions, Watching};

use super::renewal::Renewal;
use super::{Detached, Inspections, Signals, in_background, opened, start_log, tell_ready, threads};
use crate::cli::{OnDoubt, Watch};
use crate::database::Loaded;
use crate::output::Failure;
use crate::process::confine::Reach;
use crate::process::held::Held;
use crate::process::privileges;
use crate::process::privileges::Account;

/// Line printed once watching, for a parent that waits.
const READY: &str = "watching";

/// Parents that are looked at to tell our processes from others.
const ANCESTORS_MAX: usize = 4;

/// Watches until the end.
pub fn run(args: &Watch) -> Result<ExitCode, Failure> {
    if args.common.background {
        return in_background(READY);
    }
    start_log(&args.common);
    privileges::harden()?;
    let mut renewal = Renewal::open(&args.common)?;
    let detached = Detached::begin(&args.common)?;
    let (signals, mut hangup) = Signals::new()?;
    let watching = detached.tell(watching(args, renewal.loaded()))?;
    tracing::info!(paths = ?args.paths, signatures = renewal.loaded().signatures, "watching");
    tell_ready(READY);
    signals.wait(None, async {
        loop {
            renewal.next(&mut hangup, |judge| watching.renew(judge)).await;
        }
    });
    watching.end();
    tracing::info!("no longer watching");
    Ok(ExitCode::SUCCESS)
}

fn watching(args: &Watch, loaded: &Loaded) -> Result<Watching, Failure> {
    let judge = Box::new(Inspections::new(&args.common, loaded)?);
    let (state, quarantine) =
        (Held::private(args.common.state.as_deref())?, Held::private(args.common.quarantine.as_deref())?);
    let user = |name: &String| Account::named(name, None).map(|account| account.number());
    let mut excluded = args.excluded.clone();
    excluded.extend(args.common.quarantine.clone());
    let options = WatchOptions {
        paths: args.paths.clone(),
        state: opened(&state)?,
        evidence: opened(&quarantine)?,
        threads: if args.threads == 0 { threads() } else { args.threads },
        deadline: Duration::from_secs(args.deadline),
        allows_unjudged: args.on_deadline == OnDoubt::Allow,
        only_tells: args.only_log,
        excluded,
        users: args.users.iter().map(user).collect::<Result<_, _>>()?,
        is_ours,
    };
    let confine = move || {
        let held: Vec<&Held> = [&state, &quarantine].into_iter().flatten().collect();
        let confined = Reach::reading().confine(&held)?;
        tracing::info!(%confined, "privileges dropped");
        Ok(())
    };
    Ok(avfs::watch(options, judge, confine)?)
}

/// Whether a process is one that we have started: a jail has to be able to start while others wait for it.
fn is_ours(process: u32) -> bool {
    let own = std::process::id();
    let ancestors = std::iter::successors(Some(process), |&process| parent(process)).take(ANCESTORS_MAX);
    ancestors.skip(1).any(|process| process == own)
}

fn parent(process: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name is in parentheses, and may have some of its own.
    let (_, behind) = status.rsplit_once(')')?;
    behind.split_ascii_whitespace().nth(1)?.parse().ok()
}
