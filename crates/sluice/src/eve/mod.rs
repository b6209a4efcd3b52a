//! Records of intrusion rules as lines: EVE JSON with the names and types of Suricata 8, fast.log, the system log.
//!
//! A record is made of what is known, and tells nothing that only a packet has. All text is a claim of the peers. As Suricata has
//! it, what is not there has no key, and addresses of IPv6 are written out.

pub mod captures;
pub mod doors;

use std::net::IpAddr;

use flow::Head;
use jiff::Timestamp;
use rules::ids::capture::Handshake;
use rules::ids::{Entry, Fingerprint};
use serde_json::{Map, Value, json};

/// The fields that each record has.
fn record(kind: &str, now: Timestamp, source: (IpAddr, u16), target: (IpAddr, u16)) -> Map<String, Value> {
    let fields = [
        ("timestamp", stamp(now).into()),
        ("event_type", kind.into()),
        ("src_ip", address(source.0).into()),
        ("src_port", source.1.into()),
        ("dest_ip", address(target.0).into()),
        ("dest_port", target.1.into()),
        ("proto", "TCP".into()),
    ];
    fields.into_iter().map(|(name, value): (&str, Value)| (name.to_owned(), value)).collect()
}

/// A time as all records have it.
fn stamp(time: Timestamp) -> String {
    format!("{time:.6}").replace('Z', "+0000")
}

fn address(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => address.segments().map(|segment| format!("{segment:04x}")).join(":"),
    }
}

fn of_alert(entry: &Entry, is_blocked: bool) -> Value {
    json!({
        "action": if is_blocked { "blocked" } else { "allowed" },
        "gid": entry.gid,
        "signature_id": entry.sid,
        "rev": entry.rev,
        "signature": &*entry.message,
        "category": &*entry.category,
        "severity": entry.priority,
    })
}

fn file_record(name: &str, bytes: u64, is_whole: bool, transaction: u64) -> Value {
    json!({
        "filename": name,
        "gaps": false,
        "state": if is_whole { "CLOSED" } else { "TRUNCATED" },
        "stored": false,
        "size": bytes,
        "tx_id": transaction,
    })
}

/// A handshake, as far as it was seen.
fn tls(handshake: &Handshake) -> Value {
    let mut tls = Map::new();
    let mut put = |key: &str, value: Value| _ = tls.insert(key.into(), value);
    let fingerprint = |of: &Fingerprint| json!({ "hash": of.hash, "string": of.text });
    if let Some(name) = handshake.server_name.as_deref() {
        put("sni", name.into());
    }
    if let Some(version) = version(handshake.version) {
        put("version", version.into());
    }
    if let Some(certificate) = &handshake.certificate {
        put("subject", certificate.subject.as_str().into());
        put("issuerdn", certificate.issuer.as_str().into());
        put("serial", certificate.serial.as_str().into());
        put("fingerprint", certificate.fingerprint.as_str().into());
        put("notbefore", time(certificate.not_before).into());
        put("notafter", time(certificate.not_after).into());
    }
    put("ja3", fingerprint(&handshake.ja3));
    if let Some(ja3s) = &handshake.ja3s {
        put("ja3s", fingerprint(ja3s));
    }
    put("ja4", handshake.ja4.as_str().into());
    Value::Object(tls)
}

/// A time of a certificate.
fn time(seconds: i64) -> String {
    Timestamp::from_second(seconds).unwrap_or_default().strftime("%Y-%m-%dT%H:%M:%S").to_string()
}

/// The name of a version; none where no server has answered.
fn version(number: u16) -> Option<&'static str> {
    Some(match number {
        0 => return None,
        0x300 => "SSLv3",
        0x301 => "TLSv1",
        0x302 => "TLS 1.1",
        0x303 => "TLS 1.2",
        0x304 => "TLS 1.3",
        _ => "UNDETERMINED",
    })
}

/// A request and its response, with the length of its body in a record of their own.
struct Http<'h> {
    request: Option<&'h Head>,
    response: Option<&'h Head>,
    length: Option<u64>,
}

impl Http<'_> {
    fn value(&self) -> Value {
        let line = self.request.map(|head| String::from_utf8_lossy(&head.line)).unwrap_or_default();
        let (method, target, protocol) = words(&line);
        let of_request = |name| self.request.and_then(|head| field(head, name));
        let of_response = |name| self.response.and_then(|head| field(head, name));
        let status = self.response.and_then(|head| second_word(head)?.parse::<u16>().ok());
        let host = of_request("host");
        let (hostname, port) = host.as_deref().map_or((None, None), apart);
        let kind = of_response("content-type").map(|kind| kind.split(';').next().unwrap_or_default().to_owned());
        let text = |text: &str| (!text.is_empty()).then(|| Value::from(text));
        let fields = [
            ("hostname", hostname.map(Value::from)),
            ("http_port", port.map(Value::from)),
            ("url", text(target)),
            ("http_user_agent", of_request("user-agent").map(Value::from)),
            ("http_content_type", kind.map(Value::from)),
            ("http_refer", of_request("referer").map(Value::from)),
            ("http_method", text(method)),
            ("protocol", text(protocol)),
            ("status", status.map(Value::from)),
            ("redirect", of_response("location").map(Value::from)),
            ("length", self.length.map(Value::from)),
        ];
        fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }
}

/// The method, the target, which may have blanks, and the protocol.
fn words(line: &str) -> (&str, &str, &str) {
    let (method, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
    match rest.rsplit_once([' ', '\t']).filter(|(_, last)| last.starts_with("HTTP/")) {
        Some((target, protocol)) => (method, target.trim(), protocol),
        None => (method, rest.trim(), ""),
    }
}

/// The target of a request.
fn url(request: &Head) -> String {
    words(&String::from_utf8_lossy(&request.line)).1.to_owned()
}

fn second_word(head: &Head) -> Option<String> {
    Some(String::from_utf8_lossy(&head.line).split(' ').nth(1)?.to_owned())
}

/// The first field of a name.
fn field(head: &Head, name: &str) -> Option<String> {
    let text = String::from_utf8_lossy(&head.fields);
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(known, _)| known.trim().eq_ignore_ascii_case(name)).map(|(_, value)| value.trim().to_owned())
}

/// Whether a head names the file in its body.
fn names_file(head: &Head) -> bool {
    field(head, "content-disposition").is_some_and(|value| value.to_ascii_lowercase().contains("filename"))
}

/// A host and its port, if it has one.
fn apart(host: &str) -> (Option<&str>, Option<u16>) {
    match host.rsplit_once(':').and_then(|(name, port)| Some((name, port.parse().ok()?))) {
        Some((name, port)) => (Some(name), Some(port)),
        None => (Some(host), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_first_lines_are_written_as_suricata_has_them() {
        assert_eq!(address([0xfe80, 0, 0, 0, 0, 0, 0, 1].into()), "fe80:0000:0000:0000:0000:0000:0000:0001");
        assert_eq!(words("GET /a b HTTP/1.0"), ("GET", "/a b", "HTTP/1.0"));
        assert_eq!(words("GET  /a b"), ("GET", "/a b", ""));
        assert_eq!(words("GET"), ("GET", "", ""));
    }
}
