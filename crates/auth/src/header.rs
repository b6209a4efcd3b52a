//! The header of a mail, raw, and its canonical forms (RFC 6376 section 3.4).

use std::collections::BTreeMap;
use std::ops::Range;

/// How header and body are brought to a form that survives transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Canonicalization {
    /// As it is.
    Simple,
    /// White space does not count.
    Relaxed,
}

/// The fields of a header, in order.
#[derive(Debug, Clone, Default)]
pub struct Header {
    bytes: Vec<u8>,
    fields: Vec<Range<usize>>,
    /// Where the fields of a name are, from the top; names in lower case.
    by_name: BTreeMap<Vec<u8>, Vec<usize>>,
}

/// A field: name, colon, value with its folds, without its last line end.
#[derive(Debug, Clone, Copy)]
pub struct Field<'a> {
    raw: &'a [u8],
    colon: usize,
}

impl Header {
    /// Splits a header into fields: lines that end with CRLF, without the empty one. A line that begins with white
    /// space belongs to the one before it. A line without a colon is ignored.
    pub fn new(bytes: Vec<u8>) -> Header {
        let mut fields: Vec<Range<usize>> = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            let end = memchr::memmem::find(&bytes[at..], b"\r\n").map_or(bytes.len(), |len| at + len);
            match fields.last_mut() {
                Some(last) if matches!(bytes.get(at), Some(b' ' | b'\t')) => last.end = end,
                _ => fields.push(at..end),
            }
            at = end.saturating_add(2);
        }
        let mut by_name: BTreeMap<Vec<u8>, Vec<usize>> = BTreeMap::new();
        for (index, range) in fields.iter().enumerate() {
            if let Some(field) = Field::new(&bytes[range.clone()]) {
                by_name.entry(field.name().to_ascii_lowercase()).or_default().push(index);
            }
        }
        Header { bytes, fields, by_name }
    }

    /// The field of a number.
    pub fn field(&self, index: usize) -> Option<Field<'_>> {
        self.fields.get(index).and_then(|range| Field::new(self.bytes.get(range.clone())?))
    }

    /// The numbers of the fields of a name, which is in lower case, from the top.
    pub fn named(&self, name: &str) -> &[usize] {
        self.by_name.get(name.as_bytes()).map_or(&[], Vec::as_slice)
    }

    /// The values of the fields of a name.
    pub fn values(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        self.named(name).iter().filter_map(|&index| self.field(index).map(|field| field.value()))
    }

    /// Selects fields by a list of names: each name takes the last field that has not been taken (section 5.4.2), or
    /// none. The field `own` is never taken.
    pub fn select(&self, names: &[Box<str>], own: usize) -> Vec<usize> {
        let mut left: BTreeMap<&[u8], &[usize]> = BTreeMap::new();
        let mut selected = Vec::new();
        for name in names {
            let Some((name, all)) = self.by_name.get_key_value(name.as_bytes()) else { continue };
            let rest = left.entry(name).or_insert(all);
            while let Some((&last, front)) = rest.split_last() {
                *rest = front;
                if last != own {
                    selected.push(last);
                    break;
                }
            }
        }
        selected
    }
}

impl<'a> Field<'a> {
    pub(crate) fn new(raw: &'a [u8]) -> Option<Field<'a>> {
        let colon = memchr::memchr(b':', raw)?;
        Some(Field { raw, colon })
    }

    /// Its name, without white space in front of the colon.
    pub fn name(&self) -> &'a [u8] {
        self.raw[..self.colon].trim_ascii()
    }

    /// Bytes after the colon.
    pub fn value(&self) -> &'a [u8] {
        &self.raw[self.colon + 1..]
    }

    /// Adds the canonical form to `out`, without its line end. Bytes of the value in `without` are left out.
    pub fn canonical(&self, form: Canonicalization, without: Option<Range<usize>>, out: &mut Vec<u8>) {
        let value = self.value();
        let (front, back) = match without {
            None => (value, &[][..]),
            Some(range) => (&value[..range.start.min(value.len())], &value[range.end.min(value.len())..]),
        };
        match form {
            Canonicalization::Simple => {
                out.extend_from_slice(&self.raw[..=self.colon]);
                out.extend_from_slice(front);
                out.extend_from_slice(back);
            }
            Canonicalization::Relaxed => {
                out.extend(self.name().iter().map(u8::to_ascii_lowercase));
                out.push(b':');
                relax(front.iter().chain(back), out);
            }
        }
    }
}

/// Unfolds, makes one space of white space, and leaves it out at both ends.
fn relax<'a>(value: impl Iterator<Item = &'a u8>, out: &mut Vec<u8>) {
    let (mut begun, mut space) = (false, false);
    let mut bytes = value.copied().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\r' if bytes.peek() == Some(&b'\n') => _ = bytes.next(),
            b' ' | b'\t' => space = true,
            _ => {
                if space && begun {
                    out.push(b' ');
                }
                (begun, space) = (true, false);
                out.push(byte);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        Header::new(b"A: X\r\nB : Y\t\r\n\tZ  \r\njunk\r\na:\r\n :2\r\n".to_vec())
    }

    fn canonical(index: usize, form: Canonicalization) -> String {
        let mut out = Vec::new();
        header().field(index).unwrap().canonical(form, None, &mut out);
        out.escape_ascii().to_string()
    }

    /// The example of RFC 6376 section 3.4.5.
    #[test]
    fn a_field_has_two_canonical_forms() {
        assert_eq!(canonical(0, Canonicalization::Relaxed), "a:X");
        assert_eq!(canonical(1, Canonicalization::Relaxed), "b:Y Z");
        assert_eq!(canonical(0, Canonicalization::Simple), "A: X");
        assert_eq!(canonical(1, Canonicalization::Simple), r"B : Y\t\r\n\tZ  ");
        assert_eq!(canonical(3, Canonicalization::Relaxed), "a::2");
    }

    #[test]
    fn names_select_from_the_bottom_and_never_the_signature_itself() {
        let names: Vec<Box<str>> = ["a", "b", "a", "a", "c"].map(Into::into).into();
        assert_eq!(header().select(&names, usize::MAX), [3, 1, 0]);
        assert_eq!(header().select(&names, 3), [0, 1]);
    }
}
