//! An IMAP client that reads literals, and a server with a few messages, which may misbehave.

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

use super::{SinkTls, Wire};

/// The answer to a command.
#[derive(Debug)]
pub struct Answer {
    /// The untagged lines, without literals.
    pub lines: Vec<String>,
    /// The literals.
    pub literals: Vec<Vec<u8>>,
    /// Text after the tag.
    pub status: String,
}

/// Sends a command and reads up to its answer.
pub fn ask(wire: &mut Wire, command: &str) -> Answer {
    wire.send(format!("t1 {command}\r\n").as_bytes());
    answer(wire, "t1")
}

/// Reads up to the answer under this tag, or the end of the connection.
pub fn answer(wire: &mut Wire, tag: &str) -> Answer {
    let mut answer = Answer { lines: Vec::new(), literals: Vec::new(), status: String::new() };
    loop {
        let line = wire.line();
        if let Some(status) = line.strip_prefix(&format!("{tag} ")) {
            return Answer { status: status.into(), ..answer };
        }
        if line.is_empty() {
            return answer;
        }
        if let Some(len) = literal(&line) {
            answer.literals.push(wire.exactly(len));
        }
        answer.lines.push(line);
    }
}

fn literal(line: &str) -> Option<usize> {
    line.strip_suffix('}')?.rsplit_once('{')?.1.parse().ok()
}

/// How the server behaves.
#[derive(Clone, Default)]
pub struct Imap {
    /// Its messages; the UID of the first is 101.
    pub messages: Vec<Vec<u8>>,
    /// Capabilities offered.
    pub capabilities: &'static str,
    /// Text sent before the reply to a command that begins like this.
    pub injected: Option<(&'static str, &'static [u8])>,
    /// Tells when messages came: each at another time.
    pub dates: bool,
    /// Reply to a FETCH of any item but all of a message or a range of it.
    pub other: &'static [u8],
    /// Has a certificate.
    pub tls: Option<SinkTls>,
    /// All commands that were given.
    pub given: Arc<Mutex<Vec<String>>>,
    /// Messages in place of its own.
    pub swapped: Arc<Mutex<Option<Vec<Vec<u8>>>>>,
    /// All messages that were appended.
    pub appended: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Imap {
    pub fn with(messages: &[&[u8]]) -> Imap {
        let messages = messages.iter().map(|message| message.to_vec()).collect();
        Imap {
            messages,
            capabilities: "IMAP4rev1 IDLE COMPRESS=DEFLATE LITERAL+ NOTIFY AUTH=PLAIN AUTH=GSSAPI X-ODD",
            dates: true,
            ..Imap::default()
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

    /// Puts messages in the place of those that were there; these get the UIDs of those.
    pub fn swap(&self, messages: &[&[u8]]) {
        *self.swapped.lock().unwrap() = Some(messages.iter().map(|message| message.to_vec()).collect());
    }

    fn message(&self, number: usize) -> Option<Vec<u8>> {
        let swapped = self.swapped.lock().unwrap();
        swapped.as_ref().unwrap_or(&self.messages).get(number - 1).cloned()
    }

    /// When a message came.
    fn date(&self, message: &[u8]) -> &'static str {
        let is_new = self.swapped.lock().unwrap().as_ref().is_some_and(|all| all.iter().any(|one| one == message));
        if is_new { "23-Nov-2026 10:00:01 +0000" } else { "22-Nov-2026 10:00:00 +0000" }
    }

    /// All commands that were given, without their tags.
    pub fn commands(&self) -> Vec<String> {
        self.given.lock().unwrap().clone()
    }

    fn session(&self, mut wire: Wire) {
        if let Some(tls) = self.tls.as_ref().filter(|tls| tls.implicit) {
            wire = wire.secure(tls.certificate.server());
        }
        wire.send(format!("* OK [CAPABILITY {}] ready\r\n", self.capabilities).as_bytes());
        loop {
            let line = wire.line();
            let Some((tag, command)) = line.split_once(' ') else { return };
            self.given.lock().unwrap().push(command.to_string());
            let mut reply = Vec::new();
            if let Some((start, more)) = self.injected
                && command.starts_with(start)
            {
                reply.extend_from_slice(more);
            }
            let words: Vec<&str> = command.splitn(3, ' ').collect();
            match words[0] {
                "CAPABILITY" => reply.extend(format!("* CAPABILITY {}\r\n", self.capabilities).bytes()),
                "SELECT" => reply.extend(b"* 2 EXISTS\r\n* OK [UIDVALIDITY 7] fine\r\n"),
                "FETCH" => self.fetch(words[1], words[2], &mut reply),
                "UID" if words[1] == "FETCH" => {
                    let (uid, items) = words[2].split_once(' ').unwrap();
                    self.fetch(&(uid.parse::<usize>().unwrap() - 100).to_string(), items, &mut reply);
                }
                "AUTHENTICATE" | "IDLE" => {
                    wire.send(b"+ \r\n");
                    self.given.lock().unwrap().push(wire.line());
                }
                "APPEND" if !self.append(&mut wire, &line) => return,
                _ => {}
            }
            reply.extend(format!("{tag} OK [CAPABILITY {}] done\r\n", self.capabilities).bytes());
            if wire.try_send(&reply).is_err() {
                return;
            }
            match (words[0], &self.tls) {
                ("STARTTLS", Some(tls)) => wire = wire.secure(tls.certificate.server()),
                ("LOGOUT", _) => return,
                _ => {}
            }
        }
    }

    /// The message with this number; the items are sent in the order of the command.
    fn fetch(&self, number: &str, items: &str, reply: &mut Vec<u8>) {
        let number: usize = number.parse().unwrap();
        let Some(message) = &self.message(number) else { return };
        let mut told = Vec::new();
        for item in items.trim_matches(|c| c == '(' || c == ')').split(' ') {
            let range = item.split_once('<').map(|(_, range)| range.trim_end_matches('>'));
            let fact = match item {
                "UID" => Some(format!("UID {}", number + 100)),
                "RFC822.SIZE" => Some(format!("RFC822.SIZE {}", message.len())),
                "INTERNALDATE" => self.dates.then(|| format!("INTERNALDATE \"{}\"", self.date(message))),
                _ => None,
            };
            if let Some(fact) = fact {
                told.push(fact.into_bytes());
                continue;
            }
            let content = match (item, range) {
                ("INTERNALDATE", _) => continue,
                (_, Some(range)) => {
                    let (start, len) = range.split_once('.').unwrap();
                    let start: usize = start.parse::<usize>().unwrap().min(message.len());
                    &message[start..(start + len.parse::<usize>().unwrap()).min(message.len())]
                }
                ("BODY[]" | "BODY.PEEK[]" | "RFC822", _) => message,
                _ => self.other,
            };
            let item = item.replace(".PEEK", "");
            let name = item.split_once('.').filter(|_| item.contains('<')).map_or(item.as_str(), |(name, _)| name);
            let name = if item.contains('<') { format!("{name}>") } else { item.clone() };
            told.push([format!("{name} {{{}}}\r\n", content.len()).into_bytes(), content.to_vec()].concat());
        }
        reply.extend([format!("* {number} FETCH (").as_bytes(), &told.join(&b' '), b")\r\n"].concat());
    }

    /// Whether it came to its end.
    fn append(&self, wire: &mut Wire, line: &str) -> bool {
        let (mut line, mut messages) = (line.to_string(), Vec::new());
        while let Some(len) = literal(&line) {
            wire.send(b"+ go on\r\n");
            let mut message = vec![0; len];
            if wire.try_exactly(&mut message).is_err() {
                return false;
            }
            messages.push(message);
            let Some(rest) = wire.whole_line() else { return false };
            line = rest;
        }
        self.appended.lock().unwrap().extend(messages);
        true
    }
}
