//! Identities (RFC 8621, section 6): one for each address of the account, with what the user has set of it, kept as an annotation.
//!
//! The id of an identity is made of its address. Their state is the one of the account and a fingerprint of its addresses, which no
//! snapshot has: when they are others, changes are not told one by one.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::arguments::{Arguments, only};
use crate::blob;
use crate::changes::{self, Changes};
use crate::engine::{Engine, got};
use crate::error::Error;
use crate::host::Work;
use crate::outcome::Set;
use crate::session::session_state;
use crate::{Map, Value, json};

/// The annotation: an object of JSON, by address.
pub const NOTED: &str = "jmap/identities";
/// Bytes of what is noted.
const NOTED_BYTES_MAX: usize = 200 << 10;

const PROPERTIES: [&str; 8] = ["id", "name", "email", "replyTo", "bcc", "textSignature", "htmlSignature", "mayDelete"];
const SETTABLE: [&str; 5] = ["name", "replyTo", "bcc", "textSignature", "htmlSignature"];

/// The name and the signature that the annotation has for an address; empty where it has none.
pub fn named(noted: &[u8], address: &str) -> (String, String) {
    let noted = crate::json::read(noted).unwrap_or_default();
    let text = |name: &str| noted[address][name].as_str().unwrap_or_default().into();
    (text("name"), text("textSignature"))
}

/// The annotation with another name and signature for an address; `None` if it is too large.
pub fn renamed(noted: &[u8], address: &str, name: &str, signature: &str) -> Option<Vec<u8>> {
    let Some(Value::Object(mut noted)) = crate::json::read(noted).or_else(|| Some(json!({}))) else { return None };
    if !noted.get(address).is_some_and(Value::is_object) {
        noted.insert(address.into(), json!({}));
    }
    if let Some(Value::Object(identity)) = noted.get_mut(address) {
        identity.insert("name".into(), name.into());
        identity.insert("textSignature".into(), signature.into());
    }
    let value = format!("{}", Value::Object(noted)).into_bytes();
    (value.len() <= NOTED_BYTES_MAX).then_some(value)
}

/// The identities of the account, by id.
fn identities(engine: &mut Engine<'_>) -> Vec<(String, Map<String, Value>)> {
    let noted = noted(engine);
    let addresses = engine.host.account().addresses.clone();
    let identity = |address: &String| {
        let id = format!("I{:016x}", blob::hash(address.to_lowercase().as_bytes()));
        let object = json!({
            "id": id, "name": "", "email": address, "replyTo": null, "bcc": null, "textSignature": "", "htmlSignature": "",
            "mayDelete": false,
        });
        let Value::Object(mut object) = object else { return (id, Map::new()) };
        if let Some(Value::Object(set)) = noted.get(address) {
            object.extend(
                set.iter()
                    .filter(|(name, _)| SETTABLE.contains(&name.as_str()))
                    .map(|(name, value)| (name.clone(), value.clone())),
            );
        }
        (id, object)
    };
    let mut all: Vec<(String, Map<String, Value>)> = Vec::new();
    for (id, object) in addresses.iter().map(identity) {
        if !all.iter().any(|(known, _)| *known == id) {
            all.push((id, object));
        }
    }
    all
}

/// The state of the identities.
fn state(engine: &mut Engine<'_>) -> String {
    format!("{}-{}", engine.state(), session_state(engine.host))
}

fn noted(engine: &mut Engine<'_>) -> Map<String, Value> {
    let index = engine.index();
    let noted =
        index.snapshot.account(engine.account).and_then(|account| account.annotations.get(NOTED.as_bytes()).cloned());
    match noted.and_then(|noted| crate::json::read(&noted)) {
        Some(Value::Object(noted)) => noted,
        _ => Map::new(),
    }
}

/// The address of an identity.
pub(crate) fn address(engine: &mut Engine<'_>, id: &str) -> Option<String> {
    let found = identities(engine).into_iter().find(|(known, _)| known == id)?;
    found.1.get("email")?.as_str().map(String::from)
}

pub(crate) fn get(engine: &mut Engine<'_>, mut arguments: Arguments) -> Result<Value, Error> {
    let account = engine.account(&mut arguments)?;
    let (ids, properties) = (arguments.ids()?, arguments.properties(&PROPERTIES)?);
    arguments.end()?;
    let all = identities(engine);
    let is_known = |id: &String| all.iter().any(|(known, _)| known == id);
    let missing = ids.iter().flatten().filter(|id| !is_known(id)).cloned().collect();
    let is_wanted = |id: &String| ids.as_ref().is_none_or(|ids| ids.contains(id));
    let list =
        all.iter().filter(|(id, _)| is_wanted(id)).map(|(_, object)| only(Value::Object(object.clone()), &properties));
    let list = list.collect();
    Ok(got(account, state(engine), list, missing))
}

/// All identities may have changed where the annotation has.
pub(crate) fn changes(engine: &mut Engine<'_>, mut arguments: Arguments) -> Result<Value, Error> {
    let since = arguments.string("sinceState")?.ok_or_else(|| Error::arguments("sinceState"))?;
    let addresses = session_state(engine.host);
    let of_account = since.rsplit_once('-').filter(|(_, known)| *known == addresses).map(|(of_account, _)| of_account);
    let of_account = of_account.ok_or_else(|| Error::new("cannotCalculateChanges"))?;
    arguments.0.insert("sinceState".into(), of_account.into());
    let ids: Vec<String> = identities(engine).into_iter().map(|(id, _)| id).collect();
    let number = engine.account;
    let mut reply = changes::changes(engine, arguments, |old, new| {
        let of = |index: &crate::Index| {
            index.snapshot.account(number).and_then(|account| account.annotations.get(NOTED.as_bytes()).cloned())
        };
        let updated = if of(old) == of(new) { Vec::new() } else { ids };
        Changes { updated, ..Changes::default() }
    })?;
    let new_state = format!("{}-{addresses}", reply["newState"].as_str().unwrap_or_default());
    reply["newState"] = new_state.into();
    reply["oldState"] = since.into();
    Ok(reply)
}

pub(crate) fn set(engine: &mut Engine<'_>, mut arguments: Arguments) -> Result<Value, Error> {
    let old_state = state(engine);
    if arguments.string("ifInState")?.is_some_and(|wanted| wanted != old_state) {
        return Err(Error::new("stateMismatch"));
    }
    let Set { account, create, update, destroy, .. } = Set::read(engine, &mut arguments)?;
    arguments.end()?;
    // The administrator says which addresses an account has.
    let refused = |kind| Error::new(kind).value();
    let not_created: Map<String, Value> = create.into_iter().map(|(id, _)| (id, refused("forbiddenFrom"))).collect();
    let all = identities(engine);
    let kind = |id: &String| if all.iter().any(|(known, _)| known == id) { "forbidden" } else { "notFound" };
    let not_destroyed: Map<String, Value> = destroy.into_iter().map(|id| (id.clone(), refused(kind(&id)))).collect();
    let (mut updated, mut not_updated) = (Map::new(), Map::new());
    for (id, patch) in update {
        match change(engine, &id, patch) {
            Ok(()) => updated.insert(id, Value::Null),
            Err(error) => not_updated.insert(id, error.value()),
        };
    }
    Ok(json!({
        "accountId": account, "oldState": old_state, "newState": state(engine), "created": null, "notCreated": not_created,
        "updated": updated, "notUpdated": not_updated, "destroyed": null, "notDestroyed": not_destroyed,
    }))
}

fn change(engine: &mut Engine<'_>, id: &str, patch: Value) -> Result<(), Error> {
    let Value::Object(patch) = patch else { return Err(Error::new("invalidPatch")) };
    let before = identities(engine).into_iter().find(|(known, _)| known == id).ok_or_else(|| Error::new("notFound"))?.1;
    let mut after = before.clone();
    crate::patch::apply(&mut after, patch)?;
    for (name, value) in &after {
        let is_fine = match name.as_str() {
            // A name stands on one line of a field.
            "name" => value.as_str().is_some_and(|name| !name.contains(char::is_control)),
            "textSignature" | "htmlSignature" => value.is_string(),
            "replyTo" | "bcc" => value.is_null() || is_addresses(value),
            name => before.get(name) == Some(value),
        };
        if !is_fine {
            return Err(Error::property(name));
        }
    }
    let address = String::from(before.get("email").and_then(Value::as_str).unwrap_or_default());
    after.retain(|name, _| SETTABLE.contains(&name.as_str()));
    let mut noted = noted(engine);
    noted.insert(address, Value::Object(after));
    let value = format!("{}", Value::Object(noted)).into_bytes();
    if value.len() > NOTED_BYTES_MAX {
        return Err(Error::new("tooLarge"));
    }
    engine.host.apply(alloc::vec![Work::Annotate { name: NOTED.into(), value }])?;
    engine.changed();
    Ok(())
}

fn is_addresses(value: &Value) -> bool {
    let is_one = |one: &Value| one["email"].is_string() && (one["name"].is_string() || one["name"].is_null());
    value.as_array().is_some_and(|all| all.len() <= 100 && all.iter().all(is_one))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_annotation_keeps_what_others_have_set() {
        let noted = br#"{"a@x":{"name":"A","htmlSignature":"<b>"},"b@x":{"textSignature":"B"}}"#;
        let renamed = renamed(noted, "a@x", "\"Ann\"", "A\nnn").unwrap();
        assert_eq!(named(&renamed, "a@x"), ("\"Ann\"".into(), "A\nnn".into()));
        assert_eq!(named(&renamed, "b@x"), (String::new(), "B".into()));
        assert!(String::from_utf8(renamed).unwrap().contains("<b>"));
        assert_eq!(named(&super::renamed(b"", "c@x", "C", "").unwrap(), "c@x").0, "C");
        assert_eq!(named(b"[]", "c@x").0, "");
        assert!(super::renamed(b"", "c@x", "", &"x".repeat(NOTED_BYTES_MAX)).is_none());
    }
}
