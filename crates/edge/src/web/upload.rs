//! The body of a request: it goes to the origin as it is inspected. A connection to the origin is made when something may go there,
//! so that nobody hears of a body that is refused from its beginning.

use std::io;

use flow::State;
use proto::http::{Fields, ServerEvent};
use tokio::time::timeout;

use super::session::{SILENCE_WAIT, Session};
use super::subject::{Outcome, Subject};
use super::vet::Order;
use crate::upstream::destination::Failure;
use crate::upstream::origin::Origin;

/// How far the body of a request has come.
pub enum Sent {
    /// All of it has gone on.
    Whole,
    /// The origin answers before its end.
    Early,
    /// The client has its answer.
    Answered,
}

impl Session {
    /// Hands the body of a request on as it is inspected.
    pub(super) async fn upload(&mut self, order: &Order, origin: &mut Option<Origin>) -> Result<Sent, Failure> {
        let runtime = self.shared.runtime.borrow().clone();
        let watched = self.watched(&runtime, order, None);
        let mut subject = self.subject(&runtime, order, &order.request.fields, &order.pass, watched);
        let trailer = loop {
            let (taken, event) = self.server.step(self.wire.input());
            match event {
                ServerEvent::Content if !self.take(order, origin, &mut subject, taken).await? => {
                    return Ok(Sent::Early);
                }
                ServerEvent::End(trailer) => break Some(trailer),
                ServerEvent::Idle if taken == 0 => {
                    if !self.read_or_hear(origin).await? {
                        return Ok(Sent::Early);
                    }
                }
                ServerEvent::Refused(refusal) => {
                    self.send().await?;
                    return Err(Failure::Client(io::Error::other(refusal.reason())));
                }
                ServerEvent::Idle | ServerEvent::Content => {}
                _ => return Err(Failure::Client(io::ErrorKind::UnexpectedEof.into())),
            }
            self.wire.take(taken);
            if subject.passage.is_hopeless() {
                break None;
            }
        };
        self.is_sending = trailer.is_none();
        let verdict = subject.passage.finish().await;
        let outcome = subject.outcome(&verdict, trailer.is_some());
        let (sent, status) = match outcome {
            Outcome::Passed => (self.complete_request(order, origin, &mut subject, trailer).await, None),
            _ => {
                // What the origin has of it is without an end.
                *origin = None;
                let (page, body) = subject.page(&verdict);
                self.server.answer(&page, &body);
                (self.send().await.map(|()| Sent::Answered).map_err(Failure::from), Some(page.status.0))
            }
        };
        subject.conclude(&runtime, &self.door, self.peer.ip(), status, outcome, verdict.as_ref().ok());
        sent
    }

    /// Takes content of the input, and sends on what may go; false where the origin takes no more.
    async fn take(
        &self,
        order: &Order,
        origin: &mut Option<Origin>,
        subject: &mut Subject,
        count: usize,
    ) -> Result<bool, Failure> {
        let mut at = 0;
        while at < count {
            let end = count.min(at + subject.passage.hold().piece_bytes(count - at));
            subject.passage.take(&self.wire.input()[at..end], false).await;
            at = end;
            let goes_on = subject.passage.state() == State::Streaming && !subject.passage.is_hopeless();
            if goes_on && !self.send_on(order, origin, subject, false).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Sends on what is held of the body of a request, and its end.
    async fn complete_request(
        &self,
        order: &Order,
        origin: &mut Option<Origin>,
        subject: &mut Subject,
        trailer: Option<Fields>,
    ) -> Result<Sent, Failure> {
        let mut trailer = trailer.unwrap_or_default();
        trailer.remove_hop_by_hop();
        if !self.send_on(order, origin, subject, true).await? {
            return Ok(Sent::Early);
        }
        let reached = origin.as_mut().ok_or(Failure::Ended)?;
        reached.client.end(&trailer);
        // Whoever has not taken it may have said why.
        Ok(reached.send().await.map_or(Sent::Early, |()| Sent::Whole))
    }

    /// Sends on what may go of the body of a request; false where the origin takes no more: it may have said why.
    async fn send_on(
        &self,
        order: &Order,
        origin: &mut Option<Origin>,
        subject: &mut Subject,
        has_verdict: bool,
    ) -> Result<bool, Failure> {
        if origin.is_none() {
            let mut reached = self.lease(order).await?;
            reached.request(&order.request);
            *origin = Some(reached);
            subject.has_begun = true;
        }
        let reached = origin.as_mut().ok_or(Failure::Ended)?;
        while subject.go_on(has_verdict, |piece| reached.client.content(piece)) {
            if reached.has_spoken().await || reached.send().await.is_err() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Waits for more of the client; false where the origin speaks first.
    async fn read_or_hear(&mut self, origin: &mut Option<Origin>) -> Result<bool, Failure> {
        self.send().await?;
        let hear = async {
            match origin {
                Some(origin) => origin.wire.read().await,
                None => std::future::pending().await,
            }
        };
        let has_more = tokio::select! {
            has_more = timeout(SILENCE_WAIT, self.wire.read()) => has_more.map_err(io::Error::from)??,
            _ = hear => return Ok(false),
        };
        if !has_more {
            self.server.finish();
            return Err(Failure::Client(io::ErrorKind::UnexpectedEof.into()));
        }
        Ok(true)
    }
}
