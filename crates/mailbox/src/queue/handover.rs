//! Mail that commands on this machine hand over: taken into the queue as a user has written it.
//!
//! The sender is the user at this host, or an address of the account of the same name; users that are trusted may name any. Line ends
//! become CRLF, text that is no header gets an empty line in front, addresses get a domain, and what a new mail lacks is added. `Received`
//! names the user.

use std::io;
use std::sync::Arc;

use keep::header::{fields, is_named};
use proto::imap::date;
use proto::smtp::Return;
use store::{Error, Refused, Sealed, Transaction};

use super::notice::{self, Event, Kind};
use super::qualified::qualified;
use crate::accounts::Account;
use crate::digest::Digest;
use crate::file::File;
use crate::header::{cleaned, end_of_fields, missing, name_of, random};
use crate::lmtp::is_of;
use crate::outbox::{self, Entry, Recipient};
use crate::relay::Fate;
use crate::site::{Site, seconds};

/// Bytes that are read at a time.
const PIECE_BYTES: usize = 64 << 10;

/// The longest header, in bytes.
const HEADER_BYTES_MAX: usize = 1 << 20;

/// Recipients of one entry of the queue: a mail to more is several.
const RECIPIENTS_MAX: usize = 1_000;

/// The number of no mail: the first has 1.
const NO_MAIL: u32 = 0;

/// Recipients that a notification of a mail that is not taken names.
const NAMED_MAX: usize = 100;

/// A mail of a user.
#[derive(Debug, Clone, Default)]
pub struct Handover {
    /// The key by which the queue remembers that it has the mail, until that is [forgotten](forget); empty if it need not.
    pub key: String,
    /// The login name.
    pub user: String,
    /// Its number.
    pub number: u32,
    /// It may send as anybody, and as much as it wants.
    pub is_trusted: bool,
    /// The sender that is asked for; empty is the null sender, and none the user.
    pub from: Option<String>,
    /// The name of the sender.
    pub name: String,
    /// Addresses; without a domain at this host.
    pub recipients: Vec<String>,
    /// `NOTIFY=` of all.
    pub notify: String,
    /// `RET=`
    pub ret: Option<Return>,
    /// `ENVID=`
    pub envid: String,
}

/// Why a mail was not taken.
#[derive(Debug)]
pub enum Untaken {
    /// It may be later.
    Later(String),
    /// It will not be.
    Never(String),
}

/// Takes a mail into the queue, once by its key; `read` reads its content, and is called where it may block. Of one that is never taken its
/// sender gets a notification.
///
/// # Errors
/// When it is not on stable storage.
pub async fn hand_over(
    site: &Site,
    mail: Handover,
    read: impl FnMut(&mut [u8]) -> io::Result<usize> + Send,
) -> Result<(), Untaken> {
    if !mail.key.is_empty() && outbox::is_taken(&site.store.state(), &mail.key) {
        return Ok(());
    }
    let from = sender(site, &mail).await?;
    let outcome = take(site, &mail, from.clone(), read).await;
    if let Err(Untaken::Never(why)) = &outcome
        && let Err(error) = send_back(site, &mail, from, why).await
    {
        tracing::warn!(user = mail.user, %error, "the sender of a refused mail cannot be notified");
    }
    outcome
}

/// Forgets mails by their keys: for those whose files are gone.
///
/// # Errors
/// When that is not on stable storage.
pub async fn forget(site: &Site, keys: Vec<String>) -> Result<(), Error> {
    let work = move |transaction: &mut Transaction<'_, File>| {
        keys.iter().try_for_each(|key| outbox::forget_taken(transaction, key))
    };
    site.store.transact(work).await
}

async fn take(
    site: &Site,
    mail: &Handover,
    from: String,
    mut read: impl FnMut(&mut [u8]) -> io::Result<usize> + Send,
) -> Result<(), Untaken> {
    let count = u32::try_from(mail.recipients.len()).unwrap_or(u32::MAX);
    let most = if mail.is_trusted { 0 } else { site.recipients_hour_max };
    if most > 0 && count > most {
        return Err(Untaken::Never(format!("it has {count} recipients, and a user may send to {most} in an hour")));
    }
    let (mut incoming, mut digest, mut content) =
        (site.store.incoming(), Digest::default(), Content::of(&site.hostname));
    let (mut piece, mut goes_on) = (vec![0; PIECE_BYTES], true);
    while goes_on {
        let length = tokio::task::block_in_place(|| read(&mut piece));
        let length = length.map_err(|error| Untaken::Later(format!("it cannot be read: {error}")))?;
        goes_on = length > 0;
        let out = content.add(piece.get(..length).unwrap_or_default());
        if content.is_too_long {
            return Err(Untaken::Never("its header is longer than 1 MiB".into()));
        }
        digest.read(&out);
        incoming.write(&out).await.map_err(untaken)?;
        if incoming.size() > site.message_bytes_max {
            return Err(Untaken::Never(format!("it is longer than {} bytes", site.message_bytes_max)));
        }
    }
    if fields(&content.header).filter(|field| is_named(field, b"from")).count() > 1 {
        return Err(Untaken::Never("it has several From fields".into()));
    }
    if !site.may_send(&format!("user {}", mail.user), count, most) {
        return Err(Untaken::Later("its user sends to too many within an hour".into()));
    }
    let entries = entries(site, mail, &from, &content.header);
    let key = mail.key.clone();
    let work = move |transaction: &mut Transaction<'_, File>, sealed: &Sealed| {
        entries.iter().try_for_each(|entry| outbox::add(transaction, sealed, entry))?;
        if key.is_empty() { Ok(()) } else { outbox::remember_taken(transaction, &key) }
    };
    let bytes = incoming.size();
    incoming.finish(digest.finish(), work).await.map_err(untaken)?;
    tracing::info!(user = mail.user, from, recipients = count, bytes, "a command has sent a mail");
    site.queue.wake.wake();
    Ok(())
}

/// Tells the sender of a mail that it is never taken.
async fn send_back(site: &Site, mail: &Handover, from: String, why: &str) -> Result<(), Error> {
    let some = mail.recipients.get(..NAMED_MAX).unwrap_or(&mail.recipients);
    let part = Handover { recipients: some.to_vec(), ..mail.clone() };
    let Some(entry) = entries(site, &part, &from, b"").pop().filter(Entry::has_sender) else { return Ok(()) };
    let event = |recipient: &Recipient| {
        let fate = Fate::never((5, 3, 4), format!("The mail was not sent: {why}"));
        Event { kind: Kind::Failed, is_refused: true, recipient: recipient.clone(), fate }
    };
    let events: Vec<Event> = entry.recipients.iter().map(event).collect();
    let told: Vec<&Event> = events.iter().filter(|event| event.is_told(&entry)).collect();
    if told.is_empty() {
        return Ok(());
    }
    let text = notice::write(site, NO_MAIL, &entry, &told);
    let mut digest = Digest::default();
    digest.read(&text);
    let mut incoming = site.store.incoming();
    incoming.write(&text).await?;
    let answer = Entry::answer(from, seconds());
    let work =
        move |transaction: &mut Transaction<'_, File>, sealed: &Sealed| outbox::add(transaction, sealed, &answer);
    incoming.finish(digest.finish(), work).await?;
    site.queue.wake.wake();
    Ok(())
}

fn untaken(error: Error) -> Untaken {
    match error {
        Error::Refused(Refused::TooLarge) => Untaken::Never(error.to_string()),
        error => Untaken::Later(error.to_string()),
    }
}

/// The sender of the envelope: the one that is asked for if the user may, else the user.
async fn sender(site: &Site, mail: &Handover) -> Result<String, Untaken> {
    let own = format!("{}@{}", mail.user, site.hostname);
    let Some(from) = mail.from.as_ref() else { return Ok(own) };
    if from.is_empty() {
        return Ok(String::new());
    }
    let from = if from.contains('@') { from.clone() } else { format!("{from}@{}", site.hostname) };
    if mail.is_trusted {
        return Ok(from);
    }
    let account = site.accounts.named(&mail.user, false).await;
    let account = account.map_err(|why| Untaken::Later(format!("its user cannot be looked up: {why}")))?;
    let account = account.or_else(|| Account::new(&mail.user).ok().map(Arc::new));
    let is_own = match account {
        Some(account) => is_of(site, &account, &from).await,
        None => false,
    };
    Ok(if is_own { from } else { own })
}

/// The entries of a mail, a part of its recipients each.
fn entries(site: &Site, mail: &Handover, from: &str, header: &[u8]) -> Vec<Entry> {
    let (now, hostname) = (seconds(), &site.hostname);
    let own = format!("{}@{hostname}", mail.user);
    let address = if from.is_empty() { &own } else { from };
    let author = match mail.name.is_empty() {
        true => address.to_owned(),
        false => format!("{} <{address}>", phrase(&mail.name)),
    };
    let mut trace = format!(
        "Received: by {hostname} (from user {}, {})\r\n\tid {}; {}\r\n",
        plain(&mail.user),
        mail.number,
        random(),
        date::message(now)
    );
    trace.push_str(&missing(header, &author, hostname));
    let recipient = |to: &String| {
        let to = if to.contains('@') { to.clone() } else { format!("{to}@{hostname}") };
        Recipient { notify: mail.notify.clone(), ..Recipient::new(to, now) }
    };
    let entry = |part: &[String]| Entry {
        since: now,
        from: from.to_owned(),
        address: from.to_owned(),
        trace: trace.clone(),
        ret: mail.ret,
        envid: mail.envid.clone(),
        smtputf8: !header.is_ascii(),
        is_local: true,
        recipients: part.iter().map(recipient).collect(),
        ..Entry::default()
    };
    mail.recipients.chunks(RECIPIENTS_MAX).map(entry).collect()
}

fn plain(text: &str) -> String {
    text.chars().filter(|letter| letter.is_ascii_alphanumeric() || "-_.".contains(*letter)).take(64).collect()
}

/// A name as a header field has it: a quoted string, or encoded words (RFC 2047) where it is not in ASCII.
fn phrase(name: &str) -> String {
    let name: String = name.chars().filter(|letter| !letter.is_control()).take(200).collect();
    if name.is_ascii() {
        return format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""));
    }
    let letters: Vec<char> = name.chars().collect();
    // Of 10 letters in UTF-8 no word is longer than 75 bytes.
    let words = letters.chunks(10).map(|part| {
        let part = String::from_iter(part);
        format!("=?utf-8?b?{}?=", text::base64::encode(part.as_bytes()))
    });
    words.collect::<Vec<_>>().join("\r\n ")
}

/// Content on its way in: the header is collected, and what stands behind it passes.
#[derive(Default)]
struct Content {
    /// This host, whose results are taken out.
    hostname: String,
    header: Vec<u8>,
    is_whole: bool,
    /// It has no end within what is looked at.
    is_too_long: bool,
    last: u8,
}

impl Content {
    fn of(hostname: &str) -> Content {
        Content { hostname: hostname.into(), ..Content::default() }
    }

    /// Takes bytes, none at the end; what is to be stored.
    fn add(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len() + 2);
        for &byte in bytes {
            // A bare CR is an end of a line to some servers, which would read commands behind it (RFC 5321, section 2.3.8).
            match (self.last, byte) {
                (b'\r', b'\n') => {}
                (b'\r', _) => out.push(b'\n'),
                (_, b'\n') => out.push(b'\r'),
                _ => {}
            }
            out.push(byte);
            self.last = byte;
        }
        if bytes.is_empty() && self.last != b'\n' {
            out.extend(if self.last == b'\r' { &b"\n"[..] } else { b"\r\n" });
        }
        if self.is_whole {
            return out;
        }
        let from = self.header.len().saturating_sub(3);
        self.header.extend_from_slice(&out);
        let is_long = self.header.len() >= HEADER_BYTES_MAX;
        let end = end_of_fields(&self.header, from, is_long || bytes.is_empty(), is_field);
        let Some((end, is_open)) = end else { return Vec::new() };
        self.is_whole = true;
        self.is_too_long = is_long && is_open && end == self.header.len();
        let rest = self.header.split_off(end);
        let mut out = qualified(&cleaned(&self.header, &self.hostname), &self.hostname);
        if is_open {
            out.extend(b"\r\n");
        }
        out.extend(rest);
        out
    }
}

/// Whether a line of a user's text is a field: its name is in ASCII.
fn is_field(line: &[u8]) -> bool {
    name_of(line).is_some_and(<[u8]>::is_ascii)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(pieces: &[&str]) -> String {
        let mut content = Content::default();
        let mut out = Vec::new();
        for piece in pieces.iter().filter(|piece| !piece.is_empty()).chain([&""]) {
            out.extend(content.add(piece.as_bytes()));
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn text_becomes_a_mail_however_it_is_cut() {
        for (text, wanted) in [
            ("A: b\nBcc: c\n d\n\nbody", "A: b\r\n\r\nbody\r\n"),
            ("hello\nB: c\n", "\r\nhello\r\nB: c\r\n"),
            ("A: b\nhello\n\nmore\n", "A: b\r\n\r\nhello\r\n\r\nmore\r\n"),
            ("A: b\r\n\r\nbody\r\n", "A: b\r\n\r\nbody\r\n"),
            ("A: b\n", "A: b\r\n\r\n"),
            ("\nbody\n", "\r\nbody\r\n"),
            ("", "\r\n"),
            ("x\r", "\r\nx\r\n"),
            ("A: b\rC: d\r\r\nbefore\r.\rMAIL FROM:<x>\n", "A: b\r\nC: d\r\n\r\nbefore\r\n.\r\nMAIL FROM:<x>\r\n"),
            ("\ra\r\r\r", "\r\na\r\n\r\n\r\n"),
        ] {
            assert_eq!(stored(&[text]), wanted, "{text:?}");
            for at in 0..text.len() {
                assert_eq!(stored(&[&text[..at], &text[at..]]), wanted, "{text:?} at {at}");
            }
        }
    }

    #[test]
    fn a_header_has_an_end_and_text_without_one_need_not_have_it() {
        let is_too_long = |text: &str| {
            let mut content = Content::default();
            content.add(text.as_bytes());
            content.is_too_long
        };
        assert!(is_too_long(&format!("A: {}\n", "b".repeat(HEADER_BYTES_MAX))));
        assert!(!is_too_long(&"text\n".repeat(HEADER_BYTES_MAX / 4)));
    }

    #[test]
    fn names_are_written_so_that_they_add_nothing() {
        assert_eq!(phrase("Cron \"Daemon\""), "\"Cron \\\"Daemon\\\"\"");
        assert_eq!(phrase("J\u{fc}\r\nX: y"), "=?utf-8?b?SsO8WDogeQ==?=");
        assert_eq!(plain("a b\r\n"), "ab");
    }
}
