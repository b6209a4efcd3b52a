//! The first message of a TLS client (RFC 8446, section 4.1.2), as far as a tunnel may look at it: the server that it asks for.
//!
//! [`client_hello`] is a function of what has come so far. It reads a message that is spread over several records, and nothing
//! behind the message. Nothing of it is checked by cryptography: the name is a claim of the client's.
//!
//! Bounds: 64 records, a message of 64 KiB. Not here: handshakes of SSL 2, DTLS, what ECH hides.
#![deny(clippy::arithmetic_side_effects)]

use alloc::string::String;
use alloc::vec::Vec;

/// Records over which a message may be spread.
const RECORDS_MAX: usize = 64;

/// Bytes of a message. Key shares of post-quantum exchanges take a few KiB.
const MESSAGE_BYTES_MAX: usize = 64 << 10;

/// Bytes of a record's content (RFC 8446, section 5.1).
const RECORD_BYTES_MAX: usize = 1 << 14;

/// The bytes that [`client_hello`] needs at most.
pub const INPUT_BYTES_MAX: usize = MESSAGE_BYTES_MAX + RECORD_BYTES_MAX + RECORDS_MAX * 5;

const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: u16 = 0;
const ENCRYPTED_CLIENT_HELLO: u16 = 0xfe0d;

/// The result of a look at the first bytes of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hello {
    /// More bytes are needed.
    Incomplete,
    /// The client begins with a handshake of TLS.
    Client {
        /// The server that it asks for (RFC 6066, section 3), in lower case; `None` if it names none.
        server_name: Option<String>,
        /// True when it may ask for another server within (ECH): then the name is one that anybody may see.
        is_encrypted: bool,
    },
    /// The bytes are no such message, or a malformed one.
    Other,
}

/// Whether these are first bytes of a client that begins with a handshake of TLS, as far as the first one says.
pub fn is_handshake(input: &[u8]) -> bool {
    input.first() == Some(&HANDSHAKE)
}

/// Looks at the first bytes of a client.
pub fn client_hello(input: &[u8]) -> Hello {
    match message(input) {
        Some(Some(message)) => parse(&message).unwrap_or(Hello::Other),
        Some(None) => Hello::Incomplete,
        None => Hello::Other,
    }
}

/// The body of the message, collected from its records; `Some(None)` if more bytes are needed, `None` if it is another one.
fn message(input: &[u8]) -> Option<Option<Vec<u8>>> {
    let (mut rest, mut pieces) = (input, Vec::new());
    let mut collected = 0_usize;
    let mut wanted = None;
    while pieces.len() < RECORDS_MAX {
        let (&kind, behind) = match rest.split_first() {
            Some(first) => first,
            None => return Some(None),
        };
        if kind != HANDSHAKE || behind.first().is_some_and(|&major| major != 3) {
            return None;
        }
        let Some(length) = behind.get(2..4).map(number) else { return Some(None) };
        if length == 0 || length > RECORD_BYTES_MAX {
            return None;
        }
        let behind = behind.get(4..).unwrap_or_default();
        let piece = behind.get(..length).unwrap_or(behind);
        pieces.push(piece);
        collected = collected.saturating_add(piece.len());
        if wanted.is_none() {
            let mut head = pieces.iter().flat_map(|piece| piece.iter().copied());
            if head.next().is_some_and(|kind| kind != CLIENT_HELLO) {
                return None;
            }
            let length: Vec<u8> = head.take(3).collect();
            wanted = (length.len() == 3).then(|| number(&length).saturating_add(4));
        }
        if wanted.is_some_and(|wanted| wanted > MESSAGE_BYTES_MAX) {
            return None;
        }
        if let Some(wanted) = wanted.filter(|&wanted| wanted <= collected) {
            let whole = pieces.concat();
            return Some(Some(whole.get(4..wanted).unwrap_or_default().to_vec()));
        }
        match behind.get(length..) {
            Some(next) => rest = next,
            None => return Some(None),
        }
    }
    None
}

fn parse(body: &[u8]) -> Option<Hello> {
    // Version and random.
    let mut reader = Reader(body.get(34..)?);
    reader.vector(1)?;
    reader.vector(2)?;
    reader.vector(1)?;
    let (mut server_name, mut is_encrypted) = (None, false);
    // The first versions of TLS have no extensions.
    let mut extensions = Reader(if reader.0.is_empty() { b"" } else { reader.vector(2)? });
    if !reader.0.is_empty() {
        return None;
    }
    while !extensions.0.is_empty() {
        let kind = extensions.take(2).map(number)?;
        let content = extensions.vector(2)?;
        match u16::try_from(kind).ok()? {
            SERVER_NAME if server_name.is_some() => return None,
            SERVER_NAME => server_name = Some(name(content)?),
            ENCRYPTED_CLIENT_HELLO => is_encrypted = true,
            _ => {}
        }
    }
    Some(Hello::Client { server_name, is_encrypted })
}

/// The one name of the extension.
fn name(content: &[u8]) -> Option<String> {
    let mut reader = Reader(content);
    let mut list = Reader(reader.vector(2)?);
    let kind = list.take(1).map(number)?;
    let name = list.vector(2)?;
    let is_alone = list.0.is_empty() && reader.0.is_empty();
    let is_name = kind == 0 && !name.is_empty() && name.len() <= 255 && name.iter().all(u8::is_ascii_graphic);
    let name = core::str::from_utf8(name).ok().filter(|_| is_alone && is_name)?;
    Some(name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase())
}

/// Bytes not read yet.
struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// Bytes behind their length, which has so many bytes itself.
    fn vector(&mut self, length_bytes: usize) -> Option<&'b [u8]> {
        let length = self.take(length_bytes).map(number)?;
        self.take(length)
    }
}

/// Up to three bytes as a number.
fn number(bytes: &[u8]) -> usize {
    bytes.iter().fold(0, |number: usize, &byte| number << 8 | usize::from(byte))
}

/// Fuzz body: what more bytes follow never changes an answer that was given.
pub fn fuzz_client_hello(data: &[u8]) {
    let Some((&seed, data)) = data.split_first() else { return };
    let step = usize::from(seed % 13).saturating_add(1);
    let mut answer = Hello::Incomplete;
    for end in (0..data.len()).step_by(step).chain([data.len()]) {
        let now = client_hello(data.get(..end).unwrap_or_default());
        assert!(answer == Hello::Incomplete || answer == now, "{answer:?} became {now:?}");
        answer = now;
    }
    assert!(answer != Hello::Incomplete || data.len() < INPUT_BYTES_MAX, "more is asked for than is needed");
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::{format, vec};

    fn vector(length_bytes: usize, content: &[u8]) -> Vec<u8> {
        let length = (content.len() as u32).to_be_bytes();
        [&length[4_usize.saturating_sub(length_bytes)..], content].concat()
    }

    fn extension(kind: u16, content: &[u8]) -> Vec<u8> {
        [&kind.to_be_bytes()[..], &vector(2, content)].concat()
    }

    fn server_name(name: &str) -> Vec<u8> {
        extension(0, &vector(2, &[&[0][..], &vector(2, name.as_bytes())].concat()))
    }

    /// A message in records of so many bytes.
    fn hello(extensions: &[u8], record_bytes: usize) -> Vec<u8> {
        let mut body = vec![3, 3];
        body.extend([7; 32]);
        body.extend(vector(1, &[9; 32]));
        body.extend(vector(2, &[0x13, 1]));
        body.extend(vector(1, &[0]));
        body.extend(vector(2, extensions));
        let message = [&[1][..], &vector(3, &body)].concat();
        message.chunks(record_bytes).flat_map(|piece| [&[22, 3, 1][..], &vector(2, piece)].concat()).collect()
    }

    fn named(name: &str) -> Hello {
        Hello::Client { server_name: Some(name.into()), is_encrypted: false }
    }

    #[test]
    fn the_name_is_read_however_the_message_is_cut_and_spread() {
        let extensions = [extension(10, b"\0\x02\0\x1d"), server_name("Www.Example."), extension(0xa0a, b"")].concat();
        for record_bytes in [3, 4, 7, 50, 10_000] {
            let said = hello(&extensions, record_bytes);
            for end in 0..said.len() {
                assert_eq!(client_hello(&said[..end]), Hello::Incomplete, "{end} of {}", said.len());
            }
            assert_eq!(client_hello(&said), named("www.example"));
            assert_eq!(client_hello(&[&said[..], b"more"].concat()), named("www.example"));
        }
    }

    #[test]
    fn a_message_without_a_name_or_with_ech_is_known() {
        let plain = Hello::Client { server_name: None, is_encrypted: false };
        assert_eq!(client_hello(&hello(b"", 99)), plain);
        let both = [server_name("public.example"), extension(0xfe0d, b"x")].concat();
        let hidden = Hello::Client { server_name: Some("public.example".into()), is_encrypted: true };
        assert_eq!(client_hello(&hello(&both, 99)), hidden);
    }

    #[test]
    fn what_is_no_such_message_is_told_at_once() {
        let two = [server_name("a"), server_name("b")].concat();
        for said in [
            &b"SSH-2.0-x\r\n"[..],
            b"\x80\x2e\x01\x03\x01",
            b"\x16\x02",
            b"\x16\x03\x01\0\0",
            b"\x16\x03\x01\x40\x01",
            b"\x16\x03\x01\0\x04\x02",
            b"\x16\x03\x01\0\x04\x01\xff\xff\xff",
            &hello(&two, 9_999),
            &hello(&server_name("a b"), 9_999),
            &hello(&server_name(""), 9_999),
            &hello(b"\0", 9_999),
        ] {
            assert_eq!(client_hello(said), Hello::Other, "{said:?}");
        }
        assert_eq!(client_hello(&hello(&server_name(&"a".repeat(200)), 1)), Hello::Other, "too many records");
    }

    #[test]
    fn any_bytes_are_answered_once() {
        let said = hello(&server_name("a.example"), 30);
        for at in 0..said.len() {
            for value in [0, 1, 0x16, 0x40, 0xff] {
                let mut broken = said.clone();
                broken[at] = value;
                fuzz_client_hello(&[&[at as u8][..], &broken].concat());
            }
        }
        assert!(!format!("{:?}", client_hello(&said)).is_empty());
    }
}
