//! The way to a next hop: where it is, how it is spoken to, and what is known of it.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use proto::proxy;
use proto::smtp::{Extensions, Protocol, Reply};
use tokio::io::AsyncWriteExt;
use tokio_rustls::rustls::{self, CertificateError};

use super::within::{self, Caller};
use crate::net::stream::Stream;
use crate::net::tls::Connector;
use crate::settings::{Forward, ProxyVersion, Scheme, Target, Tls};

/// The way to a next hop: where it is, how it is spoken to, and what is known of it.
pub struct Route {
    /// Where it is.
    pub forward: Forward,
    /// How it is spoken to in TLS.
    pub connector: Connector,
    /// Facts about the hop.
    pub facts: Arc<HopFacts>,
    /// Connections that may be exchanged have the same: where they go and what was asked of them.
    pub key: String,
    /// Whether it is one client's alone, so that no connection over it serves another.
    pub is_private: bool,
    /// Whether it is told of each client by XCLIENT, where it offers that.
    pub xclient: bool,
    /// The address that the server is to see in place of ours.
    source: Option<IpAddr>,
    /// PROXY header that connections begin with.
    proxy: Option<ProxyVersion>,
    /// The client, as the store is told.
    caller: Caller,
    /// The client, and the address that it has connected to, where connections begin with that.
    client: Option<(SocketAddr, SocketAddr)>,
}

impl Route {
    /// The way to a next hop.
    ///
    /// # Errors
    /// As [`Connector::new`].
    pub fn new(target: &Target, tls: &Tls) -> Result<Route, String> {
        let Target { forward, starttls, verify, .. } = target;
        Ok(Route {
            forward: forward.clone(),
            connector: Connector::new(target, tls)?,
            facts: Arc::default(),
            key: format!("{forward} {starttls:?} {verify:?} {}", target.is_lmtp),
            is_private: false,
            xclient: target.xclient,
            source: None,
            proxy: target.proxy,
            caller: if target.is_lmtp { Caller::Lmtp } else { Caller::Smtp },
            client: None,
        })
    }

    /// The way of one client to the server that it wanted.
    pub fn towards(&self, forward: &Forward, source: Option<IpAddr>) -> Route {
        Route {
            connector: self.connector.for_host(forward.host().unwrap_or_default()),
            forward: forward.clone(),
            facts: Arc::default(),
            key: format!("{forward} {}", self.key),
            is_private: true,
            source,
            caller: self.caller.clone(),
            ..*self
        }
    }

    /// The route of one client that has connected to `to`, for a server that gets a PROXY header.
    pub fn for_client(&self, client: SocketAddr, to: SocketAddr) -> Route {
        let (forward, facts, key) = (self.forward.clone(), self.facts.clone(), self.key.clone());
        let (connector, client) = (self.connector.clone(), Some((client, to)));
        Route { connector, forward, facts, key, client, is_private: true, caller: self.caller.clone(), ..*self }
    }

    /// The same way for a client whose mail the store relays to any recipient.
    pub fn for_insider(&self) -> Route {
        self.called_by(Caller::Insider, "inside")
    }

    /// The same way for mail of an account of the store that was kept.
    pub fn for_account(&self, name: &str) -> Route {
        self.called_by(Caller::Account(name.into()), name)
    }

    fn called_by(&self, caller: Caller, mark: &str) -> Route {
        let (forward, facts, connector) = (self.forward.clone(), self.facts.clone(), self.connector.clone());
        Route { connector, forward, facts, key: format!("{} {mark}", self.key), caller, ..*self }
    }

    /// The same way, where the server is asked for by this name.
    pub fn for_name(&self, name: &str) -> Route {
        let (forward, facts, key) = (self.forward.clone(), self.facts.clone(), self.key.clone());
        Route { connector: self.connector.for_name(name), forward, facts, key, caller: self.caller.clone(), ..*self }
    }

    /// Connects to the server at its end.
    ///
    /// # Errors
    /// When it cannot be reached, or not from where it is to be.
    pub async fn dial(&self, address: &str) -> io::Result<Stream> {
        if self.forward == Forward::Store {
            return within::connect(self.caller.clone());
        }
        let mut stream = match (self.source, address.parse::<SocketAddr>()) {
            (Some(source), Ok(server)) => Stream::connect_from(source, server).await?,
            _ => Stream::connect(address).await?,
        };
        if let Some(version) = self.proxy {
            let version = match version {
                ProxyVersion::V1 => proxy::Version::V1,
                ProxyVersion::V2 => proxy::Version::V2,
            };
            stream.write_all(&proxy::write(version, self.client)).await?;
        }
        Ok(stream)
    }

    /// The same, with what is known already where it leads to the same hop.
    pub fn or_known(self, known: &Route) -> Route {
        let facts = if self.forward == known.forward { known.facts.clone() } else { self.facts };
        Route { facts, ..self }
    }

    /// The server at its end that takes mail, if there is one.
    pub fn server(&self) -> Option<(String, Protocol)> {
        match &self.forward {
            Forward::Server { scheme: Scheme::Smtp | Scheme::Smtps, address } => {
                Some((address.clone(), Protocol::Smtp))
            }
            Forward::Server { scheme: Scheme::Lmtp, address } => Some((address.clone(), Protocol::Lmtp)),
            Forward::LmtpSocket(path) => Some((path.display().to_string(), Protocol::Lmtp)),
            Forward::SmtpSocket(path) => Some((path.display().to_string(), Protocol::Smtp)),
            Forward::Store => Some((self.forward.to_string(), self.to_store())),
            _ => None,
        }
    }

    /// Protocol to the store: it replies as the client is to be answered.
    const fn to_store(&self) -> Protocol {
        match self.caller {
            Caller::Lmtp => Protocol::Lmtp,
            Caller::Smtp | Caller::Insider | Caller::Account(_) => Protocol::Smtp,
        }
    }

    /// The server at its end that has mailboxes, if there is one.
    pub fn mailboxes(&self) -> Option<&str> {
        match &self.forward {
            Forward::Server { scheme: Scheme::Pop3 | Scheme::Pop3s | Scheme::Imap | Scheme::Imaps, address } => {
                Some(address)
            }
            _ => None,
        }
    }
}

/// Facts about a hop that are known without asking it again.
#[derive(Debug, Default)]
pub struct HopFacts {
    extensions: Mutex<Option<Extensions>>,
    /// Whether it has been asked for them; held while it is.
    asked: tokio::sync::Mutex<bool>,
    refusal: Mutex<Option<Reply>>,
    insecurity: Mutex<Option<Insecurity>>,
}

/// Why there is no secure connection to a hop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Insecurity {
    /// Its kind.
    pub fault: Fault,
    /// In words.
    pub why: String,
}

/// Kinds of reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// STARTTLS is not offered, or refused.
    NoStartTls,
    /// The certificate has expired.
    Expired,
    /// It is for another name.
    OtherName,
    /// Nobody who is trusted has issued it.
    Untrusted,
    /// Something else.
    Other,
}

impl Insecurity {
    /// Reads the error of a handshake.
    pub fn of_handshake(error: &io::Error) -> Insecurity {
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        let fault = match inner {
            Some(rustls::Error::InvalidCertificate(error)) => match error {
                CertificateError::Expired | CertificateError::ExpiredContext { .. } => Fault::Expired,
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => Fault::OtherName,
                CertificateError::UnknownIssuer | CertificateError::ApplicationVerificationFailure => Fault::Untrusted,
                _ => Fault::Other,
            },
            _ => Fault::Other,
        };
        Insecurity { fault, why: error.to_string() }
    }
}

impl HopFacts {
    /// Extensions that it offered last.
    pub fn extensions(&self) -> Option<Extensions> {
        *self.extensions.lock().expect("no holder panics")
    }

    /// It has been spoken to.
    pub fn learn(&self, extensions: Extensions) {
        *self.extensions.lock().expect("no holder panics") = Some(extensions);
    }

    /// Asks it for its extensions, unless they are known, or it was asked before; waits for whoever asks now.
    pub async fn ask(&self, asking: impl Future) {
        if self.extensions().is_some() {
            return;
        }
        let mut was_asked = self.asked.lock().await;
        if !*was_asked && self.extensions().is_none() {
            // Whoever is not waited for any longer has asked, too.
            *was_asked = true;
            asking.await;
        }
    }

    /// A new connection may be greeted otherwise.
    pub fn forget_refusal(&self) {
        *self.refusal.lock().expect("no holder panics") = None;
    }

    /// It has answered the greeting, or ours, with a refusal.
    pub fn refuse(&self, greeting: &Reply) {
        *self.refusal.lock().expect("no holder panics") = Some(greeting.clone());
    }

    /// Records that no secure connection could be made.
    pub fn distrust(&self, insecurity: Insecurity) {
        *self.insecurity.lock().expect("no holder panics") = Some(insecurity);
    }

    /// Why there was none, if there was none.
    pub fn insecurity(&self) -> Option<Insecurity> {
        self.insecurity.lock().expect("no holder panics").clone()
    }

    /// The refusal of the last connection, if it was refused.
    pub fn refusal(&self) -> Option<Reply> {
        self.refusal.lock().expect("no holder panics").clone()
    }
}
