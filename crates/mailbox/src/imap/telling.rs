//! Untagged responses about changes, sent during and after commands.

use std::io;

use proto::imap::acl::Rights;
use store::State;
use tokio::task::block_in_place;

use super::notify::Notified;
use super::{REPLY_BYTES, Refusal, Session, render};
use crate::labour::turn;
use crate::wire::Stream;

/// Messages of a mailbox that is compared apart from other work.
const LARGE: usize = 5_000;

impl<S: Stream> Session<'_, S> {
    /// Tells what has changed between commands: in an idle session as ever, in others as far as that is wanted (RFC 5465).
    pub(super) async fn tell_as_it_happens(&mut self, is_idling: bool) -> io::Result<()> {
        let selected = self.notified.as_ref().and_then(Notified::selected);
        match selected {
            Some((events, delayed)) if events.messages || is_idling => {
                let may_expunge = is_idling || !delayed;
                self.tell_all(may_expunge, None).await
            }
            None if is_idling => self.tell_all(true, None).await,
            _ => self.notify().await,
        }
    }

    /// Tells what has changed, there and elsewhere.
    pub(super) async fn tell_all(&mut self, may_expunge: bool, untold: Option<&[u32]>) -> io::Result<()> {
        let before = self.selected.as_ref().map(|view| (view.number, view.mailbox.uid_next));
        self.tell(may_expunge, untold).await?;
        let items = self.notified.as_ref().and_then(Notified::selected).map(|(events, _)| events.items.clone());
        let seen = self.selected.as_ref().filter(|view| before.is_some_and(|(number, _)| number == view.number));
        let first = before.map_or(0, |(_, first)| first);
        let new: Vec<u32> = seen.into_iter().flat_map(|view| &view.uids).copied().filter(|&uid| uid >= first).collect();
        if let Some(items) = items.filter(|items| !items.is_empty() && !new.is_empty()) {
            // What went meanwhile is told next.
            if let Err(Refusal::Broken(error)) = self.fetch(false, new, &items, None).await {
                return Err(error);
            }
        }
        self.notify().await
    }

    /// Tells what has changed in the selected mailbox, but for the flags of `untold`; those of others only to whom wants them. Who
    /// may not read it any more is told nothing.
    async fn tell(&mut self, may_expunge: bool, untold: Option<&[u32]>) -> io::Result<()> {
        let state = self.changes.borrow_and_update().clone();
        self.tell_until(&state, may_expunge, untold).await
    }

    /// [`tell`](Self::tell) up to a snapshot.
    pub(super) async fn tell_until(
        &mut self,
        state: &State,
        may_expunge: bool,
        untold: Option<&[u32]>,
    ) -> io::Result<()> {
        let selected = self.notified.as_ref().and_then(Notified::selected);
        let wants_flags = selected.is_none_or(|(events, _)| events.flags);
        let untold = untold.or(wants_flags.then_some(&[]));
        let may_read = self.rights_here().has(Rights::READ);
        let mut told = Vec::new();
        let enabled = self.enabled;
        let follow = |session: &mut Self, told: &mut Vec<u8>| {
            let view = session.selected.as_mut()?;
            match state.mailbox(view.number) {
                Some(_) if !may_read => None,
                Some(mailbox) => render::follow(view, &session.site.recents, (mailbox, may_expunge), enabled, told),
                None => {
                    // Nobody can go on in a mailbox that is not there.
                    session.server.bytes(b"* BYE The mailbox was deleted\r\n");
                    session.server.close();
                    None
                }
            }
        };
        let changes = self.in_turn(|session| follow(session, &mut told)).await?;
        self.pass(&told).await?;
        let (Some(mut changes), Some(untold)) = (changes, untold) else { return Ok(()) };
        let mut has_more = true;
        while has_more {
            told.clear();
            let tell = |session: &mut Self| {
                let view = session.selected.as_ref()?;
                Some(render::flags_changed(view, &mut changes, untold, (enabled, REPLY_BYTES), &mut told))
            };
            has_more = self.in_turn(tell).await? == Some(true);
            self.pass(&told).await?;
        }
        Ok(())
    }

    /// Compares a mailbox: a large one in turns with other accounts.
    async fn in_turn<T>(&mut self, compare: impl FnOnce(&mut Self) -> T) -> io::Result<T> {
        let is_large = self.selected.as_ref().is_some_and(|view| view.uids.len() > LARGE);
        let Some(account) = self.user.as_ref().map(|user| user.number).filter(|_| is_large) else {
            return Ok(compare(self));
        };
        let is_new = self.is_new();
        let _turn = turn(self.site, &mut self.wire, &self.site.workers, account, is_new).await?;
        Ok(block_in_place(|| compare(self)))
    }
}
