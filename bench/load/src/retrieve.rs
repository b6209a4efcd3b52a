//! The reading half: clients of POP3 and IMAP that fetch one mail after the other.
//!
//! An order is a line of `key=value` words that begins with `retrieve=`:
//!
//! | key | meaning | default |
//! |---|---|---|
//! | `retrieve` | `pop3` or `imap` | required |
//! | `target` | HOST:PORT | required |
//! | `tls` | `1`: TLS from the first byte on; certificates are not looked at | 0 |
//! | `user` | who logs in, with the password `secret` | required |
//! | `mails` | mails in the mailbox, fetched in turn | required |
//! | `clients` | connections at a time | 1 |
//! | `milliseconds` | how long what comes is counted, once all have logged in and fetched for half as long | 1000 |
//!
//! The answer has the `bytes` that came in that time, those of mails that did not come whole too; `wall_s`; the `mails`
//! that came whole, from the first on; and `first_ms` and `whole_ms`: from the command to the first byte and to the last one of its answer.
//! Bounds: a thread for each client, and 64 KiB for what it reads.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::ops::Range;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use crate::report::{refusal, spread};
use crate::trust::Anyone;

/// How long a server may take to let a client in.
const LOGIN_WAIT: Duration = Duration::from_secs(60);

/// How often a client that hears nothing looks at its watch.
const LOOK: Duration = Duration::from_millis(100);

/// What one run does.
#[derive(Clone)]
struct Order {
    imap: bool,
    target: SocketAddr,
    tls: bool,
    user: String,
    mails: u64,
    clients: usize,
    lasts: Duration,
}

/// What a client has seen.
#[derive(Default)]
struct Seen {
    bytes: u64,
    first: Vec<u64>,
    whole: Vec<u64>,
}

/// Does one run.
pub fn answer(line: &str) -> String {
    match Order::parse(line).and_then(|order| run(&order)) {
        Ok(answer) => answer,
        Err(reason) => refusal(&reason),
    }
}

impl Order {
    fn parse(line: &str) -> Result<Order, String> {
        let words = || line.split_whitespace().map(|word| word.split_once('=').unwrap_or((word, "")));
        let value = |key: &str| words().find(|(name, _)| *name == key).map(|(_, value)| value);
        let needed = |key: &str| value(key).ok_or(format!("{key} is missing"));
        let number = |key: &str, default: u64| match value(key).map(str::parse) {
            None => Ok(default),
            Some(number) => number.map_err(|_| format!("{key}: not a whole number")),
        };
        Ok(Order {
            imap: match needed("retrieve")? {
                "imap" => true,
                "pop3" => false,
                other => return Err(format!("{other}: neither pop3 nor imap")),
            },
            target: crate::address(needed("target")?)?,
            tls: number("tls", 0)? > 0,
            user: needed("user")?.into(),
            mails: needed("mails")?.parse().ok().filter(|&mails| mails > 0).ok_or("mails: not a number")?,
            clients: usize::try_from(number("clients", 1)?).unwrap_or(usize::MAX).clamp(1, 10_000),
            lasts: Duration::from_millis(number("milliseconds", 1_000)?),
        })
    }
}

fn run(order: &Order) -> Result<String, String> {
    // All log in before the first one fetches; one that cannot is counted, so that nobody waits for it.
    let gate = Arc::new(Barrier::new(order.clients + 1));
    let clients: Vec<_> = (0..order.clients)
        .map(|number| {
            let (order, gate) = (order.clone(), gate.clone());
            thread::Builder::new().stack_size(256 << 10).spawn(move || {
                let client = Client::log_in(&order);
                gate.wait();
                client.and_then(|client| client.fetch(&order, number as u64)).map_err(|error| error.to_string())
            })
        })
        .collect::<Result<_, _>>()
        .map_err(|error| error.to_string())?;
    gate.wait();
    let mut all = Seen::default();
    for client in clients {
        let seen = client.join().map_err(|_| "a client panicked".to_string())??;
        all.bytes += seen.bytes;
        all.first.extend(seen.first);
        all.whole.extend(seen.whole);
    }
    let wall_s = order.lasts.as_secs_f64();
    let (bytes, mails) = (all.bytes, all.whole.len());
    let (first, whole) = (spread(all.first), spread(all.whole));
    Ok(format!(
        "{{\"bytes\": {bytes}, \"mails\": {mails}, \"wall_s\": {wall_s:.6}, \"first_ms\": {first}, \"whole_ms\": {whole}}}"
    ))
}

trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// A connection that has logged in.
struct Client {
    stream: Box<dyn Stream>,
    socket: Option<TcpStream>,
    imap: bool,
    buffer: Box<[u8]>,
}

impl Client {
    fn log_in(order: &Order) -> io::Result<Client> {
        let socket = TcpStream::connect(order.target)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(LOGIN_WAIT))?;
        let watched = Some(socket.try_clone()?);
        let stream: Box<dyn Stream> = if order.tls { Box::new(secure(socket)?) } else { Box::new(socket) };
        let mut client =
            Client { stream, socket: watched, imap: order.imap, buffer: vec![0; 64 << 10].into_boxed_slice() };
        let user = &order.user;
        if order.imap {
            client.ask("", b"* OK")?;
            client.ask(&format!("a LOGIN {user} secret\r\n"), b"a OK")?;
            client.ask("b SELECT INBOX\r\n", b"b OK")?;
        } else {
            client.ask("", b"+OK")?;
            client.ask(&format!("USER {user}\r\n"), b"+OK")?;
            client.ask("PASS secret\r\n", b"+OK")?;
        }
        Ok(client)
    }

    /// Says something and reads up to a line that begins like this.
    fn ask(&mut self, words: &str, end: &[u8]) -> io::Result<()> {
        self.stream.write_all(words.as_bytes())?;
        self.stream.flush()?;
        let mut heard = Vec::new();
        loop {
            let count = self.read()?;
            heard.extend_from_slice(&self.buffer[..count]);
            if heard.ends_with(b"\n") && heard.split(|&byte| byte == b'\n').any(|line| line.starts_with(end)) {
                return Ok(());
            }
        }
    }

    fn read(&mut self) -> io::Result<usize> {
        match self.stream.read(&mut self.buffer)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            count => Ok(count),
        }
    }

    /// Fetches one mail after the other until the time is up, beginning with another one than its neighbours.
    fn fetch(mut self, order: &Order, number: u64) -> io::Result<Seen> {
        if let Some(socket) = &self.socket {
            socket.set_read_timeout(Some(LOOK))?;
        }
        let from = Instant::now() + order.lasts / 2;
        let mut seen = Seen::default();
        for mail in number.. {
            let (command, end) = self.command(mail % order.mails + 1, mail);
            let asked = Instant::now();
            self.stream.write_all(command.as_bytes())?;
            self.stream.flush()?;
            let Some((first, whole)) = self.read_to(&end, from..from + order.lasts, &mut seen.bytes)? else { break };
            seen.first.push((first - asked).as_nanos() as u64);
            seen.whole.push((whole - asked).as_nanos() as u64);
        }
        Ok(seen)
    }

    /// The command for a mail, and what stands at the end of its answer, up to the end of a line.
    fn command(&self, mail: u64, count: u64) -> (String, Vec<u8>) {
        match self.imap {
            true => (format!("t{count} FETCH {mail} BODY.PEEK[]\r\n"), format!("\r\nt{count} OK").into_bytes()),
            false => (format!("RETR {mail}\r\n"), b"\r\n.\r\n".to_vec()),
        }
    }

    /// When the first byte came, and the last one of the line that this stands in; none if the time is up before. Counts
    /// what came in that time.
    fn read_to(&mut self, end: &[u8], time: Range<Instant>, bytes: &mut u64) -> io::Result<Option<(Instant, Instant)>> {
        const TAIL_BYTES: usize = 256;
        let (mut first, mut tail) = (None, Vec::new());
        loop {
            let count = match self.read() {
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => 0,
                read => read?,
            };
            let now = Instant::now();
            if now >= time.end {
                return Ok(None);
            }
            *bytes += if now >= time.start { count as u64 } else { 0 };
            first = first.or((count > 0).then_some(now));
            tail.extend_from_slice(&self.buffer[count.saturating_sub(TAIL_BYTES)..count]);
            tail.drain(..tail.len().saturating_sub(TAIL_BYTES));
            let ended = tail.ends_with(b"\r\n") && tail.windows(end.len()).any(|text| text == end);
            if let Some(first) = first.filter(|_| ended) {
                return Ok(Some((first, now)));
            }
        }
    }
}

fn secure(socket: TcpStream) -> io::Result<StreamOwned<ClientConnection, TcpStream>> {
    let config = ClientConfig::builder().dangerous().with_custom_certificate_verifier(Arc::new(Anyone::default()));
    let name = ServerName::try_from("localhost").map_err(io::Error::other)?;
    let connection = ClientConnection::new(Arc::new(config.with_no_client_auth()), name).map_err(io::Error::other)?;
    Ok(StreamOwned::new(connection, socket))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_becomes_an_order() {
        let order = Order::parse("retrieve=imap target=127.0.0.1:143 tls=1 user=4k mails=40 clients=50").unwrap();
        assert_eq!((order.imap, order.tls, order.mails, order.clients), (true, true, 40, 50));
        assert_eq!(Order::parse("retrieve=ftp target=127.0.0.1:1").err().unwrap(), "ftp: neither pop3 nor imap");
        assert!(Order::parse("retrieve=pop3 target=127.0.0.1:1 user=a mails=0").is_err());
    }

    #[test]
    fn an_answer_ends_with_its_last_line_and_not_before() {
        struct Pieces(Vec<&'static [u8]>);
        impl Read for Pieces {
            fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
                let Some(piece) = (!self.0.is_empty()).then(|| self.0.remove(0)) else { return Ok(0) };
                out[..piece.len()].copy_from_slice(piece);
                Ok(piece.len())
            }
        }
        impl Write for Pieces {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        for (imap, end, pieces, whole) in [
            (false, &b"\r\n.\r\n"[..], vec![&b"+OK\r\n..x\r\n"[..], b"y\r", b"\n.\r", b"\n"], Some(16)),
            (true, b"\r\nt1 OK", vec![b"* 1 FETCH (BODY[] {3}\r\nabc", b")\r\nt1 O", b"K done\r\n"], Some(41)),
            (true, b"\r\nt1 OK", vec![b"* BYE\r\n"], None),
        ] {
            let stream = Box::new(Pieces(pieces));
            let mut client = Client { stream, socket: None, imap, buffer: vec![0; 1 << 10].into_boxed_slice() };
            let (mut bytes, now) = (0, Instant::now());
            let ended = client.read_to(end, now..now + LOGIN_WAIT, &mut bytes);
            assert_eq!(ended.ok().flatten().map(|_| bytes), whole);
        }
    }
}
