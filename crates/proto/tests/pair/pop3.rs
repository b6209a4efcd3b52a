//! POP3: what goes from the mailbox has come whole to the client, however the two halves meet.

use std::collections::VecDeque;

use proptest::prelude::*;
use proto::pop3::{Client, ClientEvent, Command, Config, Server, ServerEvent, Verb};
use stream::Window;

use super::{Host, Link, Meeting, Random, meet};

/// How long the client waits for the server.
const PATIENCE_MS: u64 = 900_000;

fn messages(seed: u64) -> Vec<Vec<u8>> {
    let mut random = Random(seed);
    (0..random.below(5)).map(|_| random.message()).collect()
}

/// The client: it fetches all messages, and deletes each that it has whole.
struct Fetcher {
    client: Client,
    said: VecDeque<Verb>,
    /// The message that is coming, and those that have come.
    coming: Vec<u8>,
    fetched: Vec<Vec<u8>>,
    count: usize,
    /// The server has agreed to the end: what was deleted is gone.
    is_agreed: bool,
    heard: u64,
    over: bool,
}

impl Fetcher {
    fn new(pipelining: bool) -> Fetcher {
        let mut client = Client::new();
        if pipelining {
            client.pipeline();
        }
        let mut fetcher = Fetcher {
            client,
            said: VecDeque::new(),
            coming: Vec::new(),
            fetched: Vec::new(),
            count: 0,
            is_agreed: false,
            heard: 0,
            over: false,
        };
        ["USER tim", "PASS two words", "STAT"].into_iter().for_each(|line| fetcher.command(line));
        fetcher
    }

    fn command(&mut self, line: &str) {
        let command = Command::parse(line.as_bytes()).expect("a command");
        self.said.push_back(command.verb);
        self.client.command(command);
    }

    fn status(&mut self, ok: bool, text: &[u8], more: bool) {
        assert!(ok, "{}", text.escape_ascii());
        // The greeting answers nothing.
        if text == b"ready" || more {
            return;
        }
        match self.said.pop_front() {
            Some(Verb::Stat) => {
                let text = String::from_utf8_lossy(text);
                self.count = text.split(' ').next().and_then(|count| count.parse().ok()).expect("a number");
                (1..=self.count).for_each(|number| self.command(&format!("RETR {number}")));
                self.quit_behind_all();
            }
            Some(Verb::Dele) => self.quit_behind_all(),
            Some(Verb::Quit) => (self.is_agreed, self.over) = (true, true),
            _ => {}
        }
    }

    fn quit_behind_all(&mut self) {
        if self.said.is_empty() {
            self.command("QUIT");
        }
    }

    fn end(&mut self) {
        self.said.pop_front();
        self.fetched.push(std::mem::take(&mut self.coming));
        self.command(&format!("DELE {}", self.fetched.len()));
    }
}

impl Host for Fetcher {
    fn hear(&mut self, now: u64, bytes: &[u8]) {
        self.heard = now;
        let mut rest = bytes;
        while !self.over {
            let mut window = Window::with_capacity(16);
            let (taken, event) = self.client.step(rest, &mut window);
            rest = &rest[taken..];
            self.coming.extend_from_slice(window.filled());
            match event {
                ClientEvent::Idle if taken == 0 => {
                    assert!(rest.is_empty(), "bytes are left");
                    return;
                }
                ClientEvent::Status { ok, text, more } => self.status(ok, &text, more),
                ClientEvent::End => self.end(),
                ClientEvent::Idle | ClientEvent::Content => {}
                event => panic!("{event:?}"),
            }
        }
    }

    fn say(&mut self) -> Vec<u8> {
        let said = self.client.outbox().to_vec();
        self.client.sent();
        said
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
struct Mailbox {
    server: Server,
    messages: Vec<Vec<u8>>,
    deleted: Vec<usize>,
}

impl Mailbox {
    fn new(messages: Vec<Vec<u8>>) -> Mailbox {
        let mut server = Server::new(Config::default(), 0);
        server.say(true, b"ready");
        Mailbox { server, messages, deleted: Vec::new() }
    }

    fn obey(&mut self, command: &Command, now: u64) {
        let number = command.message().unwrap_or_default() as usize;
        match command.verb {
            Verb::Pass => {
                self.server.answered(now, true);
                self.server.say(true, b"welcome");
            }
            Verb::Stat => self.server.say(true, format!("{} 0", self.messages.len()).as_bytes()),
            Verb::Retr => {
                self.server.say(true, b"it follows");
                self.server.content(&self.messages[number - 1]);
                self.server.end();
            }
            Verb::Dele => {
                self.deleted.push(number - 1);
                self.server.say(true, b"later");
            }
            Verb::Quit => {
                let mut number = 0;
                self.messages.retain(|_| {
                    number += 1;
                    !self.deleted.contains(&(number - 1))
                });
                self.server.say(true, b"bye");
                self.server.close();
            }
            _ => self.server.say(true, b""),
        }
    }
}

impl Host for Mailbox {
    fn hear(&mut self, now: u64, bytes: &[u8]) {
        let mut rest = bytes;
        while !self.server.is_closed() {
            let (taken, event) = self.server.step(now, rest);
            rest = &rest[taken..];
            match event {
                ServerEvent::Idle if taken == 0 => {
                    assert!(rest.is_empty(), "bytes are left");
                    return;
                }
                ServerEvent::Idle => {}
                ServerEvent::Command(command) => self.obey(&command, now),
                event => panic!("{event:?}"),
            }
        }
    }

    fn say(&mut self) -> Vec<u8> {
        let said = self.server.outbox().to_vec();
        self.server.sent();
        said
    }

    fn deadline(&self) -> u64 {
        self.server.deadline()
    }

    fn timeout(&mut self, _: u64) {
        self.server.close();
    }

    fn lose(&mut self) {
        self.server.close();
    }

    fn is_over(&self) -> bool {
        self.server.is_closed()
    }
}

/// One session: how it went, the client, and what is left in the mailbox.
fn session(messages: &[Vec<u8>], pipelining: bool, link: Link) -> (Meeting, Fetcher, Vec<Vec<u8>>) {
    let (mut fetcher, mut mailbox) = (Fetcher::new(pipelining), Mailbox::new(messages.to_vec()));
    let meeting = meet(&mut fetcher, &mut mailbox, link);
    (meeting, fetcher, mailbox.messages)
}

proptest! {
    #[test]
    fn what_is_fetched_is_whole_however_it_is_cut_and_delayed(
        seed: u64, pipelining: bool, piece_bytes_max in 1..200usize, latency_ms_max in 0..2_000u64,
    ) {
        let messages = messages(seed);
        let (plain, ..) = session(&messages, pipelining, Link::PLAIN);
        let link = Link { seed, piece_bytes_max, latency_ms_max, ..Link::PLAIN };
        let (meeting, fetcher, left) = session(&messages, pipelining, link);
        prop_assert!(fetcher.is_agreed && left.is_empty());
        prop_assert_eq!(&fetcher.fetched, &messages);
        prop_assert_eq!(meeting.bytes, plain.bytes);
    }

    #[test]
    fn a_connection_that_is_lost_costs_no_message(
        seed: u64, pipelining: bool, piece_bytes_max in 1..60usize, is_silent: bool, lost in 0..3_000usize,
    ) {
        let messages = messages(seed);
        let link = Link { seed, piece_bytes_max, latency_ms_max: 90, lost_after: Some(lost), is_silent };
        let (meeting, fetcher, left) = session(&messages, pipelining, link);
        prop_assert!(messages.starts_with(&fetcher.fetched));
        prop_assert!(left == messages || left.is_empty() && fetcher.fetched == messages, "a message is gone");
        prop_assert!(!fetcher.is_agreed || left.is_empty(), "it was told to be gone");
        prop_assert!(meeting.ended <= 2 * PATIENCE_MS, "a deadline is missed");
    }
}

#[test]
fn wherever_the_connection_is_lost_no_message_is() {
    let messages = messages(3);
    for pipelining in [false, true] {
        let (whole, ..) = session(&messages, pipelining, Link::PLAIN);
        for lost in 0..whole.bytes {
            let (_, fetcher, left) = session(&messages, pipelining, Link { lost_after: Some(lost), ..Link::PLAIN });
            assert!(left == messages || left.is_empty() && fetcher.fetched == messages, "{lost}");
        }
    }
}
