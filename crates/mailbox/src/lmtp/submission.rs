//! Mail that an account submits (RFC 6409): over a connection of a gateway in this process, on which it has logged in.
//!
//! All recipients wait in the [queue](crate::queue) from the transaction on whose flush the client is told of. The sender has to be an
//! address of the account. What a mail lacks is put in front of it (Date, Message-ID, From), and Bcc and Return-Path are taken out;
//! nothing else is touched.

use std::net::IpAddr;
use std::sync::Arc;

use keep::header::{fields, is_named};
use proto::smtp::{RcptTo, Reply};
use store::{Error, Refused};
use text::base64;

use super::{APART, Content, FAILED, Mail, Peer, Session, reply_to};
use crate::accounts::Account;
use crate::header::missing;
use crate::in_flight::Owner;
use crate::login::{Caller, Denied};
use crate::outbox::{self, Entry, Recipient};
use crate::sasl::{Exchange, Step};
use crate::site::{Site, ensure, seconds};
use crate::wire::Stream;

/// Recipients of one mail (RFC 5321, section 4.5.3.1.8: 100 at the least).
const RECIPIENTS_MAX: usize = 1_000;

/// Mechanisms that are offered over SMTP: those of the other doors, and LOGIN, which some clients have alone.
pub(super) const MECHANISMS: [&str; 3] = ["SCRAM-SHA-256", "PLAIN", "LOGIN"];

/// How much later a mail may be sent than it is submitted: a month.
pub(super) const HOLD_SECONDS_MAX: u32 = 30 * 86_400;

pub(super) const LOG_IN: Reply = Reply::new(530, (5, 7, 0), "Log in first");
const NOT_YOURS: Reply = Reply::new(553, (5, 7, 1), "The sender is not an address of this account");
/// RFC 5322, section 3.6: a mail has one field From, which says who answers for it.
const TWO_AUTHORS: Reply = Reply::new(550, (5, 6, 0), "The mail has more than one field From");
const TOO_MANY: Reply = Reply::new(452, (4, 5, 3), "Too many recipients");
const TOO_FAST: Reply = Reply::new(450, (4, 7, 1), "Too many recipients within an hour: try again later");
const QUEUE_FULL: Reply = Reply::new(452, (4, 3, 1), "The queue is full: try again later");

/// Mails that go back to one sender in an hour: whoever has seen a rewritten address may write to it.
const BOUNCES_TO_ONE_MAX: u32 = 20;

/// The same that one client brings. A large provider returns mails of many forwards.
const BOUNCES_OF_CLIENT_MAX: u32 = 500;

const TOO_MANY_BOUNCES: Reply = Reply::new(450, (4, 7, 1), "Too many bounces within an hour: try again later");

/// An exchange that goes on.
pub(super) enum LogIn {
    Sasl(Exchange),
    /// LOGIN: the name is next.
    Name,
    /// LOGIN: the password of this name is next.
    Password(Vec<u8>),
}

impl<S: Stream> Session<'_, S> {
    /// A client begins to log in.
    pub(super) async fn log_in(&mut self, mechanism: &str, initial: Option<&[u8]>) {
        let begun = match mechanism {
            "LOGIN" => Some(LogIn::Name),
            mechanism => Exchange::begin(mechanism).map(LogIn::Sasl),
        };
        match (begun, initial) {
            (Some(exchange), Some(initial)) => self.respond(exchange, initial).await,
            (Some(exchange), None) => {
                let challenge =
                    if matches!(exchange, LogIn::Name) { base64::encode(b"Username:") } else { String::new() };
                self.server.challenge(challenge.as_bytes());
                self.exchange = Some(exchange);
            }
            (None, _) => self.server.reply(&Reply::new(504, (5, 5, 4), "Unrecognized authentication mechanism")),
        }
    }

    /// It has answered a challenge.
    pub(super) async fn respond(&mut self, exchange: LogIn, response: &[u8]) {
        if response == b"*" {
            return self.server.reply(&Reply::new(501, (5, 7, 0), "Authentication cancelled"));
        }
        let plain;
        let (exchange, response) = match exchange {
            LogIn::Name => {
                let name = decoded(response);
                self.server.challenge(base64::encode(b"Password:").as_bytes());
                self.exchange = Some(LogIn::Password(name));
                return;
            }
            LogIn::Password(name) => {
                plain = base64::encode(&[b"\0", &name[..], b"\0", &decoded(response)].concat()).into_bytes();
                (Exchange::Plain, &plain[..])
            }
            LogIn::Sasl(exchange) => (exchange, response),
        };
        let caller = Caller { door: "submission", client: self.client };
        match exchange.respond(self.site, caller, response).await {
            Step::Challenge(challenge, exchange) => {
                self.server.challenge(&challenge);
                self.exchange = Some(LogIn::Sasl(exchange));
            }
            Step::Over(Ok(account)) => {
                self.account = Some(account);
                self.server.reply(&Reply::new(235, (2, 7, 0), "Logged in"));
            }
            Step::Over(Err(Denied::Wrong)) => {
                self.server.reply(&Reply::new(535, (5, 7, 8), "Wrong name or password"));
            }
            Step::Over(Err(_)) => self.server.reply(&Reply::new(454, (4, 7, 0), "Try again later")),
        }
    }

    /// Whether an account may send as this sender.
    pub(super) async fn sender(&self, account: &Account, from: &str) -> Reply {
        match from.is_empty() || is_of(self.site, account, from).await {
            true => Reply::new(250, (2, 1, 0), "Ok"),
            false => NOT_YOURS,
        }
    }

    /// Takes a recipient, wherever it is.
    pub(super) fn outgoing(&mut self, recipient: &RcptTo) -> Reply {
        let Some(mail) = &mut self.mail else { return FAILED };
        if mail.is_returned {
            return APART;
        }
        if mail.outgoing.len() >= RECIPIENTS_MAX {
            return TOO_MANY;
        }
        let to = recipient.path.as_str();
        let is_ours = self.account.is_some() || self.peer == Peer::Insider;
        if is_ours && !mail.from.is_empty() && outbox::is_suppressed(&self.site.store.state(), to) {
            return Reply::new(550, (5, 7, 1), outbox::SUPPRESSED);
        }
        // Without a domain it is one here.
        let to = if to.contains('@') { to.to_owned() } else { format!("{to}@{}", self.site.hostname) };
        let notify = recipient.notify.clone().unwrap_or_default();
        let orcpt = recipient.orcpt.clone().unwrap_or_default();
        let one = Recipient { notify, orcpt, ..Recipient::new(to, seconds()) };
        // Case counts in what stands before the @, so twins are the same to the letter.
        if mail.outgoing.iter().all(|known| known.to != one.to) {
            mail.outgoing.push(one);
        }
        Reply::new(250, (2, 1, 5), "Ok")
    }
}

/// Puts a mail into the queue; what the client is told.
pub(super) async fn submit(site: &Site, account: Arc<Account>, mail: Mail) -> Reply {
    let Mail { from, mut outgoing, content: Some(content), ret, envid, smtputf8, require_tls, release, .. } = mail
    else {
        return FAILED;
    };
    if let Some(reply) = content.failed {
        return reply;
    }
    let authors = fields(&content.header.bytes).filter(|field| is_named(field, b"from")).count();
    if authors > 1 {
        return TWO_AUTHORS;
    }
    let (now, count) = (seconds(), u32::try_from(outgoing.len()).unwrap_or(u32::MAX));
    if !site.may_send(&account.name, count, site.recipients_hour_max) {
        tracing::warn!(account = account.name, recipients = count, "too many recipients of one login within an hour");
        return TOO_FAST;
    }
    // A mail that is sent later waits since then.
    let since = release.unwrap_or(now).max(now);
    outgoing.iter_mut().for_each(|one| one.due = since);
    let author = if from.is_empty() { address(&account, &site.hostname) } else { from.clone() };
    let entry = Entry {
        since,
        is_scheduled: since > now,
        trace: missing(&content.header.bytes, &author, &site.hostname),
        address: from.clone(),
        from,
        account: account.name.clone(),
        ret,
        envid,
        smtputf8,
        require_tls,
        is_written: true,
        is_inspected: true,
        recipients: outgoing,
        ..Entry::default()
    };
    let bytes = content.incoming.size();
    let (name, sender) = (account.name.clone(), entry.from.clone());
    let reply = queue(site, content, entry, Some(account)).await;
    tracing::info!(account = name, from = sender, recipients = count, bytes, %reply, "submitted");
    reply
}

/// Puts a mail into the queue, for an account that has written it or for nobody; what the client is told.
pub(super) async fn queue(site: &Site, content: Content, entry: Entry, writer: Option<Arc<Account>>) -> Reply {
    let work = move |transaction: &mut store::Transaction<'_, crate::file::File>, sealed: &store::Sealed| {
        if let Some(account) = &writer {
            // What does not go out comes back into its INBOX.
            ensure(transaction, account)?;
        }
        outbox::add(transaction, sealed, &entry)
    };
    let reply = match content.incoming.finish(content.digest.finish(), work).await {
        Ok(()) => Reply::new(250, (2, 0, 0), "Queued"),
        Err(Error::Refused(Refused::OverQuota)) => QUEUE_FULL,
        Err(error) => reply_to(Some(error)),
    };
    site.queue.wake.wake();
    reply
}

/// Whether an address is one of an account. One that it has by all of its domain (`@example.org`) must lead to nobody else.
pub(crate) async fn is_of(site: &Site, account: &Account, address: &str) -> bool {
    match share(account, address, &site.hostname) {
        Share::Own => true,
        Share::None => false,
        Share::CatchAll => {
            let leads = site.accounts.recipients(address).await;
            leads.is_ok_and(|all| all.iter().any(|one| one.account.name == account.name))
        }
    }
}

/// How an account has an address.
#[derive(Debug, PartialEq, Eq)]
enum Share {
    Own,
    /// With all that nobody else has of its domain.
    CatchAll,
    None,
}

/// How an account has an address: as its name, or another address of it, with any detail behind `+`. A name without a domain is one at this host.
fn share(account: &Account, address: &str, hostname: &str) -> Share {
    let address = address.to_ascii_lowercase();
    let Some((local, domain)) = address.rsplit_once('@') else { return Share::None };
    let base = local.split_once('+').map_or(local, |(base, _)| base);
    let is_meant = |name: &str| match name.rsplit_once('@') {
        Some((own, own_domain)) => own_domain == domain && !own.is_empty() && (own == local || own == base),
        None => domain.eq_ignore_ascii_case(hostname) && (name == local || name == base),
    };
    let has_all = |name: &String| name.strip_prefix('@') == Some(domain);
    match () {
        () if is_meant(&account.name) || account.aliases.iter().any(|alias| is_meant(alias)) => Share::Own,
        () if account.aliases.iter().any(has_all) => Share::CatchAll,
        () => Share::None,
    }
}

fn address(account: &Account, hostname: &str) -> String {
    match account.name.contains('@') {
        true => account.name.clone(),
        false => format!("{}@{hostname}", account.name),
    }
}

/// Puts a mail into the queue that came back for a sender whose mail was forwarded here; what the client is told.
pub(super) async fn send_back(site: &Site, client: Option<IpAddr>, mail: Mail) -> Reply {
    let Mail { outgoing, require_tls, content: Some(content), .. } = mail else { return FAILED };
    if let Some(reply) = content.failed {
        return reply;
    }
    let to = outgoing.first().map(|one| one.to.clone()).unwrap_or_default();
    if !may_go_back(site, client, &to) {
        tracing::warn!(
            to,
            client = client.map(tracing::field::display),
            "too many bounces for one sender or of one client"
        );
        return TOO_MANY_BOUNCES;
    }
    let since = seconds();
    let (is_answer, is_inspected) = (true, true);
    let entry = Entry { since, is_answer, is_inspected, require_tls, recipients: outgoing, ..Entry::default() };
    let reply = queue(site, content, entry, None).await;
    tracing::info!(to, %reply, "bounce sent on to the sender of a forwarded mail");
    reply
}

/// Counts a mail that goes back to a sender; false beyond what one sender gets, and one client brings, in an hour.
fn may_go_back(site: &Site, client: Option<IpAddr>, to: &str) -> bool {
    let client = client.and_then(Owner::client).map(|client| format!("bounces of {client:?}"));
    // Names with a blank, which no account has.
    site.may_send(&format!("bounces to {}", to.to_ascii_lowercase()), 1, BOUNCES_TO_ONE_MAX)
        && client.is_none_or(|client| site.may_send(&client, 1, BOUNCES_OF_CLIENT_MAX))
}

fn decoded(response: &[u8]) -> Vec<u8> {
    base64::decode(response.iter().copied().take_while(|&digit| digit != b'=')).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_sends_as_itself_alone() {
        let account = Account::parse("ann:!:aliases=a.nn@example.org,@ann.test").or_else(|_| Account::new("ann"));
        let mut account = account.unwrap();
        account.aliases = vec!["a.nn@example.org".into(), "@ann.test".into()];
        for own in ["ann@mx.test", "Ann+x@MX.test", "a.nn@example.org", "a.nn+y@Example.org"] {
            assert_eq!(share(&account, own, "mx.test"), Share::Own, "{own}");
        }
        assert_eq!(share(&account, "any@ann.test", "mx.test"), Share::CatchAll);
        for other in
            ["ann@example.org", "bob@mx.test", "ann", "ann@mx.test.evil", "x@sub.ann.test", "+ann@mx.test", "@mx.test"]
        {
            assert_eq!(share(&account, other, "mx.test"), Share::None, "{other}");
        }
    }
}
