//! The quota of the account (RFC 9425): one object for bytes, if the account has a bound.

use alloc::string::String;
use alloc::vec::Vec;

use crate::arguments::{Arguments, only};
use crate::changes::Page;
use crate::engine::{Engine, got};
use crate::error::Error;
use crate::{Value, json};

const PROPERTIES: [&str; 10] =
    ["id", "resourceType", "used", "hardLimit", "scope", "name", "types", "warnLimit", "softLimit", "description"];

fn quotas(engine: &mut Engine<'_>) -> Vec<Value> {
    let index = engine.index();
    let Some(account) = index.snapshot.account(engine.account) else { return Vec::new() };
    if account.quota.bytes == 0 {
        return Vec::new();
    }
    [json!({
        "id": "Qbytes", "resourceType": "octets", "used": account.used_bytes, "hardLimit": account.quota.bytes,
        "scope": "account", "name": "Mail", "types": ["Email"], "warnLimit": null, "softLimit": null, "description": null,
    })]
    .into()
}

pub(crate) fn get(engine: &mut Engine<'_>, mut arguments: Arguments) -> Result<Value, Error> {
    let account = engine.account(&mut arguments)?;
    let (ids, properties) = (arguments.ids()?, arguments.properties(&PROPERTIES)?);
    arguments.end()?;
    let all = quotas(engine);
    let is_there = |id: &String| all.iter().any(|quota| quota["id"] == id.as_str());
    let missing = ids.iter().flatten().filter(|id| !is_there(id)).cloned().collect();
    let is_wanted = |quota: &Value| ids.as_ref().is_none_or(|ids| ids.iter().any(|id| quota["id"] == id.as_str()));
    let list = all.iter().filter(|quota| is_wanted(quota)).cloned().map(|quota| only(quota, &properties)).collect();
    Ok(got(account, engine.state(), list, missing))
}

/// Used bytes are no part of a state: clients ask again.
pub(crate) fn changes(_: &mut Engine<'_>, _: Arguments) -> Result<Value, Error> {
    Err(Error::new("cannotCalculateChanges"))
}

pub(crate) fn query(engine: &mut Engine<'_>, mut arguments: Arguments) -> Result<Value, Error> {
    let account = engine.account(&mut arguments)?;
    let (mut filter, page) = (Arguments(arguments.object("filter")?), Page::read(&mut arguments)?);
    arguments.array("sort")?;
    arguments.end()?;
    let mut all = quotas(engine);
    for name in ["name", "scope", "resourceType", "type"] {
        let Some(wanted) = filter.string(name)? else { continue };
        all.retain(|quota| match name {
            "name" => quota[name].as_str().is_some_and(|name| name.contains(&wanted)),
            "type" => quota["types"].as_array().is_some_and(|types| types.iter().any(|one| *one == wanted)),
            _ => quota[name] == wanted,
        });
    }
    filter.end().map_err(|_| Error::new("unsupportedFilter"))?;
    let ids = all.iter().filter_map(|quota| quota["id"].as_str().map(String::from)).collect();
    let state = engine.state();
    page.reply(account, state, ids, false)
}

pub(crate) fn query_changes(_: &mut Engine<'_>, _: Arguments) -> Result<Value, Error> {
    Err(Error::new("cannotCalculateChanges"))
}
