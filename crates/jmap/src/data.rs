//! The content of blobs in JSON: `Blob/upload` and `Blob/get` (RFC 9404, sections 4.1 and 4.2).
//!
//! Bounds: [`SOURCES_MAX`] sources of a blob, [`UPLOAD_BYTES_MAX`] bytes of one, [`READ_BYTES_MAX`] of all that one call reads.

use alloc::string::String;
use alloc::vec::Vec;

use crate::arguments::Arguments;
use crate::blob;
use crate::engine::Engine;
use crate::error::Error;
use crate::limits::{SET_MAX, SOURCES_MAX, UPLOAD_BYTES_MAX};
use crate::{Map, Value, json};

/// Bytes of blobs that one call reads, as they are after decoding.
const READ_BYTES_MAX: u64 = 256 << 20;
/// Characters of the type of a blob.
const TYPE_BYTES_MAX: usize = 127;

pub(crate) fn upload(engine: &mut Engine<'_>, mut arguments: Arguments) -> Result<Value, Error> {
    let account = engine.account(&mut arguments)?;
    let create = arguments.object("create")?;
    arguments.end()?;
    if create.len() > SET_MAX {
        return Err(Error::new("requestTooLarge"));
    }
    let (mut made, mut not_made, mut left) = (Map::new(), Map::new(), READ_BYTES_MAX);
    // Blobs that are made of others of this call come behind them.
    let (later, first): (Vec<_>, Vec<_>) = create.into_iter().partition(|(_, object)| names_created(object));
    for (creation, object) in first.into_iter().chain(later) {
        match make(engine, object, &mut left) {
            Ok(value) => {
                engine.created.insert(creation.clone(), value["id"].as_str().unwrap_or_default().into());
                made.insert(creation, value);
            }
            Err(error) => _ = not_made.insert(creation, error.value()),
        }
    }
    Ok(json!({ "accountId": account, "created": made, "notCreated": not_made }))
}

fn names_created(object: &Value) -> bool {
    let is_created = |source: &Value| source["blobId"].as_str().is_some_and(|id| id.starts_with('#'));
    object["data"].as_array().is_some_and(|sources| sources.iter().any(is_created))
}

fn make(engine: &mut Engine<'_>, object: Value, left: &mut u64) -> Result<Value, Error> {
    let Value::Object(object) = object else { return Err(Error::new("invalidProperties")) };
    let mut object = Arguments(object);
    let kind = object.string("type").map_err(|_| Error::property("type"))?;
    let kind = kind.unwrap_or_else(|| "application/octet-stream".into());
    if kind.len() > TYPE_BYTES_MAX || !kind.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ') {
        return Err(Error::property("type"));
    }
    let sources = object.array("data").map_err(|_| Error::property("data"))?;
    if sources.is_empty() || sources.len() > SOURCES_MAX {
        return Err(Error::property("data"));
    }
    if let Some(unknown) = object.0.keys().next() {
        return Err(Error::property(unknown));
    }
    let mut content = Vec::new();
    for source in sources {
        content.extend(source_bytes(engine, source, left)?);
        if content.len() as u64 > UPLOAD_BYTES_MAX {
            return Err(Error::new("tooLarge").with("maxSize", UPLOAD_BYTES_MAX));
        }
    }
    let size = content.len();
    let id = engine.host.keep_upload(&kind, content).ok_or_else(|| Error::new("overQuota"))?;
    Ok(json!({ "id": id, "type": kind, "size": size }))
}

/// The bytes of a `DataSourceObject`.
fn source_bytes(engine: &mut Engine<'_>, source: Value, left: &mut u64) -> Result<Vec<u8>, Error> {
    let wrong = || Error::property("data");
    let Value::Object(source) = source else { return Err(wrong()) };
    let mut source = Arguments(source);
    let mut text = |name: &str| source.string(name).map_err(|_| wrong());
    let (plain, coded, id) = (text("data:asText")?, text("data:asBase64")?, text("blobId")?);
    let mut number = |name: &str| source.unsigned(name).map_err(|_| wrong());
    let (offset, length) = (number("offset")?, number("length")?);
    let has_range = offset.is_some() || length.is_some();
    source.end().map_err(|_| wrong())?;
    match (plain, coded, id) {
        (Some(text), None, None) if !has_range => Ok(text.into_bytes()),
        (None, Some(coded), None) if !has_range => {
            text::base64::decode(coded.trim_end_matches('=').bytes()).ok_or_else(wrong)
        }
        (None, None, Some(id)) => {
            let range = Range { start: offset.unwrap_or(0), length };
            let id = engine.resolved(id);
            let found = range.of(engine, &id, left)?.ok_or_else(|| Error::no_blobs([id].into()))?;
            if found.is_truncated { Err(wrong()) } else { Ok(found.bytes) }
        }
        _ => Err(wrong()),
    }
}

/// The octets of a blob that are wanted.
struct Range {
    start: usize,
    length: Option<usize>,
}

struct Found {
    bytes: Vec<u8>,
    /// The size of the whole blob.
    size: usize,
    /// Whether the blob has not all that is wanted.
    is_truncated: bool,
}

impl Range {
    /// Reads it; `None` if the blob does not exist.
    fn of(&self, engine: &mut Engine<'_>, id: &str, left: &mut u64) -> Result<Option<Found>, Error> {
        let index = engine.index();
        let Some(mut blob) = blob::find(engine.host, &index, id) else { return Ok(None) };
        let end = self.length.map_or(usize::MAX, |length| self.start.saturating_add(length));
        let (mut bytes, mut size) = (Vec::new(), 0usize);
        while let Some(piece) = blob.next(engine.host) {
            *left = left.checked_sub(piece.len() as u64).ok_or_else(|| Error::new("tooLarge"))?;
            let (first, last) = (self.start.saturating_sub(size), end.saturating_sub(size).min(piece.len()));
            bytes.extend_from_slice(piece.get(first..last).unwrap_or_default());
            size = size.saturating_add(piece.len());
        }
        let is_truncated = self.start > size || self.length.is_some_and(|_| end > size);
        if blob.is_broken() { Err(Error::new("serverFail")) } else { Ok(Some(Found { bytes, size, is_truncated })) }
    }
}

pub(crate) fn get(engine: &mut Engine<'_>, mut arguments: Arguments) -> Result<Value, Error> {
    let account = engine.account(&mut arguments)?;
    let ids = arguments.ids()?.ok_or_else(|| Error::arguments("ids"))?;
    let wanted = arguments.strings("properties")?.unwrap_or_else(|| ["data".into(), "size".into()].into());
    let range = Range { start: arguments.unsigned("offset")?.unwrap_or(0), length: arguments.unsigned("length")? };
    arguments.end()?;
    let known = ["id", "data", "data:asText", "data:asBase64", "size"];
    if let Some(unknown) = wanted.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(Error::arguments(unknown.as_str()));
    }
    let (mut list, mut missing, mut left) = (Vec::new(), Vec::new(), READ_BYTES_MAX);
    for id in ids {
        match range.of(engine, &id, &mut left).map_err(whole)? {
            Some(found) => {
                engine.spend(found.bytes.len().saturating_mul(2).saturating_add(100))?;
                list.push(told(id, found, &wanted));
            }
            None => missing.push(id),
        }
    }
    Ok(json!({ "accountId": account, "list": list, "notFound": missing }))
}

/// The error of a method where more is to be read than may be.
fn whole(error: Error) -> Error {
    if error.kind == "tooLarge" { Error::new("requestTooLarge") } else { error }
}

fn told(id: String, Found { bytes, size, is_truncated }: Found, wanted: &[String]) -> Value {
    let has = |name: &str| wanted.iter().any(|one| one == name);
    let plain = core::str::from_utf8(&bytes).ok();
    let (as_text, as_base64) = (has("data:asText"), has("data:asBase64"));
    let mut object = Map::new();
    let mut put = |name: &str, value: Value| _ = object.insert(name.into(), value);
    put("id", id.into());
    if as_text || (has("data") && plain.is_some()) {
        put("data:asText", plain.into());
    }
    if as_base64 || (has("data") && plain.is_none()) {
        put("data:asBase64", text::base64::encode(&bytes).into());
    }
    if plain.is_none() && (as_text || has("data")) {
        put("isEncodingProblem", true.into());
    }
    if is_truncated && (as_text || as_base64 || has("data")) {
        put("isTruncated", true.into());
    }
    if has("size") {
        put("size", size.into());
    }
    Value::Object(object)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::Empty;

    fn call(host: &mut Empty, name: &str, arguments: Value) -> Value {
        let using = json!(["urn:ietf:params:jmap:core", "urn:ietf:params:jmap:blob"]);
        let request = json!({ "using": using, "methodCalls": [[name, arguments, "c"]] }).to_string();
        let response = crate::answer(host, request.as_bytes()).unwrap();
        serde_json::from_str::<Value>(&response).unwrap()["methodResponses"][0].take()
    }

    #[test]
    fn blobs_are_made_of_texts_and_of_pieces_of_others_and_read_again() {
        let mut host = Empty::default();
        let create = json!({
            "b": { "data": [{ "data:asText": "hello " }, { "data:asBase64": "d29ybGT/" }], "type": "text/x" },
            "a": { "data": [{ "blobId": "#b", "offset": 6, "length": 5 }, { "data:asText": "!" }] },
            "far": { "data": [{ "blobId": "#b", "offset": 6, "length": 9 }] },
            "gone": { "data": [{ "blobId": "M1" }] },
            "none": { "data": [] },
            "both": { "data": [{ "data:asText": "a", "blobId": "#b" }] },
        });
        let reply = call(&mut host, "Blob/upload", json!({ "accountId": "A1", "create": create })).take();
        let (made, not_made) = (&reply[1]["created"], &reply[1]["notCreated"]);
        assert_eq!((&made["b"]["size"], &made["b"]["type"]), (&json!(12), &json!("text/x")), "{reply}");
        assert_eq!(not_made["gone"], json!({ "type": "blobNotFound", "notFound": ["M1"] }));
        for wrong in ["far", "none", "both"] {
            assert_eq!(not_made[wrong], json!({ "type": "invalidProperties", "properties": ["data"] }), "{wrong}");
        }
        let (a, b) = (&made["a"]["id"], &made["b"]["id"]);
        let mut get = |more: Value| {
            let Value::Object(mut arguments) = more else { unreachable!("arguments") };
            arguments.insert("accountId".into(), "A1".into());
            call(&mut host, "Blob/get", Value::Object(arguments))
        };
        let reply = get(json!({ "ids": [a, b, "M1"] }));
        assert_eq!(reply[1]["list"][0], json!({ "id": a, "data:asText": "world!", "size": 6 }), "{reply}");
        let coded = json!({ "id": b, "data:asBase64": "aGVsbG8gd29ybGT/", "isEncodingProblem": true, "size": 12 });
        assert_eq!((&reply[1]["list"][1], &reply[1]["notFound"]), (&coded, &json!(["M1"])));
        let reply = get(json!({ "ids": [a], "properties": ["data:asText"], "offset": 4, "length": 3 }));
        assert_eq!(reply[1]["list"][0], json!({ "id": a, "data:asText": "d!", "isTruncated": true }), "{reply}");
        assert_eq!(get(json!({ "ids": [a], "properties": ["digest:x"] }))[1]["type"], "invalidArguments");
    }
}
