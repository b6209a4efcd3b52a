//! A response: it goes to the client as it is inspected.

use std::io;
use std::time::Instant;

use flow::{Spared, State, Unfinished, Verdict};
use proto::http::{ClientEvent, Fields, Framing, Part, Response};

use super::head;
use super::line::Ending;
use super::object;
use super::received;
use super::refused::Refused;
use super::relay::form_of_response;
use super::session::{SILENCE_WAIT, Session};
use super::side_by_side::Answer;
use super::subject::{Outcome, Subject};
use super::vet::Order;
use crate::net::wire::Wire;
use crate::porch::filter::Cause;
use crate::settings::UnknownCodings;
use crate::upstream::destination::Failure;
use crate::upstream::origin::Origin;

/// How the body of a response has come to an end.
struct Ended {
    /// None, if it was not read to its end.
    trailer: Option<Fields>,
    verdict: Result<Verdict, Unfinished>,
}

impl Session {
    /// Hands a response back as it is inspected.
    pub(super) async fn download(
        &mut self,
        order: &Order,
        origin: Origin,
        mut response: Box<Response>,
    ) -> Result<(), Failure> {
        let has_body = order.request.method != "HEAD" && !matches!(response.status.0, 204 | 304);
        if order.request.fields.get("range").is_none() {
            head::make_whole(&mut response);
        }
        self.vet_response(order, &response, has_body)?;
        let is_watched = self.shared.runtime.borrow().means.sentinel.is_some();
        let received = is_watched.then(|| (received::of_response(&response), origin.address));
        self.prepare(&mut response);
        if let Some(cookie) = &order.pass.cookie {
            response.fields.push("Set-Cookie", cookie);
        }
        if has_body && let Some(refused) = self.refused_before(order, &response) {
            return Ok(self.refuse(&refused, &order.request.method, &order.url).await?);
        }
        if !has_body || matches!(response.framing, Framing::Empty | Framing::Length(0)) {
            // The type and the name are those of the content that GET has.
            if order.request.method == "HEAD"
                && let Err(refused) = self.filter_content(order, &response)
            {
                return Ok(self.refuse(&refused, &order.request.method, &order.url).await?);
            }
            if !self.may_pass(order, &response.fields, received).await? {
                return Ok(());
            }
            return self.pass_empty(order, origin, &response).await;
        }
        let mut part = order.part.as_ref().filter(|part| part.is_within(&response));
        let mut bytes = None;
        if let Framing::Length(length) = response.framing
            && let Some(part) = part.take()
        {
            bytes = part.cut(&mut response, length);
            if bytes.is_none() {
                let may_pass = self.may_pass(order, &response.fields, received).await?;
                return if may_pass { self.answer_empty(order, &response).await } else { Ok(()) };
            }
        }
        if response.framing == Framing::Close {
            // A body that ends with the connection could not be broken off so that the client sees it.
            response.framing = Framing::Chunked;
        }
        let pass = match self.filter_content(order, &response) {
            Ok(pass) => pass,
            Err(refused) => return Ok(self.refuse(&refused, &order.request.method, &order.url).await?),
        };
        if let Some(form) = form_of_response(order, &response) {
            let may_pass = self.may_pass(order, &response.fields, received).await?;
            let answer = Answer { response, form, pass };
            return if may_pass { self.messages(order, origin, answer).await } else { Ok(()) };
        }
        let runtime = self.shared.runtime.borrow().clone();
        let watched = self.watched(&runtime, order, received);
        let mut subject = self.subject(&runtime, order, &response.fields, &pass, watched);
        if let Some(bytes) = bytes {
            subject.passage.hold().narrow(bytes);
        }
        self.transfer(order, origin, subject, (response, part)).await
    }

    /// Hands a body back as it is inspected. `part`: the part that the client gets if the end of the body is here before any of it has gone on.
    async fn transfer(
        &mut self,
        order: &Order,
        mut origin: Origin,
        mut subject: Subject,
        (mut response, part): (Box<Response>, Option<&Part>),
    ) -> Result<(), Failure> {
        let runtime = self.shared.runtime.borrow().clone();
        let ended = match self.receive(&mut origin, &mut subject, &response).await {
            Ok(ended) => ended,
            Err(failure) if !subject.has_begun => return Err(failure),
            Err(failure) => {
                tracing::info!(id = subject.passage.id(), reason = failure.detail(), "response broken off");
                Ended { trailer: None, verdict: Err(Unfinished::Gone) }
            }
        };
        let outcome = subject.outcome(&ended.verdict, ended.trailer.is_some());
        let (status, told) = match outcome {
            Outcome::Passed => {
                if let Some(part) = part.filter(|_| !subject.has_begun) {
                    let bytes = part.cut(&mut response, subject.passage.received());
                    subject.passage.hold().narrow(bytes.unwrap_or_default());
                }
                let told = self.complete(&mut subject, &response, &ended.trailer.unwrap_or_default()).await;
                if told.is_ok() {
                    self.shared.origins.give(&order.route(), origin);
                }
                (response.status, told)
            }
            _ if subject.has_begun => {
                if let Ok(verdict) = &ended.verdict {
                    let told = (subject.reason(verdict).words, subject.cause(verdict));
                    self.door.cuts.add(&order.url, &response, told, Instant::now());
                }
                (response.status, Err(self.cut()))
            }
            _ => {
                let (page, body) = subject.page(&ended.verdict);
                self.server.answer(&page, &body);
                (page.status, self.send().await.map_err(Failure::from))
            }
        };
        let verdict = ended.verdict.as_ref().ok();
        subject.conclude(&runtime, &self.door, self.peer.ip(), Some(status.0), outcome, verdict);
        told
    }

    /// Refusal of a response that was broken off before, unless a token lets the client past it.
    pub(super) fn refused_before(&self, order: &Order, response: &Response) -> Option<Refused> {
        let (words, cause) = self.cut_before(order, response)?;
        let notice = order.pass.course.as_ref().map(|course| course.notice(&words, cause));
        let (detail, notice) = ("it was broken off before".into(), notice.unwrap_or_default());
        Some(Refused { detail, notice, ..Refused::new(403, &words) })
    }

    /// Its notice.
    fn cut_before(&self, order: &Order, response: &Response) -> Option<(Box<str>, Cause)> {
        let found = self.door.cuts.find(&order.url, response, Instant::now())?;
        let is_passed = match found.1 {
            Cause::Page => order.pass.is_bypassed,
            Cause::Fault => order.pass.spared >= Spared::Faults,
            Cause::Malware => order.pass.spared == Spared::Malware,
        };
        (!is_passed).then_some(found)
    }

    /// Whether a response can be handed back.
    fn vet_response(&self, order: &Order, response: &Response, has_body: bool) -> Result<(), Failure> {
        if response.status.0 == 206 && order.request.fields.get("range").is_none() {
            return Err(Failure::Part);
        }
        let may_be_coded = !has_body || self.settings.unknown_codings == UnknownCodings::Pass;
        match may_be_coded || object::codings(&response.fields).is_some() {
            true => Ok(()),
            false => Err(Failure::Coding),
        }
    }

    /// Sends all that is held, and the end.
    async fn complete(&mut self, subject: &mut Subject, response: &Response, trailer: &Fields) -> Result<(), Failure> {
        self.begin(subject, response);
        while subject.go_on(true, |piece| self.server.content(piece)) {
            self.send().await?;
        }
        self.server.end(trailer);
        Ok(self.send().await?)
    }

    /// Takes a body from the origin; what may go on of it goes to the client.
    async fn receive(
        &mut self,
        origin: &mut Origin,
        subject: &mut Subject,
        response: &Response,
    ) -> Result<Ended, Failure> {
        let is_part = response.status.0 == 206;
        loop {
            let (taken, event) = tokio::select! {
                next = origin.next(SILENCE_WAIT) => next?,
                () = gone(&mut self.wire), if is_part => return Err(Failure::Client(io::ErrorKind::UnexpectedEof.into())),
            };
            match event {
                ClientEvent::Content => {
                    let mut at = 0;
                    while at < taken {
                        let end = taken.min(at + subject.passage.hold().piece_bytes(taken - at));
                        subject.passage.take(&origin.wire.input()[at..end], false).await;
                        at = end;
                        if subject.passage.is_hopeless() {
                            return Ok(Ended { trailer: None, verdict: subject.passage.finish().await });
                        }
                        if subject.passage.state() == State::Streaming {
                            self.begin(subject, response);
                            while subject.go_on(false, |piece| self.server.content(piece)) {
                                self.send().await?;
                            }
                        }
                    }
                    origin.wire.take(taken);
                }
                ClientEvent::End(mut trailer) => {
                    trailer.remove_hop_by_hop();
                    return Ok(Ended { trailer: Some(trailer), verdict: subject.passage.finish().await });
                }
                _ => return Err(Failure::Ended),
            }
        }
    }

    /// Begins the response, once.
    fn begin(&mut self, subject: &mut Subject, response: &Response) {
        if !std::mem::replace(&mut subject.has_begun, true) {
            self.server.respond(response);
        }
    }

    /// Breaks the response off: the client sees that its end is missing.
    pub(super) fn cut(&mut self) -> Failure {
        self.is_cut = true;
        Failure::Client(io::ErrorKind::ConnectionAborted.into())
    }

    /// Hands on a response without a body.
    async fn pass_empty(&mut self, order: &Order, mut origin: Origin, response: &Response) -> Result<(), Failure> {
        if let (_, ClientEvent::End(_)) = origin.next(SILENCE_WAIT).await? {
            self.shared.origins.give(&order.route(), origin);
        }
        self.answer_empty(order, response).await
    }

    /// Answers without a body.
    async fn answer_empty(&mut self, order: &Order, response: &Response) -> Result<(), Failure> {
        self.server.respond(response);
        self.server.end(&Fields::default());
        let (status, media_type) = (response.status.0, response.fields.get("content-type"));
        let ending = Ending { status, media_type, action: "pass", ..Ending::default() };
        self.log(&order.request.method, &order.url, &ending);
        Ok(self.send().await?)
    }
}

/// Resolves when the client has ended its connection: nobody fetches the rest of an object for it then, of which it may get nothing. Requests
/// that it sends meanwhile wait.
async fn gone(wire: &mut Wire) {
    while wire.input().is_empty() && matches!(wire.read().await, Ok(true)) {}
    if !wire.input().is_empty() {
        std::future::pending().await
    }
}
