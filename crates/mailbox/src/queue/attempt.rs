//! A mail is tried for one destination; [`outcome`](super::outcome) notes what comes of it.

use std::sync::Arc;

use proto::smtp::{Body as BodyKind, MailFrom, Path};
use store::Error;

use super::content::{Source, open};
use super::local;
use super::notice::{Event, Kind};
use super::outcome::{Ended, Room, conclude, concluded, given_up};
use super::traits::Traits;
use crate::inspecting;
use crate::outbox::{self, Entry, Left, Recipient, entry, words_of};
use crate::relay::{Content, Fate, Gate, Health, NAMES_US, Outcome, Outgoing, Report, Sending};
use crate::site::{Site, seconds};

/// Bytes of a piece that the next hop gets at least, but for the last one.
const PIECE_BYTES_MIN: usize = 16 << 10;

/// Fields `Received` of a mail that goes in circles (RFC 5321, section 6.3).
const RECEIVED_MAX: usize = 60;

/// How sending has ended.
enum Sent {
    Report(Report),
    /// The answer to the final dot is left to somebody else.
    Left(Sending),
}

/// Tries to send a mail, and notes what came of it.
pub(super) async fn attempt(site: &Site, mail: u32, destination: &str, gate: Arc<Gate>) -> Ended {
    let Some(entry) = entry(&site.store.state(), mail) else { return Ended::learned(Health::Unknown) };
    let mine: Vec<Recipient> =
        entry.recipients.iter().filter(|one| one.destination() == destination).cloned().collect();
    if mine.is_empty() || entry.is_held {
        return Ended::learned(Health::Unknown);
    }
    let now = seconds();
    let is_over = now.saturating_sub(entry.since) >= site.patience.whole;
    let (mut refused, mine) = settled(site, mail, mine);
    let (suppressed, mine) = suppressed(site, &entry, mine);
    refused.extend(suppressed);
    if mine.is_empty() {
        return Ended::with(Health::Unknown, concluded(site, mail, entry, refused).await);
    }
    let (entry, outcome) = inspected(site, mail, entry).await;
    let sent = match outcome {
        Err(fate) => Sent::Report(Report::all(mine.len(), &fate, Health::Unknown)),
        Ok(()) => match local::deliver(site, mail, &entry, &mine).await {
            Some(report) => Sent::Report(report),
            None => match send(site, mail, &entry, (destination, gate), &mine).await {
                Sent::Report(report) if report.fates.iter().all(|fate| fate.why.ends_with(NAMES_US)) => {
                    Sent::Report(local::deliver_as_its_host(site, mail, &entry, &mine).await.unwrap_or(report))
                }
                sent => sent,
            },
        },
    };
    let Report { fates, health } = match sent {
        Sent::Report(report) => {
            let fault = report.fates.iter().find(|fate| report.health == Health::Ill && fate.outcome == Outcome::Later);
            fault.into_iter().for_each(|fate| site.queue.schedule().tell(destination, words_of(fate)));
            report
        }
        Sent::Left(sending) => {
            let owed = if refused.is_empty() { None } else { concluded(site, mail, entry, refused).await };
            let recipients = mine.into_iter().map(|one| one.to).collect();
            let left = Some(Left { mail, destination: destination.to_owned(), recipients, sending });
            return Ended { left, ..Ended::with(Health::Unknown, owed) };
        }
    };
    let events = mine.into_iter().zip(fates).map(|(recipient, fate)| event(recipient, fate, is_over));
    let events = refused.into_iter().chain(events).collect();
    Ended::with(health, concluded(site, mail, entry, events).await)
}

/// Notes outcomes that came after the process which had sent the mail has closed the store.
pub(super) async fn answered(site: &Site, mail: u32, fates: Vec<(String, Fate)>) -> Ended {
    let Some(entry) = entry(&site.store.state(), mail) else { return Ended::learned(Health::Unknown) };
    let is_over = seconds().saturating_sub(entry.since) >= site.patience.whole;
    let of = |(to, fate): (String, Fate)| {
        let recipient = entry.recipients.iter().find(|one| one.to == to)?;
        Some(event(recipient.clone(), fate, is_over))
    };
    let events: Vec<Event> = fates.into_iter().filter_map(of).collect();
    match events.is_empty() {
        true => Ended::learned(Health::Unknown),
        false => Ended::with(Health::Unknown, concluded(site, mail, entry, events).await),
    }
}

/// Divides recipients by those of whom nothing is to be tried: one here that has the mail already, and one that an operator has given up.
fn settled(site: &Site, mail: u32, mine: Vec<Recipient>) -> (Vec<Event>, Vec<Recipient>) {
    let state = site.store.state();
    let (mut events, mut left) = (Vec::new(), Vec::new());
    for one in mine {
        match outcome(&state, mail, &one) {
            Some(fate) => events.push(event(one, fate, false)),
            None => left.push(one),
        }
    }
    (events, left)
}

/// The outcome of a recipient that is known without an attempt.
fn outcome(state: &store::State, mail: u32, one: &Recipient) -> Option<Fate> {
    if outbox::is_delivered(state, mail, &one.to) {
        return Some(Fate { outcome: Outcome::Taken, ..Fate::later((2, 0, 0), "delivered") });
    }
    one.is_given_up.then(given_up)
}

/// Divides recipients by those who get no more mail of accounts. What has no sender goes to them all the same.
fn suppressed(site: &Site, entry: &Entry, mine: Vec<Recipient>) -> (Vec<Event>, Vec<Recipient>) {
    if !entry.is_ours() || entry.from.is_empty() {
        return (Vec::new(), mine);
    }
    let state = site.store.state();
    let (refused, mine): (Vec<_>, Vec<_>) = mine.into_iter().partition(|one| outbox::is_suppressed(&state, &one.to));
    let refusal = |one| event(one, Fate::never((5, 7, 1), outbox::SUPPRESSED), false);
    (refused.into_iter().map(refusal).collect(), mine)
}

/// Has a mail inspected that was written here and that no door has seen. What it may not hold is not sent.
async fn inspected(site: &Site, mail: u32, entry: Entry) -> (Entry, Result<(), Fate>) {
    let Some(guard) = site.guard.as_deref().filter(|_| entry.is_ours() && !entry.is_inspected) else {
        return (entry, Ok(()));
    };
    let unread = Fate::later((4, 3, 0), "it cannot be inspected now");
    let Some(mut body) = open(site, mail) else { return (entry, Err(unread)) };
    match inspecting::forbidden(guard, &mut body, entry.skipped).await {
        Ok(None) => (Entry { is_inspected: true, ..entry }, Ok(())),
        Ok(Some(name)) => (entry, Err(Fate::never((5, 7, 1), format!("it is not sent, since it holds {name}")))),
        Err(error) => {
            tracing::warn!(mail, account = entry.account, ?error, "an outgoing mail cannot be inspected");
            (entry, Err(unread))
        }
    }
}

/// Gives up recipients of a mail, since an operator wants it.
pub(super) async fn give_up(
    site: &Site,
    mail: u32,
    entry: &Entry,
    is_meant: impl Fn(&Recipient) -> bool,
) -> Result<(), Error> {
    let state = site.store.state();
    let event = |one: &Recipient| event(one.clone(), outcome(&state, mail, one).unwrap_or_else(given_up), false);
    let events: Vec<Event> = entry.recipients.iter().filter(|one| is_meant(one)).map(event).collect();
    if events.is_empty() {
        return Ok(());
    }
    conclude(site, mail, entry, &Arc::new(events), Room::Any).await
}

/// Looks at a mail whose time has come: the sender is warned, or it is given up.
pub(super) async fn look(site: &Site, mail: u32, destination: &str) -> Ended {
    let Some(entry) = entry(&site.store.state(), mail) else { return Ended::learned(Health::Unknown) };
    let is_over = seconds().saturating_sub(entry.since) >= site.patience.whole;
    let is_meant = |one: &&Recipient| !is_over || one.destination() == destination;
    let state = site.store.state();
    let event = |recipient: &Recipient| {
        if let Some(fate) = outcome(&state, mail, recipient) {
            return event(recipient.clone(), fate, false);
        }
        // A destination that rests does so for a reason that other mails have met.
        let fault = site.queue.schedule().fault(recipient.destination());
        let why = [recipient.why.as_str(), &fault].into_iter().find(|why| !why.is_empty());
        let why = why.unwrap_or("4.4.1 its host could not be reached");
        let host = Some(recipient.host.clone()).filter(|host| !host.is_empty());
        let (status, why) = status_of(host.is_some(), why);
        let kind = if is_over { Kind::Failed } else { Kind::Delayed };
        let status = if is_over { (4, 4, 7) } else { status };
        let fate = Fate { host, ..Fate::later(status, why) };
        Event { kind, is_refused: false, fate, recipient: recipient.clone() }
    };
    let events = entry.recipients.iter().filter(is_meant).map(event).collect();
    let entry = Entry { is_warned: true, ..entry };
    Ended::with(Health::Unknown, concluded(site, mail, entry, events).await)
}

/// The status of a recipient that waits and the words about it: a host has a number in front, and stays as it is; ours have the status.
fn status_of(is_host: bool, why: &str) -> ((u8, u16, u16), &str) {
    let mut words = why.splitn(3, ' ');
    let status = if is_host { words.nth(1) } else { words.next() };
    let mut numbers = status.unwrap_or_default().splitn(3, '.');
    let mut number = || numbers.next().filter(|text| text.len() <= 3).and_then(|text| text.parse().ok());
    match (number(), number(), number()) {
        (Some(4), Some(subject), Some(detail)) if is_host => ((4, subject, detail), why),
        (Some(4 | 5), Some(subject), Some(detail)) if !is_host => {
            ((4, subject, detail), why.split_once(' ').map_or(why, |(_, words)| words))
        }
        _ if is_host => ((4, 0, 0), why),
        _ => ((4, 4, 0), why),
    }
}

fn event(recipient: Recipient, fate: Fate, is_over: bool) -> Event {
    let kind = match fate.outcome {
        Outcome::Taken if fate.host.is_none() => Kind::Delivered,
        Outcome::Taken => Kind::Relayed,
        Outcome::Never => Kind::Failed,
        Outcome::Later if is_over => Kind::Failed,
        Outcome::Later => Kind::Waits,
    };
    Event { kind, is_refused: fate.outcome == Outcome::Never, fate, recipient }
}

async fn send(
    site: &Site,
    mail: u32,
    entry: &Entry,
    (destination, gate): (&str, Arc<Gate>),
    mine: &[Recipient],
) -> Sent {
    let now = |fate: Fate| Sent::Report(Report::all(mine.len(), &fate, Health::Unknown));
    let Some(relay) = &site.relay else { return now(Fate::later((4, 3, 5), "there is no relay")) };
    let Some(body) = open(site, mail) else { return now(Fate::later((4, 3, 0), "it cannot be read")) };
    let mut source = Source::new(body);
    let Some(mut mail_from) = entry.mail() else {
        return now(Fate::never((5, 1, 7), format!("{:?} is not an address", entry.from)));
    };
    if let Some(path) = rewritten(site, entry) {
        mail_from.path = path;
    }
    let recipients: Option<Vec<_>> = mine.iter().map(Recipient::rcpt).collect();
    let Some(recipients) = recipients else { return now(Fate::never((5, 1, 3), "it is not an address")) };
    let traits = source.scan(|source| {
        source.break_lines(entry.skipped);
        Traits::of(source, entry.skipped)
    });
    if traits.received > RECEIVED_MAX {
        return now(Fate::never((5, 4, 6), "it goes in circles: it has too many fields Received"));
    }
    let mut trace = entry.trace.clone();
    if entry.is_ours()
        && let Some(fields) = signatures(site, &mut source, entry, &traits)
    {
        trace.insert_str(0, &fields);
    }
    let trace = trace.as_bytes();
    let bytes = (trace.len() as u64).saturating_add(source.size().saturating_sub(entry.skipped));
    let needs_utf8 = entry.smtputf8 && traits.has_utf8_header || mail_from.path.needs_utf8();
    let smtputf8 = needs_utf8 || mine.iter().any(|one| !one.to.is_ascii());
    let body_kind = traits.is_eight_bit.then_some(BodyKind::EightBit);
    let mail_from = MailFrom { size: Some(bytes), body: body_kind, smtputf8, ..mail_from };
    let (content, mut pieces) = Content::new();
    let needs_no_tls = traits.needs_no_tls && !mail_from.require_tls;
    let destination = destination.into();
    let passed = gate.clone();
    let mut sending =
        relay.send(Outgoing { destination, mail: mail_from, needs_no_tls, recipients, bytes, content, gate });
    let feeding = async {
        while let Some((offset, tell)) = pieces.next().await {
            let _ = tell.send(piece(&mut source, trace, entry.skipped, offset));
        }
        passed.left().await;
    };
    let report = tokio::select! {
        report = &mut sending => report,
        () = feeding => return Sent::Left(sending),
        () = passed.left() => return Sent::Left(sending),
    };
    match report.fates.len() == mine.len() {
        true => Sent::Report(report),
        false => now(Fate::later((4, 3, 0), "the relay has ended")),
    }
}

/// The sender of a mail that a script forwards, where senders are rewritten.
fn rewritten(site: &Site, entry: &Entry) -> Option<Path> {
    let is_forwarded = !entry.account.is_empty() && !entry.is_written && !entry.from.is_empty();
    let rewriter = site.rewriter.as_ref().filter(|_| is_forwarded)?;
    rewriter.forward(&entry.from, seconds())?.parse().ok()
}

/// The piece that the next hop reads at an offset: fields of ours, then the mail without what is skipped.
fn piece(source: &mut Source<'_>, trace: &[u8], skipped: u64, offset: u64) -> Option<Vec<u8>> {
    let fields = usize::try_from(offset).ok().and_then(|at| trace.get(at..)).unwrap_or_default();
    let mut at = offset.saturating_sub(trace.len() as u64).checked_add(skipped)?;
    let mut piece = fields.to_vec();
    // Broken lines come in small pieces.
    while at < source.size() && piece.len() < PIECE_BYTES_MIN {
        let body = source.read(at)?;
        at += body.len() as u64;
        piece.extend_from_slice(body);
    }
    Some(piece)
}

/// The signatures of a mail that an account here has written, for the domain of its sender.
fn signatures(site: &Site, source: &mut Source<'_>, entry: &Entry, traits: &Traits) -> Option<String> {
    let (_, domain) = entry.from.rsplit_once('@')?;
    let header = [entry.trace.as_bytes(), &traits.header].concat();
    let mut signing = site.signer.as_ref()?.begin(&domain.to_ascii_lowercase(), header)?;
    if traits.is_cut {
        tracing::warn!(account = entry.account, "a mail with a header beyond 256 KiB is not signed");
        return None;
    }
    let mut at = entry.skipped.checked_add(traits.header_bytes)?;
    tokio::task::block_in_place(|| {
        while let Some(piece) = source.read(at) {
            signing.feed(piece);
            at += piece.len() as u64;
        }
        (at >= source.size()).then(|| signing.finish())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mail_that_is_delayed_has_the_status_of_its_host_or_ours() {
        assert_eq!(status_of(true, "451 4.7.1 Greylisted"), ((4, 7, 1), "451 4.7.1 Greylisted"));
        for why in ["450 try later", "450 5.7.1 odd", "450 4.7 odd", "450 4.7.1234 odd", "450", ""] {
            assert_eq!(status_of(true, why), ((4, 0, 0), why));
        }
        assert_eq!(status_of(false, "4.7.4 STARTTLS is not offered"), ((4, 7, 4), "STARTTLS is not offered"));
        assert_eq!(status_of(false, "words of ours"), ((4, 4, 0), "words of ours"));
    }
}
