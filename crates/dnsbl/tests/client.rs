//! The client against our own server in memory, with simulated time, and against servers that lie, loop or keep silent.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use dnsbl::answer::{Options, Outcome, Scratch, Transport, respond};
use dnsbl::client::{Client, Limits, Transmit, Verdict, sites, subject as subject_of};
use dnsbl::zone::Zones;
use dnsbl::zone::dataset::Kind;
use dnsbl::zone::loader::Loader;
use proto::dns::{Data, Message, Record, class, flag, kind};

const LIST: &str =
    "$SOA 3600 ns.bl.test a.bl.test 1 1h 1h 1w 1h\n$TTL 3600\n127.0.0.2\n192.0.2.7 :4:x\n192.0.2.9 :10:y\n";

fn zones(name: &str, kind: Kind, text: &str) -> Arc<Zones> {
    let mut loader = Loader::new(kind);
    loader.begin("list", 1);
    loader.feed(text.as_bytes());
    loader.end();
    let (dataset, warnings, _) = loader.finish(u64::MAX).unwrap();
    assert!(warnings.is_empty(), "{warnings:?}");
    Arc::new(Zones::new(vec![(Some(name.parse().unwrap()), Some(Arc::new(dataset)))]))
}

/// Answers packets at once.
struct Server {
    zones: Arc<Zones>,
    options: Options,
    asked: Vec<Transmit>,
}

impl Server {
    fn new(zones: Arc<Zones>, prefixes: bool) -> Server {
        Server { zones, options: Options { prefixes, ..Options::default() }, asked: Vec::new() }
    }

    fn answer(&self, transmit: &Transmit) -> Vec<u8> {
        let mut out = Vec::new();
        let transport = if transmit.tcp { Transport::Tcp } else { Transport::Udp };
        let from = (IpAddr::from([127, 0, 0, 1]), transport);
        let outcome = respond(&self.zones, &self.options, &transmit.packet, from, 1, &mut Scratch::default(), &mut out);
        assert!(matches!(outcome, Outcome::Respond(_)));
        out
    }

    /// Lets all packets of the client be answered.
    fn serve(&mut self, client: &mut Client, now: u64) {
        while let Some(transmit) = client.transmit() {
            client.handle(&self.answer(&transmit), now);
            self.asked.push(transmit);
        }
    }

    /// Asks about an address and waits for the verdict.
    fn lookup(&mut self, client: &mut Client, address: &str, now: u64) -> Verdict {
        let verdict = client.lookup(1, address.parse().unwrap(), now);
        self.serve(client, now);
        verdict.or_else(|| client.verdict().map(|(_, verdict)| verdict)).expect("a verdict")
    }
}

fn client(text: &str) -> Client {
    Client::new(sites::read(text).unwrap(), 7, Limits::default())
}

#[test]
fn one_prefix_answers_for_its_neighbours() {
    let mut server = Server::new(zones("bl.test", Kind::Ip4Set, LIST), true);
    let mut client = client("bl.test=127.0.0.4*3 bl.test=127.0.0.[9..11]*5 bl.test*-1");
    // The first lookup asks for the capability too, and is not kept waiting for it.
    assert_eq!(server.lookup(&mut client, "198.51.100.1", 0).score, 0);
    server.asked.clear();
    assert_eq!(server.lookup(&mut client, "192.0.2.7", 1).score, 2);
    assert_eq!(server.asked.len(), 1);
    for (address, score) in [("192.0.2.9", 4), ("192.0.2.8", 0), ("192.0.2.255", 0), ("192.0.2.7", 2)] {
        assert_eq!(server.lookup(&mut client, address, 2).score, score, "{address}");
    }
    assert_eq!(server.asked.len(), 1, "all of 192.0.2.0/24 is known");
    server.lookup(&mut client, "198.51.100.1", 3);
    server.lookup(&mut client, "203.0.113.1", 3);
    server.lookup(&mut client, "203.0.113.2", 3);
    assert_eq!(server.asked.len(), 2, "that nothing is listed is known of a prefix too");
}

#[test]
fn lists_without_prefixes_are_asked_for_addresses() {
    let mut server = Server::new(zones("bl.test", Kind::Ip4Set, LIST), false);
    let mut client = client("bl.test");
    assert_eq!(server.lookup(&mut client, "192.0.2.7", 0).score, 1);
    server.asked.clear();
    assert_eq!(server.lookup(&mut client, "192.0.2.9", 0).score, 1);
    assert_eq!(server.lookup(&mut client, "192.0.2.8", 0).score, 0);
    assert_eq!(server.lookup(&mut client, "192.0.2.8", 0).score, 0);
    assert_eq!(server.asked.len(), 2);
}

#[test]
fn prefixes_that_say_nothing_are_not_asked_for_again_and_again() {
    // More than four classes in each /24.
    let mut text = LIST.to_owned();
    for network in 0..200 {
        (0..5).for_each(|class| text += &format!("10.0.{network}.{class} :{}:x\n", 2 + class));
    }
    let zones = zones("bl.test", Kind::Ip4Set, &text);
    let (mut server, mut classic) = (Server::new(zones.clone(), true), Server::new(zones, false));
    let (mut by_prefix, mut by_address) = (client("bl.test"), client("bl.test"));
    for round in 0..1_000 {
        let address = format!("10.0.{}.{}", round % 200, round / 200);
        let one = server.lookup(&mut by_prefix, &address, round).listed;
        assert_eq!(one, classic.lookup(&mut by_address, &address, round).listed);
    }
    let surplus = server.asked.len() - classic.asked.len();
    assert!(surplus <= 20, "{surplus} queries more than without");
}

#[test]
fn a_question_is_under_way_once() {
    let mut server = Server::new(zones("bl.test", Kind::Ip4Set, LIST), true);
    let mut client = client("bl.test");
    server.lookup(&mut client, "198.51.100.1", 0);
    server.asked.clear();
    for number in 0..50 {
        assert_eq!(client.lookup(number, Ipv4Addr::new(192, 0, 2, 7).into(), 1), None);
    }
    server.serve(&mut client, 2);
    assert_eq!(server.asked.len(), 1);
    let verdicts: Vec<(u64, Verdict)> = std::iter::from_fn(|| client.verdict()).collect();
    assert_eq!(verdicts.len(), 50);
    assert!(verdicts.iter().all(|(_, verdict)| verdict.score == 1 && !verdict.is_partial));
}

#[test]
fn rules_find_what_was_asked_when_the_client_connected() {
    let mut server = Server::new(zones("bl.test", Kind::Ip4Set, LIST), true);
    let mut client = client("other.bl.test bl.test=127.0.0.4*3 bl.test=127.0.0.10*5");
    let subject = |client: &Client, name: &str| subject_of(client.zones(), &name.parse().unwrap());
    assert_eq!(subject(&client, "7.2.0.192.BL.test"), Some((1, [192, 0, 2, 7].into())));
    assert_eq!(subject(&client, "7.2.0.192.other.bl.test"), Some((0, [192, 0, 2, 7].into())));
    let nibbles = format!("{}8.b.d.0.1.0.0.2", "0.".repeat(24));
    let address: IpAddr = "2001:db8::".parse().unwrap();
    assert_eq!(subject(&client, &format!("{nibbles}.bl.test")), Some((1, address)));
    for name in
        ["7.2.0.192.test", "bl.test", "2.0.192.bl.test", "x.2.0.192.bl.test", "7.2.0.192.7.2.0.192.bl.test", "test"]
    {
        assert_eq!(subject(&client, name), None, "{name}");
    }

    // Neither the same address nor a neighbour is queried again.
    let connected = server.lookup(&mut client, "198.51.100.1", 0);
    assert!(connected.listed.is_empty());
    server.lookup(&mut client, "192.0.2.7", 1);
    server.asked.clear();
    let found = client.lookup_in(2, 1, [192, 0, 2, 7].into(), 2).expect("known");
    assert_eq!((found.listed, found.score, found.is_partial), (vec![(1, vec![[127, 0, 0, 4]])], 3, false));
    assert_eq!(client.lookup_in(3, 1, [192, 0, 2, 8].into(), 2), Some(Verdict::default()));
    assert_eq!(client.transmit(), None);

    // Both wait for a query in progress.
    assert_eq!(client.lookup(4, [203, 0, 113, 1].into(), 3), None);
    assert_eq!(client.lookup_in(5, 1, [203, 0, 113, 1].into(), 3), None);
    server.serve(&mut client, 4);
    // The other list is off by now: it does not list 127.0.0.2.
    assert_eq!(server.asked.len(), 1, "{:?}", server.asked);
    let mut numbers: Vec<u64> = std::iter::from_fn(|| client.verdict()).map(|(number, _)| number).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [4, 5]);
    let other = client.lookup_in(6, 0, [203, 0, 113, 1].into(), 5);
    assert!(other.is_some_and(|verdict| verdict.is_partial), "a list that is off");
    assert!(
        client.lookup_in(7, 9, [203, 0, 113, 1].into(), 5).is_some_and(|verdict| verdict.is_partial),
        "no such list"
    );
}

#[test]
fn what_is_asked_for_near_its_end_is_asked_for_ahead_of_time() {
    let mut server = Server::new(zones("bl.test", Kind::Ip4Set, LIST), true);
    let mut client = client("bl.test");
    server.lookup(&mut client, "198.51.100.1", 0);
    server.lookup(&mut client, "192.0.2.7", 0);
    server.asked.clear();
    let hour = 3_600_000;
    server.lookup(&mut client, "192.0.2.7", hour / 2);
    assert_eq!(server.asked.len(), 0);
    assert!(client.lookup(9, Ipv4Addr::new(192, 0, 2, 7).into(), hour - 1_000).is_some(), "known, and asked for again");
    server.serve(&mut client, hour - 900);
    assert_eq!(server.asked.len(), 1);
    assert!(client.lookup(9, Ipv4Addr::new(192, 0, 2, 7).into(), hour - 500).is_some());
    assert_eq!(client.transmit(), None, "once");
}

#[test]
fn a_slow_resolver_is_helped_out_and_a_dead_list_is_left_alone() {
    let mut client = client("bl.test*2 other.test");
    let limits = Limits::default();
    assert_eq!(client.lookup(1, Ipv4Addr::new(192, 0, 2, 7).into(), 0), None);
    let first: Vec<Transmit> = std::iter::from_fn(|| client.transmit()).collect();
    assert!(first.iter().all(|transmit| transmit.resolver == 0));
    assert_eq!(client.deadline(), Some(limits.hedge_ms));
    client.advance(limits.hedge_ms);
    let second: Vec<Transmit> = std::iter::from_fn(|| client.transmit()).collect();
    assert_eq!(second.len(), first.len());
    assert!(second.iter().all(|transmit| transmit.resolver == 1));
    // The second one answers: its packets have ids of their own.
    let server = Server::new(zones("bl.test", Kind::Ip4Set, LIST), true);
    let ours = second.iter().filter(|transmit| {
        Message::parse(&transmit.packet).unwrap().questions[0].0.to_string().to_lowercase().ends_with("bl.test")
    });
    ours.for_each(|transmit| client.handle(&server.answer(transmit), 500));
    client.advance(limits.timeout_ms);
    let (_, verdict) = client.verdict().unwrap();
    assert_eq!((verdict.score, verdict.is_partial), (2, true), "other.test did not answer");
    // It still does not answer: after a few times no lookup waits for it.
    let mut now = limits.timeout_ms;
    let mut waited = 0;
    for number in 0..20 {
        now += 1_000;
        let address = Ipv4Addr::new(203, 0, number, 1).into();
        if client.lookup(u64::from(number), address, now).is_none() {
            while let Some(transmit) = client.transmit() {
                let question = Message::parse(&transmit.packet).unwrap().questions[0].0.to_string().to_lowercase();
                if question.ends_with("bl.test") {
                    client.handle(&server.answer(&transmit), now);
                }
            }
            if client.verdict().is_none() {
                waited += 1;
                now += limits.timeout_ms;
                client.advance(now);
                assert!(client.verdict().is_some());
            }
        }
    }
    assert!(waited <= 4, "waited {waited} times");
}

/// Answers every question with these addresses.
fn lie(transmit: &Transmit, addresses: &[[u8; 4]]) -> Vec<u8> {
    let query = Message::parse(&transmit.packet).unwrap();
    let (name, asked, _) = query.questions[0].clone();
    let record = |address: &[u8; 4]| Record {
        name: name.clone(),
        kind: kind::A,
        class: class::IN,
        ttl: 60,
        data: Data::A((*address).into()),
    };
    let answers = if asked == kind::A { addresses.iter().map(record).collect() } else { Vec::new() };
    let message =
        Message { id: query.id, flags: flag::QR, questions: query.questions.clone(), answers, ..Message::default() };
    let mut bytes = Vec::new();
    message.write(&mut bytes, 65_535);
    bytes
}

#[test]
fn a_list_that_lists_the_world_is_turned_off_and_comes_back() {
    let mut client = client("bl.test*9");
    client.lookup(1, Ipv4Addr::new(192, 0, 2, 7).into(), 0);
    while let Some(transmit) = client.transmit() {
        client.handle(&lie(&transmit, &[[127, 0, 0, 2]]), 1);
    }
    assert!(!client.is_on(0), "127.0.0.1 is listed");
    let verdict = client.lookup(2, Ipv4Addr::new(192, 0, 2, 8).into(), 2).unwrap();
    assert_eq!((verdict.score, verdict.is_partial), (0, true));
    // An hour later it has mended itself.
    let mut server = Server::new(zones("bl.test", Kind::Ip4Set, LIST), true);
    let hour = Limits::default().probe_ms;
    client.lookup(3, Ipv4Addr::new(192, 0, 2, 7).into(), hour + 1);
    server.serve(&mut client, hour + 2);
    assert!(client.is_on(0));
    assert_eq!(server.lookup(&mut client, "192.0.2.9", hour + 3).score, 9);
}

#[test]
fn answers_that_are_errors_are_never_listings() {
    for address in [[127, 255, 255, 254], [127, 255, 255, 255], [127, 255, 255, 252], [192, 0, 2, 1]] {
        let mut client = client("bl.test*9");
        client.lookup(1, Ipv4Addr::new(192, 0, 2, 7).into(), 0);
        while let Some(transmit) = client.transmit() {
            client.handle(&lie(&transmit, &[address]), 1);
        }
        let (_, verdict) = client.verdict().unwrap();
        assert_eq!((verdict.score, verdict.listed.len()), (0, 0), "{address:?}");
    }
}

/// The answer of a server, changed.
fn changed(server: &Server, transmit: &Transmit, change: impl Fn(&mut Message)) -> Vec<u8> {
    let mut message = Message::parse(&server.answer(transmit)).unwrap();
    change(&mut message);
    let mut bytes = Vec::new();
    message.write(&mut bytes, 65_535);
    bytes
}

#[test]
fn answers_that_must_not_be_kept_are_not_asked_for_over_and_over() {
    for text in [LIST.replace("$TTL 3600", "$TTL 0"), LIST.to_owned()] {
        let server = Server::new(zones("bl.test", Kind::Ip4Set, &text), true);
        let mut client = client("bl.test*9");
        for (number, address) in ["192.0.2.7", "192.0.2.8", "203.0.113.1", "192.0.2.7"].into_iter().enumerate() {
            let verdict = client.lookup(1, address.parse().unwrap(), 5_000 * number as u64);
            let mut asked = 0;
            while let Some(transmit) = client.transmit() {
                asked += 1;
                assert!(asked < 12, "asks for ever");
                let forget = |message: &mut Message| {
                    message.answers.iter_mut().chain(&mut message.authorities).for_each(|record| record.ttl = 0);
                };
                client.handle(&changed(&server, &transmit, forget), 5_000 * number as u64);
            }
            let verdict = verdict.or_else(|| client.verdict().map(|(_, verdict)| verdict)).unwrap();
            assert_eq!(verdict.score, if address == "192.0.2.7" { 9 } else { 0 });
        }
    }
}

#[test]
fn prefixes_that_somebody_in_between_breaks_are_made_up_for_by_addresses() {
    type Change = fn(&mut Message);
    let changes: [Change; 4] = [
        |message| message.answers.clear(),
        |message| (message.flags, message.answers) = (message.flags | 2, Vec::new()),
        |message| message.answers.iter_mut().for_each(|record| record.data = Data::Txt(b"\x02\x01\x00".to_vec())),
        |message| message.answers.iter_mut().for_each(|record| record.data = Data::Txt(b"\x03\x02\x01\x09".to_vec())),
    ];
    for (index, change) in changes.into_iter().enumerate() {
        let mut server = Server::new(zones("bl.test", Kind::Ip4Set, LIST), true);
        let mut client = client("bl.test*9");
        server.lookup(&mut client, "198.51.100.1", 0);
        assert_eq!(client.lookup(1, "192.0.2.7".parse().unwrap(), 1), None);
        while let Some(transmit) = client.transmit() {
            let is_prefix = Message::parse(&transmit.packet).unwrap().questions[0].1 == kind::TXT;
            let answer = if is_prefix { changed(&server, &transmit, change) } else { server.answer(&transmit) };
            client.handle(&answer, 2);
        }
        let (_, verdict) = client.verdict().unwrap();
        assert_eq!((verdict.score, verdict.is_partial), (9, false), "change {index}");
    }
}

#[test]
fn prefixes_are_asked_for_of_those_families_that_a_list_speaks_of() {
    for (words, asks) in
        [("v=pbl1 p4=24", true), ("v=pbl1 p6=48", false), ("v=pbl10 p4=24", false), ("p4=24 v=pbl1", false)]
    {
        let server = Server::new(zones("bl.test", Kind::Ip4Set, LIST), true);
        let mut client = client("bl.test*9");
        let mut asked = false;
        for now in 0..2 {
            client.lookup(1, Ipv4Addr::new(198, 51, 100, now).into(), now.into());
            while let Some(transmit) = client.transmit() {
                let name = Message::parse(&transmit.packet).unwrap().questions[0].0.to_string().to_lowercase();
                asked |= name.contains(".p4.");
                let say = |message: &mut Message| {
                    if name.starts_with("_pbl") {
                        message.answers[0].data = Data::Txt([&[words.len() as u8], words.as_bytes()].concat());
                    }
                };
                client.handle(&changed(&server, &transmit, say), now.into());
            }
        }
        assert_eq!(asked, asks, "{words}");
    }
}

#[test]
fn forged_answers_are_passed_over() {
    let mut client = client("bl.test*9");
    client.lookup(1, Ipv4Addr::new(192, 0, 2, 7).into(), 0);
    let sent: Vec<Transmit> = std::iter::from_fn(|| client.transmit()).collect();
    let mut cases = std::collections::HashSet::new();
    for transmit in &sent {
        let true_answer = lie(transmit, &[[127, 0, 0, 2]]);
        cases.insert(transmit.packet[12..].iter().filter(|byte| byte.is_ascii_uppercase()).count());
        for change in 0..4 {
            let mut forged = true_answer.clone();
            match change {
                0 => forged[0] ^= 1,
                1 => forged[2] &= 0x7f,
                // The case of a letter, wherever one is.
                2 => {
                    let at = (12..forged.len())
                        .rfind(|&at| forged[at].is_ascii_alphabetic() && at < transmit.packet.len() - 15)
                        .unwrap();
                    forged[at] ^= 0x20;
                }
                _ => forged.truncate(20),
            }
            client.handle(&forged, 1);
        }
    }
    assert_eq!(client.verdict(), None);
    assert_eq!(client.counts().strays, 4 * sent.len() as u64);
    assert!(cases.len() > 1, "letters are mixed in case");
}

#[test]
fn hostile_answers_end() {
    // A response that is cut off is asked for by TCP, once; loops of aliases end; of many addresses some are kept.
    let mut client = client("bl.test*9");
    client.lookup(1, Ipv4Addr::new(192, 0, 2, 7).into(), 0);
    let mut count = 0;
    while let Some(transmit) = client.transmit() {
        count += 1;
        assert!(count < 20);
        let mut bytes = lie(&transmit, &vec![[127, 0, 0, 2]; 500]);
        if !transmit.tcp {
            bytes[2] |= 2;
        }
        client.handle(&bytes, 1);
    }
    let (_, verdict) = client.verdict().unwrap();
    assert_eq!(verdict.score, 9);
    assert!(verdict.listed[0].1.len() <= 16);

    let mut client = Client::new(sites::read("bl.test*9").unwrap(), 9, Limits::default());
    client.lookup(1, Ipv4Addr::new(192, 0, 2, 7).into(), 0);
    while let Some(transmit) = client.transmit() {
        let query = Message::parse(&transmit.packet).unwrap();
        let name = query.questions[0].0.clone();
        let other: proto::dns::Name = "loop.test".parse().unwrap();
        let alias = |from: &proto::dns::Name, to: &proto::dns::Name| Record {
            name: from.clone(),
            kind: kind::CNAME,
            class: class::IN,
            ttl: 60,
            data: Data::Cname(to.clone()),
        };
        let answers = vec![alias(&name, &other), alias(&other, &name)];
        let message =
            Message { id: query.id, flags: flag::QR, questions: query.questions, answers, ..Message::default() };
        let mut bytes = Vec::new();
        message.write(&mut bytes, 65_535);
        client.handle(&bytes, 1);
    }
    assert_eq!(client.verdict().unwrap().1.score, 0);
}

#[test]
fn keys_are_not_shown_and_local_lists_ask_nobody() {
    let mut client = client("abcdefghij0123456789abcdef.zen.dq.example bl.test*3");
    assert_eq!(client.shown(0), "....zen.dq.example");
    client.set_local(&zones("bl.test", Kind::Ip4Set, LIST), 1);
    client.lookup(1, Ipv4Addr::new(192, 0, 2, 7).into(), 0);
    let asked: Vec<Transmit> = std::iter::from_fn(|| client.transmit()).collect();
    assert!(
        asked
            .iter()
            .all(|transmit| !transmit.packet.windows(7).any(|seven| seven.eq_ignore_ascii_case(b"\x02bl\x04tes")))
    );
    assert_eq!(client.conclude(1).unwrap().score, 3);
    // Expired data lists nothing, and causes no queries.
    let old = zones("bl.test", Kind::Ip4Set, &format!("$TIMESTAMP 2001:01:01 2002:01:01\n{LIST}"));
    client.set_local(&old, 1_500_000_000);
    client.lookup(2, Ipv4Addr::new(192, 0, 2, 7).into(), 0);
    let verdict = client.conclude(2).unwrap();
    assert_eq!((verdict.score, verdict.is_partial), (0, true));
}

/// For every address of prefixes with all kinds of listings the client agrees with the classic answer.
#[test]
fn prefixes_say_of_every_address_what_the_classic_answer_says() {
    let sets = [
        (
            Kind::Ip4Set,
            "192.0.2.0/28\n!192.0.2.5\n192.0.2.77 :4:x\n192.0.2.77 :5:y\n198.51.100.0/22 :6:z\n203.0.113.3-200\n",
        ),
        (Kind::Ip4Trie, "192.0.2.0/25 :4:x\n192.0.2.64/27 :9:y\n!192.0.2.70\n198.51.100.7\n203.0.0.0/8 :10.1.2.3:z\n"),
        (Kind::Ip4Set, "192.0.2.1 :1\n192.0.2.2 :2\n192.0.2.3 :3\n192.0.2.4 :4\n192.0.2.5 :5\n"),
        (Kind::Ip4TrivialSet, "192.0.2.1\n192.0.2.255\n192.0.2.0\n198.51.100.128\n"),
        (Kind::Combined, "$DATASET ip4set @\n192.0.2.9\n$DATASET generic @\n7.2.0.192 A 127.0.0.7\n@ A 1.2.3.4\n"),
    ];
    for (kind, text) in sets {
        let text = format!("$SOA 3600 n.x a.x 1 1h 1h 1w 1h\n{text}127.0.0.2\n");
        let text = text.replace("@ A 1.2.3.4\n127.0.0.2\n", "@ A 1.2.3.4\n$DATASET ip4set @\n127.0.0.2\n");
        let zones = zones("bl.test", kind, &text);
        let mut prefixes = Server::new(zones.clone(), true);
        let mut classic = Server::new(zones, false);
        let mut by_prefix = client("bl.test");
        let mut by_address = client("bl.test");
        prefixes.lookup(&mut by_prefix, "9.9.9.9", 0);
        for network in [[192, 0, 2], [198, 51, 100], [198, 51, 103], [203, 0, 113], [8, 8, 8]] {
            for host in 0..=255 {
                let address = Ipv4Addr::new(network[0], network[1], network[2], host).to_string();
                let mut one = prefixes.lookup(&mut by_prefix, &address, 1).listed;
                let mut other = classic.lookup(&mut by_address, &address, 1).listed;
                one.iter_mut().chain(&mut other).for_each(|(_, addresses)| addresses.sort_unstable());
                assert_eq!(one, other, "{kind:?} {address}");
            }
        }
        assert!(prefixes.asked.len() < classic.asked.len(), "{} queries", prefixes.asked.len());
    }
}

#[test]
fn prefixes_of_ipv6_say_what_the_classic_answer_says() {
    let text = "$SOA 3600 n.x a.x 1 1h 1h 1w 1h\n2001:db8:1::/48 :4:x\n2001:db8:2:10::/60 :5:y\n!2001:db8:2:13::/64\n\
                2001:db8:3::7\n2001:db9::/32\n";
    let zones = zones("bl.test", Kind::Ip6Trie, text);
    let mut server = Server::new(zones.clone(), true);
    let mut classic = Server::new(zones, false);
    // No probes: 127.0.0.2 is not in a list of IPv6 networks.
    let limits = || Limits { probe_ms: u64::MAX, ..Limits::default() };
    let make = || {
        let mut client = Client::new(sites::read("bl.test").unwrap(), 7, limits());
        client.expect_no_test_points(0);
        client
    };
    let (mut by_prefix, mut by_address) = (make(), make());
    server.lookup(&mut by_prefix, "2001:db8:ffff::1", 0);
    for prefix in ["2001:db8:1", "2001:db8:2", "2001:db8:3", "2001:db9:4", "2001:dba:5"] {
        for rest in ["::1", ":10::1", ":12::1", ":13::1", ":14:0:0:0:5", ":1f::", ":20::", ":ffff::1", "::7"] {
            let address = format!("{prefix}{rest}");
            let one = server.lookup(&mut by_prefix, &address, 1).listed;
            assert_eq!(one, classic.lookup(&mut by_address, &address, 1).listed, "{address}");
        }
    }
    assert!(server.asked.len() < classic.asked.len() / 2, "{} of {}", server.asked.len(), classic.asked.len());
}

#[test]
fn a_prefix_costs_the_same_beside_any_number_of_records() {
    let list = |records: u32| {
        let records: String = (0..records).map(|host| format!("h{host} A 192.0.2.1\n")).collect();
        let text = format!("$DATASET ip4set @\n{LIST}$DATASET generic @\n7.100.51.198 A 127.0.0.7\n{records}");
        let text = text.replace("$SOA", "$TTL 1\n$SOA");
        Server::new(zones("bl.test", Kind::Combined, &text), true)
    };
    let cost = |server: &Server| {
        let begun = std::time::Instant::now();
        for network in 0..400_u32 {
            let name = format!("{}.{}.10.p4.bl.test", network & 255, network >> 8).parse().unwrap();
            let packet = proto::dns::Request::new(1, name, kind::TXT, class::IN).packet();
            server.answer(&Transmit { resolver: 0, tcp: false, packet });
        }
        begun.elapsed()
    };
    let (few, many) = (list(10), list(50_000));
    let (few_cost, many_cost) = (cost(&few), cost(&many));
    assert!(many_cost < few_cost * 20 + std::time::Duration::from_millis(50), "{few_cost:?}, {many_cost:?}");
}
