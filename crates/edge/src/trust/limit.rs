//! Replies to a client whose bounds are used up.

use proto::smtp::Reply;

/// A bound that was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Sessions at a time.
    Connections,
    /// New sessions in the window.
    Arrivals,
    /// Messages in the window.
    Messages,
    /// Recipients in the window.
    Recipients,
    /// Unknown recipients in the window.
    Unknown,
    /// It tries out addresses.
    Harvest,
}

impl Limit {
    /// Its name in the log.
    pub const fn name(self) -> &'static str {
        match self {
            Limit::Connections => "connections",
            Limit::Arrivals => "arrivals",
            Limit::Messages => "messages",
            Limit::Recipients => "recipients",
            Limit::Unknown => "unknown",
            Limit::Harvest => "harvest",
        }
    }

    /// Reply to the client: to come again.
    pub const fn reply(self) -> Reply {
        match self {
            Limit::Connections => Reply::new(421, (4, 7, 0), "Too many sessions from your network"),
            Limit::Arrivals => Reply::new(421, (4, 7, 0), "Too many sessions from you, try again later"),
            Limit::Messages => Reply::new(450, (4, 7, 1), "Too many messages from you, try again later"),
            Limit::Recipients => Reply::new(452, (4, 5, 3), "Too many recipients from you, try again later"),
            Limit::Unknown | Limit::Harvest => {
                Reply::new(450, (4, 7, 1), "Too many unknown recipients from you, try again later")
            }
        }
    }
}
