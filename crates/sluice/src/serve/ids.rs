//! Intrusion rules, as processes that inspect are handed them, and the one place that counts and writes down their alerts.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use edge::message::intrusion::{Scene, Sentinel};
use edge::metrics::Metrics;
use flow::{Alert, Protocol, wire};
use inspect::IntrusionRules;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use rules::ids::{Counts, Entry, Matched, Register};
use serde_json::{Map, Value, json};

use super::scorer::sealed;
use crate::config::{Config, Isolation};
use crate::output::Failure;

/// Rules that do not load and that the log names.
const PROBLEMS_SHOWN: usize = 10;

/// Intrusion rules, ready to be used.
pub struct Intrusion {
    /// Hears of matches at the doors.
    pub lookout: Arc<Lookout>,
    /// The rules, where this process inspects.
    pub rules: Option<IntrusionRules>,
    /// The file for those that inspect.
    file: Option<OwnedFd>,
}

/// Counts matches and writes alerts down.
pub struct Lookout {
    register: Register,
    counts: Arc<Mutex<Counts>>,
    eve: Option<Mutex<File>>,
    fast: Option<Mutex<File>>,
    metrics: Arc<Metrics>,
}

impl Intrusion {
    /// Reads the rules of the configuration; none where it names none. Rules that do not load are named in the log. Counts of
    /// `old` go on.
    ///
    /// # Errors
    /// When a file cannot be read, or a log cannot be opened.
    pub fn load(
        config: &Config,
        metrics: &Arc<Metrics>,
        old: Option<&Intrusion>,
    ) -> Result<Option<Intrusion>, Failure> {
        let Some(settings) = config.ids.as_ref().filter(|ids| !ids.rules.is_empty()) else { return Ok(None) };
        let changes = settings.changes()?;
        changes.problems().iter().for_each(|problem| tracing::warn!(%problem, "changes of intrusion rules"));
        let files = settings.collect(&changes)?;
        let rules = files.compile();
        let (set, census) = (rules.set(), rules.set().census());
        set.problems().iter().take(PROBLEMS_SHOWN).for_each(|problem| tracing::warn!(%problem, "intrusion rule"));
        let refused: usize = census.refused.values().sum();
        tracing::info!(rules = census.rules, active = census.active, refused, "intrusion rules");
        let lookout = Lookout {
            register: Register::of(set),
            counts: old.map(|old| old.lookout.counts.clone()).unwrap_or_default(),
            eve: settings.eve.as_deref().map(append).transpose()?,
            fast: settings.fast.as_deref().map(append).transpose()?,
            metrics: metrics.clone(),
        };
        let is_here = config.isolation == Isolation::None;
        let file = if is_here { None } else { Some(sealed(&wire::write(&files, Vec::new()))?) };
        Ok(Some(Intrusion { lookout: Arc::new(lookout), rules: is_here.then_some(rules), file }))
    }

    /// The file, for one more set of processes.
    ///
    /// # Errors
    /// When there are no descriptors left.
    pub fn file(&self) -> std::io::Result<Option<OwnedFd>> {
        self.file.as_ref().map(OwnedFd::try_clone).transpose()
    }
}

/// A log that lines are appended to.
fn append(path: &Path) -> Result<Mutex<File>, Failure> {
    let file = OpenOptions::new().append(true).create(true).open(path);
    Ok(Mutex::new(file.map_err(|error| format!("ids: {}: {error}", path.display()))?))
}

impl Sentinel for Lookout {
    fn hear(&self, alert: Alert, scene: &Scene) -> Option<String> {
        let place = alert.rule as usize;
        let entry = self.register.get(place)?;
        let ends = Ends::of(alert, scene);
        let now = Timestamp::now();
        let matched = Matched {
            source: ends.source.ip(),
            target: ends.target.ip(),
            flow: scene.id.bytes().fold(0, |sum: u64, byte| sum.wrapping_mul(31).wrapping_add(byte.into())),
            now_ms: u64::try_from(now.as_millisecond()).unwrap_or_default(),
        };
        let effect = {
            let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
            self.register.effect(place, matched, &mut counts)
        };
        if effect.blocks {
            self.metrics.ids_blocked_total.add(1);
        }
        if effect.tells {
            self.tell(entry, scene, &ends, matched.flow, now, effect.blocks);
        }
        effect.blocks.then(|| format!("Intrusion.{}", entry.sid))
    }
}

/// The ends of a conversation, the sender of what matched first.
struct Ends {
    source: SocketAddr,
    target: SocketAddr,
    is_to_client: bool,
}

impl Ends {
    fn of(alert: Alert, scene: &Scene) -> Ends {
        let unknown = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let client = (scene.flow.client.unwrap_or(unknown), 0).into();
        let client = scene.watched.client.unwrap_or(client);
        let server = scene.watched.server.unwrap_or((unknown, 0).into());
        let (source, target) = if alert.is_to_client { (server, client) } else { (client, server) };
        Ends { source, target, is_to_client: alert.is_to_client }
    }
}

impl Lookout {
    fn tell(&self, entry: &Entry, scene: &Scene, ends: &Ends, flow: u64, now: Timestamp, is_blocked: bool) {
        self.metrics.ids_alerts_total.add(1);
        tracing::info!(
            id = &*scene.id,
            sid = entry.sid,
            rule = &*entry.message,
            source = %ends.source,
            target = %ends.target,
            blocked = is_blocked,
            "intrusion"
        );
        if let Some(eve) = &self.eve {
            write(eve, &eve_line(entry, scene, ends, flow, now, is_blocked).to_string());
        }
        if let Some(fast) = &self.fast {
            write(fast, &fast_line(entry, ends, now, is_blocked));
        }
    }
}

/// Appends a line, whole or not at all as far as the system goes.
fn write(log: &Mutex<File>, line: &str) {
    let mut file = log.lock().unwrap_or_else(PoisonError::into_inner);
    if let Err(error) = file.write_all(format!("{line}\n").as_bytes()) {
        tracing::error!(%error, "cannot write an alert");
    }
}

fn fast_line(entry: &Entry, ends: &Ends, now: Timestamp, is_blocked: bool) -> String {
    let at = TimeZone::UTC.to_datetime(now);
    let (hour, minute, second, micros) = (at.hour(), at.minute(), at.second(), at.subsec_nanosecond() / 1000);
    let when = format!("{:02}/{:02}/{}-{hour:02}:{minute:02}:{second:02}.{micros:06}", at.month(), at.day(), at.year());
    let Entry { gid, sid, rev, message, category, priority, .. } = entry;
    let drop = if is_blocked { "[Drop] " } else { "" };
    let (source, target) = (ends.source, ends.target);
    let line = format!(
        "{when}  {drop}[**] [{gid}:{sid}:{rev}] {message} [**] [Classification: {category}] [Priority: {priority}] {{TCP}} {source} -> {target}"
    );
    line.replace(char::is_control, "?")
}

/// An alert as Suricata's EVE has it.
fn eve_line(entry: &Entry, scene: &Scene, ends: &Ends, flow: u64, now: Timestamp, is_blocked: bool) -> Value {
    let mut line = json!({
        "timestamp": format!("{now:.6}").replace('Z', "+0000"),
        // Readers take numbers for floating point.
        "flow_id": flow >> 12,
        "event_type": "alert",
        "src_ip": ends.source.ip().to_string(),
        "src_port": ends.source.port(),
        "dest_ip": ends.target.ip().to_string(),
        "dest_port": ends.target.port(),
        "proto": "TCP",
        "app_proto": app(scene.flow.protocol),
        "direction": if ends.is_to_client { "to_client" } else { "to_server" },
        "alert": {
            "action": if is_blocked { "blocked" } else { "allowed" },
            "gid": entry.gid,
            "signature_id": entry.sid,
            "rev": entry.rev,
            "signature": &*entry.message,
            "category": &*entry.category,
            "severity": entry.priority,
        },
        "sluice_id": &*scene.id,
    });
    if let Value::Object(fields) = &mut line {
        describe(scene, fields);
    }
    line
}

const fn app(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Http | Protocol::Icap => "http",
        Protocol::Pop3 => "pop3",
        Protocol::Imap => "imap",
        _ => "smtp",
    }
}

/// Adds what is known of the conversation.
fn describe(scene: &Scene, fields: &mut Map<String, Value>) {
    if let Some(name) = &scene.watched.server_name {
        fields.insert("tls".into(), json!({ "sni": &**name }));
    }
    if let Some(head) = &scene.watched.request {
        let line = String::from_utf8_lossy(&head.line);
        let mut words = line.split(' ');
        let field = |of: &flow::Head, name: &str| {
            let text = String::from_utf8_lossy(&of.fields).into_owned();
            let mut lines = text.lines().filter_map(|line| line.split_once(':'));
            lines.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim().to_owned())
        };
        let response = scene.watched.response.as_ref();
        let status = response.and_then(|of| String::from_utf8_lossy(&of.line).split(' ').nth(1)?.parse::<u16>().ok());
        let host = field(head, "host");
        let (hostname, port) = host.as_deref().map_or((None, None), apart);
        let http = [
            ("hostname", hostname.map(Value::from)),
            ("http_port", port.map(Value::from)),
            ("http_method", words.next().map(Value::from)),
            ("url", words.next().map(Value::from)),
            ("protocol", words.next().map(Value::from)),
            ("http_user_agent", field(head, "user-agent").map(Value::from)),
            ("http_refer", field(head, "referer").map(Value::from)),
            ("http_content_type", response.and_then(|of| field(of, "content-type")).map(Value::from)),
            ("status", status.map(Value::from)),
        ];
        // As Suricata has it, what is not there has no key.
        let known = http.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        fields.insert("http".into(), Value::Object(known.collect()));
    }
    if app(scene.flow.protocol) == "smtp" {
        let recipients: Vec<String> = scene.flow.recipients.iter().map(|rcpt| format!("<{rcpt}>")).collect();
        let from = format!("<{}>", scene.flow.sender);
        fields.insert("smtp".into(), json!({ "helo": &*scene.flow.hello, "mail_from": from, "rcpt_to": recipients }));
    }
}

/// A host and its port, if it has one.
fn apart(host: &str) -> (Option<&str>, Option<u16>) {
    match host.rsplit_once(':').and_then(|(name, port)| Some((name, port.parse().ok()?))) {
        Some((name, port)) => (Some(name), Some(port)),
        None => (Some(host), None),
    }
}
