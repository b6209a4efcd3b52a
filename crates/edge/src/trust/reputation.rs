//! What others, and we ourselves on other days, know of a client. Whoever asks lists over DNS stands outside.

use std::net::IpAddr;

use tokio::sync::oneshot::Receiver;

/// What is known of a client.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Opinion {
    /// The sum of the weights of those who list it.
    pub score: i32,
    /// Who lists it, as the log names them.
    pub lists: Vec<String>,
    /// Somebody could not be asked.
    pub is_partial: bool,
}

/// What was seen of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// Mail that nobody found fault with.
    Trust,
    /// It tries out addresses.
    Harvest,
    /// Spam.
    Spam,
    /// An infected mail.
    Infected,
}

/// Whoever knows clients. Neither call waits for anything.
pub trait Reputation: Send + Sync {
    /// Asks about a client; the opinion comes when it is complete. Whoever loses interest drops the ticket.
    fn ask(&self, client: IpAddr) -> Option<Receiver<Opinion>>;

    /// Takes note of what was seen of a client.
    fn note(&self, client: IpAddr, seen: Seen);
}
