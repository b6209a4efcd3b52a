//! Changes of a document by commands and the administrator's page: made upon the version in the database, and again if that has changed.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use cluster::Answer;

use super::file::Local;
use super::{Document, Documents, Outcome};
use crate::cluster::postgres::Session;
use crate::cluster::random::random;

/// How often a change is made again because another node was faster.
const TRIES_MAX: u32 = 100;

/// How often the database is asked what came of a change without an answer.
const ASKED_MAX: u32 = 10;

/// The pause before another try, up to this.
const PAUSE_MS: u64 = 100;

/// A text file that commands change: alone, or with the document of a cluster.
pub struct Edited {
    path: PathBuf,
    document: Option<(Documents, Document)>,
}

impl Edited {
    /// A file that is a document where there is a cluster.
    pub fn new(documents: Option<&Documents>, document: Document) -> Edited {
        let path = document.path.clone();
        Edited { document: documents.map(|documents| (documents.clone(), document)), path }
    }

    /// The file.
    pub fn path(&self) -> &std::path::Path {
        &self.path
    }

    /// Replaces the text as a whole, as [`mailbox::accounts::rewrite`] does. `change` may be called again with a newer text. Where the
    /// cluster has the document, the change is in its database when this returns.
    ///
    /// # Errors
    /// As that function, and when the database cannot be reached or does not say what came of the change.
    pub fn rewrite(&self, mut change: impl FnMut(&str) -> Result<String, String> + Send) -> io::Result<()> {
        let Some((documents, document)) = &self.document else { return mailbox::accounts::rewrite(&self.path, change) };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let lock = mailbox::accounts::lock(&self.path)?;
        // The page calls this on a thread of a runtime, which cannot wait for another one.
        let changed = std::thread::scope(|scope| {
            scope.spawn(|| runtime.block_on(documents.change(document, &mut change))).join()
        });
        let changed = changed.map_err(|_| io::Error::other("the change failed"))?.map_err(io::Error::other)?;
        drop(lock);
        match changed {
            true => Ok(()),
            false => mailbox::accounts::rewrite(&self.path, change),
        }
    }
}

impl Documents {
    /// Changes a document and its file, for one who holds the lock; whether the cluster shares files.
    async fn change(
        &self,
        document: &Document,
        change: &mut impl FnMut(&str) -> Result<String, String>,
    ) -> Result<bool, String> {
        let away = |error: String| format!("the database of the cluster: {error}");
        let mut session = self.database.connect().await.map_err(away)?;
        let local = Local::at(&document.path).map_err(|error| format!("{}: {error}", document.path.display()))?;
        for _ in 0..TRIES_MAX {
            let listed = session.documents().await.map_err(away)?;
            let version = listed.iter().find(|listed| listed.name == document.name).map(|listed| listed.version);
            if version.is_none() && session.sharer().await.map_err(away)?.is_none() {
                return Ok(false);
            }
            // An edit of this file by hand comes first.
            if self.settle(&session, document, &local, version, true).await? == Outcome::Later {
                continue;
            }
            let read = || local.read().map(|text| text.map(|text| text.bytes));
            let seen = read().map_err(|error| error.to_string())?;
            let (after, before) = match self.text(&session, &document.name).await? {
                Some((number, text)) => (number, String::from_utf8(text).map_err(|error| error.to_string())?),
                None => (0, String::new()),
            };
            let text = change(&before)?;
            document.check(text.as_bytes())?;
            let answer = match self.put(&session, &document.name, after, text.as_bytes()).await {
                Answer::Unknown => self.outcome(&mut session, document, after, &text).await?,
                answer => answer,
            };
            if answer == Answer::Done {
                let is_edited = read().map_err(|error| error.to_string())? != seen;
                let kept = if is_edited { local.keep_aside("conflict").map(drop) } else { Ok(()) };
                let written = kept.and_then(|()| local.write(text.as_bytes()));
                // The change is made: the server writes the file when it can.
                if let Err(error) = written.and_then(|()| self.remember(&local, after + 1, text.as_bytes())) {
                    eprintln!("sluice: {}: {error}; the cluster has the change", document.path.display());
                }
                return Ok(true);
            }
            tokio::time::sleep(Duration::from_millis(random() % PAUSE_MS)).await;
        }
        Err(format!("document {} changes all the time: try again", document.name))
    }

    /// Asks what came of a statement without an answer.
    async fn outcome(
        &self,
        session: &mut Session,
        document: &Document,
        after: u64,
        text: &str,
    ) -> Result<Answer, String> {
        let digest = self.sealing.digest(text.as_bytes());
        for _ in 0..ASKED_MAX {
            let Ok(anew) = self.database.connect().await else {
                tokio::time::sleep(Duration::from_secs(1)).await;
                continue;
            };
            let listed = anew.documents().await?;
            *session = anew;
            let found = listed.iter().find(|listed| listed.name == document.name).map(|listed| listed.version);
            return match found {
                Some(version) if version.number == after + 1 && version.digest == digest => Ok(Answer::Done),
                Some(version) if version.number > after + 1 => Err("it is not known whether it was changed".into()),
                _ => Ok(Answer::Refused),
            };
        }
        Err("the database of the cluster does not say whether it was changed".into())
    }
}
