//! Heads as they go on: without what speaks of one connection, with `Via`, and with what the inspection needs.

use std::net::IpAddr;

use proto::http::{Fields, Framing, Request, Response, Target};
use proto::messages::Form;

use super::object::{coding_name, codings};

/// Codings that are undone for the inspection, and so may be asked for.
const ACCEPTED: [&str; 6] = ["gzip", "x-gzip", "deflate", "br", "zstd", "identity"];

/// Facts and settings by which a request is rewritten.
pub struct Manner<'a> {
    /// Name of this proxy.
    pub hostname: &'a str,
    /// Requests for parts pass.
    pub passes_ranges: bool,
    /// The client, where the origin is to know of it, and whether it came over TLS.
    pub client: Option<(IpAddr, bool)>,
}

/// The request as the origin gets it.
pub fn for_origin(request: &Request, manner: &Manner<'_>) -> Request {
    let mut fields = request.fields.clone();
    fields.remove_hop_by_hop();
    if request.fields.lists("te", "trailers") {
        // Trailers pass, and servers of gRPC refuse clients that do not ask for them.
        fields.push("TE", b"trailers");
    }
    fields.remove("expect");
    if let Some(authority) = request.authority() {
        fields.set("Host", authority);
    }
    if !manner.passes_ranges {
        fields.remove("range");
        fields.remove("if-range");
    }
    accept_known_codings(&mut fields);
    if fields.get("accept-encoding").is_some()
        && fields.elements("accept").any(|kind| Form::of(kind) == Some(Form::Events))
    {
        // Events that are compressed as a whole could not go on one by one.
        fields.set("Accept-Encoding", b"identity");
    }
    write_codings(&mut fields);
    if let Some(left) = forwards_left(request) {
        fields.set("Max-Forwards", left.saturating_sub(1).to_string().as_bytes());
    }
    if let Some((client, is_encrypted)) = manner.client {
        tell_client(&mut fields, client, is_encrypted);
    }
    fields.push("Via", format!("1.1 {}", manner.hostname).as_bytes());
    let target = match &request.target {
        Target::Asterisk => Target::Asterisk,
        _ => Target::Origin(request.path().to_vec()),
    };
    Request { fields, framing: request.framing, ..Request::new(&request.method, target) }
}

/// How many proxies a request may still pass; `None` where it does not say, or its method has no such bound.
pub fn forwards_left(request: &Request) -> Option<u32> {
    let value = request.fields.get("max-forwards").filter(|_| matches!(&*request.method, "OPTIONS" | "TRACE"))?;
    let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    is_number.then(|| std::str::from_utf8(value).ok().and_then(|value| value.parse().ok()).unwrap_or(u32::MAX))
}

/// Makes a response with the only part that an object has one with the object, for a client that has asked for no part.
pub fn make_whole(response: &mut Response) {
    let is_whole = response.fields.get("content-range").is_some_and(is_whole);
    if response.status.0 == 206 && is_whole {
        let Response { fields, framing, .. } = std::mem::replace(response, Response::new(200));
        (response.fields, response.framing) = (fields, framing);
        response.fields.remove("content-range");
    }
}

/// Whether a range is the whole object: `bytes 0-9/10`.
fn is_whole(range: &[u8]) -> bool {
    let numbers = std::str::from_utf8(range).ok().and_then(|range| {
        let (unit, range) = range.trim().split_once(' ')?;
        let (range, size) = range.trim().split_once('/')?;
        let (first, last) = range.split_once('-').filter(|_| unit.eq_ignore_ascii_case("bytes"))?;
        Some([first, last, size].map(|number| number.parse::<u64>().ok()))
    });
    matches!(numbers, Some([Some(0), Some(last), Some(size)]) if last.checked_add(1) == Some(size))
}

/// The response as the client gets it.
pub fn for_client(response: &mut Response, hostname: &str, passes_ranges: bool) {
    let fields = &mut response.fields;
    fields.remove_hop_by_hop();
    // By these the client would leave the proxy, or ask in vain for parts: of an object without a length there are none before its end.
    fields.remove("alt-svc");
    if !passes_ranges && matches!(response.framing, Framing::Chunked | Framing::Close) {
        fields.remove("accept-ranges");
    }
    write_codings(fields);
    fields.push("Via", format!("1.1 {hostname}").as_bytes());
}

/// Whether a request asks for WebSocket.
pub fn asks_for_socket(request: &Request) -> bool {
    request.fields.lists("upgrade", "websocket")
}

/// Asks a server for WebSocket as the client has, without extensions.
pub fn ask_for_socket(fields: &mut Fields) {
    fields.set("Upgrade", b"websocket");
    fields.remove("sec-websocket-extensions");
}

/// Whether a request has been here already.
pub fn is_loop(fields: &Fields, hostname: &str) -> bool {
    fields.elements("via").any(|element| {
        let by = element.split(|&byte| byte == b' ').filter(|word| !word.is_empty()).nth(1);
        by.is_some_and(|by| by.eq_ignore_ascii_case(hostname.as_bytes()))
    })
}

/// Leaves in `Accept-Encoding` what can be undone here.
fn accept_known_codings(fields: &mut Fields) {
    if fields.get("accept-encoding").is_none() {
        return;
    }
    let is_known = |element: &&[u8]| {
        let name = element.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii();
        ACCEPTED.iter().any(|accepted| accepted.as_bytes().eq_ignore_ascii_case(name))
    };
    let kept: Vec<&[u8]> = fields.elements("accept-encoding").filter(is_known).collect();
    let kept = if kept.is_empty() { b"identity".to_vec() } else { kept.join(&b", "[..]) };
    fields.set("Accept-Encoding", &kept);
}

/// Writes the codings that are known in the one way that no two readers read differently.
fn write_codings(fields: &mut Fields) {
    let Some(known) = codings(fields).filter(|_| fields.get("content-encoding").is_some()) else { return };
    let names: Vec<&str> = known.into_iter().map(coding_name).collect();
    match names.is_empty() {
        true => fields.remove("content-encoding"),
        false => _ = fields.set("Content-Encoding", names.join(", ").as_bytes()),
    }
}

/// Says who the client is (RFC 7239, and the fields that were there before it). What the client says of that itself is left out.
fn tell_client(fields: &mut Fields, client: IpAddr, is_encrypted: bool) {
    let host = fields.get("host").unwrap_or_default().to_vec();
    let scheme = if is_encrypted { "https" } else { "http" };
    let node = if client.is_ipv4() { client.to_string() } else { format!("\"[{client}]\"") };
    let host_text = String::from_utf8_lossy(&host);
    for (name, value) in [
        ("X-Forwarded-For", client.to_string().as_bytes()),
        ("X-Forwarded-Proto", scheme.as_bytes()),
        ("X-Forwarded-Host", &host),
        ("Forwarded", format!("for={node};host=\"{host_text}\";proto={scheme}").as_bytes()),
    ] {
        fields.set(name, value);
    }
    fields.remove("x-real-ip");
}

#[cfg(test)]
mod tests {
    use proto::http::Framing;

    use super::*;

    fn request(fields: &[(&str, &str)]) -> Request {
        let target =
            Target::Absolute { scheme: "http".into(), authority: b"o.test:81".to_vec(), path: b"/a?b".to_vec() };
        let mut request = Request::new("GET", target);
        fields.iter().for_each(|(name, value)| assert!(request.fields.push(name, value.as_bytes())));
        request
    }

    fn forwarded(fields: &[(&str, &str)], client: Option<(IpAddr, bool)>) -> String {
        let manner = Manner { hostname: "proxy.test", passes_ranges: false, client };
        let request = for_origin(&request(fields), &manner);
        assert_eq!(request.target, Target::Origin(b"/a?b".to_vec()));
        let line = |(name, value): (&str, &[u8])| format!("{name}: {}\n", String::from_utf8_lossy(value));
        request.fields.iter().map(line).collect()
    }

    #[test]
    fn a_part_that_is_the_whole_object_is_the_object() {
        for (range, status) in [
            ("bytes 0-1/2", 200),
            ("Bytes 0-0/1", 200),
            ("bytes 0-1/3", 206),
            ("bytes 1-1/2", 206),
            ("bytes 0-1/*", 206),
            ("bytes */2", 206),
            ("bytes 0-18446744073709551615/0", 206),
        ] {
            let mut response = Response { framing: Framing::Length(2), ..Response::new(206) };
            response.fields.push("Content-Range", range.as_bytes());
            make_whole(&mut response);
            let has_range = response.fields.get("content-range").is_some();
            assert_eq!(
                (response.status.0, has_range, response.framing),
                (status, status == 206, Framing::Length(2)),
                "{range}"
            );
        }
    }

    #[test]
    fn proxies_are_counted_down_where_a_method_says_so() {
        for (method, value, wanted) in [
            ("OPTIONS", "0", Some(0)),
            ("OPTIONS", "7", Some(7)),
            ("TRACE", "99999999999", Some(u32::MAX)),
            ("GET", "0", None),
            ("OPTIONS", "-1", None),
            ("OPTIONS", "", None),
        ] {
            let mut asked = request(&[("Max-Forwards", value)]);
            asked.method = method.into();
            assert_eq!(forwards_left(&asked), wanted, "{method} {value}");
        }
        let mut asked = request(&[("Max-Forwards", "7")]);
        asked.method = "OPTIONS".into();
        let manner = Manner { hostname: "proxy.test", passes_ranges: false, client: None };
        assert_eq!(for_origin(&asked, &manner).fields.get("max-forwards"), Some(&b"6"[..]));
    }

    #[test]
    fn a_request_goes_on_with_what_the_inspection_needs() {
        let told = forwarded(
            &[
                ("Host", "other.test"),
                ("Connection", "close, X-Own"),
                ("X-Own", "1"),
                ("Proxy-Authorization", "secret"),
                ("Range", "bytes=5-"),
                ("If-Range", "\"x\""),
                ("Expect", "100-continue"),
                ("Accept-Encoding", "gzip;q=0.5, sdch, BR"),
                ("Accept-Encoding", "dcb, *;q=0"),
                ("Via", "1.0 a.test"),
            ],
            None,
        );
        assert_eq!(told, "Via: 1.0 a.test\nHost: o.test:81\nAccept-Encoding: gzip;q=0.5, BR\nVia: 1.1 proxy.test\n");
        assert!(forwarded(&[("Accept-Encoding", "sdch")], None).contains("Accept-Encoding: identity\n"));
        let events = [("Accept", "application/json, text/event-stream;q=1"), ("Accept-Encoding", "gzip, br")];
        assert!(forwarded(&events, None).contains("Accept-Encoding: identity\n"));
        assert_eq!(forwarded(&[("TE", "gzip;q=0.5")], None), "Host: o.test:81\nVia: 1.1 proxy.test\n");
        assert!(forwarded(&[("Connection", "TE"), ("TE", "gzip, Trailers")], None).contains("TE: trailers\n"));
        assert!(forwarded(&[("Content-Encoding", ",x-gzip , identity")], None).contains("Content-Encoding: gzip\n"));
    }

    #[test]
    fn a_server_behind_is_told_the_client_and_nothing_of_what_it_says_of_itself() {
        let client = Some(("2001:db8::1".parse().unwrap(), true));
        let told = forwarded(&[("X-Forwarded-For", "127.0.0.1"), ("Forwarded", "for=a"), ("X-Real-IP", "b")], client);
        assert!(told.contains("X-Forwarded-For: 2001:db8::1\n"), "{told}");
        assert!(
            told.contains("Forwarded: for=\"[2001:db8::1]\";host=\"o.test:81\";proto=https\n")
                && !told.contains("127.0.0.1")
                && !told.contains("X-Real-IP"),
            "{told}"
        );
    }

    #[test]
    fn a_loop_is_known_by_our_own_name() {
        let fields = |via: &str| request(&[("Via", via)]).fields;
        assert!(is_loop(&fields("1.0 a.test, 1.1  Proxy.Test (x)"), "proxy.test"));
        assert!(!is_loop(&fields("1.1 proxy.test.other, 1.1 (proxy.test)"), "proxy.test"));
    }
}
