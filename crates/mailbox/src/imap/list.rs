//! Mailboxes as such: LIST and its like, STATUS, and what makes, renames and removes them.

use std::collections::{BTreeMap, btree_map};

use keep::name::{LEVELS_MAX, MAILBOXES_MAX, is_name};
use keep::view::mailbox_id;
use proto::imap::acl::Rights;
use proto::imap::name;
use proto::imap::operation::{List, StatusItem};
use proto::imap::pattern::{Patterns, Scratch};
use proto::imap::response;
use store::{DELIMITER, Error, Mailbox, Refused, SpecialUse, State, Uids};

use super::labour::{Slice, labour};
use super::rights::not_permitted;
use super::{Done, Refusal, Session, User, done, no, nonexistent};
use crate::acl;
use crate::site::seconds;
use crate::wire::Stream;

/// Names that an account may subscribe to beyond those of its mailboxes, in number: of others, and of what is gone.
const SUBSCRIPTIONS_MORE: usize = 1_000;

/// A name that LIST may tell.
#[derive(Default)]
struct Name {
    mailbox: Option<u32>,
    has_children: bool,
    is_subscribed: bool,
    /// Something below it is subscribed.
    has_subscribed: bool,
}

impl<S: Stream> Session<'_, S> {
    pub(super) async fn list(&mut self, user: &User, list: &List) -> Result<Done, Refusal> {
        let word = if list.is_lsub { "LSUB" } else { "LIST" };
        if let [pattern] = list.patterns.as_slice()
            && pattern.is_empty()
        {
            self.server.line(format!("* {word} (\\Noselect) \"/\" \"\"").as_bytes());
            return done("List completed");
        }
        let state = self.site.store.state();
        let patterns: Vec<Vec<u8>> =
            list.patterns.iter().map(|pattern| [list.reference.as_slice(), pattern].concat()).collect();
        let begins =
            |pattern: &Vec<u8>| pattern.first().is_none_or(|first| [b'*', b'%', acl::OTHERS[0]].contains(first));
        let others: Vec<(Vec<u8>, u32)> = match patterns.iter().any(begins) {
            true => acl::others(&state, user.number).collect(),
            false => Vec::new(),
        };
        let mut fitting = Fitting::new(&patterns, names(&state, user.number, &others));
        drop(patterns);
        labour(self.site, &mut self.wire, user.number, |slice| fitting.go_on(slice)).await?;
        for (name, found) in fitting.found {
            let mailbox = found.mailbox.and_then(|number| Some((number, state.mailbox(number)?)));
            // What others use a mailbox for is not what it is here.
            let own = mailbox.filter(|(_, mailbox)| mailbox.account == user.number);
            let uses = own.map(|(_, mailbox)| mailbox.special_use).unwrap_or_default();
            let by_child = list.recursive && found.has_subscribed && !found.is_subscribed;
            if list.subscribed && !found.is_subscribed && !by_child
                || list.special_use && uses == SpecialUse::default()
                || !list.subscribed && mailbox.is_none() && !found.has_children
            {
                continue;
            }
            let mut line = format!("* {word} ({}) \"/\" ", attributes(list, &found, uses)).into_bytes();
            response::mailbox(name, self.enabled.has_utf8_names(), &mut line);
            if by_child && !list.is_lsub {
                line.extend_from_slice(b" (\"CHILDINFO\" (\"SUBSCRIBED\"))");
            }
            line.extend_from_slice(b"\r\n");
            let may = |mailbox| acl::rights(&state, user.number, mailbox).has(Rights::READ);
            if let Some((number, mailbox)) = mailbox.filter(|(_, mailbox)| !list.status.is_empty() && may(mailbox)) {
                line.extend(self.status(name, number, mailbox, &list.status));
            }
            self.server.bytes(&line);
            self.flush_much().await?;
        }
        done("List completed")
    }

    /// STATUS of a mailbox, by the name that it has for the client.
    pub(super) fn status(&self, name: &[u8], number: u32, mailbox: &Mailbox, items: &[StatusItem]) -> Vec<u8> {
        let value = |item: StatusItem| match item {
            StatusItem::Messages => mailbox.entries.len().to_string(),
            StatusItem::Recent => {
                let mark = self.site.recents.mark(number, mailbox);
                mailbox.from(mark).count().to_string()
            }
            StatusItem::UidNext => mailbox.uid_next.to_string(),
            StatusItem::UidValidity => mailbox.uid_validity.to_string(),
            StatusItem::Unseen => mailbox.unseen.to_string(),
            StatusItem::Deleted => mailbox.deleted.to_string(),
            StatusItem::Size => mailbox.bytes.to_string(),
            StatusItem::HighestModseq => mailbox.highest_modseq.max(1).to_string(),
            StatusItem::AppendLimit => self.site.message_bytes_max.to_string(),
            StatusItem::MailboxId => format!("({})", mailbox_id(number)),
        };
        let values: Vec<String> = items.iter().map(|&item| format!("{} {}", item.name(), value(item))).collect();
        let mut out = b"* STATUS ".to_vec();
        response::mailbox(name, self.enabled.has_utf8_names(), &mut out);
        out.extend_from_slice(format!(" ({})\r\n", values.join(" ")).as_bytes());
        out
    }

    pub(super) async fn create(&mut self, user: &User, name: Vec<u8>, uses: &[String]) -> Result<Done, Refusal> {
        let (account, name) = self.target(user, name.strip_suffix(&[DELIMITER]).unwrap_or(&name))?;
        let mut special_use = SpecialUse::default();
        for wanted in uses {
            let known = SpecialUse::NAMES.iter().position(|known| known[1..].eq_ignore_ascii_case(wanted));
            special_use.0 |= 1 << known.ok_or_else(|| no("[USEATTR] Unknown special use"))?;
        }
        let create = self.site.store.transact(move |transaction| {
            if transaction.state().account(account).is_some_and(|account| account.mailboxes.len() >= MAILBOXES_MAX) {
                return Err(Error::Refused(Refused::TransactionTooLarge));
            }
            let number = transaction.create(account, &name, special_use)?;
            acl::inherit(transaction, account, number)?;
            Ok(number)
        });
        let number = create.await?;
        Ok(Done { text: format!("[MAILBOXID ({})] Created", mailbox_id(number)), untold: Vec::new() })
    }

    pub(super) async fn delete(&mut self, user: &User, name: Vec<u8>) -> Result<Done, Refusal> {
        let place = self.place(user, &name, Rights::DELETE)?;
        if &*place.mailbox.name == b"INBOX" {
            return Err(no("[CANNOT] INBOX stays"));
        }
        let number = place.number;
        if self.selected.as_ref().is_some_and(|view| view.number == number) {
            self.selected = None;
            self.server.unselected();
        }
        self.site.store.transact(move |transaction| transaction.remove(number)).await?;
        self.site.recents.forget(number);
        done("Deleted")
    }

    pub(super) async fn rename(&mut self, user: &User, from: Vec<u8>, to: Vec<u8>) -> Result<Done, Refusal> {
        let to = to.strip_suffix(&[DELIMITER]).unwrap_or(&to).to_vec();
        if to.strip_prefix(from.as_slice()).is_some_and(|rest| rest.first() == Some(&DELIMITER)) {
            return Err(no("[CANNOT] A mailbox cannot be below itself"));
        }
        let place = self.place(user, &from, Rights::DELETE)?;
        let (account, to) = self.target(user, &to)?;
        let number = place.number;
        if account != place.account {
            return Err(no("[CANNOT] A mailbox stays in its account"));
        }
        if from != b"INBOX" && &*place.mailbox.name == b"INBOX" {
            return Err(no("[CANNOT] INBOX stays"));
        }
        self.site
            .store
            .transact(move |transaction| {
                if transaction.state().mailbox_named(account, &to).is_some() {
                    return Err(Error::Refused(Refused::Exists));
                }
                if from != b"INBOX" {
                    return transaction.rename(number, &to);
                }
                // RFC 9051, section 6.3.6: what is in it goes, and it stays.
                let target = transaction.create(account, &to, SpecialUse::default())?;
                transaction.move_to(number, target, &Uids::all(), seconds()).map(drop)
            })
            .await?;
        done("Renamed")
    }

    pub(super) async fn subscribe(&mut self, user: &User, name: Vec<u8>, subscribed: bool) -> Result<Done, Refusal> {
        if subscribed {
            check(&name).or_else(|refusal| if name == b"INBOX" { Ok(()) } else { Err(refusal) })?;
        }
        let account = user.number;
        let is_subscribed =
            self.site.store.state().account(account).is_some_and(|account| account.subscriptions.contains(&name[..]));
        if is_subscribed != subscribed {
            let subscribe = self.site.store.transact(move |transaction| {
                let is_full = transaction
                    .state()
                    .account(account)
                    .is_some_and(|account| account.subscriptions.len() >= account.mailboxes.len() + SUBSCRIPTIONS_MORE);
                if subscribed && is_full {
                    return Err(Error::Refused(Refused::TransactionTooLarge));
                }
                transaction.subscribe(account, &name, subscribed)
            });
            subscribe.await?;
        }
        done("Subscription changed")
    }

    /// Where a mailbox of this name would be made: the account, and its name there.
    fn target(&self, user: &User, name: &[u8]) -> Result<(u32, Vec<u8>), Refusal> {
        let others = acl::OTHERS.strip_suffix(&[DELIMITER]).unwrap_or(acl::OTHERS);
        let Some(rest) = name.strip_prefix(acl::OTHERS).filter(|_| name != others) else {
            check(name)?;
            return if name == others {
                Err(no("[CANNOT] Others' are there"))
            } else {
                Ok((user.number, name.to_vec()))
            };
        };
        // Nobody begins anything in an account that is not his, but below a mailbox where he may.
        let above = acl::above(name).filter(|above| above.len() > acl::OTHERS.len()).ok_or_else(not_permitted)?;
        let place = self.place(user, above, Rights::CREATE)?;
        let own = rest
            .iter()
            .position(|&byte| byte == DELIMITER)
            .and_then(|at| rest.get(at + 1..))
            .ok_or_else(nonexistent)?;
        check(own)?;
        Ok((place.account, name::canonical(own.to_vec())))
    }
}

/// Names that a client may give.
fn check(name: &[u8]) -> Result<(), Refusal> {
    match name.eq_ignore_ascii_case(b"INBOX") {
        true => Err(no("[ALREADYEXISTS] There is an INBOX")),
        false if !is_name(name) => Err(no("[CANNOT] Not a name for a mailbox")),
        false => Ok(()),
    }
}

/// All names of an account, with those above them, and those of others that it may know of.
fn names<'a>(state: &'a State, number: u32, others: &'a [(Vec<u8>, u32)]) -> BTreeMap<&'a [u8], Name> {
    let mut names: BTreeMap<&[u8], Name> = BTreeMap::new();
    let Some(account) = state.account(number) else { return names };
    let own = account.mailboxes.iter().map(|(name, &mailbox)| (&**name, mailbox));
    for (name, mailbox) in others.iter().map(|(name, mailbox)| (&**name, *mailbox)).chain(own) {
        names.entry(name).or_default().mailbox = Some(mailbox);
        for above in above(name) {
            names.entry(above).or_default().has_children = true;
        }
    }
    for name in account.subscriptions.iter() {
        names.entry(name).or_default().is_subscribed = true;
        for above in above(name) {
            names.entry(above).or_default().has_subscribed = true;
        }
    }
    names
}

/// The names above one; of one that is deeper than a new one may be, the topmost.
fn above(name: &[u8]) -> impl Iterator<Item = &[u8]> {
    let ends = name.iter().enumerate().filter(|(_, byte)| **byte == DELIMITER);
    ends.map(|(at, _)| &name[..at]).take(LEVELS_MAX)
}

/// The names that patterns fit, as far as they have been compared.
struct Fitting<'a> {
    patterns: Patterns,
    /// For INBOX and what is below it: that level is called so in any case.
    inbox: Patterns,
    scratch: Scratch,
    rest: btree_map::IntoIter<&'a [u8], Name>,
    found: Vec<(&'a [u8], Name)>,
}

impl<'a> Fitting<'a> {
    fn new(patterns: &[Vec<u8>], names: BTreeMap<&'a [u8], Name>) -> Fitting<'a> {
        let upper: Vec<Vec<u8>> = patterns.iter().map(|pattern| with_inbox(pattern)).collect();
        Fitting {
            patterns: Patterns::new(patterns, DELIMITER),
            inbox: Patterns::new(&upper, DELIMITER),
            scratch: Scratch::default(),
            rest: names.into_iter(),
            found: Vec::new(),
        }
    }

    /// Goes on comparing; true when there are no more.
    fn go_on(&mut self, slice: &Slice) -> bool {
        for (name, found) in self.rest.by_ref() {
            let is_inbox =
                (name == b"INBOX" || name.starts_with(b"INBOX/")) && self.inbox.matches(name, &mut self.scratch);
            if is_inbox || self.patterns.matches(name, &mut self.scratch) {
                self.found.push((name, found));
            }
            if slice.is_over() {
                return false;
            }
        }
        true
    }
}

/// A pattern whose first level is in upper case.
fn with_inbox(pattern: &[u8]) -> Vec<u8> {
    let end = pattern.iter().position(|byte| b"*%/".contains(byte)).unwrap_or(pattern.len());
    [pattern[..end].to_ascii_uppercase().as_slice(), &pattern[end..]].concat()
}

fn attributes(list: &List, name: &Name, uses: SpecialUse) -> String {
    let mut attributes = Vec::new();
    if list.is_lsub {
        // RFC 3501, section 6.3.9: a name that stands for those below it.
        return if name.is_subscribed { String::new() } else { "\\Noselect".into() };
    }
    if name.mailbox.is_none() {
        attributes.extend(["\\Noselect", "\\NonExistent"]);
    }
    attributes.push(if name.has_children { "\\HasChildren" } else { "\\HasNoChildren" });
    if list.return_subscribed && name.is_subscribed {
        attributes.push("\\Subscribed");
    }
    let set = |(bit, _): &(usize, &&'static str)| uses.0 >> bit & 1 != 0;
    attributes.extend(SpecialUse::NAMES.iter().enumerate().filter(set).map(|(_, name)| *name));
    attributes.join(" ")
}
