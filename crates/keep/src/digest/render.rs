//! Renders the FETCH items of a message (RFC 9051, section 7.5.2).

use alloc::format;
use alloc::vec::Vec;

use mime::Value;
use proto::imap::response::{nstring, string};

use super::address::{self, Address};
use super::reader::Entity;

/// Appends the ENVELOPE of a message.
pub(super) fn envelope(message: &Entity, out: &mut Vec<u8>) {
    let text = |name| message.fields.get(name);
    let of = |name| text(name).map(address::list).unwrap_or_default();
    let from = of("from");
    out.push(b'(');
    nstring(text("date"), out);
    out.push(b' ');
    nstring(text("subject").map(mime::one_line).as_deref(), out);
    for list in [None, Some("sender"), Some("reply-to")] {
        out.push(b' ');
        let list = list.map(of).filter(|list| !list.is_empty());
        addresses(list.as_ref().unwrap_or(&from), out);
    }
    for name in ["to", "cc", "bcc"] {
        out.push(b' ');
        addresses(&of(name), out);
    }
    for name in ["in-reply-to", "message-id"] {
        out.push(b' ');
        nstring(text(name), out);
    }
    out.push(b')');
}

fn addresses(list: &[Address], out: &mut Vec<u8>) {
    if list.is_empty() {
        return out.extend_from_slice(b"NIL");
    }
    out.push(b'(');
    for address in list {
        out.push(b'(');
        nstring(address.name.as_deref(), out);
        out.push(b' ');
        nstring(address.route.as_deref(), out);
        out.push(b' ');
        nstring(address.mailbox.as_deref(), out);
        out.push(b' ');
        nstring(address.host.as_deref(), out);
        out.push(b')');
    }
    out.push(b')');
}

/// Appends the BODY of a message or part, or its BODYSTRUCTURE.
pub(super) fn body(entity: &Entity, extended: bool, out: &mut Vec<u8>) {
    out.push(b'(');
    match entity.kind.is_multipart() {
        true => multipart(entity, extended, out),
        false => leaf(entity, extended, out),
    }
    if extended {
        disposition(entity.fields.get("content-disposition"), out);
        languages(entity.fields.get("content-language"), out);
        out.push(b' ');
        nstring(entity.fields.get("content-location"), out);
    }
    out.push(b')');
}

fn multipart(entity: &Entity, extended: bool, out: &mut Vec<u8>) {
    entity.children.iter().for_each(|child| body(child, extended, out));
    out.push(b' ');
    string(entity.kind.names.as_ref().map_or(b"mixed", |(_, subtype)| subtype), out);
    if extended {
        out.push(b' ');
        parameters(&entity.kind.parameters, out);
    }
}

fn leaf(entity: &Entity, extended: bool, out: &mut Vec<u8>) {
    let is_message = entity.kind.is_message();
    let (kind, subtype): (&[u8], &[u8]) = match &entity.kind.names {
        Some((kind, subtype)) => (kind, subtype),
        None if is_message => (b"message", b"rfc822"),
        None => (b"text", b"plain"),
    };
    let is_text = kind.eq_ignore_ascii_case(b"text");
    let mut list = entity.kind.parameters.clone();
    if is_text && !list.iter().any(|(name, _)| name.eq_ignore_ascii_case(b"charset")) {
        // RFC 2045, section 5.2.
        list.push((b"charset".to_vec(), b"us-ascii".to_vec()));
    }
    string(kind, out);
    out.push(b' ');
    string(subtype, out);
    out.push(b' ');
    parameters(&list, out);
    for name in ["content-id", "content-description"] {
        out.push(b' ');
        nstring(entity.fields.get(name), out);
    }
    out.push(b' ');
    let coding = entity.fields.get("content-transfer-encoding").map(mime::value::coding_name);
    string(coding.filter(|coding| !coding.is_empty()).unwrap_or(b"7bit"), out);
    out.extend_from_slice(format!(" {}", entity.end - entity.body).as_bytes());
    if is_message {
        let inner = Entity::default();
        let inner = entity.children.first().unwrap_or(&inner);
        out.push(b' ');
        envelope(inner, out);
        out.push(b' ');
        body(inner, extended, out);
    }
    if is_message || is_text {
        out.extend_from_slice(format!(" {}", entity.lines).as_bytes());
    }
    if extended {
        out.push(b' ');
        nstring(entity.fields.get("content-md5"), out);
    }
}

fn parameters(list: &[(Vec<u8>, Vec<u8>)], out: &mut Vec<u8>) {
    if list.is_empty() {
        return out.extend_from_slice(b"NIL");
    }
    out.push(b'(');
    for (at, (name, value)) in list.iter().enumerate() {
        if at > 0 {
            out.push(b' ');
        }
        string(name, out);
        out.push(b' ');
        string(value, out);
    }
    out.push(b')');
}

fn disposition(value: Option<&[u8]>, out: &mut Vec<u8>) {
    out.push(b' ');
    let value = value.map(Value::read).filter(|value| !value.main.is_empty());
    let Some(value) = value else { return out.extend_from_slice(b"NIL") };
    out.push(b'(');
    string(&value.main, out);
    out.push(b' ');
    parameters(&value.parameters, out);
    out.push(b')');
}

fn languages(value: Option<&[u8]>, out: &mut Vec<u8>) {
    let value = mime::without_comments(&alloc::string::String::from_utf8_lossy(value.unwrap_or_default()));
    let tags = value.as_bytes().split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
    let tags: Vec<&[u8]> = tags.filter(|tag| !tag.is_empty()).collect();
    out.push(b' ');
    if tags.is_empty() {
        return out.extend_from_slice(b"NIL");
    }
    for (at, tag) in tags.iter().enumerate() {
        out.push(if at == 0 { b'(' } else { b' ' });
        string(tag, out);
    }
    out.push(b')');
}
