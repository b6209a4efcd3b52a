//! Parts of an object (RFC 9110, section 14), cut out of a response that has the whole.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use super::body::Framing;
use super::field::Fields;
use super::request::Request;
use super::response::Response;

/// Digests of the content of a message, which the content of another does not have: RFC 9530 and RFC 1864, and those of S3, which its clients
/// verify on parts, too.
const DIGESTS: [&str; 2] = ["content-digest", "content-md5"];
const DIGESTS_S3: &str = "x-amz-checksum-";

/// Fields of a whole that stay where no part of it is given.
const UNSATISFIED: [&str; 5] = ["accept-ranges", "date", "etag", "last-modified", "via"];

/// The part of an object that a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    range: Asked,
    /// The version that is meant (`If-Range`).
    version: Option<Vec<u8>>,
}

/// A range of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// From the first of these offsets to the last.
    Span(u64, u64),
    /// So many from the end.
    Last(u64),
}

impl Part {
    /// The part that a request asks for. `None` if it asks for the whole, for several ranges, or in a way that is not known here: then the
    /// whole is the answer.
    pub fn of(request: &Request) -> Option<Part> {
        let fields = &request.fields;
        let mut versions = fields.all("if-range");
        let version = versions.next().map(<[u8]>::to_vec);
        let value = single(fields, "range").filter(|_| request.method == "GET" && versions.next().is_none())?;
        let equals = memchr::memchr(b'=', value)?;
        let (unit, ranges) = value.split_at(equals);
        let mut ranges = ranges.get(1..)?.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
        let mut ranges = ranges.by_ref().filter(|range| !range.is_empty());
        let (range, more) = (ranges.next()?, ranges.next());
        let is_one = unit.eq_ignore_ascii_case(b"bytes") && more.is_none();
        Some(Part { range: Asked::parse(range).filter(|_| is_one)?, version })
    }

    /// Whether it may be cut out of this response: a whole object of the version that is meant, and a server that does not refuse ranges.
    /// A server may code the same object in another way each time, so coded content needs a validator of its very bytes.
    pub fn is_within(&self, response: &Response) -> bool {
        let fields = &response.fields;
        let is_whole = response.status.0 == 200 && fields.get("content-range").is_none();
        let tag = single(fields, "etag").filter(|tag| tag.starts_with(b"\""));
        let is_meant = match self.version.as_deref() {
            None => true,
            Some(version @ [b'"', ..]) => tag == Some(version),
            Some(version) => is_version_of(fields, version),
        };
        let is_exact = fields.get("content-encoding").is_none() || tag.is_some();
        is_whole && is_meant && is_exact && !fields.lists("accept-ranges", "none")
    }

    /// The bytes of an object of this length that are meant; none if the part begins behind it.
    pub fn bytes(&self, length: u64) -> Option<Range<u64>> {
        let range = match self.range {
            Asked::Span(first, last) => first..last.saturating_add(1).min(length),
            Asked::Last(count) => length.saturating_sub(count)..length,
        };
        Some(range).filter(|range| range.start < range.end)
    }

    /// Makes the response with an object of this length one with the part (206), or one that says that there is no such part (416). Returns the
    /// bytes of the part.
    pub fn cut(&self, response: &mut Response, length: u64) -> Option<Range<u64>> {
        let Some(range) = self.bytes(length) else {
            *response = unsatisfied(&response.fields, length);
            return None;
        };
        let names: Vec<String> = response.fields.iter().map(|(name, _)| name.to_ascii_lowercase()).collect();
        // What has a length has no trailer.
        response.fields.remove("trailer");
        let is_digest = |name: &&String| DIGESTS.contains(&name.as_str()) || name.starts_with(DIGESTS_S3);
        names.iter().filter(is_digest).for_each(|name| response.fields.remove(name));
        let last = range.end.saturating_sub(1);
        response.fields.set("Content-Range", format!("bytes {}-{last}/{length}", range.start).as_bytes());
        let framing = Framing::Length(range.end.saturating_sub(range.start));
        let fields = core::mem::take(&mut response.fields);
        *response = Response { fields, framing, ..Response::new(206) };
        Some(range)
    }
}

impl Asked {
    fn parse(text: &[u8]) -> Option<Asked> {
        let dash = memchr::memchr(b'-', text)?;
        let (first, last) = (text.get(..dash)?.trim_ascii(), text.get(dash.saturating_add(1)..)?.trim_ascii());
        match (first, last) {
            (b"", last) => number(last).map(Asked::Last),
            (first, b"") => Some(Asked::Span(number(first)?, u64::MAX)),
            (first, last) => {
                let (first, last) = (number(first)?, number(last)?);
                (first <= last).then_some(Asked::Span(first, last))
            }
        }
    }
}

/// A number; one that is too large is the largest.
fn number(digits: &[u8]) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let value =
        |value: u64, &digit: &u8| value.saturating_mul(10).saturating_add(u64::from(digit.saturating_sub(b'0')));
    is_number.then(|| digits.iter().fold(0, value))
}

/// The value of a field that is there once.
fn single<'f>(fields: &'f Fields, name: &'f str) -> Option<&'f [u8]> {
    let mut values = fields.all(name);
    values.next().filter(|_| values.next().is_none())
}

/// Whether a date is that of the last change, and another than that of the response: of an object that changes within the second in which it
/// is given, a date tells no versions apart (RFC 9110, section 8.8.2.2).
fn is_version_of(fields: &Fields, date: &[u8]) -> bool {
    let changed = single(fields, "last-modified");
    changed == Some(date) && single(fields, "date").is_some_and(|now| now != date)
}

/// The response that there is no such part of an object of this length.
fn unsatisfied(whole: &Fields, length: u64) -> Response {
    let mut response = Response::new(416);
    response.fields.push("Content-Range", format!("bytes */{length}").as_bytes());
    let kept = whole.iter().filter(|(name, _)| UNSATISFIED.iter().any(|kept| kept.eq_ignore_ascii_case(name)));
    kept.for_each(|(name, value)| _ = response.fields.push(name, value));
    response
}

#[cfg(test)]
mod tests {
    use super::super::request::Target;
    use super::*;

    fn part(fields: &[(&str, &str)]) -> Option<Part> {
        let mut request = Request::new("GET", Target::Origin(b"/".to_vec()));
        fields.iter().for_each(|(name, value)| assert!(request.fields.push(name, value.as_bytes())));
        Part::of(&request)
    }

    fn whole(fields: &[(&str, &str)]) -> Response {
        let mut response = Response { framing: Framing::Length(10), ..Response::new(200) };
        fields.iter().for_each(|(name, value)| assert!(response.fields.push(name, value.as_bytes())));
        response
    }

    #[test]
    fn one_range_of_bytes_is_a_part() {
        for (value, bytes) in [
            ("bytes=0-0", Some(0..1)),
            ("Bytes= 2-3 ,", Some(2..4)),
            ("bytes=7-", Some(7..10)),
            ("bytes=7-99999999999999999999999", Some(7..10)),
            ("bytes=0-18446744073709551615", Some(0..10)),
            ("bytes=-3", Some(7..10)),
            ("bytes=-30", Some(0..10)),
            ("bytes=10-", None),
            ("bytes=99999999999999999999999-", None),
            ("bytes=-0", None),
        ] {
            assert_eq!(part(&[("Range", value)]).unwrap().bytes(10), bytes, "{value}");
        }
        for value in [
            "",
            "bytes",
            "bytes=",
            "bytes=,",
            "bytes=-",
            "bytes=3-2",
            "bytes=0-1,4-5",
            "bytes=+1-2",
            "lines=0-1",
            "bytes=a-b",
        ] {
            assert_eq!(part(&[("Range", value)]), None, "{value}");
        }
        assert_eq!(part(&[]), None);
        assert_eq!(part(&[("Range", "bytes=0-1"), ("Range", "bytes=0-1")]), None);
        assert_eq!(part(&[("Range", "bytes=0-1"), ("If-Range", "\"a\""), ("If-Range", "\"b\"")]), None);
        let mut request = Request::new("POST", Target::Origin(b"/".to_vec()));
        request.fields.push("Range", b"bytes=0-1");
        assert_eq!(Part::of(&request), None, "GET alone has parts");
    }

    #[test]
    fn a_part_is_of_the_version_that_the_client_has() {
        let (old, now) = ("Mon, 30 Nov 2026 10:00:00 GMT", "Mon, 30 Nov 2026 11:00:00 GMT");
        let tagged = [("ETag", "\"a\""), ("Last-Modified", old), ("Date", now)];
        for (version, fields, is_within) in [
            ("\"a\"", &tagged[..], true),
            ("\"b\"", &tagged, false),
            ("W/\"a\"", &tagged, false),
            ("W/\"a\"", &[("ETag", "W/\"a\"")], false),
            ("\"a\"", &[("ETag", "W/\"a\"")], false),
            ("\"a\"", &[("ETag", "\"a\""), ("ETag", "\"b\"")], false),
            (old, &tagged, true),
            (now, &tagged, false),
            (old, &[("Last-Modified", old), ("Date", old)], false),
            (old, &[("Last-Modified", old)], false),
            ("", &tagged, false),
        ] {
            let part = part(&[("Range", "bytes=0-1"), ("If-Range", version)]).unwrap();
            assert_eq!(part.is_within(&whole(fields)), is_within, "{version} {fields:?}");
        }
        let part = part(&[("Range", "bytes=0-1")]).unwrap();
        for (fields, is_within) in [
            (&[][..], true),
            (&[("Accept-Ranges", "bytes")], true),
            (&[("Accept-Ranges", "none")], false),
            (&[("Content-Range", "bytes 0-1/2")], false),
            (&[("Content-Encoding", "gzip")], false),
            (&[("Content-Encoding", "gzip"), ("ETag", "W/\"a\"")], false),
            (&[("Content-Encoding", "gzip"), ("ETag", "\"a\"")], true),
        ] {
            assert_eq!(part.is_within(&whole(fields)), is_within, "{fields:?}");
        }
        assert!(!part.is_within(&Response { framing: Framing::Length(10), ..Response::new(404) }));
    }

    #[test]
    fn a_whole_becomes_its_part() {
        let fields =
            [("ETag", "\"a\""), ("Content-MD5", "x"), ("X-Amz-Checksum-CRC32", "x"), ("Content-Type", "text/plain")];
        let mut response = whole(&fields);
        assert_eq!(part(&[("Range", "bytes=4-5")]).unwrap().cut(&mut response, 10), Some(4..6));
        assert_eq!((response.status.0, response.framing), (206, Framing::Length(2)));
        let names: Vec<&str> = response.fields.iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["ETag", "Content-Type", "Content-Range"]);
        assert_eq!(response.fields.get("content-range"), Some(&b"bytes 4-5/10"[..]));
        let mut response = whole(&fields);
        assert_eq!(part(&[("Range", "bytes=10-")]).unwrap().cut(&mut response, 10), None);
        assert_eq!((response.status.0, response.framing), (416, Framing::Length(0)));
        assert_eq!(response.fields.get("content-range"), Some(&b"bytes */10"[..]));
        assert!(response.fields.get("etag").is_some() && response.fields.get("content-type").is_none());
    }
}
