//! The mail server on the store of `sluice serve`: the volume, its guarded writer, passwords and sessions.
//!
//! ```text
//!  SMTP ── edge: held back, inspected ── a pair of sockets ──► mailbox: LMTP or SMTP ──► the writer
//!  IMAP, POP3 ◄──────────────────────────────────────────────── mailbox: sessions ◄──── snapshots
//! ```
//!
//! What it needs of the process around it stands in [`host`](super::host).
//!
//! The store is locked by the process that has it. A process that follows another opens it when that one has let go of it, and
//! lets mails and clients wait until then; one that is followed closes it first, and carries mails of its sessions to the
//! next one (`following.rs`). It stays as it is through reloads.

mod turns;

use std::cell::OnceCell;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use edge::message::authenticity::Evaluations;
use edge::net::listening::{Owner, Socket, Sockets};
use edge::net::stream::Stream;
use edge::settings::{Address, SocketMode, Tls};
use edge::upstream::within::Caller;
use flow::Inspector;
use mailbox::accounts::Accounts;
use mailbox::discovery::Discovery;
use mailbox::feedback::Feedback;
use mailbox::queue::{Leavings, Queue};
use mailbox::scripts::SiteScripts;
use mailbox::{Elsewhere, File, Handle, Relay, Remote, Rewriter, Site, Writer};
use store::Volume;
use tokio::runtime::Runtime as Loops;
use tokio::sync::{mpsc, watch};

use super::control::Control;
use super::dkim::signer::Signers;
use super::dmarc::{Reporter, Tally};
use super::doors::Doors;
use super::host::{Host, Lent};
use super::maildrop::{Intake, Maildrop};
use super::moves::Moves;
use super::numbers::Levels;
use super::relay::{Means, Reports, outbound};
use super::remote::Servers;
use super::srs::Srs;
use super::{folder, following, shared};
use crate::cluster::documents::{Keeper, State};
use crate::cluster::{Member, Tenure};
use crate::config::dns::DnsSettings;
use crate::config::{ClusterSettings, Door, StoreSettings};
use crate::output::Failure;

/// How often it is tried to open a store that another process has.
const TRY_EVERY: Duration = Duration::from_millis(50);

/// How often the log says that another process has it.
const WARN_EVERY: Duration = Duration::from_secs(30);

/// How often the numbers are brought up to date that only the writer knows.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// A connection of a door of the gateway.
pub type Handed = (UnixStream, Caller);

/// Sockets of the store, until they are taken.
pub struct Open {
    /// Where clients come to.
    pub doors: Vec<(Door, Sockets)>,
    /// Where other nodes hand over connections.
    pub reception: Option<Sockets>,
}

/// The mail server, for the whole run.
pub struct Server {
    settings: StoreSettings,
    /// How long mails that a next hop may have already wait for its answer when the server ends.
    stop_seconds: u64,
    /// Mails whose answers come when the process that follows has the store.
    leavings: Leavings,
    /// This machine among those that share it.
    member: Option<Arc<Member>>,
    /// Whether its files are those of the cluster.
    documents: Arc<State>,
    /// The doors that programs are told of.
    discovery: Discovery,
    host: Arc<dyn Host>,
    /// What reports of DMARC count, where they are sent.
    tally: Option<Arc<Tally>>,
    shown: Mutex<Weak<Site>>,
    levels: Arc<Levels>,
    end: watch::Sender<bool>,
    /// Whether all doors of the gateway are closed.
    over: watch::Sender<bool>,
}

/// A server that is about to run: its parts, and its volume unless another process has it.
pub struct Prepared {
    volume: Option<Volume<File>>,
    parts: Parts,
}

impl Open {
    /// Opens the sockets.
    ///
    /// # Errors
    /// When an address cannot be had.
    pub fn new(settings: &StoreSettings, cluster: Option<&ClusterSettings>) -> Result<Open, String> {
        let owner = Owner { mode: SocketMode::default(), group: None };
        let doors = settings.doors().map(|(door, address)| Ok((door, Sockets::open(address, &owner, 1, false)?)));
        let doors = doors.collect::<Result<_, String>>()?;
        let reception = |cluster: &ClusterSettings| Sockets::open(&Address::Tcp(cluster.address), &owner, 1, false);
        Ok(Open { doors, reception: cluster.map(reception).transpose()? })
    }
}

impl Server {
    /// Reads what only a privileged process may read.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn new(
        settings: &StoreSettings,
        (cluster, stop_seconds): (Option<&ClusterSettings>, u64),
        authorities: &Path,
        discovery: Discovery,
        host: Arc<dyn Host>,
    ) -> Result<Server, String> {
        let member = |cluster| Member::new(cluster, authorities, settings.volume(), settings.new_size()).map(Arc::new);
        Ok(Server {
            settings: settings.clone(),
            stop_seconds,
            leavings: Leavings::beside(&settings.volume(), Duration::from_secs(stop_seconds)),
            member: cluster.map(member).transpose()?,
            documents: Arc::default(),
            discovery,
            host,
            tally: settings.queue.dmarc_reports.as_ref().map(|_| Arc::default()),
            shown: Mutex::default(),
            levels: Arc::default(),
            end: watch::channel(false).0,
            over: watch::channel(false).0,
        })
    }

    /// Opens the store, which is made if it is not there; `elsewhere` knows accounts that its file does not.
    ///
    /// # Errors
    /// When it cannot be opened for another reason than that another process has it, or accounts cannot be read.
    pub fn prepare(
        &self,
        hostname: &str,
        dns: &DnsSettings,
        tls: &Tls,
        elsewhere: Option<Arc<dyn Elsewhere>>,
    ) -> Result<Prepared, Failure> {
        let means = Means { dns, tls, hostname, folder: Some(&self.settings.folder), resolver: OnceCell::new() };
        let way = self.settings.relay.as_ref();
        let begun = way.map(|way| outbound(way, &self.settings.queue, &means)).transpose()?;
        let dmarc = self.reporter(&means)?;
        let path = self.settings.volume();
        if self.member.is_none() {
            folder::make(&path, self.settings.new_size()).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        let accounts = folder::accounts(&self.settings.accounts(), self.member.is_some())?;
        let accounts = Arc::new(match elsewhere {
            Some(elsewhere) => accounts.and(elsewhere),
            None => accounts,
        });
        let scripts = self.settings.scripts()?;
        let queue = &self.settings.queue;
        let domain = queue.srs_domain.as_deref().unwrap_or(hostname);
        let srs = queue.srs_secret.as_ref().map(|secret| Srs::read(secret, domain)).transpose()?;
        let volume = if self.member.is_none() { folder::open(&path, self.settings.size)? } else { None };
        let remote = self.remote(&means);
        let (relay, reports) = begun.map(|begun| (begun.relay, begun.reports)).unzip();
        let parts = Parts {
            accounts,
            scripts,
            relay,
            reports: reports.flatten(),
            dmarc,
            rewriter: srs.map(|srs| Arc::new(srs) as Arc<dyn Rewriter>),
            remote,
            hostname: hostname.to_owned(),
        };
        Ok(Prepared { volume, parts })
    }

    /// The counter of evaluations of DMARC, where reports are sent.
    pub fn evaluations(&self) -> Option<Arc<dyn Evaluations>> {
        self.tally.clone().map(|tally| tally as Arc<dyn Evaluations>)
    }

    /// The sender of reports of DMARC, where they are sent.
    fn reporter(&self, means: &Means<'_>) -> Result<Option<Arc<Reporter>>, String> {
        let Some((tally, contact)) = self.tally.clone().zip(self.settings.queue.dmarc_reports.as_ref()) else {
            return Ok(None);
        };
        let resolver = means.resolver()?;
        let file = self.settings.folder.join("dmarc");
        Ok(Some(Arc::new(Reporter::new(tally, resolver, contact, file))))
    }

    /// The way to servers that mails name; none where it is not wanted, or where names cannot be looked up or servers not be known.
    fn remote(&self, means: &Means<'_>) -> Option<Arc<dyn Remote>> {
        let settings = &self.settings;
        if !settings.remote_content || settings.webmail.is_empty() && settings.webmails.is_empty() {
            return None;
        }
        let made = means.resolver().and_then(|resolver| {
            Servers::new(resolver, &means.tls.authorities, means.hostname, &settings.remote_destinations)
        });
        made.map(|servers| Arc::new(servers) as Arc<dyn Remote>)
            .inspect_err(|error| tracing::warn!(error, "the webmail fetches nothing from other servers"))
            .ok()
    }

    /// Its numbers, while it is open; of a node that waits for its turn, that it does.
    pub fn numbers(&self) -> String {
        let site = self.shown.lock().unwrap_or_else(PoisonError::into_inner).upgrade();
        if site.is_none() && self.member.is_none() {
            return String::new();
        }
        let numbers = site.map(|site| self.levels.text(&site)).unwrap_or_default();
        let epoch = self.member.as_ref().map_or(0, |member| member.epoch());
        let reports = self.tally.as_ref().map(|tally| tally.text()).unwrap_or_default();
        let folds = self.member.as_ref().map(|member| member.folding.clone()).unwrap_or_default().text();
        let name = "sluice_store_cluster_epoch";
        let help = "Epoch of this node as the owner of a store that machines share, else 0.";
        let documents = self.member.as_ref().map(|_| self.documents.text("store")).unwrap_or_default();
        numbers
            + &reports
            + &folds
            + &documents
            + &format!("# HELP {name} {help}\n# TYPE {name} gauge\n{name} {epoch}\n")
    }

    /// Closes the store as soon as the mails that are being handed over are in it.
    pub fn end(&self) {
        self.end.send_replace(true);
    }

    /// No door of the gateway hands over anything any more.
    pub fn is_over(&self) {
        self.over.send_replace(true);
        self.end();
    }

    /// Serves clients of these sockets, and the connections that wait, until the end.
    ///
    /// # Errors
    /// When the store cannot be opened or served.
    pub fn run(
        &self,
        Prepared { mut volume, parts }: Prepared,
        sockets: &Open,
        mut waiting: mpsc::Receiver<Handed>,
    ) -> Result<(), Failure> {
        let parts = &parts;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let listening = {
            let _within = runtime.enter();
            listening(sockets)?
        };
        let outcome = match &self.member {
            None => match self.opened(volume.take())? {
                Some(volume) => self.own(&runtime, volume, parts, &listening, &mut waiting, None),
                None => Ok(()),
            },
            Some(member) => {
                self.keep_documents(member)?;
                self.take_turns(&runtime, member, parts, &listening, &mut waiting)
            }
        };
        if self.member.is_none() && *self.end.borrow() {
            runtime.block_on(async {
                following::serve(&self.settings.volume(), &mut waiting, self.over.subscribe()).await;
                self.leavings.finish().await;
            });
        }
        runtime.shutdown_timeout(Duration::from_secs(1));
        outcome
    }

    /// Keeps files of the store in step with the documents of the cluster until the end, on a thread that may wait for locks.
    fn keep_documents(&self, member: &Member) -> Result<(), Failure> {
        let (files, end, state) = (shared::of_store(&self.settings), self.end.subscribe(), self.documents.clone());
        let keeper = Keeper::new(member.documents(), watch::channel(files).1, state);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let keep = move || runtime.block_on(keeper.run(end));
        Ok(std::thread::Builder::new().name("documents".into()).spawn(keep).map(drop)?)
    }

    fn maildrop(&self) -> Option<Maildrop> {
        let maildrop = Maildrop::new(self.settings.maildrop.as_ref()?, &self.settings.maildrop_trusted);
        Some(match &self.member {
            Some(member) => maildrop.of_node(member.node()),
            None => maildrop,
        })
    }

    /// Serves a store, until it ends here.
    fn own(
        &self,
        runtime: &Loops,
        volume: Volume<File>,
        parts: &Parts,
        listening: &Listening,
        waiting: &mut mpsc::Receiver<Handed>,
        tenure: Option<(&Arc<Member>, Tenure)>,
    ) -> Result<(), Failure> {
        for damage in &volume.report().damage {
            tracing::error!(%damage, "the store is damaged");
        }
        let (writer, handle) = Writer::start(volume)?;
        let (end, ending) = watch::channel(false);
        let site = Arc::new(self.site(handle, parts, &ending)?);
        let (holding, holds) = watch::channel(true);
        if let Some((member, tenure)) = tenure {
            turns::keep(member.clone(), tenure, end.clone(), holding)?;
        }
        let outcome = runtime.block_on(self.serve(site, parts, listening, waiting, (end, holds)));
        writer.join()?;
        tracing::info!("the store is closed");
        outcome
    }

    fn site(&self, handle: Handle, parts: &Parts, ending: &watch::Receiver<bool>) -> Result<Site, Failure> {
        let most = self.settings.message_bytes_max;
        let mut site = Site::new(handle, parts.accounts.clone(), parts.hostname.clone(), most, ending.clone());
        site.junk = self.settings.junk;
        site.discovery = self.discovery.clone();
        site.scripts = parts.scripts.clone();
        site.relay = parts.relay.clone();
        site.rewriter = parts.rewriter.clone();
        site.remote = parts.remote.clone();
        site.signer = Some(Arc::new(Signers::new(self.settings.dkim())));
        site.queue = Queue::new(self.settings.queue.limits());
        // The store of a cluster may go to another machine, which knows nothing of this one's processes.
        site.queue.leavings = self.member.is_none().then(|| self.leavings.clone());
        site.patience = self.settings.queue.patience();
        site.relay_domains = self.settings.queue.relay_domains.clone();
        let from = &self.settings.queue.feedback_from;
        site.feedback = self.settings.queue.feedback.clone().map(|address| Feedback { address, from: from.clone() });
        site.recipients_hour_max = self.settings.queue.recipients_hour_max;
        let lent: Arc<dyn Inspector> = Arc::new(Lent(self.host.clone()));
        site.inspector = self.settings.search_index.then(|| lent.clone());
        site.guard = Some(lent);
        site.learner = Some(Arc::new(Moves::start(self.host.clone(), site.store.clone(), ending.clone())?));
        Ok(site)
    }

    /// Waits until nobody else has it; none if we are to end before.
    fn opened(&self, mut volume: Option<Volume<File>>) -> Result<Option<Volume<File>>, Failure> {
        let mut warned: Option<Instant> = None;
        while volume.is_none() && !*self.end.borrow() {
            if warned.is_none_or(|warned| warned.elapsed() > WARN_EVERY) {
                let folder = self.settings.folder.display();
                // At each hand-over the process before needs a moment.
                match warned.replace(Instant::now()) {
                    None => tracing::info!(%folder, "waiting for another process to close the store"),
                    Some(_) => tracing::warn!(%folder, "still waiting for another process to close the store"),
                }
            }
            std::thread::sleep(TRY_EVERY);
            volume = folder::open(&self.settings.volume(), self.settings.size)?;
        }
        Ok(volume)
    }

    async fn serve(
        &self,
        site: Arc<Site>,
        parts: &Parts,
        listening: &Listening,
        waiting: &mut mpsc::Receiver<Handed>,
        (end, holds): (watch::Sender<bool>, watch::Receiver<bool>),
    ) -> Result<(), Failure> {
        let mut listeners = tokio::task::JoinSet::new();
        let control = Control::open(&self.settings.volume());
        let audit = control.as_ref().map(Control::audit);
        if let Some(control) = control {
            listeners.spawn(control.serve(site.clone()));
        }
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(&site);
        listeners.spawn(look(self.levels.clone(), site.clone()));
        if let Some(reports) = parts.reports.clone() {
            let site = site.clone();
            listeners.spawn(async move { reports.serve(site).await });
        }
        if let Some(dmarc) = parts.dmarc.clone() {
            let site = site.clone();
            listeners.spawn(async move { dmarc.serve(site).await });
        }
        if let Some(maildrop) = self.maildrop() {
            listeners.spawn(maildrop.serve(Intake::Here(site.clone())));
        }
        let (doors, ended) = Doors::new(site.clone(), self.settings.sessions_max, self.host.clone(), holds);
        for (door, socket) in &listening.doors {
            listeners.spawn(doors.clone().accept(*door, socket.clone()));
        }
        if let (Some(member), Some(socket)) = (&self.member, &listening.reception) {
            listeners.spawn(doors.clone().receive(socket.clone(), member.secret.clone(), audit));
        }
        let (mut program, mut here) = (self.end.subscribe(), end.subscribe());
        loop {
            tokio::select! {
                _ = program.wait_for(|&ending| ending) => break,
                _ = here.wait_for(|&ending| ending) => break,
                Some((stream, caller)) = waiting.recv() => {
                    doors.hand_over(Stream::Unix(tokio::net::UnixStream::from_std(stream)?), caller);
                }
            }
        }
        // A process that follows waits for the store: answers to mails under way are left to it.
        let mut mails = Duration::ZERO;
        if *self.over.borrow() {
            site.queue.set_stop_seconds(self.stop_seconds);
            mails = Duration::from_secs(self.stop_seconds);
        } else {
            self.leavings.hand_over();
        }
        end.send_replace(true);
        listeners.shutdown().await;
        parts.dmarc.iter().for_each(|dmarc| dmarc.keep());
        drop(doors);
        ended.wait(mails).await;
        site.keep_rates().await;
        Ok(())
    }
}

/// Parts of a store besides its volume.
struct Parts {
    accounts: Arc<Accounts>,
    scripts: SiteScripts,
    relay: Option<Arc<dyn Relay>>,
    reports: Option<Arc<Reports>>,
    dmarc: Option<Arc<Reporter>>,
    rewriter: Option<Arc<dyn Rewriter>>,
    remote: Option<Arc<dyn Remote>>,
    hostname: String,
}

/// The sockets that clients come to.
struct Listening {
    doors: Vec<(Door, Arc<Socket>)>,
    reception: Option<Arc<Socket>>,
}

/// Takes the sockets.
fn listening(open: &Open) -> Result<Listening, Failure> {
    let taken = |sockets: &Sockets| Ok::<_, Failure>(Arc::new(sockets.take().ok_or("a socket is taken once")??));
    let doors = open.doors.iter().map(|(door, sockets)| {
        tracing::info!(door = door.name(), address = %sockets.address, "the store is listening");
        Ok::<_, Failure>((*door, taken(sockets)?))
    });
    Ok(Listening {
        doors: doors.collect::<Result<_, _>>()?,
        reception: open.reception.as_ref().map(taken).transpose()?,
    })
}

/// Looks at the levels of the store now and then.
async fn look(levels: Arc<Levels>, site: Arc<Site>) {
    loop {
        levels.look(&site).await;
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
