//! GETMETADATA and SETMETADATA (RFC 5464).

use keep::metadata::{self, Entries};
use proto::imap::acl::Rights;
use proto::imap::metadata::{Asked, Change};
use proto::imap::response;
use store::{Error, Refused, Transaction};

use super::rights::not_permitted;
use super::{Done, Refusal, Session, User, done, no, nonexistent};
use crate::file::File;
use crate::wire::Stream;

impl<S: Stream> Session<'_, S> {
    pub(super) async fn get_metadata(&mut self, user: &User, name: &[u8], asked: &Asked) -> Result<Done, Refusal> {
        let all = self.entries(user, name)?;
        let (mut told, mut longest) = (0, 0);
        for (entry, value) in all.iter().flat_map(Entries::iter).filter(|(entry, _)| asked.is_for(entry)) {
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
        let all = self.entries(user, name)?;
        let may_set = |name: &str| all.iter().find(|entries| entries.has(name)).is_some_and(|entries| entries.may_set);
        if !changes.iter().all(|(name, _)| may_set(name)) {
            return Err(no("[NOPERM] What all see is not for you to set"));
        }
        let account = user.number;
        let set = move |transaction: &mut Transaction<'_, File>| metadata::set(transaction, account, &all, &changes);
        let change = self.site.store.transact(set);
        match change.await {
            Err(Error::Refused(Refused::TooManyAnnotations)) => Err(no("[METADATA TOOMANY] No room for it")),
            outcome => {
                outcome?;
                done("Metadata set")
            }
        }
    }

    /// The entries of a mailbox, or of the server, which the name `""` stands for.
    fn entries(&self, user: &User, name: &[u8]) -> Result<[Entries; 2], Refusal> {
        let state = self.site.store.state();
        let account = state.account(user.number).ok_or_else(nonexistent)?;
        if name.is_empty() {
            return Ok(metadata::of_server(user.number, account));
        }
        let place = self.place(user, name, Rights::LOOKUP)?;
        metadata::of_mailbox(user.number, account, &place).ok_or_else(not_permitted)
    }
}
