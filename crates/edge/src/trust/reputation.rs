//! Reputation of a client, from block lists and our own observations. The host asks lists over DNS.

use std::net::IpAddr;

use tokio::sync::oneshot::Receiver;

/// Reputation of a client.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Opinion {
    /// The sum of the weights of those who list it.
    pub score: i32,
    /// Lists that have it, as the log names them.
    pub lists: Vec<String>,
    /// Whether a list could not be asked.
    pub is_partial: bool,
}

/// Observation about a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// Mail that nobody found fault with.
    Trust,
    /// The client tries out addresses.
    Harvest,
    /// Spam.
    Spam,
    /// An infected mail.
    Infected,
}

/// A source of reputation. Neither call waits for anything.
pub trait Reputation: Send + Sync {
    /// Asks about a client; the opinion comes when it is complete. Whoever loses interest drops the ticket.
    fn ask(&self, client: IpAddr) -> Option<Receiver<Opinion>>;

    /// Takes note of what was seen of a client.
    fn note(&self, client: IpAddr, seen: Seen);
}
