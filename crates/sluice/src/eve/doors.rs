//! Records of objects at the doors.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use edge::message::intrusion::{Handshake, Outcome, Scene};
use flow::{Alert, ObjectReport, Protocol};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use rules::ids::capture::offered;
use rules::ids::{Certificate, Entry};
use serde_json::{Map, Value, json};
use stream::Class;

use super::{Http, file_record, names_file, of_alert, record, stamp, tls, url};
use crate::config::ids::Record;

/// The ends of a conversation, the sender of what matched first.
pub struct Ends {
    pub source: SocketAddr,
    pub target: SocketAddr,
    pub is_to_client: bool,
}

impl Ends {
    pub fn of(alert: Alert, scene: &Scene) -> Ends {
        Ends::sent_by(alert.is_to_client, scene)
    }

    /// The ends, the server first where it is the sender.
    fn sent_by(is_server: bool, scene: &Scene) -> Ends {
        let unknown = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let client = (scene.flow.client.unwrap_or(unknown), 0).into();
        let client = scene.watched.client.unwrap_or(client);
        let server = scene.watched.server.unwrap_or((unknown, 0).into());
        let (source, target) = if is_server { (server, client) } else { (client, server) };
        Ends { source, target, is_to_client: is_server }
    }
}

/// An alert as a line of Suricata's fast.log.
pub fn fast(entry: &Entry, ends: &Ends, now: Timestamp, is_blocked: bool) -> String {
    let at = TimeZone::UTC.to_datetime(now);
    let (hour, minute, second, micros) = (at.hour(), at.minute(), at.second(), at.subsec_nanosecond() / 1000);
    let when = format!("{:02}/{:02}/{}-{hour:02}:{minute:02}:{second:02}.{micros:06}", at.month(), at.day(), at.year());
    let drop = if is_blocked { "[Drop] " } else { "" };
    let Words { of_rule, class, ends } = Words::of(entry, ends);
    let line = format!("{when}  {drop}[**] {of_rule} [**] {class} {ends}");
    line.replace(char::is_control, "?")
}

/// An alert as a datagram of the system log (RFC 3164, without the time, which the log adds), in the words of Suricata.
pub fn syslog(entry: &Entry, ends: &Ends, is_blocked: bool) -> String {
    let drop = if is_blocked { "[Drop] " } else { "" };
    let Words { of_rule, class, ends } = Words::of(entry, ends);
    let line = format!("{drop}{of_rule} {class} {ends}").replace(char::is_control, "?");
    format!("<{SYSLOG_PRIORITY}>sluice[{}]: {line}", std::process::id())
}

/// Facility local5, level info, as Suricata's.
const SYSLOG_PRIORITY: u32 = 21 << 3 | 6;

/// The words that all lines about an alert have.
struct Words {
    of_rule: String,
    class: String,
    ends: String,
}

impl Words {
    fn of(entry: &Entry, ends: &Ends) -> Words {
        let Entry { gid, sid, rev, message, category, priority, .. } = entry;
        Words {
            of_rule: format!("[{gid}:{sid}:{rev}] {message}"),
            class: format!("[Classification: {category}] [Priority: {priority}]"),
            ends: format!("{{TCP}} {} -> {}", ends.source, ends.target),
        }
    }
}

/// An alert as Suricata's EVE has it.
pub fn alert(entry: &Entry, scene: &Scene, ends: &Ends, now: Timestamp, is_blocked: bool) -> Value {
    let mut line = base("alert", scene, ends, now);
    line.insert("app_proto".into(), app(scene.flow.protocol).into());
    line.insert("direction".into(), if ends.is_to_client { "to_client" } else { "to_server" }.into());
    line.insert("alert".into(), of_alert(entry, is_blocked));
    describe(scene, None, &mut line);
    Value::Object(line)
}

/// A handshake, as a record; none where the client has begun another protocol. It is a flow of its own, as the requests within are.
pub fn handshake(seen: &Handshake, now: Timestamp) -> Option<Value> {
    let mut told = offered(&seen.offer)?;
    told.version = seen.version;
    told.certificate = seen.certificate.as_deref().and_then(Certificate::read);
    let server = seen.server.unwrap_or((Ipv4Addr::UNSPECIFIED, 0).into());
    let ends = [seen.client, server].map(|end| (end.ip(), end.port()));
    let mut line = record("tls", now, ends[0], ends[1]);
    line.insert("tls".into(), tls(&told));
    Some(Value::Object(line))
}

/// Records of an object that is over: of its protocol, of the flow, and of each anomaly. None of a request that goes on, since its
/// response is told with it, but its anomalies.
pub fn ended<'o>(
    outcome: Outcome<'o>,
    scene: &'o Scene,
    now: Timestamp,
) -> impl Iterator<Item = (Record, Value)> + use<'o> {
    let anomalies = outcome.findings.iter().filter(|spotted| is_anomaly(spotted.finding.class));
    let anomalies = anomalies.map(move |spotted| (Record::Anomaly, anomaly(&spotted.finding.name, scene, now)));
    let goes_on = app(scene.flow.protocol) == "http" && !outcome.is_blocked && scene.watched.response.is_none();
    let flow = (!goes_on).then(|| (Record::Flow, object(outcome, scene, now)));
    anomalies.chain(transaction(outcome, goes_on, scene, now)).chain(flow)
}

fn transaction(outcome: Outcome<'_>, goes_on: bool, scene: &Scene, now: Timestamp) -> Option<(Record, Value)> {
    let (kind, name) = match app(scene.flow.protocol) {
        "http" if !goes_on => (Record::Http, "http"),
        "smtp" => (Record::Smtp, "smtp"),
        _ => return None,
    };
    let mut line = base(name, scene, &Ends::sent_by(false, scene), now);
    line.insert("tx_id".into(), 0.into());
    describe(scene, Some(if scene.watched.response.is_some() { outcome.bytes } else { 0 }), &mut line);
    if kind == Record::Smtp {
        line.insert("email".into(), json!({ "status": "PARSE_DONE" }));
    }
    Some((kind, Value::Object(line)))
}

/// An object as a flow, of whose packets nothing is known.
fn object(outcome: Outcome<'_>, scene: &Scene, now: Timestamp) -> Value {
    let mut line = base("flow", scene, &Ends::sent_by(false, scene), now);
    line.insert("app_proto".into(), app(scene.flow.protocol).into());
    let began = Timestamp::try_from(scene.since).unwrap_or(now);
    let side = if is_of_server(scene) { "bytes_toclient" } else { "bytes_toserver" };
    let mut flow = json!({
        "start": stamp(began),
        "end": stamp(now),
        "age": now.as_second().saturating_sub(began.as_second()).max(0),
        "state": "closed",
        "reason": "shutdown",
        "alerted": outcome.has_alerted,
    });
    flow[side] = outcome.bytes.into();
    if outcome.is_blocked {
        flow["action"] = "drop".into();
    }
    line.insert("flow".into(), flow);
    Value::Object(line)
}

fn anomaly(event: &str, scene: &Scene, now: Timestamp) -> Value {
    let mut line = base("anomaly", scene, &Ends::sent_by(is_of_server(scene), scene), now);
    let app = app(scene.flow.protocol);
    let anomaly = json!({ "app_proto": app, "type": "applayer", "event": event, "layer": "proto_parser" });
    line.insert("tx_id".into(), 0.into());
    line.insert("anomaly".into(), anomaly);
    Value::Object(line)
}

/// Whether findings of a class are about the form of a content.
const fn is_anomaly(class: Class) -> bool {
    matches!(
        class,
        Class::Truncated | Class::Malformed | Class::TwoReadings | Class::Ambiguous | Class::Unopened | Class::Limit
    )
}

/// Whether the server has sent the object.
fn is_of_server(scene: &Scene) -> bool {
    scene.watched.response.is_some() || matches!(scene.flow.protocol, Protocol::Pop3 | Protocol::Imap)
}

/// A file, as a record; none of containers, of parts without a name, and of second readings.
pub fn file(file: &ObjectReport, scene: &Scene, now: Timestamp) -> Option<Value> {
    let protocol = app(scene.flow.protocol);
    let is_body = protocol == "http" && file.id == 0;
    if file.second_reading || file.file_type.is_none() || is_body && file.bytes == 0 {
        return None;
    }
    let response = scene.watched.response.as_ref();
    let is_named = response.or(scene.watched.request.as_ref()).is_some_and(names_file);
    let name = match &scene.watched.request {
        Some(request) if is_body && !is_named => url(request),
        _ => file.name.as_deref()?.to_owned(),
    };
    let mut line = base("fileinfo", scene, &Ends::sent_by(is_of_server(scene), scene), now);
    line.insert("app_proto".into(), protocol.into());
    describe(scene, None, &mut line);
    let mut about = file_record(&name, file.bytes, true, 0);
    if let Some(sha256) = &file.sha256 {
        about["sha256"] = hex(sha256).into();
    }
    line.insert("fileinfo".into(), about);
    Some(Value::Object(line))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The fields that each record has.
fn base(kind: &str, scene: &Scene, ends: &Ends, now: Timestamp) -> Map<String, Value> {
    let mut line = record(kind, now, (ends.source.ip(), ends.source.port()), (ends.target.ip(), ends.target.port()));
    // Readers take numbers for floating point.
    line.insert("flow_id".into(), (flow(scene) >> 12).into());
    line.insert("sluice_id".into(), (&*scene.id).into());
    line
}

/// The number of a flow: each object is one.
pub fn flow(scene: &Scene) -> u64 {
    scene.id.bytes().fold(0, |sum: u64, byte| sum.wrapping_mul(31).wrapping_add(byte.into()))
}

const fn app(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Http | Protocol::Icap => "http",
        Protocol::Pop3 => "pop3",
        Protocol::Imap => "imap",
        _ => "smtp",
    }
}

/// Adds what is known of the conversation; `length` is that of a response, in a record of its own.
fn describe(scene: &Scene, length: Option<u64>, fields: &mut Map<String, Value>) {
    if let Some(name) = &scene.watched.server_name {
        fields.insert("tls".into(), json!({ "sni": &**name }));
    }
    if let Some(request) = &scene.watched.request {
        let http = Http { request: Some(request), response: scene.watched.response.as_ref(), length };
        fields.insert("http".into(), http.value());
    }
    if app(scene.flow.protocol) == "smtp" {
        let recipients: Vec<String> = scene.flow.recipients.iter().map(|rcpt| format!("<{rcpt}>")).collect();
        let from = format!("<{}>", scene.flow.sender);
        fields.insert("smtp".into(), json!({ "helo": &*scene.flow.hello, "mail_from": from, "rcpt_to": recipients }));
    }
}
