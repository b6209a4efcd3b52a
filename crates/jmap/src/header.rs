//! Header fields and the forms in which they are asked for (RFC 8621, sections 4.1.2 and 4.1.3).

use alloc::string::String;
use alloc::vec::Vec;

use ::text::normal::composed;
use mime::address::{self, Entry};

use crate::date::Date;
use crate::error::Error;
use crate::{Value, json};

/// Addresses of one field that are told.
const ADDRESSES_MAX: usize = 2_000;

/// Bytes of a text that is told.
const TEXT_BYTES_MAX: usize = 64 << 10;

/// The fields of a header, in their order: name, and value as it stands.
#[derive(Debug, Clone, Default)]
pub(crate) struct Header(Vec<(String, Vec<u8>)>);

impl Header {
    pub fn read(bytes: &[u8]) -> Header {
        let mut fields: Vec<(String, Vec<u8>)> = Vec::new();
        for line in bytes.split_inclusive(|&byte| byte == b'\n') {
            if line.first().is_some_and(|byte| b" \t".contains(byte)) {
                if let Some((_, value)) = fields.last_mut() {
                    value.extend_from_slice(line);
                }
                continue;
            }
            let Some(colon) = line.iter().position(|&byte| byte == b':') else { continue };
            let (name, value) = line.split_at(colon);
            let name = String::from_utf8_lossy(name.trim_ascii_end()).into_owned();
            fields.push((name, value.get(1..).unwrap_or_default().to_vec()));
        }
        for (_, value) in &mut fields {
            let end = value.len().saturating_sub(value.iter().rev().take_while(|byte| b"\r\n".contains(byte)).count());
            value.truncate(end);
        }
        Header(fields)
    }

    /// The values of the fields of a name, as they stand.
    pub fn all<'a>(&'a self, name: &'a str) -> impl DoubleEndedIterator<Item = &'a [u8]> {
        self.0.iter().filter(move |(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| &value[..])
    }

    /// The first field of a name, unfolded: of what describes the content, the first decides.
    pub fn unfolded(&self, name: &str) -> Option<Vec<u8>> {
        self.all(name).next().map(|value| mime::unfolded(value).trim_ascii().to_vec())
    }

    /// The property `headers`.
    pub fn value(&self) -> Value {
        self.0.iter().map(|(name, value)| json!({ "name": name, "value": raw(value) })).collect()
    }

    /// A property: the last field in its form, or all.
    pub fn property(&self, property: &Property) -> Value {
        let mut values = self.all(&property.name).map(|value| property.form.of(value));
        match property.is_all {
            true => values.collect(),
            false => values.next_back().unwrap_or(Value::Null),
        }
    }
}

/// A property `header:Name:asForm:all`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Property {
    pub name: String,
    pub form: Form,
    pub is_all: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Raw,
    Text,
    Addresses,
    GroupedAddresses,
    MessageIds,
    Date,
    Urls,
}

const ADDRESSES: [&str; 12] = [
    "from",
    "sender",
    "reply-to",
    "to",
    "cc",
    "bcc",
    "resent-from",
    "resent-sender",
    "resent-reply-to",
    "resent-to",
    "resent-cc",
    "resent-bcc",
];
const TEXTS: [&str; 4] = ["subject", "comments", "keywords", "list-id"];
const IDS: [&str; 4] = ["message-id", "in-reply-to", "references", "resent-message-id"];
const DATES: [&str; 2] = ["date", "resent-date"];
const URLS: [&str; 6] = ["list-help", "list-unsubscribe", "list-subscribe", "list-post", "list-owner", "list-archive"];
const OTHERS: [&str; 2] = ["return-path", "received"];

impl Property {
    /// Reads the name of a property; `None` if it is not of a header field, an error if that field has no such form.
    pub fn read(property: &str) -> Option<Result<Property, Error>> {
        let rest = property.strip_prefix("header:")?;
        let wrong = || Error::arguments(property);
        let mut parts = rest.split(':');
        let name = parts.next().unwrap_or_default();
        let (mut form, mut is_all) = (None, false);
        for part in parts {
            let known = match part {
                "asRaw" => Form::Raw,
                "asText" => Form::Text,
                "asAddresses" => Form::Addresses,
                "asGroupedAddresses" => Form::GroupedAddresses,
                "asMessageIds" => Form::MessageIds,
                "asDate" => Form::Date,
                "asURLs" => Form::Urls,
                "all" if !is_all => {
                    is_all = true;
                    continue;
                }
                _ => return Some(Err(wrong())),
            };
            if form.is_some() || is_all {
                return Some(Err(wrong()));
            }
            form = Some(known);
        }
        let form = form.unwrap_or(Form::Raw);
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic());
        Some(match is_name && form.suits(name) {
            true => Ok(Property { name: name.into(), form, is_all }),
            false => Err(wrong()),
        })
    }

    /// The property that a name of a convenience stands for (RFC 8621, section 4.1.3).
    pub fn convenience(name: &str) -> Option<Property> {
        let (field, form) = match name {
            "messageId" => ("Message-ID", Form::MessageIds),
            "inReplyTo" => ("In-Reply-To", Form::MessageIds),
            "references" => ("References", Form::MessageIds),
            "sender" => ("Sender", Form::Addresses),
            "from" => ("From", Form::Addresses),
            "to" => ("To", Form::Addresses),
            "cc" => ("Cc", Form::Addresses),
            "bcc" => ("Bcc", Form::Addresses),
            "replyTo" => ("Reply-To", Form::Addresses),
            "subject" => ("Subject", Form::Text),
            "sentAt" => ("Date", Form::Date),
            _ => return None,
        };
        Some(Property { name: field.into(), form, is_all: false })
    }
}

impl Form {
    /// Whether a field may be asked for in this form: fields of the mail standards have their own.
    fn suits(self, name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        let is = |names: &[&str]| names.contains(&name.as_str());
        let is_known = is(&ADDRESSES) || is(&TEXTS) || is(&IDS) || is(&DATES) || is(&URLS) || is(&OTHERS);
        match self {
            Form::Raw => true,
            _ if !is_known => true,
            Form::Text => is(&TEXTS),
            Form::Addresses | Form::GroupedAddresses => is(&ADDRESSES),
            Form::MessageIds => is(&IDS),
            Form::Date => is(&DATES),
            Form::Urls => is(&URLS),
        }
    }

    /// A value in this form.
    fn of(self, value: &[u8]) -> Value {
        let flat = mime::unfolded(value);
        match self {
            Form::Raw => raw(value).into(),
            Form::Text => text(flat.trim_ascii()).into(),
            Form::Addresses => groups(&flat).into_iter().flat_map(|(_, addresses)| addresses).collect(),
            Form::GroupedAddresses => {
                let group =
                    |(name, addresses): (Option<String>, Vec<Value>)| json!({ "name": name, "addresses": addresses });
                groups(&flat).into_iter().map(group).collect()
            }
            Form::MessageIds => bracketed(&flat),
            Form::Date => {
                let date = core::str::from_utf8(&flat).ok().and_then(Date::read_field);
                date.map_or(Value::Null, |date| date.written().into())
            }
            Form::Urls => bracketed(&flat),
        }
    }
}

/// A value as it stands; bytes that are no UTF-8 are replaced.
fn raw(value: &[u8]) -> String {
    String::from_utf8_lossy(value).replace('\0', "")
}

pub(crate) fn text(value: &[u8]) -> String {
    let text: String = mime::header_text(value, TEXT_BYTES_MAX).chars().filter(|c| *c != '\0').collect();
    composed(&text).into_owned()
}

/// Groups of addresses with their names; addresses outside of groups are in one without a name.
fn groups(value: &[u8]) -> Vec<(Option<String>, Vec<Value>)> {
    let mut groups: Vec<(Option<String>, Vec<Value>)> = Vec::new();
    let mut is_open = false;
    for entry in address::addresses(value, ADDRESSES_MAX) {
        match entry {
            Entry::Group(name) => {
                groups.push((Some(text(&name)), Vec::new()));
                is_open = true;
            }
            Entry::GroupEnd => {
                groups.push((None, Vec::new()));
                is_open = true;
            }
            Entry::Address(address) => {
                let email = match address.domain.is_empty() {
                    true => raw(&address.local),
                    false => raw(&[&address.local[..], b"@", &address.domain].concat()),
                };
                let name = address.name.as_deref().map(text).filter(|name| !name.is_empty());
                if !is_open {
                    groups.push((None, Vec::new()));
                    is_open = true;
                }
                if let Some((_, addresses)) = groups.last_mut() {
                    addresses.push(json!({ "name": name, "email": email }));
                }
            }
        }
    }
    groups.retain(|(name, addresses)| name.is_some() || !addresses.is_empty());
    groups
}

/// The texts in angle brackets, without blanks (RFC 2369, section 2); null if there are none.
fn bracketed(value: &[u8]) -> Value {
    let (mut found, mut rest) = (Vec::new(), value);
    while let Some(start) = rest.iter().position(|&byte| byte == b'<') {
        let behind = rest.get(start.saturating_add(1)..).unwrap_or_default();
        let Some(end) = behind.iter().position(|&byte| byte == b'>') else { break };
        let (inner, after) = behind.split_at(end);
        let inner: Vec<u8> = inner.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
        found.push(Value::from(raw(&inner)));
        rest = after;
    }
    if found.is_empty() { Value::Null } else { Value::Array(found) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_told_in_their_forms() {
        let header = Header::read(
            b"Subject: =?utf-8?q?Gr=C3=BC?=\r\n =?utf-8?q?=C3=9Fe?=\r\nFrom: \"A, B\" <a@x>, team: c@y, D <d@z>;, e@w\r\n\
              References: <1@x>\r\n\t<2@y>\r\nList-Help: <https://x/\r\n long>\r\nX: one\r\nX: two\r\nY: cafe\xcc\x81\r\nCc: e\xcc\x81 <e@x>\r\nDate: 17 Jul 1996 02:23:25 -0700\r\nbroken\r\n",
        );
        let of = |property: &str| header.property(&Property::read(property).unwrap().unwrap()).to_string();
        assert_eq!(of("header:Subject:asText"), r#""Grüße""#);
        assert_eq!(of("header:Y:asText"), "\"caf\u{e9}\"");
        assert_eq!(of("header:Cc:asAddresses"), "[{\"email\":\"e@x\",\"name\":\"\u{e9}\"}]");
        assert_eq!(of("header:subject"), r#"" =?utf-8?q?Gr=C3=BC?=\r\n =?utf-8?q?=C3=9Fe?=""#);
        assert_eq!(of("header:References:asMessageIds"), r#"["1@x","2@y"]"#);
        assert_eq!(of("header:List-Help:asURLs"), r#"["https://x/long"]"#);
        assert_eq!(of("header:X:all"), r#"[" one"," two"]"#);
        assert_eq!(of("header:X:asText"), r#""two""#);
        assert_eq!(of("header:Nothing:asAddresses"), "null");
        assert_eq!(of("header:Date:asDate"), r#""1996-07-17T02:23:25-07:00""#);
        let grouped = of("header:From:asGroupedAddresses");
        let wanted = concat!(
            r#"[{"addresses":[{"email":"a@x","name":"A, B"}],"name":null},"#,
            r#"{"addresses":[{"email":"c@y","name":null},{"email":"d@z","name":"D"}],"name":"team"},"#,
            r#"{"addresses":[{"email":"e@w","name":null}],"name":null}]"#
        );
        assert_eq!(grouped, wanted);
        for wrong in
            ["header:", "header:Subject:asDate", "header:X:all:asText", "header:X:asNothing", "header:From:asText"]
        {
            assert!(Property::read(wrong).unwrap().is_err(), "{wrong}");
        }
    }
}
