//! A connection: one request after the other, each with its form, read whole.

use std::io;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use edge::net::stream::Stream;
use proto::http::{Fields, Request, Server, ServerEvent};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::block_in_place;
use tokio::time::timeout;
use webmail::{Body, Call, Form, LIMITS, Reply, cookie};

use super::answer::{self, COOKIE, PASSKEY_COOKIE};
use super::api::{self, Ask, FORM_BYTES_MAX};
use super::page::frame;
use super::places::Place;
use super::site::Site;

/// The time between two pieces of a request.
const WAIT: Duration = Duration::from_secs(30);

/// The time from one request to the end of the next.
const WHOLE: Duration = Duration::from_secs(120);

/// Bytes of a client that are read and dropped behind the last reply, and for how long.
const DRAINED_BYTES_MAX: usize = 16 << 20;
const DRAIN_WAIT: Duration = Duration::from_secs(2);

/// Speaks with a client until it goes.
///
/// # Errors
/// When the connection breaks.
pub async fn serve(mut stream: Stream, client: IpAddr, site: &Site, place: &Place) -> io::Result<()> {
    let mut server = Server::new(LIMITS);
    let (mut piece, mut request, mut form, mut began) = ([0; 4096], None, Vec::new(), Instant::now());
    while !server.is_over() {
        if began.elapsed() > WHOLE {
            return Ok(());
        }
        let Some(Ok(count)) = place.wait(timeout(WAIT, stream.read(&mut piece))).await else { return Ok(()) };
        let count = count?;
        let mut rest = &piece[..count];
        loop {
            let (taken, event) = if count == 0 { (0, server.finish()) } else { server.step(rest) };
            let (content, behind) = rest.split_at(taken);
            rest = behind;
            match event {
                ServerEvent::Request(head) => {
                    (request, form, began) = (Some(head), Vec::new(), Instant::now());
                    server.proceed();
                }
                ServerEvent::Content if form.len() + content.len() <= FORM_BYTES_MAX => form.extend_from_slice(content),
                ServerEvent::Content => {
                    server.close();
                    let is_of_program = request.as_ref().is_some_and(|head| head.path().starts_with(b"/api/"));
                    let page = || frame::plain(413, "Not done", "This is too large.");
                    let reply = if is_of_program { api::too_large() } else { page() };
                    respond(&mut server, &reply, false);
                    break;
                }
                ServerEvent::End(_) => {
                    let Some(head) = request.take() else { break };
                    let reply = block_in_place(|| answer(site, &head, &form, client));
                    respond(&mut server, &reply, head.method == "HEAD");
                    began = Instant::now();
                }
                ServerEvent::Idle if taken == 0 => break,
                ServerEvent::Idle => {}
                ServerEvent::Refused(_) | ServerEvent::Tunnel | ServerEvent::Closed => break,
            }
        }
        let Some(Ok(sent)) = place.wait(timeout(WAIT, stream.write_all(server.outbox()))).await else { return Ok(()) };
        sent?;
        server.sent();
        if count == 0 {
            break;
        }
    }
    stream.shutdown().await?;
    place.wait(drain(&mut stream)).await;
    Ok(())
}

/// Reads what a client still sends: closing before would break off the reply that it is about to read.
async fn drain(stream: &mut Stream) {
    let (mut piece, mut left) = ([0; 4096], DRAINED_BYTES_MAX);
    let read = async {
        while let Ok(count @ 1..) = stream.read(&mut piece).await
            && count < left
        {
            left -= count;
        }
    };
    let _ = timeout(DRAIN_WAIT, read).await;
}

fn answer(site: &Site, request: &Request, form: &[u8], client: IpAddr) -> Reply {
    let mut call = Call::new(request, false);
    call.cookie = cookie(request, COOKIE);
    call.passkey = cookie(request, PASSKEY_COOKIE);
    call.form = Form::of_body(request.fields.get("content-type").unwrap_or_default(), form);
    if let ["api", "v1", rest @ ..] = &call.segments()[..] {
        let method = if request.method == "HEAD" { "GET" } else { &request.method };
        let browser = || site.access.session(call.cookie.as_deref(), client).filter(|_| method == "GET");
        let program = site.access.program(request.fields.get("authorization"), client);
        let Some(who) = program.or_else(|| browser().map(|(_, who)| who)) else { return api::closed() };
        return api::answer(method, rest, &Ask::new(site, &who, &call, form));
    }
    // To look at a link does not use it up.
    let is_known = call.is_known && (request.method != "HEAD" || call.segments() != ["enter"]);
    match is_known {
        true => answer::answer(site, &call, client),
        false => {
            let mut reply = frame::plain(405, "Not done", "Pages are read with GET and changed with POST.");
            reply.set("Allow", "GET, HEAD, POST".into());
            reply
        }
    }
}

fn respond(server: &mut Server, reply: &Reply, is_head: bool) {
    server.respond(&reply.head());
    if let (Body::Bytes(bytes), false) = (&reply.body, is_head) {
        server.content(bytes);
    }
    server.end(&Fields::default());
}
