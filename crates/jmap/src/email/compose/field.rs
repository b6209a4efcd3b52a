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

/// A field, folded between its words; nothing without any, as lists have at least one element.
fn folded(name: &str, words: Vec<String>, between: &str) -> String {
    if words.is_empty() {
        return String::new();
    }
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

/// Whether a text is a token of MIME (RFC 2045, section 5.1).
pub(super) fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 100
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&-^_.+*'".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_a_file_is_read_back_as_it_was_written() {
        let names =
            ["a\u{e4}".repeat(30), "\u{65e5}\u{672c}".repeat(40), "x".repeat(70) + "\u{fc}.pdf", "a(b)c ".repeat(20)];
        for name in names {
            let written = format!("attachment{}", ::text::parameter::written("filename", &name));
            let read = mime::Value::read(&mime::unfolded(written.as_bytes()));
            assert_eq!(core::str::from_utf8(read.get("filename").unwrap()).unwrap(), name, "{written}");
        }
    }
}
