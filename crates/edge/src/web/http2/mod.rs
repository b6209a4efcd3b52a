//! HTTP/2 (RFC 9113) with clients: each stream is a conversation of HTTP/1.1 within the program, so that a message has one reader and
//! one writer, whatever it came in.
//!
//! Bounds: 100 streams of a connection at a time, those that the client has given up among them until their conversation hears of it;
//! heads of 64 KiB; 16 KiB in either direction between a stream and its conversation; what a client sends ahead of a body ([`ahead`]),
//! and of all bodies [`AHEAD_BYTES_MAX`].

mod stream;

use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use h2::RecvStream;
use h2::server::{Builder, Connection, SendResponse};
use http::Request;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use super::session::{SILENCE_WAIT, Session};
use crate::net::ahead::{self, Ahead};
use crate::net::http2;
use crate::net::stream::Stream;
use crate::net::wire::Wire;

const STREAMS_MAX: usize = 100;

/// Bytes that the streams of a connection may send ahead, all together.
const AHEAD_BYTES_MAX: u32 = 2 << 20;

/// Bytes of a body that wait to be sent on a stream.
const WAITING_BYTES_MAX: usize = 64 << 10;

/// How long a client may take to begin.
const PREFACE_WAIT: Duration = Duration::from_secs(30);

type Accepted = Option<Result<(Request<RecvStream>, SendResponse<Bytes>), h2::Error>>;

/// Runs a connection to its end. Each stream is answered by a session made after this one.
pub(super) async fn run(mut session: Session) -> io::Result<()> {
    let (stream, said) = session.wire.take_parts().ok_or(io::ErrorKind::NotConnected)?;
    if !said.is_empty() {
        return Err(io::Error::other("bytes before the preface"));
    }
    let mut builder = Builder::new();
    builder
        .max_concurrent_streams(STREAMS_MAX as u32)
        .max_header_list_size(http2::HEAD_BYTES_MAX)
        .initial_window_size(ahead::BYTES)
        .initial_connection_window_size(AHEAD_BYTES_MAX)
        .max_send_buffer_size(WAITING_BYTES_MAX);
    let connection = timeout(PREFACE_WAIT, builder.handshake(stream)).await?.map_err(io::Error::other)?;
    serve(connection, &session).await
}

async fn serve(mut connection: Connection<Stream, Bytes>, session: &Session) -> io::Result<()> {
    let mut control = session.shared.control.clone();
    let ahead = Ahead::new();
    let mut streams = JoinSet::new();
    let mut deadline = Instant::now() + SILENCE_WAIT;
    let mut is_ending = false;
    loop {
        let is_full = streams.len() >= STREAMS_MAX;
        tokio::select! {
            accepted = next(&mut connection, is_full) => match accepted {
                None => return Ok(()),
                Some(Err(error)) => return Err(io::Error::other(error)),
                Some(Ok((request, respond))) => {
                    let within = session.within()?;
                    streams.spawn_local(stream::run(within, request, respond, ahead.clone()));
                }
            },
            () = ahead.is_short() => ahead.widen(|window| connection.set_initial_window_size(window)),
            Some(_) = streams.join_next() => deadline = Instant::now() + SILENCE_WAIT,
            () = sleep_until(deadline), if streams.is_empty() && !is_ending => {
                connection.graceful_shutdown();
                is_ending = true;
            }
            _ = control.wait_for(|control| control.stopping), if !is_ending => {
                connection.graceful_shutdown();
                is_ending = true;
            }
        }
    }
}

/// The next request, or, where there is no room for one, nothing before the connection is over; it is kept going in both cases.
async fn next(connection: &mut Connection<Stream, Bytes>, is_full: bool) -> Accepted {
    poll_fn(|context| match is_full {
        true => match connection.poll_closed(context) {
            Poll::Ready(Ok(())) => Poll::Ready(None),
            Poll::Ready(Err(error)) => Poll::Ready(Some(Err(error))),
            Poll::Pending => Poll::Pending,
        },
        false => connection.poll_accept(context),
    })
    .await
}

impl Session {
    /// A session for one stream of this connection, and the other end of what it speaks over.
    fn within(&self) -> io::Result<(Session, Stream)> {
        let (ours, theirs) = Stream::within(http2::PIPE_BYTES);
        let mut session = Session::new(
            self.shared.clone(),
            self.door.clone(),
            self.settings.clone(),
            self.peer,
            Wire::new(theirs),
            self.opened.as_ref().map(Rc::clone),
        );
        session.is_encrypted = self.is_encrypted;
        session.user = self.user.clone();
        Ok((session, ours))
    }
}
