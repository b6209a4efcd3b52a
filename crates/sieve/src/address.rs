//! Addresses in header fields (RFC 5322, section 3.4), as tests compare them.
//!
//! Comments and display names are passed over, groups are their members. What is no address is left out.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Addresses of one field that are read.
pub const ADDRESSES_MAX: usize = 1_000;

/// An address.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Address {
    /// Before the last `@`.
    pub local: String,
    /// Behind it; empty if there is none.
    pub domain: String,
}

impl Address {
    /// Reads the address of an envelope, with or without angle brackets; none if it is empty.
    pub fn of_envelope(path: &str) -> Option<Address> {
        let path = path.trim();
        let path = path.strip_prefix('<').and_then(|path| path.strip_suffix('>')).unwrap_or(path);
        let (local, domain) = path.rsplit_once('@').unwrap_or((path, ""));
        (!path.is_empty()).then(|| Address { local: unquoted(local), domain: domain.to_string() })
    }

    /// As it is written.
    pub fn whole(&self) -> String {
        let mut text = self.local.clone();
        if !self.domain.is_empty() {
            text.push('@');
            text.push_str(&self.domain);
        }
        text
    }

    /// What stands before and behind the first `+` of the local part (RFC 5233).
    pub fn user_and_detail(&self) -> (&str, Option<&str>) {
        self.local.split_once('+').map_or((&self.local, None), |(user, detail)| (user, Some(detail)))
    }
}

/// A single address, if that is all that there is.
pub fn plain(text: &str) -> Option<Address> {
    let mut found = list(text);
    let only = found.pop()?;
    let is_one = found.is_empty() && !only.domain.is_empty() && !text.contains(['\r', '\n', '\0']);
    let has_odd = |text: &str| text.chars().any(|character| character.is_whitespace() || "<>\"".contains(character));
    (is_one && !only.local.is_empty() && !has_odd(&only.domain) && !has_odd(&only.local)).then_some(only)
}

/// Whether a header field can be called so (RFC 5322, section 3.6.8).
pub fn is_field_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':')
}

/// The addresses of a field, in their order.
pub fn list(value: &str) -> Vec<Address> {
    let mut found = Vec::new();
    let mut reader = Reader::default();
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match character {
            '(' => comment(&mut characters),
            '"' => reader.push_quoted(&mut characters),
            '<' => {
                reader = Reader { in_angle: true, ..Reader::default() };
            }
            '>' => reader.closed = true,
            ':' if !reader.in_angle && reader.at.is_none() => reader = Reader::default(),
            // A route within angle brackets.
            ':' => reader = Reader { in_angle: true, ..Reader::default() },
            ',' if reader.in_angle && !reader.closed => {}
            ',' | ';' => {
                found.extend(core::mem::take(&mut reader).finish());
                if found.len() >= ADDRESSES_MAX {
                    return found;
                }
            }
            _ if reader.closed => {}
            '@' => {
                reader.at = Some(reader.text.len());
                reader.text.push('@');
            }
            blank if blank.is_whitespace() => reader.blank(),
            other => reader.push(other),
        }
    }
    found.extend(reader.finish());
    found
}

#[derive(Debug, Default)]
struct Reader {
    text: String,
    /// Where its last `@` is.
    at: Option<usize>,
    in_angle: bool,
    closed: bool,
    /// White space stood behind what there is.
    after_blank: bool,
    /// Two words stand side by side, so it is no address.
    is_phrase: bool,
}

impl Reader {
    fn push(&mut self, character: char) {
        if self.after_blank && !self.text.is_empty() && !self.text.ends_with(['@', '.']) && character != '.' {
            self.is_phrase = true;
        }
        self.after_blank = false;
        self.text.push(character);
    }

    fn blank(&mut self) {
        self.after_blank = true;
    }

    fn push_quoted(&mut self, characters: &mut core::str::Chars<'_>) {
        while let Some(character) = characters.next() {
            match character {
                '"' => return,
                '\\' => self.text.extend(characters.next()),
                other => self.text.push(other),
            }
        }
    }

    fn finish(self) -> Option<Address> {
        let at = self.at?;
        let (local, domain) = self.text.split_at_checked(at)?;
        let domain = domain.get(1..).unwrap_or_default();
        if local.is_empty() || domain.is_empty() || self.is_phrase || (self.in_angle && !self.closed) {
            return None;
        }
        Some(Address { local: local.to_string(), domain: domain.to_string() })
    }
}

fn comment(characters: &mut core::str::Chars<'_>) {
    let mut depth = 1u32;
    while let Some(character) = characters.next() {
        match character {
            '\\' => drop(characters.next()),
            '(' => depth = depth.saturating_add(1),
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return;
        }
    }
}

fn unquoted(local: &str) -> String {
    match local.strip_prefix('"').and_then(|local| local.strip_suffix('"')) {
        Some(quoted) => quoted.replace("\\\"", "\"").replace("\\\\", "\\"),
        None => local.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        for (value, wanted) in [
            ("a@b.example", "a@b.example"),
            ("Ann <a@b.example>, \"B, C\" <b@c.example>", "a@b.example b@c.example"),
            ("friends: a@b.example, c@d.example;, e@f.example", "a@b.example c@d.example e@f.example"),
            ("a@b.example (Ann (really)), <@x,@y:c@d.example>", "a@b.example c@d.example"),
            ("\"a b\"@c.example", "a b@c.example"),
            ("a . b @ c . example", "a.b@c.example"),
            ("undisclosed-recipients:;", ""),
            ("Ann", ""),
            ("<>", ""),
            ("Ann a@b.example", ""),
            ("<a@b.example", ""),
        ] {
            let found: Vec<String> = list(value).iter().map(Address::whole).collect();
            assert_eq!(found.join(" "), wanted, "{value}");
        }
    }

    #[test]
    fn one_address_is_one() {
        assert!(plain("a@b.example").is_some() && plain("Ann <a@b.example>").is_some());
        for other in ["", "a", "a@b, c@d", "a@b\r\nX: y", "\"a b\"@c"] {
            assert!(plain(other).is_none(), "{other}");
        }
    }
}
