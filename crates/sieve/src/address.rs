//! Addresses in header fields (RFC 5322, section 3.4), as tests compare them.
//!
//! [`mime::address`] reads them; groups are their members, and what is no address is left out.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use mime::address::Entry;

/// Addresses of one field that are read.
pub const ADDRESSES_MAX: usize = 1_000;

/// An address.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Address {
    /// Before the last `@`.
    pub local: String,
    /// Domain, after the `@`; empty without one.
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

    fn of(address: &mime::address::Address) -> Address {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Address { local: text(&address.local), domain: text(&address.domain) }
    }

    /// As it is written: a local part that is no dot-atom is quoted.
    pub fn whole(&self) -> String {
        let mut text = match is_dot_atom(&self.local) {
            true => self.local.clone(),
            false => quoted(&self.local),
        };
        if !self.domain.is_empty() {
            text.push('@');
            text.push_str(&self.domain);
        }
        text
    }

    /// The same with its domain in ASCII (RFC 5890): a mail to it or from it needs SMTPUTF8 only for its local part.
    pub fn in_ascii(&self) -> String {
        let domain = text::host::mapped(&self.domain).filter(|_| !self.domain.is_ascii());
        Address { local: self.local.clone(), domain: domain.unwrap_or_else(|| self.domain.clone()) }.whole()
    }

    /// The parts of the local part before and after the first `+` (RFC 5233).
    pub fn user_and_detail(&self) -> (&str, Option<&str>) {
        self.local.split_once('+').map_or((&self.local, None), |(user, detail)| (user, Some(detail)))
    }
}

/// A single address, if that is all that there is.
pub fn plain(text: &str) -> Option<Address> {
    mailbox(text).map(|(_, address)| address)
}

/// A single address with its display name, if the text is one mailbox (RFC 5322, section 3.4) and nothing else.
pub fn mailbox(text: &str) -> Option<(Option<String>, Address)> {
    let mut entries = mime::address::addresses(text.as_bytes(), 2);
    let Some(Entry::Address(only)) = entries.pop().filter(|_| entries.is_empty()) else { return None };
    let address = Address::of(&only);
    let is_odd = |character: char| character.is_whitespace() || "<>\"(),;:@\\".contains(character);
    let is_literal = address.domain.starts_with('[') && address.domain.ends_with(']');
    let is_host = is_literal || !address.domain.contains(is_odd);
    let is_sound = only.is_whole && is_host && !text.contains(char::is_control);
    is_sound.then(|| (only.name.map(|name| String::from_utf8_lossy(&name).into_owned()), address))
}

/// Whether a header field can be called so (RFC 5322, section 3.6.8).
pub fn is_field_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':')
}

/// The addresses of a field, in their order.
pub fn list(value: &str) -> Vec<Address> {
    entries(value).into_iter().filter(|found| found.is_whole).map(|found| Address::of(&found)).collect()
}

fn entries(value: &str) -> Vec<mime::address::Address> {
    let entries = mime::address::addresses(value.as_bytes(), ADDRESSES_MAX);
    let addresses = entries.into_iter().filter_map(|entry| match entry {
        Entry::Address(address) => Some(address),
        Entry::Group(_) | Entry::GroupEnd => None,
    });
    addresses.collect()
}

fn is_dot_atom(text: &str) -> bool {
    let is_atom = |atom: &str| !atom.is_empty() && atom.chars().all(is_atom_text);
    text.split('.').all(is_atom)
}

/// Whether a character may stand in an atom (RFC 5322, section 3.2.3; RFC 6532).
pub fn is_atom_text(character: char) -> bool {
    character.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(character) || !character.is_ascii()
}

/// As a quoted string.
pub fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn unquoted(local: &str) -> String {
    let Some(inner) = local.strip_prefix('"').and_then(|local| local.strip_suffix('"')) else { return local.into() };
    let mut text = String::new();
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        text.extend(if character == '\\' { characters.next() } else { Some(character) });
    }
    text
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
            ("\"a b\"@c.example", "\"a b\"@c.example"),
            ("\"a.b\"@c.example", "a.b@c.example"),
            ("a . b @ c . example", "a.b@c.example"),
            ("undisclosed-recipients:;", ""),
            ("Ann", ""),
            ("<>", ""),
            ("Ann a@b.example, a@b@c, a\"b\"@c, b@c.example", "b@c.example"),
            ("<a@b.example", ""),
        ] {
            let found: Vec<String> = list(value).iter().map(Address::whole).collect();
            assert_eq!(found.join(" "), wanted, "{value}");
        }
    }

    #[test]
    fn one_address_is_one() {
        assert!(plain("a@b.example").is_some() && plain("Ann <a@b.example>").is_some());
        assert!(plain("\"a b\"@c").is_some() && plain("\"D, A\" <a@b>").is_some());
        for other in [
            "",
            "a",
            "a@b, c@d",
            "a@b\r\nX: y",
            "a@b <a@b>",
            "D, A <a@b>",
            "g: a@b;",
            "a@b c",
            "<a@b",
            "a@b@c",
            "a b@c",
            "\"a b@c",
        ] {
            assert!(plain(other).is_none(), "{other}");
        }
    }
}
