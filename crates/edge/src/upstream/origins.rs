//! Connections to origins that are kept for requests: those that wait for their next one, and those that take many at a time.
//!
//! Bounds: of an event loop 256 connections are kept, 64 of them for one host and port, each for a minute after its last request; 1,000 origins
//! are remembered that take HTTP/1.1 alone.

use std::cell::{Cell, RefCell};
use std::collections::{HashSet, VecDeque};
use std::net::SocketAddr;
use std::rc::{Rc, Weak};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep_until};

use super::destination::{Destination, Failure};
use super::origin::Origin;
use super::shared::Shared;
use crate::net::stream::Stream;
use crate::net::tls::HTTP_2;

/// How long a connection waits for its next request.
const IDLE_WAIT: Duration = Duration::from_secs(60);

/// Connections that wait, of an event loop and of one destination.
const IDLE_MAX: usize = 256;
const IDLE_OF_ONE_MAX: usize = 64;

/// How long after its last request a shared connection is taken for one that cannot be repeated: it will not have ended meanwhile.
const FRESH_FOR: Duration = Duration::from_secs(2);

/// Origins that are remembered to take HTTP/1.1 alone.
const OLD_MAX: usize = 1_000;

/// Names that are looked up at a time: each takes a thread.
const LOOKUPS_MAX: usize = 64;

/// How often at the most an event loop tells of look-ups that fail.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// The way of a connection: where it leads, and the proxy ahead that it goes through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The server, or the proxy ahead where that gets the requests.
    pub destination: Destination,
    /// The proxy ahead.
    pub ahead: Option<Destination>,
}

/// The connection that a request needs.
#[derive(Debug, Clone, Copy)]
pub struct Need {
    /// The request may be made twice.
    pub is_repeatable: bool,
    /// It may be a stream of HTTP/2.
    pub may_share: bool,
}

/// A connection that was made, or is kept.
pub enum Reached {
    /// For one request at a time.
    Alone(Box<Origin>),
    /// For many.
    Shared(Shared),
}

impl Reached {
    /// Continues in the HTTP version that was negotiated. `is_proved`: the connection may carry requests of several clients.
    ///
    /// # Errors
    /// When the connection has ended.
    pub async fn over(stream: Stream, address: SocketAddr, is_proved: bool) -> std::io::Result<Reached> {
        Ok(match stream.agreed_protocol() {
            Some(HTTP_2) => Reached::Shared(Shared::begin(stream, address, is_proved).await?),
            _ => Reached::Alone(Box::new(Origin { is_proved, ..Origin::new(stream, address) })),
        })
    }

    /// Whether it may have such a request. `is_fresh`: its last one was a moment ago.
    pub fn fits(&self, need: Need, is_fresh: bool) -> bool {
        match self {
            Reached::Alone(_) => need.is_repeatable,
            Reached::Shared(shared) => need.may_share && (need.is_repeatable || is_fresh || shared.is_busy()),
        }
    }

    fn address(&self) -> SocketAddr {
        match self {
            Reached::Alone(origin) => origin.address,
            Reached::Shared(shared) => shared.address,
        }
    }
}

/// The way of an event loop to origins.
pub struct Origins {
    /// Connections, the longest unused first.
    kept: Rc<RefCell<VecDeque<Kept>>>,
    /// Whether a task closes those that were kept long enough.
    is_swept: Rc<Cell<bool>>,
    /// Origins that take HTTP/1.1 alone, although they agree to HTTP/2.
    old: Rc<RefCell<HashSet<Destination>>>,
    /// Places for names that are looked up.
    lookups: Semaphore,
    /// When the log was last told of a look-up that has failed.
    told: Cell<Option<Instant>>,
}

impl Default for Origins {
    fn default() -> Origins {
        let lookups = Semaphore::new(LOOKUPS_MAX);
        Origins { kept: Rc::default(), is_swept: Rc::default(), old: Rc::default(), lookups, told: Cell::default() }
    }
}

struct Kept {
    route: Route,
    reached: Reached,
    until: Instant,
}

impl Kept {
    fn is_fresh(&self) -> bool {
        Instant::now() + IDLE_WAIT < self.until + FRESH_FOR
    }
}

impl Origins {
    /// A connection that is kept, for a request by this route, if it leads where `allows` says.
    pub fn take(&self, route: &Route, need: Need, allows: impl Fn(SocketAddr) -> bool) -> Option<Origin> {
        let need = Need { may_share: need.may_share && !self.is_old(&route.destination), ..need };
        let fits = |kept: &Kept| {
            kept.route == *route && kept.reached.fits(need, kept.is_fresh()) && allows(kept.reached.address())
        };
        loop {
            let mut all = self.kept.borrow_mut();
            let at = all.iter().rposition(fits)?;
            let found = all.remove(at)?;
            drop(all);
            match found.reached {
                _ if found.until <= Instant::now() => {}
                Reached::Alone(origin) if origin.wire.is_quiet() => return Some(*origin),
                Reached::Shared(shared) if shared.has_room() => return Some(self.share(route, shared)),
                Reached::Alone(_) | Reached::Shared(_) => {}
            }
        }
    }

    /// A new connection for a request by this route.
    pub fn begin(&self, route: &Route, reached: Reached) -> Origin {
        match reached {
            Reached::Alone(origin) => *origin,
            Reached::Shared(shared) => self.share(route, shared),
        }
    }

    /// A stream of a connection, which is kept for others.
    fn share(&self, route: &Route, shared: Shared) -> Origin {
        let (old, destination) = (self.old.clone(), route.destination.clone());
        let origin = shared.open(move || {
            let mut old = old.borrow_mut();
            if old.len() >= OLD_MAX {
                old.clear();
            }
            old.insert(destination);
        });
        if shared.is_proved {
            self.keep(route, Reached::Shared(shared));
        }
        origin
    }

    /// The addresses of a destination.
    ///
    /// # Errors
    /// As [`Destination::addresses`].
    pub async fn addresses(&self, destination: &Destination) -> Result<Vec<SocketAddr>, Failure> {
        let _place = self.lookups.acquire().await;
        let found = destination.addresses().await;
        if let Err(failure @ Failure::Lookup(_)) = &found
            && self.told.get().is_none_or(|told| told.elapsed() >= TELL_EVERY)
        {
            self.told.set(Some(Instant::now()));
            tracing::warn!(host = destination.host, reason = failure.detail(), "names of servers cannot be looked up");
        }
        found
    }

    /// Whether an origin takes HTTP/1.1 alone.
    pub fn is_old(&self, destination: &Destination) -> bool {
        self.old.borrow().contains(destination)
    }

    /// Keeps a connection, if it can carry another request.
    pub fn give(&self, route: &Route, mut origin: Origin) {
        if origin.is_proved && origin.client.is_reusable() && origin.wire.is_quiet() {
            origin.is_reused = true;
            self.keep(route, Reached::Alone(Box::new(origin)));
        }
    }

    fn keep(&self, route: &Route, reached: Reached) {
        let mut all = self.kept.borrow_mut();
        let of_one = all.iter().filter(|kept| kept.route == *route).count();
        let oldest = |kept: &Kept| of_one < IDLE_OF_ONE_MAX || kept.route == *route;
        if (of_one >= IDLE_OF_ONE_MAX || all.len() >= IDLE_MAX)
            && let Some(at) = all.iter().position(oldest)
        {
            all.remove(at);
        }
        if !self.is_swept.replace(true) {
            tokio::task::spawn_local(sweep(Rc::downgrade(&self.kept), self.is_swept.clone()));
        }
        all.push_back(Kept { route: route.clone(), reached, until: Instant::now() + IDLE_WAIT });
    }
}

/// Closes connections that were kept long enough, until none is left.
async fn sweep(all: Weak<RefCell<VecDeque<Kept>>>, is_swept: Rc<Cell<bool>>) {
    while let Some(until) = all.upgrade().and_then(|all| all.borrow().front().map(|kept| kept.until)) {
        sleep_until(until).await;
        if let Some(all) = all.upgrade() {
            all.borrow_mut().retain(|kept| kept.until > Instant::now());
        }
    }
    is_swept.set(false);
}

#[cfg(test)]
mod tests {
    use tokio::net::{TcpListener, TcpStream};
    use tokio::task::LocalSet;

    use super::*;

    #[tokio::test]
    async fn a_connection_that_is_taken_and_given_back_costs_one_task() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (ours, _theirs) = tokio::join!(TcpStream::connect(address), listener.accept());
        let host = "127.0.0.1".to_owned();
        let route = Route { destination: Destination { host, port: address.port(), is_tls: false }, ahead: None };
        let (origins, local) = (Origins::default(), LocalSet::new());
        let work = async {
            let mut origin = Origin::new(Stream::Tcp(ours.unwrap()), address);
            for _ in 0..20 {
                origins.keep(&route, Reached::Alone(Box::new(origin)));
                tokio::task::yield_now().await;
                let need = Need { is_repeatable: true, may_share: false };
                origin = origins.take(&route, need, |_| true).expect("it is kept");
            }
            // The origins and a task.
            assert_eq!(Rc::strong_count(&origins.is_swept), 2);
        };
        local.run_until(work).await;
    }
}
