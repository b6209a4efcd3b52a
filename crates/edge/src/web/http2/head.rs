//! Heads of HTTP/2 as those of HTTP/1.1, and the other way round (RFC 9113, section 8).

use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::request::Parts;
use proto::http::{Fields, Framing, Request, Response, Target};

/// A request as HTTP/1.1 has it; none where that cannot be. `is_over`: it has no body.
pub fn request(parts: &Parts, is_over: bool) -> Option<Request> {
    let said = parts.headers.get("host").map(HeaderValue::as_bytes);
    let named = parts.uri.authority().map(|authority| authority.as_str().as_bytes());
    let authority = named.or(said)?;
    if said.is_some_and(|said| !said.eq_ignore_ascii_case(authority)) {
        return None;
    }
    let path = parts.uri.path_and_query()?.as_str();
    let target = if path == "*" { Target::Asterisk } else { Target::Origin(path.into()) };
    let mut request = Request::new(parts.method.as_str(), target);
    request.framing = match parts.headers.get("content-length") {
        _ if is_over => Framing::Empty,
        Some(length) => Framing::Length(length.to_str().ok()?.parse().ok()?),
        None => Framing::Chunked,
    };
    request.fields.push("Host", authority);
    let mut cookies = Vec::new();
    for (name, value) in &parts.headers {
        match name.as_str() {
            "host" | "content-length" => {}
            // Their crumbs are one field (section 8.2.3).
            "cookie" => cookies.push(value.as_bytes()),
            name if !request.fields.push(name, value.as_bytes()) => return None,
            _ => {}
        }
    }
    let cookie = cookies.join(&b"; "[..]);
    (cookies.is_empty() || request.fields.push("Cookie", &cookie)).then_some(request)
}

/// A response as HTTP/2 has it; none where that cannot be.
pub fn response(response: &Response) -> Option<http::Response<()>> {
    let mut made = http::Response::builder().status(response.status.0).body(()).ok()?;
    let mut kept = response.fields.clone();
    kept.remove_hop_by_hop();
    *made.headers_mut() = fields(&kept)?;
    if let Framing::Length(length) = response.framing
        && !response.status.is_interim()
        && response.status.0 != 204
    {
        made.headers_mut().insert("content-length", HeaderValue::from(length));
    }
    Some(made)
}

/// Fields of a head or a trailer as HTTP/2 has them; none where that cannot be.
pub fn fields(fields: &Fields) -> Option<HeaderMap> {
    let mut map = HeaderMap::with_capacity(fields.len());
    for (name, value) in fields.iter() {
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        map.try_append(name, HeaderValue::from_bytes(value).ok()?).ok()?;
    }
    Some(map)
}

/// A trailer as HTTP/1.1 has it.
pub fn trailer(map: &HeaderMap) -> Fields {
    let mut fields = Fields::default();
    for (name, value) in map {
        fields.push(name.as_str(), value.as_bytes());
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(uri: &str, fields: &[(&str, &str)]) -> Parts {
        let mut builder = http::Request::builder().uri(uri);
        for (name, value) in fields {
            builder = builder.header(*name, *value);
        }
        builder.body(()).unwrap().into_parts().0
    }

    #[test]
    fn a_request_is_written_as_its_pseudo_fields_say() {
        let crumbs = [("cookie", "a=1"), ("accept", "*/*"), ("cookie", "b=2"), ("content-length", "5")];
        let made = request(&parts("https://o.test:81/a?b", &crumbs), false).unwrap();
        assert_eq!((made.target, made.framing), (Target::Origin(b"/a?b".to_vec()), Framing::Length(5)));
        let fields: Vec<_> = made.fields.iter().map(|(name, value)| (name, String::from_utf8_lossy(value))).collect();
        assert_eq!(fields, [("Host", "o.test:81".into()), ("accept", "*/*".into()), ("Cookie", "a=1; b=2".into())]);
        let made = request(&parts("https://o.test/", &[]), true).unwrap();
        assert_eq!(made.framing, Framing::Empty);
        assert_eq!(request(&parts("https://o.test/", &[]), false).unwrap().framing, Framing::Chunked);
        assert!(request(&parts("https://o.test/", &[("host", "other.test")]), true).is_none(), "two hosts");
        assert!(request(&parts("/", &[]), true).is_none(), "no host");
    }

    #[test]
    fn a_response_has_nothing_of_its_connection() {
        let mut old = Response { framing: Framing::Length(3), ..Response::new(200) };
        for (name, value) in [("Connection", "close, X-Own"), ("X-Own", "1"), ("ETag", "\"1\""), ("Set-Cookie", "a")] {
            old.fields.push(name, value.as_bytes());
        }
        old.fields.push("Set-Cookie", b"b");
        let made = response(&old).unwrap();
        let mut names: Vec<_> = made.headers().iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["content-length", "etag", "set-cookie", "set-cookie"]);
    }
}
