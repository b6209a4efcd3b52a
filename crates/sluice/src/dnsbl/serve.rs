//! `sluice dnsbl serve`: threads that answer by UDP, one a core for each address; a runtime on the main thread for TCP, for
//! metrics, for signals, and to look at the files.
//!
//! Zones are one value that is never changed, only replaced: a thread takes the new ones over between two packets, so a
//! reload costs no query.

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use ::dnsbl::answer::Options;
use rustix::thread::CapabilitySet;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing_subscriber::EnvFilter;

use super::load::{Loaded, Report};
use super::shared::Shared;
use super::{notify, tcp, udp};
use crate::cli::DnsblServe;
use crate::config::dnsbl::Settings;
use crate::output::Failure;
use crate::process::confine::Reach;
use crate::process::privileges::{self, Account};

/// Attempts to find a port that is free for both, where port 0 is asked for.
const PORTS_TRIED: usize = 16;

/// UDP and TCP on one port.
fn open_both(wanted: SocketAddr, threads: usize) -> std::io::Result<(Vec<OwnedFd>, std::net::TcpListener, SocketAddr)> {
    let mut tried = 1;
    loop {
        let (udp, address) = udp::open(wanted, threads)?;
        match tcp::open(address) {
            Ok(tcp) => return Ok((udp, tcp, address)),
            // The port that the system chose for the one is somebody else's for the other.
            Err(error)
                if wanted.port() == 0 && error.kind() == std::io::ErrorKind::AddrInUse && tried < PORTS_TRIED =>
            {
                tried += 1;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Serves until a signal ends it.
pub fn run(args: &DnsblServe) -> Result<ExitCode, Failure> {
    start_log();
    let settings = Settings::of(args)?;
    let mut sockets = Vec::new();
    let (mut listeners, mut addresses) = (Vec::new(), Vec::new());
    for &address in &settings.listen {
        let (udp, tcp, address) =
            open_both(address, settings.threads).map_err(|error| format!("{address}: {error}"))?;
        listeners.push(tcp);
        sockets.extend(udp);
        addresses.push(address);
    }
    let metrics = settings.metrics.map(tcp::open).transpose()?;
    settle(args, &settings)?;

    let mut loaded = Loaded::default();
    for report in loaded.refresh(&settings.zones) {
        tell(&report);
        report.outcome?;
    }
    let zones = loaded.zones(&settings.zones);
    let options = Options {
        version: Some(settings.version.clone()).filter(|version| !version.is_empty()),
        full: settings.full_answers,
        udp_bytes_max: settings.udp_bytes_max,
        prefixes: settings.prefixes,
        prefixes_in_aaaa: settings.prefixes_in_aaaa,
    };
    let shared = Arc::new(Shared::new(zones, options, settings));
    let threads = start(sockets, &shared)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // Before anybody is told that this answers: a signal that comes before it is caught would end the program.
    let signals = runtime.block_on(async { Signals::new() })?;
    addresses.iter().for_each(|address| println!("sluice: answering on {address}"));
    tracing::info!(zones = shared.zones().0.zones().len(), threads = threads.len(), "ready");
    let ended = runtime.block_on(supervise(&shared, loaded, signals, listeners, metrics));
    shared.stop();
    runtime.shutdown_background();
    for thread in threads {
        if thread.join().is_err() {
            return Err("an event loop failed".into());
        }
    }
    ended?;
    tracing::info!("stopped");
    Ok(ExitCode::SUCCESS)
}

/// Starts the log: lines on the standard error, `SLUICE_LOG` their level.
fn start_log() {
    let filter = EnvFilter::try_from_env("SLUICE_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_target(false).with_writer(std::io::stderr);
    let _ = lines.with_ansi(std::io::stderr().is_terminal()).try_init();
}

fn start(sockets: Vec<OwnedFd>, shared: &Arc<Shared>) -> Result<Vec<std::thread::JoinHandle<()>>, Failure> {
    let threads = sockets.into_iter().enumerate().map(|(index, socket)| {
        let shared = shared.clone();
        std::thread::Builder::new().name(format!("dnsbl-{index}")).spawn(move || udp::run(&socket, &shared))
    });
    Ok(threads.collect::<Result<_, _>>()?)
}

/// Gives up what is not needed once the sockets are open. Root becomes somebody else, and keeps the right to read files:
/// zone files belong to whoever makes them, and are read again and again. Landlock leaves their folders alone.
fn settle(args: &DnsblServe, settings: &Settings) -> Result<(), Failure> {
    if privileges::is_root() && !args.allow_root {
        let account = match &args.user {
            Some(user) => Account::named(user, None)?,
            None => Account::nobody(),
        };
        account.assume(CapabilitySet::DAC_READ_SEARCH)?;
    }
    privileges::harden()?;
    let mut reach = Reach::default();
    for file in settings.zones.iter().flat_map(|spec| &spec.files) {
        // The folder, since a file is replaced by another of its name.
        match Path::new(file).parent() {
            Some(folder) if folder != Path::new("") => reach.read(folder),
            _ => reach.read(Path::new(".")),
        };
    }
    let confined = reach.connect().clone().confine(&[])?;
    tracing::info!(%confined, "privileges dropped");
    Ok(())
}

fn tell(report: &Report) {
    for warning in &report.warnings {
        tracing::warn!("{warning}");
    }
    let (files, milliseconds) = (&report.files, report.milliseconds);
    match &report.outcome {
        Ok(dataset) => tracing::info!(
            files,
            listings = dataset.len(),
            bytes = dataset.memory_bytes(),
            warnings = report.warning_count,
            milliseconds,
            "zone data loaded"
        ),
        Err(error) => tracing::error!(files, error, "zone data not loaded"),
    }
}

/// Signals of the process.
struct Signals {
    hangup: Signal,
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Signals> {
        Ok(Signals {
            hangup: signal(SignalKind::hangup())?,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }
}

/// Waits for signals, looks at the files, and answers by TCP meanwhile.
async fn supervise(
    shared: &Arc<Shared>,
    mut loaded: Loaded,
    mut signals: Signals,
    listeners: Vec<std::net::TcpListener>,
    metrics: Option<std::net::TcpListener>,
) -> Result<(), Failure> {
    for listener in listeners {
        tokio::spawn(tcp::run(tokio::net::TcpListener::from_std(listener)?, shared.clone()));
    }
    if let Some(listener) = metrics {
        tokio::spawn(tcp::run_metrics(tokio::net::TcpListener::from_std(listener)?, shared.clone()));
    }
    let every = Duration::from_secs(shared.settings.check_seconds.max(1));
    loop {
        let looks = shared.settings.check_seconds > 0;
        tokio::select! {
            _ = signals.terminate.recv() => return Ok(()),
            _ = signals.interrupt.recv() => return Ok(()),
            _ = signals.hangup.recv() => {}
            () = tokio::time::sleep(every), if looks => {}
        }
        loaded = reload(shared, loaded).await?;
    }
}

async fn reload(shared: &Arc<Shared>, mut loaded: Loaded) -> Result<Loaded, Failure> {
    let specs = shared.settings.zones.clone();
    let (loaded, reports, zones) = tokio::task::spawn_blocking(move || {
        let reports = loaded.refresh(&specs);
        let zones = reports.iter().any(|report| report.outcome.is_ok()).then(|| loaded.zones(&specs));
        (loaded, reports, zones)
    })
    .await?;
    for report in &reports {
        tell(report);
        let count = if report.outcome.is_ok() { &shared.counts.reloads } else { &shared.counts.failures };
        count.fetch_add(1, Ordering::Relaxed);
    }
    if let Some(zones) = zones {
        let (before, _) = shared.zones();
        shared.replace(zones);
        notify::tell(shared, &before);
    }
    Ok(loaded)
}
