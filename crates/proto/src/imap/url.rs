//! Where a part of a message is, within the server that is asked (RFC 5092, RFC 4469): `/mailbox;UIDVALIDITY=n/;UID=n/;SECTION=s`.
//!
//! Only with a path from the root: neither another server nor the selected mailbox is what it begins at. Words are in any case, and
//! the slash before a parameter may be missing. Header fields by name are no section here.

use alloc::vec::Vec;

use super::section::{Item, Part, Section, number};

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// In UTF-8.
    pub mailbox: Vec<u8>,
    /// UIDVALIDITY that the mailbox must have.
    pub uid_validity: Option<u32>,
    /// The message.
    pub uid: u32,
    /// Section of the message, or a byte range of it.
    pub section: Section,
}

impl Url {
    /// Reads it; none if it is another.
    pub fn parse(text: &[u8]) -> Option<Url> {
        let mut words = text.strip_prefix(b"/")?.split(|&byte| byte == b';');
        let path = words.next()?;
        let mailbox = decoded(path.strip_suffix(b"/").unwrap_or(path))?;
        let (mut uid_validity, mut uid, mut section, mut partial) = (None, None, Vec::new(), None);
        for word in words {
            let word = word.strip_suffix(b"/").unwrap_or(word);
            let (name, value) = word.split_at(word.iter().position(|&byte| byte == b'=')?.checked_add(1)?);
            match name.to_ascii_uppercase().as_slice() {
                b"UIDVALIDITY=" if uid_validity.is_none() && uid.is_none() => {
                    uid_validity = Some(u32::try_from(number(value)?).ok()?);
                }
                b"UID=" if uid.is_none() => uid = Some(u32::try_from(number(value)?).ok()?),
                b"SECTION=" if section.is_empty() && uid.is_some() => section = decoded(value)?,
                b"PARTIAL=" if partial.is_none() && uid.is_some() => partial = Some(value),
                _ => return None,
            }
        }
        let partial = partial.map_or(Vec::new(), |partial| [b"<", partial, b">"].concat());
        let mut section = Section::parse(&[b"BODY.PEEK[", section.as_slice(), b"]"].concat()).ok()??;
        section.partial = range(&partial)?;
        let is_run = section.item == Item::Body && !matches!(section.part, Part::Fields(_));
        let mailbox = super::name::canonical(mailbox);
        let url = Url { mailbox, uid_validity, uid: uid?, section };
        (is_run && !url.mailbox.is_empty()).then_some(url)
    }
}

/// `<0.100>` or `<100>`: from a byte on, so many or all.
fn range(text: &[u8]) -> Option<Option<(u64, Option<u64>)>> {
    let Some(inner) = text.strip_prefix(b"<").and_then(|text| text.strip_suffix(b">")) else { return Some(None) };
    let mut numbers = inner.splitn(2, |&byte| byte == b'.');
    let origin = number(numbers.next()?)?;
    let length = match numbers.next() {
        Some(length) => Some(number(length)?),
        None => None,
    };
    Some(Some((origin, length)))
}

/// Without percent signs.
fn decoded(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |at: usize| text.get(at).and_then(|&byte| char::from(byte).to_digit(16));
    let (mut out, mut at) = (Vec::new(), 0usize);
    while let Some(&byte) = text.get(at) {
        if byte != b'%' {
            out.push(byte);
            at = at.checked_add(1)?;
            continue;
        }
        let (high, low) = (digit(at.checked_add(1)?)?, digit(at.checked_add(2)?)?);
        out.push(u8::try_from(high << 4 | low).ok()?);
        at = at.checked_add(3)?;
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_understood() {
        let url = Url::parse(b"/Entw%C3%BCrfe/a;UIDVALIDITY=7/;UID=20/;section=1.mime/;partial=3.5").unwrap();
        assert_eq!((url.mailbox.as_slice(), url.uid_validity, url.uid), ("Entwürfe/a".as_bytes(), Some(7), 20));
        assert_eq!((url.section.path.as_slice(), url.section.partial), (&[1][..], Some((3, Some(5)))));
        let url = Url::parse(b"/inbox/;uid=1").unwrap();
        assert_eq!((url.mailbox.as_slice(), url.section.is_whole()), (&b"INBOX"[..], true));
    }

    #[test]
    fn what_is_elsewhere_or_nothing_is_refused() {
        for text in [
            "",
            "/",
            "/x",
            "/;uid=1",
            "imap://h/x/;uid=1",
            ";uid=1",
            "/x/;uid=0x",
            "/x/;uid",
            "/x/;uid=1/;section=foo",
            "/%4/;uid=1",
            "/x/;uid=1/;section=header.fields%20(to)",
            "/x/;uid=1;uid=2",
            "/x/;section=1/;uid=1",
            "/x/;uid=1/;partial=x",
            "/x/;uid=1/;section=1]%5b",
        ] {
            assert_eq!(Url::parse(text.as_bytes()), None, "{text}");
        }
    }
}
