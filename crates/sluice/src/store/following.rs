//! Doors that stay open longer than the store of their process: their mail goes to the process that has the store next.
//!
//! A connection of such a door waits until the next process has opened the store, and is carried to its
//! [control socket](super::control) then. Nothing is refused meanwhile: clients wait as long as they wait for a greeting.

use std::io;
use std::os::unix::net::UnixStream as Handed;
use std::path::{Path, PathBuf};
use std::time::Duration;

use edge::upstream::within::Caller;
use tokio::io::{AsyncWriteExt as _, copy_bidirectional};
use tokio::net::UnixStream;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::{callers, control};

/// How often it is tried to reach the next process.
const TRY_EVERY: Duration = Duration::from_millis(50);

/// Carries connections to the next process that serves `volume`, until all doors are closed.
pub async fn serve(volume: &Path, waiting: &mut mpsc::Receiver<(Handed, Caller)>, mut over: watch::Receiver<bool>) {
    let (socket, mut carried) = (control::path(volume), JoinSet::new());
    loop {
        tokio::select! {
            _ = over.wait_for(|&over| over) => return,
            Some((stream, caller)) = waiting.recv() => {
                carried.spawn(carry(socket.clone(), stream, caller));
            }
            Some(outcome) = carried.join_next() => {
                if let Ok(Err(error)) = outcome {
                    tracing::debug!(%error, "connection to the next process aborted");
                }
            }
        }
    }
}

async fn carry(socket: PathBuf, theirs: Handed, caller: Caller) -> io::Result<()> {
    let mut theirs = UnixStream::from_std(theirs)?;
    let mut next = loop {
        match UnixStream::connect(&socket).await {
            Ok(next) => break next,
            Err(_) => tokio::time::sleep(TRY_EVERY).await,
        }
    };
    next.write_all(callers::line(&caller).as_bytes()).await?;
    copy_bidirectional(&mut theirs, &mut next).await.map(drop)
}
