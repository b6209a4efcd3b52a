//! clamd: what is answered for has been read whole, however a client and the half meet.

use proptest::prelude::*;
use proto::clamd::{Config, Reply, Request, Server, ServerEvent, Tag};

use super::script::{PATIENCE_MS, Script};
use super::{Host, Link, Meeting, Random, meet};

/// A host that finds what has a double dot in it.
struct Scanner {
    server: Server,
    asked: Option<Tag>,
    stream: Vec<u8>,
    read: Vec<Vec<u8>>,
}

impl Host for Scanner {
    fn hear(&mut self, now: u64, bytes: &[u8]) {
        let mut rest = bytes;
        while !self.server.is_closed() {
            let (taken, event) = self.server.step(now, rest);
            match event {
                ServerEvent::Idle if taken == 0 => {
                    assert!(rest.is_empty(), "bytes are left");
                    return;
                }
                ServerEvent::Asked(tag, Request::Stream) => (self.asked, self.stream) = (Some(tag), Vec::new()),
                ServerEvent::Content => self.stream.extend_from_slice(&rest[..taken]),
                ServerEvent::StreamEnd => {
                    let is_found = has_double_dot(&self.stream);
                    self.read.push(std::mem::take(&mut self.stream));
                    let reply = if is_found { Reply::Found(b"stream", "Dots") } else { Reply::Clean(b"stream") };
                    self.server.answer(self.asked.take().expect("a stream was asked for"), &reply);
                    self.server.done(now);
                }
                ServerEvent::Idle | ServerEvent::Closed => {}
                event => panic!("{event:?}"),
            }
            rest = &rest[taken..];
        }
    }

    fn say(&mut self) -> Vec<u8> {
        let said = self.server.outbox().to_vec();
        self.server.sent(said.len());
        said
    }

    fn deadline(&self) -> u64 {
        self.server.deadline().unwrap_or(u64::MAX)
    }

    fn timeout(&mut self, now: u64) {
        self.server.timeout(now);
    }

    fn lose(&mut self) {
        self.server.close();
    }

    fn is_over(&self) -> bool {
        self.server.is_closed()
    }
}

fn has_double_dot(stream: &[u8]) -> bool {
    stream.windows(2).any(|two| two == b"..")
}

/// Streams, and what a client says to have them scanned in one session.
fn streams(seed: u64) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let mut random = Random(seed);
    let streams: Vec<_> = (0..1 + random.below(4)).map(|_| random.message()).collect();
    let mut requests = Vec::new();
    for (at, stream) in streams.iter().enumerate() {
        let mut request: Vec<u8> = if at == 0 { b"zIDSESSION\0".to_vec() } else { Vec::new() };
        request.extend_from_slice(b"zINSTREAM\0");
        for chunk in stream.chunks(1 + random.below(80) as usize) {
            request.extend_from_slice(&(chunk.len() as u32).to_be_bytes());
            request.extend_from_slice(chunk);
        }
        request.extend_from_slice(&[0; 4]);
        requests.push(request);
    }
    (streams, requests)
}

/// One session: how it went, what was answered, and what was read.
fn session(requests: Vec<Vec<u8>>, link: Link) -> (Meeting, Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let mut client = Script::new(requests, |heard| heard.iter().position(|&byte| byte == 0).map(|end| end + 1));
    let server = Server::new(Config::default(), 0);
    let mut scanner = Scanner { server, asked: None, stream: Vec::new(), read: Vec::new() };
    let meeting = meet(&mut client, &mut scanner, link);
    (meeting, client.answers, scanner.read)
}

fn answer(number: usize, stream: &[u8]) -> Vec<u8> {
    let verdict = if has_double_dot(stream) { "Dots FOUND" } else { "OK" };
    format!("{}: stream: {verdict}\0", number + 1).into_bytes()
}

proptest! {
    #[test]
    fn each_stream_is_read_whole_however_it_is_cut_and_delayed(
        seed: u64, piece_bytes_max in 1..200usize, latency_ms_max in 0..2_000u64,
    ) {
        let (streams, requests) = streams(seed);
        let link = Link { seed, piece_bytes_max, latency_ms_max, ..Link::PLAIN };
        let (_, answers, read) = session(requests, link);
        prop_assert_eq!(&read, &streams);
        let wanted: Vec<_> = streams.iter().enumerate().map(|(number, stream)| answer(number, stream)).collect();
        prop_assert_eq!(answers, wanted);
    }

    #[test]
    fn nothing_is_answered_for_that_was_not_read_whole(
        seed: u64, piece_bytes_max in 1..60usize, is_silent: bool, lost in 0..1_500usize,
    ) {
        let (streams, requests) = streams(seed);
        let link = Link { seed, piece_bytes_max, latency_ms_max: 90, lost_after: Some(lost), is_silent };
        let (meeting, answers, read) = session(requests, link);
        prop_assert!(streams.starts_with(&read));
        prop_assert!(answers.len() <= read.len());
        for (number, said) in answers.iter().enumerate() {
            prop_assert_eq!(said, &answer(number, &streams[number]));
        }
        prop_assert!(meeting.ended <= 2 * PATIENCE_MS, "a deadline is missed");
    }
}
