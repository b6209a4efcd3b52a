//! `Encapsulated` (RFC 3507, section 4.4.1): which sections follow the head, and where each begins.

use super::method::Method;
use super::refusal::Refusal;
use crate::http::Fields;

/// Sections that follow a head.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Encapsulated {
    /// Bytes of the head of a request.
    pub request_bytes: Option<usize>,
    /// Bytes of the head of a response.
    pub response_bytes: Option<usize>,
    pub has_body: bool,
}

impl Encapsulated {
    /// Parses the field. Sections stand in this order, each at most once, the first at 0, and the last is the body or its
    /// absence.
    pub fn parse(fields: &Fields, method: Method) -> Result<Encapsulated, Refusal> {
        if fields.get("encapsulated").is_none() && method == Method::Options {
            return Ok(Encapsulated::default());
        }
        let (found, body) = Encapsulated::sections(fields)?;
        let fits = match method {
            Method::Options => matches!(body, b"null-body" | b"opt-body"),
            // A body may come without a head, as in clients that have nothing but files.
            Method::Reqmod => {
                found.response_bytes.is_none()
                    && (body == b"req-body" || body == b"null-body" && found.request_bytes.is_some())
            }
            Method::Respmod => matches!(body, b"null-body" | b"res-body"),
        };
        if fits { Ok(found) } else { Err(Refusal::Encapsulated) }
    }

    /// Parses the field of an answer with content: a request in the place of a request, or a response in the place of either.
    pub fn parse_answer(fields: &Fields, method: Method) -> Result<Encapsulated, Refusal> {
        let (found, body) = Encapsulated::sections(fields)?;
        let fits = match (found.request_bytes, found.response_bytes) {
            (Some(_), None) => method == Method::Reqmod && matches!(body, b"null-body" | b"req-body"),
            (None, Some(_)) => method != Method::Options && matches!(body, b"null-body" | b"res-body"),
            _ => false,
        };
        if fits { Ok(found) } else { Err(Refusal::Encapsulated) }
    }

    /// The sections, and the name of the last one.
    fn sections(fields: &Fields) -> Result<(Encapsulated, &'static [u8]), Refusal> {
        let mut found = Encapsulated::default();
        let mut sections = fields.elements("encapsulated").map(section);
        let mut at = 0;
        let (mut name, begin) = sections.next().unwrap_or(Err(Refusal::Encapsulated))?;
        if begin != 0 {
            return Err(Refusal::Encapsulated);
        }
        for next in sections {
            let (next_name, next_at) = next?;
            let bytes = next_at.checked_sub(at).filter(|bytes| *bytes > 0).ok_or(Refusal::Encapsulated)?;
            match name {
                b"req-hdr" if found.request_bytes.is_none() && found.response_bytes.is_none() => {
                    found.request_bytes = Some(bytes);
                }
                b"res-hdr" if found.response_bytes.is_none() => found.response_bytes = Some(bytes),
                _ => return Err(Refusal::Encapsulated),
            }
            (name, at) = (next_name, next_at);
        }
        found.has_body = name != b"null-body";
        Ok((found, name))
    }

    /// Bytes of all heads.
    pub fn head_bytes(&self) -> usize {
        self.request_bytes.unwrap_or(0).saturating_add(self.response_bytes.unwrap_or(0))
    }
}

/// The names of sections.
const NAMES: [&[u8]; 6] = [b"req-hdr", b"res-hdr", b"req-body", b"res-body", b"opt-body", b"null-body"];

/// `name=offset`, the name in any case.
fn section(element: &[u8]) -> Result<(&'static [u8], usize), Refusal> {
    let equals = memchr::memchr(b'=', element).ok_or(Refusal::Encapsulated)?;
    let (name, digits) = element.split_at(equals);
    let known = NAMES.into_iter().find(|known| known.eq_ignore_ascii_case(name)).ok_or(Refusal::Encapsulated)?;
    let digits = digits.get(1..).unwrap_or_default();
    let is_number = (1..=9).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    let text = core::str::from_utf8(digits).ok().filter(|_| is_number).ok_or(Refusal::Encapsulated)?;
    Ok((known, text.parse().map_err(|_| Refusal::Encapsulated)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str, method: Method) -> Result<Encapsulated, Refusal> {
        let mut fields = Fields::default();
        assert!(fields.push("Encapsulated", text.as_bytes()));
        Encapsulated::parse(&fields, method)
    }

    #[test]
    fn sections_stand_in_order_and_end_with_the_body() {
        let both = parse("req-hdr=0, res-hdr=65, res-body=129", Method::Respmod).unwrap();
        assert_eq!((both.request_bytes, both.response_bytes, both.has_body), (Some(65), Some(64), true));
        assert_eq!(both.head_bytes(), 129);
        assert!(!parse("Req-Hdr=0, NULL-BODY=65", Method::Reqmod).unwrap().has_body);
        assert!(parse("res-body=0", Method::Respmod).unwrap().has_body);
        let alone = parse("req-body=0", Method::Reqmod).unwrap();
        assert_eq!((alone.request_bytes, alone.has_body, alone.head_bytes()), (None, true, 0));
        assert!(parse("null-body=0", Method::Options).is_ok());
        for (text, method) in [
            ("", Method::Reqmod),
            ("req-hdr=0", Method::Reqmod),
            ("null-body=0", Method::Reqmod),
            ("res-body=0", Method::Reqmod),
            ("req-hdr=1, null-body=65", Method::Reqmod),
            ("req-hdr=0, null-body=0", Method::Reqmod),
            ("req-hdr=0, req-hdr=5, null-body=65", Method::Reqmod),
            ("res-hdr=0, req-hdr=5, res-body=65", Method::Respmod),
            ("req-hdr=0, res-body=65", Method::Reqmod),
            ("req-hdr=0, res-hdr=70, req-body=65", Method::Respmod),
            ("req-hdr=0, null-body=-1", Method::Reqmod),
            ("req-hdr=0, null-body=99999999999999999999", Method::Reqmod),
            ("req-body=0, req-hdr=5, null-body=9", Method::Reqmod),
        ] {
            assert_eq!(parse(text, method), Err(Refusal::Encapsulated), "{text}");
        }
    }
}
