//! Mail that goes out to recipients who have accounts here: delivered at once, their scripts run, as if it had come in.
//!
//! Where there is no relay, or the relay is the world ([`is_the_world`](crate::Relay::is_the_world)), and of mail that a door has inspected. All else goes to a next
//! hop of somebody's first, which may be the door of this gateway, and has its own way back.

use keep::content::Reader as _;
use keep::header::end_of_header;

use super::content::open;
use crate::delivery::{self, Arrived, Undelivered};
use crate::digest::Digest;
use crate::outbox::{Entry, Recipient};
use crate::relay::{Fate, Health, Outcome, Report};
use crate::site::Site;

/// Bytes of a mail that are copied at a time.
const PIECE_BYTES: usize = 64 << 10;

/// Bytes of a header that are looked at for what a gateway said.
const HEADER_BYTES_MAX: usize = 64 << 10;

/// The status of a recipient without an account.
const UNKNOWN: (u8, u16, u16) = (5, 1, 1);

/// Delivers a mail to those of the recipients that have accounts here; none where nobody has. Of a domain that has accounts, others
/// are unknown.
pub(super) async fn deliver(site: &Site, mail: u32, entry: &Entry, mine: &[Recipient]) -> Option<Report> {
    let is_the_world = site.relay.as_ref().is_none_or(|relay| relay.is_the_world());
    let is_local = is_the_world || (entry.is_inspected && all_are_here(site, mine).await);
    if !is_local {
        return None;
    }
    let report = deliver_to_all(site, mail, entry, mine, false).await;
    let is_ours = report.fates.iter().any(|fate| fate.status != UNKNOWN)
        || mine.first().is_some_and(|one| site.is_home(one.destination()));
    is_ours.then_some(report)
}

/// Delivers a mail of a domain whose mail server is this host: to accounts without a domain, too, as what comes to it from outside; none
/// where nobody has one.
pub(super) async fn deliver_as_its_host(site: &Site, mail: u32, entry: &Entry, mine: &[Recipient]) -> Option<Report> {
    let report = deliver_to_all(site, mail, entry, mine, true).await;
    report.fates.iter().any(|fate| fate.status != UNKNOWN).then_some(report)
}

async fn deliver_to_all(site: &Site, mail: u32, entry: &Entry, mine: &[Recipient], is_its_host: bool) -> Report {
    let mut fates = Vec::new();
    for recipient in mine {
        let found = match is_its_host {
            true => site.accounts.at(&recipient.to, &site.hostname).await,
            false => site.accounts.at_home(&recipient.to, &site.hostname).await,
        };
        fates.push(match found {
            Err(_) => Fate::later((4, 4, 3), "the recipient cannot be looked up now"),
            Ok(found) if found.is_empty() => Fate::never(UNKNOWN, "no such user"),
            Ok(found) => {
                let outcome = deliver_to(site, mail, entry, &recipient.to, found).await;
                outcome.unwrap_or_else(|| Fate::later((4, 3, 0), "it cannot be read"))
            }
        });
    }
    Report { fates, health: Health::Well }
}

/// Whether all of them have accounts here, as far as can be said now.
async fn all_are_here(site: &Site, mine: &[Recipient]) -> bool {
    for recipient in mine {
        if !is_here(site, &recipient.to).await {
            return false;
        }
    }
    true
}

/// Whether an address is that of an account here, as far as can be said now.
pub async fn is_here(site: &Site, address: &str) -> bool {
    site.accounts.at_home(address, &site.hostname).await.is_ok_and(|found| !found.is_empty())
}

async fn deliver_to(
    site: &Site,
    mail: u32,
    entry: &Entry,
    to: &str,
    accounts: Vec<crate::accounts::Recipient>,
) -> Option<Fate> {
    let return_path = format!("Return-Path: <{}>\r\n", entry.from);
    let front = format!("{return_path}Delivered-To: {to}\r\n{}", entry.trace);
    let mut body = open(site, mail)?;
    let (mut incoming, mut digest, mut header) = (site.store.incoming(), Digest::default(), Vec::new());
    let mut piece = front.into_bytes();
    let mut at = entry.skipped;
    loop {
        digest.read(&piece);
        let room = HEADER_BYTES_MAX.saturating_sub(header.len());
        header.extend_from_slice(piece.get(..room).unwrap_or(&piece));
        if let Err(error) = incoming.write(&piece).await {
            return Some(failed(&Undelivered::Failed(error)));
        }
        piece = vec![0; PIECE_BYTES];
        let length = tokio::task::block_in_place(|| body.read(at, &mut piece)).ok()?;
        piece.truncate(length);
        at += length as u64;
        if length == 0 {
            break;
        }
    }
    header.truncate(end_of_header(&header, 0).unwrap_or(HEADER_BYTES_MAX));
    let arrived = Arrived {
        from: entry.from.clone(),
        recipients: vec![(to.to_owned(), accounts)],
        incoming,
        digest: digest.finish(),
        header,
        return_path_bytes: return_path.len() as u64,
        is_one: true,
        is_inspected: entry.is_inspected || entry.is_answer,
        require_tls: entry.require_tls,
        relayed: None,
        queued: Some(mail),
    };
    let outcome = match delivery::deliver(site, arrived).await {
        Ok(outcomes) => outcomes.all.into_iter().next().unwrap_or(Ok(())),
        Err(error) => Err(Undelivered::Failed(error)),
    };
    Some(match outcome {
        Ok(()) => Fate { outcome: Outcome::Taken, ..Fate::later((2, 0, 0), "delivered") },
        Err(undelivered) => failed(&undelivered),
    })
}

fn failed(undelivered: &Undelivered) -> Fate {
    match undelivered {
        Undelivered::Rejected(reason) => Fate::never((5, 7, 1), reason.replace(['\r', '\n'], " ")),
        Undelivered::Failed(error) => Fate::later((4, 2, 0), error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use store::{Format, Options, Volume};

    use super::super::{Handover, attempt, hand_over};
    use super::*;
    use crate::accounts::{self, Accounts};
    use crate::file::File;
    use crate::outbox::waiting;
    use crate::relay::Gate;
    use crate::writer::Writer;

    /// A site with an account `ann`.
    fn site(folder: &std::path::Path) -> (Site, Writer) {
        let text = format!("ann:{}:\n", accounts::hash(b"secret").unwrap());
        std::fs::write(folder.join("accounts"), text).unwrap();
        let file = File::create(&folder.join("volume"), 64 << 20).unwrap();
        drop(Volume::format(file, &Format { segment_bytes: 1 << 20, ..Format::new(7, 1_000) }).unwrap());
        let volume = Volume::open(File::open(&folder.join("volume"), true).unwrap(), Options::default()).unwrap();
        let (writer, handle) = Writer::start(volume).unwrap();
        let accounts = Arc::new(Accounts::open(&folder.join("accounts")).unwrap());
        let (_, ending) = tokio::sync::watch::channel(false);
        (Site::new(handle, accounts, "mail.test".into(), 30 << 20, ending), writer)
    }

    fn in_inbox(site: &Site) -> usize {
        let state = site.store.state();
        let account = state.account_named(b"ann").map(|(number, _)| number);
        let inbox = account.and_then(|account| state.mailbox_named(account, b"INBOX"));
        inbox.map_or(0, |(_, inbox)| inbox.entries.len())
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_mail_that_was_delivered_before_a_kill_is_not_delivered_again() {
        let folder = tempfile::tempdir().unwrap();
        let (site, writer) = site(folder.path());
        let mut content = &b"To: ann\n\nbody\n"[..];
        let recipients = ["ann@mail.test", "nobody@mail.test"].map(str::to_owned).to_vec();
        let mail = Handover { user: "bob".into(), is_trusted: true, recipients, ..Handover::default() };
        hand_over(&site, mail, move |piece| std::io::Read::read(&mut content, piece)).await.unwrap();
        let (mail, entry) = waiting(&site.store.state()).remove(0);
        let report = deliver(&site, mail, &entry, &entry.recipients).await.unwrap();
        let outcomes: Vec<Outcome> = report.fates.iter().map(|fate| fate.outcome).collect();
        assert_eq!((outcomes, in_inbox(&site)), (vec![Outcome::Taken, Outcome::Never], 1));
        // A domain of nobody here is another site's, unless its mail server is this host.
        let at = |name: &str| [Recipient::new(format!("{name}@other.test"), 0)];
        assert!(deliver(&site, mail, &entry, &at("ann")).await.is_none());
        assert!(deliver_as_its_host(&site, mail, &entry, &at("nobody")).await.is_none());
        assert!(deliver_as_its_host(&site, mail, &entry, &at("ann")).await.is_some());
        // What came of it was not noted any more.
        attempt::attempt(&site, mail, "mail.test", Arc::new(Gate::default())).await;
        assert_eq!(in_inbox(&site), 2);
        let left = waiting(&site.store.state());
        let marks = outbox_marks(&site);
        assert!(left.iter().all(|(number, _)| *number != mail) && marks == 0, "{left:?}, {marks} marks");
        drop(site);
        writer.join().unwrap();
    }

    /// Annotations of the queue.
    fn outbox_marks(site: &Site) -> usize {
        crate::outbox::place(&site.store.state()).map_or(0, |(_, mailbox)| mailbox.annotations.iter().count())
    }
}
