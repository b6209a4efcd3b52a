//! The answer of who is away (RFC 8621, section 8): one object, which the host keeps among the filters of the account.
//!
//! The text is plain: of an answer that has HTML alone the host makes one, and tells it. A host whose filters are a script of the user's
//! own changes nothing.

use alloc::string::String;
use alloc::vec::Vec;

use crate::arguments::{Arguments, only};
use crate::date::Date;
use crate::engine::{Engine, got};
use crate::error::Error;
use crate::host::Vacation;
use crate::outcome::{Outcome, Set};
use crate::{Map, Value, json};

/// The id of the one object.
const SINGLETON: &str = "singleton";

const PROPERTIES: [&str; 7] = ["id", "isEnabled", "fromDate", "toDate", "subject", "textBody", "htmlBody"];

impl Vacation {
    fn object(&self) -> Map<String, Value> {
        let date = |time: Option<i64>| time.map(Date::utc);
        let Vacation { is_enabled, from, to, subject, text, html } = self;
        let object = json!({
            "id": SINGLETON, "isEnabled": is_enabled, "fromDate": date(*from), "toDate": date(*to), "subject": subject,
            "textBody": text, "htmlBody": html,
        });
        if let Value::Object(object) = object { object } else { Map::new() }
    }

    fn read(object: &Map<String, Value>) -> Result<Vacation, Error> {
        if let Some(unknown) = object.keys().find(|name| !PROPERTIES.contains(&name.as_str())) {
            return Err(Error::property(unknown));
        }
        let text = |name: &str| match object.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(Error::property(name)),
        };
        let date = |name: &str| match text(name)? {
            None => Ok(None),
            Some(text) => Date::read_utc(&text).map(Some).ok_or_else(|| Error::property(name)),
        };
        let is_enabled =
            object.get("isEnabled").and_then(Value::as_bool).ok_or_else(|| Error::property("isEnabled"))?;
        if text("id")?.as_deref() != Some(SINGLETON) {
            return Err(Error::property("id"));
        }
        let (from, to) = (date("fromDate")?, date("toDate")?);
        Ok(Vacation {
            is_enabled,
            from,
            to,
            subject: text("subject")?,
            text: text("textBody")?,
            html: text("htmlBody")?,
        })
    }
}

pub(crate) fn get(engine: &mut Engine<'_>, mut arguments: Arguments) -> Result<Value, Error> {
    let account = engine.account(&mut arguments)?;
    let (ids, properties) = (arguments.ids()?, arguments.properties(&PROPERTIES)?);
    arguments.end()?;
    let ids = ids.unwrap_or_else(|| Vec::from([SINGLETON.into()]));
    let (found, missing): (Vec<String>, Vec<String>) = ids.into_iter().partition(|id| id == SINGLETON);
    let object = engine.host.vacation().object();
    let list = found.iter().map(|_| only(Value::Object(object.clone()), &properties)).collect();
    Ok(got(account, engine.state(), list, missing))
}

pub(crate) fn set(engine: &mut Engine<'_>, mut arguments: Arguments) -> Result<Value, Error> {
    let Set { account, old_state, create, update, destroy } = Set::read(engine, &mut arguments)?;
    arguments.end()?;
    let mut outcome = Outcome::default();
    for creation in create.into_iter().map(|(creation, _)| creation) {
        outcome.created(engine, creation, Err(Error::new("singleton")));
    }
    for (id, patch) in update {
        let changed = change(engine, &id, patch);
        outcome.updated(id, changed);
    }
    destroy.into_iter().for_each(|id| outcome.destroyed(id, Err(Error::new("singleton"))));
    Ok(outcome.reply(&account, &old_state, &engine.state()))
}

/// Changes the object; the properties that are not as the client has set them, or null.
fn change(engine: &mut Engine<'_>, id: &str, patch: Value) -> Result<Value, Error> {
    let Value::Object(patch) = patch else { return Err(Error::new("invalidPatch")) };
    if id != SINGLETON {
        return Err(Error::new("notFound"));
    }
    let mut wanted = engine.host.vacation().object();
    crate::patch::apply(&mut wanted, patch)?;
    engine.host.set_vacation(Vacation::read(&wanted)?)?;
    engine.changed();
    let kept = engine.host.vacation().object();
    let other: Map<String, Value> =
        kept.into_iter().filter(|(name, value)| wanted.get(name).unwrap_or(&Value::Null) != value).collect();
    Ok(if other.is_empty() { Value::Null } else { Value::Object(other) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(patch: Value) -> Result<Vacation, Value> {
        let mut object = Vacation::default().object();
        let Value::Object(patch) = patch else { unreachable!("a patch") };
        object.extend(patch);
        Vacation::read(&object).map_err(Error::value)
    }

    #[test]
    fn an_object_is_read_as_it_is_told() {
        let patch = json!({ "isEnabled": true, "fromDate": "2026-12-24T00:00:00Z", "subject": "s", "textBody": "t\n" });
        let vacation = read(patch).unwrap();
        assert_eq!((vacation.from, vacation.to, vacation.text.as_deref()), (Some(1_798_070_400), None, Some("t\n")));
        assert_eq!(Vacation::read(&vacation.object()), Ok(vacation));
        for (name, value) in [
            ("isEnabled", Value::Null),
            ("id", json!("other")),
            ("fromDate", json!("2026-12-24")),
            ("toDate", json!("2026-12-24T00:00:00+01:00")),
            ("subject", json!(1)),
            ("more", json!(null)),
        ] {
            let wrong = read(json!({ name: value })).unwrap_err();
            assert_eq!(wrong, json!({ "type": "invalidProperties", "properties": [name] }));
        }
    }
}
