//! IMAP: what a client takes out of a mailbox and puts into it has crossed whole, however the two halves meet.

use std::collections::VecDeque;

use proptest::prelude::*;
use proto::imap::{Client, ClientEvent, Command, Config, Kind, Message, Piece, Server, ServerEvent, Verb};

use super::{Host, Link, Meeting, Random, meet};

/// How long the client waits for the server.
const PATIENCE_MS: u64 = 2_700_000;

/// How long after IDLE a mail comes.
const MAIL_AFTER_MS: u64 = 1_500_000;

const PASSWORD: &[u8] = b"a \"secret\"\r\nof two lines";

/// How the client goes about it.
#[derive(Debug, Clone, Copy)]
struct Manner {
    /// It begins with STARTTLS.
    tls: bool,
    /// It does not wait for leave to send literals (LITERAL+).
    at_once: bool,
    /// The server keeps the mail itself.
    keeps: bool,
}

/// Mails in the mailbox, those that the client appends in one command, and one that comes while it is idle.
#[derive(Debug, Clone)]
struct Mails {
    there: Vec<Vec<u8>>,
    appended: Vec<Vec<u8>>,
    new: Vec<u8>,
}

fn mails(seed: u64) -> Mails {
    let mut random = Random(seed);
    let mut some = |least| (0..least + random.below(4)).map(|_| random.message()).collect::<Vec<_>>();
    Mails { there: some(0), appended: some(1), new: some(1).remove(0) }
}

/// Bytes as they are on the wire: behind the handshake they are others.
fn cross(mut bytes: Vec<u8>, is_secure: bool) -> Vec<u8> {
    bytes.iter_mut().for_each(|byte| *byte ^= if is_secure { 0x5a } else { 0 });
    bytes
}

fn command(verb: Verb, name: &'static str, pieces: Vec<Piece>) -> Command {
    Command { pieces, ..Command::plain(verb, name) }
}

fn text(text: &str) -> Piece {
    Piece::Text(text.into())
}

fn literal(bytes: &[u8]) -> Piece {
    Piece::Literal { bytes: bytes.into(), binary: false }
}

/// The client: it takes all that is there, puts mails there, and waits for another.
struct Visitor {
    client: Client,
    manner: Manner,
    /// Commands still to send.
    commands: VecDeque<Command>,
    asked: &'static str,
    /// Messages still to append, and those appended.
    appends: VecDeque<Vec<u8>>,
    /// The message that is coming, and those that have come.
    coming: Vec<u8>,
    fetched: Vec<Vec<u8>>,
    /// Commands to which the server has agreed.
    agreed: Vec<&'static str>,
    is_secure: bool,
    heard: u64,
    over: bool,
}

impl Visitor {
    fn new(manner: Manner, mails: &Mails) -> Visitor {
        let mut commands = VecDeque::new();
        if manner.tls {
            commands.push_back(Command::plain(Verb::Starttls, "STARTTLS"));
        }
        commands.push_back(command(Verb::Login, "LOGIN", vec![literal(b"tim"), text(" "), literal(PASSWORD)]));
        commands.push_back(command(Verb::Select, "SELECT", vec![literal(b"INBOX")]));
        if !mails.there.is_empty() {
            commands.push_back(command(Verb::Fetch, "FETCH", vec![text("1:* (FLAGS BODY.PEEK[])")]));
            commands.push_back(command(Verb::OfMailbox, "STORE", vec![text("1:* +FLAGS.SILENT (\\Deleted)")]));
            commands.push_back(Command::plain(Verb::OfMailbox, "EXPUNGE"));
        }
        commands.push_back(command(Verb::Append, "APPEND", vec![literal(b"INBOX"), text(" (\\Seen) ")]));
        commands.push_back(Command::plain(Verb::Idle, "IDLE"));
        commands.push_back(command(Verb::Fetch, "FETCH", vec![text("* (BODY.PEEK[])")]));
        commands.push_back(Command::plain(Verb::Logout, "LOGOUT"));
        Visitor {
            client: Client::new(),
            manner,
            commands,
            asked: "",
            appends: mails.appended.clone().into(),
            coming: Vec::new(),
            fetched: Vec::new(),
            agreed: Vec::new(),
            is_secure: false,
            heard: 0,
            over: false,
        }
    }

    fn ask(&mut self) {
        let Some(command) = self.commands.pop_front() else { return self.over = true };
        self.asked = command.name;
        match self.appends.front() {
            Some(message) if command.verb == Verb::Append => {
                let len = message.len() as u64;
                self.client.append(&command, Message { len, binary: false });
            }
            _ => self.client.command(&command),
        }
    }

    /// The message that was announced may come; what stands behind it is the next, or the end.
    fn append(&mut self) {
        let message = self.appends.pop_front().expect("it was announced");
        self.client.bytes(&message);
        match self.appends.front() {
            Some(next) => self.client.append_more(b" ", Message { len: next.len() as u64, binary: false }),
            None => self.client.bytes(b"\r\n"),
        }
    }

    fn event(&mut self, event: ClientEvent, run: &[u8]) {
        match event {
            ClientEvent::Status(status) if status.kind == Kind::Bye => {}
            ClientEvent::Status(status) => {
                assert_eq!(status.kind, Kind::Ok, "{}: {}", self.asked, status.text.escape_ascii());
                if status.tagged {
                    self.agreed.push(self.asked);
                    self.is_secure |= self.asked == "STARTTLS";
                }
                self.ask();
            }
            ClientEvent::Continue(_) if self.asked == "APPEND" => self.append(),
            ClientEvent::Continue(_) => assert_eq!(self.asked, "IDLE"),
            ClientEvent::Data(start) if self.asked == "IDLE" && start.ends_with(b"EXISTS") => {
                self.client.bytes(b"DONE\r\n");
            }
            ClientEvent::Section(_, message) => assert!(message.is_some(), "no message"),
            ClientEvent::Content => self.coming.extend_from_slice(run),
            ClientEvent::End if self.asked == "FETCH" => self.fetched.push(std::mem::take(&mut self.coming)),
            ClientEvent::Broken(reason) => panic!("{reason}"),
            _ => {}
        }
    }

    /// Takes all of what the server says.
    fn take(&mut self, mut rest: &[u8]) {
        while !self.over {
            let (taken, event) = self.client.step(rest);
            let (run, behind) = rest.split_at(taken);
            rest = behind;
            if event == ClientEvent::Idle && taken == 0 {
                assert!(rest.is_empty(), "bytes are left");
                return;
            }
            self.event(event, run);
        }
    }
}

impl Host for Visitor {
    fn hear(&mut self, now: u64, bytes: &[u8]) {
        self.heard = now;
        let bytes = cross(bytes.to_vec(), self.is_secure);
        self.take(&bytes);
    }

    fn say(&mut self) -> Vec<u8> {
        let (mut said, is_secure) = (Vec::new(), self.is_secure);
        loop {
            said.extend_from_slice(self.client.outbox());
            self.client.sent();
            if !self.manner.at_once || !said.ends_with(b"}\r\n") {
                return cross(said, is_secure);
            }
            // What its half waits for it says itself.
            said.truncate(said.len() - 3);
            said.extend_from_slice(b"+}\r\n");
            self.take(b"+ \r\n");
        }
    }

    fn deadline(&self) -> u64 {
        self.heard + PATIENCE_MS
    }

    fn timeout(&mut self, _: u64) {
        self.over = true;
    }

    fn lose(&mut self) {
        self.over = true;
    }

    fn is_over(&self) -> bool {
        self.over
    }
}

/// The server and its mailbox.
struct Keeper {
    server: Server,
    said: Vec<u8>,
    is_secure: bool,
    messages: Vec<Vec<u8>>,
    is_deleted: bool,
    /// Messages being appended.
    coming: Vec<Vec<u8>>,
    tag: Vec<u8>,
    new: Option<Vec<u8>>,
    /// When that comes.
    comes_at: u64,
}

impl Keeper {
    fn new(manner: Manner, mails: &Mails) -> Keeper {
        let mut server = Server::new(Config { keeps: manner.keeps, ..Config::default() }, 0);
        server.line(b"* OK ready");
        Keeper {
            server,
            said: Vec::new(),
            is_secure: false,
            messages: mails.there.clone(),
            is_deleted: false,
            coming: Vec::new(),
            tag: Vec::new(),
            new: Some(mails.new.clone()),
            comes_at: u64::MAX,
        }
    }

    fn ok(&mut self, now: u64) {
        let line = [&self.tag[..], b" OK done"].concat();
        self.server.line(&line);
        self.server.answered(now, Kind::Ok);
    }

    fn exists(&mut self) {
        self.server.line(format!("* {} EXISTS", self.messages.len()).as_bytes());
    }

    fn obey(&mut self, command: &Command, now: u64) {
        match command.name {
            "LOGIN" => assert_eq!(command.strings(), [b"tim", PASSWORD]),
            "SELECT" => self.exists(),
            "FETCH" => {
                let asks_for_all = matches!(&command.pieces[..], [Piece::Text(text)] if text.starts_with(b"1:*"));
                let first = if asks_for_all { 0 } else { self.messages.len() - 1 };
                for (at, message) in self.messages.iter().enumerate().skip(first) {
                    let start = format!("* {} FETCH (FLAGS () BODY[] {{{}}}\r\n", at + 1, message.len());
                    self.server.bytes(&[start.as_bytes(), message, b")\r\n"].concat());
                }
            }
            "STORE" => self.is_deleted = true,
            "EXPUNGE" => {
                assert!(self.is_deleted);
                (1..=self.messages.len()).for_each(|_| self.server.line(b"* 1 EXPUNGE"));
                self.messages.clear();
            }
            "IDLE" => {
                self.comes_at = now + MAIL_AFTER_MS;
                return self.server.idle(b"idling");
            }
            "LOGOUT" => self.server.line(b"* BYE"),
            "STARTTLS" => {}
            name => panic!("{name}"),
        }
        self.ok(now);
    }

    /// One thing that the client says; whether what is behind it was not said by it.
    fn event(&mut self, event: ServerEvent, run: &[u8], now: u64) -> bool {
        match event {
            ServerEvent::Command(command) => {
                self.tag = command.tag.clone();
                self.obey(&command, now);
                if command.verb == Verb::Starttls {
                    self.said = self.say();
                    self.is_secure = true;
                    self.server.secured(now);
                    return true;
                }
            }
            ServerEvent::Append(command, _) => {
                (self.tag, self.coming) = (command.tag, vec![Vec::new()]);
                self.server.accept();
            }
            ServerEvent::Message(..) => {
                self.coming.push(Vec::new());
                self.server.accept();
            }
            ServerEvent::Content => self.coming.last_mut().expect("it was announced").extend_from_slice(run),
            ServerEvent::AppendEnd(_) => {
                self.messages.append(&mut self.coming);
                self.ok(now);
            }
            ServerEvent::Done => self.ok(now),
            ServerEvent::Idle | ServerEvent::Closed => {}
            event => panic!("{event:?}"),
        }
        false
    }
}

impl Host for Keeper {
    fn hear(&mut self, now: u64, bytes: &[u8]) {
        let bytes = cross(bytes.to_vec(), self.is_secure);
        let mut rest = &bytes[..];
        while !self.server.is_closed() {
            let (taken, event) = self.server.step(now, rest);
            let (run, behind) = rest.split_at(taken);
            rest = behind;
            if event == ServerEvent::Idle && taken == 0 {
                assert!(rest.is_empty(), "bytes are left");
                return;
            }
            if self.event(event, run, now) {
                return;
            }
        }
    }

    fn say(&mut self) -> Vec<u8> {
        let said = cross(self.server.outbox().to_vec(), self.is_secure);
        self.server.sent();
        [std::mem::take(&mut self.said), said].concat()
    }

    fn deadline(&self) -> u64 {
        self.server.deadline().min(self.comes_at)
    }

    fn timeout(&mut self, now: u64) {
        match self.new.take() {
            Some(new) if now >= self.comes_at => {
                self.comes_at = u64::MAX;
                self.messages.push(new);
                self.exists();
            }
            _ => self.server.close(),
        }
    }

    fn lose(&mut self) {
        self.server.close();
    }

    fn is_over(&self) -> bool {
        self.server.is_closed()
    }
}

/// One session: how it went, the client, and what is in the mailbox.
fn session(manner: Manner, mails: &Mails, link: Link) -> (Meeting, Visitor, Vec<Vec<u8>>) {
    let (mut visitor, mut keeper) = (Visitor::new(manner, mails), Keeper::new(manner, mails));
    let meeting = meet(&mut visitor, &mut keeper, link);
    (meeting, visitor, keeper.messages)
}

/// Checks that each mail is known to one side, whatever was lost.
fn check(mails: &Mails, visitor: &Visitor, left: &[Vec<u8>]) {
    let all = [&mails.there[..], std::slice::from_ref(&mails.new)].concat();
    assert!(all.starts_with(&visitor.fetched), "something else has come");
    let has_all = visitor.fetched.len() >= mails.there.len();
    let with_new = [&mails.appended[..], std::slice::from_ref(&mails.new)].concat();
    let is_appended = left == mails.appended || left == with_new;
    assert!(
        left == mails.there || has_all && (left.is_empty() || is_appended),
        "a mail is gone, or half of one is there"
    );
    assert!(!visitor.agreed.contains(&"APPEND") || is_appended, "it was told to be there");
}

fn manner() -> impl Strategy<Value = Manner> {
    (any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(tls, at_once, keeps)| Manner { tls, at_once, keeps })
}

proptest! {
    #[test]
    fn what_is_fetched_and_appended_is_whole_however_it_is_cut_and_delayed(
        manner in manner(), seed: u64, piece_bytes_max in 1..200usize, latency_ms_max in 0..2_000u64,
    ) {
        let mails = mails(seed);
        let (plain, ..) = session(manner, &mails, Link::PLAIN);
        let link = Link { seed, piece_bytes_max, latency_ms_max, ..Link::PLAIN };
        let (meeting, visitor, left) = session(manner, &mails, link);
        prop_assert!(visitor.agreed.ends_with(&["APPEND", "IDLE", "FETCH", "LOGOUT"]), "{:?}", visitor.agreed);
        prop_assert_eq!(left, [&mails.appended[..], std::slice::from_ref(&mails.new)].concat());
        prop_assert_eq!(visitor.fetched, [mails.there, vec![mails.new]].concat());
        prop_assert_eq!(meeting.bytes, plain.bytes);
        prop_assert!(meeting.ended >= MAIL_AFTER_MS, "it did not wait for the mail");
    }

    #[test]
    fn a_connection_that_is_lost_costs_no_mail(
        manner in manner(), seed: u64, piece_bytes_max in 1..60usize, is_silent: bool, lost in 0..3_000usize,
    ) {
        let mails = mails(seed);
        let link = Link { seed, piece_bytes_max, latency_ms_max: 90, lost_after: Some(lost), is_silent };
        let (meeting, visitor, left) = session(manner, &mails, link);
        check(&mails, &visitor, &left);
        prop_assert!(meeting.ended <= 3 * PATIENCE_MS, "a deadline is missed");
    }
}

#[test]
fn wherever_the_connection_is_lost_no_mail_is() {
    let mails = mails(3);
    for (tls, at_once, keeps) in [(false, false, false), (true, true, false), (true, false, true), (false, true, true)]
    {
        let manner = Manner { tls, at_once, keeps };
        let (whole, ..) = session(manner, &mails, Link::PLAIN);
        for lost in 0..whole.bytes {
            for is_silent in [false, true] {
                let link = Link { lost_after: Some(lost), is_silent, ..Link::PLAIN };
                let (_, visitor, left) = session(manner, &mails, link);
                check(&mails, &visitor, &left);
            }
        }
    }
}
