//! Services of ICAP (RFC 3507) that are asked: their properties, and connections that are kept.
//!
//! Bounds of an event loop: for each service as many connections at a time as it allows, at most 100; for each host 8 that wait for their next
//! question to any service there, each for a minute. Properties are asked for again when their time is over (at least a minute, at most a day), or when `ISTag` has
//! changed. A service that cannot be reached is not tried again for five seconds.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Duration;

use proto::http::Limits;
use proto::icap::{Client, ClientEvent, Fault, Offer};
use tokio::io::AsyncWrite;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

use super::destination::{Destination, connect};
use crate::net::stream::Stream;

const CONNECTIONS_MAX: usize = 100;
const IDLE_MAX: usize = 8;
const IDLE_WAIT: Duration = Duration::from_secs(60);

/// Services that are remembered: those of the configuration, and of configurations before.
const SERVICES_MAX: usize = 64;

/// How long a connection may take, and a place for one.
const CONNECT_WAIT: Duration = Duration::from_secs(10);
const PLACE_WAIT: Duration = Duration::from_secs(60);

/// How long a service may take to say what it offers.
const OFFER_WAIT: Duration = Duration::from_secs(120);

/// Bytes for which a service has its time again.
const EARNING_BYTES: usize = 64 << 10;

/// How long a service that cannot be reached is let alone.
const DOWN_WAIT: Duration = Duration::from_secs(5);

/// For how many seconds properties hold: bounds, and where the service does not say it.
const SECONDS_MIN: u32 = 60;
const SECONDS_MAX: u32 = 86_400;
const SECONDS: u32 = 3_600;

/// The services that an event loop asks.
#[derive(Default)]
pub struct Services {
    all: RefCell<HashMap<String, Rc<Service>>>,
    /// The connections that wait, by host and port.
    idle: RefCell<HashMap<String, Idle>>,
}

/// Connections to one host that wait for their next question.
type Idle = Rc<RefCell<Vec<(Link, Instant)>>>;

/// A service.
pub struct Service {
    uri: String,
    authority: String,
    offer: RefCell<Option<(Rc<Offer>, Instant)>>,
    down_until: Cell<Option<Instant>>,
    idle: Idle,
    places: Arc<Semaphore>,
    places_max: Cell<usize>,
}

/// A connection to a service.
pub struct Link {
    /// State of the protocol.
    pub client: Client,
    stream: Stream,
    input: Vec<u8>,
    at: usize,
    /// It has had a question before, and may end before it answers another.
    pub is_reused: bool,
    place: Option<OwnedSemaphorePermit>,
}

impl Services {
    /// The service of this URI, which is at `authority`.
    pub fn get(&self, uri: &str, authority: &str) -> Rc<Service> {
        let (mut all, mut hosts) = (self.all.borrow_mut(), self.idle.borrow_mut());
        if all.len() >= SERVICES_MAX && !all.contains_key(uri) {
            all.clear();
            hosts.clear();
        }
        let mut idle = || hosts.entry(authority.into()).or_default().clone();
        all.entry(uri.into()).or_insert_with(|| Rc::new(Service::new(uri, authority, idle()))).clone()
    }
}

impl Service {
    fn new(uri: &str, authority: &str, idle: Idle) -> Service {
        Service {
            uri: uri.into(),
            authority: authority.into(),
            offer: RefCell::default(),
            down_until: Cell::default(),
            idle,
            places: Arc::new(Semaphore::new(CONNECTIONS_MAX)),
            places_max: Cell::new(CONNECTIONS_MAX),
        }
    }

    /// Its URI.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// A connection for a question, and the properties of the service.
    ///
    /// # Errors
    /// When the service cannot be reached, or does not say what it offers.
    pub async fn lease(&self) -> io::Result<(Link, Rc<Offer>)> {
        if self.down_until.get().is_some_and(|until| Instant::now() < until) {
            return Err(io::Error::other("it could not be reached a moment ago"));
        }
        let place = timeout(PLACE_WAIT, self.places.clone().acquire_owned()).await?.map_err(io::Error::other)?;
        let mut link = match self.kept() {
            Some(link) => link,
            None => self.dial().await?,
        };
        link.place = Some(place);
        let known = self.offer.borrow().clone().filter(|(_, until)| Instant::now() < *until);
        if let Some((offer, _)) = known {
            return Ok((link, offer));
        }
        match self.ask(&mut link).await {
            Ok(offer) => Ok((link, offer)),
            Err(_) if link.is_reused => {
                let place = link.place.take();
                link = Link { place, ..self.dial().await? };
                let offer = self.ask(&mut link).await?;
                Ok((link, offer))
            }
            Err(error) => Err(error),
        }
    }

    /// A new connection in the place of one that has ended.
    ///
    /// # Errors
    /// When the service cannot be reached.
    pub async fn renew(&self, mut link: Link) -> io::Result<Link> {
        let place = link.place.take();
        drop(link);
        Ok(Link { place, ..self.dial().await? })
    }

    /// Keeps a connection, if it can carry another question.
    pub fn give(&self, mut link: Link) {
        let is_known = |offer: &(Rc<Offer>, Instant)| link.client.tag().is_empty() || link.client.tag() == offer.0.tag;
        if !self.offer.borrow().as_ref().is_some_and(is_known) {
            self.offer.replace(None);
        }
        link.place = None;
        let mut idle = self.idle.borrow_mut();
        idle.retain(|(_, until)| Instant::now() < *until);
        if link.is_quiet() && idle.len() < IDLE_MAX {
            link.is_reused = true;
            idle.push((link, Instant::now() + IDLE_WAIT));
        }
    }

    fn kept(&self) -> Option<Link> {
        let mut idle = self.idle.borrow_mut();
        idle.retain(|(link, until)| Instant::now() < *until && link.is_quiet());
        let (mut link, _) = idle.pop()?;
        link.client.turn_to(&self.uri);
        Some(link)
    }

    async fn dial(&self) -> io::Result<Link> {
        let dialled = timeout(CONNECT_WAIT, self.connect()).await.map_err(io::Error::from).flatten();
        self.down_until.set(dialled.is_err().then(|| Instant::now() + DOWN_WAIT));
        let client = Client::new(Limits::default(), &self.uri, &self.authority);
        Ok(Link { client, stream: dialled?, input: Vec::new(), at: 0, is_reused: false, place: None })
    }

    async fn connect(&self) -> io::Result<Stream> {
        let to = Destination::parse(self.authority.as_bytes(), 0).ok_or(io::ErrorKind::InvalidInput)?;
        let failed = |failure: super::destination::Failure| io::Error::other(failure.detail());
        let (stream, _) = connect(&to.addresses().await.map_err(failed)?).await.map_err(failed)?;
        Ok(stream)
    }

    /// Asks for the properties.
    async fn ask(&self, link: &mut Link) -> io::Result<Rc<Offer>> {
        link.client.options();
        match timeout(OFFER_WAIT, link.next()).await?? {
            (taken, ClientEvent::Offer(offer)) if link.client.is_reusable() => {
                link.take(taken);
                let seconds = offer.seconds.unwrap_or(SECONDS).clamp(SECONDS_MIN, SECONDS_MAX);
                self.bound(offer.connections_max);
                let offer = Rc::<Offer>::from(offer);
                let until = Instant::now() + Duration::from_secs(seconds.into());
                self.offer.replace(Some((offer.clone(), until)));
                Ok(offer)
            }
            (_, ClientEvent::Offer(_)) => Err(io::Error::other("it closes the connection behind OPTIONS")),
            (_, ClientEvent::Failed(fault)) => Err(failed(fault)),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Lets as many connections be as the service takes.
    fn bound(&self, connections_max: Option<u32>) {
        let offered = connections_max.map_or(CONNECTIONS_MAX, |max| (max as usize).clamp(1, CONNECTIONS_MAX));
        let before = self.places_max.replace(offered);
        match offered.checked_sub(before) {
            Some(more) => self.places.add_permits(more),
            None => self.places_max.set(before - self.places.forget_permits(before - offered)),
        }
    }
}

/// The time that a service still has. What it says or takes drop by drop earns it no more.
pub struct Patience {
    whole: Duration,
    left: Duration,
    bytes: usize,
}

impl Patience {
    /// So much, and again for each 64 KiB.
    pub fn new(whole: Duration) -> Patience {
        Patience { whole, left: whole, bytes: 0 }
    }

    /// The time that is left.
    pub fn left(&self) -> Duration {
        self.left
    }

    /// The service has taken or said so many bytes, after this wait.
    ///
    /// # Errors
    /// When no time is left.
    pub fn spend(&mut self, wait: Duration, bytes: usize) -> io::Result<()> {
        self.left = self.left.checked_sub(wait).ok_or(io::ErrorKind::TimedOut)?;
        self.bytes += bytes;
        if self.bytes >= EARNING_BYTES {
            *self = Patience::new(self.whole);
        }
        Ok(())
    }
}

/// A fault as an error.
pub fn failed(fault: Fault) -> io::Error {
    match fault {
        Fault::Status(status) => io::Error::other(format!("it answers {status}")),
        fault => io::Error::other(fault.reason()),
    }
}

impl Link {
    /// Bytes that have arrived and are not consumed.
    pub fn input(&self) -> &[u8] {
        &self.input[self.at..]
    }

    /// The first `count` bytes of it are done with.
    pub fn take(&mut self, count: usize) {
        self.at += count;
    }

    /// Takes a step over what has come.
    pub fn step(&mut self) -> (usize, ClientEvent) {
        self.client.step(&self.input[self.at..])
    }

    /// Sends, and waits until something went or came: so many bytes, none at the end of the stream. Nothing is lost when the wait is
    /// given up.
    ///
    /// # Errors
    /// When the connection has broken.
    pub async fn turn(&mut self) -> io::Result<usize> {
        self.input.drain(..self.at);
        self.at = 0;
        poll_fn(|context| {
            if !self.client.outbox().is_empty()
                && let Poll::Ready(count) = Pin::new(&mut self.stream).poll_write(context, self.client.outbox())
            {
                let count = count?;
                self.client.sent(count);
                return Poll::Ready(Ok(count));
            }
            Poll::Ready(Ok(ready!(self.stream.poll_append(context, &mut self.input))?))
        })
        .await
    }

    /// The next event that matters, and how many bytes of input are its own: the caller takes them.
    async fn next(&mut self) -> io::Result<(usize, ClientEvent)> {
        loop {
            let (taken, event) = self.step();
            match event {
                ClientEvent::Idle if taken > 0 => self.take(taken),
                ClientEvent::Idle if self.turn().await? == 0 => return Ok((0, self.client.finish())),
                ClientEvent::Idle => {}
                event => return Ok((taken, event)),
            }
        }
    }

    fn is_quiet(&self) -> bool {
        self.client.is_reusable()
            && self.client.outbox().is_empty()
            && self.input().is_empty()
            && self.stream.is_quiet()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_of_one_host_share_connections_that_wait() {
        let services = Services::default();
        let [requests, responses, other] =
            [("icap://a:1/req", "a:1"), ("icap://a:1/resp", "a:1"), ("icap://b:1/req", "b:1")]
                .map(|(uri, authority)| services.get(uri, authority));
        assert!(Rc::ptr_eq(&requests.idle, &responses.idle) && !Rc::ptr_eq(&requests.idle, &other.idle));
        assert!(Rc::ptr_eq(&requests, &services.get("icap://a:1/req", "a:1")));
    }

    #[test]
    fn drops_spend_the_time_of_a_service_and_64_kib_earn_it_again() {
        let mut patience = Patience::new(Duration::from_secs(10));
        let second = Duration::from_secs(1);
        for _ in 0..9 {
            patience.spend(second, 1).expect("time");
        }
        assert_eq!(patience.left(), second);
        patience.spend(second, EARNING_BYTES - 9).expect("time");
        assert_eq!(patience.left(), 10 * second);
        assert!(patience.spend(11 * second, EARNING_BYTES).is_err());
    }
}
