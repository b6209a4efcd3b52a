//! The administrator's page: what the gateway does, what is kept, and its configuration; for browsers without script, and for programs.
//!
//! ```text
//!  door      a connection: HTTP, who it is
//!  answer    which page or reply a request gets
//!  history   the gateway's numbers, asked for again and again, for a day
//!  plot      lines of numbers as SVG
//!  overview kept settings      the pages
//!  api       the same for programs, JSON; described by openapi.json
//! ```
//!
//! A process of its own: it shares nothing with the gateway but its metrics, its quarantine and its configuration, as other commands do.

mod access;
mod answer;
mod api;
mod door;
mod frame;
mod history;
mod kept;
mod overview;
mod plot;
mod settings;
mod site;

use std::process::ExitCode;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;

use crate::cli::{Admin, AdminCommand, AdminServe};
use crate::config::Config;
use crate::output::Failure;
use crate::quarantine::place::Place;
use crate::store;
use access::Access;
use history::History;
use site::Site;

/// Connections at a time; more wait.
const CONNECTIONS_MAX: usize = 64;

/// Does what the command line says.
pub fn run(args: &Admin) -> Result<ExitCode, Failure> {
    match &args.command {
        AdminCommand::Serve(args) => serve(args),
        AdminCommand::Openapi => {
            print!("{}", api::DESCRIPTION);
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn serve(args: &AdminServe) -> Result<ExitCode, Failure> {
    let config = Config::read(&args.config)?;
    let metrics = args.metrics.or(config.metrics.address);
    let (access, token) = Access::new(args.token_file.as_deref(), args.read_only)?;
    let site = Arc::new(Site {
        access,
        history: History::default(),
        metrics,
        hostname: config.hostname.clone(),
        path: args.config.clone(),
        place: Place::of(config)?,
    });
    store::reach::offer(&site.place.config);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(args.listen).await.map_err(|error| format!("{}: {error}", args.listen))?;
        println!("http://{}/enter?token={token}", listener.local_addr()?);
        let asking = tokio::spawn(site.clone().watch());
        let (mut ended, mut interrupted) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        tokio::select! {
            () = accept(listener, &site) => {}
            _ = ended.recv() => {}
            _ = interrupted.recv() => {}
        }
        asking.abort();
        Ok(ExitCode::SUCCESS)
    })
}

async fn accept(listener: TcpListener, site: &Arc<Site>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    while let Ok(place) = places.clone().acquire_owned().await {
        match listener.accept().await {
            Ok((stream, client)) => {
                let site = site.clone();
                tokio::spawn(async move {
                    let _ = door::serve(stream, client.ip(), &site).await;
                    drop(place);
                });
            }
            // As long as there is no descriptor for it, a client waits.
            Err(_) => tokio::time::sleep(std::time::Duration::from_millis(100)).await,
        }
    }
}
