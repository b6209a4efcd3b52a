//! An event loop hears of inspections in other processes by its bell.

use std::os::fd::OwnedFd;

use jail::Bell;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;

/// What is read at once: more than anybody rings who means it.
const RUNG_BYTES: usize = 512;

/// Listens as long as the event loop runs that polls this.
pub async fn listen(bell: Option<(Bell, OwnedFd)>) {
    let Some((bell, end)) = bell else { return };
    let mut end = match Receiver::from_owned_fd(end) {
        Ok(end) => end,
        Err(error) => return tracing::warn!(%error, "an event loop has no bell"),
    };
    bell.begin();
    let mut rung = [0; RUNG_BYTES];
    while end.read(&mut rung).await.is_ok_and(|count| count > 0) {
        bell.hear();
    }
}
