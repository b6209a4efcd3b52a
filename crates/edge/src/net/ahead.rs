//! How far the other side of a connection of HTTP/2 may send ahead on a stream (RFC 9113, section 5.2): a window is all that comes in a
//! round trip, so it grows where bodies are taken faster than they come.
//!
//! Bounds: [`BYTES`] at the beginning, [`BYTES_MAX`] later, for each stream.

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::rc::Rc;

use bytes::Bytes;
use h2::RecvStream;
use tokio::sync::Notify;

/// Window of each stream when a connection begins.
pub const BYTES: u32 = 64 << 10;

/// Largest window of a stream.
pub const BYTES_MAX: u32 = 1 << 20;

/// The windows of a connection.
pub struct Ahead {
    window: Cell<u32>,
    short: Notify,
}

/// A body that is taken as it comes.
pub struct Body {
    stream: RecvStream,
    ahead: Rc<Ahead>,
    /// Bytes taken since the window was looked at, and whether they were waited for.
    taken: usize,
    has_waited: bool,
}

impl Ahead {
    /// Those of a connection that begins.
    pub fn new() -> Rc<Ahead> {
        Rc::new(Ahead { window: Cell::new(BYTES), short: Notify::new() })
    }

    /// Takes a body.
    pub fn body(self: &Rc<Ahead>, stream: RecvStream) -> Body {
        Body { stream, ahead: self.clone(), taken: 0, has_waited: false }
    }

    /// Resolves when the window is too small.
    pub async fn is_short(&self) {
        self.short.notified().await;
    }

    /// Doubles the window by `set`, which may fail while an earlier one is not acknowledged.
    pub fn widen(&self, set: impl FnOnce(u32) -> Result<(), h2::Error>) {
        let wider = self.window.get().saturating_mul(2).min(BYTES_MAX);
        if set(wider).is_ok() {
            self.window.set(wider);
        }
    }
}

impl Body {
    /// The next piece; none at the end.
    pub async fn piece(&mut self) -> Option<Result<Bytes, h2::Error>> {
        poll_fn(|context| {
            let piece = self.stream.poll_data(context);
            self.has_waited |= piece.is_pending();
            piece
        })
        .await
    }

    /// The other side may send ahead so many bytes more.
    ///
    /// # Errors
    /// When the stream has ended.
    pub fn took(&mut self, count: usize) -> io::Result<()> {
        self.stream.flow_control().release_capacity(count).map_err(io::Error::other)?;
        self.taken = self.taken.saturating_add(count);
        let window = self.ahead.window.get();
        if self.taken >= window as usize {
            if std::mem::take(&mut self.has_waited) && window < BYTES_MAX {
                self.ahead.short.notify_one();
            }
            self.taken = 0;
        }
        Ok(())
    }

    /// The stream, for its trailer.
    pub fn stream(&mut self) -> &mut RecvStream {
        &mut self.stream
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::time::Duration;

    use h2::{client, server};
    use tokio::time::sleep;

    use super::*;

    const BODY_BYTES: usize = 8 << 20;

    /// Sends a body to a reader that pauses so long behind each piece: the most that was ever sent ahead.
    async fn sent_ahead(pause: Duration) -> usize {
        let (ours, theirs) = tokio::io::duplex(256 << 10);
        let most = Cell::new(0);
        let reader = async {
            let mut builder = server::Builder::new();
            builder.initial_window_size(BYTES).initial_connection_window_size(BODY_BYTES as u32);
            let mut connection = builder.handshake::<_, Bytes>(theirs).await.unwrap();
            let (request, _respond) = connection.accept().await.unwrap().unwrap();
            let ahead = Ahead::new();
            let mut body = ahead.body(request.into_body());
            let mut reading = pin!(async {
                while let Some(piece) = body.piece().await {
                    sleep(pause).await;
                    body.took(piece.unwrap().len()).unwrap();
                }
            });
            loop {
                tokio::select! {
                    () = reading.as_mut() => return,
                    _ = poll_fn(|context| connection.poll_closed(context)) => return,
                    () = ahead.is_short() => ahead.widen(|window| connection.set_initial_window_size(window)),
                }
            }
        };
        let writer = async {
            let mut builder = client::Builder::new();
            builder.max_send_buffer_size(BODY_BYTES);
            let (mut sender, connection) = builder.handshake(ours).await.unwrap();
            let sending = async {
                let request = http::Request::post("https://o.test/").body(()).unwrap();
                let (_response, mut stream) = sender.send_request(request, false).unwrap();
                let mut left = BODY_BYTES;
                while left > 0 {
                    stream.reserve_capacity(left);
                    let room = poll_fn(|context| stream.poll_capacity(context)).await.unwrap().unwrap();
                    most.set(most.get().max(room));
                    stream.send_data(Bytes::from(vec![0; room.min(left)]), false).unwrap();
                    left -= room.min(left);
                    // A round trip.
                    sleep(Duration::from_millis(50)).await;
                }
                stream.send_data(Bytes::new(), true).unwrap();
                std::future::pending::<()>().await;
            };
            tokio::select! {
                _ = connection => {}
                () = sending => {}
            }
        };
        tokio::select! {
            () = reader => {}
            () = writer => {}
        }
        most.get()
    }

    #[tokio::test(start_paused = true)]
    async fn a_window_grows_where_the_reader_waits() {
        assert!(sent_ahead(Duration::ZERO).await > BYTES_MAX as usize / 2);
        // The library counts a byte more where settings and windows cross: it does not grow.
        assert!(sent_ahead(Duration::from_secs(1)).await < 2 * BYTES as usize, "a slow one has no more");
    }
}
