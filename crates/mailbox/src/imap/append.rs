//! APPEND: messages that the client brings, streamed into the store; all of a command in one transaction (RFC 3502).

use std::io;

use proto::imap::operation::Appended;
use proto::imap::{Command, Message};
use store::{Arrival, Error, Sealed};

use super::{Refusal, Reply, Session, no};
use crate::digest::Digest;
use crate::site::{Site, seconds};
use crate::wire::Stream;
use crate::writer::Incoming;

/// Messages of one command.
const MESSAGES_MAX: usize = 1_000;

/// An APPEND under way.
pub(super) struct Append {
    tag: Vec<u8>,
    mailbox: u32,
    /// Those that have come.
    whole: Vec<(Sealed, Appended)>,
    current: Option<(Incoming, Digest, Appended)>,
    failed: Option<Refusal>,
}

impl Append {
    /// More of the message that comes.
    pub async fn add(&mut self, bytes: &[u8]) {
        let Some((incoming, digest, _)) = &mut self.current else { return };
        digest.read(bytes);
        if let Err(error) = incoming.write(bytes).await {
            self.failed.get_or_insert(error.into());
            self.current = None;
        }
    }

    /// Another message begins; what is wrong with it is answered at the end.
    async fn begin(&mut self, site: &Site, appended: Result<Appended, Refusal>, message: Message, has_utf8: bool) {
        self.seal().await;
        let fits = message.len <= site.message_bytes_max;
        let appended = match appended {
            Ok(appended) if appended.utf8 && !has_utf8 => Err(Refusal::Bad("UTF-8 is not enabled")),
            Ok(_) if !fits => Err(no("[TOOBIG] The message is too large")),
            Ok(_) if self.whole.len() >= MESSAGES_MAX => Err(no("[LIMIT] Too many messages")),
            appended => appended,
        };
        match appended {
            Ok(appended) if self.failed.is_none() => {
                self.current = Some((site.store.incoming(), Digest::default(), appended));
            }
            Ok(_) => {}
            Err(refusal) => drop(self.failed.get_or_insert(refusal)),
        }
    }

    async fn seal(&mut self) {
        let Some((incoming, digest, appended)) = self.current.take() else { return };
        match incoming.seal(digest.finish()).await {
            Ok(sealed) => self.whole.push((sealed, appended)),
            Err(error) => drop(self.failed.get_or_insert(error.into())),
        }
    }

    /// Makes them visible, all or none; the UIDs that they got.
    async fn finish(mut self, site: &Site) -> Reply {
        let mailbox = self.mailbox;
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
                        let uid = transaction.deliver(sealed, mailbox, &arrival(&appended, &keywords(&appended)))?;
                        Ok((uid, uid))
                    })
                    .await?
            }
            None => {
                let whole = self.whole;
                site.store
                    .transact(move |transaction| {
                        let mut uids = Vec::new();
                        for (sealed, appended) in &whole {
                            uids.push(transaction.deliver(sealed, mailbox, &arrival(appended, &keywords(appended)))?);
                        }
                        Ok::<_, Error>((uids.first().copied().unwrap_or(0), uids.last().copied().unwrap_or(0)))
                    })
                    .await?
            }
        };
        let state = site.store.state();
        let validity = state.mailbox(mailbox).map_or(0, |mailbox| mailbox.uid_validity);
        Ok(match uids {
            (first, last) if first == last => format!("[APPENDUID {validity} {first}] Append completed"),
            (first, last) => format!("[APPENDUID {validity} {first}:{last}] Append completed"),
        })
    }
}

fn keywords(appended: &Appended) -> Vec<&str> {
    appended.flags.keywords.iter().map(String::as_str).collect()
}

fn arrival<'a>(appended: &Appended, keywords: &'a [&'a str]) -> Arrival<'a> {
    let now = seconds();
    Arrival { flags: appended.flags.system, keywords, date: appended.date.unwrap_or(now), now }
}

impl<S: Stream> Session<'_, S> {
    pub(super) async fn begin_append(&mut self, command: &Command, message: Message) -> io::Result<()> {
        let parsed = Appended::first(command, self.enabled.has_utf8_names()).map_err(Refusal::Bad);
        let (mailbox, appended) = match (&self.user, parsed) {
            (None, _) => (0, Err(Refusal::Bad("Log in first"))),
            (_, Err(refusal)) => (0, Err(refusal)),
            (Some(user), Ok((name, appended))) => match self.site.store.state().mailbox_named(user.number, &name) {
                Some((number, _)) => (number, Ok(appended)),
                None => (0, Err(no("[TRYCREATE] No such mailbox"))),
            },
        };
        let tag = command.tag.clone();
        let mut append = Append { tag, mailbox, whole: Vec::new(), current: None, failed: None };
        append.begin(self.site, appended, message, self.enabled.has_utf8_names()).await;
        self.go_on(append).await
    }

    pub(super) async fn next_append(&mut self, text: &[u8], message: Message) -> io::Result<()> {
        let Some(mut append) = self.append.take() else { return Ok(()) };
        let appended = Appended::next(text).map_err(Refusal::Bad);
        append.begin(self.site, appended, message, self.enabled.has_utf8_names()).await;
        self.go_on(*append).await
    }

    /// Lets the message come, unless it is not wanted and need not.
    async fn go_on(&mut self, mut append: Append) -> io::Result<()> {
        if append.failed.is_some() && self.server.refuse() {
            let refusal = append.failed.take().unwrap_or(Refusal::Bad("Refused"));
            return self.answer(&append.tag, Err(refusal));
        }
        self.server.accept();
        self.append = Some(Box::new(append));
        Ok(())
    }

    pub(super) async fn end_append(&mut self) -> io::Result<()> {
        let Some(append) = self.append.take() else { return Ok(()) };
        let tag = append.tag.clone();
        let reply = append.finish(self.site).await;
        self.tell(true, &[]);
        self.answer(&tag, reply)
    }
}
