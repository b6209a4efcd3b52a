//! An event loop hears of inspections in other processes by its bell.

use std::os::fd::OwnedFd;

use jail::Bell;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;

/// Bytes of one read: more than valid peers ever send.
const RUNG_BYTES: usize = 512;

/// Listens as long as the event loop runs that polls this.
pub async fn listen(bell: Option<(Bell, OwnedFd)>) {
    let Some((bell, end)) = bell else { return };
    let mut end = match Receiver::from_owned_fd(end) {
        Ok(end) => end,
        Err(error) => return tracing::warn!(%error, "an event loop cannot be woken by inspection processes"),
    };
    bell.begin();
    let mut rung = [0; RUNG_BYTES];
    while end.read(&mut rung).await.is_ok_and(|count| count > 0) {
        bell.hear();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use jail::Bells;
    use tokio::net::unix::pipe;
    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn all_that_is_rung_is_read_until_nobody_can_ring_any_more() {
        let bells = Arc::new(Bells::new(1).unwrap());
        let (bell, _) = bells.bell(0).expect("nobody has it");
        let (rope, end) = pipe::pipe().unwrap();
        let ring = async move {
            for time in 0..3 {
                while rope.try_write(&[0; RUNG_BYTES]).is_ok() {}
                rope.writable().await.unwrap();
                assert!(rope.try_write(&[0]).is_ok(), "nobody listens any more, after {time} times");
            }
        };
        let listen = listen(Some((bell, end.into_nonblocking_fd().unwrap())));
        timeout(Duration::from_secs(10), async { tokio::join!(listen, ring) }).await.expect("it is read, and ends");
    }
}
