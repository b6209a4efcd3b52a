//! milter: what is decided about has been read whole, however a mail server and the filter's half meet.

use proptest::prelude::*;
use proto::milter::{Decision, Server, ServerEvent};
use proto::smtp::Reply;

use super::script::{PATIENCE_MS, Script};
use super::{Host, Link, Meeting, Random, meet};

/// A filter that refuses what has a double dot in its body. The half keeps no time, its host has to.
struct Filter {
    server: Server,
    body: Vec<u8>,
    read: Vec<Vec<u8>>,
    heard_at: u64,
    over: bool,
}

impl Host for Filter {
    fn hear(&mut self, now: u64, bytes: &[u8]) {
        self.heard_at = now;
        let mut rest = bytes;
        while !self.over {
            let (taken, event) = self.server.step(rest);
            match event {
                ServerEvent::Idle if taken == 0 => {
                    assert!(rest.is_empty(), "bytes are left");
                    return;
                }
                ServerEvent::Body(count) => self.body.extend_from_slice(&rest[taken - count..taken]),
                ServerEvent::LastBody(body) => self.body.extend_from_slice(&body),
                ServerEvent::Mail(_) => self.body.clear(),
                ServerEvent::End => {
                    let is_found = has_double_dot(&self.body);
                    self.read.push(std::mem::take(&mut self.body));
                    self.server.decide(&if is_found {
                        Decision::Reply(Reply::new(550, (5, 7, 1), "Found"))
                    } else {
                        Decision::Accept
                    });
                }
                ServerEvent::Closed => self.over = true,
                ServerEvent::Broken(reason) => panic!("{reason}"),
                _ => {}
            }
            rest = &rest[taken..];
        }
    }

    fn say(&mut self) -> Vec<u8> {
        let said = self.server.outbox().to_vec();
        self.server.sent();
        said
    }

    fn deadline(&self) -> u64 {
        self.heard_at + PATIENCE_MS
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

fn has_double_dot(body: &[u8]) -> bool {
    body.windows(2).any(|two| two == b"..")
}

fn packet(letter: u8, data: &[u8]) -> Vec<u8> {
    [&(data.len() as u32 + 1).to_be_bytes()[..], &[letter], data].concat()
}

/// Bodies, and what a mail server says that wants no answer but the last: what it can do, then a message each.
fn bodies(seed: u64) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let mut random = Random(seed);
    let bodies: Vec<_> = (0..1 + random.below(4)).map(|_| random.message()).collect();
    let offer = [6u32, 0x1ff, 0x1f_ffff].map(u32::to_be_bytes).concat();
    let mut requests = vec![packet(b'O', &offer)];
    for body in &bodies {
        let mut request = packet(b'M', b"<a@b>\0");
        request.extend(packet(b'R', b"<c@d>\0"));
        request.extend(packet(b'L', b"Subject\0 x\0"));
        request.extend(packet(b'N', b""));
        for chunk in body.chunks(1 + random.below(80) as usize) {
            request.extend(packet(b'B', chunk));
        }
        request.extend(packet(b'E', b""));
        requests.push(request);
    }
    (bodies, requests)
}

/// One session: how it went, what was answered behind the agreement, and what was read.
fn session(requests: Vec<Vec<u8>>, link: Link) -> (Meeting, Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let frame = |heard: &[u8]| {
        let length = 4 + u32::from_be_bytes(*heard.first_chunk()?) as usize;
        (heard.len() >= length).then_some(length)
    };
    let mut client = Script::new(requests, frame);
    let mut filter = Filter { server: Server::new(), body: Vec::new(), read: Vec::new(), heard_at: 0, over: false };
    let meeting = meet(&mut client, &mut filter, link);
    (meeting, client.answers.split_off(client.answers.len().min(1)), filter.read)
}

fn answer(body: &[u8]) -> Vec<u8> {
    if has_double_dot(body) { packet(b'y', b"550 5.7.1 Found\0") } else { packet(b'a', b"") }
}

proptest! {
    #[test]
    fn each_body_is_read_whole_however_it_is_cut_and_delayed(
        seed: u64, piece_bytes_max in 1..200usize, latency_ms_max in 0..2_000u64,
    ) {
        let (bodies, requests) = bodies(seed);
        let link = Link { seed, piece_bytes_max, latency_ms_max, ..Link::PLAIN };
        let (_, answers, read) = session(requests, link);
        prop_assert_eq!(&read, &bodies);
        prop_assert_eq!(answers, bodies.iter().map(|body| answer(body)).collect::<Vec<_>>());
    }

    #[test]
    fn nothing_is_decided_about_that_was_not_read_whole(
        seed: u64, piece_bytes_max in 1..60usize, is_silent: bool, lost in 0..1_500usize,
    ) {
        let (bodies, requests) = bodies(seed);
        let link = Link { seed, piece_bytes_max, latency_ms_max: 90, lost_after: Some(lost), is_silent };
        let (meeting, answers, read) = session(requests, link);
        prop_assert!(bodies.starts_with(&read));
        prop_assert!(answers.len() <= read.len());
        for (said, body) in answers.iter().zip(&bodies) {
            prop_assert_eq!(said, &answer(body));
        }
        prop_assert!(meeting.ended <= 2 * PATIENCE_MS, "a deadline is missed");
    }
}
