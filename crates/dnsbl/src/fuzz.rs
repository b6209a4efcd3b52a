//! Fuzz bodies.

use std::sync::Arc;

use proto::dns::{Name, kind};

use crate::answer;
use crate::zone::Zones;
use crate::zone::dataset::{Dataset, Kind};
use crate::zone::loader;

/// Fuzz body: files of any kind, the first byte says which. However they are cut the data is the same, and every question
/// gets a response that can be read.
pub fn fuzz_files(data: &[u8]) {
    const KINDS: [&str; 10] =
        ["ip4set", "ip4trie", "ip4tset", "ip6trie", "ip6tset", "dnset", "generic", "combined", "acl", "feed"];
    let Some((&first, text)) = data.split_first() else { return };
    let Some(kind) = Kind::from_name(KINDS[usize::from(first) % KINDS.len()].as_bytes()) else { return };
    let load = |piece: usize| {
        let mut loader = loader::Loader::new(kind);
        loader.begin("file", 1);
        text.chunks(piece).for_each(|piece| loader.feed(piece));
        loader.end();
        loader.finish(u64::MAX)
    };
    let (Ok((whole, warnings, count)), Ok((cut, again, count_again))) = (load(text.len().max(1)), load(3)) else {
        return;
    };
    assert_eq!((warnings, count, whole.len()), (again, count_again, cut.len()));
    let name = |text: &str| text.parse::<Name>().ok();
    let zones = |dataset: Dataset| Zones::new(vec![(name("z"), Some(Arc::new(dataset)))]);
    let (whole, cut) = (zones(whole), zones(cut));
    let mut scratch = [answer::Scratch::default(), answer::Scratch::default()];
    let (mut out, mut out_again) = (Vec::new(), Vec::new());
    let options = answer::Options { prefixes_in_aaaa: true, ..answer::Options::default() };
    for question in ["z", "4.3.2.1.z", "0.3.2.1.z", "3.2.1.p4.z", "a.b.z", "x.c.z", "1.1.1.1.a.z", "_pbl.z"] {
        for kind in [kind::A, kind::TXT, kind::ANY, kind::AAAA, kind::SOA] {
            let Some(name) = name(question) else { continue };
            let packet = proto::dns::Request::new(7, name, kind, proto::dns::class::IN).packet();
            let from = (core::net::IpAddr::from([127, 0, 0, 1]), answer::Transport::Udp);
            let mut ask = |zones: &Zones, at: usize, out: &mut Vec<u8>| {
                answer::respond(zones, &options, &packet, from, 1, &mut scratch[at], out)
            };
            let outcome = ask(&whole, 0, &mut out);
            assert_eq!(outcome, ask(&cut, 1, &mut out_again));
            if outcome != answer::Outcome::Silent {
                assert_eq!(out, out_again);
                assert!(proto::dns::Message::parse(&out).is_ok());
            }
        }
    }
}
