//! Connections of HTTP/2 (RFC 9113) to origins: one has the requests of many clients.
//!
//! Each stream is, to the side that asks, a connection of HTTP/1.1 for one request, over a pipe within the program: a response has
//! passed the checks of that before anybody acts on it, and a pipe that is dropped before its end resets the stream.
//!
//! Bounds: 100 streams of a connection at a time, or as many as the origin allows; heads of 64 KiB; what the origin sends ahead of a body ([`ahead`]),
//! on each stream, so that one slow client holds up no other; 16 KiB in either direction between a stream and its pipe.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use h2::client::{Builder, Connection, ResponseFuture, SendRequest};
use h2::{Ping, PingPong, Reason, SendStream};
use proto::http::{Framing, Limits, Request, Server, ServerEvent};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::origin::Origin;
use crate::net::ahead::{self, Ahead};
use crate::net::http2;
use crate::net::opener::wants_certificate;
use crate::net::stream::Stream;

const STREAMS_MAX: usize = 100;

/// Bytes of a request's body that wait to be sent.
const WAITING_BYTES_MAX: usize = 64 << 10;

/// How often at the most the origin is asked, when a request begins, whether it is there, and how long it may take to say so.
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PING_WAIT: Duration = Duration::from_secs(20);

/// A connection to an origin that takes many requests at a time.
pub struct Shared {
    /// Where it leads.
    pub address: SocketAddr,
    /// It may have requests of other clients: who is there has been proved.
    pub is_proved: bool,
    sender: SendRequest<Bytes>,
    /// One for each stream, and one.
    open: Rc<()>,
    /// A request has begun.
    asked: Rc<Notify>,
    /// The origin wants a certificate of its client.
    wants_certificate: Rc<Cell<bool>>,
    ahead: Rc<Ahead>,
}

/// Window of a connection, for streams with windows of so many bytes.
const fn of_all(window: u32) -> u32 {
    STREAMS_MAX as u32 * window
}

impl Shared {
    /// Begins one over a connection whose two sides have agreed on HTTP/2.
    ///
    /// # Errors
    /// When the connection has ended.
    pub async fn begin(stream: Stream, address: SocketAddr, is_proved: bool) -> io::Result<Shared> {
        let mut builder = Builder::new();
        builder
            .enable_push(false)
            .initial_max_send_streams(STREAMS_MAX)
            .max_header_list_size(http2::HEAD_BYTES_MAX)
            .initial_window_size(ahead::BYTES)
            .initial_connection_window_size(of_all(ahead::BYTES))
            .max_send_buffer_size(WAITING_BYTES_MAX);
        let (sender, connection) = builder.handshake(stream).await.map_err(io::Error::other)?;
        let (asked, wants_certificate) = (Rc::<Notify>::default(), Rc::default());
        let ahead = Ahead::new();
        tokio::task::spawn_local(drive(connection, asked.clone(), Rc::clone(&wants_certificate), ahead.clone()));
        Ok(Shared { address, is_proved, sender, open: Rc::new(()), asked, wants_certificate, ahead })
    }

    /// Whether it takes one more request now.
    pub fn has_room(&self) -> bool {
        let streams_max = self.sender.current_max_send_streams().min(STREAMS_MAX);
        let is_ready = self.sender.clone().poll_ready(&mut Context::from_waker(Waker::noop()));
        Rc::strong_count(&self.open) <= streams_max && matches!(is_ready, Poll::Ready(Ok(())))
    }

    /// Whether a request is under way on it.
    pub fn is_busy(&self) -> bool {
        Rc::strong_count(&self.open) > 1
    }

    /// A connection for one request. `refused` is called where the origin takes it in HTTP/1.1 alone, or where that is needed to know
    /// more of its refusal.
    pub fn open(&self, refused: impl FnOnce() + 'static) -> Origin {
        self.asked.notify_one();
        let (ours, theirs) = Stream::within(http2::PIPE_BYTES);
        let (sender, open, ahead) = (self.sender.clone(), self.open.clone(), self.ahead.clone());
        let wants_certificate = self.wants_certificate.clone();
        tokio::task::spawn_local(async move {
            let mut pipe = theirs;
            let outcome = carry(sender, &ahead, &mut pipe).await;
            let needs_old =
                |error: &io::Error| reason(error) == Some(Reason::HTTP_1_1_REQUIRED) || wants_certificate.get();
            if outcome.is_err_and(|error| needs_old(&error)) {
                refused();
            }
            // Before anybody hears of its end.
            drop(pipe);
            drop(open);
        });
        // The connection may end while the request is on its way.
        Origin { is_reused: true, is_http_2: true, ..Origin::new(ours, self.address) }
    }
}

/// Keeps a connection going until it is over, or the origin says nothing any more.
async fn drive(
    mut connection: Connection<Stream, Bytes>,
    asked: Rc<Notify>,
    certificate: Rc<Cell<bool>>,
    ahead: Rc<Ahead>,
) {
    let mut silence = pin!(silence(connection.ping_pong(), &asked));
    let outcome = loop {
        tokio::select! {
            outcome = &mut connection => break outcome,
            () = silence.as_mut() => return,
            () = ahead.is_short() => {}
        }
        ahead.widen(|window| {
            connection.set_target_window_size(of_all(window));
            connection.set_initial_window_size(window)
        });
    };
    certificate.set(outcome.is_err_and(|error| error.get_io().is_some_and(wants_certificate)));
}

/// Resolves when the origin does not answer.
async fn silence(pings: Option<PingPong>, asked: &Notify) {
    let Some(mut pings) = pings else { return std::future::pending().await };
    loop {
        asked.notified().await;
        if !matches!(timeout(PING_WAIT, pings.ping(Ping::opaque())).await, Ok(Ok(_))) {
            return;
        }
        sleep(PING_INTERVAL).await;
    }
}

/// Carries one request and its response.
async fn carry(mut sender: SendRequest<Bytes>, ahead: &Rc<Ahead>, pipe: &mut Stream) -> io::Result<()> {
    let (mut server, mut input) = (Server::new(Limits::default()), Vec::with_capacity(http2::PIPE_BYTES));
    let Some(request) = next_request(&mut server, pipe, &mut input).await? else { return Ok(()) };
    let is_over = matches!(request.framing, Framing::Empty | Framing::Length(0));
    if is_over {
        // A request without a body is complete.
        server.step(b"");
    }
    let made = http2::request_to(&request).ok_or_else(http2::malformed)?;
    poll_fn(|context| sender.poll_ready(context)).await.map_err(io::Error::other)?;
    let (response, body) = sender.send_request(made, is_over).map_err(io::Error::other)?;
    drop(sender);
    let server = RefCell::new(server);
    let (reads, writes) = tokio::io::split(pipe);
    tokio::select! {
        () = upload(&server, (reads, input), (!is_over).then_some(body)) => Ok(()),
        outcome = download(&server, response, ahead, writes) => outcome,
    }
}

/// The request, when its head has come; none where nobody asks.
async fn next_request(server: &mut Server, pipe: &mut Stream, input: &mut Vec<u8>) -> io::Result<Option<Box<Request>>> {
    loop {
        let (taken, event) = server.step(input);
        input.drain(..taken);
        match event {
            ServerEvent::Request(request) => return Ok(Some(request)),
            ServerEvent::Idle if taken > 0 => {}
            ServerEvent::Idle if pipe.read_buf(input).await? == 0 => return Ok(None),
            ServerEvent::Idle => {}
            _ => return Err(http2::malformed()),
        }
    }
}

/// Sends the body of the request as it comes, and waits until nobody wants the response any more.
async fn upload(
    server: &RefCell<Server>,
    (mut from, mut input): (impl AsyncRead + Unpin, Vec<u8>),
    body: Option<SendStream<Bytes>>,
) {
    if let Some(mut body) = body {
        // An origin that takes no more may say why.
        let _ = send_body(server, (&mut from, &mut input), &mut body).await;
    }
    while from.read_buf(&mut input).await.is_ok_and(|count| count > 0) {
        input.clear();
    }
}

async fn send_body(
    server: &RefCell<Server>,
    (mut from, input): (impl AsyncRead + Unpin, &mut Vec<u8>),
    to: &mut SendStream<Bytes>,
) -> io::Result<()> {
    loop {
        let (taken, event) = server.borrow_mut().step(input);
        match event {
            ServerEvent::Content => http2::content(to, Bytes::copy_from_slice(&input[..taken])).await?,
            ServerEvent::End(trailer) => return http2::end(to, &trailer),
            ServerEvent::Idle if taken > 0 => {}
            ServerEvent::Idle if from.read_buf(input).await? > 0 => continue,
            _ => return Err(io::ErrorKind::UnexpectedEof.into()),
        }
        input.drain(..taken);
    }
}

/// Writes the response as it comes.
async fn download(
    server: &RefCell<Server>,
    mut response: ResponseFuture,
    ahead: &Rc<Ahead>,
    mut to: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    while let Some(Ok(interim)) = poll_fn(|context| response.poll_informational(context)).await {
        let head = http2::response_from(&interim.into_parts().0, true).ok_or_else(http2::malformed)?;
        server.borrow_mut().interim(&head);
        send(server, &mut to).await?;
    }
    let (parts, body) = response.await.map_err(io::Error::other)?.into_parts();
    let head = http2::response_from(&parts, body.is_end_stream()).ok_or_else(http2::malformed)?;
    server.borrow_mut().respond(&head);
    send(server, &mut to).await?;
    let mut body = ahead.body(body);
    while let Some(piece) = body.piece().await {
        let piece = piece.map_err(io::Error::other)?;
        server.borrow_mut().content(&piece);
        send(server, &mut to).await?;
        body.took(piece.len())?;
    }
    let trailer = body.stream().trailers().await.map_err(io::Error::other)?;
    server.borrow_mut().end(&trailer.as_ref().map(http2::trailer).unwrap_or_default());
    send(server, &mut to).await
}

async fn send(server: &RefCell<Server>, to: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
    let words = {
        let mut server = server.borrow_mut();
        let words = server.outbox().to_vec();
        server.sent();
        words
    };
    to.write_all(&words).await?;
    to.flush().await
}

/// Why the origin has reset a stream.
fn reason(error: &io::Error) -> Option<Reason> {
    error.get_ref()?.downcast_ref::<h2::Error>()?.reason()
}
