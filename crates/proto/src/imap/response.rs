//! Rendering of responses: strings, flags and sets in the form that every client reads.

use alloc::vec::Vec;

use super::name;

/// The longest quoted string; what is longer is a literal.
const QUOTED_BYTES_MAX: usize = 1_000;

/// Appends a string: quoted where that can be, as a literal where not. NULs, which neither may hold, become `\x80`.
pub fn string(text: &[u8], out: &mut Vec<u8>) {
    let plain = |byte: &u8| matches!(byte, b' '..=b'~' | b'\t');
    if text.len() <= QUOTED_BYTES_MAX && text.iter().all(plain) {
        out.push(b'"');
        for &byte in text {
            if matches!(byte, b'"' | b'\\') {
                out.push(b'\\');
            }
            out.push(byte);
        }
        out.push(b'"');
        return;
    }
    out.extend_from_slice(alloc::format!("{{{}}}\r\n", text.len()).as_bytes());
    out.extend(text.iter().map(|&byte| if byte == 0 { 0x80 } else { byte }));
}

/// Appends a string, or `NIL`.
pub fn nstring(text: Option<&[u8]>, out: &mut Vec<u8>) {
    match text {
        Some(text) => string(text, out),
        None => out.extend_from_slice(b"NIL"),
    }
}

/// Appends the name of a mailbox, which is UTF-8 here: as it is once the client has enabled that, else in modified UTF-7.
pub fn mailbox(text: &[u8], utf8: bool, out: &mut Vec<u8>) {
    if !utf8 {
        return string(&name::encode(text), out);
    }
    if text.iter().any(|&byte| byte < b' ' || byte == 0x7f) {
        return string(text, out);
    }
    out.push(b'"');
    for &byte in text {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out.push(b'"');
}

/// Appends numbers in ascending order as a set: `1:3,7`.
pub fn set(numbers: impl IntoIterator<Item = u32>, out: &mut Vec<u8>) {
    let mut run: Option<(u32, u32)> = None;
    let mut first = true;
    let mut end = |(from, to): (u32, u32), out: &mut Vec<u8>| {
        if !core::mem::replace(&mut first, false) {
            out.push(b',');
        }
        let text = if from == to { alloc::format!("{from}") } else { alloc::format!("{from}:{to}") };
        out.extend_from_slice(text.as_bytes());
    };
    for number in numbers {
        match &mut run {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => {
                if let Some(run) = run.replace((number, number)) {
                    end(run, out);
                }
            }
        }
    }
    if let Some(run) = run {
        end(run, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn strings_are_quoted_where_they_can_be() {
        assert_eq!(written(|out| string(b"a \"b\\", out)), r#""a \"b\\""#);
        assert_eq!(written(|out| string(b"a\r\nb", out)), "{4}\r\na\r\nb");
        assert_eq!(written(|out| string("ä".as_bytes(), out)), "{2}\r\nä");
        assert_eq!(written(|out| nstring(None, out)), "NIL");
        assert_eq!(written(|out| mailbox("Entwürfe".as_bytes(), false, out)), "\"Entw&APw-rfe\"");
        assert_eq!(written(|out| mailbox("Entwürfe".as_bytes(), true, out)), "\"Entwürfe\"");
        assert_eq!(written(|out| string(b"a\0b", out)).len(), 5 + 3 + 2);
    }

    #[test]
    fn sets_are_runs() {
        assert_eq!(written(|out| set([1, 2, 3, 7, 9, 10], out)), "1:3,7,9:10");
        assert_eq!(written(|out| set([u32::MAX - 1, u32::MAX], out)), "4294967294:4294967295");
        assert_eq!(written(|out| set([], out)), "");
    }
}
