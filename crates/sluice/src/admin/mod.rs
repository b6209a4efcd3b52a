//! The administrator's page: what the gateway does, what is kept, and its configuration; for browsers without script, and for programs.
//!
//! ```text
//!  door      a connection: HTTP, who it is; its place among all of them is in `places`
//!  answer    which page or reply a request gets
//!  history   the gateway's numbers, asked for again and again, for a day
//!  plot      lines of numbers as SVG
//!  page      the pages, made of what `work` and the quarantine answer
//!  api       the same for programs, JSON; described by openapi.json
//!  work      answers and changes, as values
//!  site      the gateway, and the one way to a change: right, change, audit log
//!  access    links, sessions, logins, tokens; people and tokens are in `people`, their rights in `role`
//! ```
//!
//! A process of its own: it shares nothing with the gateway but its metrics, its quarantine and its configuration, as other commands do.

mod access;
mod answer;
mod api;
mod command;
mod door;
mod fault;
mod history;
mod page;
mod people;
mod places;
pub mod role;
mod site;
mod update;
mod work;

use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use edge::net::accept::{Handler, accept};
use edge::net::listening::Socket;
use edge::net::stream::Stream;
use rustix::thread::CapabilitySet;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::audit::trail::folder;
use crate::cli::{Admin, AdminCommand, AdminServe};
use crate::config::Config;
use crate::output::Failure;
use crate::process::beside;
use crate::process::privileges::{self, Account};
use crate::quarantine::place::Place;
use crate::serve::reading::{BUILT_IN, FIRST_STEPS};
use crate::store;
use access::Access;
use places::Places;
use site::Site;

/// Connections at a time; one more gets the place of another that waits for its client.
const CONNECTIONS_MAX: usize = 64;

/// Does what the command line says.
pub fn run(args: &Admin) -> Result<ExitCode, Failure> {
    match &args.command {
        AdminCommand::Serve(args) => serve(args),
        AdminCommand::Openapi => {
            print!("{}", api::DESCRIPTION);
            Ok(ExitCode::SUCCESS)
        }
        AdminCommand::Person(args) => command::person(args),
        AdminCommand::Token(args) => command::token(args),
    }
}

fn serve(args: &AdminServe) -> Result<ExitCode, Failure> {
    if args.built_in {
        if privileges::is_root() {
            // As the gateway does without a configuration.
            Account::nobody().assume(CapabilitySet::empty())?;
        }
        beside::end_with_parent()?;
    }
    let config = match args.built_in {
        true => Config::parse(FIRST_STEPS, BUILT_IN)?,
        false => Config::read(&args.config)?,
    };
    let path = if args.built_in { Path::new(BUILT_IN) } else { &args.config };
    let (folder, listen) = (folder(&config), args.listen.unwrap_or(config.admin.address));
    let (access, token) = Access::new(args.token_file.as_deref(), folder.as_deref(), args.read_only)?;
    let site = Arc::new(Site::new(access, Place::of(config)?, path, args.metrics, folder));
    store::reach::offer(&site.place.config);
    // While there is one thread: root becomes the owner of the store.
    let _ = site.store();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(listen).await.map_err(|error| format!("{listen}: {error}"))?;
        let link = format!("http://{}/enter?token={token}", listener.local_addr()?);
        match args.built_in {
            // The first line on the standard output is the gateway's, which says that it is ready.
            true => eprintln!("\nManage the server in a browser, by a link that is good once:\n\n  {link}\n"),
            false => println!("{link}"),
        }
        let asking = tokio::spawn(site.clone().watch());
        let (socket, clients) = (Socket::Tcp(listener), Clients { site, places: Places::new(CONNECTIONS_MAX) });
        let (mut ended, mut interrupted) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        tokio::select! {
            () = accept("admin", &socket, &clients) => {}
            _ = ended.recv() => {}
            _ = interrupted.recv() => {}
        }
        asking.abort();
        Ok(ExitCode::SUCCESS)
    })
}

/// Clients of the page.
struct Clients {
    site: Arc<Site>,
    places: Places,
}

impl Handler for Clients {
    type Place = places::Place;

    async fn enter(&self, _stream: &Stream, _peer: SocketAddr) -> Result<places::Place, Option<String>> {
        Ok(self.places.take().await)
    }

    fn begin(&self, stream: Stream, peer: SocketAddr, place: places::Place) {
        let site = self.site.clone();
        tokio::spawn(async move { door::serve(stream, peer.ip(), &site, &place).await });
    }
}
