//! Rules tried on one object at a door: a request, a response, a mail.
//!
//! A response is tried with its request in front of it, so that bits that rules set on a request are there; what matched on the
//! request alone was told with the request. Bits of addresses live as long as the object. How often a rule may alert is counted
//! by the host ([`Register`](super::Register)).

use core::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use flow::{Protocol, Watched};

use super::body::Open;
use super::buffer::{App, Buffer, Direction};
use super::capture::{field_buffer, fill_request, fill_response};
use super::flow::{Desk, Flow, Peer, Site, Tuple};
use super::rule::Transport;
use super::set::RuleSet;
use super::transaction::Transaction;

/// Rules over one object.
#[derive(Debug)]
pub struct Watch {
    rules: Arc<RuleSet>,
    site: Site,
    flow: Flow,
    transaction: Transaction,
    app: App,
    /// The way of the object.
    direction: Direction,
    parts: u64,
    alerts: Vec<flow::Alert>,
}

impl Watch {
    /// Rules over an object of which this is known; none where its protocol is none that rules know.
    pub fn new(rules: Arc<RuleSet>, flow: &flow::Flow, watched: &Watched) -> Option<Watch> {
        let (app, direction) = match flow.protocol {
            Protocol::Smtp | Protocol::Lmtp | Protocol::Milter => (App::Smtp, Direction::ToServer),
            Protocol::Pop3 => (App::Pop3, Direction::ToClient),
            Protocol::Imap => (App::Imap, Direction::ToClient),
            Protocol::Http | Protocol::Icap if watched.response.is_some() => (App::Http, Direction::ToClient),
            Protocol::Http | Protocol::Icap => (App::Http, Direction::ToServer),
            _ => return None,
        };
        let unknown = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let client = watched.client.map_or((flow.client.unwrap_or(unknown), 0), |at| (at.ip(), at.port()));
        let server: Peer = watched.server.map_or((unknown, 0), |at| (at.ip(), at.port()));
        let mut site = Site::uncounted();
        let tuple = Tuple { client, server, transport: Transport::Tcp };
        let mut watch = Watch {
            flow: Flow::new(tuple, Some(app), &mut site),
            rules,
            site,
            transaction: Transaction::new(),
            app,
            direction,
            parts: 0,
            alerts: Vec::new(),
        };
        watch.begin(flow, watched, tuple);
        Some(watch)
    }

    /// Tries what is known before the content.
    fn begin(&mut self, flow: &flow::Flow, watched: &Watched, tuple: Tuple) {
        if let Some(name) = watched.server_name.as_deref().filter(|_| self.direction == Direction::ToServer) {
            self.hello(name, tuple);
        }
        let rules = self.rules.clone();
        if self.app == App::Smtp {
            let mut fill = |buffer, text: &str| {
                if !text.is_empty() {
                    self.transaction.fill(&rules, Direction::ToServer, buffer, text.as_bytes());
                }
            };
            fill(Buffer::SmtpHelo, &flow.hello);
            fill(Buffer::SmtpMailFrom, &format!("<{}>", flow.sender));
            flow.recipients.iter().for_each(|rcpt| fill(Buffer::SmtpRcptTo, &format!("<{rcpt}>")));
        }
        if let Some(head) = &watched.request {
            let way = Direction::ToServer;
            let mut fill = |buffer, bytes: &[u8]| self.transaction.fill(&rules, way, buffer, bytes);
            fill_request(&head.line, &head.fields, &mut fill);
            self.stream(way, &[&head.line, &b"\r\n"[..], &head.fields, b"\r\n"].concat());
            match self.direction {
                Direction::ToServer => self.inspect(),
                Direction::ToClient => self.end_request(),
            }
        }
        if let Some(head) = &watched.response {
            let way = Direction::ToClient;
            let mut fill = |buffer, bytes: &[u8]| self.transaction.fill(&rules, way, buffer, bytes);
            fill_response(&head.line, &head.fields, &mut fill);
            self.stream(way, &[&head.line, &b"\r\n"[..], &head.fields, b"\r\n"].concat());
        }
        self.inspect();
    }

    /// The handshake is a flow of its own protocol.
    fn hello(&mut self, name: &str, tuple: Tuple) {
        let (mut flow, mut transaction) = (Flow::new(tuple, Some(App::Tls), &mut self.site), Transaction::new());
        transaction.fill(&self.rules, Direction::ToServer, Buffer::TlsSni, name.as_bytes());
        let mut desk = Desk { rules: &self.rules, site: &mut self.site, now_ms: 0 };
        flow.end(&mut transaction, Direction::ToServer, &mut desk);
        std::mem::swap(&mut flow, &mut self.flow);
        self.collect();
        self.flow = flow;
    }

    /// The request in front of a response: its matches were told with it.
    fn end_request(&mut self) {
        let mut desk = Desk { rules: &self.rules, site: &mut self.site, now_ms: 0 };
        self.flow.end(&mut self.transaction, Direction::ToServer, &mut desk);
        self.flow.turn(Direction::ToServer, &mut desk);
        self.flow.alerts();
    }

    fn inspect(&mut self) {
        let mut desk = Desk { rules: &self.rules, site: &mut self.site, now_ms: 0 };
        self.flow.inspect(&mut self.transaction, self.direction, &mut desk);
        self.collect();
    }

    fn stream(&mut self, way: Direction, bytes: &[u8]) {
        self.flow.payload(way, bytes, &mut Desk { rules: &self.rules, site: &mut self.site, now_ms: 0 });
    }

    fn collect(&mut self) {
        let alert = |alert: super::flow::Alert| flow::Alert {
            rule: u32::try_from(alert.rule).unwrap_or(u32::MAX),
            is_to_client: alert.direction == Direction::ToClient,
        };
        self.alerts.extend(self.flow.alerts().into_iter().map(alert));
    }

    /// Takes bytes of the object as they are on the wire, content codings and all.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.stream(self.direction, bytes);
        self.collect();
    }

    /// Takes a header field of the mail, raw.
    pub fn field(&mut self, field: &[u8]) {
        let Some(colon) = field.iter().position(|&byte| byte == b':') else { return };
        let value: Vec<u8> = field[colon + 1..].iter().copied().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
        if let Some(buffer) = field_buffer(field[..colon].trim_ascii()) {
            self.transaction.fill(&self.rules, self.direction, buffer, value.trim_ascii());
        }
    }

    /// Begins content of a name, and numbers it; its head and the envelope are tried.
    pub fn open(&mut self, name: Option<&str>) -> u64 {
        if let Some(name) = name {
            self.transaction.fill(&self.rules, self.direction, Buffer::FileName, name.as_bytes());
        }
        if self.transaction.has_news {
            self.inspect();
        }
        self.parts = self.parts.wrapping_add(1);
        self.parts
    }

    /// Takes decoded bytes of some content; `is_body` where it is the whole body of a message of HTTP.
    pub fn content(&mut self, part: u64, bytes: &[u8], is_body: bool) {
        let open = Open { also: is_body.then(|| self.body()), ..Open::of(Buffer::FileData, part) };
        self.feed(open, bytes);
    }

    /// Takes bytes of the object that are some content as they are: [`Watch::raw`] and [`Watch::content`] in one pass.
    pub fn raw_content(&mut self, part: u64, bytes: &[u8], is_body: bool) {
        self.stream(self.direction, bytes);
        let also = is_body.then(|| self.body());
        self.feed(Open { buffer: Buffer::FileData, also, part, is_stream: true }, bytes);
    }

    fn feed(&mut self, open: Open, bytes: &[u8]) {
        let mut desk = Desk { rules: &self.rules, site: &mut self.site, now_ms: 0 };
        self.flow.feed_open(&mut self.transaction, self.direction, open, bytes, &mut desk);
        self.collect();
    }

    /// Ends some content.
    pub fn close(&mut self, part: u64) {
        let mut desk = Desk { rules: &self.rules, site: &mut self.site, now_ms: 0 };
        let open = Open::of(Buffer::FileData, part);
        self.flow.end_open(&mut self.transaction, self.direction, open, &mut desk);
        self.collect();
    }

    fn body(&self) -> Buffer {
        if self.direction == Direction::ToServer { Buffer::RequestBody } else { Buffer::ResponseBody }
    }

    /// Ends the object.
    pub fn end(&mut self) {
        let mut desk = Desk { rules: &self.rules, site: &mut self.site, now_ms: 0 };
        self.flow.end(&mut self.transaction, self.direction, &mut desk);
        self.flow.turn(self.direction, &mut desk);
        self.collect();
    }

    /// Whether rules have looked at as much as they may.
    pub fn is_spent(&self) -> bool {
        self.flow.is_spent()
    }

    /// The alerts since the last call.
    pub fn alerts(&mut self) -> Vec<flow::Alert> {
        std::mem::take(&mut self.alerts)
    }
}
