//! `Email/get` and `Email/parse` (RFC 8621, sections 4.2 and 4.9).

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::arguments::Arguments;
use crate::blob;
use crate::date::Date;
use crate::engine::{Engine, got};
use crate::error::Error;
use crate::header::{Header, Property};
use crate::host::Layout;
use crate::index::{Email, mailbox_id};
use crate::json::weight;
use crate::limits::{
    ATTACHMENTS_BYTES_MAX, BODY_VALUE_BYTES_MAX, GET_MAX, HEADER_BYTES_MAX, PREVIEW_CHARACTERS, PROPERTIES_MAX,
};
use crate::part::{Part, decoded};
use crate::source::Source;
use crate::{Map, Value, json};

/// Properties that the store knows.
const STORED: [&str; 7] = ["id", "blobId", "threadId", "mailboxIds", "keywords", "size", "receivedAt"];

/// Properties that need the parts of a message.
const OF_PARTS: [&str; 7] =
    ["bodyStructure", "bodyValues", "textBody", "htmlBody", "attachments", "hasAttachment", "preview"];

const DEFAULTS: [&str; 23] = [
    "id",
    "blobId",
    "threadId",
    "mailboxIds",
    "keywords",
    "size",
    "receivedAt",
    "messageId",
    "inReplyTo",
    "references",
    "sender",
    "from",
    "to",
    "cc",
    "bcc",
    "replyTo",
    "subject",
    "sentAt",
    "hasAttachment",
    "preview",
    "bodyValues",
    "textBody",
    "htmlBody",
];

const BODY_PROPERTIES: [&str; 12] = [
    "partId",
    "blobId",
    "size",
    "name",
    "type",
    "charset",
    "disposition",
    "cid",
    "language",
    "location",
    "headers",
    "subParts",
];

/// The bytes of a text of which a preview is made.
const PREVIEW_BYTES: usize = 8 << 10;

/// The properties that a client asks for.
pub(super) struct Wanted {
    properties: Vec<String>,
    headers: Vec<(String, Property)>,
    body_properties: Vec<String>,
    body_headers: Vec<(String, Property)>,
    values_of: [bool; 3],
    value_bytes: usize,
}

impl Wanted {
    pub fn read(arguments: &mut Arguments, is_parsed: bool) -> Result<Wanted, Error> {
        // Of a blob that is parsed the store knows nothing (RFC 8621, section 4.9).
        let skipped = if is_parsed { STORED.len() } else { 0 };
        let default = DEFAULTS.iter().skip(skipped).copied().chain(["attachments"]).map(String::from);
        let default = || default.collect();
        let mut properties: Vec<String> = arguments.strings("properties")?.unwrap_or_else(default);
        if !is_parsed {
            properties.push("id".into());
        }
        let mut headers = Vec::new();
        for name in &properties {
            if let Some(property) = Property::read(name) {
                headers.push((name.clone(), property?));
            } else if let Some(property) = Property::convenience(name) {
                headers.push((name.clone(), property));
            } else if !STORED.contains(&name.as_str()) && !OF_PARTS.contains(&name.as_str()) && name != "headers" {
                return Err(Error::arguments(name.as_str()));
            }
        }
        let body_default = || BODY_PROPERTIES.iter().take(10).map(|name| (*name).into()).collect();
        let body_properties: Vec<String> = arguments.strings("bodyProperties")?.unwrap_or_else(body_default);
        let mut body_headers = Vec::new();
        for name in &body_properties {
            if let Some(property) = Property::read(name) {
                body_headers.push((name.clone(), property?));
            } else if !BODY_PROPERTIES.contains(&name.as_str()) {
                return Err(Error::arguments(name.as_str()));
            }
        }
        let values_of = [
            arguments.boolean("fetchTextBodyValues", false)?,
            arguments.boolean("fetchHTMLBodyValues", false)?,
            arguments.boolean("fetchAllBodyValues", false)?,
        ];
        if properties.len().max(body_properties.len()) > PROPERTIES_MAX {
            return Err(Error::new("requestTooLarge"));
        }
        let value_bytes = arguments.unsigned("maxBodyValueBytes")?.filter(|bytes| *bytes > 0);
        let value_bytes = value_bytes.unwrap_or(BODY_VALUE_BYTES_MAX).min(BODY_VALUE_BYTES_MAX);
        Ok(Wanted { properties, headers, body_properties, body_headers, values_of, value_bytes })
    }

    fn has(&self, name: &str) -> bool {
        self.properties.iter().any(|wanted| wanted == name)
    }

    fn needs_parts(&self) -> bool {
        OF_PARTS.iter().any(|name| self.has(name))
    }
}

pub(crate) fn get(engine: &mut Engine<'_>, mut arguments: Arguments) -> Result<Value, Error> {
    let account = engine.account(&mut arguments)?;
    let (ids, wanted) = (arguments.ids()?, Wanted::read(&mut arguments, false)?);
    arguments.end()?;
    let index = engine.index();
    let ids = match ids {
        Some(ids) => ids,
        None => index.messages().take(GET_MAX.saturating_add(1)).filter_map(|message| index.id_of(message)).collect(),
    };
    if ids.len() > GET_MAX {
        return Err(Error::new("requestTooLarge"));
    }
    let (mut list, mut missing) = (Vec::new(), Vec::new());
    for id in ids {
        match index.message_of(&id).and_then(|message| index.email(message)) {
            Some(email) => list.push(object(engine, &email, &wanted)?),
            None => missing.push(id),
        }
    }
    Ok(got(account, engine.state(), list, missing))
}

fn object(engine: &mut Engine<'_>, email: &Email, wanted: &Wanted) -> Result<Value, Error> {
    let mut object = Map::new();
    let set =
        |names: &alloc::collections::BTreeSet<String>| names.iter().map(|name| (name.clone(), true.into())).collect();
    let stored: [(&str, Value); 7] = [
        ("id", email.id.clone().into()),
        ("blobId", email.id.clone().into()),
        ("threadId", email.thread.clone().into()),
        ("mailboxIds", email.mailboxes.iter().map(|number| (mailbox_id(*number), Value::Bool(true))).collect()),
        ("keywords", Value::Object(set(&email.keywords))),
        ("size", email.size.into()),
        ("receivedAt", Date::utc(email.received).into()),
    ];
    object.extend(stored.into_iter().filter(|(name, _)| wanted.has(name)).map(|(name, value)| (name.into(), value)));
    engine.spend(500)?;
    let needs_header = !wanted.headers.is_empty() || wanted.has("headers");
    if !wanted.needs_parts() && !needs_header {
        return Ok(Value::Object(object));
    }
    let layout = engine.host.layout(email.message).ok_or_else(|| Error::new("serverFail"))?;
    describe(engine, &Source::Stored(email.message), &layout, &email.id, wanted, &mut object)?;
    Ok(Value::Object(object))
}

/// Adds the properties that are read in the message.
fn describe(
    engine: &mut Engine<'_>,
    source: &Source,
    layout: &Layout,
    blob: &str,
    wanted: &Wanted,
    object: &mut Map<String, Value>,
) -> Result<(), Error> {
    let root = match wanted.needs_parts() {
        true => Part::read(engine.host, source, layout),
        false => {
            let end = layout.body.min(layout.header.saturating_add(HEADER_BYTES_MAX));
            Part { header: Header::read(&source.range(engine.host, layout.header, end)), ..Part::default() }
        }
    };
    for (name, property) in &wanted.headers {
        put(engine, object, name, root.header.property(property))?;
    }
    if wanted.has("headers") {
        put(engine, object, "headers", root.header.value())?;
    }
    engine.spend(usize::try_from(layout.body.saturating_sub(layout.header).min(HEADER_BYTES_MAX)).unwrap_or(0))?;
    if !wanted.needs_parts() {
        return Ok(());
    }
    let bodies = root.bodies();
    let mut teller = Teller { engine, source, blob, wanted };
    if wanted.has("bodyStructure") {
        let told = teller.part(&root, true)?;
        object.insert("bodyStructure".into(), told);
    }
    for (name, parts) in [("textBody", &bodies.text), ("htmlBody", &bodies.html), ("attachments", &bodies.attachments)]
    {
        if wanted.has(name) {
            let told = parts.iter().map(|part| teller.part(part, false)).collect::<Result<Vec<_>, _>>()?;
            object.insert(name.into(), Value::Array(told));
        }
    }
    if wanted.has("bodyValues") {
        let mut values = Map::new();
        let mut texts: Vec<&Part> = Vec::new();
        let [text, html, all] = wanted.values_of;
        texts.extend(bodies.text.iter().filter(|_| text || all));
        texts.extend(bodies.html.iter().filter(|_| html || all));
        if all {
            leaves(&root, &mut texts);
        }
        for part in texts.iter().filter(|part| part.kind.starts_with("text/")) {
            if !values.contains_key(&part.path) {
                values.insert(part.path.clone(), teller.value(part)?);
            }
        }
        object.insert("bodyValues".into(), Value::Object(values));
    }
    if wanted.has("hasAttachment") {
        object.insert("hasAttachment".into(), has_attachment(&root).into());
    }
    if wanted.has("preview") {
        object.insert("preview".into(), preview(engine, source, &root).into());
    }
    Ok(())
}

/// Adds a property of the header, and counts it.
fn put(engine: &mut Engine<'_>, object: &mut Map<String, Value>, name: &str, value: Value) -> Result<(), Error> {
    engine.spend(weight(&value).saturating_add(name.len()).saturating_add(100))?;
    object.insert(name.into(), value);
    Ok(())
}

/// Whether a message has an attachment that its text does not show.
pub(super) fn has_attachment(root: &Part) -> bool {
    let is_shown = |part: &&Part| {
        part.disposition.as_deref() == Some("inline") || (part.cid.is_some() && part.kind.starts_with("image/"))
    };
    root.bodies().attachments.iter().any(|part| !is_shown(part))
}

fn leaves<'a>(part: &'a Part, found: &mut Vec<&'a Part>) {
    if part.parts.is_empty() {
        found.push(part);
    }
    part.parts.iter().for_each(|part| leaves(part, found));
}

/// The beginning of the text of a message, in one line.
pub(super) fn preview(engine: &mut Engine<'_>, source: &Source, root: &Part) -> String {
    let bodies = root.bodies();
    let Some(part) = bodies.text.iter().find(|part| part.kind.starts_with("text/")) else { return String::new() };
    let (bytes, _) = part.content(source).bytes(engine.host, PREVIEW_BYTES);
    let (text, _) = decoded(&bytes, part);
    let text = if part.kind == "text/html" { crate::part::text_of_html(&text) } else { text };
    let mut preview = String::new();
    for word in text.split_whitespace() {
        if !preview.is_empty() {
            preview.push(' ');
        }
        preview.push_str(word);
        if preview.len() > PREVIEW_CHARACTERS.saturating_mul(4) {
            break;
        }
    }
    preview.chars().take(PREVIEW_CHARACTERS).collect()
}

struct Teller<'a, 'b, 'c> {
    engine: &'a mut Engine<'b>,
    source: &'c Source,
    blob: &'c str,
    wanted: &'c Wanted,
}

impl Teller<'_, '_, '_> {
    fn part(&mut self, part: &Part, is_deep: bool) -> Result<Value, Error> {
        self.engine.spend(300)?;
        let mut object = Map::new();
        let has = |name: &str| self.wanted.body_properties.iter().any(|wanted| wanted == name);
        let is_leaf = !part.is_multipart();
        let path = is_leaf.then(|| part.path.clone());
        let blob = path.as_ref().map(|path| alloc::format!("{}-{path}", self.blob));
        let told: [(&str, Value); 9] = [
            ("partId", path.into()),
            ("blobId", blob.into()),
            ("name", part.name.clone().into()),
            ("type", part.kind.clone().into()),
            ("charset", part.charset.clone().into()),
            ("disposition", part.disposition.clone().into()),
            ("cid", part.cid.clone().into()),
            ("language", part.languages.clone().map_or(Value::Null, Into::into)),
            ("location", part.location.clone().into()),
        ];
        object.extend(told.into_iter().filter(|(name, _)| has(name)).map(|(name, value)| (name.into(), value)));
        if has("size") {
            let size = if is_leaf { part.content(self.source).count(self.engine.host) } else { 0 };
            object.insert("size".into(), size.into());
        }
        if has("headers") {
            put(self.engine, &mut object, "headers", part.header.value())?;
        }
        for (name, property) in &self.wanted.body_headers {
            put(self.engine, &mut object, name, part.header.property(property))?;
        }
        if is_deep && (!is_leaf || has("subParts")) {
            let parts = part.parts.iter().map(|part| self.part(part, true)).collect::<Result<Vec<_>, _>>()?;
            object.insert("subParts".into(), if is_leaf { Value::Null } else { Value::Array(parts) });
        }
        Ok(Value::Object(object))
    }

    /// An `EmailBodyValue`.
    fn value(&mut self, part: &Part) -> Result<Value, Error> {
        let most = BODY_VALUE_BYTES_MAX;
        let (bytes, is_whole) = part.content(self.source).bytes(self.engine.host, most);
        let (mut text, is_broken) = decoded(&bytes, part);
        let is_truncated = !is_whole || text.len() > self.wanted.value_bytes;
        let end = (0..=self.wanted.value_bytes.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
        text.truncate(end.unwrap_or(0));
        if is_truncated
            && part.kind == "text/html"
            && let Some(start) = text.rfind('<')
            && !text[start..].contains('>')
        {
            // A tag that is cut would be read as text.
            text.truncate(start);
        }
        self.engine.spend(text.len())?;
        Ok(json!({
            "value": text, "isEncodingProblem": is_broken || part.is_unknown_coding, "isTruncated": is_truncated,
        }))
    }
}

pub(crate) fn parse(engine: &mut Engine<'_>, mut arguments: Arguments) -> Result<Value, Error> {
    let account = engine.account(&mut arguments)?;
    let ids = arguments.strings("blobIds")?.ok_or_else(|| Error::arguments("blobIds"))?;
    let wanted = Wanted::read(&mut arguments, true)?;
    arguments.end()?;
    if ids.len() > GET_MAX {
        return Err(Error::new("requestTooLarge"));
    }
    let index = engine.index();
    let (mut parsed, mut unparsable, mut missing) = (Map::new(), Vec::new(), Vec::new());
    for id in ids {
        let Some(mut found) = blob::find(engine.host, &index, &id) else {
            missing.push(id);
            continue;
        };
        let (bytes, is_whole) =
            found.bytes(engine.host, usize::try_from(ATTACHMENTS_BYTES_MAX).unwrap_or(0).saturating_mul(2));
        if !is_whole || !is_mail(&bytes) {
            unparsable.push(id);
            continue;
        }
        let layout = engine.host.layout_of(&bytes);
        let mut object = Map::new();
        // What the store would say of it.
        for name in STORED.iter().filter(|name| wanted.has(name)) {
            object.insert((*name).to_string(), Value::Null);
        }
        if wanted.has("blobId") {
            object.insert("blobId".into(), id.clone().into());
        }
        if wanted.has("size") {
            object.insert("size".into(), bytes.len().into());
        }
        describe(engine, &Source::Bytes(bytes.into()), &layout, &id, &wanted, &mut object)?;
        parsed.insert(id, Value::Object(object));
    }
    Ok(json!({ "accountId": account, "parsed": parsed, "notParsable": unparsable, "notFound": missing }))
}

/// Whether bytes begin with a header field.
pub(super) fn is_mail(bytes: &[u8]) -> bool {
    let line = bytes.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let Some(colon) = line.iter().position(|&byte| byte == b':') else { return false };
    let name = line.get(..colon).unwrap_or_default().trim_ascii_end();
    !name.is_empty() && name.iter().all(u8::is_ascii_graphic)
}
