//! `Mailbox/query` and `Mailbox/queryChanges` (RFC 8621, sections 2.3 and 2.4).

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Ordering;

use super::objects;
use crate::arguments::Arguments;
use crate::changes::{self, Page};
use crate::engine::Engine;
use crate::error::Error;
use crate::index::{Index, mailbox_id};
use crate::limits::{COMPARATORS_MAX, CONDITIONS_MAX};
use crate::{Map, Value};

type Object = Map<String, Value>;

pub(crate) fn query(engine: &mut Engine<'_>, mut arguments: Arguments) -> Result<Value, Error> {
    let account = engine.account(&mut arguments)?;
    let page = Page::read(&mut arguments)?;
    let index = engine.index();
    let (ids, _) = evaluate(engine, &index, &mut arguments)?;
    arguments.end()?;
    let state = engine.state();
    page.reply(account, state, ids, true)
}

pub(crate) fn query_changes(engine: &mut Engine<'_>, arguments: Arguments) -> Result<Value, Error> {
    changes::query_changes(engine, arguments, evaluate)
}

/// The ids of the mailboxes that a filter matches, sorted; a query of mailboxes is always exact.
fn evaluate(engine: &mut Engine<'_>, index: &Index, arguments: &mut Arguments) -> Result<(Vec<String>, bool), Error> {
    let (filter, sort) = (arguments.take("filter"), arguments.array("sort")?);
    let (as_tree, filters_tree) = (arguments.boolean("sortAsTree", false)?, arguments.boolean("filterAsTree", false)?);
    if sort.len() > COMPARATORS_MAX {
        return Err(Error::new("unsupportedSort"));
    }
    let sort = sort.into_iter().map(Comparator::read).collect::<Result<Vec<_>, _>>()?;
    let objects = objects(index, engine.account, false);
    let mut found: Vec<(u32, &Object)> = Vec::new();
    for (number, object) in &objects {
        let mut left = CONDITIONS_MAX;
        if filter.as_ref().map_or(Ok(true), |filter| matches(filter, object, &mut left))? {
            found.push((*number, object));
        }
    }
    let order = |(_, one): &(u32, &Object), (_, other): &(u32, &Object)| {
        sort.iter().map(|by| by.compare(one, other)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    };
    found.sort_by(order);
    if filters_tree {
        let all: Vec<String> = found.iter().map(|(number, _)| mailbox_id(*number)).collect();
        // A mailbox is left out whose parent is: repeated, that reaches the whole branch.
        let has_parents = |object: &Object| parents(object, &objects).iter().all(|parent| all.contains(parent));
        found.retain(|(_, object)| has_parents(object));
    }
    let mut ids: Vec<String> = found.iter().map(|(number, _)| mailbox_id(*number)).collect();
    if as_tree {
        ids = tree(&found);
    }
    Ok((ids, true))
}

/// The ids of the mailboxes above one.
fn parents(object: &Object, objects: &BTreeMap<u32, Object>) -> Vec<String> {
    let mut above = Vec::new();
    let mut at = object;
    while let Some(parent) = at.get("parentId").and_then(Value::as_str) {
        above.push(parent.into());
        let next = objects.values().find(|object| object.get("id").and_then(Value::as_str) == Some(parent));
        // Names get shorter from a mailbox to its parent, so this ends.
        let Some(next) = next.filter(|_| above.len() <= objects.len()) else { break };
        at = next;
    }
    above
}

/// Each mailbox behind its parent, with siblings in their order.
fn tree(found: &[(u32, &Object)]) -> Vec<String> {
    let ids: Vec<String> = found.iter().map(|(number, _)| mailbox_id(*number)).collect();
    let parent = |object: &Object| object.get("parentId").and_then(Value::as_str).map(String::from);
    let mut children: BTreeMap<Option<String>, Vec<&String>> = BTreeMap::new();
    for ((_, object), id) in found.iter().zip(&ids) {
        let parent = parent(object).filter(|parent| ids.contains(parent));
        children.entry(parent).or_default().push(id);
    }
    let mut sorted = Vec::new();
    let mut open: Vec<&String> = children.remove(&None).unwrap_or_default();
    open.reverse();
    while let Some(id) = open.pop() {
        sorted.push(id.clone());
        open.extend(children.remove(&Some(id.clone())).unwrap_or_default().into_iter().rev());
    }
    sorted
}

fn matches(filter: &Value, object: &Object, left: &mut usize) -> Result<bool, Error> {
    *left = left.checked_sub(1).ok_or_else(|| Error::new("unsupportedFilter"))?;
    let Value::Object(filter) = filter else { return Err(Error::arguments("filter")) };
    if let Some(operator) = filter.get("operator") {
        let Some(Value::Array(conditions)) = filter.get("conditions") else {
            return Err(Error::arguments("conditions"));
        };
        let mut all = Vec::new();
        for condition in conditions {
            all.push(matches(condition, object, left)?);
        }
        return match operator.as_str() {
            Some("AND") => Ok(all.iter().all(|found| *found)),
            Some("OR") => Ok(all.iter().any(|found| *found)),
            Some("NOT") => Ok(!all.iter().any(|found| *found)),
            _ => Err(Error::arguments("operator")),
        };
    }
    for (name, wanted) in filter {
        let value = object.get(name.as_str()).unwrap_or(&Value::Null);
        let fits = match name.as_str() {
            "parentId" | "role" | "isSubscribed" => value == wanted,
            "hasAnyRole" => {
                object.get("role").is_some_and(|role| !role.is_null())
                    == wanted.as_bool().ok_or_else(|| Error::arguments(name))?
            }
            "name" => {
                let wanted = wanted.as_str().ok_or_else(|| Error::arguments(name))?.to_lowercase();
                value.as_str().is_some_and(|value| value.to_lowercase().contains(&wanted))
            }
            _ => return Err(Error::new("unsupportedFilter")),
        };
        if !fits {
            return Ok(false);
        }
    }
    Ok(true)
}

struct Comparator {
    property: String,
    is_ascending: bool,
}

impl Comparator {
    fn read(value: Value) -> Result<Comparator, Error> {
        let Value::Object(object) = value else { return Err(Error::arguments("sort")) };
        let mut object = Arguments(object);
        let property = object.string("property")?.unwrap_or_default();
        let is_ascending = object.boolean("isAscending", true)?;
        match property.as_str() {
            "sortOrder" | "name" => Ok(Comparator { property, is_ascending }),
            _ => Err(Error::new("unsupportedSort")),
        }
    }

    fn compare(&self, one: &Object, other: &Object) -> Ordering {
        let order = match self.property.as_str() {
            "name" => {
                let name = |object: &Object| object.get("name").and_then(Value::as_str).map(str::to_lowercase);
                name(one).cmp(&name(other))
            }
            property => {
                let number = |object: &Object| object.get(property).and_then(Value::as_u64);
                number(one).cmp(&number(other))
            }
        };
        if self.is_ascending { order } else { order.reverse() }
    }
}
