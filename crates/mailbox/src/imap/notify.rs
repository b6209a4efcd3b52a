//! NOTIFY (RFC 5465): what changes in mailboxes that are not selected is told as STATUS and LIST, and in the selected one as it
//! happens. What is new is found by comparing the last state that was told with the next one, at most five times a second. A mailbox
//! of somebody else is there as long as it may be seen, and its messages are told to who may read it.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use proto::imap::acl::Rights;
use proto::imap::notify::{Events, Filter, Notify};
use proto::imap::operation::StatusItem;
use proto::imap::response;
use store::{DELIMITER, Mailbox, State};
use tokio::task::block_in_place;
use tokio::time::Instant;

use super::{Done, Refusal, Session, User, done, no};
use crate::acl;
use crate::labour::turn;
use crate::wire::Stream;

/// How often is looked at the most.
const EVERY: Duration = Duration::from_millis(200);

/// Events that a client has asked for, and the state it was last sent.
pub(super) struct Notified {
    wanted: Notify,
    known: State,
    /// Not before then is looked again.
    pub next: Instant,
}

impl Notified {
    /// Events of the selected mailbox, and whether they wait for the next command.
    pub fn selected(&self) -> Option<(&Events, bool)> {
        self.wanted.groups.iter().find_map(|group| match group.filter {
            Filter::Selected { delayed } => Some((&group.events, delayed)),
            _ => None,
        })
    }

    /// Events wanted of a mailbox that is not selected.
    fn events(&self, name: &[u8], subscriptions: &BTreeSet<Box<[u8]>>) -> Option<&Events> {
        let is_below = |top: &Vec<u8>| {
            name.strip_prefix(top.as_slice()).is_some_and(|rest| rest.is_empty() || rest.first() == Some(&DELIMITER))
        };
        let fits = |filter: &Filter| match filter {
            Filter::Selected { .. } => false,
            Filter::Inboxes => name == b"INBOX",
            Filter::Personal => !name.starts_with(acl::OTHERS),
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
            return done("Notifications off");
        };
        if wanted.groups.iter().any(|group| group.events.is_foreign) {
            return Err(no(
                "[BADEVENT (MessageNew MessageExpunge FlagChange MailboxName SubscriptionChange)] Unknown event",
            ));
        }
        let (known, status) = (self.site.store.state(), wanted.status);
        let notified = Notified { wanted, known, next: Instant::now() };
        if let (true, Some(account)) = (status, notified.known.account(user.number)) {
            for seen in seen(&notified.known, user.number) {
                if self.is_selected(seen.number) || !seen.is_read {
                    continue;
                }
                let events = notified.events(&seen.name, &account.subscriptions).filter(|events| events.messages);
                let Some(events) = events else { continue };
                let line = self.status(&seen.name, seen.number, seen.mailbox, &items(true, events.flags));
                self.server.bytes(&line);
                self.flush_much().await?;
            }
        }
        self.notified = Some(notified);
        done("Notifications on")
    }

    fn is_selected(&self, number: u32) -> bool {
        self.selected.as_ref().is_some_and(|view| view.number == number)
    }

    /// Tells what has changed elsewhere.
    pub(super) async fn notify(&mut self) -> io::Result<()> {
        let (Some(_), Some(account)) = (&self.notified, self.user.as_ref().map(|user| user.number)) else {
            return Ok(());
        };
        let is_new = self.is_new();
        let turn = turn(self.site, &mut self.wire, &self.site.workers, account, is_new).await?;
        let Some(mut notified) = self.notified.take() else { return Ok(()) };
        let state = self.site.store.state();
        notified.next = Instant::now() + EVERY;
        let before = std::mem::replace(&mut notified.known, state.clone());
        let lines = block_in_place(|| self.changes_between(&notified, account, &before, &state));
        drop(turn);
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
        let is_seen = |state: &State, mailbox: &Arc<Mailbox>| acl::rights(state, account, mailbox).has(Rights::LOOKUP);
        for Seen { name, number, mailbox, is_read } in seen(state, account) {
            let Some(known) = before.mailbox(number).filter(|known| is_seen(before, known)) else {
                if names(&name) {
                    lines.push(self.listed("", &name, None));
                }
                continue;
            };
            if known.name != mailbox.name {
                // What stands before it, if it is somebody else's, stays.
                let above = name.len().saturating_sub(mailbox.name.len());
                let former = [name.get(..above).unwrap_or_default(), &known.name].concat();
                if names(&name) || names(&former) {
                    lines.push(self.listed("", &name, Some(&former)));
                }
            }
            if Arc::ptr_eq(known, mailbox) || self.is_selected(number) || !is_read {
                continue;
            }
            let Some(events) = notified.events(&name, &new.subscriptions) else { continue };
            let moved = (known.uid_next, known.entries.len()) != (mailbox.uid_next, mailbox.entries.len());
            let changed = known.highest_modseq != mailbox.highest_modseq;
            if events.messages && moved || events.flags && changed {
                lines.push(self.status(&name, number, mailbox, &items(moved, events.flags)));
            }
        }
        for gone in seen(before, account).filter(|gone| names(&gone.name)) {
            if state.mailbox(gone.number).is_none_or(|mailbox| !is_seen(state, mailbox)) {
                lines.push(self.listed("\\NonExistent", &gone.name, None));
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

/// A mailbox that an account knows of.
struct Seen<'a> {
    name: Cow<'a, [u8]>,
    number: u32,
    mailbox: &'a Arc<Mailbox>,
    /// Whether it may be told of messages.
    is_read: bool,
}

/// All of them: its own, and those of others.
fn seen(state: &State, account: u32) -> impl Iterator<Item = Seen<'_>> {
    let own = state.account(account).into_iter().flat_map(|account| account.mailboxes.iter());
    let own = own.map(|(name, &number)| (Cow::Borrowed(&**name), number));
    let all = own.chain(acl::others(state, account).map(|(name, number)| (Cow::Owned(name), number)));
    all.filter_map(move |(name, number)| {
        let mailbox = state.mailbox(number)?;
        Some(Seen { name, number, mailbox, is_read: acl::rights(state, account, mailbox).has(Rights::READ) })
    })
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
