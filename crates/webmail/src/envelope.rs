//! The ENVELOPE of a message (RFC 9051, section 7.5.2), as the store has it from the delivery.
//!
//! Bounds: three levels of lists, [`ADDRESSES_MAX`] addresses of a field.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Addresses of a field that are read.
const ADDRESSES_MAX: usize = 200;

/// Bytes of a text that are shown.
const TEXT_BYTES_MAX: usize = 2_000;

/// The fields of a message that a list and a reply need.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Envelope {
    /// The text of `Subject`.
    pub subject: String,
    /// `From`
    pub from: Vec<Address>,
    /// `Reply-To`, or `From`.
    pub reply_to: Vec<Address>,
    /// `To`
    pub to: Vec<Address>,
    /// `Cc`
    pub cc: Vec<Address>,
    /// `Bcc`
    pub bcc: Vec<Address>,
    /// `Message-ID`
    pub id: String,
}

/// An address with its name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Address {
    /// Empty if there is none.
    pub name: String,
    /// `local@domain`
    pub address: String,
}

impl Address {
    /// The name, or the address where there is none.
    pub fn label(&self) -> &str {
        if self.name.is_empty() { &self.address } else { &self.name }
    }

    /// As it is written in a field of a form.
    pub fn written(&self) -> String {
        if self.name.is_empty() {
            return self.address.clone();
        }
        let name: String = self.name.chars().filter(|c| !matches!(c, '"' | '\\')).collect();
        match name.chars().all(|c| c.is_alphanumeric() || c == ' ') {
            true => format!("{name} <{}>", self.address),
            false => format!("\"{name}\" <{}>", self.address),
        }
    }
}

impl Envelope {
    /// Reads what IMAP tells; empty where that is damaged.
    pub fn parse(told: &[u8]) -> Envelope {
        let mut rest = told;
        let Some(Item::List(fields)) = item(&mut rest, 4) else { return Envelope::default() };
        let text = |at: usize| match fields.get(at) {
            Some(Item::Text(raw)) => shown(raw),
            _ => String::new(),
        };
        let addresses = |at: usize| match fields.get(at) {
            Some(Item::List(all)) => all.iter().filter_map(address).take(ADDRESSES_MAX).collect(),
            _ => Vec::new(),
        };
        Envelope {
            subject: text(1),
            from: addresses(2),
            reply_to: addresses(4),
            to: addresses(5),
            cc: addresses(6),
            bcc: addresses(7),
            id: text(9),
        }
    }
}

/// The text of a field, without characters that make a line read as another.
pub(crate) fn shown(raw: &[u8]) -> String {
    let is_plain = |bytes: &[u8]| bytes.iter().all(|byte| (b' '..=b'~').contains(byte));
    if let Some(plain) =
        raw.get(..raw.len().min(TEXT_BYTES_MAX)).filter(|plain| is_plain(plain) && !plain.contains(&b'='))
    {
        return String::from_utf8_lossy(plain).trim().into();
    }
    let text = mime::header_text(raw, TEXT_BYTES_MAX);
    let text: String =
        text.chars().map(|c| if c == '\t' { ' ' } else { c }).filter(|c| !text::hazard::is_hazard(*c)).collect();
    text.trim().into()
}

enum Item<'a> {
    Nil,
    Text(Cow<'a, [u8]>),
    List(Vec<Item<'a>>),
}

fn address(item: &Item<'_>) -> Option<Address> {
    let Item::List(parts) = item else { return None };
    let part = |at: usize| match parts.get(at) {
        Some(Item::Text(raw)) => shown(raw),
        _ => String::new(),
    };
    let (mailbox, host) = (part(2), part(3));
    // A group has no host.
    if host.is_empty() || mailbox.is_empty() {
        return None;
    }
    Some(Address { name: part(0), address: format!("{mailbox}@{host}") })
}

fn item<'a>(from: &mut &'a [u8], depth: u32) -> Option<Item<'a>> {
    let (&first, rest) = from.split_first()?;
    match first {
        b'(' => {
            *from = rest;
            let mut items = Vec::new();
            loop {
                while let Some(rest) = from.strip_prefix(b" ") {
                    *from = rest;
                }
                if let Some(rest) = from.strip_prefix(b")") {
                    *from = rest;
                    return Some(Item::List(items));
                }
                items.push(item(from, depth.checked_sub(1)?)?);
            }
        }
        b'"' => {
            let mut text = Cow::Borrowed(&rest[..0]);
            let mut rest = rest;
            loop {
                let at = memchr::memchr2(b'"', b'\\', rest)?;
                let (before, behind) = rest.split_at_checked(at)?;
                match text.is_empty() {
                    true => text = Cow::Borrowed(before),
                    false => text.to_mut().extend_from_slice(before),
                }
                let (&special, behind) = behind.split_first()?;
                if special == b'"' {
                    *from = behind;
                    return Some(Item::Text(text));
                }
                let (&escaped, behind) = behind.split_first()?;
                text.to_mut().push(escaped);
                rest = behind;
            }
        }
        b'{' => {
            let close = rest.iter().position(|&byte| byte == b'}')?;
            let digits = rest.get(..close)?.strip_suffix(b"+").unwrap_or(rest.get(..close)?);
            let length: usize = core::str::from_utf8(digits).ok()?.parse().ok()?;
            let content = rest.get(close.checked_add(1)?..)?.strip_prefix(b"\r\n")?;
            let (text, behind) = content.split_at_checked(length)?;
            *from = behind;
            Some(Item::Text(Cow::Borrowed(text)))
        }
        _ => {
            *from = from.strip_prefix(b"NIL")?;
            Some(Item::Nil)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_envelope_is_read() {
        let told = b"(\"Wed\" {5}\r\n=?utf \"x\" NIL NIL NIL NIL NIL NIL NIL)";
        assert_eq!(Envelope::parse(told).subject, "=?utf");
        let told = concat!(
            r#"("d" "=?utf-8?q?=C3=A4?= \"b\"" (("A B" NIL "a" "b.example")) NIL ((NIL NIL "r" "b.example")) "#,
            r#"((NIL NIL "g" NIL)(NIL NIL "c" "d.example")(NIL NIL NIL NIL)) NIL NIL NIL "<1@x>")"#
        );
        let read = Envelope::parse(told.as_bytes());
        assert_eq!((read.subject.as_str(), read.id.as_str()), ("ä \"b\"", "<1@x>"));
        assert_eq!(read.from[0].written(), "A B <a@b.example>");
        assert_eq!((read.reply_to[0].label(), read.to.len()), ("r@b.example", 1));
        for cut in 0..told.len() {
            Envelope::parse(&told.as_bytes()[..cut]);
        }
        Envelope::parse(&[b'('; 100_000]);
    }
}
