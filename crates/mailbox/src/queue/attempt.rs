//! A mail is tried for one destination, and what comes of it is noted with the notifications that it makes: one transaction.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use keep::header::{end_of_header, fields};
use proto::smtp::{Body as BodyKind, MailFrom, Path};
use store::{Arrival, Error, Refused, Sealed, Transaction};

use super::content::{Source, open};
use super::leavings::Left;
use super::local;
use super::notice::{self, Event, Kind};
use crate::file::File;
use crate::inspecting;
use crate::outbox::{self, Entry, MAILBOX, Recipient, add, entry, note, one, place};
use crate::relay::{Content, Fate, Gate, Health, Outcome, Outgoing, Patience, Report, Sending};
use crate::site::{Site, seconds};

/// Bytes of a header that are looked at.
const HEADER_BYTES_MAX: usize = 256 << 10;

/// Fields `Received` of a mail that goes in circles (RFC 5321, section 6.3).
const RECEIVED_MAX: usize = 60;

/// The end of an attempt.
#[derive(Debug)]
pub(super) struct Ended {
    /// What was learned of the destination.
    pub health: Health,
    /// Outcomes that are not in the store yet.
    pub owed: Option<Owed>,
    /// A next hop may have the mail, and has not answered.
    pub left: Option<Left>,
}

/// Outcomes of a mail that are not in the store yet: its failures wait for those of its other destinations, and what finds no room for that.
#[derive(Debug)]
pub(super) struct Owed {
    pub entry: Entry,
    pub events: Vec<Event>,
    /// They could not be stored.
    pub is_refused: bool,
}

impl Ended {
    const fn learned(health: Health) -> Ended {
        Ended { health, owed: None, left: None }
    }

    const fn with(health: Health, owed: Option<Owed>) -> Ended {
        Ended { health, owed, left: None }
    }
}

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
    let (refused, mine) = suppressed(site, &entry, mine);
    if mine.is_empty() {
        return Ended::with(Health::Unknown, concluded(site, mail, entry, refused).await);
    }
    let (entry, outcome) = inspected(site, mail, entry).await;
    let sent = match outcome {
        Err(fate) => Sent::Report(Report::all(mine.len(), &fate, Health::Unknown)),
        Ok(()) => match local::deliver(site, mail, &entry, &mine).await {
            Some(report) => Sent::Report(report),
            None => send(site, mail, &entry, (destination, gate), &mine).await,
        },
    };
    let Report { fates, health } = match sent {
        Sent::Report(report) => report,
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
    let event = |recipient: &Recipient| {
        let fate = Fate::never((5, 0, 0), "it was given up by the operator of this server");
        Event { kind: Kind::Failed, is_refused: true, recipient: recipient.clone(), fate }
    };
    let events: Vec<Event> = entry.recipients.iter().filter(|one| is_meant(one)).map(event).collect();
    conclude(site, mail, entry, &Arc::new(events), Room::Any).await
}

/// Looks at a mail whose time has come: the sender is warned, or it is given up.
pub(super) async fn look(site: &Site, mail: u32, destination: &str) -> Ended {
    let Some(entry) = entry(&site.store.state(), mail) else { return Ended::learned(Health::Unknown) };
    let is_over = seconds().saturating_sub(entry.since) >= site.patience.whole;
    let is_meant = |one: &&Recipient| !is_over || one.destination() == destination;
    let event = |recipient: &Recipient| {
        let why = if recipient.why.is_empty() { "its host could not be reached" } else { &recipient.why };
        let host = Some(recipient.host.clone()).filter(|host| !host.is_empty());
        let (kind, status) = (if is_over { Kind::Failed } else { Kind::Delayed }, (4, 4, 7));
        let fate = Fate { host, ..Fate::later(status, why) };
        Event { kind, is_refused: false, fate, recipient: recipient.clone() }
    };
    let events = entry.recipients.iter().filter(is_meant).map(event).collect();
    let entry = Entry { is_warned: true, ..entry };
    Ended::with(Health::Unknown, concluded(site, mail, entry, events).await)
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
    let traits = source.scan(|source| Traits::of(source, entry.skipped));
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
    let needs_utf8 = entry.smtputf8 && traits.has_utf8_header || !entry.from.is_ascii();
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
    let at = offset.saturating_sub(trace.len() as u64).checked_add(skipped)?;
    let body = if at < source.size() { source.read(at)? } else { &[] };
    Some([fields, body].concat())
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

/// Traits of a mail that a next hop has to know.
#[derive(Debug, Default)]
struct Traits {
    /// Without its empty line.
    header: Vec<u8>,
    /// With it.
    header_bytes: u64,
    /// Its header is longer than what is looked at.
    is_cut: bool,
    is_eight_bit: bool,
    has_utf8_header: bool,
    /// The field `TLS-Required: No`.
    needs_no_tls: bool,
    received: usize,
}

impl Traits {
    /// Reads a mail from here on. What cannot be read is found out when it is sent.
    fn of(source: &mut Source<'_>, mut at: u64) -> Traits {
        let mut header = Vec::new();
        let mut end = None;
        while end.is_none() && header.len() < HEADER_BYTES_MAX {
            let Some(piece) = source.read(at + header.len() as u64) else { break };
            header.extend_from_slice(piece);
            end = end_of_header(&header, 0);
        }
        let is_cut = end.is_none_or(|end| end > HEADER_BYTES_MAX) && header.len() >= HEADER_BYTES_MAX;
        header.truncate(end.unwrap_or(header.len()).min(HEADER_BYTES_MAX));
        let is_trace = |field: &&[u8]| field.get(..9).is_some_and(|name| name.eq_ignore_ascii_case(b"received:"));
        let received = fields(&header).filter(is_trace).count();
        let header_bytes = header.len() as u64;
        if header.ends_with(b"\r\n\r\n") || *header == *b"\r\n" {
            header.truncate(header.len() - 2);
        }
        let has_utf8_header = !header.is_ascii();
        let needs_no_tls = fields(&header).any(needs_no_tls);
        let mut traits =
            Traits { header, header_bytes, is_cut, is_eight_bit: false, has_utf8_header, needs_no_tls, received };
        while let Some(piece) = source.read(at) {
            if !piece.is_ascii() {
                traits.is_eight_bit = true;
                break;
            }
            at += piece.len() as u64;
        }
        traits
    }
}

/// Whether a field is `TLS-Required: No`.
fn needs_no_tls(field: &[u8]) -> bool {
    const NAME: &[u8] = b"tls-required:";
    let is_named = field.get(..NAME.len()).is_some_and(|name| name.eq_ignore_ascii_case(NAME));
    is_named && field[NAME.len()..].trim_ascii().eq_ignore_ascii_case(b"no")
}

/// Notes what became of recipients, and tells who is to be told; returns what has to be noted later.
async fn concluded(site: &Site, mail: u32, entry: Entry, events: Vec<Event>) -> Option<Owed> {
    events.iter().for_each(|event| log(site, mail, &entry, event));
    let is_one = entry.destinations().len() == 1;
    let waits = |event: &Event| !is_one && event.kind == Kind::Failed && event.is_told(&entry);
    let (owed, now): (Vec<Event>, Vec<Event>) = events.into_iter().partition(waits);
    let mut left = if now.is_empty() { Vec::new() } else { noted(site, mail, &entry, now).await };
    let is_refused = !left.is_empty();
    left.extend(owed);
    (!left.is_empty()).then_some(Owed { entry, events: left, is_refused })
}

/// Notes what is owed; returns what has still to be.
pub(super) async fn settle(site: &Site, mail: u32, owed: Owed) -> Ended {
    let Owed { entry, mut events, .. } = owed;
    // Recipients may have been taken out meanwhile.
    let present = outbox::entry(&site.store.state(), mail).unwrap_or_default();
    events.retain(|event| present.recipients.iter().any(|one| one.to == event.recipient.to));
    let left = if events.is_empty() { events } else { noted(site, mail, &entry, events).await };
    let owed = (!left.is_empty()).then_some(Owed { entry, events: left, is_refused: true });
    Ended::with(Health::Unknown, owed)
}

fn log(site: &Site, mail: u32, entry: &Entry, event: &Event) {
    let Event { kind, fate, recipient, .. } = event;
    let counts = &site.queue.counts;
    match kind {
        Kind::Delivered | Kind::Relayed => counts.sent.fetch_add(1, Relaxed),
        Kind::Failed => counts.failed.fetch_add(1, Relaxed),
        Kind::Waits => counts.deferred.fetch_add(1, Relaxed),
        Kind::Delayed => 0,
    };
    let (account, from, host) = (&entry.account, notice::shown(&entry.from), fate.host.as_deref());
    match kind {
        Kind::Delivered | Kind::Relayed => {
            tracing::info!(mail, account, from, to = recipient.to, host, reply = fate.why, "sent on");
        }
        _ => {
            let given_up = *kind == Kind::Failed;
            tracing::warn!(mail, account, from, to = recipient.to, host, error = fate.why, given_up, "not sent on");
        }
    }
}

/// Notes outcomes, in a full store those that need no room; returns the others.
async fn noted(site: &Site, mail: u32, entry: &Entry, events: Vec<Event>) -> Vec<Event> {
    let all = Arc::new(events);
    let Err(error) = conclude(site, mail, entry, &all, Room::Any).await else { return Vec::new() };
    let account = &entry.account;
    tracing::error!(mail, account, %error, "outcome of an outgoing mail cannot be stored");
    // Its alarm comes again.
    let events = Arc::unwrap_or_clone(all).into_iter().filter(|event| event.kind != Kind::Delayed);
    let needs_room =
        |event: &Event| event.is_told(entry) || event.kind == Kind::Failed && is_kept(entry, event.is_refused);
    let (mut left, others): (Vec<Event>, Vec<Event>) = events.partition(needs_room);
    let others = Arc::new(others);
    if !others.is_empty() && conclude(site, mail, entry, &others, Room::AsBefore).await.is_err() {
        left.extend(Arc::unwrap_or_clone(others));
    }
    left
}

/// The room that a note may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Room {
    Any,
    /// No more than the one before: reasons stay what they were.
    AsBefore,
}

async fn conclude(site: &Site, mail: u32, entry: &Entry, events: &Arc<Vec<Event>>, room: Room) -> Result<(), Error> {
    let patience = site.patience;
    let keeps = events.iter().any(|event| event.kind == Kind::Failed && is_kept(entry, event.is_refused));
    let told: Vec<&Event> = events.iter().filter(|event| event.is_told(entry) && !keeps).collect();
    let text = match told.is_empty() {
        true => None,
        false => Some(notice::write(site, mail, entry, &told)),
    };
    let require_tls = entry.require_tls;
    // What is gone would be sent twice if it came back, and nothing is lost.
    let is_gone = events.iter().all(|event| matches!(event.kind, Kind::Delivered | Kind::Relayed));
    let (is_warned, is_inspected, address) = (entry.is_warned, entry.is_inspected, entry.from.clone());
    let (writer, skipped) = (entry.is_written.then(|| entry.account.clone()), entry.account.clone());
    let events = events.clone();
    let work = move |transaction: &mut Transaction<'_, File>, notice: Option<&Sealed>| {
        // Somebody may have changed it meanwhile, or taken it out.
        let Some(mut entry) = outbox::entry(transaction.state(), mail) else { return Ok(()) };
        let was_warned = std::mem::replace(&mut entry.is_warned, is_warned);
        entry.is_inspected |= is_inspected;
        if events.iter().all(|event| event.kind == Kind::Delayed) && was_warned {
            return Ok(());
        }
        let now = seconds();
        for event in events.iter() {
            apply(&mut entry, event, room, patience, now);
        }
        if keeps {
            keep(transaction, mail, &skipped)?;
        }
        note(transaction, mail, &entry)?;
        match (notice, writer) {
            (None, _) => Ok(()),
            (Some(sealed), Some(account)) => tell_writer(transaction, sealed, &account),
            (Some(sealed), None) => add(transaction, sealed, &Entry { require_tls, ..Entry::answer(address, now) }),
        }
    };
    let Some(text) = text else {
        let work = move |transaction: &mut Transaction<'_, File>| work(transaction, None);
        return if is_gone { site.store.transact_unflushed(work).await } else { site.store.transact(work).await };
    };
    let mut incoming = site.store.incoming();
    let mut digest = crate::digest::Digest::default();
    digest.read(&text);
    incoming.write(&text).await?;
    incoming.finish(digest.finish(), move |transaction, sealed| work(transaction, Some(sealed))).await?;
    site.queue.wake.wake();
    Ok(())
}

/// An outcome of a recipient, in the entry of its mail.
fn apply(entry: &mut Entry, event: &Event, room: Room, patience: Patience, now: i64) {
    let Some(at) = entry.recipients.iter().position(|one| one.to == event.recipient.to) else { return };
    match event.kind {
        Kind::Delayed => {}
        Kind::Waits => {
            let Some(one) = entry.recipients.get_mut(at) else { return };
            let (mut why, host, tries) = (one.why.clone(), one.host.clone(), one.tries);
            one.after(&event.fate, patience, now);
            if room == Room::AsBefore {
                if one.tries.to_string().len() > tries.to_string().len() {
                    why.pop();
                }
                (one.why, one.host) = (why, host);
            }
        }
        Kind::Failed | Kind::Delivered | Kind::Relayed => _ = entry.recipients.swap_remove(at),
    }
}

/// Whether a mail that does not go out is kept: one that a script has redirected, and that is nowhere else.
fn is_kept(entry: &Entry, is_refused: bool) -> bool {
    let is_redirect = !entry.account.is_empty() && !entry.is_written;
    is_redirect && !entry.is_stored && (is_refused || entry.from.is_empty() || entry.is_spam)
}

/// The account is told in its INBOX. Without room there nobody is told, and the queue goes on.
fn tell_writer(transaction: &mut Transaction<'_, File>, sealed: &Sealed, account: &str) -> Result<(), Error> {
    let state = transaction.state();
    let account = state.account_named(account.as_bytes()).map(|(number, _)| number);
    let inbox = account.and_then(|account| state.mailbox_named(account, MAILBOX)).map(|(inbox, _)| inbox);
    let Some(inbox) = inbox else { return Ok(()) };
    let now = seconds();
    match transaction.deliver(sealed, inbox, &Arrival { date: now, now, ..Arrival::default() }) {
        Err(Error::Refused(Refused::OverQuota)) => Ok(()),
        outcome => outcome.map(drop),
    }
}

fn keep(transaction: &mut Transaction<'_, File>, mail: u32, account: &str) -> Result<(), Error> {
    let state = transaction.state();
    let Some((queue, _)) = place(state) else { return Ok(()) };
    let account = state.account_named(account.as_bytes()).map(|(number, _)| number);
    if let Some((inbox, _)) = account.and_then(|account| state.mailbox_named(account, MAILBOX)) {
        transaction.copy(queue, inbox, &one(mail), seconds())?;
    }
    Ok(())
}
