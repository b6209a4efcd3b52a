//! Names that have nothing of their own but names below them exist: in zones of every kind, for every listing each name on the way
//! to it from the zone. Others do not.

use std::net::IpAddr;

use dnsbl::answer::{Options, Scratch, Transport, respond};
use dnsbl::zone::Zones;
use dnsbl::zone::dataset::Kind;
use dnsbl::zone::loader::Loader;
use proto::dns::{Message, Request, class, kind, rcode};
use std::sync::Arc;

const HEAD: &str = "$SOA 3600 ns.bl.test h.bl.test 1 1h 1h 1w 1h\n$TTL 3600\n";

fn zones(kind: Kind, text: &str) -> Zones {
    let mut loader = Loader::new(kind);
    loader.begin("list", 1);
    loader.feed(text.as_bytes());
    loader.end();
    let (dataset, warnings, _) = loader.finish(u64::MAX).unwrap();
    assert!(warnings.is_empty(), "{warnings:?}");
    Zones::new(vec![(Some("bl.test".parse().unwrap()), Some(Arc::new(dataset)))])
}

/// The response code, and how many answers there are.
fn ask(zones: &Zones, name: &str) -> (u16, usize) {
    let name = format!("{name}.bl.test").parse().unwrap();
    let packet = Request::new(1, name, kind::A, class::IN).packet();
    let (from, mut out) = ((IpAddr::from([127, 0, 0, 1]), Transport::Udp), Vec::new());
    respond(zones, &Options::default(), &packet, from, 1, &mut Scratch::default(), &mut out);
    let message = Message::parse(&out).unwrap();
    (message.flags & 15, message.answers.len())
}

/// An IPv6 address as a name.
fn nibbles(address: &str) -> String {
    let digits = format!("{:032x}", address.parse::<std::net::Ipv6Addr>().unwrap().to_bits());
    digits.chars().rev().map(String::from).collect::<Vec<_>>().join(".")
}

#[test]
fn each_name_on_the_way_to_a_listing_exists() {
    let ip4 = "127.0.0.2\n192.0.2.0/24\n!192.0.2.9\n!198.51.100.0/24\n";
    let combined = format!(
        "$DATASET ip4set a.b @\n{ip4}$DATASET dnset names\nx.example.net\n$DATASET generic c.d\nz A 127.0.0.9\n"
    );
    let nibble = |address: &str| nibbles(address);
    let zones_and_names: [(Kind, &str, Vec<String>, Vec<String>); 8] = [
        (
            Kind::Ip4Set,
            ip4,
            vec!["2.0.0.127".into(), "7.2.0.192".into(), nibble("::ffff:127.0.0.2"), nibble("2002:7f00:2::1")],
            vec![
                "126".into(),
                "1.0.127".into(),
                "100.51.198".into(),
                "51.198".into(),
                "x.127".into(),
                "1.0.0.3".into(),
            ],
        ),
        (
            Kind::Ip4Trie,
            "10.0.0.0/9\n!10.1.0.0/16\n",
            vec!["1.1.0.10".into(), "1.1.2.10".into()],
            vec!["1.10".into(), "200.10".into(), "11".into()],
        ),
        (Kind::Ip4TrivialSet, "127.0.0.2\n", vec!["2.0.0.127".into()], vec!["1.127".into()]),
        (
            Kind::Ip6Trie,
            "2001:db8::/33\n!2001:db8:1::/48\n2001:db9::7\n",
            vec![nibble("2001:db8::1"), nibble("2001:db9::7")],
            vec!["3".into(), "1.0.0.0.8.b.d.0.1.0.0.2".into(), "8.8.b.d.0.1.0.0.2".into()],
        ),
        (
            Kind::Ip6TrivialSet,
            "2001:db8:0:1\n",
            vec![nibble("2001:db8:0:1::5")],
            vec!["3".into(), "1.0.0.0.8.b.d.0.1.0.0.2".into()],
        ),
        (
            Kind::Names,
            "a.b.example.com\n*.wild.net\n!no.excluded.org\n",
            vec!["a.b.example.com".into(), "q.wild.net".into()],
            vec!["excluded.org".into(), "org".into(), "c.b.example.com".into()],
        ),
        (Kind::Generic, "a.b.c A 127.0.0.2\n", vec!["a.b.c".into()], vec!["d.c".into(), "a".into()]),
        (
            Kind::Combined,
            &combined,
            vec!["2.0.0.127.a.b".into(), "x.example.net.names".into(), "z.c.d".into(), "2.0.0.127".into()],
            vec!["e".into(), "a".into(), "126.a.b".into(), "org.names".into()],
        ),
    ];
    for (kind, text, listed, missing) in zones_and_names {
        let zones = zones(kind, &format!("{HEAD}{text}"));
        for name in listed {
            assert_eq!(ask(&zones, &name).0, rcode::NOERROR, "{kind:?} {name}");
            assert_ne!(ask(&zones, &name).1, 0, "{kind:?} {name}");
            let mut above = name.as_str();
            while let Some((_, parent)) = above.split_once('.') {
                assert_eq!(ask(&zones, parent).0, rcode::NOERROR, "{kind:?} {parent} above {name}");
                above = parent;
            }
        }
        for name in missing {
            assert_eq!(ask(&zones, &name), (rcode::NXDOMAIN, 0), "{kind:?} {name}");
        }
    }
}

#[test]
fn names_above_those_of_prefixes_exist() {
    let zones = zones(Kind::Ip4Set, &format!("{HEAD}127.0.0.2\n"));
    for (name, code) in [
        ("p4", rcode::NOERROR),
        ("127.p4", rcode::NOERROR),
        ("0.127.p4", rcode::NOERROR),
        ("1.127.p4", rcode::NXDOMAIN),
    ] {
        assert_eq!(ask(&zones, name), (code, 0), "{name}");
    }
}
