//! Patches of objects (RFC 8620, section 5.3): a path of JSON pointers and a value; null removes.

use alloc::string::String;
use alloc::vec::Vec;

use crate::error::Error;
use crate::{Map, Value};

/// Applies a patch to an object.
pub(crate) fn apply(object: &mut Map<String, Value>, patch: Map<String, Value>) -> Result<(), Error> {
    let paths: Vec<&String> = patch.keys().collect();
    let is_within =
        |path: &String, outer: &String| path.strip_prefix(outer.as_str()).is_some_and(|rest| rest.starts_with('/'));
    if paths.iter().any(|path| paths.iter().any(|outer| is_within(path, outer))) {
        return Err(Error::new("invalidPatch"));
    }
    patch.into_iter().try_for_each(|(path, value)| set(object, &path, value))
}

fn set(object: &mut Map<String, Value>, path: &str, value: Value) -> Result<(), Error> {
    let (first, rest) = path.split_once('/').map_or((path, None), |(first, rest)| (first, Some(rest)));
    let name = unescaped(first);
    let Some(rest) = rest else {
        object.insert(name, value);
        return Ok(());
    };
    match object.get_mut(&name) {
        Some(Value::Object(inner)) if !rest.contains('/') && value.is_null() => {
            inner.remove(&unescaped(rest));
            Ok(())
        }
        Some(Value::Object(inner)) => set(inner, rest, value),
        _ => Err(Error::new("invalidPatch")),
    }
}

pub(crate) fn unescaped(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}
