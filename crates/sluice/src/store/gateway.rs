//! The mail store within `sluice serve`: a thread of the edge, which mail is handed to without leaving the process.
//!
//! ```text
//!  SMTP ── edge: held back, inspected ── a pair of sockets ──► mailbox: LMTP or SMTP ──► the writer
//!  IMAP, POP3 ◄──────────────────────────────────────────────── mailbox: sessions ◄──── snapshots
//! ```
//!
//! The store is locked by the process that has it. An edge that follows another opens it when that one has let go of it, and
//! lets mails and clients wait until then; one that is followed closes it first, and carries mails of its sessions to the
//! next one (`following.rs`). It stays as it is through reloads.

use std::cell::OnceCell;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::Poll;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use edge::message::authenticity::Evaluations;
use edge::net::listening::{Owner, Socket, Sockets};
use edge::net::stream::Stream;
use edge::porch::runtime::Runtime;
use edge::settings::{Address, SocketMode, Spam, Tls};
use edge::upstream::within::{self, Caller};
use flow::{Answer, Context, Inspecting, Inspector, Out, Progress, Recalled, Unfinished};
use mailbox::accounts::{self, Account, Accounts};
use mailbox::discovery::Discovery;
use mailbox::feedback::Feedback;
use mailbox::queue::{Leavings, Queue};
use mailbox::scripts::SiteScripts;
use mailbox::{Elsewhere, File, Handle, Relay, Remote, Rewriter, Site, Writer};
use store::{Format, Options, Volume};
use tokio::runtime::Runtime as Loops;
use tokio::sync::{mpsc, watch};

use super::control::{self, Control};
use super::dkim::signer::Signers;
use super::dmarc::{Reporter, Tally};
use super::doors::{Doors, Identity};
use super::entrusted::Owner as StoreOwner;
use super::following;
use super::maildrop::{self, Intake, Maildrop};
use super::moves::{Moves, Teachers};
use super::numbers::Levels;
use super::relay::{Means, Reports, outbound};
use super::remote::Servers;
use super::srs::Srs;
use super::volume::{fill, segment_bytes};
use crate::cluster::{Leave, Member, Owned, Tenure, standby};
use crate::config::dns::DnsSettings;
use crate::config::{ClusterSettings, Door, StoreSettings};
use crate::output::Failure;

/// Connections that wait for a store that is not open yet.
const WAITING_MAX: usize = 4_096;

/// How often it is tried to open a store that another process has.
const TRY_EVERY: Duration = Duration::from_millis(50);

/// How often the log says that another process has it.
const WARN_EVERY: Duration = Duration::from_secs(30);

/// How often the numbers are brought up to date that only the writer knows.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// The pause of a node that cannot serve the store which it has.
const TROUBLE_PAUSE: Duration = Duration::from_secs(5);

/// A connection of a door.
type Handed = (UnixStream, Caller);

/// The store, for the whole run.
pub struct Store {
    /// Settings of the store.
    pub settings: StoreSettings,
    /// How long mails that a next hop may have already wait for its answer when the server ends.
    stop_seconds: u64,
    /// Mails whose answers come when the process that follows has the store.
    leavings: Leavings,
    /// Where it listens.
    pub sockets: Vec<(Door, Sockets)>,
    /// This machine among those that share it.
    member: Option<Arc<Member>>,
    /// Sockets at which other nodes hand over connections.
    reception: Option<Sockets>,
    /// The doors that programs are told of.
    discovery: Discovery,
    identity: Identity,
    teachers: Teachers,
    /// What reports of DMARC count, where they are sent.
    tally: Option<Arc<Tally>>,
    shown: Mutex<Weak<Site>>,
    levels: Arc<Levels>,
    end: watch::Sender<bool>,
    /// Whether all doors of this process are closed.
    over: watch::Sender<bool>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Inspector since the last reload.
struct Lent(Identity);

impl Inspector for Lent {
    fn open(&self, context: Context) -> Box<dyn Inspecting> {
        let runtime = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match runtime {
            Some(runtime) => {
                runtime.means.inspector.open(Context { passwords: runtime.means.passwords.clone(), ..context })
            }
            None => Box::new(Nobody),
        }
    }

    fn takes_back(&self) -> bool {
        false
    }
}

/// Before anybody inspects.
struct Nobody;

impl Inspecting for Nobody {
    fn feed(&mut self, bytes: &[u8]) -> usize {
        bytes.len()
    }

    fn finish(&mut self) {}

    fn stop(&mut self, _name: &'static str) {}

    fn answer(&mut self, _answer: Answer) {}

    fn recalled(&mut self, _recalled: Option<Recalled>) {}

    fn poll(&mut self, _context: &mut std::task::Context<'_>) -> Poll<Progress> {
        Poll::Ready(Progress::Lost(Unfinished::Gone))
    }

    fn hear(&mut self) -> Option<Out> {
        None
    }
}

/// Name and password of the account that is made for a newcomer.
pub struct Newcomer {
    /// Its address.
    pub name: &'static str,
    /// Made anew at each start.
    pub password: String,
}

impl Store {
    /// Opens the sockets.
    ///
    /// # Errors
    /// When an address cannot be had.
    pub fn open(
        settings: &StoreSettings,
        (cluster, stop_seconds): (Option<&ClusterSettings>, u64),
        authorities: &Path,
        discovery: Discovery,
    ) -> Result<Store, String> {
        let owner = Owner { mode: SocketMode::default(), group: None };
        let member = |cluster| Member::new(cluster, authorities, settings.volume(), settings.size).map(Arc::new);
        let reception = |cluster: &ClusterSettings| Sockets::open(&Address::Tcp(cluster.address), &owner, 1, false);
        let sockets = settings.doors().map(|(door, address)| Ok((door, Sockets::open(address, &owner, 1, false)?)));
        Ok(Store {
            settings: settings.clone(),
            stop_seconds,
            leavings: Leavings::beside(&settings.volume(), Duration::from_secs(stop_seconds)),
            sockets: sockets.collect::<Result<_, String>>()?,
            member: cluster.map(member).transpose()?,
            reception: cluster.map(reception).transpose()?,
            discovery,
            identity: Arc::default(),
            teachers: Teachers::default(),
            tally: settings.queue.dmarc_reports.as_ref().map(|_| Arc::default()),
            shown: Mutex::default(),
            levels: Arc::default(),
            end: watch::channel(false).0,
            over: watch::channel(false).0,
            thread: Mutex::default(),
        })
    }

    /// The sockets of all its doors.
    pub fn all_sockets(&self) -> impl Iterator<Item = &Sockets> {
        self.sockets.iter().map(|(_, sockets)| sockets).chain(&self.reception)
    }

    /// Sets the TLS identity for clients, and the learner for moved mail.
    pub fn show(&self, runtime: &Arc<Runtime>, spam: Option<Spam>) {
        self.teachers.show(runtime, spam);
        *self.identity.lock().unwrap_or_else(PoisonError::into_inner) = Some(runtime.clone());
    }

    /// Opens the store, which is made if it is not there, and begins to serve; `elsewhere` knows accounts that its file does not.
    ///
    /// # Errors
    /// When it cannot be opened for another reason than that another process has it, or accounts cannot be read.
    pub fn begin(
        self: &Arc<Self>,
        hostname: &str,
        dns: &DnsSettings,
        tls: &Tls,
        elsewhere: Option<Arc<dyn Elsewhere>>,
    ) -> Result<(), Failure> {
        let means = Means { dns, tls, hostname, folder: Some(&self.settings.folder), resolver: OnceCell::new() };
        let way = self.settings.relay.as_ref();
        let begun = way.map(|way| outbound(way, &self.settings.queue, &means)).transpose()?;
        let dmarc = self.reporter(&means)?;
        let path = self.settings.volume();
        if self.member.is_none() {
            make(&path, self.settings.size).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        let accounts = accounts(&self.settings.accounts())?;
        let accounts = Arc::new(match elsewhere {
            Some(elsewhere) => accounts.and(elsewhere),
            None => accounts,
        });
        let scripts = self.settings.scripts()?;
        let queue = &self.settings.queue;
        let domain = queue.srs_domain.as_deref().unwrap_or(hostname);
        let srs = queue.srs_secret.as_ref().map(|secret| Srs::read(secret, domain)).transpose()?;
        let volume = if self.member.is_none() { open(&path)? } else { None };
        let (handed, waiting) = mpsc::channel(WAITING_MAX);
        let hand = move |stream, caller| {
            handed.try_send((stream, caller)).map_err(|error| {
                let (stream, _) = error.into_inner();
                stream
            })
        };
        within::offer(Box::new(hand));
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
        let local = self.clone();
        let run = move || {
            if let Err(error) = local.run(volume, &parts, waiting) {
                tracing::error!(%error, "the store is closed");
            }
        };
        let thread = std::thread::Builder::new().name("store".into()).spawn(run)?;
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        Ok(())
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
        let name = "sluice_store_cluster_epoch";
        let help = "Epoch of this node as the owner of a store that machines share, else 0.";
        numbers + &reports + &format!("# HELP {name} {help}\n# TYPE {name} gauge\n{name} {epoch}\n")
    }

    /// Closes the store as soon as the mails that are being handed over are in it.
    pub fn end(&self) {
        self.end.send_replace(true);
    }

    /// The same where no door hands over anything any more, and waits for it.
    pub fn finish(&self) {
        self.over.send_replace(true);
        self.end();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        thread.map(JoinHandle::join);
    }

    fn run(
        &self,
        mut volume: Option<Volume<File>>,
        parts: &Parts,
        mut waiting: mpsc::Receiver<Handed>,
    ) -> Result<(), Failure> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let listening = {
            let _within = runtime.enter();
            self.listening()?
        };
        let outcome = match &self.member {
            None => match self.opened(volume.take())? {
                Some(volume) => self.own(&runtime, volume, parts, &listening, &mut waiting, None),
                None => Ok(()),
            },
            Some(member) => self.take_turns(&runtime, member, parts, &listening, &mut waiting),
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

    /// Takes the sockets.
    fn listening(&self) -> Result<Listening, Failure> {
        let taken = |sockets: &Sockets| Ok::<_, Failure>(Arc::new(sockets.take().ok_or("a socket is taken once")??));
        let doors = self.sockets.iter().map(|(door, sockets)| {
            tracing::info!(door = door.name(), address = %sockets.address, "the store is listening");
            Ok::<_, Failure>((*door, taken(sockets)?))
        });
        Ok(Listening {
            doors: doors.collect::<Result<_, _>>()?,
            reception: self.reception.as_ref().map(taken).transpose()?,
        })
    }

    /// Hands clients over to the node that has the store, until that is this one; and again when it is not any more.
    fn take_turns(
        &self,
        runtime: &Loops,
        member: &Arc<Member>,
        parts: &Parts,
        listening: &Listening,
        waiting: &mut mpsc::Receiver<Handed>,
    ) -> Result<(), Failure> {
        while !*self.end.borrow() {
            let turn = async {
                let (reception, most) = (listening.reception.as_deref(), self.settings.sessions_max);
                let control = control::of_follower(&self.settings.volume());
                let control = control.as_ref().map(|(socket, _)| socket);
                let folder = self.settings.maildrop.as_deref();
                tokio::select! {
                    () = maildrop::watch(folder.unwrap_or(Path::new(""))), if folder.is_some() => None,
                    () = self.entrust(member) => None,
                    owned = member.wait(self.end.subscribe()) => owned,
                    () = standby::serve(member, &listening.doors, (reception, control), waiting, most) => None,
                }
            };
            let Some(owned) = runtime.block_on(turn) else { return Ok(()) };
            let epoch = owned.tenure.epoch;
            let outcome = self.take_turn(runtime, member, owned, parts, listening, waiting);
            runtime.block_on(member.release(epoch));
            if let Err(error) = outcome {
                tracing::error!(%error, "the store cannot be served");
                std::thread::sleep(TROUBLE_PAUSE);
            }
        }
        Ok(())
    }

    /// Hands mail of commands over to the node that has the store, until it is dropped.
    async fn entrust(&self, member: &Arc<Member>) {
        match self.maildrop() {
            Some(maildrop) => {
                let most = self.settings.message_bytes_max;
                maildrop.serve(Intake::Owner(StoreOwner(member.clone()), most)).await;
            }
            None => std::future::pending().await,
        }
    }

    fn maildrop(&self) -> Option<Maildrop> {
        let maildrop = Maildrop::new(self.settings.maildrop.as_ref()?, &self.settings.maildrop_trusted);
        Some(match &self.member {
            Some(member) => maildrop.of_node(member.node()),
            None => maildrop,
        })
    }

    fn take_turn(
        &self,
        runtime: &Loops,
        member: &Arc<Member>,
        owned: Owned,
        parts: &Parts,
        listening: &Listening,
        waiting: &mut mpsc::Receiver<Handed>,
    ) -> Result<(), Failure> {
        let Owned { file, reader, notes, is_new, tenure } = owned;
        let file = if is_new { Volume::format(file, &format(self.settings.size)?)? } else { file };
        let volume = Volume::open(file, Options::default())?;
        let folds = member.clone();
        let folding = runtime.spawn(async move { folds.fold(tenure.epoch, reader, notes).await });
        let outcome = self.own(runtime, volume, parts, listening, waiting, Some((member, tenure)));
        folding.abort();
        outcome
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
            keep(member.clone(), tenure, end.clone(), holding)?;
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
        let lent: Arc<dyn Inspector> = Arc::new(Lent(self.identity.clone()));
        site.inspector = self.settings.search_index.then(|| lent.clone());
        site.guard = Some(lent);
        site.learner = Some(Arc::new(Moves::start(self.teachers.clone(), site.store.clone(), ending.clone())?));
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
            volume = open(&self.settings.volume())?;
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
        let (doors, ended) = Doors::new(site.clone(), self.settings.sessions_max, self.identity.clone(), holds);
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

/// Renews the lease on a thread of its own, which no session holds up. An owner that is none any more ends at once, with its process: the
/// supervisor starts another, which waits for its turn.
fn keep(member: Arc<Member>, tenure: Tenure, end: watch::Sender<bool>, holding: watch::Sender<bool>) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let work = move || {
        let leave = runtime.block_on(async {
            tokio::select! {
                leave = member.keep(tenure, &holding) => leave,
                () = end.closed() => Leave::Asked,
            }
        });
        if leave == Leave::Lost {
            tracing::error!(epoch = tenure.epoch, "another node has the store: this process ends");
            std::process::exit(1);
        }
        end.send_replace(true);
    };
    std::thread::Builder::new().name("cluster".into()).spawn(work).map(drop)
}

/// Looks at the levels of the store now and then.
async fn look(levels: Arc<Levels>, site: Arc<Site>) {
    loop {
        levels.look(&site).await;
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Opens a store; none if another process has it.
fn open(path: &Path) -> Result<Option<Volume<File>>, Failure> {
    let named = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let file = match File::open(path, true) {
        Err(error) if error.kind() == ErrorKind::ResourceBusy => return Ok(None),
        file => file.map_err(|error| named(&error))?,
    };
    fill(&file, path);
    let volume = Volume::open(file, Options::default());
    Ok(Some(volume.map_err(|error| format!("{}; sluice store check looks into it", named(&error)))?))
}

/// Makes a store, unless there is one. It gets its name when it is whole.
fn make(path: &Path, size: u64) -> io::Result<()> {
    if path.symlink_metadata().is_ok() {
        return Ok(());
    }
    let beside = path.with_extension("new");
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let format = format(size)?;
    let made = File::create(&beside, size).map_err(|error| {
        match rustix::fs::statvfs(path.parent().unwrap_or(Path::new("."))) {
            Ok(disk) if error.kind() == ErrorKind::StorageFull => {
                let free = disk.f_bavail.saturating_mul(disk.f_frsize) >> 20;
                io::Error::other(format!("{} MiB are wanted and {free} MiB are free: [store] size", size >> 20))
            }
            _ => error,
        }
    });
    let formatted =
        made.and_then(|file| Volume::format(file, &format).map_err(|error| io::Error::other(error.to_string())));
    if let Err(error) = formatted.and_then(|_| fs::rename(&beside, path)) {
        let _ = fs::remove_file(&beside);
        return Err(error);
    }
    fs::File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
}

/// The format of a store of this size, which is to be made.
fn format(size: u64) -> io::Result<Format> {
    let mut identity = [0; 16];
    fs::File::open("/dev/urandom")?.read_exact(&mut identity)?;
    let made = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let mut format = Format::new(u128::from_le_bytes(identity), u32::try_from(made).unwrap_or(u32::MAX));
    format.segment_bytes = segment_bytes(size, format.segment_bytes);
    format.piece_bytes = format.piece_bytes.min((format.segment_bytes / 4).saturating_sub(store::HEADER_BYTES as u32));
    Ok(format)
}

/// The accounts; none yet if there is no such file.
fn accounts(path: &Path) -> Result<Accounts, Failure> {
    let named = |error: io::Error| format!("{}: {error}", path.display());
    if path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        file.and_then(|mut file| file.write_all(b"# name:hash:settings, see sluice account\n")).map_err(named)?;
        tracing::warn!(file = %path.display(), "there are no accounts yet: sluice account add");
    }
    Ok(Accounts::open(path).map_err(named)?)
}

/// Makes the folder of a store.
///
/// # Errors
/// When that cannot be.
pub fn prepare(settings: &StoreSettings) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(&settings.folder)
}

/// Gives a newcomer an account with a password that was not there before. All other accounts stay.
///
/// # Errors
/// When the file cannot be written.
pub fn welcome(settings: &StoreSettings, name: &'static str) -> Result<Newcomer, Failure> {
    let password = accounts::random_password()?;
    let path = settings.accounts();
    let change = |found: Option<Account>| {
        let mut account = found.map_or_else(|| Account::new(name), Ok)?;
        account.set_password(password.as_bytes()).map_err(|error| error.to_string())?;
        Ok(Some(account))
    };
    accounts::edit(&path, name, change).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(Newcomer { name, password })
}
