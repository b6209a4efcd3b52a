//! One request and its response: the request goes to the origin as it is inspected, and the response comes back so.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use flow::{Flow, Protocol, Watched};
use proto::http::{ClientEvent, Fields, Response};
use stream::Object;

use super::head;
use super::object;
use super::refused::Refused;
use super::relay::is_call;
use super::session::{SILENCE_WAIT, Session};
use super::subject::Subject;
use super::upload::Sent;
use super::vet::Order;
use crate::net::intercept;
use crate::porch::filter::Pass;
use crate::porch::runtime::Runtime;
use crate::settings::{HttpListener, Ranges};
use crate::upstream::destination::{Destination, Failure, connect};
use crate::upstream::origin::Origin;

/// How often a request is made again.
const AGAIN_MAX: u32 = 2;

impl Session {
    /// Hands a request on, and its response back.
    pub(super) async fn exchange(&mut self, order: &Order) -> io::Result<()> {
        match self.try_exchange(order).await {
            Err(Failure::Client(error)) => Err(error),
            Err(failure) => {
                if let (Failure::Certificate, Some(opener)) = (&failure, &self.shared.runtime.borrow().opener) {
                    opener.close(None, &order.destination.host);
                }
                self.shared.runtime.borrow().metrics.http_origin_failures_total.add(1);
                self.refuse(&Refused::from(&failure), &order.request.method, &order.url).await
            }
            Ok(()) => Ok(()),
        }
    }

    async fn try_exchange(&mut self, order: &Order) -> Result<(), Failure> {
        if !order.has_body() {
            if !self.may_pass(order, &order.request.fields, None).await? {
                return Ok(());
            }
            let (origin, response) = self.ask(order).await?;
            if response.status.0 == 101 {
                return self.socket(order, origin, response).await;
            }
            return self.download(order, origin, response).await;
        }
        if is_call(&order.request) {
            return self.call(order).await;
        }
        self.server.proceed();
        self.send().await?;
        let mut origin = None;
        if let Sent::Answered = self.upload(order, &mut origin).await? {
            return Ok(());
        }
        let mut origin = origin.ok_or(Failure::Ended)?;
        let response = self.response(order, &mut origin).await?;
        self.download(order, origin, response).await
    }

    /// Asks an origin without sending a body. A connection that has waited, or a stream among others, may end as the request is on its
    /// way: then it is made again on a new one.
    async fn ask(&mut self, order: &Order) -> Result<(Origin, Box<Response>), Failure> {
        let mut origin = self.lease(order).await?;
        let mut tries_left = AGAIN_MAX;
        loop {
            origin.request(&order.request);
            origin.client.end(&Fields::default());
            let response = match origin.send().await {
                Ok(()) => self.response(order, &mut origin).await,
                Err(failure) => Err(failure),
            };
            match response {
                Ok(response) => return Ok((origin, response)),
                Err(Failure::Ended) if origin.is_reused && tries_left > 0 => {
                    origin = self.adapted(order, self.dial(order).await?);
                }
                Err(failure) => return Err(failure),
            }
            tries_left -= 1;
        }
    }

    /// A connection to the origin: one that is kept, if it may have this request.
    pub(super) async fn lease(&self, order: &Order) -> Result<Origin, Failure> {
        Ok(self.adapted(order, self.plain(order).await?))
    }

    /// The same without services of ICAP before it.
    async fn plain(&self, order: &Order) -> Result<Origin, Failure> {
        let runtime = self.shared.runtime.borrow().clone();
        let (need, route, origins) = (order.need(), order.route(), &self.shared.origins);
        let meant = self.opened.as_ref().and_then(|opened| opened.address(&order.destination));
        let is_ahead = order.ahead.is_some();
        let is_meant = |address| meant.is_none_or(|meant| meant == address);
        let allows = |address| is_ahead || self.may_reach(&runtime, address) && is_meant(address);
        // A proxy ahead gets requests in the clear itself.
        let opened = self.opened.as_ref().filter(|_| !order.asks_proxy());
        let first = opened.and_then(|opened| opened.first(&order.destination, need));
        let kept = match first {
            Some(first) => Some(origins.begin(&route, first)),
            None => origins.take(&route, need, allows),
        };
        match kept {
            Some(origin) => Ok(origin),
            None => self.dial(order).await,
        }
    }

    async fn dial(&self, order: &Order) -> Result<Origin, Failure> {
        let runtime = self.shared.runtime.borrow().clone();
        let (stream, address) = match &order.ahead {
            Some(proxy) if order.is_tunnelled => {
                self.tunnel_ahead(proxy, &order.destination.authority(), &order.request.fields).await?
            }
            Some(proxy) => self.connect_ahead(proxy).await?,
            None => connect(&self.allowed(&runtime, &order.destination).await?).await?,
        };
        match order.destination.is_tls {
            true => self.secured(&runtime, order, stream, address).await,
            false => Ok(Origin::new(stream, address)),
        }
    }

    /// The addresses of a destination that may be connected to.
    ///
    /// # Errors
    /// When there is none.
    pub(super) async fn allowed(&self, runtime: &Runtime, to: &Destination) -> Result<Vec<SocketAddr>, Failure> {
        let mut addresses = match self.opened.as_ref().and_then(|opened| opened.address(to)) {
            Some(address) => vec![address],
            None => self.addresses(to).await?,
        };
        addresses.retain(|&address| self.may_reach(runtime, address));
        if addresses.is_empty() { Err(Failure::Forbidden) } else { Ok(addresses) }
    }

    /// The addresses of a destination.
    pub(super) async fn addresses(&self, destination: &Destination) -> Result<Vec<SocketAddr>, Failure> {
        self.shared.origins.addresses(destination).await
    }

    /// Whether this door may connect to an address.
    pub(super) fn may_reach(&self, runtime: &Runtime, address: SocketAddr) -> bool {
        may_reach(runtime, &self.settings, address)
    }

    /// Waits for the head of the response; interim ones go on.
    async fn response(&mut self, order: &Order, origin: &mut Origin) -> Result<Box<Response>, Failure> {
        loop {
            let (taken, event) = origin.next(SILENCE_WAIT).await?;
            origin.wire.take(taken);
            match event {
                // What the proxy ahead asks for is no matter of the client's.
                ClientEvent::Response(response) if response.status.0 == 407 && order.asks_proxy() => {
                    return Err(Failure::Ahead(407));
                }
                ClientEvent::Response(response) => return Ok(response),
                // That one was ours to say.
                ClientEvent::Interim(interim) if interim.status.0 == 100 => {}
                ClientEvent::Interim(mut interim) => {
                    self.prepare(&mut interim);
                    self.server.interim(&interim);
                    self.send().await?;
                }
                _ => return Err(Failure::Ended),
            }
        }
    }

    /// Makes a response as the client gets it.
    pub(super) fn prepare(&self, response: &mut Response) {
        let runtime = self.shared.runtime.borrow();
        head::for_client(response, &runtime.settings.hostname, self.settings.ranges == Ranges::Pass);
    }

    fn flow(&self) -> Flow {
        Flow {
            protocol: Protocol::Http,
            client: Some(self.peer.ip()),
            encrypted: self.is_encrypted,
            login: self.user().map(Into::into),
            ..Flow::default()
        }
    }

    /// A message among others within an exchange, on these terms.
    pub(super) fn message(&self, runtime: &Runtime, object: Object, order: &Order, pass: &Pass) -> Subject {
        let is_socket = head::asks_for_socket(&order.request);
        let method = if is_socket { "WEBSOCKET" } else { &order.request.method };
        let mut subject = Subject::open(runtime, &self.door, self.flow(), object, (pass, None), method, &order.url);
        subject.language = self.language;
        subject
    }

    /// A body of this exchange, of which these fields speak, on these terms.
    pub(super) fn subject(
        &self,
        runtime: &Arc<Runtime>,
        order: &Order,
        fields: &Fields,
        pass: &Pass,
        watched: Option<Box<Watched>>,
    ) -> Subject {
        let object = object::described(order.request.path(), fields);
        let (method, url) = (&order.request.method, &order.url);
        let mut subject = Subject::open(runtime, &self.door, self.flow(), object, (pass, watched), method, url);
        subject.language = self.language;
        subject
    }
}

/// Whether a door may connect to an address: it is none of our own, and the settings do not forbid it.
fn may_reach(runtime: &Runtime, settings: &HttpListener, address: SocketAddr) -> bool {
    settings.leads_to(address.ip()) && !is_own(runtime, address)
}

/// Whether a listener of this program is at an address.
pub(super) fn is_own(runtime: &Runtime, address: SocketAddr) -> bool {
    let mut own = runtime.doors.iter().filter_map(|door| door.address.tcp()).chain(runtime.settings.metrics);
    own.any(|own| intercept::is_at(own, address))
}
