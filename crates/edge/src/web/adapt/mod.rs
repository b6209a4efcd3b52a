//! Services of ICAP that are asked about requests and responses on their way.
//!
//! To the session it is a connection of HTTP/1.1 to the origin, over a pipe within the program, for one request: between its two ends a task asks
//! the services. So their answers are checked, inspected and logged as what an origin says. A pipe that ends early breaks a message off.
//! The lists are asked again about a request whose URL a service has changed.
//!
//! Bounds: 16 KiB in either direction of the pipe, the body that is kept until a service has answered ([`inquiry`]).

mod ends;
mod inquiry;

use std::cell::RefCell;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use proto::http::{Fields, Request};
use tokio::sync::oneshot;

use super::head;
use super::session::Session;
use super::vet::Order;
use crate::message::trace;
use crate::net::http2::PIPE_BYTES;
use crate::net::stream::Stream;
use crate::porch::filter::{Decision, Identity, RequestFacts};
use crate::porch::shared::Shared;
use crate::settings::{IcapFailure, icap_authority};
use crate::upstream::destination::Failure;
use crate::upstream::icap::Service;
use crate::upstream::origin::{Behind, Origin};
use ends::{Ends, Pipe, Side};

/// The terms of one exchange.
struct Terms {
    shared: Rc<Shared>,
    client: IpAddr,
    user: Option<String>,
    url: Vec<u8>,
    requests: Option<Rc<Service>>,
    responses: Option<Rc<Service>>,
    failure: IcapFailure,
    /// The time of a service.
    wait: Duration,
    /// The fields of ICAP that tell the client.
    fields: Fields,
    /// What the lists know of the client beside it.
    group: Option<String>,
    port: u16,
    is_opened: bool,
    has_server_name: bool,
    identity: Identity,
    /// A token lets the client past the lists.
    is_bypassed: bool,
}

impl Session {
    /// The connection to the origin with the services before it, where there are any. WebSocket goes past them.
    pub(super) fn adapted(&self, order: &Order, origin: Origin) -> Origin {
        let service = |uri: &Option<String>| {
            let uri = uri.as_deref()?;
            Some(self.shared.services.get(uri, &icap_authority(uri)?))
        };
        let (requests, responses) = (service(&self.settings.icap_requests), service(&self.settings.icap_responses));
        if (requests.is_none() && responses.is_none()) || head::asks_for_socket(&order.request) {
            return origin;
        }
        let terms = Terms {
            shared: self.shared.clone(),
            client: self.peer.ip(),
            user: self.user().map(Into::into),
            url: order.url.clone(),
            requests,
            responses,
            failure: self.settings.icap_failure,
            wait: Duration::from_secs(self.settings.icap_seconds),
            fields: told(self.peer.ip(), self.user()),
            group: self.user.as_ref().and_then(|user| user.group.as_deref()).map(Into::into),
            port: self.door.address.tcp().map_or(0, |address| address.port()),
            is_opened: self.opened.as_ref().is_some_and(|opened| opened.destination.is_tls),
            has_server_name: self.opened.as_ref().is_some_and(|opened| opened.is_named()),
            identity: order.identity,
            is_bypassed: order.pass.is_bypassed,
        };
        let (ours, theirs) = Stream::within(PIPE_BYTES);
        let (address, is_reused) = (origin.address, origin.is_reused);
        let (alive, gone) = oneshot::channel::<()>();
        let failure = Rc::new(RefCell::new(None));
        let told = failure.clone();
        let (shared, route) = (self.shared.clone(), order.route());
        tokio::task::spawn_local(async move {
            let mut ends = Ends { pipe: Pipe::new(theirs), origin: Some(origin), shared, route };
            tokio::select! {
                outcome = terms.carry(&mut ends) => { told.replace(outcome.err()); }
                _ = gone => {}
            }
            // Before anybody hears of its end.
            drop(ends);
        });
        Origin {
            is_reused,
            // The connection behind the services leaves out what is not for it.
            is_http_2: true,
            is_proved: false,
            behind: Some(Behind { failure, _alive: alive }),
            ..Origin::new(ours, address)
        }
    }
}

/// The client, as the services are told it.
fn told(client: IpAddr, user: Option<&str>) -> Fields {
    let mut fields = Fields::default();
    fields.push("X-Client-IP", client.to_string().as_bytes());
    if let Some(user) = user {
        let user = proto::base64::encode(format!("Local://{user}").as_bytes());
        fields.push("X-Authenticated-User", user.as_bytes());
    }
    fields
}

impl Terms {
    /// Asks the lists about a request with the URL of a service.
    ///
    /// # Errors
    /// When they do not let it through.
    fn vet(&self, request: &Request, url: &[u8]) -> Result<(), Failure> {
        if self.is_bypassed || url == self.url {
            return Ok(());
        }
        let facts = RequestFacts {
            client: Some(self.client),
            user: self.user.as_deref(),
            group: self.group.as_deref(),
            port: self.port,
            method: &request.method,
            url,
            fields: &request.fields,
            is_tls: self.is_opened,
            has_server_name: self.has_server_name,
            identity: self.identity,
            is_icap: false,
            takes_tokens: false,
        };
        let detail = match self.shared.runtime.borrow().filter.request(&facts) {
            Decision::Pass(_) => return Ok(()),
            Decision::Block(reason) => trace::printable(&reason.detail),
            Decision::Redirect { .. } => "the lists send the client elsewhere".into(),
        };
        let url = trace::printable(&String::from_utf8_lossy(url));
        Err(Failure::Changed(format!("changed to {url}: {detail}").into()))
    }

    /// Carries one request and its response.
    async fn carry(&self, ends: &mut Ends) -> Result<(), Failure> {
        let Some(request) = ends.pipe.request().await? else { return Ok(()) };
        match &self.requests {
            Some(service) if self.ask_of_request(ends, service, &request).await? == Side::Client => return Ok(()),
            Some(_) => {}
            None => ends.pass_request(&request).await?,
        }
        let response = ends.response().await?;
        match &self.responses {
            Some(service) => self.ask_of_response(ends, service, &request, &response).await,
            None => ends.pass_response(&response).await,
        }
    }
}
