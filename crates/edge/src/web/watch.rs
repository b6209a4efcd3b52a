//! Intrusion rules at the doors of the web: what they are told of an exchange, and messages without content.
//!
//! A body is looked at where it is inspected. A message without one is given to the rules as an empty body, before it goes on.

use std::net::SocketAddr;

use flow::{Head, Unfinished, Verdict, Watched};
use proto::http::Fields;

use super::session::Session;
use super::subject::{Outcome, Subject};
use super::vet::Order;
use crate::message::intrusion::Handshake;
use crate::net::mirror::Proof;
use crate::porch::runtime::Runtime;
use crate::upstream::destination::Failure;

impl Session {
    /// An exchange as the rules see it; none where there are no rules.
    pub(super) fn watched(
        &self,
        runtime: &Runtime,
        order: &Order,
        response: Option<(Head, SocketAddr)>,
    ) -> Option<Box<Watched>> {
        runtime.means.sentinel.as_ref()?;
        let port = order.destination.port;
        let unresolved = || SocketAddr::new(order.destination.host.parse().unwrap_or([0, 0, 0, 0].into()), port);
        let is_opened = self.opened.as_ref().is_some_and(|opened| opened.is_named());
        Some(Box::new(Watched {
            client: Some(self.peer),
            server: Some(response.as_ref().map_or_else(unresolved, |(_, address)| *address)),
            server_name: is_opened.then(|| order.destination.host.as_str().into()),
            request: order.received.clone(),
            response: response.map(|(head, _)| head),
        }))
    }

    /// Tells of a handshake whose beginning is in the input; with the proof of the server where it was opened.
    pub(super) fn tell_handshake(&self, server: Option<SocketAddr>, proof: Option<&Proof>) {
        let runtime = self.shared.runtime.borrow();
        if let Some(sentinel) = runtime.means.sentinel.as_ref().filter(|sentinel| sentinel.wants_handshakes()) {
            sentinel.handshake(&Handshake {
                client: self.peer,
                server,
                offer: self.wire.input().into(),
                version: proof.map_or(0, |proof| proof.version),
                certificate: proof.map(|proof| proof.certificate.as_slice().into()),
            });
        }
    }

    /// Has the rules look at a message without content; whether it may go on. Otherwise the client has its answer.
    pub(super) async fn may_pass(
        &mut self,
        order: &Order,
        fields: &Fields,
        response: Option<(Head, SocketAddr)>,
    ) -> Result<bool, Failure> {
        match self.objection(order, fields, response).await {
            None => Ok(true),
            Some(objection) => self.object(objection).await.map(|()| false),
        }
    }

    /// Has the rules look at a message without content; none where it may go on.
    pub(super) async fn objection(
        &self,
        order: &Order,
        fields: &Fields,
        response: Option<(Head, SocketAddr)>,
    ) -> Option<Objection> {
        let runtime = self.shared.runtime.borrow().clone();
        let watched = self.watched(&runtime, order, response)?;
        let mut subject: Subject = self.subject(&runtime, order, fields, &order.pass, Some(watched));
        let verdict = subject.passage.finish().await;
        let outcome = subject.outcome(&verdict, true);
        (outcome != Outcome::Passed).then_some(Objection { subject, verdict, outcome })
    }

    /// Answers by a page in the place of a message that the rules refuse.
    pub(super) async fn object(&mut self, objection: Objection) -> Result<(), Failure> {
        let Objection { subject, verdict, outcome } = objection;
        let (page, body) = subject.page(&verdict);
        self.server.answer(&page, &body);
        let sent = self.send().await;
        let (status, runtime) = (Some(page.status.0), self.shared.runtime.borrow().clone());
        subject.conclude(&runtime, &self.door, self.peer.ip(), status, outcome, verdict.as_ref().ok());
        Ok(sent?)
    }
}

/// A message without content that the rules refuse.
pub(super) struct Objection {
    subject: Subject,
    verdict: Result<Verdict, Unfinished>,
    outcome: Outcome,
}
