//! How sure a listener is of its next hop, and the key `auth`: whether clients may log in to it.

use std::net::IpAddr;

use super::forward::{Forward, Scheme};
use super::listener::Listener;
use super::protocol::Protocol;
use super::smtp::Auth;
use super::tls::{ForwardTls, ListenerTls, Verify};

impl Listener {
    /// Whether clients may log in. A client that is intercepted may where its password is as safe as without us.
    pub fn auth(&self) -> Auth {
        let usual = if self.hop.transparent.is_some() && self.proves_its_hop() { Auth::Tls } else { Auth::Off };
        self.smtp().and_then(|own| own.auth).unwrap_or(usual)
    }

    /// Whether clients could log in there as it is asked for.
    ///
    /// # Errors
    /// When they could not; the message says why.
    pub(super) fn check_auth(&self) -> Result<(), String> {
        let Some(auth) = self.smtp().and_then(|own| own.auth).filter(|&auth| auth != Auth::Off) else { return Ok(()) };
        if self.protocol() != Protocol::Smtp {
            return Err("auth is for protocol = \"smtp\"".into());
        }
        if !matches!(
            self.hop.forward,
            Forward::Original
                | Forward::Store
                | Forward::SmtpSocket(_)
                | Forward::Server { scheme: Scheme::Smtp | Scheme::Smtps, .. }
        ) {
            return Err(format!("auth: clients cannot authenticate to {}", self.hop.forward));
        }
        if auth == Auth::Tls && !self.proves_its_hop() {
            return Err(
                "auth = \"tls\" needs forward_tls = \"require\" or smtps://, and a proof; or auth = \"any\"".into()
            );
        }
        Ok(())
    }

    /// Whether what the hop is told reaches it and nobody else.
    fn proves_its_hop(&self) -> bool {
        let is_here = match &self.hop.forward {
            Forward::Store | Forward::SmtpSocket(_) => true,
            forward => forward.host().and_then(|host| host.parse().ok()).is_some_and(|ip: IpAddr| ip.is_loopback()),
        };
        is_here || self.forwards_in_tls() && self.verify() != Verify::Nothing
    }
}

impl Listener {
    /// Whether TLS with the next hop begins with the connection.
    pub fn forwards_implicitly(&self) -> bool {
        match &self.hop.forward {
            Forward::Server { scheme, .. } => scheme.is_implicit_tls(),
            Forward::Original => self.place.tls == ListenerTls::Implicit,
            _ => false,
        }
    }

    /// Whether TLS with the next hop is certain.
    pub fn forwards_in_tls(&self) -> bool {
        self.forwards_implicitly() || self.hop.forward_tls == ForwardTls::Require
    }

    /// How the next hop proves who it is.
    pub fn verify(&self) -> Verify {
        let certain = if self.forwards_in_tls() { Verify::Name(None) } else { Verify::Nothing };
        self.hop.forward_verify.clone().unwrap_or(certain)
    }
}
