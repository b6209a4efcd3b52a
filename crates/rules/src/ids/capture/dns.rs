//! Questions of DNS, in datagrams and in streams, where each message has its length in front.

use super::super::buffer::{Buffer, Direction};
use super::super::transaction::Transaction;
use super::exchange::Ways;

/// The port of DNS.
pub(super) const PORT: u16 = 53;
const HEAD_BYTES: usize = 12;
/// Bytes of a stream that tell whether it has messages.
pub(super) const TELLING_BYTES: usize = 2 + HEAD_BYTES;
const QUESTIONS_MAX: u16 = 16;

/// The messages of a client in a stream.
#[derive(Default)]
pub(super) struct Dns {
    pending: Vec<u8>,
    is_over: bool,
}

/// Whether bytes of a client begin a message in a stream: a question or several, and no answer.
pub(super) fn is_message(bytes: &[u8]) -> bool {
    let Some((length, message)) = bytes.split_first_chunk::<2>() else { return false };
    let is_long = usize::from(u16::from_be_bytes(*length)) >= HEAD_BYTES;
    is_long
        && message.len() >= HEAD_BYTES
        && message[2] & 0x80 == 0
        && message[4..8] == [0, message[5].max(1), 0, 0]
        && u16::from(message[5]) <= QUESTIONS_MAX
}

impl Dns {
    /// Takes bytes of the client.
    pub fn feed(&mut self, bytes: &[u8], ways: &mut Ways<'_, '_>) {
        if self.is_over {
            return;
        }
        self.pending.extend_from_slice(bytes);
        let mut at = 0;
        while let Some((length, rest)) = self.pending[at..].split_first_chunk::<2>() {
            let length = usize::from(u16::from_be_bytes(*length));
            if length < HEAD_BYTES {
                self.is_over = true;
                self.pending = Vec::new();
                return;
            }
            let Some(message) = rest.get(..length) else { break };
            ask(message, ways);
            at += 2 + length;
        }
        self.pending.drain(..at);
    }

    /// Bytes that it holds.
    pub fn held_bytes(&self) -> usize {
        self.pending.len()
    }
}

/// Has rules tried on the questions of a message.
pub(super) fn ask(message: &[u8], ways: &mut Ways<'_, '_>) {
    let mut transaction = Transaction::new();
    for name in questions(message) {
        transaction.fill(ways.desk.rules, Direction::ToServer, Buffer::DnsQuery, &name);
    }
    ways.flow.end(&mut transaction, Direction::ToServer, ways.desk);
}

/// The names in the questions of a DNS message.
fn questions(message: &[u8]) -> Vec<Vec<u8>> {
    let count = message.get(4..6).map_or(0, |pair| u16::from_be_bytes([pair[0], pair[1]]));
    let (mut names, mut at) = (Vec::new(), HEAD_BYTES);
    for _ in 0..count.min(QUESTIONS_MAX) {
        let mut name: Vec<u8> = Vec::new();
        loop {
            let Some(&length) = message.get(at) else { return names };
            at += 1;
            match length {
                0 => break,
                1..=63 => {
                    let Some(label) = message.get(at..at + usize::from(length)) else { return names };
                    if !name.is_empty() {
                        name.push(b'.');
                    }
                    name.extend_from_slice(label);
                    at += usize::from(length);
                }
                _ => return names,
            }
        }
        names.push(name);
        at += 4;
    }
    names
}
