//! Properties of vCards that a contact keeps as they came.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::line;

/// Bytes of a line of a vCard, before it is folded.
const FOLD_BYTES: usize = 75;

/// Versions of vCard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    Three,
    Four,
}

/// A property of a vCard that has no field of a contact, or more than fits there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Detail {
    /// Its name with group and parameters.
    pub(super) head: String,
    /// Its value as a vCard has it.
    pub(super) value: String,
}

impl Detail {
    /// Its name, without group and parameters.
    pub fn name(&self) -> &str {
        name_of(&self.head)
    }

    /// The types that its parameters name.
    pub fn types(&self) -> impl Iterator<Item = &str> {
        let types = quoted_split(&self.head, ';').skip(1).filter_map(|one| one.strip_prefix("TYPE="));
        types.flat_map(|types| types.trim_matches('"').split(','))
    }

    /// Its value on one line.
    pub fn line(&self) -> String {
        let parts: Vec<String> =
            components(&self.value).map(unescaped).filter(|part| !part.trim().is_empty()).collect();
        line(&parts.join(", "))
    }

    pub(super) fn write(&self, version: Version, out: &mut String) {
        let (head, value) = (self.head.as_str(), self.value.as_str());
        let value = match (self.name(), version) {
            ("BDAY", _) => birthday(value, version),
            _ => Cow::Borrowed(value),
        };
        match (self.name(), version) {
            ("KIND", Version::Three) => fold(&format!("X-ADDRESSBOOKSERVER-KIND:{value}"), out),
            ("MEMBER", Version::Three) => fold(&format!("X-ADDRESSBOOKSERVER-MEMBER:{value}"), out),
            (name @ ("KIND" | "MEMBER"), _) => fold(&format!("{name}:{value}"), out),
            _ => fold(&format!("{head}:{value}"), out),
        }
    }
}

/// A date as a version writes it: `1985-04-12` in version 3, `19850412` in version 4 (RFC 6350, section 4.3.1).
fn birthday(value: &str, version: Version) -> Cow<'_, str> {
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> = value.split('-').collect();
    match (version, &parts[..]) {
        (Version::Four, [year, month, day])
            if year.len() == 4 && month.len() == 2 && day.len() == 2 && parts.iter().all(|part| is_digits(part)) =>
        {
            Cow::Owned(parts.concat())
        }
        (Version::Three, [date]) if date.len() == 8 && is_digits(date) => {
            let (year, day) = date.split_at(4);
            let (month, day) = day.split_at(2);
            Cow::Owned(format!("{year}-{month}-{day}"))
        }
        _ => Cow::Borrowed(value),
    }
}

/// The components of a value, between semicolons that are not escaped.
fn components(value: &str) -> impl Iterator<Item = &str> {
    let mut is_escaped = false;
    value.split(move |character| {
        let was_escaped = is_escaped;
        is_escaped = character == '\\' && !was_escaped;
        character == ';' && !was_escaped
    })
}

/// The parts of a text between marks that stand outside quotation marks.
pub(super) fn quoted_split(text: &str, mark: char) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    text.split(move |character| {
        is_quoted ^= character == '"';
        character == mark && !is_quoted
    })
}

/// The name in a head, without group and parameters.
pub(super) fn name_of(head: &str) -> &str {
    let name = head.split(';').next().unwrap_or_default();
    match name.rsplit('.').next().unwrap_or_default() {
        "X-ADDRESSBOOKSERVER-KIND" => "KIND",
        "X-ADDRESSBOOKSERVER-MEMBER" => "MEMBER",
        name => name,
    }
}

pub(super) fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => out.extend(characters.next().map(|next| if matches!(next, 'n' | 'N') { '\n' } else { next })),
            character => out.push(character),
        }
    }
    out
}

/// Appends a line in pieces of at most [`FOLD_BYTES`].
pub(super) fn fold(line: &str, out: &mut String) {
    let mut bytes = 0usize;
    for character in line.chars() {
        bytes = bytes.saturating_add(character.len_utf8());
        if bytes > FOLD_BYTES {
            out.push_str("\r\n ");
            bytes = character.len_utf8().saturating_add(1);
        }
        out.push(character);
    }
    out.push_str("\r\n");
}
