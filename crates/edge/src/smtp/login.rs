//! AUTH: a client logs in to the next hop, and what it says goes there unseen.
//!
//! ```text
//!  AUTH ─► a connection of the client's own ─► challenges and responses, one by one ─► 235: its messages go over it
//!                                                                                  └─► no: kept for the next attempt
//! ```
//!
//! Over that connection nothing goes but what this client sends, and what it sends goes over no other: when the
//! connection is lost, so is the session. What is said in the exchange is kept nowhere and not logged; who has logged in is.

use proto::smtp::{Reply, Secret};

use super::exchange::Exchange;
use crate::smtp::session::Session;
use crate::upstream::hop::Hop;
use crate::upstream::smtp_hop::{Leases, LogIn};

/// Challenges of one exchange; no mechanism needs more than a few.
const ROUNDS_MAX: u32 = 16;

impl Session {
    /// The client wants to log in by a mechanism that was offered.
    pub(super) async fn log_in(&mut self, mechanism: &'static str, initial: Option<Secret>) {
        let hop = match self.exchange.take() {
            Some(exchange) => Ok(exchange.hop),
            None => {
                let hostname = self.shared.runtime.borrow().settings.hostname.clone();
                Hop::open(&self.client.door.route, &hostname, &self.client.leases, &self.as_peer()).await
            }
        };
        let hop = match hop {
            Ok(hop) => hop,
            Err(_) => return self.server.reply(&NOT_NOW),
        };
        let user = initial.as_ref().and_then(|response| response.user(mechanism));
        let exchange = Exchange { hop, mechanism, user, rounds: 0 };
        self.go_on(exchange, LogIn::Auth(mechanism, initial.as_ref().map(Secret::as_bytes))).await;
    }

    /// The client has answered a challenge.
    pub(super) async fn respond(&mut self, response: &Secret) {
        let Some(mut exchange) = self.exchange.take() else { return self.server.reply(&NOT_NOW) };
        exchange.user = exchange.user.or_else(|| response.user(exchange.mechanism));
        self.go_on(exchange, LogIn::Response(response.as_bytes())).await;
    }

    async fn go_on(&mut self, mut exchange: Exchange, step: LogIn<'_>) {
        let has_given_up = matches!(step, LogIn::Response(b"*"));
        let client = self.client.address.ip();
        match exchange.hop.log_in(step).await {
            Ok(reply) if reply.code == 334 && !has_given_up && exchange.rounds < ROUNDS_MAX => {
                exchange.rounds += 1;
                self.server.challenge(reply.text.as_bytes());
                self.exchange = Some(exchange);
            }
            Ok(reply) if reply.code == 235 && !has_given_up => {
                let (mechanism, user) = (exchange.mechanism, exchange.user.as_deref().unwrap_or("?"));
                tracing::info!(%client, user, mechanism, "logged in");
                self.client.login = exchange.user.unwrap_or_default().into();
                self.client.leases = exchange.hop.alone();
                self.server.reply(&reply);
            }
            Ok(reply) if reply.code >= 400 => {
                // Who it was is not said: whoever is refused has perhaps told a password in place of a name.
                tracing::info!(%client, mechanism = exchange.mechanism, code = reply.code, "login failed");
                self.server.reply(&reply);
                self.exchange = Some(exchange);
            }
            Ok(_) => self.server.reply(&NOT_NOW),
            Err(_) => self.server.reply(&NOT_NOW),
        }
    }

    /// Resets the session after a login ends.
    pub(super) fn log_out(&mut self) {
        self.exchange = None;
        if self.client.leases.logged_in {
            self.client.leases = Leases::default();
        }
    }
}

const NOT_NOW: Reply = Reply::new(454, (4, 7, 0), "Temporary authentication failure");
