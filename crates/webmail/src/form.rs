//! Forms that a browser sends: fields of a query, of `application/x-www-form-urlencoded`, and fields and files of
//! `multipart/form-data` (RFC 7578).
//!
//! Bounds: [`FIELDS_MAX`]; the body is bounded by who reads it.

use alloc::string::String;
use alloc::vec::Vec;

use memchr::memmem;
use mime::Value;

use crate::compose::File;
use crate::percent::decoded;

/// Fields and files of a form.
const FIELDS_MAX: usize = 2_000;

/// A form.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Form {
    fields: Vec<(String, String)>,
    /// Files, those without a name left out.
    pub files: Vec<File>,
    /// Whether only the beginning of the body was read, as the whole is larger than may be.
    pub is_cut: bool,
}

impl Form {
    /// Reads the fields of a query or a body.
    pub fn of_fields(text: &[u8]) -> Form {
        let pairs = text.split(|&byte| byte == b'&').filter(|pair| !pair.is_empty()).take(FIELDS_MAX);
        let field = |pair: &[u8]| {
            let at = pair.iter().position(|&byte| byte == b'=').unwrap_or(pair.len());
            let (name, value) = pair.split_at(at);
            (decoded(name, true), decoded(value.get(1..).unwrap_or_default(), true))
        };
        Form { fields: pairs.map(field).collect(), ..Form::default() }
    }

    /// Reads a body of a type; empty if that is not one of forms.
    pub fn of_body(kind: &[u8], body: &[u8]) -> Form {
        let kind = Value::read(kind);
        match kind.main.to_ascii_lowercase().as_slice() {
            b"application/x-www-form-urlencoded" => Form::of_fields(body),
            b"multipart/form-data" => {
                kind.get("boundary").map(|boundary| Form::of_parts(boundary, body)).unwrap_or_default()
            }
            _ => Form::default(),
        }
    }

    fn of_parts(boundary: &[u8], body: &[u8]) -> Form {
        let mut form = Form::default();
        if boundary.is_empty() || boundary.len() > 200 {
            return form;
        }
        let delimiter = [b"\r\n--", boundary].concat();
        let Some(mut rest) = body.strip_prefix(delimiter.get(2..).unwrap_or_default()) else { return form };
        for _ in 0..FIELDS_MAX {
            let Some(content) = rest.strip_prefix(b"\r\n") else { break };
            let Some(end) = memmem::find(content, &delimiter) else { break };
            let (part, behind) = content.split_at(end);
            form.add(part);
            rest = behind.get(delimiter.len()..).unwrap_or_default();
        }
        form
    }

    fn add(&mut self, part: &[u8]) {
        let Some(end) = memmem::find(part, b"\r\n\r\n") else { return };
        let (header, content) =
            (part.get(..end).unwrap_or_default(), part.get(end.saturating_add(4)..).unwrap_or_default());
        let field = |name: &str| {
            let line = header.split(|&byte| byte == b'\n').find(|line| {
                line.len() > name.len()
                    && line.get(..name.len()).is_some_and(|head| head.eq_ignore_ascii_case(name.as_bytes()))
            });
            line.map(|line| line.get(name.len()..).unwrap_or_default().trim_ascii().to_vec()).unwrap_or_default()
        };
        let place = Value::read(&field("content-disposition:"));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let Some(name) = place.get("name").map(text) else { return };
        match place.get("filename").map(text) {
            Some(file) if file.is_empty() && content.is_empty() => {}
            Some(file) => {
                let name = file.rsplit(['/', '\\']).next().unwrap_or_default().into();
                self.files.push(File { name, kind: text(&field("content-type:")), content: content.to_vec() });
            }
            None => self.fields.push((name, text(content))),
        }
    }

    /// The first value of a field; empty if there is none.
    pub fn get(&self, name: &str) -> &str {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str()).unwrap_or_default()
    }

    /// All values of a field.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.fields.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// All fields, in their order.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.fields.iter().map(|(name, value)| (&**name, &**value))
    }

    /// Whether there is such a field.
    pub fn has(&self, name: &str) -> bool {
        self.fields.iter().any(|(known, _)| known == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_files_are_read() {
        let form = Form::of_fields(b"a=1+2%26&b=%c3%a4%&a=3&c");
        assert_eq!((form.get("a"), form.get("b"), form.has("c"), form.all("a").count()), ("1 2&", "ä%", true, 2));
        let body = b"--x\r\nContent-Disposition: form-data; name=\"t\"\r\n\r\na\r\n--y\r\n--x\r\n\
            content-disposition: form-data; name=\"f\"; filename=\"d/n.txt\"\r\nContent-Type: text/plain\r\n\r\n\0\r\n\r\n\r\n--x--\r\n";
        let form = Form::of_body(b"multipart/form-data; boundary=\"x\"", body);
        assert_eq!(form.get("t"), "a\r\n--y");
        assert_eq!((form.files[0].name.as_str(), form.files[0].content.as_slice()), ("n.txt", &b"\0\r\n\r\n"[..]));
        for cut in 0..body.len() {
            Form::of_body(b"multipart/form-data; boundary=x", &body[..cut]);
        }
        assert_eq!(Form::of_body(b"text/plain", b"a=b"), Form::default());
    }
}
