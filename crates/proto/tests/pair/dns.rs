//! DNS over TCP: each answer is that to its question, however the two ways are cut. Over UDP there is nothing to meet: a
//! packet is whole or not there, and what is asked again is the host's business.

use proptest::prelude::*;
use proto::dns::{Data, Frames, Message, Name, Query, Record, Request, class, flag, frame, kind};

use super::script::{PATIENCE_MS, Script};
use super::{Host, Link, Meeting, Random, meet};

/// A server that has an address for each name: what its first label says.
struct Zone {
    frames: Frames,
    outbox: Vec<u8>,
    heard_at: u64,
    over: bool,
}

impl Zone {
    fn answer(query: &[u8]) -> Vec<u8> {
        let query = Query::parse(query).expect("a question");
        let name = Name::from_wire(query.question.name).expect("a name");
        let data = Data::A([127, 0, query.question.name[1], query.question.name[2]].into());
        let record = Record { name: name.clone(), kind: kind::A, class: class::IN, ttl: 300, data };
        let message = Message {
            id: query.id,
            flags: flag::QR | flag::AA,
            questions: vec![(name, query.question.kind, query.question.class)],
            answers: vec![record],
            authorities: Vec::new(),
            additionals: Vec::new(),
        };
        let mut bytes = Vec::new();
        assert!(message.write(&mut bytes, 65_535));
        bytes
    }
}

impl Host for Zone {
    fn hear(&mut self, now: u64, bytes: &[u8]) {
        self.heard_at = now;
        let mut rest = bytes;
        while !rest.is_empty() {
            let taken = self.frames.feed(rest);
            rest = &rest[taken..];
            while let Some(query) = self.frames.next() {
                self.outbox.extend(frame(&Zone::answer(&query)).expect("it is short"));
            }
        }
    }

    fn say(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.outbox)
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

fn requests(seed: u64) -> Vec<Request> {
    let mut random = Random(seed);
    let mut request = |id| {
        let letter = |random: &mut Random| char::from(b'a' + random.below(26) as u8);
        let name: Name = format!("{}{}.bl.example", letter(&mut random), letter(&mut random)).parse().expect("a name");
        Request::new(id, name, kind::A, class::IN).with_mixed_case(random.next())
    };
    (0..6).map(&mut request).collect()
}

/// One session: how it went, and the answers that came.
fn session(requests: &[Request], link: Link) -> (Meeting, Vec<Vec<u8>>) {
    let asked = requests.iter().map(|request| frame(&request.packet()).expect("it is short"));
    let mut client = Script::new(asked.collect(), |heard| {
        let length = 2 + usize::from(u16::from_be_bytes(*heard.first_chunk()?));
        (heard.len() >= length).then_some(length)
    });
    let mut zone = Zone { frames: Frames::new(512), outbox: Vec::new(), heard_at: 0, over: false };
    let meeting = meet(&mut client, &mut zone, link);
    (meeting, client.answers)
}

/// Each answer is that to the question in its place.
fn check(requests: &[Request], answers: &[Vec<u8>]) {
    assert!(answers.len() <= requests.len());
    for (request, answer) in requests.iter().zip(answers) {
        let message = request.read(&answer[2..]).expect("it answers this");
        let label = request.name.as_wire();
        assert_eq!(message.answers[0].data, Data::A([127, 0, label[1], label[2]].into()));
    }
}

proptest! {
    #[test]
    fn each_answer_is_that_to_its_question_however_it_is_cut_and_delayed(
        seed: u64, piece_bytes_max in 1..90usize, latency_ms_max in 0..2_000u64,
    ) {
        let requests = requests(seed);
        let link = Link { seed, piece_bytes_max, latency_ms_max, ..Link::PLAIN };
        let (_, answers) = session(&requests, link);
        check(&requests, &answers);
        prop_assert_eq!(answers.len(), requests.len());
    }
}

#[test]
fn wherever_the_connection_is_lost_no_answer_is_half_of_one() {
    let requests = requests(5);
    let (whole, _) = session(&requests, Link::PLAIN);
    for lost in 0..whole.bytes {
        let (_, answers) = session(&requests, Link { lost_after: Some(lost), ..Link::PLAIN });
        check(&requests, &answers);
    }
}
