//! Connections that were meant for somebody else: `transparent`, `intercepts` and `keep_source` of a listener.

use std::net::SocketAddr;

use super::forward::{Forward, Scheme};
use super::listener::Listener;
use super::protocol::Protocol;
use super::tls::ListenerTls;

impl Listener {
    /// The next hop of a connection that was meant for `server`; none if there is no way to speak to it.
    pub fn towards_server(&self, server: SocketAddr) -> Option<Forward> {
        let scheme = match (self.protocol(), self.place.tls) {
            (Protocol::Smtp, ListenerTls::Implicit) => Scheme::Smtps,
            (Protocol::Smtp, _) => Scheme::Smtp,
            (Protocol::Pop3, ListenerTls::Implicit) => Scheme::Pop3s,
            (Protocol::Pop3, _) => Scheme::Pop3,
            (Protocol::Imap, ListenerTls::Implicit) => Scheme::Imaps,
            (Protocol::Imap, _) => Scheme::Imap,
            // Each request is sent there by itself.
            (Protocol::Http, _) => return Some(Forward::Original),
            (Protocol::Lmtp | Protocol::Milter | Protocol::Spamd | Protocol::Rspamd | Protocol::Icap, _) => {
                return None;
            }
        };
        Some(Forward::Server { scheme, address: server.to_string() })
    }

    /// The ports whose connections are sent to it.
    pub fn intercepted_ports(&self) -> Vec<u16> {
        if !self.hop.intercepts.is_empty() || self.hop.transparent.is_none() {
            return self.hop.intercepts.clone();
        }
        match (self.protocol(), self.place.tls) {
            (Protocol::Smtp, ListenerTls::Implicit) => vec![465],
            (Protocol::Smtp, _) => vec![25, 587],
            (Protocol::Pop3, ListenerTls::Implicit) => vec![995],
            (Protocol::Pop3, _) => vec![110],
            (Protocol::Imap, ListenerTls::Implicit) => vec![993],
            (Protocol::Imap, _) => vec![143],
            (Protocol::Http, _) => vec![80, 443],
            (Protocol::Lmtp | Protocol::Milter | Protocol::Spamd | Protocol::Rspamd | Protocol::Icap, _) => Vec::new(),
        }
    }
}
