//! A mailbox as a client wants it: its whole name, its role and its other properties.

use alloc::format;
use alloc::string::String;

use store::Mailbox;
use text::normal::composed;

use super::{ORDER, orders, special_use};
use crate::engine::Engine;
use crate::error::Error;
use crate::host::Work;
use crate::index::{Index, mailbox_id};
use crate::limits::MAILBOX_NAME_BYTES_MAX;
use crate::references::created;
use crate::{Map, Value};

/// Properties that a client sets.
pub(super) const SETTABLE: [&str; 5] = ["name", "parentId", "role", "sortOrder", "isSubscribed"];

/// A mailbox as it is to be.
pub(super) struct Wanted {
    pub name: String,
    pub special_use: u16,
    /// The part of it that the mailbox does not have yet.
    pub new_role: u16,
    pub order: Value,
    pub is_subscribed: bool,
}

/// The whole name of a mailbox from its own and its parent. `number` is the mailbox that it is, if it exists.
pub(super) fn full_name(
    engine: &mut Engine<'_>,
    object: &Map<String, Value>,
    number: Option<u32>,
) -> Result<String, Error> {
    let index = engine.index();
    let own = object.get("name").and_then(Value::as_str).ok_or_else(|| Error::property("name"))?;
    if own.is_empty() || own.contains(char::from(store::DELIMITER)) {
        return Err(Error::property("name"));
    }
    let own = composed(own);
    if own.len() > MAILBOX_NAME_BYTES_MAX {
        return Err(Error::property("name"));
    }
    let parent = match object.get("parentId").unwrap_or(&Value::Null) {
        Value::Null => return Ok(own.into_owned()),
        Value::String(parent) => created(parent, &engine.created).and_then(|id| index.mailbox(id)),
        _ => None,
    };
    let (parent, above) = parent.ok_or_else(|| Error::property("parentId"))?;
    let mut at = Some(*parent);
    while let Some(above) = at {
        if number == Some(above) {
            return Err(Error::property("parentId"));
        }
        let mailbox = index.snapshot.mailbox(above);
        at = mailbox.and_then(|mailbox| super::parent_and_name(&index, engine.account, mailbox).0);
    }
    Ok(format!("{}/{own}", String::from_utf8_lossy(&above.name)))
}

impl Wanted {
    /// Reads the settable properties of an object, which will have this whole name.
    pub fn read(object: &Map<String, Value>, name: String) -> Result<Wanted, Error> {
        let role = match object.get("role").unwrap_or(&Value::Null) {
            Value::Null => None,
            Value::String(role) => Some(role.as_str()),
            _ => return Err(Error::property("role")),
        };
        let role = role.filter(|role| !(name == "INBOX" && *role == "inbox"));
        let special_use = special_use(role).ok_or_else(|| Error::property("role"))?;
        let order = object.get("sortOrder").cloned().unwrap_or_else(|| 0.into());
        if order.as_u64().is_none_or(|order| order >= 1 << 31) {
            return Err(Error::property("sortOrder"));
        }
        let is_subscribed = object.get("isSubscribed").unwrap_or(&Value::Bool(false)).as_bool();
        let is_subscribed = is_subscribed.ok_or_else(|| Error::property("isSubscribed"))?;
        Ok(Wanted { name, special_use, new_role: special_use, order, is_subscribed })
    }

    /// Whether name and role are free, or have mailboxes that give them up at the same time.
    pub fn check(&self, index: &Index, account: u32, leaving: &[u32]) -> Result<(), Error> {
        let stays = |number: &u32| !leaving.contains(number);
        let named = index.snapshot.mailbox_named(account, self.name.as_bytes()).map(|(number, _)| number);
        if let Some(number) = named.filter(stays) {
            return Err(Error::new("alreadyExists").with("existingId", mailbox_id(number)));
        }
        let has_role = |mailbox: &Mailbox| self.new_role & mailbox.special_use.0 != 0;
        match index.mailboxes.iter().any(|(number, mailbox)| has_role(mailbox) && stays(number)) {
            true => Err(Error::property("role")),
            false => Ok(()),
        }
    }
}

/// Notes the `sortOrder` of mailboxes.
pub(super) fn order_noted(index: &Index, account: u32, changed: impl IntoIterator<Item = (u32, Value)>) -> Work {
    let mut orders = orders(index, account);
    orders.retain(|id, _| index.mailbox(id).is_some());
    orders.extend(changed.into_iter().map(|(number, order)| (mailbox_id(number), order)));
    Work::Annotate { name: ORDER.into(), value: format!("{}", Value::Object(orders)).into_bytes() }
}
