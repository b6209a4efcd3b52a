//! Sending mails of our own over a connection: an envelope with all its recipients in one go, where the hop lets us.
//!
//! Nothing is told of a client, since there is none.

use proto::smtp::{Asked, MailFrom, Mechanisms, Protocol, RcptTo, Reply};

use super::{COMMAND_WAIT, Leases, Lost, QUIET_WAIT, SmtpHop};
use crate::upstream::route::Route;

/// Commands that go out before their replies are read: what a hop answers fits into the buffers of a connection.
const PIPELINED_MAX: usize = 50;

/// Why an envelope was not taken at all.
#[derive(Debug)]
pub enum Unsent {
    /// The connection is of no more use.
    Gone,
    /// The hop refuses the sender.
    Refused(Reply),
    /// The hop does not offer what the mail needs; the words are ours.
    Unsupported(Reply),
}

impl SmtpHop {
    /// A connection to send over, a `fresh` one if that is wanted, and whether it has been used before.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn lease_to_send(
        (address, protocol): (&str, Protocol),
        route: &Route,
        hostname: &str,
        leases: &Leases,
        is_fresh: bool,
    ) -> Result<(SmtpHop, bool), Reply> {
        match leases.take(&route.key).filter(|_| !is_fresh) {
            Some(hop) => Ok((hop, true)),
            None => Ok((SmtpHop::connect(address, protocol, route, hostname).await.map_err(Lost::reply)?, false)),
        }
    }

    /// The largest mail that the hop takes, as far as it says so.
    pub fn size_max(&self) -> Option<u64> {
        self.client.extensions().size.filter(|&size| size > 0)
    }

    /// The mechanisms by which the hop lets clients log in.
    pub fn mechanisms(&self) -> Mechanisms {
        self.client.extensions().auth
    }

    /// Whether nobody else reads what goes over the connection.
    pub const fn is_encrypted(&self) -> bool {
        self.stream.is_encrypted()
    }

    /// Whether the hop sends on over TLS alone what asks for that (RFC 8689).
    pub fn offers_require_tls(&self) -> bool {
        self.client.extensions().require_tls
    }

    /// Whether the hop tells senders what becomes of their mails (RFC 3461).
    pub fn offers_dsn(&self) -> bool {
        self.client.extensions().dsn
    }

    /// Whether the connection is of no more use.
    pub const fn is_gone(&self) -> bool {
        self.broken
    }

    /// Whether the connection ended without an answer.
    pub const fn was_lost(&self) -> bool {
        self.fault.is_some()
    }

    /// Why the connection was lost, in words.
    pub fn fault(&self) -> &str {
        self.fault.as_deref().unwrap_or("it closed the connection")
    }

    /// Ends a transaction whose content has not begun; the connection is of no more use where that does not work.
    pub async fn reset(&mut self) {
        if self.broken || self.in_data {
            self.broken = true;
            return;
        }
        self.chunk = None;
        self.client.reset();
        let reset = self.reply(Asked::Reset, QUIET_WAIT).await;
        self.broken |= !matches!(reset, Ok(reply) if reply.is_positive());
        self.recipients = 0;
    }

    /// Content that has begun does not end: the connection is of no more use.
    pub const fn give_up(&mut self) {
        self.broken = true;
    }

    /// The answers of the hop to each recipient of a sender.
    ///
    /// # Errors
    /// When it takes nothing of the sender.
    pub async fn envelope_to(&mut self, mail: &MailFrom, recipients: &[RcptTo]) -> Result<Vec<Reply>, Unsent> {
        self.client.mail(mail).map_err(|unsupported| Unsent::Unsupported(unsupported.reply()))?;
        let width = if self.client.extensions().pipelining { PIPELINED_MAX } else { 1 };
        let mut sender = None;
        if width == 1 {
            sender = Some(self.reply(Asked::Mail, COMMAND_WAIT).await?);
        }
        let mut replies = Vec::with_capacity(recipients.len());
        for some in recipients.chunks(width) {
            if let Some(refused) = sender.as_ref().filter(|reply| !reply.is_positive()) {
                return Err(Unsent::Refused(refused.clone()));
            }
            let asked: Vec<Option<Reply>> = some
                .iter()
                .map(|rcpt| self.client.recipient(rcpt).err().map(|unsupported| unsupported.reply()))
                .collect();
            if sender.is_none() {
                sender = Some(self.reply(Asked::Mail, COMMAND_WAIT).await?);
            }
            for ours in asked {
                let last = replies.last().or(sender.as_ref());
                let reply = match ours {
                    Some(reply) => reply,
                    None => match (self.reply(Asked::Recipient, COMMAND_WAIT).await, last) {
                        (Ok(reply), _) => reply,
                        // It has said why, and closed the connection.
                        (Err(_), Some(last)) if last.code == 421 => last.clone(),
                        (Err(_), _) if sender.as_ref().is_some_and(|reply| !reply.is_positive()) => break,
                        (Err(lost), _) => return Err(lost.into()),
                    },
                };
                self.recipients += u32::from(reply.is_positive());
                replies.push(reply);
            }
        }
        match sender.filter(|reply| !reply.is_positive()) {
            Some(refused) => Err(Unsent::Refused(refused)),
            None => Ok(replies),
        }
    }
}

impl From<Lost> for Unsent {
    fn from(lost: Lost) -> Unsent {
        match lost {
            Lost::Gone => Unsent::Gone,
            Lost::Refused(reply) => Unsent::Refused(reply),
        }
    }
}
