//! Mail that is relayed: for anybody to the domains of the site's list ([`Site::relay_domains`]), and for a client inside to everybody. It
//! waits in the [queue](crate::queue) from the transaction on whose flush the client is told of.
//!
//! A stranger's mail for accounts as well is one transaction: all have it, or the client keeps it. A script that refuses it has no say in
//! what the others get, so that its account keeps the mail.
//!
//! Mail of a client inside is signed like that of accounts, since nobody else has vouched for its sender. Of mail from strangers that was
//! taken for spam nobody is told that it was not delivered: its sender may be forged.

use std::net::IpAddr;

use proto::smtp::Reply;
use text::host::is_listed;

use super::submission::queue;
use super::{FAILED, Mail, Peer, envelope};
use crate::filter::Said;
use crate::outbox::Entry;
use crate::site::{Site, seconds};

/// Signs in a local part by which a next hop may send a mail on to another domain: a stranger could relay by them.
const ROUTING: [char; 4] = ['%', '!', '@', '"'];

/// Whether mail of a client inside goes to an address that no account has. In the domains of accounts others are unknown; a next hop of
/// all mail may know them.
pub(super) fn to_anybody(site: &Site, address: &str) -> bool {
    let domain = address.rsplit_once('@').map_or(&*site.hostname, |(_, domain)| domain);
    let is_home = site.is_home(&domain.to_ascii_lowercase());
    site.relay.as_ref().is_some_and(|relay| !relay.is_the_world() || !is_home)
}

/// Whether mail of anybody goes to an address that no account has.
pub(super) fn to_domain(site: &Site, address: &str) -> bool {
    let Some((local, domain)) = address.rsplit_once('@').filter(|_| site.relay.is_some()) else { return false };
    let domain = domain.to_ascii_lowercase();
    !local.contains(ROUTING) && is_listed(&site.relay_domains, &domain) && to_anybody(site, address)
}

/// Takes the part of a mail that waits in the queue: none if all of its recipients have accounts. Fields in front of it that are for
/// accounts are not sent on.
pub(super) fn entry(peer: Peer, mail: &mut Mail) -> Option<Entry> {
    let mut recipients = std::mem::take(&mut mail.outgoing);
    let skipped = if mail.recipients.is_empty() { 0 } else { envelope(mail).len() as u64 };
    let is_inside = peer == Peer::Insider;
    let header = mail.content.as_ref().map_or(&[][..], |content| &content.header.bytes[..]);
    let is_spam = Said::of(header, true).is_spam;
    if is_spam && !is_inside {
        recipients.iter_mut().for_each(|one| one.notify = "NEVER".into());
    }
    let entry = Entry {
        since: seconds(),
        address: mail.from.clone(),
        from: mail.from.clone(),
        ret: mail.ret,
        envid: std::mem::take(&mut mail.envid),
        smtputf8: mail.smtputf8,
        require_tls: mail.require_tls,
        skipped,
        is_spam,
        is_inspected: true,
        is_local: is_inside,
        recipients,
        ..Entry::default()
    };
    Some(entry).filter(|entry| !entry.recipients.is_empty())
}

/// Puts a mail into the queue that nobody here gets; what the client is told.
pub(super) async fn relay(site: &Site, client: Option<IpAddr>, peer: Peer, mut mail: Mail) -> Reply {
    let Some(entry) = entry(peer, &mut mail) else { return FAILED };
    let Some(content) = mail.content else { return FAILED };
    if let Some(reply) = content.failed {
        return reply;
    }
    let (from, bytes, recipients) = (entry.from.clone(), content.incoming.size(), entry.recipients.len());
    let reply = queue(site, content, entry, None).await;
    let client = client.map(tracing::field::display);
    tracing::info!(client, from, recipients, bytes, %reply, "relayed into the queue");
    reply
}
