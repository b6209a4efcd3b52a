//! How commands reach a store that a server has open: a UNIX socket beside it, `VOLUME.control`, for its owner alone.
//!
//! ```text
//!   C: who ID | recall ID | sieve {...} | acl {...} | second NAME | app {...} | queue {...} | suppress {...}    one line
//!   S: {"places": [...], ...}              one line, and the end
//!   C: deliver lmtp | smtp | insider       a session of LMTP or SMTP, as the gateway has with its store
//!   C: deliver account NAME                the same, as after a login: for mail that was kept then
//!   C: look {...}                          answered as `show.rs` has it, and others may follow
//! ```
//!
//! Every recall is noted in `VOLUME.audit`, a JSON object a line, which is on stable storage before the answer;
//! without room for it on the disk nothing is recalled.

use std::io::{self, BufRead as _, ErrorKind, Write as _};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use edge::net::accept::{Handler, accept};
use edge::net::listening::{Owner, Socket, Sockets};
use edge::net::stream::Stream;
use edge::settings::{Address, SocketMode};
use mailbox::recall::{self, Found, Place};
use mailbox::{Handle, Site};
use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt as _, BufReader};

use super::{callers, show};
use crate::audit::{self, Log};
use crate::output::Failure;
use crate::process::privileges;

/// How long a command may take to say what it wants.
const WAIT: Duration = Duration::from_secs(10);

/// The socket and the audit of a store.
pub struct Control {
    sockets: Sockets,
    audit: Log,
}

/// Request to the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// To know who has a mail.
    Who,
    /// To have it taken out.
    Recall,
}

impl Wanted {
    /// As it is said.
    pub const fn word(self) -> &'static str {
        match self {
            Wanted::Who => "who",
            Wanted::Recall => "recall",
        }
    }
}

/// Asks the server that has a store open; none if there is none.
///
/// # Errors
/// When it cannot be asked, and what it answers as an error.
pub fn ask(volume: &Path, command: &str) -> Result<Option<Value>, Failure> {
    let Some(mut stream) = reach(volume)? else { return Ok(None) };
    // A server that does not read all of it says why.
    let _ = stream.write_all(format!("{command}\n").as_bytes());
    let mut line = String::new();
    std::io::BufReader::new(stream).read_line(&mut line)?;
    let answer: Value = serde_json::from_str(&line).map_err(|_| "the server gave no answer: its log says more")?;
    checked(answer).map(Some)
}

/// A connection to the server that has a store open; none if there is none. To be called by root who has stayed root, too: the
/// server is the one of the folder's owner.
///
/// # Errors
/// When it cannot be asked.
pub fn connect(place: &privileges::Place) -> Result<Option<UnixStream>, Failure> {
    let Some(stream) = reach(&place.way())? else { return Ok(None) };
    let peer = rustix::net::sockopt::socket_peercred(&stream)?.uid.as_raw();
    match place.is_of(peer) {
        true => Ok(Some(stream)),
        false => {
            Err(format!("{}: served by the user {peer}, who does not own the folder", path(place.path()).display())
                .into())
        }
    }
}

fn reach(volume: &Path) -> Result<Option<UnixStream>, Failure> {
    match UnixStream::connect(path(volume)) {
        Ok(stream) => Ok(Some(stream)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => Ok(None),
        Err(error) => Err(format!("{}: {error}", path(volume).display()).into()),
    }
}

/// An answer, unless it is an error.
///
/// # Errors
/// What it says.
pub fn checked(answer: Value) -> Result<Value, Failure> {
    match answer.get("error").and_then(Value::as_str) {
        Some(error) => Err(error.into()),
        None => Ok(answer),
    }
}

/// The socket beside a store.
pub fn path(volume: &Path) -> PathBuf {
    beside(volume, ".control")
}

fn beside(volume: &Path, suffix: &str) -> PathBuf {
    let mut path = volume.to_owned().into_os_string();
    path.push(suffix);
    path.into()
}

/// Opens the log in which recalls are noted.
///
/// # Errors
/// When that cannot be.
pub fn audit(volume: &Path) -> io::Result<Log> {
    Log::open(&beside(volume, ".audit"))
}

fn note(log: &Log, message_id: &str, found: &Found) -> io::Result<()> {
    let places: Vec<Value> = found.places.iter().map(told).collect();
    log.note(&json!({ "time": audit::now(), "recalled": message_id, "places": places }))
}

/// Listens beside a store.
fn listen(volume: &Path) -> Result<Sockets, String> {
    let owner = Owner { mode: SocketMode(0o600), group: None };
    Sockets::open(&Address::Unix(path(volume)), &owner, 1, false)
}

/// The socket at a node whose commands are answered by another one, and what removes it; none if it cannot be had.
pub fn of_follower(volume: &Path) -> Option<(Socket, Sockets)> {
    let sockets = listen(volume).inspect_err(|error| tracing::warn!(%error, "commands do not reach the owner")).ok()?;
    Some((sockets.take()?.ok()?, sockets))
}

impl Control {
    /// Listens beside a store; without it the server serves all the same.
    pub fn open(volume: &Path) -> Option<Control> {
        let sockets = listen(volume);
        let audit = audit(volume).map_err(|error| format!("{}.audit: {error}", volume.display()));
        match sockets.and_then(|sockets| Ok(Control { sockets, audit: audit? })) {
            Ok(control) => Some(control),
            Err(error) => {
                tracing::warn!(%error, "control socket of the store unavailable: no who, recall, sieve, queue");
                None
            }
        }
    }

    /// The log in which recalls are noted.
    pub fn audit(&self) -> Log {
        self.audit.clone()
    }

    /// Answers until it is dropped.
    pub async fn serve(self, site: Arc<Site>) {
        let Some(Ok(socket)) = self.sockets.take() else { return };
        accept("store control", &socket, &Commands { site, audit: self.audit }).await;
    }
}

/// The way from the socket to a command. Commands have no bound: the socket is for the owner of the store alone.
struct Commands {
    site: Arc<Site>,
    audit: Log,
}

impl Handler for Commands {
    type Place = ();

    async fn enter(&self, _stream: &Stream, _peer: SocketAddr) -> Result<(), Option<String>> {
        Ok(())
    }

    fn begin(&self, stream: Stream, _peer: SocketAddr, (): ()) {
        let (site, audit) = (self.site.clone(), self.audit.clone());
        tokio::spawn(async move {
            if let Err(error) = converse(stream, &site, &audit).await {
                tracing::warn!(%error, "a command on the control socket failed");
            }
        });
    }
}

/// Answers a command.
///
/// # Errors
/// When the connection breaks.
pub async fn converse(stream: Stream, site: &Site, audit: &Log) -> io::Result<()> {
    let store = &site.store;
    let (mut stream, mut line) = (BufReader::new(stream), String::new());
    show::read_line(&mut stream, &mut line, WAIT).await?;
    let answer = match line.trim_end().split_once(' ') {
        _ if !line.ends_with('\n') => json!({ "error": "the command is too long" }),
        // A session of its own, which says when it is over.
        Some(("deliver", name)) => match callers::named(name) {
            Some(caller) => return callers::serve(stream.into_inner(), &caller, site).await,
            None => json!({ "error": "deliver lmtp, smtp, insider or account NAME" }),
        },
        Some(("look", _)) => return show::serve(&line, &mut stream, site).await,
        Some(("who", id)) => answer(Wanted::Who, id, store, audit).await,
        Some(("recall", id)) => answer(Wanted::Recall, id, store, audit).await,
        Some(("sieve", request)) => super::filters::answer(request, store, &site.scripts, Some(&site.accounts)).await,
        Some(("acl", request)) => super::rights::answer(request, store).await,
        Some(("second", name)) => super::second::answer(name, site).await,
        Some(("app", request)) => super::app_passwords::answer(request, site).await,
        Some(("suppress", wanted)) => super::suppression::answer(wanted, site).await,
        Some(("queue", wanted)) => super::outgoing::answer(wanted, site).await,
        _ => json!({ "error": "look, deliver, who, recall, sieve, acl, second, app, suppress or queue" }),
    };
    let mut stream = stream.into_inner();
    stream.write_all(format!("{answer}\n").as_bytes()).await?;
    stream.close().await;
    Ok(())
}

/// Does it; what it came to.
pub async fn answer(wanted: Wanted, id: &str, store: &Handle, audit: &Log) -> Value {
    if wanted == Wanted::Recall
        && let Err(error) = audit.reserve()
    {
        return json!({ "error": format!("not recalled, as it could not be noted: {error}") });
    }
    let found = match wanted {
        Wanted::Who => {
            let (store, id) = (store.clone(), id.to_owned());
            tokio::task::spawn_blocking(move || recall::find(&store, &id)).await.map_err(|error| error.to_string())
        }
        Wanted::Recall => recall::recall(store, id).await.map_err(|error| error.to_string()),
    };
    let found = match found {
        Ok(found) => found,
        Err(error) => return json!({ "error": error }),
    };
    if wanted == Wanted::Recall && !found.places.is_empty() {
        tracing::warn!(message_id = id, places = found.places.len(), "a mail was recalled");
        if let Err(error) = note(audit, id, &found) {
            return json!({ "error": format!("recalled, but not noted: {error}") });
        }
    }
    let places: Vec<Value> = found.places.iter().map(told).collect();
    json!({ "message_id": id, "recalled": wanted == Wanted::Recall, "places": places, "unread": found.unread })
}

fn told(place: &Place) -> Value {
    json!({ "account": place.account, "mailbox": place.mailbox, "uid": place.uid, "message": place.message })
}
