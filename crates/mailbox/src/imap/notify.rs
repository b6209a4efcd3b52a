//! NOTIFY (RFC 5465): what changes in mailboxes that are not selected is told as STATUS and LIST, and in the selected one as it
//! happens. What is new is found by comparing the last state that was told with the next one, at most five times a second.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use proto::imap::notify::{Events, Filter, Notify};
use proto::imap::operation::StatusItem;
use proto::imap::response;
use store::{DELIMITER, State};
use tokio::time::Instant;

use super::{Done, Refusal, Session, User, done, no};
use crate::wire::Stream;

/// How often is looked at the most.
const EVERY: Duration = Duration::from_millis(200);

/// What a client wants to be told, and what it knows.
pub(super) struct Notified {
    wanted: Notify,
    known: State,
    /// Not before then is looked again.
    pub next: Instant,
}

impl Notified {
    /// What is told of the selected mailbox, and whether that waits for commands.
    pub fn selected(&self) -> Option<(&Events, bool)> {
        self.wanted.groups.iter().find_map(|group| match group.filter {
            Filter::Selected { delayed } => Some((&group.events, delayed)),
            _ => None,
        })
    }

    /// What is told of a mailbox that is not selected.
    fn events(&self, name: &[u8], subscriptions: &BTreeSet<Box<[u8]>>) -> Option<&Events> {
        let is_below = |top: &Vec<u8>| {
            name.strip_prefix(top.as_slice()).is_some_and(|rest| rest.is_empty() || rest.first() == Some(&DELIMITER))
        };
        let fits = |filter: &Filter| match filter {
            Filter::Selected { .. } => false,
            Filter::Inboxes => name == b"INBOX",
            Filter::Personal => true,
            Filter::Subscribed => subscriptions.contains(name),
            Filter::Subtree(tops) => tops.iter().any(is_below),
            Filter::Mailboxes(names) => names.iter().any(|known| known == name),
        };
        self.wanted.groups.iter().find(|group| fits(&group.filter)).map(|group| &group.events)
    }
}

impl<S: Stream> Session<'_, S> {
    pub(super) async fn set_notify(&mut self, user: &User, wanted: Option<Notify>) -> Result<Done, Refusal> {
        let Some(wanted) = wanted else {
            self.notified = None;
            return done("Nothing more is told");
        };
        if wanted.groups.iter().any(|group| group.events.is_foreign) {
            return Err(no(
                "[BADEVENT (MessageNew MessageExpunge FlagChange MailboxName SubscriptionChange)] Unknown event",
            ));
        }
        let (known, status) = (self.site.store.state(), wanted.status);
        let notified = Notified { wanted, known, next: Instant::now() };
        if let (true, Some(account)) = (status, notified.known.account(user.number)) {
            for (name, &number) in account.mailboxes.iter() {
                if self.is_selected(number) {
                    continue;
                }
                let events = notified.events(name, &account.subscriptions).filter(|events| events.messages);
                let (Some(events), Some(mailbox)) = (events, notified.known.mailbox(number)) else { continue };
                let line = self.status(name, number, mailbox, &items(true, events.flags));
                self.server.bytes(&line);
                self.flush_much().await?;
            }
        }
        self.notified = Some(notified);
        done("What changes is told")
    }

    fn is_selected(&self, number: u32) -> bool {
        self.selected.as_ref().is_some_and(|view| view.number == number)
    }

    /// Tells what has changed elsewhere.
    pub(super) async fn notify(&mut self) -> io::Result<()> {
        let (Some(mut notified), Some(user)) = (self.notified.take(), &self.user) else { return Ok(()) };
        let (account, state) = (user.number, self.site.store.state());
        notified.next = Instant::now() + EVERY;
        let before = std::mem::replace(&mut notified.known, state.clone());
        let lines = self.changes_between(&notified, account, &before, &state);
        self.notified = Some(notified);
        for line in lines {
            self.server.bytes(&line);
            self.flush_much().await?;
        }
        Ok(())
    }

    fn changes_between(&self, notified: &Notified, account: u32, before: &State, state: &State) -> Vec<Vec<u8>> {
        let mut lines = Vec::new();
        let (Some(old), Some(new)) = (before.account(account), state.account(account)) else { return lines };
        let names = |name: &[u8]| notified.events(name, &new.subscriptions).is_some_and(|events| events.names);
        for (name, &number) in new.mailboxes.iter() {
            let Some(mailbox) = state.mailbox(number) else { continue };
            let Some(known) = before.mailbox(number) else {
                if names(name) {
                    lines.push(self.listed("", name, None));
                }
                continue;
            };
            if known.name != mailbox.name && (names(name) || names(&known.name)) {
                lines.push(self.listed("", name, Some(&known.name)));
            }
            if Arc::ptr_eq(known, mailbox) || self.is_selected(number) {
                continue;
            }
            let Some(events) = notified.events(name, &new.subscriptions) else { continue };
            let moved = (known.uid_next, known.entries.len()) != (mailbox.uid_next, mailbox.entries.len());
            let changed = known.highest_modseq != mailbox.highest_modseq;
            if events.messages && moved || events.flags && changed {
                lines.push(self.status(name, number, mailbox, &items(moved, events.flags)));
            }
        }
        for (name, number) in old.mailboxes.iter().filter(|(name, _)| names(name)) {
            if state.mailbox(*number).is_none() {
                lines.push(self.listed("\\NonExistent", name, None));
            }
        }
        if !Arc::ptr_eq(&old.subscriptions, &new.subscriptions) {
            let told =
                |name: &[u8]| notified.events(name, &new.subscriptions).is_some_and(|events| events.subscriptions);
            let told_before =
                |name: &[u8]| notified.events(name, &old.subscriptions).is_some_and(|events| events.subscriptions);
            let added = new.subscriptions.difference(&old.subscriptions).filter(|name| told(name));
            lines.extend(added.map(|name| self.listed("\\Subscribed", name, None)));
            let removed = old.subscriptions.difference(&new.subscriptions).filter(|name| told_before(name));
            lines.extend(removed.map(|name| self.listed("", name, None)));
        }
        lines
    }

    fn listed(&self, attributes: &str, name: &[u8], old: Option<&[u8]>) -> Vec<u8> {
        let utf8 = self.enabled.has_utf8_names();
        let mut line = format!("* LIST ({attributes}) \"/\" ").into_bytes();
        response::mailbox(name, utf8, &mut line);
        if let Some(old) = old {
            line.extend_from_slice(b" (\"OLDNAME\" (");
            response::mailbox(old, utf8, &mut line);
            line.extend_from_slice(b"))");
        }
        line.extend_from_slice(b"\r\n");
        line
    }
}

fn items(messages: bool, flags: bool) -> Vec<StatusItem> {
    let mut items = Vec::new();
    if messages {
        items.extend([StatusItem::Messages, StatusItem::UidNext]);
    }
    items.push(StatusItem::UidValidity);
    if flags {
        items.extend([StatusItem::Unseen, StatusItem::HighestModseq]);
    }
    items
}
