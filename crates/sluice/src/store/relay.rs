//! Sends mail that goes out: a thread with connections to next hops.
//!
//! The way of a destination is the one that the table of routes has for it or for a domain above it, else that of the mail's sender or its
//! domain, else the relay: one next hop, or the world, which is asked for by DNS ([`world`]), and whose hosts are known by DANE or MTA-STS
//! where they can be ([`ways`]). A next hop may want a [`login`], which it gets over TLS with a certificate for its name.

mod login;
mod logins;
mod reports;
mod scram;
mod session;
mod sts;
mod ways;
mod world;

use std::cell::OnceCell;
use std::collections::HashMap;
use std::net::IpAddr;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use edge::message::asking::Resolver;
use edge::settings::{Forward, ForwardTls, Target, Tls, Verify};
use edge::upstream::route::Route;
use edge::upstream::smtp_hop::Leases;
use mailbox::{Fate, Health, Outgoing, Relay, Report, Sending};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::LocalSet;
use tokio::time::timeout;

use self::login::Login;
use self::logins::Logins;
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

/// Senders with a route or a login.
const SENDERS_MAX: usize = 1_000;

const UNUSED: &str = "a login is for no next hop of relay or routes, and no sender there";

/// The settings of the program that sending needs.
pub struct Means<'a> {
    /// Resolvers for mail servers.
    pub dns: &'a DnsSettings,
    /// How servers are spoken to in TLS.
    pub tls: &'a Tls,
    /// The name that others see.
    pub hostname: &'a str,
    /// Where policies are kept; none: nowhere.
    pub folder: Option<&'a Path>,
    /// The resolver that all ways out share, once one is asked for.
    pub resolver: OnceCell<Arc<resolver::Resolver>>,
}

impl Means<'_> {
    /// The resolver, which is started the first time.
    ///
    /// # Errors
    /// When there is nobody to ask, or no thread to be had.
    pub fn resolver(&self) -> Result<Arc<resolver::Resolver>, String> {
        if let Some(resolver) = self.resolver.get() {
            return Ok(resolver.clone());
        }
        let resolver = resolver::Resolver::start(self.dns, &Arc::default(), None)?;
        Ok(self.resolver.get_or_init(|| resolver).clone())
    }
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
    let Means { dns, tls, hostname, folder, .. } = *means;
    if *way != Outward::World {
        return Ok(Begun { relay: Arc::new(Outbound::start(way, settings, None, means)?), reports: None });
    }
    let resolver = means.resolver()? as Arc<dyn Resolver>;
    let reports = settings.tls_reports.as_ref().map(|contact| Arc::new(Reports::new(resolver.clone(), contact)));
    let tally = reports.as_ref().map(|reports| reports.tally.clone());
    let secured = Secured::new(settings, dns, tls, folder, tally)?;
    let world = World::new(resolver, hostname, settings, secured)?;
    Ok(Begun { relay: Arc::new(Outbound::start(way, settings, Some(world), means)?), reports })
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
        means: &Means<'_>,
    ) -> Result<Outbound, String> {
        let Hops { routes, senders, usual, unused } = hops(way, settings, means.tls)?;
        unused.iter().for_each(|login| tracing::warn!(login, "{UNUSED}"));
        let usual = match (usual, world) {
            (Some(hop), _) => Usual::Hop(Box::new(hop)),
            (None, Some(world)) => Usual::World(Box::new(world)),
            (None, None) => return Err("the mail servers of the world are found by DNS: [dns] servers".into()),
        };
        let hostname = means.hostname.to_owned();
        let is_the_world = *way == Outward::World;
        let at_once = settings.connections_max as usize;
        let (mails, mut waiting) = mpsc::channel::<Job>(WAITING_MAX);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
        let run = move || {
            let ways = Ways { routes, senders, usual, hostname, leases: Leases::default() };
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

/// Next hops that are configured.
struct Hops {
    routes: HashMap<String, Hop>,
    /// By sender, `ann@example.org` or `@example.org`.
    senders: HashMap<String, Hop>,
    /// None: the world.
    usual: Option<Hop>,
    /// Logins that are for none of them.
    unused: Vec<String>,
}

/// A next hop that is configured.
struct Hop {
    route: Route,
    host: Host,
}

/// The next hops of the settings, with their logins.
fn hops(way: &Outward, settings: &QueueSettings, tls: &Tls) -> Result<Hops, String> {
    let logins = settings.logins.as_deref().map(Logins::read).transpose()?.unwrap_or_default();
    let mut used = Vec::new();
    let mut hop = |own: Option<Arc<Login>>, domain: Option<&str>, forward: &Forward| {
        let login = own.or_else(|| logins.find(domain, forward));
        used.extend(login.clone());
        Hop::new(forward, login, settings.logins_without_tls, tls)
    };
    let mut routes = HashMap::new();
    for (domain, forward) in &settings.routes {
        let domain = domain.to_ascii_lowercase();
        let way = hop(None, Some(&domain), forward)?;
        routes.insert(domain, way);
    }
    let senders = senders(way, settings, &logins)?;
    let senders =
        senders.into_iter().map(|(sender, (login, forward))| Ok::<_, String>((sender, hop(login, None, forward)?)));
    let senders = senders.collect::<Result<HashMap<String, Hop>, String>>()?;
    let usual = match way {
        Outward::Hop(forward) => Some(hop(None, None, forward)?),
        Outward::World => None,
    };
    Ok(Hops { routes, senders, usual, unused: logins.unused(&used) })
}

/// The login and the next hop of a sender.
type SenderWay<'s> = (Option<Arc<Login>>, &'s Forward);

/// The logins and the next hops of senders: those with a route, and at the relay those with a login alone. The world asks for no login.
fn senders<'s>(
    way: &'s Outward,
    settings: &'s QueueSettings,
    logins: &Logins,
) -> Result<HashMap<String, SenderWay<'s>>, String> {
    let key = |name: &String| {
        if name.contains('@') { name.to_ascii_lowercase() } else { format!("@{}", name.to_ascii_lowercase()) }
    };
    let routes: HashMap<String, &Forward> = settings.sender_routes.iter().map(|(name, hop)| (key(name), hop)).collect();
    let relay = if let Outward::Hop(forward) = way { Some(forward) } else { None };
    let mut found = HashMap::new();
    for sender in routes.keys().map(String::as_str).chain(logins.senders()) {
        let [own, of_domain] = keys_of(sender);
        let forward = routes.get(own).or_else(|| routes.get(of_domain)).copied().or(relay);
        let login = logins.of_sender(own).or_else(|| logins.of_sender(of_domain));
        if let Some(forward) = forward {
            found.insert(sender.to_owned(), (login, forward));
        }
    }
    match found.len() <= SENDERS_MAX {
        true => Ok(found),
        false => Err(format!("more than {SENDERS_MAX} senders have routes or logins")),
    }
}

/// The names of a sender, and of all of its domain.
fn keys_of(sender: &str) -> [&str; 2] {
    [sender, sender.rfind('@').and_then(|at| sender.get(at..)).unwrap_or_default()]
}

/// Reads the next hops and their logins as [`outbound`] does: what is to be said of them.
///
/// # Errors
/// When they cannot be used; the message says why.
pub fn warnings(way: &Outward, settings: &QueueSettings, tls: &Tls) -> Result<Vec<String>, String> {
    let unused = hops(way, settings, tls)?.unused;
    Ok(unused.into_iter().map(|login| format!("{login}: {UNUSED}")).collect())
}

impl Hop {
    fn new(forward: &Forward, login: Option<Arc<Login>>, may_be_clear: bool, tls: &Tls) -> Result<Hop, String> {
        let is_in_clear = may_be_clear && is_loopback(forward);
        let mut target = Target::new(forward.clone());
        if login.is_some() && !is_in_clear {
            if matches!(forward, Forward::SmtpSocket(_)) {
                return Err(format!("{forward} has a login and no TLS: logins_without_tls would let it"));
            }
            (target.starttls, target.verify) = (ForwardTls::Require, Verify::Name(None));
        }
        let mut route = Route::new(&target, tls)?;
        // Connections of one login serve no other.
        route.key.extend(login.iter().map(|login| format!(" as {}", login.name())));
        let (address, protocol) = route.server().ok_or_else(|| format!("{forward} takes no mail"))?;
        let is_proven = matches!(target.verify, Verify::Name(_)) && (target.is_implicit_tls || login.is_some());
        let host = Host { name: address.clone(), address, protocol, login, is_in_clear, is_proven };
        Ok(Hop { route, host })
    }
}

/// Whether nobody outside of this machine is on the way.
fn is_loopback(hop: &Forward) -> bool {
    let is_near = |host: &str| host.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback());
    matches!(hop, Forward::SmtpSocket(_)) || hop.host().is_some_and(is_near)
}

/// The ways out.
struct Ways {
    routes: HashMap<String, Hop>,
    senders: HashMap<String, Hop>,
    usual: Usual,
    hostname: String,
    leases: Leases,
}

enum Usual {
    Hop(Box<Hop>),
    World(Box<World>),
}

impl Ways {
    async fn send(&self, mail: Outgoing) -> Report {
        let hop = self.route(&mail.destination).or_else(|| self.of_sender(mail.mail.path.as_str()));
        let fixed = match (hop, &self.usual) {
            (Some(hop), _) => hop,
            (None, Usual::Hop(hop)) => hop,
            (None, Usual::World(world)) => return world.send(&mail, &self.hostname, &self.leases).await,
        };
        let mut sent = Sent::new(mail.recipients.len());
        sent.try_host(&fixed.host, &fixed.route, &mail, &self.hostname, &self.leases).await;
        sent.report()
    }

    /// The way of a sender, or of all of its domain.
    fn of_sender(&self, sender: &str) -> Option<&Hop> {
        let sender = sender.to_ascii_lowercase();
        keys_of(&sender).into_iter().find_map(|key| self.senders.get(key))
    }

    /// The route of a domain, or of the nearest above it that has one.
    fn route(&self, domain: &str) -> Option<&Hop> {
        let above = domain.match_indices('.').filter_map(|(dot, _)| domain.get(dot..));
        std::iter::once(domain).chain(above).find_map(|name| self.routes.get(name))
    }
}
