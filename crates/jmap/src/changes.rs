//! Changes between two states (RFC 8620, section 5.2), which are two snapshots.
//!
//! Where a client wants fewer changes than there are, its next state is a *step*, `old.new.count`: both snapshots and how many of the
//! changes it has. The order of changes between two snapshots is always the same.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::arguments::Arguments;
use crate::engine::Engine;
use crate::error::Error;
use crate::index::Index;
use crate::{Value, json};

/// Ids of what changed.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub created: Vec<String>,
    pub updated: Vec<String>,
    pub destroyed: Vec<String>,
}

/// Answers a `changes` with what `compare` finds between two snapshots.
pub(crate) fn changes(
    engine: &mut Engine<'_>,
    mut arguments: Arguments,
    compare: impl FnOnce(&Index, &Index) -> Changes,
) -> Result<Value, Error> {
    let account = engine.account(&mut arguments)?;
    let since = arguments.string("sinceState")?.ok_or_else(|| Error::arguments("sinceState"))?;
    let most = arguments.unsigned("maxChanges")?;
    arguments.end()?;
    if most == Some(0) {
        return Err(Error::arguments("maxChanges"));
    }
    let step = Step::read(&since).ok_or_else(|| Error::new("cannotCalculateChanges"))?;
    let old = engine.former(step.old)?;
    let (new, now): (Arc<Index>, String) = match step.new {
        Some(new) => (engine.former(new)?, format!("{new:x}")),
        None => (engine.index(), engine.state()),
    };
    let mut found = compare(&old, &new);
    let total = [&found.created, &found.updated, &found.destroyed]
        .iter()
        .fold(0usize, |sum, ids| sum.saturating_add(ids.len()));
    let (mut skipped, mut room) = (step.count, most.unwrap_or(usize::MAX));
    for ids in [&mut found.created, &mut found.updated, &mut found.destroyed] {
        let passed = skipped.min(ids.len());
        ids.drain(..passed);
        skipped = skipped.saturating_sub(passed);
        ids.truncate(room);
        room = room.saturating_sub(ids.len());
    }
    let told = step.count.saturating_add(most.unwrap_or(usize::MAX));
    let has_more = told < total;
    let state = if has_more { format!("{:x}.{now}.{told}", step.old) } else { now };
    Ok(json!({
        "accountId": account, "oldState": since, "newState": state, "hasMoreChanges": has_more,
        "created": found.created, "updated": found.updated, "destroyed": found.destroyed,
    }))
}

/// A state as a client has it.
struct Step {
    old: u64,
    new: Option<u64>,
    count: usize,
}

impl Step {
    fn read(state: &str) -> Option<Step> {
        let mut parts = state.splitn(3, '.');
        let old = u64::from_str_radix(parts.next()?, 16).ok()?;
        let new = parts.next().map(|new| u64::from_str_radix(new, 16)).transpose().ok()?;
        let count = parts.next().map_or(Some(0), |count| count.parse().ok())?;
        Some(Step { old, new, count })
    }
}

/// Answers a `queryChanges` with the ids of a query in both states.
pub(crate) fn query_changes(
    engine: &mut Engine<'_>,
    mut arguments: Arguments,
    evaluate: impl Fn(&mut Engine<'_>, &Index, &mut Arguments) -> Result<(Vec<String>, bool), Error>,
) -> Result<Value, Error> {
    let account = engine.account(&mut arguments)?;
    let since = arguments.string("sinceQueryState")?.ok_or_else(|| Error::arguments("sinceQueryState"))?;
    let most = arguments.unsigned("maxChanges")?;
    // Changes behind this id may be left out; all are told.
    arguments.string("upToId")?;
    let counts = arguments.boolean("calculateTotal", false)?;
    let step = Step::read(&since).filter(|step| step.new.is_none());
    let step = step.ok_or_else(|| Error::new("cannotCalculateChanges"))?;
    let (old, new) = (engine.former(step.old)?, engine.index());
    let mut again = Arguments(arguments.0.clone());
    let (before, is_exact) = evaluate(engine, &old, &mut again)?;
    let (after, _) = evaluate(engine, &new, &mut arguments)?;
    arguments.end()?;
    if !is_exact {
        return Err(Error::new("cannotCalculateChanges"));
    }
    let state = engine.state();
    // An Email that is found in both may stand elsewhere now: it is removed and added.
    let stays: alloc::collections::BTreeSet<&String> = match before == after {
        true => before.iter().collect(),
        false => {
            let prefix = before.iter().zip(&after).take_while(|(old, new)| old == new);
            prefix.map(|(old, _)| old).collect()
        }
    };
    let removed: Vec<&String> = before.iter().filter(|id| !stays.contains(id)).collect();
    let added: Vec<Value> = (after.iter().enumerate())
        .filter(|(_, id)| !stays.contains(id))
        .map(|(at, id)| json!({ "id": id, "index": at }))
        .collect();
    if most.is_some_and(|most| removed.len().saturating_add(added.len()) > most) {
        return Err(Error::new("tooManyChanges"));
    }
    let mut reply = json!({
        "accountId": account, "oldQueryState": since, "newQueryState": state, "removed": removed, "added": added,
    });
    if let (true, Some(reply)) = (counts, reply.as_object_mut()) {
        reply.insert("total".into(), after.len().into());
    }
    Ok(reply)
}

/// A part of the ids of a query, as its arguments want it (RFC 8620, section 5.5).
pub(crate) struct Page {
    position: i64,
    anchor: Option<String>,
    anchor_offset: i64,
    limit: Option<usize>,
    counts: bool,
}

impl Page {
    pub fn read(arguments: &mut Arguments) -> Result<Page, Error> {
        Ok(Page {
            position: arguments.integer("position")?.unwrap_or(0),
            anchor: arguments.string("anchor")?,
            anchor_offset: arguments.integer("anchorOffset")?.unwrap_or(0),
            limit: arguments.unsigned("limit")?,
            counts: arguments.boolean("calculateTotal", false)?,
        })
    }

    pub fn reply(self, account: String, state: String, ids: Vec<String>, can: bool) -> Result<Value, Error> {
        let total = i64::try_from(ids.len()).unwrap_or(i64::MAX);
        let start = match &self.anchor {
            Some(anchor) => {
                let at = ids.iter().position(|id| id == anchor).ok_or_else(|| Error::new("anchorNotFound"))?;
                i64::try_from(at).unwrap_or(i64::MAX).saturating_add(self.anchor_offset).max(0)
            }
            None if self.position < 0 => total.saturating_add(self.position).max(0),
            None => self.position,
        };
        let skipped = usize::try_from(start).unwrap_or(usize::MAX);
        let page: Vec<String> = ids.into_iter().skip(skipped).take(self.limit.unwrap_or(usize::MAX)).collect();
        let position = if page.is_empty() && start >= total { 0 } else { start };
        let mut reply = json!({
            "accountId": account, "queryState": state, "canCalculateChanges": can, "position": position, "ids": page,
        });
        if let (true, Some(reply)) = (self.counts, reply.as_object_mut()) {
            reply.insert("total".into(), total.into());
        }
        Ok(reply)
    }
}
