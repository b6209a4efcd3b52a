//! The header of a mail as it stands: its end, its fields, their values. Line ends are CRLF or LF; nothing is decoded.

use alloc::vec::Vec;

use memchr::{memchr, memchr_iter};
use mime::address::{Address, Entry};

/// Entries of one list that are looked at.
const ADDRESSES_MAX: usize = 2_000;

/// The end of a header, its empty line included; the search for that line begins at `from`.
pub fn end_of_header(bytes: &[u8], from: usize) -> Option<usize> {
    if bytes.starts_with(b"\r\n") {
        return Some(2);
    }
    if bytes.starts_with(b"\n") {
        return Some(1);
    }
    let rest = bytes.get(from..)?;
    memchr_iter(b'\n', rest).find_map(|at| match rest.get(at + 1..)? {
        [b'\n', ..] => Some(from + at + 2),
        [b'\r', b'\n', ..] => Some(from + at + 3),
        _ => None,
    })
}

/// The fields of a header as they stand, with their line ends.
pub fn fields(header: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = header;
    core::iter::from_fn(move || {
        let mut end = 0;
        loop {
            let line = memchr(b'\n', rest.get(end..)?).map(|at| end + at + 1);
            end = line.unwrap_or(rest.len());
            let goes_on = rest.get(end).is_some_and(|byte| b" \t".contains(byte));
            if line.is_none() || !goes_on {
                break;
            }
        }
        let (field, behind) = rest.split_at(end);
        rest = behind;
        (!field.is_empty()).then_some(field)
    })
}

/// Whether a field has this name.
pub fn is_named(field: &[u8], name: &[u8]) -> bool {
    let colon = memchr(b':', field);
    colon.and_then(|colon| field.get(..colon)).is_some_and(|found| found.trim_ascii().eq_ignore_ascii_case(name))
}

/// Name and value of a field, as they stand; `None` without a colon.
pub fn split(field: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = memchr(b':', field)?;
    Some((field.get(..colon)?.trim_ascii_end(), field.get(colon + 1..)?))
}

/// Addresses of a list, each as `name <local@domain>` or `local@domain`: without quotes, comments and blanks between its parts.
pub fn plain_addresses(value: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    mime::address::addresses(value, ADDRESSES_MAX).into_iter().filter_map(|entry| {
        let Entry::Address(Address { name, local, domain, .. }) = entry else { return None };
        let address = [&local[..], b"@", &domain[..]].concat();
        Some(match name {
            Some(name) => [&mime::one_line(&name)[..], b" <", &address[..], b">"].concat(),
            None => address,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_taken_apart() {
        let header = b"A: 1\r\n 2\r\nB: 3\nC";
        assert_eq!(fields(header).collect::<Vec<_>>(), [&b"A: 1\r\n 2\r\n"[..], b"B: 3\n", b"C"]);
        assert_eq!(fields(header).map(split).collect::<Vec<_>>()[1..], [Some((&b"B"[..], &b" 3\n"[..])), None]);
        assert_eq!(end_of_header(b"A: 1\r\n\r\nx", 0), Some(8));
        assert_eq!(end_of_header(b"A: 1\n\nx", 0), Some(6));
        assert_eq!(end_of_header(b"\r\nx", 0), Some(2));
        assert_eq!(end_of_header(b"A: 1\r\n", 0), None);
    }
}
