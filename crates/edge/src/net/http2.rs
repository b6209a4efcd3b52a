//! Messages of HTTP/2 as those of HTTP/1.1, and the other way round (RFC 9113, section 8), for both sides of the proxy.

use std::future::poll_fn;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use h2::SendStream;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Method, Uri, Version, request, response};
use proto::http::{Fields, Framing, Request, Response, Target};
use proto::messages::Form;
use tokio::time::timeout;

/// Bytes of a head.
pub const HEAD_BYTES_MAX: u32 = 64 << 10;

/// Bytes on their way between a stream and its conversation of HTTP/1.1, in each direction.
pub const PIPE_BYTES: usize = 16 << 10;

/// How long the other side may take nothing of a body.
const SILENCE_WAIT: Duration = Duration::from_secs(300);

/// A request as HTTP/1.1 has it; none where that cannot be. `is_over`: it has no body.
pub fn request_from(parts: &request::Parts, is_over: bool) -> Option<Request> {
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

/// A request for a server of HTTPS as HTTP/2 has it; none where that cannot be.
pub fn request_to(request: &Request) -> Option<http::Request<()>> {
    let mut uri = http::uri::Parts::default();
    uri.scheme = Some(Scheme::HTTPS);
    uri.authority = Some(Authority::try_from(request.authority()?).ok()?);
    uri.path_and_query = match &request.target {
        Target::Origin(path) => Some(PathAndQuery::try_from(path.as_slice()).ok()?),
        Target::Absolute { .. } | Target::Authority(_) | Target::Asterisk => return None,
    };
    let mut made = http::Request::new(());
    *made.method_mut() = Method::from_bytes(request.method.as_bytes()).ok()?;
    *made.uri_mut() = Uri::from_parts(uri).ok()?;
    *made.version_mut() = Version::HTTP_2;
    let mut kept = request.fields.clone();
    kept.remove_hop_by_hop();
    kept.remove("host");
    kept.remove("content-length");
    *made.headers_mut() = fields(&kept)?;
    if request.fields.lists("te", "trailers") {
        // No other value has a meaning in HTTP/2 (section 8.2.2).
        made.headers_mut().insert("te", HeaderValue::from_static("trailers"));
    }
    if let Framing::Length(length) = request.framing {
        made.headers_mut().insert("content-length", HeaderValue::from(length));
    }
    Some(made)
}

/// A response as HTTP/1.1 has it; none where that cannot be. `is_over`: it has no body.
pub fn response_from(parts: &response::Parts, is_over: bool) -> Option<Response> {
    let mut lengths = parts.headers.get_all("content-length").iter();
    let length = lengths.next().map(|length| length.to_str().ok()?.parse().ok());
    let framing = match length {
        _ if lengths.next().is_some() => return None,
        // In HTTP/1.1, no trailer follows a body with a length.
        Some(Some(_)) if !is_over && has_trailer(&parts.headers) => Framing::Chunked,
        Some(length) => Framing::Length(length?),
        None if is_over => Framing::Empty,
        None => Framing::Chunked,
    };
    let mut response = Response { framing, ..Response::new(parts.status.as_u16()) };
    for (name, value) in parts.headers.iter().filter(|(name, _)| *name != "content-length") {
        if !response.fields.push(name.as_str(), value.as_bytes()) {
            return None;
        }
    }
    Some(response)
}

/// Whether a trailer follows: it is announced, or the status of gRPC, which servers do not announce.
fn has_trailer(fields: &HeaderMap) -> bool {
    let is_call = |kind: &HeaderValue| Form::of(kind.as_bytes()) == Some(Form::Grpc);
    fields.contains_key("trailer") || fields.get("content-type").is_some_and(is_call)
}

/// A response as HTTP/2 has it; none where that cannot be.
pub fn response_to(response: &Response) -> Option<http::Response<()>> {
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

/// Sends content of a body as the other side has room for it.
///
/// # Errors
/// When the stream has ended, or the other side takes nothing for long.
pub async fn content(stream: &mut SendStream<Bytes>, mut piece: Bytes) -> io::Result<()> {
    while !piece.is_empty() {
        stream.reserve_capacity(piece.len());
        let room = timeout(SILENCE_WAIT, poll_fn(|context| stream.poll_capacity(context))).await?;
        let room = room.ok_or(io::ErrorKind::ConnectionAborted)?.map_err(io::Error::other)?;
        stream.send_data(piece.split_to(room.min(piece.len())), false).map_err(io::Error::other)?;
    }
    Ok(())
}

/// Ends a body.
///
/// # Errors
/// When the stream has ended.
pub fn end(stream: &mut SendStream<Bytes>, trailer: &Fields) -> io::Result<()> {
    let sent = match fields(trailer).filter(|map| !map.is_empty()) {
        Some(map) => stream.send_trailers(map),
        None => stream.send_data(Bytes::new(), true),
    };
    sent.map_err(io::Error::other)
}

/// Error of a malformed message.
pub fn malformed() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(uri: &str, fields: &[(&str, &str)]) -> request::Parts {
        let mut builder = http::Request::builder().uri(uri);
        for (name, value) in fields {
            builder = builder.header(*name, *value);
        }
        builder.body(()).unwrap().into_parts().0
    }

    #[test]
    fn a_request_is_written_as_its_pseudo_fields_say() {
        let crumbs = [("cookie", "a=1"), ("accept", "*/*"), ("cookie", "b=2"), ("content-length", "5")];
        let made = request_from(&parts("https://o.test:81/a?b", &crumbs), false).unwrap();
        assert_eq!((made.target, made.framing), (Target::Origin(b"/a?b".to_vec()), Framing::Length(5)));
        let fields: Vec<_> = made.fields.iter().map(|(name, value)| (name, String::from_utf8_lossy(value))).collect();
        assert_eq!(fields, [("Host", "o.test:81".into()), ("accept", "*/*".into()), ("Cookie", "a=1; b=2".into())]);
        let made = request_from(&parts("https://o.test/", &[]), true).unwrap();
        assert_eq!(made.framing, Framing::Empty);
        assert_eq!(request_from(&parts("https://o.test/", &[]), false).unwrap().framing, Framing::Chunked);
        assert!(request_from(&parts("https://o.test/", &[("host", "other.test")]), true).is_none(), "two hosts");
        assert!(request_from(&parts("/", &[]), true).is_none(), "no host");
    }

    #[test]
    fn a_response_has_nothing_of_its_connection() {
        let mut old = Response { framing: Framing::Length(3), ..Response::new(200) };
        for (name, value) in [("Connection", "close, X-Own"), ("X-Own", "1"), ("ETag", "\"1\""), ("Set-Cookie", "a")] {
            old.fields.push(name, value.as_bytes());
        }
        old.fields.push("Set-Cookie", b"b");
        let made = response_to(&old).unwrap();
        let mut names: Vec<_> = made.headers().iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["content-length", "etag", "set-cookie", "set-cookie"]);
    }

    #[test]
    fn a_request_for_a_server_has_its_authority_and_no_field_of_a_connection() {
        let mut old = Request::new("POST", Target::Origin(b"/a?b=|\xc3\xa9".to_vec()));
        old.framing = Framing::Length(3);
        for (name, value) in
            [("Host", "o.test:81"), ("TE", "trailers, gzip"), ("X-Own", "1"), ("Via", "1.1 proxy.test")]
        {
            old.fields.push(name, value.as_bytes());
        }
        let made = request_to(&old).unwrap();
        assert_eq!(made.uri().authority().unwrap(), "o.test:81");
        assert_eq!((made.uri().scheme_str(), made.uri().path_and_query().unwrap().as_str().len()), (Some("https"), 8));
        let mut names: Vec<_> = made.headers().iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["content-length", "te", "via", "x-own"]);
        assert_eq!(made.headers()["te"], "trailers");
        old.fields.set("TE", b"gzip");
        assert!(!request_to(&old).unwrap().headers().contains_key("te"));
        assert!(request_to(&Request::new("OPTIONS", Target::Asterisk)).is_none(), "no path");
        old.target = Target::Origin(b"/<".to_vec());
        assert!(request_to(&old).is_none(), "the library has no such path");
    }

    #[test]
    fn a_response_of_a_server_is_framed_as_it_says() {
        let parts = |fields: &[(&str, &str)]| {
            let mut builder = http::Response::builder().status(200);
            for (name, value) in fields {
                builder = builder.header(*name, *value);
            }
            builder.body(()).unwrap().into_parts().0
        };
        let made = response_from(&parts(&[("etag", "\"1\""), ("content-length", "3")]), false).unwrap();
        assert_eq!((made.framing, made.fields.len()), (Framing::Length(3), 1));
        assert_eq!(response_from(&parts(&[]), false).unwrap().framing, Framing::Chunked);
        let announced = [("content-length", "3"), ("trailer", "x-sum")];
        assert_eq!(response_from(&parts(&announced), false).unwrap().framing, Framing::Chunked);
        assert_eq!(response_from(&parts(&announced), true).unwrap().framing, Framing::Length(3));
        let call = [("content-length", "3"), ("content-type", "application/grpc+proto")];
        assert_eq!(response_from(&parts(&call), false).unwrap().framing, Framing::Chunked);
        assert_eq!(response_from(&parts(&[]), true).unwrap().framing, Framing::Empty);
        assert!(response_from(&parts(&[("content-length", "3"), ("content-length", "3")]), false).is_none());
    }
}
