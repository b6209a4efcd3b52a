//! A structured value as one reader takes it: `Content-Type`, `Content-Disposition`, `Content-Transfer-Encoding` for the store and
//! for Sieve. Comments are left out, continued parameters (RFC 2231) joined. The inspection considers all readings instead.

use alloc::vec::Vec;

use stream::Coding;

use super::coding;
use super::cursor::{Cursor, without_comments};
use super::parameter::Parameters;

/// A value and its parameters: `a; b=c; d*0="e"; d*1="f"`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Value {
    /// Before the first semicolon, without comments and blanks around it.
    pub main: Vec<u8>,
    /// Names in lower case and values, in order, each name once. A value in percent encoding stays as it is, with its charset, and
    /// has a star behind its name.
    pub parameters: Vec<(Vec<u8>, Vec<u8>)>,
    /// The same with percent encoding undone, where there was one.
    decoded: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Value {
    /// Reads a value.
    pub fn read(value: &[u8]) -> Value {
        let bare = without_comments(value);
        let value = bare.as_deref().unwrap_or(value);
        let end = value.iter().position(|&byte| byte == b';').unwrap_or(value.len());
        let (main, rest) = value.split_at(end);
        let (parameters, decoded) = Parameters::parse(rest).joined();
        Value { main: main.trim_ascii().to_vec(), parameters, decoded }
    }

    /// A parameter by its name in lower case, decoded.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        let of = |list: &'_ [(Vec<u8>, Vec<u8>)]| list.iter().position(|(known, _)| known == name.as_bytes());
        match of(&self.decoded) {
            Some(at) => self.decoded.get(at).map(|(_, value)| &value[..]),
            None => of(&self.parameters).and_then(|at| self.parameters.get(at)).map(|(_, value)| &value[..]),
        }
    }

    /// Type and subtype of a `Content-Type`, if it has both.
    pub fn media_type(&self) -> Option<(&[u8], &[u8])> {
        let slash = self.main.iter().position(|&byte| byte == b'/')?;
        let (kind, subtype) = (self.main[..slash].trim_ascii(), self.main[slash + 1..].trim_ascii());
        (!kind.is_empty() && !subtype.is_empty()).then_some((kind, subtype))
    }
}

/// Returns the first word of a `Content-Transfer-Encoding`, without comments and the rest; empty if it has none.
pub fn coding_name(value: &[u8]) -> &[u8] {
    let mut cursor = Cursor::new(value);
    while cursor.peek().is_some() {
        match cursor.token() {
            b"" => cursor.advance(1),
            name => return name,
        }
    }
    b""
}

/// The transfer coding that a value names; `None` if it is not known. No name at all is no coding.
pub fn transfer_coding(value: &[u8]) -> Option<Coding> {
    match coding_name(value) {
        b"" => Some(Coding::Identity),
        name => coding::exact(&name.to_ascii_lowercase()),
    }
}

/// The coding of a message within a message that names one and begins with `start`: Base64 has no colon, and a message that was not
/// encoded begins with a field.
pub fn coding_of_message(named: Coding, start: &[u8]) -> Coding {
    let line = start.split(|&byte| byte == b'\n').find(|line| !line.trim_ascii().is_empty()).unwrap_or_default();
    if named == Coding::Base64 && line.contains(&b':') { Coding::Identity } else { named }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_without_comments_and_joined() {
        for (value, main, wanted) in [
            (&b"text/plain (c); charset=utf-8(d)"[..], "text/plain", "charset=utf-8"),
            (b"(a (b)) text / html ; CharSet = \"utf-8\" (x);", "text / html", "charset=utf-8"),
            (b"multipart/mixed; boundary*0=ab; boundary*1=cd", "multipart/mixed", "boundary=abcd"),
            (b"a/b; charset*1=\"-8859-1\";charset*0=iso; charset=us-ascii", "a/b", "charset=iso-8859-1"),
            (b"a; filename*=utf-8''a%20b; x=y", "a", "filename*=utf-8''a%20b|x=y"),
            (b"a; f*1=\"b c\"; f*0*=utf-8''%41", "a", "f*=utf-8''%41b%20c"),
            (b"a; x=\"(no) \\\"c\"; x=z", "a", "x=(no) \"c"),
            (b"a", "a", ""),
        ] {
            let read = Value::read(value);
            let text = |bytes: &[u8]| alloc::string::String::from_utf8_lossy(bytes).into_owned();
            let told: Vec<_> =
                read.parameters.iter().map(|(name, value)| alloc::format!("{}={}", text(name), text(value))).collect();
            assert_eq!((text(&read.main).as_str(), told.join("|").as_str()), (main, wanted), "{}", text(value));
        }
        assert_eq!(Value::read(b"a; b*=utf-8''x%2Dy").get("b"), Some(&b"x-y"[..]));
    }

    #[test]
    fn codings_are_read() {
        for value in [&b"base64"[..], b"base64 (by x)", b"(c) Base64", b"base64;", b"(a (b)) base64", b" base64 ; x=y"]
        {
            assert_eq!(transfer_coding(value), Some(Coding::Base64), "{}", value.escape_ascii());
            assert!(coding_name(value).eq_ignore_ascii_case(b"base64"));
        }
        for (named, start, wanted) in [
            (Coding::Base64, &b"\r\nU3ViamVjdDogYQ==\r\n"[..], Coding::Base64),
            (Coding::Base64, b"Subject: a\r\n", Coding::Identity),
            (Coding::QuotedPrintable, b"Subject: =C3=BC\r\n", Coding::QuotedPrintable),
            (Coding::Identity, b"", Coding::Identity),
        ] {
            assert_eq!(coding_of_message(named, start), wanted, "{}", start.escape_ascii());
        }
        assert_eq!((transfer_coding(b"x-odd"), transfer_coding(b" (c)")), (None, Some(Coding::Identity)));
    }
}
