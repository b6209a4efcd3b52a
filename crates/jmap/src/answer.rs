//! A request and its calls (RFC 8620, sections 3.3 to 3.6).

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::arguments::Arguments;
use crate::engine::Engine;
use crate::error::{Error, Problem};
use crate::host::Host;
use crate::json::weight;
use crate::limits::{CALLS_MAX, REQUEST_BYTES_MAX};
use crate::references::resolve;
use crate::session::{CAPABILITIES, session_state};
use crate::{Map, Value, email, identity, mailbox, quota, script, submission, thread, vacation};

/// Answers the body of a request with the body of a response.
///
/// # Errors
/// When the request is refused as a whole.
pub fn answer(host: &mut dyn Host, body: &[u8]) -> Result<String, Problem> {
    if body.len() as u64 > REQUEST_BYTES_MAX {
        return Err(Problem::Limit("maxSizeRequest"));
    }
    let request = Request::read(crate::json::request(body)?)?;
    let tells_created = request.created.is_some();
    let mut engine = Engine::new(host, request.created.unwrap_or_default());
    for (name, arguments, id) in request.calls {
        carry_out(&mut engine, &name, arguments, &id, &request.using);
    }
    let state = session_state(engine.host);
    let reply = |(name, value, id): (String, Value, String)| Value::Array([name.into(), value, id.into()].into());
    let mut response = Map::new();
    response.insert("methodResponses".into(), engine.replies.into_iter().map(reply).collect());
    response.insert("sessionState".into(), state.into());
    if tells_created {
        let created = engine.created.into_iter().map(|(id, of)| (id, Value::from(of)));
        response.insert("createdIds".into(), created.collect());
    }
    Ok(format!("{}", Value::Object(response)))
}

struct Request {
    using: Vec<String>,
    calls: Vec<(String, Map<String, Value>, String)>,
    created: Option<BTreeMap<String, String>>,
}

impl Request {
    fn read(value: Value) -> Result<Request, Problem> {
        let Value::Object(mut object) = value else { return Err(Problem::NotRequest) };
        let using = object.remove("using").and_then(crate::arguments::strings).ok_or(Problem::NotRequest)?;
        let Some(Value::Array(calls)) = object.remove("methodCalls") else { return Err(Problem::NotRequest) };
        let created = object.remove("createdIds").map(|ids| created(ids).ok_or(Problem::NotRequest)).transpose()?;
        let calls = calls.into_iter().map(call).collect::<Option<Vec<_>>>().ok_or(Problem::NotRequest)?;
        if using.iter().any(|name| !CAPABILITIES.contains(&name.as_str())) {
            return Err(Problem::UnknownCapability);
        }
        match calls.len() {
            0..=CALLS_MAX => Ok(Request { using, calls, created }),
            _ => Err(Problem::Limit("maxCallsInRequest")),
        }
    }
}

fn created(ids: Value) -> Option<BTreeMap<String, String>> {
    let Value::Object(ids) = ids else { return None };
    ids.into_iter().map(|(creation, id)| Some((creation, id.as_str()?.into()))).collect()
}

fn call(value: Value) -> Option<(String, Map<String, Value>, String)> {
    let Value::Array(parts) = value else { return None };
    let [Value::String(name), Value::Object(arguments), Value::String(id)] = <[Value; 3]>::try_from(parts).ok()? else {
        return None;
    };
    Some((name, arguments, id))
}

type Method = fn(&mut Engine<'_>, Arguments) -> Result<Value, Error>;

/// Methods with the capability that each needs, as an index into [`CAPABILITIES`].
const METHODS: [(&str, usize, Method); 39] = [
    ("Core/echo", 0, echo),
    ("Mailbox/get", 1, mailbox::get),
    ("Mailbox/changes", 1, mailbox::changes),
    ("Mailbox/query", 1, mailbox::query),
    ("Mailbox/queryChanges", 1, mailbox::query_changes),
    ("Mailbox/set", 1, mailbox::set),
    ("Thread/get", 1, thread::get),
    ("Thread/changes", 1, thread::changes),
    ("Email/get", 1, email::get),
    ("Email/changes", 1, email::changes),
    ("Email/query", 1, email::query),
    ("Email/queryChanges", 1, email::query_changes),
    ("Email/set", 1, email::set),
    ("Email/copy", 1, email::copy),
    ("Email/import", 1, email::import),
    ("Email/parse", 1, email::parse),
    ("SearchSnippet/get", 1, email::snippets),
    ("Identity/get", 2, identity::get),
    ("Identity/changes", 2, identity::changes),
    ("Identity/set", 2, identity::set),
    ("EmailSubmission/get", 2, submission::get),
    ("EmailSubmission/changes", 2, submission::changes),
    ("EmailSubmission/query", 2, submission::query),
    ("EmailSubmission/queryChanges", 2, submission::query_changes),
    ("EmailSubmission/set", 2, submission::set),
    ("Quota/get", 3, quota::get),
    ("Quota/changes", 3, quota::changes),
    ("Quota/query", 3, quota::query),
    ("Quota/queryChanges", 3, quota::query_changes),
    ("Blob/copy", 0, crate::blob::copy),
    ("Blob/upload", 4, crate::data::upload),
    ("Blob/get", 4, crate::data::get),
    ("Blob/lookup", 4, crate::blob::lookup),
    ("VacationResponse/get", 5, vacation::get),
    ("VacationResponse/set", 5, vacation::set),
    ("SieveScript/get", 6, script::get),
    ("SieveScript/query", 6, script::query),
    ("SieveScript/set", 6, script::set),
    ("SieveScript/validate", 6, script::validate),
];

fn echo(engine: &mut Engine<'_>, arguments: Arguments) -> Result<Value, Error> {
    let value = Value::Object(arguments.0);
    engine.spend(weight(&value))?;
    Ok(value)
}

/// Carries out one call.
fn carry_out(engine: &mut Engine<'_>, name: &str, mut arguments: Map<String, Value>, id: &str, using: &[String]) {
    let known = METHODS.iter().find(|(known, ..)| *known == name);
    let is_used = |at: usize| CAPABILITIES.get(at).is_some_and(|known| using.iter().any(|used| used == known));
    let outcome = match known.filter(|(_, capability, _)| is_used(*capability)) {
        Some((_, _, method)) => resolve(&mut arguments, &engine.replies, &mut engine.bytes_left)
            .and_then(|()| engine.spend(1))
            .and_then(|()| method(engine, Arguments(arguments))),
        None => Err(Error::new("unknownMethod")),
    };
    let (name, value) = match outcome {
        Ok(value) => (name, value),
        Err(error) => ("error", error.value()),
    };
    engine.replies.push((name.into(), value, id.into()));
    for (name, value) in core::mem::take(&mut engine.implied) {
        engine.replies.push((name.into(), value, id.into()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::Empty;
    use crate::json;

    #[test]
    fn copies_of_earlier_replies_have_a_bound() {
        let small = vec![json!({ "": 0 }); 20_000];
        let again = json!({ "#a": { "resultOf": "0", "name": "Core/echo", "path": "/a" } });
        let mut calls = vec![json!(["Core/echo", { "a": small }, "0"])];
        calls.extend((1..CALLS_MAX).map(|at| json!(["Core/echo", again, at.to_string()])));
        let request = json!({ "using": [CAPABILITIES[0]], "methodCalls": calls }).to_string();
        let response = answer(&mut Empty::default(), request.as_bytes()).unwrap();
        let response: Value = serde_json::from_str(&response).unwrap();
        let replies = response["methodResponses"].as_array().unwrap();
        let told = replies.iter().filter(|reply| reply[0] == "Core/echo").count();
        assert!((2..5).contains(&told), "{told}");
        assert_eq!(replies.last().unwrap()[1]["type"], "requestTooLarge");
    }
}
