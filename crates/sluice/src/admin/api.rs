//! The same for programs: JSON under `/api/v1`, by the token of a file or by a browser's session. `openapi.json` describes it.

use std::net::IpAddr;

use edge::quarantine::is_id;
use serde_json::{Value, json};
use webmail::{Call, Reply};

use super::kept::{self, Act};
use super::settings;
use super::site::Site;
use crate::quarantine::place::object;

/// The description of all that is here.
pub const DESCRIPTION: &str = include_str!("openapi.json");

/// Messages of one answer.
const MESSAGES_MAX: usize = 1_000;

/// Answers a program that may ask; `segments` are those behind `/api/v1`.
pub fn answer(site: &Site, method: &str, segments: &[&str], call: &Call, client: IpAddr) -> Reply {
    let (status, value) = match (method, segments) {
        ("GET", ["openapi.json"]) => return Reply::json(200, DESCRIPTION.into()),
        ("GET", ["numbers"]) => numbers(site),
        ("GET", ["configuration"]) => configuration(site),
        ("GET", ["quarantine"]) => list(site, call),
        ("GET", ["quarantine", id]) => show(site, id),
        ("POST", ["quarantine", id, "release"]) => act(site, client, Act::Release, id),
        ("DELETE", ["quarantine", id]) => act(site, client, Act::Delete, id),
        _ => (404, error("there is nothing")),
    };
    Reply::json(status, value.to_string())
}

/// A reply to who may not ask.
pub fn closed() -> Reply {
    Reply::json(401, error("a token is needed: Authorization: Bearer ...").to_string())
}

fn error(text: &str) -> Value {
    json!({ "error": text })
}

fn numbers(site: &Site) -> (u16, Value) {
    match site.history.last() {
        Ok(numbers) => {
            let named = numbers.into_iter().map(|(name, value)| (format!("sluice_{name}"), json!(value)));
            (200, Value::Object(named.collect()))
        }
        Err(why) => (503, error(&why)),
    }
}

fn configuration(site: &Site) -> (u16, Value) {
    match settings::entries(&site.path) {
        Ok(entries) => {
            let entry = |entry: &crate::config::shown::Entry| json!({ "key": entry.key, "value": entry.value, "place": entry.place });
            (200, Value::Array(entries.iter().map(entry).collect()))
        }
        Err(why) => (500, error(&why)),
    }
}

fn list(site: &Site, call: &Call) -> (u16, Value) {
    match kept::meant(site, &kept::selection(&call.query), MESSAGES_MAX) {
        Ok((all, count)) => {
            let messages: Vec<Value> = all.iter().filter_map(|one| object(&site.place, one).ok()).collect();
            (200, json!({ "count": count, "messages": messages }))
        }
        Err(why) => (500, error(&why)),
    }
}

fn show(site: &Site, id: &str) -> (u16, Value) {
    let found = Some(id).filter(|id| is_id(id)).and_then(|id| site.place.one(id).ok());
    match found.and_then(|one| object(&site.place, &one).ok()) {
        Some(value) => (200, value),
        None => (404, error("there is no such message")),
    }
}

fn act(site: &Site, client: IpAddr, what: Act, id: &str) -> (u16, Value) {
    if site.access.is_read_only {
        return (403, error("nothing can be changed here"));
    }
    if !is_id(id) || site.place.one(id).is_err() {
        return (404, error("there is no such message"));
    }
    let outcome = kept::act(site, &format!("{client}, a program"), what, &[id]);
    match outcome.failed {
        0 => (200, json!({ "id": id })),
        _ => (502, error("it could not be done: the log says why")),
    }
}
