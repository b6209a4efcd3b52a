//! TLS up to where it is encrypted: records of both sides become messages of the handshake, which fill buffers.

use super::super::buffer::{Buffer, Direction};
use super::super::handshake::{self, Offer};
use super::super::transaction::Transaction;
use super::exchange::Ways;
use super::record::{Content, Handshake};

/// Bytes of handshake of one side that wait for the end of a message.
const WAITING_BYTES_MAX: usize = 256 << 10;
/// Messages of one side.
const MESSAGES_MAX: usize = 64;
const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;
const CERTIFICATE: u8 = 11;
const SERVER_KEY_EXCHANGE: u8 = 12;

/// Both sides of a connection.
#[derive(Default)]
pub(super) struct Tls {
    sides: [Side; 2],
    transaction: Transaction,
    told: Handshake,
    has_begun: bool,
    is_over: bool,
}

/// Bytes of records, and of messages in them.
#[derive(Default)]
struct Side {
    records: Vec<u8>,
    messages: Vec<u8>,
    count: usize,
    is_over: bool,
}

impl Tls {
    /// Takes bytes of one side.
    pub fn feed(&mut self, direction: Direction, bytes: &[u8], ways: &mut Ways<'_, '_>) {
        let at = usize::from(direction == Direction::ToClient);
        if self.is_over || self.sides[at].is_over {
            return;
        }
        self.sides[at].records.extend_from_slice(bytes);
        while let Some((kind, body)) = self.sides[at].message() {
            self.message(direction, kind, &body, ways);
        }
        if self.sides[1].is_over {
            self.finish(ways);
        }
    }

    /// Bytes that both sides hold.
    pub fn held_bytes(&self) -> usize {
        let waiting: usize = self.sides.iter().map(|side| side.records.len() + side.messages.len()).sum();
        waiting + self.transaction.held_bytes()
    }

    /// Ends the handshake.
    pub fn finish(&mut self, ways: &mut Ways<'_, '_>) {
        if std::mem::replace(&mut self.is_over, true) || !self.has_begun {
            return;
        }
        ways.flow.end(&mut self.transaction, Direction::ToClient, ways.desk);
        ways.log.tell(0, Content::Tls(Box::new(std::mem::take(&mut self.told))));
    }

    fn message(&mut self, direction: Direction, kind: u8, body: &[u8], ways: &mut Ways<'_, '_>) {
        let rules = ways.desk.rules;
        let mut fill = |buffer, bytes: &[u8]| self.transaction.fill(rules, direction, buffer, bytes);
        match (direction, kind) {
            (Direction::ToServer, CLIENT_HELLO) => {
                let Some(offer) = Offer::read(body) else { return };
                offer.fill(&mut fill);
                self.told.offer(&offer);
                self.has_begun = true;
                ways.flow.end(&mut self.transaction, direction, ways.desk);
            }
            (Direction::ToClient, SERVER_HELLO) => {
                let Some(choice) = handshake::choice(body) else { return };
                handshake::fill_choice(&choice, &mut fill);
                (self.told.ja3s, self.told.version) = (Some(choice.ja3s), choice.version);
            }
            (Direction::ToClient, CERTIFICATE) => {
                let seconds = i64::try_from(ways.desk.now_ms / 1_000).unwrap_or(i64::MAX);
                self.told.certificate = handshake::certificates(body, seconds, &mut fill);
            }
            (Direction::ToClient, SERVER_KEY_EXCHANGE) => fill(Buffer::TlsFact, b"state server_keyx"),
            _ => {}
        }
    }
}

/// The offer of a client, from its first bytes; none where they are no whole one.
pub fn offered(bytes: &[u8]) -> Option<Handshake> {
    let mut side = Side { records: bytes.to_vec(), ..Side::default() };
    let (kind, body) = side.message()?;
    let offer = Offer::read(&body).filter(|_| kind == CLIENT_HELLO)?;
    let mut told = Handshake::default();
    told.offer(&offer);
    Some(told)
}

impl Side {
    /// The next whole message; the side is over where something else than a handshake comes.
    fn message(&mut self) -> Option<(u8, Vec<u8>)> {
        if self.count >= MESSAGES_MAX {
            self.end();
        }
        while !self.is_over {
            if let Some(&[kind, high, middle, low]) = self.messages.first_chunk() {
                let end = 4 + (usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low));
                if let Some(body) = self.messages.get(4..end) {
                    let body = body.to_vec();
                    self.messages.drain(..end);
                    self.count += 1;
                    return Some((kind, body));
                }
            }
            let &[kind, _, _, high, low] = self.records.first_chunk()?;
            let end = 5 + (usize::from(high) << 8 | usize::from(low));
            if kind != HANDSHAKE || self.messages.len() > WAITING_BYTES_MAX {
                self.end();
                return None;
            }
            self.messages.extend_from_slice(self.records.get(5..end)?);
            self.records.drain(..end);
        }
        None
    }

    fn end(&mut self) {
        (self.is_over, self.records, self.messages) = (true, Vec::new(), Vec::new());
    }
}
