//! Asking a hop who its recipients are: MAIL and RCPT over a connection that takes no mail.
//!
//! Many recipients are asked for in one transaction, which RSET ends. These connections are apart from those for mail, and are
//! left after a few refusals: servers slow down or hang up on those who name strangers (Postfix after 10 and 20), and no mail
//! should have to pay for that.

use proto::smtp::{Asked, MailFrom, Protocol, RcptTo, Reply};

use super::{COMMAND_WAIT, Leases, Lost, SmtpHop};
use crate::upstream::route::Route;

/// Recipients asked for in one transaction.
const TRANSACTION_MAX: u32 = 50;

/// Refusals that a connection is kept for.
const REFUSALS_MAX: u32 = 8;

/// Counts of recipients asked over a connection.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Recipients in the transaction that is open; 0: none is.
    open: u32,
    refused: u32,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum Unasked {
    /// The connection is of no more use.
    Gone,
    /// The hop refuses the sender: it was not asked for the recipient.
    Sender(Reply),
}

impl SmtpHop {
    /// Leases a connection to ask over, and says whether it is a new one.
    ///
    /// # Errors
    /// The reply for the client: why the hop cannot be asked.
    pub async fn lease_to_ask(
        (address, protocol): (&str, Protocol),
        route: &Route,
        hostname: &str,
        leases: &Leases,
    ) -> Result<(SmtpHop, bool), Reply> {
        let key = format!("{} asked", route.key);
        if let Some(hop) = leases.take(&key) {
            return Ok((hop, false));
        }
        let mut hop = SmtpHop::connect(address, protocol, route, hostname).await.map_err(Lost::reply)?;
        route.facts.learn(*hop.client.extensions());
        hop.key = key;
        Ok((hop, true))
    }

    /// Asks the hop about a recipient of a mail from the null sender.
    ///
    /// # Errors
    /// When it does not come to that.
    pub async fn ask(&mut self, rcpt: &RcptTo) -> Result<Reply, Unasked> {
        if self.tally.open >= TRANSACTION_MAX {
            self.client.reset();
            self.reply(Asked::Reset, COMMAND_WAIT).await.map_err(Unasked::from)?;
            self.tally.open = 0;
        }
        let reply = match self.tally.open {
            0 => self.ask_first(rcpt).await?,
            _ => self.ask_another(rcpt).await?,
        };
        self.tally.open += 1;
        self.tally.refused += u32::from(!reply.is_positive());
        // It has had enough of us, which says nothing of the recipient.
        if reply.code == 421 { Err(Unasked::Gone) } else { Ok(reply) }
    }

    async fn ask_first(&mut self, rcpt: &RcptTo) -> Result<Reply, Unasked> {
        let smtputf8 = self.client.extensions().smtputf8;
        let nobody = MailFrom { smtputf8, ..MailFrom::default() };
        if let Err(unsupported) = self.client.mail(&nobody) {
            return Err(Unasked::Sender(unsupported.reply()));
        }
        let sender = self.reply(Asked::Mail, COMMAND_WAIT).await?;
        if !sender.is_positive() {
            return Err(Unasked::Sender(sender));
        }
        self.ask_another(rcpt).await
    }

    async fn ask_another(&mut self, rcpt: &RcptTo) -> Result<Reply, Unasked> {
        match self.client.recipient(rcpt) {
            Ok(()) => Ok(self.reply(Asked::Recipient, COMMAND_WAIT).await?),
            Err(unsupported) => Ok(unsupported.reply()),
        }
    }

    /// Whether another connection is better asked over.
    pub const fn is_worn(&self) -> bool {
        self.broken || self.tally.refused >= REFUSALS_MAX
    }

    /// Keeps the connection for the next question, if it may be asked.
    pub async fn keep_to_ask(mut self, leases: &Leases) {
        if self.is_worn() {
            return;
        }
        self.tally.open = 0;
        self.abandon(leases).await;
    }
}

impl From<Lost> for Unasked {
    fn from(lost: Lost) -> Unasked {
        match lost {
            Lost::Gone => Unasked::Gone,
            Lost::Refused(reply) => Unasked::Sender(reply),
        }
    }
}
