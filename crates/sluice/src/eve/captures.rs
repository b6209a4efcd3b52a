//! Records of captures.

use jiff::Timestamp;
use rules::ids::capture::{Content, Exchange, Mail, Message, Record, Seen};
use rules::ids::{Entry, Transport};
use serde_json::{Map, Value};

use super::{Http, field, file_record, names_file, of_alert, record, tls, url};

/// An alert. Nothing is blocked in a capture, but the action is told.
pub fn alert(entry: &Entry, seen: &Seen) -> Value {
    let mut line = record("alert", at(seen.micros), seen.source, seen.target);
    line.insert("proto".into(), if seen.transport == Transport::Tcp { "TCP" } else { "UDP" }.into());
    line.insert("alert".into(), of_alert(entry, entry.action.blocks()));
    Value::Object(line)
}

/// A message or a file.
pub fn message(told: &Record) -> Value {
    let is_to_client = matches!(&told.content, Content::File(file) if file.is_to_client);
    let (source, target) = if is_to_client { (told.server, told.client) } else { (told.client, told.server) };
    let kind = match &told.content {
        Content::Http(_) => "http",
        Content::Smtp(_) => "smtp",
        Content::Tls(_) => "tls",
        Content::File(_) => "fileinfo",
    };
    let mut line = record(kind, at(told.micros), source, target);
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
    }
    if !matches!(told.content, Content::Tls(_) | Content::File(_)) {
        line.insert("tx_id".into(), told.transaction.into());
    }
    Value::Object(line)
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
