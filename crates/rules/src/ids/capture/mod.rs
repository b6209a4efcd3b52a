//! A host of rules for captures and for packets as they come: packets become flows, flows become messages, and rules are tried on them.
//!
//! Its readers of HTTP, SMTP, DNS and TLS serve rules alone, and read what peers of rules read; so they stand here and not in `proto`,
//! whose halves are strict because they decide on traffic. It believes checksums.

mod coding;
mod conversation;
mod dns;
mod exchange;
mod faults;
mod fragments;
mod head;
mod http;
mod http2;
mod observer;
mod packet;
mod parts;
mod pcap;
mod record;
mod smtp;
mod stream;
mod tls;
mod unread;
mod uri;
mod window;

use super::flow::Peer;
use super::rule::Transport;
use super::set::RuleSet;
pub(super) use head::{fill_request, fill_response};
pub use observer::{Meter, Observer};
pub use packet::Link;
pub use record::{Anomaly, Content, End, Exchange, File, Handshake, Layer, Mail, Message, Record, State, Summary};
pub(super) use smtp::field_buffer;
pub use tls::offered;
pub use unread::{Kind, Unread};

/// An alert of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// The number of the flow, as all its records and alerts have it.
    pub flow: u64,
    /// When the packet was captured, in microseconds.
    pub micros: u64,
    /// The sender.
    pub source: Peer,
    /// The receiver.
    pub target: Peer,
    /// The transport.
    pub transport: Transport,
    /// The place of the rule in [`RuleSet::rules`].
    pub rule: usize,
}

/// How often it is looked for flows that are silent, in the time of the packets.
const EXPIRE_EVERY_MICROS: u64 = 1_000_000;

/// Tries rules on a capture; none where it is none.
pub fn alerts(rules: &RuleSet, capture: &[u8]) -> Option<Vec<Seen>> {
    Some(observe(rules, capture)?.alerts)
}

/// A capture that was read.
#[derive(Debug)]
pub struct Observed {
    /// Alerts.
    pub alerts: Vec<Seen>,
    /// Messages, files and flows.
    pub records: Vec<Record>,
    /// Bytes at its end that are no packet.
    pub rest: usize,
    /// Counts of packets that were not read.
    pub unread: Unread,
}

/// Tries rules on a capture, and tells its messages, files and flows; none where it is none.
pub fn observe(rules: &RuleSet, capture: &[u8]) -> Option<Observed> {
    let mut observer = Observer::new(rules, None);
    let mut capture = pcap::Capture::new(capture)?;
    let mut expired = 0;
    for captured in capture.by_ref() {
        if captured.micros.saturating_sub(expired) >= EXPIRE_EVERY_MICROS {
            expired = captured.micros;
            observer.expire(captured.micros);
        }
        observer.packet(captured.micros, Link(captured.link), captured.bytes);
    }
    observer.finish();
    let unread = observer.unread().clone();
    Some(Observed { alerts: observer.alerts(), records: observer.records(), rest: capture.rest(), unread })
}

/// Fuzz body: a capture against rules of several kinds.
pub fn fuzz_capture(data: &[u8]) {
    let mut loader = super::set::Loader::new(super::limits::Limits { window_bytes: 512, ..Default::default() });
    loader.file("rules", RULES);
    let rules = loader.finish();
    assert!(rules.problems().is_empty(), "{:?}", rules.problems());
    let _ = alerts(&rules, data);
}

const RULES: &[u8] = br#"alert http any any -> any any (http.uri; content:"/a"; pcre:"/b+/R"; sid:1;)
alert http any any -> any any (file.data; content:"a"; content:!"b"; distance:1; within:9; sid:2;)
alert tcp any any -> any any (content:"|00|"; byte_jump:2,1,relative; isdataat:2,relative; sid:3;)
alert smtp any any -> any any (email.from; content:"@"; file.data; content:"MZ"; startswith; sid:4;)
alert dns any any -> any any (dns.query; dotprefix; content:".test"; endswith; sid:5;)
"#;
