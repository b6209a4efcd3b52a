//! Messages, files and flows of a capture, for a host that writes them down. They are told when they are over, in the order of their ends.
//!
//! Heads and mails are shared by the files in them, so all records together take as much as the capture, and some bytes a file.

use std::sync::Arc;

use flow::Head;

use super::super::buffer::Direction;
use super::super::flow::{Peer, Tuple};
use super::super::handshake::{Certificate, Fingerprint, Offer};
use super::super::rule::Transport;

/// Records of one capture.
const RECORDS_MAX: usize = 1 << 20;

/// A message, a file or a flow of a capture.
#[derive(Debug, Clone)]
pub struct Record {
    /// The number of the flow, as all its records and alerts have it.
    pub flow: u64,
    /// When it was over, in microseconds.
    pub micros: u64,
    /// The client.
    pub client: Peer,
    /// The server.
    pub server: Peer,
    /// The transport.
    pub transport: Transport,
    /// The number of the transaction in its flow, from 0.
    pub transaction: u64,
    /// The content.
    pub content: Content,
}

/// The content of a record.
#[derive(Debug, Clone)]
pub enum Content {
    /// A request with its response.
    Http(Exchange),
    /// A mail.
    Smtp(Arc<Mail>),
    /// A handshake.
    Tls(Box<Handshake>),
    /// A file in one of them.
    File(File),
    /// A flow.
    Flow(Box<Summary>),
    /// A message that breaks its protocol, or a stream with gaps.
    Anomaly(Anomaly),
}

/// A flow that is over. Pairs are of the client and of the server.
#[derive(Debug, Clone)]
pub struct Summary {
    /// The name of its protocol: `failed` where its content is in none that is known; none without content.
    pub app: Option<&'static str>,
    /// Packets of each side.
    pub packets: [u64; 2],
    /// Bytes of these packets, with all heads.
    pub bytes: [u64; 2],
    /// When the first packet came, in microseconds.
    pub first_micros: u64,
    /// When the last one came.
    pub last_micros: u64,
    /// All flags of TCP that each side has set.
    pub flags: [u8; 2],
    /// How far the connection got.
    pub state: State,
    /// Why it ended.
    pub end: End,
    /// A rule alerted.
    pub has_alerted: bool,
}

/// How far a connection got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Its client has opened it, or has sent a datagram.
    New,
    /// Its server has accepted it.
    Accepted,
    /// Both sides may speak.
    Established,
    /// One side has ended.
    Closing,
    /// Both sides have ended, or one has broken it off.
    Closed,
}

/// Why a flow ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// So did the capture.
    Shutdown,
    /// It was silent too long, or closed.
    Timeout,
    /// There were too many, or it took too much memory.
    Forced,
    /// Its ports are used again.
    Reuse,
}

/// A message that breaks its protocol, or a stream with gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Anomaly {
    /// The event, as Suricata names it.
    pub event: &'static str,
    /// The layer that it belongs to.
    pub layer: Layer,
    /// The way the bytes went.
    pub direction: Direction,
}

/// A layer of anomalies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layer {
    /// The reader of a protocol, by its name.
    Parser(&'static str),
    /// A stream of TCP.
    Stream,
}

/// A request and its response.
#[derive(Debug, Clone, Default)]
pub struct Exchange {
    /// The head of the request.
    pub request: Option<Arc<Head>>,
    /// The head of the response.
    pub response: Option<Arc<Head>>,
    /// Bytes of the response's body as they are on the wire.
    pub bytes: u64,
}

/// A field of a mail: its name and its value.
pub type Field = (Box<[u8]>, Box<[u8]>);

/// A transaction of SMTP.
#[derive(Debug, Clone, Default)]
pub struct Mail {
    /// The client's greeting.
    pub hello: Box<[u8]>,
    /// The sender.
    pub sender: Box<[u8]>,
    /// The recipients.
    pub recipients: Vec<Box<[u8]>>,
    /// Fields of the mail; none where no content has come.
    pub fields: Option<Vec<Field>>,
    /// Names of its files, and their bytes.
    pub files: Vec<(Box<[u8]>, u64)>,
}

/// A handshake of TLS, as far as it is in the clear.
#[derive(Debug, Clone, Default)]
pub struct Handshake {
    /// The server that the client asks for.
    pub server_name: Option<Box<str>>,
    /// The version that the server chooses; 0 where it has not answered.
    pub version: u16,
    /// JA3 of the client.
    pub ja3: Fingerprint,
    /// JA4 of the client.
    pub ja4: String,
    /// JA3S of the server.
    pub ja3s: Option<Fingerprint>,
    /// The certificate of the server.
    pub certificate: Option<Certificate>,
}

impl Handshake {
    /// Keeps a client's offer.
    pub(super) fn offer(&mut self, offer: &Offer) {
        let name = offer.server_name.as_deref();
        self.server_name = name.map(|name| String::from_utf8_lossy(name).into());
        (self.ja3, self.ja4) = (offer.ja3(), offer.ja4());
    }
}

/// A file.
#[derive(Debug, Clone)]
pub struct File {
    /// The name that the message gives it.
    pub name: Option<Box<[u8]>>,
    /// Bytes of decoded content.
    pub bytes: u64,
    /// The way it went.
    pub is_to_client: bool,
    /// Its end was seen.
    pub is_whole: bool,
    /// The message that it is in.
    pub of: Message,
}

/// A message with files.
#[derive(Debug, Clone)]
pub enum Message {
    /// Record of HTTP.
    Http(Exchange),
    /// Record of SMTP.
    Smtp(Arc<Mail>),
}

/// Records of a flow that wait to be collected.
#[derive(Debug, Default)]
pub(super) struct Log(Vec<(u64, Content)>);

impl Log {
    pub fn tell(&mut self, transaction: u64, content: Content) {
        self.0.push((transaction, content));
    }

    /// Moves what waits behind other records.
    pub fn collect(&mut self, flow: u64, micros: u64, tuple: Tuple, records: &mut Vec<Record>) {
        let Tuple { client, server, transport } = tuple;
        let room = RECORDS_MAX.saturating_sub(records.len());
        let record = |(transaction, content)| Record { flow, micros, client, server, transport, transaction, content };
        records.extend(self.0.drain(..).take(room).map(record));
    }
}
