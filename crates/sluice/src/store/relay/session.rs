//! One mail over connections to hosts, one after the other, until each recipient has an answer that stands.
//!
//! ```text
//!   no connection, or 4xx ──────► the next host, for the recipients that were not taken
//!   452 for some recipients ────► again in the same session, if others were delivered to (RFC 5321, section 4.5.3.1.10)
//!   5xx ────────────────────────► it stands, and no other host is asked
//!   lost after the final dot ───► it waits: the host may have it, and nobody else is asked in this attempt (section 4.5.4.1)
//! ```

use std::sync::Arc;

use edge::upstream::route::{Fault, Insecurity, Route};
use edge::upstream::smtp_hop::{Leases, SmtpHop, Unsent};
use mailbox::{Fate, Health, Outcome, Outgoing, Report};
use proto::smtp::{Protocol, Reply};

use super::login::Login;

/// The status of a mail that needs TLS, with a host that has none that can be trusted.
const INSECURE: (u8, u16, u16) = (5, 7, 10);

/// The words for a connection that has ended on its own.
const LOST: &str = "the connection was lost";

/// The status of a connection that did not become secure.
const NO_TLS: (u8, u16, u16) = (4, 7, 4);

/// A host that is tried.
pub struct Host {
    /// As notifications name it.
    pub name: String,
    /// Where it is.
    pub address: String,
    /// Protocol of the hop.
    pub protocol: Protocol,
    /// Our login there.
    pub login: Option<Arc<Login>>,
    /// Whether the login may go there in the clear.
    pub is_in_clear: bool,
    /// Whether its route leads to the right server, and nobody reads on the way: in TLS, with a proof of its name.
    pub is_proven: bool,
}

impl Host {
    /// A fate in our words, with this host in them: the host itself has not said so.
    fn about(&self, fate: Fate) -> Fate {
        Fate { why: format!("{}: {}", self.name, fate.why), host: None, ..fate }
    }
}

/// Outcomes of the recipients so far.
pub struct Sent {
    /// The last word on each; none was asked where there is none.
    fates: Vec<Option<Fate>>,
    /// Recipients whose fate stands for this attempt.
    stands: Vec<bool>,
    /// A host took part.
    was_answered: bool,
    /// Sessions in which a host was asked for something.
    pub sessions: usize,
}

impl Sent {
    /// Nobody was asked yet.
    pub fn new(count: usize) -> Sent {
        Sent { fates: vec![None; count], stands: vec![false; count], was_answered: false, sessions: 0 }
    }

    /// Whether no further host is to be asked.
    pub fn is_over(&self) -> bool {
        self.stands.iter().all(|&stands| stands)
    }

    /// Report at the end.
    pub fn report(self) -> Report {
        let health = if self.was_answered { Health::Well } else { Health::Ill };
        let unasked = || Fate::later((4, 4, 1), "no host could be reached");
        Report { fates: self.fates.into_iter().map(|fate| fate.unwrap_or_else(unasked)).collect(), health }
    }

    /// Makes all open recipients wait, since no host could be asked.
    pub fn wait_for(&mut self, fate: &Fate) {
        self.open().into_iter().for_each(|at| self.fates[at] = Some(fate.clone()));
    }

    /// Tries a host for the recipients that are open.
    pub async fn try_host(&mut self, host: &Host, route: &Route, mail: &Outgoing, hostname: &str, leases: &Leases) {
        // One that turns out to be gone, or tired, after it has been used says nothing of the host: a fresh one does.
        if mail.mail.require_tls && !host.is_proven {
            return self.wait_for(&host.about(Fate::never(INSECURE, "REQUIRETLS: the server cannot be verified")));
        }
        for is_fresh in [false, true] {
            if let Some(login) = &host.login
                && let Some(fate) = login.rests().await
            {
                return self.wait_for(&host.about(fate));
            }
            let leased =
                SmtpHop::lease_to_send((&host.address, host.protocol), route, hostname, leases, is_fresh).await;
            let (mut hop, was_used) = match leased {
                Ok(leased) => leased,
                Err(reply) => {
                    let fate = unreached(&reply, host, route);
                    let is_insecure = mail.mail.require_tls && reply.enhanced == Some(NO_TLS);
                    let fate =
                        if is_insecure { Fate { outcome: Outcome::Never, status: INSECURE, ..fate } } else { fate };
                    return self.wait_for(&fate);
                }
            };
            if let Some(login) = host.login.as_ref().filter(|_| !was_used)
                && let Err(fate) = login.log_in(&mut hop, host.is_in_clear).await
            {
                return self.wait_for(&host.about(fate));
            }
            if mail.mail.require_tls && !hop.offers_require_tls() {
                hop.release(leases);
                let why = "REQUIRETLS: the server does not offer it";
                return self.wait_for(&host.about(Fate::never((5, 7, 30), why)));
            }
            let open = self.open().len();
            let is_stale = self.transactions(&mut hop, host, mail).await.is_err() && was_used;
            // A session in which nothing could be done is not asked again: behind one address there may be many servers.
            if self.open().len() < open {
                hop.release(leases);
            }
            if !is_stale {
                return;
            }
        }
    }

    /// Transactions over one connection; an error if it was gone before anything was said of this mail.
    async fn transactions(&mut self, hop: &mut SmtpHop, host: &Host, mail: &Outgoing) -> Result<(), ()> {
        if let Some(most) = hop.size_max().filter(|&most| most < mail.bytes) {
            let why = format!("the host takes mails of {most} bytes at the most, and this one has {}", mail.bytes);
            let fate = host.about(Fate::never((5, 3, 4), why));
            (self.was_answered, self.sessions) = (true, self.sessions + 1);
            self.open().into_iter().for_each(|at| self.stand(at, fate.clone()));
            return Ok(());
        }
        let mut is_first = true;
        loop {
            let open = self.open();
            let has_more = match self.transaction(hop, host, mail, &open).await {
                Ok(has_more) => has_more,
                Err(reply) if is_first && reply == gone() => return Err(()),
                Err(reply) if is_first && reply.code == 421 => {
                    self.open().into_iter().for_each(|at| self.fates[at] = Some(Fate::said(&reply, &host.name)));
                    return Err(());
                }
                Err(_) => return Ok(()),
            };
            (is_first, self.sessions) = (false, self.sessions + usize::from(is_first));
            // Each further round has fewer recipients.
            if !has_more || self.open().len() == open.len() || hop.is_gone() {
                return Ok(());
            }
        }
    }

    /// One transaction; whether recipients were left out of it, since there were too many for one. The error is what was said of the sender, or 421.
    async fn transaction(
        &mut self,
        hop: &mut SmtpHop,
        host: &Host,
        mail: &Outgoing,
        open: &[usize],
    ) -> Result<bool, Reply> {
        let recipients: Vec<_> = open.iter().map(|&at| mail.recipients[at].clone()).collect();
        let replies = match hop.envelope_to(&mail.mail, &recipients).await {
            Ok(replies) => replies,
            Err(unsent) => return Err(self.unsent(hop, host, open, unsent).await),
        };
        self.was_answered = true;
        let mut taken = Vec::new();
        for (&at, reply) in open.iter().zip(&replies) {
            self.said(at, reply, host);
            if reply.is_positive() {
                taken.push(at);
            }
        }
        // One that ends the session within the envelope says so of all.
        if let Some(reply) = replies.iter().find(|reply| reply.code == 421) {
            taken.iter().for_each(|&at| self.fates[at] = Some(Fate::said(reply, &host.name)));
            taken.iter().for_each(|&at| self.stands[at] = false);
            taken.clear();
        }
        if taken.is_empty() {
            hop.reset().await;
            return Ok(false);
        }
        // Until the content has been taken none of them has the mail.
        for &at in &taken {
            self.stands[at] = false;
            self.fates[at] = Some(host.about(Fate::later((4, 4, 2), LOST)));
        }
        match content(hop, mail).await {
            Ok(()) => {}
            Err(Some(reply)) if hop.was_lost() || reply == gone() => {
                let fate = host.about(Fate::later((4, 4, 2), format!("{LOST}: {}", hop.fault())));
                taken.iter().for_each(|&at| self.fates[at] = Some(fate.clone()));
                return Ok(false);
            }
            Err(Some(reply)) => {
                taken.iter().for_each(|&at| self.said(at, &reply, host));
                hop.reset().await;
                return Ok(false);
            }
            Err(None) => return Ok(false),
        }
        if !mail.gate.pass() {
            hop.give_up();
            let fate = Fate::later((4, 3, 2), "the attempt was ended before the mail was sent");
            taken.iter().for_each(|&at| self.stand(at, fate.clone()));
            return Ok(false);
        }
        self.end(hop, host, &taken).await;
        mail.gate.come_back();
        Ok(replies.iter().any(|reply| reply.code == 452))
    }

    /// An envelope was not taken: notes why, and returns it.
    async fn unsent(&mut self, hop: &mut SmtpHop, host: &Host, open: &[usize], unsent: Unsent) -> Reply {
        let reply = match unsent {
            Unsent::Gone => {
                let why = format!("{LOST}: {}", hop.fault());
                self.wait_for(&host.about(Fate::later((4, 4, 2), why)));
                return gone();
            }
            Unsent::Unsupported(reply) => {
                self.was_answered = true;
                let (why, status) = (reply.text.to_string(), reply.enhanced.unwrap_or((5, 5, 4)));
                let outcome = if reply.is_permanent() { Outcome::Never } else { Outcome::Later };
                let fate = host.about(Fate { outcome, ..Fate::later(status, why) });
                open.iter().for_each(|&at| self.stand(at, fate.clone()));
                reply
            }
            Unsent::Refused(reply) => {
                self.was_answered |= reply.code != 421;
                open.iter().for_each(|&at| self.said(at, &reply, host));
                reply
            }
        };
        hop.reset().await;
        reply
    }

    /// The answers to the final dot.
    async fn end(&mut self, hop: &mut SmtpHop, host: &Host, taken: &[usize]) {
        let mut reply = hop.commit().await;
        for &at in taken {
            if hop.was_lost() && reply == gone() {
                let why = format!("{LOST} after the final dot, it may have the mail: {}", hop.fault());
                self.stand(at, host.about(Fate::later((4, 4, 2), why)));
            } else {
                self.said(at, &reply, host);
            }
            if let Some(fate) = &mut self.fates[at] {
                fate.host_notifies = hop.offers_dsn();
            }
            // By LMTP there is one for each.
            if let Some(another) = hop.another().await {
                reply = another;
            }
        }
    }

    fn said(&mut self, at: usize, reply: &Reply, host: &Host) {
        let fate = Fate::said(reply, &host.name);
        match fate.outcome {
            Outcome::Later => self.fates[at] = Some(fate),
            Outcome::Taken | Outcome::Never => self.stand(at, fate),
        }
    }

    fn stand(&mut self, at: usize, fate: Fate) {
        self.fates[at] = Some(fate);
        self.stands[at] = true;
    }

    /// Recipients that another host may be asked for.
    fn open(&self) -> Vec<usize> {
        (0..self.stands.len()).filter(|&at| !self.stands[at]).collect()
    }
}

/// Why a host was not asked for anything.
fn unreached(reply: &Reply, host: &Host, route: &Route) -> Fate {
    let said = route.facts.refusal();
    // What is known of a route stays known: the reply says whether it is why.
    let insecurity = route.facts.insecurity().filter(|_| reply.enhanced == Some(NO_TLS));
    let (status, why) = match insecurity {
        Some(Insecurity { fault: Fault::NoStartTls, why }) => ((4, 7, 4), why),
        Some(Insecurity { why, .. }) => ((4, 7, 5), format!("the server is not known by its certificate: {why}")),
        None => match said {
            // What it greets us with is said of all mail, and not for ever.
            Some(said) => {
                let status = said.enhanced.map_or((4, 4, 1), |(_, subject, detail)| (4, subject, detail));
                return Fate { status, outcome: Outcome::Later, ..Fate::said(&said, &host.name) };
            }
            None => (reply.enhanced.unwrap_or((4, 4, 1)), reply.text.to_string()),
        },
    };
    host.about(Fate::later(status, why))
}

/// Hands over the content but for its end. The error is what the host said; nothing if we have failed, or the connection.
async fn content(hop: &mut SmtpHop, mail: &Outgoing) -> Result<(), Option<Reply>> {
    hop.begin().await.map_err(Some)?;
    let mut sent = 0u64;
    while sent < mail.bytes {
        let piece = mail.content.read(sent).await.filter(|piece| !piece.is_empty());
        let Some(piece) = piece.filter(|piece| piece.len() as u64 <= mail.bytes - sent) else {
            hop.give_up();
            return Err(None);
        };
        sent += piece.len() as u64;
        hop.write(&piece).await.map_err(Some)?;
    }
    Ok(())
}

fn gone() -> Reply {
    Reply::new(451, (4, 4, 2), "The connection to the next hop was lost")
}
