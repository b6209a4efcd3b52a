//! Relays a client in TLS: the edge has the encrypted side, and the store's session the other.
//!
//! A relay that waits holds no buffer. A session that is over ends it, whatever the client still says.

use std::future::{Future as _, poll_fn};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use edge::net::stream::Stream;
use tokio::io::AsyncWrite as _;
use tokio::time::{Sleep, sleep};

/// How long one side may take nothing: longer than the session waits for its client.
const STALL_MAX: Duration = Duration::from_secs(1_800);

/// One direction.
#[derive(Default)]
struct Way {
    held: Vec<u8>,
    at: usize,
    is_flushed: bool,
    is_over: bool,
    stalled: Option<Pin<Box<Sleep>>>,
}

/// Relays until the session is over.
///
/// # Errors
/// When the client takes nothing any more.
pub async fn relay(mut client: Stream, mut session: Stream) -> io::Result<()> {
    let (mut up, mut down) = (Way::default(), Way::default());
    let mut is_up = true;
    poll_fn(|context| {
        if is_up && let Poll::Ready(outcome) = up.poll(context, &mut client, &mut session) {
            is_up = false;
            if outcome.is_err() {
                // The session hears the end of its client, and what it still says may arrive.
                let _ = Pin::new(&mut session).poll_shutdown(context);
            }
        }
        down.poll(context, &mut session, &mut client)
    })
    .await
}

impl Way {
    /// Ready when `from` is at its end, and `to` has been told.
    fn poll(&mut self, context: &mut Context<'_>, from: &mut Stream, to: &mut Stream) -> Poll<io::Result<()>> {
        loop {
            if self.poll_write(context, to)?.is_pending() {
                let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(STALL_MAX)));
                ready!(stalled.as_mut().poll(context));
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            self.stalled = None;
            if self.is_over {
                return Pin::new(to).poll_shutdown(context);
            }
            let count = ready!(from.poll_append(context, &mut self.held))?;
            (self.is_over, self.is_flushed) = (count == 0, count == 0);
        }
    }

    fn poll_write(&mut self, context: &mut Context<'_>, to: &mut Stream) -> Poll<io::Result<()>> {
        while self.at < self.held.len() {
            let count = ready!(Pin::new(&mut *to).poll_write(context, &self.held[self.at..]))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.at += count;
            self.stalled = None;
        }
        (self.held, self.at) = (Vec::new(), 0);
        if !std::mem::replace(&mut self.is_flushed, true)
            && let Poll::Pending = Pin::new(to).poll_flush(context)?
        {
            self.is_flushed = false;
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::UnixStream;

    use super::*;

    fn pair() -> (UnixStream, Stream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (ours, Stream::Unix(theirs))
    }

    #[tokio::test]
    async fn bytes_go_both_ways_and_the_end_of_each_side_is_told() {
        let ((mut client, outside), (mut session, inside)) = (pair(), pair());
        let relaying = tokio::spawn(relay(outside, inside));
        let sent: Vec<u8> = (0..1 << 20).map(|n: u32| (n >> 3) as u8).collect();
        let (mut taken, mut answer) = (vec![0; sent.len()], Vec::new());
        let talk = async {
            let (mut reads, mut writes) = client.split();
            let (written, read) = tokio::join!(writes.write_all(&sent), session.read_exact(&mut taken));
            written.unwrap();
            read.unwrap();
            writes.shutdown().await.unwrap();
            assert_eq!(session.read(&mut [0; 8]).await.unwrap(), 0, "the end of the client");
            session.write_all(b"* BYE\r\n").await.unwrap();
            drop(session);
            reads.read_to_end(&mut answer).await.unwrap();
        };
        talk.await;
        assert!(taken == sent && answer == b"* BYE\r\n");
        relaying.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_session_that_is_over_ends_the_relay_of_a_client_that_stays() {
        let ((mut client, outside), (session, inside)) = (pair(), pair());
        let relaying = tokio::spawn(relay(outside, inside));
        drop(session);
        assert_eq!(client.read(&mut [0; 8]).await.unwrap(), 0);
        relaying.await.unwrap().unwrap();
    }
}
