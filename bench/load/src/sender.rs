//! The sending half: many SMTP client sessions in one thread, each one mail after the other.
//!
//! A session waits for the reply to each command, or sends the commands of a mail at once and waits for the last. A mail that
//! is refused, or whose connection is lost, is recorded as such and not tried again. Content goes out as fast as the socket
//! takes it, or at the pace of the run.

use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::time::Duration;

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use crate::ledger::Ledger;
use crate::mail::Body;
use crate::run::Run;

const RCPT: &[u8] = b"RCPT TO:<user@sink.test>\r\n";
const DATA: &[u8] = b"DATA\r\n";

/// What became of one mail, as its sender saw it. Times are the ledger's.
#[derive(Clone, Default)]
pub struct Record {
    /// When its connection, or its MAIL on an open connection, was begun.
    pub begun: u64,
    /// When the system took the final dot.
    pub dotted: u64,
    /// When the reply to the final dot was read.
    pub replied: u64,
    /// Accepted, refused or lost.
    pub outcome: Outcome,
}

/// How a mail ended for its sender.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Outcome {
    /// It has not.
    #[default]
    Open,
    /// With 250.
    Accepted,
    /// With this reply.
    Refused(String),
    /// With the connection.
    Lost,
}

/// Sends the mails of a run and waits until those accepted have arrived, or the run's time is over.
///
/// # Errors
/// When the system has no event queue to give.
pub fn drive(run: &Run, ledger: &Ledger) -> io::Result<Vec<Record>> {
    let mut driver = Driver { run, ledger, poll: Poll::new()?, begun: 0, records: vec![Record::default(); run.mails] };
    let mut sessions: Vec<Session> = (0..run.senders.min(run.mails)).map(Session::new).collect();
    let mut events = Events::with_capacity(1024);
    for session in &mut sessions {
        session.begin(&mut driver);
    }
    while sessions.iter().any(|session| !matches!(session.state, State::Over)) && !ledger.is_over(run.timeout) {
        driver.wait(&mut events)?;
        for event in &events {
            sessions[event.token().0].ready(event.is_read_closed(), &mut driver);
        }
        if driver.ticks() {
            sessions.iter_mut().for_each(|session| session.tick(&mut driver));
        }
    }
    driver.wait_for_arrivals();
    Ok(driver.records)
}

/// What the sessions share.
struct Driver<'a> {
    run: &'a Run,
    ledger: &'a Ledger,
    poll: Poll,
    begun: usize,
    records: Vec<Record>,
}

impl Driver<'_> {
    fn ticks(&self) -> bool {
        self.run.bytes_per_second.is_some() || self.run.waits_for_sink
    }

    fn wait(&mut self, events: &mut Events) -> io::Result<()> {
        let tick = match self.run.bytes_per_second {
            Some(pace) => Duration::from_secs_f64((4096.0 / pace).clamp(0.001, 0.02)),
            None if self.run.waits_for_sink => Duration::from_millis(1),
            None => Duration::from_millis(100),
        };
        match self.poll.poll(events, Some(tick)) {
            Err(error) if error.kind() != ErrorKind::Interrupted => Err(error),
            _ => Ok(()),
        }
    }

    fn next_mail(&mut self) -> Option<usize> {
        let mail = self.begun;
        if mail == self.run.mails {
            return None;
        }
        self.begun += 1;
        self.records[mail].begun = self.ledger.now();
        Some(mail)
    }

    fn end_mail(&mut self, mail: usize, outcome: Outcome) {
        self.records[mail].replied = self.ledger.now();
        self.records[mail].outcome = outcome;
    }

    /// Whether nothing is to be waited for any more where `mail` is concerned.
    fn is_settled(&self, mail: usize) -> bool {
        let accepted = self.records[mail].outcome == Outcome::Accepted;
        !self.run.waits_for_sink || !accepted || !self.ledger.sunk || self.ledger.arrival(mail) > 0
    }

    fn wait_for_arrivals(&self) {
        let accepted = self.records.iter().filter(|record| record.outcome == Outcome::Accepted).count() as u64;
        while self.ledger.sunk && self.ledger.arrived() < accepted && !self.ledger.is_over(self.run.timeout) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// One client.
struct Session<'a> {
    number: usize,
    mail: usize,
    sent_on_connection: usize,
    socket: Option<TcpStream>,
    line: Vec<u8>,
    state: State<'a>,
}

enum State<'a> {
    Banner,
    Hello,
    Login,
    Mail,
    Rcpt,
    Data,
    Content {
        body: Body<'a>,
        since: u64,
        sent: u64,
    },
    Dot,
    Quit,
    /// The connection is closed, and the mail is on its way to the sink.
    Arrival,
    Over,
}

impl<'a> Session<'a> {
    fn new(number: usize) -> Session<'a> {
        Session { number, mail: 0, sent_on_connection: 0, socket: None, line: Vec::new(), state: State::Over }
    }

    /// Opens a connection for the next mail, if there is one.
    fn begin(&mut self, driver: &mut Driver<'a>) {
        self.state = State::Over;
        while let Some(mail) = driver.next_mail() {
            self.mail = mail;
            self.sent_on_connection = 0;
            self.line.clear();
            match self.connect(driver) {
                Ok(socket) => {
                    self.socket = Some(socket);
                    self.state = State::Banner;
                    return;
                }
                Err(_) => driver.end_mail(mail, Outcome::Lost),
            }
        }
    }

    fn connect(&self, driver: &Driver<'a>) -> io::Result<TcpStream> {
        let mut socket = TcpStream::connect(driver.run.target)?;
        socket.set_nodelay(true)?;
        let interest = Interest::READABLE | Interest::WRITABLE;
        driver.poll.registry().register(&mut socket, Token(self.number), interest)?;
        Ok(socket)
    }

    /// The socket has something to read, or room to write.
    fn ready(&mut self, closed: bool, driver: &mut Driver<'a>) {
        self.pump(driver);
        let mut buffer = [0; 4096];
        while let Some(socket) = &mut self.socket {
            match socket.read(&mut buffer) {
                Ok(0) => return self.lost(driver),
                Ok(count) => {
                    self.take(&buffer[..count], driver);
                    if count < buffer.len() && !closed {
                        return;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return self.lost(driver),
            }
        }
    }

    /// Time has passed: paced content may go on, and a mail may have arrived.
    fn tick(&mut self, driver: &mut Driver<'a>) {
        match self.state {
            State::Content { .. } => self.pump(driver),
            State::Arrival if driver.is_settled(self.mail) => self.begin(driver),
            _ => {}
        }
    }

    fn take(&mut self, mut bytes: &[u8], driver: &mut Driver<'a>) {
        while let Some(end) = bytes.iter().position(|&byte| byte == b'\n') {
            self.line.extend_from_slice(&bytes[..end]);
            bytes = &bytes[end + 1..];
            let line = std::mem::take(&mut self.line);
            if line.get(3) == Some(&b'-') {
                continue;
            }
            self.reply(&line, driver);
            // Whatever else is there was said on a connection that is closed; there may be another already.
            if self.socket.is_none() || matches!(self.state, State::Banner) {
                return;
            }
        }
        self.line.extend_from_slice(bytes);
    }

    fn reply(&mut self, line: &[u8], driver: &mut Driver<'a>) {
        if line.first().is_none_or(|&digit| digit >= b'4') && !matches!(self.state, State::Quit) {
            let text = String::from_utf8_lossy(line).trim_end().to_owned();
            driver.end_mail(self.mail, Outcome::Refused(text));
            return self.close(driver);
        }
        match self.state {
            State::Banner => self.say(b"EHLO client.test\r\n", State::Hello, driver),
            State::Hello => match &driver.run.login {
                Some(login) => self.say(format!("AUTH PLAIN {login}\r\n").as_bytes(), State::Login, driver),
                None => self.mail_from(driver),
            },
            State::Login => self.mail_from(driver),
            State::Mail if driver.run.pipelining => self.state = State::Rcpt,
            State::Mail => self.say(RCPT, State::Rcpt, driver),
            State::Rcpt if driver.run.pipelining => self.state = State::Data,
            State::Rcpt => self.say(DATA, State::Data, driver),
            State::Data => {
                let body = driver.run.source.body(driver.ledger.run, self.mail);
                self.state = State::Content { body, since: driver.ledger.now(), sent: 0 };
                self.pump(driver);
            }
            State::Dot => self.accepted(driver),
            State::Quit => self.close(driver),
            State::Content { .. } | State::Arrival | State::Over => {}
        }
    }

    fn accepted(&mut self, driver: &mut Driver<'a>) {
        driver.end_mail(self.mail, Outcome::Accepted);
        self.sent_on_connection += 1;
        if self.sent_on_connection < driver.run.mails_per_connection
            && let Some(mail) = driver.next_mail()
        {
            self.mail = mail;
            return self.mail_from(driver);
        }
        self.say(b"QUIT\r\n", State::Quit, driver);
    }

    /// Begins a mail; its size is announced, as mail servers do (RFC 1870).
    fn mail_from(&mut self, driver: &mut Driver<'a>) {
        let size = driver.run.source.wire_bytes(self.mail);
        let mut commands = format!("MAIL FROM:<sender@client.test> SIZE={size}\r\n").into_bytes();
        if driver.run.pipelining {
            commands.extend_from_slice(&[RCPT, DATA].concat());
        }
        self.say(&commands, State::Mail, driver);
    }

    fn say(&mut self, command: &[u8], state: State<'a>, driver: &mut Driver<'a>) {
        self.state = state;
        // A command always fits into the empty send buffer of a session that waits for each reply.
        let sent = self.socket.as_mut().map(|socket| socket.write_all(command));
        if matches!(sent, Some(Err(_))) {
            self.lost(driver);
        }
    }

    /// Sends content until it is over, the socket is full, or the pace forbids more.
    fn pump(&mut self, driver: &mut Driver<'a>) {
        let (State::Content { body, since, sent }, Some(socket)) = (&mut self.state, &mut self.socket) else {
            return;
        };
        loop {
            let piece = body.next();
            if piece.is_empty() {
                driver.records[self.mail].dotted = driver.ledger.now();
                self.state = State::Dot;
                return;
            }
            let allowed = match driver.run.bytes_per_second {
                Some(pace) => (driver.ledger.now() - *since) as f64 / 1e9 * pace - *sent as f64,
                None => f64::INFINITY,
            };
            let length = piece.len().min(allowed as usize);
            if length == 0 {
                return;
            }
            match socket.write(&piece[..length]) {
                Ok(count) => {
                    body.went(count);
                    *sent += count as u64;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return self.refused_early(driver),
            }
        }
    }

    /// The peer closed while content was sent; what it said before may still be there to read.
    fn refused_early(&mut self, driver: &mut Driver<'a>) {
        let mut said = Vec::new();
        if let Some(socket) = &mut self.socket {
            let _ = socket.read_to_end(&mut said);
        }
        let line = said.split(|&byte| byte == b'\n').find(|line| line.first().is_some_and(|&digit| digit >= b'4'));
        match line {
            Some(line) => self.reply(line, driver),
            None => self.lost(driver),
        }
    }

    fn lost(&mut self, driver: &mut Driver<'a>) {
        if !matches!(self.state, State::Quit) {
            driver.end_mail(self.mail, Outcome::Lost);
        }
        self.close(driver);
    }

    fn close(&mut self, driver: &mut Driver<'a>) {
        if let Some(socket) = self.socket.take() {
            let _ = socket.shutdown(Shutdown::Both);
        }
        if driver.is_settled(self.mail) {
            self.begin(driver);
        } else {
            self.state = State::Arrival;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// A server that refuses each first mail, with all replies at once, and reads until its client goes.
    fn refuse(listener: &TcpListener, replies: &[u8]) {
        let (mut socket, _) = listener.accept().unwrap();
        let mut buffer = [0; 4096];
        socket.write_all(b"220-sink.test\r\n220 sink.test\r\n").unwrap();
        assert!(socket.read(&mut buffer).unwrap() > 0);
        socket.write_all(b"250 sink.test\r\n").unwrap();
        assert!(socket.read(&mut buffer).unwrap() > 0);
        socket.write_all(replies).unwrap();
        while socket.read(&mut buffer).is_ok_and(|count| count > 0) {}
    }

    #[test]
    fn a_pipelined_mail_is_refused_once() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let order = format!(
            "target={} generate=100 mails=3 senders=1 mails_per_connection=20 pipelining=yes timeout=20",
            listener.local_addr().unwrap()
        );
        let all: [&[u8]; 3] = [
            b"451 MAIL\r\n503 RCPT\r\n503 DATA\r\n",
            b"250 MAIL\r\n550 RCPT\r\n554 DATA\r\n",
            b"250 MAIL\r\n250 RCPT\r\n451 DATA\r\n",
        ];
        let server = std::thread::spawn(move || all.iter().for_each(|replies| refuse(&listener, replies)));
        let ledger = crate::ledger::Board::default().open(1, 3, false);
        let records = drive(&Run::parse(&order).unwrap(), &ledger).unwrap();
        let outcome = |record: &Record| match &record.outcome {
            Outcome::Refused(text) => text.clone(),
            Outcome::Open => "open".into(),
            Outcome::Accepted => "accepted".into(),
            Outcome::Lost => "lost".into(),
        };
        assert_eq!(records.iter().map(outcome).collect::<Vec<_>>(), ["451 MAIL", "550 RCPT", "451 DATA"]);
        server.join().unwrap();
    }
}
