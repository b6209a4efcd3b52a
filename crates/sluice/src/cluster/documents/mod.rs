//! Files that all nodes have alike: documents in the database, with a last good copy on each node.
//!
//! ```text
//!  commands, page ── Edited: read, change, put over the version read ──┐
//!  an edit by hand, ACME ── the file ── Keeper: push ──────────────────┼─► sluice.document, sealed ── NOTIFY ─► Keepers: take, write the file
//!                                                                      └─► the file of this node
//! ```
//!
//! The decision is [`cluster::step`]. The process that uses a file keeps it in step: that of the store accounts and DKIM keys, the edge
//! the others. All who write a file of this node hold the lock of its folder. Texts are never logged.

pub mod command;
mod edit;
mod file;
mod keeper;
mod seal;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cluster::{Answer, Held, Step, Version, step};
use edge::net::acme::{challenge, store};
use edge::settings::{Acme, Certificate};

pub use self::edit::Edited;
use self::file::{BYTES_MAX, Local, Memory, Text};
pub use self::keeper::{Keeper, State};
use self::seal::Sealing;
use super::handing::Secret;
use super::postgres::{Database, Listed, Session};
use crate::config::{ClusterSettings, Config};

/// A file that is a document.
#[derive(Debug, Clone)]
pub struct Document {
    /// Its name in the database.
    pub name: String,
    /// Its file on this node.
    pub path: PathBuf,
    /// Whether this can be its text.
    pub check: fn(&[u8]) -> Result<(), String>,
    /// Whether it is of ACME, and so made by the node that orders certificates.
    pub is_of_acme: bool,
    /// Whether its users have to be told of another version.
    pub is_told: bool,
}

/// The documents of a cluster as a node reaches them.
#[derive(Clone)]
pub struct Documents {
    database: Database,
    sealing: Arc<Sealing>,
    node: String,
}

/// Result of a look at a document.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// The file is not in the cluster.
    Unshared,
    /// The file is this version, as before.
    Same(u64),
    /// The file has become this version, and was kept elsewhere before if need be.
    Took(u64, Option<PathBuf>),
    /// This version was made of the file.
    Pushed(u64),
    /// The file or the document has changed meanwhile: another look is needed.
    Later,
}

/// The documents of the edge: the account and the certificates of ACME, and further files of the site.
pub fn of_edge(config: &Config) -> Vec<Document> {
    let Acme { folder, directory, .. } = &config.tls.acme;
    let named = |path: &Path| path.file_name().map(|name| format!("acme/{}", name.to_string_lossy()));
    let of_acme =
        |path: PathBuf, check| Some(Document { name: named(&path)?, path, check, is_of_acme: true, is_told: false });
    let certificates = config.tls.certificates.iter().filter_map(|certificate| match certificate {
        Certificate::Acme { names } => {
            let check = |text: &[u8]| edge::net::identity::parse(text).map(drop);
            let document = of_acme(store::path(folder, names.first()?), check)?;
            Some(Document { is_told: true, ..document })
        }
        Certificate::Files { .. } => None,
    });
    let others = [store::account(folder, directory), challenge::shared(folder)];
    let others = others.into_iter().filter(|_| config.tls.acme_names().next().is_some());
    let others = others.filter_map(|path| of_acme(path, |_| Ok(())));
    // Alike on all nodes, wherever their configuration is.
    let further = config.cluster.iter().flat_map(ClusterSettings::documents).map(|(name, path)| Document {
        name: format!("file:{name}"),
        path,
        check: |_| Ok(()),
        is_of_acme: false,
        is_told: true,
    });
    others.chain(certificates).chain(further).collect()
}

impl Documents {
    /// The documents of a configuration that is read for them alone; none without a cluster.
    ///
    /// # Errors
    /// When the configuration or files of `[cluster]` cannot be read.
    pub fn find(config: &Path) -> Result<Option<Documents>, String> {
        match config.symlink_metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
            true => Ok(None),
            false => Documents::of(&Config::read(config).map_err(|error| error.to_string())?),
        }
    }

    /// The documents of a configuration; none without a cluster.
    ///
    /// # Errors
    /// When files of `[cluster]` cannot be read.
    pub fn of(config: &Config) -> Result<Option<Documents>, String> {
        config.cluster.as_ref().map(|settings| Documents::new(settings, &config.tls.authorities)).transpose()
    }

    /// The documents of a cluster.
    ///
    /// # Errors
    /// When its files cannot be read.
    pub fn new(settings: &ClusterSettings, authorities: &Path) -> Result<Documents, String> {
        let secret = Secret::read(&settings.secret_file)?;
        Ok(Documents::with(Database::new(settings, authorities)?, &secret, &settings.node))
    }

    /// The documents of a database, as a node reaches them.
    pub fn with(database: Database, secret: &Secret, node: &str) -> Documents {
        Documents { database, sealing: Arc::new(Sealing::new(secret)), node: node.to_owned() }
    }

    /// Brings a file and its document in step. With `makes` a file becomes the document that is missing.
    async fn sync(
        &self,
        session: &Session,
        document: &Document,
        listed: Option<&Listed>,
        makes: bool,
    ) -> Result<Outcome, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", document.path.display());
        let local = Local::at(&document.path).map_err(failed)?;
        let version = listed.map(|listed| listed.version);
        let text = local.read().map_err(failed)?;
        match (self.step(&local, text.as_ref(), version), version) {
            (Step::Nothing, Some(version)) => return Ok(Outcome::Same(version.number)),
            (Step::Nothing, None) if !makes || text.is_none_or(|text| text.bytes.is_empty()) => {
                return Ok(Outcome::Unshared);
            }
            _ => {}
        }
        let _lock = mailbox::accounts::lock(&document.path).map_err(failed)?;
        self.settle(session, document, &local, version, makes).await
    }

    /// The same for one who holds the lock.
    async fn settle(
        &self,
        session: &Session,
        document: &Document,
        local: &Local,
        version: Option<Version>,
        makes: bool,
    ) -> Result<Outcome, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", document.path.display());
        let text = local.read().map_err(failed)?;
        let step = self.step(local, text.as_ref(), version);
        match (step, text, version) {
            (Step::Nothing, Some(text), None) if makes && !text.bytes.is_empty() => {
                self.push(session, document, local, &text, 0).await
            }
            (Step::Nothing, _, version) => Ok(version.map_or(Outcome::Unshared, |known| Outcome::Same(known.number))),
            (Step::Push(after), Some(text), _) => self.push(session, document, local, &text, after).await,
            (Step::Note, Some(text), Some(version)) => {
                local.remember(Memory { version, changed: text.changed }).map_err(failed)?;
                Ok(Outcome::Took(version.number, None))
            }
            (step, seen, _) => {
                let (number, text) = self.whole(session, document, version).await?;
                // Editors know no lock.
                if local.read().map_err(failed)?.map(|now| now.bytes) != seen.map(|seen| seen.bytes) {
                    return Ok(Outcome::Later);
                }
                let kept = match (step, local.memory()) {
                    (Step::TakeAside, None) => Some(local.keep_aside("before-cluster").map_err(failed)?),
                    (Step::TakeAside, Some(_)) => Some(local.keep_aside("conflict").map_err(failed)?),
                    _ => None,
                };
                local.write(&text).and_then(|()| self.remember(local, number, &text)).map_err(failed)?;
                Ok(Outcome::Took(number, kept))
            }
        }
    }

    /// The next step for a file. An empty one is like one that is missing, unless the document is empty.
    fn step(&self, local: &Local, text: Option<&Text>, version: Option<Version>) -> Step {
        let memory = local.memory();
        let held = text.map(|text| Held {
            digest: self.sealing.digest(&text.bytes),
            is_older: memory.is_some_and(|memory| text.changed < memory.changed),
        });
        let is_empty = text.is_some_and(|text| text.bytes.is_empty());
        let held = held.filter(|held| !is_empty || version.is_some_and(|version| version.digest == held.digest));
        step(held, memory.map(|memory| memory.version), version)
    }

    async fn push(
        &self,
        session: &Session,
        document: &Document,
        local: &Local,
        text: &Text,
        after: u64,
    ) -> Result<Outcome, String> {
        document.check(&text.bytes).map_err(|why| format!("{}: not shared: {why}", document.path.display()))?;
        match self.put(session, &document.name, after, &text.bytes).await {
            Answer::Done => {
                let version = Version { number: after + 1, digest: self.sealing.digest(&text.bytes) };
                let memory = Memory { version, changed: text.changed };
                local.remember(memory).map_err(|error| format!("{}: {error}", document.path.display()))?;
                Ok(Outcome::Pushed(version.number))
            }
            Answer::Refused => Ok(Outcome::Later),
            Answer::Unknown => Err("the database of the cluster does not answer".into()),
        }
    }

    async fn put(&self, session: &Session, name: &str, after: u64, text: &[u8]) -> Answer {
        let sealed = self.sealing.seal(name, after + 1, text);
        session.put_document(name, after, (&sealed, &self.sealing.digest(text)), &self.node).await
    }

    /// A document, opened, with its version.
    async fn text(&self, session: &Session, name: &str) -> Result<Option<(u64, Vec<u8>)>, String> {
        let Some((number, sealed)) = session.document(name).await? else { return Ok(None) };
        let text = self.sealing.open(name, number, &sealed);
        let text = text.ok_or_else(|| format!("document {name}: sealed with another secret, or damaged"))?;
        Ok(Some((number, text)))
    }

    /// The last version of a document, if it is what `version` says and can be a text of it.
    async fn whole(
        &self,
        session: &Session,
        document: &Document,
        version: Option<Version>,
    ) -> Result<(u64, Vec<u8>), String> {
        let found = self.text(session, &document.name).await?;
        let (number, text) = found.ok_or_else(|| format!("document {} is gone", document.name))?;
        let is_whole = |version: Version| version.number != number || version.digest == self.sealing.digest(&text);
        if !version.is_none_or(is_whole) {
            return Err(format!("document {}: its digest is another", document.name));
        }
        document.check(&text).map_err(|why| format!("document {}: {why}", document.name))?;
        Ok((number, text))
    }

    /// Remembers that a file was written with this version.
    fn remember(&self, local: &Local, number: u64, text: &[u8]) -> std::io::Result<()> {
        let changed = local.read()?.map_or(0, |text| text.changed);
        local.remember(Memory { version: Version { number, digest: self.sealing.digest(text) }, changed })
    }
}

impl Document {
    /// Whether this can be its text.
    fn check(&self, text: &[u8]) -> Result<(), String> {
        if text.len() > BYTES_MAX {
            return Err(format!("it has more than {} MiB", BYTES_MAX >> 20));
        }
        (self.check)(text)
    }
}
