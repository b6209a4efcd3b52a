//! Lines between the process of the store and the edge: JSON on a [`Channel`](crate::process::supervise::channel), some with sockets.

use flow::Evaluation;
use serde::{Deserialize, Serialize};

/// A line to the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// What the gateway has to lend since the last reload.
    Shown {
        /// Whether there is a certificate for clients.
        tls: bool,
        /// Whether moved mail is learned.
        learns: bool,
    },
    /// A door of the gateway hands over mail; beside it, its socket. The caller is named as on the control socket.
    Deliver(String),
    /// An evaluation of DMARC.
    Count(Box<Evaluation>),
    /// The numbers are asked for; the number of the question.
    Numbers(u64),
    /// The store is to be closed.
    End,
    /// No door hands over anything any more.
    Over,
}

/// A line to the edge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Request {
    /// The store serves, or waits for another process to close it; the password of the account made for a newcomer.
    Ready(Option<String>),
    /// The store cannot be served.
    Failed(String),
    /// The configuration is another one than that of the edge.
    Stale,
    /// A handshake; beside it, the client's socket and that of the session.
    Secure,
    /// An inspection; beside it, its socket.
    Inspect,
    /// A mail to be learned; beside it, its socket.
    Learn {
        /// Whether it is spam.
        spam: bool,
    },
    /// A lesson was lost.
    Lost,
    /// A session begins, or ends.
    Session(bool),
    /// The numbers, and the question that they answer.
    Numbers(u64, String),
}

/// A message as a line.
pub fn line<T: Serialize>(message: &T) -> String {
    serde_json::to_string(message).expect("plain data has a form in JSON")
}

/// The message of a line; none if it makes no sense.
pub fn read<'l, T: Deserialize<'l>>(line: &'l str) -> Option<T> {
    serde_json::from_str(line).ok()
}

#[cfg(test)]
mod tests {
    use flow::{Observation, Published};

    use super::*;

    #[test]
    fn orders_and_requests_have_a_line_each() {
        let evaluation = Evaluation {
            policy_domain: "there.test".into(),
            published: Published::default(),
            observation: Observation {
                client: std::net::Ipv4Addr::LOCALHOST.into(),
                disposition: "none".into(),
                reason: "".into(),
                dkim_aligned: true,
                spf_aligned: false,
                header_from: "there.test".into(),
                envelope_from: "".into(),
                spf_domain: "there.test".into(),
                spf: "pass".into(),
                signatures: Vec::new(),
            },
        };
        for order in [
            Order::Shown { tls: true, learns: false },
            Order::Deliver("lmtp".into()),
            Order::Count(Box::new(evaluation)),
            Order::Numbers(7),
            Order::End,
            Order::Over,
        ] {
            assert!(!line(&order).contains('\n'));
            assert_eq!(read(&line(&order)), Some(order));
        }
        for request in [
            Request::Ready(Some("a password".into())),
            Request::Failed("a\nreason".into()),
            Request::Stale,
            Request::Secure,
            Request::Inspect,
            Request::Learn { spam: true },
            Request::Lost,
            Request::Session(false),
            Request::Numbers(7, "# HELP x y\nx 1\n".into()),
        ] {
            assert!(!line(&request).contains('\n'));
            assert_eq!(read(&line(&request)), Some(request));
        }
        assert_eq!(read::<Order>("begin"), None);
    }
}
