//! APPEND: messages that the client brings, streamed into the store; all of a command in one transaction (RFC 3502). They may be put
//! together of what is there (CATENATE, RFC 4469), and one may take the place of another (REPLACE, RFC 8508).

use std::io;

use proto::imap::acl::Rights;
use proto::imap::appended::{Appended, Head, Place, Step, read_on};
use proto::imap::url::Url;
use proto::imap::{Command, Message};
use store::{Arrival, Error, Refused, Sealed, Transaction, Uids};

use super::fetch::Source;
use super::messages::try_create;
use super::{Refusal, Reply, Session, no, render};
use crate::acl;
use crate::digest::Digest;
use crate::ends::LineEnds;
use crate::file::File;
use crate::in_flight::Owner;
use crate::site::{Site, seconds};
use crate::wire::Stream;
use crate::writer::{Incoming, Whole};

/// Messages of one command.
const MESSAGES_MAX: usize = 1_000;

/// Bytes of a message that is there, copied at a time.
const CHUNK_BYTES: usize = 32 << 10;

/// Where messages go: a mailbox, what may be done there, and the mailbox and UID of the message that goes for one.
type Destination = (u32, Rights, Option<(u32, u32)>);

/// An APPEND under way.
pub(super) struct Append {
    tag: Vec<u8>,
    mailbox: u32,
    /// The mailbox and the UID of the message that goes.
    replaces: Option<(u32, u32)>,
    /// Messages received whole.
    whole: Vec<(Whole, Appended)>,
    current: Option<(Incoming, Digest, Appended)>,
    failed: Option<Refusal>,
    /// Where the literal is that is coming.
    place: Place,
    ends: LineEnds,
    /// Whether the literal that is coming is one of bytes (RFC 3516), which are not touched.
    is_binary: bool,
    /// Rights on the target mailbox.
    rights: Rights,
}

impl Append {
    /// Adds bytes of the message.
    pub async fn add(&mut self, bytes: &[u8]) {
        let Some((incoming, digest, _)) = &mut self.current else { return };
        let bytes = if self.is_binary { bytes } else { self.ends.of(bytes) };
        digest.read(bytes);
        if let Err(error) = incoming.write(bytes).await {
            self.fail(error.into());
        }
    }

    /// The first thing that is wrong is what is answered, in the end.
    fn fail(&mut self, refusal: Refusal) {
        self.failed.get_or_insert(refusal);
        // None of them will be there: the store has its room back.
        self.current = None;
        self.whole.clear();
    }

    /// Another message begins.
    async fn begin(&mut self, site: &Site, owners: Vec<Owner>, mut appended: Appended, has_utf8: bool) {
        // Flags that may not be set there are left out (RFC 4314, section 4).
        appended.flags.system &= acl::flags(self.rights);
        if !self.rights.has(Rights::WRITE) {
            appended.flags.keywords.clear();
        }
        self.seal().await;
        if appended.utf8 && !has_utf8 {
            self.fail(Refusal::Bad("UTF-8 is not enabled"));
        } else if self.whole.len() >= MESSAGES_MAX || self.replaces.is_some() && !self.whole.is_empty() {
            self.fail(no("[LIMIT] Too many messages"));
        } else if self.failed.is_none() {
            let incoming = site.store.incoming_of(site.in_flight.begin(owners));
            self.current = Some((incoming, Digest::default(), appended));
            self.ends = LineEnds::default();
        }
    }

    /// So many bytes more are to come.
    fn announce(&mut self, site: &Site, bytes: u64) {
        if bytes == 0 && !matches!(self.place, Place::Parts(_)) {
            // The client gives up the command (RFC 3502, section 6.3.11).
            return self.fail(no("An empty message is not appended, nor are those before it"));
        }
        let before = self.current.as_ref().map_or(0, |(incoming, ..)| incoming.size());
        if before.saturating_add(bytes) > site.message_bytes_max {
            return self.fail(no("[TOOBIG] The message is too large"));
        }
        let whole: u64 = self.whole.iter().map(|(whole, _)| whole.sealed.size()).sum();
        let (bytes, count) = (whole.saturating_add(before).saturating_add(bytes), self.whole.len() as u64 + 1);
        let state = site.store.state();
        let owner = state.mailbox(self.mailbox).and_then(|mailbox| state.account(mailbox.account));
        if owner.is_some_and(|owner| {
            let (bytes, count) = (owner.used_bytes.saturating_add(bytes), owner.used_messages.saturating_add(count));
            owner.quota.is_exceeded_by(bytes, count)
        }) {
            self.fail(Error::from(Refused::OverQuota).into());
        }
    }

    /// Appends the part that a URL names.
    async fn copy(&mut self, site: &Site, account: u32, url: &[u8]) {
        if self.failed.is_some() {
            return;
        }
        let state = site.store.state();
        let found = Url::parse(url).and_then(|url| Source::find(&site.store, &state, account, &url));
        let Some(mut source) = found else {
            let is_printable = url.iter().all(|&byte| (b' '..=b'~').contains(&byte) && !b"\"\\[]".contains(&byte));
            let told = if is_printable { String::from_utf8_lossy(url) } else { "".into() };
            return self.fail(Refusal::No(format!("[BADURL \"{told}\"] Nothing is there")));
        };
        self.announce(site, source.left());
        let mut chunk = vec![0; CHUNK_BYTES];
        while self.failed.is_none() && source.left() > 0 {
            match tokio::task::block_in_place(|| source.read(&mut chunk)) {
                Ok(length @ 1..) => self.add(&chunk[..length]).await,
                outcome => {
                    let reason = outcome.err().map_or_else(|| "it ends early".into(), |error| error.to_string());
                    tracing::error!(reason, "a message cannot be read");
                    self.fail(no("[SERVERBUG] A part cannot be read"));
                }
            }
        }
    }

    async fn seal(&mut self) {
        let Some((incoming, digest, appended)) = self.current.take() else { return };
        match incoming.seal(digest.finish()).await {
            Ok(whole) => self.whole.push((whole, appended)),
            Err(error) => self.fail(error.into()),
        }
    }

    /// Makes them visible, all or none; the UIDs that they got.
    async fn finish(mut self, site: &Site) -> Reply {
        let (mailbox, replaces) = (self.mailbox, self.replaces);
        // A message alone is stored with its transaction.
        let alone = if self.whole.is_empty() { self.current.take() } else { None };
        self.seal().await;
        if let Some(refusal) = self.failed {
            return Err(refusal);
        }
        let uids = match alone {
            Some((incoming, digest, appended)) => {
                let digest = digest.finish();
                incoming
                    .finish(digest, move |transaction, sealed| {
                        let uid = deliver(transaction, sealed, mailbox, &appended)?;
                        expunge(transaction, replaces)?;
                        Ok((uid, uid))
                    })
                    .await?
            }
            None => {
                let whole = self.whole;
                site.store
                    .transact(move |transaction| {
                        let mut uids = Vec::new();
                        for (whole, appended) in &whole {
                            uids.push(deliver(transaction, &whole.sealed, mailbox, appended)?);
                        }
                        Ok::<_, Error>((uids.first().copied().unwrap_or(0), uids.last().copied().unwrap_or(0)))
                    })
                    .await?
            }
        };
        let state = site.store.state();
        let validity = state.mailbox(mailbox).map_or(0, |mailbox| mailbox.uid_validity);
        Ok(match uids {
            (first, last) if first == last => format!("[APPENDUID {validity} {first}]"),
            (first, last) => format!("[APPENDUID {validity} {first}:{last}]"),
        })
    }
}

fn deliver(
    transaction: &mut Transaction<'_, File>,
    sealed: &Sealed,
    mailbox: u32,
    appended: &Appended,
) -> Result<u32, Error> {
    let keywords: Vec<&str> = appended.flags.keywords.iter().map(String::as_str).collect();
    let now = seconds();
    let date = appended.date.unwrap_or(now);
    transaction.deliver(sealed, mailbox, &Arrival { flags: appended.flags.system, keywords: &keywords, date, now })
}

/// The message that another has replaced goes, unless somebody was faster.
fn expunge(transaction: &mut Transaction<'_, File>, replaces: Option<(u32, u32)>) -> Result<(), Error> {
    let Some((mailbox, uid)) = replaces else { return Ok(()) };
    match transaction.expunge(mailbox, &[uid].into_iter().collect::<Uids>())?.is_empty() {
        true => Err(Refused::NoSuchMessage.into()),
        false => Ok(()),
    }
}

impl<S: Stream> Session<'_, S> {
    pub(super) async fn begin_append(&mut self, command: &Command, message: Message) -> io::Result<()> {
        let mut append = self.opened(command, false).await;
        append.is_binary = message.binary;
        append.announce(self.site, message.len);
        self.go_on(append)
    }

    /// All of its messages are put together of what is there.
    pub(super) async fn append_at_once(&mut self, command: &Command) -> io::Result<()> {
        let append = self.opened(command, true).await;
        self.complete_append(append).await
    }

    async fn opened(&mut self, command: &Command, is_whole: bool) -> Append {
        let mut append = Append {
            tag: command.tag.clone(),
            mailbox: 0,
            replaces: None,
            whole: Vec::new(),
            current: None,
            failed: None,
            place: Place::Between,
            ends: LineEnds::default(),
            is_binary: false,
            rights: Rights::NONE,
        };
        match self.destination(command, is_whole) {
            Ok((head, destination)) => {
                (append.mailbox, append.rights, append.replaces) = destination;
                self.take_steps(&mut append, Ok((head.steps, head.place))).await;
            }
            Err(refusal) => append.fail(refusal),
        }
        append
    }

    fn destination(&self, command: &Command, is_whole: bool) -> Result<(Head, Destination), Refusal> {
        let user = self.user()?;
        let head = Head::read(command, self.enabled.has_utf8_names(), is_whole).map_err(Refusal::Bad)?;
        let found = self.place(user, &head.mailbox, Rights::INSERT);
        let place = found.map_err(|refusal| try_create(refusal, &head.mailbox))?;
        let (mailbox, rights) = (place.number, place.rights);
        let Some((set, by_uid)) = &head.replaces else { return Ok((head, (mailbox, rights, None))) };
        let view = self.view()?;
        self.permit(Rights::READ.with(Rights::MARK).with(Rights::EXPUNGE))?;
        if view.read_only {
            return Err(no("[READ-ONLY] The mailbox was only examined"));
        }
        match render::uids_of(view, set, *by_uid).as_deref() {
            Some(&[uid]) => Ok((head, (mailbox, rights, Some((view.number, uid))))),
            _ => Err(no("Not one message")),
        }
    }

    async fn take_steps(&mut self, append: &mut Append, steps: Result<(Vec<Step>, Place), &'static str>) {
        let (steps, place) = match steps {
            Ok(steps) => steps,
            Err(reason) => return append.fail(Refusal::Bad(reason)),
        };
        append.place = place;
        let account = self.user.as_ref().map_or(0, |user| user.number);
        let name = self.user.as_ref().map(|user| Owner::Account(user.account.name.clone()));
        let owners: Vec<Owner> = name.into_iter().chain(self.guest.client.and_then(Owner::client)).collect();
        for step in steps {
            match step {
                Step::Begin(appended) => {
                    append.begin(self.site, owners.clone(), appended, self.enabled.has_utf8_names()).await;
                }
                Step::Url(url) => append.copy(self.site, account, &url).await,
            }
        }
    }

    pub(super) async fn next_append(&mut self, text: &[u8], message: Message) -> io::Result<()> {
        let Some(mut append) = self.append.take() else { return Ok(()) };
        let steps = read_on(text, append.place, false);
        self.take_steps(&mut append, steps).await;
        append.is_binary = message.binary;
        append.announce(self.site, message.len);
        self.go_on(*append)
    }

    /// Lets the message come, unless it is not wanted and need not.
    fn go_on(&mut self, mut append: Append) -> io::Result<()> {
        if append.failed.is_some() && self.server.refuse() {
            let refusal = append.failed.take().unwrap_or(Refusal::Bad("Refused"));
            return self.answer(&append.tag, Err(refusal));
        }
        self.server.accept();
        self.append = Some(Box::new(append));
        Ok(())
    }

    pub(super) async fn end_append(&mut self, text: &[u8]) -> io::Result<()> {
        let Some(mut append) = self.append.take() else { return Ok(()) };
        let steps = read_on(text, append.place, true);
        self.take_steps(&mut append, steps).await;
        self.complete_append(*append).await
    }

    async fn complete_append(&mut self, append: Append) -> io::Result<()> {
        let (tag, replaces) = (append.tag.clone(), append.replaces.is_some());
        let reply = append.finish(self.site).await;
        let reply = match reply {
            // Before the numbers change (RFC 8508, section 3.4).
            Ok(code) if replaces => {
                self.server.line(format!("* OK {code} Replacing").as_bytes());
                Ok("Replaced".into())
            }
            Ok(code) => Ok(format!("{code} Append completed")),
            refusal => refusal,
        };
        self.tell_all(true, None).await?;
        self.answer(&tag, reply)
    }
}
