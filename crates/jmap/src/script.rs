//! Sieve scripts (RFC 9661), which the host keeps by their names and checks.
//!
//! The id of a script is made of the name that it had at first, and stays when it gets another name here: an annotation has the names whose
//! ids are of others. A script that another protocol renames is a new one. The content of a script is a blob by its digest.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::arguments::{Arguments, only};
use crate::blob;
use crate::changes::Page;
use crate::engine::{Engine, got};
use crate::error::Error;
use crate::host::{Filing, Misfiled, Script, Work};
use crate::outcome::{Outcome, Set};
use crate::{Map, Value, json};

/// The annotation: an object of JSON, ids by name.
const NOTED: &str = "jmap/scripts";

const PROPERTIES: [&str; 4] = ["id", "name", "blobId", "isActive"];

fn noted(engine: &mut Engine<'_>) -> Map<String, Value> {
    let index = engine.index();
    let account = index.snapshot.account(engine.account);
    let noted = account.and_then(|account| account.annotations.get(NOTED.as_bytes()).cloned());
    match noted.and_then(|noted| crate::json::read(&noted)) {
        Some(Value::Object(noted)) => noted,
        _ => Map::new(),
    }
}

/// The scripts by their ids. One whose name has been another's has an id of its own.
fn scripts(engine: &mut Engine<'_>) -> Vec<(String, Script)> {
    let noted = noted(engine);
    let id_of = |name: &str| noted.get(name).and_then(Value::as_str);
    let all = engine.host.scripts();
    let kept: Vec<&str> = all.iter().filter_map(|script| id_of(&script.name)).collect();
    let made = |name: &str| {
        let id = format!("F{:016x}", blob::hash(name.as_bytes()));
        if kept.contains(&id.as_str()) { format!("F{:016x}", blob::hash(format!("{name}\n").as_bytes())) } else { id }
    };
    let id = |script: &Script| id_of(&script.name).map_or_else(|| made(&script.name), String::from);
    let ids: Vec<String> = all.iter().map(id).collect();
    ids.into_iter().zip(all).collect()
}

fn object(id: &str, script: &Script) -> Value {
    json!({ "id": id, "name": script.name, "blobId": blob::of_script(&script.text), "isActive": script.is_active })
}

pub(crate) fn get(engine: &mut Engine<'_>, mut arguments: Arguments) -> Result<Value, Error> {
    let account = engine.account(&mut arguments)?;
    let (ids, properties) = (arguments.ids()?, arguments.properties(&PROPERTIES)?);
    arguments.end()?;
    let all = scripts(engine);
    let is_known = |id: &String| all.iter().any(|(known, _)| known == id);
    let missing = ids.iter().flatten().filter(|id| !is_known(id)).cloned().collect();
    let is_wanted = |id: &String| ids.as_ref().is_none_or(|ids| ids.contains(id));
    let wanted = all.iter().filter(|(id, _)| is_wanted(id));
    let list = wanted.map(|(id, script)| only(object(id, script), &properties)).collect();
    Ok(got(account, engine.state(), list, missing))
}

pub(crate) fn query(engine: &mut Engine<'_>, mut arguments: Arguments) -> Result<Value, Error> {
    let account = engine.account(&mut arguments)?;
    let (mut filter, sort) = (Arguments(arguments.object("filter")?), arguments.array("sort")?);
    let page = Page::read(&mut arguments)?;
    arguments.end()?;
    let (name, is_active) = (filter.string("name")?, filter.take("isActive").and_then(|value| value.as_bool()));
    filter.end().map_err(|_| Error::new("unsupportedFilter"))?;
    let mut all = scripts(engine);
    all.retain(|(_, script)| {
        name.as_ref().is_none_or(|name| script.name.contains(name.as_str()))
            && is_active.is_none_or(|is_active| script.is_active == is_active)
    });
    for by in sort.iter().rev() {
        let is_descending = by["isAscending"] == false;
        match by["property"].as_str() {
            Some("name") => all.sort_by(|(_, one), (_, other)| one.name.cmp(&other.name)),
            Some("isActive") => all.sort_by_key(|(_, script)| script.is_active),
            _ => return Err(Error::new("unsupportedSort")),
        }
        if is_descending {
            all.reverse();
        }
    }
    let ids = all.into_iter().map(|(id, _)| id).collect();
    let state = engine.state();
    page.reply(account, state, ids, false)
}

pub(crate) fn validate(engine: &mut Engine<'_>, mut arguments: Arguments) -> Result<Value, Error> {
    let account = engine.account(&mut arguments)?;
    let id = arguments.string("blobId")?.ok_or_else(|| Error::arguments("blobId"))?;
    arguments.end()?;
    let checked = text(engine, &id).and_then(|text| Ok(engine.host.check_script(&text)?));
    Ok(json!({ "accountId": account, "error": checked.err().map(Error::value) }))
}

pub(crate) fn set(engine: &mut Engine<'_>, mut arguments: Arguments) -> Result<Value, Error> {
    let Set { account, old_state, create, update, destroy } = Set::read(engine, &mut arguments)?;
    let activate = arguments.string("onSuccessActivateScript")?;
    let deactivates = arguments.boolean("onSuccessDeactivateScript", false)?;
    arguments.end()?;
    let (mut outcome, mut is_done) = (Outcome::default(), true);
    for (creation, object) in create {
        let created = make(engine, object);
        is_done &= created.is_ok();
        outcome.created(engine, creation, created);
    }
    for (id, patch) in update {
        let id = engine.resolved(id);
        let updated = change(engine, &id, patch);
        is_done &= updated.is_ok();
        outcome.updated(id, updated);
    }
    for id in destroy {
        let id = engine.resolved(id);
        let destroyed = remove(engine, &id);
        is_done &= destroyed.is_ok();
        outcome.destroyed(id, destroyed);
    }
    if is_done && (deactivates || activate.is_some()) {
        for (id, is_active) in switch(engine, activate.as_deref())? {
            outcome.updated(id, Ok(json!({ "isActive": is_active })));
        }
    }
    Ok(outcome.reply(&account, &old_state, &engine.state()))
}

/// The text of a blob.
fn text(engine: &mut Engine<'_>, id: &str) -> Result<Vec<u8>, Error> {
    let index = engine.index();
    let most = engine.host.sieve().script_bytes_max;
    let mut found = blob::find(engine.host, &index, id).ok_or_else(|| Error::no_blobs([id.into()].into()))?;
    let (text, is_whole) = found.bytes(engine.host, most);
    if is_whole { Ok(text) } else { Err(Error::new("tooLarge")) }
}

/// Changes the scripts.
fn file(engine: &mut Engine<'_>, filing: Filing) -> Result<(), Error> {
    engine.host.file_script(filing)?;
    engine.changed();
    Ok(())
}

/// A name that another script has is refused.
fn taken(engine: &mut Engine<'_>, name: &str) -> Result<(), Error> {
    match scripts(engine).into_iter().find(|(_, script)| script.name == name) {
        None => Ok(()),
        Some((id, _)) => Err(Error::new("alreadyExists").with("existingId", id)),
    }
}

fn make(engine: &mut Engine<'_>, object: Value) -> Result<Value, Error> {
    let Value::Object(object) = object else { return Err(Error::new("invalidProperties")) };
    let mut properties = Arguments(object);
    let name = properties.string("name").map_err(|_| Error::property("name"))?;
    let blob = properties.string("blobId").ok().flatten().ok_or_else(|| Error::property("blobId"))?;
    if properties.boolean("isActive", false).unwrap_or(true) {
        return Err(Error::property("isActive"));
    }
    if let Some(other) = properties.0.keys().next() {
        return Err(Error::property(other));
    }
    let name = name.unwrap_or_else(|| format!("script {}", text::hex::encode(&engine.host.random())));
    taken(engine, &name)?;
    let text = text(engine, &blob)?;
    file(engine, Filing::Put { name: name.clone(), text })?;
    let made = scripts(engine).into_iter().find(|(_, script)| script.name == name);
    made.map(|(id, script)| self::object(&id, &script)).ok_or_else(|| Error::new("serverFail"))
}

fn change(engine: &mut Engine<'_>, id: &str, patch: Value) -> Result<(), Error> {
    let Value::Object(patch) = patch else { return Err(Error::new("invalidPatch")) };
    let all = scripts(engine);
    let (_, script) = all.iter().find(|(known, _)| known == id).ok_or_else(|| Error::new("notFound"))?;
    let Value::Object(before) = object(id, script) else { return Err(Error::new("serverFail")) };
    let mut after = before.clone();
    crate::patch::apply(&mut after, patch)?;
    let is_set = |(name, value): &(&String, &Value)| before.get(*name) != Some(*value);
    for (name, value) in after.iter().filter(is_set) {
        if !matches!((name.as_str(), value), ("name" | "blobId", Value::String(_))) {
            return Err(Error::property(name));
        }
    }
    let changed = |name: &str| after.get(name).filter(|value| before.get(name) != Some(*value)).and_then(Value::as_str);
    if let Some(to) = changed("name") {
        taken(engine, to)?;
    }
    if let Some(blob) = changed("blobId") {
        let text = text(engine, blob)?;
        file(engine, Filing::Put { name: script.name.clone(), text })?;
    }
    match changed("name") {
        Some(to) => rename(engine, id, &script.name, to),
        None => Ok(()),
    }
}

/// Gives a script another name; the note of its id comes before, which without the script is none.
fn rename(engine: &mut Engine<'_>, id: &str, from: &str, to: &str) -> Result<(), Error> {
    let names: Vec<String> = engine.host.scripts().into_iter().map(|script| script.name).collect();
    let mut noted = noted(engine);
    noted.retain(|name, _| names.iter().any(|known| known == name));
    noted.insert(to.into(), id.into());
    note(engine, noted)?;
    file(engine, Filing::Rename { from: from.into(), to: to.into() })
}

fn note(engine: &mut Engine<'_>, noted: Map<String, Value>) -> Result<(), Error> {
    let value = format!("{}", Value::Object(noted)).into_bytes();
    engine.host.apply(alloc::vec![Work::Annotate { name: NOTED.into(), value }])?;
    engine.changed();
    Ok(())
}

fn remove(engine: &mut Engine<'_>, id: &str) -> Result<(), Error> {
    let found = scripts(engine).into_iter().find(|(known, _)| known == id);
    let (_, Script { name, .. }) = found.ok_or_else(|| Error::new("notFound"))?;
    file(engine, Filing::Remove { name: name.clone() })?;
    let mut noted = noted(engine);
    match noted.remove(&name) {
        Some(_) => note(engine, noted),
        None => Ok(()),
    }
}

/// Makes a script the active one, or none; the scripts that are otherwise by that.
fn switch(engine: &mut Engine<'_>, wanted: Option<&str>) -> Result<Vec<(String, bool)>, Error> {
    let before = scripts(engine);
    let wanted = match wanted {
        Some(wanted) => match wanted.strip_prefix('#') {
            Some(creation) => Some(engine.created.get(creation).cloned().unwrap_or_default()),
            None => Some(wanted.into()),
        },
        None => None,
    };
    let found = before.iter().find(|(id, _)| Some(id) == wanted.as_ref());
    if wanted.is_some() && found.is_none() {
        return Ok(Vec::new());
    }
    file(engine, Filing::Activate { name: found.map(|(_, script)| script.name.clone()) })?;
    let is_active = |id: &String| Some(id) == wanted.as_ref();
    let other = before.iter().filter(|(id, script)| is_active(id) != script.is_active);
    Ok(other.map(|(id, _)| (id.clone(), is_active(id))).collect())
}

impl From<Misfiled> for Error {
    fn from(why: Misfiled) -> Error {
        match why {
            Misfiled::Wrong(description) => Error { description, ..Error::new("invalidSieve") },
            Misfiled::Name => Error::property("name"),
            Misfiled::Exists => Error::new("alreadyExists"),
            Misfiled::Gone => Error::new("notFound"),
            Misfiled::Active => Error::new("sieveIsActive"),
            Misfiled::TooMany => Error::new("overQuota"),
            Misfiled::TooLarge => Error::new("tooLarge"),
            Misfiled::Store => Error::new("serverFail"),
        }
    }
}
