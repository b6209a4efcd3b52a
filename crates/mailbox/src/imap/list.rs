//! Mailboxes as such: LIST and its like, STATUS, and what makes, renames and removes them.

use keep::list::{Listing, Name};
use keep::name::{self, is_name};
use keep::view::mailbox_id;
use proto::imap::acl::Rights;
use proto::imap::name::canonical;
use proto::imap::operation::{List, StatusItem};
use proto::imap::response;
use store::{DELIMITER, Mailbox, SpecialUse, Transaction};

use super::rights::not_permitted;
use super::{Done, Refusal, Session, User, done, no, nonexistent};
use crate::acl;
use crate::file::File;
use crate::labour::labour;
use crate::site::seconds;
use crate::wire::Stream;

const ELSEWHERE: &str = "[CANNOT] A mailbox stays in its account";

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
        let mut listing = Listing::new(&state, user.number, &others, &patterns);
        // A name that stands for those below it is told by LSUB where these are not: RFC 3501, section 6.3.9.
        let tells_parents = !list.is_lsub || !patterns.iter().any(|pattern| pattern.contains(&b'*'));
        drop(patterns);
        labour(self.site, &mut self.wire, user.number, |slice| listing.go_on(|| slice.is_over())).await?;
        for (name, found) in listing.found() {
            let mailbox = found.mailbox.and_then(|number| Some((number, state.mailbox(number)?)));
            // What others use a mailbox for is not what it is here.
            let own = mailbox.filter(|(_, mailbox)| mailbox.account == user.number);
            let uses = own.map(|(_, mailbox)| mailbox.special_use).unwrap_or_default();
            // A name below it that is told itself says as much: RFC 5258, section 3.5.
            let has_child = if list.is_lsub { found.subscribed_below > 0 } else { found.hides_subscribed };
            let by_child = list.recursive && tells_parents && has_child && !found.is_subscribed;
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
        let create =
            move |transaction: &mut Transaction<'_, File>| name::create(transaction, account, &name, special_use);
        let number = self.site.store.transact(create).await?;
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
        if name::is_only_above(&self.site.store.state(), user.number, &from) {
            return self.rename_below(user, from, &to).await;
        }
        let place = self.place(user, &from, Rights::DELETE)?;
        let (account, to) = self.target(user, &to)?;
        let number = place.number;
        if account != place.account {
            return Err(no(ELSEWHERE));
        }
        if from != b"INBOX" && &*place.mailbox.name == b"INBOX" {
            return Err(no("[CANNOT] INBOX stays"));
        }
        self.site
            .store
            .transact(move |transaction| match from == b"INBOX" {
                true => name::rename_content(transaction, number, &to, seconds()),
                false => name::rename(transaction, number, &to),
            })
            .await?;
        done("Renamed")
    }

    async fn rename_below(&mut self, user: &User, from: Vec<u8>, to: &[u8]) -> Result<Done, Refusal> {
        let (account, to) = self.target(user, to)?;
        if account != user.number {
            return Err(no(ELSEWHERE));
        }
        self.site.store.transact(move |transaction| name::rename_below(transaction, account, &from, &to)).await?;
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
            let subscribe =
                move |transaction: &mut Transaction<'_, File>| name::subscribe(transaction, account, &name, subscribed);
            self.site.store.transact(subscribe).await?;
        }
        done("Subscription changed")
    }

    /// Where a mailbox of this name would be made: the account, and its name there.
    fn target(&self, user: &User, name: &[u8]) -> Result<(u32, Vec<u8>), Refusal> {
        let others = acl::OTHERS.strip_suffix(&[DELIMITER]).unwrap_or(acl::OTHERS);
        let Some(rest) = name.strip_prefix(acl::OTHERS).filter(|_| name != others) else {
            check(name)?;
            return if name == others {
                Err(no("[CANNOT] This name is reserved for mailboxes of others"))
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
        Ok((place.account, canonical(own.to_vec())))
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
