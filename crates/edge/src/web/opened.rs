//! The server at the end of a tunnel whose TLS is opened, as the requests within find it.

use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};

use proto::http::{Request, Target};

use super::refused::Refused;
use crate::net::mirror::Proof;
use crate::upstream::destination::Destination;
use crate::upstream::origins::{Need, Reached};

/// The server at the end of a tunnel that is opened.
pub struct Opened {
    /// The server, by the name of the handshake.
    pub destination: Destination,
    /// The address that the connection was meant for, where the name has another.
    pub meant: Option<SocketAddr>,
    /// The far end.
    pub end: End,
}

/// The far end of a tunnel that is opened.
pub enum End {
    /// A server, as it has proved itself to the client, and the first connection to it until there is a request.
    Server(Proof, RefCell<Option<Reached>>),
    /// None: all that is asked for is answered by this.
    Refused(Refused),
}

impl Opened {
    /// Whether a request may be made here: it has to be one to the server that the client has shaken hands with. A refusal that
    /// comes back stands unless a token lets the request past it.
    pub fn vet(&self, request: &Request) -> Result<Option<Refused>, Refused> {
        let refused = match &self.end {
            End::Refused(refused) if !refused.may_bypass => return Err(refused.clone()),
            End::Refused(refused) => Some(refused.clone()),
            End::Server(..) => None,
        };
        let is_https = !matches!(&request.target, Target::Absolute { scheme, .. } if scheme != "https");
        let asked = Destination::parse(request.authority().unwrap_or_default(), 443).map(Destination::in_tls);
        match is_https && asked.as_ref() == Some(&self.destination) {
            true => Ok(refused),
            false => Err(Refused::new(421, "The connection leads to another server.")),
        }
    }

    /// Whether the client has named the server.
    pub fn is_named(&self) -> bool {
        self.destination.host.parse::<IpAddr>().is_err()
    }

    /// The first connection, once, if it may have such a request.
    pub fn first(&self, destination: &Destination, need: Need) -> Option<Reached> {
        match &self.end {
            End::Server(_, first) if *destination == self.destination => {
                first.borrow_mut().take_if(|first| first.fits(need, true))
            }
            _ => None,
        }
    }

    /// The address that the connection was meant for, if it was meant for this.
    pub fn address(&self, destination: &Destination) -> Option<SocketAddr> {
        self.meant.filter(|_| *destination == self.destination)
    }

    /// Whether the client has seen the fault of such a server.
    pub fn is_known(&self, destination: &Destination, proof: &Proof) -> bool {
        let End::Server(known, _) = &self.end else { return false };
        *destination == self.destination && known.certificate == proof.certificate
    }
}
