//! The edge of `sluice serve`: the gateway itself, as the supervisor starts it ([`supervise`](crate::process::supervise)).
//!
//! The main thread owns the configuration, the listening sockets and the signals. One event loop for each core takes
//! connections; a session lives on one loop from its first byte to its last, and nothing is shared between loops but
//! counters, the head-window pool and the signatures.
//!
//! ```text
//! main ── signals, reload ──┬─ edge 0 ── sessions: socket · smtp::Server · Inspection · Hop
//!                           └─ edge 1 ── ...
//! ```

mod bell;
mod documents;
mod exposition;
mod ids;
mod inspector;
pub mod keep;
mod logins;
pub mod reading;
mod reload;
pub mod rights;
mod scorer;
pub mod site;
mod sweep;
mod systemd;
mod thrift;
pub mod watcher;
pub mod web;

use std::future::Future;
use std::io;
use std::net::TcpListener;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use documents::Shared;
use edge::beat::Beat;
use edge::net::listening;
use edge::porch::caretaker;
use edge::porch::control::Control;
use edge::porch::runtime::Runtime;
use edge::worker;
use jiff::Timestamp;
use reload::{Anew, Reload};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use site::Site;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, watch};

use crate::cli::Serve;
use crate::config::Door;
use crate::config::LogFormat;
use crate::output::Failure;
use crate::process::supervise::lead::{self, lead};
use crate::process::supervise::manager::Manager;
use crate::store::folder::Newcomer;

/// How often the log says that the signatures are old.
const WARN_OF_AGE_EVERY: Duration = Duration::from_secs(24 * 3_600);

/// Descriptors below which there is a warning: a session takes about three.
const DESCRIPTORS_MIN: u64 = 1_024;

/// Signals that follow so soon upon the first are its echo.
const ECHO: Duration = Duration::from_millis(300);

/// Runs until a signal ends it.
pub fn run(args: &Serve) -> Result<ExitCode, Failure> {
    lead::follow()?;
    serve(args).inspect_err(|error| {
        // Where this process was to take another's place, somebody may wait for the reason.
        lead().iter().for_each(|lead| lead.answer("failed", 0, &error.to_string()));
    })
}

fn serve(args: &Serve) -> Result<ExitCode, Failure> {
    let site = Arc::new(Site::load(args, None)?);
    let descriptors = descriptors();
    if descriptors < DESCRIPTORS_MIN {
        tracing::warn!(descriptors, "few sessions fit the limit of open files (ulimit -n)");
    }
    listening::forget_inherited();
    hand_up(&site);
    site.begin();
    let newcomer = open_store(args, &site)?;
    let threads = site.threads;
    let (control, watched) =
        watch::channel(Control { runtime: site.runtime.clone(), handed_over: false, stopping: false });
    let (ready, readies) = mpsc::channel(threads);
    let beats: Vec<Arc<Beat>> = (0..threads).map(|_| Arc::default()).collect();
    let workers: Vec<_> = (0..threads)
        .map(|index| {
            let (watched, ready, beat) = (watched.clone(), ready.clone(), beats[index].clone());
            let bells = site.bells();
            let bell = bells.bell(index);
            let event_loop = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let work = move || {
                let _fails_whole = FailsWhole;
                let beside = async { _ = tokio::join!(bell::listen(bell), thrift::go_on(bells)) };
                worker::run(&event_loop, watched, ready, beat, beside);
            };
            std::thread::Builder::new().name(format!("edge-{index}")).spawn(work)
        })
        .collect::<Result<_, _>>()
        .map_err(|error: io::Error| format!("an event loop cannot start: {error}"))?;
    drop((watched, ready));
    systemd::watch(beats);

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let store = site.store.clone();
    let supervised = runtime.block_on(supervise(args, site, control, readies, newcomer));
    // Whatever is being read or compiled is not waited for.
    runtime.shutdown_background();
    supervised?;
    for worker in workers {
        if worker.join().is_err() {
            return Err("an event loop failed".into());
        }
    }
    // No door hands over anything any more.
    store.iter().for_each(|store| store.finish());
    tracing::info!("stopped");
    Ok(ExitCode::SUCCESS)
}

/// Lets this process have as many descriptors as it may, and returns how many that are.
pub fn descriptors() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Ends the process with an event loop that panics: half of its connections would never be answered, and whoever
/// supervises it starts it again.
struct FailsWhole;

impl Drop for FailsWhole {
    fn drop(&mut self) {
        if std::thread::panicking() {
            tracing::error!("an event loop failed, and the process ends");
            std::process::exit(1);
        }
    }
}

/// Waits for signals until one ends the program.
async fn supervise(
    args: &Serve,
    site: Arc<Site>,
    control: watch::Sender<Control>,
    mut readies: mpsc::Receiver<()>,
    newcomer: Option<Newcomer>,
) -> Result<(), Failure> {
    let [mut hangup, mut terminate, mut interrupt] =
        [signal(SignalKind::hangup())?, signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?];
    for _ in 0..site.threads {
        readies.recv().await.ok_or("an event loop did not start")?;
    }
    announce(&site, newcomer.as_ref());
    let clamd = site.runtime.clamd.shared.clone();
    let manager = Manager::find();
    manager.ready(&status(&site.runtime));
    lead().iter().for_each(|lead| lead.ready());
    let state = site.store.as_ref().map(|store| store.documents.clone()).unwrap_or_default();
    let mut shared = Shared::begin(&site, state)?;
    tokio::spawn(caretaker::keep(control.subscribe(), shared.orders.clone()));
    tokio::spawn(thrift::go_on(site.bells()));
    let mut reload = Reload::new(args, site, &control, &manager);
    let mut sweeps = tokio::time::interval(sweep::SWEEP_EVERY);
    sweeps.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut warnings = tokio::time::interval(WARN_OF_AGE_EVERY);
    loop {
        tokio::select! {
            _ = warnings.tick() => reload.site().warn_of_age(),
            _ = sweeps.tick() => drop(tokio::spawn(sweep::sweep(reload.site().clone()))),
            _ = hangup.recv() => {
                reload.ask(Anew::Everything);
                sweeps.reset_immediately();
            }
            () = requested() => {
                reload.ask(Anew::Everything);
                sweeps.reset_immediately();
            }
            _ = clamd.reload.notified() => reload.ask(Anew::Everything),
            () = reload.go_on() => shared.show(&reload.site().config),
            () = shared.written() => reload.ask(Anew::Everything),
            _ = clamd.shutdown.notified() => break,
            _ = stop(&mut terminate, &mut interrupt) => break,
            () = succeeded() => {
                drain(&control, reload.site(), stop(&mut terminate, &mut interrupt)).await;
                break;
            }
        }
    }
    manager.stopping();
    let site = reload.site().clone();
    tracing::info!(sessions = site.runtime.metrics.sessions_open.get(), "stopping");
    control.send_modify(|control| control.stopping = true);
    // A second signal means now; not the echo of the first, which a service manager may have sent to all processes.
    let again = async {
        tokio::time::sleep(ECHO).await;
        while let Some(Some(())) = now(terminate.recv()).await {}
        while let Some(Some(())) = now(interrupt.recv()).await {}
        stop(&mut terminate, &mut interrupt).await;
    };
    tokio::select! {
        _ = control.closed() => {}
        () = again => tracing::warn!("sessions cut off by a second signal"),
        _ = tokio::time::sleep(Duration::from_secs(site.config.resources.stop_seconds)) => {
            tracing::warn!("sessions cut off after {} s", site.config.resources.stop_seconds);
        }
    }
    if !control.is_closed() {
        std::process::exit(0);
    }
    Ok(())
}

/// Waits until nobody is there any more who has started this process, or another has taken its place.
async fn succeeded() {
    match lead() {
        Some(lead) => lead.over.notified().await,
        None => std::future::pending().await,
    }
}

/// Waits for a request to reload.
async fn requested() {
    match lead() {
        Some(lead) => lead.reload.notified().await,
        None => std::future::pending().await,
    }
}

/// Takes no new clients, and waits until the sessions have ended by themselves, or for as long as they may take to.
async fn drain(control: &watch::Sender<Control>, site: &Site, stopped: impl Future<Output = ()>) {
    listening::hand_over();
    // Who follows waits for it.
    site.store.iter().for_each(|store| store.end());
    tracing::info!(sessions = site.runtime.metrics.sessions_open.get(), "draining, no new sessions");
    control.send_modify(|control| control.handed_over = true);
    tokio::select! {
        _ = control.closed() => {}
        () = stopped => {}
        _ = tokio::time::sleep(Duration::from_secs(site.config.resources.stop_seconds)) => {}
    }
}

/// Has the sockets kept that no event loop has taken yet, for whoever comes after this process.
fn hand_up(site: &Site) {
    let runtime = &site.runtime;
    let Some(lead) = lead() else { return };
    let mut names = Vec::new();
    let doors =
        runtime.doors.iter().map(|door| &*door.sockets).chain(runtime.clamd.sockets.iter().map(|sockets| &**sockets));
    let store = site.store.iter().flat_map(|store| store.all_sockets());
    for sockets in doors.chain(store) {
        names.push(sockets.name());
        match sockets.copies() {
            Ok(copies) if copies.is_empty() => {}
            Ok(copies) => lead.keep(&sockets.name(), &copies),
            Err(error) => tracing::warn!(%error, "a socket is not kept for a restart"),
        }
    }
    if let Some(address) = runtime.settings.metrics {
        let name = site::metrics_name(address);
        let copy = runtime.metrics_socket.lock().expect("no holder panics").as_ref().map(TcpListener::try_clone);
        if let Some(Ok(copy)) = copy {
            lead.keep(&name, &[copy.into()]);
        }
        names.push(name);
    }
    lead.names(&names);
}

/// Result of a future that is ready already.
async fn now<T>(future: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(Duration::ZERO, future).await.ok()
}

async fn stop(terminate: &mut Signal, interrupt: &mut Signal) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}

/// Status line for people.
fn status(runtime: &Runtime) -> String {
    let doors = runtime.doors.len() + runtime.clamd.sockets.len();
    let kind = if runtime.signatures.files == 0 { "test signatures only" } else { "signatures" };
    format!("{doors} addresses, {} {kind}, generation {}", runtime.signatures.count, runtime.signatures.generation)
}

/// Opens the store, if there is to be one; without a configuration somebody has an account there.
fn open_store(args: &Serve, site: &Site) -> Result<Option<Newcomer>, Failure> {
    let Some(store) = &site.store else { return Ok(None) };
    let elsewhere = site.lookups.accounts(&store.settings.lookups);
    store.begin(&site.config, elsewhere, rights::is_first_steps(args))
}

/// The line that tells that every listener is ready, in the format of the log.
fn ready(places: &[String], format: LogFormat) -> String {
    match format {
        LogFormat::Human => format!("sluice: ready: {}", places.join(", ")),
        LogFormat::Json => {
            let timestamp = format!("{:.6}", Timestamp::now());
            serde_json::json!({"timestamp": timestamp, "level": "INFO", "message": "ready", "listeners": places})
                .to_string()
        }
    }
}

/// Says in one line that every listener is ready, and to a newcomer what to type next.
fn announce(site: &Site, newcomer: Option<&Newcomer>) {
    let runtime = &site.runtime;
    let doors = runtime.doors.iter().map(|door| {
        let listener = &door.listener;
        format!("{:?} {} -> {}", listener.protocol(), door.address, listener.hop.forward).to_lowercase()
    });
    let clamd = runtime.clamd.sockets.iter().map(|sockets| format!("clamd {} -> replies", sockets.address));
    let sockets = site.store.iter().flat_map(|store| store.doors());
    let store = sockets.clone().map(|(door, sockets)| format!("{} {} -> store:", door.name(), sockets.address));
    let places: Vec<String> = doors.chain(clamd).chain(store).collect();
    println!("{}", ready(&places, site.config.log.format));
    let (Some(newcomer), Some(door)) = (newcomer, runtime.doors.first()) else { return };
    let Newcomer { name, password } = newcomer;
    println!("\nAccount {name}, password {password} (made anew at each start).");
    println!("\nSend a clean mail, and one with the EICAR test file; the first is stored, the second is refused:\n");
    let swaks = format!("swaks --server {} --from you@example.org --to {name}", door.address);
    println!("  {swaks}");
    println!("  {swaks} --attach-body 'X5O!P%@AP[4\\PZX54(P^)7CC)7}}$EICAR-STANDARD-ANTIVIRUS-TEST-''FILE!$H+H*'\n");
    if let Some((_, sockets)) = sockets.clone().find(|(door, _)| *door == Door::Imap) {
        println!("Read the last mail that was stored:\n");
        println!("  curl -u {name}:{password} 'imap://{}/INBOX;MAILINDEX=*'\n", sockets.address);
    }
    if let Some((_, sockets)) = sockets.clone().find(|(door, _)| *door == Door::Webmail) {
        println!("Read and write mail in a browser:\n\n  http://{}/\n", sockets.address);
    }
    println!("Mail is kept in ./store. Ctrl-C ends it. Your own configuration: sluice serve --config FILE");
}
