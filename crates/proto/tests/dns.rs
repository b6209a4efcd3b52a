//! Messages of DNS: both halves face each other, and what others send is read or refused.

use proptest::prelude::*;
use proto::dns::{
    Data, Frames, Message, Mismatch, Name, Query, Record, Request, Soa, Unanswerable, class, flag, frame, kind,
};

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn record(owner: &str, kind: u16, data: Data) -> Record {
    Record { name: name(owner), kind, class: class::IN, ttl: 300, data }
}

fn response(request: &Request) -> Message {
    let soa = Soa {
        origin: name("ns.bl.example"),
        person: name("admin.bl.example"),
        serial: 1,
        refresh: 2,
        retry: 3,
        expire: 4,
        minimum: 5,
    };
    Message {
        id: request.id,
        flags: flag::QR | flag::AA,
        questions: vec![(request.name.clone(), request.kind, request.class)],
        answers: vec![
            record("2.0.0.127.bl.example", kind::A, Data::A([127, 0, 0, 2].into())),
            record("2.0.0.127.bl.example", kind::TXT, Data::Txt(b"\x04text".to_vec())),
            record("2.0.0.127.bl.example", kind::MX, Data::Mx(5, name("mx.bl.example"))),
        ],
        authorities: vec![
            record("bl.example", kind::NS, Data::Ns(name("ns.bl.example"))),
            record("1.2.0.192.in-addr.arpa", kind::PTR, Data::Ptr(name("host.bl.example"))),
            record("bl.example", kind::SOA, Data::Soa(soa)),
        ],
        additionals: vec![record("ns.bl.example", kind::AAAA, Data::Aaaa(std::net::Ipv6Addr::LOCALHOST))],
    }
}

#[test]
fn a_response_goes_back_to_its_request_compressed() {
    let request =
        Request::new(7, name("2.0.0.127.bl.example"), kind::A, class::IN).with_mixed_case(0x5555_5555_5555_5555);
    let packet = request.packet();
    let query = Query::parse(&packet).unwrap();
    assert_eq!(query.question.name, request.name.as_wire(), "case is kept");
    assert_eq!(query.edns.unwrap().udp_bytes, 1_232);
    let sent = response(&request);
    let mut bytes = Vec::new();
    assert!(sent.write(&mut bytes, 65_535));
    assert!(bytes.len() <= 240, "{} bytes: names are not compressed", bytes.len());
    assert_eq!(request.read(&bytes), Ok(sent));
}

#[test]
fn a_request_that_a_server_cannot_read_is_sent_without_edns() {
    let request = Request::new(7, name("a.example"), kind::A, class::IN);
    let query = request.plain_packet();
    assert!(Query::parse(&query).unwrap().edns.is_none() && request.packet().starts_with(&query[..11]));
    let mut refused = query.clone();
    (refused[2], refused[3]) = (0x81, 1);
    let header = [&refused[..4], &[0; 8]].concat();
    assert!(request.is_unreadable(&refused) && request.is_unreadable(&header));
    refused[3] = 2;
    let other = Request { id: 8, ..request.clone() };
    for (request, packet) in
        [(&request, &refused[..]), (&other, &header), (&request, &header[..11]), (&request, &query)]
    {
        assert!(!request.is_unreadable(packet), "{packet:?}");
    }
}

#[test]
fn answers_are_those_of_the_name_that_an_alias_leads_to() {
    let request = Request::new(7, name("a.example"), kind::A, class::IN);
    let alias = |from: &str, to: &str| record(from, kind::CNAME, Data::Cname(name(to)));
    let address = |owner: &str, last: u8| record(owner, kind::A, Data::A([127, 0, 0, last].into()));
    let found = |answers: Vec<Record>| -> Vec<Record> {
        let message = Message { answers, ..response(&request) };
        message.answers_of(&request.name).cloned().collect()
    };
    assert_eq!(found(vec![address("A.example", 1), address("b.example", 2)]), [address("a.example", 1)]);
    // In any order, and nobody else's.
    let chain = vec![address("c.example", 3), alias("b.example", "c.example"), alias("a.example", "b.example")];
    assert_eq!(found([chain, vec![address("x.example", 4)]].concat()), [address("c.example", 3)]);
    // An alias and an address of one name: the alias counts, and those of another class do not.
    let other_class = Record { class: class::CHAOS, ..alias("a.example", "x.example") };
    assert_eq!(found(vec![other_class, address("a.example", 5), address("x.example", 6)]), [address("a.example", 5)]);
    // Circles and long chains end.
    assert_eq!(found(vec![alias("a.example", "b.example"), alias("b.example", "a.example")]).len(), 1);
    let chain = (0..200).map(|at| alias(&format!("{at}.example"), &format!("{}.example", at + 1)));
    assert!(
        found([alias("a.example", "0.example")].into_iter().chain(chain).chain([address("200.example", 7)]).collect())
            .iter()
            .all(|record| record.kind == kind::CNAME)
    );
}

#[test]
fn what_does_not_answer_the_request_is_passed_over() {
    let request = Request::new(7, name("a.bl.example"), kind::A, class::IN).with_mixed_case(1);
    let bytes_of = |change: fn(&mut Message)| {
        let mut message = response(&request);
        change(&mut message);
        let mut bytes = Vec::new();
        message.write(&mut bytes, 65_535);
        bytes
    };
    assert_eq!(request.read(&bytes_of(|message| message.id = 8)), Err(Mismatch::Header));
    assert_eq!(request.read(&bytes_of(|message| message.flags = 0)), Err(Mismatch::Header), "a query");
    let other_case = |message: &mut Message| message.questions[0].0 = message.questions[0].0.to_lowercase();
    assert_eq!(request.read(&bytes_of(other_case)), Err(Mismatch::Case), "0x20");
    assert_eq!(request.read(&bytes_of(|message| message.questions[0].1 = kind::TXT)), Err(Mismatch::Question));
    assert_eq!(request.read(&bytes_of(|message| message.questions.clear())), Err(Mismatch::Question));
    assert!(matches!(request.read(b"\0\x07\x80"), Err(Mismatch::Malformed(_))));
}

#[test]
fn records_that_do_not_fit_are_left_out_whole() {
    let request = Request::new(7, name("2.0.0.127.bl.example"), kind::A, class::IN);
    let sent = response(&request);
    let mut whole = Vec::new();
    sent.write(&mut whole, 65_535);
    for limit in 12..whole.len() {
        let mut bytes = Vec::new();
        assert!(!sent.write(&mut bytes, limit));
        assert!(bytes.len() <= limit);
        assert!(Message::parse(&bytes).is_ok(), "{limit}");
    }
}

#[test]
fn responses_and_several_questions_get_no_answer() {
    let mut packet = Request::new(7, name("a.example"), kind::A, class::IN).packet();
    packet[5] = 2;
    assert_eq!(Query::parse(&packet), Err(Unanswerable::Malformed));
    packet[5] = 1;
    packet[2] |= 0x80;
    assert_eq!(Query::parse(&packet), Err(Unanswerable::Response));
}

proptest! {
    #[test]
    fn any_packet_is_read_or_refused(data in proptest::collection::vec(any::<u8>(), 0..600)) {
        proto::dns::fuzz_message(&data);
    }

    #[test]
    fn a_response_with_changed_bytes_is_read_or_refused(at in 0_usize..200, byte: u8) {
        let request = Request::new(7, name("2.0.0.127.bl.example"), kind::A, class::IN);
        let mut bytes = Vec::new();
        response(&request).write(&mut bytes, 65_535);
        let at = at % bytes.len();
        bytes[at] = byte;
        proto::dns::fuzz_message(&bytes);
    }

    #[test]
    fn a_stream_is_cut_into_the_same_messages_wherever_it_is_cut(
        messages in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..90), 0..6),
        piece in 1_usize..40,
    ) {
        let stream: Vec<u8> = messages.iter().flat_map(|message| frame(message).unwrap()).collect();
        let mut frames = Frames::new(100);
        let mut read = Vec::new();
        for piece in stream.chunks(piece) {
            let mut rest = piece;
            while !rest.is_empty() {
                let taken = frames.feed(rest);
                rest = &rest[taken..];
                while let Some(message) = frames.next() {
                    read.push(message);
                }
            }
        }
        prop_assert_eq!(read, messages);
        prop_assert!(!frames.has_overflowed());
    }
}
