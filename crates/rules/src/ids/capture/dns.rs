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
/// Bytes of a name after which no pointer is followed.
const NAME_BYTES_MAX: usize = 255;

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

/// The names in the questions of a DNS message, without those that cannot be read.
fn questions(message: &[u8]) -> Vec<Vec<u8>> {
    let count = message.get(4..6).map_or(0, |pair| u16::from_be_bytes([pair[0], pair[1]]));
    let (mut names, mut at) = (Vec::new(), HEAD_BYTES);
    for _ in 0..count.min(QUESTIONS_MAX) {
        let Some((name, behind)) = name(message, at) else { break };
        names.extend(name);
        at = behind + 4;
    }
    names
}

/// The name at a place, and the place behind it: none where a pointer leads forward or too far round (RFC 1035, section 4.1.4).
fn name(message: &[u8], mut at: usize) -> Option<(Option<Vec<u8>>, usize)> {
    let (mut name, mut behind): (Vec<u8>, Option<usize>) = (Vec::new(), None);
    // A pointer leads in front of all that was read, so that reading ends.
    let mut first = at;
    loop {
        let next = message.get(at).copied().zip(message.get(at + 1..));
        let Some((length, rest)) = next else { return behind.map(|behind| (None, behind)) };
        match length {
            0 => return Some((Some(name), behind.unwrap_or(at + 1))),
            1..=63 => {
                let Some(label) = rest.get(..usize::from(length)) else { return behind.map(|behind| (None, behind)) };
                if !name.is_empty() {
                    name.push(b'.');
                }
                name.extend_from_slice(label);
                at += 1 + usize::from(length);
            }
            192.. => {
                let target = usize::from(length & 0x3f) << 8 | usize::from(*rest.first()?);
                let behind = *behind.get_or_insert(at + 2);
                if target >= first || name.len() > NAME_BYTES_MAX {
                    return Some((None, behind));
                }
                (at, first) = (target, target);
            }
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_behind_one_that_cannot_be_read_are_kept() {
        let message = |count: u8, questions: &[&[u8]]| {
            [&[0, 1, 1, 0, 0, count, 0, 0, 0, 0, 0, 0][..], &questions.concat()].concat()
        };
        let (plain, kind): (&[u8], &[u8]) = (b"\x01a\x04test\0", &[0, 1, 0, 1]);
        assert_eq!(questions(&message(1, &[plain, kind])), [b"a.test"]);
        assert_eq!(questions(&message(2, &[&[0xc0, 18], kind, plain, kind])), [b"a.test"], "forward");
        assert_eq!(questions(&message(2, &[plain, kind, &[1, b'b', 0xc0, 14], kind])), [&b"a.test"[..], b"b.test"]);
        assert_eq!(questions(&message(2, &[&[0xc0, 12], kind, plain, kind])), [b"a.test"], "to itself");
        assert!(questions(&message(2, &[&[0x40, 12], kind, plain, kind])).is_empty(), "of no known kind");
        assert!(questions(&message(1, &[&[9, b'a']])).is_empty());
    }
}
