//! One stream of HTTP/2: its request goes into a conversation of HTTP/1.1, and the response comes back out of it.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::Request;
use proto::http::{Client, ClientEvent, Framing, Limits, Response};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use crate::net::ahead::{Ahead, Body};
use crate::net::http2::{self, PIPE_BYTES, malformed};
use crate::net::stream::Stream;
use crate::web::session::Session;

/// How long and how much of a body is taken whose response is complete.
const LINGER_WAIT: Duration = Duration::from_secs(5);
const LINGER_BYTES_MAX: usize = 32 << 20;

/// Carries a stream to its end.
pub async fn run(
    (session, pipe): (Session, Stream),
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    ahead: Rc<Ahead>,
) {
    let (parts, body) = request.into_parts();
    let Some(request) = http2::request_from(&parts, body.is_end_stream()) else {
        return respond.send_reset(Reason::PROTOCOL_ERROR);
    };
    tokio::task::spawn_local(session.converse_logged());
    let client = RefCell::new(Client::new(Limits::default()));
    client.borrow_mut().request(&request);
    if carry(&client, pipe, ahead.body(body), &mut respond).await.is_err() {
        respond.send_reset(Reason::INTERNAL_ERROR);
    }
}

/// Carries both bodies, until the response has its end.
async fn carry(
    client: &RefCell<Client>,
    pipe: Stream,
    mut body: Body,
    respond: &mut SendResponse<Bytes>,
) -> io::Result<()> {
    let (reads, writes) = tokio::io::split(pipe);
    {
        let mut up = pin!(upload(client, &mut body, writes));
        let mut down = pin!(download(client, reads, respond));
        let mut is_sent = false;
        loop {
            tokio::select! {
                _ = up.as_mut(), if !is_sent => is_sent = true,
                outcome = down.as_mut() => break outcome?,
            }
        }
    }
    let _ = timeout(LINGER_WAIT, linger(&mut body)).await;
    Ok(())
}

/// Takes and drops what is still to come of a body whose response is complete: some clients take the reset of the stream, which would
/// end it, for a failure.
async fn linger(body: &mut Body) {
    let mut left = LINGER_BYTES_MAX;
    while let Some(Ok(piece)) = body.piece().await {
        left = left.saturating_sub(piece.len());
        if left == 0 || body.took(piece.len()).is_err() {
            return;
        }
    }
}

/// Writes a request, as it comes.
async fn upload(client: &RefCell<Client>, body: &mut Body, mut to: impl AsyncWrite + Unpin) -> io::Result<()> {
    send(client, &mut to).await?;
    while let Some(piece) = body.piece().await {
        let piece = piece.map_err(io::Error::other)?;
        client.borrow_mut().content(&piece);
        send(client, &mut to).await?;
        body.took(piece.len())?;
    }
    let trailer = body.stream().trailers().await.map_err(io::Error::other)?;
    client.borrow_mut().end(&trailer.as_ref().map(http2::trailer).unwrap_or_default());
    send(client, &mut to).await
}

async fn send(client: &RefCell<Client>, to: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
    let words = {
        let mut client = client.borrow_mut();
        let words = client.outbox().to_vec();
        client.sent();
        words
    };
    to.write_all(&words).await?;
    to.flush().await
}

/// Hands the response back, as it comes.
async fn download(
    client: &RefCell<Client>,
    mut from: impl AsyncRead + Unpin,
    respond: &mut SendResponse<Bytes>,
) -> io::Result<()> {
    let mut input = Vec::with_capacity(PIPE_BYTES);
    let mut answer: Option<SendStream<Bytes>> = None;
    let mut is_over = false;
    loop {
        let (taken, mut event) = client.borrow_mut().step(&input);
        if taken == 0 && event == ClientEvent::Idle {
            let has_more = tokio::select! {
                count = from.read_buf(&mut input) => count? > 0,
                _ = given_up(respond, answer.as_mut()) => return Err(io::ErrorKind::ConnectionAborted.into()),
            };
            if has_more {
                continue;
            }
            event = client.borrow_mut().finish();
        }
        match event {
            ClientEvent::Idle => {}
            ClientEvent::Interim(interim) => {
                let made = http2::response_to(&interim).ok_or_else(malformed)?;
                respond.send_informational(made).map_err(io::Error::other)?;
            }
            ClientEvent::Response(response) => {
                is_over = matches!(response.framing, Framing::Empty | Framing::Length(0));
                answer = Some(begin(respond, &response, is_over)?);
            }
            ClientEvent::Content => {
                let answer = answer.as_mut().ok_or_else(malformed)?;
                http2::content(answer, Bytes::copy_from_slice(&input[..taken])).await?;
            }
            ClientEvent::End(_) if is_over => return Ok(()),
            ClientEvent::End(trailer) => return http2::end(answer.as_mut().ok_or_else(malformed)?, &trailer),
            ClientEvent::Refused(_) | ClientEvent::Tunnel | ClientEvent::Closed => return Err(malformed()),
        }
        input.drain(..taken);
    }
}

/// Begins the response. One that `is_over` ends with its head: clients of gRPC read a status there then, as in a trailer.
fn begin(respond: &mut SendResponse<Bytes>, response: &Response, is_over: bool) -> io::Result<SendStream<Bytes>> {
    let made = http2::response_to(response).ok_or_else(malformed)?;
    respond.send_response(made, is_over).map_err(io::Error::other)
}

/// Resolves when the client has given the stream up.
async fn given_up(respond: &mut SendResponse<Bytes>, answer: Option<&mut SendStream<Bytes>>) {
    let outcome = match answer {
        Some(answer) => poll_fn(|context| answer.poll_reset(context)).await,
        None => poll_fn(|context| respond.poll_reset(context)).await,
    };
    drop(outcome);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_body_is_taken_to_its_end_behind_an_early_response() {
        let (ours, theirs) = Stream::within(PIPE_BYTES);
        let serve = async {
            let mut connection = h2::server::Builder::new().handshake::<_, Bytes>(ours).await.unwrap();
            let (request, mut respond) = connection.accept().await.unwrap().unwrap();
            let client = RefCell::new(Client::default());
            let (parts, body) = request.into_parts();
            client.borrow_mut().request(&http2::request_from(&parts, false).unwrap());
            let (pipe, mut conversation) = Stream::within(PIPE_BYTES);
            conversation.write_all(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 1\r\n\r\nx").await.unwrap();
            let drive = async { while connection.accept().await.is_some() {} };
            let (outcome, ()) = tokio::join!(carry(&client, pipe, Ahead::new().body(body), &mut respond), drive);
            outcome.unwrap();
        };
        let ask = async {
            let (sender, connection) = h2::client::handshake(theirs).await.unwrap();
            let ask = async {
                let request = Request::post("https://o.test/").body(()).unwrap();
                let (response, mut body) = sender.ready().await.unwrap().send_request(request, false).unwrap();
                assert_eq!(response.await.unwrap().status(), 401);
                for _ in 0..30 {
                    http2::content(&mut body, Bytes::from_static(&[b'x'; 10_000])).await.unwrap();
                }
                http2::end(&mut body, &proto::http::Fields::default()).unwrap();
                // It has not been reset.
                let reset = poll_fn(|context| body.poll_reset(context));
                assert!(timeout(Duration::from_millis(300), reset).await.is_err());
            };
            tokio::select! {
                () = ask => {}
                outcome = connection => panic!("{outcome:?}"),
            }
        };
        tokio::join!(serve, ask);
    }

    #[tokio::test]
    async fn a_response_without_a_body_ends_with_its_head() {
        for (said, is_over) in
            [("Content-Length: 0\r\nGrpc-Status: 5\r\n\r\n", true), ("Content-Length: 1\r\n\r\nx", false)]
        {
            let said = format!("HTTP/1.1 200 OK\r\n{said}");
            let (ours, theirs) = Stream::within(PIPE_BYTES);
            let serve = async {
                let mut connection = h2::server::Builder::new().handshake::<_, Bytes>(ours).await.unwrap();
                let (_request, mut respond) = connection.accept().await.unwrap().unwrap();
                let client = RefCell::new(Client::default());
                let target = proto::http::Target::Origin(b"/".to_vec());
                client.borrow_mut().request(&proto::http::Request::new("GET", target));
                client.borrow_mut().end(&proto::http::Fields::default());
                let drive = async { while connection.accept().await.is_some() {} };
                let (outcome, ()) = tokio::join!(download(&client, said.as_bytes(), &mut respond), drive);
                outcome.unwrap();
            };
            let ask = async {
                let (sender, connection) = h2::client::handshake(theirs).await.unwrap();
                let ask = async {
                    let request = Request::get("https://o.test/").body(()).unwrap();
                    let (response, _) = sender.ready().await.unwrap().send_request(request, true).unwrap();
                    response.await.unwrap().into_body().is_end_stream()
                };
                tokio::select! {
                    is_end = ask => is_end,
                    outcome = connection => panic!("{outcome:?}"),
                }
            };
            let (_, is_end) = tokio::join!(serve, ask);
            assert_eq!(is_end, is_over, "{said}");
        }
    }
}
