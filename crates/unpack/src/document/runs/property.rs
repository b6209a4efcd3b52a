//! Text in front of a run: the names that the properties of calendars give to attachments, and the marks of other readers.

use super::BACK_BYTES;
use crate::frame::name;

/// The name that the property of a calendar gives to the run behind it: `ATTACH;FILENAME=evil.exe;ENCODING=BASE64:`.
pub(super) fn name_before(before: &[u8]) -> Option<Box<str>> {
    const PARAMETER: &[u8] = b"filename=";
    let mut before = &before[before.len().saturating_sub(BACK_BYTES)..];
    if !before.contains(&b'=') || !before.contains(&b':') {
        return None;
    }
    // The line that the run continues, without its folds.
    let mut line = Vec::new();
    while let Some((&byte, rest)) = before.split_first() {
        let fold = [&b"\r\n "[..], b"\r\n\t", b"\n ", b"\n\t"].into_iter().find(|fold| before.starts_with(fold));
        match (fold, byte) {
            (Some(fold), _) => {
                before = &before[fold.len()..];
                continue;
            }
            (None, b'\n') => line.clear(),
            (None, byte) => line.push(byte),
        }
        before = rest;
    }
    let lower = line.to_ascii_lowercase();
    let value = &line[memchr::memmem::rfind(&lower, PARAMETER)? + PARAMETER.len()..];
    let (value, ends) = match value.strip_prefix(b"\"") {
        Some(quoted) => (quoted, &b"\""[..]),
        None => (value, &b";:"[..]),
    };
    let end = value.iter().position(|byte| ends.contains(byte))?;
    let is_value = line.contains(&b':') && end > 0;
    is_value.then(|| name::utf8_or_latin1(&value[..end]))
}

/// Whether a run behind this text is a string, or the content of a `data:` URI; the field of a table is none.
pub(super) fn is_read_elsewhere(before: &[u8]) -> bool {
    let before = &before[before.len().saturating_sub(BACK_BYTES)..];
    match before.last() {
        Some(b'"' | b'\'' | b'`' | b'%') => true,
        Some(b',') => {
            let line = memchr::memrchr(b'\n', before).map_or(before, |end| &before[end..]);
            let has = |words: &[u8]| memchr::memmem::find(&line.to_ascii_lowercase(), words).is_some();
            let is_cut = before.len() == BACK_BYTES && !line.starts_with(b"\n");
            is_cut || has(b"data:") || has(b"base64,") || has(b"&")
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_attachment_of_a_calendar_has_its_name() {
        for (head, name) in [
            ("ATTACH;FILENAME=evil.exe;ENCODING=BASE64;VALUE=BINARY:", Some("evil.exe")),
            ("ATTACH;VALUE=BINARY;X-FILENAME=\"a:b.exe\":\r\n ", Some("a:b.exe")),
            ("ATTACH;VALUE=BINARY;FILE\r\n NAME=evil\r\n .exe:TWFu", Some("evil.exe")),
            ("X;FILENAME=evil.exe:\r\nATTACH:", None),
            ("FILENAME=evil.exe;", None),
            ("FILENAME=:", None),
            ("ATTACH;ENCODING=BASE64:", None),
        ] {
            let before = format!("BEGIN:VEVENT\r\n{head}");
            assert_eq!(name_before(before.as_bytes()).as_deref(), name, "{before}");
        }
    }
}
