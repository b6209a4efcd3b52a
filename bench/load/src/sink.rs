//! The receiving half: an SMTP server that takes everything, answers at once and keeps nothing.
//!
//! It speaks PIPELINING, 8BITMIME, SMTPUTF8 and SIZE, and with `--chunking` BDAT too. It checks nothing of what it is
//! told, but that it knows nobody whose name begins with `nobody`. Replies to all commands of one read go out in one write. Bounds: one thread; of each mail only the first
//! [`HEAD_BYTES_MAX`] bytes are held, to find its id.

use std::collections::HashMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;

use memchr::memmem;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};

use crate::ledger::{self, Board};

const HEAD_BYTES_MAX: usize = 8 << 10;
const LINE_BYTES_MAX: usize = 4 << 10;
const LISTENER: Token = Token(usize::MAX);
const END: &[u8] = b"\r\n.\r\n";

/// The server.
pub struct Sink {
    poll: Poll,
    listener: TcpListener,
    chunking: bool,
    board: Arc<Board>,
}

impl Sink {
    /// Listens on `address`.
    ///
    /// # Errors
    /// As the system does.
    pub fn open(address: SocketAddr, chunking: bool, board: Arc<Board>) -> io::Result<Sink> {
        let poll = Poll::new()?;
        let mut listener = TcpListener::bind(address)?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        Ok(Sink { poll, listener, chunking, board })
    }

    /// Serves until the process ends.
    pub fn serve(mut self) {
        let mut connections: HashMap<Token, Connection> = HashMap::new();
        let mut events = Events::with_capacity(1024);
        let mut buffer = vec![0; 256 << 10].into_boxed_slice();
        let mut next = 0;
        loop {
            if self.poll.poll(&mut events, None).is_err() {
                continue;
            }
            for event in &events {
                if event.token() == LISTENER {
                    while let Ok((socket, _)) = self.listener.accept() {
                        next += 1;
                        if let Ok(connection) = self.greet(socket, Token(next)) {
                            connections.insert(Token(next), connection);
                        }
                    }
                } else if let Some(connection) = connections.get_mut(&event.token())
                    && !connection.serve(event.is_read_closed(), &mut buffer)
                {
                    connections.remove(&event.token());
                }
            }
        }
    }

    fn greet(&self, mut socket: TcpStream, token: Token) -> io::Result<Connection> {
        socket.set_nodelay(true)?;
        self.poll.registry().register(&mut socket, token, Interest::READABLE)?;
        socket.write_all(b"220 sink.test ESMTP\r\n")?;
        let board = Arc::clone(&self.board);
        Ok(Connection { socket, session: Session::new(self.chunking, board), replies: Vec::new() })
    }
}

struct Connection {
    socket: TcpStream,
    session: Session,
    replies: Vec<u8>,
}

impl Connection {
    /// Reads and answers what there is; false when the connection is over.
    fn serve(&mut self, closed: bool, buffer: &mut [u8]) -> bool {
        loop {
            let drained = match self.socket.read(buffer) {
                Ok(0) => return false,
                Ok(count) => {
                    self.session.take(&buffer[..count], &mut self.replies);
                    count < buffer.len() && !closed
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return false,
            };
            // Replies are short, and a client that reads none of them deserves to lose its connection.
            if self.socket.write_all(&self.replies).is_err() || matches!(self.session.state, State::Over) {
                return false;
            }
            self.replies.clear();
            if drained {
                return true;
            }
        }
    }
}

/// The protocol, without its socket.
struct Session {
    chunking: bool,
    board: Arc<Board>,
    state: State,
    content: Content,
}

enum State {
    Command { line: Vec<u8> },
    Data { end: EndFinder },
    Chunk { left: u64, last: bool },
    Over,
}

/// What is known of the mail that is being received.
#[derive(Default)]
struct Content {
    head: Vec<u8>,
    bytes: u64,
}

impl Session {
    fn new(chunking: bool, board: Arc<Board>) -> Session {
        Session { chunking, board, state: State::Command { line: Vec::new() }, content: Content::default() }
    }

    fn take(&mut self, mut bytes: &[u8], replies: &mut Vec<u8>) {
        while !bytes.is_empty() {
            let taken = match &mut self.state {
                State::Command { line } => {
                    let end = memchr::memchr(b'\n', bytes);
                    let taken = end.map_or(bytes.len(), |end| end + 1);
                    line.extend_from_slice(&bytes[..taken]);
                    line.truncate(LINE_BYTES_MAX);
                    if end.is_some() {
                        let line = std::mem::take(line);
                        self.command(line.trim_ascii_end(), replies);
                    }
                    taken
                }
                State::Data { end } => {
                    let found = end.find(bytes);
                    let taken = found.unwrap_or(bytes.len());
                    self.content.add(&bytes[..taken]);
                    if found.is_some() {
                        self.arrived(replies);
                    }
                    taken
                }
                State::Chunk { left, last } => {
                    let taken = bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                    *left -= taken as u64;
                    let (left, last) = (*left, *last);
                    self.content.add(&bytes[..taken]);
                    self.chunk_taken(left, last, replies);
                    taken
                }
                State::Over => return,
            };
            bytes = &bytes[taken..];
        }
    }

    fn command(&mut self, line: &[u8], replies: &mut Vec<u8>) {
        let verb = line.get(..4).unwrap_or(line).to_ascii_uppercase();
        let reply: &[u8] = match verb.as_slice() {
            b"EHLO" if self.chunking => {
                b"250-sink.test\r\n250-PIPELINING\r\n250-SIZE 0\r\n250-SMTPUTF8\r\n250-CHUNKING\r\n250 8BITMIME\r\n"
            }
            b"EHLO" => b"250-sink.test\r\n250-PIPELINING\r\n250-SIZE 0\r\n250-SMTPUTF8\r\n250 8BITMIME\r\n",
            b"DATA" => {
                self.state = State::Data { end: EndFinder::default() };
                b"354 go\r\n"
            }
            b"RCPT" if memmem::find(line, b"<nobody").is_some() => b"550 5.1.1 no such user\r\n",
            b"BDAT" => return self.chunk(line, replies),
            b"QUIT" => {
                self.state = State::Over;
                b"221 bye\r\n"
            }
            b"RSET" => {
                self.content = Content::default();
                b"250 ok\r\n"
            }
            _ => b"250 ok\r\n",
        };
        replies.extend_from_slice(reply);
    }

    fn chunk(&mut self, line: &[u8], replies: &mut Vec<u8>) {
        let words = std::str::from_utf8(line).unwrap_or_default().to_ascii_uppercase();
        let mut words = words.split_whitespace().skip(1);
        let Some(left) = words.next().and_then(|size| size.parse().ok()) else {
            return replies.extend_from_slice(b"501 BDAT wants a size\r\n");
        };
        let last = words.next() == Some("LAST");
        self.state = State::Chunk { left, last };
        self.chunk_taken(left, last, replies);
    }

    fn chunk_taken(&mut self, left: u64, last: bool, replies: &mut Vec<u8>) {
        match (left, last) {
            (1.., _) => self.state = State::Chunk { left, last },
            (0, true) => self.arrived(replies),
            (0, false) => {
                self.state = State::Command { line: Vec::new() };
                replies.extend_from_slice(b"250 ok\r\n");
            }
        }
    }

    fn arrived(&mut self, replies: &mut Vec<u8>) {
        if let Some(ledger) = self.board.current() {
            let time = ledger.now();
            ledger.enter(ledger::mail_id(&self.content.head), time, self.content.bytes);
        }
        self.content = Content::default();
        self.state = State::Command { line: Vec::new() };
        replies.extend_from_slice(b"250 got it\r\n");
    }
}

impl Content {
    fn add(&mut self, bytes: &[u8]) {
        let room = HEAD_BYTES_MAX.saturating_sub(self.head.len());
        self.head.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.bytes += bytes.len() as u64;
    }
}

/// Finds CRLF, dot, CRLF, wherever the reads cut it.
struct EndFinder {
    /// The last bytes before the present ones, at most four.
    before: Vec<u8>,
}

impl Default for EndFinder {
    fn default() -> EndFinder {
        // The line end of the DATA command counts as the one before the dot.
        EndFinder { before: b"\r\n".to_vec() }
    }
}

impl EndFinder {
    /// Where the content ends within `bytes`, its end included.
    fn find(&mut self, bytes: &[u8]) -> Option<usize> {
        let held = self.before.len();
        self.before.extend_from_slice(&bytes[..bytes.len().min(END.len() - 1)]);
        if let Some(at) = memmem::find(&self.before, END) {
            return Some(at + END.len() - held);
        }
        if let Some(at) = memmem::find(bytes, END) {
            return Some(at + END.len());
        }
        let tail = &bytes[bytes.len().saturating_sub(END.len() - 1)..];
        if tail.len() == END.len() - 1 {
            self.before.clear();
            self.before.extend_from_slice(tail);
        } else {
            self.before.drain(..self.before.len().saturating_sub(END.len() - 1));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TALK: &[u8] = b"EHLO a\r\nMAIL FROM:<>\r\nRCPT TO:<b>\r\nDATA\r\nX-Bench-Id: 3.1\r\n\r\n..x\r\n.\r\nQUIT\r\n";

    fn replies(talk: &[u8], cut: usize) -> (Vec<u8>, Arc<Board>) {
        let board = Arc::new(Board::default());
        board.open(3, 2, true);
        let mut session = Session::new(true, Arc::clone(&board));
        let mut replies = Vec::new();
        talk.chunks(cut).for_each(|piece| session.take(piece, &mut replies));
        (replies, board)
    }

    #[test]
    fn a_mail_arrives_however_its_bytes_are_cut() {
        let (whole, _) = replies(TALK, TALK.len());
        assert!(whole.ends_with(b"354 go\r\n250 got it\r\n221 bye\r\n"));
        for cut in 1..TALK.len() {
            let (cut_up, board) = replies(TALK, cut);
            assert_eq!(cut_up, whole, "cut every {cut}");
            assert!(board.current().unwrap().arrival(1) > 0);
        }
    }

    #[test]
    fn an_empty_mail_is_a_dot_alone() {
        let (said, board) = replies(b"DATA\r\n.\r\n", 1);
        assert_eq!(said, b"354 go\r\n250 got it\r\n");
        assert_eq!(board.current().unwrap().strangers(), 1);
    }

    #[test]
    fn chunks_may_hold_dots_and_end_with_an_empty_one() {
        let talk = b"BDAT 22\r\nX-Bench-Id: 3.0\r\n\r\n.\r\nBDAT 0 LAST\r\nNOOP\r\n";
        for cut in 1..talk.len() {
            let (said, board) = replies(talk, cut);
            assert_eq!(said, b"250 ok\r\n250 got it\r\n250 ok\r\n", "cut every {cut}");
            assert!(board.current().unwrap().arrival(0) > 0);
        }
    }
}
