//! A next hop, and how it is spoken to: what of a listener's settings the way to it needs.

use super::forward::{Forward, ProxyVersion};
use super::listener::Listener;
use super::protocol::Protocol;
use super::tls::{ForwardTls, Verify};

/// A next hop, and how it is spoken to.
#[derive(Debug, Clone)]
pub struct Target {
    /// Where it is.
    pub forward: Forward,
    /// Whether TLS begins with the connection.
    pub is_implicit_tls: bool,
    /// Policy for STARTTLS otherwise.
    pub starttls: ForwardTls,
    /// How it proves who it is.
    pub verify: Verify,
    /// PROXY header that connections begin with.
    pub proxy: Option<ProxyVersion>,
    /// Whether it is told of each client by XCLIENT, where it offers that.
    pub xclient: bool,
    /// Whether clients speak LMTP, so that the store is asked for an answer for each recipient.
    pub is_lmtp: bool,
}

impl Target {
    /// A next hop that nothing more is said of.
    pub fn new(forward: Forward) -> Target {
        let is_implicit_tls = matches!(&forward, Forward::Server { scheme, .. } if scheme.is_implicit_tls());
        let verify = if is_implicit_tls { Verify::Name(None) } else { Verify::Nothing };
        let starttls = ForwardTls::default();
        Target { forward, is_implicit_tls, starttls, verify, proxy: None, xclient: false, is_lmtp: false }
    }
}

impl Listener {
    /// The next hop that it is told.
    pub fn target(&self) -> Target {
        Target {
            forward: self.hop.forward.clone(),
            is_implicit_tls: self.forwards_implicitly(),
            starttls: self.hop.forward_tls,
            verify: self.verify(),
            proxy: self.hop.forward_proxy,
            xclient: self.smtp().is_some_and(|own| own.forward_xclient),
            is_lmtp: self.protocol() == Protocol::Lmtp,
        }
    }
}
