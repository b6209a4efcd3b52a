//! Mailboxes (RFC 8621, section 2): their objects, `get` and `changes`.
//!
//! The store has names like `Work/2024`; the parent of a mailbox is the nearest one above it that exists, its name the rest.

mod change;
mod query;
mod set;
mod wanted;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use store::Mailbox;

use crate::arguments::{Arguments, only};
use crate::changes::{self, Changes};
use crate::engine::{Engine, got};
use crate::error::Error;
use crate::index::{Index, mailbox_id};
use crate::{Map, Value, json};

pub(crate) use query::{query, query_changes};
pub(crate) use set::set;

/// Roles, in the order of the bits of [`store::SpecialUse`].
pub(crate) const ROLES: [&str; 8] = ["all", "archive", "drafts", "flagged", "junk", "sent", "trash", "important"];

/// The annotation of an account with the `sortOrder` of mailboxes: an object of JSON.
pub(crate) const ORDER: &str = "jmap/order";

const PROPERTIES: [&str; 11] = [
    "id",
    "name",
    "parentId",
    "role",
    "sortOrder",
    "totalEmails",
    "unreadEmails",
    "totalThreads",
    "unreadThreads",
    "myRights",
    "isSubscribed",
];

/// Properties that change with the messages of a mailbox.
const COUNTS: [&str; 4] = ["totalEmails", "unreadEmails", "totalThreads", "unreadThreads"];

/// The role of a mailbox.
pub(crate) fn role(mailbox: &Mailbox) -> Option<&'static str> {
    if &*mailbox.name == b"INBOX" {
        return Some("inbox");
    }
    ROLES.iter().enumerate().find(|(bit, _)| mailbox.special_use.0 & (1 << bit) != 0).map(|(_, role)| *role)
}

/// Bits of a role.
pub(crate) fn special_use(role: Option<&str>) -> Option<u16> {
    match role {
        None => Some(0),
        Some(role) => ROLES.iter().position(|known| *known == role).map(|bit| 1 << bit),
    }
}

/// The number of the parent of a mailbox, and its own name below it.
pub(crate) fn parent_and_name(index: &Index, account: u32, mailbox: &Mailbox) -> (Option<u32>, String) {
    let name = String::from_utf8_lossy(&mailbox.name).into_owned();
    if name == "INBOX" {
        return (None, "Inbox".into());
    }
    for (at, _) in name.rmatch_indices(char::from(store::DELIMITER)) {
        let (above, own) = (name.get(..at).unwrap_or_default(), name.get(at.saturating_add(1)..).unwrap_or_default());
        if let Some((number, _)) = index.snapshot.mailbox_named(account, above.as_bytes()) {
            return (Some(number), own.into());
        }
    }
    (None, name)
}

/// The objects of the type `Mailbox`, by number.
pub(crate) fn objects(index: &Index, account: u32, has_counts: bool) -> BTreeMap<u32, Map<String, Value>> {
    let orders = orders(index, account);
    let subscriptions =
        index.snapshot.account(account).map(|account| account.subscriptions.clone()).unwrap_or_default();
    let mut counts = if has_counts { counts(index) } else { BTreeMap::new() };
    let mut objects = BTreeMap::new();
    for (number, mailbox) in &index.mailboxes {
        let (parent, name) = parent_and_name(index, account, mailbox);
        let is_inbox = &*mailbox.name == b"INBOX";
        let order = orders.get(&mailbox_id(*number)).cloned().unwrap_or_else(|| 0.into());
        let counts = counts.remove(number).unwrap_or_default();
        let object = json!({
            "id": mailbox_id(*number),
            "name": name,
            "parentId": parent.map(mailbox_id),
            "role": role(mailbox),
            "sortOrder": order,
            "totalEmails": counts.emails,
            "unreadEmails": counts.unread,
            "totalThreads": counts.threads.len(),
            "unreadThreads": counts.unread_threads.len(),
            "myRights": {
                "mayReadItems": true, "mayAddItems": true, "mayRemoveItems": true, "maySetSeen": true, "maySetKeywords": true,
                "mayCreateChild": true, "mayRename": !is_inbox, "mayDelete": !is_inbox, "maySubmit": true,
            },
            "isSubscribed": subscriptions.contains(&mailbox.name),
        });
        if let Value::Object(object) = object {
            objects.insert(*number, object);
        }
    }
    objects
}

/// The `sortOrder` of mailboxes, as clients have set it.
pub(crate) fn orders(index: &Index, account: u32) -> Map<String, Value> {
    let noted = index.snapshot.account(account).and_then(|account| account.annotations.get(ORDER.as_bytes()));
    match noted.and_then(|noted| crate::json::read(noted)) {
        Some(Value::Object(orders)) => orders,
        _ => Map::new(),
    }
}

#[derive(Default)]
struct Counts {
    emails: usize,
    unread: usize,
    threads: BTreeSet<String>,
    unread_threads: BTreeSet<String>,
}

/// Counts Emails and threads. A thread is unread in a mailbox if an Email of it is there and one, wherever it is, is unread.
fn counts(index: &Index) -> BTreeMap<u32, Counts> {
    let mut counts: BTreeMap<u32, Counts> = BTreeMap::new();
    let mut unread = BTreeSet::new();
    for message in index.messages() {
        let Some(email) = index.email(message) else { continue };
        let is_unread = !email.keywords.contains("$seen") && !email.keywords.contains("$draft");
        for number in &email.mailboxes {
            let count = counts.entry(*number).or_default();
            count.emails = count.emails.saturating_add(1);
            count.unread = count.unread.saturating_add(usize::from(is_unread));
            count.threads.insert(email.thread.clone());
        }
        if is_unread {
            unread.insert(email.thread);
        }
    }
    for count in counts.values_mut() {
        count.unread_threads = count.threads.intersection(&unread).cloned().collect();
    }
    counts
}

pub(crate) fn get(engine: &mut Engine<'_>, mut arguments: Arguments) -> Result<Value, Error> {
    let account = engine.account(&mut arguments)?;
    let (ids, properties) = (arguments.ids()?, arguments.properties(&PROPERTIES)?);
    arguments.end()?;
    let index = engine.index();
    let has_counts = properties.iter().any(|name| COUNTS.contains(&name.as_str()));
    let mut objects = objects(&index, engine.account, has_counts);
    let ids = ids.unwrap_or_else(|| objects.keys().copied().map(mailbox_id).collect());
    let (mut list, mut missing) = (Vec::new(), Vec::new());
    for id in ids {
        match index.mailbox(&id).and_then(|(number, _)| objects.remove(number)) {
            Some(object) => {
                engine.spend(object.get("name").map_or(0, |name| name.to_string().len()).saturating_add(400))?;
                list.push(only(Value::Object(object), &properties));
            }
            None => missing.push(id),
        }
    }
    Ok(got(account, engine.state(), list, missing))
}

pub(crate) fn changes(engine: &mut Engine<'_>, arguments: Arguments) -> Result<Value, Error> {
    let account = engine.account;
    let mut only_counts = true;
    let mut reply = changes::changes(engine, arguments, |old, new| {
        let (before, after) = (objects(old, account, true), objects(new, account, true));
        let mut found = Changes::default();
        for (number, object) in &after {
            match before.get(number) {
                None => found.created.push(mailbox_id(*number)),
                Some(former) if former != object => {
                    let is_count = |(name, value): (&String, &Value)| {
                        former.get(name) == Some(value) || COUNTS.contains(&name.as_str())
                    };
                    only_counts &= object.iter().all(is_count);
                    found.updated.push(mailbox_id(*number));
                }
                Some(_) => {}
            }
        }
        found.destroyed = before.keys().filter(|number| !after.contains_key(number)).copied().map(mailbox_id).collect();
        only_counts &= !found.updated.is_empty();
        found
    })?;
    if let Some(reply) = reply.as_object_mut() {
        reply.insert("updatedProperties".into(), if only_counts { json!(COUNTS) } else { Value::Null });
    }
    Ok(reply)
}
