//! Header fields of an Email that a client creates, each from the form in which it is given.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::Value;
use crate::date::Date;
use crate::header::{Form, Property};

/// Columns of a line of a header.
const COLUMNS_MAX: usize = 76;
/// Bytes of a word that is encoded: 42 are 56 characters, and 70 with what stands around them.
const WORD_BYTES_MAX: usize = 42;

/// Writes the field of a property, or several of one name; `None` if the value does not suit its form.
pub(crate) fn write(property: &Property, value: &Value) -> Option<String> {
    if !property.name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':') {
        return None;
    }
    let mut out = String::new();
    match (property.is_all, value) {
        (true, Value::Array(values)) => {
            for value in values {
                out.push_str(&one(property, value)?);
            }
        }
        (true, _) => return None,
        (false, value) => out = one(property, value)?,
    }
    Some(out)
}

fn one(property: &Property, value: &Value) -> Option<String> {
    let Property { name, form, .. } = property;
    match form {
        Form::Raw => raw(name, value.as_str()?),
        Form::Text => Some(folded(name, words(value.as_str()?), "")),
        Form::Addresses => Some(folded(name, addresses(value)?, ",")),
        Form::GroupedAddresses => {
            let mut all = Vec::new();
            for group in value.as_array()? {
                let inner = addresses(&group["addresses"])?;
                match &group["name"] {
                    Value::Null => all.extend(inner),
                    name => all.push(format!("{}: {};", phrase(name.as_str()?)?, inner.join(",\r\n "))),
                }
            }
            Some(folded(name, all, ","))
        }
        Form::MessageIds => {
            let ids: Option<Vec<String>> = value.as_array()?.iter().map(|id| id_of(id.as_str()?)).collect();
            Some(folded(name, ids?, ""))
        }
        Form::Date => Some(format!("{name}: {}\r\n", Date::read(value.as_str()?)?.field())),
        Form::Urls => {
            let url = |url: &Value| {
                let url = url.as_str()?;
                let is_fine = url.bytes().all(|byte| byte.is_ascii_graphic() && !b"<>".contains(&byte));
                is_fine.then(|| format!("<{url}>"))
            };
            let urls: Option<Vec<String>> = value.as_array()?.iter().map(url).collect();
            Some(folded(name, urls?, ","))
        }
    }
}

/// A value as it stands: no control characters, lines go on with a blank, and are not longer than mail allows.
fn raw(name: &str, value: &str) -> Option<String> {
    let lines: Vec<&str> = value.split("\r\n").collect();
    let is_line = |line: &&str| line.len() <= 900 && line.chars().all(|c| c == '\t' || !c.is_control());
    let goes_on = lines.iter().skip(1).all(|line| line.starts_with([' ', '\t']) && !line.trim().is_empty());
    let blank = if value.starts_with([' ', '\t']) || value.is_empty() { "" } else { " " };
    (lines.iter().all(is_line) && goes_on).then(|| format!("{name}:{blank}{value}\r\n"))
}

fn addresses(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(address).collect()
}

/// An address with its name. What stands in it cannot begin another one.
fn address(value: &Value) -> Option<String> {
    let email = value["email"].as_str()?;
    let is_fine =
        !email.is_empty() && email.chars().all(|c| !c.is_control() && !c.is_whitespace() && !"<>,;()".contains(c));
    let name = match &value["name"] {
        Value::Null => String::new(),
        name => phrase(name.as_str()?)?,
    };
    match (is_fine, name.is_empty()) {
        (false, _) => None,
        (true, true) => Some(email.into()),
        (true, false) => Some(format!("{name} <{email}>")),
    }
}

/// A display name.
fn phrase(name: &str) -> Option<String> {
    let name = without_controls(name);
    let name = name.trim();
    Some(match name {
        "" => String::new(),
        name if !name.is_ascii() || name.contains("=?") => words(name).join("\r\n "),
        name if name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b' ') => name.into(),
        name => format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\"")),
    })
}

fn id_of(id: &str) -> Option<String> {
    let is_fine =
        !id.is_empty() && id.len() <= 900 && id.bytes().all(|byte| byte.is_ascii_graphic() && !b"<>".contains(&byte));
    is_fine.then(|| format!("<{id}>"))
}

fn without_controls(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') { ' ' } else { c }).collect()
}

/// The words of a text: as they are in ASCII, encoded otherwise (RFC 2047).
fn words(text: &str) -> Vec<String> {
    let text = without_controls(text);
    let text = text.trim();
    if text.is_ascii() && !text.contains("=?") && text.split(' ').all(|word| word.len() < COLUMNS_MAX) {
        return text.split(' ').map(Into::into).collect();
    }
    let (mut words, mut piece) = (Vec::new(), String::new());
    for character in text.chars() {
        if piece.len().saturating_add(character.len_utf8()) > WORD_BYTES_MAX {
            words.push(encoded(&core::mem::take(&mut piece)));
        }
        piece.push(character);
    }
    if !piece.is_empty() {
        words.push(encoded(&piece));
    }
    words
}

fn encoded(piece: &str) -> String {
    format!("=?utf-8?B?{}?=", text::base64::encode(piece.as_bytes()))
}

/// A field, folded between its words.
fn folded(name: &str, words: Vec<String>, between: &str) -> String {
    let mut out = format!("{name}:");
    let (mut columns, last) = (out.len(), words.len().saturating_sub(1));
    for (at, word) in words.iter().enumerate() {
        if columns.saturating_add(word.len()) >= COLUMNS_MAX && at > 0 && !word.is_empty() {
            out.push_str("\r\n");
            columns = 0;
        }
        out.push(' ');
        out.push_str(word);
        if at < last {
            out.push_str(between);
        }
        columns = columns.saturating_add(word.len()).saturating_add(2);
    }
    out.push_str("\r\n");
    out
}

/// A parameter of a structured field, continued where it is long (RFC 2231); nothing for an empty value.
pub(super) fn parameter(name: &str, value: &str) -> String {
    let value = without_controls(value);
    if value.is_empty() {
        return String::new();
    }
    let is_plain = value.len() <= 60 && value.chars().all(|c| c.is_ascii_alphanumeric() || "-._ ".contains(c));
    if is_plain {
        return format!(";\r\n {name}=\"{value}\"");
    }
    let mut encoded = String::new();
    for byte in value.bytes().take(1_000) {
        match byte.is_ascii_alphanumeric() || b"-._".contains(&byte) {
            true => encoded.push(char::from(byte)),
            false => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    let mut out = String::new();
    for (at, piece) in encoded.as_bytes().chunks(54).enumerate() {
        let charset = if at == 0 { "utf-8''" } else { "" };
        out.push_str(&format!(";\r\n {name}*{at}*={charset}{}", String::from_utf8_lossy(piece)));
    }
    out
}

/// Whether a text is a token of MIME (RFC 2045, section 5.1).
pub(super) fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 100
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&-^_.+*'".contains(&byte))
}
