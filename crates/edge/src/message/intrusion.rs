//! Intrusion rules at a door: an inspection reports which have matched, and here is decided what follows.
//!
//! How often a rule may alert is counted in one place for all inspections, the [`Sentinel`], which the program brings.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::SystemTime;

use flow::{Action, Alert, Flow, ObjectReport, Protocol, Spotted, Verdict, Watched};
use stream::{Class, Finding};

/// The most rules that are told with a verdict.
const SPOTTED_MAX: usize = 16;

/// The scene of an alert.
#[derive(Debug, Clone)]
pub struct Scene {
    /// The name of the message in the log.
    pub id: Box<str>,
    /// Sender, receiver and transport.
    pub flow: Flow,
    /// Addresses and heads.
    pub watched: Watched,
    /// When the object began.
    pub since: SystemTime,
}

/// The effect of a match.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Heard {
    /// The name under which the object is blocked, if it is.
    pub blocks: Option<String>,
    /// It was written down as an alert.
    pub is_told: bool,
}

/// The end of an object.
#[derive(Debug, Clone, Copy)]
pub struct Outcome<'v> {
    /// Its bytes.
    pub bytes: u64,
    /// It is kept from its receiver.
    pub is_blocked: bool,
    /// A rule has alerted.
    pub has_alerted: bool,
    /// Findings of the inspection.
    pub findings: &'v [Spotted],
}

/// A handshake of TLS between a client and a server of the web, as the door has seen it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handshake {
    /// The client.
    pub client: SocketAddr,
    /// The server; none where it was not reached.
    pub server: Option<SocketAddr>,
    /// The first bytes of the client.
    pub offer: Box<[u8]>,
    /// The version that the server has chosen; 0 where the handshake was not opened.
    pub version: u16,
    /// The server's certificate; none where the handshake was not opened.
    pub certificate: Option<Box<[u8]>>,
}

/// Hears of rules that have matched.
pub trait Sentinel: Send + Sync {
    /// Counts a match and writes it down.
    fn hear(&self, alert: Alert, scene: &Scene) -> Heard;

    /// Whether files are written down, which have to be hashed for that.
    fn wants_files(&self) -> bool {
        false
    }

    /// Writes down a file that an object holds, or the object itself.
    fn file(&self, _file: &ObjectReport, _scene: &Scene) {}

    /// Whether handshakes are written down.
    fn wants_handshakes(&self) -> bool {
        false
    }

    /// Writes down a handshake.
    fn handshake(&self, _handshake: &Handshake) {}

    /// Writes down an object that is over.
    fn end(&self, _outcome: Outcome<'_>, _scene: &Scene) {}
}

/// The rules over one passage.
pub struct Guard {
    sentinel: Arc<dyn Sentinel>,
    scene: Scene,
    has_alerted: bool,
    blocked: Vec<Spotted>,
}

impl Guard {
    /// Begins to match intrusion rules against this object; `None` without rules, or without any for its protocol.
    pub(super) fn over(
        sentinel: Option<&Arc<dyn Sentinel>>,
        id: &str,
        flow: &Flow,
        watched: Option<Box<Watched>>,
    ) -> Option<Guard> {
        let sentinel = sentinel?.clone();
        let is_mail = matches!(
            flow.protocol,
            Protocol::Smtp | Protocol::Lmtp | Protocol::Milter | Protocol::Pop3 | Protocol::Imap
        );
        let watched = watched.or_else(|| is_mail.then(Box::default))?;
        let scene = Scene { id: id.into(), flow: flow.clone(), watched: *watched, since: SystemTime::now() };
        Some(Guard { sentinel, scene, has_alerted: false, blocked: Vec::new() })
    }

    /// The conversation, as the inspection is told of it.
    pub(super) fn watched(&self) -> Box<Watched> {
        Box::new(self.scene.watched.clone())
    }

    /// Hears of a match; what stands against the object because of it.
    pub(super) fn hear(&mut self, alert: Alert) -> Option<Spotted> {
        let heard = self.sentinel.hear(alert, &self.scene);
        self.has_alerted |= heard.is_told;
        let finding = Finding { class: Class::Intrusion, name: heard.blocks?.into(), offset: 0 };
        let spotted = Spotted { finding, path: Arc::default(), object: 0 };
        if self.blocked.len() < SPOTTED_MAX && !self.blocked.contains(&spotted) {
            self.blocked.push(spotted.clone());
        }
        Some(spotted)
    }

    /// Whether files are told.
    pub(super) fn wants_files(&self) -> bool {
        self.sentinel.wants_files()
    }

    /// Tells a file.
    pub(super) fn file(&self, file: &ObjectReport) {
        self.sentinel.file(file, &self.scene);
    }

    /// Adds what stands against the object, of this many bytes, to its verdict.
    pub(super) fn conclude(&mut self, bytes: u64, verdict: &mut Verdict) {
        if !self.blocked.is_empty() {
            verdict.action = verdict.action.max(Action::Reject);
            verdict.findings.append(&mut self.blocked);
        }
        let is_blocked = verdict.action > Action::Tag;
        let outcome = Outcome { bytes, is_blocked, has_alerted: self.has_alerted, findings: &verdict.findings };
        self.sentinel.end(outcome, &self.scene);
    }
}
