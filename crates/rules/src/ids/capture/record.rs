//! Messages and files of a capture, for a host that writes them down. They are told when they are over, in the order of their ends.
//!
//! Heads and mails are shared by the files in them, so all records together take as much as the capture, and some bytes a file.

use std::sync::Arc;

use flow::Head;

use super::super::flow::Peer;
use super::super::handshake::{Certificate, Fingerprint, Offer};

/// Records of one capture.
const RECORDS_MAX: usize = 1 << 20;

/// A message or a file of a capture.
#[derive(Debug, Clone)]
pub struct Record {
    /// When it was over, in microseconds.
    pub micros: u64,
    /// The client.
    pub client: Peer,
    /// The server.
    pub server: Peer,
    /// The number of the transaction in its flow, from 0.
    pub transaction: u64,
    /// The message or the file.
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
    pub fn collect(&mut self, micros: u64, [client, server]: [Peer; 2], records: &mut Vec<Record>) {
        let room = RECORDS_MAX.saturating_sub(records.len());
        let waiting = self.0.drain(..).take(room);
        records.extend(waiting.map(|(transaction, content)| Record { micros, client, server, transaction, content }));
    }
}
