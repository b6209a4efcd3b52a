//! Connections to origins: what is said over one, and those that wait for their next request.
//!
//! Bounds: of an event loop 256 connections wait, 8 of them for one host and port, each a minute at the most.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::{Rc, Weak};
use std::time::Duration;

use proto::http::{Client, ClientEvent, Limits};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep_until, timeout};

use super::destination::{Destination, Failure};
use crate::net::opener::wants_certificate;
use crate::net::stream::Stream;
use crate::net::wire::Wire;

/// How long a connection waits for its next request.
const IDLE_WAIT: Duration = Duration::from_secs(60);

/// Connections that wait, of an event loop and of one destination.
const IDLE_MAX: usize = 256;
const IDLE_OF_ONE_MAX: usize = 8;

/// A connection to an origin.
pub struct Origin {
    /// The stream.
    pub wire: Wire,
    /// What is spoken.
    pub client: Client,
    /// Where it leads.
    pub address: SocketAddr,
    /// It has had a request before.
    pub is_reused: bool,
    /// It may have requests of other clients: who is there has been proved.
    pub is_proved: bool,
}

impl Origin {
    /// A new connection.
    pub fn new(stream: Stream, address: SocketAddr) -> Origin {
        Origin {
            wire: Wire::new(stream),
            client: Client::new(Limits::default()),
            address,
            is_reused: false,
            is_proved: true,
        }
    }

    /// Sends what is to be sent.
    ///
    /// # Errors
    /// When the origin does not take it.
    pub async fn send(&mut self) -> Result<(), Failure> {
        let outcome = self.wire.write(self.client.outbox()).await;
        self.client.sent();
        outcome.map_err(|_| Failure::Ended)
    }

    /// Whether the origin has said something, or ended. It waits for nothing.
    pub async fn has_spoken(&mut self) -> bool {
        if !self.wire.input().is_empty() {
            return true;
        }
        tokio::select! {
            biased;
            _ = self.wire.read() => true,
            () = std::future::ready(()) => false,
        }
    }

    /// The next event that matters, and how many bytes of input are its own: the caller takes them. `wait`: how long the origin
    /// may say nothing.
    ///
    /// # Errors
    /// When the response is refused, or does not come.
    pub async fn next(&mut self, wait: Duration) -> Result<(usize, ClientEvent), Failure> {
        loop {
            let (taken, event) = self.client.step(self.wire.input());
            let event = match event {
                ClientEvent::Idle if taken == 0 => match timeout(wait, self.wire.read()).await {
                    Err(_) => return Err(Failure::Late),
                    Ok(Ok(true)) => continue,
                    Ok(Ok(false)) => self.client.finish(),
                    Ok(Err(error)) if wants_certificate(&error) => return Err(Failure::Certificate),
                    Ok(Err(_)) => return Err(Failure::Ended),
                },
                event => event,
            };
            match event {
                ClientEvent::Idle => self.wire.take(taken),
                ClientEvent::Refused(proto::http::Refusal::Incomplete) | ClientEvent::Closed => {
                    return Err(Failure::Ended);
                }
                ClientEvent::Refused(refusal) => return Err(Failure::Malformed(refusal)),
                event => return Ok((taken, event)),
            }
        }
    }
}

/// Names that are looked up at a time: each takes a thread.
const LOOKUPS_MAX: usize = 64;

/// The way of a connection: where it leads, and the proxy ahead that it goes through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The server, or the proxy ahead where that gets the requests.
    pub destination: Destination,
    /// The proxy ahead.
    pub ahead: Option<Destination>,
}

/// The way of an event loop to origins.
pub struct Origins {
    /// Connections that wait for their next request, the longest unused first.
    waiting: Rc<RefCell<VecDeque<Waiting>>>,
    /// Places for names that are looked up.
    pub lookups: Semaphore,
}

impl Default for Origins {
    fn default() -> Origins {
        Origins { waiting: Rc::default(), lookups: Semaphore::new(LOOKUPS_MAX) }
    }
}

struct Waiting {
    route: Route,
    origin: Origin,
    until: Instant,
}

impl Origins {
    /// A connection that waits for a request by this route, if it leads where `allows` says.
    pub fn take(&self, route: &Route, allows: impl Fn(SocketAddr) -> bool) -> Option<Origin> {
        let mut all = self.waiting.borrow_mut();
        let fits = |waiting: &Waiting| waiting.route == *route && allows(waiting.origin.address);
        while let Some(at) = all.iter().rposition(fits) {
            let found = all.remove(at)?;
            if found.origin.wire.is_quiet() && found.until > Instant::now() {
                return Some(found.origin);
            }
        }
        None
    }

    /// Keeps a connection, if it can carry another request.
    pub fn give(&self, route: &Route, mut origin: Origin) {
        if !origin.is_proved || !origin.client.is_reusable() || !origin.wire.is_quiet() {
            return;
        }
        origin.is_reused = true;
        let mut all = self.waiting.borrow_mut();
        let of_one = all.iter().filter(|waiting| waiting.route == *route).count();
        let oldest = |waiting: &Waiting| of_one < IDLE_OF_ONE_MAX || waiting.route == *route;
        if (of_one >= IDLE_OF_ONE_MAX || all.len() >= IDLE_MAX)
            && let Some(at) = all.iter().position(oldest)
        {
            all.remove(at);
        }
        if all.is_empty() {
            tokio::task::spawn_local(sweep(Rc::downgrade(&self.waiting)));
        }
        all.push_back(Waiting { route: route.clone(), origin, until: Instant::now() + IDLE_WAIT });
    }
}

/// Closes connections that have waited long enough, until none is left.
async fn sweep(all: Weak<RefCell<VecDeque<Waiting>>>) {
    loop {
        let Some(until) = all.upgrade().and_then(|all| all.borrow().front().map(|waiting| waiting.until)) else {
            return;
        };
        sleep_until(until).await;
        if let Some(all) = all.upgrade() {
            all.borrow_mut().retain(|waiting| waiting.until > Instant::now());
        }
    }
}
