//! Arguments of a method, taken one by one; one that is left over is unknown.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::error::Error;
use crate::limits::GET_MAX;
use crate::{Map, Value};

/// The largest integer that JSON carries safely (RFC 8620, section 1.3).
const SAFE_MAX: i64 = (1 << 53) - 1;

/// The arguments of a call.
#[derive(Debug, Default)]
pub(crate) struct Arguments(pub Map<String, Value>);

impl Arguments {
    /// An argument; null counts as absent.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name).filter(|value| !value.is_null())
    }

    pub fn string(&mut self, name: &str) -> Result<Option<String>, Error> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(Error::arguments(name)),
        }
    }

    pub fn boolean(&mut self, name: &str, default: bool) -> Result<bool, Error> {
        match self.take(name) {
            None => Ok(default),
            Some(value) => value.as_bool().ok_or_else(|| Error::arguments(name)),
        }
    }

    pub fn integer(&mut self, name: &str) -> Result<Option<i64>, Error> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let number = value.as_i64().filter(|number| (-SAFE_MAX..=SAFE_MAX).contains(number));
        number.map(Some).ok_or_else(|| Error::arguments(name))
    }

    pub fn unsigned(&mut self, name: &str) -> Result<Option<usize>, Error> {
        let Some(number) = self.integer(name)? else { return Ok(None) };
        usize::try_from(number).map(Some).map_err(|_| Error::arguments(name))
    }

    pub fn strings(&mut self, name: &str) -> Result<Option<Vec<String>>, Error> {
        match self.take(name) {
            None => Ok(None),
            Some(value) => strings(value).map(Some).ok_or_else(|| Error::arguments(name)),
        }
    }

    pub fn object(&mut self, name: &str) -> Result<Map<String, Value>, Error> {
        match self.take(name) {
            None => Ok(Map::new()),
            Some(Value::Object(object)) => Ok(object),
            Some(_) => Err(Error::arguments(name)),
        }
    }

    pub fn array(&mut self, name: &str) -> Result<Vec<Value>, Error> {
        match self.take(name) {
            None => Ok(Vec::new()),
            Some(Value::Array(values)) => Ok(values),
            Some(_) => Err(Error::arguments(name)),
        }
    }

    /// The ids of a `get`, each once; `None` is all.
    pub fn ids(&mut self) -> Result<Option<Vec<String>>, Error> {
        let Some(ids) = self.strings("ids")? else { return Ok(None) };
        if ids.len() > GET_MAX {
            return Err(Error::new("requestTooLarge"));
        }
        let mut unique: Vec<String> = Vec::with_capacity(ids.len());
        ids.into_iter().for_each(|id| {
            if !unique.contains(&id) {
                unique.push(id);
            }
        });
        Ok(Some(unique))
    }

    /// The properties of a `get`, which are of those that there are; `id` is among them.
    pub fn properties(&mut self, known: &[&str]) -> Result<Vec<String>, Error> {
        let Some(mut wanted) = self.strings("properties")? else {
            return Ok(known.iter().map(|name| (*name).into()).collect());
        };
        if let Some(unknown) = wanted.iter().find(|name| !known.contains(&name.as_str())) {
            return Err(Error::arguments(format!("properties: {unknown}")));
        }
        wanted.push("id".into());
        Ok(wanted)
    }

    /// Nothing may be left over.
    pub fn end(self) -> Result<(), Error> {
        match self.0.keys().next() {
            None => Ok(()),
            Some(name) => Err(Error::arguments(format!("unknown: {name}"))),
        }
    }
}

pub(crate) fn strings(value: Value) -> Option<Vec<String>> {
    let Value::Array(values) = value else { return None };
    let text = |value| match value {
        Value::String(text) => Some(text),
        _ => None,
    };
    values.into_iter().map(text).collect()
}

/// Leaves the properties that are wanted.
pub(crate) fn only(object: Value, properties: &[String]) -> Value {
    match object {
        Value::Object(object) => {
            Value::Object(object.into_iter().filter(|(name, _)| properties.contains(name)).collect())
        }
        other => other,
    }
}
