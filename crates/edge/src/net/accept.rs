//! Accepting: the one loop of all listeners.
//!
//! ```text
//!  accept(2) ──► Handler::enter ──► Handler::begin    a task: the session
//!    │ error: a pause   │ refused
//!    └───               └─────────► a task: the reply, if there is one, and the end
//! ```
//!
//! The loop knows no protocol. A handler gives each client a place, which is free again when it is dropped, and so bounds
//! them; a loop ends when its future is dropped, and sessions go on. Where relays may speak for clients the handler's task
//! reads the PROXY header ([`relay`](super::relay)): a slow relay holds up no other client.
//!
//! An error of accept(2) is one of the client that has gone already, or of this machine, which has no descriptors left, most likely.
//! Neither is a reason to stop, nor to try again at once: sessions that end will free some.

use std::fmt::Display;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::time::{sleep, timeout};

use super::listening::Socket;
use super::stream::Stream;

/// The first wait after an error; each further one is twice as long, up to [`WAIT_MAX`].
const WAIT_MIN: Duration = Duration::from_millis(5);

const WAIT_MAX: Duration = Duration::from_secs(1);

/// How long a client may take for the reply that it is not let in.
const REFUSAL_WAIT: Duration = Duration::from_secs(10);

/// The protocol of a listener: who is let in, and the session.
pub trait Handler {
    /// A place among the sessions; dropping it makes room for another.
    type Place;

    /// Lets in a client, before anything is read from it; while this waits, other clients wait in the system's queue. An error is
    /// the reply to a client that is not let in, or nothing: the connection is closed then.
    fn enter(&self, stream: &Stream, peer: SocketAddr) -> impl Future<Output = Result<Self::Place, Option<String>>>;

    /// Begins the session, as a task of its own.
    fn begin(&self, stream: Stream, peer: SocketAddr, place: Self::Place);
}

/// Takes clients, whatever happens. `listener` is the name of the listener in the log.
pub async fn accept(listener: impl Display, socket: &Socket, handler: &impl Handler) {
    loop {
        let (stream, peer) = accepted(&listener, || socket.accept()).await;
        match handler.enter(&stream, peer).await {
            Ok(place) => handler.begin(stream, peer, place),
            Err(Some(reply)) => drop(tokio::spawn(turn_away(stream, reply))),
            Err(None) => {}
        }
    }
}

/// Ends a connection with a reply.
pub async fn turn_away(mut stream: Stream, reply: String) {
    let _ = timeout(REFUSAL_WAIT, stream.write_all(reply.as_bytes())).await;
    let _ = timeout(REFUSAL_WAIT, stream.shutdown()).await;
}

/// Waits for the next client, with pauses after errors: for listeners that are no loop.
pub async fn accepted<T, F: Future<Output = io::Result<T>>>(listener: impl Display, accept: impl Fn() -> F) -> T {
    let mut wait = WAIT_MIN;
    loop {
        match accept().await {
            Ok(client) => return client,
            Err(error) => {
                // The first of a row alone: a machine without descriptors fails each time.
                if wait == WAIT_MIN {
                    tracing::warn!(%listener, %error, "cannot accept");
                }
                sleep(wait).await;
                wait = (wait * 2).min(WAIT_MAX);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::Arc;

    use tokio::io::AsyncReadExt as _;
    use tokio::net::{TcpListener, TcpStream};
    use tokio::sync::{OwnedSemaphorePermit, Semaphore};

    use super::*;

    /// Greets a client until it goes; one that finds no place is told so.
    struct Greeter(Arc<Semaphore>);

    impl Handler for Greeter {
        type Place = OwnedSemaphorePermit;

        async fn enter(&self, _stream: &Stream, _peer: SocketAddr) -> Result<OwnedSemaphorePermit, Option<String>> {
            self.0.clone().try_acquire_owned().map_err(|_| Some("full".into()))
        }

        fn begin(&self, mut stream: Stream, _peer: SocketAddr, place: OwnedSemaphorePermit) {
            tokio::spawn(async move {
                stream.write_all(b"hello").await.unwrap();
                stream.read_u8().await.unwrap_err();
                drop(place);
                stream.shutdown().await.unwrap();
            });
        }
    }

    #[tokio::test]
    async fn a_client_without_a_place_gets_a_reply_and_a_place_is_free_again() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (socket, greeter) = (Socket::Tcp(listener), Greeter(Arc::new(Semaphore::new(1))));
        let clients = async {
            let hear = async |stream: &mut TcpStream| {
                let mut text = [0; 5];
                let count = stream.read(&mut text).await.unwrap();
                String::from_utf8_lossy(&text[..count]).into_owned()
            };
            let mut first = TcpStream::connect(address).await.unwrap();
            assert_eq!(hear(&mut first).await, "hello");
            let mut second = TcpStream::connect(address).await.unwrap();
            assert_eq!(hear(&mut second).await, "full");
            assert_eq!(hear(&mut second).await, "", "the connection is over");
            first.shutdown().await.unwrap();
            assert_eq!(hear(&mut first).await, "");
            let mut third = TcpStream::connect(address).await.unwrap();
            assert_eq!(hear(&mut third).await, "hello");
        };
        tokio::select! {
            () = accept("greeter", &socket, &greeter) => {}
            () = clients => {}
        }
    }

    #[tokio::test(start_paused = true)]
    async fn errors_are_waited_out_longer_and_longer() {
        let tries = Cell::new(0);
        let began = tokio::time::Instant::now();
        let accept = || {
            tries.set(tries.get() + 1);
            std::future::ready(if tries.get() <= 12 { Err(io::Error::from_raw_os_error(24)) } else { Ok(tries.get()) })
        };
        assert_eq!(accepted("x", accept).await, 13);
        // 5, 10, ... 640 ms, and four times a second.
        assert_eq!(began.elapsed().as_millis(), 1_275 + 4_000);
    }
}
