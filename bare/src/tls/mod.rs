//! TLS 1.3 around a conversation: rustls without std, with the [`provider`] of this machine. Older versions are refused, sessions are not
//! resumed, and clients have no certificates.
//!
//! A connection begins with the handshake (HTTPS), or goes on in plain text until the conversation wants TLS (STARTTLS). More is taken
//! when the conversation has taken all that was decrypted, and as much is encrypted as has room in one record. So a connection holds about
//! one record of each direction, and none when it is idle.

mod cipher;
mod der;
mod digest;
mod identity;
mod key;
mod provider;

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use rustls::ServerConfig;
use rustls::pki_types::UnixTime;
use rustls::server::UnbufferedServerConnection;
use rustls::sign::SingleCertAndKey;
use rustls::time_provider::TimeProvider;
use rustls::unbuffered::{ConnectionState, EncodeError};
use rustls::version::TLS13;

use crate::machine::{Free, clock};
use crate::office::{Counts, Office, Store};
use crate::run::Conversation;

/// How long a handshake may take, in milliseconds.
const HANDSHAKE_MS: u64 = 15_000;
/// With less memory no handshake is begun, in bytes.
const MEMORY_MIN: usize = 2 << 20;
/// Bytes of records that have come: one record, or the handshake messages of a client, which are no longer in practice.
const INCOMING_BYTES_MAX: usize = 17 << 10;
/// Bytes that one record takes.
const RECORD_BYTES: usize = 16 << 10;
/// Bytes that a record has besides (RFC 8446, section 5.2: 5 of header, 1 of type, 16 of tag).
const OVERHEAD_BYTES: usize = 22;
/// Bytes of a record with an alert.
const ALERT_BYTES: usize = 2 + OVERHEAD_BYTES;

/// The side of the server, for all connections.
#[derive(Clone)]
pub struct Tls(Arc<ServerConfig>);

impl Tls {
    /// Reads the certificate and its key, or makes them.
    pub fn new(store: &mut Store) -> Result<Tls, &'static str> {
        let identity = identity::of(store)?;
        let builder = ServerConfig::builder_with_details(Arc::new(provider::provider()), Arc::new(Clock));
        let builder = builder.with_protocol_versions(&[&TLS13]).map_err(|_| "TLS cannot be configured")?;
        let mut config = builder.with_no_client_auth().with_cert_resolver(Arc::new(SingleCertAndKey::from(identity)));
        config.send_tls13_tickets = 0;
        Ok(Tls(Arc::new(config)))
    }

    fn begin(&self) -> Option<UnbufferedServerConnection> {
        UnbufferedServerConnection::new(self.0.clone()).ok()
    }
}

#[derive(Debug)]
struct Clock;

impl TimeProvider for Clock {
    fn current_time(&self) -> Option<UnixTime> {
        let seconds = clock::seconds().try_into().ok()?;
        Some(UnixTime::since_unix_epoch(core::time::Duration::from_secs(seconds)))
    }
}

/// A conversation with TLS around it.
pub struct Secure {
    inner: Box<dyn Conversation>,
    state: State,
    incoming: Vec<u8>,
    /// Decrypted, and not yet taken by the conversation.
    plain: Vec<u8>,
    outbox: Vec<u8>,
    sent: usize,
    handshake_until: u64,
}

enum State {
    /// Before STARTTLS.
    Plain,
    Handshake(Box<UnbufferedServerConnection>),
    Open(Box<UnbufferedServerConnection>),
    Over,
}

impl Secure {
    /// Begins with the handshake.
    pub fn new(inner: Box<dyn Conversation>, tls: &Tls, now: u64) -> Secure {
        let mut secure = Secure::later(inner);
        secure.begin(tls, now);
        secure
    }

    /// Begins in plain text, until the conversation wants TLS.
    pub fn later(inner: Box<dyn Conversation>) -> Secure {
        let (incoming, plain, outbox) = Default::default();
        Secure { inner, state: State::Plain, incoming, plain, outbox, sent: 0, handshake_until: 0 }
    }

    fn begin(&mut self, tls: &Tls, now: u64) {
        let connection = tls.begin().filter(|_| Free::now().free >= MEMORY_MIN);
        self.state = connection.map_or(State::Over, |connection| State::Handshake(Box::new(connection)));
        self.handshake_until = now.saturating_add(HANDSHAKE_MS);
    }

    /// Goes through all whole records that have come: their content is decrypted, and what the handshake answers is written.
    fn read(&mut self, counts: &mut Counts) {
        let mut has_failed = false;
        while let State::Handshake(connection) | State::Open(connection) = &mut self.state {
            match turn(connection, &mut self.incoming, &mut self.plain, &mut self.outbox) {
                Turn::Answer => {}
                Turn::Content => self.open(),
                Turn::Open => {
                    self.open();
                    break;
                }
                Turn::Wait => break,
                // Once more, for the alert that tells the client why.
                Turn::Failure if !has_failed => has_failed = true,
                Turn::Failure | Turn::End => {
                    counts.refused += u64::from(has_failed);
                    self.state = State::Over;
                }
            }
        }
        // What is no record yet can become none.
        if self.incoming.len() >= INCOMING_BYTES_MAX {
            self.state = State::Over;
        }
        if self.incoming.is_empty() {
            self.incoming = Vec::new();
        }
    }

    fn open(&mut self) {
        self.state = match core::mem::replace(&mut self.state, State::Over) {
            State::Handshake(connection) => State::Open(connection),
            other => other,
        };
    }

    fn write(&mut self, now: u64) {
        let State::Open(connection) = &mut self.state else { return };
        let is_end = encrypt(connection, &mut self.incoming, &mut *self.inner, &mut self.outbox, now);
        if is_end != Some(false) {
            self.state = State::Over;
        }
    }
}

/// The result of one step of rustls.
enum Turn {
    Answer,
    Content,
    Open,
    Wait,
    Failure,
    End,
}

fn turn(
    connection: &mut UnbufferedServerConnection,
    incoming: &mut Vec<u8>,
    plain: &mut Vec<u8>,
    outbox: &mut Vec<u8>,
) -> Turn {
    let (discard, turn) = {
        let status = connection.process_tls_records(incoming);
        let turn = match status.state {
            Ok(ConnectionState::EncodeTlsData(mut data)) => {
                if let Err(EncodeError::InsufficientSize(short)) = data.encode(&mut []) {
                    append(outbox, short.required_size, |room| data.encode(room).ok());
                }
                Turn::Answer
            }
            Ok(ConnectionState::TransmitTlsData(data)) => {
                data.done();
                Turn::Answer
            }
            Ok(ConnectionState::ReadTraffic(mut data)) => {
                while let Some(Ok(record)) = data.next_record() {
                    plain.extend_from_slice(record.payload);
                }
                Turn::Content
            }
            Ok(ConnectionState::WriteTraffic(_)) => Turn::Open,
            // The client has said all, and waits for the answer.
            Ok(ConnectionState::BlockedHandshake | ConnectionState::PeerClosed) => Turn::Wait,
            Ok(_) => Turn::End,
            Err(_) => Turn::Failure,
        };
        (status.discard, turn)
    };
    incoming.drain(..discard.min(incoming.len()));
    turn
}

/// Encrypts what a conversation says, as much as a record takes, and its end: whether it is the end. `None` if it cannot be encrypted.
fn encrypt(
    connection: &mut UnbufferedServerConnection,
    incoming: &mut [u8],
    inner: &mut dyn Conversation,
    outbox: &mut Vec<u8>,
    now: u64,
) -> Option<bool> {
    // All whole records are read: rustls has nothing to say but that it can encrypt.
    let status = connection.process_tls_records(incoming);
    let Ok(ConnectionState::WriteTraffic(mut traffic)) = status.state else { return Some(false) };
    let said = inner.outbox();
    let count = said.len().min(RECORD_BYTES);
    if let Some(said) = said.get(..count).filter(|said| !said.is_empty()) {
        append(outbox, count.checked_add(OVERHEAD_BYTES)?, |room| traffic.encrypt(said, room).ok())?;
        inner.sent(count, now);
    }
    let is_end = inner.is_over() && inner.outbox().is_empty();
    if is_end {
        append(outbox, ALERT_BYTES, |room| traffic.queue_close_notify(room).ok())?;
    }
    Some(is_end)
}

/// Lets `write` write to the end of a buffer, with so much room.
fn append(buffer: &mut Vec<u8>, room: usize, write: impl FnOnce(&mut [u8]) -> Option<usize>) -> Option<()> {
    let start = buffer.len();
    match start {
        // An allocator has zeroes faster than a loop.
        0 => *buffer = vec![0; room],
        _ => buffer.resize(start.checked_add(room)?, 0),
    }
    let written = buffer.get_mut(start..).and_then(write);
    buffer.truncate(start.checked_add(written.unwrap_or(0))?);
    written.map(drop)
}

impl Conversation for Secure {
    fn step(&mut self, office: &mut Office, now: u64, input: &[u8]) -> (usize, bool) {
        if let State::Plain = self.state {
            if !self.inner.wants_tls() {
                return self.inner.step(office, now, input);
            }
            // The answer to STARTTLS has been sent. All that follows it is of the handshake.
            self.begin(&office.tls, now);
            self.inner.secured(now);
            return (0, true);
        }
        let room = if self.plain.is_empty() { INCOMING_BYTES_MAX.saturating_sub(self.incoming.len()) } else { 0 };
        let taken = input.len().min(room);
        self.incoming.extend_from_slice(input.get(..taken).unwrap_or_default());
        self.read(&mut office.counts);
        let mut goes_on = taken > 0 || !self.outbox.is_empty();
        if let State::Open(_) = self.state {
            let (eaten, more) = self.inner.step(office, now, &self.plain);
            self.plain.drain(..eaten.min(self.plain.len()));
            if self.plain.is_empty() {
                self.plain = Vec::new();
            }
            self.write(now);
            goes_on |= more || eaten > 0 || !self.outbox.is_empty();
        }
        (taken, goes_on)
    }

    fn outbox(&self) -> &[u8] {
        match self.state {
            State::Plain => self.inner.outbox(),
            _ => self.outbox.get(self.sent..).unwrap_or_default(),
        }
    }

    fn sent(&mut self, count: usize, now: u64) {
        if let State::Plain = self.state {
            return self.inner.sent(count, now);
        }
        self.sent = self.sent.saturating_add(count);
        if self.sent >= self.outbox.len() {
            (self.outbox, self.sent) = (Vec::new(), 0);
        }
    }

    fn is_over(&self) -> bool {
        match self.state {
            State::Plain => self.inner.is_over(),
            State::Handshake(_) | State::Open(_) => false,
            State::Over => true,
        }
    }

    fn is_waiting(&self) -> bool {
        matches!(self.state, State::Handshake(_)) || (self.outbox.is_empty() && self.inner.is_waiting())
    }

    fn deadline(&self) -> u64 {
        match self.state {
            State::Handshake(_) => self.handshake_until,
            _ => self.inner.deadline(),
        }
    }

    fn time_out(&mut self) {
        self.inner.time_out();
        // Its last words are said if the client takes any.
        if matches!(self.state, State::Handshake(_)) || !self.outbox.is_empty() {
            self.state = State::Over;
        }
    }
}
