//! The server at the end of a tunnel whose TLS is opened, or that has HTTP in the clear, as the requests within find it.

use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};

use proto::http::{Request, Target};

use super::refused::Refused;
use crate::net::mirror::Proof;
use crate::porch::filter::Identity;
use crate::upstream::destination::Destination;
use crate::upstream::origins::{Need, Reached};

/// The server at the end of a tunnel that is opened.
pub struct Opened {
    /// The server, by the name of the handshake.
    pub destination: Destination,
    /// The address that the connection was meant for, where the name has another or there is none.
    pub meant: Option<SocketAddr>,
    /// That address was found by the name.
    pub is_looked_up: bool,
    /// The far end.
    pub end: End,
}

/// The far end of a tunnel that is opened.
pub enum End {
    /// A server, as it has proved itself to the client, and the first connection to it until there is a request.
    Server(Proof, RefCell<Option<Reached>>),
    /// A server in the clear, and the first connection to it until there is a request.
    Plain(RefCell<Option<Reached>>),
    /// None: all that is asked for is answered by this.
    Refused(Refused),
}

impl Opened {
    /// Whether a request may be made here: it has to be one to the server that the tunnel leads to. A refusal that
    /// comes back stands unless a token lets the request past it.
    pub fn vet(&self, request: &Request) -> Result<Option<Refused>, Refused> {
        let refused = match &self.end {
            End::Refused(refused) if !refused.may_bypass => return Err(refused.clone()),
            End::Refused(refused) => Some(refused.clone()),
            End::Server(..) | End::Plain(_) => None,
        };
        let own = if self.destination.is_tls { "https" } else { "http" };
        let is_own = !matches!(&request.target, Target::Absolute { scheme, .. } if scheme != own);
        match is_own && self.asked(request).is_some_and(|asked| self.leads_to(&asked)) {
            true => Ok(refused),
            false => Err(Refused::new(421, "The connection leads to another server.")),
        }
    }

    /// Whether the tunnel leads to a server: the one of the handshake, or, if that has no name, one that the certificate names.
    fn leads_to(&self, asked: &Destination) -> bool {
        let End::Server(proof, _) = &self.end else { return *asked == self.destination };
        let is_beside = asked.port == self.destination.port && asked.is_tls && !self.is_named();
        *asked == self.destination || is_beside && proof.names(&asked.host)
    }

    /// How far it is known that the server is the one that a request names.
    pub fn identity(&self, asked: &Destination) -> Identity {
        let is_address = asked.host.parse::<IpAddr>().is_ok();
        let is_looked_up = *asked == self.destination && (self.is_looked_up || is_address);
        let is_proved = || matches!(&self.end, End::Server(proof, _) if proof.is_of(&asked.host));
        if is_looked_up || is_proved() { Identity::Proved } else { Identity::Claimed }
    }

    /// The server that a request names, in the way of this one where it names no scheme.
    pub fn asked(&self, request: &Request) -> Option<Destination> {
        let is_tls = match &request.target {
            Target::Absolute { scheme, .. } => scheme != "http",
            _ => self.destination.is_tls,
        };
        let authority = request.authority().unwrap_or_default();
        let asked = Destination::parse(authority, if is_tls { 443 } else { 80 })?;
        Some(Destination { is_tls, ..asked })
    }

    /// Whether the client has named the server.
    pub fn is_named(&self) -> bool {
        self.destination.host.parse::<IpAddr>().is_err()
    }

    /// The first connection, once, if it may have such a request.
    pub fn first(&self, destination: &Destination, need: Need) -> Option<Reached> {
        match &self.end {
            End::Server(_, first) | End::Plain(first) if self.leads_to(destination) => {
                first.borrow_mut().take_if(|first| first.fits(need, true))
            }
            _ => None,
        }
    }

    /// The address that the connection was meant for, if it was meant for this.
    pub fn address(&self, destination: &Destination) -> Option<SocketAddr> {
        self.meant.filter(|_| self.leads_to(destination))
    }

    /// Whether the client has seen the fault of such a server.
    pub fn is_known(&self, destination: &Destination, proof: &Proof) -> bool {
        let End::Server(known, _) = &self.end else { return false };
        self.leads_to(destination) && known.certificate == proof.certificate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tunnel_in_the_clear_has_requests_for_its_own_host() {
        let destination = Destination { host: "o.test".into(), port: 80, is_tls: false };
        let opened = Opened { destination, meant: None, is_looked_up: true, end: End::Plain(RefCell::new(None)) };
        let request = |scheme: Option<&str>, authority: &str| {
            let path = b"/x".to_vec();
            let target = match scheme {
                Some(scheme) => Target::Absolute { scheme: scheme.into(), authority: authority.into(), path },
                None => Target::Origin(path),
            };
            let mut request = Request::new("GET", target);
            request.fields.push("Host", authority.as_bytes());
            request
        };
        for (scheme, authority, may) in [
            (None, "o.test", true),
            (None, "O.Test:80", true),
            (Some("http"), "o.test", true),
            (Some("https"), "o.test:80", false),
            (None, "o.test:81", false),
            (None, "other.test", false),
        ] {
            assert_eq!(opened.vet(&request(scheme, authority)).is_ok(), may, "{scheme:?} {authority}");
        }
    }
}
