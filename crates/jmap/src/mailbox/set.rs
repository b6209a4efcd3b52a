//! `Mailbox/set` (RFC 8621, section 2.5).

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::wanted::{SETTABLE, Wanted, full_name, order_noted};
use super::{change, objects};
use crate::arguments::Arguments;
use crate::engine::Engine;
use crate::error::Error;
use crate::host::Work;
use crate::outcome::{Outcome, Set};
use crate::{Map, Value};

/// How often objects of one call that others of it stand in the way of are tried. Each time all of a chain of names can pass.
const PASSES_MAX: usize = 8;

/// An object of a call.
enum Task {
    Create(String, Value),
    Update(String, Value),
    Destroy(String),
}

pub(crate) fn set(engine: &mut Engine<'_>, mut arguments: Arguments) -> Result<Value, Error> {
    let Set { account, old_state, create, update, destroy } = Set::read(engine, &mut arguments)?;
    let with_emails = arguments.boolean("onDestroyRemoveEmails", false)?;
    arguments.end()?;
    let destroy = children_first(engine, destroy);
    let mut tasks: Vec<Task> =
        in_order(create).into_iter().map(|(creation, object)| Task::Create(creation, object)).collect();
    tasks.extend(update.into_iter().map(|(id, patch)| Task::Update(id, patch)));
    tasks.extend(destroy.into_iter().map(Task::Destroy));
    let mut outcome = Outcome::default();
    carry_out(engine, &mut outcome, tasks, with_emails);
    Ok(outcome.reply(&account, &old_state, &engine.state()))
}

/// Does what a call wants: in which order does not matter, as long as the mailboxes are as they may be in the end (RFC 8620, section 5.3).
fn carry_out(engine: &mut Engine<'_>, outcome: &mut Outcome, mut tasks: Vec<Task>, with_emails: bool) {
    for pass in 1..=PASSES_MAX {
        let (count, mut refused) = (tasks.len(), Vec::new());
        for task in tasks {
            let done = match &task {
                Task::Create(_, object) => make(engine, object),
                Task::Update(id, patch) => change::change(engine, id, patch).map(|()| Value::Null),
                Task::Destroy(id) => remove(engine, id, with_emails).map(|()| Value::Null),
            };
            match done {
                Err(error) if may_pass(&error) => refused.push((task, error)),
                done => tell(engine, outcome, task, done),
            }
        }
        if refused.len() == count {
            exchange(engine, outcome, &mut refused);
        }
        let has_passed = refused.len() < count;
        if !has_passed || pass == PASSES_MAX {
            refused.into_iter().for_each(|(task, error)| tell(engine, outcome, task, Err(error)));
            return;
        }
        tasks = refused.into_iter().rev().map(|(task, _)| task).collect();
    }
}

/// Carries out the updates that only each other stand in the way of.
fn exchange(engine: &mut Engine<'_>, outcome: &mut Outcome, refused: &mut Vec<(Task, Error)>) {
    let update = |(at, (task, _)): (usize, &(Task, Error))| match task {
        Task::Update(id, patch) => Some((at, id.clone(), patch.clone())),
        _ => None,
    };
    let updates = refused.iter().enumerate().filter_map(update).collect();
    for at in change::exchange(engine, updates).into_iter().rev() {
        let (task, _) = refused.remove(at);
        tell(engine, outcome, task, Ok(Value::Null));
    }
}

/// Whether an object may be taken when others of the call are done.
fn may_pass(error: &Error) -> bool {
    ["alreadyExists", "mailboxHasChild", "invalidProperties"].contains(&error.kind)
}

fn tell(engine: &mut Engine<'_>, outcome: &mut Outcome, task: Task, done: Result<Value, Error>) {
    match task {
        Task::Create(creation, _) => outcome.created(engine, creation, done),
        Task::Update(id, _) => outcome.updated(engine.resolved(id), done),
        Task::Destroy(id) => outcome.destroyed(engine.resolved(id), done.map(drop)),
    }
}

/// Mailboxes come before those above them.
fn children_first(engine: &mut Engine<'_>, mut destroy: Vec<String>) -> Vec<String> {
    let index = engine.index();
    destroy.sort_by_key(|id| Reverse(index.mailbox(id).map(|(_, mailbox)| mailbox.name.len())));
    destroy
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

fn make(engine: &mut Engine<'_>, object: &Value) -> Result<Value, Error> {
    let Value::Object(object) = object else { return Err(Error::new("invalidProperties")) };
    if let Some(unknown) = object.keys().find(|name| !SETTABLE.contains(&name.as_str())) {
        return Err(Error::property(unknown));
    }
    let wanted = Wanted::read(object, full_name(engine, object, None)?)?;
    wanted.check(&engine.index(), engine.account, &[])?;
    let Wanted { name, special_use, order, is_subscribed, .. } = wanted;
    let mut works = alloc::vec![Work::Create { name: name.clone(), special_use }];
    if is_subscribed {
        works.push(Work::Subscribe { name, is_subscribed });
    }
    let number = engine.host.apply(works)?;
    engine.changed();
    if object.contains_key("sortOrder") {
        let index = engine.index();
        engine.host.apply(alloc::vec![order_noted(&index, engine.account, [(number, order)])])?;
        engine.changed();
    }
    let index = engine.index();
    // It is empty: nothing is counted.
    let mut told = objects(&index, engine.account, false).remove(&number).ok_or_else(|| Error::new("serverFail"))?;
    // The client knows what it has sent.
    told.retain(|name, value| object.get(name) != Some(value));
    Ok(Value::Object(told))
}

fn remove(engine: &mut Engine<'_>, id: &str, with_emails: bool) -> Result<(), Error> {
    let index = engine.index();
    let id = engine.resolved(id.into());
    let (number, mailbox) = index.mailbox(&id).ok_or_else(|| Error::new("notFound"))?;
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
