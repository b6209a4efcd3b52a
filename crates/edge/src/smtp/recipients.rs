//! Recipient checks of a session, with their counters and log lines.

use std::net::SocketAddr;

use proto::smtp::{Path, Reply};

use crate::message::trace;
use crate::metrics::Metrics;
use crate::porch::door::Door;
use crate::porch::runtime::Runtime;
use crate::porch::shared::Shared;
use crate::recipients::answer::{Answer, Verdict};
use crate::recipients::call_ahead::Way;
use crate::smtp::client::Client;

/// A recipient, and the mail that it is for.
pub struct Asked<'a> {
    /// The mail's name.
    pub id: &'a str,
    /// Client that sends it.
    pub client: SocketAddr,
    /// The reverse-path.
    pub from: &'a Path,
    /// The forward-path.
    pub to: &'a Path,
    /// Whether the next hop is leased for the message.
    pub has_hop: bool,
}

/// The reply to a recipient that is not taken, and for which no hop is asked; none if the hop is to be.
pub async fn refuse(shared: &Shared, client: &Client, asked: Asked<'_>) -> Option<Reply> {
    let tables = &client.settings.recipients;
    if tables.is_empty() {
        return None;
    }
    let runtime = shared.runtime.borrow().clone();
    let way = way(shared, &runtime, &client.door, asked.has_hop);
    let Verdict { answer, by } = runtime.recipients.ask(tables, asked.to, way.as_ref()).await;
    let mut reply = answer.reply()?;
    count(&runtime.metrics, &answer);
    trace::sign(&mut reply, asked.id);
    let door = client.door.listener.protocol().name();
    let (Asked { id, client, from, to, .. }, why) = (asked, answer.reason());
    tracing::info!(id, door, client = %client.ip(), from = trace::address(from.as_str()), to = trace::address(to.as_str()), %reply, recipient = answer.name(), tables = by.group, table = %by, why, "recipient refused");
    Some(reply)
}

/// How the next hop is asked for recipients: not on the way of a single client, where it has one of its own.
fn way(shared: &Shared, runtime: &Runtime, door: &Door, has_hop: bool) -> Option<Way> {
    let common = runtime.doors.iter().find(|common| common.address == door.address)?;
    Some(Way {
        forward: common.route.clone(),
        has_hop,
        hostname: runtime.settings.hostname.clone(),
        leases: shared.upstreams.clone(),
        metrics: runtime.metrics.clone(),
    })
}

fn count(metrics: &Metrics, answer: &Answer) {
    match answer {
        Answer::Valid => {}
        Answer::Unknown(_) => metrics.recipients_unknown_total.add(1),
        Answer::Refused(_) => metrics.recipients_refused_total.add(1),
        Answer::Full(_) => metrics.recipients_full_total.add(1),
        Answer::Unsure { .. } => metrics.recipients_unsure_total.add(1),
    }
}
