//! Requests that two parsers could read as different ones, made of every combination of lengths, codings and line ends: what goes on to the origin
//! is read alike by a parser that goes by lengths, by one that goes by chunks, and by one that takes any line end.

use crate::harness::web::{Origin, chunks, response};
use crate::harness::{Gateway, Wire};

const LENGTHS: &[&str] = &[
    "",
    "Content-Length: 5",
    "Content-Length: 0",
    "Content-Length: +5",
    "Content-Length: 5, 5",
    "Content-Length: 5, 6",
    "Content-Length: 5~Content-Length: 44",
    "Content-Length : 5",
    " Content-Length: 5",
    "Content-Length:\t5\t",
    "Content_Length: 5",
    "Content-Length: 0x5",
    "Content-Length: 5\u{b}",
    "X: y\nContent-Length: 44",
];

const CODINGS: &[&str] = &[
    "",
    "Transfer-Encoding: chunked",
    "Transfer-Encoding: xchunked",
    "Transfer-Encoding : chunked",
    "Transfer-Encoding: chunked, identity",
    "Transfer-Encoding: identity, chunked",
    "Transfer-Encoding:\u{b}chunked",
    "Transfer-Encoding: \"chunked\"",
    "Transfer-Encoding~ : chunked",
    "Transfer-Encoding:~ chunked",
    "X: y\rTransfer-Encoding: chunked",
    "X: y\nTransfer-Encoding: chunked",
    "TRANSFER-ENCODING: CHUNKED",
    "Transfer-Encoding: chunked~Transfer-Encoding: x",
    "Connection: Transfer-Encoding~Transfer-Encoding: chunked",
    "Connection: Content-Length",
];

const ENDS: &[&str] = &["\r\n", "\n", "\r", "\r\r\n"];

const BODIES: &[&str] = &[
    "0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n",
    "5\r\nhello\r\n0\r\n\r\n",
    "5;\nhello\n0\n\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n",
    "0\r\nX: y\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n",
    "00000000000000000\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n",
];

/// The first lines of all requests that a parser finds: one that prefers chunks or lengths, and takes LF for a line end or does not.
fn requests(said: &[u8], prefers_chunks: bool, takes_newlines: bool) -> Vec<String> {
    let (mut rest, mut found) = (said, Vec::new());
    while !rest.is_empty() {
        let (mark, end) = match rest.windows(4).position(|four| four == b"\r\n\r\n") {
            Some(at) => (at, at + 4),
            None => (rest.len(), rest.len()),
        };
        let lenient = rest.windows(2).position(|two| two == b"\n\n").filter(|&at| takes_newlines && at < mark);
        let (mark, end) = lenient.map_or((mark, end), |at| (at, at + 2));
        let head = String::from_utf8_lossy(&rest[..mark]).to_ascii_lowercase();
        let split = if takes_newlines { "\n" } else { "\r\n" };
        let lines: Vec<&str> = head.split(split).map(str::trim).collect();
        let value = |name: &str| {
            lines
                .iter()
                .filter_map(|line| line.split_once(':'))
                .find(|(key, _)| key.trim() == name)
                .map(|(_, value)| value.trim().to_owned())
        };
        let length = value("content-length").and_then(|value| value.parse::<usize>().ok());
        let is_chunked = value("transfer-encoding").is_some_and(|value| value.contains("chunked"));
        found.push(lines[0].to_owned());
        rest = &rest[end..];
        let used = match (is_chunked, length) {
            (true, None) => chunks(rest).map_or(rest.len(), |(_, used)| used),
            (true, Some(_)) if prefers_chunks => chunks(rest).map_or(rest.len(), |(_, used)| used),
            (_, length) => length.unwrap_or(0).min(rest.len()),
        };
        rest = &rest[used..];
    }
    found
}

#[test]
fn no_request_goes_on_that_another_parser_reads_as_two() {
    let origin = Origin::start(|_, _| Some(response("", b"ok")));
    let port = origin.address.port();
    let gateway = Gateway::with(&format!(
        "hostname = \"proxy.test\"\nthreads = 1\n[[listener]]\nprotocol = \"http\"\naddress = \"127.0.0.1:0\"\n\
         destinations = [\"127.0.0.0/8\"]\nports = [{port}]\n"
    ));
    let (mut asked, mut answered) = (0, 0);
    for version in ["1.1", "1.0"] {
        for (length, coding) in LENGTHS.iter().flat_map(|length| CODINGS.iter().map(move |coding| (length, coding))) {
            for (number, end) in ENDS.iter().enumerate().take(if version == "1.1" { ENDS.len() } else { 1 }) {
                // The bodies matter where the head is taken.
                for body in &BODIES[..if number == 0 && version == "1.1" { BODIES.len() } else { 2 }] {
                    let fields: String = [*length, *coding]
                        .iter()
                        .filter(|field| !field.is_empty())
                        .map(|field| format!("{field}~"))
                        .collect();
                    let fields = fields.replace('~', end);
                    let url = origin.url("/first");
                    let said = format!("POST {url} HTTP/{version}\r\nHost: x\r\n{fields}\r\n{body}");
                    let mut wire = Wire::connect(gateway.address);
                    _ = wire.try_send(said.as_bytes());
                    _ = wire.stream.shutdown(std::net::Shutdown::Write);
                    asked += 1;
                    answered += usize::from(wire.rest().starts_with(b"HTTP/1.1 200 "));
                }
            }
        }
    }
    let all = origin.said();
    println!("{asked} conversations, {answered} answered by the origin, {} connections to it", all.len());
    assert!(answered > 0);
    for said in all {
        let readings = [(true, true), (true, false), (false, true), (false, false)];
        let readings = readings.map(|(chunks, newlines)| requests(said.as_bytes(), chunks, newlines));
        assert!(readings.iter().all(|reading| *reading == readings[0]), "{readings:?}: {said:?}");
        let lower = said.to_ascii_lowercase();
        assert!(!(lower.contains("content-length") && lower.contains("transfer-encoding")), "{said:?}");
        let head = said.split("\r\n\r\n").next().unwrap_or_default();
        assert!(!head.replace("\r\n", "").contains(['\r', '\n']), "{said:?}");
        // A request that followed on the connection was asked for as one of its own, in the form of a proxy's.
        assert!(!readings[0].iter().any(|line| line.contains("/smuggled")), "{said:?}");
    }
}
