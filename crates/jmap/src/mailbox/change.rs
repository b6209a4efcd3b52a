//! Changes of mailboxes: names with all below them, roles, subscriptions, order. All of one mailbox are one transaction, and so are all
//! of mailboxes that stand in each other's way.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::wanted::{SETTABLE, Wanted, full_name, order_noted};
use super::{COUNTS, objects};
use crate::Value;
use crate::engine::Engine;
use crate::error::Error;
use crate::host::Work;
use crate::index::Index;

/// A change of a mailbox.
struct Plan {
    number: u32,
    name: String,
    special_use: u16,
    is_subscribed: bool,
    wanted: Wanted,
    /// The new `sortOrder`.
    order: Option<Value>,
}

impl Plan {
    fn read(engine: &mut Engine<'_>, id: &str, patch: &Value) -> Result<Plan, Error> {
        let (index, missing) = (engine.index(), || Error::new("notFound"));
        let id = engine.resolved(id.into());
        let (number, mailbox) = index.mailbox(&id).cloned().ok_or_else(missing)?;
        let Value::Object(patch) = patch else { return Err(Error::new("invalidPatch")) };
        let has_counts = patch.keys().any(|path| COUNTS.contains(&path.as_str()));
        let before = objects(&index, engine.account, has_counts).remove(&number).ok_or_else(missing)?;
        let mut after = before.clone();
        crate::patch::apply(&mut after, patch.clone())?;
        let is_changed = |name: &&String| after.get(*name) != before.get(*name);
        if let Some(fixed) = after.keys().filter(is_changed).find(|name| !SETTABLE.contains(&name.as_str())) {
            return Err(Error::property(fixed));
        }
        let name = String::from_utf8_lossy(&mailbox.name).into_owned();
        let has_changed = |property: &str| after[property] != before[property];
        if name == "INBOX"
            && let Some(fixed) = ["name", "parentId", "role"].into_iter().find(|property| has_changed(property))
        {
            return Err(Error::property(fixed));
        }
        // A name that stays may be one that JMAP does not give.
        let will_be = match has_changed("name") || has_changed("parentId") {
            true => full_name(engine, &after, Some(number))?,
            false => name.clone(),
        };
        let mut wanted = Wanted::read(&after, will_be)?;
        if !has_changed("role") {
            wanted.special_use = mailbox.special_use.0;
        }
        wanted.new_role = wanted.special_use & !mailbox.special_use.0;
        let order = has_changed("sortOrder").then(|| wanted.order.clone());
        let (special_use, is_subscribed) = (mailbox.special_use.0, before["isSubscribed"] == true);
        Ok(Plan { number, name, special_use, is_subscribed, wanted, order })
    }

    fn is_renamed(&self) -> bool {
        self.name != self.wanted.name
    }

    fn rename(&self, name: String) -> Work {
        Work::Rename { mailbox: self.number, name }
    }

    /// Names that are subscribed to, and those that they become.
    fn subscriptions(&self, index: &Index, account: u32) -> Vec<(String, String)> {
        let Some(account) = index.snapshot.account(account) else { return Vec::new() };
        let behind = |name: &[u8]| {
            let rest =
                name.strip_prefix(self.name.as_bytes()).filter(|rest| rest.first() == Some(&store::DELIMITER))?;
            Some(String::from_utf8_lossy(rest).into_owned())
        };
        let below = account.mailboxes.keys().filter(|name| account.subscriptions.contains(&**name));
        below
            .filter_map(|name| behind(name))
            .map(|rest| (self.name.clone() + &rest, self.wanted.name.clone() + &rest))
            .collect()
    }
}

/// Changes a mailbox.
pub(super) fn change(engine: &mut Engine<'_>, id: &str, patch: &Value) -> Result<(), Error> {
    let plan = Plan::read(engine, id, patch)?;
    plan.wanted.check(&engine.index(), engine.account, &[plan.number])?;
    apply(engine, &[plan])
}

/// Changes the mailboxes that nothing but each other stands in the way of; returns the places of those.
pub(super) fn exchange(engine: &mut Engine<'_>, updates: Vec<(usize, String, Value)>) -> Vec<usize> {
    let mut plans = Vec::new();
    for (at, id, patch) in updates {
        if let Ok(plan) = Plan::read(engine, &id, &patch) {
            plans.push((at, plan));
        }
    }
    let index = engine.index();
    loop {
        let (count, all) = (plans.len(), plans.iter().map(|(_, plan)| plan.number).collect::<Vec<_>>());
        let names: Vec<String> = plans.iter().map(|(_, plan)| format!("{}/", plan.name)).collect();
        plans.retain(|(_, plan)| {
            let is_below = names.iter().any(|above| plan.wanted.name.starts_with(above.as_str()));
            !(is_below && plan.is_renamed()) && plan.wanted.check(&index, engine.account, &all).is_ok()
        });
        if plans.len() == count {
            break;
        }
    }
    let (places, plans): (Vec<usize>, Vec<Plan>) = plans.into_iter().unzip();
    let roles = plans
        .iter()
        .map(|plan| plan.wanted.special_use)
        .try_fold(0, |all, role| (all & role == 0).then_some(all | role));
    match plans.len() > 1 && roles.is_some() && apply(engine, &plans).is_ok() {
        true => places,
        false => Vec::new(),
    }
}

/// Carries out changes in one transaction.
fn apply(engine: &mut Engine<'_>, plans: &[Plan]) -> Result<(), Error> {
    let (index, account) = (engine.index(), engine.account);
    let renamed = || plans.iter().filter(|plan| plan.is_renamed());
    let mut works = Vec::new();
    if plans.len() > 1 {
        // Each leaves its name to the others.
        let aside = text::hex::encode(&engine.host.random());
        works.extend(renamed().enumerate().map(|(at, plan)| plan.rename(format!("{aside}{at}"))));
    }
    works.extend(renamed().map(|plan| plan.rename(plan.wanted.name.clone())));
    let has_other_role = |plan: &&Plan| plan.wanted.special_use != plan.special_use;
    works.extend(
        plans
            .iter()
            .filter(has_other_role)
            .map(|Plan { number, wanted, .. }| Work::SpecialUse { mailbox: *number, special_use: wanted.special_use }),
    );
    works.extend(subscribed(&index, account, plans));
    let orders: Vec<(u32, Value)> = plans.iter().filter_map(|plan| Some((plan.number, plan.order.clone()?))).collect();
    if !orders.is_empty() {
        works.push(order_noted(&index, account, orders));
    }
    if !works.is_empty() {
        engine.host.apply(works)?;
        engine.changed();
    }
    Ok(())
}

/// Subscriptions stay with the mailboxes: old names end before new ones begin, which may be the same.
fn subscribed(index: &Index, account: u32, plans: &[Plan]) -> Vec<Work> {
    let (mut ended, mut begun) = (Vec::new(), Vec::new());
    for plan in plans {
        let (is_renamed, will_be) = (plan.is_renamed(), plan.wanted.is_subscribed);
        if plan.is_subscribed && (is_renamed || !will_be) {
            ended.push(plan.name.clone());
        }
        if will_be && (is_renamed || !plan.is_subscribed) {
            begun.push(plan.wanted.name.clone());
        }
        let below = if is_renamed { plan.subscriptions(index, account) } else { Vec::new() };
        for (old, new) in below {
            ended.push(old);
            begun.push(new);
        }
    }
    let work = |is_subscribed| move |name| Work::Subscribe { name, is_subscribed };
    ended.into_iter().map(work(false)).chain(begun.into_iter().map(work(true))).collect()
}
