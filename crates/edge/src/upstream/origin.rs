//! A connection to an origin, and what is said over it.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use proto::http::{Client, ClientEvent, Limits, Request};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::destination::Failure;
use crate::net::opener::wants_certificate;
use crate::net::stream::Stream;
use crate::net::wire::Wire;

/// A connection to an origin.
pub struct Origin {
    /// The stream.
    pub wire: Wire,
    /// Protocol half.
    pub client: Client,
    /// Where it leads.
    pub address: SocketAddr,
    /// It may end before it answers: it has had a request before, or is a stream among others.
    pub is_reused: bool,
    /// It speaks HTTP/2.
    pub is_http_2: bool,
    /// It may have requests of other clients: who is there has been proved.
    pub is_proved: bool,
    /// The task at the other end, where that is within the program.
    pub behind: Option<Behind>,
}

/// A task within the program that stands before an origin. It ends when this is dropped.
pub struct Behind {
    /// The failure for which it ends the connection.
    pub failure: Rc<RefCell<Option<Failure>>>,
    /// Its end is told by the drop.
    pub _alive: oneshot::Sender<()>,
}

impl Origin {
    /// A new connection.
    pub fn new(stream: Stream, address: SocketAddr) -> Origin {
        Origin {
            wire: Wire::new(stream),
            client: Client::new(Limits::default()),
            address,
            is_reused: false,
            is_http_2: false,
            is_proved: true,
            behind: None,
        }
    }

    /// Writes the head of a request. `TE` goes to servers of HTTP/2 alone: in HTTP/1.1 it is a field of one connection.
    pub fn request(&mut self, request: &Request) {
        if self.is_http_2 || request.fields.get("te").is_none() {
            self.client.request(request);
            return;
        }
        let mut request = request.clone();
        request.fields.remove("te");
        self.client.request(&request);
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

    /// Why it has ended.
    pub fn ended(&self) -> Failure {
        let told = self.behind.as_ref().and_then(|behind| behind.failure.take());
        told.unwrap_or(Failure::Ended)
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
                    Ok(Err(_)) => return Err(self.ended()),
                },
                event => event,
            };
            match event {
                ClientEvent::Idle => self.wire.take(taken),
                ClientEvent::Refused(proto::http::Refusal::Incomplete) | ClientEvent::Closed => {
                    return Err(self.ended());
                }
                ClientEvent::Refused(refusal) => return Err(Failure::Malformed(refusal)),
                event => return Ok((taken, event)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proto::http::Target;

    use super::*;

    #[tokio::test]
    async fn te_goes_to_servers_of_http_2_alone() {
        for is_http_2 in [false, true] {
            let (ours, _theirs) = Stream::within(1 << 10);
            let mut origin = Origin { is_http_2, ..Origin::new(ours, ([127, 0, 0, 1], 443).into()) };
            let mut request = Request::new("GET", Target::Origin(b"/".to_vec()));
            request.fields.push("TE", b"trailers");
            origin.request(&request);
            let has_it = origin.client.outbox().windows(12).any(|part| part == b"TE: trailers");
            assert_eq!(has_it, is_http_2);
        }
    }
}
