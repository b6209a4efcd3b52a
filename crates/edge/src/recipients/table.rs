//! A table that is not held in memory: what is asked of it.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use proto::smtp::Reply;
use tokio::sync::Semaphore;

/// Answer of a table about a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// It is there.
    Yes,
    /// The recipient is refused with this reply.
    Refused(Reply),
    /// It is not there.
    No,
    /// The table cannot be asked, for this reason.
    Unsure(String),
}

/// Tables that are kept elsewhere, by their names in the configuration.
pub type Tables = BTreeMap<String, Arc<dyn Table>>;

/// A pending lookup.
pub type Finding<'a> = Pin<Box<dyn Future<Output = Found> + Send + 'a>>;

/// Name to look up: a user, with an extension or without.
#[derive(Debug, Clone, Copy)]
pub struct Name<'a> {
    /// In small letters, without quotes.
    pub user: &'a str,
    /// In small letters, if there is one.
    pub domain: Option<&'a str>,
}

/// A table that takes some time to answer: a file system, a service.
pub trait Table: Send + Sync {
    /// Name of its kind in the configuration.
    fn kind(&self) -> &'static str;

    /// Where it is.
    fn source(&self) -> String;

    /// Looks up a name. It bounds its own time, and never answers "unknown" when it could not look.
    fn find<'a>(&'a self, name: Name<'a>) -> Finding<'a>;
}

impl fmt::Debug for dyn Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind(), self.source())
    }
}

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.domain {
            Some(domain) => write!(f, "{}@{domain}", self.user),
            None => f.write_str(self.user),
        }
    }
}

/// Calls that keep a thread waiting, at a time: a file system that hangs keeps no more.
const CALLS_MAX: usize = 16;

/// How long such a call may take, waiting for its turn included.
const CALL_WAIT: Duration = Duration::from_secs(10);

/// Makes calls that keep a thread waiting.
#[derive(Debug, Clone)]
pub struct Calls(Arc<Semaphore>);

impl Default for Calls {
    fn default() -> Calls {
        Calls(Arc::new(Semaphore::new(CALLS_MAX)))
    }
}

impl Calls {
    /// Makes a call; one that takes too long is an error.
    pub async fn make(&self, call: impl FnOnce() -> Found + Send + 'static) -> Found {
        let turn = self.0.clone();
        let made = async move {
            let Ok(place) = turn.acquire_owned().await else { return Found::Unsure("no turn".into()) };
            let call = move || {
                let found = call();
                drop(place);
                found
            };
            tokio::task::spawn_blocking(call).await.unwrap_or_else(|error| Found::Unsure(error.to_string()))
        };
        tokio::time::timeout(CALL_WAIT, made).await.unwrap_or_else(|_| Found::Unsure("it takes too long".into()))
    }
}
