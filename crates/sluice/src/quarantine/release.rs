//! Sending a message on after all: its original envelope, to the next hop, without another inspection.
//!
//! The mail is locked while it is sent, so that two releases cannot both send it. It is marked when the hop has taken
//! it: a crash in between leaves it as it was, to be released again and perhaps to arrive twice, never to be lost.
//! Recipients that have it are not sent it again.

use std::fs::File;
use std::io::Read as _;

use edge::quarantine::{Kept, Recipient, Release, now};
use edge::upstream::hop::Hop;
use edge::upstream::route::Route;
use edge::upstream::smtp_hop::{Leases, Peer};
use proto::smtp::{RcptTo, Reply};

use crate::output::Failure;

/// Bytes read from a mail at a time.
const PIECE_BYTES: usize = 64 << 10;

/// The verbs of the audit log.
pub const RELEASED: &str = "released mail of the quarantine";
pub const DELETED: &str = "deleted mail of the quarantine";

/// How each recipient fared.
pub struct Outcome {
    /// Recipients accepted by the hop.
    pub taken: Vec<String>,
    /// Recipients refused by the hop, with its replies.
    pub refused: Vec<(String, Reply)>,
}

/// Sends a message to those of its recipients who do not have it; with `again`, to all.
///
/// # Errors
/// When another command is using it, a file cannot be read or written, or its envelope is none. What the hop says against it
/// is no error.
pub async fn release(kept: &mut Kept, route: &Route, hostname: &str, again: bool) -> Result<Outcome, Failure> {
    let mail = edge::quarantine::read(&kept.mail())?;
    if !edge::quarantine::lock(&mail)? {
        return Err("it is being released already".into());
    }
    // What was read before the lock may be old.
    *kept = Kept::open(&kept.folder, &kept.facts.id)?;
    if kept.facts.mailbox.is_some() {
        return Err("it was kept from a mailbox and has no envelope; show --raw prints it".into());
    }
    let recipients: Vec<RcptTo> = match again {
        true => kept.facts.envelope.to.iter().map(Recipient::rcpt).collect::<Result<_, _>>()?,
        false => kept.facts.waiting().map(Recipient::rcpt).collect::<Result<_, _>>()?,
    };
    if recipients.is_empty() {
        return Err("all of its recipients have it already; --again sends it again".into());
    }
    let sent = send(kept, &mail, recipients, route, hostname).await?;
    let mut outcome = Outcome { taken: Vec::new(), refused: Vec::new() };
    let mut word = None;
    for (rcpt, reply) in sent {
        let address = rcpt.path.as_str().to_string();
        if reply.is_positive() {
            word.get_or_insert_with(|| reply.to_string());
            outcome.taken.push(address);
        } else {
            outcome.refused.push((address, reply));
        }
    }
    if let Some(reply) = word {
        let (date, hop, to) = (now(), route.forward.to_string(), outcome.taken.clone());
        kept.facts.releases.push(Release { date, hop, to, reply });
        kept.rewrite().map_err(|error| format!("it was sent, and could not be marked as released: {error}"))?;
    }
    Ok(outcome)
}

/// One transaction; returns what became of each recipient.
async fn send(
    kept: &Kept,
    mail: &File,
    recipients: Vec<RcptTo>,
    route: &Route,
    hostname: &str,
) -> Result<Vec<(RcptTo, Reply)>, Failure> {
    let facts = &kept.facts;
    let leases = Leases::default();
    let from = facts.envelope.mail(kept.bytes + facts.trace.len() as u64)?;
    let peer = Peer { address: facts.client, port: 0, hello: &facts.hello, xforward: &[], lmtp: true };
    let mut hop: Option<Hop> = None;
    let mut fates = Vec::new();
    for rcpt in recipients {
        let reply = match &mut hop {
            Some(hop) => hop.recipient(&rcpt).await,
            None => {
                let (leased, reply) = Hop::lease(route, hostname, &leases, &from, &rcpt, &peer).await;
                hop = leased;
                // A store says at once which account it does not know.
                if hop.is_some() { reply } else { route.facts.refusal().unwrap_or(reply) }
            }
        };
        fates.push((rcpt, reply));
    }
    let Some(mut hop) = hop else { return Ok(fates) };
    if !fates.iter().any(|(_, reply)| reply.is_positive()) {
        hop.abandon(&leases).await;
        return Ok(fates);
    }
    let replies = match content(&mut hop, facts.trace.as_bytes(), mail).await? {
        Ok(()) => {
            let mut replies = vec![hop.commit().await];
            while let Some(reply) = hop.another().await {
                replies.push(reply);
            }
            replies
        }
        Err(reply) => vec![reply],
    };
    let taken = fates.iter_mut().filter(|(_, reply)| reply.is_positive());
    for (index, (_, fate)) in taken.enumerate() {
        // A hop that gave one reply gave it for all.
        *fate = replies.get(index).unwrap_or(&replies[0]).clone();
    }
    Ok(fates)
}

/// Hands the hop the content; its own refusal is the inner error.
async fn content(hop: &mut Hop, trace: &[u8], mut mail: &File) -> std::io::Result<Result<(), Reply>> {
    if let Err(reply) = hop.begin().await {
        return Ok(Err(reply));
    }
    let mut outcome = hop.write(trace).await;
    let mut lines = Lines::default();
    let mut piece = vec![0; PIECE_BYTES];
    while outcome.is_ok() {
        let count = mail.read(&mut piece)?;
        if count == 0 {
            break;
        }
        outcome = hop.write(&lines.normalise(&piece[..count])).await;
    }
    match outcome {
        Ok(()) => Ok(hop.flush().await),
        refused => Ok(refused),
    }
}

/// Makes every line end CRLF: `serve` writes nothing else, but somebody may have edited the file.
#[derive(Default)]
struct Lines {
    carriage_return: bool,
}

impl Lines {
    fn normalise(&mut self, content: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(content.len() + 64);
        for &byte in content {
            match (std::mem::replace(&mut self.carriage_return, byte == b'\r'), byte) {
                (true, b'\n') => {}
                (_, b'\r' | b'\n') => out.extend_from_slice(b"\r\n"),
                (_, byte) => out.push(byte),
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends_become_crlf_wherever_the_pieces_are_cut() {
        let content = b"a\r\nb\nc\rd\r\r\n\n.\r";
        let whole = Lines::default().normalise(content);
        assert_eq!(whole, b"a\r\nb\r\nc\r\nd\r\n\r\n\r\n.\r\n");
        for cut in 0..content.len() {
            let mut lines = Lines::default();
            let pieces = [lines.normalise(&content[..cut]), lines.normalise(&content[cut..])].concat();
            assert_eq!(pieces, whole, "cut at {cut}");
        }
    }
}
