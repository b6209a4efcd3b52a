//! References to the results of earlier calls (RFC 8620, section 3.7), and to ids of objects that were created (5.3).

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use crate::error::Error;
use crate::json::weight;
use crate::patch::unescaped;
use crate::{Map, Value};

/// Values that one path may lead to.
const VALUES_MAX: usize = 10_000;

/// A reply: the name of the method, its arguments, the id of the call.
pub(crate) type Reply = (String, Value, String);

/// Puts results in place of the arguments that refer to them: copies, of `left` bytes in memory.
pub(crate) fn resolve(arguments: &mut Map<String, Value>, replies: &[Reply], left: &mut usize) -> Result<(), Error> {
    let names: Vec<String> = arguments.keys().filter(|name| name.starts_with('#')).cloned().collect();
    for name in names {
        let Some(reference) = arguments.remove(&name) else { continue };
        let name = name.get(1..).unwrap_or_default();
        if arguments.contains_key(name) {
            return Err(Error::arguments(name));
        }
        let found = result(&reference, replies, left);
        let kind = if *left == 0 { "requestTooLarge" } else { "invalidResultReference" };
        let found = found.ok_or_else(|| Error::new(kind))?;
        arguments.insert(name.into(), found);
    }
    Ok(())
}

fn result(reference: &Value, replies: &[Reply], left: &mut usize) -> Option<Value> {
    let text = |name: &str| reference.get(name)?.as_str();
    let (of, name, path) = (text("resultOf")?, text("name")?, text("path")?);
    let (_, value, _) = replies.iter().find(|(_, _, id)| id == of).filter(|(known, ..)| known == name)?;
    at(value, path.strip_prefix('/')?, left)
}

/// The value at a path, in which `*` is each element of an array.
fn at(value: &Value, path: &str, left: &mut usize) -> Option<Value> {
    let (token, rest) = path.split_once('/').map_or((path, None), |(token, rest)| (token, Some(rest)));
    let mut below = |value: &Value| match rest {
        Some(rest) => at(value, rest, left),
        None => {
            *left = left.saturating_sub(weight(value));
            (*left > 0).then(|| value.clone())
        }
    };
    match value {
        Value::Object(object) => below(object.get(&unescaped(token))?),
        Value::Array(values) if token == "*" => {
            let mut all = Vec::new();
            for value in values {
                match below(value)? {
                    Value::Array(inner) => all.extend(inner),
                    one => all.push(one),
                }
                if all.len() > VALUES_MAX {
                    return None;
                }
            }
            Some(Value::Array(all))
        }
        Value::Array(values) => {
            let is_plain = token == "0" || !token.starts_with('0');
            below(values.get(token.parse::<usize>().ok().filter(|_| is_plain)?)?)
        }
        _ => None,
    }
}

/// The id that `#id` stands for, or the id itself.
pub(crate) fn created<'a>(id: &'a str, known: &'a BTreeMap<String, String>) -> Option<&'a str> {
    match id.strip_prefix('#') {
        Some(creation) => known.get(creation).map(String::as_str),
        None => Some(id),
    }
}
