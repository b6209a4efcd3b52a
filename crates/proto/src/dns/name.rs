//! Names (RFC 1035 sections 2.3, 3.1, 4.1.4): in wire form, compared without regard to case.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use super::Malformed;

/// The longest name in wire form, its root included.
const NAME_BYTES_MAX: usize = 255;

/// The longest label.
const LABEL_BYTES_MAX: usize = 63;

/// A name in wire form, uncompressed, as it was written: its case is kept.
#[derive(Clone)]
pub struct Name {
    wire: Vec<u8>,
}

/// Text that is no name: an empty label, a label of more than 63 bytes, a name of more than 255, a wrong escape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameError;

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a domain name")
    }
}

impl core::error::Error for NameError {}

impl Name {
    /// The root.
    pub fn root() -> Name {
        Name { wire: alloc::vec![0] }
    }

    /// A name from its wire form, which ends with the root.
    ///
    /// # Errors
    /// Bytes that are not exactly one uncompressed name.
    pub fn from_wire(wire: &[u8]) -> Result<Name, Malformed> {
        match skip_uncompressed(wire)? {
            len if len == wire.len() => Ok(Name { wire: wire.to_vec() }),
            _ => Err(Malformed::Name),
        }
    }

    /// A name of labels, the root left out.
    ///
    /// # Errors
    /// A label that is empty or too long, or too many of them.
    pub fn from_labels<'a>(labels: impl IntoIterator<Item = &'a [u8]>) -> Result<Name, NameError> {
        let mut wire = Vec::new();
        for label in labels {
            let len = u8::try_from(label.len()).map_err(|_| NameError)?;
            if label.is_empty() || label.len() > LABEL_BYTES_MAX || wire.len() + label.len() + 2 > NAME_BYTES_MAX {
                return Err(NameError);
            }
            wire.push(len);
            wire.extend_from_slice(label);
        }
        wire.push(0);
        Ok(Name { wire })
    }

    /// Reads the name at `at` of a message. Returns it with where the message goes on.
    ///
    /// # Errors
    /// A name that is cut off, too long, or whose pointers do not all point before it.
    pub fn read(message: &[u8], at: usize) -> Result<(Name, usize), Malformed> {
        let mut wire = Vec::new();
        let mut position = at;
        let mut end = None;
        // Each pointer has to point before the label where the last jump landed: so this ends.
        let mut earliest = at;
        loop {
            let &first = message.get(position).ok_or(Malformed::Short)?;
            match first {
                0 => {
                    wire.push(0);
                    return Ok((Name { wire }, end.unwrap_or(position + 1)));
                }
                1..=0x3f => {
                    let len = usize::from(first) + 1;
                    let label = message.get(position..position + len).ok_or(Malformed::Short)?;
                    if wire.len() + len + 1 > NAME_BYTES_MAX {
                        return Err(Malformed::Name);
                    }
                    wire.extend_from_slice(label);
                    position += len;
                }
                0xc0.. => {
                    let &low = message.get(position + 1).ok_or(Malformed::Short)?;
                    let target = usize::from(first & 0x3f) << 8 | usize::from(low);
                    if target >= earliest {
                        return Err(Malformed::Name);
                    }
                    end.get_or_insert(position + 2);
                    earliest = target;
                    position = target;
                }
                _ => return Err(Malformed::Name),
            }
        }
    }

    /// Its wire form, the root included.
    pub fn as_wire(&self) -> &[u8] {
        &self.wire
    }

    /// Its labels, from the most particular on, without the root.
    pub fn labels(&self) -> impl Iterator<Item = &[u8]> {
        labels(&self.wire)
    }

    /// The name with ASCII letters in lower case.
    pub fn to_lowercase(&self) -> Name {
        Name { wire: self.wire.to_ascii_lowercase() }
    }

    /// The name `label` below this one.
    ///
    /// # Errors
    /// A label that is empty or too long, or a name that becomes too long.
    pub fn child(&self, label: &[u8]) -> Result<Name, NameError> {
        Name::from_labels(core::iter::once(label).chain(self.labels()))
    }

    /// Labels in front of `zone`, in wire form without a root; `None` if the name is not at or below it.
    pub fn below<'a>(&'a self, zone: &Name) -> Option<&'a [u8]> {
        let at = self.wire.len().checked_sub(zone.wire.len())?;
        let (front, back) = self.wire.split_at(at);
        let whole = label_starts(&self.wire).any(|start| start == at);
        (whole && back.eq_ignore_ascii_case(&zone.wire)).then_some(front)
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Name) -> bool {
        self.wire.eq_ignore_ascii_case(&other.wire)
    }
}

impl Eq for Name {}

impl core::hash::Hash for Name {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        for byte in &self.wire {
            state.write_u8(byte.to_ascii_lowercase());
        }
    }
}

impl FromStr for Name {
    type Err = NameError;

    /// Reads a name as master files have it: with or without the last dot, `\.` and `\DDD` for what a label may hold.
    fn from_str(text: &str) -> Result<Name, NameError> {
        let bytes = text.as_bytes();
        if bytes == b"." {
            return Ok(Name::root());
        }
        let mut labels: Vec<Vec<u8>> = Vec::new();
        let mut label = Vec::new();
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            at += 1;
            match byte {
                b'.' => labels.push(core::mem::take(&mut label)),
                b'\\' => {
                    let (escaped, len) = escape(&bytes[at..]).ok_or(NameError)?;
                    label.push(escaped);
                    at += len;
                }
                _ => label.push(byte),
            }
            if labels.len() > NAME_BYTES_MAX || label.len() > LABEL_BYTES_MAX {
                return Err(NameError);
            }
        }
        if !label.is_empty() {
            labels.push(label);
        }
        Name::from_labels(labels.iter().map(Vec::as_slice))
    }
}

/// Reads an escape after its backslash: three digits, or the byte itself.
fn escape(bytes: &[u8]) -> Option<(u8, usize)> {
    match bytes {
        [a @ b'0'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9', ..] => {
            let value = u16::from(a - b'0') * 100 + u16::from(b - b'0') * 10 + u16::from(c - b'0');
            Some((u8::try_from(value).ok()?, 3))
        }
        [byte, ..] if !byte.is_ascii_digit() => Some((*byte, 1)),
        _ => None,
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.wire == [0] {
            return f.write_str(".");
        }
        for (index, label) in self.labels().enumerate() {
            if index > 0 {
                f.write_str(".")?;
            }
            f.write_str(&label_text(label))?;
        }
        Ok(())
    }
}

fn label_text(label: &[u8]) -> String {
    let mut text = String::new();
    for &byte in label {
        match byte {
            b'.' | b'\\' => text.extend(['\\', char::from(byte)]),
            b'!'..=b'~' => text.push(char::from(byte)),
            _ => text.push_str(&alloc::format!("\\{byte:03}")),
        }
    }
    text
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The labels of an uncompressed wire form, without the root.
pub(super) fn labels(wire: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = wire;
    core::iter::from_fn(move || {
        let (&len, behind) = rest.split_first()?;
        let label = behind.get(..usize::from(len)).filter(|label| !label.is_empty())?;
        rest = &behind[label.len()..];
        Some(label)
    })
}

/// Where labels begin in an uncompressed wire form, the root's included.
fn label_starts(wire: &[u8]) -> impl Iterator<Item = usize> {
    let mut next = Some(0);
    core::iter::from_fn(move || {
        let at = next?;
        let &len = wire.get(at)?;
        next = (len > 0).then_some(at + usize::from(len) + 1);
        Some(at)
    })
}

/// How many bytes the uncompressed name at the start of `bytes` has.
pub(super) fn skip_uncompressed(bytes: &[u8]) -> Result<usize, Malformed> {
    let mut at = 0;
    loop {
        match bytes.get(at) {
            None => return Err(Malformed::Short),
            Some(0) => return Ok(at + 1),
            Some(&len @ 1..=0x3f) => at += usize::from(len) + 1,
            Some(_) => return Err(Malformed::Name),
        }
        if at >= NAME_BYTES_MAX {
            return Err(Malformed::Name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn text_and_wire_are_one_name() {
        for (text, wire) in [
            (".", &b"\0"[..]),
            ("bl.example", b"\x02bl\x07example\0"),
            ("Bl.Example.", b"\x02Bl\x07Example\0"),
            ("a\\.b.c", b"\x03a.b\x01c\0"),
            ("\\052.x", b"\x014\x01x\0"),
        ] {
            let name: Name = text.parse().unwrap();
            assert_eq!(name.as_wire(), wire, "{text}");
            assert_eq!(name.to_string().parse::<Name>().unwrap(), name);
        }
        for text in ["", "a..b", ".a", &"l".repeat(64), &"abc.".repeat(64), "\\25", "\\999"] {
            assert!(text.parse::<Name>().is_err() || text.is_empty(), "{text}");
        }
    }

    #[test]
    fn pointers_that_do_not_go_back_are_malformed() {
        let message = b"\x01a\0\x01b\xc0\x00\xc0\x07";
        assert_eq!(Name::read(message, 3).unwrap().0.to_string(), "b.a");
        assert_eq!(Name::read(message, 3).unwrap().1, 7);
        assert_eq!(Name::read(message, 7), Err(Malformed::Name), "itself");
        assert_eq!(Name::read(b"\xc0\x02\xc0\x00", 2), Err(Malformed::Name), "a circle");
        assert_eq!(Name::read(b"\x40a\0", 0), Err(Malformed::Name));
        assert_eq!(Name::read(b"\x03ab", 0), Err(Malformed::Short));
        let mut long = Vec::new();
        for _ in 0..5 {
            long.extend_from_slice(&[63]);
            long.extend_from_slice(&[b'x'; 63]);
        }
        assert_eq!(Name::read(&long, 0), Err(Malformed::Name));
    }

    #[test]
    fn a_name_knows_what_it_is_below() {
        let zone: Name = "bl.Example".parse().unwrap();
        let below = |text: &str| text.parse::<Name>().unwrap().below(&zone).map(<[u8]>::to_vec);
        assert_eq!(below("2.BL.example"), Some(b"\x012".to_vec()));
        assert_eq!(below("bl.example"), Some(Vec::new()));
        assert_eq!(below("xbl.example"), None);
        assert_eq!(below("example"), None);
    }
}
