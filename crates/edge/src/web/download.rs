//! A response: it goes to the client as it is inspected.

use std::io;
use std::time::Instant;

use flow::{State, Unfinished, Verdict};
use proto::http::{ClientEvent, Fields, Framing, Response};

use super::object;
use super::session::{Refused, SILENCE_WAIT, Session};
use super::subject::{Outcome, Subject};
use super::vet::Order;
use crate::message::trace::{self, new_id};
use crate::settings::UnknownCodings;
use crate::upstream::destination::Failure;
use crate::upstream::origin::Origin;

impl Session {
    /// Hands a response back as it is inspected.
    pub(super) async fn download(
        &mut self,
        order: &Order,
        mut origin: Origin,
        mut response: Box<Response>,
    ) -> Result<(), Failure> {
        let is_part = response.status.0 == 206 && order.request.fields.get("range").is_none();
        if is_part {
            return Err(Failure::Part);
        }
        let has_body = order.request.method != "HEAD" && !matches!(response.status.0, 204 | 304);
        let passes = self.settings.unknown_codings == UnknownCodings::Pass;
        if has_body && !passes && object::codings(&response.fields).is_none() {
            return Err(Failure::Coding);
        }
        self.prepare(&mut response);
        if has_body && let Some(words) = self.door.cuts.find(&order.url, &response, Instant::now()) {
            let detail = "it was broken off before".into();
            let refused = Refused { status: 403, words, detail, location: None };
            return Ok(self.refuse(&refused, &order.request.method, &order.url).await?);
        }
        if !has_body || matches!(response.framing, Framing::Empty | Framing::Length(0)) {
            return self.pass_empty(order, origin, &response).await;
        }
        if response.framing == Framing::Close {
            // A body that ends with the connection could not be broken off so that the client sees it.
            response.framing = Framing::Chunked;
        }
        let pass = match self.filter_content(order, &response) {
            Ok(pass) => pass,
            Err(refused) => return Ok(self.refuse(&refused, &order.request.method, &order.url).await?),
        };
        let runtime = self.shared.runtime.borrow().clone();
        let mut subject = self.subject(&runtime, order, &response.fields, pass.paging);
        let received = self.receive(&mut origin, &mut subject, &response).await;
        let status = Some(response.status.0);
        let (trailer, verdict) = match received {
            Err(failure) if !subject.has_begun => return Err(failure),
            Err(failure) => {
                tracing::info!(id = subject.passage.id(), reason = failure.detail(), "the response has no end");
                subject.conclude(&runtime, &self.door, self.peer.ip(), status, Outcome::Lost, None);
                return Err(self.cut());
            }
            Ok(received) => received,
        };
        let outcome = subject.outcome(&verdict);
        match outcome {
            Outcome::Passed => {
                self.begin(&mut subject, &response);
                while subject.passage.hold().held() > 0 {
                    subject.go_on(true, |piece| self.server.content(piece));
                    self.send().await?;
                }
                self.server.end(&trailer);
                self.send().await?;
                self.shared.origins.give(&order.destination, origin);
            }
            _ if !subject.has_begun => {
                let (response, body) = subject.page(&runtime, &verdict);
                self.server.answer(&response, &body);
                self.send().await?;
                let status = Some(response.status.0);
                subject.conclude(&runtime, &self.door, self.peer.ip(), status, outcome, verdict.as_ref().ok());
                return Ok(());
            }
            _ => {
                if let Ok(verdict) = &verdict {
                    self.door.cuts.add(&order.url, &response, subject.words(&runtime, verdict), Instant::now());
                }
                subject.conclude(&runtime, &self.door, self.peer.ip(), status, outcome, verdict.as_ref().ok());
                return Err(self.cut());
            }
        }
        subject.conclude(&runtime, &self.door, self.peer.ip(), status, outcome, verdict.as_ref().ok());
        Ok(())
    }

    /// Takes a body from the origin; what may go on of it goes to the client.
    async fn receive(
        &mut self,
        origin: &mut Origin,
        subject: &mut Subject,
        response: &Response,
    ) -> Result<(Fields, Result<Verdict, Unfinished>), Failure> {
        loop {
            let (taken, event) = origin.next(SILENCE_WAIT).await?;
            match event {
                ClientEvent::Content => {
                    let mut at = 0;
                    while at < taken {
                        let end = taken.min(at + subject.passage.hold().piece_bytes(taken - at));
                        subject.passage.take(&origin.wire.input()[at..end], false).await;
                        at = end;
                        if subject.passage.is_hopeless() {
                            return Ok((Fields::default(), subject.passage.finish().await));
                        }
                        if subject.passage.state() == State::Streaming {
                            self.begin(subject, response);
                            subject.go_on(false, |piece| self.server.content(piece));
                            self.send().await?;
                        }
                    }
                    origin.wire.take(taken);
                }
                ClientEvent::End(mut trailer) => {
                    trailer.remove_hop_by_hop();
                    return Ok((trailer, subject.passage.finish().await));
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
    fn cut(&mut self) -> Failure {
        self.is_cut = true;
        Failure::Client(io::ErrorKind::ConnectionAborted.into())
    }

    /// Hands on a response without a body.
    async fn pass_empty(&mut self, order: &Order, mut origin: Origin, response: &Response) -> Result<(), Failure> {
        if let (_, ClientEvent::End(_)) = origin.next(SILENCE_WAIT).await? {
            self.shared.origins.give(&order.destination, origin);
        }
        self.server.respond(response);
        self.server.end(&Fields::default());
        tracing::info!(
            id = new_id(),
            door = self.door.listener.protocol().name(),
            client = %self.peer.ip(),
            method = order.request.method,
            url = trace::printable(&String::from_utf8_lossy(&order.url)),
            status = response.status.0,
            bytes = 0,
            action = "pass",
            "object"
        );
        Ok(self.send().await?)
    }
}
