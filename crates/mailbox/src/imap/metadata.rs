//! Metadata (RFC 5464): annotations of a mailbox, or of the account for the mailbox `""`, which stands for the server.
//!
//! Of a mailbox of somebody else, `/shared` is the owner's: whoever sees it and may do anything with its messages is told of it, and
//! whoever may change flags (`w`) changes it. `/private` is kept with the account that sets it, by the number of the mailbox; what it
//! has kept of mailboxes that are gone goes when it sets the next. Of the server `/shared` is nobody's to set.

use proto::imap::acl::Rights;
use proto::imap::metadata::{Asked, Change};
use proto::imap::response;
use store::{ANNOTATED_BYTES_MAX, ANNOTATIONS_MAX, Annotations, Error, Refused, State, Transaction};

use super::rights::not_permitted;
use super::{Done, Refusal, Session, User, done, no, nonexistent};
use crate::file::File;
use crate::wire::Stream;

/// What the names of such annotations begin with.
const PREFIX: &str = "metadata";

/// What somebody may do with the messages of a mailbox.
const USES: Rights = Rights::READ.with(Rights::SEEN).with(Rights::WRITE).with(Rights::INSERT).with(Rights::POST);

impl<S: Stream> Session<'_, S> {
    pub(super) async fn get_metadata(&mut self, user: &User, name: &[u8], asked: &Asked) -> Result<Done, Refusal> {
        let kept = self.kept(user, name)?;
        let (mut told, mut longest) = (0, 0);
        for (entry, value) in kept.iter().flat_map(Kept::entries).filter(|(entry, _)| asked.is_for(entry)) {
            if asked.bytes_max.is_some_and(|most| value.len() as u64 > most) {
                longest = value.len().max(longest);
                continue;
            }
            let mut line = match told {
                0 => self.metadata_of(name),
                _ => b" ".to_vec(),
            };
            told += 1;
            response::string(entry.as_bytes(), &mut line);
            line.push(b' ');
            if value.contains(&0) {
                line.extend_from_slice(format!("~{{{}}}\r\n", value.len()).as_bytes());
                line.extend_from_slice(value);
            } else {
                response::string(value, &mut line);
            }
            self.server.bytes(&line);
            self.flush_much().await?;
        }
        if told > 0 {
            self.server.bytes(b")\r\n");
        }
        match longest {
            0 => done("Metadata completed"),
            longest => done(&format!("[METADATA LONGENTRIES {longest}] Some are longer")),
        }
    }

    fn metadata_of(&self, name: &[u8]) -> Vec<u8> {
        let mut line = b"* METADATA ".to_vec();
        response::mailbox(name, self.enabled.has_utf8_names(), &mut line);
        line.extend_from_slice(b" (");
        line
    }

    pub(super) async fn set_metadata(
        &mut self,
        user: &User,
        name: &[u8],
        changes: Vec<Change>,
    ) -> Result<Done, Refusal> {
        let kept = self.kept(user, name)?;
        let place = |entry: &str| kept.iter().find(|kept| entry.starts_with(kept.top));
        if changes.iter().any(|(entry, _)| place(entry).is_none_or(|kept| !kept.may_set)) {
            return Err(no("[NOPERM] What all see is not for you to set"));
        }
        let account = user.number;
        let change = self.site.store.transact(move |transaction| {
            forget_gone(transaction, account)?;
            for (entry, value) in &changes {
                let Some(kept) = kept.iter().find(|kept| entry.starts_with(kept.top)) else { continue };
                let name = format!("{}{entry}", kept.prefix);
                transaction.annotate(kept.account, kept.mailbox, name.as_bytes(), value.as_deref())?;
                if kept.account != account && value.is_some() && !leaves_room(transaction.state(), kept.account) {
                    return Err(Refused::TooManyAnnotations.into());
                }
            }
            Ok(())
        });
        match change.await {
            Err(Error::Refused(Refused::TooManyAnnotations)) => Err(no("[METADATA TOOMANY] No room for it")),
            outcome => {
                outcome?;
                done("Metadata set")
            }
        }
    }

    /// Where entries of a mailbox, or of the server, are kept for somebody: `/private`, and `/shared`.
    fn kept(&self, user: &User, name: &[u8]) -> Result<[Kept; 2], Refusal> {
        let state = self.site.store.state();
        let own = state.account(user.number).ok_or_else(nonexistent)?.annotations.clone();
        let kept = |top, account, mailbox, annotations: &Annotations, may_set| Kept {
            top,
            account,
            mailbox,
            annotations: annotations.clone(),
            prefix: PREFIX.into(),
            may_set,
        };
        if name.is_empty() {
            return Ok(
                [("/private/", true), ("/shared/", false)].map(|(top, may)| kept(top, user.number, None, &own, may))
            );
        }
        let place = self.place(user, name, Rights::LOOKUP)?;
        let (number, notes) = (place.number, &place.mailbox.annotations);
        if place.account == user.number {
            return Ok(["/private/", "/shared/"].map(|top| kept(top, user.number, Some(number), notes, true)));
        }
        // RFC 5464, section 3.
        if !place.rights.has_any(USES) {
            return Err(not_permitted());
        }
        let private = Kept { prefix: format!("{PREFIX}:{number}"), ..kept("/private/", user.number, None, &own, true) };
        let may_set = place.rights.has(Rights::WRITE);
        Ok([private, kept("/shared/", place.account, Some(number), notes, may_set)])
    }
}

/// Where entries with a beginning are kept: in an account, or in a mailbox of it.
struct Kept {
    top: &'static str,
    account: u32,
    mailbox: Option<u32>,
    annotations: Annotations,
    /// What the names of such annotations begin with.
    prefix: String,
    may_set: bool,
}

impl Kept {
    fn entries(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.annotations.iter().filter_map(|(key, value)| {
            let entry = std::str::from_utf8(key).ok()?.strip_prefix(&self.prefix)?;
            entry.starts_with(self.top).then_some((entry, &**value))
        })
    }
}

/// Whether the owner of a mailbox can still note as much as is noted: half of the room is nobody else's.
fn leaves_room(state: &State, owner: u32) -> bool {
    let (count, bytes) = state.annotations_of(owner);
    count <= ANNOTATIONS_MAX / 2 && bytes <= ANNOTATED_BYTES_MAX / 2
}

/// Forgets what an account has kept of mailboxes that are gone.
fn forget_gone(transaction: &mut Transaction<'_, File>, account: u32) -> Result<(), Error> {
    let state = transaction.state();
    let is_gone = |key: &[u8]| {
        let number = std::str::from_utf8(key).ok()?.strip_prefix(PREFIX)?.strip_prefix(':')?.split('/').next()?.parse();
        Some(state.mailbox(number.ok()?).is_none())
    };
    let notes = state.account(account).map(|account| account.annotations.clone()).unwrap_or_default();
    let gone: Vec<_> = notes.keys().filter(|key| is_gone(key) == Some(true)).collect();
    gone.into_iter().try_for_each(|key| transaction.annotate(account, None, key, None))
}
