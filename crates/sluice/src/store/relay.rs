//! Sends mail that goes out: a thread with connections to next hops.
//!
//! The way of a destination is the one that the table of routes has for it or for a domain above it, else the relay: one next hop, or
//! the world, which is asked for by DNS ([`world`]), and whose hosts are known by DANE or MTA-STS where they can be ([`ways`]).

mod reports;
mod session;
mod sts;
mod ways;
mod world;

use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use edge::message::asking::Resolver;
use edge::settings::{Forward, Target, Tls};
use edge::upstream::route::Route;
use edge::upstream::smtp_hop::Leases;
use mailbox::{Fate, Health, Outgoing, Relay, Report, Sending};
use proto::smtp::Protocol;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::LocalSet;
use tokio::time::timeout;

pub use self::reports::Reports;
use self::session::{Host, Sent};
use self::ways::Secured;
use self::world::World;
use crate::config::dns::DnsSettings;
use crate::config::{Outward, QueueSettings};
use crate::resolver;

/// Mails that wait for their turn; who brings another one is told so.
const WAITING_MAX: usize = 1_000;

/// How long an attempt may take: what hosts may take for one mail (RFC 5321, section 4.5.3.2), and for a few that do not answer.
const ATTEMPT_WAIT: Duration = Duration::from_secs(1_800);

/// The settings of the program that sending needs.
pub struct Means<'a> {
    /// Who is asked for mail servers.
    pub dns: &'a DnsSettings,
    /// How servers are spoken to in TLS.
    pub tls: &'a Tls,
    /// The name that others see.
    pub hostname: &'a str,
    /// Where policies are kept; none: nowhere.
    pub folder: Option<&'a Path>,
}

/// The way out, and who reports of it.
pub struct Begun {
    /// The way out.
    pub relay: Arc<dyn Relay>,
    /// Where reports are wanted.
    pub reports: Option<Arc<Reports>>,
}

/// Begins to send mail that goes out.
///
/// # Errors
/// As [`Outbound::start`], and where nobody can be asked for the hosts of the world.
pub fn outbound(way: &Outward, settings: &QueueSettings, means: &Means<'_>) -> Result<Begun, String> {
    let Means { dns, tls, hostname, folder } = means;
    if *way != Outward::World {
        return Ok(Begun { relay: Arc::new(Outbound::start(way, settings, None, hostname)?), reports: None });
    }
    let resolver = resolver::Resolver::start(dns, &Arc::default(), None)? as Arc<dyn Resolver>;
    let reports = settings.tls_reports.as_ref().map(|contact| Arc::new(Reports::new(resolver.clone(), contact)));
    let tally = reports.as_ref().map(|reports| reports.tally.clone());
    let secured = Secured::new(settings, dns, tls, *folder, tally)?;
    let world = World::new(resolver, hostname, settings, secured)?;
    Ok(Begun { relay: Arc::new(Outbound::start(way, settings, Some(world), hostname)?), reports })
}

/// The way to the thread.
pub struct Outbound {
    mails: mpsc::Sender<Job>,
    is_the_world: bool,
}

type Job = (Outgoing, oneshot::Sender<Report>);

impl Outbound {
    /// Starts the thread, with the world where that is meant.
    ///
    /// # Errors
    /// When there is no such hop, or no thread.
    pub fn start(
        way: &Outward,
        settings: &QueueSettings,
        world: Option<World>,
        hostname: &str,
    ) -> Result<Outbound, String> {
        let routes = settings.routes.iter().map(|(domain, hop)| Ok((domain.to_ascii_lowercase(), fixed(hop)?)));
        let routes: HashMap<String, (Route, Protocol)> = routes.collect::<Result<_, String>>()?;
        let usual = match way {
            Outward::Hop(hop) => Usual::Hop(fixed(hop)?),
            Outward::World => {
                let world = world.ok_or("the mail servers of the world are found by DNS: [dns] servers")?;
                Usual::World(Box::new(world))
            }
        };
        let is_the_world = *way == Outward::World;
        let at_once = settings.connections_max as usize;
        let (mails, mut waiting) = mpsc::channel::<Job>(WAITING_MAX);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
        let hostname = hostname.to_owned();
        let run = move || {
            let ways = Ways { routes, usual, hostname, leases: Leases::default() };
            let (ways, permits) = (Rc::new(ways), Arc::new(Semaphore::new(at_once)));
            let serve = async {
                while let Some((mail, told)) = waiting.recv().await {
                    let Ok(permit) = permits.clone().acquire_owned().await else { return };
                    let ways = ways.clone();
                    tokio::task::spawn_local(async move {
                        let count = mail.recipients.len();
                        let late = || Report::all(count, &Fate::later((4, 4, 2), "it took too long"), Health::Ill);
                        let report = timeout(ATTEMPT_WAIT, ways.send(mail)).await;
                        let _ = told.send(report.unwrap_or_else(|_| late()));
                        drop(permit);
                    });
                }
            };
            LocalSet::new().block_on(&runtime, serve);
        };
        std::thread::Builder::new().name("outbound".into()).spawn(run).map_err(|error| error.to_string())?;
        Ok(Outbound { mails, is_the_world })
    }
}

impl Relay for Outbound {
    fn send(&self, mail: Outgoing) -> Sending {
        let count = mail.recipients.len();
        let (tell, told) = oneshot::channel();
        let handed = self.mails.try_send((mail, tell)).is_ok();
        let lost = move |why| Report::all(count, &Fate::later((4, 3, 2), why), Health::Unknown);
        Box::pin(async move {
            match handed {
                true => told.await.unwrap_or_else(|_| lost("the thread that sends has ended")),
                false => lost("too many mails are being sent"),
            }
        })
    }

    fn is_the_world(&self) -> bool {
        self.is_the_world
    }
}

/// A next hop that is configured.
fn fixed(hop: &Forward) -> Result<(Route, Protocol), String> {
    let route = Route::new(&Target::new(hop.clone()), &Tls::default())?;
    let (_, protocol) = route.server().ok_or_else(|| format!("{hop} takes no mail"))?;
    Ok((route, protocol))
}

/// The ways out.
struct Ways {
    routes: HashMap<String, (Route, Protocol)>,
    usual: Usual,
    hostname: String,
    leases: Leases,
}

enum Usual {
    Hop((Route, Protocol)),
    World(Box<World>),
}

impl Ways {
    async fn send(&self, mail: Outgoing) -> Report {
        let fixed = match (self.route(&mail.destination), &self.usual) {
            (Some(hop), _) | (None, Usual::Hop(hop)) => hop,
            (None, Usual::World(world)) => return world.send(&mail, &self.hostname, &self.leases).await,
        };
        let (route, protocol) = fixed;
        let address = route.server().map(|(address, _)| address).unwrap_or_default();
        let mut sent = Sent::new(mail.recipients.len());
        let host = Host { name: address.clone(), address, protocol: *protocol };
        sent.try_host(&host, route, &mail, &self.hostname, &self.leases).await;
        sent.report()
    }

    /// The route of a domain, or of the nearest above it that has one.
    fn route(&self, domain: &str) -> Option<&(Route, Protocol)> {
        let above = domain.match_indices('.').filter_map(|(dot, _)| domain.get(dot..));
        std::iter::once(domain).chain(above).find_map(|name| self.routes.get(name))
    }
}
