//! A node: it waits for its turn and follows meanwhile, owns the volume, and gives it up.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use cluster::{Answer, Duty, Lease, Standing, Tail, Vigil};
use mailbox::File;
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::cache::{Cache, Notes};
use super::documents::Documents;
use super::fold::{self, Counts, Folding};
use super::handing::Secret;
use super::link::Link;
use super::objects::Store;
use super::postgres::{Database, Session, Volume};
use super::random::{random, random_name};
use crate::config::ClusterSettings;

/// How often a node that waits looks at the volume.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// How long an owner whose lease is over tries one renewal.
const ATTEMPT_WAIT: Duration = Duration::from_secs(20);

/// The pause of an owner whose renewal has no answer.
const PAUSE: Duration = Duration::from_millis(100);

/// This machine among the nodes of a cluster.
pub struct Member {
    settings: ClusterSettings,
    database: Database,
    /// The secret of all nodes.
    pub secret: Secret,
    path: PathBuf,
    size: u64,
    /// The address of the owner.
    pub owner: watch::Sender<Option<SocketAddr>>,
    /// The epoch of this node as the owner, or 0.
    epoch: AtomicU64,
    objects: Option<Store>,
    /// Numbers of the folds of this node.
    pub folding: Arc<Counts>,
}

/// A volume that this node owns.
pub struct Owned {
    /// Its cache, whose flushes go to the database.
    pub file: File,
    /// Another hold on it, for folds.
    pub reader: File,
    /// State of its cache.
    pub notes: Arc<Notes>,
    /// Token of the volume.
    pub name: String,
    /// Whether nothing was ever written.
    pub is_new: bool,
    /// For how long it may believe so.
    pub tenure: Tenure,
}

/// An epoch of a volume, and its lease.
#[derive(Debug, Clone, Copy)]
pub struct Tenure {
    /// Counts owners.
    pub epoch: u64,
    lease: Lease,
}

/// Why an owner ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leave {
    /// Somebody wants the volume on another node.
    Asked,
    /// Another node has the volume.
    Lost,
}

impl Member {
    /// The node that the settings describe; its cache is at `path`.
    ///
    /// # Errors
    /// What cannot be read.
    pub fn new(settings: &ClusterSettings, authorities: &Path, path: PathBuf, size: u64) -> Result<Member, String> {
        let objects = settings.objects.as_ref().map(|objects| Store::new(objects, authorities)).transpose()?;
        Ok(Member {
            settings: settings.clone(),
            database: Database::new(settings, authorities)?,
            secret: Secret::read(&settings.secret_file)?,
            path,
            size,
            owner: watch::channel(None).0,
            epoch: AtomicU64::new(0),
            objects,
            folding: Arc::default(),
        })
    }

    /// The documents of the cluster.
    pub fn documents(&self) -> Documents {
        Documents::with(self.database.clone(), &self.secret, &self.settings.node)
    }

    /// The name of this node.
    pub fn node(&self) -> &str {
        &self.settings.node
    }

    /// Follows the owner until this node has the volume; none if the program ends before.
    pub async fn wait(&self, mut end: watch::Receiver<bool>) -> Option<Owned> {
        let mut turn = Turn { member: self, session: None, cache: None, vigil: self.vigil(), trouble: String::new() };
        loop {
            // To bring a copy up to date may take long.
            let owned = tokio::select! {
                owned = turn.take() => owned,
                _ = end.wait_for(|&ending| ending) => return None,
            };
            if let Some(owned) = owned {
                self.owner.send_replace(Some(self.settings.address));
                self.epoch.store(owned.tenure.epoch, Relaxed);
                return Some(owned);
            }
            let ended = timeout(LOOK_EVERY, end.wait_for(|&ending| ending)).await;
            if ended.is_ok() {
                return None;
            }
        }
    }

    fn vigil(&self) -> Vigil {
        Vigil::new(millis(self.settings.lease()))
    }

    /// Renews the lease until the volume is another node's, or wanted there. `holds` says whether mailboxes may be shown: while the database
    /// fails over they may not, and mail that comes in waits for its flush.
    pub async fn keep(&self, tenure: Tenure, holds: &watch::Sender<bool>) -> Leave {
        let Tenure { epoch, mut lease } = tenure;
        let mut session = None;
        loop {
            let duty = lease.duty(now());
            let does_hold = duty != Duty::End;
            holds.send_if_modified(|held| std::mem::replace(held, does_hold) != does_hold);
            let patience = match duty {
                Duty::Wait(due) => {
                    sleep(Duration::from_millis(due.saturating_sub(now()))).await;
                    continue;
                }
                Duty::Renew => Duration::from_millis(lease.ends_ms().saturating_sub(now())),
                Duty::End => ATTEMPT_WAIT,
            };
            match timeout(patience, self.renewed(epoch, &mut session, &mut lease)).await {
                Ok(Some(leave)) => return leave,
                Ok(None) => {}
                // What was asked may still be answered.
                Err(_) => session = None,
            }
        }
    }

    /// Tries a renewal.
    async fn renewed(&self, epoch: u64, session: &mut Option<Session>, lease: &mut Lease) -> Option<Leave> {
        if session.as_ref().is_none_or(Session::is_closed) {
            *session = self.database.connect().await.ok();
        }
        let asked = now();
        let answer = match session {
            Some(session) => session.renew(epoch, random()).await,
            None => Answer::Unknown,
        };
        match (answer, &*session) {
            (Answer::Refused, _) => return Some(Leave::Lost),
            (Answer::Done, Some(here)) => {
                lease.renewed(asked);
                let node = &self.settings.node;
                let volume = here.look(node).await.ok().flatten()?;
                let _ = here.appear(node, &self.settings.address.to_string(), volume.flush).await;
                let is_wanted = volume.wanted.is_some_and(|wanted| wanted != *node);
                return (is_wanted || volume.is_drained).then_some(Leave::Asked);
            }
            _ => {}
        }
        *session = None;
        sleep(PAUSE).await;
        None
    }

    /// Gives the volume up, so that nobody waits for the end of the lease.
    pub async fn release(&self, epoch: u64) {
        let released = async {
            let session = self.database.connect().await?;
            match session.release(epoch).await {
                Answer::Unknown => Err("no answer".to_owned()),
                _ => Ok(()),
            }
        };
        if let Err(error) = released.await {
            tracing::warn!(%error, "the volume is not given up: another node takes it after the lease");
        }
        self.owner.send_replace(None);
        self.epoch.store(0, Relaxed);
        self.folding.end();
    }

    /// The epoch of this node as the owner, or 0.
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Relaxed)
    }

    /// Folds what an owner writes.
    pub async fn fold(&self, epoch: u64, name: String, reader: File, notes: Arc<Notes>) {
        let (database, objects, counts) = (self.database.clone(), self.objects.clone(), self.folding.clone());
        fold::run(Folding { database, epoch, file: reader, notes, objects, counts }, name).await;
    }
}

/// A node that waits.
struct Turn<'a> {
    member: &'a Member,
    session: Option<Session>,
    cache: Option<Cache>,
    vigil: Vigil,
    /// Why it could not look the last time.
    trouble: String,
}

impl Turn<'_> {
    /// Looks at the volume, and takes it if it is free.
    async fn take(&mut self) -> Option<Owned> {
        let session = match self.session.take().filter(|session| !session.is_closed()) {
            Some(session) => Ok(session),
            None => self.member.database.connect().await,
        };
        let looked = match session {
            Ok(session) => self.looked(&session).await.map(|owned| (owned, session)),
            Err(error) => Err(error),
        };
        match looked {
            Ok((owned, session)) => {
                self.trouble.clear();
                self.session = Some(session);
                owned
            }
            Err(trouble) => {
                // It may last for hours, and be looked at twice a second.
                if self.trouble != trouble {
                    tracing::warn!(error = trouble, "this node cannot follow the cluster");
                    self.trouble = trouble;
                }
                None
            }
        }
    }

    async fn looked(&mut self, session: &Session) -> Result<Option<Owned>, String> {
        let Member { settings, size, path, owner, objects, .. } = self.member;
        let Some(volume) = session.look(&settings.node).await? else {
            if Cache::is_there(path) {
                return Err(format!("the database has no store, and {} is a copy of one", path.display()));
            }
            session.volume(*size, &random_name()).await?;
            return Ok(None);
        };
        let address = volume.address.as_ref().filter(|_| volume.owner.is_some()).and_then(|text| text.parse().ok());
        owner.send_if_modified(|known| std::mem::replace(known, address) != address);
        if self.cache.is_none() {
            self.cache = Cache::open(path, &volume, objects.as_ref()).map_err(|error| error.to_string())?;
        }
        // An edge of this node that ends has it still.
        let Some(cache) = &mut self.cache else { return Ok(None) };
        if cache.is_behind(&volume) {
            cache.follow(session, false).await?;
            cache.notes.keep().map_err(|error| error.to_string())?;
        }
        session.appear(&settings.node, &settings.address.to_string(), cache.flush()).await?;
        let is_silent = self.vigil.is_over(volume.renewal, now());
        if volume.is_drained || !(is_silent || is_free(&volume, &settings.node)) {
            return Ok(None);
        }
        self.taken(session, &volume).await
    }

    async fn taken(&mut self, session: &Session, seen: &Volume) -> Result<Option<Owned>, String> {
        let Member { settings, database, .. } = self.member;
        let asked = now();
        // If nothing is known of it, the next look says more.
        if session.take(seen.renewal, random(), &settings.node).await != Answer::Done {
            return Ok(None);
        }
        let Some(mut cache) = self.cache.take() else { return Ok(None) };
        let epoch = seen.renewal.epoch + 1;
        let flush = match cache.follow(session, true).await {
            Ok(flush) => flush,
            Err(error) => {
                self.cache = Some(cache);
                return Err(error);
            }
        };
        cache.notes.keep().map_err(|error| error.to_string())?;
        tracing::info!(epoch, flush, former = seen.owner, "this node has the store");
        let reader = cache.file.reader().map_err(|error| error.to_string())?;
        let engine = Link::new(database.clone(), cache.notes.clone()).map_err(|error| error.to_string())?;
        let tail = Tail::new(Box::new(engine) as _, Standing { epoch, flush });
        let tenure = Tenure { epoch, lease: Lease::new(millis(settings.lease()), asked) };
        let (file, notes) = (cache.file.shared(tail), cache.notes);
        Ok(Some(Owned { file, reader, notes, name: seen.name.clone(), is_new: flush == 0, tenure }))
    }
}

/// Whether nobody has the volume, or a former process of this node, and no other node is to have it.
fn is_free(volume: &Volume, node: &str) -> bool {
    match &volume.owner {
        Some(owner) => owner == node,
        None => volume.wanted.as_ref().is_none_or(|wanted| wanted == node),
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Milliseconds of a clock that counts while the machine sleeps.
fn now() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    let (seconds, nanos) = (u64::try_from(time.tv_sec).unwrap_or(0), u64::try_from(time.tv_nsec).unwrap_or(0));
    seconds * 1_000 + nanos / 1_000_000
}
