//! A POP3 server with a few messages, which may misbehave.

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

use super::{SinkTls, Wire, stuffed};

/// How it behaves.
#[derive(Clone, Default)]
pub struct Pop3 {
    /// Its messages; the lasting name of the first is `name-1`.
    pub messages: Vec<Vec<u8>>,
    /// Lines of the answer to CAPA.
    pub capabilities: &'static [&'static str],
    /// Text sent besides the reply to a command that begins like this.
    pub injected: Option<(&'static str, &'static [u8])>,
    /// Replies in place of those to these commands.
    pub instead: Vec<(&'static str, &'static str)>,
    /// Has a certificate.
    pub tls: Option<SinkTls>,
    /// All commands that were given.
    pub given: Arc<Mutex<Vec<String>>>,
}

impl Pop3 {
    pub fn with(messages: &[&[u8]]) -> Pop3 {
        let messages = messages.iter().map(|message| message.to_vec()).collect();
        Pop3 {
            messages,
            capabilities: &["TOP", "UIDL", "PIPELINING", "STLS", "SASL PLAIN GSSAPI", "X-ODD"],
            ..Pop3::default()
        }
    }

    /// Starts it.
    pub fn start(&self) -> SocketAddr {
        self.start_at("127.0.0.1:0")
    }

    /// The same at an address.
    pub fn start_at(&self, address: &str) -> SocketAddr {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let server = self.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let server = server.clone();
                std::thread::spawn(move || server.session(Wire::new(stream.unwrap())));
            }
        });
        address
    }

    /// All commands that were given.
    pub fn commands(&self) -> Vec<String> {
        self.given.lock().unwrap().clone()
    }

    fn session(&self, mut wire: Wire) {
        wire.send(b"+OK Ready <1896.697170952@mailbox.test>\r\n");
        loop {
            let line = wire.line();
            if line.is_empty() {
                return;
            }
            self.given.lock().unwrap().push(line.clone());
            let mut words = line.split(' ');
            let verb = words.next().unwrap();
            let number: usize = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
            let message = number.checked_sub(1).and_then(|at| self.messages.get(at));
            let instead = self.instead.iter().find(|(command, _)| *command == line);
            let mut reply = match (verb, message) {
                _ if instead.is_some() => instead.unwrap().1.replace('\n', "\r\n").into_bytes(),
                ("CAPA", _) => format!("+OK\r\n{}\r\n.\r\n", self.capabilities.join("\r\n")).into_bytes(),
                ("UIDL", Some(_)) => format!("+OK {number} name-{number}\r\n").into_bytes(),
                ("TOP", Some(message)) => {
                    let lines = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
                    [b"+OK\r\n".to_vec(), stuffed(top(message, lines)), b".\r\n".to_vec()].concat()
                }
                ("RETR", Some(message)) => {
                    [format!("+OK {} octets\r\n", message.len()).into_bytes(), stuffed(message), b".\r\n".to_vec()]
                        .concat()
                }
                ("RETR" | "TOP" | "UIDL", None) => b"-ERR no such message\r\n".to_vec(),
                ("LIST", _) => b"+OK\r\n1 100\r\n.\r\n".to_vec(),
                ("STLS", _) => b"+OK go\r\n".to_vec(),
                ("AUTH", _) => {
                    wire.send(b"+ \r\n");
                    self.given.lock().unwrap().push(wire.line());
                    b"+OK\r\n".to_vec()
                }
                _ => b"+OK\r\n".to_vec(),
            };
            if let Some((start, more)) = self.injected
                && line.starts_with(start)
            {
                reply.extend_from_slice(more);
            }
            if wire.try_send(&reply).is_err() {
                return;
            }
            match (verb, &self.tls) {
                ("STLS", Some(tls)) => wire = wire.secure(tls.certificate.server()),
                ("QUIT", _) => return,
                _ => {}
            }
        }
    }
}

/// The header of a message, and so many lines behind it.
fn top(message: &[u8], lines: usize) -> &[u8] {
    let body = message.windows(4).position(|four| four == b"\r\n\r\n").map_or(message.len(), |at| at + 4);
    let rest: usize = message[body..].split_inclusive(|&byte| byte == b'\n').take(lines).map(<[u8]>::len).sum();
    &message[..body + rest]
}
