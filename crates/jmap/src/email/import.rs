//! `Email/import` (RFC 8621, section 4.8).

use alloc::string::String;

use super::get::is_mail;
use super::set::{Wanted, deliver};
use crate::arguments::Arguments;
use crate::blob;
use crate::date::Date;
use crate::engine::Engine;
use crate::error::Error;
use crate::limits::{SET_MAX, UPLOAD_BYTES_MAX};
use crate::{Map, Value, json};

pub(crate) fn import(engine: &mut Engine<'_>, mut arguments: Arguments) -> Result<Value, Error> {
    let account = engine.account(&mut arguments)?;
    let old_state = engine.check_state(&mut arguments)?;
    let Some(Value::Object(emails)) = arguments.take("emails") else { return Err(Error::arguments("emails")) };
    arguments.end()?;
    if emails.len() > SET_MAX {
        return Err(Error::new("requestTooLarge"));
    }
    let (mut made, mut not_made) = (Map::new(), Map::new());
    for (creation, object) in emails {
        match one(engine, object) {
            Ok(value) => {
                let id: String = value["id"].as_str().unwrap_or_default().into();
                engine.created.insert(creation.clone(), id);
                made.insert(creation, value);
            }
            Err(error) => _ = not_made.insert(creation, error.value()),
        }
    }
    Ok(json!({
        "accountId": account, "oldState": old_state, "newState": engine.state(), "created": made, "notCreated": not_made,
    }))
}

fn one(engine: &mut Engine<'_>, object: Value) -> Result<Value, Error> {
    let Value::Object(object) = object else { return Err(Error::new("invalidProperties")) };
    let known = ["blobId", "mailboxIds", "keywords", "receivedAt"];
    if let Some(unknown) = object.keys().find(|name| !known.contains(&name.as_str())) {
        return Err(Error::property(unknown));
    }
    let index = engine.index();
    let wanted = Wanted::read(engine, &index, &object)?;
    let received = match object.get("receivedAt") {
        None | Some(Value::Null) => engine.host.now(),
        Some(date) => date.as_str().and_then(Date::read_utc).ok_or_else(|| Error::property("receivedAt"))?,
    };
    let id = object.get("blobId").and_then(Value::as_str).ok_or_else(|| Error::property("blobId"))?;
    let mut found = blob::find(engine.host, &index, id).ok_or_else(|| Error::property("blobId"))?;
    let (content, is_whole) = found.bytes(engine.host, usize::try_from(UPLOAD_BYTES_MAX).unwrap_or(usize::MAX));
    match (is_whole, is_mail(&content)) {
        (false, _) => Err(Error::new("tooLarge")),
        (true, false) => Err(Error::new("invalidEmail")),
        (true, true) => deliver(engine, content, &wanted, received),
    }
}
