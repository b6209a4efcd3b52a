//! Records of captures.

use jiff::Timestamp;
use rules::ids::capture::{Anomaly, Content, End, Exchange, Layer, Mail, Message, Record, Seen, State, Summary};
use rules::ids::{Direction, Entry, Peer, Transport};
use serde_json::{Map, Value, json};

use super::{Http, field, file_record, names_file, of_alert, record, stamp, tls, url};

/// An alert. Nothing is blocked in a capture, but the action is told.
pub fn alert(entry: &Entry, seen: &Seen) -> Value {
    let mut line = line("alert", seen.flow, seen.micros, [seen.source, seen.target], seen.transport);
    line.insert("alert".into(), of_alert(entry, entry.action.blocks()));
    Value::Object(line)
}

/// A message, a file, a flow or an anomaly.
pub fn message(told: &Record) -> Value {
    let is_to_client = match &told.content {
        Content::File(file) => file.is_to_client,
        Content::Anomaly(anomaly) => anomaly.direction == Direction::ToClient,
        _ => false,
    };
    let ends = if is_to_client { [told.server, told.client] } else { [told.client, told.server] };
    let kind = match &told.content {
        Content::Http(_) => "http",
        Content::Smtp(_) => "smtp",
        Content::Tls(_) => "tls",
        Content::File(_) => "fileinfo",
        Content::Flow(_) => "flow",
        Content::Anomaly(_) => "anomaly",
    };
    let mut line = line(kind, told.flow, told.micros, ends, told.transport);
    match &told.content {
        Content::Http(exchange) => http(exchange, Some(exchange.bytes), &mut line),
        Content::Smtp(mail) => smtp(mail, &mut line),
        Content::Tls(handshake) => _ = line.insert("tls".into(), tls(handshake)),
        Content::File(file) => {
            let name = match &file.of {
                Message::Http(exchange) => {
                    line.insert("app_proto".into(), "http".into());
                    http(exchange, None, &mut line);
                    file_name(exchange, file.is_to_client)
                }
                Message::Smtp(mail) => {
                    line.insert("app_proto".into(), "smtp".into());
                    smtp(mail, &mut line);
                    String::new()
                }
            };
            let name = file.name.as_deref().map_or(name, text);
            line.insert("fileinfo".into(), file_record(&name, file.bytes, file.is_whole, told.transaction));
        }
        Content::Flow(summary) => flow(summary, told, &mut line),
        Content::Anomaly(found) => _ = line.insert("anomaly".into(), anomaly(found)),
    }
    let is_of_transaction = match &told.content {
        Content::Http(_) | Content::Smtp(_) => true,
        Content::Anomaly(anomaly) => anomaly.layer != Layer::Stream,
        Content::Tls(_) | Content::File(_) | Content::Flow(_) => false,
    };
    if is_of_transaction {
        line.insert("tx_id".into(), told.transaction.into());
    }
    Value::Object(line)
}

/// Counts of an interface.
#[derive(Debug, Clone, Copy, Default)]
pub struct Statistics {
    /// Packets, as the kernel has counted them.
    pub passed: jail::Passed,
    /// Segments and datagrams that belong to flows.
    pub followed: u64,
    /// Flows that have begun.
    pub flows: u64,
    /// Flows that were ended because there were too many, or they held too much.
    pub forced: u64,
    /// Alerts.
    pub alerts: u64,
}

/// Counts of an interface as a record.
pub fn statistics(counts: &Statistics, micros: u64, began_micros: u64) -> Value {
    json!({
        "timestamp": stamp(at(micros)),
        "event_type": "stats",
        "stats": {
            "uptime": micros.saturating_sub(began_micros) / 1_000_000,
            "capture": { "kernel_packets": counts.passed.packets, "kernel_drops": counts.passed.dropped },
            "decoder": { "pkts": counts.followed },
            "flow": { "total": counts.flows, "forced": counts.forced },
            "detect": { "alert": counts.alerts },
        },
    })
}

/// The fields that each record has.
fn line(kind: &str, flow: u64, micros: u64, ends: [Peer; 2], transport: Transport) -> Map<String, Value> {
    let mut line = record(kind, at(micros), ends[0], ends[1]);
    line.insert("flow_id".into(), flow.into());
    line.insert("proto".into(), if transport == Transport::Tcp { "TCP" } else { "UDP" }.into());
    line
}

fn flow(summary: &Summary, told: &Record, line: &mut Map<String, Value>) {
    line.insert("ip_v".into(), if told.client.0.is_ipv4() { 4 } else { 6 }.into());
    if let Some(app) = summary.app {
        line.insert("app_proto".into(), app.into());
    }
    let seconds = |micros: u64| micros / 1_000_000;
    let flow = json!({
        "pkts_toserver": summary.packets[0],
        "pkts_toclient": summary.packets[1],
        "bytes_toserver": summary.bytes[0],
        "bytes_toclient": summary.bytes[1],
        "start": stamp(at(summary.first_micros)),
        "end": stamp(at(summary.last_micros)),
        "age": seconds(summary.last_micros).saturating_sub(seconds(summary.first_micros)),
        "state": match summary.state {
            State::New | State::Accepted => "new",
            State::Established | State::Closing => "established",
            State::Closed => "closed",
        },
        "reason": match summary.end {
            End::Shutdown => "shutdown",
            End::Timeout => "timeout",
            End::Forced => "forced",
            End::Reuse => "tcp_reuse",
        },
        "alerted": summary.has_alerted,
    });
    line.insert("flow".into(), flow);
    if told.transport == Transport::Tcp {
        line.insert("tcp".into(), tcp(summary));
    }
}

/// Names of the flags of TCP, the lowest bit first.
const FLAGS: [&str; 8] = ["fin", "syn", "rst", "psh", "ack", "urg", "ecn", "cwr"];

fn tcp(summary: &Summary) -> Value {
    let [of_client, of_server] = summary.flags;
    let all = of_client | of_server;
    let state = match summary.state {
        State::New => "syn_sent",
        State::Accepted => "syn_recv",
        State::Established => "established",
        State::Closing => "fin_wait1",
        State::Closed => "closed",
    };
    let mut tcp = json!({
        "tcp_flags": format!("{all:02x}"),
        "tcp_flags_ts": format!("{of_client:02x}"),
        "tcp_flags_tc": format!("{of_server:02x}"),
        "state": state,
    });
    for (_, name) in FLAGS.iter().enumerate().filter(|(bit, _)| all >> bit & 1 != 0) {
        tcp[*name] = true.into();
    }
    tcp
}

fn anomaly(found: &Anomaly) -> Value {
    match found.layer {
        Layer::Parser(app) => {
            json!({ "app_proto": app, "type": "applayer", "event": found.event, "layer": "proto_parser" })
        }
        Layer::Stream => json!({ "type": "stream", "event": found.event }),
    }
}

fn at(micros: u64) -> Timestamp {
    Timestamp::from_microsecond(i64::try_from(micros).unwrap_or(i64::MAX)).unwrap_or_default()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn http(exchange: &Exchange, length: Option<u64>, line: &mut Map<String, Value>) {
    let (request, response) = (exchange.request.as_deref(), exchange.response.as_deref());
    line.insert("http".into(), Http { request, response, length }.value());
}

/// The name that a body has by its head, or else the target of the request.
fn file_name(exchange: &Exchange, is_to_client: bool) -> String {
    let head = if is_to_client { exchange.response.as_deref() } else { exchange.request.as_deref() };
    let value = head.filter(|head| names_file(head)).and_then(|head| field(head, "content-disposition"));
    let value = value.as_deref().and_then(|value| {
        let at = value.to_ascii_lowercase().find("filename=")?;
        value.get(at..)?.split_once('=')?.1.split(';').next()
    });
    match value {
        Some(value) => value.trim().trim_matches('"').to_owned(),
        None => exchange.request.as_deref().map(url).unwrap_or_default(),
    }
}

fn smtp(mail: &Mail, line: &mut Map<String, Value>) {
    let recipients: Vec<String> = mail.recipients.iter().map(|path| text(path)).collect();
    let envelope = [
        ("helo", Some(text(&mail.hello)).filter(|hello| !hello.is_empty()).map(Value::from)),
        ("mail_from", Some(text(&mail.sender).into())),
        ("rcpt_to", (!recipients.is_empty()).then(|| recipients.into())),
    ];
    let known = |pairs: Vec<(&str, Option<Value>)>| -> Value {
        pairs.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    };
    line.insert("smtp".into(), known(envelope.into()));
    let Some(fields) = &mail.fields else { return };
    let one = |name: &str| {
        let found = fields.iter().find(|(known, _)| known.eq_ignore_ascii_case(name.as_bytes()));
        found.map(|(_, value)| Value::from(text(value).trim()))
    };
    let list = |name: &str| {
        let value = one(name)?;
        Some(Value::from(value.as_str()?.split(',').map(str::trim).collect::<Vec<_>>()))
    };
    let files: Vec<String> = mail.files.iter().map(|(name, _)| text(name)).collect();
    let email = vec![
        ("status", Some("PARSE_DONE".into())),
        ("from", one("from")),
        ("to", list("to")),
        ("cc", list("cc")),
        ("date", one("date")),
        ("subject", one("subject")),
        ("message_id", one("message-id")),
        ("x_mailer", one("x-mailer")),
        ("attachment", (!files.is_empty()).then(|| files.into())),
    ];
    line.insert("email".into(), known(email));
}
