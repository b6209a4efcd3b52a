//! `Mailbox/set` (RFC 8621, section 2.5).

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{ORDER, objects, orders, special_use};
use crate::arguments::Arguments;
use crate::engine::Engine;
use crate::error::Error;
use crate::host::Work;
use crate::index::mailbox_id;
use crate::outcome::{Outcome, Set};
use crate::references::created;
use crate::{Map, Value};

/// Properties that a client sets.
const SETTABLE: [&str; 5] = ["name", "parentId", "role", "sortOrder", "isSubscribed"];

pub(crate) fn set(engine: &mut Engine<'_>, mut arguments: Arguments) -> Result<Value, Error> {
    let Set { account, old_state, create, update, destroy } = Set::read(engine, &mut arguments)?;
    let with_emails = arguments.boolean("onDestroyRemoveEmails", false)?;
    arguments.end()?;
    let mut outcome = Outcome::default();
    for (creation, object) in in_order(create) {
        let made = make(engine, object);
        outcome.created(engine, creation, made);
    }
    for (id, patch) in update {
        let changed = change(engine, &id, patch);
        outcome.updated(id, changed);
    }
    for id in destroy {
        let removed = remove(engine, &id, with_emails);
        outcome.destroyed(id, removed);
    }
    Ok(outcome.reply(&account, &old_state, &engine.state()))
}

/// Objects that others of this call name as their parent come before those.
fn in_order(create: Map<String, Value>) -> Vec<(String, Value)> {
    let mut left: Vec<(String, Value)> = create.into_iter().collect();
    let mut ordered = Vec::new();
    while !left.is_empty() {
        let names: Vec<String> = left.iter().map(|(name, _)| format!("#{name}")).collect();
        let waits =
            |object: &Value| object["parentId"].as_str().is_some_and(|parent| names.iter().any(|name| name == parent));
        let (later, now): (Vec<_>, Vec<_>) = left.into_iter().partition(|(_, object)| waits(object));
        if now.is_empty() {
            ordered.extend(later);
            break;
        }
        ordered.extend(now);
        left = later;
    }
    ordered
}

/// A mailbox as it is to be.
struct Wanted {
    name: String,
    special_use: u16,
    order: Value,
    is_subscribed: bool,
}

impl Wanted {
    /// Reads the settable properties of an object. `number` is the mailbox that it is, if it exists.
    fn read(engine: &mut Engine<'_>, object: &Map<String, Value>, number: Option<u32>) -> Result<Wanted, Error> {
        let index = engine.index();
        let own = object.get("name").and_then(Value::as_str).ok_or_else(|| Error::property("name"))?;
        if own.is_empty() || own.contains(char::from(store::DELIMITER)) {
            return Err(Error::property("name"));
        }
        let mut name = String::from(own);
        match object.get("parentId").unwrap_or(&Value::Null) {
            Value::Null => {}
            Value::String(parent) => {
                let parent = created(parent, &engine.created).and_then(|id| index.mailbox(id));
                let (parent, above) = parent.ok_or_else(|| Error::property("parentId"))?;
                let mut at = Some(*parent);
                while let Some(above) = at {
                    if number == Some(above) {
                        return Err(Error::property("parentId"));
                    }
                    let mailbox = index.snapshot.mailbox(above);
                    at = mailbox.and_then(|mailbox| super::parent_and_name(&index, engine.account, mailbox).0);
                }
                name = format!("{}/{own}", String::from_utf8_lossy(&above.name));
            }
            _ => return Err(Error::property("parentId")),
        }
        let role = match object.get("role").unwrap_or(&Value::Null) {
            Value::Null => None,
            Value::String(role) => Some(role.as_str()),
            _ => return Err(Error::property("role")),
        };
        let is_inbox =
            number.and_then(|number| index.snapshot.mailbox(number)).is_some_and(|mailbox| &*mailbox.name == b"INBOX");
        let role = role.filter(|role| !(is_inbox && *role == "inbox"));
        let special_use = special_use(role).ok_or_else(|| Error::property("role"))?;
        let is_taken = |(other, mailbox): &(u32, alloc::sync::Arc<store::Mailbox>)| {
            special_use != 0 && Some(*other) != number && mailbox.special_use.0 & special_use != 0
        };
        if index.mailboxes.iter().any(is_taken) {
            return Err(Error::property("role"));
        }
        let order = object.get("sortOrder").cloned().unwrap_or_else(|| 10.into());
        if order.as_u64().is_none_or(|order| order >= 1 << 31) {
            return Err(Error::property("sortOrder"));
        }
        let is_subscribed = object.get("isSubscribed").unwrap_or(&Value::Bool(false)).as_bool();
        let is_subscribed = is_subscribed.ok_or_else(|| Error::property("isSubscribed"))?;
        Ok(Wanted { name: if is_inbox { "INBOX".into() } else { name }, special_use, order, is_subscribed })
    }
}

fn make(engine: &mut Engine<'_>, object: Value) -> Result<Value, Error> {
    let Value::Object(object) = object else { return Err(Error::new("invalidProperties")) };
    if let Some(unknown) = object.keys().find(|name| !SETTABLE.contains(&name.as_str())) {
        return Err(Error::property(unknown));
    }
    let Wanted { name, special_use, order, is_subscribed } = Wanted::read(engine, &object, None)?;
    let mut works = alloc::vec![Work::Create { name: name.clone(), special_use }];
    if is_subscribed {
        works.push(Work::Subscribe { name, is_subscribed });
    }
    let number = engine.host.apply(works)?;
    engine.changed();
    if object.contains_key("sortOrder") {
        note_order(engine, &mailbox_id(number), order)?;
    }
    let index = engine.index();
    let mut told = objects(&index, engine.account, true).remove(&number).ok_or_else(|| Error::new("serverFail"))?;
    // The client knows what it has sent.
    told.retain(|name, value| object.get(name) != Some(value));
    Ok(Value::Object(told))
}

fn change(engine: &mut Engine<'_>, id: &str, patch: Value) -> Result<(), Error> {
    let index = engine.index();
    let (number, mailbox) = index.mailbox(id).cloned().ok_or_else(|| Error::new("notFound"))?;
    let before = objects(&index, engine.account, true).remove(&number).ok_or_else(|| Error::new("notFound"))?;
    let Value::Object(patch) = patch else { return Err(Error::new("invalidPatch")) };
    let mut after = before.clone();
    crate::patch::apply(&mut after, patch)?;
    let is_changed = |name: &&String| after.get(*name) != before.get(*name);
    if let Some(fixed) = after.keys().filter(is_changed).find(|name| !SETTABLE.contains(&name.as_str())) {
        return Err(Error::property(fixed));
    }
    let wanted = Wanted::read(engine, &after, Some(number))?;
    let before_name = String::from_utf8_lossy(&mailbox.name).into_owned();
    if before_name == "INBOX" && (after["name"] != before["name"] || !after["parentId"].is_null()) {
        return Err(Error::property("name"));
    }
    let mut works = Vec::new();
    if wanted.name != before_name {
        works.push(Work::Rename { mailbox: number, name: wanted.name.clone() });
    }
    if wanted.special_use != mailbox.special_use.0 {
        works.push(Work::SpecialUse { mailbox: number, special_use: wanted.special_use });
    }
    if after["isSubscribed"] != before["isSubscribed"] || (wanted.is_subscribed && wanted.name != before_name) {
        works.push(Work::Subscribe { name: wanted.name, is_subscribed: wanted.is_subscribed });
    }
    if !works.is_empty() {
        engine.host.apply(works)?;
        engine.changed();
    }
    match after["sortOrder"] == before["sortOrder"] {
        true => Ok(()),
        false => note_order(engine, id, wanted.order),
    }
}

fn note_order(engine: &mut Engine<'_>, id: &str, order: Value) -> Result<(), Error> {
    let index = engine.index();
    let mut orders = orders(&index, engine.account);
    orders.retain(|id, _| index.mailbox(id).is_some());
    orders.insert(id.into(), order);
    let value = Value::Object(orders);
    engine.host.apply(alloc::vec![Work::Annotate { name: ORDER.into(), value: format!("{value}").into_bytes() }])?;
    engine.changed();
    Ok(())
}

fn remove(engine: &mut Engine<'_>, id: &str, with_emails: bool) -> Result<(), Error> {
    let index = engine.index();
    let id = created(id, &engine.created).ok_or_else(|| Error::new("notFound"))?;
    let (number, mailbox) = index.mailbox(id).ok_or_else(|| Error::new("notFound"))?;
    if &*mailbox.name == b"INBOX" {
        return Err(Error::new("forbidden"));
    }
    let prefix = [&mailbox.name[..], &[store::DELIMITER]].concat();
    if index.mailboxes.iter().any(|(_, other)| other.name.starts_with(&prefix)) {
        return Err(Error::new("mailboxHasChild"));
    }
    if !mailbox.entries.is_empty() && !with_emails {
        return Err(Error::new("mailboxHasEmail"));
    }
    engine.host.apply(alloc::vec![Work::Remove { mailbox: *number }])?;
    engine.changed();
    Ok(())
}
