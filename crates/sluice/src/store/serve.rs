//! `sluice store serve`: a mail server on a store. LMTP in, POP3, IMAP and pages for browsers out.

use std::cell::OnceCell;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use edge::net::listening::{Owner, Sockets};
use edge::settings::{Address, SocketMode, Tls};
use flow::Inspector;
use inspect::Engine;
use jail::{Local, Memory};
use mailbox::accounts::{self, Account, Accounts};
use mailbox::scripts::SiteScripts;
use mailbox::{Site, Writer};
use scan::Database;
use stream::Limits;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::control::Control;
use super::doors::Doors;
use super::host::Alone;
use super::relay::{Means, outbound};
use super::volume::{fill, open};
use crate::cli::StoreServe;
use crate::config::dns::DnsSettings;
use crate::config::{self, Door, Log, Outward, QueueSettings};
use crate::logging;
use crate::output::Failure;
use crate::process::confine::{Confined, Reach};
use crate::process::privileges::{self, Place};

/// The memory that reading one mail for the index may take, in bytes.
const READING_BYTES_MAX: usize = 256 << 20;

/// Serves until SIGTERM or SIGINT.
pub fn run(args: &StoreServe) -> Result<ExitCode, Failure> {
    logging::start(&Log::default());
    let asked = [
        (Door::Lmtp, &args.lmtp),
        (Door::Pop3, &args.pop3),
        (Door::Imap, &args.imap),
        (Door::Sieve, &args.sieve),
        (Door::Webmail, &args.webmail),
    ];
    let asked: Vec<(Door, &Address)> =
        asked.iter().flat_map(|(door, all)| all.iter().map(|one| (*door, one))).collect();
    if asked.is_empty() {
        return Err("one of --lmtp, --pop3, --imap, --sieve and --webmail is needed".into());
    }
    // Ports below 1024 are root's.
    let owner = Owner { mode: SocketMode::default(), group: None };
    let sockets = asked.iter().map(|&(door, address)| Ok((door, Sockets::open(address, &owner, 1, false)?)));
    let sockets: Vec<(Door, Sockets)> = sockets.collect::<Result<_, String>>()?;
    let place = Place::enter(&args.volume)?;
    let accounts = accounts(args, &place)?;
    let [global, before, after] = [&args.sieve_global, &args.sieve_before, &args.sieve_after].map(Option::as_deref);
    let scripts = SiteScripts::read(global, before, after)?;
    let volume = open(&place, false, false)?;
    fill(volume.device(), place.path());
    for damage in &volume.report().damage {
        tracing::error!(%damage, "the store is damaged");
    }
    let control = Control::open(&place.way());
    tracing::info!(confined = %confine(&asked, args.relay.is_some())?, "privileges dropped");
    let (writer, handle) = Writer::start(volume)?;
    let (end, ending) = watch::channel(false);
    let hostname = args.hostname.clone().unwrap_or_else(config::host_name);
    let (queue, dns) = (QueueSettings::default(), DnsSettings::default());
    let way =
        args.relay.as_ref().map(|way| way.parse::<Outward>()).transpose().map_err(|why| format!("--relay: {why}"))?;
    let means = Means { dns: &dns, tls: &Tls::default(), hostname: &hostname, folder: None, resolver: OnceCell::new() };
    let relay = way.map(|way| outbound(&way, &queue, &means)).transpose()?.map(|begun| begun.relay);
    let mut site = Site::new(handle, accounts, hostname, args.message_bytes_max, ending);
    site.junk = !args.no_junk;
    site.scripts = scripts;
    site.inspector = (!args.no_search_index).then(reader);
    site.relay = relay;
    let site = Arc::new(site);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let outcome = runtime.block_on(serve(sockets, control, site, args.sessions_max, end));
    runtime.shutdown_timeout(Duration::from_secs(1));
    writer.join()?;
    tracing::info!("stopped");
    outcome.map(|()| ExitCode::SUCCESS)
}

/// Reader of mails for the index, in this process if no separate one can be started.
fn reader() -> Arc<dyn Inspector> {
    let engine = Engine { database: Arc::new(Database::with_builtin()), limits: Limits::default() };
    Arc::new(Local::new(Arc::new(engine), Some(Arc::new(Memory::new(READING_BYTES_MAX)))))
}

/// From here on nothing is written but the volume, which is open, no program is run, and connections are made to a relay only.
fn confine(asked: &[(Door, &Address)], has_relay: bool) -> Result<Confined, Failure> {
    privileges::harden()?;
    let mut reach = Reach::reading();
    reach.run_nothing();
    if has_relay {
        reach.connect();
    }
    for (_, address) in asked {
        if let Address::Unix(path) = address {
            reach.listen(path);
        }
    }
    Ok(reach.confine(&[])?)
}

/// The accounts; a file that is not there is made, with one account, whose password is printed this once.
fn accounts(args: &StoreServe, place: &Place) -> Result<Arc<Accounts>, Failure> {
    let path = args.accounts.clone().unwrap_or_else(|| {
        let mut path = place.way().into_os_string();
        path.push(".accounts");
        PathBuf::from(path)
    });
    let named = |error: std::io::Error| format!("{}: {error}", path.display());
    if path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
        let password = accounts::random_password()?;
        let mut account = Account::new("postmaster")?;
        account.set_password(password.as_bytes())?;
        let make = |_| Ok(Some(account));
        accounts::edit(&path, "postmaster", make).map_err(named)?;
        println!("account postmaster, password {password} (in {}: sluice account)", path.display());
    }
    Ok(Arc::new(Accounts::open(&path).map_err(named)?))
}

async fn serve(
    sockets: Vec<(Door, Sockets)>,
    control: Option<Control>,
    site: Arc<Site>,
    sessions_max: usize,
    end: watch::Sender<bool>,
) -> Result<(), Failure> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let mut listeners = JoinSet::new();
    if let Some(control) = control {
        listeners.spawn(control.serve(site.clone()));
    }
    let (doors, ended) = Doors::new(site, sessions_max, Arc::new(Alone), watch::channel(true).1);
    for (door, sockets) in &sockets {
        let socket = sockets.take().ok_or("a socket is taken once")??;
        tracing::info!(door = door.name(), address = %sockets.address, "listening");
        listeners.spawn(doors.clone().accept(*door, Arc::new(socket)));
    }
    println!("ready");
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    listeners.shutdown().await;
    end.send_replace(true);
    drop(doors);
    ended.wait(Duration::ZERO).await;
    Ok(())
}
