//! `Email/set` (RFC 8621, section 4.6). All changes of one Email are one transaction.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use store::{Change, Flags};

use super::compose::compose;
use crate::arguments::Arguments;
use crate::date::Date;
use crate::engine::Engine;
use crate::error::Error;
use crate::host::{Place, Work};
use crate::index::{Email, Index, SYSTEM, mailbox_id};
use crate::limits::MAILBOXES_OF_EMAIL_MAX;
use crate::outcome::{Outcome, Set};
use crate::references::created;
use crate::{Map, Value, json};

type Object = Map<String, Value>;

/// Properties of a new Email besides header fields.
const CREATABLE: [&str; 9] = [
    "mailboxIds",
    "keywords",
    "receivedAt",
    "bodyStructure",
    "bodyValues",
    "textBody",
    "htmlBody",
    "attachments",
    "headers",
];

pub(crate) fn set(engine: &mut Engine<'_>, mut arguments: Arguments) -> Result<Value, Error> {
    let Set { account, old_state, create, update, destroy } = Set::read(engine, &mut arguments)?;
    arguments.end()?;
    let mut outcome = Outcome::default();
    for (creation, object) in create {
        let made = make(engine, object);
        outcome.created(engine, creation, made);
    }
    let update = update.into_iter().map(|(id, patch)| (engine.resolved(id), patch)).collect();
    for (id, changed) in together(engine, update, |engine, id, patch| change(engine, id, patch.clone())) {
        outcome.updated(id, changed);
    }
    let destroy = destroy.into_iter().map(|id| (engine.resolved(id), Value::Null)).collect();
    for (id, removed) in together(engine, destroy, |engine, id, _| remove(engine, id)) {
        outcome.destroyed(id, removed);
    }
    Ok(outcome.reply(&account, &old_state, &engine.state()))
}

/// Carries out what `read` makes of each Email: all in one transaction, or, where that fails, each in its own.
fn together(
    engine: &mut Engine<'_>,
    emails: Vec<(String, Value)>,
    read: impl Fn(&mut Engine<'_>, &str, &Value) -> Result<Vec<Work>, Error>,
) -> Vec<(String, Result<(), Error>)> {
    let ids: BTreeSet<&String> = emails.iter().map(|(id, _)| id).collect();
    let are_unique = ids.len() == emails.len();
    let read_all = emails.iter().map(|(id, value)| read(engine, id, value)).collect::<Vec<_>>();
    let all: Vec<Work> = read_all.iter().flatten().flatten().cloned().collect();
    if are_unique && apply(engine, all).is_ok() {
        return emails.into_iter().zip(read_all).map(|((id, _), done)| (id, done.map(drop))).collect();
    }
    let one = |(id, value): (String, Value)| {
        let done = read(engine, &id, &value).and_then(|works| apply(engine, works));
        (id, done)
    };
    emails.into_iter().map(one).collect()
}

fn apply(engine: &mut Engine<'_>, works: Vec<Work>) -> Result<(), Error> {
    if !works.is_empty() {
        engine.host.apply(works)?;
        engine.changed();
    }
    Ok(())
}

/// Mailboxes and keywords of an Email, as a client wants them.
pub(super) struct Wanted {
    pub mailboxes: BTreeSet<u32>,
    keywords: BTreeSet<String>,
}

impl Wanted {
    pub fn read(engine: &Engine<'_>, index: &Index, object: &Object) -> Result<Wanted, Error> {
        let wrong = || Error::property("mailboxIds");
        let Some(Value::Object(ids)) = object.get("mailboxIds") else { return Err(wrong()) };
        let mut mailboxes = BTreeSet::new();
        for (id, is_set) in ids {
            let mailbox = created(id, &engine.created).and_then(|id| index.mailbox(id));
            mailboxes.insert(mailbox.filter(|_| *is_set == true).ok_or_else(wrong)?.0);
        }
        if mailboxes.is_empty() {
            return Err(wrong());
        }
        if mailboxes.len() > MAILBOXES_OF_EMAIL_MAX {
            return Err(Error::new("tooManyMailboxes"));
        }
        let keywords = match object.get("keywords") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(keywords)) => keywords.clone(),
            Some(_) => return Err(Error::property("keywords")),
        };
        let is_keyword = |(name, is_set): (&String, &Value)| {
            let is_fine = |byte: u8| byte.is_ascii_graphic() && !b"(){]%*\"\\".contains(&byte);
            *is_set == true && !name.is_empty() && name.len() <= store::KEYWORD_BYTES_MAX && name.bytes().all(is_fine)
        };
        if !keywords.iter().all(is_keyword) {
            return Err(Error::property("keywords"));
        }
        if keywords.len() > store::KEYWORDS_MAX {
            return Err(Error::new("tooManyKeywords"));
        }
        Ok(Wanted { mailboxes, keywords: keywords.keys().map(|name| name.to_ascii_lowercase()).collect() })
    }

    /// System flags and keywords of the store.
    fn flags(&self) -> (u64, Vec<String>) {
        let system =
            SYSTEM.iter().filter(|(_, name)| self.keywords.contains(*name)).fold(0, |flags, (bit, _)| flags | bit);
        let others = self.keywords.iter().filter(|name| !SYSTEM.iter().any(|(_, known)| known == name));
        (system, others.cloned().collect())
    }

    pub fn places(&self) -> Vec<Place> {
        let (flags, keywords) = self.flags();
        self.mailboxes.iter().map(|&mailbox| Place { mailbox, flags, keywords: keywords.clone() }).collect()
    }
}

fn make(engine: &mut Engine<'_>, object: Value) -> Result<Value, Error> {
    let Value::Object(object) = object else { return Err(Error::new("invalidProperties")) };
    let is_known = |name: &&String| {
        CREATABLE.contains(&name.as_str())
            || name.starts_with("header:")
            || crate::header::Property::convenience(name).is_some()
    };
    if let Some(unknown) = object.keys().find(|name| !is_known(name)) {
        return Err(Error::property(unknown));
    }
    let index = engine.index();
    let wanted = Wanted::read(engine, &index, &object)?;
    let received = match object.get("receivedAt") {
        None | Some(Value::Null) => engine.host.now(),
        Some(date) => date.as_str().and_then(Date::read_utc).ok_or_else(|| Error::property("receivedAt"))?,
    };
    let content = compose(engine, &object)?;
    deliver(engine, content, &wanted, received)
}

/// Stores a message; returns the properties that the server sets.
pub(super) fn deliver(
    engine: &mut Engine<'_>,
    content: Vec<u8>,
    wanted: &Wanted,
    received: i64,
) -> Result<Value, Error> {
    let (mailbox, uid) = engine.host.deliver(content, wanted.places(), received)?;
    engine.changed();
    let index = engine.index();
    let found = index.mailbox(&mailbox_id(mailbox)).and_then(|(_, mailbox)| mailbox.entry(uid));
    let email = found.and_then(|entry| index.email(entry.message.get())).ok_or_else(|| Error::new("serverFail"))?;
    Ok(json!({ "id": email.id, "blobId": email.id, "threadId": email.thread, "size": email.size }))
}

/// The operations that a patch of an Email asks for.
fn change(engine: &mut Engine<'_>, id: &str, patch: Value) -> Result<Vec<Work>, Error> {
    let index = engine.index();
    let missing = || Error::new("notFound");
    let email = index.message_of(id).and_then(|message| index.email(message)).ok_or_else(missing)?;
    let Value::Object(patch) = patch else { return Err(Error::new("invalidPatch")) };
    let mut object = Object::new();
    let set = |names: Vec<String>| Value::Object(names.into_iter().map(|name| (name, Value::Bool(true))).collect());
    object.insert("mailboxIds".into(), set(email.mailboxes.iter().map(|number| mailbox_id(*number)).collect()));
    object.insert("keywords".into(), set(email.keywords.iter().cloned().collect()));
    let patch = patch.into_iter().map(|(path, value)| (known_path(engine, path), value)).collect::<Object>();
    let fixed =
        patch.keys().find(|path| !["mailboxIds", "keywords"].contains(&path.split('/').next().unwrap_or_default()));
    if let Some(fixed) = fixed {
        return same(engine, &email, fixed, &patch);
    }
    crate::patch::apply(&mut object, patch)?;
    let wanted = Wanted::read(engine, &index, &object)?;
    Ok(works(&index, &email, &wanted))
}

/// A path as the object has it: a mailbox that this request has created by its id, a keyword in small letters.
fn known_path(engine: &Engine<'_>, path: String) -> String {
    match path.split_once('/') {
        Some(("mailboxIds", id)) => alloc::format!("mailboxIds/{}", engine.resolved(id.into())),
        Some(("keywords", _)) => path.to_ascii_lowercase(),
        _ => path,
    }
}

/// A property that never changes may be sent with the value that it has.
fn same(engine: &mut Engine<'_>, email: &Email, fixed: &str, patch: &Object) -> Result<Vec<Work>, Error> {
    let stored = match fixed {
        "id" | "blobId" => Value::from(email.id.clone()),
        "threadId" => email.thread.clone().into(),
        "size" => email.size.into(),
        "receivedAt" => Date::utc(email.received).into(),
        _ => return Err(Error::property(fixed)),
    };
    if patch.get(fixed) != Some(&stored) {
        return Err(Error::property(fixed));
    }
    let rest: Object =
        patch.iter().filter(|(name, _)| *name != fixed).map(|(name, value)| (name.clone(), value.clone())).collect();
    if rest.is_empty() { Ok(Vec::new()) } else { change(engine, &email.id, Value::Object(rest)) }
}

/// The operations that make an Email what it is wanted to be: flags first, so that copies have them.
fn works(index: &Index, email: &Email, wanted: &Wanted) -> Vec<Work> {
    let mut works = Vec::new();
    let (flags, keywords) = wanted.flags();
    if wanted.keywords != email.keywords {
        for (_, mailbox, uid, entry) in index.entries(email.message) {
            let flags = flags | entry.flags.0 & Flags::DELETED;
            works.push(Work::Store { mailbox, uid, change: Change::Replace, flags, keywords: keywords.clone() });
        }
    }
    let mut added = wanted.mailboxes.difference(&email.mailboxes).copied();
    let kept = index.places(email.message).find(|(mailbox, _)| wanted.mailboxes.contains(mailbox));
    let removed: Vec<(u32, u32)> =
        index.places(email.message).filter(|(mailbox, _)| !wanted.mailboxes.contains(mailbox)).collect();
    // An Email that is nowhere for a moment would be lost: copies come before what is removed.
    let mut late = Vec::new();
    for (mailbox, uid) in removed {
        match added.next() {
            Some(to) => late.push(Work::Move { from: mailbox, to, uid }),
            None => late.push(Work::Expunge { mailbox, uid }),
        }
    }
    let source = kept.or_else(|| index.places(email.message).next());
    if let Some((from, uid)) = source {
        works.extend(added.map(|to| Work::Copy { from, to, uid }));
    }
    works.extend(late);
    works
}

fn remove(engine: &mut Engine<'_>, id: &str) -> Result<Vec<Work>, Error> {
    let index = engine.index();
    let message = index.message_of(id).ok_or_else(|| Error::new("notFound"))?;
    Ok(index.places(message).map(|(mailbox, uid)| Work::Expunge { mailbox, uid }).collect())
}
