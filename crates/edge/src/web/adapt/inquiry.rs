//! One question to a service: the body goes there as it comes, and the answer goes on as it comes.
//!
//! Content is kept until the service has answered, up to 256 KiB: so much can be asked about again over another connection, pass as it came
//! (204 behind the preview, or where the length is known and not greater), and pass where the service fails and the settings say so.
//!
//! A service has its time ([`Patience`]) for all waits until its answer, and again for each 64 KiB. A wait for more of the body is none of
//! its own, unless it has begun to answer.

use std::io;
use std::time::Duration;

use proto::http::{Fields, Framing, Request, Response, Target};
use proto::icap::{Answer, ClientEvent, Message, Offer, Question};
use tokio::time::{Instant, timeout};

use super::Terms;
use super::ends::{Ends, More, Side};
use crate::message::trace;
use crate::settings::IcapFailure;
use crate::upstream::destination::Failure;
use crate::upstream::icap::{Link, Patience, Service, failed};

/// Bytes of a body that are kept until the service has answered.
const BACKUP_BYTES_MAX: usize = 256 << 10;

/// Bytes that wait to be sent to the service before more of the body is read.
const WAITING_BYTES_MAX: usize = 64 << 10;

/// The message that is asked about.
struct Asked<'a> {
    request: &'a Request,
    response: Option<&'a Response>,
    has_body: bool,
    /// Its length, where that is known.
    bytes: Option<u64>,
}

/// The body of the message.
struct Body {
    from: Side,
    /// Content that is kept, and how much of it the service has.
    backup: Vec<u8>,
    fed: usize,
    /// Content that is not kept any more has gone to the service.
    is_lost: bool,
    /// It has come to its end.
    trailer: Option<Fields>,
}

/// How a question has ended.
enum Ended {
    /// The message goes on as it is.
    Unmodified,
    /// The answer has gone on, to this side, but for its end: its trailer; none where no more is taken.
    Answered(Side, Option<Fields>),
}

/// Why a question has no answer.
enum Failed {
    /// The client or the origin has failed.
    End(Failure),
    /// The service, before it has answered.
    Service(io::Error),
    /// The service, by its answer.
    Answer(io::Error),
}

impl From<Failure> for Failed {
    fn from(failure: Failure) -> Failed {
        Failed::End(failure)
    }
}

impl Terms {
    /// Asks about a request. Returns the side that the answer has gone to: to the client, if it is a response.
    pub(super) async fn ask_of_request(
        &self,
        ends: &mut Ends,
        service: &Service,
        request: &Request,
    ) -> Result<Side, Failure> {
        let bytes = length(request.framing);
        let has_body = bytes != Some(0);
        let asked = Asked { request, response: None, has_body, bytes };
        let mut body = Body::from(Side::Client);
        match self.ask(ends, service, &asked, &mut body).await? {
            Ended::Answered(side, trailer) => {
                if let Some(trailer) = trailer {
                    ends.end(side, &trailer).await?;
                }
                Ok(side)
            }
            Ended::Unmodified => {
                ends.begin_request(request)?;
                body.pass(ends, Side::Origin).await.map(|()| Side::Origin)
            }
        }
    }

    /// Asks about the response to a request.
    pub(super) async fn ask_of_response(
        &self,
        ends: &mut Ends,
        service: &Service,
        request: &Request,
        response: &Response,
    ) -> Result<(), Failure> {
        let is_bodiless = request.method == "HEAD" || matches!(response.status.0, 204 | 304);
        let bytes = if is_bodiless { Some(0) } else { length(response.framing) };
        let asked = Asked { request, response: Some(response), has_body: bytes != Some(0), bytes };
        let mut body = Body::from(Side::Origin);
        match self.ask(ends, service, &asked, &mut body).await? {
            Ended::Answered(side, Some(trailer)) => ends.end(side, &trailer).await,
            Ended::Answered(_, None) => Ok(()),
            Ended::Unmodified => {
                ends.begin_response(response).await?;
                body.pass(ends, Side::Client).await
            }
        }
    }

    async fn ask(
        &self,
        ends: &mut Ends,
        service: &Service,
        asked: &Asked<'_>,
        body: &mut Body,
    ) -> Result<Ended, Failure> {
        let error = match self.try_ask(ends, service, asked, body).await {
            Ok(ended) => return Ok(ended),
            Err(Failed::End(failure)) => return Err(failure),
            Err(Failed::Service(error) | Failed::Answer(error)) => error,
        };
        self.shared.runtime.borrow().metrics.http_icap_failures_total.add(1);
        let passes = self.failure == IcapFailure::Pass && !body.is_lost;
        let action = if passes { "pass" } else { "refuse" };
        tracing::warn!(client = %self.client, service = service.uri(), %error, action, "the ICAP service gives no answer");
        match passes {
            true => Ok(Ended::Unmodified),
            false => Err(Failure::Service(format!("{}: {error}", service.uri()).into())),
        }
    }

    /// Asks, and once more where a connection that was kept ends without an answer.
    async fn try_ask(
        &self,
        ends: &mut Ends,
        service: &Service,
        asked: &Asked<'_>,
        body: &mut Body,
    ) -> Result<Ended, Failed> {
        let (mut link, offer) = service.lease().await.map_err(Failed::Service)?;
        let takes = if asked.response.is_some() { offer.takes_responses } else { offer.takes_requests };
        if !takes {
            return Err(Failed::Service(io::Error::other("it does not offer this method")));
        }
        loop {
            let outcome = self.converse(ends, (service, &mut link, &offer), asked, body).await;
            match outcome {
                Err(Failed::Service(_)) if link.is_reused && !body.is_lost => {
                    link = service.renew(link).await.map_err(Failed::Service)?;
                    body.fed = 0;
                }
                outcome => {
                    if outcome.is_ok() {
                        service.give(link);
                    }
                    return outcome;
                }
            }
        }
    }

    /// Asks over one connection.
    async fn converse(
        &self,
        ends: &mut Ends,
        (service, link, offer): (&Service, &mut Link, &Offer),
        asked: &Asked<'_>,
        body: &mut Body,
    ) -> Result<Ended, Failed> {
        let is_whole = |preview: u64| asked.bytes.is_some_and(|bytes| bytes <= preview);
        let preview = offer.preview.filter(|_| asked.has_body).map(|bytes| bytes.min(BACKUP_BYTES_MAX as u64));
        let allows_204 = is_whole(BACKUP_BYTES_MAX as u64);
        link.client.ask(&Question {
            fields: &self.fields,
            request: asked.request,
            url: &self.url,
            response: asked.response,
            has_body: asked.has_body,
            preview: preview.map(|preview| asked.bytes.map_or(preview, |bytes| bytes.min(preview))),
            allows_204,
        });
        let mut patience = Patience::new(self.wait);
        let mut is_answering = false;
        let mut preview_left = preview.filter(|&preview| !is_whole(preview)).map(|preview| preview as usize);
        loop {
            let (taken, event) = link.step();
            match event {
                ClientEvent::Idle if taken > 0 => is_answering = true,
                ClientEvent::Idle if body.feed(link, &mut preview_left) => continue,
                ClientEvent::Idle => {
                    wait(ends, link, body, (&mut patience, is_answering)).await?;
                    continue;
                }
                ClientEvent::Continue => (preview_left, is_answering) = (None, false),
                ClientEvent::Unmodified => {
                    link.take(taken);
                    return Ok(Ended::Unmodified);
                }
                ClientEvent::Answer(answer) => {
                    link.take(taken);
                    let (service, asked) = ((service, link, patience), (asked, body));
                    return self.answered(ends, service, asked, *answer).await.map_err(Failed::End);
                }
                ClientEvent::Failed(fault) => return Err(Failed::Answer(failed(fault))),
                _ => return Err(Failed::Service(io::ErrorKind::UnexpectedEof.into())),
            }
            link.take(taken);
        }
    }

    /// Hands on the answer, and the rest of the body to the service meanwhile.
    async fn answered(
        &self,
        ends: &mut Ends,
        (service, link, mut patience): (&Service, &mut Link, Patience),
        (asked, body): (&Asked<'_>, &mut Body),
        answer: Answer,
    ) -> Result<Ended, Failure> {
        let unusable = |reason: &str| Failure::Service(format!("{}: {reason}", service.uri()).into());
        let found = ["x-infection-found", "x-violations-found", "x-virus-id"];
        let found = found.iter().find_map(|name| answer.fields.get(name));
        let is_replaced = match (&answer.message, asked.response) {
            (Message::Response(response), Some(before)) => response.status != before.status,
            (Message::Response(_), None) => true,
            (Message::Request(_), _) => false,
        };
        if is_replaced || found.is_some() {
            tracing::info!(
                client = %self.client,
                user = self.user,
                method = asked.request.method,
                url = trace::printable(&String::from_utf8_lossy(&self.url)),
                service = service.uri(),
                found = found.map(|found| trace::printable(&String::from_utf8_lossy(found))),
                "icap"
            );
        }
        let to = match answer.message {
            Message::Response(response) => {
                let response = changed_response(response, answer.has_body, asked.request);
                ends.begin_response(&response.ok_or_else(|| unusable("its response is an interim one"))?).await?;
                Side::Client
            }
            Message::Request(request) => {
                let changed = changed_request(request, answer.has_body, asked.request, &self.url);
                let (request, url) = changed.ok_or_else(|| unusable("it sends the request elsewhere"))?;
                self.vet(&request, &url)?;
                ends.begin_request(&request)?;
                Side::Origin
            }
        };
        body.forget();
        loop {
            let (taken, event) = link.step();
            match event {
                ClientEvent::Content => {
                    if !ends.content(to, &link.input()[..taken]).await? {
                        return Ok(Ended::Answered(to, None));
                    }
                }
                ClientEvent::End(trailer) => {
                    link.take(taken);
                    return Ok(Ended::Answered(to, Some(trailer)));
                }
                ClientEvent::Idle if taken > 0 => {}
                ClientEvent::Idle if body.feed(link, &mut None) => continue,
                ClientEvent::Idle => {
                    let waited = wait(ends, link, body, (&mut patience, true)).await;
                    waited.map_err(|failed| match failed {
                        Failed::End(failure) => failure,
                        Failed::Service(error) | Failed::Answer(error) => unusable(&error.to_string()),
                    })?;
                    continue;
                }
                ClientEvent::Failed(fault) => return Err(unusable(fault.reason())),
                _ => return Err(unusable("its answer has no end")),
            }
            link.take(taken);
        }
    }
}

/// Waits for more of the body, where the service takes it, and for the service.
async fn wait(
    ends: &mut Ends,
    link: &mut Link,
    body: &mut Body,
    (patience, is_answering): (&mut Patience, bool),
) -> Result<(), Failed> {
    let is_heard = body.wants_more(link);
    let begun = Instant::now();
    let left = patience.left();
    let turn = async {
        match is_heard {
            // The end that is waited for has its own time.
            true => link.turn().await,
            false => timeout(left, link.turn()).await?,
        }
    };
    tokio::select! {
        more = ends.more(body.from), if is_heard => match more? {
            More::Content(content) => body.backup.extend_from_slice(&content),
            More::End(trailer) => body.trailer = Some(trailer),
        },
        count = turn => {
            let count = count.map_err(Failed::Service)?;
            let wait = if is_heard && !is_answering { Duration::ZERO } else { begun.elapsed() };
            patience.spend(wait, count).map_err(Failed::Service)?;
            if count == 0 && let ClientEvent::Failed(fault) = link.client.finish() {
                return Err(Failed::Service(failed(fault)));
            }
        }
    }
    Ok(())
}

impl Body {
    fn from(from: Side) -> Body {
        Body { from, backup: Vec::new(), fed: 0, is_lost: false, trailer: None }
    }

    /// Gives the service what is at hand; false where there is nothing, or it takes nothing now.
    fn feed(&mut self, link: &mut Link, preview_left: &mut Option<usize>) -> bool {
        if !link.client.takes_content() || link.client.outbox().len() >= WAITING_BYTES_MAX {
            return false;
        }
        let count = (self.backup.len() - self.fed).min(preview_left.unwrap_or(usize::MAX));
        if count > 0 {
            link.client.content(&self.backup[self.fed..self.fed + count]);
            self.fed += count;
            if let Some(left) = preview_left {
                *left -= count;
            }
            if self.is_lost || self.backup.len() > BACKUP_BYTES_MAX && self.fed == self.backup.len() {
                self.forget();
            }
            return true;
        }
        match &self.trailer {
            Some(trailer) if self.fed == self.backup.len() => link.client.end(trailer),
            _ if *preview_left == Some(0) => link.client.end_preview(),
            _ => return false,
        }
        true
    }

    /// Keeps no more of what the service has.
    fn forget(&mut self) {
        self.is_lost = true;
        self.backup.drain(..std::mem::take(&mut self.fed));
    }

    /// Whether more of it has to come before the service gets more.
    fn wants_more(&self, link: &Link) -> bool {
        let takes = link.client.takes_content() && link.client.outbox().len() < WAITING_BYTES_MAX;
        takes && self.fed == self.backup.len() && self.trailer.is_none()
    }

    /// Hands on all of it: what is kept, and what is still to come.
    async fn pass(self, ends: &mut Ends, to: Side) -> Result<(), Failure> {
        if !self.backup.is_empty() && !ends.content(to, &self.backup).await? {
            return Ok(());
        }
        match self.trailer {
            Some(trailer) => ends.end(to, &trailer).await,
            None => ends.pass(self.from, to).await,
        }
    }
}

/// The length of a body, where it is known.
fn length(framing: Framing) -> Option<u64> {
    match framing {
        Framing::Empty => Some(0),
        Framing::Length(bytes) => Some(bytes),
        Framing::Chunked | Framing::Close => None,
    }
}

/// The framing of a message of a service, whose body has an end of its own.
fn framing(declared: Framing, has_body: bool) -> Framing {
    match declared {
        _ if !has_body => Framing::Length(0),
        Framing::Length(bytes) => Framing::Length(bytes),
        _ => Framing::Chunked,
    }
}

/// The response of a service as it goes on; none where it cannot.
fn changed_response(mut response: Response, has_body: bool, request: &Request) -> Option<Response> {
    if response.status.0 < 200 {
        return None;
    }
    response.fields.remove_hop_by_hop();
    if request.method != "HEAD" && !matches!(response.status.0, 204 | 304) {
        response.framing = framing(response.framing, has_body);
    }
    Some(response)
}

/// The request of a service as it goes on, and its URL: to the server that the client has asked, with the method that it has asked by;
/// none where it is another.
fn changed_request(mut request: Request, has_body: bool, before: &Request, url: &[u8]) -> Option<(Request, Vec<u8>)> {
    let Target::Absolute { scheme, authority, path } = &request.target else { return None };
    let root = [scheme.as_bytes(), b"://", authority].concat();
    let changed = [&root, &path[..]].concat();
    let rest = url.strip_prefix(&root[..]).filter(|rest| matches!(rest.first(), None | Some(b'/' | b'?')));
    if rest.is_none() || request.method != before.method {
        return None;
    }
    request.target = match &before.target {
        Target::Origin(_) => Target::Origin(path.clone()),
        Target::Absolute { .. } => request.target,
        other => other.clone(),
    };
    request.fields.remove_hop_by_hop();
    if let Some(te) = before.fields.get("te") {
        request.fields.push("TE", te);
    }
    request.fields.set("Host", before.fields.get("host").unwrap_or_default());
    // The login at a proxy ahead, which the service is not told.
    if let Some(login) = before.fields.get("proxy-authorization") {
        request.fields.set("Proxy-Authorization", login);
    }
    request.framing = match has_body {
        true => framing(request.framing, true),
        false => Framing::Empty,
    };
    Some((request, changed))
}
