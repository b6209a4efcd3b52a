//! The header of a mail as it stands: where it ends, and its fields. Of line ends CRLF and LF are known; nothing is decoded.

use memchr::{memchr, memchr_iter};

/// Where a header ends, its empty line included.
pub(crate) fn end_of_header(bytes: &[u8], from: usize) -> Option<usize> {
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
pub(crate) fn fields(header: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = header;
    std::iter::from_fn(move || {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_taken_apart() {
        let header = b"A: 1\r\n 2\r\nB: 3\nC";
        assert_eq!(fields(header).collect::<Vec<_>>(), [&b"A: 1\r\n 2\r\n"[..], b"B: 3\n", b"C"]);
        assert_eq!(end_of_header(b"A: 1\r\n\r\nx", 0), Some(8));
        assert_eq!(end_of_header(b"A: 1\n\nx", 0), Some(6));
        assert_eq!(end_of_header(b"\r\nx", 0), Some(2));
        assert_eq!(end_of_header(b"A: 1\r\n", 0), None);
    }
}
