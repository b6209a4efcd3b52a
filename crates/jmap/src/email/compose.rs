//! The message of an Email that a client creates (RFC 8621, section 4.6): structure and header. Fields are written in [`field`].
//!
//! Values of a client cannot end a line or a header: control characters are refused or replaced where they are written.

pub(super) mod field;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::blob;
use crate::date::Date;
use crate::engine::Engine;
use crate::error::Error;
use crate::limits::{ATTACHMENTS_BYTES_MAX, PARTS_MAX};
use crate::{Map, Value};

type Object = Map<String, Value>;

/// Levels of a `bodyStructure`.
const DEPTH_MAX: usize = 20;
/// Columns of a line of Base64.
const LINE_MAX: usize = 76;

/// A part under way: its own fields, and its content.
struct Node {
    fields: Vec<String>,
    kind: String,
    content: Content,
}

enum Content {
    Encoded(Vec<u8>),
    Parts(Vec<Node>),
}

/// Writes the message of an object.
pub(super) fn compose(engine: &mut Engine<'_>, object: &Object) -> Result<Vec<u8>, Error> {
    let mut head = fields_of(object, true)?;
    let has = |name: &str, head: &[String]| {
        head.iter().any(|field| field.split(':').next().is_some_and(|known| known.eq_ignore_ascii_case(name)))
    };
    if !has("Date", &head) {
        head.push(format!("Date: {}\r\n", Date { seconds: engine.host.now(), minutes_ahead: 0 }.field()));
    }
    if !has("Message-ID", &head) {
        let (random, hostname) = (text::hex::encode(&engine.host.random()), engine.host.hostname().to_string());
        head.push(format!("Message-ID: <{random}@{hostname}>\r\n"));
    }
    head.push("MIME-Version: 1.0\r\n".into());
    let values = match object.get("bodyValues") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(values)) => values.clone(),
        Some(_) => return Err(Error::property("bodyValues")),
    };
    let missing = Vec::new();
    let mut builder =
        Builder { engine, values: &values, missing, bytes_left: ATTACHMENTS_BYTES_MAX, parts_left: PARTS_MAX };
    let root = builder.root(object)?;
    if !builder.missing.is_empty() {
        return Err(Error::no_blobs(builder.missing));
    }
    let mut out = head.concat().into_bytes();
    let mut boundary = Boundary { seed: text::hex::encode(&engine.host.random()), number: 0 };
    write(root, &mut boundary, &mut out);
    Ok(out)
}

/// The header fields that an object names.
fn fields_of(object: &Object, is_root: bool) -> Result<Vec<String>, Error> {
    let mut fields: Vec<(String, String)> = Vec::new();
    for (name, value) in object {
        if name == "headers" {
            return Err(Error::property(name));
        }
        let property = match crate::header::Property::read(name) {
            Some(property) => property.map_err(|_| Error::property(name))?,
            None => match crate::header::Property::convenience(name).filter(|_| is_root) {
                Some(property) => property,
                None => continue,
            },
        };
        let is_of_content = property.name.len() >= 8
            && property.name.as_bytes().get(..8).is_some_and(|head| head.eq_ignore_ascii_case(b"content-"));
        if (is_root && is_of_content)
            || is_written(object, &property.name)
            || property.name.eq_ignore_ascii_case("mime-version")
        {
            return Err(Error::property(name));
        }
        if fields.iter().any(|(known, _)| known.eq_ignore_ascii_case(&property.name)) {
            return Err(Error::property(name));
        }
        if value.is_null() {
            continue;
        }
        let written = field::write(&property, value).ok_or_else(|| Error::property(name))?;
        fields.push((property.name, written));
    }
    Ok(fields.into_iter().map(|(_, written)| written).collect())
}

/// Whether a field of a part is written from its other properties.
fn is_written(part: &Object, field: &str) -> bool {
    let has = |name: &str| part.get(name).is_some_and(|value| !value.is_null());
    match &*field.to_ascii_lowercase() {
        "content-type" | "content-transfer-encoding" => true,
        "content-disposition" => has("disposition") || has("name"),
        "content-id" => has("cid"),
        "content-location" => has("location"),
        "content-language" => has("language"),
        _ => false,
    }
}

struct Builder<'a, 'b> {
    engine: &'a mut Engine<'b>,
    values: &'a Object,
    /// Ids of blobs that do not exist: all of them are told.
    missing: Vec<String>,
    bytes_left: u64,
    parts_left: usize,
}

impl Builder<'_, '_> {
    fn root(&mut self, object: &Object) -> Result<Node, Error> {
        let array = |name: &str| match object.get(name) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(parts)) => Ok(parts.clone()),
            Some(_) => Err(Error::property(name)),
        };
        let (texts, htmls, attachments) = (array("textBody")?, array("htmlBody")?, array("attachments")?);
        if let Some(structure) = object.get("bodyStructure").filter(|structure| !structure.is_null()) {
            if !(texts.is_empty() && htmls.is_empty() && attachments.is_empty()) {
                return Err(Error::property("bodyStructure"));
            }
            // A field that stands in both the object and its structure would stand twice.
            let of_root = names(object);
            if let Some(twice) =
                structure.as_object().and_then(|part| names(part).into_iter().find(|name| of_root.contains(name)))
            {
                return Err(Error::property(&format!("bodyStructure/header:{twice}")));
            }
            return self.part(structure, "bodyStructure", DEPTH_MAX);
        }
        let mut bodies = Vec::new();
        for (name, parts, kind) in [("textBody", &texts, "text/plain"), ("htmlBody", &htmls, "text/html")] {
            match &parts[..] {
                [] => {}
                [one] if one.is_object() && one.get("type").and_then(Value::as_str).unwrap_or(kind) == kind => {
                    let mut one = one.clone();
                    one["type"] = kind.into();
                    bodies.push(self.part(&one, name, DEPTH_MAX)?);
                }
                _ => return Err(Error::property(name)),
            }
        }
        let has_html = !htmls.is_empty();
        let (mut shown, mut others) = (Vec::new(), Vec::new());
        for part in &attachments {
            let is_shown = has_html && part["disposition"] == "inline" && part["cid"].is_string();
            let mut part = part.clone();
            if part["disposition"].is_null() && part.is_object() {
                part["disposition"] = "attachment".into();
            }
            let node = self.part(&part, "attachments", DEPTH_MAX)?;
            if is_shown { shown.push(node) } else { others.push(node) }
        }
        let body = match bodies.len() {
            0 => Node {
                fields: Vec::new(),
                kind: "text/plain; charset=utf-8".into(),
                content: Content::Encoded(b"\r\n".to_vec()),
            },
            _ => joined("alternative", bodies),
        };
        let body = with_others("related", body, shown);
        Ok(with_others("mixed", body, others))
    }

    fn part(&mut self, value: &Value, property: &str, depth: usize) -> Result<Node, Error> {
        let wrong = |name: &str| Error::property(&format!("{property}/{name}"));
        let Value::Object(part) = value else { return Err(Error::property(property)) };
        let (Some(depth), Some(left)) = (depth.checked_sub(1), self.parts_left.checked_sub(1)) else {
            return Err(Error::property(property));
        };
        self.parts_left = left;
        let text = |name: &str| match part.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str())),
            Some(_) => Err(wrong(name)),
        };
        let kind = text("type")?.unwrap_or("text/plain").to_ascii_lowercase();
        let (main, sub) = kind
            .split_once('/')
            .filter(|(main, sub)| field::is_token(main) && field::is_token(sub))
            .ok_or_else(|| wrong("type"))?;
        let mut fields = fields_of(part, false)?;
        if let Some(cid) = text("cid")? {
            let is_fine = !cid.is_empty() && cid.bytes().all(|byte| byte.is_ascii_graphic() && !b"<>".contains(&byte));
            fields.push(format!("Content-ID: <{}>\r\n", Some(cid).filter(|_| is_fine).ok_or_else(|| wrong("cid"))?));
        }
        if let Some(place) = text("location")? {
            let is_fine = !place.is_empty() && place.bytes().all(|byte| byte.is_ascii_graphic());
            fields.push(format!(
                "Content-Location: {}\r\n",
                Some(place).filter(|_| is_fine).ok_or_else(|| wrong("location"))?
            ));
        }
        if let Some(languages) = part.get("language").filter(|value| !value.is_null()) {
            let languages = crate::arguments::strings(languages.clone()).ok_or_else(|| wrong("language"))?;
            if languages.is_empty() || !languages.iter().all(|tag| field::is_token(tag)) {
                return Err(wrong("language"));
            }
            fields.push(format!("Content-Language: {}\r\n", languages.join(", ")));
        }
        let name = text("name")?.unwrap_or_default();
        if let Some(place) = text("disposition")?.or((!name.is_empty()).then_some("attachment")) {
            let place = Some(place).filter(|place| field::is_token(place)).ok_or_else(|| wrong("disposition"))?;
            fields.push(format!("Content-Disposition: {place}{}\r\n", ::text::parameter::written("filename", name)));
        }
        if main == "multipart" {
            if part.contains_key("partId") || part.contains_key("blobId") {
                return Err(wrong("partId"));
            }
            let Some(Value::Array(parts)) = part.get("subParts") else { return Err(wrong("subParts")) };
            let parts = parts.iter().map(|part| self.part(part, property, depth)).collect::<Result<Vec<_>, _>>()?;
            return Ok(Node { fields, kind: format!("multipart/{sub}"), content: Content::Parts(parts) });
        }
        if part.get("subParts").is_some_and(|parts| !parts.is_null()) {
            return Err(wrong("subParts"));
        }
        let (charset, is_text) = (text("charset")?, main == "text");
        let content = match (text("partId")?, text("blobId")?) {
            (Some(id), None) => {
                if charset.is_some() {
                    return Err(wrong("charset"));
                }
                if part.get("size").is_some_and(|size| !size.is_null()) {
                    return Err(wrong("size"));
                }
                let value = self.values.get(id).ok_or_else(|| wrong("partId"))?;
                let is_odd = |name: &str| value[name] == true;
                let text = value["value"].as_str().filter(|_| !is_odd("isEncodingProblem") && !is_odd("isTruncated"));
                mime::encoded_text(text.ok_or_else(|| Error::property("bodyValues"))?)
            }
            (None, Some(id)) => self.blob_content(id, main)?,
            _ => return Err(wrong("partId")),
        };
        let charset = match (part.contains_key("partId"), charset) {
            (true, _) if is_text => "; charset=utf-8".into(),
            (false, Some(charset)) if field::is_token(charset) => format!("; charset={charset}"),
            (false, Some(_)) => return Err(wrong("charset")),
            _ => String::new(),
        };
        let kind = format!("{kind}{charset}{}", ::text::parameter::written("name", name));
        Ok(Node { fields, kind, content: Content::Encoded(content) })
    }

    /// A blob with its transfer coding. A message stands as it is: no coding is allowed for it.
    fn blob_content(&mut self, id: &str, main: &str) -> Result<Vec<u8>, Error> {
        let index = self.engine.index();
        let Some(mut found) = blob::find(self.engine.host, &index, id) else {
            self.missing.push(id.into());
            return Ok(Vec::new());
        };
        let most = usize::try_from(self.bytes_left).unwrap_or(usize::MAX);
        let (bytes, is_whole) = found.bytes(self.engine.host, most);
        if !is_whole {
            return Err(Error::new("tooLarge"));
        }
        self.bytes_left = self.bytes_left.saturating_sub(bytes.len() as u64);
        if main == "message" {
            return Ok([b"Content-Transfer-Encoding: 8bit\r\n\r\n", &bytes[..], b"\r\n"].concat());
        }
        let mut out = b"Content-Transfer-Encoding: base64\r\n\r\n".to_vec();
        for line in bytes.chunks(LINE_MAX / 4 * 3) {
            out.extend_from_slice(text::base64::encode(line).as_bytes());
            out.extend_from_slice(b"\r\n");
        }
        Ok(out)
    }
}

/// Names of the header fields of an object, in small letters.
fn names(object: &Object) -> Vec<String> {
    let property = |name: &String| match crate::header::Property::read(name) {
        Some(property) => property.ok(),
        None => crate::header::Property::convenience(name),
    };
    object.keys().filter_map(property).map(|property| property.name.to_ascii_lowercase()).collect()
}

fn joined(kind: &str, mut parts: Vec<Node>) -> Node {
    match (parts.len(), parts.pop()) {
        (1, Some(one)) => one,
        (_, last) => {
            parts.extend(last);
            Node { fields: Vec::new(), kind: format!("multipart/{kind}"), content: Content::Parts(parts) }
        }
    }
}

fn with_others(kind: &str, body: Node, others: Vec<Node>) -> Node {
    let mut parts = alloc::vec![body];
    parts.extend(others);
    joined(kind, parts)
}

/// Boundaries that nobody guesses.
struct Boundary {
    seed: String,
    number: usize,
}

fn write(node: Node, boundary: &mut Boundary, out: &mut Vec<u8>) {
    node.fields.iter().for_each(|field| out.extend_from_slice(field.as_bytes()));
    match node.content {
        Content::Encoded(content) => {
            out.extend_from_slice(format!("Content-Type: {}\r\n", node.kind).as_bytes());
            out.extend_from_slice(&content);
        }
        Content::Parts(parts) => {
            boundary.number = boundary.number.saturating_add(1);
            let line = format!("=_{}.{}", boundary.seed, boundary.number);
            out.extend_from_slice(format!("Content-Type: {};\r\n boundary=\"{line}\"\r\n\r\n", node.kind).as_bytes());
            for part in parts {
                out.extend_from_slice(format!("--{line}\r\n").as_bytes());
                write(part, boundary, out);
            }
            out.extend_from_slice(format!("--{line}--\r\n").as_bytes());
        }
    }
}
