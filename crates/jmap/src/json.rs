//! Values of I-JSON (RFC 7493): duplicate keys are refused, and the depth is bounded.

use core::cell::Cell;
use core::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

use alloc::string::String;
use alloc::vec::Vec;

use crate::limits::{DEPTH_MAX, VALUES_MAX};
use crate::{Map, Value};

/// Reads one value, with nothing behind it.
pub(crate) fn read(body: &[u8]) -> Option<Value> {
    request(body).ok()
}

/// A reason why there is no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrong {
    NoJson,
    TooManyValues,
}

/// The same of a request.
pub(crate) fn request(body: &[u8]) -> Result<Value, Wrong> {
    let left = Cell::new(VALUES_MAX);
    let mut reader = serde_json::Deserializer::from_slice(body);
    let value = Room { depth: DEPTH_MAX, values: &left }.deserialize(&mut reader);
    match value.and_then(|value| reader.end().map(|()| value)) {
        Ok(value) => Ok(value),
        Err(_) if left.get() == 0 => Err(Wrong::TooManyValues),
        Err(_) => Err(Wrong::NoJson),
    }
}

/// Bytes that a value takes in memory, about: an object has room for eleven members.
pub(crate) fn weight(value: &Value) -> usize {
    let sum = |sum: usize, bytes: usize| sum.saturating_add(bytes);
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 32,
        Value::String(text) => text.len().saturating_add(32),
        Value::Array(values) => values.iter().map(weight).fold(32, sum),
        Value::Object(object) if object.is_empty() => 32,
        Value::Object(object) => object
            .iter()
            .map(|(name, value)| name.len().saturating_add(weight(value)).saturating_add(24))
            .fold(700, sum),
    }
}

/// The levels that a value may have, and the values that may follow.
#[derive(Clone, Copy)]
struct Room<'a> {
    depth: usize,
    values: &'a Cell<usize>,
}

impl Room<'_> {
    fn below<E: serde::de::Error>(self) -> Result<Self, E> {
        let depth = self.depth.checked_sub(1).ok_or_else(|| E::custom("too deep"))?;
        Ok(Room { depth, ..self })
    }
}

impl<'de> DeserializeSeed<'de> for Room<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        let left = self.values.get().checked_sub(1).ok_or_else(|| D::Error::custom("too many values"))?;
        self.values.set(left);
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Room<'_> {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a value of JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let (below, mut values) = (self.below()?, Vec::new());
        while let Some(value) = access.next_element_seed(below)? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let (below, mut values) = (self.below()?, Map::new());
        while let Some(key) = access.next_key::<String>()? {
            let value = access.next_value_seed(below)?;
            if values.insert(key, value).is_some() {
                return Err(A::Error::custom("a key twice"));
            }
        }
        Ok(Value::Object(values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicate_keys_depth_and_rests_are_refused() {
        assert_eq!(read(br#"{"a":[1,-2,null,true,"x"]}"#).unwrap().to_string(), r#"{"a":[1,-2,null,true,"x"]}"#);
        for wrong in
            [&br#"{"a":1,"a":2}"#[..], br#"{"b":{"a":1,"a":1}}"#, b"{} {}", b"", b"{\"a\":\"\xff\"}", b"\"\\ud800\""]
        {
            assert_eq!(read(wrong), None, "{}", String::from_utf8_lossy(wrong));
        }
        let deep = |levels: usize| read(&[vec![b'['; levels], vec![b']'; levels]].concat());
        assert!(deep(DEPTH_MAX).is_some() && deep(DEPTH_MAX + 1).is_none() && deep(1_000_000).is_none());
        let many = |count: usize| format!("[0{}]", ",0".repeat(count - 2));
        assert!(read(many(VALUES_MAX).as_bytes()).is_some());
        assert_eq!(request(many(VALUES_MAX + 1).as_bytes()), Err(Wrong::TooManyValues));
    }
}
