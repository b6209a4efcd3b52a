//! Metadata (RFC 5464): annotations of a mailbox, or of the account for the mailbox `""`, which stands for the server.
//!
//! An account is alone with its mailboxes, so `/shared` is as private as `/private`; of the server it is nobody's to set.

use proto::imap::metadata::{Asked, Change};
use proto::imap::response;
use store::{Annotations, Error, Refused};

use super::{Done, Refusal, Session, User, done, no, nonexistent};
use crate::wire::Stream;

/// What the names of such annotations begin with.
const PREFIX: &str = "metadata";

impl<S: Stream> Session<'_, S> {
    pub(super) async fn get_metadata(&mut self, user: &User, name: &[u8], asked: &Asked) -> Result<Done, Refusal> {
        let annotations = self.annotations(user, name)?.1;
        let (mut told, mut longest) = (0, 0);
        for (key, value) in annotations.iter() {
            let entry = std::str::from_utf8(key).ok().and_then(|key| key.strip_prefix(PREFIX));
            let Some(entry) = entry.filter(|entry| asked.is_for(entry)) else { continue };
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
        let (mailbox, _) = self.annotations(user, name)?;
        if mailbox.is_none() && changes.iter().any(|(entry, _)| entry.starts_with("/shared/")) {
            return Err(no("[NOPERM] What all see of the server is not for users to set"));
        }
        let account = user.number;
        let change = self.site.store.transact(move |transaction| {
            for (entry, value) in &changes {
                let name = format!("{PREFIX}{entry}");
                transaction.annotate(account, mailbox, name.as_bytes(), value.as_deref())?;
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

    /// Of a mailbox, with its number, or of the account.
    fn annotations(&self, user: &User, name: &[u8]) -> Result<(Option<u32>, Annotations), Refusal> {
        let state = self.site.store.state();
        if name.is_empty() {
            let account = state.account(user.number).ok_or_else(nonexistent)?;
            return Ok((None, account.annotations.clone()));
        }
        let (number, mailbox) = state.mailbox_named(user.number, name).ok_or_else(nonexistent)?;
        Ok((Some(number), mailbox.annotations.clone()))
    }
}
