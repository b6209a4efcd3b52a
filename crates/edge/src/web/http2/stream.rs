//! One stream of HTTP/2: its request goes into a conversation of HTTP/1.1, and the response comes back out of it.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::pin;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::Request;
use proto::http::{Client, ClientEvent, Limits, Response};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::net::http2::{self, PIPE_BYTES, malformed};
use crate::net::stream::Stream;
use crate::web::session::Session;

/// Carries a stream to its end.
pub async fn run((session, pipe): (Session, Stream), request: Request<RecvStream>, mut respond: SendResponse<Bytes>) {
    let (parts, body) = request.into_parts();
    let Some(request) = http2::request_from(&parts, body.is_end_stream()) else {
        return respond.send_reset(Reason::PROTOCOL_ERROR);
    };
    tokio::task::spawn_local(session.converse_logged());
    let client = RefCell::new(Client::new(Limits::default()));
    client.borrow_mut().request(&request);
    if carry(&client, pipe, body, &mut respond).await.is_err() {
        respond.send_reset(Reason::INTERNAL_ERROR);
    }
}

/// Carries both bodies, until the response has its end.
async fn carry(
    client: &RefCell<Client>,
    pipe: Stream,
    body: RecvStream,
    respond: &mut SendResponse<Bytes>,
) -> io::Result<()> {
    let (reads, writes) = tokio::io::split(pipe);
    let mut up = pin!(upload(client, body, writes));
    let mut down = pin!(download(client, reads, respond));
    let mut is_sent = false;
    loop {
        tokio::select! {
            _ = up.as_mut(), if !is_sent => is_sent = true,
            outcome = down.as_mut() => return outcome,
        }
    }
}

/// Writes a request, as it comes.
async fn upload(client: &RefCell<Client>, mut body: RecvStream, mut to: impl AsyncWrite + Unpin) -> io::Result<()> {
    send(client, &mut to).await?;
    while let Some(piece) = body.data().await {
        let piece = piece.map_err(io::Error::other)?;
        client.borrow_mut().content(&piece);
        send(client, &mut to).await?;
        // What the client may send ahead is what has been taken here.
        body.flow_control().release_capacity(piece.len()).map_err(io::Error::other)?;
    }
    let trailer = body.trailers().await.map_err(io::Error::other)?;
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
            ClientEvent::Response(response) => answer = Some(begin(respond, &response)?),
            ClientEvent::Content => {
                let answer = answer.as_mut().ok_or_else(malformed)?;
                http2::content(answer, Bytes::copy_from_slice(&input[..taken])).await?;
            }
            ClientEvent::End(trailer) => return http2::end(answer.as_mut().ok_or_else(malformed)?, &trailer),
            ClientEvent::Refused(_) | ClientEvent::Tunnel | ClientEvent::Closed => return Err(malformed()),
        }
        input.drain(..taken);
    }
}

fn begin(respond: &mut SendResponse<Bytes>, response: &Response) -> io::Result<SendStream<Bytes>> {
    let made = http2::response_to(response).ok_or_else(malformed)?;
    respond.send_response(made, false).map_err(io::Error::other)
}

/// Resolves when the client has given the stream up.
async fn given_up(respond: &mut SendResponse<Bytes>, answer: Option<&mut SendStream<Bytes>>) {
    let outcome = match answer {
        Some(answer) => poll_fn(|context| answer.poll_reset(context)).await,
        None => poll_fn(|context| respond.poll_reset(context)).await,
    };
    drop(outcome);
}
